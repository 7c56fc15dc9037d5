"""Connections, sessions, consumers and producers in front of the broker, under a manual clock."""

from __future__ import annotations

import gc
import threading
import time
import warnings
import weakref

import pytest

from pyengine import Message, activemq
from pyengine.activemq import Broker, Closing, ConnectionFactory
from pyengine.activemq.broker.events import Event, MessageExpired
from pyengine.activemq.client.session import Session
from pyengine.clock import ManualClock
from pyengine.destinations import parse_destination
from pyengine.errors import (
    ConfigurationError,
    IllegalStateError,
    InvalidDestinationError,
    InvalidMessageError,
    InvalidSelectorError,
    JMSError,
)
from pyengine.topology.policy import Policy
from tests.activemq.wire import bodies, until


@pytest.fixture
def connect(broker):
    """Started connections, closed at the end."""
    made = []

    def connection(options="", client_id=None, **settings):
        factory = ConnectionFactory(f"vm://localhost?{options}", **{"broker": broker, **settings})
        made.append(factory.create_connection(client_id))
        made[-1].start()
        return made[-1]

    yield connection
    for each in made:
        each.close()


class Overheard(Broker):
    """Notes how many messages each acknowledgement counts."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.acknowledged = []

    def acknowledge(self, ack, failed=None):
        self.acknowledged.append(ack.message_count)
        super().acknowledge(ack, failed)


@pytest.fixture
def overheard(clock):
    with Overheard(name="overheard", clock=clock) as broker:
        yield broker


def test_a_broker_that_sends_in_a_way_of_its_own_is_asked(clock):
    class Upper(Broker):
        def send(self, connection_id, destination, message, transaction_id=None, now=None):
            message.body = message.body.upper()
            super().send(connection_id, destination, message, transaction_id, now)

    with Upper(clock=clock) as broker, ConnectionFactory("vm://localhost", broker=broker).create_connection() as mine:
        session = mine.create_session()
        session.create_producer("q").send("said")
        assert session.create_consumer("q").receive(1).body == "SAID"


def test_the_snippet_of_the_front_page(broker):
    factory = ConnectionFactory("vm://localhost?jms.prefetchPolicy.queuePrefetch=100", broker=broker)
    with factory.create_connection() as connection:
        session = connection.create_session(activemq.CLIENT_ACKNOWLEDGE)
        consumer = session.create_consumer(session.create_queue("orders?consumer.exclusive=true"), "price > 100")
        producer = session.create_producer("orders")
        producer.send(Message({"price": 50}))
        producer.send(Message({"price": 250}, body="x"))
        message = consumer.receive(timeout=1.0)
        assert (message.body, message.get_int_property("price"), message.destination) == ("x", 250, "queue://orders")
        message.acknowledge()
        assert consumer.receive(timeout=1.0) is None


def test_nothing_flows_before_the_connection_is_started(broker):
    connection = ConnectionFactory(broker=broker).create_connection()
    session = connection.create_session()
    consumer = session.create_consumer("q")
    session.create_producer("q").send("a")
    assert consumer.receive(1) is None
    connection.start()
    assert consumer.receive(1).body == "a"
    connection.stop()
    session.create_producer("q").send("b")
    assert consumer.receive(1) is None
    connection.close()
    connection.close()


def test_a_url_alone_makes_a_broker_that_ends_with_its_last_connection():
    factory = ConnectionFactory("vm://alone?broker.persistent=false")
    with factory.create_connection() as one, factory.create_connection() as two:
        assert activemq.broker.running_broker("alone") is not None
        one.create_session().create_producer("q").send("a")
        assert two.create_session().create_consumer("q").receive(5).body == "a"
    assert activemq.broker.running_broker("alone") is None
    with pytest.raises(JMSError, match="no broker named"):
        ConnectionFactory("vm://alone?create=false").create_connection()


def test_headers_are_set_on_the_message_and_on_its_copy(connect, clock):
    session = connect().create_session()
    producer = session.create_producer("q")
    producer.priority, producer.time_to_live_ms, producer.delivery_mode = 7, 2500, activemq.NON_PERSISTENT
    sent = Message({"a": 1}, body="x")
    producer.send(sent)
    assert sent.message_id == f"{producer.producer_id}:1"
    got = session.create_consumer("q").receive(1)
    for message in (sent, got):
        assert (message.priority, message.timestamp, message.expiration) == (7, clock.now(), clock.now() + 2500)
        assert message.delivery_mode == "NON_PERSISTENT"
    sent.set_property("a", 2)
    assert got.get_int_property("a") == 1


@pytest.mark.parametrize(("release", "own"), [("newest", 0), ("5.17", 77)])
@pytest.mark.parametrize("batch", [False, True])
def test_a_message_without_a_time_expires_since_5_18(connect, make, clock, release, own, batch):
    # Measured with 6.3.1 and 5.17.2: disableMessageTimestamp, a message with JMSTimestamp 77, 60 seconds to live.
    session = connect(broker=make(name="own", release=release)).create_session()
    producer = session.create_producer("q")
    producer.disable_message_timestamp, producer.time_to_live_ms = True, 60_000
    sent = Message(body="x", timestamp=77, expiration=78)
    if batch:
        producer.send_batch([sent])
    else:
        producer.send(sent)
    got = session.create_consumer("q").receive(1)
    for message in (sent, got):
        assert message.timestamp == own
        assert message.expiration == (0 if own else clock.now() + 60_000)


@pytest.mark.parametrize(("name", "value"), [("priority", 10), ("time_to_live_ms", -1), ("delivery_mode", "MAYBE")])
def test_a_producer_refuses_values_that_jms_does_not_know(connect, name, value):
    producer = connect().create_session().create_producer("q")
    with pytest.raises(InvalidMessageError):
        setattr(producer, name, value)


def test_a_producer_of_one_destination_sends_nowhere_else(connect):
    session = connect().create_session()
    with pytest.raises(InvalidDestinationError):
        session.create_producer("q").send("x", "other")
    anonymous = session.create_producer()
    with pytest.raises(InvalidDestinationError):
        anonymous.send("x")
    assert anonymous.send_batch(["a", "b"], "q") == 2
    assert [message.body for message in session.create_consumer("q").receive_batch(5, 1)] == ["a", "b"]
    anonymous.close()
    with pytest.raises(IllegalStateError):
        anonymous.send("x", "q")


@pytest.mark.parametrize("options", ["jms.dispatchAsync=false&jms.alwaysSessionAsync=false", "jms.dispatchAsync=true"])
@pytest.mark.parametrize("time_to_live", [0, 60_000])
def test_a_batch_goes_where_single_messages_go(connect, broker, options, time_to_live):
    got = {"one": [], "many": []}
    session = connect(options).create_session()
    for queue, heard in got.items():
        for consumer, selector in enumerate(["n < 1500", None, "n >= 1500"]):

            def on_message(message, heard=heard, consumer=consumer):
                heard.append((message.get_int_property("n"), consumer, message.group_id, message.expiration))

            session.create_consumer(queue, selector, listener=on_message)
    messages = [Message({"n": n}, body=str(n), group_id=f"g{n % 7}" if n % 3 else None) for n in range(2100)]
    one, many = (connect().create_session().create_producer(queue) for queue in got)
    one.time_to_live_ms = many.time_to_live_ms = time_to_live
    for message in messages:
        one.send(message)
    assert many.send_batch(iter(messages)) == 2100
    assert sorted(got["one"]) == sorted(got["many"])
    assert 1500 < len(got["one"]) < 2100  # a group whose owner's selector says no waits
    views = [broker.view(queue) for queue in got]
    counts = [(view.enqueue_count, view.dequeue_count, view.memory_usage_byte_count) for view in views]
    assert counts[0] == counts[1]
    assert counts[0][1] == len(got["one"])


def test_of_a_batch_with_a_wrong_message_what_comes_before_it_is_sent(connect):
    session = connect().create_session()
    with pytest.raises(InvalidMessageError):
        session.create_producer("q").send_batch(["a", "b", 3, "c"])
    assert [message.body for message in session.create_consumer("q").receive_batch(5, 1)] == ["a", "b"]


@pytest.mark.parametrize("mode", list(activemq.AcknowledgeMode))
def test_what_was_not_acknowledged_comes_again(connect, broker, mode):
    connection = connect("jms.prefetchPolicy.all=10")
    session = connection.create_session(mode)
    session_of_producer = connect().create_session()
    session_of_producer.create_producer("q").send_batch(list("abc"))
    consumer = session.create_consumer("q")
    assert [consumer.receive(1).body for _ in range(2)] == ["a", "b"]
    session.close()
    rest = bodies(connect().create_session().create_consumer("q"))
    acknowledged = mode in (activemq.AUTO_ACKNOWLEDGE, activemq.DUPS_OK_ACKNOWLEDGE)
    assert rest == (["c"] if acknowledged else ["a", "b", "c"])


def test_client_acknowledge_speaks_for_the_whole_session(connect):
    session = connect().create_session(activemq.CLIENT_ACKNOWLEDGE)
    session.create_producer("q").send("a")
    session.create_producer("r").send("b")
    first, second = session.create_consumer("q").receive(1), session.create_consumer("r").receive(1)
    second.acknowledge()
    assert first.body == "a"
    session.close()
    assert bodies(connect().create_session().create_consumer("q")) == []
    with pytest.raises(IllegalStateError):
        first.acknowledge()


def test_individual_acknowledge_speaks_for_one_message(connect):
    session = connect().create_session(activemq.INDIVIDUAL_ACKNOWLEDGE)
    session.create_producer("q").send_batch(list("abc"))
    messages = session.create_consumer("q").receive_batch(3, 1)
    messages[1].acknowledge()
    session.close()
    assert bodies(connect().create_session().create_consumer("q")) == ["a", "c"]


def test_recover_brings_everything_again_after_the_delay(connect, clock):
    session = connect().create_session(activemq.CLIENT_ACKNOWLEDGE)
    session.create_producer("q").send_batch(list("ab"))
    consumer = session.create_consumer("q")
    consumer.receive_batch(2, 1)
    session.recover()
    start = clock.now()
    again = consumer.receive_batch(2, 5)
    assert [(message.body, message.redelivered, message.delivery_count) for message in again] == [
        ("a", True, 2),
        ("b", True, 2),
    ]
    assert clock.now() - start == 1000


def test_a_transaction_is_all_or_nothing(connect):
    session = connect("jms.redeliveryPolicy.initialRedeliveryDelay=0").create_session(activemq.SESSION_TRANSACTED)
    other = connect().create_session()
    other.create_producer("in").send("order")
    reader, watcher = session.create_consumer("in"), other.create_consumer("out")
    writer = session.create_producer("out")
    for end in (session.rollback, session.commit):
        message = reader.receive(1)
        writer.send("invoice")
        assert watcher.receive_no_wait() is None
        end()
        assert message.body == "order"
    assert bodies(watcher) == ["invoice"]
    assert reader.receive(1) is None
    with pytest.raises(IllegalStateError):
        session.recover()
    with pytest.raises(IllegalStateError):
        other.commit()


def test_a_poison_message_ends_among_the_dead_letters(connect):
    session = connect("jms.redeliveryPolicy.maximumRedeliveries=2").create_session()
    seen = []

    def listener(message):
        seen.append(message.delivery_count)
        raise ValueError("no")

    session.create_consumer("q", listener=listener)
    session.create_producer("q").send("bad")
    connection = connect()
    letter = connection.create_session().create_consumer("ActiveMQ.DLQ").receive(10)
    assert seen == [1, 2, 3]
    assert letter.body == "bad"
    assert letter.get_string_property("dlqDeliveryFailureCause") == (
        "java.lang.Throwable: Delivery[3] exceeds redelivery policy limit:RedeliveryPolicy {destination = null, "
        "collisionAvoidanceFactor = 0.15, maximumRedeliveries = 2, maximumRedeliveryDelay = -1, "
        "initialRedeliveryDelay = 1000, useCollisionAvoidance = false, useExponentialBackOff = false, "
        "backOffMultiplier = 5.0, redeliveryDelay = 1000, preDispatchCheck = true}, cause:ValueError: no"
    )


def test_a_message_that_comes_twice_is_delivered_and_acknowledged_twice(connect, broker):
    session = connect().create_session()
    session.create_producer("q").send("x")
    assert (broker.copy_messages("q", "r"), broker.move_messages("r", "q")) == (1, 1)
    assert bodies(session.create_consumer("q")) == ["x", "x"]
    view = broker.view("q")
    assert (view.queue_size, view.dequeue_count, view.in_flight_count) == (0, 2, 0)


def test_where_a_message_of_a_transaction_goes_is_decided_when_it_is_sent(connect, broker):
    session = connect().create_session(activemq.SESSION_TRANSACTED)
    other = connect().create_session()
    before = other.create_consumer("Consumer.before.VirtualTopic.t")
    session.create_producer("topic://VirtualTopic.t").send("x")
    after = other.create_consumer("Consumer.after.VirtualTopic.t")
    subscriber = other.create_consumer("topic://VirtualTopic.t")
    session.commit()
    assert (bodies(before), bodies(after), bodies(subscriber)) == (["x"], [], ["x"])


def test_a_transaction_is_committed_though_a_temporary_queue_is_gone(connect):
    session = connect().create_session(activemq.SESSION_TRANSACTED)
    other = connect().create_session()
    gone, kept = other.create_temporary_queue(), other.create_queue("q")
    producer = session.create_producer(None)
    for queue in (kept, gone, kept):
        producer.send("x", queue)
    other.delete_temporary(gone)
    session.commit()
    assert bodies(other.create_consumer(kept)) == ["x", "x"]


def test_a_transaction_with_a_message_that_goes_nowhere_is_rolled_back(connect, broker):
    connection = connect()
    errors = []
    connection.exception_listener = errors.append
    session = connection.create_session(activemq.SESSION_TRANSACTED)
    producer = session.create_producer(None)
    producer.send("x", "q")
    producer.send("x", "q,temp-queue://nobody")
    assert [type(error) for error in errors] == [InvalidDestinationError]
    with pytest.raises(JMSError, match=r"rolled back.*nobody"):
        session.commit()
    producer.send("y", "q")
    session.commit()
    assert bodies(session.create_consumer("q")) == ["y"]


def test_a_message_that_expires_within_its_transaction_expires_in_the_queue(connect, broker, clock):
    session = connect().create_session(activemq.SESSION_TRANSACTED)
    session.create_producer("q").send("x", time_to_live_ms=100)
    clock.advance(200)
    session.commit()
    view = broker.view("q")
    assert (view.queue_size, view.enqueue_count, view.expired_count) == (1, 1, 0)
    assert bodies(connect().create_session().create_consumer("q")) == []
    assert (broker.view("q").expired_count, broker.view("ActiveMQ.DLQ").queue_size) == (1, 1)


def test_a_listener_and_receive_exclude_each_other(connect):
    session = connect().create_session()
    got = []
    listening = session.create_consumer("q", listener=lambda message: got.append(message.body))
    receiving = session.create_consumer("r")
    with pytest.raises(IllegalStateError, match="MessageListener"):
        receiving.receive(1)
    session.create_producer("q").send_batch(list("ab"))
    assert got == ["a", "b"]
    listening.message_listener = None
    session.create_producer("q").send("c")
    assert listening.receive(1).body == "c"


def test_a_listener_set_late_gets_what_waits(connect):
    session = connect().create_session()
    consumer = session.create_consumer("q")
    session.create_producer("q").send_batch(list("ab"))
    got = []
    assert consumer.message_listener is None
    consumer.message_listener = listener = lambda message: got.append(message.body)
    assert got == ["a", "b"]
    assert consumer.message_listener is listener


@pytest.mark.parametrize("options", ["", "jms.alwaysSessionAsync=false", "jms.dispatchAsync=false"])
def test_a_listener_may_use_its_session(connect, options):
    session = connect(options).create_session(activemq.SESSION_TRANSACTED)
    other = connect().create_session()
    producer = session.create_producer("out")

    def forward(message):
        producer.send(message.body.upper())
        session.commit()

    session.create_consumer("in", listener=forward)
    other.create_producer("in").send_batch(list("abc"))
    assert bodies(other.create_consumer("out")) == ["A", "B", "C"]


def test_prefetch_zero_pulls_and_takes_no_listener(connect, clock):
    session = connect("jms.prefetchPolicy.queuePrefetch=0").create_session()
    session.create_producer("q").send_batch(list("ab"))
    consumer = session.create_consumer("q")
    assert consumer.receive_no_wait().body == "a"
    assert consumer.receive(1).body == "b"
    assert consumer.receive_no_wait() is None
    start = clock.now()
    assert consumer.receive(0.5) is None
    assert clock.now() - start == 500
    with pytest.raises(JMSError, match="prefetch size of zero"):
        consumer.message_listener = print


def test_optimized_acknowledgements_are_flushed_by_share_by_time_and_by_the_clock(connect, overheard, clock):
    url = "jms.optimizeAcknowledge=true&jms.prefetchPolicy.queuePrefetch=10"
    sender = connect(broker=overheard).create_session().create_producer("q")
    acknowledged = overheard.acknowledged
    consumer = connect(url, broker=overheard).create_session().create_consumer("q")
    sender.send_batch(list("abcdefghij"))
    for _ in range(7):
        consumer.receive(1)
    assert acknowledged == [7]
    clock.advance(300)
    consumer.receive(1)
    assert acknowledged == [7, 1]
    consumer.receive(1)
    consumer.close()
    assert acknowledged == [7, 1, 1]
    url += "&jms.optimizedAckScheduledAckInterval=50"
    periodic = connect(url, broker=overheard).create_session().create_consumer("q")
    periodic.receive(1)
    clock.advance(49)
    assert acknowledged == [7, 1, 1]
    clock.advance(1)
    assert acknowledged == [7, 1, 1, 1]


def test_the_consumer_takes_the_highest_priority_first(connect):
    session = connect("jms.messagePrioritySupported=true").create_session()
    consumer = session.create_consumer("q")
    producer = session.create_producer("q")
    for body, priority in zip("abcd", (4, 9, 0, 9), strict=True):
        producer.send(body, priority=priority)
    assert bodies(consumer) == ["b", "d", "a", "c"]


def test_what_was_not_delivered_is_not_acknowledged_with_what_was(connect, broker):
    connection = connect("jms.messagePrioritySupported=true")
    errors = []
    connection.exception_listener = errors.append
    session = connection.create_session(activemq.CLIENT_ACKNOWLEDGE)
    consumer = session.create_consumer("q")
    producer = connect().create_session().create_producer("q")
    for body, priority in (("a", 4), ("late", 0), ("b", 4)):
        producer.send(body, priority=priority)
    first, last = consumer.receive(1), consumer.receive(1)
    assert (first.body, last.body) == ("a", "b")
    last.acknowledge()
    assert "unmatched acknowledge: 2 messages" in str(errors[0])
    connection.close()
    assert broker.view("q").queue_size == 3


def test_other_messages_pass_one_that_waits_if_redelivery_does_not_block(connect):
    for options, expected in (("", ["a", "b"]), ("jms.nonBlockingRedelivery=true", ["b", "a"])):
        session = connect(options).create_session(activemq.SESSION_TRANSACTED)
        other = connect().create_session()
        consumer = session.create_consumer(f"q{len(options)}")
        producer = other.create_producer(f"q{len(options)}")
        producer.send("a")
        consumer.receive(1)
        session.rollback()
        producer.send("b")
        assert bodies(consumer, 5) == expected
        session.commit()


def test_an_expired_message_is_not_delivered(connect, clock):
    session = connect().create_session()
    consumer = session.create_consumer("q")
    producer = session.create_producer("q")
    producer.send("old", time_to_live_ms=1000)
    producer.send("new")
    clock.advance(1001)
    assert consumer.receive(1).body == "new"


def test_no_local_leaves_out_what_the_connection_sent(connect):
    connection = connect()
    session = connection.create_session()
    consumer = session.create_consumer("q", no_local=True)
    session.create_producer("q").send("own")
    connect().create_session().create_producer("q").send("other")
    assert bodies(consumer) == ["other"]


def test_a_browser_looks_and_takes_nothing(connect, broker):
    session = connect().create_session()
    session.create_producer("q").send_batch([Message({"n": n}, body=str(n)) for n in range(4)])
    with session.create_browser("q", "n > 1") as browser:
        assert [message.body for message in browser] == ["2", "3"]
        assert [message.body for message in browser] == ["2", "3"]
    assert broker.view("q").dispatch_count == 4
    with pytest.raises(IllegalStateError):
        next(iter(browser))
    assert bodies(session.create_consumer("q")) == ["0", "1", "2", "3"]
    with pytest.raises(InvalidSelectorError):
        session.create_browser("q", "n >")


def test_a_browser_of_a_connection_that_is_not_started_shows_nothing(connect):
    connection = connect()
    session = connection.create_session()
    session.create_producer("q").send_batch("abc"[n] for n in range(3))
    browser = session.create_browser("q")
    connection.stop()
    assert [*browser] == []
    connection.start()
    seen = iter(browser)
    assert next(seen).body == "a"
    connection.stop()
    assert [*seen] == []
    connection.start()
    assert [message.body for message in browser] == ["a", "b", "c"]


def test_options_of_the_destination_come_before_the_arguments_but_for_the_selector(connect):
    session = connect().create_session()
    consumer = session.create_consumer("q?consumer.noLocal=true&consumer.selector=a%3D1&consumer.prefetchSize=3", "a=2")
    assert consumer.message_selector == "a=2"
    assert session.create_consumer("q?consumer.selector=a%3D1").message_selector == "a=1"
    with pytest.raises(ConfigurationError, match=r"did you mean 'consumer\.prefetchSize'"):
        session.create_consumer("q?customer.prefetchSize=1")


@pytest.mark.parametrize("dedicated", ["false", "true"])
def test_a_listener_that_asks_another_one_gets_its_answer(connect, clock, dedicated):
    option = f"jms.useDedicatedTaskRunner={dedicated}"
    here, there = connect(option), connect(option)
    answering, asking = there.create_session(), here.create_session()
    answers = answering.create_producer(None)
    answering.create_consumer("price", listener=lambda message: answers.send("42", message.reply_to))
    reply_to = asking.create_temporary_queue()
    replies, questions = asking.create_consumer(reply_to), asking.create_producer("price")
    got = []

    def order(message):
        questions.send(Message(reply_to=reply_to))
        got.append((message.body, replies.receive(5).body))

    here.create_session().create_consumer("orders", listener=order)
    before = clock.now()
    there.create_session().create_producer("orders").send_batch(["tea", "rice"])
    assert (got, clock.now()) == ([("tea", "42"), ("rice", "42")], before)


def test_a_temporary_queue_is_read_by_its_connection_alone(connect):
    connection = connect()
    session = connection.create_session()
    reply_to = session.create_temporary_queue()
    consumer = session.create_consumer(reply_to)
    other = connect().create_session()
    with pytest.raises(InvalidDestinationError, match="another Connection"):
        other.create_consumer(reply_to)
    other.create_producer(reply_to).send("answer")
    assert consumer.receive(1).body == "answer"
    with pytest.raises(JMSError):
        session.delete_temporary(reply_to)
    consumer.close()
    session.delete_temporary(reply_to)
    with pytest.raises(JMSError):
        other.create_producer(reply_to).send("too late")
    with pytest.raises(InvalidDestinationError, match="has been deleted"):
        session.create_consumer(reply_to)
    with pytest.raises(InvalidDestinationError, match="deleted Destination"):
        other.create_producer(None).send("too late", reply_to, delivery_mode="NON_PERSISTENT")
    session.delete_temporary(reply_to)
    session.close()
    for create in (session.create_temporary_queue, session.create_temporary_topic):
        with pytest.raises(IllegalStateError):
            create()


def test_what_is_no_destination_of_the_right_kind_is_refused(connect):
    session = connect(client_id="me").create_session()
    for make in (session.create_consumer, session.create_producer(None).send, session.create_browser):
        with pytest.raises(InvalidDestinationError):
            make("x", 5) if make.__name__ == "send" else make(5)
    with pytest.raises(InvalidDestinationError, match="None is not a destination"):
        session.create_consumer(None)
    with pytest.raises(InvalidDestinationError, match="only topics"):
        session.create_durable_subscriber(session.create_queue("q"), "name")
    with pytest.raises(InvalidDestinationError, match="only queues"):
        session.create_browser(session.create_topic("t"))


def test_a_batch_is_acknowledged_at_once(connect, overheard):
    acknowledged = overheard.acknowledged
    session = connect(broker=overheard).create_session()
    session.create_producer("q").send_batch(list("abcde"))
    consumer = session.create_consumer("q")
    assert [message.body for message in consumer.receive_batch(3)] == ["a", "b", "c"]
    assert [message.body for message in consumer.receive_batch(9, 1)] == ["d", "e"]
    assert consumer.receive_batch(9, 1) == consumer.receive_batch(0) == []
    assert acknowledged == [3, 2]


def test_a_batch_is_acknowledged_once_and_nothing_is_said_of_it_later(connect, broker):
    connection = connect()
    errors = []
    connection.exception_listener = errors.append
    session = connection.create_session()
    session.create_producer("q").send_batch(map(str, range(900)))
    consumer = session.create_consumer("q?consumer.prefetchSize=200")
    for taken in range(90, 900, 90):
        assert len(consumer.receive_batch(90, 1)) == 90
        assert broker.view("q").queue_size == 900 - taken
    connection.close()
    broker.clock.settle()
    assert errors == []
    assert broker.view("q").queue_size == 90


def test_what_was_closed_makes_nothing(connect):
    connection = connect()
    session, other = connection.create_session(), connection.create_session()
    temporary = session.create_temporary_queue()
    session.close()
    for make in (session.create_queue, session.create_topic, session.create_consumer, session.create_browser):
        with pytest.raises(IllegalStateError, match="closed"):
            make("q")
    other.delete_temporary(temporary)
    temporary = other.create_temporary_queue()
    connection.close()
    with pytest.raises(IllegalStateError, match="closed"):
        other.delete_temporary(temporary)


def test_a_durable_subscription_has_a_name(connect):
    session = connect(client_id="c").create_session()
    with pytest.raises(InvalidDestinationError, match="is not the name of a durable subscription; give a string"):
        session.create_durable_subscriber("t", "")


def test_a_durable_subscriber_needs_a_client_id_and_keeps_its_messages(connect):
    with pytest.raises(IllegalStateError, match="clientID"):
        connect().create_session().create_durable_subscriber("t", "news")
    with Broker(name="old", release="5.17") as old, pytest.raises(JMSError, match="clientID"):
        connect(broker=old).create_session().create_durable_subscriber("t", "news")
    reader = connect(client_id="me")
    reader.create_session().create_durable_subscriber("t", "news")
    reader.close()
    connect().create_session().create_producer("topic://t").send_batch(list("ab"))
    session = connect(client_id="me").create_session()
    subscriber = session.create_durable_subscriber("t", "news")
    assert bodies(subscriber) == ["a", "b"]
    with pytest.raises(JMSError):
        session.unsubscribe("news")
    subscriber.close()
    session.unsubscribe("news")
    with pytest.raises(InvalidDestinationError):
        session.unsubscribe("news")


@pytest.mark.parametrize("durable", [False, True])
def test_what_was_given_back_twice_is_still_in_flight(connect, broker, durable):
    delays = "jms.redeliveryPolicy.initialRedeliveryDelay=0&jms.redeliveryPolicy.redeliveryDelay=0"
    session = connect(delays, "client").create_session(activemq.CLIENT_ACKNOWLEDGE)
    consumer = session.create_durable_subscriber("t", "d") if durable else session.create_consumer("topic://t")
    session.create_producer("topic://t").send(Message(body="x"))
    for times in range(3):
        message = consumer.receive(0.1)
        assert (message.body, message.redelivery_counter) == ("x", times)
        session.recover()
        (view,) = broker.subscriptions()
        assert view.dispatched_queue_size == 1
    consumer.receive(0.1).acknowledge()
    (view,) = broker.subscriptions()
    assert view.dispatched_queue_size == 0


@pytest.mark.parametrize("leave", ["session", "connection", "lost"])
def test_consumers_that_leave_together_get_nothing_while_they_go(connect, broker, leave):
    connection = connect("jms.dispatchAsync=false")
    sessions = [connection.create_session(activemq.INDIVIDUAL_ACKNOWLEDGE) for _ in range(2)]
    sessions[0].create_consumer("q?consumer.exclusive=true&consumer.prefetchSize=0")
    sessions[0 if leave == "session" else 1].create_consumer("q")
    connect().create_session().create_producer("q").send(Message(body="x"))
    before = broker.view(parse_destination("q")[0]).dispatch_count
    if leave == "session":
        sessions[0].close()
    else:
        connection.close(Closing.LOST if leave == "lost" else Closing.NOW)
    view = broker.view(parse_destination("q")[0])
    assert (view.dispatch_count - before, view.queue_size, view.in_flight_count) == (0, 1, 0)


def test_a_session_without_threads_delivers_what_waited_before_what_comes_meanwhile(connect):
    connection = connect("jms.dispatchAsync=false&jms.alwaysSessionAsync=false")
    heard = []
    session = connection.create_session()
    consumer = session.create_consumer("q?consumer.prefetchSize=3", listener=lambda message: heard.append(message.body))
    connection.stop()
    connect().create_session().create_producer("q").send_batch(str(n) for n in range(6))
    connection.start()
    assert heard == [str(n) for n in range(6)]
    consumer.message_listener = None
    connect().create_session().create_producer("q").send_batch(str(n) for n in range(6, 12))
    consumer.message_listener = lambda message: heard.append(message.body)
    assert heard == [str(n) for n in range(12)]


def test_a_receive_that_is_refused_asks_the_broker_for_nothing(connect, broker):
    session = connect("jms.dispatchAsync=false").create_session()
    pulls = session.create_consumer("q?consumer.prefetchSize=0")
    session.create_consumer("other", listener=print)
    session.create_producer("q").send("x")
    for receive in (pulls.receive_no_wait, lambda: pulls.receive(1), lambda: pulls.receive_batch(2)):
        with pytest.raises(IllegalStateError, match="MessageListener is set"):
            receive()
    assert broker.view("q").dispatch_count == 0


@pytest.mark.parametrize("count", [63, 64, 65, 130])
@pytest.mark.parametrize("late", [False, True])
def test_each_of_many_selectors_gets_its_own(connect, count, late):
    """A word holds the answers of 64 selectors."""
    session = connect().create_session()
    producer = session.create_producer("q")
    messages = [Message({"n": number}) for number in range(count)]
    if late:
        producer.send_batch(messages)
    consumers = [session.create_consumer("q", f"n = {number}") for number in range(count)]
    if not late:
        producer.send_batch(messages)
    assert [consumer.receive_no_wait()["n"] for consumer in consumers] == list(range(count))
    assert [consumer.receive_no_wait() for consumer in consumers] == [None] * count


def test_a_consumer_of_several_queues_without_prefetch_asks_once(connect, broker):
    session = connect("jms.dispatchAsync=false").create_session()
    consumer = session.create_consumer("q.*?consumer.prefetchSize=0")
    assert consumer.receive(0.1) is None
    producer = session.create_producer()
    for name in ("q.1", "q.2"):
        session.create_consumer(name).close()
    assert consumer.receive(0.1) is None
    producer.send(Message(body="x"), "q.2")
    producer.send(Message(body="y"), "q.1")
    assert [broker.view(parse_destination(name)[0]).dispatch_count for name in ("q.1", "q.2")] == [0, 0]
    assert sorted(bodies(consumer)) == ["x", "y"]


def test_the_window_widens_though_the_first_message_is_acknowledged(connect, broker):
    session = connect("jms.dispatchAsync=false").create_session(activemq.INDIVIDUAL_ACKNOWLEDGE)
    consumer = session.create_consumer("q?consumer.prefetchSize=5")
    producer = session.create_producer("q")
    for number in range(8):
        producer.send(Message(body=str(number)))
    first, _ = consumer.receive(0.1), consumer.receive(0.1)
    first.acknowledge()
    assert consumer.receive(0.1).body == "2"
    assert broker.subscriptions()[0].dispatched_queue_size == 7


def test_a_session_without_a_thread_gives_a_failing_listener_its_message_again(connect):
    delays = "jms.redeliveryPolicy.initialRedeliveryDelay=0&jms.redeliveryPolicy.redeliveryDelay=0"
    session = connect(f"jms.dispatchAsync=false&jms.alwaysSessionAsync=false&{delays}").create_session()
    seen = []

    def on_message(message):
        seen.append(message.delivery_count)
        if len(seen) < 3:
            raise RuntimeError("as the test says")

    session.create_consumer("q", listener=on_message)
    session.create_producer("q").send(Message(body="x"))
    assert seen == [1, 2, 3]


def test_a_program_that_is_interrupted_in_a_listener_has_acknowledged_nothing(connect, broker):
    session = connect("jms.dispatchAsync=false&jms.alwaysSessionAsync=false").create_session()

    def on_message(message):
        raise KeyboardInterrupt

    session.create_consumer("q", listener=on_message)
    with pytest.raises(KeyboardInterrupt):
        session.create_producer("q").send("x")
    assert session.listening_thread is None
    session.connection.close(Closing.LOST)
    assert broker.view("queue://q").queue_size == 1


@pytest.mark.parametrize("threads", ["", "&jms.useDedicatedTaskRunner=true", "&jms.alwaysSessionAsync=false"])
@pytest.mark.parametrize("raised", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_whatever_a_listener_raises_on_a_thread_of_ours_is_its_failure(threads, raised):
    delays = "jms.redeliveryPolicy.initialRedeliveryDelay=20&jms.redeliveryPolicy.redeliveryDelay=20"
    broker = activemq.Broker()
    factory = activemq.ConnectionFactory(f"vm://x?{delays}{threads}", broker=broker)
    with broker, factory.create_connection() as connection:
        seen, over = [], threading.Event()

        def on_message(message):
            seen.append((message.body, message.delivery_count))
            if seen == [("0", 1)]:
                raise raised
            if len(seen) == 4:
                over.set()

        connection.create_session().create_consumer("q", listener=on_message)
        heard = threading.Event()
        connection.create_session().create_consumer("r", listener=lambda message: heard.set())
        producer = connection.create_session().create_producer()
        for number in range(3):
            producer.send(str(number), "q")
        producer.send("x", "r")
        assert over.wait(5)
        assert heard.wait(5)
        assert ("0", 2) in seen
        assert sorted(seen) == [("0", 1), ("0", 2), ("1", 1), ("2", 1)]


@pytest.mark.parametrize("mode", [activemq.AUTO_ACKNOWLEDGE, activemq.SESSION_TRANSACTED, activemq.CLIENT_ACKNOWLEDGE])
def test_what_a_user_does_to_a_message_is_seen_by_nobody_else(connect, broker, mode):
    delays = "jms.redeliveryPolicy.initialRedeliveryDelay=0&jms.redeliveryPolicy.redeliveryDelay=0"
    session = connect(f"jms.dispatchAsync=false&jms.alwaysSessionAsync=false&{delays}").create_session(mode)
    seen = []

    def on_message(message):
        told = message.attributes(), message.properties()
        seen.append(({name: value for name, value in told[0].items() if name != "redelivery_counter"}, told[1]))
        counters.append(message.redelivery_counter)
        message.message_id, message.destination, message.priority, message.body = "ID:mine", "queue://mine", 9, "mine"
        message.group_first_for_consumer, message.broker_out_time, message.redelivery_counter = False, 1, 7
        message.set_int_property("number", 2)
        if len(seen) < 3:
            if mode is activemq.AUTO_ACKNOWLEDGE:
                raise RuntimeError("as the test says")
            session.rollback() if session.transacted else session.recover()
        elif mode is activemq.CLIENT_ACKNOWLEDGE:
            message.acknowledge()

    counters = []
    session.create_consumer("q", listener=on_message)
    connect().create_session().create_producer("q").send(Message({"number": 1}, body="theirs", group_id="g"))
    if session.transacted:
        session.commit()
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][0]["group_first_for_consumer"]
    assert counters == [0, 1, 2]
    assert broker.view("queue://q").queue_size == 0
    assert [str(each) for each in broker.destinations()] == ["queue://q"]


@pytest.mark.parametrize("options", ["", "&jms.dispatchAsync=false"])
def test_a_listener_of_a_session_without_a_thread_is_called_by_nobody_else_while_it_commits(connect, broker, options):
    connect().create_session().create_producer("q").send_batch(map(str, range(1500)))
    connection = connect(f"jms.alwaysSessionAsync=false{options}")
    connection.stop()
    session = connection.create_session(activemq.SESSION_TRANSACTED)
    seen, within = [], []

    def listener(message):
        within.append(session.listening_thread)
        seen.append(message.body)
        before = len(seen)
        session.commit()
        assert len(seen) == before

    session.create_consumer("q?consumer.prefetchSize=20", listener=listener)
    connection.start()
    assert len(seen) == len(set(seen)) == 1500
    assert set(within) == {threading.get_ident()}
    assert broker.view("q").queue_size == 0


def test_a_session_without_a_thread_redelivers_the_last_message_first(connect):
    delays = "jms.redeliveryPolicy.initialRedeliveryDelay=0&jms.redeliveryPolicy.redeliveryDelay=0"
    options = f"jms.dispatchAsync=false&jms.alwaysSessionAsync=false&{delays}"
    session = connect(options).create_session(activemq.CLIENT_ACKNOWLEDGE)
    seen = []
    session.create_consumer("q", listener=lambda message: seen.append(message.body))
    producer = session.create_producer("q")
    for body in "ab":
        producer.send(Message(body=body))
    session.recover()
    assert seen == ["a", "b", "b", "a"]


def test_what_fails_again_in_a_session_without_a_thread_turns_the_order_again(connect):
    delays = "jms.redeliveryPolicy.initialRedeliveryDelay=0&jms.redeliveryPolicy.redeliveryDelay=0"
    session = connect(f"jms.dispatchAsync=false&jms.alwaysSessionAsync=false&{delays}").create_session()
    session.create_producer("q").send_batch(list("1234567"))
    seen = []

    def on_message(message):
        seen.append(message.body)
        if message.body in "36" and message.delivery_count == 1:
            raise RuntimeError("as the test says")

    session.create_consumer("q", listener=on_message)
    assert "".join(seen) == "123763456"


def test_a_connection_that_is_started_twice_keeps_the_delay_of_a_redelivery(connect, clock):
    connection = connect("jms.dispatchAsync=false&jms.alwaysSessionAsync=false")
    session = connection.create_session()
    seen = []

    def on_message(message):
        seen.append(message.body)
        if seen == ["1"]:
            raise RuntimeError("as the test says")

    session.create_consumer("q", listener=on_message)
    producer = session.create_producer("q")
    producer.send("1")
    connection.start()
    producer.send("2")
    assert seen == ["1"]
    clock.advance(1000)
    assert seen == ["1", "2", "1"]


def test_the_producers_are_counted(connect, broker):
    session = connect().create_session()
    session.create_consumer("q")
    producer = session.create_producer("q")
    assert broker.view("q").producer_count == 1
    producer.close()
    assert broker.view("q").producer_count == 0
    with connect() as another:
        another.create_session().create_producer("q")
        kept = session.create_producer("q")
        assert broker.view("q").producer_count == 2
    assert broker.view("q").producer_count == 1
    kept.close()
    assert broker.view("q").producer_count == 0


def test_a_lost_connection_says_nothing(connect):
    connection = connect()
    session = connection.create_session(activemq.CLIENT_ACKNOWLEDGE)
    session.create_producer("q").send_batch(list("ab"))
    session.create_consumer("q").receive(1)
    connection.close(Closing.LOST)
    again = connect().create_session().create_consumer("q").receive_batch(2, 1)
    assert [(message.body, message.delivery_count) for message in again] == [("a", 2), ("b", 2)]
    with pytest.raises(IllegalStateError):
        connection.create_session()


def test_closing_waits_for_the_end_of_the_transaction(connect):
    session = connect().create_session(activemq.SESSION_TRANSACTED)
    consumer = session.create_consumer("q")
    session.create_producer("q").send("a")
    session.commit()
    consumer.receive(1)
    consumer.close()
    assert not consumer.closed
    session.commit()
    assert consumer.closed
    with pytest.raises(IllegalStateError, match="closed"):
        consumer.receive(1)


def test_a_broker_that_stops_ends_the_connection(make, clock):
    broker = make()
    connection = ConnectionFactory(broker=broker).create_connection()
    connection.start()
    reasons = []
    connection.exception_listener = reasons.append
    consumer = connection.create_session().create_consumer("q")
    broker.close()
    clock.settle()
    assert "has stopped" in str(reasons[0])
    assert consumer.closed
    with pytest.raises(JMSError, match="has stopped"):
        connection.create_session()


def test_a_forgotten_connection_warns(broker):
    def forget():
        ConnectionFactory(broker=broker).create_connection().create_session().create_consumer("q")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        forget()
        gc.collect()
    assert any("unclosed connection" in str(warning.message) for warning in caught)


@pytest.mark.parametrize("mode", [activemq.AUTO_ACKNOWLEDGE, activemq.CLIENT_ACKNOWLEDGE])
@pytest.mark.parametrize("listens", [True, False])
def test_a_connection_that_its_user_forgot_is_collected_with_all_that_waits_in_it(broker, mode, listens):
    def work() -> weakref.ref:
        connection = ConnectionFactory("vm://localhost?jms.alwaysSessionAsync=false", broker=broker).create_connection()
        session = connection.create_session(mode)
        consumer = session.create_consumer("q")
        connection.start()
        session.create_producer("q").send_batch(["heard", "kept", "waits"])
        consumer.receive(1)
        connection.stop()
        if listens:
            consumer.message_listener = print
            session.create_producer("q").send("arrives")
        return weakref.ref(connection)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        forgotten = work()
        gc.collect()
    assert forgotten() is None


@pytest.mark.parametrize("destination", ["a", "a,b", "topic://a", "topic://a,topic://b"])
def test_a_closed_broker_is_collected_with_what_consumers_held(clock, destination):
    def work() -> weakref.ref:
        with Broker(name="gone", clock=clock) as broker:
            connection = ConnectionFactory("vm://gone", broker=broker).create_connection()
            connection.start()
            session = connection.create_session(activemq.CLIENT_ACKNOWLEDGE)
            consumer = session.create_consumer(destination)
            session.create_producer(destination).send_batch(["heard", "held"])
            assert consumer.receive(1).body == "heard"
            return weakref.ref(broker)

    gone = work()
    gc.collect()
    assert gone() is None


def test_a_closed_brokers_callback_is_collected_with_the_messages_that_it_kept():
    def work() -> weakref.ref:
        heard = []
        with Broker(name="gone", clock=ManualClock()) as broker:
            broker.on(Event, heard.append)
            with ConnectionFactory("vm://gone", broker=broker).create_connection() as connection:
                session = connection.create_session(activemq.CLIENT_ACKNOWLEDGE)
                session.create_producer("q").send("kept")
                heard.append(session.create_consumer("q").receive(1))
            return weakref.ref(broker)

    gone = work()
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("mode", [activemq.CLIENT_ACKNOWLEDGE, activemq.INDIVIDUAL_ACKNOWLEDGE])
def test_a_closed_consumers_listener_is_collected_with_the_messages_that_it_kept(broker, mode):
    class Listener:
        def __init__(self):
            self.kept = []

        def __call__(self, message):
            self.kept.append(message)

    def work() -> tuple[weakref.ref, weakref.ref]:
        factory = ConnectionFactory("vm://localhost?jms.alwaysSessionAsync=false", broker=broker)
        with factory.create_connection() as connection:
            session = connection.create_session(mode)
            listener = Listener()
            session.create_consumer("q").message_listener = listener
            session.create_producer("q").send("kept")
            until(lambda: listener.kept)
            return weakref.ref(listener), weakref.ref(connection)

    gone = work()
    gc.collect()
    assert [each() for each in gone] == [None, None]


@pytest.mark.parametrize("how", [Closing.NOW, Closing.DRAIN, Closing.LOST])
def test_a_closed_connections_exception_listener_is_collected_with_the_messages_that_it_kept(broker, how):
    class Listener:
        def __call__(self, error):
            pass

    def work() -> tuple[weakref.ref, weakref.ref]:
        connection = ConnectionFactory("vm://localhost", broker=broker).create_connection()
        connection.exception_listener = listener = Listener()
        connection.start()
        session = connection.create_session(activemq.CLIENT_ACKNOWLEDGE)
        session.create_producer("q").send("kept")
        listener.kept = session.create_consumer("q").receive(1)
        assert connection.exception_listener is listener
        connection.close(how)
        for use in (lambda: connection.exception_listener, lambda: setattr(connection, "exception_listener", None)):
            with pytest.raises(IllegalStateError, match="The connection is closed"):
                use()
        return weakref.ref(listener), weakref.ref(connection)

    gone = work()
    gc.collect()
    assert [each() for each in gone] == [None, None]


def test_threads_have_the_real_clients_names():
    names = []
    called = threading.Event()

    def listener(message):
        names.append(threading.current_thread().name)
        called.set()

    for options, expected in (
        ("", "ActiveMQ Session Task-1"),
        ("jms.useDedicatedTaskRunner=true", "ActiveMQ Session: "),
        ("jms.alwaysSessionAsync=false", "ActiveMQ Connection Dispatcher: "),
        ("jms.alwaysSessionAsync=false&jms.dispatchAsync=false", threading.current_thread().name),
    ):
        called.clear()
        with ConnectionFactory(f"vm://threads?{options}").create_connection() as connection:
            connection.create_session().create_consumer("q", listener=listener)
            connection.create_session().create_producer("q").send("a")
            assert called.wait(10)
        assert names.pop().startswith(expected)


def test_the_pool_has_no_more_threads_than_it_may():
    names = set()
    done = threading.Semaphore(0)

    def listener(message):
        names.add(threading.current_thread().name)
        done.release()

    with ConnectionFactory("vm://pool?jms.maxThreadPoolSize=2").create_connection() as connection:
        for _ in range(5):
            connection.create_session().create_consumer("topic://t", listener=listener)
        connection.create_session().create_producer("topic://t").send_batch(list("abcdefgh"))
        for _ in range(40):
            assert done.acquire(timeout=10)
    pool = {name for name in names if name.startswith("ActiveMQ Session Task")}
    # When every thread of the pool is busy the one that delivers does the work.
    assert 1 <= len(pool) <= 2
    assert all(name.startswith("ActiveMQ Connection Dispatcher") for name in names - pool)


def test_a_browser_that_waits_behind_what_came_for_listeners_is_woken(monkeypatch):
    class LateTask:
        def wake_up(self):
            """The session's thread has not come to it yet."""

    monkeypatch.setattr(Session, "_new_task", lambda session: LateTask())
    with ConnectionFactory("vm://behind?jms.dispatchAsync=false").create_connection() as connection:
        producer = connection.create_session().create_producer()
        producer.send("seen", "queue://other")
        session = connection.create_session()
        consumer = session.create_consumer("q", listener=print)
        producer.send("given back", "queue://q")
        consumer.close()
        seen = []
        browsing = threading.Thread(
            target=lambda: seen.extend(message.body for message in session.create_browser("other")), daemon=True
        )
        browsing.start()
        until(lambda: session.waiting)
        session._run()
        browsing.join(10)
        assert seen == ["seen"]


