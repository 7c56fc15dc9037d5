"""The lite pull consumer's decisions: its queues with their offsets, flow control, where to start, the log lines.

Source: AssignedMessageQueue, DefaultLitePullConsumerImpl and RebalanceLitePullImpl of 5.3.3. An offset of -1 is none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from pyengine._engine.rocketmq.client.process_queue import ProcessQueue
from pyengine._engine.rocketmq.client.pull_gate import CACHE_FLOW_CONTROL
from pyengine._engine.rocketmq.client.rebalance import StartingPoint
from pyengine._engine.rocketmq.commands.message import RETRY_GROUP_TOPIC_PREFIX
from pyengine._engine.rocketmq.commands.message_queue import MessageQueue

# How long a queue's turn waits, ms.
PAUSED = 1000
NO_OFFSET = 3000
MIN_AUTO_COMMIT_INTERVAL = 1000


class AssignedQueue:
    """One queue of the consumer. pull_offset: where to pull next; consume_offset: what may be committed; seek_offset:
    where to go before the next pull. All -1 at first.
    """

    __slots__ = ("consume_offset", "paused", "process_queue", "pull_offset", "seek_offset")

    def __init__(self, process_queue: ProcessQueue) -> None:
        self.process_queue = process_queue
        self.paused = False
        self.pull_offset = -1
        self.consume_offset = -1
        self.seek_offset = -1


class AssignedQueues:
    """The queues of a lite pull consumer, by name, whether they were allocated to it or assigned by its user."""

    def __init__(self) -> None:
        self._queues: dict[MessageQueue, AssignedQueue] = {}

    def __contains__(self, queue: MessageQueue) -> bool:
        return queue in self._queues

    def get(self, queue: MessageQueue) -> AssignedQueue | None:
        """The queue's state, None if it is not assigned."""
        return self._queues.get(queue)

    def names(self) -> list[MessageQueue]:
        """Every queue, in the order of its assignment."""
        return list(self._queues)

    def assign(
        self,
        queues: Collection[MessageQueue],
        table: Mapping[MessageQueue, ProcessQueue],
        now: int,
        topic: str | None = None,
    ) -> None:
        """Have these and no others; with a topic no others of that topic. table: process queues that exist; the others
        are made. now: ms.
        """
        for queue in [each for each in self._queues if topic is None or each.topic == topic]:
            if queue not in queues:
                self._queues.pop(queue).process_queue.dropped = True
        for queue in queues:
            if queue not in self._queues:
                self._queues[queue] = AssignedQueue(table.get(queue) or ProcessQueue(now=now))

    def remove(self, topic: str) -> None:
        """Forget a topic's queues; what is cached of them is still polled, as by the real consumer."""
        for queue in [each for each in self._queues if each.topic == topic]:
            del self._queues[queue]

    def pause(self, queues: Iterable[MessageQueue], *, paused: bool) -> None:
        """Pull from these no more, or again. Those that are not assigned are passed over."""
        for queue in queues:
            found = self._queues.get(queue)
            if found is not None:
                found.paused = paused


class LitePullLimits(NamedTuple):
    """Flow control of one turn: the consumer's parameters of these names. group: for the log."""

    group: str
    pull_batch_size: int
    pull_threshold_for_all: int
    pull_threshold_for_queue: int
    pull_threshold_size_for_queue: int
    consume_max_span: int


class LitePullVerdict(NamedTuple):
    """What to do with a queue's turn. goes: pull now; otherwise it comes again after ``delay`` ms, or never if that is
    None. log: (level, text) lines.
    """

    goes: bool
    delay: int | None = None
    log: tuple[tuple[str, str], ...] = ()


class LitePullGate:
    """The flow control of one consumer (PullTaskImpl.run)."""

    def __init__(self) -> None:
        self._requests_held = 0
        self._queues_held = 0
        self._spans_held = 0

    def examine(
        self,
        queue: MessageQueue,
        assigned: AssignedQueue | None,
        cached_requests: int,
        limits: LitePullLimits,
        now: int,
    ) -> LitePullVerdict:
        """Whether a queue is pulled now. cached_requests: batches of all queues that were not polled yet. now: ms."""
        if assigned is None or assigned.paused:
            return LitePullVerdict(False, PAUSED, (("DEBUG", f"Message Queue: {queue} has been paused!"),))
        process_queue = assigned.process_queue
        if process_queue.dropped:
            line = (
                f"The message queue not be able to poll, because it's dropped. group={limits.group}, "
                f"messageQueue={queue}"
            )
            return LitePullVerdict(False, None, (("INFO", line),))
        process_queue.last_pull_timestamp = now
        if cached_requests * limits.pull_batch_size > limits.pull_threshold_for_all:
            self._requests_held += 1
            threshold = -(-limits.pull_threshold_for_all // limits.pull_batch_size)
            text = f"The consume request count exceeds threshold {threshold}"
            return _held(self._requests_held, text, lambda: f"consume request count={cached_requests}")
        count, mebibytes, span = process_queue.message_count, process_queue.message_mebibytes, process_queue.max_span

        def counts() -> str:
            return f"{_ends(process_queue)}, count={count}, size={mebibytes} MiB"

        if count > limits.pull_threshold_for_queue:
            self._queues_held += 1
            text = f"The cached message count exceeds the threshold {limits.pull_threshold_for_queue}"
            return _held(self._queues_held, text, counts)
        if mebibytes > limits.pull_threshold_size_for_queue:
            self._queues_held += 1
            text = f"The cached message size exceeds the threshold {limits.pull_threshold_size_for_queue} MiB"
            return _held(self._queues_held, text, counts)
        if span > limits.consume_max_span:
            self._spans_held += 1
            text = "The queue's messages, span too long"
            return _held(self._spans_held, text, lambda: f"{_ends(process_queue)}, maxSpan={span}")
        return LitePullVerdict(True)


def lite_starting_point(consume_from_where: str, stored: int, topic: str) -> StartingPoint:
    """Where a queue's first pull begins. stored: the offset store's answer, -1 for none, below for a failure, which
    makes the offset -1: the pull is then refused and tried again.
    """
    if stored >= 0:
        return StartingPoint(stored)
    retried = topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
    if stored != -1:
        return StartingPoint(-1)
    if consume_from_where == "CONSUME_FROM_LAST_OFFSET":
        return StartingPoint(0) if retried else StartingPoint(None, "max_offset")
    if consume_from_where == "CONSUME_FROM_FIRST_OFFSET":
        return StartingPoint(0)
    return StartingPoint(None, "max_offset" if retried else "search_offset")


def _held(times: int, text: str, details: Callable[[], str]) -> LitePullVerdict:
    """50 ms, and a line at the first and every thousandth time."""
    if times % 1000 != 1:
        return LitePullVerdict(False, CACHE_FLOW_CONTROL)
    line = f"{text}, so do flow control, {details()}, flowControlTimes={times}"
    return LitePullVerdict(False, CACHE_FLOW_CONTROL, (("WARN", line),))


def _ends(process_queue: ProcessQueue) -> str:
    cached = process_queue.cached_offsets
    return f"minOffset={cached[0]}, maxOffset={cached[-1]}"
