"""Queues that are alike are found by array as one by one."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyengine.activemq.tables.shapes import Shapes, numbered
from pyengine.topology import Consumer, Policy, Source, Topology

ELEMENTS = ["a", "b", "ü", "", "\U0001f600", "*", ">", "topic://a"]
NAMES = st.lists(st.lists(st.sampled_from(ELEMENTS), min_size=1, max_size=4).map(".".join), max_size=30)


def topology(depth: int) -> Topology:
    return Topology(
        source=Source(destination="q", path="x"),
        policies=(Policy("a.>"), Policy("a.b", max_page_size=7), Policy("*.ü,b.>")),
        consumers=(
            Consumer("deep", ".".join(["b"] * depth + [">"])),
            Consumer("one", "a.*.\U0001f600"),
            Consumer("own", "b.b"),
        ),
    )


@pytest.mark.parametrize("depth", [1, 3])
@settings(max_examples=40, deadline=None)
@given(names=NAMES)
def test_shapes_of_an_array_are_those_of_its_names(depth: int, names: list[str]) -> None:
    here = Shapes(topology(depth))
    found = here.numbers_of(pa.array(names, pa.string()))
    assert [here.every[number] for number in found] == [here.of(name) for name in names]


def test_a_long_name_is_looked_at_by_itself() -> None:
    here = Shapes(topology(1))
    names = ["a.b", ".".join("ab" * 40), "a.b", ".".join("ba" * 40)]
    found = [here.every[number] for number in here.numbers_of(pa.array(names))]
    assert found == [here.of(name) for name in names]
    assert found[0] is found[2] is not found[1]


def test_different_shapes_are_numbered_in_order() -> None:
    here = Shapes(topology(1))
    one, other = here.of("a.b"), here.of("b.b")
    different, which = numbered([one, other, one])
    assert different == [one, other]
    assert which.tolist() == [0, 1, 0]
