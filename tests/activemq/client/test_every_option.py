"""Every option of a URL and of a destination changes what a client does, or is known to change nothing; defaults are
those of the real factory (test_options.py) and do what it does (spec activemq 5)."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pyengine import Message, activemq
from pyengine.activemq import AckKind, Broker, ConnectionFactory, ConnectionOptions, Session
from pyengine.activemq.broker.events import ConsumerAborted, Event, MessageDiscarded
from pyengine.activemq.options import (
    CONSUMER_OPTIONS,
    KNOWN,
    WITHOUT_EFFECT,
    connection_options,
)
from pyengine.activemq.transport.commands import ConnectionInfo, ConnectionSink, MessageAck, MessageDispatch
from pyengine.clock import ManualClock, Worker
from pyengine.errors import ConfigurationError, InvalidMessageError, JMSError, TransactionRolledBackError
from pyengine.topology import Policy
from pyengine.topology.policy import (
    AbortSlowConsumerStrategy,
    ConstantPendingMessageLimitStrategy,
    FixedCountSubscriptionRecoveryPolicy,
)
from tests.activemq.wire import Wire, bodies


class Clock(ManualClock):
    """threads: the names of those that were made."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[str] = []

    def worker(self, name: str) -> Worker:
        self.threads.append(name)
        return super().worker(name)


class Scene:
    """A started connection of a URL with the options given, and a second connection that sends. acks: all that the
    first says to the broker."""

    def __init__(self, broker: Broker, clock: Clock, options: str) -> None:
        self.broker, self.clock = broker, clock
        self.acks: list[tuple[str, int]] = []
        self.wire = Wire(broker)
        factory = ConnectionFactory(f"vm://localhost?{options}", broker=_Heard(broker, self.acks))  # type: ignore[arg-type]
        self.connection = factory.create_connection(None if "clientID" in options else "me")
        self.connection.start()
        self.errors: list[Exception] = []
        self.connection.exception_listener = self.errors.append

    def session(self, mode: Any = activemq.AUTO_ACKNOWLEDGE) -> Session:
        return self.connection.create_session(mode)

    def view(self) -> Any:
        return self.broker.subscriptions()[0]


class _Heard:
    def __init__(self, broker: Broker, acks: list[tuple[str, int]]) -> None:
        self._broker, self._acks = broker, acks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    def acknowledge(self, ack: Any, failed: Any = None) -> None:
        self._acks.append((AckKind(ack.kind).name, ack.message_count))
        self._broker.acknowledge(ack, failed)


Observe = Callable[[Scene], object]


def play(observe: Observe, options: str) -> Any:
    clock = Clock()
    recovery = FixedCountSubscriptionRecoveryPolicy()
    policies = [
        Policy("topic://limited", pending_message_limit_strategy=ConstantPendingMessageLimitStrategy(5)),
        Policy("topic://old", subscription_recovery_policy=recovery),
        Policy("topic://slow", slow_consumer_strategy=AbortSlowConsumerStrategy()),
    ]
    with Broker(clock=clock, policies=policies) as broker:
        scene = Scene(broker, clock, options)
        seen = observe(scene)
        scene.connection.close()
        return seen


# What is seen of a connection


def shows(name: str, to: str = "q") -> Observe:
    """What the broker's view of a consumer says."""

    def observe(scene: Scene) -> object:
        scene.session().create_consumer(to)
        return getattr(scene.view(), name)

    return observe


def threads_of_five(name: str) -> Observe:
    """How many threads whose names begin so five sessions make that listen to one topic."""

    def observe(scene: Scene) -> object:
        for _ in range(5):
            scene.session().create_consumer("topic://t", listener=lambda message: None)
        scene.wire.send("topic://t", 1)
        scene.clock.settle()
        return sum(each.startswith(name) for each in scene.clock.threads)

    return observe


