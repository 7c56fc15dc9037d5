"""Connections: the way from a program to a broker in the same process."""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import count
from types import TracebackType
from typing import ClassVar, Self

from pyengine._engine.activemq.client.redelivery_policy import RedeliveryPolicy
from pyengine._engine.activemq.client.session_commands import AcknowledgeMode
from pyengine._engine.activemq.client.session_state import SessionState
from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine.activemq._runtime.arrivals import Arrivals
from pyengine.activemq._runtime.session_executor import SessionExecutor
from pyengine.activemq.client.connection_audit import ConnectionAudit
from pyengine.activemq.client.consumer import Closing
from pyengine.activemq.client.session import Session
from pyengine.activemq.client.tasks import SessionTasks
from pyengine.activemq.options import OF_OPTIONS, ConnectionOptions, UnknownOptions
from pyengine.activemq.transport.commands import (
    ConnectionInfo,
    ConnectionSink,
    ConsumerControl,
    Transport,
)
from pyengine.attributes import Declared
from pyengine.clock import Clock, Worker
from pyengine.destinations import Destination, most_specific
from pyengine.errors import IllegalStateError, InvalidDestinationError, JMSError
from pyengine.processes import belong
from pyengine.topology.checked import check
from pyengine.visible import logger

LOG = logger("pyengine.activemq")
_NUMBERS = count(1)


