"""How a consumer begins and ends: what start() refuses, what shutdown() does to listeners; how far its group is."""

from __future__ import annotations

import asyncio
import gc
import re
import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

import pytest

from pyengine import rocketmq
from pyengine.clock import ManualClock, Timer
from pyengine.errors import ConfigurationError, IllegalStateError, MQBrokerError
from pyengine.rocketmq import (
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    ConsumeOrderlyStatus,
    MessageExt,
    MessageQueue,
    MQClientError,
)
from pyengine.rocketmq.consumer.client import Periodic
from pyengine.rocketmq.remoting.mq_client_api import HeartbeatData
from tests.ctrl_c import LIBRARY, CtrlC

DONE = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


def consumer_of(broker: rocketmq.Broker, listener: Any, **parameters: Any) -> rocketmq.DefaultMQPushConsumer:
    consumer = rocketmq.DefaultMQPushConsumer("G", broker=broker, consume_from_where=FIRST, **parameters)
    consumer.subscribe("T")
    consumer.register_message_listener(listener)
    return consumer


def broker_with(messages: int, **options: Any) -> rocketmq.Broker:
    broker = rocketmq.Broker(**options)
    broker.create_topic("T", 1)
    producer = rocketmq.Producer(broker)
    for i in range(messages):
        producer.send("T", b"%d" % i)
    return broker


def consume_threads() -> list[str]:
    """Those that stay; one whose listener still runs at the end of shutdown ends by itself."""
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("Consume")]
    for thread in threads:
        thread.join(60)
    return [thread.name for thread in threads if thread.is_alive()]


def test_start_refuses_an_expression_that_the_broker_cannot_read() -> None:
    with broker_with(0, clock=ManualClock()) as broker:
        consumer = consumer_of(broker, lambda messages, context: DONE)
        consumer.subscribe("T", rocketmq.sql("price >>> 3"))
        with pytest.raises(MQClientError, match=r"^CODE: 23  DESC: Invalid MessageSelector\. ") as refused:
            consumer.start()
        assert "'T'" in refused.value.__notes__[0]
        with pytest.raises(MQClientError, match="SHUTDOWN_ALREADY"):
            consumer.start()


@pytest.mark.parametrize("given", [{"consume_thread_min": "20"}, {"pull_batch_size": None}, {"pull_interval": 1.5}])
def test_start_refuses_a_number_that_is_none(given: dict[str, Any]) -> None:
    with broker_with(0, clock=ManualClock()) as broker:
        name, value = given.popitem()
        consumer = consumer_of(broker, lambda messages, context: DONE, **{name: value})
        with pytest.raises(ConfigurationError, match=re.escape(f"{name}={value!r}: a whole number is needed")):
            consumer.start()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("message_model", "BROADCASTING", "a MessageModel is needed; known: MessageModel.CLUSTERING, "),
        ("consume_from_where", "CONSUME_FROM_FIRST_OFFSET", "a ConsumeFromWhere is needed; known: "),
        ("allocate_message_queue_strategy", "AVG", "a strategy is needed; give an object, as AllocateMessageQueue"),
    ],
)
def test_start_refuses_a_text_where_it_is_no_text_that_counts(name: str, value: str, words: str) -> None:
    with broker_with(0, clock=ManualClock()) as broker:
        consumer = consumer_of(broker, lambda messages, context: DONE)
        setattr(consumer, name, value)
        with pytest.raises(ConfigurationError, match=re.escape(f"{name}={value!r}: {words}")):
            consumer.start()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("consumeThreadMin", "consume_thread_min"),
        ("clientIP", "client_ip"),
        ("pull_batchsize", "pull_batch_size"),
        ("consume_thread_mn", "consume_thread_min"),
        ("subscriptions", "subscription"),
        ("brokers", "broker"),
    ],
)
def test_a_parameter_is_not_set_by_a_name_that_nobody_reads(name: str, meant: str) -> None:
    consumer = rocketmq.DefaultMQPushConsumer("G")
    with pytest.raises(ConfigurationError, match=rf"{name}=5: no such attribute.*did you mean '{meant}'\?"):
        setattr(consumer, name, 5)
    assert not hasattr(consumer, name)


