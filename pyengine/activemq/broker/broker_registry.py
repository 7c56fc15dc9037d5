"""The brokers that run in this process, by name (BrokerRegistry)."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from pyengine.errors import IllegalStateError
from pyengine.processes import forget_at_fork

B = TypeVar("B")


class BrokerRegistry(Generic[B]):
    """Running brokers; it keeps none of them alive. In a process that was forked it is empty: the brokers are the
    parent's, and another thread may have held the lock."""

    def __init__(self) -> None:
        self._forget()
        forget_at_fork(self._forget)

    def _forget(self) -> None:
        self._running: WeakValueDictionary[str, B] = WeakValueDictionary()
        self._lock = threading.RLock()  # taken by itself: Ctrl-C within Condition.__enter__ would leave it locked
        self._started = threading.Condition(self._lock)

    def check_free(self, name: str) -> None:
        """Raise IllegalStateError if a broker of that name is running."""
        if name in self._running:
            raise IllegalStateError(f"a broker named {name!r} is running; close it, or give this one another name=")

    def bind(self, name: str, broker: B) -> None:
        """A broker has that name now."""
        self._running[name] = broker

    def announce(self) -> None:
        """A broker has started: wake those that wait for one."""
        with self._lock:
            self._started.notify_all()

    def unbind(self, name: str, broker: B) -> None:
        """That broker has its name no more; harmless if it has not."""
        if self._running.get(name) is broker:
            del self._running[name]

    def lookup(self, name: str, wait: int = 0) -> B | None:
        """The broker of that name, or None if none comes within ``wait`` ms."""
        if wait > 0:
            with self._lock:
                self._started.wait_for(lambda: name in self._running, wait / 1000)
        return self._running.get(name)
