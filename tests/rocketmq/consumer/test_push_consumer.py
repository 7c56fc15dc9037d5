"""The push consumer at an embedded broker, under a clock that the test moves, and once on real threads."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pyengine import rocketmq
from pyengine.clock import ManualClock, SystemClock, Worker
from pyengine.errors import ConfigurationError, IllegalStateError
from pyengine.rocketmq import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    Message,
    MessageExt,
    MessageListenerOrderly,
    MessageQueue,
    MQBrokerError,
    MQClientError,
)
from pyengine.rocketmq.consumer.client import Delayed, Periodic
from pyengine.rocketmq.consumer.consume_pool import ConsumePool
from pyengine.rocketmq.consumer.consume_status import ConsumeStatistics
from tests.ctrl_c import LIBRARY, CtrlC

DONE = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
Handler = Callable[[Sequence[MessageExt], Any], Any]


class Site:
    """A broker with one topic, a producer, and consumers that write down what they are given."""

    def __init__(self, queues: int = 1) -> None:
        self.clock = ManualClock(now=1_700_000_000_000)
        self.broker = rocketmq.Broker(clock=self.clock)
        self.broker.create_topic("T", queues)
        self.producer = rocketmq.Producer(self.broker)
        self.given: list[tuple[str, bytes | None, int]] = []
        self.consumers: list[rocketmq.DefaultMQPushConsumer] = []

    def send(self, *bodies: bytes, queue: int | None = None, **properties: str) -> None:
        for body in bodies:
            message = Message("T", body, properties=properties)
            self.producer.send(message, queue=None if queue is None else MessageQueue("T", "broker-a", queue))

    def consumer(
        self, handler: Any = None, *, group: str = "G", expression: Any = "*", start: bool = True, **parameters: Any
    ) -> rocketmq.DefaultMQPushConsumer:
        consumer = rocketmq.DefaultMQPushConsumer(
            group, broker=self.broker, **{"consume_from_where": FIRST, **parameters}
        )
        consumer.subscribe("T", expression)
        consumer.register_message_listener(handler or self.accept())
        self.consumers.append(consumer)
        if start:
            consumer.start()
            self.clock.advance(3000)
        return consumer

    def accept(self, answer: Any = DONE, name: str = "") -> Handler:
        """A listener that writes its messages down and answers always the same."""

        def listener(messages: Sequence[MessageExt], context: Any) -> Any:
            self.given += [(name, message.body, message.reconsume_times) for message in messages]
            return answer

        return listener

    def bodies(self) -> list[bytes | None]:
        return [body for _, body, _ in self.given]

    def committed(self, group: str = "G", topic: str = "T") -> list[int]:
        offsets = self.broker.consumer_offsets(group, topic)
        return [offsets[queue] for queue in rocketmq.sort_queues(list(offsets))]

    def close(self) -> None:
        for consumer in self.consumers:
            consumer.shutdown()
        self.broker.close()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


def test_messages_arrive_and_their_offsets_are_committed(site: Site) -> None:
    site.consumer()
    site.send(b"1", b"2", b"3", queue=0)
    site.clock.advance(100)
    assert site.bodies() == [b"1", b"2", b"3"]
    site.clock.advance(10_000)
    assert site.committed() == [3]


def test_groups_are_independent(site: Site) -> None:
    site.consumer(site.accept(name="a"), group="A")
    site.consumer(site.accept(name="b"), group="B")
    site.send(b"1")
    site.clock.advance(100)
    assert sorted(site.given) == [("a", b"1", 0), ("b", b"1", 0)]


def test_a_group_shares_the_queues_and_takes_over_when_one_leaves() -> None:
    site = Site(queues=4)
    first = site.consumer(site.accept(name="1"))
    second = site.consumer(site.accept(name="2"))
    site.clock.advance(25_000)
    shares = [len(c.consumer_running_info().mq_table) for c in (first, second)]
    assert sorted(shares) == [2, 3]  # four queues of the topic, one of the retry topic
    for queue in range(4):
        site.send(b"%d" % queue, queue=queue)
    site.clock.advance(100)
    assert sorted(site.bodies()) == [b"0", b"1", b"2", b"3"]
    assert {name for name, *_ in site.given} == {"1", "2"}
    site.given.clear()
    first.shutdown()
    site.clock.advance(2_000)
    for queue in range(4):
        site.send(b"%d" % queue, queue=queue)
    site.clock.advance(1_000)
    assert sorted(site.given) == [("2", b"%d" % queue, 0) for queue in range(4)]
    site.close()


def test_a_failed_message_comes_again_by_the_delay_levels_and_ends_among_the_dead_letters(site: Site) -> None:
    site.consumer(site.accept(LATER), max_reconsume_times=2)
    site.send(b"x")
    site.clock.advance(9_000)
    assert [tries for *_, tries in site.given] == [0]
    site.clock.advance(2_000)
    assert [tries for *_, tries in site.given] == [0, 1]
    site.clock.advance(31_000)
    assert [tries for *_, tries in site.given] == [0, 1, 2]
    site.clock.advance(3_600_000)
    assert len(site.given) == 3
    assert [message.body for message in site.broker.messages("%DLQ%G")] == [b"x"]


def test_a_listener_sees_a_retried_message_under_its_own_topic(site: Site) -> None:
    topics = []

    def listener(messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        topics.append(messages[0].topic)
        context.delay_level_when_next_consume = 1
        return LATER if len(topics) == 1 else DONE

    site.consumer(listener)
    site.send(b"x")
    site.clock.advance(3_000)
    assert topics == ["T", "T"]


def test_ack_index_gives_back_what_is_behind_it(site: Site) -> None:
    def listener(messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        site.accept()(messages, context)
        context.ack_index = 1
        context.delay_level_when_next_consume = 1
        return DONE

    site.send(b"1", b"2", b"3", b"4", queue=0)
    site.consumer(listener, consume_message_batch_max_size=4)
    site.clock.advance(15_000)
    assert site.given == [("", b"1", 0), ("", b"2", 0), ("", b"3", 0), ("", b"4", 0), ("", b"3", 1), ("", b"4", 1)]
    assert site.committed() == [4]


@pytest.mark.parametrize("answer", [None, "nonsense"])
def test_no_answer_and_a_wrong_one_are_failures(site: Site, answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    site.consumer(site.accept(answer))
    with caplog.at_level(logging.WARNING, logger="pyengine.rocketmq"):
        site.send(b"x")
        site.clock.advance(11_000)
    assert [tries for *_, tries in site.given] == [0, 1]
    assert "consumeMessage return null, Group: G Msgs: [MessageExt [brokerName=broker-a" in caplog.text
    assert ("consumeMessage exception: TypeError" in caplog.text) == (answer is not None)


def test_an_exception_is_a_failure(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    def listener(messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        site.accept()(messages, context)
        raise ValueError("no stock")

    site.consumer(listener)
    site.send(b"x")
    site.clock.advance(11_000)
    assert [tries for *_, tries in site.given] == [0, 1]
    assert "consumeMessage exception: ValueError: no stock, listener(" in caplog.text


@pytest.mark.parametrize("error", [SystemExit(1), asyncio.CancelledError(), GeneratorExit()])
@pytest.mark.parametrize("orderly", [False, True])
@pytest.mark.parametrize("coroutine", [False, True])
def test_what_ends_a_thread_is_a_failure_too(site: Site, error: BaseException, orderly: bool, coroutine: bool) -> None:
    def plain(messages: Sequence[MessageExt], context: Any) -> Any:
        site.accept()(messages, context)
        if len(site.given) == 1:
            raise error
        return ConsumeOrderlyStatus.SUCCESS if orderly else DONE

    async def awaited(messages: Sequence[MessageExt], context: Any) -> Any:
        return plain(messages, context)

    listener = awaited if coroutine else plain
    site.consumer(MessageListenerOrderly(listener) if orderly else listener)
    site.send(b"1", b"2", queue=0)
    site.clock.advance(30_000)
    assert site.bodies() == ([b"1", b"1", b"2"] if orderly else [b"1", b"2", b"1"])
    assert site.committed() == [2]


@pytest.mark.parametrize("orderly", [False, True])
@pytest.mark.parametrize("coroutine", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_users_interrupt_is_a_failure_and_goes_on(site: Site, orderly: bool, coroutine: bool, threads: int) -> None:
    def plain(messages: Sequence[MessageExt], context: Any) -> Any:
        site.accept()(messages, context)
        if len(site.given) in (1, 3):
            raise KeyboardInterrupt
        return ConsumeOrderlyStatus.SUCCESS if orderly else DONE

    async def awaited(messages: Sequence[MessageExt], context: Any) -> Any:
        return plain(messages, context)

    listener = awaited if coroutine else plain
    consumer = site.consumer(
        MessageListenerOrderly(listener) if orderly else listener, consume_thread_min=threads,
        await_termination_millis_when_shutdown=60_000,
    )  # fmt: skip
    interrupts = 0
    for act in (lambda: site.send(b"1", queue=0), lambda: site.send(b"2", b"3", queue=0)):
        try:
            act()
        except KeyboardInterrupt:
            interrupts += 1
    for _ in range(30):
        try:
            site.clock.advance(1000)
        except KeyboardInterrupt:
            interrupts += 1
    assert interrupts == 2
    assert sorted(set(site.bodies())) == [b"1", b"2", b"3"]
    assert len(site.bodies()) == 5, "what was interrupted came again"
    assert site.committed() == [3]
    before = site.clock.now()
    consumer.shutdown()
    assert site.clock.now() == before, "nothing runs that shutdown() would wait for"


def test_a_send_that_is_interrupted_anywhere_leaves_no_pull_unanswered(monkeypatch: pytest.MonkeyPatch) -> None:
    step, interrupted = 0, True
    while interrupted:
        step += 1
        site = Site()
        site.consumer()
        with monkeypatch.context() as sending:
            sending.setattr(site.clock, "settle", lambda: None)  # the broker's worker is another thread
            interrupted = CtrlC(LIBRARY, step).ends(lambda: site.producer.send("T", b"sent or not"))  # noqa: B023
        site.send(b"next")
        site.clock.advance(60_000)
        assert site.bodies()[-1] == b"next", f"interrupted behind event {step}"
        assert len(site.bodies()) == site.broker.max_offset(MessageQueue("T", "broker-a", 0))
        site.close()
    assert step > 100


@pytest.mark.parametrize("room", ["concurrent_service", "orderly_service", "consume_pool"])
@pytest.mark.parametrize("orderly", [False, True])
def test_consuming_that_is_interrupted_anywhere_leaves_no_message_behind(room: str, orderly: bool) -> None:
    bodies = [b"1", b"2", b"3"]
    step, interrupted = 0, True
    while interrupted:
        step += 1
        site = Site()
        in_order = MessageListenerOrderly(site.accept(ConsumeOrderlyStatus.SUCCESS))
        site.consumer(in_order if orderly else site.accept())
        for body in bodies:
            site.broker.send_message("P", Message("T", body), MessageQueue("T", "broker-a", 0))
        interrupted = CtrlC(LIBRARY / "rocketmq" / "consumer" / f"{room}.py", step).ends(site.clock.settle)
        site.clock.advance(180_000)  # a queue whose pull is lost is taken on anew after two minutes
        assert sorted(set(site.bodies())) == bodies, f"interrupted behind event {step}"
        assert site.committed() == [3], f"interrupted behind event {step}"
        site.close()
    assert step > 20 or room == ("concurrent_service" if orderly else "orderly_service")


def test_rebalances_go_on_after_one_that_the_user_interrupted() -> None:
    class Interrupted(rocketmq.Broker):
        interrupts = 1

        def get_consumer_id_list(self, topic: str, group: str) -> list[str]:
            if self.interrupts:
                self.interrupts = 0
                raise KeyboardInterrupt
            return super().get_consumer_id_list(topic, group)

    site = Site()
    site.broker = Interrupted(clock=site.clock)
    site.broker.create_topic("T", 1)
    rocketmq.Producer(site.broker).send("T", b"x")
    site.consumer(start=False).start()
    with pytest.raises(KeyboardInterrupt):
        site.clock.advance(3000)
    site.clock.advance(20_000)
    assert site.bodies() == [b"x"]
    site.close()


@pytest.mark.parametrize("coroutine", [False, True])
@pytest.mark.parametrize("error", [SystemExit("no stock"), KeyboardInterrupt()])
def test_the_only_thread_outlives_a_listener_that_exits(error: BaseException, coroutine: bool) -> None:
    seen: list[bytes | None] = []
    done = threading.Event()

    def plain(messages: Sequence[MessageExt], context: Any) -> Any:
        seen.extend(message.body for message in messages)
        if len(seen) == 1:
            raise error
        done.set()
        return ConsumeOrderlyStatus.SUCCESS

    async def awaited(messages: Sequence[MessageExt], context: Any) -> Any:
        return plain(messages, context)

    with rocketmq.Broker() as broker:
        broker.create_topic("T", 1)
        rocketmq.Producer(broker).send("T", b"x")
        consumer = rocketmq.DefaultMQPushConsumer("G", broker=broker, consume_from_where=FIRST, consume_thread_min=1)
        consumer.subscribe("T")
        consumer.register_message_listener(MessageListenerOrderly(awaited if coroutine else plain))
        consumer.start()
        assert done.wait(60)
        consumer.shutdown()
    assert seen == [b"x", b"x"]


def test_coroutine_listeners(site: Site) -> None:
    async def listener(messages: Sequence[MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
        site.accept()(messages, context)
        return DONE

    site.consumer(listener)
    site.send(b"1", b"2")
    site.clock.advance(100)
    assert sorted(map(str, site.bodies())) == ["b'1'", "b'2'"]


def test_order_is_kept_when_a_message_fails(site: Site) -> None:
    fails = {b"2": 2}

    def listener(messages: Sequence[MessageExt], context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
        body = messages[0].body or b""
        site.accept()(messages, context)
        if fails.get(body, 0):
            fails[body] -= 1
            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        return ConsumeOrderlyStatus.SUCCESS

    site.consumer(MessageListenerOrderly(listener))
    site.send(b"1", b"2", b"3", queue=0)
    site.clock.advance(100)
    assert site.given == [("", b"1", 0), ("", b"2", 0)]
    site.clock.advance(1_000)
    assert site.given[2:] == [("", b"2", 1)]
    site.clock.advance(1_000)
    assert site.given[3:] == [("", b"2", 2), ("", b"3", 0)]
    site.clock.advance(10_000)
    assert site.committed() == [3]


def test_order_with_commit_and_rollback(site: Site) -> None:
    answers = [
        ConsumeOrderlyStatus.SUCCESS,
        ConsumeOrderlyStatus.ROLLBACK,
        ConsumeOrderlyStatus.SUCCESS,
        ConsumeOrderlyStatus.COMMIT,
    ]

    def listener(messages: Sequence[MessageExt], context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
        context.auto_commit = False
        context.suspend_current_queue_time_millis = 10
        site.accept()(messages, context)
        return answers[len(site.given) - 1]

    consumer = site.consumer(MessageListenerOrderly(listener))
    site.send(b"1", b"2", queue=0)
    site.clock.advance(100)
    assert site.bodies() == [b"1", b"2", b"1", b"2"]
    assert consumer.consumer_running_info().mq_table[MessageQueue("T", "broker-a", 0)]["commitOffset"] == 2


def test_an_exhausted_ordered_message_becomes_a_dead_letter(site: Site) -> None:
    site.consumer(
        MessageListenerOrderly(site.accept(ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT)), max_reconsume_times=1
    )
    site.send(b"x", queue=0)
    site.clock.advance(5_000)
    assert [tries for *_, tries in site.given] == [0, 1]
    assert [message.body for message in site.broker.messages("%DLQ%G")] == [b"x"]


def test_an_ordered_queue_has_one_owner_at_a_time() -> None:
    site = Site(queues=2)
    success = ConsumeOrderlyStatus.SUCCESS
    first = site.consumer(MessageListenerOrderly(site.accept(success, "1")))
    site.consumer(MessageListenerOrderly(site.accept(success, "2")))
    site.clock.advance(45_000)
    for _ in range(3):
        site.send(b"0", queue=0)
        site.send(b"1", queue=1)
    site.clock.advance(1_000)
    owners = {body: {name for name, other, _ in site.given if other == body} for body in (b"0", b"1")}
    assert all(len(names) == 1 for names in owners.values())
    assert owners[b"0"] != owners[b"1"]
    first.shutdown()
    site.clock.advance(25_000)
    site.given.clear()
    site.send(b"0", queue=0)
    site.send(b"1", queue=1)
    site.clock.advance(1_000)
    assert {name for name, *_ in site.given} == {"2"}
    assert len(site.given) == 2
    site.close()


def test_flow_control_holds_pulling_back_and_says_so(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    consumer = site.consumer(site.accept(), pull_threshold_for_queue=3, pull_batch_size=2)
    member = consumer.default_mq_push_consumer_impl
    submitted: list[Any] = []
    submit, member.consuming.submit = member.consuming.submit, lambda *batch: submitted.append(batch)  # type: ignore[method-assign]
    with caplog.at_level(logging.WARNING, logger="pyengine.rocketmq"):
        site.send(*[b"%d" % i for i in range(10)], queue=0)
        site.clock.advance(1_000)
    lines = [record.getMessage() for record in caplog.records if "so do flow control" in record.getMessage()]
    info = consumer.consumer_running_info().mq_table[MessageQueue("T", "broker-a", 0)]
    assert info["cachedMsgCount"] == 4  # three cached messages still pull, four do not
    assert lines == [
        "the cached message count exceeds the threshold 3, so do flow control, minOffset=0, maxOffset=3, count=4, "
        "size=0 MiB, pullRequest=PullRequest [consumerGroup=G, messageQueue=MessageQueue [topic=T, "
        "brokerName=broker-a, queueId=0], nextOffset=4], flowControlTimes=1"
    ]
    member.consuming.submit = submit  # type: ignore[method-assign]
    for batch in submitted:
        submit(*batch)
    site.clock.advance(1_000)
    assert len(site.given) == 10


def test_suspend_and_resume(site: Site) -> None:
    consumer = site.consumer()
    consumer.suspend()
    site.clock.advance(20_000)
    site.send(b"1", b"2")
    site.clock.advance(30_000)
    assert len(site.given) <= 1  # a pull that waited at the broker still brings what wakes it
    consumer.resume()
    site.clock.advance(2_000)
    assert sorted(map(str, site.bodies())) == ["b'1'", "b'2'"]


def test_broadcasting_gives_everyone_everything_and_drops_what_fails(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = rocketmq.MessageModel.BROADCASTING
    options = {"message_model": model, "local_offset_store_dir": tmp_path}
    first = site.consumer(site.accept(LATER, "1"), instance_name="1", **options)
    site.consumer(site.accept(DONE, "2"), instance_name="2", **options)
    with caplog.at_level(logging.WARNING, logger="pyengine.rocketmq"):
        site.send(b"x", queue=0)
        site.clock.advance(60_000)
    assert sorted(site.given) == [("1", b"x", 0), ("2", b"x", 0)]
    assert "BROADCASTING, the message consume failed, drop it, MessageExt [" in caplog.text
    assert site.committed() == []
    first.shutdown()
    site.send(b"y", queue=0)
    site.clock.advance(100)
    site.consumer(site.accept(DONE, "1"), instance_name="1", **options)
    assert sorted(site.given)[1:2] == [("1", b"y", 0)]  # it went on behind x, which its file says
    assert (tmp_path / "127.0.0.1@1" / "G" / "offsets.json").exists()


def test_what_expired_is_given_back_from_the_head(site: Site) -> None:
    consumer = site.consumer(consume_timeout=1)
    member = consumer.default_mq_push_consumer_impl
    member.consuming.submit = lambda *batch: None  # type: ignore[method-assign]
    site.send(b"1", b"2", b"3", queue=0)
    site.clock.advance(100)
    queue = member.process_queues[MessageQueue("T", "broker-a", 0)]
    site.clock.advance(200_000)
    assert queue.cached_offsets == [0, 1, 2]  # not started: nothing expires
    request = _started(member, queue)
    site.clock.advance(125_000)
    assert queue.cached_offsets == [1, 2]
    assert request is not None
    site.clock.advance(15_000)
    assert queue.message_count == 2


def _started(member: Any, queue: rocketmq.ProcessQueue) -> Any:
    """The head of a queue as its listener holds it: stamped, not finished."""
    head = queue.expired(2**62, 0) or queue.take_messages(1)[0]
    head.properties["CONSUME_START_TIME"] = str(member.context.clock.now())
    queue.make_message_to_consume_again([head])
    return head


def test_tags_and_sql(site: Site) -> None:
    site.consumer(site.accept(name="tags"), group="A", expression="TagA || TagC")
    site.consumer(site.accept(name="sql"), group="B", expression=rocketmq.sql("price > 10"))
    site.send(b"1", TAGS="TagA", price="5")
    site.send(b"2", TAGS="TagB", price="50")
    site.clock.advance(100)
    assert sorted(site.given) == [("sql", b"2", 0), ("tags", b"1", 0)]


def test_an_offset_below_what_is_left_is_repaired(site: Site) -> None:
    site.send(*[b"%d" % i for i in range(10)], queue=0)
    site.broker.delete_below(MessageQueue("T", "broker-a", 0), 6)
    site.consumer()
    site.clock.advance(3_000)
    assert site.bodies() == [b"6", b"7", b"8", b"9"]


def test_a_restart_repeats_what_is_behind_the_smallest_unfinished_offset(site: Site) -> None:
    fails = {b"1"}

    def listener(messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        context.ack_index = -5 if messages[0].body in fails else context.ack_index
        return site.accept()(messages, context)

    consumer = site.consumer(listener)
    site.send(b"0", b"1", b"2", b"3", b"4", queue=0)
    site.clock.advance(12_000)
    assert site.committed() == [1]
    consumer.shutdown()
    fails.clear()
    site.given.clear()
    site.consumer(listener)
    assert site.bodies() == [b"1", b"2", b"3", b"4"]


def test_offsets_can_be_reset_to_a_time(site: Site) -> None:
    consumer = site.consumer()
    site.send(b"1", b"2", queue=0)
    site.clock.advance(60_000)
    moment = site.clock.now()
    site.send(b"3", b"4", queue=0)
    site.clock.advance(20_000)
    assert site.bodies() == [b"1", b"2", b"3", b"4"]
    site.given.clear()
    consumer.reset_offset_by_timestamp(moment)
    site.clock.advance(20_000)
    assert site.bodies() == [b"3", b"4"]
    assert site.committed() == [4]
    queue = MessageQueue("T", "broker-a", 0)
    assert (consumer.min_offset(queue), consumer.max_offset(queue), consumer.search_offset(queue, moment)) == (0, 4, 2)
    assert queue in consumer.fetch_subscribe_message_queues("T")


def test_in_order_a_pull_that_waits_meanwhile_undoes_a_reset_and_a_suspended_consumer_has_none(site: Site) -> None:
    site.send(b"1", b"2")
    consumer = site.consumer(MessageListenerOrderly(site.accept(ConsumeOrderlyStatus.SUCCESS)))
    site.clock.advance(2_000)
    assert site.bodies() == [b"1", b"2"]
    site.given.clear()
    consumer.reset_offset_by_timestamp(0)
    site.clock.advance(40_000)
    assert (site.bodies(), site.committed()) == ([], [2])  # as the real client beside the real broker
    consumer.suspend()
    site.clock.advance(20_000)
    consumer.reset_offset_by_timestamp(0)
    site.clock.advance(40_000)
    assert (site.bodies(), site.committed()) == ([b"1", b"2"], [2])


@pytest.mark.parametrize("suspended", [False, True])
def test_a_pull_that_waits_while_the_tags_change_drops_what_only_the_new_ones_want(site: Site, suspended: bool) -> None:
    consumer = site.consumer(expression="A")
    if suspended:
        consumer.suspend()
        site.clock.advance(20_000)
    consumer.subscribe("T", "A || B")
    if suspended:
        consumer.resume()
        site.clock.advance(2_000)
    for tag in ("A", "B"):  # nothing is answered in between
        site.broker.send_message("P", Message("T", tag.encode(), tags=tag), MessageQueue("T", "broker-a", 0))
    site.clock.advance(30_000)
    assert site.bodies() == ([b"A", b"B"] if suspended else [b"A"])
    assert site.committed() == [2]


def test_shutdown_waits_for_what_is_in_flight() -> None:
    clock = SystemClock()
    began, go = threading.Event(), threading.Event()

    def listener(messages: Sequence[MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
        began.set()
        go.wait(120)
        return DONE

    with rocketmq.Broker(clock=clock) as broker:
        broker.create_topic("T", 1)
        rocketmq.Producer(broker).send("T", b"x")
        consumer = rocketmq.DefaultMQPushConsumer(
            "G", broker=broker, consume_from_where=FIRST, await_termination_millis_when_shutdown=30_000
        )
        consumer.subscribe("T")
        consumer.register_message_listener(listener)
        consumer.start()
        assert began.wait(120)
        stopping = threading.Thread(target=consumer.shutdown)
        stopping.start()
        stopping.join(0.1)
        assert stopping.is_alive()
        go.set()
        stopping.join(120)
        assert list(broker.consumer_offsets("G", "T").values()) == [1]
        consumer.shutdown()
    clock.close()


def test_a_start_that_fails_at_the_brokers_leaves_nothing_running(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise MQBrokerError(1, "no route")

    consumer = site.consumer(start=False)
    monkeypatch.setattr(site.broker, "topic_subscribe_info", refuse)
    monkeypatch.setattr(site.broker, "unregister_client", refuse)
    with pytest.raises(MQBrokerError, match="no route"):
        consumer.start()
    assert consumer.default_mq_push_consumer_impl.service_state == "SHUTDOWN_ALREADY"
    with pytest.raises(MQClientError, match="maybe started once, SHUTDOWN_ALREADY"):
        consumer.start()


def test_brokers_that_cannot_be_reached_for_a_while(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise MQBrokerError(1, "down")

    site.consumer()
    with monkeypatch.context() as down:
        for name in ("pull_message", "send_heartbeat", "update_consumer_offset", "get_consumer_id_list"):
            down.setattr(site.broker, name, refuse)
        site.clock.advance(60_000)
    site.send(b"1", b"2", queue=0)
    site.clock.advance(30_000)
    assert site.bodies() == [b"1", b"2"]
    assert site.committed() == [2]


def test_the_pool_grows_with_its_tasks() -> None:
    clock = SystemClock()
    pool = ConsumePool(clock, "pool_", 3, 5)
    names: set[str] = set()
    go, began = threading.Event(), threading.Semaphore(0)

    def task() -> None:
        names.add(threading.current_thread().name)
        began.release()
        go.wait(120)

    for _ in range(6):
        pool.submit([task])
    for _ in range(3):
        assert began.acquire(timeout=120)
    assert names == {"pool_1", "pool_2", "pool_3"}
    assert not pool.close(1)
    go.set()
    assert pool.submit([task]) == 0
    clock.close()


def test_more_threads_take_the_tasks_that_wait_already() -> None:
    clock = SystemClock()
    pool = ConsumePool(clock, "pool_", 1, 10)
    go, done = threading.Event(), threading.Semaphore(0)

    def stuck() -> None:
        go.wait(120)

    pool.submit([stuck, *[done.release] * 5])
    assert not done.acquire(blocking=False)
    pool.update_core_pool_size(3)
    for _ in range(5):
        assert done.acquire(timeout=120)
    go.set()
    assert pool.close(120_000)
    clock.close()


class NamedClock(ManualClock):
    """Keeps the names of the workers that are not closed, and of the one that works."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.at_work = ""

    def worker(self, name: str) -> Worker:
        clock, made = self, super().worker(name)
        clock.open.append(name)

        class Named(Worker):
            def submit(self, action: Callable[[], None]) -> None:
                def act() -> None:
                    clock.at_work = name
                    action()

                made.submit(act)

            def close(self) -> None:
                clock.open.remove(name)
                made.close()

        return Named()


