"""The client for asyncio: the same nouns, whose ``receive`` and iteration let the event loop go on.

There are no listeners: ``async for`` takes their place. ``blocking`` is the object behind each of these. With a broker
of this process the rest does not wait, so these classes only forward it; with one of the network what waits for its
answer does so on a thread. Under a ManualClock a ``receive`` with a timeout moves the time, as it does without asyncio.
"""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import Generic, ParamSpec, Self, TypeVar

from pyengine._engine.activemq.client.redelivery_policy import RedeliveryPolicy
from pyengine._engine.activemq.client.session_commands import AcknowledgeMode
from pyengine._engine.message.body import Body
from pyengine._engine.message.message import Message
from pyengine.activemq.client import connection as blocking_connection
from pyengine.activemq.client import connection_factory as blocking_factory
from pyengine.activemq.client import consumer as blocking_consumer
from pyengine.activemq.client import producer as blocking_producer
from pyengine.activemq.client import session as blocking_session
from pyengine.activemq.client.browser import QueueBrowser
from pyengine.activemq.client.consumer import Closing
from pyengine.activemq.options import ConnectionOptions, UnknownOptions
from pyengine.activemq.transport.commands import Transport
from pyengine.attributes import Declared
from pyengine.clock import ManualClock
from pyengine.destinations import Destination
from pyengine.durations import seconds
from pyengine.errors import IllegalStateError

Blocking = TypeVar("Blocking")
Result = TypeVar("Result")
Parameters = ParamSpec("Parameters")


class _Forwarding(Declared, ABC, Generic[Blocking]):
    """The part that all classes share: the blocking object, and ``async with``, which closes it."""

    blocking: Blocking

    def __init__(self, blocking: Blocking, *, over_network: bool = False) -> None:
        self.blocking = blocking
        self._over_network = over_network

    async def _call(
        self, action: Callable[Parameters, Result], *given: Parameters.args, **named: Parameters.kwargs
    ) -> Result:
        """Do what waits for the answer of a broker of the network. A task that is cancelled meanwhile does not learn
        the outcome."""
        if self._over_network:
            return await asyncio.to_thread(action, *given, **named)
        return action(*given, **named)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<aio of {self.blocking!r}>"

    @abstractmethod
    async def close(self) -> None:
        """Leave the broker."""


class MessageConsumer(_Forwarding[blocking_consumer.MessageConsumer]):
    """See pyengine.activemq.MessageConsumer; ``async for`` gives messages until it is closed."""

    @property
    def consumer_id(self) -> str:
        """Its id, unique in the broker."""
        return self.blocking.consumer_id

    @property
    def destination(self) -> Destination:
        """What it consumes."""
        return self.blocking.destination

    @property
    def message_selector(self) -> str | None:
        """See MessageConsumer.message_selector."""
        return self.blocking.message_selector

    @property
    def closed(self) -> bool:
        """True once it has left the broker."""
        return self.blocking.closed

    async def __aiter__(self) -> AsyncIterator[Message]:
        while (message := await self.receive()) is not None:
            yield message

    async def receive(self, timeout: float | timedelta | None = None) -> Message | None:
        """See MessageConsumer.receive. If it is cancelled, a message that comes later waits for the next one.

        Raises IllegalStateError too while another task waits here: a session is for one at a time.
        """
        self._check_alone()
        consumer = self.blocking
        state = consumer._state
        clock = consumer._session.clock
        wait = None if timeout is None else blocking_consumer.milliseconds(timeout)
        if wait is not None and (wait == 0 or isinstance(clock, ManualClock)):
            await asyncio.sleep(0)
            return await self._call(consumer.receive, timeout)
        if state.prefetch and (message := consumer._poll()) is not None:
            return message
        loop = asyncio.get_running_loop()
        arrived = asyncio.Event()

        def available() -> None:
            with suppress(RuntimeError):  # the loop was closed under its task, which waits no more
                loop.call_soon_threadsafe(arrived.set)

        deadline = None if timeout is None else loop.time() + seconds(timeout)
        consumer._session._expect(state, available)
        try:
            consumer._ask(wait)
            while True:
                arrived.clear()
                left = None if deadline is None else deadline - loop.time()
                message = consumer._poll(None if left is None else max(0, math.ceil(left * 1000)))
                if message is not None:
                    return message
                if state.ended or state.closed or (left is not None and left <= 0 and state.prefetch):
                    consumer._session.received_nothing()
                    return None
                try:
                    async with asyncio.timeout(left if state.prefetch else None):
                        await arrived.wait()
                except TimeoutError:
                    continue
        finally:
            consumer._session._expect(state, None)

    def _check_alone(self) -> None:
        if self.blocking._state.available is not None:
            raise IllegalStateError(f"another task is receiving from {self.consumer_id}")

    async def receive_no_wait(self) -> Message | None:
        """See MessageConsumer.receive_no_wait."""
        return await self.receive(0)

    async def receive_batch(self, size: int, timeout: float | timedelta | None = None) -> list[Message]:
        """See MessageConsumer.receive_batch; raises as receive does, and loses nothing if it is cancelled."""
        self._check_alone()
        size = blocking_consumer.batch_size(size)
        if size < 1:
            return []
        await asyncio.sleep(0)
        found = await self._call(self.blocking.receive_batch, size, 0)
        if found:
            return found
        first = await MessageConsumer.receive(self, timeout)
        return [] if first is None else [first, *await self._call(self.blocking.receive_batch, size - 1, 0)]

    async def close(self, how: Closing = Closing.NOW) -> None:
        """See MessageConsumer.close."""
        await self._call(self.blocking.close, how)


