"""envelope: a message without its properties: the JMS headers, the body, and the fields that dispatch reads.

Invariants: priority is 0..9; destinations are qualified; the text of ``_broker_path`` is None if and only if it is.
"""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.java.value cimport Value


cpdef enum:
    SMALLEST_SIZE = 1024         # default of minimumMessageSize: bytes of a message without its body


cdef class Envelope:
    cdef bint _persistent
    cdef bint _group_first_for_consumer
    cdef int32_t _priority
    cdef int32_t _redelivery_counter
    cdef int32_t _group_sequence
    cdef int64_t _timestamp           # milliseconds since the epoch; 0 is unset; also expiration and the broker's times
    cdef int64_t _expiration
    cdef int64_t _broker_in_time
    cdef int64_t _broker_out_time
    cdef int64_t _size                # bytes; 0: computed when asked
    cdef public int64_t broker_sequence          # position in the broker's order of messages; 0 before the send

    cdef int _destination_hidden      # characters of the qualified name that JMSDestination leaves out
    cdef int _original_hidden
    cdef int _reply_hidden
    cdef object _destination          # qualified (queue://A) or None; so are the next two
    cdef object _original_destination
    cdef object _reply_to
    cdef object _type                 # str or None; so are all that follow
    cdef object _correlation_id
    cdef object _message_id
    cdef object _group_id
    cdef object _user_id
    cdef object _producer_transaction_id
    cdef object _broker_path          # tuple of str, or None
    cdef object _broker_path_text
    cdef object _connection_id        # of the producer; noLocal compares it
    cdef object _target_consumer_id
    cdef object _body                 # str, bytes, a Body or None
    cdef object _data_structure       # of an advisory: the command that it reports, or None
    cdef object _acknowledge          # of a received message: the callback that acknowledges it; not part of its value

    cdef int put_header(self, int code, object name, object value) except -1    # converts as the property setters do
    cdef int set_redelivered(self, bint redelivered) except -1
    cdef int copy_headers(self, Envelope envelope) except -1       # the body too
    cdef int64_t size_in_bytes(self, int64_t smallest) except -1   # smallest: minimumMessageSize
    cpdef received(self, destination, int64_t sequence, int64_t now)
    cdef inline int64_t expires(self) noexcept:                    # 0 or below: never
        return max(0, self._expiration)


# The value of a header by its code; JMSXUserID without its property. False: it is null. Borrows from the envelope.
cdef bint envelope_value(Envelope envelope, int header, Value* into) noexcept nogil

cdef str header_attribute(int code)           # the attribute of a header
