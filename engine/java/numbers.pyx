# cython: freethreading_compatible=True, cdivision=True
"""See numbers.pxd."""

from libc.math cimport INFINITY, NAN, floor, isinf, isnan, ldexp, signbit
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset


# A natural number: little-endian words, no leading zero word, size 0 for zero.
cdef enum:
    WORDS = 192               # the largest is a 780 digit number over 10**1110, shifted: under 3900 bits
    MOST_DIGITS = 780         # these digits decide the rounding of any double; of the rest only whether it is 0


cdef struct Natural:
    int size
    uint32_t[WORDS] words


cdef void set_natural(Natural* number, uint64_t value) noexcept nogil:
    number.size = 0
    while value:
        number.words[number.size] = <uint32_t>value
        number.size += 1
        value >>= 32


cdef void multiply_add(Natural* number, uint32_t factor, uint32_t term) noexcept nogil:
    cdef uint64_t carry = term
    cdef int i
    for i in range(number.size):
        carry += <uint64_t>number.words[i] * factor
        number.words[i] = <uint32_t>carry
        carry >>= 32
    if carry:
        number.words[number.size] = <uint32_t>carry
        number.size += 1


cdef void multiply_by_five(Natural* number, int power) noexcept nogil:
    while power >= 13:
        multiply_add(number, 1220703125, 0)
        power -= 13
    while power > 0:
        multiply_add(number, 5, 0)
        power -= 1


cdef void shift_left(Natural* number, int bits) noexcept nogil:
    cdef int words = bits >> 5
    cdef int rest = bits & 31
    cdef int i
    if number.size == 0 or bits <= 0:
        return
    if rest:
        number.words[number.size] = 0
        for i in range(number.size, 0, -1):
            number.words[i] = (number.words[i] << rest) | (number.words[i - 1] >> (32 - rest))
        number.words[0] <<= rest
        if number.words[number.size]:
            number.size += 1
    if words:
        for i in range(number.size - 1, -1, -1):
            number.words[i + words] = number.words[i]
        memset(number.words, 0, words * sizeof(uint32_t))
        number.size += words


cdef int bit_length(const Natural* number) noexcept nogil:
    cdef int bits = (number.size - 1) * 32
    cdef uint32_t top
    if number.size == 0:
        return 0
    top = number.words[number.size - 1]
    while top:
        bits += 1
        top >>= 1
    return bits


cdef int order_naturals(const Natural* left, const Natural* right) noexcept nogil:
    cdef int i
    if left.size != right.size:
        return 1 if left.size > right.size else -1
    for i in range(left.size - 1, -1, -1):
        if left.words[i] != right.words[i]:
            return 1 if left.words[i] > right.words[i] else -1
    return 0


cdef void subtract(Natural* left, const Natural* right) noexcept nogil:
    """left -= right; right is not larger than left."""
    cdef int64_t borrow = 0
    cdef int i
    for i in range(left.size):
        borrow += left.words[i]
        if i < right.size:
            borrow -= right.words[i]
        left.words[i] = <uint32_t>borrow
        borrow >>= 32
    while left.size and left.words[left.size - 1] == 0:
        left.size -= 1


cdef void add(Natural* left, const Natural* right) noexcept nogil:
    cdef uint64_t carry = 0
    cdef int i
    for i in range(max(left.size, right.size)):
        if i < left.size:
            carry += left.words[i]
        if i < right.size:
            carry += right.words[i]
        left.words[i] = <uint32_t>carry
        carry >>= 32
    left.size = max(left.size, right.size)
    if carry:
        left.words[left.size] = <uint32_t>carry
        left.size += 1


cdef int next_digit(Natural* rest, const Natural* divisor) noexcept nogil:
    """The quotient, below ten; rest becomes ten times the remainder."""
    cdef int digit = 0
    while order_naturals(rest, divisor) >= 0:
        subtract(rest, divisor)
        digit += 1
    multiply_add(rest, 10, 0)
    return digit


