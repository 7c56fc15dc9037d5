"""Subscriptions answer as a loop over their selectors, always: random selectors, messages and changes."""

from __future__ import annotations

import contextlib
import itertools
import math
import pickle
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Literal

import numpy
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import pyengine
from pyengine import Selector, Subscriptions
from pyengine._engine.index.segment_builder import use_few_lines
from tests.model.column_batches import LITERALS, QUOTED, Batch, batches
from tests.model.test_selector_model import TEXTS, Writer, messages

Dialect = Literal["activemq", "rocketmq"]
seeds = st.integers(0, 2**48)
few_lines = st.sampled_from([0, 1, 4])  # of 512 entries: whether an index is asked line by line or by access points
dialects = st.sampled_from(["activemq", "activemq", "rocketmq"])
PROPERTY_NAMES = ("a", "b", "c", "d")
BEGINNINGS = ("a", "ab", "A", "3", "4000", "40000000", "400000000", "-Infinit", "-Infinity", "\u00e9", "a%", "\0", "")


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def some_text(draw: Random) -> str:
    return draw.choice(TEXTS) if draw.random() < 0.4 else f"{draw.choice(('', 'v', 'ab'))}{draw.randrange(300)}"


def texts_listed(draw: Random, count: int) -> str:
    return ", ".join(quoted(some_text(draw)) for _ in range(count))


def pattern(draw: Random) -> str:
    """A LIKE pattern of any form: bound or open, of one piece or of several, with ``_``, with an escape."""
    pieces = [draw.choice((*BEGINNINGS, *TEXTS, "b", "0")) for _ in range(draw.choice((1, 1, 1, 2, 3)))]
    text = draw.choice(("", "%", "%", "_")) + draw.choice(("%", "%", "_", "%_")).join(pieces)
    text = quoted(text + draw.choice(("", "%", "%", "_")))
    return text + (" ESCAPE '!'" if draw.random() < 0.1 and "!" not in text else "")


def leaf_of(draw: Random, dialect: str) -> str:
    name, low = draw.choice(PROPERTY_NAMES), draw.choice(("0.001", "-0.5", "3.25", "1.0", "5e-324", "-3", "2", "7"))
    made = [
        f"{name} = {quoted(some_text(draw))}",
        f"{name} {draw.choice(('=', '<>', '<', '<=', '>', '>='))} {draw.choice(LITERALS[:10])}",
        f"{name} BETWEEN {low} AND {float(low) + draw.choice((0.0005, 0.25, 4))!r}",
        f"{name} {draw.choice(('', '', 'NOT '))}IN ({texts_listed(draw, draw.randint(1, 6))})",
        f"{name} IS {draw.choice(('', 'NOT '))}NULL",
        f"{name} {draw.choice(('=', '<>'))} {draw.choice(('TRUE', 'FALSE'))}",
    ]
    if dialect == "activemq":
        made += [f"{name} {draw.choice(('', '', 'NOT '))}LIKE {pattern(draw)}"] * 3
        made += [f"{name} + 1 > {low}", name]
    return draw.choice(made)


def tree_of(draw: Random, dialect: str, depth: int) -> str:
    if depth == 0 or draw.random() < 0.1:
        return leaf_of(draw, dialect)
    if draw.random() < 0.2:
        return f"NOT ({tree_of(draw, dialect, depth - 1)})"
    parts = [tree_of(draw, dialect, depth - 1) for _ in range(draw.randint(2, 3))]
    return f"({draw.choice((' AND ', ' OR ')).join(parts)})"


def shape_of(draw: Random, dialect: str) -> str:
    """What is listed by value instead of compared bit by bit: long IN and OR, trees, LIKE, narrow ranges."""
    name, many = draw.choice(PROPERTY_NAMES), draw.choice((1, 2, 2, 8, 8, 9, 9, 12, 40, 200))
    made = draw.choice(("in", "or", "mixed or", "tree", "tree", "leaf", "conjunction"))
    if made == "in":
        text = f"{name} IN ({texts_listed(draw, many)})"
        return text if draw.random() < 0.7 else f"{text} AND {leaf_of(draw, dialect)}"
    if made == "or":
        return " OR ".join(f"{draw.choice(PROPERTY_NAMES)} = {quoted(some_text(draw))}" for _ in range(many))
    if made == "mixed or":
        return " OR ".join(leaf_of(draw, dialect) for _ in range(min(many, 40)))
    if made == "conjunction":
        return " AND ".join(leaf_of(draw, dialect) for _ in range(draw.randint(1, 4)))
    return tree_of(draw, dialect, 3 if made == "tree" else 0)


