"""Rows: the quick walk over dicts and Messages answers as the general rules, which other mappings go through."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
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

KINDS: tuple[tuple[Any, ...], ...] = (
    ("blue", "black", "r\u00f6d", "\u4e2d", "\U0001f600", "\ud83d", "\ud83d\ude00", "", "blue" * 5),
    (0, 1, -1, 3, 2500, 2501, 2**31 - 1, -(2**31)),
    (2**31, -(2**40), 2**63 - 1, -(2**63)),
    (0.0, -0.0, 2.5, 1e300, float("inf"), float("nan"), 2501.0),
    (True, False),
    tuple(numpy.int8(value) for value in (3, -3, 127)),
    tuple(numpy.int16(value) for value in (3, -3, 2501)),
    tuple(numpy.float32(value) for value in (2.5, 0.1, -0.0, float("nan"))),
    (pyengine.Char("b"), "blue"),
    (None,),
    (3, 2**40, 2.5, None),
)


def fresh_key(name: str) -> str:
    """The same name as another object, as a parser makes it."""
    return "".join(list(name))


def answer(selector: pyengine.Selector, message: Any) -> object:
    try:
        return selector.matches(message)
    except pyengine.SelectorEvaluationError as error:
        return error.problem


@settings(max_examples=200, deadline=None)
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


def truth(selector: pyengine.Selector, message: Any) -> int:
    try:
        found = selector.evaluate(message)
    except pyengine.SelectorEvaluationError:
        return -2
    return -1 if found is None else int(found)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.integers(0, 200), st.sampled_from([*TEXTS, "color > price", "color = qty OR weight = price"]))
def test_packed_messages_of_one_type_a_name_answer_alike(data: st.DataObject, count: int, text: str) -> None:
    """Slots of one type are asked as columns, others row by row."""
    kinds = [data.draw(st.sampled_from(KINDS)) for _ in NAMES]
    draw = Random(count)
    rows = [
        {name: draw.choice(kind) for name, kind in zip(NAMES, kinds, strict=True) if draw.random() < 0.8}
        for _ in range(count)
    ]
    selector = pyengine.Selector(text)
    packed = PackedMessages(rows)
    for _ in range(2):
        assert selector.truth(packed).tolist() == [truth(selector, row) for row in rows]
        expected = [answer(selector, row) for row in rows]
        assert selector.mask(packed, on_error="reject").tolist() == [found is True for found in expected]
    errors = [row for row, found in enumerate(expected) if not isinstance(found, bool)]
    if errors:
        with pytest.raises(pyengine.SelectorEvaluationError) as caught:
            selector.mask(packed)
        assert (caught.value.row, caught.value.problem) == (errors[0], expected[errors[0]])
    packed._check()


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


class Leaving(str):
    """A text that is taken from its message when it is asked for its length or its class."""

    message: dict[str, Any]

    def __len__(self) -> int:
        self.message.clear()
        return 3

    @property
    def __class__(self) -> type:  # type: ignore[override]
        self.message.clear()
        return str


class Unstored(numpy.float32):
    """A number that is taken from its message when it is read."""

    message: dict[str, Any]

    def __float__(self) -> float:
        self.message.clear()
        return 3.0


def asked_of(message: dict[str, Any], dialect: str) -> list[Any]:
    selector = pyengine.Selector("name = 'fooo' OR size = '3'", dialect=dialect)
    subscriptions = pyengine.Subscriptions({1: selector, 2: "size = 4"}, dialect=dialect)
    asked: list[Callable[[], Any]] = [
        lambda: selector.matches(message),
        lambda: selector.evaluate(message),
        lambda: selector.mask([message]),
        lambda: selector.truth([message]),
        lambda: subscriptions.match(message),
        lambda: subscriptions.match_batch([message]),
        lambda: PackedMessages([message]),
    ]
    return asked


@pytest.mark.parametrize("dialect", ["activemq", "rocketmq"])
@pytest.mark.parametrize("place", range(7))
def test_what_a_value_takes_from_its_message_while_it_is_read_is_held(dialect: str, place: int) -> None:
    message: dict[str, Any] = {}
    ask = asked_of(message, dialect)[place]
    for kind in (Leaving, Unstored):
        for _ in range(20):
            message["name"] = kind("3" * 100) if kind is Leaving else kind(3)
            message["name"].message = message
            message["size"] = "3"
            ask()
