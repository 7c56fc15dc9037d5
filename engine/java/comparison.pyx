# cython: freethreading_compatible=True
"""See comparison.pxd."""

from libc.math cimport fabs, isinf, pow
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdio cimport snprintf
from libc.string cimport memcmp, memcpy, memset

from pyengine._engine.java.numbers cimport (
    LONGEST_NUMBER, WIDEST_WHOLE, parse_double, parse_float, whole_digits, write_long,
)
from pyengine._engine.java.strings cimport is_true_text, order_text, parse_number, same_text
from pyengine._engine.java.sortable cimport double_to_sortable_long
from pyengine._engine.java.value cimport (
    BIG_DECIMAL, BOOLEAN, BOOLEAN_AGAINST_TEXT, BYTE, CHAR, CONVERT_OR_RAISE, DECIMAL, DOUBLE, DOUBLE_AGAINST_FLOAT,
    EXACT_TYPES, FALSE, FLOAT, INT, IS_EQUAL, IS_GREATER, IS_LESS, IS_LESS_OR_EQUAL, LONG, NOT_A_NUMBER_TEXT,
    NULL_VALUE, OBJECT, ORDERED_OBJECT, STRING, TRUE, UNKNOWN, Scratch, Value, fail, is_big, read_value,
)

from pyengine.errors import InvalidMessageError


