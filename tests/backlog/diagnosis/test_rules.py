"""Each rule speaks of a live broker or of what real software wrote down, and not of one close by."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pyengine.backlog.diagnosis.diagnose import diagnose
from pyengine.backlog.diagnosis.evidence import Evidence, read_files, read_text
from pyengine.backlog.diagnosis.incidents import flat
from pyengine.backlog.diagnosis.watch import take_dump
from tests.backlog.diagnosis.kafka_groups import PAIRS as KAFKA
from tests.backlog.diagnosis.live_groups import GROUPS, HEALTHY_GROUPS
from tests.backlog.diagnosis.live_queues import HEALTHY_QUEUES, QUEUES, behind
from tests.backlog.diagnosis.mqadmin_text import progress
from tests.backlog.diagnosis.test_kafka import LATE, consumer_log
from tests.backlog.diagnosis.test_mqadmin import CASES, LOGS, old_topic, two
from tests.backlog.rule_codes import without_a_case

DATA = Path(__file__).parents[1] / "data"
NAMES = ("client_log", "clients", "destinations", "kafka", "offsets", "streams", "threads")
ROOMS = [f"diagnosis/rules/{name}.py" for name in NAMES]


def recorded(*names: str) -> Callable[[], Evidence]:
    """Files of tests/backlog/data."""
    return lambda: read_files([DATA / name for name in names])


def dumps(*, stands: bool) -> Evidence:
    """Three looks at a consumer's thread of this process, which waits at one line or is at another each time."""
    steps = [threading.Event() for _ in range(3)]
    reached = [threading.Event() for _ in range(3)]

    def first() -> None:
        reached[0].set()
        steps[2 if stands else 0].wait(20)

    def consume() -> None:
        first()
        reached[1].set()
        steps[1].wait(20)
        reached[2].set()
        steps[2].wait(20)

    thread = threading.Thread(target=consume, name="ConsumeMessageThread_billing_1")
    thread.start()
    found = Evidence()
    for number in range(3):
        assert reached[0 if stands else number].wait(20)
        found.dumps.append(take_dump(1_000 * number))
        if not stands:
            steps[number].set()
    steps[2].set()
    steps[1].set()
    thread.join(20)
    return found


RECORDED: dict[str, tuple[Callable[[], Evidence], Callable[[], Evidence]]] = {
    "blocked_producers": (recorded("memory-1.json", "memory-2.json"), recorded("memory-1.json")),
    "offsets.consume_disabled": (
        recorded("groups-after.json", "billing-1.txt"),
        recorded("groups-before.json", "billing-1.txt"),
    ),
    "unread_queues": (recorded("topics-after.json"), recorded("topics-before.json")),
    "stuck_thread": (lambda: dumps(stands=True), lambda: dumps(stands=False)),
    "stuck_thread, of jstack": (
        recorded("jstack-1.txt", "jstack-2.txt", "jstack-3.txt"),
        recorded("jstack-1.txt", "jstack-2.txt"),
    ),
    "slow_call": (recorded(*(f"working-{n}.txt" for n in (1, 2, 3))), recorded(*["jstack-listeners.txt"] * 3)),
    "stream_behind": (recorded("spark-behind.jsonl"), recorded("spark-even.jsonl")),
    "stream_stalled": (recorded("spark-stalled.jsonl"), recorded("spark-idle.jsonl")),
    "clients.different_subscriptions, in mqadmin's words": (
        recorded("clients-mixed.txt"),
        recorded("clients-billing.txt"),
    ),
    "blocked_listener, in mqadmin's words": (recorded("clients-stuck.txt"), recorded("clients-billing.txt")),
}


def pasted(case: str) -> Callable[[], Evidence]:
    """Two of mqadmin's tables of 5.3.3, a minute apart."""

    def read() -> Evidence:
        first, last, tps = CASES[case][0]()
        return two(progress("5.3.3", first, tps), progress("5.3.3", last, tps))

    return read


def logged(case: str) -> Callable[[], Evidence]:
    """Lines of a client's or a broker's log."""
    return lambda: read_text(LOGS[case][0], "rocketmq_client.log")


PASTED: dict[str, tuple[Callable[[], Evidence], Callable[[], Evidence]]] = {
    "broker_lost_messages": (pasted("the broker lost messages"), pasted("reset")),
    "offsets.failing_listener": (pasted("the listener fails"), pasted("healthy")),
    "not_subscribed": (lambda: old_topic(consumed=False), lambda: old_topic(consumed=True)),
    "offset_illegal": (logged("an offset beyond the broker's end"), logged("an offset below the broker's beginning")),
    "client_log.retention_overtook": (
        logged("an offset below the broker's beginning"),
        logged("an offset beyond the broker's end"),
    ),
    "pull_paused": (logged("paused"), logged("paused and resumed")),
    "client_log.consume_disabled": (logged("code 16"), logged("code 24")),
    "client_log.different_subscriptions, in the broker's codes": (
        logged("code 25, again and again"),
        logged("code 25, once"),
    ),
    "client_log.different_subscriptions, when queues are dealt out": (
        logged("members of different topics"),
        logged("a topic with fewer queues than members"),
    ),
    "client_log.idle_clients, when queues are dealt out": (
        logged("a topic with fewer queues than members"),
        logged("members of one topic"),
    ),
    "rebalance_storm": (
        logged("clients that come and go"),
        logged("three clients deployed one after the other, twice"),
    ),
    "poll_too_late": (lambda: consumer_log(LATE), lambda: consumer_log("(Re-)joining group")),
    "one_queue_stuck, in commits": (logged("one queue's commits stand"), logged("all queues' commits stand")),
}
PAIRS = QUEUES | GROUPS | RECORDED | PASTED | {code: pair.evidence for code, pair in KAFKA.items()}
HEALTHY = HEALTHY_QUEUES | HEALTHY_GROUPS


@pytest.mark.parametrize("case", PAIRS)
def test_a_rule_speaks_of_its_case_and_not_of_one_close_by(case: str) -> None:
    code = case.partition(",")[0].rpartition(".")[2]
    speaks, silent = PAIRS[case]
    found = [finding for finding in flat(diagnose(speaks())) if finding.code == code]
    assert found
    for finding in found:
        assert finding.where
        assert all(finding.evidence)
        assert len(finding.advice) > 20
    assert code not in {finding.code for finding in flat(diagnose(silent()))}


def test_without_a_window_no_page_is_starved() -> None:
    assert "page_starved" not in {finding.code for finding in diagnose(behind(500, page=None))}


def test_every_rule_has_its_pair() -> None:
    assert without_a_case(ROOMS, {case.partition(",")[0] for case in PAIRS}) == set()


@pytest.mark.parametrize("site", HEALTHY)
def test_a_healthy_site_gives_no_finding(site: str) -> None:
    evidence = HEALTHY[site]()
    assert evidence.count > 3
    assert diagnose(evidence) == []
