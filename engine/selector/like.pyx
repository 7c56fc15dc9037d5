# cython: freethreading_compatible=True
"""See like.pxd."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memchr, memcmp, memset

from pyengine._engine.lowlevel.memory cimport allocate, allocate_zeros, try_allocate
from pyengine._engine.java.value cimport LATIN1, NULL_VALUE, UCS2, UTF8, Value, read_value


cdef extern from "lowlevel/byte_search.h" nogil:
    const uint8_t* find_few(
        const uint8_t* text, const uint8_t* end, const uint8_t* limit, const uint8_t* part, Py_ssize_t count,
        Py_ssize_t* work, const uint8_t** reached
    )


cdef extern from *:
    """
    #if defined(_MSC_VER)
    #include <intrin.h>
    #define pyengine_count_up(count) _InterlockedIncrement((volatile long *)(count))
    #define pyengine_count_down(count) _InterlockedDecrement((volatile long *)(count))
    #else
    #define pyengine_count_up(count) __atomic_add_fetch(count, 1, __ATOMIC_RELAXED)
    #define pyengine_count_down(count) __atomic_sub_fetch(count, 1, __ATOMIC_ACQ_REL)
    #endif
    """
    int pyengine_count_up(int* count) noexcept nogil
    int pyengine_count_down(int* count) noexcept nogil


cdef frozenset WILD = frozenset(b"%_")
cdef frozenset HEXADECIMAL = frozenset(b"0123456789abcdefABCDEF")


# ---- reading code points

cdef struct Points:
    const Value* text
    uint32_t at               # code units


cdef inline uint32_t stored_point(const Value* text, uint32_t at) noexcept nogil:
    if text.encoding == UCS2:
        return (<const uint16_t*>text.payload.text)[at]
    return (<const uint32_t*>text.payload.text)[at]


cdef uint32_t next_point(Points* points) noexcept nogil:
    """The next code point; the caller ensures that there is one."""
    cdef const Value* text = points.text
    cdef const uint8_t* bytes_
    cdef uint32_t point, low
    if text.encoding == LATIN1:
        points.at += 1
        return (<const uint8_t*>text.payload.text)[points.at - 1]
    if text.encoding == UTF8:
        bytes_ = <const uint8_t*>text.payload.text + points.at
        point = bytes_[0]
        if point < 0x80 or points.at + 1 >= text.length:
            points.at += 1
            return point
        if point < 0xE0 or points.at + 2 >= text.length:
            points.at += 2
            return (point & 0x1F) << 6 | (bytes_[1] & 0x3F)
        if point < 0xF0 or points.at + 3 >= text.length:
            points.at += 3
            return (point & 0x0F) << 12 | (<uint32_t>bytes_[1] & 0x3F) << 6 | (bytes_[2] & 0x3F)
        points.at += 4
        return (
            (point & 0x07) << 18
            | (<uint32_t>bytes_[1] & 0x3F) << 12
            | (<uint32_t>bytes_[2] & 0x3F) << 6
            | (bytes_[3] & 0x3F)
        )
    point = stored_point(text, points.at)
    points.at += 1
    if point >> 10 == 0x36 and points.at < text.length:
        low = stored_point(text, points.at)
        if low >> 10 == 0x37:
            points.at += 1
            return 0x10000 + ((point & 0x3FF) << 10 | (low & 0x3FF))
    return point


cdef uint32_t count_points(const Value* text) noexcept nogil:
    cdef Points points
    cdef uint32_t count = 0
    if text.encoding == LATIN1:
        return text.length
    points.text = text
    points.at = 0
    while points.at < text.length:
        next_point(&points)
        count += 1
    return count


# ---- matching

cdef int class_of(const Pattern* pattern, uint32_t point) noexcept nogil:
    cdef int low = 0
    cdef int high = pattern.high_count
    cdef int middle
    if point < 256:
        return pattern.low[point]
    while low < high:
        middle = (low + high) >> 1
        if pattern.high[middle] < point:
            low = middle + 1
        else:
            high = middle
    if low < pattern.high_count and pattern.high[low] == point:
        return pattern.first_high + low
    return pattern.classes - 1


cdef bint stands_here(const Segment* segment, Points* points) noexcept nogil:
    """Whether the segment matches at this position; the string is long enough."""
    cdef int i
    cdef uint32_t point
    for i in range(segment.count):
        point = next_point(points)
        if segment.elements[i] != point and segment.elements[i] != <uint32_t>ANY_ONE:
            return False
    return True


cdef uint32_t find_short(const Pattern* pattern, const Segment* segment, Points* points, uint32_t left) noexcept nogil:
    """Search for the segment within ``left`` code points (Shift-And); returns how many were read, 0 if not found.

    Bit i of the state: the last i + 1 points match the first i + 1 elements.
    """
    cdef uint64_t state = 0
    cdef uint64_t found = <uint64_t>1 << (segment.count - 1)
    cdef uint32_t read = 0
    while read < left:
        state = (state << 1 | 1) & segment.masks[class_of(pattern, next_point(points))]
        read += 1
        if state & found:
            return read
    return 0


cdef uint32_t find_long(
    const Pattern* pattern, const Segment* segment, Points* points, uint32_t left, uint64_t* state
) noexcept nogil:
    cdef uint64_t found = <uint64_t>1 << ((segment.count - 1) & 63)
    cdef uint64_t carry, next_carry
    cdef const uint64_t* masks
    cdef uint32_t read = 0
    cdef int i
    memset(state, 0, segment.words * sizeof(uint64_t))
    while read < left:
        masks = segment.masks + <size_t>class_of(pattern, next_point(points)) * segment.words
        carry = 1
        for i in range(segment.words):
            next_carry = state[i] >> 63
            state[i] = (state[i] << 1 | carry) & masks[i]
            carry = next_carry
        read += 1
        if state[segment.words - 1] & found:
            return read
    return 0


cdef uint32_t find_exact(const Segment* segment, Points* points, uint32_t left) noexcept nogil:
    """The same by the algorithm of Knuth, Morris and Pratt, for a segment without ANY_ONE."""
    cdef uint32_t read = 0, point
    cdef int matched = 0
    while read < left:
        point = next_point(points)
        read += 1
        while matched and segment.elements[matched] != point:
            matched = segment.borders[matched - 1]
        matched += segment.elements[matched] == point
        if matched == segment.count:
            return read
    return 0


cdef uint32_t find_slowly(const Segment* segment, Points* points, uint32_t left) noexcept nogil:
    """The same without allocating memory."""
    cdef Points start
    cdef Points end
    cdef uint32_t read = 0
    while read + <uint32_t>segment.count <= left:
        start = points[0]
        end = start
        if stands_here(segment, &end):
            points[0] = end
            return read + <uint32_t>segment.count
        next_point(points)
        read += 1
    return 0


cdef uint32_t find(const Pattern* pattern, const Segment* segment, Points* points, uint32_t left) noexcept nogil:
    cdef uint64_t[16] few
    cdef uint64_t* state
    cdef uint32_t read
    if segment.words == 1:
        return find_short(pattern, segment, points, left)
    if segment.borders is not NULL:
        return find_exact(segment, points, left)
    if segment.words <= 16:
        return find_long(pattern, segment, points, left, few)
    state = <uint64_t*>try_allocate(segment.words * sizeof(uint64_t))
    if state is NULL:
        return find_slowly(segment, points, left)
    read = find_long(pattern, segment, points, left, state)
    free(state)
    return read


cdef bint bytes_match(
    const Pattern* pattern, const uint8_t* text, uint32_t length, const uint8_t* limit
) noexcept nogil:
    cdef const Segment* segment = &pattern.segments[0]
    cdef const uint8_t* hit
    cdef const uint8_t* end = text + length
    cdef uint64_t state, found
    cdef int first = 0
    cdef int stop = pattern.count
    cdef int i
    cdef Points points
    cdef Value rest
    cdef Py_ssize_t work
    if length < <uint32_t>pattern.least:
        return False
    if not pattern.open_start:
        if memcmp(text, segment.bytes, segment.count):
            return False
        if pattern.count == 1 and not pattern.open_end:
            return length == <uint32_t>segment.count
        text += segment.count
        first = 1
    if not pattern.open_end and stop > first:
        stop -= 1
        segment = &pattern.segments[stop]
        end -= segment.count
        if memcmp(end, segment.bytes, segment.count):
            return False
    for i in range(first, stop):
        segment = &pattern.segments[i]
        if segment.words > 1:
            rest.type = NULL_VALUE
            rest.encoding = LATIN1
            rest.length = <uint32_t>(end - text)
            rest.payload.text = text
            points.text = &rest
            points.at = 0
            if not find(pattern, segment, &points, rest.length):
                return False
            text += points.at
            continue
        work = 64 + 2 * (end - text)
        hit = find_few(text, end, limit, segment.bytes, segment.count, &work, &text)
        if work >= 0:
            if hit is NULL:
                return False
            text = hit + segment.count
            continue
        state = 0                                    # too many false alarms: Shift-And, from where the search stands
        found = <uint64_t>1 << (segment.count - 1)
        while True:
            if state == 0:
                hit = <const uint8_t*>memchr(text, segment.bytes[0], end - text) if end > text else NULL
                if hit is NULL:
                    return False
                text = hit
            elif text == end:
                return False
            state = (state << 1 | 1) & segment.masks[pattern.low[text[0]]]
            text += 1
            if state & found:
                break
    return True


cdef bint pattern_matches(const Pattern* pattern, const Value* text) noexcept nogil:
    cdef Points points
    cdef uint32_t total, left, read
    cdef int first = 0
    cdef int stop = pattern.count
    cdef int i
    if pattern.plain and text.encoding <= LATIN1:
        return bytes_match(
            pattern, <const uint8_t*>text.payload.text, text.length,
            <const uint8_t*>text.payload.text + text.length,
        )
    total = count_points(text)
    if total < <uint32_t>pattern.least:
        return False
    points.text = text
    points.at = 0
    left = total
    if not pattern.open_start:
        if not stands_here(&pattern.segments[0], &points):
            return False
        left -= <uint32_t>pattern.segments[0].count
        if pattern.count == 1 and not pattern.open_end:
            return left == 0
        first = 1
    if not pattern.open_end and stop > first:
        stop -= 1
        left -= <uint32_t>pattern.segments[stop].count
    for i in range(first, stop):
        read = find(pattern, &pattern.segments[i], &points, left)
        if read == 0:
            return False
        left -= read
    if stop == pattern.count:
        return True
    for _ in range(left):
        next_point(&points)
    return stands_here(&pattern.segments[stop], &points)


# ---- compiling

cdef list elements_of(str pattern, object escape):
    """Code points, -1 for _, and None for %.

    The real class writes an escaped unit into its regular expression as backslash, x and unpadded hexadecimal digits,
    of which the expression reads two: U+0100 becomes U+0010 and the string "0".
    """
    cdef list units = list(
        pattern.encode() if pattern.isascii() else memoryview(pattern.encode("utf-16-le", "surrogatepass")).cast("H")
    )
    cdef list elements = []
    cdef int64_t escaped = -1 if escape is None else ord(escape)
    cdef int64_t unit, low
    cdef int i = 0
    cdef str digits
    while i < len(units):
        unit = units[i]
        i += 1
        if unit == escaped and i < len(units) and (units[i] == escaped or units[i] in WILD):
            digits = f"{units[i]:x}"
            i += 1
            if len(digits) == 1:
                if i == len(units) or units[i] not in HEXADECIMAL:
                    raise ValueError("a doubled escape character below U+0010 is not accepted")
                digits += chr(units[i])
                i += 1
            elements.append(int(digits[:2], 16))
            elements.extend(digits[2:].encode())
        elif unit == 37:
            elements.append(None)
        elif unit == 95:
            elements.append(-1)
        else:
            low = units[i] if i < len(units) else 0
            if unit >> 10 == 0x36 and low >> 10 == 0x37 and low != escaped:
                unit = 0x10000 + ((unit & 0x3FF) << 10 | (low & 0x3FF))
                i += 1
            elements.append(unit)
    return elements


cdef Pattern* compile_pattern(str pattern, object escape) except NULL:
    cdef list parts = []
    cdef list part = []
    cdef list points
    cdef set distinct = set()
    cdef dict classes
    cdef Pattern* compiled
    cdef Segment* segment
    cdef int64_t point
    cdef int i, k, c
    cdef bint plain = True
    for element in elements_of(pattern, escape):
        if element is None:
            parts.append(part)
            part = []
            continue
        part.append(element)
        point = element
        plain = plain and 0 <= point < 128
        if point >= 0:
            distinct.add(element)
    parts.append(part)
    compiled = <Pattern*>allocate_zeros(1, sizeof(Pattern))
    compiled.owners = 1
    try:
        compiled.open_start = len(parts) > 1 and not parts[0]
        compiled.open_end = len(parts) > 1 and not parts[len(parts) - 1]
        if len(parts) > 1:
            parts = [part for part in parts if part]
        points = sorted(distinct)
        compiled.plain = plain
        compiled.classes = <int>len(points) + 1
        compiled.first_high = <int>len(points)
        while compiled.first_high and <int64_t>points[compiled.first_high - 1] > 255:
            compiled.first_high -= 1
        compiled.high_count = <int>len(points) - compiled.first_high
        compiled.high = <uint32_t*>allocate(max(1, compiled.high_count) * sizeof(uint32_t))
        compiled.segments = <Segment*>allocate_zeros(max(1, len(parts)), sizeof(Segment))
        classes = {}
        for i in range(compiled.high_count):
            compiled.high[i] = points[compiled.first_high + i]
            classes[points[compiled.first_high + i]] = compiled.first_high + i
        for i in range(256):
            compiled.low[i] = <uint16_t>(compiled.classes - 1)
        for i in range(compiled.first_high):
            compiled.low[<int>points[i]] = <uint16_t>i
        for part in parts:
            segment = &compiled.segments[compiled.count]
            compiled.count += 1
            segment.count = <int>len(part)
            segment.words = max(1, (segment.count + 63) // 64)
            compiled.least += segment.count
            segment.elements = <uint32_t*>allocate(max(1, segment.count) * sizeof(uint32_t))
            segment.bytes = <uint8_t*>allocate(max(1, segment.count))
            if segment.words > 1 and -1 not in part:
                segment.borders = <int*>allocate(segment.count * sizeof(int))
            else:
                segment.masks = <uint64_t*>allocate_zeros(<size_t>compiled.classes * segment.words, sizeof(uint64_t))
            for k in range(segment.count):
                point = part[k]
                segment.elements[k] = <uint32_t>ANY_ONE if point < 0 else <uint32_t>point
                segment.bytes[k] = <uint8_t>(point & 0xFF)
                if segment.masks is NULL:
                    continue
                if point >= 0:
                    c = compiled.low[point] if point < 256 else classes[point]
                    segment.masks[c * segment.words + (k >> 6)] |= <uint64_t>1 << (k & 63)
                    continue
                for c in range(compiled.classes):
                    segment.masks[c * segment.words + (k >> 6)] |= <uint64_t>1 << (k & 63)
            if segment.borders is not NULL:
                find_borders(segment)
    except BaseException:
        free_pattern(compiled)
        raise
    return compiled


cdef void find_borders(Segment* segment) noexcept nogil:
    cdef int k, border = 0
    segment.borders[0] = 0
    for k in range(1, segment.count):
        while border and segment.elements[border] != segment.elements[k]:
            border = segment.borders[border - 1]
        border += segment.elements[border] == segment.elements[k]
        segment.borders[k] = border


cdef Pattern* share_pattern(Pattern* pattern) noexcept nogil:
    pyengine_count_up(&pattern.owners)
    return pattern


cdef void free_pattern(Pattern* pattern) noexcept nogil:
    cdef int i
    if pattern is NULL or pyengine_count_down(&pattern.owners) > 0:
        return
    if pattern.segments is not NULL:
        for i in range(pattern.count):
            free(pattern.segments[i].elements)
            free(pattern.segments[i].bytes)
            free(pattern.segments[i].masks)
            free(pattern.segments[i].borders)
    free(pattern.segments)
    free(pattern.high)
    free(pattern)


def like(str text, str pattern, escape=None):
    """``text LIKE pattern ESCAPE escape`` as ActiveMQ decides it (spec activemq 1.12).

    ``%`` is any run of characters, ``_`` one code point; ``escape`` is one UTF-16 unit or None. Raises ValueError for a
    pattern that the broker refuses.
    """
    cdef Value value
    cdef Pattern* compiled = compile_pattern(pattern, escape)
    try:
        read_value(text, &value, "text", False)
        return bool(pattern_matches(compiled, &value))
    finally:
        free_pattern(compiled)
