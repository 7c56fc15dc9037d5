"""What the parts of a broker share, made before any of them, and what the lower ones see of the router above them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from pyengine._engine.message.message import Message
from pyengine.activemq._runtime.outbox import Outbox
from pyengine.activemq.broker.events import Event
from pyengine.clock import Clock, Timer
from pyengine.dataclass import dataclass
from pyengine.destinations import Destination
from pyengine.topology.policy import Policy, PolicyMap

if TYPE_CHECKING:
    from pyengine.activemq.store.store import SqliteStore


class Expiring(Protocol):
    """A queue whose expired messages leave at a periodic look."""

    def expire_messages(self) -> None:
        """Make the look."""


class Looks:
    """The periodic looks for expired messages: one timer for all that are due at one time. call_at: see
    BrokerServices."""

    def __init__(self, call_at: Callable[[int, Callable[[], Any]], Timer]) -> None:
        self._call_at = call_at
        self._due: dict[int, dict[Expiring, None]] = {}

    def plan(self, when: int, destination: Expiring) -> None:
        """Look at a destination when the clock reaches ``when``, ms; those due together in the order given."""
        due = self._due.get(when)
        if due is None:
            self._call_at(when, partial(self._look, when))
            due = self._due[when] = {}
        due[destination] = None

    def cancel(self, when: int, destination: Expiring) -> None:
        """Do not look at it; harmless if that look is over."""
        due = self._due.get(when)
        if due is not None:
            due.pop(destination, None)

    def _look(self, when: int) -> None:
        due = self._due[when]
        try:
            while due:
                destination = next(iter(due))
                del due[destination]
                destination.expire_messages()
        finally:
            del self._due[when]
            for destination in due:  # one that fails does not take the others along
                self.plan(when, destination)


@dataclass(frozen=True, slots=True, eq=False)
class BrokerServices:
    """What every part of a broker uses.

    name, release, cursor_limit, policies: the broker's settings. outbox: each change of the broker runs inside it.
    store: None for a broker in memory. report: tells callbacks of an event, and sends its advisory message. call_at:
    runs an action as a change of the broker when the clock reaches a time, unless the broker is closed by then. looks:
    for expired messages of queues.
    """

    name: str
    clock: Clock
    outbox: Outbox
    store: SqliteStore | None
    cursor_limit: int
    release: str
    policies: PolicyMap
    report: Callable[[Event], None]
    call_at: Callable[[int, Callable[[], Any]], Timer]
    looks: Looks = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "looks", Looks(self.call_at))


class Known(Protocol):
    """A destination that the broker has. dlq: it was given a dead letter."""

    dlq: bool

    @property
    def policy(self) -> Policy | None:
        """The entry that applies to it."""


class Routes(Protocol):
    """The router (router.Router), for parts whose messages and consumers it leads."""

    @property
    def destinations(self) -> Mapping[Destination, Known]:
        """Those that exist, in the order in which they were made."""

    def find(self, destination: Destination) -> Known:
        """One of them, made if it is not there."""

    def candidates(self, patterns: tuple[Destination, ...]) -> Iterable[tuple[Destination, Known]]:
        """Those that a consumer of these may meet."""

    def route(self, destination: Destination, message: Message, now: int) -> None:
        """Send a message of the broker itself."""

    def resend(self, message: Message, destination: Destination) -> None:
        """Send a message that comes from another destination."""
