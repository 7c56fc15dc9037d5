from libc.stdint cimport int64_t

from pyengine._engine.activemq.client.dispatch_channel cimport Backlog, Channel


cdef class Begin:
    """A transaction starts."""

    def __cinit__(self, object transaction_id):
        self.transaction_id = transaction_id


cdef class Pull:
    """A consumer without prefetch pulls again in place of a message that it could not deliver."""

    def __cinit__(self, object consumer):
        self.consumer = consumer


cdef class Remove:
    """Remove a consumer at the broker; last_delivered: id of the last message that was delivered, or None."""

    def __cinit__(self, object consumer, object last_delivered):
        self.consumer = consumer
        self.last_delivered = last_delivered


cdef class Later:
    """Call ``consumer.redeliver(dispatches)`` after ``delay`` ms."""

    def __cinit__(self, object consumer, int64_t delay, list dispatches):
        self.consumer = consumer
        self.delay = delay
        self.dispatches = dispatches


cdef class Exchange:
    """The shared part of a session; use SessionState.

    prefix: of its transactions' ids, unique in the broker.
    """

    def __cinit__(self, AcknowledgeMode mode, object prefix, *, bint prioritized=False, **unused):
        self.mode = mode
        self.prefix = prefix
        self.commands = []
        self.synchronizations = []
        self.backlog = Backlog()
        self.queue = Channel(prioritized, Backlog())

    cdef int begin(self) except -1:
        if self.transaction is None:
            self.number += 1
            self.transaction = f"{self.prefix}:{self.number}"
            self.synchronizations = []
            self.ended = 0
            self.rollback_only = False
            self.commands.append(Begin(self.transaction))
        return 0

    cpdef list take_commands(self):
        """The commands to carry out now, in order, or None; they are returned once."""
        cdef list commands = self.commands
        if not commands:
            return None
        self.commands = []
        return commands
