"""Message producers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import islice
from types import TracebackType
from typing import ClassVar, Protocol, Self

from pyengine._engine.message.body import Body, MapBody
from pyengine._engine.message.message import Message
from pyengine.activemq._runtime.sender import SECONDS, Sender
from pyengine.activemq.transport.commands import Transport
from pyengine.attributes import Declared, Renamed, letters
from pyengine.clock import Clock
from pyengine.destinations import Destination
from pyengine.errors import IllegalStateError, InvalidDestinationError, InvalidMessageError, JMSError

BATCH = 1000
PERSISTENT, NON_PERSISTENT = "PERSISTENT", "NON_PERSISTENT"


class ProducedIn(Protocol):
    """The session of a producer."""

    @property
    def transacted(self) -> bool:
        """Whether it has transactions."""

    @property
    def transport(self) -> Transport:
        """The broker."""

    @property
    def clock(self) -> Clock:
        """What time it is."""

    @property
    def connection(self) -> Reporting:
        """Its connection."""

    def create_queue(self, name: str) -> Destination:
        """A queue by its name."""

    def producer_closed(self, producer: MessageProducer) -> None:
        """A producer was closed."""


class Reporting(Protocol):
    """The connection of a producer."""

    connection_id: str

    def report(self, error: Exception) -> None:
        """Tell of an error that no call can raise."""


class MessageProducer(Declared, Sender):
    """Sends messages; made by Session.create_producer. Use it as a context manager, or close it.

    destination: where to, or None: ``send`` says it.
    """

    _session: ProducedIn
    _elsewhere: ClassVar[Mapping[str, str]] = {
        letters("delivery_delay"): "no message is delayed here, as setDeliveryDelay of the real client throws "
        "UnsupportedOperationException; send it later",
        letters("disable_message_id"): "every message has an id, as in the real client",
    }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def delivery_mode(self) -> str:
        """PERSISTENT (default) or NON_PERSISTENT. Setting another value raises InvalidMessageError."""
        return PERSISTENT if self._outgoing.persistent else NON_PERSISTENT

    @delivery_mode.setter
    def delivery_mode(self, mode: str) -> None:
        self._outgoing.set_delivery_mode(mode)

    @property
    def priority(self) -> int:
        """0 to 9, by default 4. Setting another value raises InvalidMessageError."""
        return self._outgoing.priority

    @priority.setter
    def priority(self, priority: int) -> None:
        self._outgoing.set_priority(priority)

    time_to_live = Renamed("time_to_live_ms", SECONDS)

    @property
    def time_to_live_ms(self) -> int:
        """Milliseconds, or a timedelta; 0 (default) for ever. Setting a negative one raises InvalidMessageError."""
        return self._outgoing.time_to_live

    @time_to_live_ms.setter
    def time_to_live_ms(self, life: int | timedelta) -> None:
        self._outgoing.set_time_to_live(life)

    @property
    def disable_message_timestamp(self) -> bool:
        """True: messages carry no time; they expire all the same. By default as ``jms.disableTimeStampsByDefault``.

        With a broker of release 5.17 they keep the time they had, and do not expire.
        """
        return not self._outgoing.timestamps

    @disable_message_timestamp.setter
    def disable_message_timestamp(self, disable: bool) -> None:
        self._outgoing.timestamps = not disable

    def send_batch(
        self, messages: Iterable[Message | Body | str | bytes], destination: Destination | str | None = None
    ) -> int:
        """Send many messages with the producer's settings, in order; returns how many.

        To a queue, outside a transaction, the broker takes up to 1000 of them at once, which is what makes it faster
        than single sends: the broker dispatches when it has them all. Raises as ``send``; what came
        before the message that is wrong is sent.
        """
        if isinstance(messages, (str, bytes, Mapping, Message)) or not isinstance(messages, Iterable):
            raise InvalidMessageError("messages", messages, "not a list of messages", hint="send() sends one")
        before, session = self._outgoing.sent, self._session
        where = self._where(destination)
        if where.kind != "queue" or session.transacted:
            for message in messages:
                self.send(message, destination)
            return self._outgoing.sent - before
        text = str(where)
        left: Iterator[Message | Body | str | bytes] = iter(messages)
        if self._flat:
            left = map(self._refuse_nested, left)
        while True:
            prepared: list[Message] = []
            try:
                self._outgoing.prepare_all(islice(left, BATCH), text, session.clock.now(), prepared)
            finally:
                if prepared:
                    self._look_for_schedules(prepared)
                    self._send_all(where, prepared)
            if len(prepared) < BATCH:
                return self._outgoing.sent - before

    def _send_all(self, where: Destination, messages: list[Message]) -> None:
        session = self._session
        try:
            session.transport.send_all(session.connection.connection_id, where, messages)
        except JMSError as error:
            if not (self._reports and (not self._outgoing.persistent or self._reports_all)):
                raise
            session.connection.report(error)
        session.clock.settle()

    def _where(self, destination: Destination | str | None) -> Destination:
        if self._closed:
            raise IllegalStateError("The producer is closed")
        if destination is None:
            if self.destination is None:
                raise InvalidDestinationError("A destination must be specified")
            destination = self.destination
        elif not isinstance(destination, Destination):
            destination = self._session.create_queue(destination)
        if self.destination is not None and destination != self.destination:
            raise InvalidDestinationError(f"This producer can only send messages to: {self.destination.name}")
        if destination.is_temporary and not self._session.transport.has_destination(destination):
            raise InvalidDestinationError(f"Cannot publish to a deleted Destination: {destination}")
        return destination

    def _refuse_nested(self, message: Message | Body | str | bytes) -> Message | Body | str | bytes:
        """nestedMapAndListEnabled=false: a map or list as a property, or in a map, raises InvalidMessageError."""
        if isinstance(message, Message):
            for name, value in message.properties().items():
                if isinstance(value, (dict, list)):
                    raise InvalidMessageError(name, value, "no map or list, with nestedMapAndListEnabled=false")
        body = message.body if isinstance(message, Message) else message
        if isinstance(body, MapBody):
            for name, kind in body.entry_types().items():
                if kind in ("list", "map"):
                    raise InvalidMessageError(name, body[name], "no map or list, with nestedMapAndListEnabled=false")
        return message

    def close(self) -> None:
        """Send nothing more. Closing twice is harmless."""
        self._closed = True
        self._session.producer_closed(self)
