"""The parser of both dialects: recorded outcomes, an independent grammar, error positions, hints, depth, length."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyengine import Message, Selector
from pyengine._engine.selector.ast import Term, TermKind, Tree
from pyengine._engine.selector.parser import parse
from pyengine._engine.selector.pitfalls import surprises
from pyengine.errors import InvalidSelectorError, SelectorEvaluationError
from tests.fuzz.fuzz_selector import run
from tests.model import selector_grammar
from tests.model.selector_text import Selectors, rocketmq_canonical, shape, text_of

DATA = Path(__file__).parents[2] / "conformance" / "data"
DIALECTS = ("activemq", "rocketmq")


def recorded(name: str) -> Iterator[dict[str, Any]]:
    with (DATA / f"{name}.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def refusal(text: str, dialect: str = "activemq") -> InvalidSelectorError:
    with pytest.raises(InvalidSelectorError) as caught:
        parse(text, dialect)
    return caught.value


def accepted(text: str, dialect: str) -> Tree | None:
    try:
        return parse(text, dialect)
    except InvalidSelectorError as error:
        refused = error
    assert 0 <= refused.position <= len(text)
    assert refused.text == text
    assert str(refused)
    return None


@pytest.mark.parametrize("name", ["activemq/selector", "activemq/selector_random"])
def test_recorded_parse_outcomes_of_activemq(name: str) -> None:
    wrong = [
        (case["id"], case["selector"])
        for case in recorded(name)
        if (accepted(case["selector"], "activemq") is None) != (case["expected"] == "ERROR-parse")
    ]
    assert wrong == []


def test_recorded_parse_outcomes_and_trees_of_rocketmq() -> None:
    wrong = []
    for case in recorded("rocketmq/sql"):
        tree = accepted(case["expression"], "rocketmq")
        got = None if tree is None else rocketmq_canonical(tree.root)
        if got != (None if "parse_error" in case else case["canonical"]):
            wrong.append((case["id"], case["expression"], got))
    assert wrong == []


def agree(text: str, dialect: str) -> None:
    tree = accepted(text, dialect)
    expected = selector_grammar.parse(text, dialect)
    assert (None if tree is None else shape(tree.root)) == expected


@pytest.mark.parametrize("dialect", DIALECTS)
@given(seed=st.integers(0, 2**48))
@settings(max_examples=120, deadline=None)
def test_same_tree_as_the_independent_grammar(dialect: str, seed: int) -> None:
    selectors = Selectors(seed, dialect)
    for _ in range(5):
        agree(selectors.any(), dialect)


TOKENS = [
    "a", "1", "'x'", "NULL", "TRUE", "NOT", "NOT", "AND", "OR", "=", "<", "IS", "IN", "BETWEEN", "LIKE", "CONTAINS",
    "('x')", "+", "-", "*", "(", ")", "REGEX(", ",", "--",
]  # fmt: skip
PHRASES = [*TOKENS, "IS NULL", "IS NOT NULL", "LIKE 'x'", "CONTAINS 'x'", "IN ('x')", "BETWEEN 1 AND 2", "< 1", "= 1"]


@pytest.mark.parametrize("dialect", DIALECTS)
@given(words=st.lists(st.sampled_from(PHRASES), max_size=7))
@settings(max_examples=300, deadline=None)
def test_same_outcome_on_any_tokens(dialect: str, words: list[str]) -> None:
    agree(" ".join(words), dialect)
    agree("a " + " ".join(words), dialect)


@pytest.mark.parametrize("text", ["b IS NULL LIKE 'x'", "b IS NULL < 1", "b LIKE 'x' + 1 = 2", "b IN ('x') * 2 = 1"])
def test_nothing_tighter_follows_a_test(text: str) -> None:
    assert "cannot stand here" in refusal(text).problem


@pytest.mark.parametrize("dialect", DIALECTS)
@given(text=st.text(alphabet="aAbx0189.eELl'\"()<>=+-*/%, \n\t_$\u00e9\ud83d\ude00nNoOtTiIsSlLuU", max_size=14))
@settings(max_examples=250, deadline=None)
def test_same_outcome_on_any_characters(dialect: str, text: str) -> None:
    agree(text, dialect)
    agree("a = " + text, dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(seed=st.integers(0, 2**48))
@settings(max_examples=120, deadline=None)
def test_brackets_everywhere_change_nothing(dialect: str, seed: int) -> None:
    tree = accepted(Selectors(seed, dialect).selector(), dialect)
    if tree is not None:
        assert shape(parse(text_of(tree.root), dialect).root) == shape(tree.root)


HINTS = [
    ('a = "x"', 4, "'text'"),
    ("a == 1", 3, "single ="),
    ("a != 1", 2, "<>"),
    ("NOT x > 1", 0, "NOT (x > 1)"),
    ("NOT x IN ('a')", 0, "NOT IN"),
    ("a && b", 2, "AND"),
    ("a || b", 2, "OR"),
    ("a = NULL", 4, "IS NULL"),
    ("a <> NULL", 5, "IS NOT NULL"),
    ("a.b = 1", 1, "letters, digits"),
    ("a.5 = 1", 1, "dot"),
    ("a = 'x", 4, "written twice"),
    ("a = New York", 8, "single quotes"),
    ("a IN (1, 2)", 6, "x = 1 OR x = 2"),
    ("a LIKE b", 7, "constant"),
    ("1 < x < 3", 0, "AND x < 3"),
    ("s > 'a'", 4, "quotes"),
    ("a =< 1", 3, ""),
    ("a=<1", 2, "<="),
    ("x = 1;", 5, "semicolon"),
    ("regex('a', s)", 0, "REGEX"),
    ("a CONTAINS 'x'", 2, "rocketmq"),
    ("x = 08", 5, "octal"),
    ("s = 'a' OR 'b'", 11, "IN ('a', 'b')"),
    ("x IS TRUE", 5, "x = TRUE"),
    ("x = \u2018a\u2019", 4, "plain single quotes"),
    ("a LIKE 'x' ESCAPE 'xx'", 18, ""),
    ("like = 1", 0, "reserved"),
    ("(a = 1", 6, "position 0"),
    ("convert_string_expressions:a == 1", 30, "single ="),
    ("", 0, ""),
]


@pytest.mark.parametrize(("text", "position", "hint"), HINTS)
def test_position_and_hint_of_the_usual_mistakes(text: str, position: int, hint: str) -> None:
    error = refusal(text)
    assert error.position == position
    assert hint in error.hint
    assert pickle.loads(pickle.dumps(error)).position == position


SURPRISES = [
    ("activemq", "NOT x = 1", 0, "NOT (x = 1)"),
    ("activemq", "1 <> missing", 0, "missing"),
    ("activemq", "3 = b", 4, "byte or short"),
    ("activemq", "1.5 = f", 6, "float"),
    ("activemq", "a = b", 0, "both missing"),
    ("activemq", "a", 0, "boolean"),
    ("activemq", "s < t", 0, "ordered as texts"),
    ("activemq", "s LIKE 'x*'", 0, "*"),
    ("activemq", "JMSPriority IN ('3')", 0, "never"),
    ("activemq", "s - 'a' = 1", 4, "arithmetic"),
    ("activemq", "convert_string_expressions:TRUE = a", 27, "raises"),
    ("activemq", "order-id = 'x'", 0, "order-id is a subtraction"),
    ("activemq", "f = 1 AND (a-b-c LIKE 'x')", 11, "a-b-c is a subtraction"),
    ("activemq", "a - b = 'x'", 0, "never equals 'x'"),
    ("activemq", "TRUE = a * 2", 7, "never equals TRUE"),
    ("activemq", "a - b LIKE 'x'", 0, "LIKE knows only texts"),
    ("activemq", "JMSPriority = '9'", 0, "a number and never equals '9'"),
    ("activemq", "'it''s' = JMSXGroupSeq", 0, "a number and never equals 'it''s'"),
    ("activemq", "JMSExpiration <> '0'", 0, "holds whatever"),
    ("activemq", "JMSPriority > 9", 0, "0 to 9: never"),
    ("activemq", "JMSPriority <> 4.5", 0, "0 to 9, so"),
    ("activemq", "JMSPriority BETWEEN 10 AND 20", 0, "0 to 9: never"),
    ("activemq", "JMSPriority LIKE '4'", 0, "never"),
    ("activemq", "JMSPriority NOT LIKE '4'", 0, "is true of"),
    ("activemq", "JMSDeliveryMode = 2", 0, "'NON_PERSISTENT' and never equals 2"),
    ("activemq", "JMSDeliveryMode <> 1", 0, "'NON_PERSISTENT', so <> 1"),
    ("activemq", "JMSDeliveryMode = 'persistent'", 0, "never equals 'persistent'"),
    ("activemq", "JMSDeliveryMode <> 'Persistent'", 0, "holds whatever"),
    ("activemq", "JMSDeliveryMode IN ('1', '2')", 0, "never equals '1'"),
    ("activemq", "JMSDeliveryMode > 1", 0, "no order with 1"),
    ("activemq", "JMSDeliveryMode BETWEEN 1 AND 2", 0, "no order with 1"),
    ("activemq", "JMSRedelivered = 'true'", 0, "never equals 'true'"),
    ("activemq", "JMSRedelivered = -1", 0, "never equals -1"),
    ("activemq", "JMSRedelivered IN ('true')", 0, "never"),
    ("activemq", "JMSRedelivered LIKE 't%'", 0, "never"),
    ("activemq", "JMSRedelivered NOT LIKE 't%'", 0, "is true of"),
    ("activemq", "JMSRedelivered > 0", 0, "no order with 0"),
    ("activemq", "JMSXDeliveryCount < 1", 0, "never"),
    ("activemq", "0 >= JMSXDeliveryCount", 0, "never"),
    ("activemq", "JMSType = TRUE", 0, "a text and never equals TRUE"),
    ("activemq", "JMSCorrelationID <> 7", 0, "a text, so <> 7"),
    ("activemq", "JMSXGroupID >= 7", 0, "a text and has no order"),
    ("activemq", "JMSTimestamp > 1700000000", 0, "looks like seconds"),
    ("activemq", "JMSExpiration BETWEEN 1700000000 AND 1700000060", 0, "looks like seconds"),
    ("activemq", "JMSMessageID = '1'", 0, "begins with ID:"),
    ("activemq", "JMSDestination IN ('queue://A', 'B')", 0, "'B' does"),
    ("activemq", "JMSReplyTo LIKE 'orders.%'", 0, "'orders.%' does not"),
    ("activemq", "JMSCorrelationId = 'a'", 0, "write JMSCorrelationID"),
    ("activemq", "JMSXAppID = 'a'", 0, "does not set JMSXAppID"),
    ("activemq", "id = 0123", 5, "0123 is octal and means 83"),
    ("activemq", "id IN ('a') OR n < -010", 20, "010 is octal and means 8;"),
    ("rocketmq", "a LIKE 'x%'", 2, "ignored"),
    ("rocketmq", "a = 05", 5, "ignored"),
    ("rocketmq", "TRUE = a", 0, "raises"),
    ("rocketmq", "p BETWEEN 10 AND 99.9", 10, "integer"),
]


@pytest.mark.parametrize(("dialect", "text", "position", "words"), SURPRISES)
def test_surprises(dialect: str, text: str, position: int, words: str) -> None:
    assert any(at == position and words in advice for at, advice in surprises(parse(text, dialect)))


def test_plain_selectors_hold_no_surprise() -> None:
    assert surprises(parse("color = 'blue' AND weight > 2500 AND NOT (status = 'cancelled')", "activemq")) == []
    for text in (
        "JMSPriority >= 0 AND JMSPriority = 4.0 AND JMSPriority BETWEEN 4 AND 20",
        "JMSDeliveryMode = 'PERSISTENT' OR JMSDeliveryMode IN ('NON_PERSISTENT')",
        "JMSRedelivered = TRUE AND JMSXDeliveryCount >= 1 AND JMSXGroupSeq = 1",
        "JMSTimestamp > 1700000000000 AND JMSExpiration = 0",
        "JMSDestination LIKE '%orders' AND JMSDestination LIKE 'q_eue://%' AND JMSDestination LIKE 'to%'",
        "JMSDestination = 'A,B' OR JMSDestination = 'temp-queue://ID:1' OR JMSMessageID LIKE 'ID:%'",
        "JMSType = '5' AND JMSCorrelationID = '010' AND JMSXUserID = 'me' AND jmstype2 = 'x'",
        "total - paid > 0 AND a -b = 1 AND a = 0 AND b = 007 AND c = 0x10 AND d = 0.5 AND e = 10",
        "convert_string_expressions:JMSPriority = '9' AND JMSType = 5 AND JMSRedelivered = 'true'",
    ):
        assert surprises(parse(text, "activemq")) == [], text
    assert surprises(parse("color = 'blue' AND price BETWEEN 1.0 AND 2.5", "rocketmq")) == []


NEVER = [(text, at, advice) for dialect, text, at, advice in SURPRISES if dialect == "activemq" and "never" in advice]


@pytest.mark.parametrize(("text", "at", "words"), NEVER)
def test_a_selector_that_is_said_to_match_never_matches_no_message(text: str, at: int, words: str) -> None:
    selector, texts = Selector(text), ("PERSISTENT", "true", "2", "7", "9", "1")
    for number in range(10):
        word = texts[number % 6]
        message = Message(
            {"a": number, "b": word, "id": number},
            priority=number,
            delivery_mode="PERSISTENT" if number % 2 else "NON_PERSISTENT",
            redelivery_counter=number % 3,
            type=word,
            correlation_id=word,
            group_id=word,
            group_sequence=number - 5,
            message_id=f"ID:{word}",
            destination=("B", "topic://B", "orders.B", "queue://A")[number % 4],
            reply_to=f"orders.{number}",
        )
        with suppress(SelectorEvaluationError):
            assert not selector.matches(message)


def test_terms_know_their_place_and_trees_pickle() -> None:
    tree = parse("  a = 1 AND NOT (b IS NULL)", "activemq")
    assert [term.position for term in tree.root.terms] == [2, 12]
    assert TermKind(tree.root.kind) == TermKind.AND
    assert shape(pickle.loads(pickle.dumps(tree)).root) == shape(tree.root)
    with pytest.raises(TypeError, match="pickle the Tree"):
        pickle.dumps(tree.root)
    with pytest.raises(TypeError):
        Term()


def test_where_the_ignored_rest_starts() -> None:
    assert parse("a = 5 b = 6 #", "rocketmq").end == 6
    assert parse("a = 5 /* c */ ", "rocketmq").end == 14


def test_only_known_dialects() -> None:
    with pytest.raises(ValueError, match="activemq"):
        parse("a", "kafka")
    with pytest.raises(TypeError):
        parse(None, "activemq")  # type: ignore[arg-type]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_depth_limits(dialect: str) -> None:
    assert parse("(" * 1000 + "a" + ")" * 1000, dialect).root.height == 2
    assert "1000" in refusal("(" * 1001 + "a" + ")" * 1001, dialect).problem
    assert parse("NOT " * 498 + "a", dialect).root.height == 500
    assert "500" in refusal("NOT " * 499 + "a", dialect).problem
    assert parse(" = ".join(["a"] * 500), dialect).root.height == 500
    assert "500" in refusal(" = ".join(["a"] * 501), dialect).problem
    assert "500" in refusal(" <> ".join(["a"] * 251), dialect).problem


def test_depth_is_harmless_on_a_small_stack() -> None:
    outcome: list[object] = []

    def work() -> None:
        for text in ("(" * 1000 + "a" + ")" * 1000, "-" * 498 + "a = 1", "+".join("a" * 499) + " = 1", "-" * 100_000):
            outcome.append(accepted(text, "activemq") is not None)

    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert outcome == [True, True, True, False]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_long_flat_selectors(dialect: str) -> None:
    tree = parse(" OR ".join(f"a = {i}" for i in range(1, 100_001)), dialect)
    assert len(tree.root.terms) == 100_000
    assert tree.root.height == 3
    members = parse("a IN (" + ",".join(f"'{i}'" for i in range(100_000)) + ")", dialect)
    assert len(members.root.value) == 100_000  # type: ignore[arg-type]


def test_integers_of_any_length() -> None:
    assert parse("a = " + "0" * 100_000 + "1", "activemq").root.terms[1].value == 1
    assert refusal("a = " + "7" * 5000).position == 4
    assert parse("a = 1" + "0" * 5000 + ".0", "activemq").root.terms[1].value == float("inf")


def test_a_short_run_of_the_fuzzer() -> None:
    counts = run(inputs=10_000, seed=20_240_601)
    assert counts["accepted"] > 2_000
    assert counts["refused"] > 2_000
