"""primitives: the typed values that OpenWire writes for properties and for map and stream bodies (MarshallingSupport).

A value is a pair (type, value); type is one of TYPE_NAMES. A map is a list of (name, type, value), in the order of the
wire, which is that of a Java HashMap.
"""


cdef class PrimitiveReader:
    cdef bytes data
    cdef Py_ssize_t at
    cdef int depth

    cdef int need(self, Py_ssize_t size) except -1
    cdef Py_ssize_t count(self, int size) except -1
    cdef str text(self, int size)
    cdef tuple primitive(self)
    cdef list map(self)
    cdef list sequence(self)
