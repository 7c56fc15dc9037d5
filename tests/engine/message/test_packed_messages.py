"""PackedMessages: rows of slots that stay right when the messages are gone."""

from __future__ import annotations

import gc
import pickle
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyengine
from pyengine import Char, InvalidMessageError, Message, PackedMessages

ROWS: list[dict[str, Any]] = [
    {"color": "blue", "weight": 2600, "JMSPriority": 7},
    {"color": "r\u00f6d", "byte": numpy.int8(3), "long": numpy.int64(3)},
    {"color": "\u4e2d", "float": numpy.float32(0.1), "double": 0.1, "yes": True},
    {"color": "\U0001f600", "unit": Char("x"), "JMSXGroupID": "g", "JMSDestination": "queue://A"},
    {},
]


def test_rows_keep_every_value_and_type() -> None:
    packed = PackedMessages([Message.from_mapping(row) for row in ROWS])
    packed._check()
    gc.collect()
    assert len(packed) == packed.rows == 5
    assert packed.complete
    assert packed.names == (
        "color", "weight", "byte", "long", "float", "double", "yes", "unit",
        "JMSDestination", "JMSPriority", "JMSXGroupID",
    )  # fmt: skip
    for index, row in enumerate(ROWS):
        found = packed.row(index)
        expected = dict.fromkeys(packed.names) | {"JMSPriority": 4} | row
        assert found == expected
        assert {name: type(value) for name, value in found.items() if value is not None} == {
            name: type(value) for name, value in expected.items() if value is not None
        }


def test_messages_and_mappings_pack_alike() -> None:
    messages = PackedMessages(Message.from_mapping(row) for row in ROWS)
    mappings = PackedMessages(ROWS)
    assert mappings.names == messages.names
    assert [mappings.row(index) for index in range(5)] == [messages.row(index) for index in range(5)]


def test_names_choose_the_slots() -> None:
    packed = PackedMessages(ROWS, ["weight", "JMSTimestamp", "nothing", "JMSDeliveryMode"])
    packed._check()
    assert not packed.complete
    assert packed.width == 4
    assert packed.row(0) == {"weight": 2600, "JMSTimestamp": 0, "nothing": None, "JMSDeliveryMode": "PERSISTENT"}
    assert PackedMessages([], []).row is not None
    assert len(PackedMessages([], ["a"])) == 0
    assert len(PackedMessages([{}, {}])) == 2


def test_packed_is_a_copy() -> None:
    message = Message({"a": "x" * 100, "n": 1})
    message.set_object_property("list", [1, [2]])
    packed = PackedMessages([message, message])
    message.set_property("a", "y")
    message.get_object_property("list")
    message.clear_properties()
    assert packed.row(1) == {"a": "x" * 100, "n": 1, "list": [1, [2]]}
    assert packed.nbytes == 2 * 3 * 16 + 100


def test_pickles_keep_everything() -> None:
    packed = PackedMessages([Message({"a": numpy.int8(1)}, body="<r/>"), Message({"a": "x"})])
    again = pickle.loads(pickle.dumps(packed))
    again._check()
    assert again.names == packed.names
    assert again.complete
    assert again.nbytes == packed.nbytes
    assert [again.row(0), again.row(1)] == [packed.row(0), packed.row(1)]
    assert type(again.row(0)["a"]) is numpy.int8


@pytest.mark.parametrize(
    ("messages", "names", "field"),
    [
        ([{"a": 1}, 5], None, "message 1"),
        ([{"a": b"x"}], None, "a"),
        ([{1: 2}], None, "property name"),
        ([{}], "ab", "names"),
        ([{}], ["a", "a"], "names"),
        ([{}], [""], "names"),
    ],
)
def test_what_cannot_be_packed_is_named(messages: Any, names: Any, field: str) -> None:
    with pytest.raises(InvalidMessageError) as caught:
        PackedMessages(messages, names)
    assert caught.value.field == field


def test_rows_end() -> None:
    packed = PackedMessages(ROWS)
    for index in (5, -1):
        with pytest.raises(IndexError):
            packed.row(index)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.dictionaries(st.sampled_from("abcd"), st.text(max_size=4) | st.integers(-5, 5) | st.none() | st.booleans())
    )
)
def test_any_rows(rows: list[dict[str, Any]]) -> None:
    packed = PackedMessages(rows, ["a", "b", "c", "d"])
    packed._check()
    assert [packed.row(index) for index in range(len(rows))] == [dict.fromkeys("abcd") | row for row in rows]


def test_a_name_not_packed_is_not_silently_absent() -> None:
    packed = PackedMessages([{"a": 1, "b": 2}, {"a": 3}], ["a"])
    assert pyengine.Selector("a > 2").mask(packed).tolist() == [False, True]
    with pytest.raises(pyengine.MissingColumnError, match=r"^the batch of packed messages has no column 'b'"):
        pyengine.Selector("b = 2").mask(packed)
    with pytest.raises(pyengine.MissingColumnError):
        pyengine.Selector("b = 2").truth(packed)
    assert pyengine.Selector("b = 2").truth(packed, missing="null").tolist() == [-1, -1]
    assert pyengine.Selector("b IS NULL").mask(PackedMessages([{"a": 1}, {"b": 2}])).tolist() == [True, False]


