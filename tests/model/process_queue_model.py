"""ProcessQueue as two sorted dicts and the words of spec rocketmq 1.1-1.8."""

from __future__ import annotations

from dataclasses import dataclass, field


def java_long(value: int) -> int:
    """The value as a signed 64-bit integer that wraps."""
    return (value + 2**63) % 2**64 - 2**63


@dataclass
class Record:
    """A message: offset, body, properties."""

    queue_offset: int
    body: bytes | None
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return len(self.body or b"")


class ProcessQueueModel:
    """The real class's fields and methods, slow and obvious."""

    def __init__(self) -> None:
        self.tree: dict[int, Record] = {}
        self.consuming_tree: dict[int, Record] = {}
        self.count = self.size = self.offset_max = self.accumulated = 0
        self.consuming = False

    def put(self, records: list[Record]) -> bool:
        for record in records:
            if record.queue_offset not in self.tree:
                self.count += 1
                self.offset_max = record.queue_offset
                self.size += record.size
            self.tree[record.queue_offset] = record
        start = bool(self.tree) and not self.consuming
        self.consuming = self.consuming or start
        if records and "MAX_OFFSET" in records[-1].properties:
            ahead = java_long(int(records[-1].properties["MAX_OFFSET"]) - records[-1].queue_offset)
            if ahead > 0:
                self.accumulated = ahead
        return start

    def remove(self, records: list[Record]) -> int:
        if not self.tree:
            return -1
        answer = java_long(self.offset_max + 1)
        for record in records:
            if self.tree.pop(record.queue_offset, None):
                self.count -= 1
                self.size -= record.size
        if not self.count:
            self.size = 0
        return min(self.tree) if self.tree else answer

    def take(self, size: int) -> list[Record]:
        batch = [self.tree.pop(offset) for offset in sorted(self.tree)[:size]]
        self.consuming_tree.update((record.queue_offset, record) for record in batch)
        if not batch:
            self.consuming = False
        return batch

    def commit(self) -> int:
        answer = java_long(max(self.consuming_tree) + 1)
        self.count -= len(self.consuming_tree)
        taken = sum(record.size for record in self.consuming_tree.values())
        self.size = self.size - taken if self.count else 0
        self.consuming_tree.clear()
        return answer

    def rollback(self) -> None:
        self.tree.update(self.consuming_tree)
        self.consuming_tree.clear()

    def again(self, records: list[Record]) -> None:
        for record in records:
            self.consuming_tree.pop(record.queue_offset, None)
            self.tree[record.queue_offset] = record

    def clear(self) -> None:
        self.tree.clear()
        self.consuming_tree.clear()
        self.count = self.size = self.offset_max = 0