def test_draining_lets_listeners_have_what_has_arrived():
    got = []

    def listener(message):
        time.sleep(0.005)
        got.append(message.body)

    with ConnectionFactory("vm://drain?jms.dispatchAsync=false").create_connection() as connection:
        consumer = connection.create_session().create_consumer("q", listener=listener)
        connection.create_session().create_producer("q").send_batch(list("abcdef"))
        consumer.close(Closing.DRAIN)
    assert got == list("abcdef")


@pytest.mark.parametrize("noun", ["consumer", "session", "connection"])
def test_a_listener_cannot_drain_what_comes_behind_it(noun):
    got = []

    def listener(message):
        got.append(message.body)
        if message.body == "a":
            with pytest.raises(IllegalStateError, match=r"close with Closing\.NOW"):
                nouns[noun].close(Closing.DRAIN)

    with ConnectionFactory("vm://drain?jms.dispatchAsync=false").create_connection() as connection:
        session = connection.create_session()
        consumer = session.create_consumer("q", listener=listener)
        nouns = {"consumer": consumer, "session": session, "connection": connection}
        connection.create_session().create_producer("q").send_batch(list("abc"))
        consumer.close(Closing.DRAIN)
    assert got == list("abc")


def test_closing_ends_a_receive_on_another_thread():
    with ConnectionFactory("vm://waiting").create_connection() as connection:
        consumer = connection.create_session().create_consumer("q")
        answers = []
        thread = threading.Thread(target=lambda: answers.append(consumer.receive()))
        thread.start()
        time.sleep(0.05)
        consumer.close()
        thread.join(10)
    assert answers == [None]


