"""recovery_policies: messages that a topic keeps for retroactive consumers (spec activemq 3.7).

Each policy holds the messages it keeps (see message_references.pxd: ``holds``). A policy object is a template; each
topic works with its own copy.

Invariant: each entry of ``kept`` has one hold.
"""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.topic.message_references cimport MessageReferences


cdef class Recovery:
    cdef MessageReferences messages
    cdef int keep(self, int32_t message, int64_t now) except -1
    cdef list kept(self)                                       # slots, in the order in which they are served
    cdef int tick(self, int64_t now) except -1
    cdef int clear(self) except -1
    cdef Recovery fresh(self, MessageReferences messages, int64_t now)


cdef class NoRecovery(Recovery):
    pass


cdef class FixedCountRecovery(Recovery):
    cdef readonly int64_t maximum_size
    cdef list ring
    cdef int64_t tail


cdef class FixedSizedRecovery(Recovery):
    cdef readonly int64_t maximum_size
    cdef object buffer
    cdef int64_t size


cdef class LastImageRecovery(Recovery):
    cdef int32_t image


cdef class TimedRecovery(Recovery):
    cdef readonly int64_t recover_duration
    cdef object buffer                       # (slot, time of the last tick before its arrival)
    cdef int64_t last_tick


cdef class QueryRecovery(Recovery):
    cdef readonly object query
    cdef readonly object validate_update


cdef bint wants_retain(object body) except -1       # the property ActiveMQ.Retain is true
cdef object without_retain(object body)             # the message for current consumers
cdef object retained(object body)                   # the message for later consumers; None: the body is empty
