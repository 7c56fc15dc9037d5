"""What the broker reports as it happens: its advisories, as objects for callbacks (``broker.on(event, callback)``).

They are reported whether or not a policy asks for the advisory message of the same name, except the two that would
come with every message: MessageDelivered and MessageConsumed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from pyengine._engine.message.message import Message
from pyengine.activemq.transport.commands import ConsumerInfo
from pyengine.attributes import frozen
from pyengine.dataclass import dataclass
from pyengine.destinations import Destination
from pyengine.visible import logger

E = TypeVar("E", bound="Event")
LOG = logger("pyengine.activemq")


@frozen
@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at a destination."""

    destination: Destination


@frozen
@dataclass(frozen=True, slots=True)
class ConsumerStarted(Event):
    """A consumer was added."""

    consumer: ConsumerInfo


@frozen
@dataclass(frozen=True, slots=True)
class ConsumerClosed(Event):
    """A consumer was removed."""

    consumer: ConsumerInfo


@frozen
@dataclass(frozen=True, slots=True)
class SlowConsumer(Event):
    """A consumer became slow (spec activemq 3.3, 3.6)."""

    consumer: ConsumerInfo


@frozen
@dataclass(frozen=True, slots=True)
class ConsumerAborted(Event):
    """A slow consumer strategy closes a consumer or, with ``connection``, its whole connection."""

    consumer: ConsumerInfo
    connection: bool


@frozen
@dataclass(frozen=True, slots=True)
class MessageDiscarded(Event):
    """A topic subscription gave a pending message up. count: how many it has given up by now."""

    message: Message
    consumer: ConsumerInfo
    count: int


@frozen
@dataclass(frozen=True, slots=True)
class MessageDelivered(Event):
    """A message was sent to a destination; with advisory_for_delivery only."""

    message: Message


@frozen
@dataclass(frozen=True, slots=True)
class MessageConsumed(Event):
    """A message has left a queue, or a durable subscription acknowledged it; with advisory_for_consumed only."""

    message: Message


@frozen
@dataclass(frozen=True, slots=True)
class MessageExpired(Event):
    """A message was older than its time to live."""

    message: Message


@frozen
@dataclass(frozen=True, slots=True)
class DeadLetter(Event):
    """A message could not be consumed. sent_to: the dead-letter destination, or None: the strategy dropped it.

    cause: what its ``dlqDeliveryFailureCause`` says.
    """

    message: Message
    sent_to: Destination | None
    cause: str


@frozen
@dataclass(frozen=True, slots=True)
class Redelivery(Event):
    """The redelivery plugin sends a poison message again after ``delay`` ms; ``count``: how many times by then."""

    message: Message
    delay: int
    count: int


@frozen
@dataclass(frozen=True, slots=True)
class NoConsumer(Event):
    """A message was sent to a destination without consumers."""

    message: Message


@frozen
@dataclass(frozen=True, slots=True)
class SelectorFailed(Event):
    """A selector could not be evaluated on a message: no match. error: the selector's text, or the error's.

    A queue asks a selector once about each message: when either of them comes.
    """

    message: Message
    consumer: ConsumerInfo
    error: str


def teller(callback: Callable[[E], object]) -> Callable[[E], None]:
    """Calls ``callback`` with an event. An error of it is logged: another caller may have caused the event."""

    def tell(event: E) -> None:
        try:
            callback(event)
        except BaseException as error:
            LOG.exception("a callback failed on %s of %s", type(event).__name__, event.destination)
            if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
                raise  # the user's own

    return tell
