"""long_polling: the pulls of one queue that wait for a message (long polling, PullRequestHoldService).

Invariant: a held pull is in the list once and leaves it only by being woken or dropped.
"""

from libc.stdint cimport int64_t


cdef class Held:
    cdef object pull            # any object of the caller
    cdef int64_t offset         # the offset it waits for
    cdef object codes           # tags codes wanted, None for all
    cdef object matches         # function(properties) -> bool, or None
    cdef int64_t until          # ms


cdef class PullHold:
    cdef list held