def browser_prefetch(scene: Scene) -> object:
    scene.wire.send("q", 1)
    found = []
    scene.broker.on(activemq.events.ConsumerStarted, lambda event: found.append(event.consumer.prefetch_size))
    list(scene.session().create_browser("q"))
    return found[0]


def durable_prefetch(mode: Any) -> Observe:
    def observe(scene: Scene) -> object:
        scene.session(mode).create_durable_subscriber("t", "name")
        return scene.view().prefetch_size

    return observe


def happens(event: type[Event], to: str, topic: str) -> Observe:
    """How often an event comes when a minute goes by after twelve messages for a consumer that takes none."""

    def observe(scene: Scene) -> object:
        found: list[object] = []
        scene.broker.on(event, found.append)
        scene.session().create_consumer(to)
        scene.wire.send(topic, *range(12))
        scene.clock.advance(60_000)
        return len(found)

    return observe


def discarded(to: str) -> Observe:
    return happens(MessageDiscarded, to, "topic://limited")


def aborted(to: str) -> Observe:
    return happens(ConsumerAborted, to, "topic://slow")


def acks_of_ten(wait: int) -> Observe:
    """How many of ten messages are acknowledged after the sixth was received, ``wait`` ms after the fifth."""

    def observe(scene: Scene) -> object:
        consumer = scene.session().create_consumer("q?consumer.prefetchSize=100")
        scene.wire.send("q", *range(10))
        for _ in range(5):
            consumer.receive(1)
        scene.clock.advance(wait)
        consumer.receive(1)
        return sum(count for _, count in scene.acks)

    return observe


def acknowledged_by_itself(scene: Scene) -> object:
    consumer = scene.session().create_consumer("q?consumer.prefetchSize=100")
    scene.wire.send("q", 1, 2)
    consumer.receive(1)
    scene.clock.advance(250)
    return len(scene.acks)


def by_priority(scene: Scene) -> object:
    consumer = scene.session().create_consumer("q")
    for number, priority in enumerate((4, 9, 0)):
        scene.wire.send("q", number, priority=priority)
    return bodies(consumer)


def old_ones(scene: Scene) -> object:
    scene.wire.send("topic://old", 1)
    return bodies(scene.session().create_consumer("topic://old"))


def only_one(scene: Scene) -> object:
    session = scene.session()
    consumers = [session.create_consumer("q"), session.create_consumer("q")]
    scene.wire.send("q", 1, 2)
    return [bodies(each) for each in consumers]


def behind_a_rollback(scene: Scene) -> object:
    session = scene.session(activemq.SESSION_TRANSACTED)
    consumer = session.create_consumer("q")
    scene.wire.send("q", "a")
    consumer.receive(1)
    session.rollback()
    scene.wire.send("q", "b")
    return bodies(consumer, 5)


def acks_of_a_transaction(scene: Scene) -> object:
    session = scene.session(activemq.SESSION_TRANSACTED)
    consumer = session.create_consumer("q")
    scene.wire.send("q", 1, 2, 3)
    bodies(consumer)
    session.commit()
    return scene.acks


def expired_on_the_way(scene: Scene) -> object:
    consumer = scene.session().create_consumer("q")
    scene.wire.send("q", 1, expiration=scene.clock.now() + 5)
    scene.clock.advance(10)
    return bodies(consumer)


def changed_after_sending(scene: Scene) -> object:
    session = scene.session()
    message = Message({"k": 1})
    session.create_producer("q").send(message)
    message.set_int_property("k", 2)
    return scene.broker.browse("q")[0].get_int_property("k")


def timestamp(scene: Scene) -> object:
    scene.session().create_producer("q").send("x")
    return scene.broker.browse("q")[0].timestamp > 0


def who_hears(mode: str) -> Observe:
    """Whether ``send`` raises what the broker says of a message to two queues of which one is gone."""

    def observe(scene: Scene) -> object:
        session = scene.session()
        gone = session.create_temporary_queue()
        session.delete_temporary(gone)
        try:
            session.create_producer(None).send("x", session.create_queue(f"q,{gone}"), delivery_mode=mode)
        except JMSError:
            return "send"
        return "listener" if scene.errors else "nobody"

    return observe