def test_threads_that_are_too_many_end_after_a_minute_without_a_task() -> None:
    clock = NamedClock()
    pool = ConsumePool(clock, "", 4, 10)
    names: list[str] = []

    def work(count: int) -> None:
        for _ in range(count):
            pool.submit([lambda: names.append(clock.at_work)])
            clock.settle()

    work(6)  # who waits the longest is next, as in Java
    assert names == ["1", "2", "3", "4", "1", "2"]
    pool.update_core_pool_size(1)
    clock.advance(59_000)
    work(2)
    assert (names[6:], clock.open) == (["3", "4"], ["1", "2", "3", "4"])
    clock.advance(1000)
    assert clock.open == ["3", "4"]
    pool.update_core_pool_size(2)
    clock.advance(60_000)
    assert clock.open == ["3", "4"]
    pool.update_core_pool_size(1)
    clock.advance(60_000)
    assert clock.open == ["4"]
    work(2)
    assert names[8:] == ["4", "4"]
    assert pool.close(0)
    assert clock.open == []


def test_topic_thresholds_are_shared_by_all_queues() -> None:
    site = Site(queues=2)
    consumer = site.consumer(pull_threshold_for_topic=1000, pull_threshold_size_for_topic=70)
    assert (consumer.pull_threshold_for_queue, consumer.pull_threshold_size_for_queue) in ((500, 35), (333, 23))
    site.close()


