"""Queues carried from batch to batch as bytes answer as queues that were never cut."""

from __future__ import annotations

import zlib
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyengine.activemq import Queue
from pyengine.activemq.broker.queues import queue_settings
from pyengine.activemq.tables import stream_state as carry
from pyengine.activemq.tables.assignments import ASSIGNMENT_SCHEMA, DESTINATION
from pyengine.activemq.tables.dispatch import columns_read, dispatch_table
from pyengine.activemq.tables.shapes import member_of
from pyengine.activemq.tables.stream_state import Carry
from pyengine.backlog.tables.messages import to_messages
from pyengine.errors import SnapshotError
from pyengine.topology import Consumer, Policy, Source, Topology
from pyengine.topology.policy import ConstantPendingMessageLimitStrategy, UniquePropertyMessageEvictionStrategy
from tests.spark.test_dispatch import SCHEMA, by_row, consumers, policies, rows, topology_of

SHARDS = 3


CHANGING = [
    "JMSRedelivered", "JMSRedelivered = FALSE", "JMSXDeliveryCount = 2", "JMSXDeliveryCount > 2 OR n > 3",
    "JMSXGroupFirstForConsumer", "NOT JMSXGroupFirstForConsumer AND color IS NOT NULL", "JMSXDeliveryCount + n > 4",
]  # fmt: skip


def messages_of(topology: Topology, rows: list[dict[str, Any]], counts: bool = False) -> pa.Table:
    """Messages in the order in which they are sent, with the columns that dispatching reads; no time in a row is 0."""
    table = pa.Table.from_pylist([{"at": 0, **row} for row in rows], SCHEMA)
    made, rejects = to_messages(table, range(len(rows)), topology.source)
    assert not rejects
    modes = pa.array(["NON_PERSISTENT" if n % 3 == 1 else None if n % 3 else "PERSISTENT" for n in range(len(rows))])
    made = made.append_column("JMSDeliveryMode", modes)
    if counts:  # some were delivered before they were written down
        made = made.append_column("JMSXDeliveryCount", pa.array([n % 4 or None for n in range(len(rows))], pa.int32()))
        made = made.append_column("JMSRedelivered", pa.array([(n % 5 == 0) or None for n in range(len(rows))]))
    made = made.select(columns_read(topology, made.column_names))
    return made.sort_by([("JMSTimestamp", "ascending"), ("__row", "ascending")]).combine_chunks()


def shard_of(name: str) -> int:
    return zlib.crc32(name.encode()) % SHARDS


class Stream:
    """Batches and events through shards that are bytes in between."""

    def __init__(self, topology: Topology, columns: pa.Schema, late: frozenset[str] = frozenset()) -> None:
        self.made = lambda: Carry(topology, columns, late)
        self.bytes: dict[int, bytes | None] = dict.fromkeys(range(SHARDS))
        self.told: list[pa.Table] = []

    def opened(self) -> Carry:
        carry = self.made()
        for shard, data in self.bytes.items():
            carry.load(shard, data)
        return carry

    def closed(self, carry: Carry) -> None:
        self.told.append(carry.take())
        self.bytes = {shard: carry.save(shard) for shard in self.bytes}

    def feed(self, table: pa.Table) -> None:
        carry = self.opened()
        for batch in table.combine_chunks().to_batches():
            carry.feed(batch, np.array([shard_of(name) for name in batch.column(DESTINATION).to_pylist()]))
        self.closed(carry)

    def event(self, verb: str, name: str, now: int) -> str:
        carry = self.opened()
        problem = carry.event(verb, name, now)
        self.closed(carry)
        return problem

    def everything(self) -> pa.Table:
        return pa.concat_tables([*self.told, self.opened().held(range(SHARDS))])


@settings(max_examples=60, deadline=None)
@given(consumers=consumers, policy=policies, rows=rows, size=st.integers(1, 9))
def test_cuts_do_not_show(consumers: list[Consumer], policy: Policy, rows: list[dict[str, Any]], size: int) -> None:
    topology = topology_of(consumers, policy)
    messages = messages_of(topology, rows)
    stream = Stream(topology, messages.schema)
    for start in range(0, len(rows), size):
        stream.feed(messages.slice(start, size))
    found = by_row(stream.everything().select(ASSIGNMENT_SCHEMA.names))
    assert found.equals(by_row(dispatch_table(topology, messages)).cast(found.schema))


