import numpy

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t

from pyengine._engine.columns.column_views cimport (
    BOOLEAN_BITS, DOUBLE_VALUES, FLOAT_VALUES, HALF_VALUES, INT8_VALUES, INT16_VALUES, INT32_VALUES, INT64_VALUES,
    TEXT64, UINT8_VALUES, UINT16_VALUES, UINT32_VALUES, UINT64_VALUES, UNSUPPORTED, Column, ColumnViews,
    allocate_views, name_columns,
)
from pyengine._engine.java.strings cimport utf8_of
from pyengine._engine.java.value cimport BOOLEAN, BYTE, DOUBLE, FLOAT, INT, LONG, SHORT, STRING

from pyengine.errors import UnsupportedColumnError, counted


cdef int import_arrays(ColumnViews self, dict arrays, object names) except -1:
    cdef int i
    cdef Py_ssize_t length = -1
    for name, array in arrays.items():
        if not isinstance(name, str):
            raise TypeError(f"the name of a column is a str, not {name!r}")
        if not isinstance(array, numpy.ndarray):
            raise UnsupportedColumnError(name, type(array).__name__, "give a one-dimensional numpy array")
        if array.ndim != 1:
            raise UnsupportedColumnError(name, f"{array.dtype}{list(array.shape)}", "give a one-dimensional array")
        if length >= 0 and len(array) != length:
            raise UnsupportedColumnError(
                name, f"{array.dtype}[{len(array)}]", f"the columns before it have {counted(length, 'row')}"
            )
        length = len(array)
    self.column_count = <int> len(arrays)
    name_columns(self, list(arrays))
    self.batch_count = 1
    allocate_views(self)
    self.row_count = self.starts[1] = max(length, 0)
    for i, (name, array) in enumerate(arrays.items()):
        self.types.append(str(array.dtype))
        self.views[i].length = self.row_count
        self.views[i].storage = UNSUPPORTED
        if names is None or name in names:
            view_numpy(self, array, &self.views[i])
    return 0


cdef int view_numpy(ColumnViews self, object array, Column* column) except -1:
    cdef object present = None
    cdef str kind
    cdef int size
    if isinstance(array, numpy.ma.MaskedArray):
        present = ~numpy.ma.getmaskarray(array)
        array = array.data
    array = numpy.asarray(array)   # of a derived class, what it is and not what it says
    if len(array) != self.row_count or present is not None and len(present) != self.row_count:
        raise ValueError(f"an array or its mask has not the {counted(self.row_count, 'row')} that it tells of")
    kind = array.dtype.kind
    size = array.dtype.itemsize
    if kind in "OUT":
        return view_texts(self, array, present, column)
    array = numpy.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    column.storage = UNSUPPORTED
    if kind == "b":
        column.storage, column.java_type = BOOLEAN_BITS, BOOLEAN
        array = numpy.packbits(array, bitorder="little")
    elif kind == "i":
        column.storage = {1: INT8_VALUES, 2: INT16_VALUES, 4: INT32_VALUES, 8: INT64_VALUES}[size]
        column.java_type = {1: BYTE, 2: SHORT, 4: INT, 8: LONG}[size]
    elif kind == "u":
        column.storage = {1: UINT8_VALUES, 2: UINT16_VALUES, 4: UINT32_VALUES, 8: UINT64_VALUES}[size]
        column.java_type = {1: SHORT, 2: INT, 4: LONG, 8: LONG}[size]
    elif kind == "f" and size <= 8:
        column.storage = {2: HALF_VALUES, 4: FLOAT_VALUES, 8: DOUBLE_VALUES}[size]
        column.java_type = {2: FLOAT, 4: FLOAT, 8: DOUBLE}[size]
    elif kind in "mM":
        column.storage, column.java_type = INT64_VALUES, LONG
        timed = ~numpy.isnat(array)
        present = timed if present is None else present & timed
        array, column.unit = stored_times(array)
    if column.storage != UNSUPPORTED:
        column.values = memory_of(self, array)
        set_validity(self, column, present)
    return 0


cdef int view_texts(ColumnViews self, object array, object present, Column* column) except -1:
    """Text of an object, fixed-width or variable-width string array, encoded; None and masked rows are null."""
    cdef list parts = []
    cdef list cells = array.tolist() if array.dtype.kind != "T" else array.astype(object).tolist()
    cdef Py_ssize_t i, count = len(cells)
    cdef int64_t end = 0
    cdef int64_t* offsets = <int64_t*> self.own((count + 1) * sizeof(int64_t))
    cdef uint8_t* validity = <uint8_t*> self.own((count + 7) // 8)
    cdef bint nulls = False
    cdef list kept = present.tolist() if present is not None else None
    missing = getattr(array.dtype, "na_object", None)
    for i in range(count):
        cell = cells[i]
        if kept is not None and not kept[i]:
            nulls = True
        elif isinstance(cell, str):
            part = utf8_of(cell if type(cell) is str else str.__str__(cell))
            parts.append(part)
            end += len(part)
            validity[i >> 3] |= <uint8_t> (1 << (i & 7))
        elif cell is None or cell is missing:
            nulls = True
        else:
            column.storage = UNSUPPORTED
            self.types[len(self.types) - 1] = f"{array.dtype} with a {type(cell).__name__} in row {i}"
            return 0
        offsets[i + 1] = end
    column.storage, column.java_type = TEXT64, STRING
    column.values = offsets
    joined = b"".join(parts)
    self.keep.append(joined)
    column.data = <const uint8_t*> <const char*> joined
    column.data_end = end
    if nulls:
        column.validity = validity
    return 0


cdef const void* memory_of(ColumnViews self, object array) except? NULL:
    """First element of a contiguous array, which is kept."""
    cdef Py_buffer buffer
    PyObject_GetBuffer(array, &buffer, PyBUF_SIMPLE)
    cdef const void* memory = buffer.buf
    PyBuffer_Release(&buffer)
    self.keep.append(array)
    return memory


cdef int set_validity(ColumnViews self, Column* column, object present) except -1:
    """present: a numpy bool array, or None when every row has a value."""
    if present is not None and not present.all():
        column.validity = <const uint8_t*> memory_of(self, numpy.packbits(present, bitorder="little"))
    return 0


cdef tuple stored_times(object array):
    """Times of numpy as numbers, with the ``unit`` of a Column. Raises ValueError for the calendar's units of spans."""
    cdef str unit = numpy.datetime_data(array.dtype)[0]
    cdef int count = numpy.datetime_data(array.dtype)[1]
    if array.dtype.kind == "M" and unit in "YM":
        array, unit, count = array.astype("datetime64[D]"), "D", 1
    array = array.view(numpy.int64)
    factor = UNITS.get(unit)
    if factor is None:
        return array, 0             # NaT alone has no unit
    if factor > 0:
        return array, factor * count if factor * count > 1 else 0
    return array * count if count > 1 else array, factor


# numpy's units: milliseconds in one, or -units in a millisecond
cdef dict UNITS = {
    "W": 604_800_000, "D": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1, "us": -1000, "ns": -1_000_000,
    "ps": -1_000_000_000, "fs": -1_000_000_000_000, "as": -1_000_000_000_000_000,
}
