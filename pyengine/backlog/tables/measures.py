"""Measures of assignments, added up batch by batch: memory grows with queues, consumers and groups, not with messages.

The assignments of a destination may come in any number of batches and in any order. Whoever knows of which queues
nothing more comes says so (``settled``), and then only the groups of the others are remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyengine.activemq.tables.assignments import DESTINATION, QUEUE
from pyengine.backlog.tables.explanation import explain
from pyengine.backlog.tables.summary import ConsumerSummary, DaySummary, DestinationSummary, HeldSummary
from pyengine.dataclass import dataclass
from pyengine.topology import Topology
from pyengine.topology.model import TOPIC

EXAMPLES = 5
_DAY = 86_400_000
SETTLE = 100_000  # lines of groups, before it is worth counting those of which nothing more comes
_HELD = ["destination", "reason", "blocked_by"]
_GROUPED = ["destination", "consumer", "group"]
_COMPACT = 200_000  # lines of groups, before those that say the same are added up
_GIVEN = ["row", "destination", "consumer", "reason", "blocked_by", "bytes", "timestamp", "group", "message_id"]


@dataclass(slots=True)
class _Total:
    count: int = 0
    bytes: int = 0
    first: int | None = None
    last: int | None = None

    def add(self, line: dict[str, Any]) -> None:
        self.count += line["row_count"]
        self.bytes += line["bytes_sum"] or 0
        low, high = line["timestamp_min"], line["timestamp_max"]
        self.first = low if self.first is None or (low is not None and low < self.first) else self.first
        self.last = high if self.last is None or (high is not None and high > self.last) else self.last


@dataclass(slots=True)
class _Tally:
    """What is known of one destination. held: (reason, blocked_by). groups: of each consumer, how many.
    sizes: groups in all, messages of the largest, messages of all."""

    given: dict[str, _Total] = field(default_factory=dict)
    held: dict[tuple[str, str], _Total] = field(default_factory=dict)
    examples: dict[tuple[str, str], list[tuple[int, str]]] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)
    sizes: tuple[int, int, int] = (0, 0, 0)
    days: dict[int, list[int]] = field(default_factory=dict)


class Measures:
    """Counts and samples of assignments (ASSIGNMENT_SCHEMA), for the summary of a run."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.tallies: dict[str, _Tally] = {}
        self._grouped: list[pa.Table] = []  # destination, consumer, group, n
        self._lines = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Count a batch of assignments."""
        table = pa.Table.from_batches([batch]).select(_GIVEN)
        held = pc.is_valid(table.column("reason"))
        self._add_given(table.filter(pc.invert(held)))
        self._add_held(table.filter(held))

    def _tally(self, destination: str) -> _Tally:
        found = self.tallies.get(destination)
        if found is None:
            found = self.tallies[destination] = _Tally()
        return found

    def _add_given(self, table: pa.Table) -> None:
        for line in _totals(table, ["destination", "consumer"]):
            self._tally(line["destination"]).given.setdefault(line["consumer"], _Total()).add(line)
        grouped = table.filter(pc.is_valid(table.column("group"))).group_by(_GROUPED).aggregate([("row", "count")])
        if grouped.num_rows:
            self._grouped.append(grouped.select([*_GROUPED, "row_count"]).rename_columns([*_GROUPED, "n"]))
            self._lines += grouped.num_rows
            if self._lines > max(_COMPACT, self._grouped[0].num_rows):
                self._compact()
        self._add_days(table, 0)

    def _compact(self) -> None:
        whole = pa.concat_tables(self._grouped).group_by(_GROUPED).aggregate([("n", "sum")])
        self._grouped = [whole.select([*_GROUPED, "n_sum"]).rename_columns([*_GROUPED, "n"])]
        self._lines = 0

    def settled(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Messages sorted by ``__queue``, on their way to the dispatch whose answers are added here: when it asks for
        the next ones it has told everything of the queues before the last one."""
        for batch in batches:
            yield batch
            if batch.num_rows and self._lines > SETTLE:
                last = pc.equal(batch.column(QUEUE), batch.column(QUEUE)[-1])
                self._settle(pc.unique(batch.column(DESTINATION).filter(last)).cast(pa.string()))

    def _settle(self, more: pa.Array) -> None:
        """Count the groups of queues, except of those that have more to come; a topic may always have."""
        table = pa.concat_tables(self._grouped)
        names = table.column("destination")
        left = pc.or_(pc.is_in(names, more), pc.starts_with(names, TOPIC))
        self._grouped = [table.filter(pc.invert(left))]
        self.close()
        self._grouped = [table.filter(left)]

    @property
    def remembered(self) -> int:
        """Groups of destinations and consumers that are kept by name, for there may be more of them."""
        return sum(table.num_rows for table in self._grouped)

    def close(self) -> None:
        """Count the groups of what was added; every assignment of its destinations was."""
        if not self._grouped:
            return
        self._compact()
        (table,) = self._grouped
        for line in table.group_by(["destination", "consumer"]).aggregate([("n", "count")]).to_pylist():
            self._tally(line["destination"]).groups[line["consumer"]] = line["n_count"]
        sizes = table.group_by(["destination", "group"]).aggregate([("n", "sum")]).group_by("destination")
        for line in sizes.aggregate([("n_sum", "count"), ("n_sum", "max"), ("n_sum", "sum")]).to_pylist():
            self._tally(line["destination"]).sizes = line["n_sum_count"], line["n_sum_max"], line["n_sum_sum"]
        self._grouped = []

    def _add_held(self, table: pa.Table) -> None:
        if not table.num_rows:
            return
        for line in _totals(table, _HELD):
            key = line["reason"], line["blocked_by"] or ""
            self._tally(line["destination"]).held.setdefault(key, _Total()).add(line)
        names = pc.coalesce(table.column("message_id"), table.column("row").cast(pa.string()))
        ranked = table.select([*_HELD, "row"]).append_column("name", names)
        for line in ranked.take(pa.array(_first(ranked))).to_pylist():
            key = line["reason"], line["blocked_by"] or ""
            found = self._tally(line["destination"]).examples.setdefault(key, [])
            found.append((line["row"], line["name"]))
            found.sort()
            del found[EXAMPLES:]
        self._add_days(table, 1)

    def _add_days(self, table: pa.Table, place: int) -> None:
        if self.topology.source.timestamp is None:
            return
        stamps = table.column("timestamp").to_numpy()
        days = pa.table({"destination": table.column("destination"), "day": pa.array(np.floor_divide(stamps, _DAY))})
        for line in days.group_by(["destination", "day"]).aggregate([("day", "count")]).to_pylist():
            counts = self._tally(line["destination"]).days.setdefault(line["day"], [0, 0])
            counts[place] += line["day_count"]

    def destinations(self) -> dict[str, DestinationSummary]:
        """The summary of every destination that was seen or has an entry, by name."""
        self.close()
        names = {*self.tallies, *(entry.name for entry in self.topology.destinations)}
        return {name: self._summary(name, self.tallies.get(name, _Tally())) for name in sorted(names)}

    def _summary(self, name: str, tally: _Tally) -> DestinationSummary:
        timed = self.topology.source.timestamp is not None
        every = [*tally.given.values(), *tally.held.values()]
        delivered = sum(total.count for total in tally.given.values())
        held = sum(total.count for total in tally.held.values())
        groups, largest, grouped = tally.sizes
        return {
            "description": self.topology.description_of(name),
            "policy": self.topology.policy_of(name).destination,
            "messages": delivered + held,
            "bytes": sum(total.bytes for total in every),
            "delivered": delivered,
            "held": held,
            "rejected": sum(total.count for (reason, _), total in tally.held.items() if reason == "evaluation_error"),
            "first_timestamp": _least(total.first for total in every) if timed else None,
            "last_timestamp": _most(total.last for total in every) if timed else None,
            "groups": groups,
            "group_skew": round(largest * groups / grouped, 3) if grouped else 0.0,
            "consumer_skew": _skew(
                tally.given[each.name].count if each.name in tally.given else 0
                for each in self.topology.consumers_of(name)
            ),
            "consumers": [self._consumer(name, each.name, tally) for each in self.topology.consumers_of(name)],
            "held_by_reason": self._held(name, tally),
            "days": [
                DaySummary(day=_day(number), delivered=given, held=waits)
                for number, (given, waits) in sorted(tally.days.items())
            ],
        }

    def _consumer(self, destination: str, name: str, tally: _Tally) -> ConsumerSummary:
        total = tally.given.get(name, _Total())
        timed = self.topology.source.timestamp is not None
        consumer = next(each for each in self.topology.consumers_of(destination) if each.name == name)
        return {
            "name": name,
            "delivered": total.count,
            "bytes": total.bytes,
            "groups": tally.groups.get(name, 0),
            "first_timestamp": total.first if timed else None,
            "last_timestamp": total.last if timed else None,
            "selector": consumer.selector,
            "exclusive": consumer.exclusive,
            "priority": consumer.priority,
        }

    def _held(self, destination: str, tally: _Tally) -> list[HeldSummary]:
        return [
            {
                "reason": reason,
                "consumer": consumer,
                "count": total.count,
                "examples": [name for _, name in tally.examples[reason, consumer]],
                "explanation": explain(reason, self.topology, destination, consumer),
            }
            for (reason, consumer), total in sorted(tally.held.items(), key=lambda item: (-item[1].count, item[0]))
        ]


