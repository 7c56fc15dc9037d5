"""packed_messages: many messages as rows of native slots that own their text, so that programs run over them without
the GIL.

Invariants: ``values[row * width + slot]`` is names[slot] of that row; strings lie in ``texts``, equal ones once,
lists and maps in ``objects``; names are interned str, each once; nothing changes after construction except ``columns``,
which caches some slots as columns.
"""

from pyengine._engine.message.message cimport Message
from pyengine._engine.java.value cimport Value


cdef enum:
    TEXT_ALIGNMENT = 4


cdef class PackedMessages:
    cdef Value* values
    cdef char* texts
    cdef size_t text_bytes
    cdef readonly Py_ssize_t rows
    cdef readonly int width               # slots a row
    cdef readonly tuple names             # slot -> property or header name
    cdef readonly bint complete           # a name without a slot is absent, or a header with its value in a new message
    cdef frozenset fresh                  # headers that have their value in a new message in every row
    cdef list objects
    cdef tuple bodies                     # row -> body for XPATH; None: no row has one
    cdef dict slots                       # name -> slot
    cdef object columns                   # packed_columns: slots that have been made columns; None

    cdef int slot_of(self, str name) except -2                # -1: it has none
    cdef bint knows(self, str name, bint every_text)
    cdef int take_rows(self, list sources, bint objects) except -1
    cdef int fill(self, list sources, bint objects) except -1
    cdef int fill_mapping(self, Value* row, object source, list codes, bint objects, list held) except -1
    cdef int fill_message(self, Value* row, Message message, list codes) except -1
    cdef int keep_object(self, Value* value, str name) except -1
    cdef int own_texts(self) except -1