def test_what_is_sent_in_a_transaction_carries_its_id(make, tmp_path):
    broker = make(directory=str(tmp_path))
    connection = activemq.ConnectionFactory(broker=broker).create_connection()
    connection.start()
    inside, outside = connection.create_session(activemq.SESSION_TRANSACTED), connection.create_session()
    inside.create_producer("q").send("in")
    inside.commit()
    outside.create_producer("q").send("out")
    broker.close()
    broker = make(directory=str(tmp_path))
    connection = activemq.ConnectionFactory(broker=broker).create_connection()
    connection.start()
    session = connection.create_session()
    forwarder = session.create_producer("r")
    first = session.create_consumer("q", "JMSXProducerTXID IS NOT NULL").receive(1)
    assert first.body == "in"
    assert first.producer_transaction_id.startswith("TX:ID:")
    forwarder.send(first)
    assert session.create_consumer("r", "JMSXProducerTXID IS NULL").receive(1).body == "in"
    connection.close()


def test_each_step_of_a_back_off_draws_a_chance_of_its_own(connect, clock, monkeypatch):
    # As RedeliveryPolicy.getNextRedeliveryDelay is asked once a step: 10 * 2 + 20 %, doubled - 20 %.
    chances = iter([])
    monkeypatch.setattr("random.random", lambda: next(chances))
    policy = "initialRedeliveryDelay=10 useExponentialBackOff=true backOffMultiplier=2 useCollisionAvoidance=true"
    options = [f"jms.redeliveryPolicy.{each}" for each in [*policy.split(), "collisionAvoidancePercent=20"]]
    session = connect("&".join(options)).create_session(activemq.SESSION_TRANSACTED)
    session.create_producer("q").send("x")
    session.commit()
    consumer = session.create_consumer("q")
    delays = []
    for drawn in ([], [0.9999999], [0.9999999, 0.0]):
        assert consumer.receive(1).body == "x"
        chances = iter(drawn)
        session.rollback()
        began = clock.now()
        while not consumer._state.ready:
            clock.advance(1)
        delays.append(clock.now() - began)
    assert delays == [10, 23, 36]


