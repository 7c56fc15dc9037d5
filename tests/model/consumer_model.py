"""Slow, obvious versions of the consumer's rules, from the reading of the real client (spec rocketmq 2-6)."""

from __future__ import annotations

from dataclasses import dataclass, field

MIB = 1024 * 1024
NOT_SET = 2**31 - 1


@dataclass
class OffsetTableModel:
    """Offsets and which of them are frozen."""

    offsets: dict[str, int] = field(default_factory=dict)
    frozen: set[str] = field(default_factory=set)

    def update(self, queue: str, offset: int, increase_only: bool) -> None:
        if queue not in self.offsets:
            self.offsets[queue] = offset
        elif queue not in self.frozen:
            self.offsets[queue] = max(offset, self.offsets[queue]) if increase_only else offset

    def freeze(self, queue: str, offset: int) -> None:
        self.offsets[queue] = offset
        self.frozen.add(queue)

    def remove(self, queue: str) -> None:
        self.offsets.pop(queue, None)
        self.frozen.discard(queue)

    def persist_all(self, queues: set[str]) -> dict[str, int]:
        if not queues:
            return {}
        for queue in set(self.offsets) - queues:
            self.remove(queue)
        return dict(self.offsets)


def flow_control(count: int, size: int, span: int, orderly: bool, limits: tuple[int, int, int]) -> str:
    """Which limit holds a pull back: count, size, span, or none."""
    whole = size // MIB if size >= 0 else -(-size // MIB)
    if count > limits[0]:
        return "count"
    if whole > limits[1]:
        return "size"
    if not orderly and span > limits[2]:
        return "span"
    return "none"


@dataclass
class BatchModel:
    """One batch of the concurrent service over a cache of offsets."""

    cached: list[int]
    batch: list[int]
    highest: int
    sent: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    tries: dict[int, int] = field(default_factory=dict)

    def settle(self, succeeded: bool, ack_index: int, clustering: bool, refused: set[int]) -> int | None:
        """The offset to commit. refused: offsets that cannot be given back."""
        last = min(ack_index, len(self.batch) - 1) if succeeded else -1
        for offset in self.batch[last + 1 :]:
            if not clustering or offset not in self.cached:
                continue
            if offset in refused:
                self.kept.append(offset)
                self.tries[offset] = self.tries.get(offset, 0) + 1
            else:
                self.sent.append(offset)
        if not self.cached:
            return None
        for offset in [offset for offset in self.batch if offset not in self.kept]:
            if offset in self.cached:
                self.cached.remove(offset)
        return min(self.cached) if self.cached else self.highest + 1


@dataclass
class OrderlyModel:
    """Ordered consumption of one queue: what is left, what is open, what was committed."""

    left: list[int]
    open: list[int] = field(default_factory=list)
    tries: dict[int, int] = field(default_factory=dict)
    commits: list[int] = field(default_factory=list)

    def turn(self, status: str, size: int, auto_commit: bool, most: int, refused: bool) -> bool:
        """One batch; True if the run goes on."""
        batch, self.left = self.left[:size], self.left[size:]
        self.open += batch
        if status == "SUSPEND_CURRENT_QUEUE_A_MOMENT":
            suspends = False
            for offset in batch:
                if self.tries.get(offset, 0) < most or refused:
                    suspends = True
                    self.tries[offset] = self.tries.get(offset, 0) + 1
            if suspends:
                self.open = [offset for offset in self.open if offset not in batch]
                self.left = sorted(batch + self.left)
                return False
            if auto_commit:
                self.commit()
        elif auto_commit or status == "COMMIT":
            self.commit()
        elif status == "ROLLBACK":
            self.left, self.open = sorted(self.open + self.left), []
            return False
        return True

    def commit(self) -> None:
        self.commits.append(max(self.open) + 1)
        self.open = []


@dataclass
class RateModel:
    """A growing number and its samples."""

    value: int = 0
    times: int = 0
    samples: list[tuple[int, int, int]] = field(default_factory=list)

    def sample(self, now: int) -> None:
        if not self.samples:
            self.samples.append((now - 10_000, 0, 0))
        self.samples = [*self.samples, (now, self.times, self.value)][-7:]

    def minute(self) -> tuple[int, float, int, float]:
        if not self.samples:
            return 0, 0.0, 0, 0.0
        (begin, first_times, first), (end, last_times, last) = self.samples[0], self.samples[-1]
        times = last_times - first_times
        return last - first, (last - first) * 1000 / (end - begin), times, (last - first) / times if times > 0 else 0.0
