"""Kafka's groups: every release's table is read, whatever was done to it, and its causes are the ones told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pyengine.backlog.diagnosis.diagnose import diagnose, judged_healthy, to_bring
from pyengine.backlog.diagnosis.evidence import Evidence, read_text
from pyengine.backlog.diagnosis.incidents import flat
from tests.backlog.diagnosis.kafka_groups import (
    CASES,
    GROUP,
    LATER,
    REBALANCING,
    RELEASES,
    STATE,
    Row,
    T,
    _read,
    look,
    looks,
    moved,
    rows,
)

DATA = Path(__file__).parents[1] / "data"


def codes(evidence: Evidence) -> set[str]:
    return {finding.code for finding in flat(diagnose(evidence))}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("case", CASES)
def test_the_causes_are_those_that_are_there_and_no_others(release: str, case: str) -> None:
    evidence = looks(release, CASES[case])
    assert codes(evidence) == CASES[case].codes
    assert not evidence.remarks
    assert judged_healthy(evidence) or CASES[case].codes
    assert {each.group for each in evidence.offsets} == {GROUP}


@pytest.mark.parametrize("how", ["terminal", "mail", "quoted"])
@pytest.mark.parametrize("release", RELEASES)
def test_a_table_that_was_wrapped_says_the_same(release: str, how: str) -> None:
    for case in ("one partition", "nobody", "one belongs to nobody"):
        plain, other = looks(release, CASES[case]), looks(release, CASES[case], how)
        assert other.offsets == plain.offsets
        assert other.consumer_groups == plain.consumer_groups
        assert not other.remarks


@pytest.mark.parametrize("release", RELEASES)
def test_two_looks_in_one_file_are_timed_by_the_dates_between_them(release: str) -> None:
    case = CASES["one partition"]
    text = (
        f"Tue Jun 30 10:00:01 UTC 2020\n{look(release, case.first)}\n"
        f"Tue Jun 30 10:01:01 UTC 2020\n{look(release, case.last)}"
    )
    evidence = read_text(text, "f.txt", 5)
    assert [each.time for each in evidence.offsets] == [T] * 4 + [LATER] * 4
    assert codes(evidence) == {"one_queue_stuck"}


def test_what_java_and_its_loggers_write_is_no_row_and_tells_the_time() -> None:
    log = (
        "OpenJDK 64-Bit Server VM warning: If the number of processors is expected to increase from one\n"
        "SLF4J: Class path contains multiple SLF4J bindings.\n"
        "[2020-06-30 10:00:01,123] WARN The configuration 'x' isn't a known config. (o.a.k.AdminClientConfig)\n"
    )
    evidence = read_text(
        log + look("2.8", rows()) + "\n[2020-06-30 10:00:02,001] INFO closed (o.a.k.Metrics)\n", "f", 5
    )
    assert len(evidence.offsets) == 4
    assert len({each.time for each in evidence.offsets}) == 1
    assert evidence.offsets[0].time != 5
    assert not evidence.remarks


def test_a_group_that_rebalances_is_not_one_that_stopped() -> None:
    once = look("2.8", REBALANCING, "Warning: Consumer group 'billing' is rebalancing.")
    (finding,) = diagnose(_read((once,)))
    assert (finding.code, finding.evidence[0]) == ("rebalancing", "state PreparingRebalance (0.txt)")
    assert "Look again" in finding.advice
    (finding,) = diagnose(_read((once, once)))
    assert finding.evidence[-1] == "so it was 60 s before"
    assert "max.poll.interval.ms" in finding.advice
    old = "Consumer group `billing` does not exist or is rebalancing.\n"
    assert codes(_read((old,))) == {"rebalancing"}


def test_advice_for_kafka_names_kafka_s_tools() -> None:
    for case in CASES.values():
        for finding in diagnose(looks("2.8", case)):
            assert not re.search(
                r"mqadmin|queue|broker offset|\bclient\b", " ".join((*finding.evidence, finding.advice))
            )
    (stuck,) = diagnose(looks("2.8", CASES["one partition"]))
    assert all(
        word in stuck.advice for word in ("poison", "paused", "kafka-transactions find-hanging", "read_committed")
    )
    whole = CASES["one partition"]
    one_member = [Row(each.partition, each.end, 9_000 if each.member == 2 else each.reached, each.member)
                  for each in whole.last]  # fmt: skip
    first = [Row(each.partition, (each.end or 0) - 600, 9_000 if each.member == 2 else (each.reached or 0) - 600,
                 each.member) for each in one_member]  # fmt: skip
    (stuck,) = diagnose(_read((look("2.8", first), look("2.8", one_member))))
    assert stuck.advice.startswith("All partitions of consumer-billing-2-")


def test_the_state_of_a_group_says_nothing_of_its_backlog() -> None:
    evidence = read_text(STATE.format(state="Stable", members=3), "state.txt")
    assert (evidence.consumer_groups[0].state, evidence.consumer_groups[0].members) == ("Stable", 3)
    assert not diagnose(evidence)
    assert not judged_healthy(evidence)
    assert "kafka-consumer-groups --describe" in to_bring(evidence)[0]
    assert to_bring(evidence)[1:] == [f"group {GROUP}: state Stable, 3 members"]
    empty = read_text(STATE.format(state="Empty", members=0).replace("range", "     "), "state.txt")
    assert [(each.state, each.members) for each in empty.consumer_groups] == [("Empty", 0)]


def test_share_groups_and_streams_groups() -> None:
    share = """
