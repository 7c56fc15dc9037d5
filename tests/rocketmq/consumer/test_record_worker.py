"""Work on records that another client polled: order, what is safe to commit, budgets, revokes; and a model of it."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pyengine._engine.rocketmq.client.work_table import Work, WorkOrder, WorkTable
from pyengine.clock import ManualClock
from pyengine.errors import ConfigurationError, IllegalStateError, InvalidMessageError
from pyengine.rocketmq import FlowControl, MessageExt, MessageQueue, RecordWorker, TopicPartition

P0, P1 = ("orders", 0), ("orders", 1)


@dataclass
class Attributes:
    """As aiokafka's ConsumerRecord."""

    topic: str
    partition: int
    offset: int
    key: bytes | None = None
    value: bytes | None = b""


class Methods:
    """As confluent-kafka's Message."""

    def __init__(self, topic: str, partition: int, offset: int, key: bytes | None = None, value: bytes = b"") -> None:
        self._fields = {"topic": topic, "partition": partition, "offset": offset, "key": key, "value": value}

    def __getattr__(self, name: str) -> object:
        if name not in self._fields:
            raise AttributeError(name)
        return lambda: self._fields[name]


@pytest.mark.parametrize("order", ["key", "queue", "none"])
@pytest.mark.parametrize("revoked", [True, False])
def test_records_that_nobody_finishes_are_gone_with_their_queue_or_their_worker(order: Any, revoked: bool) -> None:
    worker: RecordWorker | None = RecordWorker(order)
    assert worker is not None
    worker.assign([P0])
    records = [Attributes("orders", 0, offset, b"%d" % (offset % 2)) for offset in range(4)]
    kept = [weakref.ref(record) for record in records]
    worker.put(records)
    worker.take()
    if revoked:
        worker.revoke([P0])
    else:
        worker = None
    records.clear()
    gc.collect()
    assert [record() for record in kept] == [None] * 4


@pytest.mark.parametrize("shape", [Attributes, Methods])
def test_kafka_records_of_both_clients(shape: type) -> None:
    worker = RecordWorker()
    worker.assign([P0])
    assert worker.put([shape("orders", 0, offset, key) for offset, key in ((7, b"a"), (8, b"a"), (9, b"b"))]) == 3
    first, second = worker.take(), worker.take()
    assert first is not None
    assert second is not None
    assert [(w.queue_offset, w.key) for w in (first, second)] == [(7, b"a"), (9, b"b")]
    assert worker.take() is None, "8 waits for 7, which has the same key"
    worker.complete(second)
    assert worker.commits() == {P0: 7}
    worker.complete(first)
    assert worker.commits() == {P0: 8}
    third = worker.take()
    assert third is not None
    worker.complete(third)
    assert worker.commits() == {P0: 10}
    assert worker.commits() == {}


def test_rocketmq_messages() -> None:
    queue = MessageQueue("T", "broker-a", 3)
    worker = RecordWorker("queue")
    worker.assign([queue])
    worker.put([MessageExt("T", b"x", broker_name="broker-a", queue_id=3, queue_offset=i) for i in (5, 90)])
    work = worker.take()
    assert work is not None
    assert worker.take() is None
    worker.complete(work)
    assert worker.commits() == {queue: 90}


def test_records_of_several_clients_and_queues_in_one_call() -> None:
    there, other = MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-b", 0)
    worker = RecordWorker("none")
    worker.assign([("T", 0), P1, there, tuple(other)])
    far = [MessageExt("T", b"x", broker_name=f"broker-{name}", queue_id=0, queue_offset=7) for name in "abab"]
    near = [Attributes("T", 0, 7), Methods("T", 0, 8), Attributes("orders", 1, 8), Methods("orders", 1, 9)]
    assert worker.put([far[0], near[0], far[1], near[1], near[2], far[2], near[3], far[3]]) == 6
    taken = []
    while (work := worker.take()) is not None:
        taken.append((work.queue, work.queue_offset))
        assert worker.complete(work)
    p0 = TopicPartition("T", 0)
    assert taken == [(there, 7), (p0, 7), (other, 7), (p0, 8), (TopicPartition(*P1), 8), (TopicPartition(*P1), 9)]
    assert all(type(queue) in (MessageQueue, TopicPartition) for queue, _ in taken)
    assert worker.commits() == {p0: 9, P1: 10, there: 8, other: 8}


