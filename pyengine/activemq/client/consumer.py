"""Message consumers: receiving, listening, closing."""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from enum import Enum
from functools import partial
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from types import FunctionType, MethodType, TracebackType
from typing import Protocol, Self, TypeAlias

from pyengine._engine.activemq.client.message_consumer import Consumption
from pyengine._engine.activemq.client.session_commands import AcknowledgeMode
from pyengine._engine.activemq.client.session_state import SessionState
from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine._engine.message.message import Message
from pyengine.activemq._runtime.reentrant_lock import ReentrantLock
from pyengine.activemq.transport.commands import MessagePull, Transport
from pyengine.attributes import Declared
from pyengine.clock import Clock
from pyengine.destinations import Destination
from pyengine.durations import seconds
from pyengine.errors import ConfigurationError
from pyengine.processes import belong
from pyengine.topology.checked import check
from pyengine.whole_numbers import is_whole_number

MessageListener: TypeAlias = Callable[[Message], object]


MOST = 2**31 - 1


class ConsumedIn(Protocol):
    """The session of a consumer."""

    waiting: int

    @property
    def acknowledge_mode(self) -> AcknowledgeMode:
        """How its messages are acknowledged."""

    @property
    def state(self) -> SessionState:
        """What the core knows of it; guarded by the lock."""

    @property
    def lock(self) -> ReentrantLock:
        """Held while its state is looked at or changed."""

    @property
    def changed(self) -> threading.Condition:
        """Of the lock: a message may be there."""

    @property
    def transport(self) -> Transport:
        """The broker."""

    @property
    def clock(self) -> Clock:
        """What time it is."""

    @property
    def listening_thread(self) -> int | None:
        """The ident of the thread that is in one of its listeners now; None: none is."""

    def take(self, consumer: Consumption) -> MessageDispatch | None:
        """The next message of a consumer if one is here, once what comes of that is carried out."""

    def flush(self, pull_timeout: int | None = None) -> None:
        """Carry out the commands that wait."""

    def received_nothing(self) -> None:
        """A receive ends without a message."""

    def acknowledge(self) -> None:
        """Acknowledge everything that was delivered in it."""

    def start(self) -> None:
        """Deliver messages."""

    def close_consumer(self, consumer: MessageConsumer, how: Closing) -> None:
        """Let a consumer leave."""

    def _expect(self, state: Consumption, available: Callable[[], None] | None) -> None:
        """A task waits for a consumer's messages; see aio."""


class Closing(Enum):
    """What happens to messages that a consumer was given and its user has not got.

    NOW: they go back to the broker. DRAIN: listeners still get what has arrived, then the rest goes back; a listener of
    the session cannot ask for that (IllegalStateError). LOST: as if the process had died: nothing is acknowledged, and
    the broker does not learn what the user got.
    """

    NOW = "now"
    DRAIN = "drain"
    LOST = "lost"


LONGEST_QUICK = 86400.0  # seconds of a timeout that any platform can wait


def milliseconds(timeout: float | timedelta) -> int:
    """How long a receive waits. Raises ConfigurationError for another type, and for longer than a thread can wait."""
    try:
        timeout = seconds(timeout)
        if timeout <= threading.TIMEOUT_MAX:
            return math.ceil(timeout * 1000) if timeout > 0 else 0
    except TypeError:
        pass
    raise ConfigurationError("timeout", repr(timeout), "not a number of seconds or a timedelta", "None waits for ever")


def batch_size(size: int) -> int:
    """How many messages a batch may have at most. Raises ConfigurationError for another type."""
    if not is_whole_number(size):
        raise ConfigurationError("size", repr(size), "not a whole number")
    return min(operator.index(size), MOST)