def test_a_name_that_is_near_no_other_is_a_users_own_class_to_have() -> None:
    with pytest.raises(AttributeError, match=r"DefaultMQPushConsumer\.orders=5: no such attribute"):
        rocketmq.DefaultMQPushConsumer("G").orders = 5


def test_a_consumer_may_be_given_what_is_no_parameter() -> None:
    class Counting(rocketmq.DefaultMQPushConsumer):
        seen = 0

    consumer = Counting("G")
    for name in ("seen", "topic", "orders", "_pullBatchSize"):
        setattr(consumer, name, 1)
        assert getattr(consumer, name) == 1
    for parameter in fields(consumer):
        setattr(consumer, parameter.name, getattr(consumer, parameter.name))


@pytest.mark.parametrize("listener", [None, 5])
def test_what_cannot_be_called_is_no_listener(listener: Any) -> None:
    with broker_with(0, clock=ManualClock()) as broker:
        words = f"listener={listener}: cannot be called; give a function of \\(messages, context\\)"
        with pytest.raises(ConfigurationError, match=words):
            consumer_of(broker, listener)
        with pytest.raises(ConfigurationError, match=words):
            rocketmq.MessageListenerOrderly(listener)


@pytest.mark.parametrize(
    ("topic", "expression", "words"),
    [
        (None, "*", "topic=None: must be a string"),
        (["T"], "*", re.escape("topic=['T']: must be a string")),
        ("T", 5, "expression=5: a string is needed; give tags"),
    ],
)
def test_what_is_no_text_is_subscribed_to_neither_before_nor_meanwhile(topic: Any, expression: Any, words: str) -> None:
    with broker_with(1, clock=ManualClock()) as broker:
        seen: list[Sequence[MessageExt]] = []
        consumer = consumer_of(broker, lambda messages, context: seen.append(messages) or DONE)
        for before in (True, False):
            with pytest.raises(ConfigurationError, match=words):
                consumer.subscribe(topic, expression)
            if before:
                consumer.start()
        consumer.clock.advance(2000)  # type: ignore[attr-defined]
        assert len(seen) == 1
        consumer.shutdown()
        if isinstance(topic, str | None):
            consumer = consumer_of(broker, seen.append, subscription={topic: expression})
            with pytest.raises(ConfigurationError, match=words):
                consumer.start()


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("consumer_group", b"G", "must be a string"),
        ("broker", "10.0.0.1:9876", "no RocketMQ cluster; give a rocketmq.Broker"),
        ("clock", 5, "a clock of pyengine.clock is needed"),
    ],
)
def test_a_consumer_is_made_of_a_group_a_broker_and_a_clock(name: str, value: Any, hint: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(f"{name}={value!r}: {hint}")):
        rocketmq.DefaultMQPushConsumer(**{name: value})


def test_a_running_consumer_is_asked_with_numbers_and_messages() -> None:
    with broker_with(0, clock=ManualClock()) as broker, consumer_of(broker, lambda messages, context: DONE) as consumer:
        with pytest.raises(ConfigurationError, match="size=None"):
            consumer.update_core_pool_size(None)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match="message='m': a MessageExt is needed"):
            consumer.send_message_back("m", 1)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match="delay_level='1'"):
            consumer.send_message_back(MessageExt("T"), "1")  # type: ignore[arg-type]


def test_an_expression_of_an_unknown_topic_is_not_looked_at_by_start() -> None:
    with broker_with(0, clock=ManualClock()) as broker:
        consumer = consumer_of(broker, lambda messages, context: DONE)
        consumer.subscribe("nowhere", rocketmq.sql("price >>> 3"))
        with consumer:
            assert consumer.fetch_subscribe_message_queues("T")


