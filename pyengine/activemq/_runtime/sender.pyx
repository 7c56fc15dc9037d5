"""What a producer does for every message; see sender.pxd."""

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t

from pyengine._engine.message.message cimport Message, place_of
from pyengine._engine.activemq.client.message_producer cimport Outgoing
from pyengine.activemq._runtime.now cimport now_of
from pyengine.activemq._runtime.session_executor cimport SessionExecutor

from sys import intern

from pyengine.errors import JMSError, UnknownNameError

SECONDS = "was in seconds"
SCHEDULED = tuple([
    intern(name) for name in (
        "AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_PERIOD", "AMQ_SCHEDULED_REPEAT", "AMQ_SCHEDULED_CRON",
        "AMQ_SCHEDULER_ACTION")])


cdef class Sender:
    """Sending one message; MessageProducer has the rest.

    producer_id: of its messages' ids. destination: where to, or None: ``send`` says it.
    """

    def __cinit__(self, SessionExecutor session not None, producer_id, destination):
        cdef object options = session.connection.options
        self._session = session
        self._connection_id = session.connection.connection_id
        self._outgoing = Outgoing(
            producer_id,
            timestamps=not options.disable_time_stamps_by_default,
            copies=options.copy_message_on_send,
            keeps_untimed=session.transport.release == "5.17",
        )
        self._flat = not options.nested_map_and_list_enabled
        self._reports = not options.always_sync_send
        self._reports_all = options.use_async_send
        self.producer_id = producer_id
        self.destination = destination
        self.temporary = destination is not None and destination.is_temporary
        self.text = "" if destination is None else str(destination)

    def __reduce__(self):
        raise TypeError("a producer cannot be pickled")

    cdef int look_for_schedule(self, Message message) except -1:
        # Properties of ScheduledMessage ask for a scheduler, which is not here.
        cdef object name
        for name in SCHEDULED:
            if place_of(message, <PyObject*> name) >= 0:
                self._session.connection._warn_of_schedule(name)
        return 0

    def _look_for_schedules(self, list messages not None):
        cdef Message message
        for message in messages:
            if message.count:
                self.look_for_schedule(message)

    # What MessageProducer does.

    def _where(self, destination):
        raise NotImplementedError

    def _refuse_nested(self, message):
        raise NotImplementedError

    def send(self, message, destination=None, *, delivery_mode=None, priority=None, time_to_live_ms=None,
             time_to_live=None):
        """Send a message, or a string or bytes as the body of one; its headers are set as JMS says.

        destination: only for a producer without one. delivery_mode, priority, time_to_live_ms (or a timedelta):
        instead of the producer's. Raises IllegalStateError if the producer is closed, InvalidDestinationError for a
        wrong destination, InvalidMessageError for a value that no message has; what the broker says about a persistent
        message outside a transaction is raised too, anything else goes to the connection's exception listener (see
        ConnectionOptions).
        """
        cdef SessionExecutor session = self._session
        cdef Outgoing outgoing = self._outgoing
        cdef object where, transaction = None
        cdef str text
        cdef Message sent
        cdef int64_t now
        if time_to_live is not None:
            raise UnknownNameError("send.time_to_live", time_to_live, SECONDS, "it is 'time_to_live_ms' now")
        if self._flat:
            self._refuse_nested(message)
        if destination is None and self.destination is not None and not self._closed and not self.temporary:
            where, text = self.destination, self.text
        else:
            where = self._where(destination)
            text = str(where)
        if session.transacted:
            transaction = session.start_transaction()
        now = now_of(session.clock)
        if delivery_mode is None and priority is None and time_to_live_ms is None:
            sent = outgoing.compose(message, text, now, outgoing.time_to_live, outgoing.persistent, outgoing.priority)
        else:
            sent = outgoing.prepare(message, text, now, delivery_mode=delivery_mode, priority=priority,
                                    time_to_live=time_to_live_ms)
        if sent.count:
            self.look_for_schedule(sent)
        try:
            if session.broker is not None:
                session.broker.put(self._connection_id, where, sent, transaction, now)
            else:
                session.transport.send(self._connection_id, where, sent, transaction, now)
        except JMSError as error:
            if not (self._reports and (not sent._persistent or transaction is not None or self._reports_all)):
                raise
            session.connection.report(error)
        if session.settles:
            session.clock.settle()
