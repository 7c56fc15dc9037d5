"""message_dispatch: one message on its way from the broker to a consumer (command.MessageDispatch)."""

from libc.stdint cimport int64_t

from pyengine._engine.message.message cimport Message


cdef class MessageDispatch:
    cdef readonly object consumer_id
    cdef readonly object destination
    cdef readonly int redelivery_counter
    cdef Message source                       # what the client goes by; None: nothing came (see ``message``)
    cdef Message own                          # the consumer's copy; None: not made; ``source`` if that is its own
    cdef int counter                          # redeliveries as the client counts; this and the next two for a copy
    cdef bint group_first
    cdef int64_t out_time
    cdef object consumer                      # whose listener has it, or None: the collector looks at no dispatch
    cdef bint offered                         # its consumer has looked whether the connection was given it before
    cdef object cause                         # text of what the listener raised, or None

    cdef Message take(self)                   # the consumer's copy
    cdef int renew(self) except -1            # a redelivery was counted: what the user did to it is not seen again
