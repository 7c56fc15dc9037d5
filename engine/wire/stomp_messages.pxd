"""stomp_messages: the headers of STOMP frames to messages and back (LegacyFrameTranslator, FrameTranslator.Helper).

Invariants: ``orders`` keeps at most ORDERS orders of at most LONGEST characters each, for any names that
clients give their headers.
"""

from pyengine._engine.message.message cimport Message


cdef object shown_property(Message message, int index)
cdef tuple hash_order(tuple names, int capacity)
