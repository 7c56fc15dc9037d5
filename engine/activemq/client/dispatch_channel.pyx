from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch

from collections import deque


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