def test_many_records_of_a_key_wait_in_order() -> None:
    worker = RecordWorker()
    worker.assign([P0])
    worker.put(Attributes("orders", 0, offset, b"a") for offset in range(200))
    done: list[int] = []
    while (work := worker.take()) is not None:
        if work.queue_offset % 5 == 3 and work.attempts == 1:
            assert worker.give_back(work)
        else:
            done.append(work.queue_offset)
            assert worker.complete(work)
        worker._table._check()
    assert done == list(range(200))
    assert worker.commits() == {P0: 200}


def test_five_messages_and_the_smallest_offset() -> None:
    worker = RecordWorker("none")
    worker.assign([P0])
    worker.put(Attributes("orders", 0, offset) for offset in range(5))
    taken = [worker.take() for _ in range(5)]
    safe = []
    for place in (3, 0, 1, 2, 4):
        work = taken[place]
        assert work is not None
        worker.complete(work)
        safe.append(worker._table.safe_offset(P0))
    assert safe == [0, 1, 2, 4, 5]


def test_failed_work_comes_again_before_the_rest_of_its_key() -> None:
    worker = RecordWorker()
    worker.assign([P0])
    worker.put([Attributes("orders", 0, 1, b"a"), Attributes("orders", 0, 2, b"a")])
    work = worker.take()
    assert work is not None
    assert worker.give_back(work)
    again = worker.take()
    assert again is work
    assert again.attempts == 2
    with pytest.raises(IllegalStateError, match="assigned already"):
        worker.assign([P0])


def test_completions_after_a_revoke_are_dropped_and_counted() -> None:
    worker = RecordWorker()
    old = worker.assign([P0, P1])
    worker.put([Attributes("orders", 0, 1), Attributes("orders", 0, 2), Attributes("orders", 1, 1)])
    first, second, third = worker.take(), worker.take(), worker.take()
    assert first is not None
    assert second is not None
    assert third is not None
    worker.complete(first)
    assert worker.revoke([P0, P1]) == {P0: 2}
    new = worker.assign([P0])
    assert new[P0] not in old.values()
    worker.put([Attributes("orders", 0, 2)])
    assert worker.complete(second) is False
    assert worker.give_back(third) is False
    assert worker.dropped == 2
    assert worker.unfinished(P0) == [2]
    assert worker.commits() == {}
    with pytest.raises(IllegalStateError, match="not assigned"):
        worker.put([Attributes("orders", 1, 2)])


def test_a_queue_is_full_when_it_exceeds_its_budget() -> None:
    worker = RecordWorker(max_messages=3, max_mebibytes=1, max_span=10)
    worker.assign([P0, P1])
    worker.put(Attributes("orders", 0, offset) for offset in range(3))
    assert worker.full() == {}
    worker.put([Attributes("orders", 0, 3), Attributes("orders", 1, 0), Attributes("orders", 1, 11)])
    assert worker.full() == {P0: FlowControl.COUNT, P1: FlowControl.SPAN}
    work = worker.take()
    assert work is not None
    worker.complete(work)
    assert worker.full() == {P1: FlowControl.SPAN}
    other = RecordWorker(max_mebibytes=1)
    other.assign([P0])
    other.put([Attributes("orders", 0, 0, None, b"x" * 2 * 2**20)])
    assert other.full() == {P0: FlowControl.SIZE}


def test_behind_a_record_that_hangs_a_restart_repeats_no_more_than_the_span() -> None:
    worker = RecordWorker(max_span=100)
    worker.assign([P0])
    worker.put([Attributes("orders", 0, 7, b"hangs")])
    hanging = worker.take()
    assert hanging is not None
    offset = 7
    while not worker.full():
        offset += 1
        worker.put([Attributes("orders", 0, offset, b"%d" % (offset % 5))])
        work = worker.take()
        assert work is not None
        worker.complete(work)
    assert (offset, worker.unfinished(P0), worker.full()) == (108, [7], {P0: FlowControl.SPAN})
    worker.complete(hanging)
    assert (worker.commits(), worker.full()) == ({P0: 109}, {})