def who_hears_of_acks(scene: Scene) -> object:
    session = scene.session(activemq.CLIENT_ACKNOWLEDGE)
    consumer = session.create_consumer("q")
    scene.wire.send("q", 1)
    message = consumer.receive(1)
    assert message is not None
    before = (consumer.consumer_id, consumer.destination, AckKind.INDIVIDUAL, message.message_id)
    scene.broker.acknowledge(MessageAck(*before))
    try:
        message.acknowledge()
    except JMSError:
        return "acknowledge"
    return "listener" if scene.errors else "nobody"


def warned_of_start(scene: Scene) -> int:
    """How many warnings there are of a message that comes to a stopped connection 300 ms after that was made."""
    found: list[logging.LogRecord] = []
    keep = logging.Filter()
    keep.filter = lambda record: found.append(record) or False  # type: ignore[assignment,func-returns-value]
    log = logging.getLogger("pyengine.activemq")
    log.addFilter(keep)
    scene.connection.stop()
    scene.clock.advance(300)
    scene.session().create_consumer("q")
    scene.wire.send("q", 1)
    scene.clock.settle()
    log.removeFilter(keep)
    return len(found)


def nested(scene: Scene) -> object:
    message = Message()
    message.set_object_property("m", {"a": 1})
    producer = scene.session().create_producer("q")
    refused = 0
    for send in (producer.send, lambda each: producer.send_batch([each])):
        try:
            send(message)
        except InvalidMessageError:
            refused += 1
    return refused


def redelivered_at(chances: int = 8) -> Observe:
    """When a message that is rolled back again and again comes, in ms since the last rollback; "gone" at the end."""

    def observe(scene: Scene) -> object:
        session = scene.session(activemq.SESSION_TRANSACTED)
        consumer = session.create_consumer("q")
        scene.wire.send("q", 1)
        consumer.receive(1)
        found: list[object] = []
        for _ in range(chances):
            session.rollback()
            since = scene.clock.now()
            if consumer.receive(1000) is None:
                return [*found, "gone"]
            found.append(scene.clock.now() - since)
        return found

    return observe


def spread(scene: Scene) -> object:
    """Whether delays stray from 10 s by more than 15 %, by less, or not at all."""
    random.seed(1)
    times = redelivered_at(6)(scene)
    assert isinstance(times, list)
    most = max(abs(each - 10_000) for each in times[1:])
    return "far" if most > 1500 else "near" if most else "none"


def given_back_too_often(scene: Scene) -> object:
    """A message that eight consumers left behind comes to a transacted session."""
    scene.wire.send("q", 1)
    for name in "abcdefgh":
        scene.wire.consume(name, "q")
        scene.broker.remove_consumer(name, last_delivered=scene.wire.id_of(name, 1))
    return bodies(scene.session(activemq.SESSION_TRANSACTED).create_consumer("q"))


class _FailsOver(_Heard):
    """A transport that may be interrupted, of a connection of its own."""

    fault_tolerant = True
    sink: ConnectionSink

    def add_connection(self, info: ConnectionInfo, sink: ConnectionSink) -> None:
        self.sink = sink
        self._broker.add_connection(info, sink)


def failing_over(scene: Scene) -> tuple[_FailsOver, activemq.Connection]:
    transport = _FailsOver(scene.broker, [])
    options = replace(scene.connection.options, client_id="another")
    connection = ConnectionFactory(broker=transport, options=options).create_connection()  # type: ignore[arg-type]
    connection.start()
    return transport, connection


