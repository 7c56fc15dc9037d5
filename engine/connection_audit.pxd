"""connection_audit: which messages a connection was given before (ConnectionAudit).

Invariants: at most 1000 audits, in the order of use, the longest unused first.
"""

from libc.stdint cimport int64_t


cdef class ConnectionAudit:
    cdef int64_t depth
    cdef int64_t producers
    cdef dict audits                          # scope -> Audit

    cdef bint seen(self, object scope, object message_id) except -1
    cdef int forget(self, object scope, object message_id) except -1
    cdef int remove(self, object scope) except -1
