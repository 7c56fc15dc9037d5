"""batch: a batch of messages imported once as columns, from numpy arrays, data frames, relations and tables."""

from pyengine._engine.columns.column_views cimport ColumnViews


cdef class Columns(ColumnViews):
    pass


# The batch itself if it was imported before; otherwise its columns of these names (None: all).
cdef ColumnViews columns_of(object batch, object names)
