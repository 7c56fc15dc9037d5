"""The solver's encoding against the engine: the same answer on any message of the kinds that it knows."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyengine import InvalidSelectorError, Selector
from pyengine.backlog.lint import proof
from pyengine.backlog.lint.checks import _proven
from pyengine.backlog.lint.proof import Stage

VALUES = [None, False, True, *range(-5, 6), 0.5, 1.0, 2.0, -1.5, "", "a", "b", "ab", "a%", "5", "true"]
EVERY = [{"x": x, "y": y} for x, y in product(VALUES, repeat=2)]


def leaves() -> st.SearchStrategy[str]:
    name = st.sampled_from(["x", "y"])
    number = st.sampled_from(["1", "2", "-1", "1.0", "0.5", "(-1.5)"])
    text = st.sampled_from(["'a'", "'ab'", "''", "'5'"])
    relation = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    same = st.sampled_from(["=", "<>"])
    return st.one_of(
        st.builds("{} {} {}".format, name, relation, st.one_of(name, number)),
        st.builds("{} {} {}".format, st.one_of(number, text), same, name),
        st.builds("{} {} {}".format, name, same, text),
        st.builds("{} IS {}NULL".format, name, st.sampled_from(["", "NOT "])),
        st.builds("{} {}IN ({}, 'b')".format, name, st.sampled_from(["", "NOT "]), text),
        st.builds(
            "{} {}LIKE {}".format, name, st.sampled_from(["", "NOT "]), st.sampled_from(["'a%'", "'_'", "'a$%'"])
        ),
        st.builds("{} {}LIKE 'a$%' ESCAPE '$'".format, name, st.sampled_from(["", "NOT "])),
        st.builds(
            "{} {}BETWEEN {} AND {}".format, name, st.sampled_from(["", "NOT "]), number, st.one_of(number, name)
        ),
        name,
        st.builds("-{} = {}".format, name, number),
        st.sampled_from(["TRUE", "FALSE", "NULL", "x = TRUE", "FALSE <> y"]),
    )


def accepted(text: str) -> bool:
    try:
        Selector(text)
    except InvalidSelectorError:
        return False
    return True


SELECTORS = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
        st.builds("(({}) = ({}))".format, inner, inner),
    ),
    max_leaves=5,
).filter(accepted)


def encoded(selector: str, message: dict[str, Any]) -> bool | None:
    """What the encoding says of one message."""
    question = proof._Question([selector])
    z3 = question.z3
    assert question.truths is not None
    solver = z3.Solver()
    for name, symbol in question.symbols.items():
        value = message[name]
        kind = {type(None): 0, bool: 1, int: 2, float: 3, str: 4}[type(value)]
        solver.add(symbol["kind"] == kind)
        if value is not None:
            exact = z3.Q(*value.as_integer_ratio()) if isinstance(value, float) else value
            solver.add(symbol[proof.KINDS[kind - 1]] == exact)
    found: list[bool | None] = []
    for answer, condition in ((True, question.truths[0].true), (False, question.truths[0].false)):
        solver.push()
        solver.add(condition)
        outcome = solver.check()
        assert outcome != z3.unknown
        if outcome == z3.sat:
            found.append(answer)
        solver.pop()
    assert len(found) < 2
    return found[0] if found else None


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SELECTORS, st.sampled_from(EVERY))
def test_the_encoding_answers_as_the_engine(selector: str, message: dict[str, Any]) -> None:
    assert encoded(selector, message) is Selector(selector).evaluate(message)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(SELECTORS, min_size=1, max_size=3))
def test_what_is_proven_has_no_counter_example(texts: list[str]) -> None:
    selectors = [Selector(text) for text in texts]
    whole = proof.gap(texts)
    if whole.message is not None:
        assert not any(selector.matches(whole.message) for selector in selectors)
    elif whole.proven:
        assert all(any(selector.matches(message) for selector in selectors) for message in EVERY)
    if proof.always_false(texts[0]).proven:
        assert not any(selectors[0].matches(message) for message in EVERY)


@pytest.mark.parametrize(
    ("question", "selectors", "message", "stage"),
    [
        (proof.gap, (["price > 100", "price < 50"],), {"price": 50}, Stage.USUAL),
        (proof.gap, (["price > 100", "price <= 100"],), {}, Stage.MISSING),
        (proof.gap, (["price > 100", "price <= 100", "price IS NULL"],), {"price": False}, Stage.OTHER_TYPE),
        (proof.overlap, ("region IN ('EU', 'US')", "region LIKE 'E%'"), {"region": "EU"}, Stage.USUAL),
        (proof.beyond, ("price > 100", "price > 10"), {"price": 11}, Stage.USUAL),
        (proof.always_false, ("1 <> x AND y = 'a'",), None, Stage.USUAL),
    ],
)
def test_examples_are_the_least_odd_that_exist(question: Any, selectors: Any, message: Any, stage: Stage) -> None:
    answer = question(*selectors)
    assert answer.stage is stage
    assert message is None or set(answer.message) == set(message)


@pytest.mark.parametrize(
    "answer",
    [
        proof.always_false("x = 1 AND x = 2"),
        proof.always_false("NOT x = 1"),
        proof.gap(["JMSPriority > 4", "JMSPriority < 5"]),
        proof.gap(["x = 1", "x <> 1", "x IS NULL"]),
        proof.overlap("name LIKE 'a%b'", "name LIKE 'b%'"),
        proof.beyond("price > 10", "price > 100"),
    ],
)
def test_proven(answer: proof.Answer) -> None:
    assert answer.message is None
    assert answer.proven


@pytest.mark.parametrize("selector", ["REGEX('a', x)", "x % 2 = 3", "JMSMessageID = 'a'", "x = 9007199254740993"])
def test_what_is_not_written_down_is_not_known(selector: str) -> None:
    answer = proof.always_false(selector)
    assert (answer.message, answer.proven) == (None, False)


def test_questions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the solver's steps, by length, and all of a run by time; what is left open is said."""
    holes, birds = range(4), range(5)
    nobody_alone = [" OR ".join(f"p{bird}{hole} = TRUE" for hole in holes) for bird in birds]
    shared = [f"NOT (p{one}{hole} = TRUE AND p{other}{hole} = TRUE)"
              for hole in holes for one in birds for other in range(one)]  # fmt: skip
    hard = " AND ".join([*(f"({each})" for each in nobody_alone), *shared])
    assert proof.always_false(hard).proven
    with monkeypatch.context() as patch:
        patch.setattr(proof, "STEPS", 1_000)
        assert proof.always_false(hard) == proof.Answer(None, None, proven=False)
    long = " OR ".join(f"x = {number}" for number in range(2000))
    assert len(long) > proof.LONGEST
    assert proof.always_false(long) == proof.Answer(None, None, proven=False)
    with proof.within(-1), pytest.raises(proof.OutOfTimeError) as stopped:
        proof.always_false("x = 1")
    assert stopped.value.asked == 0
    assert proof.always_false("x = 1").message == {"x": 1}
    assert _proven(lambda: iter(()), -1) == []
    (told,) = _proven(lambda: (each for each in [proof.always_false("x = 1")]), -1)  # type: ignore[misc]
    assert (told.code, told.evidence[0]) == ("not_proven", "stopped after -1 s and 0 questions to the solver")