def text_of(seed: int, dialect: str, depth: int) -> str:
    """A legal selector: a conjunction of simple predicates as subscriptions have them, a shape of those that are listed
    by value, or anything up to ``depth``."""
    draw = Random(seed)
    while True:
        kind = draw.random()
        if kind < 0.4:
            text = shape_of(draw, dialect)
        elif kind < 0.7:
            writer = Writer(draw.randrange(2**48))
            text = writer.activemq(depth) if dialect == "activemq" else writer.rocketmq(depth)
        else:
            parts = []
            for _ in range(draw.randint(1, 5)):
                name, number = draw.choice(PROPERTY_NAMES), draw.choice(LITERALS[:10])
                parts.append(
                    draw.choice(
                        [
                            f"{name} = {draw.choice(QUOTED)}",
                            f"{name} = {draw.choice(QUOTED)}",
                            f"{name} = '{draw.choice(TEXTS).replace(chr(39), chr(39) * 2)}'",
                            f"{name} = {number}",
                            f"{name} <> {draw.choice([number, *QUOTED])}",
                            f"{name} {draw.choice(['<', '<=', '>', '>='])} {number}",
                            f"{name} BETWEEN -3 AND {number}",
                            f"{name} {draw.choice(['', 'NOT '])}IN ('a', {draw.choice(QUOTED)}, '\U0001f600')",
                            f"{name} IS {draw.choice(['', 'NOT '])}NULL",
                            f"{name} {draw.choice(['', '', 'NOT '])}LIKE '{draw.choice(BEGINNINGS)}%'"
                            if dialect == "activemq"
                            else f"{name} STARTSWITH '{draw.choice(BEGINNINGS)}'",
                            f"JMSPriority > {draw.randrange(9)}",
                        ]
                    )
                )
            text = parts[0]
            for part in parts[1:]:
                text += draw.choice([" AND ", " AND ", " OR "]) + part
        try:
            Selector(text, dialect)  # type: ignore[arg-type]
        except pyengine.InvalidSelectorError:
            continue
        return text


def texts_of(seed: int, count: int, dialect: str, depth: int) -> dict[str, str]:
    draw = Random(seed)
    return {f"k{number}": text_of(draw.randrange(2**48), dialect, depth) for number in range(count)}


@contextlib.contextmanager
def small_up_to(lines: int) -> Iterator[None]:
    before = use_few_lines(lines)
    try:
        yield
    finally:
        use_few_lines(before)


def loop(selectors: Mapping[str, Selector], message: Any, on_error: str) -> list[str] | tuple[str, str]:
    """What a loop over the selectors says; what it raises as (selector, problem)."""
    found = []
    for key, selector in selectors.items():
        try:
            if selector.matches(message):
                found.append(key)
        except pyengine.SelectorEvaluationError as error:
            if on_error == "raise":
                return selector.text, error.problem
    return found


def asked(subscriptions: Subscriptions[str], message: Any) -> list[str] | tuple[str, str]:
    try:
        return subscriptions.match(message)
    except pyengine.SelectorEvaluationError as error:
        return error.text, error.problem


def assert_any_order_has_the_same(subscriptions: Subscriptions[Any], batch: Any, expected: list[list[Any]]) -> None:
    offsets, places = subscriptions.match_places(batch, missing="null", ordered=False)
    keys = subscriptions.keys()
    assert [[keys[place] for place in sorted(places[a:b])] for a, b in itertools.pairwise(offsets)] == expected


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seeds,
    st.sampled_from([1, 20, 70, 300, 700]),
    st.integers(0, 6),
    dialects,
    st.sampled_from(["raise", "reject"]),
    st.lists(messages, min_size=1, max_size=6),
    few_lines,
)
def test_many_selectors_answer_as_the_loop(
    seed: int,
    count: int,
    depth: int,
    dialect: Dialect,
    on_error: Any,
    given_messages: list[dict[str, Any]],
    few: int,
) -> None:
    texts = texts_of(seed, count, dialect, depth)
    selectors = {key: Selector(text, dialect) for key, text in texts.items()}
    with small_up_to(few):
        subscriptions = Subscriptions(texts, dialect=dialect, on_error=on_error)
        subscriptions.optimize()
    subscriptions._check()
    for message in given_messages:
        expected = loop(selectors, message, on_error)
        assert asked(subscriptions, message) == expected
        assert asked(subscriptions, pyengine.Message(message)) == expected
    rows = [loop(selectors, message, on_error) for message in given_messages]
    if not any(isinstance(row, tuple) for row in rows):
        offsets, keys = subscriptions.match_batch(given_messages)
        assert offsets.dtype == numpy.int64
        assert [list(keys[a:b]) for a, b in itertools.pairwise(offsets)] == rows
        assert_any_order_has_the_same(subscriptions, given_messages, rows)


def shape_message(draw: Random) -> dict[str, Any]:
    """What the shapes compare with, and sometimes a value that only a program knows."""
    odd = (True, False, 2**60, numpy.float32(0.25), "\ud83d", pyengine.Char("a"), "x\ny", None)

    def value() -> Any:
        kind = draw.random()
        if kind < 0.55:
            return some_text(draw) + (some_text(draw) if draw.random() < 0.3 else "")
        return draw.choice(odd) if kind > 0.95 else round(draw.uniform(-4, 8), draw.choice((0, 3, 17)))

    return {name: value() for name in PROPERTY_NAMES if draw.random() < 0.8}


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(seeds, st.sampled_from([20, 70, 200]), dialects, st.sampled_from(["raise", "reject"]), few_lines)
def test_shapes_listed_by_value_answer_as_the_loop(
    seed: int, count: int, dialect: Dialect, on_error: Any, few: int
) -> None:
    draw = Random(seed)
    texts: dict[str, str] = {}
    while len(texts) < count:
        text = shape_of(draw, dialect)
        with contextlib.suppress(pyengine.InvalidSelectorError):
            texts[f"k{len(texts)}"] = Selector(text, dialect).text
    selectors = {key: Selector(text, dialect) for key, text in texts.items()}
    with small_up_to(few):
        subscriptions = Subscriptions(texts, dialect=dialect, on_error=on_error)
    subscriptions._check()
    for key in draw.sample(list(texts), count // 10):
        subscriptions.remove(key)
        del selectors[key]
    for _ in range(15):
        message = shape_message(draw)
        expected = loop(selectors, message, on_error)
        assert asked(subscriptions, message) == expected, message
        if isinstance(expected, list):
            assert_any_order_has_the_same(subscriptions, [message, message], [expected, expected])


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    batches(PROPERTY_NAMES),
    seeds,
    st.sampled_from([3, 40, 200]),
    dialects,
    st.sampled_from(["raise", "reject"]),
    few_lines,
)
def test_columns_answer_as_their_rows(
    batch: Batch, seed: int, count: int, dialect: Dialect, on_error: Any, few: int
) -> None:
    texts = texts_of(seed, count, dialect, 3)
    with small_up_to(few):
        subscriptions = Subscriptions(texts, dialect=dialect, on_error=on_error)
        subscriptions.optimize()
    for start in range(0, len(batch.rows), 200):
        rows, table = batch.rows[start : start + 200], batch.table.slice(start, 200)
        try:
            expected: Any = [part.tolist() for part in subscriptions.match_batch(rows)]
        except pyengine.SelectorEvaluationError as error:
            expected = (error.text, error.problem, error.row)
        if isinstance(expected, list):
            offsets, keys = subscriptions.match_batch(table, missing="null")
            assert [offsets.tolist(), keys.tolist()] == expected
            found = [keys[a:b].tolist() for a, b in itertools.pairwise(offsets)]
            assert_any_order_has_the_same(subscriptions, table, found)
            continue
        for ordered in (True, False):
            with pytest.raises(pyengine.SelectorEvaluationError) as caught:
                subscriptions.match_batch(table, missing="null", ordered=ordered)
            assert (caught.value.text, caught.value.problem, caught.value.row) == expected