def one_by_one(
    topology: Topology, messages: pa.Table, late: frozenset[str], events: list[tuple[int, str, str]]
) -> dict[str, list[tuple[Any, ...]]]:
    """(row, consumer, attempt) in order of delivery by queue: each message sent alone to a queue that is never cut."""
    there = [place for place, consumer in enumerate(topology.consumers) if consumer.name not in late]
    queues: dict[str, Any] = {}
    told: dict[str, list[tuple[Any, ...]]] = {}

    def settle(name: str, given: list[Any], now: int) -> None:
        core, members, rows = queues[name]
        idle = 0
        while idle < 3:  # a round that paged in asks for another without a wakeup that is seen
            for each in given:
                attempts = rows.setdefault(each.body["row"], 0) + 1
                rows[each.body["row"]] = attempts
                consumer = topology.consumers[members[each.consumer]]
                told[name].append((each.body["row"], consumer.name, attempts))
                if consumer.acknowledges:
                    core.acknowledge(each.consumer, each.message)
            given = core.run(now, limit=1)
            idle = 0 if given or core.wakeups else idle + 1

    def join(name: str, place: int) -> None:
        core, members, _ = queues[name]
        number = 1 + max(members, default=-1)
        settings = member_of(topology, place, number)
        members[core.add_consumer(**settings)] = place

    plain = messages.to_pylist()
    for number in range(len(plain) + 1):
        for _, verb, consumer_name in [event for event in events if event[0] == number]:
            place = next(at for at, consumer in enumerate(topology.consumers) if consumer.name == consumer_name)
            if (place in there) == (verb == "join"):
                continue
            (there.append if verb == "join" else there.remove)(place)
            for name, (core, members, _) in queues.items():
                if place not in topology.positions_of(name):
                    continue
                given = []
                if verb == "join":
                    join(name, place)
                else:
                    id = next(id for id, at in members.items() if at == place)
                    given = core.close(id, lost=verb == "lose", now=7)
                    del members[id]
                settle(name, given, 7)
        if number == len(plain):
            break
        row = plain[number]
        name = row[DESTINATION]
        if name not in queues:
            queues[name] = (Queue(**queue_settings(topology.policy_of(name))), {}, {})
            told[name] = []
            for place in there:
                if place in topology.positions_of(name):
                    join(name, place)
        core = queues[name][0]
        body = {key: value for key, value in row.items() if value is not None and not key.startswith("__")}
        core.send(
            {**body, "row": row["__row"]},
            connection=row["__connection"],
            group=row["JMSXGroupID"],
            group_sequence=row["JMSXGroupSeq"],
            priority=row["JMSPriority"],
            persistent=row["JMSDeliveryMode"] != "NON_PERSISTENT",
        )
        settle(name, [], row["JMSTimestamp"])
    return told


@settings(max_examples=60, deadline=None)
@given(
    consumers=consumers.filter(bool),
    policy=policies,
    rows=rows,
    size=st.integers(1, 9),
    wishes=st.lists(
        st.tuples(st.integers(0, 40), st.sampled_from(["join", "leave", "lose"]), st.integers(0, 4)), max_size=6
    ),
    absent=st.sets(st.integers(0, 4)),
)
def test_consumers_come_and_go_as_between_messages_sent_one_by_one(
    consumers: list[Consumer],
    policy: Policy,
    rows: list[dict[str, Any]],
    size: int,
    wishes: list[tuple[int, str, int]],
    absent: set[int],
) -> None:
    topology = topology_of(consumers, policy)
    late = frozenset(consumers[place].name for place in absent if place < len(consumers))
    messages = messages_of(topology, rows)
    wanted = [(min(at, len(rows)), verb, consumers[place % len(consumers)].name) for at, verb, place in wishes]
    assert_as_one_by_one(topology, messages, late, wanted, size)


