from libc.stdint cimport (
    INT64_MAX, UINT32_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)
from libc.stdlib cimport free
from libc.string cimport strcmp

from cython cimport critical_section

from pyengine._engine.columns.arrow cimport ArrowArray, ArrowSchema, ArrowTable, described, extension_of
from pyengine._engine.columns.kernels cimport kernel_float_of_half
from pyengine._engine.java.value cimport (
    BOOLEAN, BYTE, DECIMAL, DOUBLE, FLOAT, INT, LONG, NULL_VALUE, SHORT, STRING, UTF8, Value,
)
from pyengine._engine.lowlevel.memory cimport allocate_zeros, resize

from pyengine.errors import InvalidMessageError, UnsupportedColumnError, counted


cdef tuple AMBIGUOUS = ("ambiguous", "two columns have this name; rename one")


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
    elif storage == DECIMAL_VALUES:
        out.encoding = column.width
        out.length = <uint32_t> column.scale
        out.payload.text = <const char*> column.values + row * column.width
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


cdef class ColumnViews:
    """Internal to a batch; see column_views.pxd."""

    def __cinit__(self):
        self.positions = {}
        self.types = []
        self.keep = []

    def __dealloc__(self):
        cdef Py_ssize_t i
        free(self.views)
        free(self.starts)
        for i in range(self.owned_count):
            free(self.owned[i])
        free(self.owned)

    cdef void* own(self, size_t size) except NULL:
        """Zeroed memory that is freed with this object."""
        self.owned = <void**> resize(self.owned, (self.owned_count + 1) * sizeof(void*))
        cdef void* block = allocate_zeros(size if size else 1, 1)
        self.owned[self.owned_count] = block
        self.owned_count += 1
        return block

    cdef int find(self, str name) except -2:
        """The column of a name, once it is known that its values can be read; -1 if there is none."""
        cdef object place = self.positions.get(name)
        cdef Py_ssize_t batch
        cdef int column
        if place is None:
            if self.refused is not None and name in self.refused:
                raise UnsupportedColumnError(name, *self.refused[name])
            return -1
        if place < 0:
            raise UnsupportedColumnError(name, *AMBIGUOUS)
        column = place
        for batch in range(self.batch_count):
            view = &self.views[batch * self.column_count + column]
            if view.storage == UNSUPPORTED:
                raise UnsupportedColumnError(name, type_of(self, column), TYPE_HINT)
            while view.storage == CODES:
                view = view.dictionary
            if view.unit:
                with critical_section(self):
                    to_milliseconds(self, name, view, self.starts[batch])
            check_range(self, name, &self.views[batch * self.column_count + column], self.starts[batch])
        return column

    cdef void forget(self) noexcept:
        """Release what was imported, except the memory that this object allocated."""
        free(self.views)
        free(self.starts)
        self.views = NULL
        self.starts = NULL
        self.table = None
        self.batch_count = 0

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


cdef int name_columns(ColumnViews self, list names) except -1:
    cdef int i
    self.names = self.offered = tuple(names)
    self.positions = {}
    for i in range(self.column_count):
        self.positions[names[i]] = -1 if names[i] in self.positions else i
    return 0


cdef int allocate_views(ColumnViews self) except -1:
    self.views = <Column*> allocate_zeros(self.batch_count * self.column_count + 1, sizeof(Column))
    self.starts = <int64_t*> allocate_zeros(self.batch_count + 1, sizeof(int64_t))
    return 0


cdef int view_table(ColumnViews self, ArrowTable table) except -1:
    cdef Py_ssize_t batch
    cdef int i
    cdef ArrowSchema* schema = &table.schema
    if schema.format == NULL or strcmp(schema.format, b"+s"):
        raise TypeError(
            f"a batch is a table of columns (an Arrow struct), not an array of {described(schema)};"
            " put it into a record batch under its property name"
        )
    self.table = table
    self.batch_count = table.batch_count
    self.column_count = <int> schema.n_children
    name_columns(self, [
        (<bytes> schema.children[i].name).decode("utf-8", "surrogateescape") if schema.children[i].name != NULL else ""
        for i in range(self.column_count)
    ])
    allocate_views(self)
    for batch in range(self.batch_count):
        self.starts[batch + 1] = self.starts[batch] + table.arrays[batch].length
        view_batch(self, &table.arrays[batch], self.views + batch * self.column_count)
    self.row_count = self.starts[self.batch_count]
    return 0


cdef int view_batch(ColumnViews self, ArrowArray* array, Column* views) except -1:
    cdef int i
    cdef const uint8_t* struct_validity = NULL
    if array.n_children != self.column_count:
        raise ValueError(f"an Arrow batch of {counted(array.n_children, 'column')} in a stream of {self.column_count}")
    if array.null_count != 0 and array.n_buffers > 0:
        struct_validity = <const uint8_t*> array.buffers[0]
    for i in range(self.column_count):
        if array.children[i].length < array.offset + array.length:
            raise ValueError(f"Arrow column {self.names[i]!r} is shorter than its batch")
        view_column(self, self.table.schema.children[i], array.children[i], array.offset, array.length, &views[i])
        if struct_validity != NULL:
            narrow(self, &views[i], struct_validity, array.offset)
    return 0


