"""shared_credit: the one prefetch of a consumer of several queues, and which of these a wakeup must look at
(broker.region.PrefetchSubscription, whose queues are woken when it has room again).

A queue has a *part* of the credit. It learns what the others hold before each of its changes and rounds (``share``),
and its own share is read after each (``read``). After an acknowledgement the broker wakes all queues of the consumer.
Of these a round can change something only in

* ``unsettled``: one more round would change something, with or without credit;
* ``wanting``: a message waits, and the consumer had no room at the last round; if it has room now, or is not slow,
  because a round finds it slow;
* ``watched``: a message waits that the consumer did not take at the last round; if it has no room now and is not slow.

The others are left out: what a wakeup costs does not grow with the number of queues.

Invariants: ``held`` is the sum of the parts' ``held``; ``full`` and ``slow`` are those of the consumer, in all of
its queues; each heap is ordered by ``serial``, the order of attachment, and a part is in it at most once, as ``places``
says; a part that ended has no queue any more.
"""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.queue.queue cimport Queue


cdef enum:                           # reasons
    UNSETTLED
    WANTING
    WATCHED
    REASONS


cdef class Part:
    cdef Queue queue                 # None: it ended
    cdef SharedCredit credit
    cdef object number               # the consumer's id in the queue
    cdef int32_t slot                # and its slot there
    cdef int64_t serial
    cdef int64_t held                # what is counted of it
    cdef int64_t extension           # as the queue knows it
    cdef bint[3] places              # by reason: it is in that heap


cdef class SharedCredit:
    cdef dict parts                  # queue -> Part
    cdef int64_t held
    cdef int64_t extension
    cdef int64_t prefetch
    cdef int64_t next_serial
    cdef bint full
    cdef readonly bint slow          # found without room, and has had none since
    cdef Queue answered              # the one of the last acknowledgement
    cdef list unsettled              # heaps of (serial, Part), by reason
    cdef list wanting
    cdef list watched

    cdef Part begin(self, Queue queue, object number, int32_t slot)
    cdef Part part_of(self, object queue)
    cdef int end(self, Part part) except -1
    cdef void reckon(self) noexcept
    cdef void read(self, Part part) noexcept
    cdef void take_extension(self, Part part) noexcept
    cdef int share(self, Part part) except -1
    cdef int note(self, Part part, int reason) except -1
    cdef bint counts(self, int reason) noexcept
    cdef list heap(self, int reason)
    cdef Part following(self, int* reason)
    cdef bint stirs(self) noexcept       # a wakeup has something to look at
