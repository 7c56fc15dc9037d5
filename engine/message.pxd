"""message: one message: every JMS header and the typed properties, in native slots that a program reads without the GIL.

Invariants: ``names[0 .. count)`` are owned, interned, exact, distinct str, none of them a name that a setter turns into a
header; ``values[i]`` borrows from ``owners[i]``, which is owned; priority is 0..9. A property that is None is absent.
"""

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t

from pyengine._engine.value cimport NULL_VALUE, Value


cdef class Message:
    cdef PyObject** names             # one block: names, owners, values
    cdef PyObject** owners
    cdef Value* values
    cdef int count
    cdef int capacity

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

    cdef object _destination          # qualified (queue://A) or None, as the other two
    cdef object _original_destination
    cdef object _reply_to
    cdef object _type                 # str or None, as all that follow
    cdef object _correlation_id
    cdef object _message_id
    cdef object _group_id
    cdef object _user_id
    cdef object _producer_transaction_id
    cdef object _broker_path          # tuple of str, or None
    cdef object _broker_path_text
    cdef object _connection_id        # of the producer; noLocal compares it
    cdef object _target_consumer_id
    cdef object _body                 # str, bytes or None

    cdef int find(self, PyObject* name) noexcept nogil
    cdef int put(self, object name, object value, bint objects) except -1
    cdef int remove_at(self, int index) except -1
    cdef int set_header(self, int code, object value) except -1
    cdef object header(self, int code)


# The value of a property or header; ``name`` must be interned, ``header`` is header_code(name). False: it is null.
# What ``into`` borrows lives as long as the message is not changed.
cdef bint header_value(Message message, PyObject* name, int header, Value* into) noexcept nogil

cdef inline bint slot_value(Message message, PyObject* name, int header, Value* into) noexcept nogil:
    cdef int index
    if header:
        return header_value(message, name, header, into)
    for index in range(message.count):
        if message.names[index] == name:
            into[0] = message.values[index]
            return True
    into.type = NULL_VALUE
    return False
