"""One prefetch for several queues; see shared_credit.pxd."""

from heapq import heappop, heappush

cimport cython
from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.queue.consumer_list cimport Consumer
from pyengine._engine.activemq.queue.queue cimport Queue


@cython.final
cdef class Part:
    """Internal to SharedCredit; see shared_credit.pxd."""

    def __reduce__(self):
        raise TypeError("a part of a credit belongs to its queue and cannot be pickled")


@cython.final
cdef class SharedCredit:
    """What one consumer holds, and its prefetch extension, over all its queues. prefetch: 0 pulls.

    Every queue has the same extension; one that differs has changed it since ``share``.
    """

    def __cinit__(self, int64_t prefetch):
        self.prefetch = prefetch
        self.parts = {}
        self.unsettled = []
        self.wanting = []
        self.watched = []
        self.reckon()

    def __reduce__(self):
        raise TypeError("a credit belongs to its consumer and cannot be pickled")

    cdef Part begin(self, Queue queue, object number, int32_t slot):
        # One more queue, where the consumer holds nothing yet.
        cdef Part part = Part.__new__(Part)
        part.queue = queue
        part.credit = self
        part.number = number
        part.slot = slot
        part.serial = self.next_serial
        part.extension = queue.consumers.at[slot].extension
        self.parts[queue] = part
        self.next_serial += 1
        self.share(part)
        return part

    cdef Part part_of(self, object queue):
        return self.parts.get(queue)

    cdef int end(self, Part part) except -1:
        # One queue less, with the messages that the consumer holds of it.
        del self.parts[part.queue]
        self.held -= part.held
        part.queue = None
        self.reckon()
        return 0

    cdef void reckon(self) noexcept:
        self.full = self.extension <= 0 if self.prefetch == 0 else self.held - self.extension >= self.prefetch
        self.slow = self.slow and self.full

    cdef void read(self, Part part) noexcept:
        # After a change of its queue.
        cdef Consumer* consumer = &part.queue.consumers.at[part.slot]
        self.held += consumer.held.count - part.held
        part.held = consumer.held.count
        self.take_extension(part)
        self.slow = consumer.slow
        self.reckon()

    cdef void take_extension(self, Part part) noexcept:
        # An acknowledgement changes it in its own queue, from where it counts for all.
        cdef int64_t extension = part.queue.consumers.at[part.slot].extension
        if extension != part.extension:
            self.extension = part.extension = extension

    cdef int share(self, Part part) except -1:
        # Before a change of its queue, and before the round that follows one.
        cdef Queue queue = part.queue
        cdef Consumer* consumer = &queue.consumers.at[part.slot]
        self.take_extension(part)
        self.reckon()
        part.extension = self.extension
        if consumer.elsewhere != self.held - part.held or consumer.extension != self.extension:
            consumer.elsewhere = self.held - part.held
            consumer.extension = self.extension
            queue.state.refresh(part.slot)
        if consumer.filled and consumer.slow != self.slow:
            queue.consumers.unmarked += consumer.slow - self.slow
            consumer.slow = self.slow
        return 0

    cdef int note(self, Part part, int reason) except -1:
        if not part.places[reason]:
            heappush(self.heap(reason), (part.serial, part))
            part.places[reason] = True
        return 0

    cdef list heap(self, int reason):
        return self.unsettled if reason == UNSETTLED else self.wanting if reason == WANTING else self.watched

    cdef bint counts(self, int reason) noexcept:
        if reason == UNSETTLED:
            return bool(self.unsettled)
        if reason == WANTING:
            return bool(self.wanting) and not self.slow
        return bool(self.watched) and self.full and not self.slow

    cdef bint stirs(self) noexcept:
        return self.counts(UNSETTLED) or self.counts(WANTING) or self.counts(WATCHED)

    cdef Part following(self, int* reason):
        # The next part that a wakeup looks at, taken off the heap of its reason; None: no further one.
        cdef Part part
        cdef int each, found
        cdef object least, serial
        while True:
            found = REASONS
            least = None
            for each in range(REASONS):
                if self.counts(each):
                    serial = (<tuple> self.heap(each)[0])[0]
                    if found == REASONS or serial < least:
                        found, least = each, serial
            if found == REASONS:
                return None
            reason[0] = found
            part = (<tuple> heappop(self.heap(found)))[1]
            part.places[found] = False
            if part.queue is not None:
                return part

    def set_prefetch(self, int64_t prefetch):
        """So many messages may be held in all queues from now on."""
        self.prefetch = prefetch
        self.reckon()

    def extend(self, int64_t extension):
        """Set the prefetch extension of every queue."""
        self.extension = extension
        self.reckon()

    def wakes(self, besides=None):
        """The queues that a wakeup must look at, except ``besides``, which made its round: in the order of attachment,
        each when those before it have made theirs."""
        cdef Part part
        cdef int reason = UNSETTLED
        cdef int64_t last = -1
        cdef list aside = []
        try:
            while True:
                part = self.following(&reason)
                if part is None:
                    return
                if part.serial <= last or part.queue is besides:
                    aside.append((part, reason))
                    continue
                last = part.serial
                yield part.queue
        finally:
            for part, reason in aside:
                if part.queue is not None:
                    self.note(part, reason)

    def _check(self):
        """Raise AssertionError if an invariant of the room does not hold."""
        cdef Part part
        cdef int reason
        assert self.held == sum([(<Part> each).held for each in self.parts.values()])
        assert self.full or not self.slow
        for reason in range(REASONS):
            heap = self.heap(reason)
            for place in range(1, len(heap)):
                assert heap[(place - 1) >> 1][0] < heap[place][0]
            for queue, part in self.parts.items():
                assert part.queue is queue and part.credit is self
                assert part.places[reason] == any([each is part for _, each in heap])
