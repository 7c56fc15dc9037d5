"""arrow: a table of message properties imported once, through the Arrow C data interface or from numpy.

Nothing is copied but what Arrow cannot hand over as it is: numpy text, numpy booleans, columns of a struct that has
nulls of its own. Invariants: row r of a Column is element ``r`` of its typed buffer (array offsets are folded into the
pointers, bit offsets into ``validity_start`` and ``bit_start``); the Columns object owns or keeps alive every buffer;
each producer's release callback is called exactly once, by this object, when it goes.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from pyengine._engine.java.value cimport Value


cdef extern from *:
    """
    #ifndef ARROW_C_DATA_INTERFACE
    #define ARROW_C_DATA_INTERFACE
    #define ARROW_FLAG_DICTIONARY_ORDERED 1
    #define ARROW_FLAG_NULLABLE 2
    #define ARROW_FLAG_MAP_KEYS_SORTED 4
    struct ArrowSchema {
        const char* format;
        const char* name;
        const char* metadata;
        int64_t flags;
        int64_t n_children;
        struct ArrowSchema** children;
        struct ArrowSchema* dictionary;
        void (*release)(struct ArrowSchema*);
        void* private_data;
    };
    struct ArrowArray {
        int64_t length;
        int64_t null_count;
        int64_t offset;
        int64_t n_buffers;
        int64_t n_children;
        const void** buffers;
        struct ArrowArray** children;
        struct ArrowArray* dictionary;
        void (*release)(struct ArrowArray*);
        void* private_data;
    };
    #endif
    #ifndef ARROW_C_STREAM_INTERFACE
    #define ARROW_C_STREAM_INTERFACE
    struct ArrowArrayStream {
        int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
        int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
        const char* (*get_last_error)(struct ArrowArrayStream*);
        void (*release)(struct ArrowArrayStream*);
        void* private_data;
    };
    #endif
    """
    struct ArrowSchema:
        const char* format
        const char* name
        const char* metadata
        int64_t n_children
        ArrowSchema** children
        ArrowSchema* dictionary
        void (*release)(ArrowSchema*) noexcept nogil

    struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void** buffers
        ArrowArray** children
        ArrowArray* dictionary
        void (*release)(ArrowArray*) noexcept nogil

    struct ArrowArrayStream:
        int (*get_schema)(ArrowArrayStream*, ArrowSchema*) noexcept nogil
        int (*get_next)(ArrowArrayStream*, ArrowArray*) noexcept nogil
        const char* (*get_last_error)(ArrowArrayStream*) noexcept nogil
        void (*release)(ArrowArrayStream*) noexcept nogil


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


# Row ``row`` as a property value; NULL_VALUE where it is null. Text borrows from the column. Not for UNSUPPORTED.
cdef int width_of(int storage) noexcept nogil          # bytes of one element of a typed buffer
cdef void read_cell(const Column* column, int64_t row, Value* out) noexcept nogil


cdef class Columns:
    cdef readonly tuple names            # of the columns, in order
    cdef readonly tuple offered          # the names that the batch has; ``names`` are those of them that were imported
    cdef dict refused                    # name -> (type, why) of columns that their library could not hand over; None
    cdef readonly Py_ssize_t row_count
    cdef int column_count
    cdef Py_ssize_t batch_count
    cdef Column* views                   # [batch * column_count + column]
    cdef int64_t* starts                 # first row of each batch; starts[batch_count] == row_count
    cdef dict positions                  # name -> column; -1 when two columns have the name
    cdef list types                      # of each column, as the producer names it: for error messages
    cdef list keep                       # objects whose memory the views read
    cdef ArrowSchema schema
    cdef ArrowArray* arrays              # batch_count of them, moved out of their capsules
    cdef void** owned                    # memory made here
    cdef Py_ssize_t owned_count
    cdef int find(self, str name) except -2          # -1: no such column; UnsupportedColumnError: it cannot be read
    cdef void* own(self, size_t size) except NULL
    cdef void forget(self) noexcept


# The batch itself when it is imported already; else what it has of the columns of these names.
cdef Columns columns_of(object batch, object names)
# The exception for a row whose string could not be decoded, if one of the columns of these names has such a string
# there.
cdef object refused_text(Columns columns, object names, int64_t row)
