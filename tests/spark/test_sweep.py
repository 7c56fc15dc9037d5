"""A sweep on Spark gives what one process gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pyengine.backlog.simulate.groups import GroupVariant, SimulatedClient
from pyengine.backlog.simulate.queues import Playable, SimulatedConsumer, Variant, Workload, compare
from pyengine.errors import AllocationError, ConfigurationError
from pyengine.spark import sweep


def test_a_sweep_equals_the_single_process(spark: Any) -> None:
    workload = Workload.from_rate(100, 0.02, 2000, seed=1)
    variants: list[Playable] = [
        Variant(f"{count} x {prefetch}", tuple(SimulatedConsumer(f"c{n}", prefetch=prefetch) for n in range(count)))
        for count in (1, 2, 3, 5)
        for prefetch in (1, 10, 1000)
    ]
    group = GroupVariant("1 client", (SimulatedClient("c", threads=2),))
    variants += [
        group,
        replace(group.with_clients(3), name="3 clients"),
        replace(group, name="circle", strategy="AVG_BY_CIRCLE"),
    ]
    assert sweep(spark, workload, variants) == compare(workload, variants)
    some = variants[::4]
    assert sweep(spark, workload, some, until=10) == compare(workload, some, until=10) != compare(workload, some)
    assert sweep(spark, workload, []) == {}


def test_mistakes_come_back_as_they_are(spark: Any) -> None:
    workload = Workload.from_rate(100, 0.02, 10)
    wrong = GroupVariant("a", (SimulatedClient("c"),), strategy="NEAR")
    with pytest.raises(AllocationError, match="there is no allocation strategy 'NEAR'"):
        sweep(spark, workload, [wrong])
    with pytest.raises(ConfigurationError, match=r"sweep.variants\[1\].name='a': is already used"):
        sweep(spark, workload, [wrong, wrong])
    with pytest.raises(ConfigurationError, match=r"variants\[0\]=5: must be"):
        sweep(spark, workload, [5])  # type: ignore[list-item]
    with pytest.raises(ConfigurationError, match="until="):
        sweep(spark, workload, [replace(wrong, strategy="AVG")], until="soon")  # type: ignore[arg-type]
