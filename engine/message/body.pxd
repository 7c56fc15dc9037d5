"""body: bodies other than text and bytes: a map, a stream, or a serialized Java object, which stays bytes.

Invariants: every value keeps its Java type when it is read again; a stream's position is -1 while it is written.
"""

from libc.stdint cimport int64_t

from pyengine._engine.java.value cimport Value


cdef class Body:
    cdef Body duplicate(self)                        # equal and independent; a stream is read from its first value
    cdef int64_t marshalled_size(self) except -1     # bytes of the content as OpenWire marshals it


cdef class MapBody(Body):
    cdef dict entries_by_name                        # name -> value, in the order of the first set
    cdef bint shared                                 # the dict is another body's, too: it is copied before a change

    cdef int put(self, object name, object value) except -1
    cdef bint read(self, object name, int java_type, Value* into) except -1    # False: null
    cdef int64_t integer(self, object name, int java_type) except? -1          # 0 for null; also of a boolean
    cdef double real(self, object name, int java_type) except? -1


cdef class StreamBody(Body):
    cdef list items
    cdef bint shared
    cdef Py_ssize_t position                         # of the next value read; -1: it is written
    cdef Py_ssize_t read_of_bytes                    # bytes of the value at ``position`` that read_bytes has given

    cdef int append(self, object value) except -1
    cdef object peek(self)
    cdef str field(self)
    cdef int read(self, int java_type, Value* into) except -1
    cdef int64_t integer(self, int java_type) except? -1                       # also of a boolean
    cdef double real(self, int java_type) except? -1


cdef class ObjectBody(Body):
    cdef bytes _data
