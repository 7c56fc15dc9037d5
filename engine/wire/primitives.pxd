"""primitives: the typed values that OpenWire writes for properties and for map and stream bodies (MarshallingSupport).

A value is a pair (type, value); type is one of TYPE_NAMES. A map is a list of (name, type, value), in the order of the
wire, which is that of a Java HashMap.
"""

from pyengine._engine.wire.byte_block cimport Block


cdef enum:                      # the byte that stands for a type
    NULL_, BOOLEAN, BYTE, CHAR, SHORT, INTEGER, LONG, DOUBLE, FLOAT, STRING, BYTE_ARRAY, MAP, LIST, BIG_STRING


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


cdef int add(Block *block, str kind, object value) except -1       # a value behind its type
cdef int add_name(Block *block, str name) except -1                # of an entry
cdef int add_text(Block *block, str value) except -1
cdef int add_double(Block *block, double real) except -1
cdef int add_float(Block *block, float single) except -1
