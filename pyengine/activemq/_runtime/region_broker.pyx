"""What a broker does for every message; see region_broker.pxd."""

from libc.stdint cimport int64_t

from pyengine._engine.activemq.commands.message_ack cimport MessageAck
from pyengine._engine.message.message cimport Message
from pyengine._engine.activemq.region.prefetch_subscription cimport PrefetchSubscription
from pyengine._engine.activemq.region.shared_credit cimport SharedCredit
from pyengine._engine.activemq.region.queue_region cimport QueueRegion, Way
from pyengine.activemq._runtime.now cimport now_of
from pyengine.activemq._runtime.outbox cimport Outbox
from pyengine.activemq._runtime.route cimport Answer, answer_of


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

    # What Broker does if more than one queue's core decides.

    def _open(self):
        raise NotImplementedError

    def _send_within(self, transaction_id, destination, message):
        raise NotImplementedError

    def _acknowledge_of(self, subscription, ack):
        raise NotImplementedError

    def send(self, connection_id, destination, Message message not None, transaction_id=None, now=None):
        """See Transport."""
        self.put(connection_id, destination, message, transaction_id, now_of(self.clock) if now is None else now)

    cdef int put(self, object connection_id, object destination, Message message, object transaction_id,
                 int64_t now) except -1:
        cdef Outbox outbox = self.outbox
        cdef QueueRegion region = self.region
        cdef Way way
        cdef object owner
        outbox.begin()
        try:
            if self._closed:
                self._open()
            if self.interceptors is not None and self.interceptors.takes(connection_id, destination, message,
                                                                         transaction_id, now):
                return 0
            if transaction_id is not None:
                self._send_within(transaction_id, destination, message)
                return 0
            # As router.route, which everything takes that comes from elsewhere.
            region.sent += 1
            way = region.find(destination)
            if way is None:
                self.router.creator = connection_id
                try:
                    way = self.router.way(destination)
                finally:
                    self.router.creator = None
            message._connection_id = connection_id
            message.received(way.text, region.sent, now)
            if region.takes(way, message):
                owner = region.put(way.queue, message, now)
                if owner is not None:
                    owner.heard()
            else:
                way.send(message, now, None)
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
            outbox.hand_over(answer_of(ack, failed))
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
        cdef QueueRegion region = self.region
        cdef PrefetchSubscription subscription = region.subscriptions.get(ack.consumer_id)
        cdef SharedCredit credit
        cdef object owner
        # What a consumer says that the broker has removed is ignored (TransportConnection.processMessageAck).
        if subscription is None or subscription.browser:
            return 0
        try:
            if region.settles(subscription, ack):
                owner = region.settle(subscription, ack, now_of(self.clock))
                if owner is not None:
                    owner.heard()
                credit = subscription.credit
                if credit is not None and credit.stirs():
                    subscription.wake(credit.answered.owner)
            else:
                self._acknowledge_of(subscription, ack)
        except Exception as error:
            if failed is None:
                raise
            self.outbox.post(failed, error)
        return 0
