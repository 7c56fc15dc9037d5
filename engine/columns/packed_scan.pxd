"""packed_scan: one program asked of all packed messages, leaf by leaf over blocks of rows, without the GIL.

Where every slot that the program reads is a column (packed_columns) the columns answer.

Invariants: a row waits before one leaf at most, and only before leaves not asked yet; a leaf's memo of a string is its
answer on that string.
"""

from pyengine._engine.message.packed_messages cimport PackedMessages
from pyengine._engine.selector.program cimport Program


cdef enum Question:
    MATCH_OR_RAISE      # matches(): 1 or 0; the first row that raises ends it
    MATCH_OR_REJECT     # the same, 0 where it raises
    EVALUATE            # evaluate(): 1, 0, -1 unknown, -2 raises


# The answer of every row: numpy bool, or int8 of evaluate(). In the dialect rocketmq, which knows no headers, they are
# null, as in a Message.
cdef object packed_truth(Program program, PackedMessages messages, int question, bint missing_is_null)
