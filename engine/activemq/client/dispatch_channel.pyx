from pyengine._engine.message.message cimport Message

from collections import deque

cimport cython


@cython.freelist(256)
@cython.no_gc
cdef class MessageDispatch:
    """One message for one consumer.

    consumer_id: see ConsumerInfo. destination: the queue or topic it came from, also for a wildcard consumer.
    message: the consumer's own copy; None is the answer to a pull that found nothing, or the end of a browse.
    redelivery_counter: the broker's.
    """

    def __init__(self, object consumer_id, object destination, Message message, int redelivery_counter=0):
        self.consumer_id = consumer_id
        self.destination = destination
        self.source = self.own = message
        self.redelivery_counter = redelivery_counter
        if message is not None:
            self.counter = message._redelivery_counter

    cdef Message take(self):
        cdef Message own = self.own
        if own is None and self.source is not None:
            self.own = own = Message.__new__(Message)
            self.source.copy_into(own)
            own._redelivery_counter = self.counter
            own._group_first_for_consumer = self.group_first
            own._broker_out_time = self.out_time
        return own

    cdef int renew(self) except -1:
        if self.source is self.own:
            self.own._redelivery_counter = self.counter
        else:
            self.own = None
        return 0

    @property
    def message(self):
        return self.take()

    def __repr__(self):
        return (f"MessageDispatch(consumer_id={self.consumer_id!r}, destination={self.destination!r}, "
                f"message={self.message!r}, redelivery_counter={self.redelivery_counter})")

    def __reduce__(self):
        return MessageDispatch, (self.consumer_id, self.destination, self.message, self.redelivery_counter)


cdef class Backlog:
    """Number of messages that wait in several channels together."""

    def __reduce__(self):
        raise TypeError("a backlog belongs to its channels and cannot be pickled")


cdef class Channel:
    """First in, first out; or ten such lists, the highest priority first (SimplePriorityMessageDispatchChannel).

    backlog: counts the messages of this channel as well.
    """

    def __cinit__(self, bint prioritized, Backlog backlog not None):
        self.lists = tuple([deque() for _ in range(10 if prioritized else 1)])
        self.backlog = backlog

    cdef int count(self, int change) except -1:
        self.size += change
        self.backlog.size += change
        return 0

    cdef object list_of(self, MessageDispatch dispatch):
        if len(self.lists) == 1:
            return self.lists[0]
        return self.lists[4 if dispatch.source is None else dispatch.source._priority]

    cdef int enqueue(self, MessageDispatch dispatch) except -1:
        self.list_of(dispatch).append(dispatch)
        self.count(1)
        return 0

    cdef int enqueue_first(self, MessageDispatch dispatch) except -1:
        self.list_of(dispatch).appendleft(dispatch)
        self.count(1)
        return 0

    cdef MessageDispatch dequeue(self):
        if not self.running or not self.size:
            return None
        self.count(-1)
        if len(self.lists) == 1:
            return self.lists[0].popleft()
        for waiting in reversed(self.lists):
            if waiting:
                return waiting.popleft()

    cdef list remove_all(self):
        cdef list found = []
        for waiting in reversed(self.lists):
            found.extend(waiting)
            waiting.clear()
        self.count(-self.size)
        return found

    cdef int start(self) except -1:
        self.running = not self.closed
        return 0

    cdef int stop(self) except -1:
        self.running = False
        return 0

    cdef int close(self) except -1:
        self.running = False
        self.closed = True
        return 0

    def __len__(self):
        return self.size

    def _check(self):
        """Raise AssertionError if an invariant of the room does not hold."""
        assert self.size == sum(map(len, self.lists))
        assert not (self.closed and self.running)
        if len(self.lists) == 10:
            for priority, waiting in enumerate(self.lists):
                for one in waiting:
                    assert self.list_of(one) is self.lists[priority]
