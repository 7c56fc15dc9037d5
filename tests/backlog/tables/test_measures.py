"""Measures of assignments: the same numbers whether groups are counted at the end or when their queue is done."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyengine.activemq.tables.dispatch import QUEUE, dispatch_batches, order_columns
from pyengine.backlog.tables import measures
from pyengine.backlog.tables.messages import to_messages
from pyengine.backlog.tables.runs import queue_keys
from pyengine.topology import Consumer, Source, TimeColumn, Topology

ROWS = 6_000


def sorted_messages(topology: Topology) -> pa.Table:
    draw = np.random.default_rng(12)
    rows = pa.table(
        {
            "q": [f"{'topic://t' if n % 4 == 0 else 'q'}.{n}" for n in np.minimum(draw.geometric(0.05, ROWS), 60)],
            "who": pa.array([f"g\U0001f600{n}" for n in draw.integers(0, 90, ROWS)], mask=draw.random(ROWS) < 0.2),
            "n": pa.array(draw.integers(0, 9, ROWS), pa.int32()),
            "at": pa.array(draw.integers(0, 400_000_000, ROWS)),
        }
    )
    messages, rejects = to_messages(rows, range(ROWS), topology.source)
    assert not rejects
    keys = queue_keys(messages.column("__destination").to_pylist(), topology.shares_topics)
    messages = messages.append_column(QUEUE, pa.array(keys))
    return messages.sort_by([(name, "ascending") for name in order_columns(topology, messages.column_names)])


def test_groups_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    topology = Topology(
        source=Source(destination="{q}", path="x", group="who", timestamp=TimeColumn("at")),
        consumers=(
            Consumer("few", "q.>", selector="n < 4"),
            Consumer("slow", "q.>", selector="n < 6", prefetch=100, acknowledges=False),
            Consumer("listener", "topic://>", selector="n <> 1"),
        ),
    )
    messages = sorted_messages(topology).combine_chunks()
    whole, early = measures.Measures(topology), measures.Measures(topology)
    told: list[Any] = []
    for batch in dispatch_batches(topology, messages.to_batches()):
        whole.add(batch)
        told += batch.to_pylist()
    monkeypatch.setattr(measures, "SETTLE", 50)
    kept = 0
    for batch in dispatch_batches(topology, early.settled(messages.to_batches(max_chunksize=200))):
        early.add(batch)
        kept = max(kept, early.remembered)
    assert early.destinations() == whole.destinations()
    given = [line for line in told if line["reason"] is None and line["group"] is not None]
    groups = {(line["destination"], line["consumer"], line["group"]) for line in given}
    assert kept < len(groups) / 2
    for name, found in whole.destinations().items():
        mine = [line for line in given if line["destination"] == name]
        sizes = Counter(line["group"] for line in mine)
        assert found["groups"] == len(sizes)
        assert found["group_skew"] == (round(max(sizes.values()) * len(sizes) / len(mine), 3) if mine else 0)
        for consumer in found["consumers"]:
            assert consumer["groups"] == len(
                {group for queue, by, group in groups if queue == name and by == consumer["name"]}
            )
        for held in found["held_by_reason"]:
            key = name, held["reason"], held["consumer"]
            rows = [
                each["row"] for each in told if (each["destination"], each["reason"], each["blocked_by"] or "") == key
            ]
            assert held["count"] == len(rows)
            assert held["examples"] == [str(row) for row in sorted(rows)[: measures.EXAMPLES]]
