# cython: boundscheck=True, wraparound=True
# cython: freethreading_compatible=True
from cpython.number cimport PyNumber_Index
from libc.math cimport isinf
from libc.stdint cimport INT8_MAX, INT8_MIN, INT16_MAX, INT16_MIN, INT32_MAX, INT32_MIN, int64_t
from libc.string cimport memset

from pyengine._engine.java.strings cimport parse_number
from pyengine._engine.java.value cimport (
    BOOLEAN,
    BYTE,
    DOUBLE,
    FLOAT,
    INT,
    LATIN1,
    LONG,
    SHORT,
    STRING,
    Scratch,
    Value,
    free_scratch,
    read_value,
)

import numpy

from pyengine._engine.java.strings import BLANKS
from pyengine.errors import InvalidMessageError

cdef extern from "Python.h":
    int64_t PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1

JAVA_NAMES = (
    "null", "boolean", "byte", "short", "int", "long", "float", "double", "string", "char", "big decimal", "object"
)
cdef tuple PREFIXES = ("queue://", "topic://", "temp-queue://", "temp-topic://")


cdef bint is_true(const Value* text) noexcept nogil:
    cdef Py_ssize_t unit
    cdef unsigned char letter
    if text.length != 4 or text.encoding > LATIN1:
        return False
    for unit in range(4):
        letter = (<const unsigned char*>text.payload.text)[unit]
        if letter != b"true"[unit] and letter != b"TRUE"[unit]:
            return False
    return True


cdef bint convert(const Value* from_, int java_type, Value* into) noexcept nogil:
    cdef Scratch scratch
    cdef bint done
    cdef int given = from_.type
    if given == java_type:
        into[0] = from_[0]
        return True
    if given == STRING:
        if java_type == BOOLEAN:
            into.payload.integer = is_true(from_)
            into.type = BOOLEAN
            return True
        memset(&scratch, 0, sizeof(scratch))
        done = BYTE <= java_type <= DOUBLE and parse_number(from_, java_type, into, &scratch)
        free_scratch(&scratch)
        return done
    if (BYTE <= given <= INT and given < java_type <= LONG) or (given == FLOAT and java_type == DOUBLE):
        into.payload = from_.payload
        into.type = java_type
        return True
    return False


cdef int64_t integer_between(object value, int java_type, str field) except? -1:
    cdef int overflow = 0
    cdef int64_t number = 0
    cdef int64_t least = -(<int64_t>0x7FFFFFFFFFFFFFFF) - 1
    cdef int64_t most = 0x7FFFFFFFFFFFFFFF
    if java_type == BYTE:
        least, most = INT8_MIN, INT8_MAX
    elif java_type == SHORT:
        least, most = INT16_MIN, INT16_MAX
    elif java_type == INT:
        least, most = INT32_MIN, INT32_MAX
    if type(value) is not int and (isinstance(value, bool) or not hasattr(value, "__index__")):
        raise InvalidMessageError(field, value, "not an integer", hint=f"give an int from {least} to {most}")
    number = PyLong_AsLongLongAndOverflow(PyNumber_Index(value), &overflow)
    if overflow or number < least or number > most:
        raise InvalidMessageError(
            field, value, f"out of range for a Java {JAVA_NAMES[java_type]}", hint=f"give an int from {least} to {most}"
        )
    return number


cdef double real_number(object value, str field) except? -1:
    if isinstance(value, (bool, str)) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise InvalidMessageError(field, value, "not a number", hint="give a float or an int")
    try:
        return float(value)
    except OverflowError:
        raise InvalidMessageError(field, value, "out of range for a Java double", hint="send it as text") from None


cdef object float32_of(object value, str field, str hint):
    cdef double real = real_number(value, field)
    if isinf(<float>real) and not isinf(real):
        raise InvalidMessageError(field, value, "out of range for a Java float", hint=hint)
    return numpy.float32(<float>real)


cdef bint truth_of(object value, str field) except? -1:
    if not isinstance(value, (bool, numpy.bool_)):
        raise InvalidMessageError(field, value, "not a boolean", hint="give True or False")
    return bool(value)


cdef object text_or_none(object value, str field):
    if value is None or isinstance(value, str):
        return value
    raise InvalidMessageError(field, value, "not text", hint="give a str or None")


cdef object destination_text(object value, str field):
    cdef str text, prefix, name, known
    cdef list parts
    if value is None:
        return None
    if isinstance(value, str):
        text = str(value)
    elif isinstance(getattr(value, "name", None), str) and f"{getattr(value, 'kind', None)}://" in PREFIXES:
        text = f"{value.kind}://{value.name}"  # a Destination, as a session's create_queue makes one
    else:
        raise InvalidMessageError(field, value, "not a destination", hint="give a str such as 'queue://A', or None")
    prefix = "queue://"
    name = text
    for known in PREFIXES:
        if text.startswith(known):
            prefix = known
            name = text[len(known):]
            break
    name = name.strip(BLANKS).partition("?")[0]
    if not name:
        raise InvalidMessageError(field, value, "a destination needs a name", hint="write 'queue://NAME'")
    if "," in name:
        parts = []
        for part in name.split(","):
            part = part.strip(BLANKS)
            if part.startswith(prefix):
                part = part[len(prefix):]
            if part and part not in parts:
                parts.append(part)
        name = ",".join(parts)
    return prefix + name


cdef Py_ssize_t hidden_prefix(object destination) except -1:
    return destination.index("://") + 3 if destination is not None and "," in destination else 0


cdef object message_id_text(object value, str field):
    cdef str head, last
    cdef Value text, number
    cdef Scratch scratch
    cdef int round
    text_or_none(value, field)
    if value is None or value.startswith("ID:"):
        return value
    # An id in ActiveMQ's own form ends in up to three numbers after colons; it is kept unchanged.
    head = str(value)
    for round in range(3):
        head, colon, last = head.rpartition(":")
        if not colon:
            return value if round else "ID:" + value
        read_value(last, &text, field, False)
        memset(&scratch, 0, sizeof(scratch))
        own = parse_number(&text, LONG, &number, &scratch)
        free_scratch(&scratch)
        if not own:
            return "ID:" + value
    return value


cdef object frozen_copy(object value, str field, int depth):
    cdef Value read
    if depth > DEEPEST:
        raise InvalidMessageError(field, "...", f"lists and maps are nested deeper than {DEEPEST}")
    if isinstance(value, (list, tuple)):
        return [frozen_copy(item, field, depth + 1) for item in value]
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise InvalidMessageError(field, key, "not a key of a map", hint="the keys of a map property are str")
        return {key: frozen_copy(item, field, depth + 1) for key, item in value.items()}
    read_value(value, &read, field, False)
    return value
