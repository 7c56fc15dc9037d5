"""codec: numbers, texts and values as bytes, one after another, and back; and the sealed frame they travel in.

A number is written in groups of seven bits, the lowest first, signed ones folded so that small ones stay short. A frame
is magic, version, content, CRC-32 of all before it.

Invariants: a Reader never reads beyond its bytes; what does not fit raises SnapshotError with the position.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t


cdef class SharedValues:
    cdef dict numbers            # value -> number
    cdef list values
    # Notes of whoever looks at one queue at a time: number -> handle there, if ``turn`` is the current one.
    cdef int32_t* handle
    cdef int64_t* turn
    cdef int64_t room
    cdef int64_t turns

    cdef int widen(self, int64_t room) except -1
    cdef int64_t number_of(self, object value) except -1      # there is room for a note about it
    cdef void begin(self) noexcept                            # no number has a note
    cdef bint noted(self, int64_t number) noexcept
    cdef void note(self, int64_t number, int32_t handle) noexcept


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
    cdef int common_number(self, int64_t number) except -1    # the same, by its number in ``shared``
    cdef bytes content(self)


cdef class Reader:
    cdef bytes data
    cdef const unsigned char* at
    cdef int64_t position
    cdef int64_t end
    cdef object load             # bytes -> object
    cdef SharedValues shared     # what a number of ``common`` stands for

    cdef object refuse(self, str problem)
    cdef uint64_t digits(self) except? 1
    cdef int64_t count(self, int64_t limit) except -1        # 0 .. limit
    cdef int64_t number(self) except? -1
    cdef const unsigned char* raw(self, int64_t size) except NULL
    cdef str text(self)
    cdef object value(self)
    cdef int64_t common_number(self) except -2               # if such a value comes next, its number, else -1


cdef uint32_t checksum(const unsigned char* data, int64_t size) noexcept nogil