cdef int bits_of_five(int power) noexcept nogil:
    """The JDK's estimate of the bit length of 5**power."""
    cdef uint64_t value = 1
    cdef int bits = 0
    if power == 0:
        return 0
    if power >= 27:
        return power * 3
    while power:
        value *= 5
        power -= 1
    while value:
        bits += 1
        value >>= 1
    return bits


cdef struct Decimal:
    int count                 # digits
    int point                 # 0.DIGITS times ten to this
    char[32] digits


cdef void integer_digits(uint64_t value, int insignificant, Decimal* out) noexcept nogil:
    """All digits but the insignificant ones, rounded half up, without trailing zeros."""
    cdef uint64_t unit = 1
    cdef int i = 32
    cdef int start
    cdef char[32] reverse
    for _ in range(insignificant):
        unit *= 10
    if insignificant:
        value = value // unit + (1 if value % unit >= unit >> 1 else 0)
    while value:
        i -= 1
        reverse[i] = <char>(48 + value % 10)
        value //= 10
    start = i
    out.point = 32 - start + insignificant
    out.count = 32 - start
    memcpy(out.digits, &reverse[start], out.count)
    while out.count > 1 and out.digits[out.count - 1] == 48:
        out.count -= 1


cdef void round_up(Decimal* out) noexcept nogil:
    cdef int i = out.count - 1
    while i > 0 and out.digits[i] == 57:
        out.digits[i] = 48
        i -= 1
    if out.digits[i] == 57:
        out.digits[0] = 49
        out.point += 1
        return
    out.digits[i] += 1


cdef void free_format(uint64_t fraction, int exponent, int precision, Decimal* out) noexcept nogil:
    """Digits of fraction * 2**(exponent - 52), fraction in [2**52, 2**53), of which ``precision`` bits are significant.

    The free-format algorithm of Steele and White, with the deviations of the JDK: half a gap on both sides (a quarter
    for powers of two), an estimated power of ten, at least two digits if an exponent will be printed, and an upper
    limit that is included for numbers wider than 64 bits, excluded for others, and missed if only the signed sum
    overflows.
    """
    cdef int bits = 53
    cdef uint64_t odd = fraction
    cdef int tiny, estimate, b2, b5, s2, s5, m2, common, digit, half, width
    cdef bint low, high, first
    cdef double guess
    cdef uint64_t pattern
    cdef double leading
    cdef Natural b, s, tens, m, sum_
    while not odd & 1:
        odd >>= 1
        bits -= 1
    tiny = max(0, bits - exponent - 1)
    if -21 <= exponent <= 62 and tiny == 0:
        integer_digits(
            fraction << (exponent - 52) if exponent >= 52 else fraction >> (52 - exponent),
            <int>((exponent - precision - 1) * 0.30102999566398120) if exponent - precision - 1 > 1 else 0,
            out,
        )
        return
    pattern = (<uint64_t>1023 << 52) | (fraction & ((<uint64_t>1 << 52) - 1))
    memcpy(&leading, &pattern, 8)
    guess = (leading - 1.5) * 0.289529654 + 0.176091259 + exponent * 0.301029995663981
    estimate = <int>floor(guess)
    b5 = max(0, -estimate)
    b2 = b5 + tiny + exponent
    s5 = max(0, estimate)
    s2 = s5 + tiny
    m2 = b2 - precision
    b2 -= bits - 1
    common = min(b2, s2)
    b2 -= common
    s2 -= common
    m2 -= common
    if bits == 1:
        m2 -= 1
    if m2 < 0:
        b2 -= m2
        s2 -= m2
        m2 = 0
    width = max(bits + b2 + bits_of_five(b5), s2 + 1 + bits_of_five(s5 + 1))
    width = 31 if width < 32 else 63 if width < 64 else 0
    set_natural(&b, odd)
    multiply_by_five(&b, b5)
    shift_left(&b, b2)
    set_natural(&s, 1)
    multiply_by_five(&s, s5)
    shift_left(&s, s2)
    set_natural(&m, 1)
    multiply_by_five(&m, b5)
    shift_left(&m, m2)
    memcpy(&tens, &s, sizeof(Natural))
    multiply_add(&tens, 10, 0)
    out.count = 0
    first = True
    low = high = False
    while first or not (low or high):
        digit = next_digit(&b, &s)
        multiply_add(&m, 10, 0)
        low = order_naturals(&b, &m) < 0
        memcpy(&sum_, &b, sizeof(Natural))
        add(&sum_, &m)
        high = order_naturals(&sum_, &tens) >= (1 if width else 0)
        if width and bit_length(&sum_) > width:
            high = bit_length(&m) > width
        if first and digit == 0 and not high:
            estimate -= 1
        else:
            out.digits[out.count] = <char>(48 + digit)
            out.count += 1
        if first and not -3 <= estimate < 8:
            low = high = False
        first = False
    out.point = estimate + 1
    if high:
        if low:
            shift_left(&b, 1)
            half = order_naturals(&b, &tens)
            if half > 0 or (half == 0 and out.digits[out.count - 1] & 1):
                round_up(out)
        else:
            round_up(out)