@pytest.mark.parametrize("call", ["assign", "revoke", "put"])
@pytest.mark.parametrize("given", [5, "T"])
def test_what_is_no_list_is_named(call: str, given: object) -> None:
    with pytest.raises(ConfigurationError, match=f"(queues|records)={given!r}: no list; give one, as "):
        getattr(RecordWorker(), call)(given)


def test_misuse_is_refused() -> None:
    worker = RecordWorker()
    worker.assign([P0])
    worker.put([Attributes("orders", 0, 1)])
    assert worker.put([Attributes("orders", 0, 1)]) == 0
    work = worker.take()
    assert work is not None
    worker.complete(work)
    with pytest.raises(IllegalStateError, match="not in hand"):
        worker.complete(work)
    with pytest.raises(InvalidMessageError, match="needs topic, partition, offset"):
        worker.put([object()])
    for offset in (None, "1", 2**63, -1, -1001):  # -1001: confluent-kafka's for a message that was not consumed
        with pytest.raises(InvalidMessageError, match=r"from 0 to 2\*\*63 - 1; put what the client's poll returned"):
            worker.put([Attributes("orders", 0, 2), Attributes("orders", 0, offset)])  # type: ignore[arg-type]
    assert worker.unfinished(P0) == []
    with pytest.raises(ValueError, match="'key', 'queue' or 'none'"):
        RecordWorker("random")  # type: ignore[arg-type]
    for budget in (-1, 2**63, 1.5, "x", None):
        with pytest.raises(ConfigurationError, match="max_span"):
            RecordWorker(max_span=budget)  # type: ignore[arg-type]
    assert worker.take(timeout=0.01) is None


def test_what_is_no_work_key_queue_or_timeout_is_named() -> None:
    worker: Any = RecordWorker()
    worker.assign([P0])
    for finish in (worker.complete, worker.give_back):
        with pytest.raises(ConfigurationError, match=r"^work='x': no record in hand; give what take\(\) returned"):
            finish("x")
    with pytest.raises(InvalidMessageError, match=r"key .*cannot be hashed; make it bytes, a string or a tuple"):
        worker.put([Attributes("orders", 0, 1, b"k"), Attributes("orders", 0, 2, {"id": 1})])  # type: ignore[arg-type]
    assert worker.unfinished(P0) == [1]
    for ask in (worker.unfinished, lambda queue: worker.assign([queue]), lambda queue: worker.revoke([queue])):
        with pytest.raises(ConfigurationError, match=r"^queue=\[1\]: no queue; give TopicPartition\('topic', 0\)"):
            ask([1])
    worker.take()
    for timeout in ("x", float("nan"), []):
        with pytest.raises(ConfigurationError, match=r"^timeout=.*: a number of seconds is needed, a timed"):
            worker.take(timeout)
    assert worker.take(-1.5) is None


def test_the_partitions_that_confluent_kafka_assigns_and_revokes() -> None:
    class Partition:
        """As confluent-kafka's TopicPartition, which raises where it is compared with a tuple."""

        topic, partition, offset = "orders", 0, -1001

        def __eq__(self, other: object) -> bool:
            if not isinstance(other, Partition):
                raise NotImplementedError
            return True

        def __hash__(self) -> int:
            return 0

    worker = RecordWorker()
    assert worker.assign([Partition()]) == {P0: 1}
    worker.put([Methods("orders", 0, offset) for offset in (7, 8)])
    assert worker.unfinished(Partition()) == [7, 8]
    work = worker.take()
    assert work is not None
    worker.complete(work)
    assert worker.revoke([Partition()]) == {P0: 8}
    for queue in ("orders", 0, None):
        with pytest.raises(ConfigurationError, match=r"^queue=.*: no queue; give TopicPartition\('topic', 0\)"):
            worker.assign([queue])


