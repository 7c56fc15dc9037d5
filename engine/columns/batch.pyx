import numpy

from pyengine._engine.columns.arrow cimport ArrowTable, capsules_of, import_capsules
from pyengine._engine.columns.column_views cimport AMBIGUOUS, ColumnViews, view_table
from pyengine._engine.columns.numpy_arrays cimport import_arrays

from pyengine._engine.columns.data_frames import (
    described_column, expressions, has_rows, holds_infinity, is_foreign, query_hint, reason, with_decimals,
)
from pyengine.errors import UnreadableBatchError, UnsupportedColumnError, counted, unknown_arguments


cdef class Columns(ColumnViews):
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
        import_batch(self, batch, None)

    def __len__(self):
        return self.row_count

    def __repr__(self):
        return f"Columns({counted(self.row_count, 'row')}: {', '.join(self.names)})"

    def __reduce__(self):
        raise TypeError("Columns holds memory of other libraries: pickle the batch it was made from")


cdef ColumnViews columns_of(object batch, object names):
    cdef ColumnViews columns
    if isinstance(batch, ColumnViews):
        return <ColumnViews> batch
    columns = ColumnViews()
    import_batch(columns, batch, names)
    return columns


cdef int import_batch(ColumnViews self, object batch, object names) except -1:
    """Read the columns of these names; None: all."""
    if isinstance(batch, dict):
        return import_arrays(self, dict(batch), names)
    if hasattr(batch, "__arrow_c_array__") or hasattr(batch, "__arrow_c_stream__"):
        return import_frame(self, batch, frame_of(type(batch)), names)
    raise TypeError(
        "a batch is a list or tuple of messages, a PackedMessages, a dict of numpy arrays, or an object with"
        f" the Arrow PyCapsule interface, not {type(batch).__name__}{query_hint(batch)}"
    )


cdef enum Frame:              # an object whose columns are selected by name
    NO_FRAME
    CONVERTED                 # pandas: columns become Arrow one by one
    COMPUTED                  # DuckDB: columns are computed when they are read
    GIVEN                     # polars: columns are given as they are
    SELECTED                  # pyarrow: the same, with a method of another name


cdef enum:
    FEW = 16                  # unread columns that cost less to import than a selection


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


cdef int import_frame(ColumnViews self, object batch, int frame, object names) except -1:
    """The columns of these names (None: all) of an object with the Arrow interface; ``refused`` has those that its
    library cannot export."""
    cdef list offered, wanted
    if frame == NO_FRAME or frame >= GIVEN and (names is None or columns_in(batch, frame) <= len(names) + FEW):
        return import_whole(self, batch)
    try:
        offered = list(batch.column_names if frame == SELECTED else batch.columns)
    except BaseException as error:   # a relation whose table is gone
        raise unreadable(batch, error)
    wanted = offered if names is None else [name for name in offered if name in names]
    if len(set(wanted)) < len(wanted):
        self.refused = {name: AMBIGUOUS for name in wanted if wanted.count(name) > 1}
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


cdef int import_chosen(ColumnViews self, object batch, int frame, list names, bint every_column) except -1:
    """A frame's columns of these names; without a name, its number of rows."""
    if not names:
        import_arrays(self, {"": numpy.zeros(len(batch), numpy.int8)}, None)
        self.positions = {}
        return 0
    if every_column and (frame != COMPUTED or "UHUGEINT" not in batch.types):
        selected = batch
    elif frame == COMPUTED:
        selected = batch.project(", ".join(expressions(batch, names)))
    elif frame == SELECTED:
        selected = batch.select(names)
    else:
        selected = batch[names]
    return view_table(self, import_capsules(capsules_of(selected)))


cdef int import_singly(ColumnViews self, object batch, int frame, list names, object failure) except -1:
    """The columns that their library can export, found one by one after an export of all of them failed."""
    cdef list good = []
    cdef ColumnViews single = ColumnViews()
    cdef object original = batch
    self.refused = {} if self.refused is None else self.refused
    for name in names:
        problem = problem_alone(single, batch, frame, name)
        if problem is not None and frame == CONVERTED:
            exact = with_decimals(batch, name)
            if exact is not None and problem_alone(single, exact, frame, name) is None:
                batch, problem = exact, None
        if problem is None:
            good.append(name)
        else:
            cause = reason(problem)
            if frame == CONVERTED and holds_infinity(batch, name):
                cause = "it holds Decimal('Infinity'), which no column of decimals can"
            self.refused[name] = described_column(batch, name), f"{cause}; {REFUSED_HINT}"
    if len(good) == len(names) and batch is original or not good and not has_rows(batch):
        raise UnreadableBatchError(type(batch).__name__, reason(failure)) from failure
    self.forget()
    try:
        return import_chosen(self, batch, frame, good, False)
    except BaseException as error:
        if not is_foreign(error):
            raise
        name = next(iter(self.refused))
        raise UnsupportedColumnError(name, *self.refused[name]) from failure


cdef object problem_alone(ColumnViews single, object batch, int frame, object name):
    """What a library raises for one column, or None."""
    try:
        single.forget()
        import_chosen(single, batch, frame, [name], False)
    except BaseException as error:
        if not is_foreign(error):
            raise
        return error
    return None


cdef int import_whole(ColumnViews self, object batch) except -1:
    cdef ArrowTable table
    try:
        capsules = capsules_of(batch)
    except BaseException as error:
        raise unreadable(batch, error)
    try:
        table = import_capsules(capsules)
    except OSError as error:
        raise unreadable(batch, error)
    return view_table(self, table)


cdef object unreadable(object batch, object error):
    """The error to raise if a call into a batch's library raised one."""
    if not is_foreign(error):
        return error
    found = UnreadableBatchError(type(batch).__name__, reason(error))
    found.__cause__ = error
    return found


cdef str REFUSED_HINT = "make its values of one type, cast it, or leave it out of the selector"
