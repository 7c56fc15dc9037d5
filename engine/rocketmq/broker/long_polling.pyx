# cython: freethreading_compatible=True
"""Long polling: the waiting pulls that a new message or the passing of time wakes (spec rocketmq 10.1)."""

from libc.stdint cimport int32_t, int64_t

# How often waiting pulls are looked at, ms (PullRequestHoldService).
CHECK_INTERVAL = 5000


cdef class Held:
    """One waiting pull."""

    def __init__(self):
        raise TypeError("a Held is made by PullHold")


cdef class PullHold:
    """The waiting pulls of one queue. Not thread-safe: the caller holds a lock."""

    def __cinit__(self):
        self.held = []

    def __len__(self):
        return len(self.held)

    def hold(self, pull, int64_t offset, int64_t now, int64_t timeout, codes=None, matches=None):
        """Let a pull wait for ``offset``, ``timeout`` ms from ``now``.

        pull: any object; it is what waking returns. codes: the tags codes wanted, None for all. matches:
        function(properties) -> bool for what codes cannot say.
        """
        cdef Held held = Held.__new__(Held)
        held.pull, held.offset, held.codes, held.matches, held.until = pull, offset, codes, matches, now + timeout
        self.held.append(held)

    def arrived(self, int64_t max_offset, int64_t tags_code, properties, int64_t now):
        """A message came, the queue now ends at ``max_offset``. Returns the pulls to run again, in order of waiting.

        A pull whose subscription does not want the message goes on waiting.
        """
        cdef list woken = [], waiting = []
        cdef Held held
        for held in self.held:
            if now >= held.until or (
                max_offset > held.offset
                and (held.codes is None or <int32_t>tags_code in held.codes)
                and (held.matches is None or held.matches(properties))
            ):
                woken.append(held.pull)
            else:
                waiting.append(held)
        self.held = waiting
        return woken

    def check(self, int64_t max_offset, int64_t now):
        """The periodical look. Returns the pulls to run again: those whose time is up, and those whose offset is there
        by now, so that a pull learns of messages that it does not want."""
        cdef list woken = [], waiting = []
        cdef Held held
        for held in self.held:
            if now >= held.until or max_offset > held.offset:
                woken.append(held.pull)
            else:
                waiting.append(held)
        self.held = waiting
        return woken

    def drop_all(self):
        """Let go of every pull. Returns them in the order of waiting."""
        cdef list dropped = [(<Held>held).pull for held in self.held]
        self.held = []
        return dropped
