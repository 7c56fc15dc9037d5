"""varint: numbers, texts and values as bytes, one after another, and back; and the sealed frame they travel in.

A number is written in groups of seven bits, the lowest first, signed ones folded so that small ones stay short. A frame
is magic, version, content, CRC-32 of all before it.

Invariants: a Reader never reads beyond its bytes; what does not fit raises SnapshotError with the position.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t


cdef class SharedValues:
    cdef dict numbers            # value -> number
    cdef list values

    cdef int64_t number_of(self, object value) except -1


cdef class Writer:
    cdef unsigned char* at
    cdef int64_t size
    cdef int64_t room
    cdef object save             # object -> bytes, for what is no plain value; None: refused
    cdef SharedValues shared     # where ``common`` puts values; None: here

    cdef int reserve(self, int64_t more) except -1
    cdef int count(self, uint64_t number) except -1          # 0 or more
    cdef int number(self, int64_t number) except -1          # signed
    cdef int text(self, str text) except -1
    cdef int raw(self, const void* source, int64_t size) except -1
    cdef int value(self, object value) except -1
    cdef int common(self, object value) except -1            # a value, hashable, that other snapshots have too
    cdef bytes content(self)


cdef class Reader:
    cdef bytes data
    cdef const unsigned char* at
    cdef int64_t position
    cdef int64_t end
    cdef object load             # bytes -> object
    cdef SharedValues shared     # what a number of ``common`` stands for

    cdef object refuse(self, str problem)
    cdef int64_t count(self, int64_t limit) except -1        # 0 .. limit
    cdef int64_t number(self) except? -1
    cdef const unsigned char* raw(self, int64_t size) except NULL
    cdef str text(self)
    cdef object value(self)


cdef uint32_t checksum(const unsigned char* data, int64_t size) noexcept nogil
