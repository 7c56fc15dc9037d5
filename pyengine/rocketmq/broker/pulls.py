"""Pulls of one broker: what they find, and those that wait (PullMessageProcessor, PullRequestHoldService)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from pyengine._engine.rocketmq.broker import commit_log_record as record
from pyengine._engine.rocketmq.broker.consume_queue import PullCode
from pyengine._engine.rocketmq.broker.consumer_groups import ConsumerGroups
from pyengine._engine.rocketmq.broker.long_polling import CHECK_INTERVAL, PullHold
from pyengine.attributes import frozen
from pyengine.clock import Clock, Timer, Worker
from pyengine.dataclass import dataclass
from pyengine.errors import PyengineError
from pyengine.rocketmq.broker.filter import pull_filter
from pyengine.rocketmq.broker.group_offsets import GroupOffsets
from pyengine.rocketmq.broker.message_store import MessageStore
from pyengine.rocketmq.remoting.mq_client_api import FLAG_COMMIT_OFFSET, FLAG_SUSPEND, PullMessageRequest
from pyengine.rocketmq.remoting.stored_message import message_of


@frozen
@dataclass(frozen=True, slots=True)
class PulledFrames:
    """What a pull found, as it lies in the log: the stored messages of the wire.

    was_reset: nothing, because an administrator has set the group's offset, to next_begin_offset.
    """

    code: PullCode
    next_begin_offset: int
    min_offset: int
    max_offset: int
    frames: tuple[bytes, ...] = ()
    was_reset: bool = False


FramesCallback = Callable[[PulledFrames | PyengineError], None]


class Pulls:
    """Answers pulls on a worker of its own. arrived() and close() are called with the broker's lock held.

    broker_name: of the messages that filters see. groups, offsets: what a pull is filtered by and what it commits.
    admit: raises MQClientError if the broker is closed, MQBrokerError for a queue that it does not have.
    """

    def __init__(
        self,
        broker_name: str,
        clock: Clock,
        lock: threading.RLock,
        store: MessageStore,
        groups: ConsumerGroups,
        offsets: GroupOffsets,
        admit: Callable[[str, int], None],
    ) -> None:
        self._broker_name = broker_name
        self._clock = clock
        self._lock = lock
        self._store = store
        self._groups = groups
        self._offsets = offsets
        self._admit = admit
        self._started = clock.now()
        self.holds: dict[tuple[str, int], PullHold] = {}
        self._timer: Timer | None = None
        self._ended: dict[tuple[str, str, int], int] = {}  # group, topic, queue id -> where its last pull ended
        self._closed = False
        self.worker: Worker = clock.worker(f"PullMessageThread_{broker_name}")

    def pull(self, request: PullMessageRequest, callback: FramesCallback) -> None:
        """Answer a pull with stored messages, on the worker."""
        self.worker.submit(lambda: self._answer(request, callback, may_wait=True))

    def ended_at(self, group: str, topic: str, queue_id: int) -> int:
        """Where the last pull of a group ended, -1 without one."""
        with self._lock:
            return self._ended.get((group, topic, queue_id), -1)

    def _answer(self, request: PullMessageRequest, callback: FramesCallback, *, may_wait: bool) -> None:
        answer: PulledFrames | PyengineError | None
        try:
            with self._lock:
                answer = self._find(request, callback, may_wait=may_wait)
        except PyengineError as error:
            answer = error
        if answer is not None:
            callback(answer)

    def _find(self, request: PullMessageRequest, callback: FramesCallback, *, may_wait: bool) -> PulledFrames | None:
        """The answer, None if the pull waits."""
        topic, _, queue_id = request.queue
        self._admit(topic, queue_id)
        wanted = pull_filter(request, self._groups)
        queue = self._store.consume_queue(topic, queue_id)
        reset = self._offsets.take_reset(request.consumer_group, topic, queue_id)
        if reset is not None:
            return PulledFrames(PullCode.OFFSET_MOVED, reset, queue.min_offset, queue.max_offset, was_reset=True)

        def matches(offset: int) -> bool:
            stored = self._store.log.read(queue.position(offset))
            return wanted.matches(message_of(stored, self._broker_name).properties)

        code, following, found = queue.pull(
            request.queue_offset, request.max_nums, wanted.codes, None if wanted.selector is None else matches
        )
        if may_wait and request.sys_flag & FLAG_COMMIT_OFFSET:
            self._offsets.commit(request.consumer_group, topic, queue_id, request.commit_offset)
        if code == PullCode.NOT_FOUND and may_wait and request.sys_flag & FLAG_SUSPEND:
            self._ended[request.consumer_group, topic, queue_id] = following
            self.holds.setdefault((topic, queue_id), PullHold()).hold(
                (request, callback), request.queue_offset, self._clock.now(), request.suspend_timeout, wanted.codes,
                None if wanted.selector is None else wanted.matches,
            )  # fmt: skip
            self._look_at_held()
            return None
        frames = tuple(record.payload(self._store.log.read(queue.position(offset))) for offset in found)
        self._ended[request.consumer_group, topic, queue_id] = following
        return PulledFrames(code, following, queue.min_offset, queue.max_offset, frames)

    def arrived(self, topic: str, queue_id: int, code: int, properties: Mapping[str, str]) -> None:
        """A message was stored: wake the pulls that wait for it."""
        hold = self.holds.get((topic, queue_id))
        if hold:
            max_offset, now = self._store.consume_queue(topic, queue_id).max_offset, self._clock.now()
            properties = dict(properties)  # those of the sender's own message, which may change meanwhile
            # Taken out there: a sender that Ctrl-C interrupts would leave them neither waiting nor answered.
            self.worker.submit(lambda: self._wake(hold, max_offset, code, properties, now))

    def _wake(self, hold: PullHold, max_offset: int, code: int, properties: Mapping[str, str], now: int) -> None:
        with self._lock:
            woken = hold.arrived(max_offset, code, properties, now)
        for request, callback in woken:
            self._answer(request, callback, may_wait=False)

    def _run_again(self, pulls: Iterable[tuple[PullMessageRequest, FramesCallback]]) -> None:
        for request, callback in pulls:
            self.worker.submit(lambda r=request, c=callback: self._answer(r, c, may_wait=False))  # type: ignore[misc]

    def _look_at_held(self) -> None:
        """Look at waiting pulls every five seconds from the broker's start on, as long as there are any."""
        if self._timer is None or not self._timer.pending:
            turns = (self._clock.now() - self._started) // CHECK_INTERVAL + 1
            self._timer = self._clock.call_at(self._started + turns * CHECK_INTERVAL, self._check_held)

    def _check_held(self) -> None:
        with self._lock:
            if self._closed:
                return
            for queue, hold in self.holds.items():
                if len(hold):
                    self._run_again(hold.check(self._store.consume_queue(*queue).max_offset, self._clock.now()))
            if any(map(len, self.holds.values())):
                self._look_at_held()

    def close(self) -> None:
        """Hold no pull any longer: each is answered by what ``admit`` raises. The worker is closed by the caller."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for hold in self.holds.values():
            self._run_again(hold.drop_all())
