import numpy

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport (
    UINT32_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport strcmp

from pyengine._engine.columns.kernels cimport kernel_float_of_half
from pyengine._engine.java.strings cimport utf8_of
from pyengine._engine.java.value cimport (
    BOOLEAN, BYTE, DOUBLE, FLOAT, INT, LONG, NULL_VALUE, SHORT, STRING, UTF8, Value,
)
from pyengine.errors import InvalidMessageError, UnsupportedColumnError, counted


cdef inline bint has_bit(const uint8_t* bitmap, int64_t place) noexcept nogil:
    return (bitmap[place >> 3] >> (place & 7)) & 1


cdef inline int64_t read_code(const Column* column, int64_t row) noexcept nogil:
    cdef int storage = column.code_storage
    if storage == INT32_VALUES:
        return (<const int32_t*> column.values)[row]
    if storage == INT8_VALUES:
        return (<const int8_t*> column.values)[row]
    if storage == INT16_VALUES:
        return (<const int16_t*> column.values)[row]
    if storage == UINT8_VALUES:
        return (<const uint8_t*> column.values)[row]
    if storage == UINT16_VALUES:
        return (<const uint16_t*> column.values)[row]
    if storage == UINT32_VALUES:
        return (<const uint32_t*> column.values)[row]
    return (<const int64_t*> column.values)[row]


cdef void read_cell(const Column* column, int64_t row, Value* out) noexcept nogil:
    cdef int storage
    cdef const int32_t* view
    cdef int64_t first
    out.type = NULL_VALUE
    if column.validity != NULL and not has_bit(column.validity, column.validity_start + row):
        return
    while column.storage == CODES:
        row = read_code(column, row)
        column = column.dictionary
        if row < 0 or row >= column.length:
            return
        if column.validity != NULL and not has_bit(column.validity, column.validity_start + row):
            return
    storage = column.storage
    out.type = column.java_type
    if storage == TEXT32:
        first = (<const int32_t*> column.values)[row]
        out.encoding = UTF8
        out.length = <uint32_t> ((<const int32_t*> column.values)[row + 1] - first)
        out.payload.text = column.data + first
    elif storage == TEXT64:
        first = (<const int64_t*> column.values)[row]
        out.encoding = UTF8
        out.length = <uint32_t> ((<const int64_t*> column.values)[row + 1] - first)
        out.payload.text = column.data + first
    elif storage == TEXT_VIEWS:
        view = (<const int32_t*> column.values) + 4 * row
        out.encoding = UTF8
        out.length = <uint32_t> view[0]
        out.payload.text = <const void*> (view + 1) if view[0] <= 12 else column.parts[view[2]] + view[3]
    elif storage == DOUBLE_VALUES:
        out.payload.real = (<const double*> column.values)[row]
    elif storage == FLOAT_VALUES:
        out.payload.real = (<const float*> column.values)[row]
    elif storage == HALF_VALUES:
        out.payload.real = kernel_float_of_half((<const uint16_t*> column.values)[row])
    elif storage == INT32_VALUES:
        out.payload.integer = (<const int32_t*> column.values)[row]
    elif storage == INT64_VALUES or storage == UINT64_VALUES:
        out.payload.integer = (<const int64_t*> column.values)[row]
    elif storage == BOOLEAN_BITS:
        out.payload.integer = has_bit(<const uint8_t*> column.values, column.bit_start + row)
    elif storage == INT8_VALUES:
        out.payload.integer = (<const int8_t*> column.values)[row]
    elif storage == INT16_VALUES:
        out.payload.integer = (<const int16_t*> column.values)[row]
    elif storage == UINT8_VALUES:
        out.payload.integer = (<const uint8_t*> column.values)[row]
    elif storage == UINT16_VALUES:
        out.payload.integer = (<const uint16_t*> column.values)[row]
    elif storage == UINT32_VALUES:
        out.payload.integer = (<const uint32_t*> column.values)[row]
    else:
        out.type = NULL_VALUE


cdef int width_of(int storage) noexcept nogil:
    if storage in (INT8_VALUES, UINT8_VALUES):
        return 1
    if storage in (INT16_VALUES, UINT16_VALUES, HALF_VALUES):
        return 2
    if storage in (INT32_VALUES, UINT32_VALUES, FLOAT_VALUES, TEXT32):
        return 4
    if storage == TEXT_VIEWS:
        return 16
    return 8


cdef void classify(const char* format, Column* column) noexcept:
    """Storage and Java type of an Arrow format string."""
    cdef char kind = format[0]
    cdef int storage = UNSUPPORTED, java_type = NULL_VALUE
    if kind != 0 and format[1] == 0:
        if kind == b"i":
            storage, java_type = INT32_VALUES, INT
        elif kind == b"l":
            storage, java_type = INT64_VALUES, LONG
        elif kind == b"g":
            storage, java_type = DOUBLE_VALUES, DOUBLE
        elif kind == b"u":
            storage, java_type = TEXT32, STRING
        elif kind == b"U":
            storage, java_type = TEXT64, STRING
        elif kind == b"b":
            storage, java_type = BOOLEAN_BITS, BOOLEAN
        elif kind == b"f":
            storage, java_type = FLOAT_VALUES, FLOAT
        elif kind == b"e":
            storage, java_type = HALF_VALUES, FLOAT
        elif kind == b"c":
            storage, java_type = INT8_VALUES, BYTE
        elif kind == b"s":
            storage, java_type = INT16_VALUES, SHORT
        elif kind == b"C":
            storage, java_type = UINT8_VALUES, SHORT
        elif kind == b"S":
            storage, java_type = UINT16_VALUES, INT
        elif kind == b"I":
            storage, java_type = UINT32_VALUES, LONG
        elif kind == b"L":
            storage, java_type = UINT64_VALUES, LONG
        elif kind == b"n":
            storage = NO_VALUES
    elif strcmp(format, b"vu") == 0:
        storage, java_type = TEXT_VIEWS, STRING
    elif kind == b"t":
        if strcmp(format, b"tdD") == 0 or strcmp(format, b"tts") == 0 or strcmp(format, b"ttm") == 0:
            storage, java_type = INT32_VALUES, LONG
        elif strcmp(format, b"tdm") == 0 or strcmp(format, b"ttu") == 0 or strcmp(format, b"ttn") == 0:
            storage, java_type = INT64_VALUES, LONG
        elif format[1] == b"s" or format[1] == b"D":
            storage, java_type = INT64_VALUES, LONG
    column.storage = storage
    column.java_type = java_type


cdef object described(const ArrowSchema* schema):
    """An Arrow type as error messages name it."""
    cdef str text = (<bytes> schema.format).decode("utf-8", "replace")
    if schema.dictionary != NULL:
        return f"dictionary of {described(schema.dictionary)}"
    cdef object name = FORMAT_NAMES.get(text.partition(":")[0])
    return f"Arrow format {text!r}" if name is None else f"{name} (Arrow format {text!r})"


cdef dict FORMAT_NAMES = {
    "z": "binary", "Z": "large_binary", "vz": "binary_view", "+l": "list", "+L": "large_list", "+s": "struct",
    "+m": "map", "+r": "run_end_encoded", "+vl": "list_view", "+vL": "large_list_view",
    "d": "decimal", "w": "fixed_size_binary", "+w": "fixed_size_list", "+ud": "dense_union", "+us": "sparse_union",
    "tiM": "month_interval", "tiD": "day_time_interval", "tin": "month_day_nano_interval",
}


cdef class Columns:
    """A batch of messages as columns, imported once and evaluated by any number of selectors.

    batch: any object with the Arrow PyCapsule interface (``__arrow_c_array__`` or ``__arrow_c_stream__``: a pyarrow
    RecordBatch or Table, a polars or pandas DataFrame, a DuckDB relation ...), or a dict of one-dimensional numpy
    arrays of one length. A stream is read to its end. Arrow memory is shared, not copied; so are numeric numpy arrays.

    The column's type decides the Java type of the property: int8 byte, int16 short, int32 int, int64 long, uint8
    short, uint16 int, uint32 long, uint64 long (a value beyond raises InvalidMessageError when a selector reads it),
    float16 and float32 float, float64 double, bool boolean, text in any layout or dictionary String; timestamps,
    dates, times and durations are the integer they are stored as, a long; a null is an absent property, in numpy a
    masked element, NaT, or None among text. An extension type counts as what it is stored as (arrow.bool8: a byte).
    Columns of other types may be there as long as no selector reads them.

    Raises TypeError for other objects, UnsupportedColumnError for numpy arrays that are no column. Not picklable: it
    holds memory of other libraries; pickle the batch itself.
    """

    def __cinit__(self, object batch):
        cdef bint streams
        self.positions = {}
        self.types = []
        self.keep = []
        if isinstance(batch, dict):
            import_arrays(self, dict(batch))
            return
        streams = hasattr(batch, "__arrow_c_stream__")
        if hasattr(batch, "__arrow_c_array__"):
            import_array(self, batch.__arrow_c_array__())
        elif streams:
            import_stream(self, batch.__arrow_c_stream__())
        else:
            raise TypeError(
                "a batch is a list or tuple of messages, a PackedMessages, a dict of numpy arrays, or an object with"
                f" the Arrow PyCapsule interface, not {type(batch).__name__}"
            )
        view_columns(self)

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.arrays != NULL:
            for i in range(self.batch_count):
                if self.arrays[i].release != NULL:
                    self.arrays[i].release(&self.arrays[i])
            free(self.arrays)
        if self.schema.release != NULL:
            self.schema.release(&self.schema)
        for i in range(self.owned_count):
            free(self.owned[i])
        free(self.owned)
        free(self.views)
        free(self.starts)

    def __len__(self):
        return self.row_count

    def __repr__(self):
        return f"Columns({counted(self.row_count, 'row')}: {', '.join(self.names)})"

    def __reduce__(self):
        raise TypeError("Columns holds memory of other libraries: pickle the batch it was made from")

    cdef void* own(self, size_t size) except NULL:
        """Zeroed memory that goes with this object."""
        cdef void** longer = <void**> realloc(self.owned, (self.owned_count + 1) * sizeof(void*))
        if longer == NULL:
            raise MemoryError()
        self.owned = longer
        cdef void* block = calloc(size if size else 1, 1)
        if block == NULL:
            raise MemoryError()
        self.owned[self.owned_count] = block
        self.owned_count += 1
        return block

    cdef int find(self, str name) except -2:
        """The column of a name, once it is known that its values can be read; -1 if there is none."""
        cdef object place = self.positions.get(name)
        cdef Py_ssize_t batch
        cdef int column
        if place is None:
            return -1
        if place < 0:
            raise UnsupportedColumnError(name, "ambiguous", "two columns have this name; rename one")
        column = place
        for batch in range(self.batch_count):
            view = &self.views[batch * self.column_count + column]
            if view.storage == UNSUPPORTED:
                raise UnsupportedColumnError(name, type_of(self, column), TYPE_HINT)
            check_range(self, name, view, self.starts[batch])
        return column

    def _check(self):
        """The invariants: names and starts fit the views, every view can be read from its first to its last row."""
        cdef Py_ssize_t batch
        cdef int column
        cdef Column* view
        cdef int64_t row
        cdef Value value
        assert len(self.names) == self.column_count
        assert self.starts[0] == 0 and self.starts[self.batch_count] == self.row_count
        for batch in range(self.batch_count):
            assert self.starts[batch] <= self.starts[batch + 1]
            for column in range(self.column_count):
                view = &self.views[batch * self.column_count + column]
                assert view.length == self.starts[batch + 1] - self.starts[batch]
                if view.storage == UNSUPPORTED:
                    continue
                for row in range(view.length):
                    read_cell(view, row, &value)
                    assert value.type == NULL_VALUE or value.type == view.java_type
                    if value.type == STRING and view.storage in (TEXT32, TEXT64):
                        assert view.data <= <const uint8_t*> value.payload.text
                        assert <const uint8_t*> value.payload.text + value.length <= view.data + view.data_end


cdef object released(str what):
    return ValueError(f"the Arrow {what} was read before: each is given away once")


cdef int take_schema(Columns self, ArrowSchema* given) except -1:
    if given.release == NULL:
        raise released("schema")
    self.schema = given[0]
    given.release = NULL
    return 0


cdef int take_array(Columns self, ArrowArray* given) except -1:
    """One more batch; the caller's struct is marked as moved."""
    cdef ArrowArray* longer
    if given.release == NULL:
        raise released("array")
    longer = <ArrowArray*> realloc(self.arrays, (self.batch_count + 1) * sizeof(ArrowArray))
    if longer == NULL:
        given.release(given)
        raise MemoryError()
    self.arrays = longer
    self.arrays[self.batch_count] = given[0]
    self.batch_count += 1
    given.release = NULL
    return 0


cdef int import_array(Columns self, tuple capsules) except -1:
    take_schema(self, <ArrowSchema*> PyCapsule_GetPointer(capsules[0], b"arrow_schema"))
    take_array(self, <ArrowArray*> PyCapsule_GetPointer(capsules[1], b"arrow_array"))
    return 0


cdef int import_stream(Columns self, object capsule) except -1:
    cdef ArrowArrayStream* stream = <ArrowArrayStream*> PyCapsule_GetPointer(capsule, b"arrow_array_stream")
    cdef ArrowSchema schema
    cdef ArrowArray array
    cdef int failed
    if stream.release == NULL:
        raise released("stream")
    schema.release = NULL
    with nogil:
        failed = stream.get_schema(stream, &schema)
    if failed:
        raise OSError(failed, stream_problem(self, stream))
    take_schema(self, &schema)
    while True:
        array.release = NULL
        with nogil:
            failed = stream.get_next(stream, &array)
        if failed:
            raise OSError(failed, stream_problem(self, stream))
        if array.release == NULL:
            return 0
        take_array(self, &array)


cdef str stream_problem(Columns self, ArrowArrayStream* stream):
    cdef const char* text = stream.get_last_error(stream)
    if text == NULL:
        return "the Arrow stream failed and gave no reason"
    return (<bytes> text).decode("utf-8", "replace")


cdef int view_columns(Columns self) except -1:
    """Views of every column of every batch."""
    cdef Py_ssize_t batch
    cdef int i
    cdef ArrowSchema* schema = &self.schema
    if schema.format == NULL or strcmp(schema.format, b"+s"):
        raise TypeError(
            f"a batch is a table of columns (an Arrow struct), not an array of {described(schema)};"
            " put it into a record batch under its property name"
        )
    self.column_count = <int> schema.n_children
    name_columns(self, [
        (<bytes> schema.children[i].name).decode("utf-8") if schema.children[i].name != NULL else ""
        for i in range(self.column_count)
    ])
    allocate_views(self)
    for batch in range(self.batch_count):
        self.starts[batch + 1] = self.starts[batch] + self.arrays[batch].length
        view_batch(self, &self.arrays[batch], self.views + batch * self.column_count)
    self.row_count = self.starts[self.batch_count]
    return 0


cdef int name_columns(Columns self, list names) except -1:
    cdef int i
    self.names = tuple(names)
    for i in range(self.column_count):
        self.positions[names[i]] = -1 if names[i] in self.positions else i
    return 0


cdef int allocate_views(Columns self) except -1:
    self.views = <Column*> calloc(self.batch_count * self.column_count + 1, sizeof(Column))
    self.starts = <int64_t*> calloc(self.batch_count + 1, sizeof(int64_t))
    if self.views == NULL or self.starts == NULL:
        raise MemoryError()
    return 0


cdef int view_batch(Columns self, ArrowArray* array, Column* views) except -1:
    cdef int i
    cdef const uint8_t* struct_validity = NULL
    if array.n_children != self.column_count:
        raise ValueError(f"an Arrow batch of {counted(array.n_children, 'column')} in a stream of {self.column_count}")
    if array.null_count != 0 and array.n_buffers > 0:
        struct_validity = <const uint8_t*> array.buffers[0]
    for i in range(self.column_count):
        if array.children[i].length < array.offset + array.length:
            raise ValueError(f"Arrow column {self.names[i]!r} is shorter than its batch")
        view_column(self, self.schema.children[i], array.children[i], array.offset, array.length, &views[i])
        if struct_validity != NULL:
            narrow(self, &views[i], struct_validity, array.offset)
    return 0


cdef int view_column(
    Columns self, ArrowSchema* schema, ArrowArray* array, int64_t first, int64_t length, Column* column
) except -1:
    """View rows ``first .. first + length`` of an array (beyond the array's own offset)."""
    cdef Column* values
    cdef int needed
    first += array.offset
    column.length = length
    classify(schema.format, column)
    if schema.dictionary != NULL:
        if array.dictionary == NULL or column.storage > UINT64_VALUES:
            column.storage = UNSUPPORTED
            return 0
        column.code_storage = column.storage
        values = <Column*> self.own(sizeof(Column))
        view_column(self, schema.dictionary, array.dictionary, 0, array.dictionary.length, values)
        column.dictionary = values
        column.java_type = values.java_type
        column.storage = UNSUPPORTED if values.storage == UNSUPPORTED else CODES
    if column.storage == NO_VALUES or column.storage == UNSUPPORTED:
        return 0
    needed = 3 if column.storage in (TEXT32, TEXT64, TEXT_VIEWS) else 2
    if array.n_buffers < needed or (length > 0 and array.buffers[1] == NULL):
        raise ValueError(f"an Arrow column of format {schema.format!r} lacks its buffers")
    if array.null_count != 0:
        column.validity = <const uint8_t*> array.buffers[0]
        column.validity_start = first
    if column.storage == BOOLEAN_BITS:
        column.values = array.buffers[1]
        column.bit_start = first
    elif column.storage == CODES:
        column.values = <const char*> array.buffers[1] + first * width_of(column.code_storage)
    else:
        column.values = <const char*> array.buffers[1] + first * width_of(column.storage)
    if column.storage == TEXT_VIEWS:
        column.parts = <const uint8_t**> (array.buffers + 2)
    elif column.storage in (TEXT32, TEXT64):
        column.data = <const uint8_t*> array.buffers[2]
        if length > 0:
            column.data_end = (
                (<const int32_t*> column.values)[length] if column.storage == TEXT32
                else (<const int64_t*> column.values)[length]
            )
    return 0


cdef int narrow(Columns self, Column* column, const uint8_t* validity, int64_t start) except -1:
    """Where the struct is null, so are its columns."""
    cdef int64_t row
    cdef uint8_t* both = <uint8_t*> self.own((column.length + 7) // 8)
    for row in range(column.length):
        if has_bit(validity, start + row) and (
            column.validity == NULL or has_bit(column.validity, column.validity_start + row)
        ):
            both[row >> 3] |= <uint8_t> (1 << (row & 7))
    column.validity = both
    column.validity_start = 0
    return 0


cdef int import_arrays(Columns self, dict arrays) except -1:
    """Views of a dict of numpy arrays: one batch."""
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
    for i, array in enumerate(arrays.values()):
        self.types.append(str(array.dtype))
        self.views[i].length = self.row_count
        view_numpy(self, array, &self.views[i])
    return 0


cdef const void* memory_of(Columns self, object array) except? NULL:
    """First element of a contiguous array, which is kept."""
    cdef Py_buffer buffer
    PyObject_GetBuffer(array, &buffer, PyBUF_SIMPLE)
    cdef const void* memory = buffer.buf
    PyBuffer_Release(&buffer)
    self.keep.append(array)
    return memory


cdef int set_validity(Columns self, Column* column, object present) except -1:
    """present: a numpy bool array, or None when every row has a value."""
    if present is not None and not present.all():
        column.validity = <const uint8_t*> memory_of(self, numpy.packbits(present, bitorder="little"))
    return 0


cdef int view_numpy(Columns self, object array, Column* column) except -1:
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
        array = array.view(numpy.int64)
    if column.storage != UNSUPPORTED:
        column.values = memory_of(self, array)
        set_validity(self, column, present)
    return 0


cdef int view_texts(Columns self, object array, object present, Column* column) except -1:
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


cdef str type_of(Columns self, int column):
    return self.types[column] if self.types else described(self.schema.children[column])


cdef int check_range(Columns self, str name, Column* view, int64_t first) except -1:
    """That each row's value fits a Value: no unsigned integer beyond a Java long, no text beyond 32 bits of bytes.

    What a dictionary holds unused does not count.
    """
    cdef Column* values = view
    cdef int64_t row
    cdef Value value
    cdef bint fits = True
    while values.storage == CODES:
        values = values.dictionary
    if view.in_range:
        return 0
    if values.storage == UINT64_VALUES:
        for row in range(values.length):
            fits = fits and (<const int64_t*> values.values)[row] >= 0
    elif values.storage == TEXT64 and values.length:
        fits = values.data_end - (<const int64_t*> values.values)[0] <= UINT32_MAX
    if not fits:
        for row in range(view.length):
            read_cell(view, row, &value)
            if value.type == STRING and bytes_of_text(view, row) > UINT32_MAX:
                raise InvalidMessageError(
                    name, "...", f"row {first + row} has a text of {bytes_of_text(view, row)} bytes",
                    hint="a text has at most 4294967295 bytes of UTF-8",
                )
            if value.type == LONG and value.payload.integer < 0:
                raise InvalidMessageError(
                    name, <uint64_t> value.payload.integer, f"row {first + row} does not fit a Java long",
                    hint="a property is at most 9223372036854775807",
                )
    view.in_range = 1
    return 0


cdef int64_t bytes_of_text(const Column* column, int64_t row) noexcept nogil:
    """The size of a text that is there, in a column of large texts."""
    while column.storage == CODES:
        row = read_code(column, row)
        column = column.dictionary
    return (<const int64_t*> column.values)[row + 1] - (<const int64_t*> column.values)[row]


cdef str TYPE_HINT = (
    "a property is a boolean, an integer, a float or double, text, or a timestamp, date, time or duration;"
    " cast the column or leave it out of the selector"
)


cdef Columns columns_of(object batch):
    return <Columns> batch if type(batch) is Columns else Columns(batch)
