"""Sends and acknowledgements in one step; see queue_region.pxd."""

from libc.stdint cimport int64_t, uintptr_t

from pyengine._engine.activemq.commands.message_ack cimport MessageAck
from pyengine._engine.message.message cimport Message
from pyengine._engine.activemq.region.prefetch_subscription cimport PrefetchSubscription
from pyengine._engine.activemq.commands.message_ack cimport EXPIRED, POISON
from pyengine._engine.activemq.region.region_queue cimport RegionQueue


cdef class QueueRegion:
    """The consumers and queues of one broker, for messages that only a queue decides about.

    posted: a deque that gets the dispatches, as ``(route, MessageDispatch)`` in order. sent: number of messages that
    the broker received. A step (``send``, ``acknowledge``) returns None, the owner of its queue if that has news
    (RegionQueue.news), or NotImplemented: then other parts take part, and nothing was changed.
    """

    def __cinit__(self, posted):
        self.posted = posted
        self.subscriptions = {}
        self.ways = {}

    def __reduce__(self):
        raise TypeError("a region belongs to its broker and cannot be pickled")

    def lead(self, destination, text, target, RegionQueue queue):
        """Messages for this very ``destination`` go to ``target``: its queue, None for another kind. text: their
        destination as text."""
        self.ways[<uintptr_t> <void*> destination] = (destination, text, target, queue)

    def way(self, destination):
        """The arguments of ``lead``, or None."""
        return self.ways.get(<uintptr_t> <void*> destination)

    def send(self, destination, Message message not None, connection_id, int64_t now):
        """Put a message on its queue and make the rounds this asks for. NotImplemented: the destination is not known,
        its queue is not ``direct`` or has no consumers, or it has a time to live."""
        return self.put(destination, message, connection_id, now)

    cdef object put(self, object destination, Message message, object connection_id, int64_t now):
        cdef object way = self.ways.get(<uintptr_t> <void*> destination)
        cdef RegionQueue queue
        if way is None:
            return NotImplemented
        queue = (<tuple?> way)[3]
        if queue is None or not queue.direct or message._expiration or not queue.subscriptions:
            return NotImplemented
        self.sent += 1
        message._connection_id = connection_id
        message.received(way[1], self.sent, now)
        return self.over(queue, queue.offer(message, now))

    def acknowledge(self, MessageAck ack not None, int64_t now):
        """An acknowledgement of messages of one queue, and the rounds that it asks for. NotImplemented: it has
        several queues, or one that is not ``direct``, there is a transaction, or the messages leave unconsumed or are
        not held. Raises JMSError as RegionQueue.answer."""
        return self.settle(ack, now)

    cdef object settle(self, MessageAck ack, int64_t now):
        cdef PrefetchSubscription subscription = self.subscriptions.get(ack.consumer_id)
        cdef RegionQueue queue
        cdef int kind = ack.kind
        if subscription is None or ack.transaction_id is not None or kind == POISON or kind == EXPIRED:
            return NotImplemented
        queue = subscription.queue
        if queue is None or not queue.direct or ack.last_message_id not in subscription.held:
            return NotImplemented
        queue.answered(subscription, subscription.number, ack, now, None)
        queue.begin_handing_out()
        queue.run_wakeups(now, -1)
        return self.over(queue, queue.take_out(now) if queue.out_size else None)

    cdef object over(self, RegionQueue queue, list dispatches):
        if dispatches:
            self.posted.extend(dispatches)
        return queue.owner if queue.has_news() else None

    def _check(self):
        """Raise AssertionError if an invariant of the room does not hold."""
        for name, subscription in self.subscriptions.items():
            assert (<PrefetchSubscription> subscription).consumer_id == name
        for key, way in self.ways.items():
            assert key == <uintptr_t> <void*> (<tuple> way)[0]
