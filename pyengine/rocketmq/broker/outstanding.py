"""Messages that a broker keeps aside until something is done with them: half messages, and timers."""

from __future__ import annotations

from pyengine._engine.rocketmq.broker import commit_log_record as record
from pyengine._engine.rocketmq.commands.origin import Origin
from pyengine.rocketmq.broker.message_store import CLIENT_HOST, MessageStore


class Outstanding:
    """The messages of one queue of the store that are not done with. Each method is called with the broker's lock held.

    topic: where they lie, in queue 0. done_topic: what is done with, by offset; so it is known after a restart. Both
    are emptied as far as everything is done.
    """

    def __init__(self, store: MessageStore, topic: str, done_topic: str) -> None:
        self.topic = topic
        self._store = store
        self._done_topic = done_topic
        store.kept_aside |= {topic, done_topic}
        queue = store.consume_queue(topic, 0)
        done = store.consume_queue(done_topic, 0)
        ended: set[int] = set()
        for offset in range(done.min_offset, done.max_offset):
            body = record.decode_message(store.log.read(done.position(offset)))[1]
            ended.update(int(part) for part in body.split(b",") if part)
        self.offsets: dict[int, int] = {  # offset in the queue -> position in the log
            offset: queue.position(offset)
            for offset in range(queue.min_offset, queue.max_offset)
            if offset not in ended
        }

    def put(self, body: bytes | None, properties: dict[str, str], origin: Origin) -> tuple[int, int]:
        """Keep one aside. Returns its position in the log and its offset."""
        position, offset = self._store.put_message(self.topic, 0, body, properties, origin)
        self.offsets[offset] = position
        return position, offset

    def end(self, offset: int) -> None:
        """One is done with."""
        position = self.offsets.pop(offset, None)
        if position is None:
            return
        now = self._store.now()
        self._store.put_message(self._done_topic, 0, f"{offset},".encode(), {"TAGS": "d"}, Origin(now, CLIENT_HOST))
        least = min(self.offsets, default=self._store.consume_queue(self.topic, 0).max_offset)
        self._store.delete_below(self.topic, 0, least)
        if not self.offsets:
            self._store.delete_below(self._done_topic, 0, self._store.consume_queue(self._done_topic, 0).max_offset)
