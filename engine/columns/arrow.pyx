from decimal import Decimal

import numpy

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from libc.stdint cimport (
    INT64_MAX, UINT32_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)
from libc.stdlib cimport free
from libc.string cimport memcpy, strcmp

from cython cimport critical_section

from pyengine._engine.lowlevel.memory cimport allocate_zeros, resize, try_resize
from pyengine._engine.columns.kernels cimport kernel_float_of_half
from pyengine._engine.java.strings cimport utf8_of
from pyengine._engine.java.value cimport (
    BOOLEAN, BYTE, DECIMAL, DOUBLE, FLOAT, INT, LONG, NULL_VALUE, SHORT, STRING, UTF8, Value,
)
from pyengine.errors import (
    InvalidMessageError, PyengineError, UnreadableBatchError, UnsupportedColumnError, counted,
    unknown_arguments,
)


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


cdef object described(const ArrowSchema* schema):
    """An Arrow type as error messages name it."""
    cdef str text = (<bytes> schema.format).decode("utf-8", "replace")
    if schema.dictionary != NULL:
        return f"dictionary of {described(schema.dictionary)}"
    cdef object name = extension_of(schema).decode("utf-8", "replace") or FORMAT_NAMES.get(text.partition(":")[0])
    return f"Arrow format {text!r}" if not name else f"{name} (Arrow format {text!r})"


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
    If a batch is given to a Selector or to Subscriptions instead, only the columns that they name are read from a data
    frame, relation, table or dict.

    The column's type decides the Java type of the property: int8 byte, int16 short, int32 int, int64 long, uint8
    short, uint16 int, uint32 long, uint64 long (a value beyond raises InvalidMessageError when a selector reads it),
    float16 and float32 float, float64 double, bool boolean, text in any layout or dictionary String. Timestamps, dates,
    times and durations of any unit are a long of milliseconds, rounded down, moments since 1970 (without a zone: as if
    in UTC). Decimals of any width compare as the exact numbers that they are. A null is an absent property, in numpy a
    masked element, NaT, or None among text. An extension type counts as what it is stored as, except arrow.bool8, a
    boolean, and the periods of pandas, which are not read. Columns of other types may be there as long as no selector
    reads them, and so may those that their library cannot hand over (pandas: of mixed objects).

    Raises TypeError for other objects, UnsupportedColumnError for numpy arrays that cannot be columns,
    UnreadableBatchError if a library fails on the whole batch. Not picklable: it holds memory of other libraries;
    pickle the batch itself.
    """

    def __cinit__(self, object batch, **unknown):
        if unknown:
            raise unknown_arguments("Columns", unknown, ("batch",))
        self.positions = {}
        self.types = []
        self.keep = []
        if batch is not LATER:
            import_batch(self, batch, None)

    def __dealloc__(self):
        cdef Py_ssize_t i
        self.forget()
        for i in range(self.owned_count):
            free(self.owned[i])
        free(self.owned)

    def __len__(self):
        return self.row_count

    def __repr__(self):
        return f"Columns({counted(self.row_count, 'row')}: {', '.join(self.names)})"

    def __reduce__(self):
        raise TypeError("Columns holds memory of other libraries: pickle the batch it was made from")

    cdef void* own(self, size_t size) except NULL:
        """Zeroed memory that goes with this object."""
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
            raise UnsupportedColumnError(name, "ambiguous", TWICE_HINT)
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
        """Let go of what was imported."""
        cdef Py_ssize_t i
        if self.arrays != NULL:
            for i in range(self.batch_count):
                if self.arrays[i].release != NULL:
                    self.arrays[i].release(&self.arrays[i])
            free(self.arrays)
        if self.schema.release != NULL:
            self.schema.release(&self.schema)
        free(self.views)
        free(self.starts)
        self.arrays = NULL
        self.views = NULL
        self.starts = NULL
        self.schema.release = NULL
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
    longer = <ArrowArray*> try_resize(self.arrays, (self.batch_count + 1) * sizeof(ArrowArray))
    if longer == NULL:
        given.release(given)
        raise MemoryError()
    self.arrays = longer
    self.arrays[self.batch_count] = given[0]
    self.batch_count += 1
    given.release = NULL
    return 0


# In the place of a batch: the constructor of the object imports it.
cdef object LATER = object()


cdef int import_batch(Columns self, object batch, object names) except -1:
    """names: of the columns that are read; None: all."""
    if isinstance(batch, dict):
        return import_arrays(self, dict(batch), names)
    if hasattr(batch, "__arrow_c_array__") or hasattr(batch, "__arrow_c_stream__"):
        return import_frame(self, batch, frame_of(type(batch)), names)
    raise TypeError(
        "a batch is a list or tuple of messages, a PackedMessages, a dict of numpy arrays, or an object with"
        f" the Arrow PyCapsule interface, not {type(batch).__name__}{what_to_do(batch)}"
    )


cdef str what_to_do(object batch):
    """How rows are had of an object that stands for a query, by the library that it comes from; else nothing."""
    cdef str library = (type(batch).__module__ or "").partition(".")[0]
    if library == "pyspark":
        return "; pyengine.spark.where and match ask a DataFrame of Spark"
    for whose, call in WAYS_TO_ROWS:
        if library == whose and hasattr(batch, call):
            return f"; give {type(batch).__name__}.{call}()"
    return ""


cdef tuple WAYS_TO_ROWS = (
    ("polars", "collect"), ("pyarrow", "to_table"), ("dask", "compute"), ("dask_expr", "compute"),
    ("ibis", "to_pyarrow"), ("datasets", "to_polars"),
)


cdef enum Frame:              # whose columns can be chosen by name, and how
    NO_FRAME
    CONVERTED                 # pandas: columns become Arrow one by one
    COMPUTED                  # DuckDB: columns are computed when they are read
    GIVEN                     # polars: columns are given as they are
    SELECTED                  # pyarrow: the same, with a method of another name


cdef enum:
    FEW = 16                  # columns that are not named and cost less to import than to leave out


cdef dict FRAMES = {}         # type -> Frame


cdef int frame_of(object kind) except -1:
    cdef object known = FRAMES.get(kind)
    if known is None:
        known = NO_FRAME
        if hasattr(kind, "columns"):
            if hasattr(kind, "loc"):
                known = CONVERTED
            elif hasattr(kind, "project"):
                known = COMPUTED
            elif hasattr(kind, "get_column"):
                known = GIVEN
            elif hasattr(kind, "select") and hasattr(kind, "column_names"):
                known = SELECTED
        if len(FRAMES) < 64:
            FRAMES[kind] = known
    return known


cdef int import_frame(Columns self, object batch, int frame, object names) except -1:
    """The columns of these names (None: all) of an object with the Arrow interface; what its library cannot hand over
    is in ``refused``."""
    cdef list offered, wanted
    if frame == NO_FRAME or frame >= GIVEN and (names is None or columns_in(batch, frame) <= len(names) + FEW):
        hand_over(self, batch)
        return view_columns(self)
    try:
        offered = list(batch.column_names if frame == SELECTED else batch.columns)
    except BaseException as error:   # a relation whose table is gone
        raise unreadable(batch, error)
    wanted = offered if names is None else [name for name in offered if name in names]
    if len(set(wanted)) < len(wanted):
        self.refused = {name: ("ambiguous", TWICE_HINT) for name in wanted if wanted.count(name) > 1}
        wanted = [name for name in wanted if name not in self.refused]
    try:
        import_chosen(self, batch, frame, wanted, len(wanted) == len(offered))
    except BaseException as error:
        if not is_foreign(error):
            raise
        import_singly(self, batch, frame, wanted, error)
    self.offered = tuple([name for name in offered if isinstance(name, str)])
    return 0


cdef Py_ssize_t columns_in(object batch, int frame) except -1:
    return batch.num_columns if frame == SELECTED else batch.width


cdef int import_chosen(Columns self, object batch, int frame, list names, bint all_of_them) except -1:
    """A frame's columns of these names; without a name, its number of rows."""
    if not names:
        import_arrays(self, {"": numpy.zeros(len(batch), numpy.int8)}, None)
        self.positions = {}
        return 0
    if all_of_them and (frame != COMPUTED or "UHUGEINT" not in batch.types):
        import_capsules(self, batch)
    elif frame == COMPUTED:
        import_capsules(self, batch.project(", ".join(expressions(batch, names))))
    elif frame == SELECTED:
        import_capsules(self, batch.select(names))
    else:
        import_capsules(self, batch[names])
    return view_columns(self)


