"""openwire_traffic: what the broker does for every message of an OpenWire connection (TransportConnection): take and
answer it, dispatch another one, and take its acknowledgement.
"""

from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch
from pyengine._engine.wire.data_structure cimport DataStructure
from pyengine._engine.wire.dispatched_messages cimport DispatchedMessages
from pyengine.activemq._runtime.region_broker cimport RegionBroker


cdef class ConsumerOfClient:
    cdef readonly DataStructure identity      # its id as commands have it
    cdef readonly object info                 # ConsumerInfo
    cdef readonly DispatchedMessages dispatched
    cdef object destination                   # of the last message that it was given
    cdef DataStructure written                # the same as commands have it


cdef class OpenWireTraffic:
    cdef public str connection_id             # empty until the ConnectionInfo
    cdef public bint connected
    cdef public bint closing
    cdef public bint _fault_tolerant          # the client fails over: what it sent may come again
    cdef readonly object _broker
    cdef RegionBroker region_broker           # the same, if it is one
    cdef object clock
    cdef readonly object _write
    cdef readonly dict _consumers             # consumer id -> ConsumerOfClient
    cdef readonly dict _producers             # producer id -> its window

    cdef int send(self, DataStructure command) except -1
    cdef int acknowledge(self, DataStructure command) except -1
    cdef int acknowledge_production(self, DataStructure command) except -1
