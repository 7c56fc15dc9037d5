"""Names, wildcards, composites and the choice of a policy, against the broker's recorded answers and by property."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyengine.destinations import Destination, most_specific, parse_destination
from tests.conformance.__main__ import replay_file

RECORDED = Path(__file__).parents[1] / "conformance" / "data" / "activemq" / "misc.jsonl"
names = st.lists(st.sampled_from(["A", "B", "*", ">", "A*"]), min_size=1, max_size=4).map(".".join)


def test_the_recorded_answers() -> None:
    counts = replay_file("activemq/misc", RECORDED, 5)
    assert counts["differ"] == counts["unsupported"] == 0
    assert counts["agree"] > 280


def test_composites_keep_their_order_and_kinds() -> None:
    parts = parse_destination("topic://A , queue://B,, A?consumer.prefetchSize=5&x=")
    assert list(map(str, parts)) == ["topic://A", "queue://B"]
    assert parts[0].options == (("consumer.prefetchSize", "5"), ("x", ""))
    assert parse_destination("A", "topic") == (Destination("A", "topic"),)


@pytest.mark.parametrize("text", ["", " ", ",", " , ,", "queue://", "?consumer.exclusive=true"])
def test_empty_names_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="empty name"):
        parse_destination(text)


@given(st.lists(names, min_size=1, max_size=4, unique=True), names)
def test_the_winner_does_not_depend_on_the_order_of_declaration(patterns: list[str], name: str) -> None:
    queue = Destination(name)
    winners = {
        most_specific([Destination(each) for each in order], queue) for order in itertools.permutations(patterns)
    }
    assert len(winners) == 1
    winner = winners.pop()
    if winner is None:
        assert not any(Destination(each).matches(queue) for each in patterns)
    else:
        assert winner.matches(queue)
        assert winner.name == name or name not in patterns


@given(names, names)
def test_a_pattern_covers_itself_and_kinds_never_mix(pattern: str, name: str) -> None:
    queue = Destination(pattern)
    assert queue.matches(queue)
    assert not queue.matches(Destination(name, "topic"))
    if queue.matches(Destination(name)) and not queue.is_pattern:
        assert pattern == name