cdef list expressions(object relation, list names):
    """The columns of a relation in DuckDB's SQL. DuckDB exports a UHUGEINT from 2^127 on as a negative number; the cast
    of such a value fails."""
    cdef dict kinds = dict(zip(relation.columns, relation.types))
    cdef list written = []
    for name in names:
        column = '"' + name.replace('"', '""') + '"'
        written.append(f"CAST({column} AS HUGEINT) AS {column}" if kinds[name] == "UHUGEINT" else column)
    return written


cdef int import_singly(Columns self, object batch, int frame, list names, object failure) except -1:
    """The columns that can be handed over, each asked alone, after all of them together could not."""
    cdef list good = []
    cdef Columns alone = Columns(LATER)
    cdef object given = batch
    self.refused = {} if self.refused is None else self.refused
    for name in names:
        problem = problem_alone(alone, batch, frame, name)
        if problem is not None and frame == CONVERTED:
            exact = with_decimals(batch, name)
            if exact is not None and problem_alone(alone, exact, frame, name) is None:
                batch, problem = exact, None
        if problem is None:
            good.append(name)
        else:
            said = said_by(problem)
            if frame == CONVERTED and holds_infinity(batch, name):
                said = "it holds Decimal('Infinity'), which no column of decimals can"
            self.refused[name] = described_column(batch, name), f"{said}; {REFUSED_HINT}"
    if len(good) == len(names) and batch is given or not good and not has_rows(batch):
        raise UnreadableBatchError(type(batch).__name__, said_by(failure)) from failure
    self.forget()
    try:
        return import_chosen(self, batch, frame, good, False)
    except BaseException as error:
        if not is_foreign(error):
            raise
        name = next(iter(self.refused))
        raise UnsupportedColumnError(name, *self.refused[name]) from failure


