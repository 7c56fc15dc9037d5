"""previous_deliveries: what a consumer had when its transport was interrupted, by message id
(ActiveMQMessageConsumer.previouslyDeliveredMessages).

Invariants: the audit expects the ids of ``entries`` for this consumer, and no others.
"""

from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch


cdef class Previous:
    cdef MessageDispatch dispatch
    cdef bint redelivered            # it came again, or need not come again
    cdef bint prefetched_only        # its user never got it


cdef class PreviousDeliveries:
    cdef object consumer_id
    cdef object audit                # see Consumption
    cdef dict entries                # message id -> Previous
    cdef object transaction          # the id of the one that was open when the first came

    cdef int add(self, MessageDispatch dispatch, object transaction, bint redelivered, bint prefetched_only) except -1
    cdef Previous find(self, object message_id)
    cdef bint is_prefetched(self, object message_id)
    cdef bint comes_again(self, object message_id)               # whether it is one of them, which is noted
    cdef int delivered_again(self, object message_id) except -1
    cdef list missing(self)                                      # those that did not come again
    cdef int clear(self) except -1