cdef int view_column(
    ColumnViews self, ArrowSchema* schema, ArrowArray* array, int64_t first, int64_t length, Column* column
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
    extension = extension_of(schema)
    if extension == b"pandas.period":  # a number of weeks, months, quarters, ...
        column.storage = UNSUPPORTED
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
    if extension == b"arrow.bool8" and column.storage == INT8_VALUES:
        pack_booleans(self, column)
    return 0


cdef int pack_booleans(ColumnViews self, Column* column) except -1:
    """Booleans that are bytes as bits."""
    cdef int64_t row
    cdef const int8_t* given = <const int8_t*> column.values
    cdef uint8_t* bits = <uint8_t*> self.own((column.length + 7) // 8)
    for row in range(column.length):
        bits[row >> 3] |= <uint8_t> ((given[row] != 0) << (row & 7))
    column.values = bits
    column.storage, column.java_type = BOOLEAN_BITS, BOOLEAN
    return 0


cdef int narrow(ColumnViews self, Column* column, const uint8_t* validity, int64_t start) except -1:
    """A row where the struct is null is null in its columns."""
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
    elif strcmp(format, b"tdD") == 0:
        storage, java_type, column.unit = INT32_VALUES, LONG, 86_400_000
    elif strcmp(format, b"tdm") == 0:
        storage, java_type = INT64_VALUES, LONG
    elif kind == b"t" and (format[1] == b"t" or format[1] == b"s" or format[1] == b"D"):
        storage, java_type = INT64_VALUES, LONG
        if format[1] == b"t" and (format[2] == b"s" or format[2] == b"m"):
            storage = INT32_VALUES
        column.unit = (
            1000 if format[2] == b"s" else -1000 if format[2] == b"u" else -1_000_000 if format[2] == b"n" else 0
        )
    elif kind == b"d" and format[1] == b":" or strcmp(format, b"_pli128") == 0:   # polars' own
        storage, java_type = DECIMAL_VALUES, DECIMAL
        column.width = 16
        if kind == b"d":
            read_decimal(format, column)
    column.storage = storage
    column.java_type = java_type


cdef void read_decimal(const char* format, Column* column) noexcept:
    """Scale and width of d:precision,scale or d:precision,scale,bits."""
    cdef list numbers = (<bytes> format)[2:].split(b",")
    column.scale = int(numbers[1])
    if len(numbers) > 2:
        column.width = <uint8_t> (<int> int(numbers[2]) // 8)


cdef str type_of(ColumnViews self, int column):
    return self.types[column] if self.types else described(self.table.schema.children[column])


cdef int to_milliseconds(ColumnViews self, str name, Column* column, int64_t first) except -1:
    """Times of any unit as milliseconds, rounded down. Raises InvalidMessageError for one that does not fit a long."""
    cdef int64_t unit = column.unit, row, stored
    cdef bint wide = column.storage == INT64_VALUES
    cdef const int64_t* longs = <const int64_t*> column.values
    cdef const int32_t* ints = <const int32_t*> column.values
    cdef int64_t* times
    if not unit:
        return 0                    # another thread has converted it
    times = <int64_t*> self.own(column.length * sizeof(int64_t))
    if unit < 0:
        unit = -unit
        for row in range(column.length):
            stored = longs[row]
            times[row] = stored // unit
    else:
        for row in range(column.length):
            stored = longs[row] if wide else ints[row]
            if not -(INT64_MAX // unit) <= stored <= INT64_MAX // unit:
                if column.validity == NULL or has_bit(column.validity, column.validity_start + row):
                    raise InvalidMessageError(
                        name, stored, f"row {first + row} leads to no moment that fits a long",
                        hint="a time is a long of milliseconds",
                    )
                stored = 0
            times[row] = stored * unit
    column.values = times
    column.storage = INT64_VALUES
    column.unit = 0
    return 0


cdef int check_range(ColumnViews self, str name, Column* view, int64_t first) except -1:
    """Check that each row fits a Value: no unsigned integer above a Java long, no string longer than 2^32 - 1 bytes.

    Values of a dictionary that no row has are not checked.
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
    """The size of a string that is not null, in a column with 64-bit offsets."""
    while column.storage == CODES:
        row = read_code(column, row)
        column = column.dictionary
    return (<const int64_t*> column.values)[row + 1] - (<const int64_t*> column.values)[row]


cdef str TYPE_HINT = (
    "a property is a boolean, an integer, a float or double, a decimal, text, or a timestamp, date, time or duration;"
    " cast the column or leave it out of the selector"
)


cdef object refused_text(ColumnViews columns, object names, int64_t row):
    cdef Py_ssize_t batch = 0
    cdef Value value
    while row >= columns.starts[batch + 1]:
        batch += 1
    for name in names:
        place = columns.positions.get(name, -1)
        if place < 0:
            continue
        read_cell(
            &columns.views[batch * columns.column_count + <int> place], row - columns.starts[batch], &value
        )
        if value.type == STRING:
            text = (<const char*> value.payload.text)[: value.length]
            try:
                text.decode("utf-8", "surrogatepass")
            except UnicodeDecodeError as error:
                return InvalidMessageError(
                    name, text[:200], f"row {row} is not UTF-8: {error.reason} at byte {error.start}",
                    hint="write the column in UTF-8, or cast it to binary and leave it out of the selector",
                )
    return None
