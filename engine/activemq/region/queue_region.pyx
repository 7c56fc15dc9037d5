"""Sends and acknowledgements in one step; see queue_region.pxd."""

from libc.stdint cimport int64_t, uintptr_t

from pyengine._engine.activemq.commands.message_ack cimport MessageAck
from pyengine._engine.message.message cimport Message
from pyengine._engine.activemq.region.prefetch_subscription cimport Held, PrefetchSubscription
from pyengine._engine.activemq.region.shared_credit cimport SharedCredit
from pyengine._engine.activemq.commands.message_ack cimport EXPIRED, INDIVIDUAL, POISON, STANDARD
from pyengine._engine.activemq.region.region_queue cimport RegionQueue


cdef class Way:
    """Where messages for one destination go. text: what their destination becomes. queue: the queue's core if they go
    to one queue and no further, None otherwise.
    """

    def __cinit__(self, destination, text, RegionQueue queue, *unused):
        self.destination = destination
        self.text = text
        self.queue = queue

    def __reduce__(self):
        raise TypeError("a way belongs to its broker and cannot be pickled")

    def send(self, message, now, within):
        """Bring a message there; within: the transaction at whose end it gets there, None: now."""
        raise NotImplementedError


cdef class QueueRegion:
    """The consumers and the ways of one broker.

    posted: a deque that gets the dispatches, as ``(route, MessageDispatch)`` in order. sent: how many messages the
    broker took. reports_no_consumer: a listener asks for messages that come to a queue without consumers. What a queue
    alone decides (``takes``, ``settles``) is decided in one step (``put``, ``settle``), which returns the owner of the
    queue if that has news (RegionQueue.news), else None. The steps are those of the owner: ``put`` is its ``put``,
    ``settle`` its ``acknowledge``.
    """

    def __cinit__(self, posted):
        self.posted = posted
        self.subscriptions = {}
        self.ways = {}

    def __reduce__(self):
        raise TypeError("a region belongs to its broker and cannot be pickled")

    def lead(self, Way way not None):
        """Messages for this very destination go that way."""
        self.ways[<uintptr_t> <void*> way.destination] = way

    def way(self, destination):
        """What was said to ``lead``, or None."""
        return self.find(destination)

    cdef Way find(self, object destination):
        return self.ways.get(<uintptr_t> <void*> destination)

    cdef bint takes(self, Way way, Message message):
        # Only the queue decides, no listener asks for messages without a consumer, and the message has no time to live.
        return (way.queue is not None and way.queue.direct and not message._expiration
                and (not self.reports_no_consumer or len(way.queue.subscriptions) > 0))

    cdef object put(self, RegionQueue queue, Message message, int64_t now):
        return self.over(queue, queue.offer(message, now))

    cdef bint settles(self, PrefetchSubscription subscription, MessageAck ack) except -1:
        # One queue, where nothing else takes part; no transaction; the messages are held and leave consumed.
        cdef RegionQueue queue = subscription.queue
        cdef int kind
        if ack.transaction_id is not None:
            return False
        if queue is None:
            return subscription.credit is not None and self.settles_alone(subscription, ack)
        if not queue.direct:
            return False
        kind = ack.kind
        return kind != POISON and kind != EXPIRED and ack.last_message_id in subscription.held

    cdef bint settles_alone(self, PrefetchSubscription subscription, MessageAck ack) except -1:
        # It has several queues, and this is of one message: of its queue alone.
        cdef Held held = subscription.held.get(ack.last_message_id)
        if held is None or subscription.copies or (ack.kind != INDIVIDUAL and ack.kind != STANDARD):
            return False
        if ack.kind == STANDARD and (ack.message_count != 1 or ack.last_message_id != (
                next(iter(subscription.held)) if ack.first_message_id is None else ack.first_message_id)):
            return False
        return (<RegionQueue> held.owner.core).direct

    cdef object settle(self, PrefetchSubscription subscription, MessageAck ack, int64_t now):
        cdef RegionQueue queue = subscription.queue
        cdef object number = subscription.number
        cdef SharedCredit credit = None
        if queue is None:
            credit = subscription.credit
            queue = (<Held> subscription.held[ack.last_message_id]).owner.core
            credit.answered = queue
            number = credit.part_of(queue).number
        if queue.parts:
            queue.share_parts()
        queue.answered(subscription, number, ack, now, None)
        queue.rounds.begin_handing_out()
        queue.rounds.run_wakeups(now, -1)
        if queue.parts:
            queue.note_parts()
        return self.over(queue, queue.take_out(now) if queue.rounds.out_size else None)

    cdef object over(self, RegionQueue queue, list dispatches):
        if dispatches:
            self.posted.extend(dispatches)
        return queue.owner if queue.has_news() else None

    def _check(self):
        """Raise AssertionError if an invariant of the room does not hold."""
        for name, subscription in self.subscriptions.items():
            assert (<PrefetchSubscription> subscription).consumer_id == name
        for key, way in self.ways.items():
            assert key == <uintptr_t> <void*> (<Way> way).destination
