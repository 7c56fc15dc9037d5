"""What a round costs, what the door accepts, why messages wait; a batch is the same as one message at a time."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pyengine
from pyengine._engine.activemq.queue.batches import MessageColumns, carried, enqueued, offer_runs
from pyengine.activemq import AckKind, HoldReason, Queue, Verdict
from pyengine.errors import IllegalStateError, InvalidMessageError, InvalidTopologyError


def tries_of_one_more(held: int, page: int | None, groups: str) -> int:
    """Messages a round looks at for one deliverable message, with ``held`` messages waiting that nobody can take."""
    queue = Queue(max_page_size=page, message_group_map_factory_type=groups)
    owner = queue.add_consumer(prefetch=1)
    queue.add_consumer(selector=pyengine.Selector("wanted"), prefetch=10)
    queue.add_consumer(selector=pyengine.Selector("other"), prefetch=10)
    for number in range(held):
        queue.send({"n": number}, group=f"g{number % 3}" if number % 2 else None)
        queue.run()
    assert queue.unacknowledged(owner)
    before = queue.statistics["tries"]
    queue.send({"wanted": True})
    (delivery,) = queue.run()
    assert delivery.body == {"wanted": True}
    queue._check()
    return queue.statistics["tries"] - before


@pytest.mark.parametrize("page", [5000, None])
@pytest.mark.parametrize("groups", ["simple", "cached", "cached?cacheSize=4", "bucket"])
def test_a_round_costs_what_it_delivers(page: int | None, groups: str) -> None:
    assert tries_of_one_more(20, page, groups) == tries_of_one_more(2000, page, groups) == 1


def test_what_opens_is_looked_at_again_and_nothing_else() -> None:
    queue = Queue(max_page_size=None)
    busy = queue.add_consumer(selector=pyengine.Selector("kind = 'a'"), prefetch=1)
    queue.add_consumer(selector=pyengine.Selector("kind = 'b'"), prefetch=1)
    for number in range(500):
        queue.send({"kind": "ab"[number % 2], "n": number})
    first = {delivery.consumer: delivery for delivery in queue.run()}
    before = queue.statistics["tries"]
    queue.acknowledge(busy, first[busy].message)
    assert [delivery.body["n"] for delivery in queue.run()] == [2]
    assert queue.statistics["tries"] - before == 1


def test_the_eldest_group_is_the_one_that_was_looked_up_first_in_the_last_round() -> None:
    queue = Queue(prioritized_messages=True, message_group_map_factory_type="cached?cacheSize=2")
    queue.add_consumer(prefetch=2)
    for group in ("h", "g"):
        queue.send({}, group=group)
    queue.run()
    queue.add_consumer(selector=pyengine.Selector("new IS NULL"), prefetch=1)
    queue.add_consumer(selector=pyengine.Selector("new"), prefetch=1)
    for group, priority in (("h", 9), ("g", 2), ("g", 8)):
        queue.send({}, group=group, priority=priority)
        queue.run()
    # The second consumer is asked about h, then about g, then has no credit left for the other message of g.
    queue.send({}, priority=5)
    assert [delivery.consumer for delivery in queue.run()] == [1]
    queue.send({"new": True}, group="k")
    assert [delivery.consumer for delivery in queue.run()] == [2]
    assert queue.group_owners == {"g": 0, "k": 2}


def test_a_consumer_that_joins_has_all_sorted_by_the_groups_they_own_without_rotation_too() -> None:
    queue = Queue(strict_order_dispatch=True)
    first, second = queue.add_consumer(prefetch=2), queue.add_consumer(prefetch=1)
    held = [queue.send({}, group=group) for group in ("a", "b", "c")]
    assert [delivery.consumer for delivery in queue.run()] == [first, first, second]
    third = queue.add_consumer(prefetch=1)
    for consumer, message in zip((first, first, second), held, strict=True):
        queue.acknowledge(consumer, message)
    for _ in range(3):
        queue.send({})
    assert [delivery.consumer for delivery in queue.run()] == [third, second, first]


def test_a_window_starves_and_no_window_does_not() -> None:
    for page, expected in ((5, []), (None, [9])):
        queue = Queue(max_page_size=page)
        queue.add_consumer(selector=pyengine.Selector("n = 9"))
        for number in range(10):
            queue.send({"n": number})
        delivered = [delivery.body["n"] for delivery in queue.run()]
        assert delivered == expected
        counts = queue.hold_counts()
        assert counts[HoldReason.SELECTOR] == (5 if page else 9)
        assert counts.get(HoldReason.NOT_PAGED_IN, 0) == (5 if page else 0)


def test_reasons_name_the_consumer_they_concern() -> None:
    queue = Queue()
    owner = queue.add_consumer(prefetch=1)
    other = queue.add_consumer(selector=pyengine.Selector("n > 1"), prefetch=10)
    queue.send({"n": 1}, group="a")
    second = queue.send({"n": 2}, group="a")
    third = queue.send({"n": 0})
    queue.run()
    assert queue.why(second) == (HoldReason.GROUP_NO_CREDIT, owner)
    assert queue.why_each(second) == {other: Verdict.OWNED_BY_OTHER, owner: Verdict.FULL}
    assert queue.why(third) == (HoldReason.NO_CREDIT, owner)
    boss = queue.add_consumer(exclusive=True, selector=pyengine.Selector("n = 7"))
    assert queue.why(third) == (HoldReason.EXCLUSIVE_SELECTOR, boss)
    assert queue.why(second)[0] == HoldReason.EXCLUSIVE_SELECTOR
    queue.pause()
    assert queue.why(third) == (HoldReason.PAUSED, None)
    sequences, reasons, consumers = queue.held()
    assert sequences.tolist() == [1, 2]
    assert reasons.tolist() == [HoldReason.PAUSED] * 2
    assert consumers.tolist() == [-1, -1]


def test_headers_are_read_from_messages_and_mappings() -> None:
    queue = Queue(prioritized_messages=True)
    for sent in (
        {"JMSXGroupID": "a", "JMSPriority": 2, "n": 0},
        pyengine.Message({"n": 1}, group_id="a", priority=9),
        {"n": np.int16(2), "JMSPriority": np.int64(5)},
    ):
        queue.send(sent)
    queue.add_consumer(selector=pyengine.Selector("n >= 0"))
    order = [delivery.body for delivery in queue.run()]
    assert [type(body) for body in order] == [pyengine.Message, dict, dict]
    assert queue.group_owners == {"a": 0}


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"group": 7}, "JMSXGroupID"),
        ({"priority": 10}, "JMSPriority"),
        ({"priority": True}, "JMSPriority"),
        ({"group_sequence": 2**31}, "JMSXGroupSeq"),
        ({"expiration": -1}, "JMSExpiration"),
    ],
)
def test_unusable_headers_are_refused_before_anything_happens(sent: dict[str, Any], field: str) -> None:
    queue = Queue()
    with pytest.raises(InvalidMessageError) as raised:
        queue.send({}, **sent)
    assert raised.value.field == field
    assert queue.statistics["size"] == 0
    queue._check()


def test_misuse_raises_where_it_happens() -> None:
    queue = Queue()
    consumer = queue.add_consumer()
    handle = queue.send({})
    with pytest.raises(IllegalStateError):
        queue.acknowledge(consumer, handle)
    queue.run()
    queue.acknowledge(consumer, handle)
    with pytest.raises(IllegalStateError):
        queue.acknowledge(consumer, handle)
    queue.close(consumer)
    with pytest.raises(IllegalStateError):
        queue.close(consumer)
    with pytest.raises(InvalidTopologyError):
        queue.add_consumer(priority=200)
    with pytest.raises(TypeError, match=r"give pyengine.Selector\('a = 1'\)"):
        queue.add_consumer(selector="a = 1")
    queue._check()
    with pytest.raises(InvalidTopologyError):
        Queue(max_page_size=0)


def test_a_selector_that_cannot_be_evaluated_does_not_match_and_is_counted() -> None:
    queue = Queue()
    queue.add_consumer(selector=pyengine.Selector("a * 2 > 0"))
    queue.send({"a": "text"})
    assert queue.run() == []
    assert queue.statistics["selector_errors"] == 1


def test_a_selector_that_joins_late_cannot_ask_messages_without_objects() -> None:
    queue = Queue()
    queue.offer_batch(3)
    with pytest.raises(IllegalStateError):
        queue.add_consumer(selector=pyengine.Selector("a = 1"))
    queue._check()


@st.composite
def batches(draw: st.DrawFn) -> dict[str, Any]:
    size = draw(st.integers(0, 40))
    rows = st.lists(st.integers(-1, 4), min_size=size, max_size=size)
    numbers = np.array(draw(rows), np.int32)
    return {
        "size": size,
        "groups": np.array(draw(rows), np.int32),
        "group_sequences": np.sign(numbers) * (numbers % 2),  # -1 ends a group, 1 begins it
        "priorities": np.array(draw(rows), np.int32) + 1,
        "bits": np.array(draw(rows), np.int64) + 1,
    }


@settings(max_examples=150, deadline=None)
@given(
    batch=st.lists(batches(), min_size=1, max_size=3),
    page=st.sampled_from([2, 200, None]),
    acknowledge=st.sampled_from(["at_once", "never", [0], [0, 2]]),
    groups=st.sampled_from(["cached?cacheSize=2", "cached", "simple", "bucket?bucketCount=2"]),
    prioritized=st.booleans(),
    picky=st.booleans(),
)
def test_a_batch_is_the_same_as_one_message_at_a_time(
    batch: list[dict[str, Any]], page: int | None, acknowledge: Any, groups: str, prioritized: bool, picky: bool
) -> None:
    def new() -> tuple[Queue, list[int]]:
        queue = Queue(max_page_size=page, message_group_map_factory_type=groups, prioritized_messages=prioritized)
        consumers = [
            queue.add_consumer(selector=BIG if picky else None, prefetch=2),
            queue.add_consumer(selector=ODD, prefetch=3),
            queue.add_consumer(selector=BIG, priority=1, prefetch=1),
        ]
        queue.run()
        return queue, consumers

    many, consumers = new()
    single, _ = new()
    prompt = {"at_once": consumers, "never": []}[acknowledge] if isinstance(acknowledge, str) else acknowledge
    names = ["a", "b", "c", "Aa", "BB"]
    handles = many.intern_groups(names)
    sent = 0
    for rows in batch:
        matches = (rows["bits"] % 2 << many.predicate_of(consumers[1])) | (
            (rows["bits"] > 2).astype(np.int64) << many.predicate_of(consumers[2])
        )
        got, sequences, order = many.offer_batch(
            rows["size"],
            groups=np.where(rows["groups"] < 0, -1, handles[rows["groups"]]),
            group_sequences=rows["group_sequences"],
            priorities=rows["priorities"],
            persistent=rows["bits"] % 3,
            matches=matches.astype(np.uint64),
            acknowledge=acknowledge,
        )
        many._check()
        log: list[tuple[int, int]] = []
        for row in range(rows["size"]):
            single.send(
                {"bits": int(rows["bits"][row]), "sequence": sent + row},
                group=None if rows["groups"][row] < 0 else names[rows["groups"][row]],
                group_sequence=int(rows["group_sequences"][row]),
                priority=int(rows["priorities"][row]),
                persistent=bool(rows["bits"][row] % 3),
            )
            rounds = -1
            while rounds != single.statistics["rounds"]:
                rounds = single.statistics["rounds"]
                for delivery in single.run(limit=1):
                    log.append((delivery.body["sequence"], delivery.consumer))
                    if delivery.consumer in prompt:
                        assert delivery.message is not None
                        single.acknowledge(delivery.consumer, delivery.message, kind=AckKind.INDIVIDUAL)
        first = {sequence: consumer for sequence, consumer in log if sequence >= sent}
        assert list(zip(sequences.tolist(), order.tolist(), strict=True)) == log
        assert got.tolist() == [first.get(sent + row, -1) for row in range(rows["size"])]
        assert many.statistics == single.statistics
        assert many.consumer_order == single.consumer_order
        assert many.group_owners == single.group_owners
        for each in consumers:
            assert many.counters_of(each) == single.counters_of(each)
        assert [part.tolist() for part in many.held()] == [part.tolist() for part in single.held()]
        sent += rows["size"]


def ODD(message: dict[str, int]) -> bool:  # noqa: N802
    return message["bits"] % 2 == 1


def BIG(message: dict[str, int]) -> bool:  # noqa: N802
    return message["bits"] > 2


@settings(max_examples=60, deadline=None)
@given(
    parts=st.lists(batches(), min_size=1, max_size=4),
    page=st.sampled_from([2, 2, 200, None]),
    prefetch=st.sampled_from([1, 3, 100]),
    exclusive=st.booleans(),
    prompt=st.sampled_from([None, set(), {0}, {0, 1}]),
    groups=st.sampled_from(["cached?cacheSize=2", "simple", "bucket?bucketCount=2"]),
    options=st.sets(st.sampled_from(["prioritized_messages", "lazy_dispatch", "strict_order_dispatch"])),
    delay=st.sampled_from([0, 0, 3]),
    lonely=st.sampled_from([False, False, False, True]),
)
def test_steady_batches_tell_what_a_queue_tells_in_the_end(
    parts: list[dict[str, Any]],
    page: int | None,
    prefetch: int,
    exclusive: bool,
    prompt: set[int] | None,
    groups: str,
    options: set[str],
    delay: int,
    lonely: bool,
) -> None:
    def new() -> Queue:
        queue = Queue(
            max_page_size=page,
            message_group_map_factory_type=groups,
            time_before_dispatch_starts=delay,
            **dict.fromkeys(options, True),  # type: ignore[arg-type]
        )
        for selector in () if lonely else (None, ODD, BIG):
            queue.add_consumer(
                selector=selector,
                prefetch=prefetch,
                exclusive=exclusive and selector is ODD,
                priority=int(selector is BIG),
            )
        return queue

    columns: dict[str, Any] = {
        field: np.concatenate([part[field] for part in parts]) for field in parts[0] if field != "size"
    }
    size = len(columns["bits"])
    assume(size > 0)
    bits = columns.pop("bits")
    columns["matches"] = (1 | (bits % 2) << 1 | (bits > 2).astype(np.int64) << 2).astype(np.uint64)
    columns["arrivals"] = np.arange(size)
    columns["expirations"] = np.where(columns["priorities"] == 2, np.arange(size) + bits - 2, 0)
    names: list[str | None] = ["a", "b", "c", "Aa", "BB"]

    def told(queue: Queue, cuts: list[int], steady: bool) -> list[tuple[int, ...]]:
        found: list[tuple[int, ...]] = []
        for start, stop in itertools.pairwise(cuts):
            _, rows, *rest = offer_runs(
                [queue],
                [0, stop - start],
                [int(stop == size)],
                [prompt],
                MessageColumns(
                    stop - start,
                    group_names=names,
                    **{field: values[start:stop] for field, values in columns.items()},
                ),
                steady=steady,
            )
            found += zip((rows + start).tolist(), *(array.tolist() for array in rest), strict=True)
        return found

    expected = told(new(), [0, size], False)
    assert sorted({line[0] for line in expected}) == list(range(size))
    cuts = [0, *np.cumsum([part["size"] for part in parts]).tolist()[:-1], size]
    cuts = [*sorted(cut for cut in cuts if cut < size), size]
    queue = new()
    for _ in range(2):
        found = told(queue, cuts, True)
        assert [line for line in found if line[3] == -1] == [line for line in expected if line[3] == -1]
        late = set(range(size)) - {line[0] for line in found}  # expired in a later batch: the caller's to know
        assert sorted([*found, *((row, -1, -1, -2) for row in late)]) == sorted(expected)
        queue._check()
        assert everything_of(queue) == everything_of(new())


def everything_of(queue: Queue) -> tuple[Any, ...]:
    return (
        queue.statistics,
        queue.consumer_order,
        queue.exclusive_consumer,
        queue.wakeups,
        queue.starts_at,
        queue.group_owners,
        [(queue.counters_of(each), queue.assigned_groups(each)) for each in queue.consumer_order],
        queue.handles(),
        queue.take_removed(),
        queue.take_slow(),
    )


def test_a_queue_at_rest_keeps_nothing_however_much_comes() -> None:
    queue = Queue(max_page_size=5)
    queue.add_consumer(prefetch=2)
    for number in range(30):
        given = MessageColumns(100, expirations=np.full(100, number % 2), arrivals=np.full(100, 0))
        _, rows, _, _, reasons = offer_runs([queue], [0, 100], [0], [set()], given, steady=True)
        assert len(rows) == 100
        assert number == 0 or set(reasons.tolist()) == {HoldReason.NOT_PAGED_IN}
    assert queue.statistics["size"] == 7  # two in flight, five in the window


def test_acknowledging_deliveries_at_once_is_acknowledging_each() -> None:
    queues = [Queue(), Queue()]
    for queue in queues:
        for selector in (None, pyengine.Selector("n < 5")):
            queue.add_consumer(selector=selector, prefetch=4)
        for n in range(20):
            queue.send({"n": n, "JMSXGroupID": f"g{n % 3}" if n % 2 else None})
    one, many = queues
    for _ in range(4):
        deliveries = one.run()
        for delivery in deliveries:
            one.acknowledge(delivery.consumer, delivery.message)
        found = many.run()
        many.acknowledge_each(found)
        assert [(each.consumer, each.message) for each in found] == [(e.consumer, e.message) for e in deliveries]
        assert one.statistics == many.statistics
        many._check()
    last = many.send({"n": 20})
    twice = many.run() * 2
    with pytest.raises(IllegalStateError):
        many.acknowledge_each(twice)
    assert last not in many.handles()


def test_a_name_that_cannot_be_hashed_is_refused_before_there_is_a_message() -> None:
    queue = Queue()
    for wrong in ({"target": []}, {"connection": {}}):
        with pytest.raises(TypeError, match="unhashable"):
            queue.send("x", **wrong)
    assert queue.handles() == []
    assert queue.send("x") == Queue().send("x")


def test_a_message_that_a_selector_cannot_read_leaves_nothing_behind() -> None:
    queue = Queue()
    queue.add_consumer(selector=pyengine.Selector("price > 1"))
    before = queue.statistics
    for _ in range(100):
        with pytest.raises(InvalidMessageError):
            queue.send({"price": object()}, group="g")
        queue._check()
    assert queue.statistics == before
    queue.add_consumer(selector=pyengine.Selector("price > 2"))
    assert queue.purge() == 0
    queue._check()


def test_a_name_that_is_taken_leaves_no_consumer_behind() -> None:
    queue = Queue()
    queue.add_consumer(name="one")
    with pytest.raises(InvalidTopologyError):
        queue.add_consumer(name="one", selector=pyengine.Selector("a = 1"))
    queue._check()
    queue.add_consumer(name="two")
    queue._check()


CALLS = {
    "add_consumer": lambda queue: queue.add_consumer(selector=pyengine.Selector("b = 2")),
    "close": lambda queue: queue.close(0),
    "renew": lambda queue: queue.renew(),
    "send": lambda queue: [queue.send({"a": 1}) for _ in range(100)],
    "run": lambda queue: queue.run(),
    "acknowledge": lambda queue: queue.acknowledge(0, queue.unacknowledged(0)[0]),
    "commit": lambda queue: queue.commit("t"),
    "rollback": lambda queue: queue.rollback("t"),
    "pull": lambda queue: queue.pull(0),
    "pull_timeout": lambda queue: queue.pull_timeout(0),
    "share_credit": lambda queue: queue.share_credit(0, 1, 1),
    "pause": lambda queue: queue.pause(),
    "resume": lambda queue: queue.resume(),
    "remove_message": lambda queue: queue.remove_message(0),
    "purge": lambda queue: queue.purge(),
    "expire": lambda queue: queue.expire(1),
    "expire_stored": lambda queue: queue.expire_stored(1),
    "remove_group": lambda queue: queue.remove_group("g"),
    "remove_all_groups": lambda queue: queue.remove_all_groups(),
    "offer_batch": lambda queue: queue.offer_batch(3, matches=np.ones(3, np.uint64)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_selector_cannot_call_the_queue_that_is_asking_it(name: str) -> None:
    queue = Queue(selector_errors="exact")
    queue.add_consumer(prefetch=2)
    queue.send({"a": 0}, group="g")
    queue.run()
    queue.send({"a": 1}, group="g")
    refused = []

    def call(message: Any) -> bool:
        with pytest.raises(IllegalStateError, match="a selector cannot call the queue"):
            CALLS[name](queue)
        refused.append(message)
        return True

    queue.add_consumer(selector=call, prefetch=0)
    assert len(refused) == 2
    queue.send({"a": 2})
    assert len(refused) == 3
    queue._check()
    CALLS["send"](queue)
    queue.run()
    queue._check()


class Sending:
    """A name that sends messages while it is looked up."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue

    def __hash__(self) -> int:
        for _ in range(200):
            self.queue.send({"a": 1})
        return 7


