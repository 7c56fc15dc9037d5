# cython: freethreading_compatible=True, cdivision=True
"""See value.pxd."""

from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.unicode cimport PyUnicode_DecodeUTF8, PyUnicode_FromKindAndData
from libc.math cimport fmod
from libc.stdint cimport INT32_MAX, INT32_MIN, int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

from pyengine._engine.digits cimport (
    LONGEST_NUMBER,
    parse_double,
    parse_float,
    write_double,
    write_float,
    write_long,
)

import sys

import numpy

from pyengine.errors import InvalidMessageError

cdef extern from "Python.h":
    int Py_UNICODE_TODECIMAL(uint32_t point) noexcept nogil
    bint PyUnicode_Check(PyObject* source) noexcept nogil

cdef str UTF16 = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"
cdef type GENERIC = numpy.generic
cdef dict INTEGER_TYPES = {
    ("i", 1): BYTE, ("i", 2): SHORT, ("i", 4): INT, ("i", 8): LONG,
    ("u", 1): SHORT, ("u", 2): INT, ("u", 4): LONG, ("u", 8): LONG,
}


class Char(str):
    """A java.lang.Character: a str of one UTF-16 code unit. Raises InvalidMessageError for anything else.

    A selector never finds it equal to a string (ActiveMQ compares classes first).
    """

    __slots__ = ()

    def __new__(cls, unit):
        if not isinstance(unit, str) or len(unit) != 1 or ord(unit) > 0xFFFF:
            raise InvalidMessageError(
                "Char", unit, "is not one UTF-16 code unit", hint="give one character up to U+FFFF, or use a str"
            )
        return str.__new__(cls, unit)

    def __repr__(self):
        return f"Char({str.__repr__(self)})"


# ---- memory of one evaluation

cdef void* take_scratch(Scratch* scratch, size_t size) noexcept nogil:
    cdef void** block = <void**>malloc(sizeof(void*) + size)
    if block is NULL:
        scratch.problem = NO_MEMORY
        return NULL
    block[0] = scratch.blocks
    scratch.blocks = block
    return block + 1


cdef void free_scratch(Scratch* scratch) noexcept nogil:
    cdef void* block = scratch.blocks
    cdef void* next_block
    while block is not NULL:
        next_block = (<void**>block)[0]
        free(block)
        block = next_block
    scratch.blocks = NULL
    if scratch.objects is not NULL or scratch.error is not NULL:
        with gil:
            Py_XDECREF(<PyObject*>scratch.objects)
            Py_XDECREF(<PyObject*>scratch.error)
        scratch.objects = scratch.error = NULL


cdef void keep_object(Scratch* scratch, object kept) except *:
    cdef list objects
    if scratch.objects is NULL:
        objects = []
        Py_INCREF(objects)
        scratch.objects = <void*>objects
    else:
        objects = <list>scratch.objects
    objects.append(kept)


# ---- text

cdef struct Units:            # reads a text by UTF-16 code units
    const Value* text
    uint32_t at
    int32_t pending           # the second half of a pair, or -1


cdef int32_t next_point(Units* units) noexcept nogil:
    """The next code point as the encoding stores it, or -1."""
    cdef const Value* text = units.text
    cdef const uint8_t* bytes_
    cdef uint32_t first
    if units.at >= text.length:
        return -1
    if text.encoding == LATIN1:
        units.at += 1
        return (<const uint8_t*>text.payload.text)[units.at - 1]
    if text.encoding == UCS2:
        units.at += 1
        return (<const uint16_t*>text.payload.text)[units.at - 1]
    if text.encoding == UCS4:
        units.at += 1
        return <int32_t>(<const uint32_t*>text.payload.text)[units.at - 1]
    bytes_ = <const uint8_t*>text.payload.text + units.at
    first = bytes_[0]
    if first < 0x80 or units.at + 1 >= text.length:
        units.at += 1
        return <int32_t>first
    if first < 0xE0 or units.at + 2 >= text.length:
        units.at += 2
        return <int32_t>((first & 0x1F) << 6 | (bytes_[1] & 0x3F))
    if first < 0xF0 or units.at + 3 >= text.length:
        units.at += 3
        return <int32_t>((first & 0x0F) << 12 | (<uint32_t>bytes_[1] & 0x3F) << 6 | (bytes_[2] & 0x3F))
    units.at += 4
    return <int32_t>(
        (first & 0x07) << 18
        | (<uint32_t>bytes_[1] & 0x3F) << 12
        | (<uint32_t>bytes_[2] & 0x3F) << 6
        | (bytes_[3] & 0x3F)
    )


