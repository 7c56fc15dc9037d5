# cython: freethreading_compatible=True
"""See comparison.pxd."""

from libc.stdint cimport int64_t
from libc.string cimport memcmp, memset

from pyengine._engine.java.strings cimport is_true_text, order_text, parse_number, same_text
from pyengine._engine.java.value cimport (
    BIG_DECIMAL, BOOLEAN, BOOLEAN_AGAINST_TEXT, BYTE, CHAR, CONVERT_OR_RAISE, DOUBLE, DOUBLE_AGAINST_FLOAT, EXACT_TYPES,
    FALSE, FLOAT, INT, IS_EQUAL, IS_GREATER, IS_LESS, IS_LESS_OR_EQUAL, LONG, NOT_A_NUMBER_TEXT, NULL_VALUE, OBJECT,
    ORDERED_OBJECT, STRING, TRUE, UNKNOWN, Scratch, Value, fail, is_big, order_key, read_value,
)

from pyengine.errors import InvalidMessageError


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


cdef bint is_integer(int java_type) noexcept nogil:
    return BYTE <= java_type <= LONG


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
