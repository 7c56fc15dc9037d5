"""What a client tells a broker of itself and its consumers, and asks of it, besides messages and acknowledgements.

Names and fields are those of org.apache.activemq.command.
"""

from __future__ import annotations

from dataclasses import field

from pyengine._engine.activemq.commands.destination import Destination
from pyengine.attributes import frozen
from pyengine.dataclass import dataclass


@frozen
@dataclass(frozen=True, slots=True)
class ConnectionInfo:
    """A connection. connection_id: unique in the broker (``ID:...``). client_id: empty if the user set none.

    user_name, password: what a client of the network gave, None: nothing. client_ip: as it says itself. groups: of
    its user, for authorization; None: a program in the broker's own process, which may do everything.
    """

    connection_id: str
    client_id: str = ""
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)
    client_ip: str | None = None
    groups: tuple[str, ...] | None = None


@frozen
@dataclass(frozen=True, slots=True)
class ConsumerInfo:
    """A subscription as the client asks for it.

    consumer_id: ``<connection>:<session>:<number>``, unique in the broker. session_id: its session. prefetch_size as
    the client decided it (policy entries may replace a default, spec activemq 2.4). subscription_name: of a durable
    subscription, else empty. maximum_pending_message_limit: 0 = not set. dispatch_async: hand deliveries to the
    connection's dispatch task instead of delivering on the sender's thread. network_subscription: of a bridge, which
    slow consumer strategies may spare.
    """

    consumer_id: str
    session_id: str
    connection_id: str
    destination: Destination
    prefetch_size: int
    selector: str | None = None
    subscription_name: str = ""
    priority: int = 0
    exclusive: bool = False
    retroactive: bool = False
    no_local: bool = False
    browser: bool = False
    dispatch_async: bool = True
    maximum_pending_message_limit: int = 0
    network_subscription: bool = False


@frozen
@dataclass(frozen=True, slots=True)
class MessagePull:
    """A consumer with prefetch 0 asks for one message. timeout: ms; 0 = wait for ever, -1 = answer at once."""

    consumer_id: str
    destination: Destination
    timeout: int = 0


@frozen
@dataclass(frozen=True, slots=True)
class ConsumerControl:
    """The broker tells a client that one of its consumers must be closed (abort of a slow consumer)."""

    consumer_id: str
    close: bool = True


@frozen
@dataclass(frozen=True, slots=True)
class ProducerInfo:
    """A producer. producer_id: ``<connection>:<session>:<number>``. destination: None: it sends to any."""

    producer_id: str
    connection_id: str
    destination: Destination | None = None


@frozen
@dataclass(frozen=True, slots=True)
class DestinationInfo:
    """A destination was made, or removed. connection_id: of the client that did so, empty if it is not known."""

    destination: Destination
    removed: bool = False
    connection_id: str = ""


@frozen
@dataclass(frozen=True, slots=True)
class RemoveInfo:
    """A connection, consumer or producer has left. kind: "connection", "consumer" or "producer"; object_id: its id."""

    kind: str
    object_id: str


@frozen
@dataclass(frozen=True, slots=True)
class RemoveSubscriptionInfo:
    """A durable subscription was deleted. connection_id: of the client that did so."""

    connection_id: str
    client_id: str
    subscription_name: str