cdef int32_t next_unit(Units* units) noexcept nogil:
    cdef int32_t point = units.pending
    if point >= 0:
        units.pending = -1
        return point
    point = next_point(units)
    if point > 0xFFFF:
        units.pending = 0xDC00 | (point & 0x3FF)
        return 0xD800 + ((point - 0x10000) >> 10)
    return point


cdef void start_units(Units* units, const Value* text) noexcept nogil:
    units.text = text
    units.at = 0
    units.pending = -1


cdef uint32_t count_units(const Value* text) noexcept nogil:
    cdef Units units
    cdef uint32_t count = 0
    if text.encoding == LATIN1 or text.encoding == UCS2:
        return text.length
    start_units(&units, text)
    while next_unit(&units) >= 0:
        count += 1
    return count


cdef bint same_text(const Value* left, const Value* right) noexcept nogil:
    cdef Units a, b
    cdef int32_t unit
    if left.encoding == right.encoding and left.encoding != UCS4:
        return left.length == right.length and memcmp(
            left.payload.text, right.payload.text, <size_t>left.length * (2 if left.encoding == UCS2 else 1)
        ) == 0
    start_units(&a, left)
    start_units(&b, right)
    while True:
        unit = next_unit(&a)
        if unit != next_unit(&b):
            return False
        if unit < 0:
            return True


cdef int order_text(const Value* left, const Value* right) noexcept nogil:
    cdef Units a, b
    cdef int32_t x, y
    cdef int order
    if left.encoding == LATIN1 and right.encoding == LATIN1:
        order = memcmp(left.payload.text, right.payload.text, min(left.length, right.length))
        if order:
            return 1 if order > 0 else -1
        return (left.length > right.length) - (left.length < right.length)
    start_units(&a, left)
    start_units(&b, right)
    while True:
        x = next_unit(&a)
        y = next_unit(&b)
        if x != y:
            return 1 if x > y else -1
        if x < 0:
            return 0


cdef bint has_text(const Value* text, const Value* part, int place) noexcept nogil:
    cdef Units start, here, wanted
    cdef uint32_t skipped = 0
    cdef uint32_t total = count_units(text)
    cdef uint32_t length = count_units(part)
    cdef int32_t unit
    if length > total:
        return False
    start_units(&start, text)
    if place == AT_END:
        while skipped < total - length:
            next_unit(&start)
            skipped += 1
    while True:
        here = start
        start_units(&wanted, part)
        unit = next_unit(&wanted)
        while unit >= 0 and unit == next_unit(&here):
            unit = next_unit(&wanted)
        if unit < 0:
            return True
        if place != ANYWHERE or skipped == total - length:
            return False
        next_unit(&start)
        skipped += 1


cdef bint parse_integer(const Value* text, int64_t least, int64_t most, Value* number) noexcept nogil:
    """Long.parseLong and its narrower kin: a sign, decimal digits of any script, within the range."""
    cdef Units units
    cdef int32_t unit
    cdef int digit
    cdef bint negative = False
    cdef bint seen = False
    cdef uint64_t sum_ = 0
    cdef uint64_t limit = <uint64_t>most
    start_units(&units, text)
    unit = next_unit(&units)
    if unit == 45 or unit == 43:
        negative = unit == 45
        unit = next_unit(&units)
    if negative:
        limit = <uint64_t>0 - <uint64_t>least
    while unit >= 0:
        digit = Py_UNICODE_TODECIMAL(<uint32_t>unit)
        if digit < 0 or sum_ > (limit - <uint64_t>digit) // 10:
            return False
        sum_ = sum_ * 10 + <uint64_t>digit
        seen = True
        unit = next_unit(&units)
    number.payload.integer = <int64_t>(<uint64_t>0 - sum_ if negative else sum_)
    return seen


