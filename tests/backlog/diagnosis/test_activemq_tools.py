"""What people have of an ActiveMQ broker without Jolokia: its web console, activemq-admin, its log. The files are those
of a real 5.18.3."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyengine.backlog.diagnosis.diagnose import diagnose, judged_healthy, seen_too_seldom, to_bring
from pyengine.backlog.diagnosis.evidence import Evidence, read_text
from pyengine.backlog.findings import Finding

DATA = Path(__file__).parents[1] / "data"
T, LATER = 1_795_751_350_000, 1_795_751_410_000


def recorded(name: str) -> str:
    return (DATA / name).read_text("utf-8")


def found(*texts: str) -> list[Finding]:
    evidence = Evidence()
    for number, text in enumerate(texts):
        evidence.add(read_text(text, f"{number}.txt", T + 60_000 * number))
    return diagnose(evidence)


def codes(*texts: str) -> list[tuple[str, str]]:
    return [(each.code, str(each.where)) for each in found(*texts)]


def test_a_page_of_queues_is_read_as_jolokia_is() -> None:
    page = recorded("activemq-queues.xml")
    evidence = read_text(page, "queues.xml", T)
    assert [
        (each.kind, each.name, each.queue_size, each.consumer_count, each.enqueue_count, each.dequeue_count, each.time)
        for each in evidence.destinations
    ] == [("queue", "orders.eu", 30, 2, 30, 0, T), ("queue", "ActiveMQ.DLQ", 3, 0, 3, 0, T)]
    assert not judged_healthy(evidence)
    assert "seen once" in seen_too_seldom(evidence)[0]
    assert codes(page, page) == [("consumer_stopped", "queue orders.eu")]
    moved = page.replace('dequeueCount="0"', 'dequeueCount="700"', 1)
    assert codes(page, moved.replace('size="30"', 'size="0"')) == []
    assert codes(page.replace('consumerCount="2"', 'consumerCount="0"')) == [("no_consumer", "queue orders.eu")]


def test_two_pages_in_one_file_are_of_the_dates_in_front_of_them() -> None:
    page = recorded("activemq-queues.xml")
    evidence = read_text(f"Fri Nov 27 03:49:10 UTC 2026\n{page}\nFri Nov 27 03:50:10 UTC 2026\n{page}", "f.txt", 5)
    assert {each.time for each in evidence.destinations} == {T, LATER}
    assert [each.code for each in diagnose(evidence)] == ["consumer_stopped"]


def test_a_durable_subscription_that_is_away_is_on_the_page_of_subscribers() -> None:
    page = """<subscribers>
<subscriber clientId="c one" subscriptionName="prices-eu" connectionId="" destinationName="prices" selector="" active="no" >
  <stats pendingQueueSize="8000" dispatchedQueueSize="0" dispatchedCounter="0" enqueueCounter="8000" dequeueCounter="0" />
