"""Which sockets have something to read, or take something: epoll where there is one, else what ``selectors`` finds."""

from __future__ import annotations

import select
import selectors
import socket
from collections.abc import Callable
from typing import Protocol

from pyengine.activemq._runtime.connector_round import ClientSocket

Ready = ClientSocket | Callable[[], object]


class Readiness(Protocol):
    """Sockets, the events of ``selectors`` that each is waited for, and what stands for it in ``poll``'s answer."""

    def register(self, waited_for: socket.socket, events: int, target: Ready) -> None:
        """Wait for a socket."""

    def modify(self, waited_for: socket.socket, events: int, target: Ready) -> None:
        """Wait for other events."""

    def unregister(self, waited_for: socket.socket) -> None:
        """Wait for it no longer."""

    def poll(self, timeout: float | None) -> list[Ready]:
        """The targets of sockets that are ready, at the latest after so many seconds; None: whenever one is."""

    def close(self) -> None:
        """Wait for none."""


class Epoll:
    """Readiness by ``select.epoll`` itself: a selector makes a key for each event, at every message."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._targets: dict[int, Ready] = {}

    def register(self, waited_for: socket.socket, events: int, target: Ready) -> None:
        """See Readiness."""
        number = waited_for.fileno()
        self._epoll.register(number, _flags(events))
        self._targets[number] = target

    def modify(self, waited_for: socket.socket, events: int, target: Ready) -> None:
        """See Readiness."""
        self._epoll.modify(waited_for.fileno(), _flags(events))

    def unregister(self, waited_for: socket.socket) -> None:
        """See Readiness."""
        number = waited_for.fileno()
        del self._targets[number]
        self._epoll.unregister(number)

    def poll(self, timeout: float | None) -> list[Ready]:
        """See Readiness."""
        targets = self._targets
        return [targets[number] for number, _ in self._epoll.poll(timeout, len(targets) or 1)]

    def close(self) -> None:
        """See Readiness."""
        self._epoll.close()
        self._targets.clear()


def _flags(events: int) -> int:
    return (select.EPOLLIN if events & selectors.EVENT_READ else 0) | (
        select.EPOLLOUT if events & selectors.EVENT_WRITE else 0
    )


class Selected:
    """Readiness by the best selector of the system."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def register(self, waited_for: socket.socket, events: int, target: Ready) -> None:
        """See Readiness."""
        self._selector.register(waited_for, events, target)

    def modify(self, waited_for: socket.socket, events: int, target: Ready) -> None:
        """See Readiness."""
        self._selector.modify(waited_for, events, target)

    def unregister(self, waited_for: socket.socket) -> None:
        """See Readiness."""
        self._selector.unregister(waited_for)

    def close(self) -> None:
        """See Readiness."""
        self._selector.close()

    def poll(self, timeout: float | None) -> list[Ready]:
        """See Readiness."""
        return [key.data for key, _ in self._selector.select(timeout)]


def readiness() -> Readiness:
    """The one for this system."""
    return Epoll() if hasattr(select, "epoll") else Selected()
