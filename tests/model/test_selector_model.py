"""Selectors against the model: random trees, random typed messages, every shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import Any

import numpy
from hypothesis import given, settings
from hypothesis import strategies as st

import pyengine
from pyengine._engine.selector.interpreter import match_and_tree
from tests.model.selector_model import Model, RaisesError

NAMES = ("a", "b", "c", "d", "e")
TEXTS = (
    "", "abc", "ABC", "a%c", "3", "3.0", " 3 ", "+3", "300", "4000000000", "1e1", "NaN", "-Infinity", "0x1p1", "3d",
    "true", "TRUE", "\u0663", "\uff13", "é", "ab\U0001f600", "\ud83d\ude00", "\ud83d", "\ue000", "x\ny", "128", "1.1f",
)  # fmt: skip
LITERALS = (
    "0", "1", "3", "300", "2147483647", "2147483648", "16777217", "9007199254740993", "9223372036854775807",
    "9223372036854775808", "18446744073709551617", "0x10", "017", "1.5", "0.1", "0.0", "1e1", "1e400", "1e23",
    "16777216.0",
)  # fmt: skip
ROCKETMQ_LITERALS = ("0", "1", "3", "300", "2147483648", "9223372036854775807", "1.5", "0.1", "1e1", "16777216.0")

SPECIAL = (0.0, -0.0, 1.5, 3.0, 1e23, 5e-324, 2.0**63, float("nan"), float("inf"), -float("inf"))
reals = st.sampled_from(SPECIAL) | st.floats()
properties = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-128, -1, 0, 3, 127]).map(numpy.int8),
    st.sampled_from([-32768, 0, 3, 300]).map(numpy.int16),
    st.sampled_from([-(2**31), -1, 0, 1, 3, 16777217, 2**31 - 1]) | st.integers(-(2**31), 2**31 - 1),
    st.sampled_from([-(2**63), 0, 3, 2**31, 2**53 + 1, 2**63 - 1]).map(numpy.int64) | st.integers(2**31, 2**63 - 1),
    reals,
    st.floats(width=32).map(numpy.float32),
    st.sampled_from(TEXTS) | st.text(max_size=4),
    st.sampled_from("a3é").map(pyengine.Char),
)
RELATIONS = ("=", "<>", "<", "<=", ">", ">=")
seeds = st.integers(0, 2**48)
messages = st.dictionaries(st.sampled_from(NAMES), properties)


class Writer:
    """Writes random selectors; hypothesis gives the seed, so a failure names a text that fails again."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def quoted(self, texts: Sequence[str] = TEXTS) -> str:
        return "'" + self.random.choice(texts).replace("'", "''") + "'"

    def operand(self, depth: int) -> str:
        kind = self.random.random()
        if depth <= 0 or kind < 0.5:
            return self.one(*NAMES)
        if kind < 0.62:
            return self.one(*LITERALS)
        if kind < 0.7:
            return self.quoted()
        if kind < 0.78:
            return "- " + self.operand(depth - 1)
        if kind < 0.94:
            return f"({self.operand(depth - 1)} {self.one(*'+-*/%')} {self.operand(depth - 1)})"
        return f"({self.activemq(depth - 1)})"

    def activemq(self, depth: int) -> str:
        kind = self.random.random()
        if depth > 0 and kind < 0.4:
            word = self.one(" AND ", " OR ")
            return "(" + word.join(self.activemq(depth - 1) for _ in range(self.random.choice((2, 2, 3)))) + ")"
        if depth > 0 and kind < 0.52:
            return f"NOT ({self.activemq(depth - 1)})"
        if kind < 0.76:
            right = self.operand(depth - 1) if self.random.random() < 0.6 else self.one(*LITERALS, self.quoted())
            return f"{self.operand(depth - 1)} {self.one(*RELATIONS)} {right}"
        if kind < 0.82:
            ends = [self.one(self.operand(depth - 1), *LITERALS) for _ in range(2)]
            return f"{self.operand(depth - 1)} {self.one('', 'NOT ')}BETWEEN {ends[0]} AND {ends[1]}"
        if kind < 0.88:
            pattern = "'" + "".join(self.random.choices("a3%_%_\\é\U0001f600", k=self.random.randrange(6))) + "'"
            escape = self.one("", "", " ESCAPE '\\'", " ESCAPE '_'", " ESCAPE '3'", " ESCAPE 'é'")
            return f"{self.operand(depth - 1)} {self.one('', 'NOT ')}LIKE {pattern}{escape}"
        if kind < 0.92:
            texts = ",".join(self.quoted() for _ in range(self.random.choice((1, 3, 12))))
            return f"{self.one(*NAMES)} {self.one('', 'NOT ')}IN ({texts})"
        if kind < 0.96:
            return f"{self.one(self.operand(depth - 1), f'({self.activemq(depth - 1)})')} IS {self.one('', 'NOT ')}NULL"
        return self.one(*NAMES, "TRUE", "FALSE", "NULL", "XQUERY 'x'")

    def rocketmq(self, depth: int) -> str:
        kind = self.random.random()
        plain = [self.one(*NAMES), self.one(*ROCKETMQ_LITERALS), self.quoted(), self.one("TRUE", "FALSE", "- a", "- 3")]
        if depth > 0 and kind < 0.45:
            return f"({self.rocketmq(depth - 1)} {self.one('AND', 'OR')} {self.rocketmq(depth - 1)})"
        if depth > 0 and kind < 0.55:
            return f"NOT ({self.rocketmq(depth - 1)})"
        if kind < 0.78:
            return f"{self.one(*NAMES, *plain)} {self.one(*RELATIONS)} {self.one(*plain)}"
        if kind < 0.84:
            return f"{self.one(*NAMES)} {self.one('', 'NOT ')}BETWEEN {self.one(*plain)} AND {self.one(*plain)}"
        if kind < 0.9:
            word = self.one("", "NOT ") + self.one("CONTAINS", "STARTSWITH", "ENDSWITH")
            return f"{self.one(*plain)} {word} {self.quoted()}"
        if kind < 0.95:
            return f"{self.one(*NAMES)} {self.one('', 'NOT ')}IN ({self.quoted()}, {self.quoted()})"
        return f"{self.one(*plain)} IS {self.one('', 'NOT ')}NULL"


