"""The lite pull consumer at an embedded broker, under a clock that the test moves, and over TCP."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from pyengine import rocketmq
from pyengine._engine.rocketmq.client.lite_pull import (
    AssignedQueue,
    LitePullGate,
    LitePullLimits,
    lite_starting_point,
)
from pyengine._engine.rocketmq.client.pull_gate import failed_pull_delay
from pyengine.clock import ManualClock
from pyengine.errors import ConfigurationError, IllegalStateError
from pyengine.rocketmq import ConsumeFromWhere, Message, MessageQueue, MQClientError, ProcessQueue
from pyengine.rocketmq.server import broker_requests

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
QUEUES = [MessageQueue("T", "broker-a", number) for number in range(4)]


class Site:
    """A broker with one topic, a producer, and lite pull consumers."""

    def __init__(self, queues: int = 1) -> None:
        self.clock = ManualClock(now=1_700_000_000_000)
        self.broker = rocketmq.Broker(clock=self.clock)
        self.broker.create_topic("T", queues)
        self.producer = rocketmq.Producer(self.broker)
        self.consumers: list[rocketmq.DefaultLitePullConsumer] = []

    def send(self, *bodies: bytes, queue: int = 0, tags: str | None = None) -> None:
        for body in bodies:
            self.producer.send(Message("T", body, tags=tags), queue=QUEUES[queue])

    def consumer(self, group: str = "G", *, start: bool = True, **parameters: Any) -> rocketmq.DefaultLitePullConsumer:
        made = rocketmq.DefaultLitePullConsumer(
            group, broker=self.broker, **{"consume_from_where": FIRST, "auto_commit": False, **parameters}
        )
        self.consumers.append(made)
        if start:
            made.start()
        return made

    def subscribed(self, group: str = "G", **parameters: Any) -> rocketmq.DefaultLitePullConsumer:
        made = self.consumer(group, start=False, **parameters)
        made.subscribe("T")
        made.start()
        self.clock.advance(3000)
        return made

    def assigned(self, *queues: int, **parameters: Any) -> rocketmq.DefaultLitePullConsumer:
        made = self.consumer(**parameters)
        made.assign([QUEUES[number] for number in queues or (0,)])
        return made

    def committed(self, group: str = "G") -> dict[int, int]:
        return {queue.queue_id: offset for queue, offset in self.broker.consumer_offsets(group, "T").items()}

    def close(self) -> None:
        for consumer in self.consumers:
            consumer.shutdown()
        self.broker.close()


@pytest.fixture
def make() -> Iterator[Callable[..., Site]]:
    made: list[Site] = []

    def open_site(queues: int = 1) -> Site:
        made.append(Site(queues))
        return made[-1]

    yield open_site
    for site in made:
        site.close()


def bodies(consumer: rocketmq.DefaultLitePullConsumer, timeout: int = 1000) -> list[bytes | None]:
    return [message.body for message in consumer.poll(timeout)]


def drain(consumer: rocketmq.DefaultLitePullConsumer) -> list[bytes | None]:
    found: list[bytes | None] = []
    while polled := bodies(consumer):
        found += polled
    return found


def test_a_subscribed_consumer_polls_what_the_group_leaves_to_it(make: Callable[..., Site]) -> None:
    site = make(4)
    one = site.subscribed(instance_name="one")
    assert one.assignment() == set(QUEUES)
    two = site.subscribed(instance_name="two")
    assert one.assignment() == set(QUEUES[:2])
    assert two.assignment() == set(QUEUES[2:])
    for number in range(4):
        site.send(b"%d" % number, queue=number)
    assert sorted(drain(one), key=str) == [b"0", b"1"]
    assert sorted(drain(two), key=str) == [b"2", b"3"]
    two.shutdown()
    site.clock.advance(3000)
    assert one.assignment() == set(QUEUES)
    site.send(b"4", queue=3)
    assert drain(one)[-1] == b"4"


def test_a_poll_returns_one_answer_and_waits_no_longer_than_asked(make: Callable[..., Site]) -> None:
    site = make()
    site.send(b"1", b"2", b"3")
    consumer = site.assigned(pull_batch_size=2)
    assert bodies(consumer) == [b"1", b"2"]
    assert bodies(consumer) == [b"3"]
    before = site.clock.now()
    assert bodies(consumer, 700) == []
    assert site.clock.now() == before + 700
    assert consumer.poll(timedelta(seconds=1)) == []
    assert consumer.poll() == []
    assert site.clock.now() == before + 1700 + 5000


def test_tags_and_expressions_select(make: Callable[..., Site]) -> None:
    site = make()
    site.send(b"a", tags="A")
    site.send(b"b", tags="B")
    tagged = site.consumer("tagged", start=False)
    tagged.subscribe("T", "A")
    by_sql = site.consumer("sql", start=False)
    by_sql.subscribe("T", rocketmq.sql("TAGS = 'B'"))
    of_assigned = site.consumer("assigned", start=False)
    of_assigned.set_sub_expression_for_assign("T", "B")
    of_assigned.assign(QUEUES[:1])
    for consumer in (tagged, by_sql, of_assigned):
        consumer.start()
    site.clock.advance(3000)
    assert [drain(consumer) for consumer in (tagged, by_sql, of_assigned)] == [[b"a"], [b"b"], [b"b"]]


def test_only_what_was_committed_is_not_polled_again(make: Callable[..., Site]) -> None:
    site = make()
    site.send(b"1", b"2", b"3", b"4")
    first = site.assigned(pull_batch_size=2)
    assert bodies(first) == [b"1", b"2"]
    first.commit_sync()
    assert first.committed(QUEUES[0]) == 2
    assert site.committed() == {}  # it goes every five seconds
    assert bodies(first) == [b"3", b"4"]
    first.shutdown()
    assert site.committed() == {0: 2}
    second = site.assigned()
    assert bodies(second) == [b"3", b"4"]


def test_offsets_of_ones_own_are_committed_now_with_persist(make: Callable[..., Site]) -> None:
    site = make(2)
    site.send(b"1", b"2", b"3")
    consumer = site.assigned(0, 1)
    drain(consumer)
    consumer.commit({QUEUES[0]: 1}, persist=True)
    assert site.committed() == {0: 1}
    consumer.commit([QUEUES[0]], persist=True)
    assert site.committed() == {0: 3}
    consumer.commit({QUEUES[1]: -1, MessageQueue("T", "broker-a", 7): 5}, persist=True)  # neither is noted
    consumer.commit({})
    assert site.committed() == {0: 3}


def test_auto_commit_notes_what_earlier_polls_returned(make: Callable[..., Site]) -> None:
    site = make()
    site.send(b"1", b"2")
    consumer = site.assigned(auto_commit=True, auto_commit_interval_millis=2000, pull_batch_size=1)
    assert bodies(consumer) == [b"1"]
    assert consumer.committed(QUEUES[0]) == 0
    assert bodies(consumer) == [b"2"]
    site.clock.advance(2000)
    consumer.poll(0)
    assert consumer.committed(QUEUES[0]) == 2
    site.clock.advance(10_000)
    assert site.committed() == {0: 2}


def test_seek_drops_the_cache_and_goes_on_elsewhere(make: Callable[..., Site]) -> None:
    site = make()
    site.send(*(b"%d" % number for number in range(6)))
    consumer = site.assigned(pull_batch_size=2)
    assert bodies(consumer) == [b"0", b"1"]
    consumer.seek(QUEUES[0], 4)
    assert drain(consumer) == [b"4", b"5"]
    consumer.seek_to_begin(QUEUES[0])
    assert drain(consumer) == [b"%d" % number for number in range(6)]
    consumer.seek_to_end(QUEUES[0])
    site.send(b"new")
    assert drain(consumer) == [b"new"]
    with pytest.raises(MQClientError, match="Seek offset illegal, seek offset = 8, min offset = 0, max offset = 7"):
        consumer.seek(QUEUES[0], 8)
    with pytest.raises(MQClientError, match=r"The message queue is not in assigned list, message queue: MessageQueue"):
        consumer.seek(QUEUES[1], 0)


def test_seek_by_time(make: Callable[..., Site]) -> None:
    site = make()
    site.send(b"1")
    site.clock.advance(60_000)
    moment = site.clock.now()
    site.send(b"2")
    consumer = site.assigned()
    consumer.seek(QUEUES[0], consumer.offset_for_timestamp(QUEUES[0], moment))
    assert drain(consumer) == [b"2"]


def test_a_paused_queue_is_not_pulled(make: Callable[..., Site]) -> None:
    site = make(2)
    consumer = site.assigned(0, 1)
    consumer.pause(QUEUES[:1])
    site.clock.advance(25_000)  # the pulls that the broker held are over
    site.send(b"0", queue=0)
    site.send(b"1", queue=1)
    assert drain(consumer) == [b"1"]
    consumer.resume(QUEUES[:1])
    assert drain(consumer) == [b"0"]


def test_subscribe_and_assign_exclude_each_other(make: Callable[..., Site]) -> None:
    site = make()
    subscribed, assigned = site.subscribed(), site.assigned(group="H")
    with pytest.raises(IllegalStateError, match="Subscribe and assign are mutually exclusive"):
        subscribed.assign(QUEUES[:1])
    with pytest.raises(MQClientError, match="subscribe exception") as caught:
        assigned.subscribe("T")
    assert "mutually exclusive" in str(caught.value.__cause__)


def test_assign_replaces_what_was_assigned(make: Callable[..., Site]) -> None:
    site = make(2)
    consumer = site.assigned(0)
    site.send(b"0", queue=0)
    site.send(b"1", queue=1)
    consumer.assign([QUEUES[1]])
    assert drain(consumer) == [b"1"]  # what was cached of the other is dropped
    assert consumer.assignment() == {QUEUES[1]}


def test_a_listener_learns_of_the_assignment(make: Callable[..., Site]) -> None:
    site = make(2)
    seen: list[tuple[str, int, int]] = []

    class Listener(rocketmq.MessageQueueListener):
        def message_queue_changed(self, topic: str, all_queues: set[MessageQueue], mine: set[MessageQueue]) -> None:
            seen.append((topic, len(all_queues), len(mine)))

    consumer = site.consumer(start=False)
    consumer.subscribe("T", "*", Listener())
    consumer.start()
    site.clock.advance(3000)
    site.send(b"1")
    assert seen == [("T", 2, 2)]
    assert drain(consumer) == [b"1"]


def test_a_topic_with_other_queues_is_made_known(make: Callable[..., Site]) -> None:
    site = make(1)
    seen: list[int] = []
    consumer = site.consumer(topic_metadata_check_interval_millis=1000)
    consumer.register_topic_message_queue_change_listener("T", lambda topic, queues: seen.append(len(queues)))
    site.clock.advance(15_000)
    site.broker.create_topic("T", 3)
    site.clock.advance(2000)
    assert seen == [3]
    assert consumer.fetch_message_queues("T") == set(QUEUES[:3])
    with pytest.raises(MQClientError, match="Can not find Message Queue for this topic, Nowhere"):
        consumer.fetch_message_queues("Nowhere")


def test_where_a_queue_begins(make: Callable[..., Site]) -> None:
    site = make()
    site.send(b"old")
    site.clock.advance(3_600_000)
    site.send(b"new")
    site.broker.delete_below(QUEUES[0], 1)  # the group's offset is then none instead of 0
    site.send(b"newest")
    last = site.assigned(group="last", consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET)
    first = site.assigned(group="first")
    by_time = site.assigned(group="time", consume_from_where=ConsumeFromWhere.CONSUME_FROM_TIMESTAMP)
    site.send(b"later")
    assert drain(last) == [b"later"]
    assert drain(first) == [b"new", b"newest", b"later"]  # 0 is below what is there, and the broker says where to go
    assert drain(by_time) == [b"new", b"newest", b"later"]


def test_as_many_queues_are_pulled_at_a_time_as_there_are_threads(make: Callable[..., Site]) -> None:
    site = make(2)
    consumer = site.assigned(0, 1, pull_thread_nums=1)
    site.send(b"1", queue=1)
    assert bodies(consumer, 15_000) == []  # the broker holds the pull of the other queue
    assert bodies(consumer, 10_000) == [b"1"]


def test_a_message_is_not_given_twice_when_members_come(make: Callable[..., Site]) -> None:
    site = make(4)
    one = site.subscribed(instance_name="one")
    for number in range(20):
        site.send(b"%d" % number, queue=number % 4)
    site.clock.advance(100)
    two = site.subscribed(instance_name="two")
    found = drain(one) + drain(two)
    assert sorted(found, key=str) == sorted((b"%d" % number for number in range(20)), key=str)


def test_calls_before_start_and_after_shutdown_are_refused(make: Callable[..., Site]) -> None:
    site = make()
    consumer = site.consumer(start=False)
    for call in (consumer.poll, lambda: consumer.committed(QUEUES[0]), lambda: consumer.fetch_message_queues("T")):
        with pytest.raises(IllegalStateError, match="The consumer not running, please start it first"):
            call()
    consumer.shutdown()
    consumer.start()
    assert consumer.is_running
    with pytest.raises(MQClientError, match="The PullConsumer service state not OK, maybe started once, RUNNING"):
        consumer.start()
    with pytest.raises(IllegalStateError, match="setAssignTag only can be called before start"):
        consumer.set_sub_expression_for_assign("T", "A")
    consumer.shutdown()
    consumer.shutdown()
    with pytest.raises(IllegalStateError, match="not running"):
        consumer.poll(0)


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"consumer_timeout_millis_when_suspend": 10_000}, "consumerTimeoutMillisWhenSuspend must greater than"),
        ({"message_model": None}, "messageModel is null"),
        ({"allocate_message_queue_strategy": None}, "allocateMessageQueueStrategy is null"),
    ],
)
def test_what_start_refuses(make: Callable[..., Site], parameters: dict[str, Any], text: str) -> None:
    with pytest.raises(MQClientError, match=text):
        make().consumer(**parameters)


@pytest.mark.parametrize("group", ["DEFAULT_CONSUMER", "has space"])
def test_groups_that_may_not_be(make: Callable[..., Site], group: str) -> None:
    with pytest.raises(MQClientError, match=r"consumerGroup can not equal|illegal characters"):
        make().consumer(group)


def test_values_that_nobody_can_use_are_named(make: Callable[..., Site], caplog: pytest.LogCaptureFixture) -> None:
    consumer = make().consumer()
    for action, name in (
        (lambda: consumer.assign([]), "message_queues"),
        (lambda: consumer.poll(-1), "timeout"),
        (lambda: consumer.poll("soon"), "timeout"),  # type: ignore[arg-type]
        (lambda: consumer.seek("T", 0), "message_queue"),  # type: ignore[arg-type]
        (lambda: consumer.subscribe(""), "topic"),
        (lambda: consumer.register_topic_message_queue_change_listener("T", 1), "listener"),  # type: ignore[arg-type]
        (lambda: setattr(consumer, "consume_from_where", ConsumeFromWhere.CONSUME_FROM_MIN_OFFSET), "consume_from"),
    ):
        with pytest.raises(ConfigurationError, match=name):
            action()
    with caplog.at_level(logging.WARNING, "pyengine.rocketmq"):
        consumer.auto_commit_interval_millis = 999
    assert consumer.auto_commit_interval_millis == 5000
    assert "999 is below 1000 and is ignored" in caplog.text


LIMITS = LitePullLimits("G", 10, 10_000, 1000, 100, 2000)


@pytest.mark.parametrize(
    ("offsets", "cached", "text"),
    [
        (range(1001), 0, "count exceeds the threshold 1000, so do flow control, minOffset=0, maxOffset=1000"),
        ((0, 2001), 0, "span too long, so do flow control, minOffset=0, maxOffset=2001, maxSpan=2001"),
        ((), 1001, "The consume request count exceeds threshold 1000, so do flow control, consume request count=1001"),
    ],
)
def test_flow_control(offsets: Any, cached: int, text: str) -> None:
    gate, assigned = LitePullGate(), AssignedQueue(ProcessQueue(now=0))
    assigned.process_queue.put_messages(list(offsets))
    verdict = gate.examine(QUEUES[0], assigned, cached, LIMITS, 5)
    assert (verdict.goes, verdict.delay) == (False, 50)
    ((level, line),) = verdict.log
    assert level == "WARN"
    assert text in line
    assert line.endswith("flowControlTimes=1")
    assert gate.examine(QUEUES[0], assigned, cached, LIMITS, 5).log == ()  # one line in a thousand
    assert assigned.process_queue.last_pull_timestamp == 5


def test_at_a_threshold_it_still_pulls() -> None:
    assigned = AssignedQueue(ProcessQueue(now=0))
    assigned.process_queue.put_messages(list(range(1000)))
    assert LitePullGate().examine(QUEUES[0], assigned, 1000, LIMITS, 5).goes


def test_a_dropped_queue_is_pulled_no_more_and_an_unknown_one_is_asked_for_each_second() -> None:
    assigned = AssignedQueue(ProcessQueue(now=0))
    assigned.process_queue.dropped = True
    assert LitePullGate().examine(QUEUES[0], assigned, 0, LIMITS, 5).delay is None
    assert LitePullGate().examine(QUEUES[0], None, 0, LIMITS, 5).delay == 1000


@pytest.mark.parametrize(
    ("where", "stored", "topic", "point"),
    [
        ("LAST_OFFSET", 7, "T", (7, None)),
        ("LAST_OFFSET", -1, "T", (None, "max_offset")),
        ("LAST_OFFSET", -1, "%RETRY%G", (0, None)),
        ("LAST_OFFSET", -2, "T", (-1, None)),
        ("FIRST_OFFSET", -1, "T", (0, None)),
        ("FIRST_OFFSET", -2, "T", (-1, None)),
        ("TIMESTAMP", -1, "T", (None, "search_offset")),
        ("TIMESTAMP", -1, "%RETRY%G", (None, "max_offset")),
    ],
)
def test_starting_points(where: str, stored: int, topic: str, point: tuple[int | None, str | None]) -> None:
    assert tuple(lite_starting_point(f"CONSUME_FROM_{where}", stored, topic)) == point


def test_delays_of_failed_pulls() -> None:
    assert (failed_pull_delay(215, 1000), failed_pull_delay(None, 1000)) == (20, 1000)


def test_its_state_is_shown_as_the_real_ones(make: Callable[..., Site]) -> None:
    site = make()
    site.send(b"1")
    consumer = site.subscribed()
    site.clock.advance(1000)
    info = consumer.consumer_running_info()
    assert info.properties["PROP_CONSUME_TYPE"] == "CONSUME_ACTIVELY"
    assert info.client_id.endswith("@STREAM")
    assert info.mq_table[QUEUES[0]]["cachedMsgCount"] == 1
    assert info.analyze_process_queue() == []


def test_over_tcp_it_is_the_same() -> None:
    with rocketmq.Broker(listen="127.0.0.1:0") as broker:
        broker.create_topic("T", 2)
        where: dict[str, Any] = {"namesrv_addr": broker.name_server_address, "consume_from_where": FIRST}
        with rocketmq.Producer(namesrv_addr=broker.name_server_address) as producer:
            for number in range(6):
                producer.send(Message("T", b"%d" % number), queue=QUEUES[number % 2])
        with rocketmq.DefaultLitePullConsumer("subscribed", **where) as subscribed:
            subscribed.subscribe("T")
            found: list[bytes | None] = []
            deadline = time.monotonic() + 20
            while len(found) < 6 and time.monotonic() < deadline:
                found += bodies(subscribed, 500)
            assert sorted(found, key=str) == [b"%d" % number for number in range(6)]
            subscribed.commit(persist=True)
        deadline = time.monotonic() + 5
        while broker.consumer_offsets("subscribed", "T") != {QUEUES[0]: 3, QUEUES[1]: 3}:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with rocketmq.DefaultLitePullConsumer("assigned", **where) as assigned:
            assigned.assign([QUEUES[1]])
            assert bodies(assigned, 5000) == [b"1", b"3", b"5"]
            assigned.seek(QUEUES[1], 2)
            assert bodies(assigned, 5000) == [b"5"]


def test_a_broker_that_does_not_know_lite_pulls_is_asked_the_older_way(monkeypatch: pytest.MonkeyPatch) -> None:
    real = broker_requests.BrokerRequests.__init__

    def older(self: Any, *given: Any) -> None:
        real(self, *given)
        del self.requests[361]

    monkeypatch.setattr(broker_requests.BrokerRequests, "__init__", older)
    with rocketmq.Broker(listen="127.0.0.1:0") as broker:
        rocketmq.Producer(broker).send(Message("T", b"tea"), queue=None)
        with rocketmq.DefaultLitePullConsumer(
            "G", namesrv_addr=broker.name_server_address, consume_from_where=FIRST
        ) as consumer:
            consumer.assign(consumer.fetch_message_queues("T"))
            assert bodies(consumer, 5000) == [b"tea"]


# Tasks of an event loop


async def _polled_meanwhile(lite: rocketmq.DefaultLitePullConsumer, send: Callable[[], object]) -> list[bytes | None]:
    task = asyncio.create_task(lite.poll_async(10_000))
    await asyncio.sleep(0.05)  # which it could not, if the task held the loop
    assert not task.done()
    send()
    return [message.body for message in await task]


def test_a_task_polls_and_one_that_is_cancelled_has_polled_nothing() -> None:
    with rocketmq.Broker(listen="127.0.0.1:0") as broker:
        broker.create_topic("T", 1)
        where = broker.name_server_address
        with (
            rocketmq.Producer(namesrv_addr=where) as producer,
            rocketmq.DefaultLitePullConsumer("G", namesrv_addr=where, consume_from_where=FIRST) as lite,
        ):
            lite.assign(lite.fetch_message_queues("T"))

            async def play() -> None:
                assert await lite.poll_async(0) == []
                assert await lite.poll_async(20) == []
                assert await _polled_meanwhile(lite, lambda: producer.send("T", b"one")) == [b"one"]
                task = asyncio.create_task(lite.poll_async(10_000))
                await asyncio.sleep(0.02)
                task.cancel()
                producer.send("T", b"two")
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert [message.body for message in await lite.poll_async(10_000)] == [b"two"]
                left = asyncio.create_task(lite.poll_async(10_000))
                await asyncio.sleep(0.02)
                await asyncio.to_thread(lite.shutdown)
                with pytest.raises(IllegalStateError):
                    await left

            asyncio.run(play())


def test_a_task_that_polls_under_a_manual_clock_moves_it() -> None:
    site = Site()
    lite = site.assigned(0)
    begun = site.clock.now()
    assert asyncio.run(lite.poll_async(500)) == []
    assert site.clock.now() == begun + 500
    site.send(b"one")
    assert [message.body for message in asyncio.run(lite.poll_async())] == [b"one"]
