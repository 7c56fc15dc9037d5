"""Messages that only a store has; see store_pager.pxd."""

from cython cimport final
from libc.stdint cimport int32_t, int64_t

from pyengine._engine.message.envelope cimport Envelope
from pyengine._engine.activemq.topic.ledger cimport Ledger
from pyengine._engine.activemq.topic.message_intake cimport STORED_HEADERS, MessageIntake


@final
cdef class StorePager:
    """Internal to a region of topics; see store_pager.pxd."""

    def __cinit__(self, Ledger ledger not None, MessageIntake intake not None, list topics not None, read,
                  int64_t page):
        self.messages = ledger.messages
        self.ledger = ledger
        self.intake = intake
        self.topics = topics
        self.read = read
        self.page = page

    cdef list load(self, object subscription, int32_t topic, tuple after, int64_t limit):
        cdef list changes = self.ledger.take_changes()
        self.ledger.busy = True
        try:
            return list(self.read(changes, subscription, topic, after, limit))
        finally:
            self.ledger.busy = False

    cdef int32_t bring(self, int32_t topic, object body, int64_t handle) except -1:
        cdef int32_t slot = self.messages.find(handle)
        if slot >= 0:                # another subscription holds it already
            self.messages.at[slot].holds += 1
            return slot
        connection = (<Envelope> body)._connection_id if isinstance(body, Envelope) else None
        return self.intake.accept(self.topics[topic], body, handle, STORED_HEADERS, connection, False)
