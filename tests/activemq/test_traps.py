"""What would do nothing, or something else than its author means, says so."""

from __future__ import annotations

import dataclasses
import importlib
import logging
import os
import re
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pyengine import Message
from pyengine.activemq import Broker, ConnectionFactory, ConnectionOptions, PrefetchPolicy, RedeliveryPolicy, aio
from pyengine.clock import ManualClock, SystemClock
from pyengine.destinations import Destination
from pyengine.errors import (
    ConfigurationError,
    IllegalStateError,
    InvalidMessageError,
    PyengineError,
    UnknownNameError,
)
from pyengine.rocketmq import RecordWorker
from pyengine.topology.policy import DiscardingPlugin, Policy, RedeliveryPlugin, TimedSubscriptionRecoveryPolicy

UNSTARTED = (
    "Received a message on a connection which is not yet started. Have you forgotten to call Connection.start()?"
)


class Scene:
    def __init__(self, broker: Broker, options: str = "") -> None:
        self.broker = broker
        self.factory = ConnectionFactory(f"vm://localhost?{options}", broker=broker)
        self.connection = self.factory.create_connection()
        self.session = self.connection.create_session()
        self.producer = self.session.create_producer("q")
        self.consumer = self.session.create_consumer("q")
        self.browser = self.session.create_browser("q")


@pytest.fixture
def scene(broker):
    made = Scene(broker)
    yield made
    made.connection.close()


# A connection that was never started


def unstarted(caplog: pytest.LogCaptureFixture) -> int:
    return sum(record.getMessage().startswith(UNSTARTED) for record in caplog.records)


@pytest.mark.parametrize(
    ("options", "after", "warnings"),
    [
        ("", 500, 0),
        ("", 501, 1),
        ("jms.warnAboutUnstartedConnectionTimeout=20", 21, 1),
        ("jms.warnAboutUnstartedConnectionTimeout=-1", 10_000, 0),
        ("jms.alwaysSessionAsync=false&jms.dispatchAsync=false", 501, 1),
    ],
)
def test_a_message_on_a_connection_that_is_not_started_is_warned_of_once(
    broker, clock, caplog, options, after, warnings
):
    scene = Scene(broker, options)
    clock.advance(after)
    for _ in range(3):
        scene.producer.send("x")
    assert unstarted(caplog) == warnings
    if warnings:
        record = caplog.records[-1]
        assert (record.name, record.levelno) == ("pyengine.activemq", logging.WARNING)
        assert scene.connection.connection_id in record.getMessage()
        assert scene.consumer.consumer_id in record.getMessage()
    scene.connection.close()


def test_a_started_connection_is_not_warned_of(scene, clock, caplog):
    clock.advance(1000)
    scene.connection.start()
    scene.producer.send("x")
    scene.connection.stop()
    scene.producer.send("y")
    assert unstarted(caplog) == 0


@pytest.mark.parametrize("wait", [lambda each: each.receive(1), lambda each: each.receive_no_wait()])
def test_a_receive_that_ends_empty_warns_of_what_waits_for_the_start(scene, clock, caplog, wait):
    scene.producer.send("x")  # at once, as in most programs that forget it: the real client says nothing ever
    assert unstarted(caplog) == 0
    assert wait(scene.consumer) is None
    assert wait(scene.consumer) is None
    assert unstarted(caplog) == 1


# Names