def test_an_error_of_confluent_kafka_is_no_record() -> None:
    class Polled(Methods):
        def error(self) -> str | None:
            return "Broker: No more messages" if self.value() is None else None

    worker = RecordWorker()
    worker.assign([P0])
    end = Polled("orders", 0, 7, None, None)
    with pytest.raises(
        InvalidMessageError, match=r"an error and no record: Broker: No more messages; ask error\(\) before"
    ):
        worker.put([Polled("orders", 0, 6, b"k", b"x"), end])
    assert worker.put([Polled("orders", 0, 6, b"k", b"x"), Polled("orders", 0, 7, b"k", b"y")]) == 2


def test_queues_come_and_go_all_or_none() -> None:
    worker = RecordWorker()
    worker.assign([P0])
    worker.put([Attributes("orders", 0, 7)])
    work = worker.take()
    assert work is not None
    worker.complete(work)
    for queues, error in (([P1, P0], IllegalStateError), ([P1, P1], ConfigurationError)):
        with pytest.raises(error, match=r"assigned already|stands there twice"):
            worker.assign(queues)
    with pytest.raises(IllegalStateError, match="is not assigned"):
        worker.revoke([P0, P1])
    assert worker.revoke([P0]) == {P0: 8}
    assert worker.assign([P1]) == {P1: 2}


def test_work_is_finished_where_it_was_taken() -> None:
    one, other = RecordWorker(), RecordWorker()
    for worker in (one, other):
        worker.assign([P0])
    one.put([Attributes("orders", 0, offset, b"k") for offset in (1, 2)])
    work = one.take()
    assert work is not None
    for finish in (other.complete, other.give_back):
        with pytest.raises(IllegalStateError, match="was taken from another worker: finish it there"):
            finish(work)
    assert other.take() is None
    assert one.complete(work)
    assert one.commits() == {P0: 2}


def test_who_waits_is_woken_by_records_before_one_that_is_refused() -> None:
    worker = RecordWorker()
    worker.assign([P0])
    taken: list[Work | None] = []
    thread = threading.Thread(target=lambda: taken.append(worker.take(60)))
    thread.start()
    while not worker._waiting:
        pass
    with pytest.raises(IllegalStateError, match="is not assigned"):
        worker.put([Attributes("orders", 0, 1), Attributes("orders", 1, 1)])
    thread.join(30)
    assert [work and work.queue_offset for work in taken] == [1]


def test_threads_work_on_every_record_once_and_on_keys_in_order() -> None:
    worker = RecordWorker(max_messages=10**6)
    worker.assign([P0])
    seen: dict[bytes, list[int]] = defaultdict(list)
    lock = threading.Lock()
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            found = worker.take(timeout=0.1)
            if found is None:
                continue
            with lock:
                seen[found.key].append(found.queue_offset)
                if sum(map(len, seen.values())) == 600:
                    done.set()
            worker.complete(found)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for start in range(0, 600, 50):
        worker.put(Attributes("orders", 0, start + i, b"%d" % (i % 7)) for i in range(50))
    assert done.wait(120)
    for thread in threads:
        thread.join()
    assert all(offsets == sorted(offsets) for offsets in seen.values())
    assert sorted(offset for offsets in seen.values() for offset in offsets) == list(range(600))
    assert worker.commits() == {P0: 600}


def test_a_record_given_back_with_a_delay_comes_when_it_is_due_and_its_key_waits() -> None:
    clock = ManualClock()
    worker = RecordWorker(clock=clock)
    worker.assign([P0])
    worker.put([Attributes("orders", 0, offset, key) for offset, key in ((1, b"a"), (2, b"a"), (3, b"b"))])
    failed = worker.take()
    assert failed is not None
    assert worker.give_back(failed, delay=timedelta(seconds=2))
    with pytest.raises(IllegalStateError, match="not in hand"):
        worker.complete(failed)
    other = worker.take()
    assert other is not None
    assert other.queue_offset == 3
    worker.complete(other)
    assert worker.commits() == {P0: 1}
    clock.advance(1999)
    assert worker.take() is None
    clock.advance(1)
    assert worker.take() is failed
    assert failed.attempts == 2
    worker.give_back(failed, delay=500)
    assert worker.take(timeout=0.4) is None
    assert worker.take(timeout=None) is failed, "waiting moves a manual clock"
    worker.give_back(failed, delay=500)
    assert worker.revoke([P0]) == {P0: 1}
    worker.assign([P0])
    clock.advance(500)
    assert worker.take() is None
    for delay in (-1, 1.5, "1s"):
        with pytest.raises(ConfigurationError, match="delay="):
            worker.give_back(failed, delay=delay)  # type: ignore[arg-type]


