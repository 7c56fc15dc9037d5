"""openwire_messages: what OpenWire's structures mean: ids, destinations, messages (command.Message), and back.

What a structure means is kept with it, and a structure that a connection's cache gives again is read once.
"""

from libc.stdint cimport int64_t

from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch
from pyengine._engine.message.message cimport Message
from pyengine._engine.wire.data_structure cimport DataStructure


cpdef str id_text(DataStructure identity)
cpdef DataStructure message_id(str text, int64_t broker_sequence=*)
cpdef object destination_of(DataStructure structure)
cdef int address(Message message, DataStructure destination) except -1     # sets the message's destination
cpdef DataStructure structure_of(object data)
cpdef object reported(DataStructure structure)
cpdef Message message_of(DataStructure command)
cpdef bytes content_of(object body)
cpdef DataStructure command_of(Message message, object destination=*, DataStructure transaction_id=*)
cdef DataStructure dispatched(MessageDispatch dispatch)      # the message of a dispatch, as its consumer gets it