@pytest.mark.parametrize(
    ("whose", "name", "meant"),
    [
        ("factory", "clientID", "client_id"),
        ("factory", "queuePrefetch", "PrefetchPolicy(queue_prefetch=...)"),
        ("factory", "useAsyncSend", "use_async_send"),
        ("factory", "url", "fixed"),
        ("connection", "exceptionListener", "exception_listener"),
        ("connection", "clientID", "client_id"),
        ("connection", "connection_id", "fixed"),
        ("session", "acknowledgeMode", "acknowledge_mode"),
        ("session", "acknowledge_mode", "fixed"),
        ("producer", "timeToLive", "time_to_live_ms"),
        ("producer", "deliveryMode", "delivery_mode"),
        ("producer", "delivery_delay", "setDeliveryDelay"),
        ("producer", "deliveryDelay", "setDeliveryDelay"),
        ("producer", "disableMessageTimestamp", "disable_message_timestamp"),
        ("producer", "pritority", "priority"),
        ("consumer", "messageListener", "message_listener"),
        ("browser", "messageSelector", "message_selector"),
        ("broker", "brokerName", "Broker(name=...)"),
        ("broker", "cursorLimit", "cursor_limit"),
        ("broker", "cursor_limit", "fixed"),
    ],
)
def test_a_name_that_nothing_reads_raises_with_the_one_that_was_meant(scene, whose, name, meant):
    thing = getattr(scene, whose)
    for kind in (AttributeError, PyengineError):
        with pytest.raises(kind, match=rf"^{type(thing).__name__}\.{name}=9: .*{re.escape(meant)}"):
            setattr(thing, name, 9)
    assert getattr(thing, name, None) != 9


@pytest.mark.parametrize(
    ("thing", "name", "meant"),
    [
        (PrefetchPolicy(), "queuePrefetch", "queue_prefetch"),
        (PrefetchPolicy(), "queue_prefetch", "dataclasses.replace"),
        (ConnectionOptions(), "clientID", "client_id"),
        (RedeliveryPolicy(), "maximumRedeliveries", "maximum_redeliveries"),
        (RedeliveryPolicy(), "maximum_redeliveries", "where the policy is made"),
        (Policy("q"), "queuePrefetch", "queue_prefetch"),
        (Policy("q"), "queue_prefetch", "dataclasses.replace"),
        (RedeliveryPlugin(), "sendToDlqIfMaxRetriesExceeded", "send_to_dlq_if_max_retries_exceeded"),
        (DiscardingPlugin(), "dropAll", "drop_all"),
        (Destination("q"), "physicalName", "no such attribute"),
        (Destination("q"), "name", "dataclasses.replace"),
    ],
)
def test_a_policy_is_not_changed_and_says_how_another_is_made(thing, name, meant):
    with pytest.raises(AttributeError, match=rf"^{type(thing).__name__}\.{name}=9: .*{re.escape(meant)}"):
        setattr(thing, name, 9)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("JMSReplyTo", "reply_to"),
        ("JMSXGroupID", "group_id"),
        ("jmsType", "type"),
        ("correlationID", "correlation_id"),
        ("colour", "no such attribute"),
    ],
)
def test_a_message_says_which_attribute_was_meant(name, meant):
    message = Message()
    with pytest.raises(UnknownNameError, match=rf"^Message\.{name}=9: .*{meant}"):
        setattr(message, name, 9)
    message.reply_to = "answers"
    assert str(message.reply_to) == "queue://answers"
    with pytest.raises(InvalidMessageError):
        message.priority = "high"

    class Mine(Message):
        pass

    mine = Mine()
    mine.seen = 3
    assert mine.seen == 3


def test_a_record_worker_has_no_other_attributes():
    worker = RecordWorker()
    with pytest.raises(UnknownNameError, match=r"^RecordWorker\.speed=2: no such attribute"):
        worker.speed = 2


FROZEN = [
    kind
    for module in (
        "pyengine.activemq", "pyengine.activemq.broker.events", "pyengine.activemq.broker.views",
        "pyengine.destinations", "pyengine.metrics", "pyengine.rocketmq", "pyengine.topology",
        "pyengine.topology.policy",
    )
    for kind in vars(importlib.import_module(module)).values()
    if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen
]  # fmt: skip


@pytest.mark.parametrize("kind", dict.fromkeys(FROZEN), ids=lambda kind: kind.__name__)
def test_what_cannot_be_changed_says_so_of_every_name(kind):
    thing = object.__new__(kind)
    with pytest.raises(UnknownNameError, match=rf"^{kind.__name__}\.somethingElse=1: no such attribute"):
        thing.somethingElse = 1
    for name in [field.name for field in dataclasses.fields(kind)][:1]:
        with pytest.raises(UnknownNameError, match=rf"^{kind.__name__}\.{name}=1: a {kind.__name__} cannot be changed"):
            setattr(thing, name, 1)


