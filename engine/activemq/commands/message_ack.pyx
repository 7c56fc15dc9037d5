cimport cython


@cython.freelist(256)
@cython.no_gc
cdef class MessageAck:
    """A consumer's acknowledgement of messages: ``message_count`` of them, first to last in dispatch order.

    kind: see AckKind. first_message_id: None where the client names only the last. transaction_id: the transaction it
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