def came_again(producers: int, messages: int) -> Observe:
    """How often the first message is received that the broker dispatches again behind the others."""

    def observe(scene: Scene) -> object:
        transport, connection = failing_over(scene)
        session = connection.create_session()
        consumer = session.create_consumer("q")
        for number in range(producers):
            with session.create_producer("q") as producer:
                for _ in range(messages):
                    producer.send(str(number))
        found = [consumer.receive(1.0) for _ in range(producers * messages)]
        assert found[0] is not None
        transport.sink.dispatch(MessageDispatch(consumer.consumer_id, consumer.destination, found[0].copy()))
        again = consumer.receive_no_wait()
        connection.close()
        return 1 if again is None else 2

    return observe


def commits_after(scene: Scene) -> object:
    """How many ms a commit waits whose message does not come again."""
    transport, connection = failing_over(scene)
    session = connection.create_session(activemq.SESSION_TRANSACTED)
    scene.wire.send("q", 1)
    session.create_consumer("q").receive(1.0)
    transport.sink.interrupted()
    before = scene.clock.now()
    with pytest.raises(TransactionRolledBackError, match="1 previously delivered"):
        session.commit()
    waited = scene.clock.now() - before
    connection.close()
    return waited


NONE_GONE = [1000] * 6 + ["gone"]
EXPONENTIAL = "jms.redeliveryPolicy.useExponentialBackOff=true"
SLOW = "jms.redeliveryPolicy.redeliveryDelay=10000&jms.redeliveryPolicy.initialRedeliveryDelay=10000"
# Option, what is seen, by default, a value, with that; what the URL has besides.
URL: list[tuple[str, Observe, object, str, object, str]] = [
    ("clientID", lambda scene: scene.connection.client_id, "me", "you", "you", ""),
    ("connectionIDPrefix", lambda scene: scene.connection.connection_id[:3], "ID:", "my", "myv", ""),
    ("dispatchAsync", shows("dispatch_async"), True, "false", False, ""),
    ("alwaysSessionAsync", lambda scene: scene.session().state.asynchronous, True, "false", False, ""),
    ("maxThreadPoolSize", threads_of_five("ActiveMQ Session Task-"), 5, "3", 3, ""),
    ("useDedicatedTaskRunner", threads_of_five("ActiveMQ Session: "), 0, "true", 5, ""),
    ("optimizeAcknowledge", acks_of_ten(0), 6, "true", 0, ""),
    ("optimizeAcknowledgeTimeOut", acks_of_ten(200), 0, "100", 6, "jms.optimizeAcknowledge=true"),
    ("optimizedAckScheduledAckInterval", acknowledged_by_itself, 0, "100", 1, "jms.optimizeAcknowledge=true"),
    ("messagePrioritySupported", by_priority, ["0", "1", "2"], "true", ["1", "0", "2"], ""),
    ("exclusiveConsumer", only_one, [["1"], ["2"]], "true", [["1", "2"], []], ""),
    ("useRetroactiveConsumer", old_ones, [], "true", ["1"], ""),
    ("nonBlockingRedelivery", behind_a_rollback, ["a", "b"], "true", ["b", "a"], ""),
    ("transactedIndividualAck", acks_of_a_transaction, [("STANDARD", 3)], "true", [("INDIVIDUAL", 1)] * 3, ""),
    ("consumerExpiryCheckEnabled", expired_on_the_way, [], "false", ["1"], ""),
    ("optimizedMessageDispatch", durable_prefetch(activemq.AUTO_ACKNOWLEDGE), 1000, "false", 100, ""),
    ("copyMessageOnSend", changed_after_sending, 1, "false", 2, ""),
    ("disableTimeStampsByDefault", timestamp, True, "true", False, ""),
    ("useAsyncSend", who_hears("PERSISTENT"), "send", "true", "listener", ""),
    ("alwaysSyncSend", who_hears("NON_PERSISTENT"), "listener", "true", "send", ""),
    ("sendAcksAsync", who_hears_of_acks, "listener", "false", "acknowledge", ""),
    ("nestedMapAndListEnabled", nested, 0, "false", 2, ""),
    ("warnAboutUnstartedConnectionTimeout", warned_of_start, 0, "200", 1, ""),
    ("checkForDuplicates", came_again(1, 1), 1, "false", 2, ""),
    ("auditDepth", came_again(1, 200), 1, "60", 2, ""),
    ("auditMaximumProducerNumber", came_again(3, 1), 1, "2", 2, ""),
    ("consumerFailoverRedeliveryWaitPeriod", commits_after, 0, "4000", 1000, ""),
    ("prefetchPolicy.all", shows("prefetch_size"), 1000, "7", 7, ""),
    ("prefetchPolicy.queuePrefetch", shows("prefetch_size"), 1000, "7", 7, ""),
    ("prefetchPolicy.queueBrowserPrefetch", browser_prefetch, 500, "7", 7, ""),
    ("prefetchPolicy.topicPrefetch", shows("prefetch_size", "topic://t"), 32767, "7", 7, ""),
    ("prefetchPolicy.durableTopicPrefetch", durable_prefetch(activemq.CLIENT_ACKNOWLEDGE), 100, "7", 7, ""),
    ("prefetchPolicy.optimizeDurableTopicPrefetch", durable_prefetch(activemq.AUTO_ACKNOWLEDGE), 1000, "7", 7, ""),
    ("prefetchPolicy.maximumPendingMessageLimit", discarded("topic://limited?consumer.prefetchSize=2"), 5, "3", 7, ""),
    ("redeliveryPolicy.maximumRedeliveries", redelivered_at(), NONE_GONE, "2", [1000, 1000, "gone"], ""),
    ("redeliveryPolicy.initialRedeliveryDelay", redelivered_at(3), [1000] * 3, "50", [50, 1000, 1000], ""),
    ("redeliveryPolicy.redeliveryDelay", redelivered_at(3), [1000] * 3, "70", [1000, 70, 70], ""),
    ("redeliveryPolicy.useExponentialBackOff", redelivered_at(3), [1000] * 3, "true", [1000, 5000, 25_000], ""),
    ("redeliveryPolicy.backOffMultiplier", redelivered_at(3), [1000, 5000, 25_000], "2", [1000, 2000, 4000],
     EXPONENTIAL),
    ("redeliveryPolicy.maximumRedeliveryDelay", redelivered_at(3), [1000, 5000, 25_000], "6000", [1000, 5000, 6000],
     EXPONENTIAL),
    ("redeliveryPolicy.useCollisionAvoidance", spread, "none", "true", "near", SLOW),
    ("redeliveryPolicy.collisionAvoidancePercent", spread, "near", "90", "far",
     SLOW + "&jms.redeliveryPolicy.useCollisionAvoidance=true"),
    ("redeliveryPolicy.preDispatchCheck", given_back_too_often, [], "false", ["1"], ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "observe", "default", "value", "then", "besides"), URL, ids=[row[0] for row in URL])