def test_packed_messages_are_refused_with_what_to_give() -> None:
    with pytest.raises(TypeError, match="do not read PackedMessages, a Selector does: give the list of the messages"):
        Subscriptions({"a": "n > 1"}).match_batch(pyengine.PackedMessages([{"n": 2}]))


@settings(max_examples=60, deadline=None, stateful_step_count=30)
class SubscriptionsMachine(RuleBasedStateMachine):
    """Adding, removing, replacing, optimizing, and matching in between, beside a dictionary of selectors."""

    @initialize(
        seed=seeds,
        count=st.sampled_from([0, 3, 30, 100, 260, 260]),
        many=st.sampled_from([10, 10, 300, 20_000]),
        dialect=dialects,
        few=few_lines,
    )
    def begin(self, seed: int, count: int, many: int, dialect: Dialect, few: int) -> None:
        self.small = use_few_lines(few)
        self.draw = Random(seed)
        self.dialect = dialect
        texts = texts_of(seed, count, dialect, 3)
        self.selectors = {key: Selector(text, dialect) for key, text in texts.items()}
        self.subscriptions: Subscriptions[str] = Subscriptions(texts, dialect=dialect)
        self.subscriptions._many = many  # type: ignore[attr-defined]
        self.next = count

    def fresh(self) -> Selector:
        return Selector(text_of(self.draw.randrange(2**48), self.dialect, 3), self.dialect)

    @rule(count=st.sampled_from([1, 1, 5, 80]), one_by_one=st.booleans())
    def add(self, count: int, one_by_one: bool) -> None:
        new = {f"k{self.next + number}": self.fresh() for number in range(count)}
        self.next += count
        if one_by_one:
            for key, selector in new.items():
                self.subscriptions.add(key, selector.text)
        else:
            self.subscriptions.update(new)
        self.selectors |= new

    @precondition(lambda self: self.selectors)
    @rule(count=st.sampled_from([1, 1, 10, 150]))
    def remove(self, count: int) -> None:
        for _ in range(min(count, len(self.selectors))):
            key = self.draw.choice(list(self.selectors))
            self.subscriptions.remove(key)
            del self.selectors[key]

    @precondition(lambda self: self.selectors)
    @rule(count=st.sampled_from([1, 20]))
    def replace(self, count: int) -> None:
        for _ in range(count):
            key = self.draw.choice(list(self.selectors))
            self.selectors[key] = self.fresh()
            self.subscriptions.replace(key, self.selectors[key])

    @rule()
    def optimize(self) -> None:
        self.subscriptions.optimize()

    @rule(message=messages)
    def match(self, message: dict[str, Any]) -> None:
        expected = loop(self.selectors, message, "raise")
        assert asked(self.subscriptions, message) == expected
        if isinstance(expected, list):
            assert_any_order_has_the_same(self.subscriptions, [message], [expected])

    @rule(message=messages)
    def match_while_it_changes(self, message: dict[str, Any]) -> None:
        """What looks a property up during a match may change the subscriptions; the match does not see it."""
        expected = loop(self.selectors, message, "raise")
        machine = self

        class Changing(dict[str, Any]):
            def get(self, name: str, default: Any = None) -> Any:
                if machine.selectors and machine.draw.random() < 0.5:
                    machine.remove(1)
                return super().get(name, default)

        assert asked(self.subscriptions, Changing(message)) == expected

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "subscriptions"):
            self.subscriptions._check()
            assert self.subscriptions.keys() == list(self.selectors)
            assert len(self.subscriptions) == len(self.selectors)

    def teardown(self) -> None:
        if hasattr(self, "small"):
            use_few_lines(self.small)


TestSubscriptionsMachine = SubscriptionsMachine.TestCase


