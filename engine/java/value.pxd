"""value: a property value with its Java type, from Python objects and to text; the memory of an evaluation.

Invariants: ``type`` determines which payload member is valid; STRING, CHAR, BIG_DECIMAL and DECIMAL borrow their bytes
(the owner outlives the Value); an integer payload lies in the range of its type; FLOAT holds the widened
double of a 32-bit float.

Text is compared as Java compares it, by UTF-16 code units: a surrogate pair in a UCS2 text is its code point, and a
CPython string may be passed as it is. UTF8 may hold lone surrogates as three bytes, never a pair.
"""

from cpython.object cimport PyObject
from libc.stdint cimport INT32_MAX, INT32_MIN, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef enum JavaType:
    NULL_VALUE = 0
    BOOLEAN = 1
    BYTE = 2
    SHORT = 3
    INT = 4
    LONG = 5
    FLOAT = 6
    DOUBLE = 7
    STRING = 8
    CHAR = 9
    BIG_DECIMAL = 10   # an integer beyond Long, literals only: equal and ordered only among its own kind
    OBJECT = 11        # list or map
    DECIMAL = 12       # an exact decimal number of a column; not a type of message properties


cdef enum Encoding:    # of STRING and CHAR; 1, 2, 4 are CPython's kinds
    UTF8 = 0
    LATIN1 = 1
    UCS2 = 2
    UCS4 = 4


cdef enum Truth:
    FALSE = 0
    TRUE = 1
    UNKNOWN = 2
    RAISED = 3         # the real classes throw here


cdef enum Relation:    # in the order of program's EQUAL_TO .. GREATER_OR_EQUAL
    IS_EQUAL = 0
    IS_LESS = 1
    IS_LESS_OR_EQUAL = 2
    IS_GREATER = 3
    IS_GREATER_OR_EQUAL = 4


cdef enum Calculation:  # in the order of program's SUM .. MODULO
    ADDITION = 0
    SUBTRACTION = 1
    MULTIPLICATION = 2
    DIVISION = 3
    REMAINDER_OF = 4


cdef enum Rules:       # how a comparison treats strings
    EXACT_TYPES = 0          # activemq: a string compares only with a string
    # activemq with convert_string_expressions: a string is converted to the other side's type; on failure: FALSE
    CONVERT_TEXT = 1
    CONVERT_OR_RAISE = 2     # rocketmq: the same; on failure: RAISED; two strings are ordered as doubles


cdef enum Place:       # of a string that is searched for
    ANYWHERE = 0
    AT_START = 1
    AT_END = 2


cdef enum Problem:     # why a rule RAISED
    NO_PROBLEM = 0
    DOUBLE_AGAINST_FLOAT
    ORDERED_OBJECT
    BOOLEAN_AGAINST_TEXT
    NOT_A_NUMBER_TEXT
    NOT_COMPUTABLE
    NEGATED_BYTE_OR_SHORT
    FUNCTION_FAILED        # the call raised a Python exception
    NO_MEMORY


cdef union Payload:
    int64_t integer    # BOOLEAN (0/1), BYTE .. LONG
    double real        # FLOAT, DOUBLE
    # STRING, CHAR: first code unit; BIG_DECIMAL: its decimal digits (UTF8), maybe after a minus sign; DECIMAL: a whole
    # number, two's complement, lowest byte first
    const void* text
    void* object       # OBJECT: borrowed PyObject*


cdef struct Value:
    uint8_t type       # JavaType
    uint8_t encoding   # Encoding; DECIMAL: bytes of its whole number
    uint16_t reserved  # of packed messages: 1 if the value is a header, which the dialect rocketmq does not have
    uint32_t length    # code units of the encoding (bytes for UTF8); DECIMAL: its scale, an int32
    Payload payload


cdef struct Scratch:   # owns allocations of an evaluation; all zero before use, freed by free_scratch
    void* blocks       # strings
    void* objects      # list of the Python objects that values borrow from, made on demand
    void* error        # the Python exception of FUNCTION_FAILED
    int problem        # Problem of the last RAISED