def test_a_delay_by_the_system_s_clock_wakes_who_waits() -> None:
    worker = RecordWorker("none")
    worker.assign([P0])
    worker.put([Attributes("orders", 0, 1)])
    work = worker.take()
    assert work is not None
    worker.give_back(work, delay=30)
    assert worker.take() is None
    assert worker.take(timeout=10) is work


def test_a_delay_does_not_keep_a_worker_that_is_dropped() -> None:
    worker: RecordWorker | None = RecordWorker()
    assert worker is not None
    worker.assign([P0])
    record = Attributes("orders", 0, 1)
    kept = weakref.ref(record)
    worker.put([record])
    work = worker.take()
    assert work is not None
    worker.give_back(work, delay=3_600_000)
    del worker, record, work
    gc.collect()
    assert kept() is None


def test_tasks_wait_for_records_beside_each_other() -> None:
    async def run() -> list[int]:
        worker = RecordWorker()
        worker.assign([P0])
        done: list[int] = []

        async def work() -> None:
            while (taken := await worker.take_async(0.5)) is not None:
                await asyncio.sleep(0)
                done.append(taken.queue_offset)
                worker.complete(taken)
                if taken.queue_offset == 99:
                    return

        tasks = [asyncio.create_task(work()) for _ in range(3)]
        await asyncio.sleep(0)
        gone = asyncio.create_task(worker.take_async())
        await asyncio.sleep(0)
        for start in range(0, 100, 20):
            worker.put(Attributes("orders", 0, offset, b"%d" % (offset % 7)) for offset in range(start, start + 20))
            await asyncio.sleep(0)
            if start == 0:
                gone.cancel()
        await asyncio.gather(*tasks)
        assert worker.commits() == {P0: 100}
        return done

    done = asyncio.run(run())
    for key in range(7):
        of_key = [offset for offset in done if offset % 7 == key]
        assert of_key == sorted(of_key)


def test_a_task_that_is_cancelled_has_taken_nothing_and_wakes_another() -> None:
    async def run() -> None:
        worker = RecordWorker("none")
        worker.assign([P0])
        first, second = (asyncio.create_task(worker.take_async()) for _ in range(2))
        await asyncio.sleep(0)
        worker.put([Attributes("orders", 0, 7)])
        first.cancel()  # after it was woken
        taken = await asyncio.wait_for(second, 5)
        assert taken is not None
        assert taken.queue_offset == 7
        with pytest.raises(asyncio.CancelledError):
            await first
        assert await worker.take_async(0) is None
        with pytest.raises(ConfigurationError, match=r"^timeout='x'"):
            await worker.take_async("x")  # type: ignore[arg-type]

    asyncio.run(run())


