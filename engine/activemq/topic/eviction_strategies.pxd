"""eviction_strategies: limits of the messages that wait for a slow topic consumer, and the choice of victims.

A limit strategy gives a subscription its limit, once; an eviction strategy is asked with the oldest waiting messages
and names those to discard. Both are immutable and may be shared.
"""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.topic.message_references cimport MessageReferences


cdef class PendingLimit:
    cdef int64_t limit_for(self, int64_t prefetch) except? -2     # below 0: no limit


cdef class ConstantPendingLimit(PendingLimit):
    cdef readonly int64_t limit


cdef class PrefetchRatePendingLimit(PendingLimit):
    cdef readonly double multiplier


cdef int64_t pending_limit(object strategy, int64_t prefetch, int64_t consumer_limit) except? -2


cdef class Eviction:
    cdef readonly int64_t high_watermark    # above this number (or the limit) expired messages are looked for first
    cdef readonly bint expiry_check

    # Indexes into ``candidates`` (message slots) of the victims, in the order of their discard
    cdef list choose(self, MessageReferences messages, list candidates)


cdef class OldestEviction(Eviction):
    pass


cdef class LowestPriorityEviction(Eviction):
    pass


cdef class UniquePropertyEviction(Eviction):
    cdef readonly str property_name


cdef class CustomEviction(Eviction):
    cdef readonly object strategy


cdef object property_key(object body, str name)    # equal if and only if Java's values are; None: absent