def test_an_option_of_a_url_does_something(
    name: str, observe: Observe, default: object, value: str, then: object, besides: str
) -> None:
    assert play(observe, besides) == default
    assert play(observe, f"{besides}&jms.{name}={value}") == then


@pytest.mark.parametrize("name", sorted(WITHOUT_EFFECT))
def test_some_options_of_a_url_change_nothing_inside_one_process(name: str) -> None:
    assert connection_options({name: "1"}) == ConnectionOptions()


def test_no_option_of_a_url_is_left_out() -> None:
    assert {row[0] for row in URL} | WITHOUT_EFFECT.keys() == KNOWN


def test_the_options_of_vm_itself() -> None:
    for there, options in ((False, "create=false"), (False, "create=false&waitForStart=1"), (True, "create=true")):
        factory = ConnectionFactory(f"vm://nobody?{options}")
        if there:
            factory.create_connection().close()
        else:
            with pytest.raises(JMSError, match="nobody"):
                factory.create_connection()
    for option in ("marshal", "async", "wireFormat.maxFrameSize", "broker.useJmx", "broker.dataDirectory"):
        ConnectionFactory(f"vm://nobody?{option}=1&broker.useShutdownHook=false").create_connection().close()
    with pytest.raises(ConfigurationError, match="memory"):
        ConnectionFactory("vm://nobody?broker.persistent=true").create_connection()


