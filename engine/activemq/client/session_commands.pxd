"""session_commands: the shared state of a session's consumers: the open transaction and the commands to send.

Invariants: ``commands`` are in the order in which they must be carried out; ``synchronizations`` is empty outside a
transaction.
"""

from libc.stdint cimport int64_t

from pyengine._engine.activemq.client.dispatch_channel cimport Backlog, Channel


cpdef enum AcknowledgeMode:
    SESSION_TRANSACTED = 0
    AUTO_ACKNOWLEDGE = 1
    CLIENT_ACKNOWLEDGE = 2
    DUPS_OK_ACKNOWLEDGE = 3
    INDIVIDUAL_ACKNOWLEDGE = 4


cdef class Begin:
    cdef readonly object transaction_id


cdef class Pull:
    cdef readonly object consumer


cdef class Remove:
    cdef readonly object consumer
    cdef readonly object last_delivered


cdef class Later:
    cdef readonly object consumer
    cdef readonly int64_t delay
    cdef readonly list dispatches


cdef class Exchange:
    cdef readonly AcknowledgeMode mode
    cdef readonly object transaction          # id of the open one, or None
    cdef readonly bint rollback_only          # the open transaction may not be committed: the transport was interrupted
    cdef object prefix
    cdef int64_t number
    cdef list commands
    cdef Py_ssize_t ended                     # how many of them were called before the transaction's end
    cdef list synchronizations                # (Consumption, whether to close it) in the order in which they joined
    cdef Backlog backlog                      # messages that wait at its consumers
    cdef Channel queue                        # messages for listeners that were not offered to them yet
    cdef int listeners                        # consumers with a listener

    cdef int begin(self) except -1
    cpdef list take_commands(self)
