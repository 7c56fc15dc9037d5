"""A consumer group under virtual time, slow and obvious: message objects, and the consumer's rooms as the live client
calls them (ConsumeRequest, PullGate, ProcessQueue with messages); a heap of tuples. The broker is what is left."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyengine._engine.rocketmq.broker.delay_levels import DelayLevels, send_back
from pyengine._engine.rocketmq.client.consume_concurrently import (
    EXPIRED_AT_ONCE,
    EXPIRED_DELAY_LEVEL,
    ConsumeRequest,
    slices,
)
from pyengine._engine.rocketmq.client.offset_table import OffsetTable
from pyengine._engine.rocketmq.client.process_queue import ProcessQueue
from pyengine._engine.rocketmq.client.pull_gate import PullGate, PullRequest, PullStep, commit_with_pull
from pyengine._engine.rocketmq.client.rebalance import (
    DISPATCH_DELAY,
    RebalanceTimer,
    is_balanced,
    queues_to_give_up,
    queues_to_take_on,
    shared_threshold,
)

MS = 1_000_000


@dataclass(eq=False)
class Stored:
    queue_offset: int
    row: int
    body: bytes | None
    properties: dict[str, str] = field(default_factory=dict)
    reconsume_times: int = 0


@dataclass(eq=False)
class Line:
    queue: Any
    rows: list[int] = field(default_factory=list)
    stored: int = -1
    held: list[Share] = field(default_factory=list)


@dataclass(eq=False)
class Member:
    name: str
    threads: int
    factor: float
    settings: dict[str, int]
    options: dict[str, int]
    gate: PullGate
    timer: RebalanceTimer
    busy: int = 0
    dead: bool = False
    gone: bool = False
    work: int = 0
    finished: int = 0
    holds: list[int] = field(default_factory=lambda: [0, 0, 0])
    table: dict[Any, ProcessQueue] = field(default_factory=dict)
    shares: dict[Any, Share] = field(default_factory=dict)
    offsets: OffsetTable = field(default_factory=OffsetTable)
    waiting: deque[tuple[Share, ConsumeRequest]] = field(default_factory=deque)


@dataclass(eq=False)
class Share:
    member: Member
    line: Line
    process: ProcessQueue
    request: PullRequest
    hold: int = 1


class PullRunModel:
    """The same questions as PullRun, the same answers."""

    def __init__(self, group: str, queues: Sequence[Any], allocate: Callable[..., Sequence[Any]],
                 arrivals: Sequence[int], services: Sequence[int], lines: Sequence[int], *, failures: Sequence[int],
                 sizes: Sequence[int], round_trip: int) -> None:  # fmt: skip
        self.group, self.allocate, self.round_trip = group, allocate, round_trip
        self.arrivals, self.services, self.line_of = arrivals, services, lines
        self.failures, self.sizes = failures, sizes
        self.lines = [Line(queue) for queue in queues]
        self.members: list[Member] = []
        self.levels = DelayLevels()
        self.now = self.arrived = self.orders = 0
        self.agenda: list[tuple[int, int, Callable[[], None]]] = []
        self.started = [-1] * len(arrivals)
        self.finished = [-1] * len(arrivals)
        self.deliveries = [0] * len(arrivals)
        self.dead: list[int] = []
        self.moments: list[tuple[int, str, int]] = []

    @property
    def ms(self) -> int:
        return self.now // MS

    def plan(self, time: int, action: Callable[[], None]) -> None:
        self.orders += 1
        heapq.heappush(self.agenda, (time, self.orders, action))

    def join(self, name: str, *, threads: int, factor: float, at_once: bool = False, **parameters: int) -> None:
        limits = ("pull_threshold_for_queue", "pull_threshold_size_for_queue", "consume_concurrently_max_span")
        it = Member(name, threads, factor, {key: parameters[key] for key in limits}, parameters,
                    PullGate(self.group), RebalanceTimer(self.ms))  # fmt: skip
        self.members.append(it)
        self.plan(self.now + 10_000 * MS, lambda: self.persisting(it))
        self.plan(self.now + parameters["consume_timeout"] * 60_000 * MS, lambda: self.cleaning(it))
        if not at_once:
            self.tell()

    def settle(self) -> None:
        for it in self.members:
            self.rebalance(it, 0)
            self.look_later(it)

    def member(self, name: str) -> Member:
        return next(it for it in self.members if it.name == name and not it.gone)

    def leave(self, name: str, *, lost: bool) -> None:
        it = self.member(name)
        if not lost:
            self.persist(it)
        it.gone = True
        for share in it.shares.values():
            share.process.dropped = True
        it.shares, it.table = {}, {}
        self.tell()

    def kill(self, name: str) -> None:
        self.member(name).dead = True

    def set_factor(self, name: str, factor: float) -> None:
        self.member(name).factor = factor

    def tell(self) -> None:
        for it in self.members:
            if not it.gone:
                it.timer.wake(self.ms)
                self.look_later(it)

    def look_later(self, it: Member) -> None:
        self.plan(it.timer.due() * MS, lambda: self.look(it))

    def look(self, it: Member) -> None:
        if it.gone or it.timer.due() * MS > self.now:
            return
        if it.timer.run_now(self.ms):
            self.rebalance(it, DISPATCH_DELAY)
        self.look_later(it)

    def run(self, until: int) -> None:
        while True:
            due = self.agenda[0][0] if self.agenda else until + 1
            arrival = self.arrivals[self.arrived] if self.arrived < len(self.arrivals) else until + 1
            if min(due, arrival) > until:
                break
            if due <= arrival:
                self.now, _, action = heapq.heappop(self.agenda)
                action()
            else:
                self.now = arrival
                self.arrived += 1
                self.arrive(self.lines[self.line_of[self.arrived - 1]], self.arrived - 1)
        self.now = until

    def arrive(self, line: Line, row: int) -> None:
        line.rows.append(row)
        woken, line.held = line.held, []
        for share in woken:
            share.hold += 1
            self.plan(self.now + self.round_trip, lambda share=share: self.answer(share))

    def pull(self, share: Share) -> None:
        it = share.member
        if it.gone:
            return
        verdict = it.gate.examine(share.request, self.ms, **it.settings)
        if verdict.step == PullStep.DROP:
            return
        if verdict.step != PullStep.SEND:
            it.holds[int(share.process.flow_control(**it.settings)) - 1] += 1
            self.plan(self.now + verdict.delay * MS, lambda: self.pull(share))
            return
        memory = it.offsets.get(share.line.queue)
        offset, bit = commit_with_pull(-1 if memory is None else memory)
        if bit:
            share.line.stored = offset
        self.plan(self.now + self.round_trip, lambda: self.answer(share))

    def answer(self, share: Share) -> None:
        it, line, first = share.member, share.line, share.request.next_offset
        if it.gone or share.process.dropped:
            return
        end = min(len(line.rows), first + it.options["pull_batch_size"])
        if end <= first:
            line.held.append(share)
            hold = share.hold
            self.plan(self.now + 15_000 * MS, lambda: self.waited(share, hold))
            return
        messages = [Stored(at, line.rows[at], bytes(self.sizes[line.rows[at]])) for at in range(first, end)]
        verdict = it.gate.answered(share.request, "FOUND", end, len(messages), first, it.options["pull_interval"])
        share.process.put_messages(messages)
        for part in slices(messages, it.options["consume_message_batch_max_size"]):
            it.waiting.append((share, ConsumeRequest(part, share.process, line.queue)))
        self.begin(it)
        self.plan(self.now + verdict.delay * MS, lambda: self.pull(share))

    def waited(self, share: Share, hold: int) -> None:
        if share.hold == hold:
            share.hold += 1
            share.line.held.remove(share)
            self.pull(share)

    def begin(self, it: Member) -> None:
        while it.busy < it.threads and it.waiting and not it.dead and not it.gone:
            share, request = it.waiting.popleft()
            if not request.start(self.ms):
                continue
            work = 0
            for message in request.messages:
                work += int(self.services[message.row] * it.factor)
                self.deliveries[message.row] += 1
                if self.finished[message.row] < 0:
                    self.started[message.row] = self.now
            it.busy += 1
            self.plan(self.now + work, lambda share=share, request=request, work=work: self.done(share, request, work))

    def done(self, share: Share, request: ConsumeRequest, work: int) -> None:
        it = share.member
        if it.gone or it.dead:
            return
        it.busy -= 1
        it.work += work
        if request.goes_on:
            fails = any(self.deliveries[each.row] <= self.failures[each.row] for each in request.messages)
            request.settle("RECONSUME_LATER" if fails else "CONSUME_SUCCESS")
            failed = request.failed()
            for message in failed:
                if request.holds(message):
                    self.give_back(message.row, 0, it)
            for message in request.messages[: len(request.messages) - len(failed)]:
                it.finished += 1
                if self.finished[message.row] < 0:
                    self.finished[message.row] = self.now
            offset = request.finish(self.ms)
            if offset is not None:
                it.offsets.update(share.line.queue, offset, increase_only=True)
        self.begin(it)

    def give_back(self, row: int, level: int, it: Member) -> None:
        maximum = it.options["max_reconsume_times"]
        wanted = send_back(level, max(0, self.deliveries[row] - 1), 16 if maximum == -1 else maximum)
        if wanted < 0:
            self.dead.append(row)
        else:
            self.plan(self.levels.deliver_time(wanted, self.ms) * MS, lambda: self.arrive(self.lines[-1], row))

    def cleaning(self, it: Member) -> None:
        if it.gone:
            return
        timeout = it.options["consume_timeout"]
        for share in list(it.shares.values()):
            for _ in range(EXPIRED_AT_ONCE):
                message = share.process.expired(self.ms, timeout)
                if message is None:
                    break
                self.give_back(message.row, EXPIRED_DELAY_LEVEL, it)
                share.process.remove_messages([message], now=self.ms)
        self.plan(self.now + timeout * 60_000 * MS, lambda: self.cleaning(it))

    def persisting(self, it: Member) -> None:
        if not it.gone:
            self.persist(it)
            self.plan(self.now + 5_000 * MS, lambda: self.persisting(it))

    def persist(self, it: Member) -> None:
        for queue, offset in it.offsets.persist_all(it.shares):
            next(line for line in self.lines if line.queue == queue).stored = offset

    def rebalance(self, it: Member, delay: int) -> None:
        names = [other.name for other in self.members if not other.gone]
        changed, balanced = False, True
        for topic in (self.lines[0].queue.topic, self.lines[-1].queue.topic):
            mine = self.allocate(it.name, names, topic == self.lines[-1].queue.topic)
            for queue in queues_to_give_up(topic, mine, it.table, self.ms, self.group)[0]:
                share = it.shares.pop(queue)
                del it.table[queue]
                changed = True
                if (offset := it.offsets.get(queue)) is not None:
                    share.line.stored = offset
                it.offsets.remove(queue)
            for queue in queues_to_take_on(mine, it.table):
                line = next(line for line in self.lines if line.queue == queue)
                process = ProcessQueue(now=self.ms)
                share = Share(it, line, process, PullRequest(self.group, queue, process, max(0, line.stored)))
                if line.stored >= 0:
                    it.offsets.update(queue, line.stored)
                it.table[queue], it.shares[queue] = process, share
                changed = True
                self.plan(self.now + delay * MS, lambda share=share: self.pull(share))
            balanced = balanced and is_balanced(topic, mine, it.table)
        if changed:
            for limit, key in (("pull_threshold_for_topic", "pull_threshold_for_queue"),
                               ("pull_threshold_size_for_topic", "pull_threshold_size_for_queue")):  # fmt: skip
                after = shared_threshold(it.options[limit], len(it.table))
                if after is not None:
                    it.settings[key] = after
            self.moments.append((self.now, it.name, len(it.table)))
        it.timer.ran(self.ms, balanced)

    def members_seen(self) -> list[tuple[Any, ...]]:
        return [(it.name, it.work, it.finished, *it.holds) for it in self.members]

    def offsets(self) -> list[tuple[Any, int, int]]:
        known = {queue: offset for it in self.members if not it.gone for queue, offset in it.offsets.items()}
        return [(line.queue, len(line.rows), max(line.stored, known.get(line.queue, -1))) for line in self.lines]
