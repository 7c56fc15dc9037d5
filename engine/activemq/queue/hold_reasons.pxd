"""hold_reasons: why a message waits: for the queue as a whole one reason, for each consumer the first check it fails.

Nothing is stored: a reason is computed from the state when asked for, with the checks of a round in a round's order.
"""

from libc.stdint cimport int32_t

from pyengine._engine.activemq.queue.rounds cimport Rounds


cpdef enum HoldReason:
    NOT_HELD = 0                # in flight
    NO_CONSUMER = 1             # the queue has no consumers except browsers
    START_DELAY = 2             # dispatch starts later
    PAUSED = 3
    NOT_PAGED_IN = 4            # behind the paging window
    TARGET_ABSENT = 5           # addressed to a consumer that does not exist
    SELECTOR = 6                # no consumer's selector matches
    NO_LOCAL = 7                # every consumer that could match refuses its own connection's messages
    EXCLUSIVE_NO_CREDIT = 8     # the elected consumer is full, the others stand by
    EXCLUSIVE_SELECTOR = 9      # the elected consumer's selector refuses, the others stand by
    EXCLUSIVE_NO_LOCAL = 10     # sent on the elected consumer's own connection
    EXCLUSIVE_GROUP = 11        # the group is owned by a consumer that stands by
    GROUP_NO_CREDIT = 12        # the owner of the group is full
    GROUP_SELECTOR = 13         # the owner's selector refuses
    GROUP_NO_LOCAL = 14         # sent on the owner's own connection
    NO_CREDIT = 15              # all matching consumers are full
    UNCOMMITTED = 16            # acknowledged in a transaction that is still open
    AWAITING_WAKEUP = 17        # the next round will dispatch it
    EXCLUSIVE_BROWSER = 18      # the elected consumer is a browser, which takes no messages
    STRANDED = 19               # a selector raised, and the broker's round lost it (selector_errors "exact")


cpdef enum Verdict:
    TAKES = 0
    BROWSES = 1
    FULL = 2
    PAUSES = 3
    NOT_TARGET = 4
    REFUSES_LOCAL = 5
    REFUSES = 6
    STANDS_BY = 7
    OWNED_BY_OTHER = 8


cdef int verdict_of(Rounds rounds, int32_t message, int32_t slot) except -1
cdef (int, int32_t) reason_of(Rounds rounds, int32_t message) noexcept    # reason, and the slot it is about or -1
cdef tuple held_arrays(Rounds rounds)
