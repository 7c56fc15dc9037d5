"""Rows: the quick walk over dicts and Messages answers as the general rules, which other mappings go through."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyengine
from pyengine import Message, PackedMessages

NAMES = ("color", "weight", "price", "qty", "JMSPriority")
TEXTS = (
    "color = 'blue' AND weight > 2500",
    "color LIKE 'bl%' OR NOT (weight BETWEEN -3 AND 3)",
    "color LIKE '_l%e' AND weight IS NOT NULL",
    "color IN ('blue', 'r\u00f6d', '\u4e2d') OR JMSPriority = 4",
    "price * qty > 1000 AND color IS NOT NULL",
    "price + qty * 2 - weight / 4 <= 12.5",
    "weight * weight = qty",
    "-weight % 3 > price - qty",
    "1000 < qty * 2147483647",
    "weight - 1 <> 2147483646 + qty",
    "color + 'x' = 'bluex' OR qty",
    "NOT qty AND weight >= 2.5",
)
VALUES = st.one_of(
    st.sampled_from(["blue", "black", "r\u00f6d", "\u4e2d", "", "blue" * 5]),
    st.sampled_from([0, 1, -1, 3, 2500, 2501, 2**31 - 1, -(2**31), 2**31, 2**40, -(2**63), 2**63 - 1]),
    st.sampled_from([0.0, -0.0, 2.5, 1e300, float("inf"), float("nan")]),
    st.sampled_from([True, False, None, numpy.int8(3), numpy.int16(-3), numpy.float32(2.5), numpy.int64(7)]),
)


def fresh_key(name: str) -> str:
    """The same name as another object, as a parser makes it."""
    return "".join(list(name))


def answer(selector: pyengine.Selector, message: Any) -> object:
    try:
        return selector.matches(message)
    except pyengine.SelectorEvaluationError as error:
        return error.problem


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(st.dictionaries(st.sampled_from(NAMES[:4]), VALUES), st.permutations(NAMES), st.booleans()),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from(TEXTS),
)
def test_every_shape_of_row_answers_alike(drawn: list[tuple[dict[str, Any], list[str], bool]], text: str) -> None:
    selector = pyengine.Selector(text)
    rows = [
        {(fresh_key(name) if fresh else name): row[name] for name in order if name in row}
        for row, order, fresh in drawn
    ]
    expected = [answer(selector, MappingProxyType(row)) for row in rows]
    assert [answer(selector, row) for row in rows] == expected
    assert [answer(selector, Message.from_mapping(row)) for row in rows] == expected
    assert selector.mask(rows, on_error="reject").tolist() == [found is True for found in expected]
    assert selector.mask(PackedMessages(rows), on_error="reject").tolist() == [found is True for found in expected]
    selector._check()


def test_a_name_is_found_wherever_it_moves() -> None:
    """Keys in changing places, removed before it, and of another object than the selector's own."""
    selector = pyengine.Selector("b = 7")
    for turn in range(300):
        row: dict[str, Any] = {f"k{place}": place for place in range(turn % 70)}
        row[fresh_key("b") if turn % 3 else "b"] = 7 + (turn % 2)
        row["z"] = 7
        row.pop("k0", None)
        assert selector.matches(row) is (turn % 2 == 0)
        assert selector.matches(Message(row)) is (turn % 2 == 0)
        assert selector.matches({"z": 7}) is False
    assert [selector.matches({"a": 1, "b": 7}) for _ in range(10_000)].count(True) == 10_000


def deleted_before(row: dict[str, Any]) -> dict[str, Any]:
    """A dict with holes among its entries."""
    message: dict[str, Any] = {}
    for name, value in row.items():
        message[f"not {name}"] = 0
        message[name] = value
    for name in row:
        del message[f"not {name}"]
    return message


def with_other_keys(row: dict[str, Any]) -> dict[Any, Any]:
    """A dict whose keys are not all text."""
    return {7: "blue", **row}


def of_an_instance(row: dict[str, Any]) -> dict[str, Any]:
    """A dict that shares its keys with those of other instances."""

    class Order:
        def __init__(self, values: dict[str, Any]) -> None:
            for name, value in values.items():
                setattr(self, name, value)

    Order(row)
    return vars(Order(row))


@pytest.mark.parametrize("make", [dict, deleted_before, with_other_keys, of_an_instance])
def test_dicts_of_every_layout_answer_alike(make: Callable[[dict[str, Any]], dict[Any, Any]]) -> None:
    rows = [{"color": "blue", "weight": 2501}, {"weight": 9000, "color": "blue"}, {"color": "red", "weight": 2501}]
    rows += [{"weight": 2501}, {"color": "blue"}, {}, {"a": 1, "b": 2, "weight": 3000, "color": "blue"}]
    expected = [True, True, False, False, False, False, True]
    selector = pyengine.Selector("color = 'blue' AND weight > 2500")
    for _ in range(3):
        plain = [selector.matches(row) for row in rows]  # what the selector guesses from, in between
        assert plain == expected
        assert [selector.matches(make(row)) for row in rows] == expected
        assert selector.mask([make(row) for row in rows] * 4).tolist() == expected * 4


def test_what_a_key_raises_is_raised() -> None:
    class Odd:
        def __hash__(self) -> int:
            return hash("color")

        def __eq__(self, other: object) -> bool:
            raise ZeroDivisionError

    for text in ("color = 'blue'", "color * 2 > 1"):
        with pytest.raises(ZeroDivisionError):
            pyengine.Selector(text).matches({Odd(): 1})
        with pytest.raises(ZeroDivisionError):
            pyengine.Selector(text).mask([{Odd(): 1}])
