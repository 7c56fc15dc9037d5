"""codec: numbers, strings and values to bytes and back, and the frame with a checksum around them.

A number is a varint (seven bits a byte, lowest first); a signed number is zigzag-encoded first. A frame is magic,
version, content, CRC-32 of everything before it.

Invariant: a Reader never reads beyond its bytes; bytes that do not fit raise SnapshotError with the position.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t


cdef class SharedValues:
    cdef dict numbers            # value -> number
    cdef list values
    # Scratch of a caller that writes one queue at a time: number -> handle in that queue, valid if ``turn`` is current.
    cdef int32_t* handle
    cdef int64_t* turn
    cdef int64_t room
    cdef int64_t turns

    cdef int widen(self, int64_t room) except -1
    cdef int64_t number_of(self, object value) except -1      # makes room for a note about it
    cdef void begin(self) noexcept                            # invalidates all notes
    cdef bint noted(self, int64_t number) noexcept
    cdef void note(self, int64_t number, int32_t handle) noexcept


cdef class Writer:
    cdef unsigned char* at
    cdef int64_t size
    cdef int64_t room
    cdef object save             # object -> bytes, for values that are not plain; None: they are refused
    cdef SharedValues shared     # where ``common`` puts values; None: into this writer

    cdef int reserve(self, int64_t more) except -1
    cdef int count(self, uint64_t number) except -1          # 0 or more
    cdef int number(self, int64_t number) except -1          # signed
    cdef int text(self, str text) except -1
    cdef int raw(self, const void* source, int64_t size) except -1
    cdef int value(self, object value) except -1
    cdef int common(self, object value) except -1            # a hashable value that other snapshots may share
    cdef int common_number(self, int64_t number) except -1    # the same, by its number in ``shared``
    cdef bytes content(self)


cdef class Reader:
    cdef bytes data
    cdef const unsigned char* at
    cdef int64_t position
    cdef int64_t end
    cdef object load             # bytes -> object
    cdef SharedValues shared     # the values of the numbers that ``common`` wrote

    cdef object refuse(self, str problem)
    cdef uint64_t digits(self) except? 1
    cdef int64_t count(self, int64_t limit) except -1        # 0 .. limit
    cdef int64_t number(self) except? -1
    cdef const unsigned char* raw(self, int64_t size) except NULL
    cdef str text(self)
    cdef object value(self)
    cdef int64_t common_number(self) except -2               # of the next value, -1 if it is not a shared one


cdef uint32_t checksum(const unsigned char* data, int64_t size) noexcept nogil