cdef bint parse_real(const Value* text, bint narrow, Value* number, Scratch* scratch) noexcept nogil:
    """Double.valueOf, Float.valueOf: blanks up to U+0020 around are no part of it."""
    cdef Units units
    cdef int32_t unit
    cdef char[128] short_text
    cdef char* ascii_text = short_text
    cdef Py_ssize_t length = 0
    if text.length > 128:
        ascii_text = <char*>take_scratch(scratch, text.length)
        if ascii_text is NULL:
            return False
    start_units(&units, text)
    while True:
        unit = next_unit(&units)
        if unit < 0:
            break
        if unit <= 32 and length == 0:
            continue
        if unit > 127:
            return False
        ascii_text[length] = <char>unit
        length += 1
    while length and ascii_text[length - 1] <= 32:
        length -= 1
    if narrow:
        return parse_float(ascii_text, length, &number.payload.real)
    return parse_double(ascii_text, length, &number.payload.real)


cdef bint parse_number(const Value* text, int java_type, Value* number, Scratch* scratch) noexcept nogil:
    number.type = <uint8_t>java_type
    if java_type == BYTE:
        return parse_integer(text, -128, 127, number)
    if java_type == SHORT:
        return parse_integer(text, -32768, 32767, number)
    if java_type == INT:
        return parse_integer(text, INT32_MIN, INT32_MAX, number)
    if java_type == LONG:
        return parse_integer(text, -(<int64_t>0x7FFFFFFFFFFFFFFF) - 1, 0x7FFFFFFFFFFFFFFF, number)
    return parse_real(text, java_type == FLOAT, number, scratch)


cdef bint is_true_text(const Value* text) noexcept nogil:
    """Boolean.valueOf: "true" in any case. equalsIgnoreCase folds no character outside ASCII onto these four
    letters.
    """
    cdef Units units
    cdef const char* expected = b"true"
    cdef int i
    start_units(&units, text)
    for i in range(4):
        if next_unit(&units) | 32 != expected[i]:
            return False
    return next_unit(&units) < 0


# ---- Python objects

cdef int read_text_object(object source, Value* into) except -1:
    cdef PyObject* text = <PyObject*>source
    into.type = STRING
    into.encoding = <uint8_t>text_kind(text)
    into.length = <uint32_t>text_length(text)
    into.payload.text = text_data(text)
    return 1


cdef int read_value(object source, Value* into, object field, bint objects) except -1:
    cdef int overflow = 0
    cdef int64_t integer
    cdef int java_type
    cdef object number
    if quick_value(<PyObject*>source, into):
        return 1
    if isinstance(source, str):
        if len(source) > 0x7FFFFFFF:
            raise InvalidMessageError(field, "...", "text is longer than a Java string can be")
        read_text_object(source, into)
        if isinstance(source, Char):
            into.type = CHAR
        return 1
    if isinstance(source, int):
        integer = PyLong_AsLongLongAndOverflow(source, &overflow)
        if overflow:
            raise InvalidMessageError(
                field, source, "an integer beyond 64 bits signed", hint="send it as text or float"
            )
        into.type = INT if INT32_MIN <= integer <= INT32_MAX else LONG
        into.payload.integer = integer
        return 1
    if isinstance(source, float):
        into.type = DOUBLE
        into.payload.real = source
        return 1
    if isinstance(source, GENERIC):
        number = source.dtype
        if number.kind == "b":
            into.type = BOOLEAN
            into.payload.integer = bool(source)
            return 1
        if number.kind == "f" and number.itemsize <= 4:
            into.type = FLOAT
            into.payload.real = source
            return 1
        java_type = INTEGER_TYPES.get((number.kind, number.itemsize), NULL_VALUE)
        if java_type != NULL_VALUE:
            integer = PyLong_AsLongLongAndOverflow(int(source), &overflow)
            if overflow:
                raise InvalidMessageError(
                    field, source, "an unsigned integer beyond 63 bits", hint="send it as text or float"
                )
            into.type = <uint8_t>java_type
            into.payload.integer = integer
            return 1
    if objects and isinstance(source, (list, tuple, dict)):
        into.type = OBJECT
        into.payload.object = <void*>source
        return 1
    raise InvalidMessageError(
        field,
        source,
        "no message property can have this type",
        hint="use bool, int, float, str, None, pyengine.Char or a numpy scalar"
        + (", or a list or dict of them" if objects else ""),
    )


