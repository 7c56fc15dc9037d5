"""message_consumer: one consumer of a client: waiting and delivered messages, and its acknowledgements.

Invariants: ``delivered`` holds messages in delivery order; none of them is in ``waiting``; it is empty for a consumer
that acknowledges in batches (dups-ok on a topic).
"""

from libc.stdint cimport int64_t

from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch
from pyengine._engine.activemq.client.dispatch_channel cimport Channel
from pyengine._engine.activemq.client.previous_deliveries cimport PreviousDeliveries
from pyengine._engine.activemq.commands.message_ack cimport MessageAck
from pyengine._engine.activemq.client.session_commands cimport Exchange
from pyengine._engine.message.message cimport Message
from pyengine._engine.activemq.client.redelivery_policy cimport RedeliveryPolicy


cpdef enum Offer:
    KEPT = 0                    # it waits, or needs no action
    LISTEN = 1                  # call the listener now; then ``listened`` or ``failed`` reports the outcome
    QUEUED = 2                  # it waits for the session's task (only SessionState.arrive)


cdef class Consumption:
    cdef readonly Exchange session
    cdef readonly object consumer_id
    cdef readonly object destination
    cdef public object owner
    cdef public object listener               # the user's callback, or None
    cdef public object available              # called when a message arrives for a consumer without a listener, or None
    cdef public int prefetch
    cdef readonly bint topic
    cdef readonly bint browser
    cdef readonly bint durable
    cdef readonly bint listening
    cdef readonly bint started
    cdef readonly bint ended                  # a browse is complete, or a pull found no message
    cdef readonly RedeliveryPolicy redelivery_policy
    cdef readonly bint optimize_acknowledge
    cdef int64_t optimize_acknowledge_time_out
    cdef int64_t optimized_at
    cdef bint transacted_individual_ack
    cdef bint non_blocking_redelivery
    cdef bint consumer_expiry_check
    cdef bint delay_by_counter
    cdef bint acknowledges_each
    cdef bint acknowledges_batch
    cdef Channel waiting
    cdef dict delivered                       # MessageDispatch -> None
    cdef object audit                         # of the connection, or None
    cdef PreviousDeliveries previous
    cdef int64_t delivered_count              # since the last DELIVERED ack; a rollback may take it below 0
    cdef int64_t optimized_count
    cdef int64_t redelivery_delay
    cdef bint pending                         # an ack is held back; the next five are its fields
    cdef object pending_kind
    cdef MessageDispatch pending_first
    cdef MessageDispatch pending_last
    cdef int64_t pending_count
    cdef object pending_transaction
    cdef bint registered                      # it takes part in the open transaction
    cdef bint removed
    cdef readonly int64_t last_sequence
    cdef readonly object last_delivered
    cdef readonly int64_t expired_messages

    cdef bint expired(self, MessageDispatch dispatch, int64_t now) except -1
    cdef bint exceeded(self, MessageDispatch dispatch) except -1
    cdef int say(self, object kind, MessageDispatch last, MessageDispatch first, int64_t count, object transaction,
                 object cause) except -1
    cdef int say_pending(self) except -1
    cdef int say_all(self, object kind, object transaction, object cause) except -1
    cdef int before(self, MessageDispatch dispatch) except -1
    cdef int after(self, MessageDispatch dispatch, bint expired, int64_t now) except -1
    cdef int later(self, MessageDispatch dispatch, object kind) except -1
    cdef int register(self) except -1
    cdef int poison(self, MessageDispatch dispatch, object cause) except -1
    cdef int acknowledge(self) except -1
    cdef bint repeated(self, MessageDispatch dispatch) except -1
    cdef Offer answer_repeated(self, MessageDispatch dispatch, int64_t now) except? <Offer>-1
    cdef int give_up(self, object dispatches) except -1
    cdef int interrupt(self) except -1
    cdef int check_redelivered(self) except -1
    cdef int forget(self, object message_id) except -1
    cdef int before_end(self) except -1
    cdef int commit(self) except -1
    cdef int redispatch(self) except -1
    cdef int turn(self, int64_t now) except -1
    cdef int dispose(self) except -1
    cdef int remove(self, object last_delivered) except -1
    cpdef Offer offer(self, MessageDispatch dispatch, int64_t now) except? <Offer>-1
    cdef Message handed(self, MessageDispatch dispatch, object acknowledge)
    cdef int64_t next_delay(self, object chance) except? -1
    cpdef rollback(self, int64_t now, object chance=*)