class Machine(RuleBasedStateMachine):
    """Any order of calls against sets and lists that anybody can follow."""

    order = WorkOrder.BY_KEY

    def __init__(self) -> None:
        super().__init__()
        self.table = WorkTable(self.order, max_messages=5, max_span=20)
        self.following = dict.fromkeys("pq", 0)
        self.waiting: dict[str, list[tuple[int, str | None]]] = {}
        self.hand: list[Work] = []
        self.delayed: list[tuple[int, Work]] = []
        self.now = 0
        self.epoch: dict[str, int] = {}
        self.highest = dict.fromkeys("pq", -1)
        self.largest = dict.fromkeys("pq", -1)
        self.dropped = 0

    queues = st.sampled_from("pq")

    @rule(queue=queues)
    def assign(self, queue: str) -> None:
        if queue in self.epoch:
            with pytest.raises(IllegalStateError):
                self.table.assign(queue)
        else:
            self.epoch[queue] = self.table.assign(queue)
            self.waiting[queue] = []
            self.highest[queue] = self.largest[queue] = -1

    @precondition(lambda self: self.epoch)
    @rule(queue=queues)
    def revoke(self, queue: str) -> None:
        if queue in self.epoch:
            self.table.revoke(queue)
            del self.epoch[queue], self.waiting[queue]
            self.delayed = [entry for entry in self.delayed if entry[1].queue != queue]

    @rule(queue=queues, key=st.sampled_from(["a", "b", None]), gap=st.integers(1, 3))
    def put(self, queue: str, key: str | None, gap: int) -> None:
        if queue in self.epoch:
            self.following[queue] += gap
            assert self.table.put(queue, self.following[queue], key, None)
            self.largest[queue] = self.following[queue]
            self.waiting[queue].append((self.following[queue], key))

    @rule()
    def take(self) -> None:
        work = self.table.take()
        allowed = set()
        for queue, waiting in self.waiting.items():
            out = [*self.hand, *(work for _, work in self.delayed)]
            busy = [w for w in out if w.queue == queue and w.epoch == self.epoch[queue]]
            for place, (offset, key) in enumerate(waiting):
                if self.order == WorkOrder.BY_QUEUE:
                    free = place == 0 and not busy
                elif self.order == WorkOrder.BY_KEY and key is not None:
                    free = key not in {k for _, k in waiting[:place]} and key not in {w.key for w in busy}
                else:
                    free = True
                if free:
                    allowed.add((queue, offset))
        if work is None:
            assert not allowed
        else:
            assert (work.queue, work.queue_offset) in allowed
            self.waiting[work.queue].remove((work.queue_offset, work.key))
            self.hand.append(work)

    @precondition(lambda self: self.hand)
    @rule(place=st.integers(0, 99), fails=st.booleans(), delay=st.integers(-1, 5))
    def finish(self, place: int, fails: bool, delay: int) -> None:
        work = self.hand.pop(place % len(self.hand))
        valid = self.epoch.get(work.queue) == work.epoch
        due = -1 if delay < 0 else self.now + delay
        assert (self.table.give_back(work, due) if fails else self.table.complete(work)) == valid
        if not valid:
            self.dropped += 1
        elif fails and due >= 0:
            self.delayed.append((due, work))
        elif fails:
            self.wait_again(work)
        else:
            self.highest[work.queue] = max(self.highest[work.queue], work.queue_offset)

    def wait_again(self, work: Work) -> None:
        entries = [*self.waiting[work.queue], (work.queue_offset, work.key)]
        self.waiting[work.queue] = sorted(entries, key=lambda entry: entry[0])

    @rule(passed=st.integers(0, 4))
    def release(self, passed: int) -> None:
        self.now += passed
        for due, work in self.delayed:
            if due <= self.now:
                self.wait_again(work)
        self.delayed = [entry for entry in self.delayed if entry[0] > self.now]
        assert self.table.release(self.now) == min((due for due, _ in self.delayed), default=-1)

    @invariant()
    def agrees(self) -> None:
        self.table._check()
        assert self.table.dropped == self.dropped
        assert self.table.assigned() == self.epoch
        for queue in self.epoch:
            out = [*self.hand, *(work for _, work in self.delayed)]
            hand = [w.queue_offset for w in out if w.queue == queue and w.epoch == self.epoch[queue]]
            open_offsets = sorted([offset for offset, _ in self.waiting[queue]] + hand)
            assert self.table.unfinished(queue) == open_offsets
            full = {FlowControl.COUNT} if len(open_offsets) > 5 else set()
            if not full and open_offsets and self.largest[queue] - open_offsets[0] > 20:
                full = {FlowControl.SPAN}
            assert {self.table.full()[queue] for _ in range(queue in self.table.full())} == full
            safe = self.table.safe_offset(queue)
            assert all(safe <= offset for offset in open_offsets), "nothing unfinished lies below what is committed"
            if self.highest[queue] >= 0 and not open_offsets:
                assert safe > self.highest[queue]


class ByQueue(Machine):
    """The same, a queue's records one at a time."""

    order = WorkOrder.BY_QUEUE


class Unordered(Machine):
    """The same without any order."""

    order = WorkOrder.UNORDERED


for machine in (Machine, ByQueue, Unordered):
    machine.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestByKey = Machine.TestCase
TestByQueue = ByQueue.TestCase
TestUnordered = Unordered.TestCase