GROUP           TOPIC           PARTITION  LEADER-EPOCH  START-OFFSET  LAG
share-billing   orders          0          -             {start}         {lag}
"""
    evidence = _read((share.format(start=11000, lag=4000),))
    assert [(each.consumer_offset, each.lag, each.broker_offset) for each in evidence.offsets] == [(11000, 4000, None)]
    assert not diagnose(evidence)
    assert not judged_healthy(evidence)
    (stalled,) = diagnose(_read((share.format(start=11000, lag=4000), share.format(start=11000, lag=4600))))
    assert stalled.code == "stalled"
    assert stalled.evidence == ("orders/0: start offset 11000, 11000 60 s before, lag 4600",)
    assert "group.share.delivery.count.limit" in stalled.advice
    (slow,) = diagnose(_read((share.format(start=11000, lag=40000), share.format(start=11300, lag=46000))))
    assert slow.code == "slow"
    assert "beyond the number of partitions" in slow.advice
    empty = "\nShare group 'share-billing' has no active members.\n"
    assert codes(_read((empty + share.format(start=11000, lag=4000),))) == {"stopped"}
    streams = """GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LEADER-EPOCH    LOG-END-OFFSET  OFFSET-LAG
wordcount       input           0          100             -               130             30
"""
    evidence = read_text(streams, "f.txt")
    assert [(each.group, each.consumer_offset, each.lag) for each in evidence.offsets] == [("wordcount", 100, 30)]
    assert evidence.consumer_groups[0].kind == "streams"


def test_columns_that_somebody_picked_out() -> None:
    evidence = read_text("| GROUP | TOPIC | PARTITION | LAG |\n| g | t | 3 | 1,000 |\n", "f.md")
    assert [(each.group, each.queue, each.lag) for each in evidence.offsets] == [("g", 3, 1000)]


def test_a_command_that_failed_says_nothing_of_the_group() -> None:
    text = """
