"""The consumer offsets of one broker in its folder (RocketMQ's ConsumerOffsetManager): config/consumerOffset.json."""

from __future__ import annotations

import threading
from dataclasses import replace

from pyengine._engine.rocketmq.broker.consumer_offsets import ConsumerOffsets
from pyengine.clock import Clock, Timer, Worker
from pyengine.rocketmq.broker.broker_files import BrokerFiles

FIRST_OFFSET_FLUSH = 10_000  # ms after the start
OFFSET_FLUSH_INTERVAL = 5_000  # ms


class KeptOffsets:
    """Reads ``offsets`` from the folder when it is made, and writes them there from ``start`` on.

    lock: the broker's, under which its offsets change.
    """

    def __init__(self, files: BrokerFiles, offsets: ConsumerOffsets, clock: Clock, lock: threading.RLock) -> None:
        self._files = files
        self._offsets = offsets
        self._clock = clock
        self._lock = lock
        self._file_lock = threading.Lock()
        self._persisted = 0
        self._timer: Timer | None = None
        self._closed = False
        table, self._version = files.read_offsets()
        offsets.load(table)

    def start(self, worker: Worker) -> None:
        """Write ten seconds after the start and then every five (flushConsumerOffsetInterval), on ``worker``."""

        def flush() -> None:
            if not self._closed:
                worker.submit(self.persist)
                self._timer = self._clock.call_at(self._clock.now() + OFFSET_FLUSH_INTERVAL, flush)

        self._timer = self._clock.call_at(self._clock.now() + FIRST_OFFSET_FLUSH, flush)

    def persist(self) -> None:
        """Write the file now, if an offset was committed since; not in a forked process, nor once it is closed."""
        if not self._files.are_ours:
            return
        with self._file_lock:
            if self._closed:
                return
            with self._lock:
                commits = self._offsets.commits
                if commits == self._persisted:
                    return
                table = self._offsets.dump()
                version = replace(self._version, counter=self._version.counter + self._offsets.version)
            if self._files.write_offsets(table, replace(version, timestamp=self._clock.now())):
                self._persisted = commits

    def stop(self) -> None:
        """Write no more by itself."""
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        """Write what is new, and nothing later."""
        self.persist()
        with self._file_lock:
            self._closed = True
