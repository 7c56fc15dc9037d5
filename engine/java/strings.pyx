# cython: freethreading_compatible=True, cdivision=True
"""See strings.pxd."""

from libc.stdint cimport INT32_MAX, INT32_MIN, int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memchr, memcmp

from pyengine._engine.java.numbers cimport parse_double, parse_float
from pyengine._engine.java.value cimport (
    AT_END, BYTE, FLOAT, INT, LATIN1, LONG, SHORT, UCS2, UCS4, UTF8, Scratch, Value, take_scratch,
)

cdef extern from "lowlevel/byte_search.h" nogil:
    const bint HAS_FIND_ANY
    const uint8_t* find_any(const uint8_t* text, size_t length, const uint8_t* part, size_t count)


BLANKS = "".join(map(chr, range(33)))       # the characters that String.trim removes


cdef extern from "Python.h":
    int Py_UNICODE_TODECIMAL(uint32_t point) noexcept nogil


cdef bytes utf8_of(str source):
    if not source.isascii():
        source = source.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return source.encode("utf-8", "surrogatepass")


cdef struct Units:            # reads a string by UTF-16 code units
    const Value* text
    uint32_t at
    int32_t pending           # the low surrogate that follows, or -1


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


cdef uint16_t* write_units(const Value* text, uint16_t* into) noexcept nogil:
    cdef Units units
    cdef int32_t unit
    start_units(&units, text)
    unit = next_unit(&units)
    while unit >= 0:
        into[0] = <uint16_t>unit
        into += 1
        unit = next_unit(&units)
    return into


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
    cdef Units here, wanted
    cdef uint32_t total = count_units(text)
    cdef uint32_t length = count_units(part)
    cdef int32_t unit
    if length > total:
        return False
    start_units(&here, text)
    if place == AT_END:
        for _ in range(total - length):
            next_unit(&here)
    start_units(&wanted, part)
    unit = next_unit(&wanted)
    while unit >= 0 and unit == next_unit(&here):
        unit = next_unit(&wanted)
    return unit < 0


cdef void make_needle(const Value* part, Needle* needle) noexcept nogil:
    cdef uint32_t i, border = 0
    needle.count = <uint32_t>(write_units(part, needle.units) - needle.units)
    needle.ascii = needle.narrow = True
    for i in range(needle.count):
        needle.ascii = needle.ascii and needle.units[i] < 0x80
        needle.narrow = needle.narrow and needle.units[i] < 0x100
        needle.bytes[i] = <uint8_t>(needle.units[i] & 0xFF)
        if i == 0:
            needle.borders[0] = 0
            continue
        while border and needle.units[border] != needle.units[i]:
            border = needle.borders[border - 1]
        border += needle.units[border] == needle.units[i]
        needle.borders[i] = border


cdef bint has_needle(const Value* text, const Needle* needle) noexcept nogil:
    cdef Units here
    cdef uint32_t matched = 0
    cdef int32_t unit
    cdef const uint8_t* at = <const uint8_t*>text.payload.text
    cdef const uint8_t* end
    if needle.count == 0:
        return True
    if text.encoding == LATIN1 and not needle.narrow:
        return False
    if HAS_FIND_ANY and (text.encoding == LATIN1 or needle.ascii and text.encoding == UTF8):
        return find_any(at, text.length, needle.bytes, needle.count) is not NULL
    if needle.ascii and (text.encoding == LATIN1 or text.encoding == UTF8):
        end = at + text.length
        while at < end:
            if matched == 0:
                at = <const uint8_t*>memchr(at, needle.units[0], end - at)
                if at is NULL:
                    return False
            while matched and needle.units[matched] != at[0]:
                matched = needle.borders[matched - 1]
            matched += needle.units[matched] == at[0]
            if matched == needle.count:
                return True
            at += 1
        return False
    start_units(&here, text)
    unit = next_unit(&here)
    while unit >= 0:
        while matched and needle.units[matched] != unit:
            matched = needle.borders[matched - 1]
        matched += needle.units[matched] == unit
        if matched == needle.count:
            return True
        unit = next_unit(&here)
    return False


cdef bint parse_integer(const Value* text, int64_t least, int64_t most, Value* number) noexcept nogil:
    """Long.parseLong, Integer, Short, Byte: a sign, decimal digits of any script, within the range."""
    cdef Units units
    cdef int32_t unit
    cdef int digit
    cdef bint negative = False
    cdef bint any_digit = False
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
        any_digit = True
        unit = next_unit(&units)
    number.payload.integer = <int64_t>(<uint64_t>0 - sum_ if negative else sum_)
    return any_digit


cdef bint parse_real(const Value* text, bint narrow, Value* number, Scratch* scratch) noexcept nogil:
    """Double.valueOf, Float.valueOf: surrounding characters up to U+0020 are trimmed."""
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
    """equalsIgnoreCase folds no character outside ASCII onto these four letters."""
    cdef Units units
    cdef const char* expected = b"true"
    cdef int i
    start_units(&units, text)
    for i in range(4):
        if next_unit(&units) | 32 != expected[i]:
            return False
    return next_unit(&units) < 0