cdef object problem_alone(Columns alone, object batch, int frame, object name):
    """What a library raises for one column, or None."""
    try:
        alone.forget()
        import_chosen(alone, batch, frame, [name], False)
    except BaseException as error:
        if not is_foreign(error):
            raise
        return error
    return None


cdef bint holds_infinity(object frame, object name):
    try:
        return any(isinstance(value, Decimal) and value.is_infinite() for value in frame[name].tolist())
    except Exception:   # of another library: the column's own problem is told
        return False


cdef object with_decimals(object frame, object name):
    """A pandas frame whose column of Decimals and whole numbers is one of Decimals: of those alone pyarrow finds the
    digits that all of them need. None for other columns."""
    cdef list values, absent
    cdef bint any_decimal = False
    try:
        values, absent = frame[name].tolist(), frame[name].isna().tolist()
        for place, value in enumerate(values):
            if absent[place]:
                values[place] = None
            elif isinstance(value, (int, numpy.integer)) and not isinstance(value, bool):
                values[place] = Decimal(int(value))
            elif isinstance(value, Decimal):
                any_decimal = True
            else:
                return None
        if not any_decimal:
            return None
        frame = frame.copy(deep=False)
        frame.isetitem(frame.columns.get_loc(name), values)
    except Exception:   # of another library: the column's own problem is reported
        return None
    return frame


cdef bint has_rows(object batch) except -1:
    """Whether the number of rows is known without their columns; otherwise the batch as a whole cannot be read."""
    try:
        len(batch)
    except BaseException as error:
        if not is_foreign(error):
            raise
        return False
    return True


cdef object unreadable(object batch, object error):
    """What to raise where a call into a batch's library raised."""
    if not is_foreign(error):
        return error
    found = UnreadableBatchError(type(batch).__name__, said_by(error))
    found.__cause__ = error
    return found


cdef bint is_foreign(object error):
    """Whether an error is another library's; a panic of polars is not an Exception."""
    return not isinstance(error, (PyengineError, MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit))


cdef str said_by(object error):
    """What a foreign library said, in a line."""
    cdef object said = error
    if error.args and isinstance(error.args[0], str) and not isinstance(error, UnicodeError):
        said = error.args[0]
    return " ".join(str(said).split())[:300] or type(error).__name__


cdef str TWICE_HINT = "two columns have this name; rename one"
cdef str REFUSED_HINT = "make its values of one type, cast it, or leave it out of the selector"


cdef int hand_over(Columns self, object batch) except -1:
    """Import an object as it is."""
    try:
        given = given_by(batch)
    except BaseException as error:
        raise unreadable(batch, error)
    try:
        import_given(self, given)
    except OSError as error:
        raise unreadable(batch, error)
    return 0


cdef str described_column(object batch, object name):
    """The type of a column as its library names it."""
    try:
        kinds = batch.dtypes
        return str(kinds[batch.columns.index(name) if isinstance(kinds, list) else name])
    except Exception:   # a message about an error must not raise another one
        return type(batch).__name__


