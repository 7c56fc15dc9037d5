"""Each trap is found, and a configuration close by is clean."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyengine import Selector
from pyengine.backlog.lint.checks import lint, lint_consumer
from pyengine.topology import Topology
from tests.backlog.lint.test_spring import SPRING
from tests.backlog.lint.test_traps import CASES as BROKERS
from tests.backlog.lint.test_traps import CONSUMERS as PUSH_CONSUMERS
from tests.backlog.rule_codes import without_a_case

FLIGHTS = Path(__file__).parents[3] / "examples" / "flights" / "flights.toml"
HEAD = '[source]\npath = "x.jsonl"\ndestination = "q"\n'


def topology(*tables: str, head: str = HEAD) -> Topology:
    text = "".join(f'[[consumer]]\ndestination = "q"\n{table}\n' for table in tables)
    return Topology.from_text(head + text)


def consumer(name: str, selector: str = "", more: str = "prefetch = 10\n") -> str:
    return f'name = "{name}"\n' + (f'selector = "{selector}"\n' if selector else "") + more


def policy(settings: str, destination: str = ">") -> str:
    return HEAD + f'[[policy]]\ndestination = "{destination}"\n{settings}\n'


A, B = consumer("a"), consumer("b")
LOCAL = 'prefetch = 10\nno_local = true\nconnection = "c"\n'
GROUPED = HEAD + 'group = "customer"\n'
EVERYBODY = policy("all_consumers_exclusive_by_default = true")
# Rules that two rooms have are named with this one's.
CASES: dict[str, tuple[Topology, Topology]] = {
    "queues.always_false": (
        topology(consumer("a", "NOT x = 1"), B),
        topology(consumer("a", "NOT (x = 1)"), B),
    ),
    "queues.surprising_selector": (
        topology(consumer("a", "NOT x = 1"), B),
        topology(consumer("a", "x = 1"), B),
    ),
    "not_covered": (
        topology(consumer("a", "x > 1"), consumer("b", "x < 1")),
        topology(consumer("a", "x > 1"), consumer("b", "x <= 1"), consumer("c", "x IS NULL")),
    ),
    "not_covered, but by one that takes all": (
        topology(consumer("a", "x > 1"), consumer("b", "x < 1")),
        topology(consumer("a", "x > 1"), consumer("b", "x < 1"), consumer("c")),
    ),
    "exclusive_disjoint": (
        topology(consumer("a", "x = 1", "exclusive = true\n"), consumer("b", "x = 2")),
        topology(consumer("a", "x = 1", "exclusive = true\n"), consumer("b", "x = 1 AND y = 2")),
    ),
    "overlapping": (
        topology(consumer("a", "x > 1"), consumer("b", "x < 3")),
        topology(consumer("a", "x > 1"), consumer("b", "x < 1")),
    ),
    "local_only": (
        topology(consumer("a", more=LOCAL)),
        topology(consumer("a", more=LOCAL), B),
    ),
    "no_consumer": (
        topology(A, head=HEAD + '[[destination]]\nname = "alone"\n'),
        topology(A, head=HEAD + '[[destination]]\nname = "q"\n'),
    ),
    "never_starts": (
        topology(A, B, head=policy("consumers_before_dispatch_starts = 3")),
        topology(A, B, head=policy("consumers_before_dispatch_starts = 2")),
    ),
    "everybody_exclusive": (topology(A, B, head=EVERYBODY), topology(A, head=EVERYBODY)),
    "groups_and_selectors": (
        topology(A, consumer("b", "x = 1"), head=GROUPED),
        topology(consumer("a", "x = 1"), consumer("b", "x = 1"), head=GROUPED),
    ),
    "groups_and_selectors, without groups": (
        topology(A, consumer("b", "x = 1"), head=GROUPED),
        topology(A, consumer("b", "x = 1")),
    ),
    "default_prefetch": (
        topology(consumer("a", more=""), consumer("b", more="")),
        topology(consumer("a", more=""), B),
    ),
    "queues.prefetch_below_zero": (
        topology(A, consumer("b", more="prefetch = -1\n")),
        topology(A, consumer("b", more="prefetch = 0\n")),
    ),
    "queues.prefetch_below_zero, of a topic": (
        topology(A, head=HEAD + '[[consumer]]\nname = "t"\ndestination = "topic://t"\nprefetch = -1\n'),
        topology(A, head=HEAD + '[[consumer]]\nname = "t"\ndestination = "topic://t"\n'),
    ),
    "prefetch_below_zero, of the default entry": (
        topology(A, head=HEAD + "[default_policy]\nqueue_prefetch = -1\n"),
        topology(A, head=HEAD + "[default_policy]\nqueue_prefetch = 1\n"),
    ),
    "unused_policy": (
        topology(A, head=policy("", "elsewhere")),
        topology(A, head=policy("", "q")),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_trap_is_found_and_its_neighbour_is_not(case: str) -> None:
    code = case.partition(",")[0].rpartition(".")[2]
    trap, clean = CASES[case]
    found = [finding for finding in lint(trap) if finding.code == code]
    assert found
    assert all(finding.evidence and finding.advice for finding in found)
    assert code not in {finding.code for finding in lint(clean)}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("max_page_size = 20", "a page of them (maxPageSize 20) hides everything behind"),
        ('max_page_size = "unlimited"', "Such messages wait for ever. Add a consumer"),
    ],
)
def test_what_nobody_takes_hides_as_much_as_the_policy_s_page_holds(settings: str, words: str) -> None:
    trap = topology(consumer("a", "x > 1"), consumer("b", "x < 1"), head=policy(settings))
    (found,) = [finding for finding in lint(trap) if finding.code == "not_covered"]
    assert words in found.advice


@pytest.mark.parametrize(("more", "words"), [("", "up to 1000"), ("prefetch = 32766\n", "up to 32766")])
def test_the_largest_prefetch_of_consumers_that_share_a_queue_is_told(more: str, words: str) -> None:
    found = lint(topology(consumer("a", more=""), consumer("b", more=more)))
    assert [words in str(finding.evidence[0]) for finding in found if finding.code == "default_prefetch"] == [True]


def test_every_trap_has_its_two_cases() -> None:
    twice = ("always_false", "surprising_selector", "redeliveries_multiply")
    of_files = {f"broker.{code}" if code in twice else code for code in BROKERS}
    of_files |= {case.partition(",")[0] for case in SPRING} | {"spring.redeliveries_multiply"}
    of_files |= {f"entries.{code}" for code in BROKERS}
    rooms = [
        f"lint/rules/{name}.py" for name in ("broker", "entries", "topic_entries", "queues", "push_consumer", "spring")
    ]
    assert without_a_case(rooms, [*of_files, *PUSH_CONSUMERS, *(case.partition(",")[0] for case in CASES)]) == set()


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
