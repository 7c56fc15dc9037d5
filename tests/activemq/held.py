"""What another thread is inside of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread
from typing import Any


@contextmanager
def held(lock: AbstractContextManager[Any]) -> Iterator[None]:
    """Another thread is in the ``with`` block of ``lock`` meanwhile."""
    taken, over = Event(), Event()

    def hold() -> None:
        with lock:
            taken.set()
            assert over.wait(30)

    other = Thread(target=hold)
    other.start()
    assert taken.wait(30)
    try:
        yield
    finally:
        over.set()
        other.join()
