"""INLIST, MAKELIST, REGEX, REPLACE and SPLIT; their regular expressions against answers recorded from Java 17."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import pytest

import pyengine
from pyengine import Char, SelectorEvaluationError
from pyengine._engine.selector.functions import call

# One line a case: pattern, subject, replacement, limit; Matcher.find, String.replaceAll and String.split of a Java 17
# virtual machine, null where it throws; ``untranslatable`` where pyengine says that it cannot answer.
RECORDED = Path(__file__).parents[2] / "conformance" / "data" / "java" / "regex.jsonl"


def answer(name: str, *arguments: object) -> Any:
    """The function's answer, or the problem it reports."""
    try:
        return call(name, arguments)
    except SelectorEvaluationError as error:
        return error


def test_regular_expressions_answer_as_java_does() -> None:
    cases = [json.loads(line) for line in RECORDED.read_text("utf-8").splitlines()]
    assert len(cases) > 700
    refused = 0
    for case in cases:
        pattern, subject = case["pattern"], case["subject"]
        given = {
            "find": answer("REGEX", pattern, subject),
            "replace": answer("REPLACE", subject, pattern, case["replacement"]),
            "split": answer("SPLIT", subject, pattern, case["limit"]),
        }
        if case.get("untranslatable"):
            assert all("cannot evaluate as Java does" in error.problem for error in given.values()), case
            refused += 1
            continue
        for question, mine in given.items():
            assert (None if isinstance(mine, SelectorEvaluationError) else mine) == case[question], (question, case)
    assert refused < len(cases) // 20


@pytest.mark.parametrize(
    ("pattern", "construct"),
    [
        ("(?iu)é", "(?iu)"),
        ("(?x) a", "(?x)"),
        ("(?U)\\w", "(?U)"),
        ("\\X", "\\X"),
        ("\\Ga", "\\G"),
        ("\\b{g}", "\\b{g}"),
        ("\\N{DIGIT ONE}", "\\N"),
        ("\\p{IsLatin}", "\\p{IsLatin}"),
        ("\\p{InGreek}", "\\p{InGreek}"),
        ("(?<=a*)b", "look-behind"),
        ("(?<=(?:a|bc)d)e", "look-behind"),
        ("(?<!(?:a|b){0}c)e", "look-behind"),
        ("(a\\1)", "\\1"),
        ("\\1(a)", "\\1"),
        ("a+{2}", "bound"),
        ("(" * 300 + "a" + ")" * 300, "nested groups"),
        ("[" * 300 + "a" + "]" * 300, "nested classes"),
    ],
)
def test_what_cannot_be_translated_is_named(pattern: str, construct: str) -> None:
    with pytest.raises(SelectorEvaluationError, match="cannot evaluate as Java does") as caught:
        call("REGEX", (pattern, "a"))
    assert construct in caught.value.problem


def test_a_selector_names_itself_in_the_error() -> None:
    selector = pyengine.Selector("REGEX('[', name)")
    with pytest.raises(SelectorEvaluationError) as caught:
        selector.matches({"name": "x"})
    assert caught.value.text == "REGEX('[', name)"
    assert "unclosed character class" in caught.value.problem


def test_inlist_tells_java_types_apart() -> None:
    numbers = [numpy.int8(1), numpy.int16(1), 1, numpy.int64(1), numpy.float32(1), 1.0, "1", Char("1"), True]
    for place, candidate in enumerate(numbers):
        found = [call("INLIST", ([element], candidate)) for element in numbers]
        assert found == [other == place for other in range(len(numbers))]


def test_inlist_fails_where_java_throws() -> None:
    assert "null" in answer("INLIST", None, 1).problem
    assert "not a list" in answer("INLIST", "abc", "a").problem
    assert "not a list" in answer("INLIST", {"a": 1}, "a").problem
    assert call("INLIST", (["a", None], "a")) is True
    assert "null" in answer("INLIST", ["a", None], "b").problem
    assert call("INLIST", (["a"], None)) is False


def test_makelist_keeps_what_it_is_given() -> None:
    made = call("MAKELIST", (numpy.int8(1), None, "a", [1]))
    assert made == [1, None, "a", [1]]
    assert type(made[0]) is numpy.int8


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("^2$", 2), True),
        (("^2$", numpy.int64(2)), True),
        (("^2\\.0$", 2.0), True),
        (("^1\\.0E10$", 1e10), True),
        (("^true$", True), True),
        (("^x$", Char("x")), True),
        (("^\\[a, 3\\]$", ["a", 3]), True),
        ((2, "123"), True),
        ((None, "a"), False),
        (("a", None), False),
    ],
)
def test_regex_reads_both_arguments_as_text(arguments: tuple[object, object], found: bool) -> None:
    assert call("REGEX", arguments) is found


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("REPLACE", (None, "a", "b"), "text is null"),
        ("REPLACE", ("a", None, "b"), "pattern is null"),
        ("REPLACE", ("a", "a", None), "replacement is null"),
        ("REPLACE", (2, "a", "b"), "text is not a string"),
        ("REPLACE", (Char("a"), "a", "b"), "text is not a string"),
        ("REPLACE", ("a", "a", 2), "replacement is not a string"),
        ("REPLACE", ("a", "a", "$"), "no group"),
        ("REPLACE", ("a", "a", "$1"), "no group 1"),
        ("REPLACE", ("a", "a", "${n}"), "no group"),
        ("REPLACE", ("a", "a", "\\"), "backslash"),
        ("SPLIT", (None, ","), "text is null"),
        ("SPLIT", ("a", ",", None), "limit is null"),
        ("SPLIT", ("a", ",", numpy.int64(2)), "limit is not an Integer"),
        ("SPLIT", ("a", ",", True), "limit is not an Integer"),
    ],
)
def test_wrong_arguments_fail_where_java_throws(name: str, arguments: tuple[object, ...], problem: str) -> None:
    assert problem in answer(name, *arguments).problem


def test_a_null_replacement_matters_only_on_a_hit() -> None:
    assert call("REPLACE", ("abc", "q", None)) == "abc"
    assert call("REPLACE", ("abc", "q", "$")) == "abc"
