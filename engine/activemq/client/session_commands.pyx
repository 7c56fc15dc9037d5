cimport cython

from libc.stdint cimport int64_t

from pyengine._engine.activemq.client.dispatch_channel cimport Backlog, Channel


@cython.freelist(256)
@cython.no_gc
cdef class MessageAck:
    """An acknowledgement of messages: ``message_count`` of them, first to last in dispatch order.

    kind: see AckKind. first_message_id: None if the client names only the last. transaction_id: the transaction it
    belongs to, or None. poison_cause: text that goes into the dead letter's ``dlqDeliveryFailureCause``.
    """

    def __init__(self, object consumer_id, object destination, object kind, object last_message_id,
                 object first_message_id=None, int message_count=1, object transaction_id=None, object poison_cause=""):
        self.consumer_id = consumer_id
        self.destination = destination
        self.kind = kind
        self.last_message_id = last_message_id
        self.first_message_id = first_message_id
        self.message_count = message_count
        self.transaction_id = transaction_id
        self.poison_cause = poison_cause

    def __repr__(self):
        return (f"MessageAck(consumer_id={self.consumer_id!r}, destination={self.destination!r}, kind={self.kind!r}, "
                f"last_message_id={self.last_message_id!r}, first_message_id={self.first_message_id!r}, "
                f"message_count={self.message_count}, transaction_id={self.transaction_id!r}, "
                f"poison_cause={self.poison_cause!r})")

    def __reduce__(self):
        return MessageAck, (self.consumer_id, self.destination, self.kind, self.last_message_id,
                            self.first_message_id, self.message_count, self.transaction_id, self.poison_cause)


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
            self.commands.append(Begin(self.transaction))
        return 0

    cpdef list take_commands(self):
        """The commands to carry out now, in order, or None; they are returned once."""
        cdef list commands = self.commands
        if not commands:
            return None
        self.commands = []
        return commands