cdef int write_decimal(bint negative, const Decimal* decimal, char* text) noexcept nogil:
    """Java's layout: plain from 1e-3 up to 1e7, else one digit, a point, the others and E."""
    cdef int at = 0
    cdef int i, exponent
    if negative:
        text[at] = 45
        at += 1
    if 0 < decimal.point < 8:
        for i in range(max(decimal.count, decimal.point)):
            if i == decimal.point:
                text[at] = 46
                at += 1
            text[at] = decimal.digits[i] if i < decimal.count else 48
            at += 1
        if decimal.count <= decimal.point:
            text[at] = 46
            text[at + 1] = 48
            at += 2
        return at
    if -3 < decimal.point <= 0:
        text[at] = 48
        text[at + 1] = 46
        at += 2
        for _ in range(-decimal.point):
            text[at] = 48
            at += 1
        memcpy(text + at, decimal.digits, decimal.count)
        return at + decimal.count
    text[at] = decimal.digits[0]
    text[at + 1] = 46
    at += 2
    if decimal.count > 1:
        memcpy(text + at, &decimal.digits[1], decimal.count - 1)
        at += decimal.count - 1
    else:
        text[at] = 48
        at += 1
    text[at] = 69
    at += 1
    exponent = decimal.point - 1
    return at + write_long(exponent, text + at)


cdef int write_real(double value, int stored, int least, char* text) noexcept nogil:
    """stored: bits of the significand. least: the exponent of the smallest normal number."""
    cdef Decimal decimal
    cdef uint64_t pattern, fraction
    cdef int exponent, precision
    cdef bint negative = signbit(value) != 0
    if isnan(value):
        memcpy(text, b"NaN", 3)
        return 3
    if isinf(value):
        memcpy(text, b"-Infinity", 9)
        if not negative:
            memcpy(text, b"Infinity", 8)
        return 9 if negative else 8
    if value == 0:
        memcpy(text, b"-0.0", 4)
        if not negative:
            memcpy(text, b"0.0", 3)
        return 4 if negative else 3
    memcpy(&pattern, &value, 8)
    fraction = pattern & ((<uint64_t>1 << 52) - 1)
    exponent = <int>((pattern >> 52) & 2047)
    if exponent == 0:
        exponent = -1022
        while not fraction >> 52:
            fraction <<= 1
            exponent -= 1
    else:
        fraction |= <uint64_t>1 << 52
        exponent -= 1023
    precision = stored
    if exponent < least:
        precision = stored - (least - exponent)
    free_format(fraction, exponent, precision, &decimal)
    return write_decimal(negative, &decimal, text)


cdef int write_double(double value, char* text) noexcept nogil:
    return write_real(value, 53, -1022, text)


