"""message_ack: a consumer's acknowledgement of messages (command.MessageAck)."""


cpdef enum AckKind:
    INDIVIDUAL = 4              # the message only
    STANDARD = 2                # first..last in dispatch order
    DELIVERED = 0               # nothing is acknowledged; the prefetch window widens
    REDELIVERED = 3             # nothing is acknowledged; the client rolled first..last back once more
    POISON = 1                  # first..last are taken off the queue for the dead-letter queue
    EXPIRED = 6                 # first..last had expired at the client


cdef class MessageAck:
    cdef readonly object consumer_id
    cdef readonly object destination
    cdef readonly object kind
    cdef readonly object last_message_id
    cdef readonly object first_message_id
    cdef readonly int message_count
    cdef readonly object transaction_id
    cdef readonly object poison_cause
