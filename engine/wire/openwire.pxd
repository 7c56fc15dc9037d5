"""openwire: bytes to OpenWire's commands and back, as ActiveMQ's OpenWireFormat reads and writes them.

A frame is, big endian: int32 length of what follows; int8 type; the fields. Loose: each field takes whole bytes. Tight:
all booleans of the frame, and whether its fields are null, come first, as an array of bits. A cached field is a bit
(new), an int16 index and, if it is new, the structure; the caches of the two directions are independent.

Invariants of a reader: ``data`` points into the frame only while ``next_frame`` runs; 0 <= at <= end. Of a writer:
``sent_places`` maps what lies in ``sent`` to its index.
"""

from libc.stdint cimport int64_t

from pyengine._engine.wire.byte_block cimport Block
from pyengine._engine.wire.data_structure cimport DataStructure, JavaThrowable, StructureType
from pyengine._engine.wire.frame_reader cimport FrameReader


cdef class OpenWireReader(FrameReader):
    cdef readonly int version
    cdef readonly bint tight, cache, size_prefix, stack_trace
    cdef readonly int64_t max_frame_size
    cdef list received                  # the cache: structures, None for null and for what never came
    cdef const unsigned char *data
    cdef Py_ssize_t at, end             # offsets into ``data``, of the next byte and behind the last
    cdef const unsigned char *bits      # tight: the array of bits
    cdef Py_ssize_t bit, bit_count      # index of the next bit; how many the frame has, in whole bytes
    cdef int depth                      # structures around what is being read
    cdef StructureType kind             # what is being read, for the words of an error
    cdef int place

    cdef object refuse(self, str problem)
    cdef int need(self, Py_ssize_t size) except -1
    cdef DataStructure command(self)
    cdef DataStructure structure(self, int number, bytes allowed)
    cdef int begin_bits(self) except -1
    cdef bint flag(self) except -1
    cdef int64_t integer(self, int size) except? -1
    cdef int64_t long_integer(self) except? -1
    cdef str string(self)
    cdef str utf(self, Py_ssize_t size)
    cdef bytes octets(self, Py_ssize_t size)
    cdef bytes sequence(self)
    cdef DataStructure nested(self, bytes allowed)
    cdef DataStructure cached(self, bytes allowed)
    cdef list array(self, bytes allowed)
    cdef JavaThrowable throwable(self, int depth)


cdef class OpenWireWriter:
    cdef readonly int version
    cdef readonly bint tight, cache, size_prefix, stack_trace
    cdef readonly int64_t max_frame_size
    cdef list sent
    cdef dict sent_places
    cdef int next_place, next_eviction
    cdef Block out, bits
    cdef Py_ssize_t bit
    cdef StructureType kind
    cdef int place
    cdef int depth

    cdef object wrong(self, object value, str problem)
    cdef int flag(self, bint value) except -1
    cdef int structure(self, DataStructure value) except -1
    cdef int field(self, int form, object value, bytes allowed) except -1
    cdef int64_t whole(self, object value, int bits) except? -1
    cdef int long_integer(self, int64_t value) except -1
    cdef int string(self, object value) except -1
    cdef int sequence(self, object value) except -1
    cdef int nested(self, object value, bytes allowed) except -1
    cdef int cached(self, object value, bytes allowed) except -1
    cdef int remember(self, object value) except -2
    cdef int array(self, object value, bytes allowed) except -1
    cdef int throwable(self, object value, int depth) except -1
