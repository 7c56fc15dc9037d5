"""sender: what a producer does for every message (ActiveMQMessageProducer.send, ActiveMQSession.send)."""

from pyengine._engine.message.message cimport Message
from pyengine._engine.activemq.client.message_producer cimport Outgoing
from pyengine.activemq._runtime.session_executor cimport SessionExecutor


cdef class Sender:
    cdef readonly SessionExecutor _session
    cdef readonly Outgoing _outgoing
    cdef readonly object producer_id
    cdef readonly object destination          # None: ``send`` says it
    cdef readonly object _connection_id
    cdef str text                             # the destination's
    cdef bint temporary                       # the destination is
    cdef public bint _closed                  # also once its session is closed, by whichever end
    cdef readonly bint _reports
    cdef readonly bint _reports_all
    cdef readonly bint _flat

    cdef int look_for_schedule(self, Message message) except -1