def test_start_refuses_in_the_real_words(site: Site) -> None:
    consumer = site.consumer(start=False, consume_thread_min=30)
    with pytest.raises(MQClientError, match=r"consumeThreadMin \(30\) is larger than consumeThreadMax \(20\)"):
        consumer.start()
    with pytest.raises(MQClientError, match="maybe started once, START_FAILED"):
        consumer.start()
    site.consumer(instance_name="one")
    with pytest.raises(MQClientError, match="has been created before"):
        site.consumer(instance_name="one")
    with pytest.raises(IllegalStateError, match="consume_timeout = 0"):
        site.consumer(group="H", consume_timeout=0)
    for name in ("poll_name_server_interval", "heartbeat_broker_interval", "persist_consumer_offset_interval"):
        with pytest.raises(IllegalStateError, match=f"{name} = 0: a period"):
            site.consumer(group="I", **{name: 0})
    site.clock.advance(60_000)
    for name, value in (("instance_name", None), ("client_ip", 5), ("unit_name", 5), ("consume_timestamp", 5)):
        with pytest.raises(ConfigurationError, match=f"{name}={value!r}: a string is needed"):
            site.consumer(group="I", **{name: value})
    with pytest.raises(ConfigurationError, match="allocate_message_queue_strategy='AVG': a strategy is needed"):
        site.consumer(group="I", allocate_message_queue_strategy="AVG")
    for name, text in (
        ("offset_store", "the method load"),
        ("message_queue_listener", "the method message_queue_changed"),
        ("subscription", "a mapping topic -> expression"),
    ):
        with pytest.raises(ConfigurationError, match=f"{name}=5: .*{text} is needed"):
            site.consumer(group="I", **{name: 5})
    with pytest.raises(MQClientError, match="subscription exception"):
        consumer.subscribe("T", "||")


