"""Message against a plain dict: random typed sets, removals, clears, copies and pickles."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pyengine import Char, InvalidMessageError, Message

NAMES = st.sampled_from(["a", "b", "price", "é", "name with blanks", "Zz", "JMSFoo", "".join(["pri", "ce"])])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(max_size=5),
    st.integers(-128, 127).map(numpy.int8),
    st.integers(-(2**15), 2**15 - 1).map(numpy.int16),
    st.integers(-(2**63), 2**63 - 1).map(numpy.int64),
    st.floats(width=32).map(numpy.float32),
    st.characters(max_codepoint=0xFFFF).map(Char),
)
OBJECTS = st.recursive(
    VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


def java_type(value: Any) -> str:
    """The type a message must report, written out."""
    if isinstance(value, Char):
        return "char"
    if isinstance(value, (list, dict)):
        return "object"
    if isinstance(value, int) and not isinstance(value, bool):
        return "int" if -(2**31) <= value < 2**31 else "long"
    return {
        bool: "boolean",
        float: "double",
        str: "string",
        numpy.int8: "byte",
        numpy.int16: "short",
        numpy.int64: "long",
        numpy.float32: "float",
    }[type(value)]


def same(left: Any, right: Any) -> bool:
    """Equal, with NaN equal to itself."""
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return bool(left == right) or (isinstance(left, (float, numpy.floating)) and math.isnan(left) and math.isnan(right))


class MessageMachine(RuleBasedStateMachine):
    """The model is a dict of the properties and one of the attributes."""

    @initialize(properties=st.dictionaries(NAMES, VALUES))
    def start(self, properties: dict[str, Any]) -> None:
        self.message = Message(properties)
        self.properties = {name: value for name, value in properties.items() if value is not None}
        self.attributes: dict[str, Any] = {}

    @rule(name=NAMES, value=VALUES)
    def set_property(self, name: str, value: Any) -> None:
        self.message.set_property(name, value)
        self.keep(name, value)

    @rule(name=NAMES, value=OBJECTS)
    def set_object_property(self, name: str, value: Any) -> None:
        self.message.set_object_property(name, value)
        self.keep(name, value)

    @rule(name=NAMES, value=st.integers(-300, 300))
    def set_byte_property(self, name: str, value: int) -> None:
        if -128 <= value <= 127:
            self.message.set_byte_property(name, value)
            self.keep(name, numpy.int8(value))
        else:
            with pytest.raises(InvalidMessageError):
                self.message.set_byte_property(name, value)

    @rule(priority=st.integers(-5, 15), by_name=st.booleans())
    def set_priority(self, priority: int, by_name: bool) -> None:
        if by_name:
            self.message.set_property("JMSPriority", str(priority))
        else:
            self.message.priority = priority
        self.attribute("priority", max(0, min(9, priority)), 4)

    @rule(group=st.none() | st.text(max_size=3))
    def set_group(self, group: str | None) -> None:
        self.message.group_id = group
        self.attribute("group_id", group, None)

    @rule()
    def clear(self) -> None:
        self.message.clear_properties()
        self.properties.clear()

    @rule()
    def copy(self) -> None:
        before = self.message
        self.message = before.copy()
        before.clear_properties()

    @rule()
    def pickle(self) -> None:
        self.message = pickle.loads(pickle.dumps(self.message))

    def keep(self, name: str, value: Any) -> None:
        if value is None:
            self.properties.pop(name, None)
        else:
            self.properties[name] = value

    def attribute(self, name: str, value: Any, fresh: Any) -> None:
        self.attributes.pop(name, None)
        if value != fresh:
            self.attributes[name] = value

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "message"):
            return
        self.message._check()
        assert self.message.property_names == tuple(self.properties)
        assert same(self.message.properties(), self.properties)
        assert self.message.property_types() == {name: java_type(value) for name, value in self.properties.items()}
        assert self.message.attributes() == self.attributes
        assert self.message == self.message.copy()


MessageMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestMessage = MessageMachine.TestCase
