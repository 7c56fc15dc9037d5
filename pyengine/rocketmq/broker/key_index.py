"""Messages by key: the unique id and the words of KEYS, topic by topic (IndexService)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field
from typing import NamedTuple

from pyengine._engine.rocketmq.commands.stored_message import decode_stored
from pyengine.dataclass import dataclass
from pyengine.rocketmq import message as names
from pyengine.rocketmq.broker.message_store import MessageStore

MOST_FOUND = 64  # maxMsgsNumBatch


class FoundByKey(NamedTuple):
    """Stored messages, the oldest first. last_position, last_time: of the newest that is indexed, 0 if none is."""

    messages: list[bytes]
    last_position: int = 0
    last_time: int = 0


@dataclass(slots=True)
class _Topic:
    places: defaultdict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    indexed: dict[int, int] = field(default_factory=dict)  # queue id -> the offset behind the last one indexed
    last: tuple[int, int] = (0, 0)


class KeyIndex:
    """The index of one broker. A topic is indexed when it is first asked for, and then what came since. Every method
    is called with the broker's lock held.
    """

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._topics: dict[str, _Topic] = {}

    def query(self, topic: str, key: str, most: int, begin: int, end: int) -> FoundByKey:
        """The newest ``most`` messages of a topic that have the key and were stored from ``begin`` to ``end`` (ms)."""
        if not any(name == topic for name, _ in self._store.consume_queues):
            return FoundByKey([])
        found = self._topics.setdefault(topic, _Topic())
        self._index(topic, found)
        places = [each for each in found.places.get(key, ()) if begin <= each[1] <= end]
        frames = []
        for position, _ in sorted(places)[-min(most, MOST_FOUND) :] if most > 0 else ():
            frame = self._store.stored_at(position)
            if frame is not None:
                frames.append(frame)
        return FoundByKey(frames, *found.last) if frames else FoundByKey([])

    def _index(self, topic: str, found: _Topic) -> None:
        for (name, queue_id), queue in self._store.consume_queues.items():
            if name != topic:
                continue
            for offset in range(max(found.indexed.get(queue_id, 0), queue.min_offset), queue.max_offset):
                position = queue.position(offset)
                frame = self._store.stored_at(position)
                if frame is not None:
                    self._add(found, position, frame)
            found.indexed[queue_id] = queue.max_offset

    def _add(self, found: _Topic, position: int, frame: bytes) -> None:
        fields = decode_stored(frame, 0)[0]
        properties, stored = fields[2], fields[7]
        unique = properties.get(names.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
        for key in filter(None, {unique, *properties.get(names.PROPERTY_KEYS, "").split(" ")}):
            found.places[key].append((position, stored))
        found.last = max(found.last, (position, stored))