class MessageProducer(_Forwarding[blocking_producer.MessageProducer]):
    """See pyengine.activemq.MessageProducer."""

    _elsewhere = blocking_producer.MessageProducer._elsewhere

    @property
    def destination(self) -> Destination | None:
        """Where it sends to; None: ``send`` says it."""
        return self.blocking.destination

    @property
    def delivery_mode(self) -> str:
        """See MessageProducer.delivery_mode."""
        return self.blocking.delivery_mode

    @delivery_mode.setter
    def delivery_mode(self, mode: str) -> None:
        self.blocking.delivery_mode = mode

    @property
    def priority(self) -> int:
        """See MessageProducer.priority."""
        return self.blocking.priority

    @priority.setter
    def priority(self, priority: int) -> None:
        self.blocking.priority = priority

    time_to_live = blocking_producer.MessageProducer.time_to_live

    @property
    def time_to_live_ms(self) -> int:
        """See MessageProducer.time_to_live_ms."""
        return self.blocking.time_to_live_ms

    @time_to_live_ms.setter
    def time_to_live_ms(self, life: int | timedelta) -> None:
        self.blocking.time_to_live_ms = life

    @property
    def disable_message_timestamp(self) -> bool:
        """See MessageProducer.disable_message_timestamp."""
        return self.blocking.disable_message_timestamp

    @disable_message_timestamp.setter
    def disable_message_timestamp(self, disable: bool) -> None:
        self.blocking.disable_message_timestamp = disable

    async def send(
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
        await self._call(
            self.blocking.send,
            message,
            destination,
            delivery_mode=delivery_mode,
            priority=priority,
            time_to_live_ms=time_to_live_ms,
            time_to_live=time_to_live,
        )
        await asyncio.sleep(0)

    async def send_batch(
        self, messages: Iterable[Message | Body | str | bytes], destination: Destination | str | None = None
    ) -> int:
        """See MessageProducer.send_batch."""
        sent = await self._call(self.blocking.send_batch, messages, destination)
        await asyncio.sleep(0)
        return sent

    async def close(self) -> None:
        """See MessageProducer.close."""
        await self._call(self.blocking.close)


class Session(_Forwarding[blocking_session.Session]):
    """See pyengine.activemq.Session."""

    @property
    def session_id(self) -> str:
        """Its id, unique in the broker."""
        return self.blocking.session_id

    @property
    def acknowledge_mode(self) -> AcknowledgeMode:
        """As create_session was given it."""
        return self.blocking.acknowledge_mode

    @property
    def transacted(self) -> bool:
        """Whether it has transactions."""
        return self.blocking.transacted

    @property
    def closed(self) -> bool:
        """True once it was closed."""
        return self.blocking.closed

    def create_queue(self, name: str) -> Destination:
        """See Session.create_queue."""
        return self.blocking.create_queue(name)

    def create_topic(self, name: str) -> Destination:
        """See Session.create_topic."""
        return self.blocking.create_topic(name)

    async def create_temporary_queue(self) -> Destination:
        """See Session.create_temporary_queue."""
        return await self._call(self.blocking.create_temporary_queue)

    async def create_temporary_topic(self) -> Destination:
        """See Session.create_temporary_topic."""
        return await self._call(self.blocking.create_temporary_topic)

    async def delete_temporary(self, destination: Destination) -> None:
        """See Session.delete_temporary."""
        await self._call(self.blocking.delete_temporary, destination)

    async def create_consumer(
        self, destination: Destination | str, selector: str | None = None, no_local: bool = False
    ) -> MessageConsumer:
        """See Session.create_consumer."""
        consumer = await self._call(self.blocking.create_consumer, destination, selector, no_local)
        return self._consumer(consumer)

    async def create_durable_subscriber(
        self, topic: Destination | str, name: str, selector: str | None = None, no_local: bool = False
    ) -> MessageConsumer:
        """See Session.create_durable_subscriber."""
        subscriber = await self._call(self.blocking.create_durable_subscriber, topic, name, selector, no_local)
        return self._consumer(subscriber)

    def _consumer(self, blocking: blocking_consumer.MessageConsumer) -> MessageConsumer:
        return MessageConsumer(blocking, over_network=self._over_network)

    async def create_producer(self, destination: Destination | str | None = None) -> MessageProducer:
        """See Session.create_producer."""
        producer = await self._call(self.blocking.create_producer, destination)
        return MessageProducer(producer, over_network=self._over_network)

    def create_browser(self, queue: Destination | str, selector: str | None = None) -> QueueBrowser:
        """See Session.create_browser; a browse does not wait."""
        return self.blocking.create_browser(queue, selector)

    async def unsubscribe(self, name: str) -> None:
        """See Session.unsubscribe."""
        await self._call(self.blocking.unsubscribe, name)

    async def acknowledge(self) -> None:
        """See Session.acknowledge."""
        await self._call(self.blocking.acknowledge)

    async def commit(self) -> None:
        """See Session.commit."""
        await self._call(self.blocking.commit)

    async def rollback(self) -> None:
        """See Session.rollback."""
        await self._call(self.blocking.rollback)

    async def recover(self) -> None:
        """See Session.recover."""
        await self._call(self.blocking.recover)

    async def close(self) -> None:
        """See Session.close."""
        await self._call(self.blocking.close)


class Connection(_Forwarding[blocking_connection.Connection]):
    """See pyengine.activemq.Connection."""

    _session_kind: type[Session] = Session

    async def __aenter__(self) -> Self:
        await self._call(self.blocking.start)
        return self

    @property
    def connection_id(self) -> str:
        """Its id, unique in the broker."""
        return self.blocking.connection_id

    @property
    def client_id(self) -> str:
        """The client id, empty if none was set."""
        return self.blocking.client_id

    @property
    def started(self) -> bool:
        """See Connection.started."""
        return self.blocking.started

    @property
    def closed(self) -> bool:
        """True once it was closed or lost."""
        return self.blocking.closed

    @property
    def exception_listener(self) -> Callable[[Exception], object] | None:
        """See Connection.exception_listener; it is called on the thread that found the error."""
        return self.blocking.exception_listener

    @exception_listener.setter
    def exception_listener(self, listener: Callable[[Exception], object] | None) -> None:
        self.blocking.exception_listener = listener

    def add_transport_listener(
        self, *, interrupted: Callable[[], object] | None = None, resumed: Callable[[], object] | None = None
    ) -> Callable[[], None]:
        """See Connection.add_transport_listener; they are called on threads of the transport, not on the event loop."""
        return self.blocking.add_transport_listener(interrupted=interrupted, resumed=resumed)

    async def create_session(self, acknowledge_mode: AcknowledgeMode = AcknowledgeMode.AUTO_ACKNOWLEDGE) -> Session:
        """See Connection.create_session."""
        session = await self._call(self.blocking.create_session, acknowledge_mode)
        return self._session_kind(session, over_network=self._over_network)

    async def start(self) -> None:
        """See Connection.start."""
        await self._call(self.blocking.start)

    async def stop(self) -> None:
        """See Connection.stop."""
        await self._call(self.blocking.stop)

    async def close(self, how: Closing = Closing.NOW) -> None:
        """See Connection.close."""
        await self._call(self.blocking.close, how)


class ConnectionFactory(Declared):
    """See pyengine.activemq.ConnectionFactory; ``async with`` its connections."""

    blocking: blocking_factory.ConnectionFactory
    _elsewhere = blocking_factory.ConnectionFactory._elsewhere

    def __init__(
        self,
        url: str = "vm://localhost",
        *,
        broker: Transport | None = None,
        options: ConnectionOptions | None = None,
        redelivery_policies: Mapping[str | Destination, RedeliveryPolicy] | None = None,
        unknown_options: UnknownOptions = UnknownOptions.REFUSE,
        user_name: str | None = None,
        password: str | None = None,
    ) -> None:
        self.blocking = blocking_factory.ConnectionFactory(
            url,
            broker=broker,
            options=options,
            redelivery_policies=redelivery_policies,
            unknown_options=unknown_options,
            user_name=user_name,
            password=password,
        )
        self._instrument: Callable[[Connection], None] | None = None  # what is done to each connection; see telemetry

    @property
    def options(self) -> ConnectionOptions:
        """See ConnectionFactory.options."""
        return self.blocking.options

    @options.setter
    def options(self, options: ConnectionOptions) -> None:
        self.blocking.options = options

    def create_connection(self, client_id: str | None = None) -> Connection:
        """See ConnectionFactory.create_connection. Connecting over the network holds up the event loop; ``await
        asyncio.to_thread(factory.create_connection)`` does not."""
        connection = Connection(self.blocking.create_connection(client_id), over_network=self.blocking.over_network)
        if self._instrument is not None:
            self._instrument(connection)
        return connection