def test_poison_whose_last_message_was_handed_out_first_takes_all_behind_the_first_with_it(connect, broker, clock):
    # Seen at 6.3.1: with nonBlockingRedelivery a message that came again is named last and stands first at the broker,
    # which gives up what it comes to from the first on, and refuses the acknowledgement at the end.
    options = "jms.nonBlockingRedelivery=true&jms.redeliveryPolicy.maximumRedeliveries=1"
    connection = connect(options + "&jms.prefetchPolicy.queuePrefetch=3")
    errors = []
    connection.exception_listener = lambda error: errors.append(str(error))
    session = connection.create_session(activemq.SESSION_TRANSACTED)
    consumer = session.create_consumer("q")
    with connect().create_session() as other:
        other.create_producer("q").send_batch(list("abcdef"))
    assert consumer.receive(0.1).body == "a"
    session.rollback()
    assert consumer.receive(0.1).body == "b"
    clock.advance(1000)
    assert [consumer.receive(0.1).body for _ in range(3)] == ["c", "d", "a"]
    session.rollback()
    clock.advance(0)
    assert [error.split(": message")[0] for error in errors] == ["unmatched acknowledge"]
    assert [letter.body for letter in broker.browse("ActiveMQ.DLQ")] == ["b", "c", "d", "e", "f"]
    assert broker.view("q").in_flight_count == 1


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("option", ["messagePrioritySupported", "transactedIndividualAck", "nonBlockingRedelivery"])
def test_what_a_transaction_acknowledged_one_by_one_may_expire_at_the_client(connect, make, clock, option, end):
    # Seen at 6.3.1: the client acknowledges it in the transaction, and then says that it has expired.
    broker = make(name="own", policies=[Policy(">", expire_messages_period=0)])
    consumed = []
    broker.on(MessageExpired, lambda event: consumed.append(event.message.body))
    session = connect(f"jms.{option}=true", broker=broker).create_session(activemq.SESSION_TRANSACTED)
    consumer = session.create_consumer("q")
    with connect(broker=broker).create_session() as other:
        producer = other.create_producer("q")
        producer.send("late", time_to_live_ms=1000)
        producer.send("kept")
    clock.advance(2000)
    assert consumer.receive(0).body == "kept"
    assert consumed == ["late"]
    assert [letter.body for letter in broker.browse("ActiveMQ.DLQ")] == ["late"]
    getattr(session, end)()
    view = broker.view("q")
    left = 1 if end == "rollback" else 0
    assert (view.queue_size, view.in_flight_count, view.expired_count) == (left, left, 1)
    assert view.average_message_size * left == 1024 * left + 8 * left
    consumer.close()
    assert len(broker.browse("q")) == left


def test_a_commit_raises_where_the_broker_refused_what_its_transaction_acknowledged(connect, broker, clock):
    # Seen at 6.3.1: what a listener was given behind a redelivery stands before it in the client's range.
    session = connect("jms.alwaysSessionAsync=false").create_session(activemq.SESSION_TRANSACTED)
    got, fails = [], ["a"]

    def listen(message):
        got.append(message.body)
        if message.body in fails:
            fails.remove(message.body)
            raise RuntimeError

    session.create_consumer("q", listener=listen)
    with connect().create_session() as other:
        producer = other.create_producer("q")
        producer.send("a")
        producer.send("b")
    session.rollback()
    clock.advance(1000)
    assert got == ["a", "b", "b", "a"]
    with pytest.raises(JMSError, match="rolled back: unmatched acknowledge"):
        session.commit()
    assert broker.view("q").queue_size == 2
    clock.advance(1000)
    session.commit()
