"""Programs of the Python client, which see the same on the embedded broker, over OpenWire, and on the real one.

A program gets ``connect(client_id=None, **options)``, which makes a connection that is started; options are names of
``jms.*``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyengine
from pyengine import MapBody, Message, ObjectBody, StreamBody
from pyengine.activemq import (
    AUTO_ACKNOWLEDGE,
    CLIENT_ACKNOWLEDGE,
    INDIVIDUAL_ACKNOWLEDGE,
    SESSION_TRANSACTED,
    Connection,
    MessageConsumer,
    Session,
)
from pyengine.activemq.options import UnknownOptions
from pyengine.errors import PyengineError

PATIENCE, SOON = 3.0, 0.15
Connect = Callable[..., Connection]


def text(message: Message | None) -> str:
    """A message as the transcripts show it."""
    if message is None:
        return "nothing"
    return str(message.body) + (f" again {message.delivery_count}" if message.redelivered else "")


def all_of(consumer: MessageConsumer) -> list[str]:
    """Its messages, until nothing more comes."""
    found: list[str] = []
    while (message := consumer.receive(SOON if found else PATIENCE)) is not None:
        found.append(text(message))
    return found


def send(session: Session, queue: str, *texts: str) -> None:
    """Persistent messages to a queue."""
    with session.create_producer(queue) as producer:
        for each in texts:
            producer.send(Message(body=each))


def refused(action: Callable[[], object]) -> str:
    """The kind of error that a call raises."""
    try:
        action()
    except PyengineError as error:
        return type(error).__name__
    return "done"


def bodies(connect: Connect) -> Iterator[Any]:
    """Every kind of body."""
    session = connect().create_session()
    consumer = session.create_consumer("BODIES")
    producer = session.create_producer("BODIES")
    stream = StreamBody()
    stream.write_int(1)
    stream.write_string("two")
    stream.write_object(None)
    stream.write_bytes(b"3")
    entries = MapBody({"i": 1, "s": "x", "b": b"12", "d": 1.5, "t": True})
    entries.set_long("l", 5)
    entries.set_char("c", "c")
    for body in ("", "hé 你 \U0001f680 \0", "x" * 70_000, b"", b"\0\1", entries, stream, ObjectBody(b"\xac\xed"), None):
        producer.send(Message(body=body))
    for _ in range(9):
        message = consumer.receive(PATIENCE)
        assert message is not None
        body = message.body
        if isinstance(body, MapBody):
            yield {name: (body.entry_types()[name], body.entries()[name]) for name in sorted(body.entries())}
        elif isinstance(body, StreamBody):
            yield list(zip(body.value_types(), body.values(), strict=True))
        elif isinstance(body, ObjectBody):
            yield body.data
        else:
            yield body if body is None or len(body) < 100 else (type(body).__name__, len(body))


def headers(connect: Connect) -> Iterator[Any]:
    """Headers and properties of every type."""
    session = connect().create_session()
    consumer = session.create_consumer("HEADERS")
    message = Message(
        {"s": "hé", "i": -5, "d": 0.1, "t": True, "n": None},
        body="t",
        reply_to="topic://REPLIES",
        type="kind",
        correlation_id="cé",
        group_id="g",
        group_sequence=3,
    )
    message.set_long_property("l", 1 << 40)
    message.set_byte_property("b", -1)
    message.set_short_property("h", 300)
    message.set_float_property("f", 0.5)
    session.create_producer("HEADERS").send(message, delivery_mode="NON_PERSISTENT", priority=7, time_to_live_ms=60_000)
    got = consumer.receive(PATIENCE)
    assert got is not None
    yield got.destination, got.reply_to, got.type, got.correlation_id, got.priority, got.delivery_mode, got.redelivered
    yield got.expiration - got.timestamp, got.group_id, got.group_sequence
    yield {name: (got.property_types()[name], got.properties()[name]) for name in sorted(got.property_types())}


def acknowledgement(connect: Connect) -> Iterator[Any]:
    """What an acknowledgement of the second of three messages leaves."""
    connection = connect()
    producing = connection.create_session()
    for mode in (AUTO_ACKNOWLEDGE, CLIENT_ACKNOWLEDGE, INDIVIDUAL_ACKNOWLEDGE):
        queue = f"ACK.{int(mode)}"
        send(producing, queue, "1", "2", "3", "4", "5")
        with connection.create_session(mode) as session:
            consumer = session.create_consumer(queue)
            messages = [consumer.receive(PATIENCE) for _ in range(3)]
            assert messages[1] is not None
            messages[1].acknowledge()
        with connection.create_session() as session:
            yield all_of(session.create_consumer(queue))


def recovery(connect: Connect) -> Iterator[Any]:
    """recover() in a session that acknowledges by hand."""
    session = connect().create_session(CLIENT_ACKNOWLEDGE)
    send(session, "RECOVER", "1", "2", "3")
    consumer = session.create_consumer("RECOVER")
    yield [text(consumer.receive(PATIENCE)) for _ in range(2)]
    session.recover()
    messages = [consumer.receive(PATIENCE) for _ in range(3)]
    yield [text(each) for each in messages]
    assert messages[2] is not None
    messages[2].acknowledge()
    yield text(consumer.receive(SOON))


def transactions(connect: Connect) -> Iterator[Any]:
    """Sends and receipts, committed and rolled back."""
    connection = connect()
    session, other = connection.create_session(SESSION_TRANSACTED), connection.create_session()
    with other.create_consumer("TX") as watching:
        send(session, "TX", "1", "2")
        yield text(watching.receive(SOON))
        session.commit()
        yield all_of(watching)
        send(session, "TX", "3")
        session.rollback()
        yield text(watching.receive(SOON))
    send(session, "TX", "4", "5")
    session.commit()
    consumer = session.create_consumer("TX")
    yield [text(consumer.receive(PATIENCE)) for _ in range(2)]
    session.rollback()
    yield text(consumer.receive(PATIENCE))
    session.commit()
    yield text(consumer.receive(PATIENCE))
    session.rollback()
    session.close()
    yield all_of(other.create_consumer("TX"))


def dead_letters(connect: Connect) -> Iterator[Any]:
    """A message that is rolled back too often."""
    session = connect().create_session(SESSION_TRANSACTED)
    send(session, "POISON", "bad")
    session.commit()
    consumer = session.create_consumer("POISON")
    for _ in range(3):
        yield text(consumer.receive(PATIENCE))
        session.rollback()
    yield text(consumer.receive(SOON))
    letter = session.create_consumer("ActiveMQ.DLQ").receive(PATIENCE)
    assert letter is not None
    cause = str(letter.properties()["dlqDeliveryFailureCause"])
    yield text(letter), letter.destination, letter.original_destination, cause[: cause.index(" policy limit")]
    session.commit()


def topics(connect: Connect) -> Iterator[Any]:
    """Wildcards, selectors, noLocal."""
    session = connect().create_session()
    producer = session.create_producer("topic://T.a.b")
    producer.send(Message(body="early"))
    one = session.create_consumer("topic://T.a.b")
    wild = session.create_consumer("topic://T.>", "n > 1")
    deaf = session.create_consumer("topic://T.a.b", no_local=True)
    for number in range(3):
        producer.send(Message({"n": number}, body=f"m{number}"))
    yield all_of(one), all_of(wild), text(deaf.receive(SOON))


def durables(connect: Connect) -> Iterator[Any]:
    """A durable subscription that is left and taken up again."""
    connection = connect(client_id="me")
    session = connection.create_session()
    subscriber = session.create_durable_subscriber("topic://DURABLE", "name")
    yield refused(lambda: session.unsubscribe("name"))
    yield refused(lambda: session.create_durable_subscriber("topic://DURABLE", "name"))
    yield refused(lambda: connect(client_id="me"))
    producer = session.create_producer("topic://DURABLE")
    producer.send(Message(body="1"))
    yield text(subscriber.receive(PATIENCE))
    subscriber.close()
    producer.send(Message(body="2"))
    producer.send(Message(body="3"))
    connection.close()
    later = connect(client_id="me").create_session()
    again = later.create_durable_subscriber("topic://DURABLE", "name")
    yield all_of(again)
    again.close()
    later.unsubscribe("name")
    yield refused(lambda: later.unsubscribe("name"))


def request_and_reply(connect: Connect) -> Iterator[Any]:
    """Answers to a temporary queue of another connection."""
    asking, answering = connect(), connect()
    server = answering.create_session()
    anywhere = server.create_producer()
    server.create_consumer("ASK").message_listener = lambda message: anywhere.send(
        Message(body=f"re: {message.body}"), destination=message.reply_to
    )
    session = asking.create_session()
    replies = session.create_temporary_queue()
    consumer = session.create_consumer(replies)
    producer = session.create_producer("ASK")
    for number in range(2):
        producer.send(Message(body=f"q{number}", reply_to=replies))
        yield text(consumer.receive(PATIENCE))
    other = answering.create_session()
    yield refused(lambda: other.create_consumer(replies))
    yield refused(lambda: session.delete_temporary(replies))
    consumer.close()
    session.delete_temporary(replies)
    yield refused(lambda: session.create_producer().send(Message(body="x"), destination=replies))


def browsing(connect: Connect) -> Iterator[Any]:
    """A browser sees all and takes nothing."""
    session = connect().create_session()
    yield [text(each) for each in session.create_browser("BROWSE")]
    producer = session.create_producer("BROWSE")
    for number in range(5):
        producer.send(Message({"n": number}, body=f"m{number}"))
    for selector in (None, "n > 2"):
        with session.create_browser("BROWSE", selector) as browser:
            yield [text(each) for each in browser]
    yield all_of(session.create_consumer("BROWSE"))


def selectors(connect: Connect) -> Iterator[Any]:
    """A consumer of some messages, and one of the rest."""
    session = connect().create_session()
    yield refused(lambda: session.create_consumer("SELECT", "x = = 1"))
    some = session.create_consumer("SELECT", "color = 'red' AND size BETWEEN 1 AND 3")
    producer = session.create_producer("SELECT")
    for number in range(6):
        producer.send(Message({"color": "blue" if number % 2 else "red", "size": number}, body=f"m{number}"))
    yield all_of(some)
    some.close()
    yield all_of(session.create_consumer("SELECT"))


def pulling(connect: Connect) -> Iterator[Any]:
    """Consumers without prefetch ask for each message."""
    session = connect(**{"prefetchPolicy.all": "0"}).create_session()
    one, two = session.create_consumer("PULL"), session.create_consumer("PULL")
    yield text(one.receive_no_wait()), text(one.receive(0.1))
    send(session, "PULL", "1", "2", "3")
    yield text(one.receive(PATIENCE)), text(two.receive(PATIENCE)), text(one.receive_no_wait())
    yield text(two.receive_no_wait())
    send(session, "PULL", "4")
    yield text(two.receive(PATIENCE))


def prefetch(connect: Connect) -> Iterator[Any]:
    """What one consumer holds the other does not get."""
    connection = connect(**{"prefetchPolicy.queuePrefetch": "2"})
    session = connection.create_session(CLIENT_ACKNOWLEDGE)
    one = session.create_consumer("PREFETCH")
    send(session, "PREFETCH", "1", "2", "3", "4", "5")
    two = connection.create_session().create_consumer("PREFETCH")
    yield all_of(two)
    yield text(one.receive(PATIENCE)), text(one.receive(PATIENCE))


def closing(connect: Connect) -> Iterator[Any]:
    """Prefetched messages come back; those that were received as redelivered."""
    connection = connect()
    session = connection.create_session(CLIENT_ACKNOWLEDGE)
    send(session, "CLOSING", "1", "2", "3", "4")
    consumer = session.create_consumer("CLOSING")
    yield text(consumer.receive(PATIENCE)), text(consumer.receive(PATIENCE))
    connection.close()
    yield all_of(connect().create_session().create_consumer("CLOSING"))


def listeners(connect: Connect) -> Iterator[Any]:
    """A listener that fails once, and optimized acknowledgement."""
    connection = connect(**{"optimizeAcknowledge": "true", "prefetchPolicy.queuePrefetch": "10"})
    heard: list[str] = []
    session = connection.create_session()
    session.create_consumer("LISTEN").message_listener = lambda message: heard.append(text(message))
    sending = connection.create_session()
    send(sending, "LISTEN", *(f"m{number}" for number in range(30)))
    waiting = sending.create_consumer("NOTHING")
    for _ in range(30):
        if len(heard) == 30:
            break
        waiting.receive(0.05)
    yield heard


PROGRAMS: dict[str, Callable[[Connect], Iterator[Any]]] = {
    program.__name__: program
    for program in (
        bodies, headers, acknowledgement, recovery, transactions, dead_letters, topics, durables, request_and_reply,
        browsing, selectors, pulling, prefetch, closing, listeners,
    )
}  # fmt: skip


@contextmanager
def connecting(url: str) -> Iterator[Connect]:
    """What a program connects with; the connections that it leaves open are closed."""
    made: list[Connection] = []

    def connect(client_id: str | None = None, **options: str) -> Connection:
        given = {"redeliveryPolicy.initialRedeliveryDelay": "0", "redeliveryPolicy.redeliveryDelay": "0",
                 "redeliveryPolicy.maximumRedeliveries": "2", **options}  # fmt: skip
        query = "&".join(f"jms.{name}={value}" for name, value in given.items())
        factory = pyengine.activemq.ConnectionFactory(f"{url}?{query}", unknown_options=UnknownOptions.REFUSE)
        connection = factory.create_connection(client_id)
        made.append(connection)
        connection.start()
        return connection

    try:
        yield connect
    finally:
        for connection in made:
            connection.close()


def play(url: str, name: str) -> list[str]:
    """A program's transcript."""
    with connecting(url) as connect:
        return [repr(line) for line in PROGRAMS[name](connect)]
