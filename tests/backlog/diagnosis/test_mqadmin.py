"""What people paste of mqadmin and its clients' logs, of every release: the whole set of causes, nothing beside it."""

from __future__ import annotations

import io
import json
import random
import textwrap
from collections.abc import Callable, Sequence

import pytest
from rich.console import Console

from pyengine.backlog.diagnosis.diagnose import diagnose, judged_healthy, names_cut, seen_too_seldom, to_bring
from pyengine.backlog.diagnosis.evidence import Evidence, read_text
from pyengine.backlog.diagnosis.evidence.transcript import moment_of, without_margin
from pyengine.backlog.findings import Finding
from pyengine.cli import diagnose as diagnosing
from pyengine.cli.diagnose import Answer, read_from
from tests.backlog.diagnosis.mqadmin_text import (
    RELEASES,
    Queue,
    broker_consume_stats,
    cluster_list,
    consumer_connection,
    consumer_status,
    later,
    numbered,
    progress,
    shows_clients,
    stats_all,
    topic_status,
)
from tests.backlog.tools.dressing import DRESSES

NOW = 1_593_511_200_000  # 2020-06-30 10:00:00 in UTC
MINUTE = 60_000
TWO = ("10.0.0.4", "10.0.0.5")


def two(first: str, second: str, apart: int = MINUTE) -> Evidence:
    """Two files, some time apart."""
    found = read_text(first, "a.txt", NOW)
    found.add(read_text(second, "b.txt", NOW + apart))
    assert found.remarks == []
    return found


def codes(found: Evidence) -> set[str]:
    return {finding.code for finding in diagnose(found)}


