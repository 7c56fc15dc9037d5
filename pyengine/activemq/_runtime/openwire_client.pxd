"""openwire_client: what a client does for every command that passes between it and a broker of the network.

CommandChannel: commands to bytes and back. OpenWireClient: sends, acknowledgements and messages to commands and back.
"""

from pyengine._engine.wire.data_structure cimport DataStructure
from pyengine._engine.wire.openwire cimport OpenWireReader, OpenWireWriter


cdef class CommandChannel:
    cdef public object listener               # ChannelListener
    cdef public object failure                # the reason, None while it works
    cdef public bint _closed
    cdef public bint _received, _written      # something was, since this was looked at
    cdef readonly object _link
    cdef readonly object _writing             # held while a command is written
    cdef readonly OpenWireReader _reader
    cdef readonly OpenWireWriter _writer


cdef class OpenWireClient:
    cdef public object _failed                # the reason, None while it works
    cdef public bint _closed
    cdef public object _sink                  # ConnectionSink, None before add_connection
    cdef readonly object _channel
    cdef readonly object _options
    cdef readonly object _clock
    cdef public dict _answers                 # command id -> Answer of a command that waits for it
    cdef readonly dict _consumers             # consumer id -> DispatchedMessages
    cdef readonly dict _foreign_ids           # text view of a message id -> its structure
    cdef public object _watching              # consumer id of the connection's own consumer of advisories
    cdef int commands                         # that were numbered
    cdef object acknowledged                  # the destination of the last acknowledgement
    cdef DataStructure written                # the same as commands have it

    cdef DataStructure numbered(self, DataStructure command, bint response_required)
    cdef int write(self, DataStructure command) except -1
    cdef int take(self, DataStructure command) except -1
    cdef DataStructure identity(self, str text)
