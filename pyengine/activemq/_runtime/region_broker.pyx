"""What a broker does for every message; see region_broker.pxd."""

from libc.stdint cimport int64_t

from pyengine._engine.activemq.commands.message_ack cimport MessageAck
from pyengine._engine.message.message cimport Message
from pyengine._engine.activemq.region.queue_region cimport QueueRegion
from pyengine.activemq._runtime.now cimport now_of
from pyengine.activemq._runtime.outbox cimport Outbox
from pyengine.activemq._runtime.route cimport Answer


cdef RegionBroker region_broker_of(object transport):
    # A transport that is one and sends and acknowledges as it does; None if it is another, or has ways of its own.
    cdef object kind = type(transport)
    if (isinstance(transport, RegionBroker) and kind.send is RegionBroker.send
            and kind.acknowledge is RegionBroker.acknowledge):
        return transport
    return None


cdef class RegionBroker:
    """Sending and acknowledging at a broker; Broker has the rest."""

    def __cinit__(self, *unused, **also_unused):
        self._closed = True
        self.outbox = Outbox()                # until Broker knows its store
        self.region = QueueRegion(self.outbox.posted)

    def __reduce__(self):
        raise TypeError("a broker cannot be pickled")

    # What Broker does where not only one queue's core has a say.

    def _open(self):
        raise NotImplementedError

    def _transaction(self, transaction_id):
        raise NotImplementedError

    def _send_within(self, transaction, destination, message):
        raise NotImplementedError

    def _acknowledge_elsewhere(self, ack):
        raise NotImplementedError

    def send(self, connection_id, destination, Message message not None, transaction_id=None, now=None):
        """See Transport."""
        self.put(connection_id, destination, message, transaction_id, now_of(self.clock) if now is None else now)

    cdef int put(self, object connection_id, object destination, Message message, object transaction_id,
                 int64_t now) except -1:
        cdef Outbox outbox = self.outbox
        cdef object outcome
        outbox.begin()
        try:
            if self._closed:
                self._open()
            if transaction_id is not None:
                self._send_within(self._transaction(transaction_id), destination, message)
                return 0
            outcome = self.region.put(destination, message, connection_id, now)
            if outcome is NotImplemented:
                message._connection_id = connection_id
                self.router.route(destination, message, now)
            elif outcome is not None:
                outcome.heard()
        finally:
            outbox.leave()
        return 0

    def acknowledge(self, MessageAck ack not None, failed=None):
        """See Transport."""
        self.settle_ack(ack, failed)

    cdef int settle_ack(self, MessageAck ack, object failed) except -1:
        cdef Outbox outbox = self.outbox
        cdef bint wait = failed is None
        if not outbox.begin(wait):
            outbox.hand_over(Answer(ack, failed))
            return 0
        try:
            self.answer(ack, failed)
        finally:
            outbox.leave(wait)
        return 0

    def _acknowledge(self, Answer answer not None):
        # The same within a change, as the outbox asks for it.
        self.answer(answer.ack, answer.failed)

    cdef int answer(self, MessageAck ack, object failed) except -1:
        cdef object outcome
        try:
            outcome = self.region.settle(ack, now_of(self.clock))
            if outcome is NotImplemented:
                self._acknowledge_elsewhere(ack)
            elif outcome is not None:
                outcome.heard()
        except Exception as error:
            if failed is None:
                raise
            self.outbox.post(failed, error)
        return 0
