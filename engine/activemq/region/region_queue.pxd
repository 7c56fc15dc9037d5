"""region_queue: a queue of the broker's region: Queue in the broker's terms, message ids, subscriptions and dispatches.

Invariants: every consumer of the queue has its subscription in ``subscriptions``, under its id, and in ``at_slot``;
``parts`` has a part for each of them that shares its credit;
``bytes`` is the size of the messages on the queue that were not removed; ``purged`` are handles of messages that were
removed while a consumer holds them.
"""

from cython cimport final
from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.commands.message_ack cimport MessageAck
from pyengine._engine.message.message cimport Message
from pyengine._engine.activemq.region.prefetch_subscription cimport PrefetchSubscription
from pyengine._engine.activemq.region.shared_credit cimport SharedCredit
from pyengine._engine.activemq.queue.queue cimport Queue
from pyengine._engine.activemq.queue.rounds cimport QueueListener


@final
cdef class RegionListener(QueueListener):
    cdef object reader                        # callback that puts messages that are ``behind`` into the queue
    cdef bint noting                          # first dispatches count, and are in ``noted``
    cdef list noted                           # None: none


cdef class RegionQueue(Queue):
    cdef RegionListener listener
    cdef public object owner
    cdef public object destination
    cdef dict subscriptions                   # consumer id here -> PrefetchSubscription
    cdef list at_slot
    cdef set purged
    cdef list parts                           # of the credit of consumers that have other queues too; None: none
    cdef public bint direct                      # only the core decides about sends and acknowledgements
    cdef public int64_t minimum_message_size    # what a message counts in ``bytes`` without its body
    cdef public int64_t max_expire_page_size    # messages that the look for expired ones pages in
    cdef public bint look_planned               # the caller knows that a look is due, or makes none
    cdef readonly int64_t bytes

    cdef int share_parts(self) except -1
    cdef int note_parts(self) except -1
    cdef int take_in(self, Message message) except -1
    cdef list offer(self, Message message, int64_t now)
    cdef list answered(self, PrefetchSubscription subscription, object consumer, MessageAck ack, int64_t now,
                       object transaction)
    cdef bint has_news(self)
    cdef int settled(self, PrefetchSubscription subscription, Message message, list gone) except -1