def test_numbers_at_the_borders_of_buckets() -> None:
    edges = [0, 1, -1, 2**31, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]
    reals = [0.0, -0.0, 1.0, 5e-324, 2.0**53, 2.0**53 + 2, 2.0**63, float("inf"), float("-inf"), float("nan"), 0.1]
    texts = {}
    for number in [*edges, 0.0, 0.1, 5e-324, 1e300]:
        for relation in ("=", "<", "<=", ">", ">=", "<>"):
            texts[f"{relation} {number!r}"] = f"n {relation} {number!r}"
        texts[f"between {number!r}"] = f"n BETWEEN {number!r} AND 9007199254740993"
        texts[f"both {number!r}"] = f"n = {number!r} AND t = 'x'"
    texts |= {f"t{number}": f"t = 'x' AND n = {number}" for number in range(600)}
    selectors = {key: Selector(text) for key, text in texts.items()}
    subscriptions = Subscriptions(texts)
    subscriptions._check()
    values = [*edges, *reals, numpy.float32(0.1), numpy.int8(1), True, "1", None]
    for value in values:
        for message in ({"n": value, "t": "x"}, {"n": value}):
            assert subscriptions.match(message) == loop(selectors, message, "raise"), message


def test_more_texts_than_buckets() -> None:
    texts = {
        number: f"id = 't{number % 3000}' AND kind = 'k{number % 700}' AND n > {number % 11}" for number in range(6000)
    }
    subscriptions = Subscriptions(texts)
    subscriptions._check()
    for number in (0, 1, 5, 2999, 3000, 4501):
        message = {"id": f"t{number % 3000}", "kind": f"k{number % 700}", "n": 20}
        expected = [key for key, text in texts.items() if Selector(text).matches(message)]
        assert subscriptions.match(message) == expected
        assert number in expected


def test_branches_and_beginnings() -> None:
    """What an OR or a LIKE of a beginning asks for, against texts that some selector names and texts that none does."""
    draw = Random(11)
    letters = "ab\u00e9\U0001f600"
    words = ["".join(draw.choices(letters, k=draw.randrange(12))) for _ in range(900)]
    texts = {}
    for number in range(1500):
        parts = [
            f"{draw.choice('st')} LIKE '{draw.choice(words)[: draw.randrange(11)]}%' AND n > {draw.randrange(40)}",
            f"{draw.choice('st')} NOT LIKE '{draw.choice(words)}%' AND n = {draw.randrange(40)}",
            f"t = '{draw.choice(words)}' AND n BETWEEN {draw.randrange(20)} AND {draw.randrange(40)}",
            f"s IN ('{draw.choice(words)}', 'none')",
            f"n - 1 = {draw.randrange(40)}",
        ]
        texts[number] = " OR ".join(draw.sample(parts, draw.choice((1, 2, 2, 3))))
    texts[1500] = " OR ".join(f"s = '{word}'" for word in words[:8])
    texts[1501] = " OR ".join(f"s = '{word}'" for word in words[:9])
    selectors = {key: Selector(text) for key, text in texts.items()}
    for few in (words[:50], words):
        wanted = {key: text for key, text in texts.items() if few is words or "=" not in text}
        subscriptions = Subscriptions(wanted, on_error="reject")
        subscriptions._check()
        for _ in range(60):
            word = draw.choice(words) + draw.choice(("", "", "a", "\ud83d"))
            message = {"s": word, "t": draw.choice(few), "n": draw.choice((1, 7, 25.0, None, "x"))}
            expected = loop({str(key): selectors[key] for key in wanted}, message, "reject")
            assert [str(key) for key in subscriptions.match(message)] == expected
        for key in list(wanted)[::3]:
            subscriptions.remove(key)
        subscriptions._check()
        assert subscriptions.match(message) == [int(key) for key in expected if int(key) in subscriptions]


def test_intervals_of_more_ends_than_there_are_stretches() -> None:
    """At their ends, beside them, and between; of integers, doubles, and those that doubles cannot tell apart."""
    draw = Random(7)
    ends = [-(2.0**53), -7.5, -0.0, 0.0, 0.5, 7.0, 7.5, 2.0**53, 1e300, *(draw.uniform(-99, 99) for _ in range(150))]

    def constant() -> str:
        end = draw.choice(ends)
        return draw.choice((repr(end), str(int(end) + draw.randrange(-1, 2)), str(2**53 + draw.randrange(3))))

    def interval() -> str:
        kind = draw.randrange(8)
        if kind == 0:
            return f"NOT (n BETWEEN {constant()} AND {constant()})"
        if kind == 1:
            low = draw.choice(ends)
            return f"n BETWEEN {low!r} AND {low + 0.3!r}"
        return f"n {draw.choice(('<', '<=', '>', '>=', '=', '<>'))} {constant()}"

    def text() -> str:
        other = draw.choice(("c = 'a'", "c = 'b'", f"m < {draw.uniform(0, 50)!r}", interval()))
        return draw.choice((" AND ", " AND ", " OR ")).join((interval(), other))

    texts = {number: text() for number in range(1200)}
    subscriptions: Subscriptions[int] = Subscriptions(texts)
    subscriptions.optimize()
    subscriptions._check()
    selectors = {key: Selector(text) for key, text in texts.items()}
    values: list[Any] = [2**53, 2**53 + 1, 2**60, -(2**53), math.nan, math.inf, -math.inf, "7", None, True]
    for end in draw.sample(ends, 40) + ends[:9]:
        values += [
            end,
            math.nextafter(end, math.inf),
            math.nextafter(end, -math.inf),
            int(max(-(2.0**60), min(end, 2.0**60))),
        ]
    for value in values:
        message = {"n": value, "c": draw.choice("ab"), "m": draw.choice((1, 25.0, 2**54, None))}
        assert subscriptions.match(message) == [key for key, selector in selectors.items() if selector.matches(message)]


