"""OpenTelemetry for ActiveMQ's client: spans and metrics of what it sends, receives and processes.

    telemetry = instrument(activemq.ConnectionFactory("vm://localhost"))

Everything made of an instrumented factory or connection from then on is traced: on an embedded broker and on one of the
network alike, with the client for asyncio too. A listener's message is processed in a span; around what a program does
with a message that it has received, it says ``with telemetry.process(message):`` itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import wraps
from time import time_ns
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from pyengine._engine.message.body import Body
from pyengine._engine.message.message import Message
from pyengine.activemq import aio
from pyengine.activemq.client.connection import Connection
from pyengine.activemq.client.connection_factory import ConnectionFactory
from pyengine.activemq.client.consumer import MessageConsumer, MessageListener, TopicSubscriber
from pyengine.activemq.client.producer import MessageProducer
from pyengine.activemq.client.session import Session
from pyengine.destinations import Destination, destination_of
from pyengine.errors import ConfigurationError, PyengineError
from pyengine.telemetry import Attributes, Operation, Subject, Telemetry

__all__ = ["instrument"]

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.propagators.textmap import TextMapPropagator
    from opentelemetry.trace import TracerProvider

Found = TypeVar("Found", "Message | None", "list[Message]")

DASH = "__dash__"  # a property's name is an identifier: how OpenTelemetry's Java agent writes b3's


def instrument(
    target: ConnectionFactory | Connection | aio.ConnectionFactory | aio.Connection,
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    propagator: TextMapPropagator | None = None,
) -> Telemetry[Message]:
    """Trace what is made of a connection factory, or of one connection, from now on.

    The providers and the propagator are the global ones unless given. Raises MissingExtraError without
    opentelemetry-api (extra ``opentelemetry``), ConfigurationError for what is neither.
    """
    if not isinstance(target, (ConnectionFactory, Connection, aio.ConnectionFactory, aio.Connection)):
        raise ConfigurationError(
            "target", repr(target), "cannot be instrumented", "give a ConnectionFactory or a Connection"
        )
    telemetry = Telemetry(
        "activemq",
        _received,
        _write,
        _read,
        tracer_provider=tracer_provider,
        meter_provider=meter_provider,
        propagator=propagator,
    )

    def trace(connection: Connection, kind: type[TracedSession] = TracedSession) -> None:
        connection._session_kind, connection._telemetry = kind, telemetry

    def trace_aio(connection: aio.Connection) -> None:
        trace(connection.blocking, TracedForTasks)
        connection._session_kind = TracedAioSession

    if isinstance(target, Connection):
        trace(target)
    elif isinstance(target, ConnectionFactory):
        target._instrument = trace
    elif isinstance(target, aio.Connection):
        trace_aio(target)
    else:
        target._instrument = trace_aio
    return telemetry


def _write(message: Message, name: str, value: str) -> None:
    message.set_string_property(name.replace("-", DASH), value)


def _read(message: Message, name: str) -> str | None:
    return message.get_string_property(name.replace("-", DASH))


def _of(message: Message) -> Attributes:
    """The attributes of one message."""
    found: Attributes = {}
    if message.message_id is not None:
        found["messaging.message.id"] = message.message_id
    if message.correlation_id is not None:
        found["messaging.message.conversation_id"] = message.correlation_id
    if isinstance(message.body, (str, bytes)):
        found["messaging.message.body.size"] = len(message.body)
    return found


def _subject(
    destination: Destination, messages: Sequence[Message], connection: Any = None, subscription: str = ""
) -> Subject[Message]:
    shared: Attributes = {}
    if destination.is_temporary:
        shared["messaging.destination.temporary"] = True
    if subscription:
        shared["messaging.destination.subscription.name"] = subscription
    address = getattr(getattr(connection, "transport", None), "address", None)
    if address is not None:
        shared["server.address"], shared["server.port"] = address
    client: Attributes = {}
    if connection is not None and connection.client_id:
        client["messaging.client.id"] = connection.client_id
    return Subject(destination.name, shared, client, [(each, _of(each)) for each in messages])


def _received(messages: Sequence[Message]) -> Subject[Message]:
    """Messages that a program has received."""
    named = messages[0].destination if messages else None
    return _subject(destination_of(named or "unknown", "queue"), messages)


class _Tracing(Protocol):
    """A session that is traced."""

    telemetry: Telemetry[Message]
    connection: Any


def _consumed(session: _Tracing, consumer: MessageConsumer, messages: Sequence[Message]) -> Subject[Message]:
    named = messages[0].destination if messages else None
    destination = consumer.destination if named is None else destination_of(named, consumer.destination.kind)
    return _subject(destination, messages, session.connection, consumer._subscription)


class TracedProducer(MessageProducer):
    """A producer whose messages carry the context of their sending."""

    _session: Any

    def send(
        self,
        message: Message | Body | str | bytes,
        destination: Destination | str | None = None,
        *,
        delivery_mode: str | None = None,
        priority: int | None = None,
        time_to_live_ms: int | timedelta | None = None,
        time_to_live: None = None,
    ) -> None:
        """See MessageProducer.send."""
        where = self._where(destination)
        sent = message if isinstance(message, Message) else Message(body=message)
        with self._telemetry.sending(_subject(where, [sent], self._session.connection)) as operation:
            super().send(
                sent,
                destination,
                delivery_mode=delivery_mode,
                priority=priority,
                time_to_live_ms=time_to_live_ms,
                time_to_live=time_to_live,
            )
            if sent.message_id is not None:
                operation.span.set_attribute("messaging.message.id", sent.message_id)

    def send_batch(
        self, messages: Iterable[Message | Body | str | bytes], destination: Destination | str | None = None
    ) -> int:
        """See MessageProducer.send_batch."""
        where = self._where(destination)
        one_by_one = where.kind != "queue" or self._session.transacted
        if one_by_one or isinstance(messages, (str, bytes, Message)) or not isinstance(messages, Iterable):
            return super().send_batch(messages, destination)
        with self._telemetry.sending_batch(_subject(where, [], self._session.connection)) as batch:
            return super().send_batch(self._created(messages, where, batch), destination)

    def _created(
        self, messages: Iterable[Message | Body | str | bytes], where: Destination, batch: Operation[Message]
    ) -> Iterator[Message]:
        for message in messages:
            sent = message if isinstance(message, Message) else Message(body=message)
            self._telemetry.created(batch, _subject(where, [sent], self._session.connection))
            yield sent

    @property
    def _telemetry(self) -> Telemetry[Message]:
        found: Telemetry[Message] = self._session.telemetry
        return found


class TracedConsumer(MessageConsumer):
    """A consumer that reports each receive, and whose listener processes each message in a span."""

    _session: Any

    def receive(self, timeout: float | timedelta | None = None) -> Message | None:
        """See MessageConsumer.receive."""
        began = time_ns()
        return self._reported(began, lambda: super(TracedConsumer, self).receive(timeout))

    def receive_no_wait(self) -> Message | None:
        """See MessageConsumer.receive_no_wait."""
        began = time_ns()
        return self._reported(began, lambda: super(TracedConsumer, self).receive_no_wait())

    def receive_batch(self, size: int, timeout: float | timedelta | None = None) -> list[Message]:
        """See MessageConsumer.receive_batch."""
        began = time_ns()
        return self._reported(began, lambda: super(TracedConsumer, self).receive_batch(size, timeout))

    def _reported(self, began: int, receive: Callable[[], Found]) -> Found:
        session = self._session
        try:
            found = receive()
        except PyengineError as error:
            session.telemetry.received(began, _consumed(session, self, []), error)
            raise
        if found:
            messages: Any = found if isinstance(found, list) else [found]
            session.telemetry.received(began, _consumed(session, self, messages))
        return found

    @property
    def message_listener(self) -> MessageListener | None:
        """See MessageConsumer.message_listener."""
        found = self._state.listener
        return getattr(found, "__wrapped__", found)

    @message_listener.setter
    def message_listener(self, listener: MessageListener | None) -> None:
        self._listen(listener)
        self._session.clock.settle()

    def _called(self, listener: MessageListener) -> MessageListener:
        session = self._session

        @wraps(listener, assigned=(), updated=())
        def process(message: Message) -> object:
            with session.telemetry.processing(_consumed(session, self, [message]), delivers=True):
                return listener(message)

        return process


class TracedSubscriber(TopicSubscriber, TracedConsumer):
    """The same of a durable subscriber."""


class TracedSession(Session):
    """A session whose producers and consumers are traced."""

    connection: Any
    _producer_kind = TracedProducer
    _consumer_kind: ClassVar[type[MessageConsumer]] = TracedConsumer
    _subscriber_kind: ClassVar[type[TopicSubscriber]] = TracedSubscriber

    @property
    def telemetry(self) -> Telemetry[Message]:
        """That of its connection."""
        found: Telemetry[Message] = self.connection._telemetry
        return found


class TracedForTasks(TracedSession):
    """One behind a session of aio, whose consumers report their receives themselves."""

    _consumer_kind = MessageConsumer
    _subscriber_kind = TopicSubscriber


class TracedAioConsumer(aio.MessageConsumer):
    """A consumer of aio that reports each receive."""

    async def receive(self, timeout: float | timedelta | None = None) -> Message | None:
        """See aio.MessageConsumer.receive."""
        began = time_ns()
        found = await super().receive(timeout)
        if found is not None:
            self._record(began, [found])
        return found

    async def receive_batch(self, size: int, timeout: float | timedelta | None = None) -> list[Message]:
        """See aio.MessageConsumer.receive_batch."""
        began = time_ns()
        found = await super().receive_batch(size, timeout)
        if found:
            self._record(began, found)
        return found

    def _record(self, began: int, messages: list[Message]) -> None:
        session: Any = self.blocking._session
        session.telemetry.received(began, _consumed(session, self.blocking, messages))


class TracedAioSession(aio.Session):
    """A session of aio whose producers and consumers are traced."""

    def _consumer(self, blocking: MessageConsumer) -> aio.MessageConsumer:
        return TracedAioConsumer(blocking, over_network=self._over_network)