cdef int read_text(object source, Value* into, object field, Scratch* scratch) except -1:
    cdef Value value
    read_value(source, &value, field, False)
    if value.type == NULL_VALUE or value.type == STRING:
        into[0] = value
    elif text_of(&value, into, scratch) == RAISED:
        raise MemoryError()
    return 1


cdef str python_text(const Value* value):
    cdef const char* start = <const char*>value.payload.text
    if value.encoding == LATIN1:
        return PyUnicode_FromKindAndData(1, start, value.length)
    if value.encoding == UTF8:
        return PyUnicode_DecodeUTF8(start, value.length, b"surrogatepass")
    if value.encoding == UCS2:
        return start[: 2 * <Py_ssize_t>value.length].decode(UTF16, "surrogatepass")
    return (
        PyUnicode_FromKindAndData(4, start, value.length)
        .encode(UTF16, "surrogatepass")
        .decode(UTF16, "surrogatepass")
    )


cdef object python_value(const Value* value):
    cdef int java_type = value.type
    if java_type == NULL_VALUE:
        return None
    if java_type == BOOLEAN:
        return value.payload.integer != 0
    if java_type == BYTE:
        return numpy.int8(value.payload.integer)
    if java_type == SHORT:
        return numpy.int16(value.payload.integer)
    if java_type == INT:
        return value.payload.integer
    if java_type == LONG:
        if INT32_MIN <= value.payload.integer <= INT32_MAX:
            return numpy.int64(value.payload.integer)
        return value.payload.integer
    if java_type == FLOAT:
        return numpy.float32(value.payload.real)
    if java_type == DOUBLE:
        return value.payload.real
    if java_type == OBJECT:
        return <object>value.payload.object
    if java_type == CHAR:
        return Char(python_text(value))
    if java_type == BIG_DECIMAL:
        return int(python_text(value))
    return python_text(value)


cdef bint is_big(object value):
    return isinstance(value, int) and not -(1 << 63) <= value < 1 << 63


cpdef str java_text(object value):
    """String.valueOf of a property value, a list or a map; None is "null". InvalidMessageError for anything else."""
    cdef Value read
    cdef Value text
    cdef Scratch scratch
    if value is None:
        return "null"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([java_text(item) for item in value]) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join([java_text(key) + "=" + java_text(item) for key, item in value.items()]) + "}"
    if is_big(value):
        return str(int(value))
    read_value(value, &read, "value", False)
    memset(&scratch, 0, sizeof(Scratch))
    try:
        if text_of(&read, &text, &scratch) == RAISED:
            raise MemoryError()
        return python_text(&text)
    finally:
        free_scratch(&scratch)


cpdef bint java_equal(object left, object right):
    """left.equals(right): the same Java type and equal; lists and maps by their members; None equals only None.

    Raises InvalidMessageError for anything that no message carries.
    """
    cdef Value a
    cdef Value b
    cdef Scratch scratch
    if left is None or right is None:
        return left is right
    if isinstance(left, (list, tuple)):
        if not isinstance(right, (list, tuple)) or len(left) != len(right):
            return False
        return all([java_equal(x, y) for x, y in zip(left, right)])
    if isinstance(left, dict):
        if not isinstance(right, dict) or len(left) != len(right):
            return False
        return all([key in right and java_equal(item, right[key]) for key, item in left.items()])
    if isinstance(right, (list, tuple, dict)):
        return False
    if is_big(left) or is_big(right):
        return is_big(left) and is_big(right) and left == right
    read_value(left, &a, "value", False)
    read_value(right, &b, "value", False)
    memset(&scratch, 0, sizeof(Scratch))
    return a.type == b.type and compare(IS_EQUAL, &a, &b, EXACT_TYPES, &scratch) == TRUE


cdef int equal_objects(void* left, void* right) noexcept with gil:
    """TRUE or FALSE; RAISED with the Python exception left set."""
    try:
        return TRUE if java_equal(<object>left, <object>right) else FALSE
    except InvalidMessageError:
        return FALSE