Error: Executing consumer group command failed due to org.apache.kafka.common.errors.TimeoutException: Timed out
java.util.concurrent.ExecutionException: org.apache.kafka.common.errors.TimeoutException: Timed out
\tat java.base/java.util.concurrent.CompletableFuture.reportGet(CompletableFuture.java:396)
"""
    evidence = read_text(text, "f.txt")
    assert not evidence.count
    assert "shows nothing of the group" in evidence.remarks[0].why


def test_tables_of_kafka_and_of_mqadmin_in_one_file() -> None:
    text = look("2.8", rows()) + (
        "\n$ mqadmin consumerProgress -n localhost:9876 -g other\n"
        "#Topic  #Broker Name  #QID  #Broker Offset  #Consumer Offset  #Diff  #LastTime\n"
        "T  broker-a  0  10  10  0  2020-06-30 10:00:00\n"
    )
    evidence = read_text(text, "f.txt", T)
    assert [each.system for each in evidence.offsets] == ["kafka"] * 4 + ["rocketmq"]
    assert not evidence.remarks


def recorded(*names: str) -> Evidence:
    """What the tools of a real 4.1.0 wrote about a real broker: looks 45 s apart."""
    found = Evidence()
    for number, name in enumerate(names):
        found.add(read_text((DATA / name).read_text("utf-8"), name, T + 45_000 * number))
    assert not found.remarks
    return found


def test_a_real_transaction_that_hangs_stops_one_partition_of_who_reads_committed() -> None:
    (finding,) = diagnose(recorded("kafka-hanging-1.txt", "kafka-hanging-2.txt"))
    assert finding.code == "one_queue_stuck"
    assert finding.evidence == (
        "3 other partitions move",
        "orders/2: current offset 178, 178 45 s before, log end offset 643, 239 before, lag 465",
    )
    assert "kafka-transactions find-hanging" in finding.advice


def test_five_real_members_of_four_partitions() -> None:
    evidence = recorded("kafka-fives.txt")  # --describe while it rebalanced, --members, --state, --describe --verbose
    assert [(each.state, each.members, each.idle) for each in evidence.consumer_groups] == [
        ("PreparingRebalance", None, None),
        ("", 5, 1),
        ("", 5, 1),
        ("Stable", 5, None),
        ("Stable", None, None),
    ]
    (finding,) = diagnose(evidence)
    assert (finding.code, finding.evidence) == ("idle_members", ("5 members, 1 of them without a partition",))
    assert judged_healthy(evidence)


def test_real_groups_without_members_and_one_that_never_was() -> None:
    found = {(finding.code, str(finding.where)) for finding in diagnose(recorded("kafka-gone.txt"))}
    assert found == {("stopped", "group billing, topic orders"), ("no_such_group", "group nope")}
    assert codes(recorded("kafka-rebalancing.txt")) == {"rebalancing"}
    assert codes(recorded("kafka-rebalancing.txt", "kafka-gone.txt")) == {"stopped", "no_such_group"}


def test_a_real_share_group_of_4_1_has_no_lag() -> None:
    evidence = recorded("kafka-share.txt")
    assert {(each.group, each.lag, each.consumer_offset) for each in evidence.offsets} == {
        ("share-billing", None, None)
    }
    assert {each.kind for each in evidence.consumer_groups if each.state} == {"share"}
    assert not judged_healthy(evidence)


def test_members_that_share_all_topics_evenly_are_no_uneven_allocation() -> None:
    """The sticky assignors spread a group's partitions, whosever topic they are of."""

    def at(seconds: int, *members: int) -> str:
        owned = [("orders", number, member) for number, member in enumerate((1, 1, 1, 2))]
        owned += [("refunds", number, member) for number, member in enumerate(members)]
        lines = [
            look("2.8", [Row(number, 900 + 40 * seconds, 5 * seconds, member)])
            .splitlines()[-1]
            .replace("orders", topic)
            for topic, number, member in owned
        ]
        return "\n".join((*look("2.8", []).splitlines(), *lines)) + "\n"

    assert "uneven_allocation" not in codes(_read((at(0, 2, 2), at(60, 2, 2))))
    assert "uneven_allocation" in codes(_read((at(0, 1, 2), at(60, 1, 2))))


