"""column_views: columns of message properties as typed buffers, in batches of rows.

Nothing is copied except what Arrow cannot share as it is: booleans that are bytes, columns of a struct with nulls of
its own, times that are not milliseconds. Invariants: row r of a Column is element ``r`` of its typed buffer (array
offsets are folded into the pointers, bit offsets into ``validity_start`` and ``bit_start``); a ColumnViews owns or
keeps alive every buffer.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from pyengine._engine.columns.arrow cimport ArrowTable
from pyengine._engine.java.value cimport Value


cdef enum Storage:       # how the values lie in memory; the first ten in the order of the kernels
    INT8_VALUES = 0
    INT16_VALUES = 1
    INT32_VALUES = 2
    INT64_VALUES = 3
    UINT8_VALUES = 4
    UINT16_VALUES = 5
    UINT32_VALUES = 6
    UINT64_VALUES = 7
    FLOAT_VALUES = 8
    DOUBLE_VALUES = 9
    HALF_VALUES = 10
    BOOLEAN_BITS = 11    # a bitmap
    NO_VALUES = 12       # every row is null
    TEXT32 = 13          # 32-bit offsets into bytes, UTF-8
    TEXT64 = 14          # 64-bit offsets
    TEXT_VIEWS = 15      # 16-byte views, UTF-8
    CODES = 16           # codes into ``dictionary``
    DECIMAL_VALUES = 17  # whole numbers of ``width`` bytes, two's complement, ``scale`` digits of them behind the point
    UNSUPPORTED = 18     # no message property has such values


cdef struct Column:
    uint8_t storage              # Storage
    uint8_t java_type            # JavaType of a value that is not null; of CODES, of the dictionary's values
    uint8_t code_storage         # CODES: INT8_VALUES .. UINT64_VALUES
    uint8_t in_range             # 1 once every row is known to fit a Value (check_range)
    uint8_t width                # DECIMAL_VALUES: bytes of a value
    int32_t scale                # DECIMAL_VALUES: digits behind the point; below 0, zeros before it
    int64_t unit                 # of times: milliseconds in a stored unit, or -units in a millisecond; 0 once converted
    int64_t length
    const uint8_t* validity      # bit 1: a value; NULL: every row has one
    int64_t validity_start       # bit of row 0
    const void* values           # value, code, offset or view of row 0; BOOLEAN_BITS: the bitmap
    int64_t bit_start            # BOOLEAN_BITS: bit of row 0
    const uint8_t* data          # TEXT32, TEXT64: the bytes
    int64_t data_end             # TEXT32, TEXT64: bytes of ``data`` that may be read
    const uint8_t** parts        # TEXT_VIEWS: the data buffers
    Column* dictionary           # CODES


cdef int width_of(int storage) noexcept nogil         # bytes of one element of a typed buffer
# Row ``row`` as a property value; NULL_VALUE if it is null. Strings borrow from the column. Not for UNSUPPORTED.
cdef void read_cell(const Column* column, int64_t row, Value* out) noexcept nogil


cdef class ColumnViews:
    cdef readonly tuple names            # of the columns, in order
    cdef readonly tuple offered          # the names that the batch has; ``names`` are those of them that were imported
    cdef dict refused                    # name -> (type, reason) of columns that their library cannot export; None
    cdef readonly Py_ssize_t row_count
    cdef int column_count
    cdef Py_ssize_t batch_count
    cdef Column* views                   # [batch * column_count + column]
    cdef int64_t* starts                 # first row of each batch; starts[batch_count] == row_count
    cdef dict positions                  # name -> column; -1 when two columns have the name
    cdef list types                      # of each column, as numpy names it, for error messages; empty: of ``table``
    cdef list keep                       # objects whose memory the views read
    cdef ArrowTable table                # whose memory the views read; None: arrays of numpy, or packed messages
    cdef void** owned                    # blocks of memory allocated here
    cdef Py_ssize_t owned_count
    cdef int find(self, str name) except -2          # -1: no such column; UnsupportedColumnError: it cannot be read
    cdef void* own(self, size_t size) except NULL
    cdef void forget(self) noexcept


cdef tuple AMBIGUOUS                  # type and hint of columns that share a name

cdef int name_columns(ColumnViews self, list names) except -1
cdef int allocate_views(ColumnViews self) except -1
cdef int view_table(ColumnViews self, ArrowTable table) except -1      # views of every column of every batch
# The exception for a row whose string could not be decoded, if one of the columns of these names has such a string
# there.
cdef object refused_text(ColumnViews columns, object names, int64_t row)