def test_wait_for_start_waits_for_a_broker() -> None:
    made = []
    starter = threading.Timer(0.05, lambda: made.append(Broker(name="late")))
    starter.start()
    connection = ConnectionFactory("vm://late?create=false&waitForStart=60000").create_connection()
    starter.join()
    assert connection.transport is made[0]
    connection.close()
    made[0].close()


# Destinations


def own_messages(to: str) -> Observe:
    def observe(scene: Scene) -> object:
        session = scene.session()
        consumer = session.create_consumer(to)
        session.create_producer(None).send("x", session.create_queue("q"))
        return bodies(consumer)

    return observe


# They change nothing in the real broker either.
CONSUMER_WITHOUT_EFFECT = {"browser", "clientId", "optimizedAcknowledge", "noRangeAcks", "currentPrefetchSize"}
# Option, what is seen of a destination, by default, a value, with that; the destination.
DESTINATION: list[tuple[str, Callable[[str], Observe], object, str, object, str]] = [
    ("dispatchAsync", lambda to: shows("dispatch_async", to), True, "false", False, "q"),
    ("priority", lambda to: shows("priority", to), 0, "-5", -5, "q"),
    ("prefetchSize", lambda to: shows("prefetch_size", to), 1000, "7", 7, "q"),
    ("prefetchSize", lambda to: shows("prefetch_size", to), 32767, "7", 7, "topic://t"),
    ("noLocal", own_messages, ["x"], "true", [], "q"),
    ("exclusive", lambda to: shows("exclusive", to), False, "true", True, "q"),
    ("retroactive", lambda to: shows("retroactive", to), False, "true", True, "topic://t"),
    ("maximumPendingMessageLimit", discarded, 5, "3", 7, "topic://limited?consumer.prefetchSize=2"),
    ("selector", lambda to: shows("selector", to), None, "a IS NULL", "a IS NULL", "q"),
    ("subscriptionName", lambda to: shows("durable", to), False, "s", True, "topic://t"),
    ("networkSubscription", aborted, 1, "true", 0, "topic://slow?consumer.prefetchSize=2"),
]


@pytest.mark.parametrize(
    ("name", "observe", "default", "value", "then", "to"), DESTINATION, ids=[row[0] for row in DESTINATION]
)
def test_an_option_of_a_destination_does_something(
    name: str, observe: Callable[[str], Observe], default: object, value: str, then: object, to: str
) -> None:
    assert play(observe(to), "") == default
    mark = "&" if "?" in to else "?"
    assert play(observe(f"{to}{mark}consumer.{name}={value}"), "") == then


@pytest.mark.parametrize("name", sorted(CONSUMER_WITHOUT_EFFECT))
def test_some_options_of_a_destination_change_nothing(name: str) -> None:
    def all_but_its_id(scene: Scene) -> object:
        found: list[Any] = []
        scene.broker.on(activemq.events.ConsumerStarted, lambda event: found.append(event.consumer))
        scene.session().create_consumer(f"q?consumer.{name}=1")
        scene.session().create_consumer("q")
        return [
            {key: getattr(each, key) for key in each.__slots__ if key not in ("consumer_id", "session_id")}
            | {"destination": each.destination.name}
            for each in found
        ]

    first, second = play(all_but_its_id, "")
    assert first == second


def test_no_option_of_a_destination_is_left_out() -> None:
    assert {row[0] for row in DESTINATION} | CONSUMER_WITHOUT_EFFECT == set(CONSUMER_OPTIONS)
