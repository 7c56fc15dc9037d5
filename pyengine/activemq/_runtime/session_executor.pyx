"""What a session does for every message that comes; see session_executor.pxd."""

from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport int64_t

from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch
from pyengine._engine.activemq.client.message_consumer cimport Consumption, Offer
from pyengine._engine.activemq.commands.message_ack cimport MessageAck
from pyengine._engine.activemq.client.session_commands cimport AcknowledgeMode
from pyengine._engine.activemq.client.session_state cimport SessionState
from pyengine.activemq._runtime.now cimport now_of
from pyengine.activemq._runtime.reentrant_lock cimport ReentrantLock
from pyengine.activemq._runtime.region_broker cimport region_broker_of
from pyengine.activemq._runtime.route cimport Answer, answer_of

import threading
from collections import deque

from pyengine.errors import PyengineError


cdef class SessionExecutor:
    """Messages that arrive, and their acknowledgements; Session has the rest.

    connection: its Connection. session_id: unique in the broker. mode: how its messages are acknowledged. One thread at
    a time is in a listener of the session.
    """

    def __cinit__(self, connection, session_id, AcknowledgeMode mode):
        cdef object options = connection.options
        self.connection = connection
        self.session_id = session_id
        self.transport = connection.transport
        self.broker = region_broker_of(self.transport)
        self.clock = connection.clock
        self.settles = self.clock.settles
        self.transacted = mode == AcknowledgeMode.SESSION_TRANSACTED
        self.failed_ack = connection.report if options.send_acks_async or self.transacted else None
        # In a transaction what was said before must be there: those go out in order, through ``send_all``.
        self.answers = self.failed_ack is not None and not self.transacted
        self.state = SessionState(
            mode,
            f"TX:{session_id}",
            asynchronous=options.always_session_async,
            prioritized=options.message_priority_supported,
        )
        self.lock = ReentrantLock()
        self.changed = threading.Condition(self.lock)
        self.sending = ReentrantLock()
        self._outgoing = deque()

    def __reduce__(self):
        raise TypeError("a session cannot be pickled")

    # What Session does.

    def _carry_out(self, command, pull_timeout):
        raise NotImplementedError

    def _listener_failed(self, dispatch, error):
        raise NotImplementedError

    def _new_task(self):
        raise NotImplementedError

    # What the state asks for

    def flush(self, pull_timeout=None):
        """Carry out the commands that wait, in order. pull_timeout: ms that a receiver still waits, None for ever."""
        self.flush_commands(pull_timeout)

    cdef int flush_commands(self, object pull_timeout) except -1:
        cdef list commands = self.state.take_commands()
        if commands is not None or self._outgoing:
            self.send_all(commands, pull_timeout)
        return 0

    cdef int send_all(self, list commands, object pull_timeout) except -1:
        self.sending.take(True)
        try:
            if commands is not None:
                if len(commands) == 1 and not self._outgoing:
                    self.send_one(commands[0], pull_timeout)
                    return 0
                self._outgoing.extend(commands)
            while self._outgoing:
                self.send_one(self._outgoing.popleft(), pull_timeout)
        finally:
            self.sending.give_back()
        return 0

    cdef int send_one(self, object command, object pull_timeout) except -1:
        if isinstance(command, MessageAck):
            self.say(command)
        else:
            self._carry_out(command, pull_timeout)
        return 0

    cdef int send_unasked(self, list commands) except -1:
        # What a listener's messages ask for: no call of the user's can raise what fails, and those behind come.
        try:
            if commands is not None or self._outgoing:
                self.send_all(commands, None)
        except PyengineError as error:
            self.connection.report(error)
        return 0

    cdef int say(self, MessageAck ack) except -1:
        if self.broker is not None:
            self.broker.settle_ack(ack, self.failed_ack)
        else:
            self.transport.acknowledge(ack, self.failed_ack)
        return 0

    def take(self, Consumption consumer not None):
        """The next message of a consumer if one is here, once what comes of that is carried out; None: none is here.
        Raises as Consumption.receive."""
        cdef MessageDispatch dispatch
        cdef int64_t now = now_of(self.clock)
        self.lock.take(True)
        try:
            dispatch = consumer.receive(now)
        finally:
            self.lock.give_back()
        if dispatch is not None:
            self.flush_commands(None)
            if self.settles:
                self.clock.settle()
        return dispatch

    # Messages that come

    cdef Answer arrived(self, MessageDispatch dispatch):
        # The broker dispatched a message to a consumer of this session; what must be acknowledged at once and was not
        # yet, or None.
        cdef SessionState state = self.state
        cdef int64_t now = 0
        cdef Offer offer
        cdef Consumption consumer
        cdef list commands
        if not self.started_or_told:
            self.look_for_start(dispatch, False)
        if dispatch.source is not None and dispatch.source._expiration:
            now = now_of(self.clock)
        self.lock.take(True)
        try:
            offer = state.offered(dispatch, now, self._deliverer != 0)
            if offer == Offer.LISTEN:
                self._deliverer = PyThread_get_thread_ident()
            if self.waiting:
                self.changed.notify_all()
        finally:
            self.lock.give_back()
        if offer == Offer.LISTEN:
            commands = self.deliver(dispatch)
            if self.answers and commands is not None and len(commands) == 1 and not self._outgoing:
                command = commands[0]
                if isinstance(command, MessageAck) and not state.waits():
                    return answer_of(command, self.failed_ack)
            self.send_unasked(commands)
            self.wake()
        elif offer == Offer.QUEUED:
            self.wake()
        else:
            self.flush_commands(None)
            consumer = state.consumers.get(dispatch.consumer_id)
            if consumer is not None and consumer.available is not None:
                consumer.available()
        return None

    cdef int look_for_start(self, MessageDispatch dispatch, bint missed) except -1:
        # ActiveMQSessionExecutor.startedOrWarnedThatNotStarted; missed: a receive ended without this message.
        self.started_or_told = self.connection._is_started_or_told(dispatch, missed)
        self.early = None if self.started_or_told else self.early or dispatch
        return 0

    def received_nothing(self):
        """A receive ends without a message: perhaps because what came waits for the connection's start."""
        if self.early is not None:
            self.look_for_start(self.early, True)

    def arrive_all(self, list dispatches not None):
        """The broker dispatched several messages to consumers of this session."""
        cdef Py_ssize_t queued
        cdef Answer answer
        if not self.started_or_told and dispatches:
            self.look_for_start(dispatches[0], False)
        self.lock.take(True)
        try:
            queued = self.state.arrive_for_listeners(dispatches)
            if self.waiting:
                self.changed.notify_all()
        finally:
            self.lock.give_back()
        if queued:
            self.wake()
        for dispatch in dispatches[queued:]:
            try:
                answer = self.arrived(dispatch)
                if answer is not None:
                    self.transport.acknowledge(answer.ack, answer.failed)
            except PyengineError as error:  # those behind it come all the same
                self.connection.report(error)

    def wake_up(self):
        """Deliver what waits for listeners."""
        self.wake()

    cdef int wake(self) except -1:
        if not self.state.waits():
            return 0
        if not self.state.asynchronous:
            while self._run():
                pass
            return 0
        if self.task is None:
            self.lock.take(True)
            try:
                if self.task is None:
                    self.task = self._new_task()
            finally:
                self.lock.give_back()
        self.task.wake_up()
        return 0

    def _run(self):
        # Deliver up to 1000 messages to listeners; True if more may wait.
        cdef MessageDispatch dispatch
        cdef int _
        for _ in range(1000):
            dispatch = None
            self.lock.take(True)
            try:
                # The thread that is in a listener, this one or another, goes on with what waits.
                if not self._deliverer:
                    dispatch = self.state.step(now_of(self.clock))
                    if dispatch is not None:
                        self._deliverer = PyThread_get_thread_ident()
                    if self.waiting:
                        self.changed.notify_all()  # what waited behind listeners' messages may be a receiver's
            finally:
                self.lock.give_back()
            if dispatch is None:
                self.send_unasked(self.state.take_commands())
                return False
            self.send_unasked(self.deliver(dispatch))
        return True

    cdef list deliver(self, MessageDispatch dispatch):
        # Give a message to its listener; the commands that follow, None for none.
        cdef Consumption consumer = dispatch.consumer
        cdef int64_t now = 0
        cdef list commands
        cdef int mode = self.state.mode
        try:
            if consumer.listener is not None:
                if mode == AcknowledgeMode.INDIVIDUAL_ACKNOWLEDGE or mode == AcknowledgeMode.CLIENT_ACKNOWLEDGE:
                    consumer.listener(consumer.owner._given(dispatch))
                else:
                    consumer.listener(consumer.handed(dispatch, None))
        except BaseException as error:  # sys.exit() in a listener is its failure, not the end of our thread
            commands = self._listener_failed(dispatch, error)
            if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
                self.send_all(commands, None)
                raise  # the user's own
            return commands
        if consumer.optimize_acknowledge:
            now = now_of(self.clock)
        self.lock.take(True)
        try:
            self._deliverer = 0
            if self.waiting:
                self.changed.notify_all()
            return self.state.heard(dispatch, now)
        finally:
            self.lock.give_back()

    @property
    def listening_thread(self):
        """The ident of the thread that is in one of its listeners now; None: none is."""
        return self._deliverer or None
