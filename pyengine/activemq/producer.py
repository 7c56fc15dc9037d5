"""Message producers."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pyengine._engine.message import Message
from pyengine.destinations import Destination
from pyengine.errors import IllegalStateError, InvalidDestinationError, InvalidMessageError, JMSError

if TYPE_CHECKING:
    from pyengine.activemq.session import Session

PERSISTENT, NON_PERSISTENT = "PERSISTENT", "NON_PERSISTENT"


class MessageProducer:
    """Sends messages; made by Session.create_producer.

    destination: where to, or None: ``send`` says it. delivery_mode: PERSISTENT (default) or NON_PERSISTENT; priority:
    0 to 9 (default 4); time_to_live: seconds, 0 for ever: of messages for which ``send`` says nothing else.
    """

    def __init__(self, session: Session, producer_id: str, destination: Destination | None) -> None:
        options = session.connection.options
        self._session = session
        self._sent = 0
        self._closed = False
        self._persistent = True
        self._priority = 4
        self._time_to_live = 0
        self._copies = options.copy_message_on_send
        self._reports = not options.always_sync_send
        self._reports_all = options.use_async_send
        self.producer_id = producer_id
        self.destination = destination
        self.disable_message_timestamp = options.disable_time_stamps_by_default

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def delivery_mode(self) -> str:
        """PERSISTENT or NON_PERSISTENT. Setting another value raises InvalidMessageError."""
        return PERSISTENT if self._persistent else NON_PERSISTENT

    @delivery_mode.setter
    def delivery_mode(self, mode: str) -> None:
        self._persistent = _persistent(mode)

    @property
    def priority(self) -> int:
        """0 to 9. Setting another value raises InvalidMessageError."""
        return self._priority

    @priority.setter
    def priority(self, priority: int) -> None:
        if not 0 <= priority <= 9:
            raise InvalidMessageError("priority", priority, "not a priority", hint="give a value between 0 and 9")
        self._priority = priority

    @property
    def time_to_live(self) -> float:
        """Seconds, 0 for ever. Setting a negative value raises InvalidMessageError."""
        return self._time_to_live / 1000

    @time_to_live.setter
    def time_to_live(self, seconds: float) -> None:
        self._time_to_live = _milliseconds(seconds)

    def send(
        self,
        message: Message | str | bytes,
        destination: Destination | str | None = None,
        *,
        delivery_mode: str | None = None,
        priority: int | None = None,
        time_to_live: float | None = None,
    ) -> None:
        """Send a message, or a text or bytes as the body of one; its headers are set as JMS says.

        destination: only for a producer without one. Raises IllegalStateError if the producer is closed,
        InvalidDestinationError for a wrong destination; what the broker says about a persistent message outside a
        transaction is raised too, anything else goes to the connection's exception listener (see ConnectionOptions).
        """
        session = self._session
        where = self._where(destination)
        sent = message if isinstance(message, Message) else Message(body=message)
        persistent = self._persistent if delivery_mode is None else _persistent(delivery_mode)
        transaction = session.start_transaction()
        self._sent += 1
        now = session.clock.now()
        life = self._time_to_live if time_to_live is None else _milliseconds(time_to_live)
        sent.persistent = persistent
        sent.priority = self._priority if priority is None else priority
        sent.timestamp = 0 if self.disable_message_timestamp else now
        sent.expiration = now + life if life > 0 and not self.disable_message_timestamp else 0
        sent.redelivery_counter = 0
        sent.message_id = f"{self.producer_id}:{self._sent}"
        if sent is message:
            sent.destination = str(where)
            if self._copies:
                sent = message.copy()
        try:
            session.transport.send(session.connection.connection_id, where, sent, transaction)
        except JMSError as error:
            if not (self._reports and (not persistent or transaction is not None or self._reports_all)):
                raise
            session.connection.report(error)
        session.clock.settle()

    def send_batch(
        self, messages: Iterable[Message | str | bytes], destination: Destination | str | None = None
    ) -> int:
        """Send many messages with the producer's settings, in order; returns how many."""
        before = self._sent
        for message in messages:
            self.send(message, destination)
        return self._sent - before

    def _where(self, destination: Destination | str | None) -> Destination:
        if self._closed or self._session.closed:
            raise IllegalStateError("The producer is closed")
        if destination is None:
            if self.destination is None:
                raise InvalidDestinationError("A destination must be specified")
            return self.destination
        if isinstance(destination, str):
            destination = self._session.create_queue(destination)
        if self.destination is not None and destination != self.destination:
            raise InvalidDestinationError(f"This producer can only send messages to: {self.destination.name}")
        return destination

    def close(self) -> None:
        """Send nothing more. Closing twice is harmless."""
        self._closed = True
        self._session.producer_closed(self)


def _persistent(mode: str) -> bool:
    if mode not in (PERSISTENT, NON_PERSISTENT):
        raise InvalidMessageError("delivery_mode", mode, "no such mode", hint=f"give {PERSISTENT} or {NON_PERSISTENT}")
    return mode == PERSISTENT


def _milliseconds(seconds: float) -> int:
    if seconds < 0:
        raise InvalidMessageError("time_to_live", seconds, "negative", hint="0 is for ever")
    return round(seconds * 1000)
