"""message: one message: its envelope and its typed properties, in slots that a program reads without the GIL.

Invariants: ``names[0 .. count)`` are owned, interned, exact, distinct str, none of them one that a setter turns into a
header; ``values[i]`` borrows from ``owners[i]``, which is owned (NULL for numbers). A property that is None is absent.
"""

from cpython.ref cimport PyObject

from pyengine._engine.message.envelope cimport Envelope, envelope_value
from pyengine._engine.message.header cimport USER_ID
from pyengine._engine.java.value cimport NULL_VALUE, Value


cdef class Message(Envelope):
    cdef PyObject** names             # one block: names, owners, values
    cdef PyObject** owners
    cdef Value* values
    cdef int count
    cdef int capacity

    cdef int put(self, object name, object value, bint objects) except -1
    cdef int put_number(self, str name, const Value* read) except -1     # BOOLEAN .. DOUBLE
    cdef int keep(self, object name, object value, const Value* read) except -1
    cdef object own(self, str name)                     # a property, not a header; None if absent
    cdef int remove_at(self, int index) except -1
    cdef int reserve(self, int wanted) except -1
    cdef int put_all(self, object properties) except -1
    cdef object scheduled(self, object name, object value)
    cdef int clear(self) except -1
    cdef int copy_into(self, Message message) except -1
    cdef int read(self, object name, Value* into) except -1
    cdef int converted(self, object name, int java_type, Value* into) except -1


cdef inline int place_of(Message message, PyObject* name) noexcept nogil:
    """The index of an interned name among the properties, or -1."""
    cdef int index
    for index in range(message.count):
        if message.names[index] == name:
            return index
    return -1


# The value of a property or header; ``name`` must be interned, ``header`` is header_code(name). False: it is null.
# What ``into`` borrows lives as long as the message is not changed.
cdef inline bint slot_value(Message message, PyObject* name, int header, Value* into) noexcept nogil:
    cdef int index
    if header and (envelope_value(message, header, into) or header != USER_ID):
        return into.type != NULL_VALUE
    index = place_of(message, name)
    if index >= 0:
        into[0] = message.values[index]
        return True
    into.type = NULL_VALUE
    return False
