"""arrivals: where what a broker dispatches to a connection goes: to the session of its consumer.

Sessions are known by weak references: a broker does not keep a connection alive that its user forgot.
"""

from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch
from pyengine.activemq._runtime.route cimport Route
from pyengine.activemq._runtime.session_executor cimport SessionExecutor


cdef class Arrivals(Route):
    cdef dict sessions                        # consumer id -> weak reference to its SessionExecutor

    cdef SessionExecutor find(self, object consumer_id)
    cdef bint keeps(self, MessageDispatch dispatch) except -1     # no listener of its session is called for it