def test_headers_of_packed_messages() -> None:
    packed = PackedMessages([{"JMSPriority": 7}, {"a": 1}, pyengine.Message(priority=2)])
    assert pyengine.Selector("JMSPriority >= 4").mask(packed).tolist() == [True, True, False]
    assert pyengine.Selector("JMSPriority >= 4").mask(PackedMessages([{}])).tolist() == [True]
    # In rocketmq a header is nothing, but a property of that name is one.
    assert pyengine.Selector("JMSPriority IS NULL", "rocketmq").mask(packed).tolist() == [False, True, True]
    assert pyengine.Selector("JMSPriority = 7", "rocketmq").mask(packed).tolist() == [True, False, False]


@pytest.mark.parametrize("message", [{"JMSPriority": 7, "a": 1}, Message({"a": 1}, priority=7)])
def test_a_header_not_packed_is_known_where_it_is_fresh_everywhere(message: Any) -> None:
    selector = pyengine.Selector("JMSPriority = 4")
    fresh = PackedMessages([{"a": 1}, Message({"a": 2})], ["a"])
    assert selector.mask(fresh).tolist() == [selector.matches({"a": 1}), selector.matches(Message())] == [True, True]
    assert selector.mask(pickle.loads(pickle.dumps(fresh))).tolist() == [True, True]
    assert pyengine.Selector("JMSXGroupID IS NULL").mask(fresh).tolist() == [True, True]
    packed = PackedMessages([{"a": 1}, message], ["a"])
    with pytest.raises(pyengine.MissingColumnError):
        selector.mask(packed)
    assert pyengine.Selector("JMSTimestamp = 0").mask(packed).tolist() == [True, True]
    with pytest.raises(pyengine.MissingColumnError):
        pyengine.Selector("JMSPriority = '4'", "rocketmq").mask(fresh)


def test_a_mapping_holds_no_lists() -> None:
    for value in ([1], {"k": 1}):
        with pytest.raises(InvalidMessageError) as caught:
            PackedMessages([{"a": value}])
        assert caught.value.field == "a"
        with pytest.raises(InvalidMessageError):
            pyengine.Selector("a IS NULL").matches({"a": value})
    message = Message()
    message.set_object_property("a", [1, {"k": "v"}])
    again = pickle.loads(pickle.dumps(PackedMessages([message])))
    assert again.row(0) == {"a": [1, {"k": "v"}]}


def test_many_rows_are_asked_as_single_ones_are() -> None:
    """Several blocks, rows that raise among them, texts that lie side by side and one that is empty."""
    values: list[Any] = ["", "x", "gold", "golden", "\u00e9", "\u4e2d", 1, 2.5, None, True, numpy.int8(3)]
    rows = [{"a": values[i % 11], "b": values[i // 11 % 11], "c": i % 97, "JMSPriority": i % 10} for i in range(3000)]
    packed = PackedMessages(rows)
    for text in (
        "a = 'x' OR b LIKE 'gold%' AND NOT (c BETWEEN 10 AND 60)",
        "a IN ('', 'x', '\u4e2d') AND b <> 'golden' OR JMSPriority > 7 AND c * 2.5 > 100",
        "a IS NULL OR b",
        "a = b OR c - JMSPriority = 4",
        "a + c > 12",
        "-a < c",
        "b LIKE '_' AND (a > 1.5 OR a IS NOT NULL)",
    ):
        selector = pyengine.Selector(text)
        assert selector.mask(packed, on_error="reject").tolist() == selector.mask(rows, on_error="reject").tolist()
        assert selector.truth(packed).tolist() == selector.truth(rows).tolist()
    selector = pyengine.Selector("a = '1' OR b > 2 AND c IN ('5', '60')", "rocketmq")
    assert selector.mask(packed, on_error="reject").tolist() == selector.mask(rows, on_error="reject").tolist()


def test_the_row_that_raises_is_named() -> None:
    packed = PackedMessages([{"a": 1}, {"a": "x"}, {"a": 2}])
    selector = pyengine.Selector("a - 1 = 1")
    with pytest.raises(pyengine.SelectorEvaluationError) as caught:
        selector.mask(packed)
    assert caught.value.row == 1
    assert selector.mask(packed, on_error="reject").tolist() == [False, False, True]
    assert selector.truth(packed).tolist() == [0, -2, 1]
    assert selector.mask_words(packed, on_error="reject").tolist() == [4]
    assert pyengine.Selector("a = 1").mask(PackedMessages([])).tolist() == []


def test_a_mapping_may_change_a_message_while_both_are_packed() -> None:
    message = Message({"a": "x" * 200, "b": 1}, correlation_id="c" * 200)

    class Changing(dict[str, Any]):
        def get(self, name: str, default: Any = None) -> Any:
            message.clear_properties()
            message.correlation_id = None
            return super().get(name, default)

    for order in ([message, Changing(a="q")], [Changing(a="q"), message]):
        message.set_property("a", "x" * 200)
        packed = PackedMessages(order, ["a", "JMSCorrelationID"])
        packed._check()
        assert [packed.row(index)["a"] for index in range(2) if order[index] is not message] == ["q"]
        assert packed.row(order.index(message))["a"] is None
