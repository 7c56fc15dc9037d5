"""What passes between a client and the broker: OpenWire's commands, as objects in one process.

A client calls the broker with the commands below; the broker answers through the connection's ``dispatch``. Names and
fields are those of org.apache.activemq.command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Protocol, runtime_checkable

from pyengine._engine.activemq.commands.info import ConnectionInfo as ConnectionInfo
from pyengine._engine.activemq.commands.info import ConsumerControl as ConsumerControl
from pyengine._engine.activemq.commands.info import ConsumerInfo as ConsumerInfo
from pyengine._engine.activemq.commands.info import DestinationInfo as DestinationInfo
from pyengine._engine.activemq.commands.info import MessagePull as MessagePull
from pyengine._engine.activemq.commands.info import ProducerInfo as ProducerInfo
from pyengine._engine.activemq.commands.info import RemoveInfo as RemoveInfo
from pyengine._engine.activemq.commands.info import RemoveSubscriptionInfo as RemoveSubscriptionInfo
from pyengine._engine.activemq.commands.message_ack import MessageAck as MessageAck
from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch as MessageDispatch
from pyengine._engine.message.message import Message
from pyengine.activemq._runtime.route import Answer as Answer
from pyengine.clock import Clock
from pyengine.dataclass import dataclass
from pyengine.destinations import Destination


@dataclass(slots=True)
class ConnectionSink:
    """How the broker reaches a connection: called in the broker's order, never while the broker is being changed.

    dispatch: a message; returns the Answer that comes of it at once, None if nothing does or it is said otherwise.
    control: close a consumer. failed: the broker ends the connection (abort_connection), with the reason. dispatch_all:
    several messages, in order; by default one after the other. queued: dispatch only keeps the message and answers
    nothing: it is called on the sender's thread, without a dispatch task. interrupted, resumed: the connection to the
    broker broke, and it is there again (failover); called on the thread that notices.
    """

    dispatch: Callable[[MessageDispatch], Answer | None]
    control: Callable[[ConsumerControl], None] = field(default=lambda command: None)
    failed: Callable[[str], None] = field(default=lambda reason: None)
    dispatch_all: Callable[[list[MessageDispatch]], None] | None = None
    queued: bool = False
    interrupted: Callable[[], None] = field(default=lambda: None)
    resumed: Callable[[], None] = field(default=lambda: None)


@runtime_checkable
class Transport(Protocol):
    """The broker as a client sees it. Every call is safe from any thread and returns when the broker has acted on it.

    message ids: the producer sets ``message.message_id`` before sending; it is what acknowledgements name.
    """

    @property
    def clock(self) -> Clock:
        """The clock that both sides live by."""

    @property
    def release(self) -> str:
        """Which release's answers count: "newest" or "5.17"."""

    def add_connection(self, info: ConnectionInfo, sink: ConnectionSink) -> None:
        """Raises InvalidClientIDError if another connection uses the client id."""

    def remove_connection(self, connection_id: str, *, last_delivered: str | None = None, lost: bool = False) -> None:
        """Remove what is left of its consumers and temporary destinations; roll its transactions back.

        last_delivered: id of the last message that any of its consumers gave to its user, None if none. lost: the
        connection broke, it is unknown what was delivered (spec activemq 2.7).
        """

    def add_consumer(self, info: ConsumerInfo) -> int:
        """Returns the prefetch that counts: over vm:// client and broker share the ConsumerInfo, so that the client too
        goes on with what a policy made of it.

        Raises InvalidSelectorError, InvalidDestinationError, and JMSError if the broker refuses.
        """

    def remove_consumer(self, consumer_id: str, *, last_delivered: str | None = None, lost: bool = False) -> None:
        """last_delivered: id of the last message the client gave to its user, None if none. lost: see above."""

    def remove_consumers(self, consumer_ids: Iterable[str], *, last_delivered: str | None = None) -> None:
        """The consumers of a session that ends. last_delivered: of all of them."""

    def remove_subscription(self, client_id: str, name: str) -> None:
        """Forget a durable subscription. Raises InvalidDestinationError if it does not exist, JMSError if in use."""

    def add_destination(self, connection_id: str, destination: Destination) -> None:
        """Make a destination; a temporary one belongs to the connection and ends with it."""

    def has_destination(self, destination: Destination) -> bool:
        """Whether there is a destination of that name."""

    def remove_destination(self, connection_id: str, destination: Destination) -> None:
        """Remove a destination with its messages. Raises JMSError while it has consumers."""

    def add_producer(self, connection_id: str, producer_id: str, destination: Destination | None = None) -> None:
        """A producer is there, of that destination if it has one, which is made. Raises InvalidDestinationError for a
        temporary one that does not exist."""

    def remove_producer(self, producer_id: str) -> None:
        """It is there no more."""

    def send(
        self,
        connection_id: str,
        destination: Destination,
        message: Message,
        transaction_id: str | None = None,
        now: int | None = None,
    ) -> None:
        """The broker keeps ``message`` as it is: the client hands over a copy. now: the clock's time, if the client has
        just looked at it."""

    def send_all(self, connection_id: str, destination: Destination, messages: list[Message]) -> None:
        """``send`` for one message after the other, as one change of the broker, outside a transaction."""

    def acknowledge(self, ack: MessageAck, failed: Callable[[Exception], object] | None = None) -> None:
        """Raises JMSError if the ack does not fit what was dispatched.

        failed: called with that error instead. Then the caller does not wait: a broker that another thread is changing
        makes this change after that one, and one whose store is being written has it written next.
        """

    def pull(self, pull: MessagePull) -> None:
        """The answer comes through ``dispatch``."""

    def begin(self, connection_id: str, transaction_id: str) -> None:
        """Start a local transaction."""

    def commit(self, transaction_id: str) -> None:
        """Apply its sends and acknowledgements."""

    def rollback(self, transaction_id: str) -> None:
        """Drop its sends and acknowledgements; what was dispatched stays with the consumers."""