cdef int import_capsules(Columns self, object batch) except -1:
    return import_given(self, given_by(batch))


cdef object given_by(object batch):
    """The capsules that a library hands over: of an array two, of a stream one."""
    return batch.__arrow_c_array__() if hasattr(batch, "__arrow_c_array__") else batch.__arrow_c_stream__()


cdef int import_given(Columns self, object given) except -1:
    """Raises OSError where a library fails."""
    if isinstance(given, tuple) and len(given) == 2:
        take_schema(self, <ArrowSchema*> held_by(given[0], b"arrow_schema"))
        return take_array(self, <ArrowArray*> held_by(given[1], b"arrow_array"))
    return import_stream(self, <ArrowArrayStream*> held_by(given, b"arrow_array_stream"))


cdef void* held_by(object capsule, const char* what) except NULL:
    if not PyCapsule_IsValid(capsule, what):
        raise OSError(f"instead of a capsule with an {what.decode()} its Arrow interface gives {capsule!r:.200}")
    return PyCapsule_GetPointer(capsule, what)


cdef int import_stream(Columns self, ArrowArrayStream* stream) except -1:
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
        (<bytes> schema.children[i].name).decode("utf-8", "surrogateescape") if schema.children[i].name != NULL else ""
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
    self.names = self.offered = tuple(names)
    self.positions = {}
    for i in range(self.column_count):
        self.positions[names[i]] = -1 if names[i] in self.positions else i
    return 0


cdef int allocate_views(Columns self) except -1:
    self.views = <Column*> allocate_zeros(self.batch_count * self.column_count + 1, sizeof(Column))
    self.starts = <int64_t*> allocate_zeros(self.batch_count + 1, sizeof(int64_t))
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


cdef int pack_booleans(Columns self, Column* column) except -1:
    """Booleans that are bytes as bits."""
    cdef int64_t row
    cdef const int8_t* given = <const int8_t*> column.values
    cdef uint8_t* bits = <uint8_t*> self.own((column.length + 7) // 8)
    for row in range(column.length):
        bits[row >> 3] |= <uint8_t> ((given[row] != 0) << (row & 7))
    column.values = bits
    column.storage, column.java_type = BOOLEAN_BITS, BOOLEAN
    return 0


cdef bytes extension_of(const ArrowSchema* schema):
    """The name of a column's extension type, or nothing."""
    cdef const char* read = schema.metadata
    cdef int32_t pairs, size
    cdef bytes key, value
    if read == NULL:
        return b""
    memcpy(&pairs, read, 4)
    read += 4
    for _ in range(pairs):
        memcpy(&size, read, 4)
        key, read = read[4 : 4 + size], read + 4 + size
        memcpy(&size, read, 4)
        value, read = read[4 : 4 + size], read + 4 + size
        if key == b"ARROW:extension:name":
            return value
    return b""


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


cdef int import_arrays(Columns self, dict arrays, object names) except -1:
    """Views of a dict of numpy arrays, of those with these names (None: of all): one batch."""
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
        array, column.unit = stored_times(array)
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


cdef int to_milliseconds(Columns self, str name, Column* column, int64_t first) except -1:
    """Times of any unit as milliseconds, rounded down. Raises InvalidMessageError for one that does not fit a long."""
    cdef int64_t unit = column.unit, row, stored
    cdef bint wide = column.storage == INT64_VALUES
    cdef const int64_t* longs = <const int64_t*> column.values
    cdef const int32_t* ints = <const int32_t*> column.values
    cdef int64_t* times
    if not unit:
        return 0                    # another thread was faster
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


cdef int check_range(Columns self, str name, Column* view, int64_t first) except -1:
    """That each row's value fits a Value: no unsigned integer beyond a Java long, no string longer than 2^32 - 1 bytes.

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
    """The size of a string that is not null, in a column with 64-bit offsets."""
    while column.storage == CODES:
        row = read_code(column, row)
        column = column.dictionary
    return (<const int64_t*> column.values)[row + 1] - (<const int64_t*> column.values)[row]


cdef str TYPE_HINT = (
    "a property is a boolean, an integer, a float or double, a decimal, text, or a timestamp, date, time or duration;"
    " cast the column or leave it out of the selector"
)


cdef Columns columns_of(object batch, object names):
    cdef Columns columns
    if type(batch) is Columns:
        return <Columns> batch
    columns = Columns(LATER)
    import_batch(columns, batch, names)
    return columns


cdef object refused_text(Columns columns, object names, int64_t row):
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