def answer(question: Callable[..., Any], *arguments: Any) -> Any:
    """What was answered, or "raises"."""
    try:
        return question(*arguments)
    except (RaisesError, pyengine.SelectorEvaluationError):
        return "raises"


def mask_of(selector: pyengine.Selector, batch: Any) -> Any:
    """mask of a batch of equal messages: their one answer."""
    answers = set(selector.mask(batch).tolist())
    assert len(answers) == 1
    return answers.pop()


def check(text: str, dialect: str, message: Mapping[str, Any]) -> None:
    """Every shape's answers are the model's."""
    try:
        selector = pyengine.Selector(text, dialect)
    except pyengine.InvalidSelectorError:
        return
    selector._check()
    model = Model(selector._tree, message)
    matched, value = answer(model.matches), answer(model.evaluate)
    codes = {True: 1, False: 0, None: -1, "raises": -2}
    for shape in (dict(message), MappingProxyType(dict(message)), pyengine.Message(message)):
        assert answer(selector.matches, shape) == matched, (text, shape)
        assert answer(selector.evaluate, shape) == value, (text, shape)
        assert answer(mask_of, selector, [shape, shape]) == matched, (text, shape)
        assert selector.mask([shape], on_error="reject").tolist() == [matched is True], (text, shape)
        assert selector.truth((shape,)).tolist() == [codes[value]], (text, shape)
    packed = pyengine.PackedMessages([message, pyengine.Message(message)])
    assert answer(mask_of, selector, packed) == matched, text
    assert selector.mask(packed, on_error="reject").tolist() == [matched is True] * 2, text
    assert selector.truth(packed).tolist() == [codes[value]] * 2, text
    if dialect == "activemq":
        leaves, nodes = match_and_tree(selector._program, [message.get(name) for name in selector.names])
        assert leaves == nodes, text


@settings(max_examples=700, deadline=None)
@given(seeds, st.integers(0, 6), messages, st.booleans())
def test_activemq_selectors_answer_as_the_model(seed: int, depth: int, message: dict[str, Any], convert: bool) -> None:
    text = Writer(seed).activemq(depth)
    check("convert_string_expressions:" + text if convert else text, "activemq", message)


@settings(max_examples=350, deadline=None)
@given(seeds, st.integers(0, 5), messages)
def test_rocketmq_selectors_answer_as_the_model(seed: int, depth: int, message: dict[str, Any]) -> None:
    check(Writer(seed).rocketmq(depth), "rocketmq", message)


@settings(max_examples=250, deadline=None)
@given(st.sampled_from(RELATIONS), st.sampled_from(LITERALS), st.sampled_from(["", "- "]), properties)
def test_a_property_against_a_number(relation: str, literal: str, sign: str, value: Any) -> None:
    check(f"a {relation} {sign}{literal}", "activemq", {"a": value})
    check(f"a BETWEEN {sign}{literal} AND {literal}", "activemq", {"a": value})
