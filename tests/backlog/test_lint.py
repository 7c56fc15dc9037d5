"""Each trap is found, and a configuration close by is clean."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyengine import Selector
from pyengine.backlog.findings import Finding
from pyengine.backlog.lint import lint, lint_consumer
from pyengine.topology import Topology

FLIGHTS = Path(__file__).parents[2] / "examples" / "flights" / "flights.toml"
HEAD = '[source]\npath = "x.jsonl"\ndestination = "q"\n'


def consumers(*tables: str, head: str = HEAD) -> list[Finding]:
    text = "".join(f'[[consumer]]\ndestination = "q"\nprefetch = 10\n{table}\n' for table in tables)
    return lint(Topology.from_text(head + text))


def consumer(name: str, selector: str = "", more: str = "") -> str:
    return f'name = "{name}"\n' + (f'selector = "{selector}"\n' if selector else "") + more


CASES = {
    "always_false": (
        [consumer("a", "NOT x = 1"), consumer("b")],
        [consumer("a", "NOT (x = 1)"), consumer("b")],
    ),
    "surprising_selector": (
        [consumer("a", "NOT x = 1"), consumer("b")],
        [consumer("a", "x = 1"), consumer("b")],
    ),
    "not_covered": (
        [consumer("a", "x > 1"), consumer("b", "x < 1")],
        [consumer("a", "x > 1"), consumer("b", "x <= 1"), consumer("c", "x IS NULL")],
    ),
    "exclusive_disjoint": (
        [consumer("a", "x = 1", "exclusive = true\n"), consumer("b", "x = 2")],
        [consumer("a", "x = 1", "exclusive = true\n"), consumer("b", "x = 1 AND y = 2")],
    ),
    "overlapping": (
        [consumer("a", "x > 1"), consumer("b", "x < 3")],
        [consumer("a", "x > 1"), consumer("b", "x < 1")],
    ),
    "local_only": (
        [consumer("a", more='no_local = true\nconnection = "c"\n')],
        [consumer("a", more='no_local = true\nconnection = "c"\n'), consumer("b")],
    ),
}


@pytest.mark.parametrize("code", CASES)
def test_a_trap_is_found_and_its_neighbour_is_not(code: str) -> None:
    trap, clean = CASES[code]
    found = [finding for finding in consumers(*trap) if finding.code == code]
    assert found
    assert all(finding.evidence and finding.advice for finding in found)
    assert code not in {finding.code for finding in consumers(*clean)}


def policies(policy: str, *tables: str) -> set[str]:
    head = HEAD + f'[[policy]]\ndestination = ">"\n{policy}\n'
    return {finding.code for finding in consumers(*tables, head=head)}


def test_traps_of_policies() -> None:
    two = (consumer("a"), consumer("b"))
    assert "never_starts" in policies("consumers_before_dispatch_starts = 3", *two)
    assert "never_starts" not in policies("consumers_before_dispatch_starts = 2", *two)
    assert "everybody_exclusive" in policies("all_consumers_exclusive_by_default = true", *two)
    assert "everybody_exclusive" not in policies("all_consumers_exclusive_by_default = true", consumer("a"))
    unused = HEAD + '[[policy]]\ndestination = "elsewhere"\n'
    assert "unused_policy" in {finding.code for finding in consumers(*two, head=unused)}
    wide = "".join(f'[[consumer]]\ndestination = "q"\nname = "{name}"\n' for name in "ab")
    assert {finding.code for finding in lint(Topology.from_text(HEAD + wide))} == {"default_prefetch"}
    lonely = HEAD + '[[destination]]\nname = "alone"\n'
    assert "no_consumer" in {finding.code for finding in consumers(*two, head=lonely)}


def test_the_example_s_own_trap_is_proven_with_a_message() -> None:
    found = {finding.code: finding for finding in lint(Topology.load(FLIGHTS)) if "LGA" in finding.where}
    assert "not_covered" in found
    assert "exclusive_disjoint" in found
    shown = found["exclusive_disjoint"].evidence[1]
    assert "{'carrier': 'AA'}" in shown
    assert Selector("carrier = 'AA'").matches({"carrier": "AA"})


def test_traps_of_a_push_consumer() -> None:
    assert lint_consumer({"consumer_group": "g"}) == []
    trapped = lint_consumer(
        {
            "consumer_group": "g",
            "consume_thread_max": 64,
            "consume_message_batch_max_size": 64,
            "pull_threshold_for_topic": 1000,
            "consume_timeout": 0,
            "max_reconsume_times": 0,
            "message_model": "BROADCASTING",
            "pull_threshold_for_queue": 5000,
        }
    )
    assert [finding.code for finding in trapped] == [
        "timeout_not_positive",
        "thread_max_unused",
        "topic_threshold_overwrites",
        "broadcasting_drops_failures",
        "batch_larger_than_pull",
        "span_before_count",
    ]