@settings(max_examples=60, deadline=None)
@given(
    consumers=st.lists(
        st.builds(
            Consumer,
            name=st.uuids().map(str),
            destination=st.just("q.>"),
            selector=st.sampled_from(["", *CHANGING]),
            prefetch=st.sampled_from([1, 2, 5]),
            no_local=st.booleans(),
            connection=st.sampled_from(["c1", "c2"]),
            acknowledges=st.integers(0, 3).map(lambda drawn: drawn == 0),
        ),
        min_size=2,
        max_size=5,
    ),
    rows=rows.filter(lambda drawn: len(drawn) > 2).map(lambda drawn: [{**row, "queue": "q.a"} for row in drawn]),
    size=st.integers(1, 9),
    wishes=st.lists(st.tuples(st.integers(1, 20), st.integers(0, 7)), min_size=2, max_size=8),
    first=st.integers(1, 4),
    counts=st.booleans(),
)
def test_selectors_see_a_message_that_came_back_as_it_is_now(
    consumers: list[Consumer],
    rows: list[dict[str, Any]],
    size: int,
    wishes: list[tuple[int, int]],
    first: int,
    counts: bool,
) -> None:
    """The queue beside is asked with objects; these are rows of tables, and bytes in between."""
    consumers = [replace(consumers[0], selector="", acknowledges=False), *consumers[1:]]
    topology = topology_of(consumers, Policy("q.>"))
    late = {consumer.name for consumer in consumers[first:]}
    messages = messages_of(topology, rows, counts)
    away, events = set(late), []
    for at, drawn in sorted(wishes):  # consumers join that are away, and leave or are lost that are there
        name = consumers[drawn % len(consumers)].name
        events.append((min(at, len(rows)), "join" if name in away else "lose" if drawn % 3 else "leave", name))
        away ^= {name}
    assert_as_one_by_one(topology, messages, frozenset(late), events, size)


def assert_as_one_by_one(
    topology: Topology, messages: pa.Table, late: frozenset[str], wanted: list[tuple[int, str, str]], size: int
) -> None:
    events = sorted(wanted, key=lambda event: event[0])
    expected = one_by_one(topology, messages, late, events)
    stream = Stream(topology, messages.schema, late)
    cuts = sorted({0, messages.num_rows, *range(0, messages.num_rows, size), *(at for at, _, _ in events)})
    for start, stop in zip(cuts, [*cuts[1:], messages.num_rows], strict=True):
        for _, verb, name in [event for event in events if event[0] == start]:
            stream.event(verb, name, 7)
        stream.feed(messages.slice(start, stop - start))
    found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in expected}
    for line in pa.concat_tables(stream.told).to_pylist():
        if line["reason"] is None:
            here = found[line["destination"]]
            assert line["delivery"] == len(here)
            here.append((line["row"], line["consumer"], line["attempt"]))
    assert found == expected


def test_another_topology_another_shard_and_damage_are_refused() -> None:
    topology = topology_of([Consumer("a", "q.>", prefetch=1, acknowledges=False)], Policy("q.>"))
    messages = messages_of(topology, [{"queue": "q.a", "n": n} for n in range(3)])
    stream = Stream(topology, messages.schema)
    stream.feed(messages)
    shard = shard_of("q.a")
    data = stream.bytes[shard]
    assert data is not None
    with pytest.raises(SnapshotError, match="another topology"):
        Carry(topology_of([Consumer("b", "q.>")], Policy("q.>")), messages.schema).load(shard, data)
    with pytest.raises(SnapshotError, match=f"shard {shard}"):
        stream.made().load(shard + 1, data)
    for position in range(0, len(data), 97):
        broken = bytearray(data)
        broken[position] ^= 4
        with pytest.raises(SnapshotError):
            stream.made().load(shard, bytes(broken))
        with pytest.raises(SnapshotError):
            stream.made().load(shard, data[:position])