def _first(table: pa.Table) -> np.ndarray[Any, Any]:
    """Which rows are the first EXAMPLES of what is held alike."""
    codes = [table.column(name).combine_chunks().dictionary_encode("encode").indices for name in _HELD]
    keys = [table.column("row").to_numpy(), *(code.to_numpy(zero_copy_only=False) for code in codes)]
    order = np.lexsort(keys)
    same = np.logical_and.reduce([key[order][EXAMPLES:] == key[order][:-EXAMPLES] for key in keys[1:]])
    found: np.ndarray[Any, Any] = order[np.concatenate([np.ones(min(EXAMPLES, len(order)), bool), ~same])]
    return found


def _totals(table: pa.Table, keys: list[str]) -> list[dict[str, Any]]:
    aggregates: list[Any] = [("row", "count"), ("bytes", "sum"), ("timestamp", "min"), ("timestamp", "max")]
    found: list[dict[str, Any]] = table.group_by(keys).aggregate(aggregates).to_pylist()
    return found


def _skew(counts: Iterable[int]) -> float:
    """The largest over the mean; 1 is even, 0 there is nothing."""
    found = list(counts)
    return round(max(found) * len(found) / sum(found), 3) if sum(found) else 0.0


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _day(number: int) -> str:
    try:
        return (date(1970, 1, 1) + timedelta(days=number)).isoformat()
    except OverflowError:
        return f"day {number}"  # a timestamp that no calendar holds