cpdef bint java_equal(object left, object right):
    """left.equals(right): the same Java type and equal; lists and maps by their members; None equals only None.

    Raises InvalidMessageError for a value that no message can carry.
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


cdef bint is_integer(int java_type) noexcept nogil:
    return BYTE <= java_type <= LONG


cdef int order_integers(int64_t left, int64_t right) noexcept nogil:
    return (left > right) - (left < right)


cdef int order_reals(double left, double right) noexcept nogil:
    return order_integers(double_to_sortable_long(left), double_to_sortable_long(right))


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


# ---- exact decimal numbers of columns

cdef struct Digits:            # a number as 0.d1 d2 ... times 10 ** point
    bint negative
    bint more                  # digits that are not zero follow those kept
    int count                  # 0: the number is zero; neither the first nor the last is zero
    int64_t point
    char[WIDEST_WHOLE] digits


cdef void read_digits(Digits* into, const char* text, uint32_t length) noexcept nogil:
    """From text: -, digits, optionally a decimal point (any locale's) and digits, optionally an exponent."""
    cdef uint32_t i, j
    cdef int64_t exponent = 0
    cdef bint behind = False
    memset(into, 0, sizeof(Digits) - WIDEST_WHOLE)
    into.negative = text[0] == 45
    for i in range(1 if into.negative else 0, length):
        if text[i] == 101:
            for j in range(i + 2, length):
                exponent = 10 * exponent + (text[j] - 48)
            into.point += -exponent if text[i + 1] == 45 else exponent
            break
        elif not 48 <= text[i] <= 57:
            behind = True
        else:
            if into.count < WIDEST_WHOLE and (into.count or text[i] != 48):
                into.digits[into.count] = text[i]
                into.count += 1
            elif into.count:
                into.more = into.more or text[i] != 48
            if into.count and not behind:
                into.point += 1
            elif not into.count and behind:
                into.point -= 1
    while into.count and not into.more and into.digits[into.count - 1] == 48:
        into.count -= 1


cdef void read_shortest(double value, bint single, Digits* into) noexcept nogil:
    """The shortest decimal number that reads back as this double or float."""
    cdef char[LONGEST_NUMBER] text
    cdef double back
    cdef int length, count = 6 if single else 15
    while True:
        length = snprintf(text, LONGEST_NUMBER, b"%.*e", count - 1, value)
        read_digits(into, text, length)
        count += 1
        if count > (9 if single else 17):
            return
        text[into.negative + 1] = 46
        if parse_float(text, length, &back) if single else parse_double(text, length, &back):
            if back == value:
                return


cdef void digits_of(const Value* number, Digits* into) noexcept nogil:
    """From a number that is finite."""
    cdef char[LONGEST_NUMBER] text
    if number.type == DECIMAL:
        into.more = False
        into.count = whole_digits(
            <const uint8_t*>number.payload.text, number.encoding, into.digits, &into.negative
        )
        into.point = into.count - <int64_t>(<int32_t>number.length)
        while into.count and into.digits[into.count - 1] == 48:
            into.count -= 1
    elif number.type == BIG_DECIMAL:
        read_digits(into, <const char*>number.payload.text, number.length)
    elif number.type == DOUBLE or number.type == FLOAT:
        read_shortest(number.payload.real, number.type == FLOAT, into)
    else:
        read_digits(into, text, write_long(number.payload.integer, text))


cdef int order_digits(const Digits* left, const Digits* right) noexcept nogil:
    cdef int order, least
    if not left.count or not right.count or left.negative != right.negative:
        order = (0 if not left.count else -1 if left.negative else 1)
        least = (0 if not right.count else -1 if right.negative else 1)
        return (order > least) - (order < least)
    order = order_integers(left.point, right.point)
    if order == 0:
        least = min(left.count, right.count)
        order = memcmp(left.digits, right.digits, least)
        order = (order > 0) - (order < 0)
    if order == 0:
        order = order_integers(left.count, right.count)
    if order == 0:
        order = <int>left.more - <int>right.more
    return -order if left.negative else order


cdef double about(const Value* number) noexcept nogil:
    """The number as a double, with a relative error far below 1e-12."""
    cdef double real = 0.0
    cdef uint32_t[8] limbs
    cdef int i, count
    cdef bint negative
    if number.type == FLOAT or number.type == DOUBLE:
        return number.payload.real
    if number.type != DECIMAL:
        return <double>number.payload.integer
    count = (number.encoding + 3) // 4
    memcpy(limbs, number.payload.text, number.encoding)
    negative = limbs[count - 1] >> 31
    for i in range(count - 1, -1, -1):
        real = real * 4294967296.0 + <double>(<uint32_t>~limbs[i] if negative else limbs[i])
    if negative:
        real = -(real + 1.0)
    i = <int32_t>number.length
    return real / pow(10.0, i) if i > 0 else real * pow(10.0, -i) if i else real


cdef int order_decimals(const Value* left, const Value* right) noexcept nogil:
    """Two numbers, one of them a DECIMAL. NaN is above all others, as in Double.compareTo."""
    cdef Digits a, b
    cdef double x, y, wide
    if left.type != BIG_DECIMAL and right.type != BIG_DECIMAL:
        x, y = about(left), about(right)
        if x != x or y != y:
            return <int>(x != x) - <int>(y != y)
        wide = 1e-6 if left.type == FLOAT or right.type == FLOAT else 1e-12
        wide *= fabs(x) if fabs(x) > fabs(y) else fabs(y)
        if isinf(wide) or x - y > wide or y - x > wide:
            return (x > y) - (x < y)
    digits_of(left, &a)
    digits_of(right, &b)
    return order_digits(&a, &b)


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
    if java_type == DECIMAL:
        return verdict(relation, order_decimals(left, right))
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
    """A string against another type, under the rules that convert strings."""
    cdef Value converted
    cdef const Value* text = left if left.type == STRING else right
    cdef int other = right.type if left.type == STRING else left.type
    if other == BOOLEAN:
        if right.type == STRING:
            return fail(BOOLEAN_AGAINST_TEXT, scratch)
        return verdict(relation, order_integers(is_true_text(text), right.payload.integer))
    if not BYTE <= other <= DOUBLE and other != DECIMAL:
        return FALSE
    if not parse_number(text, DOUBLE if other == DECIMAL else other, &converted, scratch):
        if rules == CONVERT_OR_RAISE:
            return fail(NOT_A_NUMBER_TEXT, scratch)
        return FALSE
    if other == DECIMAL:
        return verdict(
            relation, order_decimals(&converted, right) if left.type == STRING else order_decimals(left, &converted)
        )
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
    if (a == DECIMAL and (BYTE <= b <= DOUBLE or b == BIG_DECIMAL)) or (
        b == DECIMAL and (BYTE <= a <= DOUBLE or a == BIG_DECIMAL)
    ):
        return verdict(relation, order_decimals(left, right))
    return FALSE
