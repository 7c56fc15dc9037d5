"""agenda: what is due under virtual time: a binary heap by time, and among equal times in the order of planning.

Invariants: no entry is sooner than its parent, entry i's being (i - 1) / 2; orders of one agenda are given out once.
"""

from cython cimport final

from libc.stdint cimport int32_t, int64_t


cdef struct Due:
    int64_t time            # ns
    int64_t order
    int64_t number          # what, who, number and epoch are the owner's
    int64_t epoch
    int32_t who
    int32_t what


@final
cdef class Agenda:
    cdef Due* heap
    cdef readonly int64_t size
    cdef int64_t room
    cdef int64_t orders

    cdef int64_t next_time(self) noexcept               # of the first entry, 2**63 - 1 for none
    cdef int64_t take_order(self) noexcept
    cdef int plan(self, int64_t time, int what, int32_t who, int64_t number, int64_t epoch=*) except -1
    cdef int push(self, Due entry) except -1            # its order was taken before
    cdef Due pop(self) noexcept                         # of an agenda that is not empty
