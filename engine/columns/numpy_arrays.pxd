"""numpy_arrays: one-dimensional numpy arrays as column views.

Numeric arrays are shared; strings are encoded and booleans packed. Invariant: ``keep`` of the views has each array that
they read.
"""

from pyengine._engine.columns.column_views cimport ColumnViews


# One batch of the arrays of these names; None: of all.
cdef int import_arrays(ColumnViews self, dict arrays, object names) except -1
