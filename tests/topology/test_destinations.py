"""Names, wildcards, composites and the choice of a policy, against the broker's recorded answers and by property."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyengine.activemq import Broker, ConnectionFactory, RedeliveryPolicy
from pyengine.destinations import (
    Destination,
    DestinationMap,
    composite_parts,
    destination_of,
    entry_pattern,
    most_specific,
    overlap,
    parse_destination,
)
from pyengine.topology.policy import RedeliveryPlugin
from tests.conformance.__main__ import replay_file

RECORDED = Path(__file__).parents[1] / "conformance" / "data" / "activemq" / "misc.jsonl"
names = st.lists(st.sampled_from(["A", "B", "*", ">", "A*"]), min_size=1, max_size=4).map(".".join)


def test_the_recorded_answers() -> None:
    counts = replay_file("activemq/misc", RECORDED, 5)
    assert counts["differ"] == counts["unsupported"] == 0
    assert counts["agree"] > 280


def test_the_parts_of_a_composite_are_walked_as_a_hash_set() -> None:
    """The orders are those of java.util.HashSet."""

    def walked(text: str) -> list[str]:
        return [str(part).removeprefix("queue://") for part in composite_parts(Destination(text))]

    assert walked("Q.1,Q.2") == walked(" Q.2, Q.1,,Q.2") == ["Q.2", "Q.1"]
    assert walked("x,Q.1") == ["Q.1", "x"]
    assert walked("A,topic://T,A") == ["topic://T", "A"]
    assert walked("A,queue://A") == walked("A") == ["A"]
    # 12 texts fit into 16 buckets, 13 need 32.
    assert walked(",".join("ponmlkjihgfe")) == list("pefghijklmno")
    assert walked(",".join("ponmlkjihgfed")) == list("defghijklmnop")


@given(names, names)
def test_overlap_is_covering_where_one_is_a_name(pattern: str, name: str) -> None:
    assert overlap(pattern, name) == overlap(name, pattern)
    if not {"*", ">"} & set(name.split(".")) and ">" not in pattern.split(".")[:-1]:
        assert overlap(pattern, name) == Destination(pattern).matches(Destination(name))


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


@pytest.mark.parametrize(
    ("patterns", "winner"),
    [
        (("A", "B"), None),
        (("A", "A,B", "B,A"), "A,B"),
        (("A.>", "A"), None),
        (("*", "A"), "*"),
        (("*,C", "B"), "*,C"),
        (("topic://A,B", "A"), None),
    ],
)
def test_a_composite_is_covered_as_a_whole(patterns: tuple[str, ...], winner: str | None) -> None:
    """As the real PolicyMap answers for a consumer of ``A,B``."""
    found = most_specific(map(entry_pattern, patterns), Destination("A,B"))
    assert (None if found is None else found.name) == winner


def test_a_rest_in_a_composite_meets_what_is_below() -> None:
    """The real PolicyMap finds A.*.1 for ``A.>,B.1``: below A, and covering the elements A, ">,B" and 1."""
    pattern, sought = Destination("A.*.1"), Destination("A.>,B.1")
    assert most_specific([pattern], sought) == DestinationMap({pattern: pattern}).get(sought) == pattern


kinds = st.sampled_from(["queue", "queue", "topic"])
entries = st.builds(Destination, names, kinds) | st.builds(
    Destination, st.lists(st.tuples(st.sampled_from(["", "", "queue://", "topic://"]), names).map("".join), min_size=2,
                          max_size=3).map(",".join), kinds,
)  # fmt: skip


@settings(max_examples=1000)
@given(st.lists(entries, max_size=12), entries)
def test_the_tree_gives_what_asking_every_pattern_gives(patterns: list[Destination], destination: Destination) -> None:
    found = DestinationMap({pattern: pattern for pattern in patterns})
    assert found.get(destination) == most_specific(dict.fromkeys(patterns), destination)


def test_the_tree_asks_few_of_many_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [*(f"A.{n}.X" for n in range(1000)), *(f"B.{n}.>" for n in range(1000)), "A.*.X", ">"]
    found = DestinationMap({Destination(name): name for name in many})
    asked = []
    matches = Destination.matches
    monkeypatch.setattr(Destination, "matches", lambda one, other: asked.append(one) or matches(one, other))
    winners = {"A.7.X": "A.7.X", "A.x.X": "A.*.X", "B.7.y": "B.7.>", "C": ">"}
    assert {name: found.get(Destination(name)) for name in winners} == winners
    assert len(asked) < 30


@given(names, names)
def test_a_pattern_covers_itself_and_kinds_never_mix(pattern: str, name: str) -> None:
    queue = Destination(pattern)
    assert queue.matches(queue)
    assert not queue.matches(Destination(name, "topic"))
    if queue.matches(Destination(name)) and not queue.is_pattern:
        assert pattern == name


@pytest.mark.parametrize(
    ("patterns", "name", "winner"),
    [
        (("A,B", "A.>"), "B", "A,B"),
        (("A,B", "B"), "B", "B"),
        (("A,B", ">"), "A,B", "A,B"),
        (("A,topic://B", "topic://>"), "topic://B", "A,topic://B"),
        (("B,C", ">"), "C,B", ">"),
    ],
)
def test_the_redelivery_policy_of_a_composite(patterns: tuple[str, ...], name: str, winner: str) -> None:
    """What RedeliveryPolicyMap of 6.3.1 answers, in the client and in the broker's plugin."""
    policies = {pattern: RedeliveryPolicy(maximum_redeliveries=place) for place, pattern in enumerate(patterns)}
    with (
        Broker() as broker,
        ConnectionFactory(broker=broker, redelivery_policies=policies).create_connection() as client,
    ):
        assert client.redelivery_policy_of(destination_of(name, "queue")) == policies[winner]
    if "," not in name:
        plugin = RedeliveryPlugin(tuple(policies.items()))
        assert plugin.policy_of(destination_of(name, "queue")) == policies[winner]
