"""connection_audit: which messages a connection was given before (ConnectionAudit).

Invariants: at most 1000 audits, in the order of use, the longest unused first.
"""

from libc.stdint cimport int64_t

from pyengine._engine.audit cimport Audit


cdef class ConnectionAudit:
    cdef int64_t depth
    cdef int64_t producers
    cdef dict audits                          # scope -> Audit
    cdef object recent_scope                  # the last one in ``audits``, and its audit; None: look there
    cdef Audit recent
    cdef object producer                      # of the id asked about last

    cdef int64_t split(self, object message_id) except -2     # into ``producer`` and the number; -1: it is not so made
    cdef bint seen(self, object scope, object message_id) except -1
    cdef int forget(self, object scope, object message_id) except -1
    cdef int remove(self, object scope) except -1