cdef int object_text(void* source, Value* result, Scratch* scratch) noexcept with gil:
    cdef bytes units
    cdef void* copy
    try:
        units = java_text(<object>source).encode(UTF16, "surrogatepass")
    except InvalidMessageError:
        scratch.problem = NOT_COMPUTABLE
        return RAISED
    copy = take_scratch(scratch, len(units))
    if copy is NULL:
        return RAISED
    memcpy(copy, <const char*>units, len(units))
    result.type = STRING
    result.encoding = UCS2
    result.length = <uint32_t>(len(units) // 2)
    result.payload.text = copy
    return TRUE


# ---- comparing

cdef bint is_integer(int java_type) noexcept nogil:
    return BYTE <= java_type <= LONG


cdef bint is_number(int java_type) noexcept nogil:
    return BYTE <= java_type <= DOUBLE or java_type == BIG_DECIMAL


cdef int order_integers(int64_t left, int64_t right) noexcept nogil:
    return (left > right) - (left < right)


cdef int order_reals(double left, double right) noexcept nogil:
    return order_integers(order_key(left), order_key(right))


cdef int order_big(const Value* left, const Value* right) noexcept nogil:
    cdef const char* a = <const char*>left.payload.text
    cdef const char* b = <const char*>right.payload.text
    cdef bint negative = a[0] == 45
    cdef int order
    if negative != (b[0] == 45):
        return -1 if negative else 1
    order = order_integers(left.length, right.length)
    if order == 0:
        order = memcmp(a, b, left.length)
        order = (order > 0) - (order < 0)
    return -order if negative else order


cdef int verdict(int relation, int order) noexcept nogil:
    if relation == IS_EQUAL:
        return order == 0
    if relation == IS_LESS:
        return order < 0
    if relation == IS_LESS_OR_EQUAL:
        return order <= 0
    if relation == IS_GREATER:
        return order > 0
    return order >= 0


cdef int fail(int problem, Scratch* scratch) noexcept nogil:
    scratch.problem = problem
    return RAISED


cdef int compare_alike(int relation, const Value* left, const Value* right, Scratch* scratch) noexcept nogil:
    """Both of one type, not null and not OBJECT."""
    cdef int java_type = left.type
    if java_type == STRING or java_type == CHAR:
        if relation == IS_EQUAL:
            return same_text(left, right)
        return verdict(relation, order_text(left, right))
    if java_type == FLOAT or java_type == DOUBLE:
        return verdict(relation, order_reals(left.payload.real, right.payload.real))
    if java_type == BIG_DECIMAL:
        return verdict(relation, order_big(left, right))
    return verdict(relation, order_integers(left.payload.integer, right.payload.integer))


cdef int compare_numbers(int relation, const Value* left, const Value* right, Scratch* scratch) noexcept nogil:
    """Two types of BYTE .. DOUBLE. The wider type decides, and a narrower one is widened only in some directions."""
    cdef int a = left.type
    cdef int b = right.type
    if is_integer(a):
        if is_integer(b):
            if b > a or (a == LONG and b == INT):
                return verdict(relation, order_integers(left.payload.integer, right.payload.integer))
            return FALSE
        if b == FLOAT:
            return verdict(relation, order_reals(<double>(<float>left.payload.integer), right.payload.real))
        return verdict(relation, order_reals(<double>left.payload.integer, right.payload.real))
    if is_integer(b):
        if b < INT:
            return FALSE
        if a == FLOAT:
            return verdict(relation, order_reals(left.payload.real, <double>(<float>right.payload.integer)))
        return verdict(relation, order_reals(left.payload.real, <double>right.payload.integer))
    if a == DOUBLE:
        return fail(DOUBLE_AGAINST_FLOAT, scratch)
    return verdict(relation, order_reals(left.payload.real, right.payload.real))


cdef int compare_text(int relation, const Value* left, const Value* right, int rules, Scratch* scratch) noexcept nogil:
    """Text against another type, where text is converted."""
    cdef Value converted
    cdef const Value* text = left if left.type == STRING else right
    cdef int other = right.type if left.type == STRING else left.type
    if other == BOOLEAN:
        if right.type == STRING:
            return fail(BOOLEAN_AGAINST_TEXT, scratch)
        return verdict(relation, order_integers(is_true_text(text), right.payload.integer))
    if not BYTE <= other <= DOUBLE:
        return FALSE
    if not parse_number(text, other, &converted, scratch):
        if rules == CONVERT_OR_RAISE:
            return fail(NOT_A_NUMBER_TEXT, scratch)
        return FALSE
    if left.type == STRING:
        return compare_alike(relation, &converted, right, scratch)
    return compare_alike(relation, left, &converted, scratch)


cdef int compare_as_doubles(int relation, const Value* left, const Value* right, Scratch* scratch) noexcept nogil:
    cdef Value a
    cdef Value b
    if not parse_number(left, DOUBLE, &a, scratch) or not parse_number(right, DOUBLE, &b, scratch):
        return fail(NOT_A_NUMBER_TEXT, scratch)
    return compare_alike(relation, &a, &b, scratch)


cdef int compare(int relation, const Value* left, const Value* right, int rules, Scratch* scratch) noexcept nogil:
    cdef int a = left.type
    cdef int b = right.type
    if relation == IS_EQUAL:
        if a == NULL_VALUE:
            return TRUE if b == NULL_VALUE else UNKNOWN
        if b == NULL_VALUE:
            return FALSE
        if a == OBJECT or b == OBJECT:
            return equal_objects(left.payload.object, right.payload.object) if a == b else FALSE
    else:
        if a == NULL_VALUE:
            return UNKNOWN
        if a == OBJECT:
            return fail(ORDERED_OBJECT, scratch)
        if b == NULL_VALUE:
            return UNKNOWN
        if b == OBJECT:
            return fail(ORDERED_OBJECT, scratch)
    if a == b:
        if rules == CONVERT_OR_RAISE and a == STRING and relation != IS_EQUAL:
            return compare_as_doubles(relation, left, right, scratch)
        return compare_alike(relation, left, right, scratch)
    if BYTE <= a <= DOUBLE and BYTE <= b <= DOUBLE:
        return compare_numbers(relation, left, right, scratch)
    if rules != EXACT_TYPES and (a == STRING or b == STRING):
        return compare_text(relation, left, right, rules, scratch)
    return FALSE


# ---- computing

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


cdef double double_of(const Value* number) noexcept nogil:
    cdef double real = 0.0
    if number.type == FLOAT or number.type == DOUBLE:
        return number.payload.real
    if number.type == BIG_DECIMAL:
        parse_double(<const char*>number.payload.text, number.length, &real)
        return real
    return <double>number.payload.integer


cdef int text_of(const Value* value, Value* result, Scratch* scratch) noexcept nogil:
    cdef char* text
    cdef int java_type = value.type
    if java_type == STRING or java_type == CHAR or java_type == BIG_DECIMAL:
        result[0] = value[0]
        result.type = STRING
        return TRUE
    if java_type == OBJECT:
        return object_text(value.payload.object, result, scratch)
    result.type = STRING
    result.encoding = LATIN1
    if java_type == NULL_VALUE or java_type == BOOLEAN:
        result.payload.text = b"null" if java_type == NULL_VALUE else b"true" if value.payload.integer else b"false"
        result.length = 5 if java_type == BOOLEAN and not value.payload.integer else 4
        return TRUE
    text = <char*>take_scratch(scratch, LONGEST_NUMBER)
    if text is NULL:
        return RAISED
    if java_type == FLOAT:
        result.length = <uint32_t>write_float(value.payload.real, text)
    elif java_type == DOUBLE:
        result.length = <uint32_t>write_double(value.payload.real, text)
    else:
        result.length = <uint32_t>write_long(value.payload.integer, text)
    result.payload.text = text
    return TRUE


cdef int concatenate(const Value* left, const Value* right, Value* result, Scratch* scratch) noexcept nogil:
    cdef Value tail
    cdef const Value* part
    cdef uint16_t* units
    cdef uint8_t* narrow
    cdef uint64_t total
    cdef Units source
    cdef int32_t unit
    cdef int i
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
    for i in range(2):
        part = left if i == 0 else &tail
        start_units(&source, part)
        unit = next_unit(&source)
        while unit >= 0:
            units[0] = <uint16_t>unit
            units += 1
            unit = next_unit(&source)
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
    if calculation >= DIVISION or a == FLOAT or a == DOUBLE or b == FLOAT or b == DOUBLE:
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