def test_update_core_pool_size_keeps_below_the_maximum(site: Site) -> None:
    consumer = site.consumer()
    for asked, expected in ((19, 19), (20, 19), (0, 19), (-1, 19), (5, 5)):
        consumer.update_core_pool_size(asked)
        assert consumer.consumer_running_info().properties["PROP_THREADPOOL_CORE_SIZE"] == str(expected)


def test_rates_and_running_info(site: Site) -> None:
    consumer = site.consumer()
    for _ in range(6):
        site.send(b"x")
        site.clock.advance(10_000)
    info = consumer.consumer_running_info(with_stacks=True)
    assert info.status_table["T"].consume_ok_tps == pytest.approx(0.1)
    assert info.status_table["T"].consume_failed_msgs == 0
    assert info.properties["consumeThreadMin"] == "20"
    assert info.properties["PROP_CONSUMEORDERLY"] == "false"
    assert (info.properties["clientIP"], info.properties["useTLS"]) == ("127.0.0.1", "false")
    assert not {"clientIp", "useTls", "namespace", "unitName", "localOffsetStoreDir"} & info.properties.keys()
    assert [data.topic for data in info.subscription_set] == ["%RETRY%G", "T"]
    assert info.analyze_process_queue() == []
    here = threading.current_thread()
    name = f"{here.name:<40}"
    first, *frames = info.jstack.partition(name)[2].partition("\n\n")[0].splitlines()
    assert first == f"TID: {here.ident} STATE: ALIVE"
    assert frames
    assert all(frame.startswith(name) for frame in frames)
    assert frames[-1].endswith(")")


