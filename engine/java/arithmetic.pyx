# cython: freethreading_compatible=True, cdivision=True
"""See arithmetic.pxd."""

from libc.math cimport fmod
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcmp, memcpy

from pyengine._engine.java.numbers cimport WIDEST_WHOLE, parse_double, whole_digits, write_long
from pyengine._engine.java.strings cimport count_units, write_units
from pyengine._engine.java.value cimport (
    ADDITION, BIG_DECIMAL, BYTE, DECIMAL, DIVISION, DOUBLE, FLOAT, INT, LATIN1, LONG, NEGATED_BYTE_OR_SHORT, NO_MEMORY,
    NOT_COMPUTABLE, NULL_VALUE, RAISED, SHORT, STRING, TRUE, UCS2, Scratch, Value, fail, quick_calculate, take_scratch,
    text_of,
)


cdef bint is_number(int java_type) noexcept nogil:
    return BYTE <= java_type <= DOUBLE or java_type == BIG_DECIMAL or java_type == DECIMAL


cdef bint is_real(int java_type) noexcept nogil:
    """Whether arithmetic on this number is done in double."""
    return java_type == FLOAT or java_type == DOUBLE or java_type == DECIMAL


cdef int64_t long_of(const Value* number) noexcept nogil:
    """Number.longValue of an integer type; a literal beyond Long keeps its low 64 bits."""
    cdef const char* digits = <const char*>number.payload.text
    cdef uint64_t low = 0
    cdef uint32_t i
    if number.type != BIG_DECIMAL:
        return number.payload.integer
    for i in range(1 if digits[0] == 45 else 0, number.length):
        low = low * 10 + <uint64_t>(digits[i] - 48)
    return <int64_t>(<uint64_t>0 - low if digits[0] == 45 else low)


cdef double double_of_decimal(const Value* number) noexcept nogil:
    """The nearest double."""
    cdef char[WIDEST_WHOLE + 16] text
    cdef bint negative
    cdef double real = 0.0
    cdef int length
    length = whole_digits(<const uint8_t*>number.payload.text, number.encoding, text, &negative)
    if not length:
        return 0.0
    text[length] = 69
    length += 1
    length += write_long(-<int64_t>(<int32_t>number.length), text + length)
    parse_double(text, length, &real)
    return -real if negative else real


cdef double double_of(const Value* number) noexcept nogil:
    cdef double real = 0.0
    if number.type == FLOAT or number.type == DOUBLE:
        return number.payload.real
    if number.type == BIG_DECIMAL:
        parse_double(<const char*>number.payload.text, number.length, &real)
        return real
    if number.type == DECIMAL:
        return double_of_decimal(number)
    return <double>number.payload.integer


cdef int concatenate(const Value* left, const Value* right, Value* result, Scratch* scratch) noexcept nogil:
    cdef Value tail
    cdef uint16_t* units
    cdef uint8_t* narrow
    cdef uint64_t total
    if text_of(right, &tail, scratch) == RAISED:
        return RAISED
    total = <uint64_t>count_units(left) + count_units(&tail)
    if total > INT32_MAX:
        return fail(NO_MEMORY, scratch)
    result.type = STRING
    result.length = <uint32_t>total
    if left.encoding == LATIN1 and tail.encoding == LATIN1:
        narrow = <uint8_t*>take_scratch(scratch, total)
        if narrow is NULL:
            return RAISED
        memcpy(narrow, left.payload.text, left.length)
        memcpy(narrow + left.length, tail.payload.text, tail.length)
        result.encoding = LATIN1
        result.payload.text = narrow
        return TRUE
    units = <uint16_t*>take_scratch(scratch, total * 2)
    if units is NULL:
        return RAISED
    result.encoding = UCS2
    result.payload.text = units
    write_units(&tail, write_units(left, units))
    return TRUE


cdef int calculate(
    int calculation, const Value* left, const Value* right, Value* result, Scratch* scratch
) noexcept nogil:
    cdef int a = left.type
    cdef int b = right.type
    cdef Value x, y
    if a == NULL_VALUE or b == NULL_VALUE:
        result.type = NULL_VALUE
        return TRUE
    if a == STRING and calculation == ADDITION:
        return concatenate(left, right, result, scratch)
    if not is_number(a) or not is_number(b):
        return fail(NOT_COMPUTABLE, scratch)
    if calculation >= DIVISION or is_real(a) or is_real(b):
        x.type = y.type = DOUBLE
        x.payload.real = double_of(left)
        y.payload.real = double_of(right)
    else:
        x.type = LONG if a == LONG else INT
        y.type = LONG if b == LONG else INT
        x.payload.integer = long_of(left)
        y.payload.integer = long_of(right)
    if not quick_calculate(calculation, &x, &y, result):
        result.type = DOUBLE
        if calculation == DIVISION:
            result.payload.real = x.payload.real / y.payload.real
        else:
            result.payload.real = fmod(x.payload.real, y.payload.real)
    return TRUE


cdef int negate(const Value* value, Value* result, Scratch* scratch) noexcept nogil:
    cdef int java_type = value.type
    cdef const char* digits = <const char*>value.payload.text
    cdef char* text
    result.type = <uint8_t>java_type
    if java_type == INT:
        result.payload.integer = <int32_t>(<uint32_t>0 - <uint32_t>value.payload.integer)
    elif java_type == LONG:
        result.payload.integer = <int64_t>(<uint64_t>0 - <uint64_t>value.payload.integer)
    elif java_type == FLOAT or java_type == DOUBLE:
        result.payload.real = -value.payload.real
    elif java_type == DECIMAL:
        result.type = DOUBLE
        result.payload.real = -double_of_decimal(value)
    elif java_type == BYTE or java_type == SHORT:
        return fail(NEGATED_BYTE_OR_SHORT, scratch)
    elif java_type != BIG_DECIMAL:
        result.type = NULL_VALUE
    elif value.length == 19 and memcmp(digits, b"9223372036854775808", 19) == 0:
        result.type = LONG
        result.payload.integer = -(<int64_t>0x7FFFFFFFFFFFFFFF) - 1
    else:
        result[0] = value[0]
        if digits[0] == 45:
            result.payload.text = digits + 1
            result.length -= 1
            return TRUE
        text = <char*>take_scratch(scratch, value.length + 1)
        if text is NULL:
            return RAISED
        text[0] = 45
        memcpy(text + 1, digits, value.length)
        result.payload.text = text
        result.length += 1
    return TRUE