def test_a_coroutine_that_runs_at_shutdown_is_cancelled_and_its_message_comes_again() -> None:
    began, cancelled = threading.Event(), threading.Event()
    again: list[bytes | None] = []
    done = threading.Event()

    async def endless(messages: Sequence[MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
        began.set()
        try:
            await asyncio.sleep(3600)
        finally:
            cancelled.set()
        return DONE

    def listener(messages: Sequence[MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
        again.append(messages[0].body)
        done.set()
        return DONE

    with broker_with(1) as broker:
        consumer = consumer_of(broker, endless)
        consumer.start()
        assert began.wait(120)
        consumer.shutdown()
        assert cancelled.wait(120)
        assert not consume_threads()
        assert broker.topics().get("%DLQ%G") is None
        assert broker.max_offset(MessageQueue("%RETRY%G", "broker-a", 0)) == 0
        following = consumer_of(broker, listener)
        following.start()
        assert done.wait(120)
        following.shutdown()
        assert again == [b"0"]


def test_listeners_may_shut_their_consumer_down_all_at_once() -> None:
    ended = threading.Barrier(4)

    def listener(messages: Sequence[MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
        consumer.shutdown()
        ended.wait(120)
        return DONE

    with broker_with(3) as broker:
        consumer = consumer_of(broker, listener, await_termination_millis_when_shutdown=50)
        consumer.start()
        ended.wait(120)
        assert broker.consumer_offsets("G", "T") == {MessageQueue("T", "broker-a", 0): 0}


@pytest.mark.parametrize(("wait", "said"), [(20, ["G: listeners still ran at shutdown after 20 ms"]), (120_000, [])])
def test_shutdown_says_so_where_listeners_still_run(
    wait: int, said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    began, go_on = threading.Event(), threading.Event()

    def listener(messages: Sequence[MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
        began.set()
        assert go_on.wait(120)
        return DONE

    with broker_with(1) as broker:
        consumer = consumer_of(broker, listener, await_termination_millis_when_shutdown=wait)
        consumer.start()
        assert began.wait(120)
        if not said:
            go_on.set()
        consumer.shutdown()
        go_on.set()
        assert not consume_threads()
    assert [text for _, _, text in caplog.record_tuples if "shutdown" in text] == said


def test_stats_of_a_group_are_of_all_that_it_consumes_with_what_is_in_flight() -> None:
    clock = ManualClock(1_700_000_000_000)
    answers: dict[bytes | None, int] = {b"3": -5}

    def listener(messages: Sequence[MessageExt], context: Any) -> ConsumeConcurrentlyStatus:
        context.ack_index = answers.get(messages[0].body, context.ack_index)
        return DONE

    with broker_with(5, clock=clock) as broker:
        broker.create_topic("U", 1)
        assert rocketmq.consume_stats(broker, "G").offset_table == {}
        consumer = consumer_of(broker, listener)
        consumer.subscribe("U")
        consumer.start()
        clock.advance(40_000)
        queues = {topic: MessageQueue(topic, "broker-a", 0) for topic in ("T", "U", "%RETRY%G")}
        table = rocketmq.consume_stats(broker, "G").offset_table
        assert set(table) == set(queues.values())
        row = table[queues["T"]]
        assert (row.broker_offset, row.consumer_offset, row.pull_offset, row.delay, row.inflight) == (5, 3, 5, 2, 2)
        consumer.unsubscribe("U")
        clock.advance(60_000)
        assert set(rocketmq.consume_stats(broker, "G").offset_table) == {queues["T"], queues["%RETRY%G"]}
        # As getConsumeStats: a topic that is named and not wanted is left out, but where members want nothing.
        assert set(rocketmq.consume_stats(broker, "G", "T", "U").offset_table) == {queues["T"]}
        consumer.shutdown()
        assert set(rocketmq.consume_stats(broker, "G", "U").offset_table) == {queues["U"]}
        where = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
        broker.send_heartbeat(HeartbeatData("c", "G", rocketmq.MessageModel.CLUSTERING, where, ()))
        assert set(rocketmq.consume_stats(broker, "G").offset_table) == set(queues.values())


class Shaken:
    """A cluster whose calls raise ``error`` while there is one."""

    def __init__(self, broker: rocketmq.Broker) -> None:
        self.broker = broker
        self.error: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.broker, name)
        if name in ("clock", "settle"):
            return found

        def call(*given: Any, **named: Any) -> Any:
            if self.error is not None:
                raise self.error
            return found(*given, **named)

        return call


@pytest.mark.parametrize("error", [ConnectionResetError("reset"), ValueError("no JSON"), MQClientError("down")])
@pytest.mark.parametrize("orderly", [False, True])
def test_a_cluster_that_raises_whatever_it_likes_is_asked_again(error: Exception, orderly: bool) -> None:
    clock = ManualClock()
    with broker_with(2, clock=clock) as broker:
        seen: list[bytes | None] = []

        def listener(messages: Sequence[MessageExt], context: Any) -> Any:
            seen.extend(message.body for message in messages)
            if seen == [b"1"]:
                shaken.error = error
                return None  # given back, which fails too
            return rocketmq.ConsumeOrderlyStatus.SUCCESS if orderly else DONE

        shaken = Shaken(broker)
        broker.update_consumer_offset("G", MessageQueue("T", "broker-a", 0), 1)
        consumer = consumer_of(shaken, rocketmq.MessageListenerOrderly(listener) if orderly else listener)  # type: ignore[arg-type]
        consumer.start()
        clock.advance(120_000)
        rocketmq.Producer(broker).send("T", b"2")
        consumer.resume()
        shaken.error = None
        clock.advance(120_000)
        assert sorted(set(seen), key=str) == [b"1", b"2"]
        assert list(broker.consumer_offsets("G", "T").values()) == [3]
        shaken.error = error
        consumer.shutdown()


def test_a_listener_of_queues_and_an_offset_store_that_raise_end_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Listener:
        def message_queue_changed(self, topic: str, queues: set[MessageQueue], mine: set[MessageQueue]) -> None:
            told.append(topic)
            raise KeyError(topic)

    class Full(rocketmq.RemoteBrokerOffsetStore):
        def persist_all(self, queues: Any) -> None:
            raise OSError(28, "No space left on device")

    told: list[str] = []
    clock = ManualClock()
    with broker_with(1, clock=clock) as broker:
        seen: list[Sequence[MessageExt]] = []
        store = Full(broker, "G")
        consumer = consumer_of(
            broker, lambda messages, context: seen.append(messages) or DONE, message_queue_listener=Listener(),
            offset_store=store,
        )  # fmt: skip
        consumer.start()
        clock.advance(2000)
        assert (len(seen), told) == (1, ["T", "%RETRY%G"])
        broker.create_topic("T", 2)
        rocketmq.Producer(broker).send("T", b"x", queue=MessageQueue("T", "broker-a", 1))
        clock.advance(60_000)
        assert (len(seen), told) == (2, ["T", "%RETRY%G", "T"])
        raised = [each for each in caplog.records if each.getMessage() == "rebalance Exception (group G, topic T)"]
        assert [str(each.exc_info and each.exc_info[1]) for each in raised] == ["'T'", "'T'"], "not the retry topic's"
        consumer.shutdown()
        assert consumer.default_mq_push_consumer_impl.service_state == "SHUTDOWN_ALREADY"


@pytest.mark.parametrize("orderly", [False, True])
def test_a_broker_may_be_closed_before_its_consumer(orderly: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    heard, goes_on = threading.Event(), threading.Event()

    def listen(messages: Sequence[MessageExt], context: Any) -> Any:
        heard.set()
        goes_on.wait(60)
        return rocketmq.ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT if orderly else DONE

    broker = broker_with(50)
    consumer = consumer_of(
        broker, rocketmq.MessageListenerOrderly(listen) if orderly else listen, pull_batch_size=1, pull_interval=1
    )
    consumer.start()
    assert heard.wait(60)
    broker.close()
    consumer.default_mq_push_consumer_impl.running.rebalance_service.wakeup()
    goes_on.set()
    consumer.shutdown()
    assert failed == []
    assert consume_threads() == []


def test_a_start_that_fails_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    broker = broker_with(0)
    with pytest.raises(IllegalStateError, match="consume_timeout = 0"):
        consumer_of(broker, lambda messages, context: DONE, consume_timeout=0).start()
    broker.close()
    for listener in (lambda messages, context: DONE, rocketmq.MessageListenerOrderly(lambda messages, context: DONE)):
        with pytest.raises(IllegalStateError, match="the clock is closed"):
            consumer_of(broker, listener, message_model=rocketmq.MessageModel.BROADCASTING).start()
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("asked", ["register_client", "topic_subscribe_info", "send_heartbeat"])
def test_a_start_that_is_interrupted_leaves_no_thread_and_no_member(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    broker = broker_with(0)
    before = set(threading.enumerate())
    consumer = consumer_of(broker, lambda messages, context: DONE, instance_name="once")
    with monkeypatch.context() as interrupted:
        interrupted.setattr(broker, asked, interrupt)
        with pytest.raises(KeyboardInterrupt):
            consumer.start()
    assert {thread for thread in threading.enumerate() if "timer" not in thread.name} <= before
    again = consumer_of(broker, lambda messages, context: DONE, instance_name="once")
    again.start()
    assert broker.get_consumer_id_list("T", "G") == ["127.0.0.1@once"]
    again.shutdown()
    broker.close()


@pytest.fixture
def no_finalizers() -> Iterator[None]:
    """What other tests left is not collected meanwhile: Ctrl-C would be lost there."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_finalizers")
@pytest.mark.parametrize("orderly", [False, True])
def test_a_start_that_is_interrupted_anywhere_leaves_nothing_behind(
    orderly: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL", "pyengine.rocketmq")  # what is logged would be kept

    def handler(*_: object) -> Any:
        return ConsumeOrderlyStatus.SUCCESS if orderly else DONE

    step, clock = 0, ManualClock()
    broker = broker_with(1, clock=clock)
    kept = []
    interrupted = True
    while interrupted:
        step += 1
        listener = rocketmq.MessageListenerOrderly(handler) if orderly else handler
        consumer = consumer_of(broker, listener, instance_name="once")
        interrupted = CtrlC(LIBRARY, step).ends(consumer.start)
        state = consumer.default_mq_push_consumer_impl.service_state
        consumer.shutdown()
        kept.append(weakref.ref(consumer.default_mq_push_consumer_impl))
    assert state == "RUNNING"
    assert step > 500
    del consumer, listener
    clock.advance(15 * 60_000)  # what was timed and not known yet ends there
    gc.collect()
    assert [member for member in kept if member() is not None] == []
    with pytest.raises(MQBrokerError, match="no consumer for this group"):
        broker.get_consumer_id_list("T", "G")
    broker.close()


def test_a_period_that_begins_at_once_is_kept_where_its_first_timer_is_quicker() -> None:
    class Quick(ManualClock):
        def call_at(self, when: int, action: Any) -> Timer:
            timer = super().call_at(when, action)
            if when <= self.now():
                self.advance(0)
            return timer

    runs = []
    clock = Quick()
    periodic = Periodic(clock, clock.worker("one"), 0, 1000, lambda: runs.append(clock.now()))
    clock.advance(2500)
    periodic.stop()
    clock.advance(5000)
    assert [now - runs[0] for now in runs] == [0, 1000, 2000]


def test_a_broker_keeps_nothing_of_consumers_that_are_gone() -> None:
    clock = ManualClock()
    with broker_with(0, clock=clock) as broker:
        consumers = [consumer_of(broker, lambda messages, context: DONE, instance_name="one") for _ in range(2)]
        consumers[1].consumer_group = "H"
        for consumer in consumers:
            consumer.start()
        client = weakref.ref(consumers[0].default_mq_push_consumer_impl.running)
        consumers[0].shutdown()
        clock.advance(30_000)
        other = consumer_of(broker, lambda messages, context: DONE, instance_name="first")
        other.consumer_group = "H"
        other.start()
        clock.advance(2_000)
        # The client was told of the new member, long before its next look.
        held = [len(member.consumer_running_info().mq_table) for member in (consumers[1], other)]
        assert held == [0, 2], "the queue of T and that of the retry topic"
        for consumer in (consumers[1], other):
            consumer.shutdown()
        consumers.clear()
        del consumer, other
        clock.advance(20_000)  # what the brokers held for them is answered
        gc.collect()
        assert client() is None


def test_a_block_of_a_consumer_without_a_listener_says_that_it_starts_there() -> None:
    with (
        rocketmq.Broker() as broker,
        pytest.raises(MQClientError) as caught,
        rocketmq.DefaultMQPushConsumer("G", broker=broker) as consumer,
    ):
        consumer.subscribe("T")
    assert caught.value.__notes__ == ["with starts the consumer: subscribe and register_message_listener before it"]