def test_the_listeners_time_is_the_hours_where_the_minute_has_none() -> None:
    statistics = ConsumeStatistics()
    statistics.consumed("T", "G", 40, "SUCCESS")
    for now in range(10_000, 100_000, 10_000):
        statistics.sample(now)
    assert statistics.status("T", "G").consume_rt == 40
    statistics.consumed("T", "G", 10, "SUCCESS")
    statistics.sample(100_000)
    assert statistics.status("T", "G").consume_rt == 10


def test_only_a_message_that_says_so_is_of_a_transaction() -> None:
    site = Site()
    seen: list[str | None] = []

    def listen(messages: Sequence[MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
        seen.append(messages[0].transaction_id)
        return DONE

    site.consumer(listen)
    site.send(b"plain", TRAN_MSG="false")
    again = {"TRAN_MSG": "True", "DELAY": "1", "RECONSUME_TIME": "1", "UNIQ_KEY": "transaction"}
    site.broker.send_message("inner", Message("%RETRY%G", b"again", properties=again))
    site.clock.advance(10_000)
    assert seen == [None, "transaction"]
    site.close()


def test_a_task_runs_first_after_its_delay_and_then_at_its_rate() -> None:
    clock = ManualClock(now=1000)
    times: list[int] = []
    task = Periodic(clock, clock.worker("task"), 10_000, 5_000, lambda: times.append(clock.now() - 1000))
    clock.advance(9_999)
    assert times == []
    clock.advance(11_000)
    task.stop()
    clock.advance(60_000)
    assert times == [10_000, 15_000, 20_000]


def test_what_came_after_its_delay_is_let_go_of() -> None:
    clock = ManualClock(now=0)
    ran: list[int] = []
    delayed = Delayed(clock, clock.worker("delayed"))
    for delay in (5, 9):
        delayed.add(delay, partial(ran.append, delay))
    clock.advance(5)
    assert (ran, delayed.moments) == ([5], [9])
    delayed.stop()
    clock.advance(60)
    assert (ran, delayed.moments) == ([5], [])


def test_delay_and_the_two_meanings_of_1970() -> None:
    site = Site(queues=3)
    consumer = site.consumer()
    queues = [MessageQueue("T", "broker-a", queue) for queue in range(3)]
    site.send(b"a", b"b", queue=0)
    site.clock.advance(1)
    site.send(b"c", queue=1)
    site.clock.advance(15_000)
    consumer.shutdown()
    site.send(b"d", queue=0)
    site.send(b"e", queue=2)
    site.broker.delete_below(queues[1], 1)
    stats = rocketmq.consume_stats(site.broker, "G", "T")
    rows = [stats.offset_table[queue] for queue in queues]
    assert [row.delay for row in rows] == [1, 0, 1]
    assert [row.last_consume for row in rows] == [
        rocketmq.LastConsume.KNOWN,
        rocketmq.LastConsume.DELETED,
        rocketmq.LastConsume.NOTHING_CONSUMED,
    ]
    assert [row.last_timestamp for row in rows] == [site.clock.now() - 15_001, 0, 0]
    assert (stats.total_delay(), stats.total_delay("U")) == (2, 0)
    assert stats.oldest_last_timestamp() == site.clock.now() - 15_001
    site.close()


def test_on_real_threads_every_message_arrives_once_and_nothing_is_left_running() -> None:
    before = {thread.name for thread in threading.enumerate()}
    clock = SystemClock()
    names: set[str] = set()
    lock = threading.Lock()
    bodies: list[bytes | None] = []
    done, plain = threading.Event(), threading.Event()

    async def listener(messages: Sequence[MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
        with lock:
            bodies.extend(message.body for message in messages)
            if len(bodies) >= 500:
                done.set()
        return DONE

    def blocking(messages: Sequence[MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
        names.add(threading.current_thread().name)
        plain.set()
        return DONE

    with rocketmq.Broker(clock=clock) as broker:
        broker.create_topic("T", 4)
        producer = rocketmq.Producer(broker)
        for i in range(500):
            producer.send(Message("T", b"%d" % i))
        consumers = []
        for group, handler in (("async", listener), ("plain", blocking)):
            consumer = rocketmq.DefaultMQPushConsumer(
                group, broker=broker, consume_from_where=FIRST, await_termination_millis_when_shutdown=10_000
            )
            consumer.subscribe("T")
            consumer.register_message_listener(handler)  # type: ignore[type-var]
            consumer.start()
            consumers.append(consumer)
        assert done.wait(120)
        assert plain.wait(120)
        for consumer in consumers:
            consumer.shutdown()
        assert sorted(bodies, key=str) == sorted([b"%d" % i for i in range(500)], key=str)
        assert names
        assert all(name.startswith("ConsumeMessageThread_plain_") for name in names)
        assert sum(broker.consumer_offsets("async", "T").values()) == 500
    clock.close()
    for thread in threading.enumerate():
        if thread.name.startswith("ConsumeMessageLoop_"):
            thread.join(120)  # it was told to end
    left = {thread.name for thread in threading.enumerate()} - before
    assert not {name for name in left if "Consume" in name or "Rebalance" in name or "MQClient" in name}