def test_groups_that_ended_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each queue remembers two groups, and a thousand come by; one queue is idle meanwhile and keeps its own."""
    monkeypatch.setattr(carry, "_WASTE", 20)
    monkeypatch.setattr(f"{__name__}.SHARDS", 1)
    topology = topology_of(
        [Consumer("a", "q.>"), Consumer("b", "q.>")], Policy("q.>", message_group_map_factory_type="cached?cacheSize=2")
    )
    lines = [{"queue": "q.idle", "who": "kept"}, *({"queue": "q.busy", "who": f"g{n}"} for n in range(200))]
    lines += [{"queue": "q.idle", "who": "kept"}]
    messages = messages_of(topology, lines)
    stream = Stream(topology, messages.schema)
    sizes = []
    for start in range(0, len(lines), 10):
        stream.feed(messages.slice(start, 10))
        data = stream.bytes[0]
        assert data is not None
        sizes.append(len(data))
    assert max(sizes) < sizes[0] + 1_000
    found = by_row(stream.everything().select(ASSIGNMENT_SCHEMA.names))
    assert found.equals(by_row(dispatch_table(topology, messages)).cast(found.schema))


def test_an_event_that_makes_no_sense_is_told_and_changes_nothing() -> None:
    topology = topology_of([Consumer("a", "q.>")], Policy("q.>"))
    messages = messages_of(topology, [{"queue": "q.a"}])
    stream = Stream(topology, messages.schema)
    assert "it is there" in stream.event("join", "a", 0)
    assert stream.event("leave", "a", 0) == ""
    assert "not there" in stream.event("lose", "a", 0)
    assert "an event is one of" in stream.event("join", "nobody", 0)
    stream.feed(messages)
    assert stream.everything().column("reason").to_pylist() == ["no_consumer"]


def test_decimals_wait_for_a_late_consumer_as_the_exact_numbers_they_are() -> None:
    """0.10 is 0.1, and a number beyond the doubles is not its neighbour; also after the state was bytes."""
    topology = Topology(
        Source("q", path="x"), (Consumer("a", "q", "price = 9007199254740993"), Consumer("late", "q", "price = 0.1"))
    )
    prices = ["0.10", "9007199254740993", "9007199254740992", None, "0.11"]
    rows = pa.table({"price": pa.array([None if each is None else Decimal(each) for each in prices],
                                       pa.decimal128(20, 2))})  # fmt: skip
    made, rejects = to_messages(rows, range(len(prices)), topology.source)
    assert not rejects
    made = made.select(columns_read(topology, made.column_names)).combine_chunks()
    stream = Stream(topology, made.schema, frozenset({"late"}))
    carry = stream.opened()
    carry.feed(made.to_batches()[0], np.full(len(prices), shard_of("q")))
    stream.closed(carry)
    carry = stream.opened()
    assert not carry.event("join", "late", 0)
    stream.closed(carry)
    given = {line["row"]: line["consumer"] for table in stream.told for line in table.to_pylist()}
    assert given == {0: "late", 1: "a"}
    found = dispatch_table(topology, made)
    assert found.column("consumer").to_pylist() == ["late", "a", None, None, None]


def test_an_eviction_property_may_be_a_decimal() -> None:
    policy = Policy(
        "topic://t",
        message_eviction_strategy=UniquePropertyMessageEvictionStrategy(property_name="price"),
        pending_message_limit_strategy=ConstantPendingMessageLimitStrategy(limit=2),
    )
    topology = Topology(
        Source("topic://t", path="x"), (Consumer("a", "topic://t", prefetch=1, acknowledges=False),), (policy,)
    )
    rows = pa.table({"price": pa.array([Decimal(each) for each in ("1", "0.1", "0.1", "2", "0.1")])})
    made, _ = to_messages(rows, range(5), topology.source)
    doubles, _ = to_messages(pa.table({"price": [1.0, 0.1, 0.1, 2.0, 0.1]}), range(5), topology.source)
    reasons = [dispatch_table(topology, each).sort_by("row").column("reason").to_pylist() for each in (made, doubles)]
    assert reasons[0] == reasons[1]
    assert "discarded" in reasons[0]


# Another topology


def migrated(stream: Stream, former: Carry, now: Carry) -> Stream:
    """A stream that goes on under another topology."""
    former.migrate(now)
    after = Stream(now.topology, now.columns, now._late)
    after.told = [*stream.told, now.take()]
    after.bytes = {shard: now.save(shard) for shard in stream.bytes}
    return after


@settings(max_examples=60, deadline=None)
@given(consumers=consumers, others=consumers, policy=policies, rows=rows, cut=st.integers(0, 40), data=st.data())
def test_a_changed_topology_is_consumers_that_leave_and_join(
    consumers: list[Consumer], others: list[Consumer], policy: Policy, rows: list[dict[str, Any]], cut: int, data: Any
) -> None:
    """As if all consumers of before and behind had been in one topology, each there in its time."""
    changed = [replace(data.draw(st.sampled_from(others)), name=each.name) for each in consumers if others]
    after = [
        data.draw(st.sampled_from([each, *changed[place : place + 1], None])) for place, each in enumerate(consumers)
    ]
    kept = [each for each in after if each is not None]
    behind = data.draw(st.permutations([*kept, *others[: data.draw(st.integers(0, 2))]]))
    stays = [each.name for each in behind if each in consumers]
    renamed = [each if each.name in stays else replace(each, name=f"new {each.name}") for each in behind]
    both = topology_of([*consumers, *(each for each in renamed if each.name not in stays)], policy)
    was, will = topology_of(consumers, policy), topology_of(list(behind), policy)
    messages = messages_of(both, rows)
    stream = Stream(was, messages.schema)
    expected = Stream(both, messages.schema, frozenset(each.name for each in renamed if each.name not in stays))
    for each in (stream, expected):
        each.feed(messages.slice(0, cut))
    assert stream.opened().lost_in(Carry(will, messages.schema)) == []
    stream = migrated(stream, stream.opened(), Carry(will, messages.schema))
    for each in consumers:
        if each.name not in stays:
            assert expected.event("leave", each.name, 0) == ""
    for each in renamed:
        if each.name not in stays:
            assert expected.event("join", each.name, 0) == ""
    for each in (stream, expected):
        each.feed(messages.slice(cut))

    def lines(found: Stream) -> list[dict[str, Any]]:
        told = found.everything().to_pylist()
        for line in told:
            for name in ("consumer", "blocked_by"):
                line[name] = line[name] and line[name].removeprefix("new ")
        return sorted(told, key=lambda line: (line["row"], line["attempt"]))

    assert lines(stream) == lines(expected)


def test_what_another_topology_cannot_keep_is_named() -> None:
    rows = [{"queue": "q.a", "n": n, "color": "blue"} for n in range(3)]
    was = topology_of([Consumer("a", "q.>", selector="n > 5")], Policy("q.>"))
    messages = messages_of(was, rows)
    stream = Stream(was, messages.schema)
    stream.feed(messages)
    other = topology_of([Consumer("a", "q.>", selector="color = 'blue'")], Policy("q.>"))
    columns = messages_of(other, rows).schema
    lost = stream.opened().lost_in(Carry(other, columns))
    assert lost == ["queue q.a: messages wait there whose color was not kept, and a reads it"]
    assert stream.opened().lost_in(Carry(other, columns), ["color"]) == []
    elsewhere = topology_of([Consumer("a", "q.b", selector="color = 'blue'")], Policy("q.>"))
    assert stream.opened().lost_in(Carry(elsewhere, columns)) == []
    slow = topology_of([Consumer("a", "q.>", selector="n > 5")], Policy("q.>", max_page_size=1))
    (words,) = stream.opened().lost_in(Carry(slow, messages.schema))
    assert words.startswith("queue q.a: its policy is another one")
    narrow = messages.schema.set(messages.schema.get_field_index("n"), pa.field("n", pa.bool_()))
    struct = pa.schema([pa.field("__row", pa.struct([("p", pa.int64())])), *narrow.remove(0)])
    words = stream.opened().lost_in(Carry(was, struct))[0]
    assert words.startswith("rows are numbered by int64, not by struct")