@pytest.mark.parametrize("slots", [6, 40, 100, 200])
def test_many_slots_of_which_a_message_has_few(slots: int) -> None:
    """Lines that are refused whole, and entries that are asked one by one because little of them is required."""
    draw = Random(slots)

    def predicate(name: str) -> str:
        value = draw.randrange(40)
        return draw.choice(
            [f"{name} {end} {value}" for end in ("=", ">=", ">=", "<")]
            + [f"{name} = 't{value}'", f"{name} <> 't{value}'", f"{name} BETWEEN {value} AND {value + 20}"]
            + [f"{name} IS NULL", f"{name} IS NOT NULL"]
        )

    texts = {
        number: " AND ".join(predicate(f"d{int(slots * draw.random() ** 2)}") for _ in range(draw.randrange(1, 5)))
        for number in range(6000)
    }
    subscriptions: Subscriptions[int] = Subscriptions(texts)
    for number in draw.sample(range(6000), 300):
        subscriptions.remove(number)
        del texts[number]
    subscriptions._check()
    selectors = {key: Selector(text) for key, text in texts.items()}
    for _ in range(40):
        message = {
            f"d{draw.randrange(slots)}": draw.choice((draw.randrange(40), f"t{draw.randrange(40)}", None, 7.5))
            for _ in range(draw.choice((0, 2, slots // 3)))
        }
        assert subscriptions.match(message) == [key for key, selector in selectors.items() if selector.matches(message)]


def test_an_append_segment_of_an_index_that_no_beginning_cuts() -> None:
    """More prefixes than the append segment has room for, of a name that the first segment compares with numbers."""
    texts = {number: f"u = {number}" for number in range(300)}
    subscriptions: Subscriptions[int] = Subscriptions(texts)
    subscriptions._many = 0  # type: ignore[attr-defined]
    for number in range(300, 4700):
        subscriptions.add(number, f"u LIKE 'w{number % 50}%'")
    subscriptions._check()
    assert subscriptions.match({"u": "w7"}) == list(range(307, 4700, 50))
    assert subscriptions.match({"u": 7}) == [7]


def test_an_append_segment_beside_more_access_points_than_it_has_room() -> None:
    """Each of 30,000 strings is an access point of one subscription; the append segment has none of these places."""
    subscriptions: Subscriptions[int] = Subscriptions({number: f"c = 'v{number}'" for number in range(30_000)})
    subscriptions.add(-1, "c LIKE 'v%' AND d = 1")
    subscriptions.add(-2, "c IN ('v29999', 'v3', 'w')")
    subscriptions.add(-3, "d = 1 AND c = 'v25000'")
    assert subscriptions._sizes() == [30_000, 3]  # type: ignore[attr-defined]
    for number in range(30_000):
        added = {3: [-2], 25_000: [-1, -3], 29_999: [-2]}.get(number, [])
        assert subscriptions.match({"c": f"v{number}", "d": int(number == 25_000)}) == [number, *added]


def test_many_intervals_that_no_equality_parts() -> None:
    draw = Random(36)
    bounds = [[draw.randrange(most) for most in (1000, 300, 1000, 1000)] for _ in range(33_000)]
    subscriptions: Subscriptions[int] = Subscriptions(
        (number, f"n BETWEEN {low} AND {low + width} AND m > {least} AND o < {most}")
        for number, (low, width, least, most) in enumerate(bounds)
    )
    rows: list[dict[str, int | None]] = [
        {"n": draw.randrange(1300)}
        | {name: draw.choice((None, *(draw.randrange(1000) for _ in range(9)))) for name in "mo"}
        for _ in range(40)
    ]
    expected = []
    for row in rows:
        n, m, o = row["n"], row["m"], row["o"]
        of_row = [
            number
            for number, (low, width, least, most) in enumerate(bounds)
            if n is not None and m is not None and o is not None and low <= n <= low + width and m > least and o < most
        ]
        assert subscriptions.match(row) == of_row
        expected.append(of_row)
    offsets, places = subscriptions.match_places(pa.Table.from_pylist(rows))
    assert [places[a:b].tolist() for a, b in itertools.pairwise(offsets)] == expected
    assert_any_order_has_the_same(subscriptions, pa.Table.from_pylist(rows), expected)


def test_columns_and_dicts_in_turn_where_numbers_have_gaps() -> None:
    """A segment and an append segment, whose subscriptions were removed and replaced in between; by turns with keys."""
    draw = Random(31)

    def text() -> str:
        return f"c = 'v{draw.randrange(9)}' AND n > {draw.uniform(0, 99)!r} AND m <= {draw.uniform(0, 99)!r}"

    subscriptions: Subscriptions[str] = Subscriptions()
    subscriptions._many = 2500  # type: ignore[attr-defined]
    texts: dict[str, str] = {}
    for count in (900, 700, 700, 1):
        new = {f"k{len(texts) + number}": text() for number in range(count)}
        subscriptions.update(new)
        texts |= new
        for key in draw.sample(sorted(texts), 40):
            texts[key] = text()
            subscriptions.replace(key, texts[key])
    for key in [f"new{number}" for number in range(600)]:
        texts[key] = text()
        subscriptions.add(key, texts[key])
    for key in draw.sample(sorted(texts), 90):
        del texts[key]
        subscriptions.remove(key)
    subscriptions._check()
    assert len(subscriptions._sizes()) > 1  # type: ignore[attr-defined]
    rows = [{"c": f"v{number % 10}", "n": draw.uniform(0, 99), "m": draw.uniform(0, 99)} for number in range(200)]
    table = pa.Table.from_pylist(rows)
    selectors = {key: Selector(text) for key, text in texts.items()}
    expected = [loop(selectors, row, "raise") for row in rows]
    for _ in range(2):
        for optimized in (False, True):
            if optimized:
                subscriptions.optimize()
            offsets, keys = subscriptions.match_batch(table)
            assert [list(keys[a:b]) for a, b in itertools.pairwise(offsets)] == expected
            assert [subscriptions.match(row) for row in rows] == expected
            offsets, found = subscriptions.match_batch(rows)
            assert [list(found[a:b]) for a, b in itertools.pairwise(offsets)] == expected
            assert_any_order_has_the_same(subscriptions, table, expected)


@pytest.mark.parametrize("names", [14, 60, 127, 200])
def test_messages_that_have_few_of_many_names(names: int) -> None:
    """What subscriptions require is asked before bits are looked at; numbers, texts, integers beyond doubles."""
    draw = Random(names)

    def part() -> str:
        name, number = f"d{draw.randrange(names)}", draw.randrange(20)
        kind = draw.randrange(12)
        if kind < 8:
            return f"{name} {draw.choice(('>=', '<=', '>', '<'))} {number}"
        if kind == 8:
            return f"{name} = {draw.choice((number, number + 0.5, repr(str(number))))}"
        if kind == 9:
            return f"({name} IS NULL OR {name} > {number})"
        return draw.choice(
            (f"{name} <> {number}", f"{name} IS NULL", f"{name} LIKE '{number}%'", f"NOT ({name} > {number})")
        )

    def text() -> str:
        joined = " AND ".join(part() for _ in range(draw.choice((1, 2, 3, 3))))
        return f"{joined} OR {part()} AND {part()}" if draw.random() < 0.1 else joined

    def message() -> dict[str, Any]:
        few = draw.sample(range(names), draw.choice((1, names // 10 + 1, names // 3, names)))
        values = [20.5, 7, 7, 7, 12.0, 3, 19, draw.randrange(20)]
        odd: list[Any] = ["7", "12", 2**60, True, None, math.nan]
        return {f"d{number}": draw.choice(odd if draw.random() < 0.05 else values) for number in few}

    texts = {number: text() for number in range(2600)}
    subscriptions: Subscriptions[int] = Subscriptions(texts)
    subscriptions._many = 2000  # type: ignore[attr-defined]
    for key in draw.sample(sorted(texts), 60):
        texts[key] = text()
        subscriptions.replace(key, texts[key])
    subscriptions._check()
    selectors = {key: Selector(text) for key, text in texts.items()}
    rows = [message() for _ in range(60)]
    expected = [[key for key, selector in selectors.items() if selector.matches(row)] for row in rows]
    assert sum(map(len, expected)) > 600
    columns: list[tuple[pa.Table, list[list[int]]]] = []
    for kind, arrow in ((int, pa.int64()), (float, pa.float64())):
        few = [{name: value for name, value in row.items() if type(value) is kind} for row in rows]
        table = pa.Table.from_pylist(few, pa.schema([(f"d{number}", arrow) for number in range(names)]))
        table = pa.concat_tables([table.slice(0, 7), table.slice(7)])
        columns.append((table, [[key for key, selector in selectors.items() if selector.matches(row)] for row in few]))
    for _ in range(2):
        assert [subscriptions.match(row) for row in rows] == expected
        offsets, keys = subscriptions.match_batch(rows)
        assert [list(keys[a:b]) for a, b in itertools.pairwise(offsets)] == expected
        for table, wanted in columns:
            offsets, keys = subscriptions.match_batch(table)
            assert [list(keys[a:b]) for a, b in itertools.pairwise(offsets)] == wanted
        subscriptions.optimize()
        subscriptions._check()


def test_those_that_come_and_go_leave_nothing() -> None:
    subscriptions: Subscriptions[int] = Subscriptions({number: f"u = {number}" for number in range(300)})
    subscriptions._many = 0  # type: ignore[attr-defined]
    sizes = []
    for number in range(300, 20_000):
        subscriptions.add(number, f"u = {number % 7}")
        subscriptions.remove(number)
        sizes.append(len(subscriptions._sizes()))  # type: ignore[attr-defined]
    assert max(sizes) == 2
    assert subscriptions.match({"u": 3}) == [3]


def test_an_append_segment_that_fills() -> None:
    """More additions than an append segment holds, with strings, numbers and names that the first segment lacks."""
    draw = Random(12)

    def text() -> str:
        parts = [
            f"s = 'w{draw.randrange(300)}'",
            f"s LIKE 'w{draw.randrange(30)}%'",
            f"n BETWEEN {draw.randrange(50)} AND {draw.randrange(50, 100)}",
            f"n = {draw.randrange(90)}",
            f"t IN ('a', 'x{draw.randrange(30)}', '{'x' * 251}')",
            f"u{draw.randrange(3)} = 'a'",
            "t IS NULL",
        ]
        return draw.choice((" AND ", " AND ", " OR ")).join(draw.sample(parts, draw.choice((1, 2, 3))))

    texts = {number: text() for number in range(300)}
    subscriptions: Subscriptions[int] = Subscriptions(texts)
    subscriptions._many = 0  # type: ignore[attr-defined]
    for number in range(300, 9300):
        texts[number] = text()
        subscriptions.add(number, texts[number])
        if number % 5 == 0:
            gone = draw.choice((number, draw.randrange(number)))
            if gone in texts:
                subscriptions.remove(gone)
                del texts[gone]
        if number in (301, 4000, 9000):
            subscriptions._check()
            selectors = {str(key): Selector(text) for key, text in texts.items()}
            for _ in range(8):
                message = {"s": f"w{draw.randrange(400)}", "n": draw.choice((7, 60.5, None)), "u1": draw.choice("ab")}
                message["t"] = draw.choice((None, "a", "x7", "x" * 251, "x" * 252))
                found = [str(key) for key in subscriptions.match(message)]
                assert found == loop(selectors, message, "raise")


def test_a_branch_that_raises_hides_one_that_matches() -> None:
    texts: dict[Any, str] = {"or": "s - 1 = 2 AND s = 'x' OR t = 'y'", "and": "s = 'x' AND t = 'y' OR s - 1 = 2"}
    texts |= {number: f"t = 'y{number}'" for number in range(100)}
    raising, plain = {"s": "x", "t": "y"}, {"s": 3, "t": "y"}
    assert Subscriptions(texts, on_error="reject").match(raising) == ["and"]
    assert Subscriptions(texts, on_error="reject").match(plain) == ["or", "and"]
    with pytest.raises(pyengine.SelectorEvaluationError, match="s - 1 = 2 AND"):
        Subscriptions(texts).match(raising)


def test_a_list_among_the_values_is_asked_of_the_programs() -> None:
    texts = {number: f"a = {number} AND b = 'x'" for number in range(100)} | {"less": "a < 3", "set": "a IS NOT NULL"}
    message = pyengine.Message({"b": "x"})
    message.set_object_property("a", [1, 2])
    with pytest.raises(pyengine.SelectorEvaluationError, match="a < 3"):
        Subscriptions(texts).match(message)
    assert Subscriptions(texts, on_error="reject").match(message) == ["set"]


def test_an_xpath_and_a_function() -> None:
    texts = {"x": "XPATH '//a = 1'", "f": "REGEX('^a', s)", "s": "s = 'ab'"}
    message = pyengine.Message({"s": "ab"}, body="<a>1</a>")
    selectors = {key: Selector(text) for key, text in texts.items()}
    for more in (0, 100):
        subscriptions = Subscriptions(texts | {f"n{number}": f"n = {number}" for number in range(more)})
        assert subscriptions.match(message) == loop(selectors, message, "raise")


def test_a_part_that_nobody_comes_by_is_no_branch() -> None:
    texts = [
        f"{part} = {number} OR {rest}"
        for number in range(20)
        for part, rest in itertools.product(
            ["a", "b"], ["(XQUERY 'x' AND a IS NULL)", "(FALSE AND b IS NULL)", "(FALSE AND b = 1 OR b = 2) AND a = 1"]
        )
    ]
    selectors = {text: Selector(text) for text in texts}
    subscriptions = Subscriptions((text, text) for text in texts)
    subscriptions._check()
    for message in ({}, {"a": 1}, {"b": 1}, {"a": 1, "b": 2}, {"a": 19, "b": 1}, {"a": "x", "b": 0}):
        assert subscriptions.match(message) == loop(selectors, message, "raise")


def test_dicts_of_any_shape_are_read_by_property_or_by_name() -> None:
    class Name(str):
        pass

    draw = Random(71)
    names = [f"n{number}" for number in range(30)] + ["a_name_of_more_than_sixteen_bytes"]
    selectors = {name: Selector(f"{name} = 1 OR {name} = 'text'") for name in names}
    subscriptions = Subscriptions((name, selector.text) for name, selector in selectors.items())
    strangers = [f"s{number}" for number in range(100)]
    for _ in range(300):
        shape = draw.sample(names, draw.randrange(len(names))) + draw.sample(strangers, draw.choice([0, 2, 90]))
        if draw.random() < 0.5:
            draw.shuffle(shape)
        message: dict[Any, Any] = {
            "".join(name): draw.choice([1, 2, "text", None, 1.0, numpy.int64(1), True]) for name in shape
        }
        if draw.random() < 0.2:
            message[draw.choice([7, Name("stranger"), Name(draw.choice(names))])] = 1
        for name in draw.sample(shape, min(len(shape), draw.choice([0, 0, 3]))):
            del message[name]
        assert subscriptions.match(message) == loop(selectors, message, "raise")


def test_what_a_key_raises_is_raised() -> None:
    class Odd:
        def __hash__(self) -> int:
            return hash("price")

        def __eq__(self, other: object) -> bool:
            raise ZeroDivisionError

    subscriptions = Subscriptions({"dear": "price > 100"})
    for message in ({Odd(): 1}, {Odd(): 1, **{f"n{place}": 0 for place in range(20)}}):
        with pytest.raises(ZeroDivisionError):
            subscriptions.match(message)
        with pytest.raises(ZeroDivisionError):
            subscriptions.match_batch([message])
        assert subscriptions.match({"price": 101}) == ["dear"]


def test_keys_errors_and_copies() -> None:
    subscriptions: Subscriptions[Any] = Subscriptions({"audit": "price > 100", ("eu", 1): Selector("region = 'EU'")})
    assert subscriptions.match({"price": 101, "region": "EU"}) == ["audit", ("eu", 1)]
    with pytest.raises(ValueError, match="already"):
        subscriptions.add("audit", "TRUE")
    with pytest.raises(ValueError, match="already"):
        subscriptions.update([("x", "TRUE"), ("x", "FALSE")])
    assert "x" not in subscriptions
    with pytest.raises(ValueError, match=r"^on_error is 'ignore'; it must be one of 'raise', 'reject'$"):
        Subscriptions(on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^missing is 'skip'; it must be one of 'raise', 'null'$"):
        subscriptions.match_batch([{}], missing="skip")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="'price > 1' is no pair"):
        Subscriptions(["price > 1"])  # type: ignore[list-item]
    for call in (lambda: subscriptions.remove("nobody"), lambda: subscriptions.replace("nobody", "TRUE")):
        with pytest.raises(KeyError):
            call()
    with pytest.raises(pyengine.InvalidSelectorError):
        subscriptions.replace("audit", "price >")
    with pytest.raises(ValueError, match="dialect"):
        subscriptions.add("other", Selector("a = 'x'", "rocketmq"))
    assert subscriptions["audit"] == Selector("price > 100")
    copy = pickle.loads(pickle.dumps(subscriptions))
    assert copy.keys() == ["audit", ("eu", 1)]
    assert copy.match({"price": 101}) == ["audit"]
    subscriptions.replace("audit", "price < 5")
    assert subscriptions.match({"price": 1, "region": "EU"}) == ["audit", ("eu", 1)]
    with pytest.raises(TypeError):
        subscriptions.match(5)  # type: ignore[arg-type]
    with pytest.raises(pyengine.InvalidMessageError):
        subscriptions.match({"price": object()})


def test_a_missing_column_is_an_error_only_where_it_is_read() -> None:
    table = pa.table({"price": [1, 200]})
    subscriptions = Subscriptions({"audit": "price > 100 AND JMSPriority = 4", "eu": "region = 'EU'"})
    with pytest.raises(pyengine.MissingColumnError, match="region"):
        subscriptions.match_batch(table)
    offsets, keys = subscriptions.match_batch(table, missing="null")
    assert offsets.tolist() == [0, 0, 1]
    assert keys.tolist() == ["audit"]
    subscriptions.remove("eu")
    assert subscriptions.match_batch(table)[1].tolist() == ["audit"]
    offsets, places = subscriptions.match_places(table.slice(0, 0))
    assert offsets.tolist() == [0]
    assert places.tolist() == []


def test_threads_match_while_others_change() -> None:
    """What nobody changes is found by everybody, whatever the changers do; and each change counts."""
    steady = {f"s{n}": f"region = 'r{n % 9}' AND n > {n % 7}" for n in range(300)}
    subscriptions = Subscriptions(steady)
    for n in range(300):
        subscriptions.add(n, f"region = 'r{n % 9}'")
    asked = [{"region": f"r{n % 9}", "n": n % 8} for n in range(40)]
    table = pa.table({"region": [each["region"] for each in asked], "n": [each["n"] for each in asked]})
    wanted = [[key for key, text in steady.items() if Selector(text).matches(message)] for message in asked]
    both: list[Any] = [asked, table.to_batches()[0]]
    over = threading.Event()
    failed: list[str] = []

    def match(batch: Any) -> None:
        try:
            while not over.is_set():
                offsets, keys = subscriptions.match_batch(batch)
                for row, expected in enumerate(wanted):
                    found = [key for key in keys[offsets[row] : offsets[row + 1]] if isinstance(key, str)]
                    assert found == expected, row
        except Exception:
            failed.append(traceback.format_exc())

    def change(part: int) -> None:
        try:
            for turn in range(300):
                number = 2 * (7 * turn % 150) + part
                subscriptions.replace(number, f"n = {turn % 9} OR region = 'r{turn % 9}'")
                subscriptions.remove(number)
                subscriptions.add(number, f"region LIKE 'r%' AND n < {turn % 9}")
                if turn % 50 == 0:
                    subscriptions.optimize()
        except Exception:
            failed.append(traceback.format_exc())

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        matching = [threading.Thread(target=match, args=(batch,)) for batch in both]
        changing = [threading.Thread(target=change, args=(part,)) for part in range(2)]
        for thread in (*matching, *changing):
            thread.start()
        for thread in changing:
            thread.join()
        over.set()
        for thread in matching:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not failed, failed[0]
    subscriptions._check()  # type: ignore[attr-defined]
    assert len(subscriptions) == 600


@pytest.mark.parametrize("how", ["made", "update", "add", "replace"])
def test_an_invalid_rule_is_named_by_its_key(how: str) -> None:
    rules: dict[Any, Any] = {number: f"a = {number}" for number in range(3000)}
    bad = {("eu", 7): "price > > 3"}
    subscriptions: Subscriptions[Any] = Subscriptions(rules | {("eu", 7): "TRUE"} if how == "replace" else rules)
    calls = {
        "made": lambda: Subscriptions(rules | bad),
        "update": lambda: subscriptions.update(bad),
        "add": lambda: subscriptions.add(*next(iter(bad.items()))),
        "replace": lambda: subscriptions.replace(*next(iter(bad.items()))),
    }
    with pytest.raises(
        pyengine.InvalidSelectorError, match=r"^invalid selector of \('eu', 7\) at position 8"
    ) as raised:
        calls[how]()
    assert raised.value.key == ("eu", 7)
    again = pickle.loads(pickle.dumps(raised.value))
    assert (again.key, str(again)) == (raised.value.key, str(raised.value))
    with pytest.raises(TypeError, match=r"^the selector of 'b': .*not int"):
        Subscriptions({"b": 5})
    with pytest.raises(pyengine.InvalidSelectorError, match=r"^invalid selector at position"):
        Selector("price > > 3")