</subscriber></subscribers>"""  # noqa: E501
    assert codes(page) == [("durable_offline", "topic prices, durable subscription prices-eu")]
    assert codes(page.replace('"8000"', '"0"')) == []


@pytest.mark.parametrize("between", ["\t", "    "])
def test_pages_copied_from_the_browser(between: str) -> None:
    titles = ("Name ↓", "Number Of Pending Messages  ", "Number Of Consumers", "Messages Enqueued", "Messages Dequeued")
    rows = [("orders eu", "1000", "0", "2000", "1000", "Browse Active Consumers"), ("Active Producers",), ("Send To",)]
    text = "\n".join(between.join(row) for row in [("Queues:",), titles, *rows])
    assert [(each.name, each.queue_size) for each in read_text(text, "f.txt").destinations] == [("orders eu", 1000)]
    assert codes(text) == [("no_consumer", "queue orders eu")]
    topics = between.join(["Name", *titles[2:], "Operations"]) + "\n" + between.join(["prices", "2", "5", "9", "Send"])
    (topic,) = read_text(topics, "f.txt").destinations
    assert (topic.kind, topic.name, topic.consumer_count, topic.dequeue_count) == ("topic", "prices", 2, 9)


def test_a_query_is_read_as_jolokia_is() -> None:
    evidence = read_text(recorded("activemq-query.txt"), "query.txt", T)
    (orders,) = (each for each in evidence.destinations if each.name == "orders.eu")
    assert (orders.broker, orders.queue_size, orders.in_flight_count, orders.dispatch_count, orders.max_page_size) == (
        "localhost", 30, 0, 7, 200
    )  # fmt: skip
    consumers = read_text(recorded("activemq-consumers.txt"), "consumers.txt", T)
    assert [(each.destination, each.prefetch, each.awaiting, each.slow) for each in consumers.subscriptions] == [
        ("prices", 32767, 0, False), ("orders.eu", 7, 7, True), ("orders.eu", 5, 0, False), ("prices", 100, 0, False)
    ]  # fmt: skip
    assert consumers.subscriptions[1].consumer_id == "ID:vm-37005-1795751208842-3:1:-1:2"
    assert not judged_healthy(consumers)
    assert "2 consumers were read without their queues" in to_bring(consumers)[0]
    # Both at once, and again: one stands still, and the selector of the other takes nothing.
    served = recorded("activemq-query.txt").replace("ConsumerCount = 0", "ConsumerCount = 2").replace(
        "InFlightCount = 0", "InFlightCount = 7"
    )  # fmt: skip
    look = f"{served}\n{recorded('activemq-consumers.txt')}"
    assert ("consumer_stopped", "queue orders.eu, consumer cl one") in codes(look, look)


def test_groups_of_a_query_have_their_owners() -> None:
    text = recorded("activemq-query.txt").replace(
        "MessageGroups = {}", "MessageGroups = {a=ID:x-1:1:1:1, b=ID:x-1:1:1:2}"
    )
    groups = {each.message_groups for each in read_text(text, "f.txt").destinations if each.message_groups}
    assert groups == {(("a", "ID:x-1:1:1:1"), ("b", "ID:x-1:1:1:2"))}


def test_what_has_no_sizes_says_so() -> None:
    evidence = read_text(recorded("activemq-bstat.txt"), "bstat.txt", T)
    assert not evidence.count
    assert "activemq-admin bstat, which has no backlog by itself" in to_bring(evidence)[0]
    (remark,) = read_text("destinationName = q\ndestinationType = Queue\nQueueSize = many\n", "f.txt").remarks
    assert (remark.text, remark.line) == ("QueueSize = many", 1)


def test_the_log_says_which_limit_stops_producers() -> None:
    log = recorded("activemq-log.txt")
    assert codes(log) == [
        ("store_full", "the broker's store"), ("blocked_producers", "queue mem.q"), ("store_full", "the broker's store")
    ]  # fmt: skip
    small, memory, store = found(log)
    assert "Raise storeUsage above" in small.advice
    assert "a producer was stopped for 60 s" in memory.evidence
    assert "stopped: producers of queue://store.q" in store.evidence
    limits = read_text(log, "activemq.log", T).usage_limits
    assert [(each.usage, each.limit) for each in limits[:3]] == [
        ("journal", 2 << 20),
        ("memory", 61440),
        ("store", 2 << 20),
    ]
    healthy = "\n".join(line for line in log.splitlines() if "limit" not in line.lower() and "Full" not in line)
    assert "ActiveMQ's log, which has no backlog by itself" in to_bring(read_text(healthy, "activemq.log", T))[0]


@pytest.mark.parametrize(
    ("line", "code", "where"),
    [
        ("javax.jms.ResourceAllocationException: Usage Manager Memory Limit reached. Stopping producer (ID:a-1:1:1:1) "
         "to prevent flooding queue://orders. See http://activemq.apache.org/producer-flow-control.html for more info",
         "blocked_producers", "queue orders"),
        ("WARN Usage(Main:memory:topic://a.b:memory) percentUsage=100%, usage=70, limit=70, percentUsageMinDelta=1%;: "
         "Usage Manager memory limit reached 70. Producers will be throttled to the rate at which messages are removed "
         "from this destination to prevent flooding it.", "blocked_producers", "topic a.b"),
        ("2024-05-01 12:00:01 [Transport] WARN Queue - Temp Store is Full (100% of 1048576). Stopping producer (ID:a) "
         "to prevent flooding queue://q. See http://x", "store_full", "the broker's store"),
    ],
)  # fmt: skip
def test_the_words_of_other_releases_and_of_clients(line: str, code: str, where: str) -> None:
    assert codes(line) == [(code, where)]
