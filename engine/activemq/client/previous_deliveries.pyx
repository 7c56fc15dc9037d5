"""What a consumer had when its transport was interrupted; see previous_deliveries.pxd."""

cimport cython

from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch


@cython.final
cdef class Previous:
    """One message."""

    def __reduce__(self):
        raise TypeError("it belongs to its consumer and cannot be pickled")


@cython.final
cdef class PreviousDeliveries:
    """The messages of one consumer."""

    def __cinit__(self, consumer_id, audit):
        self.consumer_id = consumer_id
        self.audit = audit
        self.entries = {}

    def __reduce__(self):
        raise TypeError("it belongs to its consumer and cannot be pickled")

    cdef int add(self, MessageDispatch dispatch, object transaction, bint redelivered, bint prefetched_only) except -1:
        cdef Previous entry = Previous.__new__(Previous)
        entry.dispatch = dispatch
        entry.redelivered = redelivered
        entry.prefetched_only = prefetched_only
        if not self.entries:
            self.transaction = transaction
        self.entries[dispatch.source._message_id] = entry
        if self.audit is not None:
            self.audit.expect(self.consumer_id, dispatch.source._message_id)
        return 0

    cdef Previous find(self, object message_id):
        return self.entries.get(message_id)

    cdef bint is_prefetched(self, object message_id):
        cdef Previous entry = self.find(message_id)
        return entry is not None and entry.prefetched_only

    cdef bint comes_again(self, object message_id):
        cdef Previous entry = self.find(message_id)
        if entry is None:
            return False
        entry.redelivered = True
        return True

    cdef int delivered_again(self, object message_id) except -1:
        cdef Previous entry = self.find(message_id)
        if entry is not None and entry.prefetched_only:
            entry.prefetched_only = False
            entry.redelivered = True
        return 0

    cdef list missing(self):
        cdef Previous entry
        cdef list found = []
        for each in self.entries.values():
            entry = each
            if not entry.redelivered:
                found.append(entry.dispatch)
        return found

    cdef int clear(self) except -1:
        if self.audit is not None and self.entries:
            self.audit.expect_nothing(self.consumer_id)
        self.entries.clear()
        return 0