def _check_listener(listener: object) -> None:
    if listener is not None and not callable(listener):
        raise TypeError(f"a listener is a function of a message, or None; not {listener!r}")
    if listener is not None and _runs_later(listener):
        raise TypeError(
            f"a listener is a plain function: calling {listener!r} would run nothing of it and acknowledge the "
            "message; with coroutines use pyengine.activemq.aio and 'async for'"
        )


def _runs_later(listener: object) -> bool:
    """Whether a call makes a coroutine or a generator only. A Mock is asked by its own type, not the one it plays."""
    while type(listener) is partial:
        listener = listener.func
    called = listener if type(listener) in (FunctionType, MethodType) else type(listener).__call__
    return iscoroutinefunction(called) or isasyncgenfunction(called) or isgeneratorfunction(called)


class MessageConsumer(Declared):
    """A consumer of one destination; made by Session.create_consumer. Use it as a context manager, or close it."""

    def __init__(self, session: ConsumedIn, state: Consumption, selector: str | None, subscription: str = "") -> None:
        self._session = session
        self._state = state
        self._selector = selector
        self._subscription = subscription  # of a durable subscriber
        self._individual = session.acknowledge_mode is AcknowledgeMode.INDIVIDUAL_ACKNOWLEDGE
        self._client = session.acknowledge_mode is AcknowledgeMode.CLIENT_ACKNOWLEDGE
        belong(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._state.closed else "started" if self._state.started else "stopped"
        return f"<MessageConsumer {self._state.consumer_id} of {self._state.destination}: {state}>"

    @property
    def consumer_id(self) -> str:
        """Its id, unique in the broker."""
        return self._state.consumer_id

    @property
    def destination(self) -> Destination:
        """What it consumes."""
        found: Destination = self._state.destination
        return found

    @property
    def message_selector(self) -> str | None:
        """The selector that counts: the argument's, else the option's."""
        return self._selector

    @property
    def closed(self) -> bool:
        """True once it has left the broker."""
        return self._state.closed

    @property
    def listening_thread(self) -> int | None:
        """The ident of the thread that is in a listener of its session now (one at a time); None: none is."""
        return self._session.listening_thread

    # Receiving

    def receive(self, timeout: float | timedelta | None = None) -> Message | None:
        """The next message; None when ``timeout`` (seconds or a timedelta; None: wait for ever) is over or the consumer
        is closed.

        A timeout of 0 or less does not wait, as ``receive_no_wait``. Raises IllegalStateError if the consumer is closed
        or a listener is set in its session, ConfigurationError for a timeout that is none.
        """
        if timeout is None:
            return self._take(None)
        if type(timeout) is float and 0.0 < timeout < LONGEST_QUICK:
            return self._take(math.ceil(timeout * 1000))
        return self._take(milliseconds(timeout))

    def receive_no_wait(self) -> Message | None:
        """The next message if there is one now, else None. With prefetch 0 the broker is asked for it."""
        return self._take(0)

    def receive_batch(self, size: int, timeout: float | timedelta | None = None) -> list[Message]:
        """Up to ``size`` messages: waits for the first as ``receive`` does if none is there, then takes what is there.

        Automatic acknowledgement speaks once for all of them, which is what makes it faster than single receives. With
        prefetch 0 it asks for one message after the other.
        """
        return self._take_batch(batch_size(size), None if timeout is None else milliseconds(timeout))

    def _take_batch(self, size: int, wait: int | None) -> list[Message]:
        """wait: ms, None for ever."""
        session, state = self._session, self._state
        if size < 1:
            return []
        if not state.prefetch:
            found: list[Message] = []
            while len(found) < size and (message := self._take(0 if found else wait)) is not None:
                found.append(message)
            return found
        with session.lock:
            state.check_open()
            dispatches = state.receive_batch(size, session.clock.now())
        if dispatches:
            session.flush()
            session.clock.settle()
            return [self._given(dispatch) for dispatch in dispatches]
        first = self._take(wait)
        return [] if first is None else [first, *self._take_batch(size - 1, 0)]

    def __iter__(self) -> Iterator[Message]:
        """Messages until the consumer is closed."""
        while (message := self.receive()) is not None:
            yield message

    def _take(self, wait: int | None) -> Message | None:
        """wait: ms, None for ever."""
        session, state, clock = self._session, self._state, self._session.clock
        if state.prefetch:
            # Nearly always a message is here.
            dispatch = session.take(state)
            if dispatch is not None:
                return self._given(dispatch)
        now = clock.now()
        deadline = None if wait is None else now + wait
        self._ask(wait)
        while True:
            message = self._poll(None if deadline is None else deadline - now)
            if message is not None:
                return message
            if state.ended or state.closed or (wait == 0 and state.prefetch):
                session.received_nothing()
                return None
            # With prefetch 0 the broker decides when the time is over.
            left = None if deadline is None or not state.prefetch else max(0, deadline - now)
            with session.lock:
                session.waiting += 1
                try:
                    ready = clock.wait(session.changed, lambda: state.ready, left)
                finally:
                    session.waiting -= 1
            if not ready:
                session.received_nothing()
                return None
            now = clock.now()

    def _ask(self, wait: int | None) -> None:
        """A receive begins: with prefetch 0 the broker is asked."""
        session, state = self._session, self._state
        with session.lock:
            state.check_open()
            pull = state.prefetch == 0 and state.wants_pull()
        if pull:
            session.transport.pull(MessagePull(state.consumer_id, state.destination, -1 if wait == 0 else wait or 0))

    def _poll(self, left: int | None = None) -> Message | None:
        """The next message, if it is here. left: ms that the caller would still wait."""
        session = self._session
        with session.lock:
            dispatch = self._state.receive(session.clock.now())
        session.flush(left)
        session.clock.settle()
        return None if dispatch is None else self._given(dispatch)

    def _given(self, dispatch: MessageDispatch) -> Message:
        if self._individual:
            return self._state.give(dispatch, partial(self._acknowledge, dispatch))
        return self._state.give(dispatch, self._acknowledge_session if self._client else None)

    def _acknowledge(self, dispatch: MessageDispatch) -> None:
        session = self._session
        with session.lock:
            self._state.check_open()
            self._state.acknowledge_one(dispatch)
        session.flush()
        session.clock.settle()

    def _acknowledge_session(self) -> None:
        session = self._session
        with session.lock:
            self._state.check_open()
        session.acknowledge()

    # Listening

    @property
    def message_listener(self) -> MessageListener | None:
        """What is called with every message, one at a time; None: messages are received. Setting it raises JMSError for
        a consumer with prefetch 0, TypeError for what cannot be called."""
        found: MessageListener | None = self._state.listener
        return found

    @message_listener.setter
    def message_listener(self, listener: MessageListener | None) -> None:
        self._listen(listener)
        self._session.clock.settle()

    def _listen(self, listener: MessageListener | None) -> None:
        """Stop the session, set the listener and start the session, as the real client does: its other consumers, too,
        deliver what waits for the delay of a redelivery."""
        session, state = self._session, self._session.state
        _check_listener(listener)
        with session.lock:
            self._state.check_open()
            self._state.listen(listener is not None)
            self._state.listener = None if listener is None else self._called(listener)
            restarts = listener is not None and state.started
            if restarts:
                state.stop()
        if restarts:
            session.start()

    def _called(self, listener: MessageListener) -> MessageListener:
        """The function that is called with every message; telemetry puts a span around the listener."""
        return listener

    # Closing

    def close(self, how: Closing = Closing.NOW) -> None:
        """Leave the broker; in a transacted session with messages of the open transaction, when that ends.

        Waits for a listener at work on another thread. Closing twice is harmless.
        """
        check("how", how, Closing)
        self._session.close_consumer(self, how)


class TopicSubscriber(MessageConsumer):
    """A durable subscriber; made by Session.create_durable_subscriber."""