def test_consumers_that_use_assign_are_no_members() -> None:
    note = "Consumer group 'billing' has no active members."
    alone = [Row(each.partition, each.end, each.reached, None) for each in rows()]
    later = [Row(each.partition, each.end, each.reached, None) for each in moved(rows())]
    evidence = _read((look("2.8", alone, note), look("2.8", later, note)))
    assert not codes(evidence)
    assert judged_healthy(evidence)


@pytest.mark.parametrize("release", ["0.10.2", "2.8"])
def test_a_date_right_below_a_table_is_no_part_of_its_last_row(release: str) -> None:
    case = CASES["one partition"]
    looks = [RELEASES[release](case.first).strip(), RELEASES[release](case.last).strip()]
    command = f"kafka-consumer-groups --describe --group {GROUP}"
    text = "".join(f"{1_593_511_200 + 60 * minute}\n$ {command}\n{look}\n" for minute, look in enumerate(looks))
    evidence = read_text(text, "f.txt", 5)
    assert {each.time for each in evidence.offsets} == {1_593_511_200_000, 1_593_511_260_000}
    assert (codes(evidence), evidence.remarks) == ({"one_queue_stuck"}, [])


LOG = (
    "2026-03-02 10:0{}:11,111 {} [kafka-coordinator-heartbeat-thread | billing] o.a.k.c.c.i.ConsumerCoordinator - "
    "[Consumer clientId=billing-1, groupId=billing] {}\n"
)
LATE = (
    "consumer poll timeout has expired. This means the time between subsequent calls to poll() was longer than the "
    "configured max.poll.interval.ms"
)


def consumer_log(*said: str) -> Evidence:
    """Lines of a consumer's log, one a minute."""
    return read_text("".join(LOG.format(minute, "WARN", words) for minute, words in enumerate(said)), "app.log", 5)


def test_the_log_of_a_consumer_says_when_poll_came_too_late() -> None:
    left = (
        "Member billing-1-x sending LeaveGroup request to coordinator b:9092 due to consumer poll timeout has expired."
    )
    (finding,) = diagnose(consumer_log(LATE, left, "(Re-)joining group", LATE))
    assert (finding.code, finding.where) == ("poll_too_late", "group billing")
    assert finding.evidence == ("2 lines of its log: poll() later than max.poll.interval.ms (app.log:4)",)
    old = (
        "2017-03-02 10:00:11 WARN ConsumerCoordinator:629 - Auto offset commit failed for group billing: Commit cannot "
        "be completed since the group has already rebalanced and assigned the partitions to another member.\n"
    )
    assert [each.where for each in diagnose(read_text(old, "app.log", 5))] == ["group billing"]


def test_what_says_nothing_of_a_group_is_named_with_what_to_bring() -> None:
    for evidence, what in (
        (consumer_log("(Re-)joining group"), "Kafka consumer log"),
        (read_text("$ kafka-consumer-groups.sh --bootstrap-server b:9092 --list\nbilling\naudit\n", "f.txt", 5),
         "kafka-consumer-groups"),
    ):  # fmt: skip
        (hint,) = to_bring(evidence)
        assert f"is {what}, which has no backlog by itself: give `kafka-consumer-groups --describe" in hint
        assert (diagnose(evidence), evidence.remarks, judged_healthy(evidence)) == ([], [], False)


def test_what_watch_prints_has_the_group_and_the_moment() -> None:
    head = "Every 60.0s: kafka-consumer-groups --bootstrap-server kb1:9092 --describe --group billing    kb1: {}\n"
    text = "".join(
        head.format(f"Tue Jun 30 10:0{minute}:01 2020") + RELEASES["0.10.2"](states)
        for minute, states in ((0, CASES["one partition"].first), (1, CASES["one partition"].last))
    )
    evidence = read_text(text, "f.txt", 5)
    assert {each.group for each in evidence.offsets} == {GROUP}
    assert codes(evidence) == {"one_queue_stuck"}