cdef extern from *:
    """
    #ifndef PYENGINE_QUICK
    #define PYENGINE_QUICK
    #include <stdint.h>
    #include <string.h>
    #if PY_VERSION_HEX >= 0x030C0000
    static inline int pyengine_small_integer(PyObject *o, int64_t *value) {
        if (!PyUnstable_Long_IsCompact((PyLongObject *)o)) return 0;
        *value = (int64_t)PyUnstable_Long_CompactValue((PyLongObject *)o);
        return 1;
    }
    #else
    static inline int pyengine_small_integer(PyObject *o, int64_t *value) {
        const digit *d = ((PyLongObject *)o)->ob_digit;
        const Py_ssize_t size = Py_SIZE(o);
        if (size >= -1 && size <= 1) {
            *value = size * (int64_t)d[0];
            return 1;
        }
        if (size != 2 && size != -2) return 0;
        *value = ((int64_t)d[1] << PyLong_SHIFT | d[0]) * (size >> 1);
        return 1;
    }
    #endif
    #define pyengine_ascii_data(text) ((const void *)((const PyASCIIObject *)(text) + 1))
    /* memcmp == 0, inlined for short strings, which are the common case. */
    static inline int pyengine_same_bytes(const void *left, const void *right, size_t count) {
        const unsigned char *a = (const unsigned char *)left, *b = (const unsigned char *)right;
        uint64_t a8, b8, a9, b9;
        uint32_t a4, b4, a5, b5;
        if (count >= 8) {
            if (count > 16) return memcmp(a, b, count) == 0;
            memcpy(&a8, a, 8), memcpy(&b8, b, 8), memcpy(&a9, a + count - 8, 8), memcpy(&b9, b + count - 8, 8);
            return ((a8 ^ b8) | (a9 ^ b9)) == 0;
        }
        if (count >= 4) {
            memcpy(&a4, a, 4), memcpy(&b4, b, 4), memcpy(&a5, a + count - 4, 4), memcpy(&b5, b + count - 4, 4);
            return ((a4 ^ b4) | (a5 ^ b5)) == 0;
        }
        return !count || (a[0] == b[0] && a[count >> 1] == b[count >> 1] && a[count - 1] == b[count - 1]);
    }
    #endif
    """
    bint pyengine_same_bytes(const void* left, const void* right, size_t count) noexcept nogil
    bint pyengine_small_integer(PyObject* source, int64_t* value) noexcept nogil
    bint is_exact_text "PyUnicode_CheckExact"(PyObject* source) noexcept nogil
    bint is_exact_integer "PyLong_CheckExact"(PyObject* source) noexcept nogil
    bint is_exact_real "PyFloat_CheckExact"(PyObject* source) noexcept nogil
    double real_of "PyFloat_AS_DOUBLE"(PyObject* source) noexcept nogil
    unsigned int text_kind "PyUnicode_KIND"(PyObject* source) noexcept nogil
    const void* text_data "PyUnicode_DATA"(PyObject* source) noexcept nogil
    Py_ssize_t text_length "PyUnicode_GET_LENGTH"(PyObject* source) noexcept nogil
    bint is_ascii "PyUnicode_IS_COMPACT_ASCII"(PyObject* source) noexcept nogil
    const void* ascii_data "pyengine_ascii_data"(PyObject* source) noexcept nogil
    PyObject* python_true "Py_True"
    PyObject* python_false "Py_False"
    PyObject* python_none "Py_None"


cdef inline bint quick_value(PyObject* source, Value* into) noexcept nogil:
    """read_value of an exact str, small int, float, bool or None; False for anything else. Needs the GIL held."""
    cdef int64_t integer
    if is_exact_text(source):
        into.type = STRING
        into.encoding = <uint8_t>text_kind(source)
        into.length = <uint32_t>text_length(source)
        into.payload.text = text_data(source)
        return into.encoding != UTF8 and text_length(source) <= INT32_MAX
    if is_exact_integer(source):
        if not pyengine_small_integer(source, &integer):
            return False
        into.type = INT if INT32_MIN <= integer <= INT32_MAX else LONG
        into.payload.integer = integer
        return True
    if is_exact_real(source):
        into.type = DOUBLE
        into.payload.real = real_of(source)
        return True
    if source == python_none:
        into.type = NULL_VALUE
        return True
    if source == python_true or source == python_false:
        into.type = BOOLEAN
        into.payload.integer = source == python_true
        return True
    return False


cdef inline bint quick_calculate(int calculation, const Value* left, const Value* right, Value* result) noexcept nogil:
    """The sum, difference or product of two ints, longs or doubles; False for anything else."""
    cdef uint64_t p, q
    cdef double x, y
    if calculation > MULTIPLICATION:
        return False
    if left.type == DOUBLE or right.type == DOUBLE:
        if left.type != DOUBLE and not INT <= left.type <= LONG:
            return False
        if right.type != DOUBLE and not INT <= right.type <= LONG:
            return False
        x = left.payload.real if left.type == DOUBLE else <double>left.payload.integer
        y = right.payload.real if right.type == DOUBLE else <double>right.payload.integer
        result.type = DOUBLE
        result.payload.real = x + y if calculation == ADDITION else x - y if calculation == SUBTRACTION else x * y
        return True
    if not INT <= left.type <= LONG or not INT <= right.type <= LONG:
        return False
    p = <uint64_t>left.payload.integer
    q = <uint64_t>right.payload.integer
    p = p + q if calculation == ADDITION else p - q if calculation == SUBTRACTION else p * q
    result.type = LONG if left.type == LONG or right.type == LONG else INT
    result.payload.integer = <int64_t>p if result.type == LONG else <int64_t><int32_t><uint32_t>p
    return True


cdef inline int fail(int problem, Scratch* scratch) noexcept nogil:
    scratch.problem = problem
    return RAISED


# A message's value with its Java type; INT or LONG by size for int, numpy scalars keep their width, None is NULL_VALUE.
# Borrows from ``source``. Raises InvalidMessageError(field) for anything a message property cannot be. list, tuple and
# dict are OBJECT only if ``objects``.
cdef int read_value(object source, Value* into, object field, bint objects) except -1
# The same for the dialect whose properties are all strings: other values become their Java text, owned by ``scratch``.
cdef int read_text(object source, Value* into, object field, Scratch* scratch) except -1
cdef object python_value(const Value* value)      # a Python object that read_value reads back to the same type

# String.valueOf: TRUE, or RAISED
cdef int text_of(const Value* value, Value* result, Scratch* scratch) noexcept nogil

cdef void* take_scratch(Scratch* scratch, size_t size) noexcept nogil           # NULL without memory
cdef void keep_object(Scratch* scratch, object kept) except *                   # until free_scratch
cdef void free_scratch(Scratch* scratch) noexcept nogil

# String.valueOf of a property value (or list or map) given as Python object
cpdef str java_text(object value)
cdef bint is_big(object value)                    # an int beyond Long