class Connection(Declared):
    """A connection to a broker; made by ConnectionFactory.create_connection.

    Messages flow once it is started: ``with`` starts it, ``start`` does too. Closing it closes its sessions.
    exception_listener: called with errors that no call can raise; None: they are logged (``pyengine.activemq``).
    """

    transport: Transport
    clock: Clock
    options: ConnectionOptions
    unknown_options: UnknownOptions
    connection_id: str
    redelivery_policies: dict[Destination, RedeliveryPolicy]
    tasks: SessionTasks
    audit: ConnectionAudit | None
    _session_kind: type[Session] = Session
    _telemetry: object = None  # see pyengine.activemq.telemetry
    _elsewhere: ClassVar[Mapping[str, str]] = OF_OPTIONS
    _changeable: ClassVar[frozenset[str]] = frozenset({"options"})

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        options: ConnectionOptions,
        *,
        redelivery_policies: Mapping[Destination, RedeliveryPolicy],
        unknown_options: UnknownOptions,
        closed: Callable[[], None],
        place: str = "vm",
    ) -> None:
        self._closed = True
        self.transport = transport
        self.clock = clock
        self.options = options
        self.unknown_options = unknown_options
        self.connection_id = f"{options.connection_id_prefix}{place}-{os.getpid()}-{clock.now()}-{next(_NUMBERS)}:1"
        self.redelivery_policies = dict(redelivery_policies)
        self._exception_listener: Callable[[Exception], object] | None = None
        self._started = False
        self._created = clock.now()
        self._warned_of: set[str] = set()
        self.tasks = SessionTasks(clock, options.max_thread_pool_size, dedicated=options.use_dedicated_task_runner)
        fails_over = getattr(transport, "fault_tolerant", False) and options.check_for_duplicates
        self.audit = ConnectionAudit(options.audit_depth, options.audit_maximum_producer_number) if fails_over else None
        self._transport_listeners: list[tuple[Callable[[], object] | None, Callable[[], object] | None]] = []
        self._on_close = closed
        self._lock = threading.RLock()
        self._sessions: dict[str, Session] = {}
        self._arrivals = Arrivals()
        self._session_numbers = count(1)
        self._temporary_numbers = count(1)
        self._temporary_consumers: Counter[Destination] = Counter()  # open consumers of temporary destinations
        self._counting = threading.Lock()  # taken last: sessions count under their own locks
        self._executor: Worker | None = None
        self._ended = False
        self._failed: str | None = None
        # The broker must not keep a connection alive that its user forgot.
        reference = weakref.ref(self)

        def control(command: ConsumerControl) -> None:
            connection = reference()
            if connection is not None:
                connection._control(command)

        def failed(reason: str) -> None:
            connection = reference()
            if connection is not None:
                connection._fail(reason)

        def interrupted() -> None:
            connection = reference()
            if connection is not None:
                connection._interrupted()

        def resumed() -> None:
            connection = reference()
            if connection is not None:
                connection._resumed()

        belong(self)
        transport.add_connection(
            ConnectionInfo(self.connection_id, options.client_id),
            ConnectionSink(
                self._arrivals, control, failed, self._arrivals.take_all, interrupted=interrupted, resumed=resumed
            ),
        )
        self._closed = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if not self._closed:
            warnings.warn(f"unclosed connection {self.connection_id}", ResourceWarning, source=self, stacklevel=1)

    def __repr__(self) -> str:
        state = "closed" if self._closed else "started" if self.started else "stopped"
        return f"<Connection {self.connection_id} client_id={self.client_id!r}: {state}>"

    @property
    def client_id(self) -> str:
        """What ``create_connection`` or the factory's options were given; empty: none."""
        return self.options.client_id

    @property
    def started(self) -> bool:
        """True while messages flow: from ``start`` to ``stop``."""
        return self._started

    @property
    def exception_listener(self) -> Callable[[Exception], object] | None:
        """Called with errors that no call can raise; None: they are logged (``pyengine.activemq``). Setting it raises
        TypeError for what cannot be called. As with the real client, IllegalStateError once the connection is closed,
        JMSError once it has failed."""
        self._check()
        return self._exception_listener

    @exception_listener.setter
    def exception_listener(self, listener: Callable[[Exception], object] | None) -> None:
        if listener is not None and not callable(listener):
            raise TypeError(f"an exception listener is a function of an exception, or None; not {listener!r}")
        self._check()
        self._exception_listener = listener

    @property
    def closed(self) -> bool:
        """True once it was closed or lost."""
        return self._closed

    @property
    def sessions(self) -> tuple[Session, ...]:
        """Its open sessions, in the order of creation."""
        return tuple(self._sessions.values())

    def _check(self) -> None:
        if self._failed is not None:
            raise JMSError(f"the connection failed: {self._failed}")
        if self._closed:
            raise IllegalStateError("The connection is closed")

    def create_session(self, acknowledge_mode: AcknowledgeMode = AcknowledgeMode.AUTO_ACKNOWLEDGE) -> Session:
        """A session with one of the acknowledgement modes.

        Raises IllegalStateError if the connection is closed, JMSError for an unknown mode.
        """
        self._check()
        # Not AcknowledgeMode(...), which makes a new member of a number that it does not know. JMS's two arguments,
        # of which the first is whether it is transacted, would be the wrong mode.
        modes = AcknowledgeMode.__members__.values()
        given = None if isinstance(acknowledge_mode, bool) else acknowledge_mode
        mode = next((each for each in modes if each == given), None)
        if mode is None:
            known = ", ".join(f"{each.name} ({each.value})" for each in modes)
            raise JMSError(f"invalid acknowledgeMode: {acknowledge_mode}. Valid values are {known}")
        session = self._session_kind(self, f"{self.connection_id}:{next(self._session_numbers)}", mode)
        with self._lock:
            self._sessions[session.session_id] = session
        if self.started:
            session.start()
        return session

    def start(self) -> None:
        """Let messages flow. Starting twice is harmless."""
        self._check()
        self._started = True
        for session in self.sessions:
            if not session.state.started:
                session.start()
        self.clock.settle()

    def stop(self) -> None:
        """Deliver nothing until ``start``. Waits for listeners at work on other threads."""
        self._check()
        self._stop()

    def _stop(self) -> None:
        self._started = False
        for session in self.sessions:
            session.stop()

    def close(self, how: Closing = Closing.NOW) -> None:
        """Close its sessions and leave the broker; see Closing. Closing twice is harmless."""
        check("how", how, Closing)
        if self._closed:
            return
        if how is Closing.LOST:
            self._lose()
            self.transport.remove_connection(self.connection_id, lost=True)
            self._end()
            return
        if how is Closing.DRAIN:
            for session in self.sessions:
                session.drain()
        self._stop()
        last_delivered = None
        try:
            consumers = [consumer for session in self.sessions for consumer in session.dispose()]
            _, last_delivered = SessionState.leave(consumers)
            for session in self.sessions:
                session.forget_all()
        finally:
            self._sessions.clear()
            try:
                self.transport.remove_connection(self.connection_id, last_delivered=last_delivered)
            finally:
                self._end()

    def _lose(self) -> None:
        for session in self.sessions:
            session.lose()
        self._sessions.clear()
        self._arrivals.clear()

    def _end(self) -> None:
        self._closed = True
        self._started = False
        self.tasks.close()
        with self._lock:
            executor, self._executor = self._executor, None
            self._ended = True
        if executor is not None:
            executor.close()
        self._exception_listener = None  # it may hold messages that know how they are acknowledged, and so all of this
        self._on_close()
        self.clock.settle()

    def add_transport_listener(
        self, *, interrupted: Callable[[], object] | None = None, resumed: Callable[[], object] | None = None
    ) -> Callable[[], None]:
        """Hear that the broker has gone and that one is there again (``failover:``); call what is returned to end it.

        The functions are called on threads of the transport, before it goes on: they return soon, and do not call the
        connection. Raises TypeError for what cannot be called.
        """
        for each in (interrupted, resumed):
            if each is not None and not callable(each):
                raise TypeError(f"a transport listener is a function without arguments, or None; not {each!r}")
        listener = (interrupted, resumed)
        self._transport_listeners = [*self._transport_listeners, listener]

        def remove() -> None:
            self._transport_listeners = [one for one in self._transport_listeners if one is not listener]

        return remove

    # For its sessions

    def route(self, consumer_id: str, session: SessionExecutor | None) -> None:
        """Messages for a consumer go to this session; None: to no session any more."""
        self._arrivals.lead(consumer_id, session)

    def count_consumer(self, destination: Destination, difference: int) -> None:
        """A session has opened (1) or closed (-1) a consumer of a destination."""
        if destination.is_temporary:
            with self._counting:
                self._temporary_consumers[destination] += difference
                if not self._temporary_consumers[destination]:
                    del self._temporary_consumers[destination]

    def discard(self, session: Session) -> None:
        """A session was closed."""
        with self._lock:
            self._sessions.pop(session.session_id, None)

    def temporary(self, kind: str) -> Destination:
        """A new temporary destination of this connection."""
        self._check()
        destination = Destination(f"{self.connection_id}:{next(self._temporary_numbers)}", kind)
        self.transport.add_destination(self.connection_id, destination)
        return destination

    def check_temporary(self, destination: Destination) -> None:
        """Raise InvalidDestinationError for another connection's temporary destination."""
        self._check()
        if not isinstance(destination, Destination):
            raise InvalidDestinationError(f"{destination!r} is not a temporary destination")
        if self.connection_id not in destination.name:
            raise InvalidDestinationError("Cannot use a Temporary destination from another Connection")

    def check_unused(self, destination: Destination) -> None:
        """Raise JMSError for a temporary destination that one of its consumers has (deleteTempDestination)."""
        if self._temporary_consumers[destination]:
            raise JMSError("A consumer is consuming from the temporary destination")

    def redelivery_policy_of(self, destination: Destination) -> RedeliveryPolicy:
        """The policy of the most specific pattern in ``redelivery_policies``, else the connection's."""
        pattern = most_specific(self.redelivery_policies, destination)
        return self.options.redelivery_policy if pattern is None else self.redelivery_policies[pattern]

    def _is_started_or_told(self, dispatch: MessageDispatch, missed: bool) -> bool:
        """A message has come to a session: whether the connection is started, or it was said that it is not.

        As ActiveMQSessionExecutor.execute, which looks at it with every message until then. missed: a receive ended
        without this message, so that there is nothing left to be patient about.
        """
        patience = self.options.warn_about_unstarted_connection_timeout
        if self._started or patience < 0:
            return True
        if not missed and self.clock.now() - self._created <= patience:
            return False
        LOG.warning(
            "Received a message on a connection which is not yet started. Have you forgotten to call "
            "Connection.start()? Connection: %s Received: %s",
            self,
            dispatch,
        )
        return True

    def _warn_of_schedule(self, name: str) -> None:
        """A message has a property that asks for the broker's scheduler, which is not here; said once of each name."""
        if name not in self._warned_of and not getattr(self.transport, "scheduler_support", False):
            self._warned_of.add(name)
            LOG.warning(
                "%s: %s asks for a scheduler, and there is none: messages with it are delivered at once, and once",
                self.connection_id,
                name,
            )

    def report(self, error: Exception) -> None:
        """Tell the exception listener, on a thread of its own, of an error that no call can raise; log the error where
        there is no listener, or the connection has ended."""
        listener = self._exception_listener
        if listener is None or not self._execute(lambda: listener(error)):
            LOG.error("%s: %s", self.connection_id, error)

    # What the broker says

    def _execute(self, action: Callable[[], object]) -> bool:
        """Do it on the connection's own thread; False, and nothing is done, once the connection has ended."""
        with self._lock:
            if self._ended:
                return False
            if self._executor is None:
                self._executor = self.clock.worker(f"ActiveMQ Connection Executor: {self.connection_id}")
            self._executor.submit(action)
            return True

    def _control(self, command: ConsumerControl) -> None:
        session = self._arrivals.session_of(command.consumer_id)
        if command.close and session is not None:
            for consumer in session.consumers:
                if consumer.consumer_id == command.consumer_id:
                    LOG.warning("closed consumer on command: %s of %s", command.consumer_id, consumer.destination)
                    self._execute(consumer.close)

    def _interrupted(self) -> None:
        """The transport looks for another broker: what was dispatched and not delivered comes again."""
        for session in self.sessions:
            session._interrupted()
        for interrupted, _ in self._transport_listeners:
            if interrupted is not None:
                interrupted()

    def _resumed(self) -> None:
        for _, resumed in self._transport_listeners:
            if resumed is not None:
                resumed()

    def _fail(self, reason: str) -> None:
        if self._closed:
            return
        self._failed = reason
        self._lose()
        self.report(JMSError(reason))
        self._closed = True
        self._execute(self._end)
