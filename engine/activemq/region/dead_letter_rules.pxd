"""dead_letter_rules: whether and to which destination a message that could not be consumed is moved, or its delay until
it is sent again.

Invariants: an audit records every id that was checked, also those that another check refused; there are at most
DESTINATIONS audits of one strategy.
"""

from pyengine._engine.activemq.topic.message_audit cimport Audit


cdef class DeadLetterRule:
    cdef readonly str form               # "shared", "individual", "discarding"
    cdef readonly bint process_non_persistent
    cdef readonly bint process_expired
    cdef Audit audit                     # None: every message is new
    cdef dict apart                      # destination -> Audit, least recently asked first; None: all share ``audit``
    cdef dict names

    cdef Audit audit_of(self, str destination)