def test_the_nouns_of_asyncio_raise_too(broker):
    factory = aio.ConnectionFactory(broker=broker)
    with pytest.raises(AttributeError, match=r"ConnectionFactory\.clientID=1: .*client_id"):
        factory.clientID = 1


def test_what_is_there_can_be_set_and_a_users_own_class_has_its_own(scene, monkeypatch):
    scene.factory.options = ConnectionOptions(client_id="mine")
    with scene.factory.create_connection() as connection:
        assert connection.client_id == "mine"
    monkeypatch.setattr(scene.producer, "send", lambda *_: "instead")
    assert scene.producer.send("x") == "instead"

    class Mine(ConnectionFactory):
        pass

    mine = Mine(broker=scene.broker)
    mine.tries = 3
    with pytest.raises(AttributeError, match="client_id"):
        mine.clientID = "x"


# Units


def test_what_was_in_seconds_has_another_name_and_raises_with_it(scene):
    with pytest.raises(AttributeError, match="was in seconds; it is 'time_to_live_ms' now"):
        scene.producer.time_to_live = 60
    with pytest.raises(AttributeError, match="time_to_live_ms"):
        _ = scene.producer.time_to_live
    with pytest.raises(TypeError, match="was in seconds; it is 'time_to_live_ms' now"):
        scene.producer.send("x", time_to_live=60)
    assert scene.producer.time_to_live_ms == 0
    assert scene.broker.view("q").queue_size == 0


@pytest.mark.parametrize("life", [2500, timedelta(seconds=2.5), timedelta(microseconds=2_499_001)])
def test_a_time_is_a_number_of_ms_or_a_timedelta(scene, clock, life):
    scene.producer.time_to_live_ms = life
    scene.producer.send("a")
    scene.producer.time_to_live_ms = 0
    scene.producer.send("b", time_to_live_ms=life)
    scene.producer.send("c")
    found = [message.expiration for message in scene.broker.browse("q")]
    assert found == [clock.now() + 2500] * 2 + [0]


@pytest.mark.parametrize("life", [0.5, True, -1, timedelta(-1), "1s", float("nan")])
def test_what_is_no_time_is_no_time_to_live(scene, life):
    with pytest.raises(InvalidMessageError, match=r"time_to_live_ms = .*milliseconds, or a timedelta"):
        scene.producer.time_to_live_ms = life


def test_every_time_that_is_given_takes_a_timedelta(make, clock):
    second = timedelta(seconds=1)
    names = ("initial_redelivery_delay", "redelivery_delay", "maximum_redelivery_delay")
    policy = RedeliveryPolicy(**dict.fromkeys(names, second))
    assert [getattr(policy, name) for name in names] == [1000] * 3
    names = (
        "optimize_acknowledge_time_out",
        "optimized_ack_scheduled_ack_interval",
        "warn_about_unstarted_connection_timeout",
    )
    options = ConnectionOptions(**dict.fromkeys(names, second))
    assert [getattr(options, name) for name in names] == [1000] * 3
    names = ("offline_durable_subscriber_timeout", "offline_durable_subscriber_task_schedule")
    broker = make(name="spans", schedule_period_for_destination_purge=second, **dict.fromkeys(names, second))
    assert [getattr(broker, name) for name in names] == [1000] * 2
    names = ("expire_messages_period", "inactive_timeout_before_gc", "time_before_dispatch_starts")
    found = Policy("q", **dict.fromkeys(names, second))
    assert [getattr(found, name) for name in names] == [1000] * 3
    assert TimedSubscriptionRecoveryPolicy(second).recover_duration == 1000
    before = clock.now()
    clock.advance(second)
    assert clock.now() == before + 1000
    with pytest.raises(ConfigurationError, match=r"optimize_acknowledge_time_out=0\.5: must be a whole number of mill"):
        ConnectionOptions(optimize_acknowledge_time_out=0.5)


def test_a_timeout_takes_a_timedelta(scene, clock):
    before = clock.now()
    assert scene.consumer.receive(timedelta(seconds=2)) is None
    assert scene.consumer.receive_batch(3, timeout=timedelta(seconds=2)) == []
    assert clock.now() == before + 4000