cdef int write_float(double value, char* text) noexcept nogil:
    return write_real(value, 24, -126, text)


cdef int write_long(int64_t value, char* text) noexcept nogil:
    cdef char[20] reverse
    cdef int i = 20
    cdef int at = 0
    cdef uint64_t rest = <uint64_t>value if value >= 0 else <uint64_t>0 - <uint64_t>value
    if value < 0:
        text[0] = 45
        at = 1
    while True:
        i -= 1
        reverse[i] = <char>(48 + rest % 10)
        rest //= 10
        if rest == 0:
            break
    memcpy(text + at, &reverse[i], 20 - i)
    return at + 20 - i


cdef int whole_digits(const uint8_t* bytes, int width, char* digits, bint* negative) noexcept nogil:
    cdef uint32_t[8] limbs
    cdef uint64_t carry
    cdef uint32_t part
    cdef char[WIDEST_WHOLE + 9] backwards
    cdef int count = (width + 3) // 4, length = 0, i
    memset(limbs, 0, sizeof(limbs))
    memcpy(limbs, bytes, width)
    negative[0] = bytes[width - 1] >= 128
    if negative[0]:
        carry = 1
        for i in range(count):
            carry += <uint32_t> ~limbs[i]
            limbs[i] = <uint32_t> carry
            carry >>= 32
    while count:
        if limbs[count - 1] == 0:
            count -= 1
            continue
        carry = 0
        for i in range(count - 1, -1, -1):
            carry = carry << 32 | limbs[i]
            limbs[i] = <uint32_t> (carry // 1000000000)
            carry = carry % 1000000000
        part = <uint32_t> carry
        for i in range(length, length + 9):
            backwards[i] = <char> (48 + part % 10)
            part = part // 10
        length += 9
    while length and backwards[length - 1] == 48:
        length -= 1
    for i in range(length):
        digits[i] = backwards[length - 1 - i]
    return length


cdef int write_plain(const uint8_t* bytes, int width, int scale, char* text) noexcept nogil:
    cdef char[WIDEST_WHOLE] digits
    cdef bint negative
    cdef int count = whole_digits(bytes, width, digits, &negative), at = 0, place
    if negative:
        text[0] = 45
        at = 1
    if count <= scale or not count:
        text[at] = 48
        at += 1
    # Digits are counted from the point: place -1 is the first behind it.
    for place in range(max(count - scale, 0) - 1, min(-scale, 0) - 1, -1):
        if place == -1:
            text[at] = 46
            at += 1
        text[at] = digits[count - scale - 1 - place] if -scale <= place < count - scale else 48
        at += 1
    return at


cdef double rounded(uint64_t significand, int exponent, bint more, int stored, int least, int most) noexcept nogil:
    """significand (top bit set) * 2**exponent, slightly more if ``more``, rounded to ``stored`` bits, ties to even.
    """
    cdef int drop = 64 - stored
    cdef int top = exponent + 63
    cdef uint64_t kept, tail, half
    if top < least:
        drop += least - top
    if drop > 64:
        return 0.0
    if drop == 64:
        kept, tail, half = 0, significand, <uint64_t>1 << 63
    else:
        kept = significand >> drop
        tail = significand & ((<uint64_t>1 << drop) - 1)
        half = <uint64_t>1 << (drop - 1)
    if tail > half or (tail == half and (more or kept & 1)):
        kept += 1
    if top + <int>(kept >> stored) >= most:
        return INFINITY
    return ldexp(<double>kept, exponent + drop)


cdef double decimal_value(
    const char* digits, int count, bint more, int power, int stored, int least, int most
) noexcept nogil:
    """The number DIGITS * 10**power, slightly more if ``more``; count is below MOST_DIGITS."""
    cdef Natural n, d
    cdef uint64_t quotient = 0
    cdef int i, shift, exponent
    cdef uint64_t small = 0
    cdef double result
    if count + power > 310:
        return INFINITY
    if count + power < -330:
        return 0.0
    if count <= 15 and not more and -22 <= power <= 22 and stored == 53:
        for i in range(count):
            small = small * 10 + <uint64_t>(digits[i] - 48)
        result = 1.0
        for _ in range(power if power > 0 else -power):
            result *= 10.0
        return <double>small * result if power >= 0 else <double>small / result
    set_natural(&n, 0)
    for i in range(count):
        multiply_add(&n, 10, <uint32_t>(digits[i] - 48))
    if more:
        multiply_add(&n, 10, 1)
        power -= 1
    set_natural(&d, 1)
    if power >= 0:
        multiply_by_five(&n, power)
    else:
        multiply_by_five(&d, -power)
    shift = bit_length(&d) - bit_length(&n)
    if shift >= 0:
        shift_left(&n, shift)
    else:
        shift_left(&d, -shift)
    if order_naturals(&n, &d) < 0:
        shift_left(&n, 1)
        shift += 1
    # 1 <= n / d < 2: 64 bits of the quotient, the first of them set.
    for _ in range(64):
        quotient <<= 1
        if order_naturals(&n, &d) >= 0:
            subtract(&n, &d)
            quotient |= 1
        shift_left(&n, 1)
    exponent = power - shift - 63
    return rounded(quotient, exponent, n.size != 0, stored, least, most)


cdef bint is_digit(char unit) noexcept nogil:
    return 48 <= unit <= 57


cdef int hex_digit(char unit) noexcept nogil:
    if 48 <= unit <= 57:
        return unit - 48
    if 97 <= unit <= 102:
        return unit - 87
    if 65 <= unit <= 70:
        return unit - 55
    return -1


cdef int exponent_number(const char* text, Py_ssize_t length, Py_ssize_t* at, bint* found) noexcept nogil:
    """[sign] digits from ``at``, kept within a million."""
    cdef bint negative = False
    cdef int number = 0
    found[0] = False
    if at[0] < length and (text[at[0]] == 43 or text[at[0]] == 45):
        negative = text[at[0]] == 45
        at[0] += 1
    while at[0] < length and is_digit(text[at[0]]):
        if number < 1000000:
            number = number * 10 + (text[at[0]] - 48)
        found[0] = True
        at[0] += 1
    return -number if negative else number


cdef bint parse_hexadecimal(
    const char* text, Py_ssize_t length, Py_ssize_t at, int stored, int least, int most, double* value
) noexcept nogil:
    """After 0x: hex digits with at most one point, p, an exponent."""
    cdef uint64_t significand = 0
    cdef Py_ssize_t scale = 0
    cdef bint more = False
    cdef bint point = False
    cdef bint any_digit = False
    cdef bint found
    cdef int digit
    cdef int64_t exponent
    while at < length:
        if text[at] == 46 and not point:
            point = True
        else:
            digit = hex_digit(text[at])
            if digit < 0:
                break
            any_digit = True
            if significand >> 60:
                more = more or digit != 0
                scale += 0 if point else 4
            else:
                significand = significand << 4 | <uint64_t>digit
                scale -= 4 if point else 0
        at += 1
    if not any_digit or at >= length or (text[at] != 112 and text[at] != 80):
        return False
    at += 1
    exponent = exponent_number(text, length, &at, &found)
    if not found:
        return False
    if at < length and (text[at] | 32 == 100 or text[at] | 32 == 102):
        at += 1
    if at != length:
        return False
    if significand == 0:
        value[0] = 0.0
        return True
    exponent += scale
    while not significand >> 63:
        significand <<= 1
        exponent -= 1
    if exponent > 2000:
        value[0] = INFINITY
    elif exponent < -2000:
        value[0] = 0.0
    else:
        value[0] = rounded(significand, <int>exponent, more, stored, least, most)
    return True


cdef bint parse_real(
    const char* text, Py_ssize_t length, int stored, int least, int most, double* value
) noexcept nogil:
    cdef char[MOST_DIGITS] digits
    cdef int count = 0
    cdef int64_t power = 0
    cdef bint more = False
    cdef bint point = False
    cdef bint any_digit = False
    cdef bint negative = False
    cdef bint found
    cdef Py_ssize_t at = 0
    if length and (text[0] == 43 or text[0] == 45):
        negative = text[0] == 45
        at = 1
    if length - at == 3 and text[at] == 78 and text[at + 1] == 97 and text[at + 2] == 78:
        value[0] = NAN
        return True
    if length - at == 8 and memcmp(text + at, b"Infinity", 8) == 0:
        value[0] = -INFINITY if negative else INFINITY
        return True
    if length - at > 2 and text[at] == 48 and text[at + 1] | 32 == 120:
        if not parse_hexadecimal(text, length, at + 2, stored, least, most, value):
            return False
        if negative:
            value[0] = -value[0]
        return True
    while at < length:
        if text[at] == 46 and not point:
            point = True
        elif is_digit(text[at]):
            any_digit = True
            if count == 0 and text[at] == 48:
                power -= 1 if point else 0
            elif count < MOST_DIGITS - 1:
                digits[count] = text[at]
                count += 1
                power -= 1 if point else 0
            else:
                more = more or text[at] != 48
                power += 0 if point else 1
        else:
            break
        at += 1
    if not any_digit:
        return False
    if at < length and text[at] | 32 == 101:
        at += 1
        power += exponent_number(text, length, &at, &found)
        if not found:
            return False
    if at < length and (text[at] | 32 == 100 or text[at] | 32 == 102):
        at += 1
    if at != length:
        return False
    value[0] = 0.0
    if count:
        while count > 1 and digits[count - 1] == 48 and not more:
            count -= 1
            power += 1
        if power > 2000:
            value[0] = INFINITY
        elif power > -4000:
            value[0] = decimal_value(digits, count, more, <int>power, stored, least, most)
    if negative:
        value[0] = -value[0]
    return True


cdef bint parse_double(const char* text, Py_ssize_t length, double* value) noexcept nogil:
    return parse_real(text, length, 53, -1022, 1024, value)


cdef bint parse_float(const char* text, Py_ssize_t length, double* value) noexcept nogil:
    return parse_real(text, length, 24, -126, 128, value)


def double_text(double value):
    """Double.toString(value) of Java 17."""
    cdef char[LONGEST_NUMBER] text
    return text[: write_double(value, text)].decode("ascii")


def float_text(double value):
    """Float.toString of Java 17 for a float given as the double it widens to."""
    cdef char[LONGEST_NUMBER] text
    return text[: write_float(value, text)].decode("ascii")


def double_value(bytes text):
    """Double.valueOf of ASCII text without surrounding blanks; ValueError if Java throws NumberFormatException."""
    cdef double value
    if not parse_double(text, len(text), &value):
        raise ValueError(f"not a Java double: {text!r}")
    return value


def float_value(bytes text):
    """Float.valueOf of ASCII text without surrounding blanks, widened; ValueError if Java throws."""
    cdef double value
    if not parse_float(text, len(text), &value):
        raise ValueError(f"not a Java float: {text!r}")
    return value


cpdef int64_t parsed_long(str name, object value) except? -1:
    """A number as Long.parseLong reads its text: a sign, decimal digits of any script, 64 bits, no blanks.

    Raises ValueError, which names it, for any other text.
    """
    cdef str text = str(value)
    cdef str digits = text[1:] if text[:1] in ("+", "-") else text
    # Java reads UTF-16 units, so digits beyond the basic plane do not count as digits.
    if digits.isdecimal() and (digits.isascii() or max(digits) <= "\uffff"):
        number = int(text)
        if INT64_MIN <= number <= INT64_MAX:
            return number
    raise ValueError(f"{name} = {text!r} is no signed 64-bit integer")