def queues(count: int = 8, *, at: int = 52_000, lag: int = 4, clients: Sequence[str] = TWO, topic: str = "orders",
           last: str = "2020-06-30 10:00:00") -> list[Queue]:  # fmt: skip
    """The queues of a topic, dealt out in order."""
    return [
        Queue(at + n, at + n - lag, clients[n * len(clients) // count] if clients else "", topic, last)
        for n in range(count)
    ]


def on(seen: list[Queue], came: int, went: int, **others: int) -> list[Queue]:
    """Some time later. others: what went from q5 and its like instead."""
    return [
        each._replace(
            broker_offset=each.broker_offset + came, consumer_offset=each.consumer_offset + others.get(f"q{n}", went)
        )
        for n, each in enumerate(seen)
    ]


def stuck_at(seen: list[Queue], number: int, offset: int) -> list[Queue]:
    return [each._replace(consumer_offset=offset) if n == number else each for n, each in enumerate(seen)]


Case = Callable[[], tuple[list[Queue], list[Queue], float]]


def stuck() -> tuple[list[Queue], list[Queue], float]:
    first = stuck_at(queues(), 5, 41_000)
    return first, on(first, 600, 600, q5=0), 70.0


def failing() -> tuple[list[Queue], list[Queue], float]:
    letters = [Queue(500, 0, "", "%DLQ%billing", ""), Queue(9000, 3000, "10.0.0.4", "%RETRY%billing")]
    dead = [letters[0]._replace(broker_offset=540), letters[1]._replace(broker_offset=9900, consumer_offset=3300)]
    return [*letters, *queues()], [*dead, *on(queues(), 600, 600)], 70.0


def gone() -> tuple[list[Queue], list[Queue], float]:
    first = queues(lag=11_000, clients=())
    return first, on(first, 600, 0), 0.0


CASES: dict[str, tuple[Case, set[str], set[str]]] = {  # two sights, the causes with clients shown, and without
    "healthy": (lambda: (queues(), on(queues(), 600, 600), 80.0), set(), set()),
    "idle": (lambda: (queues(lag=0), queues(lag=0), 0.0), set(), set()),
    "offsets read at different moments": (lambda: (queues(lag=-2), on(queues(lag=-2), 600, 600), 80.0), set(), set()),
    "one queue stuck": (stuck, {"one_queue_stuck"}, {"one_queue_stuck"}),
    "nothing moves": (
        lambda: (queues(lag=900), on(queues(lag=900), 600, 0), 0.0), {"stalled"}, {"stalled"}),
    "no client": (gone, {"stopped"}, {"stalled"}),
    "two clients too few": (
        lambda: (queues(lag=9000), on(queues(lag=9000), 900, 600), 80.0), {"too_few_consumers"}, {"slow"}),
    "slow, a client for each queue": (
        lambda: (queues(2, lag=9000), on(queues(2, lag=9000), 900, 600), 20.0), {"slow"}, {"slow"}),
    "draining": (
        lambda: (queues(lag=90_000, at=200_000), on(queues(lag=90_000, at=200_000), 60, 900), 120.0),
        {"draining"}, {"draining"}),
    "reset": (lambda: (queues(lag=0), on(queues(lag=0), 600, -10_000), 80.0), {"rewound"}, {"rewound"}),
    "one queue reset": (
        lambda: (queues(), on(queues(), 600, 600, q5=-3000), 80.0), {"rewound"}, {"rewound"}),
    "the broker lost messages": (
        lambda: (queues(lag=0), queues(lag=0, at=600), 80.0), {"broker_lost_messages"}, {"broker_lost_messages"}),
    "the topic was recreated": (
        lambda: (queues(lag=0), [each._replace(broker_offset=50) for each in queues()], 0.0),
        {"ahead_of_broker"}, {"ahead_of_broker"}),
    "the listener fails": (failing, {"failing_listener"}, {"failing_listener"}),
}  # fmt: skip


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("case", CASES)
def test_each_release_s_table_has_the_same_causes(case: str, release: str) -> None:
    made, shown, hidden = CASES[case]
    first, last, tps = made()
    for asked in (True, False):
        tables = (progress(release, first, tps, asked=asked), later(progress(release, last, tps, asked=asked)))
        want = shown if shows_clients(release, asked) else hidden
        found = two(*tables)
        assert codes(found) == want, asked
        assert judged_healthy(found)
        # In one file, each with its date; in a wrong order; as a checkout leaves them: all of one moment.
        dated = f"Tue Jun 30 10:00:00 CST 2020\n{tables[0]}\n2020-06-30 10:01:00\n{tables[1]}"
        one = read_text(dated, "one.txt", 5)
        assert (codes(one), one.remarks) == (want, [])
        if case not in ("the broker lost messages", "the topic was recreated"):
            assert codes(two(tables[1], tables[0])) == want
        if numbered(release) >= (4,):
            assert codes(two(*tables, apart=0)) == want


def test_pop_groups_are_told_from_groups_that_pull() -> None:
    retry = Queue(0, 0, "127.0.0.1", "%RETRY%popg", "")
    first = [retry, *queues(4, lag=4400, clients=())]
    last = [retry, *on(first[1:], 21_000, 1400)]
    (finding,) = diagnose(two(progress("5.3.3", first, 105.6), progress("5.3.3", last, 99.7)))
    assert (finding.code, "more clients help, beyond the number of queues" in finding.advice) == (
        "too_few_consumers", True,
    )  # fmt: skip
    once = read_text(progress("5.3.3", first, 105.6), "a.txt", NOW)
    assert diagnose(once) == []
    assert not judged_healthy(once)


def test_a_column_of_clients_without_the_command_says_nothing_where_the_release_may_hide_them() -> None:
    waiting = queues(lag=5000, clients=())
    for release, want in (("4.2.0", {"stopped"}), ("4.8.0", set()), ("4.9.3", {"stopped"}), ("5.3.3", {"stopped"})):
        assert codes(read_text(progress(release, waiting, 0.0, command=False), "p.txt", NOW)) == want, release
    once = read_text(progress("4.8.0", waiting, 0.0, asked=False), "p.txt", NOW)
    assert codes(once) == set()
    (hint,) = seen_too_seldom(once)
    assert hint.startswith("group billing, topic orders: lag 40000 in 8 queues, consumed up to what was stored")
    assert "seen once, without its clients" in hint
    once.add(read_text(consumer_connection("4.8.0", [("10.0.0.4@1", "10.0.0.4:5")]), "c.txt", NOW))
    assert codes(once) == set()
    offline = "$ mqadmin consumerConnection -g billing\nCODE: 206  DESC: the consumer group[billing] not online\n"
    alone = read_text(offline, "c.txt", NOW)
    assert diagnose(alone) == []
    assert not judged_healthy(alone)
    waits = read_text(progress("4.8.0", waiting, 0.0, asked=False), "p.txt", NOW)
    waits.add(alone)
    assert codes(waits) == {"stopped"}


def test_the_list_of_clients_tells_how_many_there_are_where_the_table_does_not() -> None:
    first = queues(lag=9000)
    for count, want in ((2, "too_few_consumers"), (8, "slow")):
        found = two(*(progress("4.8.0", each, asked=False) for each in (first, on(first, 900, 600))))
        clients = [(f"10.0.0.{n}@1", f"10.0.0.{n}:5") for n in range(count)]
        found.add(read_text(consumer_connection("4.8.0", clients), "c.txt", NOW))
        assert codes(found) == {want}


def test_one_client_that_stands_still_is_named() -> None:
    first = queues(lag=5000)
    last = [each if each.client == TWO[0] else each._replace(consumer_offset=each.consumer_offset + 5600)
            for each in on(first, 600, 0)]  # fmt: skip
    (finding,) = diagnose(two(progress("5.3.3", first), progress("5.3.3", last)))
    assert finding.code == "one_queue_stuck"
    assert "All of them belong to 10.0.0.4" in finding.advice


@pytest.mark.parametrize("clients", [TWO, ("10.0.0.4@1",)])
def test_queues_of_one_broker_that_stand_while_another_s_move_share_it(clients: tuple[str, ...]) -> None:
    def of(broker: str, moved: int) -> tuple[list[Queue], list[Queue]]:
        first = [each._replace(broker=broker) for each in queues(4, lag=5000, clients=clients)]
        return first, on(first, 600, moved)

    (well, goes_on), (standing, stands) = of("broker-a", 600), of("broker-b", 0)

    def stuck_of(last: list[Queue]) -> Finding:
        found = diagnose(two(progress("5.3.3", well + standing), progress("5.3.3", last)))
        return next(each for each in found if each.code == "one_queue_stuck")

    finding = stuck_of(goes_on + stands)
    shared = "all of the standing queues are on broker broker-b, and none of its queues moves"
    assert str(finding.evidence[1]) == shared
    assert "their broker, broker-b: look at it before the clients" in finding.advice
    # One queue of it moves, or one stands elsewhere: the broker is not what they share.
    goes = [*goes_on, *stands[:3], stands[3]._replace(consumer_offset=stands[3].consumer_offset + 5)]
    for last in (goes, [*well[:1], *goes_on[1:], *stands]):
        assert shared not in map(str, stuck_of(last).evidence)


def old_topic(*, consumed: bool) -> Evidence:
    """A group with offsets in two topics, one of which is not consumed any more."""
    first = [*queues(4, topic="old", lag=9000, clients=TWO if consumed else ()), *queues(4)]
    last = [*on(first[:4], 10, 600 if consumed else 0), *on(first[4:], 600, 600)]
    return two(progress("5.3.3", first), progress("5.3.3", last))


def test_a_topic_that_the_groups_clients_do_not_consume() -> None:
    (finding,) = diagnose(old_topic(consumed=False))
    assert (finding.code, finding.where) == ("not_subscribed", "group billing, topic old")


def test_one_cause_for_all_topics_of_a_stopped_group() -> None:
    first = [*queues(4, topic="%RETRY%billing", clients=()), *queues(4, clients=(), lag=900)]
    last = on(first, 10, 0)
    (finding,) = diagnose(two(progress("4.2.0", first), progress("4.2.0", last)))
    assert (finding.code, finding.where) == ("stopped", "group billing, topic %RETRY%billing, orders")


def test_what_was_deleted_before_it_was_consumed_in_any_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    for epoch in ("", "1970-01-01 00:00:00", "1970-01-01 08:00:00", "1969-12-31 16:00:00"):
        lost = [each._replace(last=epoch) for each in queues(4, lag=9000)]
        for release in ("4.0.0", "4.2.0", "5.3.3"):
            (finding,) = [each for each in diagnose(read_text(progress(release, lost), "p.txt", NOW))
                          if each.code == "retention_overtook"]  # fmt: skip
            assert len(finding.evidence) == 4, (epoch, release)
    assert diagnose(read_text(progress("3.2.6", queues(4, lag=9000)), "p.txt", NOW)) == []


def test_topics_whose_names_are_cut_are_told_apart() -> None:
    long = "finance_settlement_daily_result_"
    seen = [*queues(2, topic=f"{long}cn", lag=0, at=5000), *queues(2, topic=f"{long}us", lag=0, at=900)]
    for release in ("4.2.0", "4.8.0", "4.9.1"):
        found = read_text(progress(release, seen), "p.txt", NOW)
        assert diagnose(found) == []
        assert {each.topic for each in found.offsets} == {f"{long}... (1)", f"{long}... (2)"}
        (hint,) = names_cut(found)
        assert f"{long} stands for 2 topics" in hint
    whole = read_text(progress("4.9.3", seen), "p.txt", NOW)
    assert {each.topic for each in whole.offsets} == {f"{long}cn", f"{long}us"}
    assert names_cut(whole) == []


@pytest.mark.parametrize("release", ["4.0.0", "4.9.1", "5.3.3"])
def test_broker_consume_stats_tells_groups_apart(release: str) -> None:
    behind = Queue(52_000, 41_000, "", "orders")
    once = read_text(broker_consume_stats(release, [("audit", Queue(52_000, 52_000)), ("billing", behind)]), "s", NOW)
    assert ([each.group for each in once.offsets], once.remarks) == (["audit", "billing"], [])
    assert diagnose(once) == []
    (hint,) = seen_too_seldom(once)
    assert hint.startswith("group billing, topic orders: lag 11000 in 1 queue")
    last = [("audit", Queue(52_600, 52_600)), ("billing", behind._replace(broker_offset=52_600))]
    once.add(read_text(broker_consume_stats(release, last), "t", NOW + MINUTE))
    assert [(each.code, each.where) for each in diagnose(once)] == [("stalled", "group billing, topic orders")]


@pytest.mark.parametrize("release", RELEASES)
def test_lists_of_clients(release: str) -> None:
    twice = ["172.17.0.1@173", "172.17.0.1@170", "172.17.0.1@170"]
    for clients, same, want in (
        (twice[:2], True, set()),
        (twice, True, {"duplicate_client_id"}),
        (twice[:2], False, {"different_subscriptions"}),
    ):
        found = read_text(consumer_status(release, clients, same=same), "s.txt", NOW)
        assert (codes(found), found.remarks, found.checks[0].group) == (want, [], "billing")
        assert not judged_healthy(found)  # it shows no backlog
        assert to_bring(found)
    pairs = [(name, f"10.2.0.1{n}:712{n}") for n, name in enumerate(twice)]
    (finding,) = diagnose(read_text(consumer_connection(release, pairs), "c.txt", NOW))
    assert (finding.code, finding.where) == ("duplicate_client_id", "group billing, client 172.17.0.1@170")
    assert finding.evidence[1] == "addresses: 10.2.0.11:7121, 10.2.0.12:7122"
    alone = read_text(consumer_connection(release, pairs[:2]), "c.txt", NOW)
    assert (diagnose(alone), alone.remarks, judged_healthy(alone)) == ([], [], False)
    assert "has no backlog by itself" in to_bring(alone)[0]
    assert f"RocketMQ client V{release.replace('.', '_')}" in read_from(alone)[0]
    apart = read_text(consumer_connection(release, pairs[:2], "BROADCASTING"), "c.txt", NOW)
    apart.add(two(progress("5.3.3", gone()[0]), progress("5.3.3", gone()[1])))
    assert diagnose(apart) == []


@pytest.mark.parametrize("release", RELEASES)
def test_what_tells_nothing_of_a_backlog_is_named_as_what_it_is(release: str) -> None:
    for text, what in (
        (topic_status(release, [(41_000, 52_000), (0, 0)]), "mqadmin topicStatus"),
        (cluster_list(release), "mqadmin clusterList"),
        ("$ mqadmin topicRoute -t orders\n{ }\n", "mqadmin topicRoute"),
    ):
        found = read_text(text, "x.txt", NOW)
        assert (diagnose(found), found.remarks) == ([], [])
        assert Answer(found, [], []).exit_code == 2
        (hint,) = to_bring(found)
        assert hint.startswith(f"x.txt is {what}, which has no backlog by itself: give `mqadmin consumerProg")
        found.add(read_text(progress(release, queues()), "p.txt", NOW))
        assert to_bring(found) == []
    assert f"RocketMQ V{release.replace('.', '_')}" in read_from(read_text(cluster_list(release), "x.txt", NOW))[0]


def test_topic_status_gives_an_offset_file_the_brokers_offsets() -> None:
    offsets = read_text('{"offsetTable":{"orders@billing":{0:41000,1:500}}}', "consumerOffset.json", NOW)
    assert (diagnose(offsets), judged_healthy(offsets)) == ([], False)
    offsets.add(read_text(topic_status("5.3.3", [(40_000, 52_000), (600, 700)]), "t.txt", NOW))
    (finding,) = diagnose(offsets)
    assert (finding.code, finding.evidence[0]) == (
        "retention_overtook", "orders/1: oldest offset 600, next to consume 500: 100 messages are lost",
    )  # fmt: skip


def test_an_offset_file_seen_twice_shows_a_reset_and_no_lag() -> None:
    table = '{"offsetTable":{"orders@billing":{0:41000,2:%s}}}'
    (finding,) = diagnose(two(table % 51_000, table % 0))
    assert finding.code == "rewound"
    assert finding.evidence == ("orders/2: consumer offset 0, 51000 before, broker offset unknown",)


@pytest.mark.parametrize("release", RELEASES)
def test_stats_all_tells_by_its_rates(release: str) -> None:
    rows = [("orders", "billing", 11_000, 20.0, 0.0), ("orders", "audit", 0, 20.0, 20.0), ("logs", "", 0, 5.0, 0.0),
            ("bills", "tax", 9_000, 20.0, 10.0), ("bills", "stock", 90, 20.0, 10.0)]  # fmt: skip
    found = read_text(stats_all(release, rows), "s.txt", NOW)
    assert found.remarks == []
    assert {(each.code, str(each.where)) for each in diagnose(found)} == {
        ("stalled", "group billing, topic orders"), ("slow", "group tax, topic bills"),
    }  # fmt: skip
    assert diagnose(read_text(stats_all(release, rows[1:3]), "s.txt", NOW)) == []


def test_groups_are_told_apart_by_the_command_in_front_of_each_table() -> None:
    for option in ("-g {}", "--groupName {}", "-g '{}'", "--groupName={}"):
        text = "".join(
            f"[rocketmq@mq1 bin]$ sh mqadmin consumerProgress -n 10.1.1.5:9876 {option.format(name)} -s true\n"
            + progress("5.3.3", queues(4, lag=lag), command=False)
            for name, lag in (("billing", 0), ("audit", 2000))
        )
        found = read_text(text, "p.txt", NOW)
        assert {each.group for each in found.offsets} == {"billing", "audit"}
        assert (diagnose(found), found.remarks) == ([], [])


@pytest.mark.parametrize("release", ["4.2.0", "5.3.3"])
def test_tables_that_a_terminal_or_a_mail_has_wrapped(release: str) -> None:
    first, last, _ = stuck()
    texts = [progress(release, first), later(progress(release, last))]
    for wide in (80, 100, 120):
        broken = ["\n".join(line[at : at + wide] for line in text.splitlines() for at in range(0, len(line) or 1, wide))
                  for text in texts]  # fmt: skip
        assert codes(two(*broken)) == {"one_queue_stuck"}, wide
        mailed = ["\n".join(piece for line in text.splitlines() for piece in textwrap.wrap(line, wide) or [""])
                  for text in texts]  # fmt: skip
        assert codes(two(*mailed)) == {"one_queue_stuck"}, wide


@pytest.mark.parametrize("release", ["4.2.0", "4.8.0", "5.3.3"])
@pytest.mark.parametrize("before", ["> ", ">> ", "> > ", " > ", "mq-1  | ", "| "])
def test_a_whole_session_in_a_mail_a_wiki_or_a_container_s_log(release: str, before: str) -> None:
    first, last, _ = stuck()
    lines = "".join(f"$ date\nTue Jun 30 10:0{minute}:00 UTC 2020\n{progress(release, table)}"
                    for minute, table in ((0, first), (2, last))).splitlines()  # fmt: skip
    if before == "| ":
        lines = [
            f"| {' | '.join(line.split())} |" if "broker-a" in line else line.replace("#", "| #") for line in lines
        ]
        rule = next(number for number, line in enumerate(lines) if "#Topic" in line) + 1
        lines.insert(rule, "|---|---|:---:|")
    else:
        lines = [before + line for line in lines]
    found = read_text("\n".join(lines), "mail.txt", NOW)
    assert (codes(found), found.remarks) == ({"one_queue_stuck"}, [])


def test_what_is_quoted_is_read_whatever_it_is() -> None:
    lines = log(ILLEGAL.format(PULL.format(90), 70, 60, 80)).splitlines()
    quoted = "As I wrote:\n" + "\n".join(f"> {line}" for line in [*lines, *lines])
    assert codes(read_text(quoted, "mail.txt", NOW)) == {"offset_illegal"}
    assert without_margin("<a\n> b\n</a>") == "<a\n> b\n</a>"
    assert without_margin("a | 1\nb | 2") == "a | 1\nb | 2"


def test_a_command_that_failed_is_named_with_its_cause() -> None:
    failed = (
        "$ sh mqadmin consumerProgress -n ns:9876 -g billing\n"
        "org.apache.rocketmq.tools.command.SubCommandException: ConsumerProgressSubCommand command failed\n"
        "\tat org.apache.rocketmq.tools.command.MQAdminStartup.main(MQAdminStartup.java:114)\n"
        "Caused by: org.apache.rocketmq.client.exception.MQClientException: CODE: 17  DESC: No topic route info\n"
        "See http://rocketmq.apache.org/docs/faq/ for further details.\n"
    )
    found = read_text(failed, "p.txt", NOW)
    (remark,) = found.remarks
    assert remark.line == 4
    cause = "org.apache.rocketmq.client.exception.MQClientException: CODE: 17  DESC: No topic route info"
    assert str(remark.why) == f"the command failed and shows nothing of the group: {cause}"
    (hint,) = to_bring(found)
    assert hint.startswith("p.txt is mqadmin consumerProgress without its table, which has no backlog")
    assert Answer(found, [], []).exit_code == 2
    assert read_text(failed + progress("5.3.3", queues()), "p.txt", NOW).remarks == []


def test_lines_of_groups_with_a_backlog_that_was_seen_once_are_not_healthy() -> None:
    head = "#Group  #Count  #Version  #Type  #Model  #TPS  #Diff Total\n"
    for tps, diff, healthy in ((0, 8, True), (220, 41, True), (0, 10_000, False), (220, 90_000, False)):
        line = f"billing  3  V5_1_4  PUSH  CLUSTERING  {tps}  {diff}\n"
        once = read_text(head + line, "g.txt", NOW)
        assert (diagnose(once), judged_healthy(once), len(seen_too_seldom(once))) == ([], healthy, not healthy)
    less = read_text(head + "billing  3  V5_1_4  PUSH  CLUSTERING  220  80000\n", "g.txt", NOW + MINUTE)
    once.add(less)
    assert (diagnose(once), judged_healthy(once), seen_too_seldom(once)) == ([], True, [])


@pytest.mark.parametrize("release", RELEASES)
def test_lines_of_topics_that_nobody_sends_to(release: str) -> None:
    found = read_text(stats_all(release, [("orders", "billing", 180_000, 0.0, 0.0)]), "s.txt", NOW)
    assert (diagnose(found), judged_healthy(found)) == ([], False)
    assert seen_too_seldom(found)[0].startswith("group billing, topic orders: 180000 wait, seen once")


def test_a_retry_topic_that_fills_is_a_listener_that_fails_not_one_that_is_slow() -> None:
    def rows(failures: float) -> Evidence:
        lines = [("%RETRY%billing", "billing", 500, failures, 0.0), ("orders", "billing", 4, 120.5, 120.5)]
        return read_text(stats_all("5.3.3", lines), "s.txt", NOW)

    assert codes(rows(20.5)) == {"failing_listener"}
    assert "failing_listener" not in codes(rows(0.5))


def test_groups_that_broadcast_are_not_judged_by_the_broker_s_offsets() -> None:
    clients = read_text(consumer_connection("5.3.3", [("10.0.0.4@1", "10.0.0.4:5112")], "BROADCASTING"), "c.txt", NOW)
    found = two(progress("5.3.3", gone()[0]), progress("5.3.3", gone()[1]))
    found.add(clients)
    assert (diagnose(found), judged_healthy(found)) == ([], False)
    assert any("broadcasting" in hint for hint in to_bring(found))


def test_a_date_counts_before_the_time_of_the_file() -> None:
    first, last, _ = stuck()
    for date in ("Tue Jun 30 {} CST 2020", "2020-06-30 {}", "[2020-06-30T{}+08:00]", "2020年 06月 30日 星期二 {} CST",
                 "Tue 30 Jun 2020 {} AM UTC", "=== 2020/06/30 {} ==="):  # fmt: skip
        texts = [f"{date.format(clock)}\n{progress('4.8.0', table)}" for clock, table in
                 (("10:00:00", first), ("10:02:00", last))]  # fmt: skip
        assert codes(two(*texts, apart=-7 * MINUTE)) == {"one_queue_stuck"}, date
        found = read_text("".join(texts), "p.txt")
        (finding,) = diagnose(found)
        assert "120 s before" in finding.evidence[1] or "2 min before" in finding.evidence[1]
    for date in ("=== 30.06.2020 {} ===", "[30.06.2020 {}] ops@mq1:~$ mqadmin consumerProgress -g billing -s true",
                 "6/30/2020 {} AM", "30/06/2020 {}", "20200630-{}", "20200630 {}"):  # fmt: skip
        shown = [f"{date.format(clock)}\n{progress('5.3.3', table, command=False)}" for clock, table in
                 (("10:00:00", first), ("10:02:00", last))]  # fmt: skip
        found = read_text("".join(shown), "p.txt")
        assert codes(found) == {"one_queue_stuck"}, date
        assert len({each.time for each in found.offsets}) == 2
    assert moment_of("05/06/2020 10:00:00") is None  # May or June
    every = "Every 60.0s: sh mqadmin consumerProgress -g billing -s true      mq1: Tue Jun 30 10:0{}:00 2020\n\n{}"
    shown = [every.format(n, progress("5.3.3", table, command=False)) for n, table in ((0, first), (1, last))]
    assert codes(read_text("".join(shown), "p.txt")) == {"one_queue_stuck"}


STAMP = "2020-07-19 10:{:02}:{:02},362 "
PULL = (
    "PullRequest [consumerGroup=billing, messageQueue=MessageQueue [topic=orders, brokerName=broker-a, queueId=2], "
    "nextOffset={}]"
)
POP = (
    "PopRequest [topic=orders, consumerGroup=billing, messageQueue=MessageQueue [topic=orders, brokerName=broker-a, "
    "queueId=-1]]"
)
ILLEGAL = (
    "WARN RocketmqClient - the pull request offset illegal, {} PullResult [pullStatus=OFFSET_ILLEGAL, "
    "nextBeginOffset={}, minOffset={}, maxOffset={}, msgFoundList=0]"
)
FAILED = "WARN RocketmqClient - execute the pull request exception"
BROKER = "org.apache.rocketmq.client.exception.MQBrokerException: CODE: {}  DESC: {}"
COMMIT = (
    "INFO RocketmqClient - [persistAll] Group: billing ClientId: 10.0.0.4@7 updateConsumeOffsetToBroker MessageQueue "
    "[topic=orders, brokerName=broker-a, queueId={}] {}"
)
DEALT = (
    "INFO RocketmqClient - rebalanced result changed. allocateMessageQueueStrategyName=AVG, group=billing, topic={}, "
    "clientId={}, mqAllSize={}, cidAllSize={}, rebalanceResultSize={}, rebalanceResultSet=[]"
)
PAUSED = "WARN RocketmqClient - consumer was paused, execute pull request later. instanceName=DEFAULT, group=billing"


def log(*lines: str, every: int = 60) -> str:
    """Lines, one a minute; an exception has no time of its own."""
    moments = [number * every for number in range(len(lines))]
    return "".join(
        f"{'' if line.startswith('org.') else STAMP.format(*divmod(at, 60))}{line}\n"
        for at, line in zip(moments, lines, strict=True)
    )


LOGS: dict[str, tuple[str, set[str]]] = {
    "flow control of 3.x": (
        log("WARN RocketmqClient - the consumer message buffer is full, so do flow control, minOffset=8812, "
            f"maxOffset=9844, size=1012, pullRequest={PULL.format(9845)}, flowControlTimes=1"), {"flow_control"}),
    "flow control of POP": (
        log("WARN RocketmqClient - the messages waiting to ack exceeds the threshold 96, so do flow control, "
            f"popRequest={POP}, flowControlTimes=1, wait count=103"), {"flow_control"}),
    "flow control of a lite pull consumer": (
        log("WARN RocketmqClient - The cached message count exceeds the threshold 1000, so do flow control, "
            "minOffset=1, maxOffset=1002, count=1001, size=1 MiB, flowControlTimes=1"), {"flow_control"}),
    "its requests": (
        log("WARN RocketmqClient - The consume request count exceeds threshold 10001, so do flow control, consume "
            "request count=1, flowControlTimes={}"), {"flow_control"}),
    "an offset beyond the broker's end": (
        log(ILLEGAL.format(PULL.format(30266), 0, 0, 30265),
            "WARN RocketmqClient - fix the pull request offset, " + PULL.format(0)), {"offset_illegal"}),
    "an offset below the broker's beginning": (
        log(ILLEGAL.format(PULL.format(100), 5000, 5000, 9000)), {"retention_overtook"}),
    "the broker's own words": (
        log("INFO PullMessageThread_11 - the request offset: 30266 over flow badly, broker max offset: 30265, "
            "consumer: /10.0.0.9:51234",
            "WARN PullMessageThread_11 - PULL_OFFSET_MOVED:correction offset. topic=orders, groupId=billing, "
            "requestOffset=30266, newOffset=0, suggestBrokerId=0", every=0), {"offset_illegal"}),
    "the broker's own words of deleted messages": (
        log("INFO PullMessageThread_11 - the request offset too small. group=billing, topic=orders, requestOffset=100, "
            "brokerMinOffset=5000, clientIp=/10.0.0.9:51234",
            "WARN PullMessageThread_11 - PULL_OFFSET_MOVED:correction offset. topic=orders, groupId=billing, "
            "requestOffset=100, newOffset=5000, suggestBrokerId=0", every=0), {"retention_overtook"}),
    "code 24": (
        log(FAILED, BROKER.format(24, "the consumer's subscription not exist")), {"different_subscriptions"}),
    "code 25, again and again": (
        log(*[FAILED, BROKER.format(25, "the consumer's subscription not latest")] * 3), {"different_subscriptions"}),
    "code 25, once": (log(FAILED, BROKER.format(25, "the consumer's subscription not latest")), set()),
    "code 16": (
        log(FAILED, BROKER.format(16, "subscription group no permission, billing")), {"consume_disabled"}),
    "paused": (log(PAUSED, PAUSED), {"pull_paused"}),
    "paused and resumed": (log(PAUSED, "INFO RocketmqClient - resume this consumer, billing"), set()),
    "one queue's commits stand": (
        log(*[COMMIT.format(queue, 41_000 + (queue != 2) * n * 600) for n in range(4) for queue in range(4)],
            every=20), {"one_queue_stuck"}),
    "all queues' commits stand": (
        log(*[COMMIT.format(queue, 41_000) for n in range(4) for queue in range(4)], every=20), set()),
    "commits that move": (
        log(*[COMMIT.format(queue, 41_000 + n) for n in range(4) for queue in range(4)], every=20), set()),
    "a commit that goes back": (log(COMMIT.format(2, 51_000), COMMIT.format(2, 0)), {"rewound"}),
    "members of different topics": (
        log(*[DEALT.format(topic, client, 8, 2, 4) for topic, client in
              (("orders", "a@1"), ("%RETRY%billing", "a@1"), ("bills", "b@1"), ("%RETRY%billing", "b@1"))]),
        {"different_subscriptions"}),
    "members of one topic": (
        log(*[DEALT.format("orders", client, 8, 2, 4) for client in ("a@1", "b@1")]), set()),
    "a topic with fewer queues than members": (
        log(DEALT.format("orders", "a@1", 8, 3, 3), DEALT.format("bills", "a@1", 2, 3, 1),
            DEALT.format("orders", "b@1", 8, 3, 3)), {"idle_clients"}),
    "clients that come and go": (
        log(*[DEALT.format("orders", "a@1", 8, 2 + number % 2, 4) for number in range(30)], every=40),
        {"rebalance_storm"}),
    "three clients deployed one after the other, twice": (
        log(*[DEALT.format("orders", "a@1", 8, 2 + number % 2, 4) for number in range(12)], every=40), set()),
    "clients restarted now and then": (
        log(*[DEALT.format("orders", "a@1", 8, 2 + number % 2, 4) for number in range(16)], every=220), set()),
    "no pull for two minutes": (
        log("ERROR RocketmqClient - [BUG]doRebalance, billing, remove unnecessary mq, MessageQueue [topic=orders, "
            "brokerName=broker-a, queueId=2], because pull is pause, so try to fixed it"), {"pull_stopped"}),
    "a lock that is not held for long": (
        log(*[f"INFO RocketmqClient - pull message later because not locked in broker, {PULL.format(7)}"] * 3),
        {"lock_not_held"}),
    "a lock that is held again": (
        log(*[f"INFO RocketmqClient - pull message later because not locked in broker, {PULL.format(7)}"] * 3,
            "INFO RocketmqClient - the message queue locked OK, Group: billing MessageQueue [topic=orders, "
            "brokerName=broker-a, queueId=2]"), set()),
    "a queue that cannot be unlocked": (
        log("WARN RocketmqClient - [WRONG]mq is consuming, so can not unlock it, MessageQueue [topic=orders, "
            "brokerName=broker-a, queueId=2]. maybe hanged for a while, 3", PAUSED,
            "INFO RocketmqClient - resume this consumer, billing"), {"unlock_failed"}),
    "a listener that throws": (
        log("WARN RocketmqClient - consumeMessage exception: java.lang.NullPointerException Group: billing Msgs: [] "
            "MQ: MessageQueue [topic=orders, brokerName=broker-a, queueId=2]",
            "WARN RocketmqClient - consumeMessage return null, Group: billing Msgs: [] MQ: MessageQueue [topic=orders, "
            "brokerName=broker-a, queueId=3]"), {"failing_listener"}),
    "a message that took too long": (
        log("INFO RocketmqClient - send expire msg back. topic=orders, msgId=0A, storeHost=/10.1.1.5:10911, queueId=2, "
            "queueOffset=41000", PAUSED, "INFO RocketmqClient - resume this consumer, billing"), {"timeout_cleaning"}),
    "nothing that tells": (
        log("INFO RocketmqClient - send heart beat to broker[broker-a 0 10.1.1.5:10911] success"), set()),
}  # fmt: skip


@pytest.mark.parametrize("case", LOGS)
def test_lines_of_a_log(case: str) -> None:
    text, want = LOGS[case]
    found = read_text(text, "rocketmq_client.log", NOW)
    assert (codes(found), found.remarks) == (want, [])
    unnamed = ("flow control of a lite pull consumer", "its requests", "code 24", "code 25, again and again")
    assert all(("billing" in finding.where) != (case in unnamed) for finding in diagnose(found))
    if not want:
        assert not judged_healthy(found)
        assert to_bring(found) or "commit" in case


@pytest.mark.parametrize(
    "dress", ["kubectl logs --prefix", "docker compose logs", "docker compose logs of all", "docker logs -t"]
)
def test_lines_of_a_log_behind_a_container_s_margin(dress: str) -> None:
    found = {case: codes(read_text(DRESSES[dress](text, NOW), "client.log", NOW)) for case, (text, _) in LOGS.items()}
    assert found == {case: want for case, (_, want) in LOGS.items()}


def test_four_sides_of_one_incident_are_one_cause() -> None:
    """A stuck queue in tables, its log's flow control with one oldest message, and the commits that stand."""
    first, last, _ = stuck()
    found = two(progress("5.3.3", first), progress("5.3.3", last))
    pull = PULL.format(52_001).replace("queueId=2", "queueId=5")
    line = (
        "WARN RocketmqClient - the queue's messages, span too long, so do flow control, minOffset=41000, "
        f"maxOffset=52000, maxSpan=11000, pullRequest={pull}, flowControlTimes={{}}"
    )
    found.add(read_text(log(line.format(1), line.format(1001)), "rocketmq_client.log", NOW))
    (finding,) = diagnose(found)
    assert (finding.code, [each.code for each in finding.consequences]) == ("one_queue_stuck", ["flow_control"])
    assert finding.as_dict()["consequences"]
    other = line.replace("queueId=5", "queueId=1")
    found.add(read_text(log(other.format(1)), "other.log", NOW))
    assert codes(found) == {"one_queue_stuck", "flow_control"}


def test_a_name_forges_no_line_and_commands_no_terminal() -> None:
    table = '{"offsetTable":{"or\\nerror   stopped  group x@bil\\u001b[8mling":{0:%s}}}'
    found = two(table % 51_000, table % 0)
    shown = io.StringIO()
    diagnosing.show(found, diagnose(found), Console(file=shown))
    assert "\x1b" not in shown.getvalue()
    assert [line.split()[0] for line in shown.getvalue().splitlines() if not line.startswith(" ")] == [
        "warning", "a.txt", "b.txt", "read:", "read:",
    ]  # fmt: skip


def test_a_diagnosis_names_what_it_read_of_when_and_of_which_release() -> None:
    first, last, _ = stuck()
    found = two(progress("4.8.0", first), progress("4.8.0", last))
    said = [str(each) for each in read_from(found)]
    assert [line.split(",")[0] for line in said] == [
        "read: a.txt: mqadmin consumerProgress", "read: b.txt: mqadmin consumerProgress",
    ]  # fmt: skip
    assert all(line.endswith("RocketMQ 4.1 - 4.9.2") for line in said)
    assert json.dumps([finding.as_dict() for finding in diagnose(found)])


@pytest.mark.parametrize("seed", range(20))
def test_healthy_clusters_of_every_release_give_no_finding(seed: int) -> None:
    rng = random.Random(seed)
    release = rng.choice(RELEASES)
    topics = [f"t{n}" for n in range(rng.randint(1, 4))]
    first, last = [], []
    for topic in topics:
        seen = queues(rng.choice((1, 4, 8)), at=rng.randint(0, 10**7) + 50, lag=rng.choice((0, 0, 3, -1)), topic=topic,
                      clients=TWO[: rng.randint(1, 2)])  # fmt: skip
        rate = rng.choice((0, 1, 600, 5000)) if seen[0].broker_offset == seen[0].consumer_offset else 600
        more = rng.randint(0, min(rate, 5))
        first += seen
        last += on(seen, rate, rate - more)
    found = two(progress(release, first), progress(release, last))
    assert diagnose(found) == []
    assert judged_healthy(found)