# Properties that ask for what is not done


@pytest.mark.parametrize("batch", [False, True])
def test_a_property_of_the_scheduler_is_warned_of_once_a_connection(scene, caplog, batch):
    names = ("AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_PERIOD", "AMQ_SCHEDULED_REPEAT", "AMQ_SCHEDULED_CRON")
    for name in names:
        first, second = ("* * * * *", "0 * * * *") if name.endswith("CRON") else ("1", "2")
        messages = [Message({"a": 1}), Message({name: first}), Message({name: second})]
        if batch:
            scene.producer.send_batch(messages)
        else:
            for message in messages:
                scene.producer.send(message)
        other = scene.session.create_producer("q")
        other.send(Message({name: first}))
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == len(names)
    for name, text in zip(names, said, strict=True):
        assert f"{name} asks for a scheduler" in text
    assert scene.broker.view("q").queue_size == 16


# Threads and processes


def test_a_manual_clock_raises_on_a_second_thread(scene):
    found: list[object] = []

    def tried(call: Callable[[], object]) -> None:
        try:
            found.append(call())
        except IllegalStateError as error:
            found.append(str(error))

    calls: list[Callable[[], object]] = [
        lambda: scene.consumer.receive(5),
        lambda: scene.producer.send("x"),
        scene.broker.clock.now,
        lambda: scene.broker.clock.advance(1),
        lambda: scene.broker.clock.call_at(0, list),
        scene.broker.clock.settle,
    ]
    for call in calls:
        thread = threading.Thread(target=tried, args=(call,), name="second")
        thread.start()
        thread.join()
    assert len(found) == len(calls)
    for text in found:
        assert re.match(r"this ManualClock belongs to thread 'MainThread', and this is thread 'second'", str(text))
    assert scene.broker.view("q").queue_size == 0


def in_child(act: Callable[[], Any]) -> str:
    """What ``act`` answers, or the text of what it raises, in a process that is forked."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = str(act())
        except IllegalStateError as error:
            answer = str(error)
        except BaseException as error:
            answer = repr(error)
        finally:
            os.write(writing, answer.encode())
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        return pipe.read()


forks = pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="forking is not safe there")


@forks
@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("Broker", lambda scene: scene.broker.view("q")),
        ("Broker", lambda scene: ConnectionFactory(broker=scene.broker).create_connection()),
        ("Connection", lambda scene: scene.connection.create_session()),
        ("Connection", lambda scene: scene.connection.__enter__()),
        ("Session", lambda scene: scene.session.create_producer("q")),
        ("MessageProducer", lambda scene: scene.producer.send("x")),
        ("MessageProducer", lambda scene: setattr(scene.producer, "priority", 5)),
        ("MessageConsumer", lambda scene: scene.consumer.receive(1)),
        ("MessageConsumer", lambda scene: list(scene.consumer)),
        ("QueueBrowser", lambda scene: list(scene.browser)),
    ],
)
def test_what_a_forked_process_inherits_names_the_process_that_it_belongs_to(scene, name, use):
    said = in_child(lambda: use(scene))
    assert said.startswith(f"this {name} belongs to process {os.getpid()}, and this is process ")
    scene.producer.send("here")
    assert scene.broker.view("q").queue_size == 1


@forks
def test_a_forked_process_closes_what_it_inherits_without_a_word_and_makes_its_own(broker):
    scene = Scene(broker)
    busy = threading.Lock()

    def own() -> str:
        scene.connection.close()
        scene.broker.close()
        with Broker(clock=SystemClock()) as mine, ConnectionFactory(broker=mine).create_connection() as connection:
            session = connection.create_session()
            session.create_producer("q").send("own", time_to_live_ms=60_000)
            return str(session.create_consumer("q").receive(10).body) + repr(scene.broker)

    with busy:
        assert in_child(own) == f"own<Broker of process {os.getpid()}>"
    assert not scene.connection.closed
    scene.connection.close()


def test_the_thread_that_makes_a_clock_may_be_any():
    found: list[int] = []

    def run() -> None:
        clock = ManualClock()
        clock.advance(5)
        found.append(clock.now())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [1_000_000_000_005]
