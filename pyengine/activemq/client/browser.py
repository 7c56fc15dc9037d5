"""Queue browsers: look at messages without taking them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Protocol, Self

from pyengine._engine.activemq.client.session_state import SessionState
from pyengine._engine.message.message import Message
from pyengine.activemq.client.consumer import MessageConsumer
from pyengine.attributes import Declared
from pyengine.destinations import Destination
from pyengine.errors import IllegalStateError
from pyengine.processes import belong


class BrowsedFrom(Protocol):
    """The session of a browser."""

    @property
    def state(self) -> SessionState:
        """What the core knows of it."""

    @property
    def transacted(self) -> bool:
        """Whether it has transactions."""

    def commit(self) -> None:
        """End the open one."""


class QueueBrowser(Declared):
    """A look at a queue; made by Session.create_browser. Each iteration is a new look, from the first message on.

    It shows what is paged in, at most maxBrowsePageSize, messages in flight too (spec activemq 2.10).
    """

    queue: Destination
    message_selector: str | None

    def __init__(
        self,
        session: BrowsedFrom,
        queue: Destination,
        selector: str | None,
        open_consumer: Callable[[], MessageConsumer],
    ) -> None:
        self._session = session
        self._open = open_consumer
        self._consumer: MessageConsumer | None = None
        self._closed = False
        self.queue = queue
        self.message_selector = selector
        belong(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Message]:
        """The messages, until all that match were shown; none while the connection is stopped. Raises IllegalStateError
        if the browser is closed."""
        if self._closed:
            raise IllegalStateError("The browser is closed")
        self._end()
        self._consumer = consumer = self._open()
        try:
            while (
                self._consumer is consumer
                and self._session.state.started
                and (message := consumer.receive()) is not None
            ):
                yield message
        finally:
            if self._consumer is consumer:
                self._end()

    def close(self) -> None:
        """End a look that is under way. Closing twice is harmless."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            if self._session.transacted and self._session.state.transaction is not None:
                self._session.commit()
            consumer.close()