def test_a_name_may_call_the_queue_that_looks_it_up() -> None:
    queue = Queue()
    queue.add_consumer(prefetch=5)
    name = Sending(queue)
    queue.send({"a": 1}, connection=name, target=name)
    queue.add_consumer(name=name, connection=name)
    for delivery in queue.run():
        queue.acknowledge(delivery.consumer, delivery.message, transaction=name)
    queue.commit(name)
    queue._check()


def test_a_body_may_call_the_queue_that_drops_it() -> None:
    queue = Queue()
    consumer = queue.add_consumer()

    class Body(dict[str, int]):
        def __del__(self) -> None:
            for _ in range(200):
                queue.send({"a": 1})

    for number in range(3):
        queue.send(Body(a=number))
    queue.run()
    queue.purge()
    queue.close(consumer)
    queue._check()


def test_runs_that_are_no_runs_are_refused() -> None:
    queue = Queue()
    queue.add_consumer()
    bounds = np.array([0, 1 << 20, 3], np.uint64)
    with pytest.raises(InvalidMessageError, match="ascend"):
        offer_runs([queue, queue], bounds, np.zeros(2, np.uint8), [None, None], MessageColumns(3))
    with pytest.raises(InvalidMessageError, match="number of messages"):
        offer_runs([queue], [0, 3], np.zeros(1, np.uint8), [None], MessageColumns(2))
    with pytest.raises(TypeError):
        offer_runs([None], np.array([0, 3]), np.zeros(1, np.uint8), [None], MessageColumns(3))
    for what in (carried, enqueued):
        with pytest.raises(TypeError):
            what([None])
