"""packed_columns: the slots of packed messages as columns, for programs that read only slots of one Java type each.

Invariants: a slot's column is made when a program first reads it, and then stays; it holds what the slot holds, row by
row. A slot with values of several types, of a Character, a list or a map has no column.
"""

from pyengine._engine.columns.column_views cimport ColumnViews
from pyengine._engine.message.packed_messages cimport PackedMessages
from pyengine._engine.selector.program cimport Program


# ColumnViews of at least the slots that the program reads; None where one of them has no column or the program does not
# run over packed columns: in the dialect whose values are all text, and where functions or bodies are asked.
cdef ColumnViews packed_columns(PackedMessages messages, Program program)
