"""evaluation: a program evaluated over columns, chunk by chunk, without the GIL (except functions and XPATH).

Every answer is the one of the program's row evaluation on the same values; a header column that is null or not there
has the value of a freshly made message, as in a mapping.
"""

from pyengine._engine.columns.column_views cimport ColumnViews
from pyengine._engine.selector.program cimport Program


# on_error: "raise" (SelectorEvaluationError of the first row that raises) or "reject"; missing: "raise"
# (MissingColumnError for a column that is neither there nor a header) or "null".
# matches() as numpy bool:
cdef object mask_columns(Program program, ColumnViews columns, str on_error, str missing)
# matches() as numpy uint64, row r is bit r % 64 of word r // 64:
cdef object words_columns(Program program, ColumnViews columns, str on_error, str missing)
# evaluate() as numpy int8, 1, 0, -1 unknown, -2 raises:
cdef object truth_columns(Program program, ColumnViews columns, str missing)
