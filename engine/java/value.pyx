# cython: freethreading_compatible=True, cdivision=True
"""See value.pxd."""

from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.unicode cimport PyUnicode_DecodeUTF8, PyUnicode_FromKindAndData
from libc.stdint cimport INT32_MAX, INT32_MIN, int32_t, int64_t, uint32_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from pyengine._engine.lowlevel.memory cimport try_allocate
from pyengine._engine.java.numbers cimport (
    LONGEST_NUMBER, WIDEST_WHOLE, write_double, write_float, write_long, write_plain,
)

import sys
from inspect import Parameter, Signature

import numpy

from pyengine.errors import InvalidMessageError, unknown_arguments

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

    def __new__(cls, unit, **unknown):
        if unknown:
            raise unknown_arguments("Char", unknown, ("unit",))
        if not isinstance(unit, str) or len(unit) != 1 or ord(unit) > 0xFFFF:
            raise InvalidMessageError(
                "Char", unit, "is not one UTF-16 code unit", hint="give one character up to U+FFFF, or use a str"
            )
        return str.__new__(cls, unit)

    # An unknown keyword is refused, so signatures do not show it.
    __new__.__func__.__signature__ = Signature(
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("cls", "unit")])

    def __repr__(self):
        return f"Char({str.__repr__(self)})"


# ---- memory of one evaluation

cdef void* take_scratch(Scratch* scratch, size_t size) noexcept nogil:
    cdef void** block = <void**>try_allocate(sizeof(void*) + size)
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
        # Asked of the object and of its type: a class derived from str may override either.
        if text_length(<PyObject*>source) > 0x7FFFFFFF:
            raise InvalidMessageError(field, "...", "text is longer than a Java string can be")
        read_text_object(source, into)
        if issubclass(type(source), Char):
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
    if java_type == DECIMAL:
        return float(decimal_text(value))
    return python_text(value)


cdef bytes decimal_text(const Value* value):
    cdef Value text
    cdef Scratch scratch
    memset(&scratch, 0, sizeof(Scratch))
    try:
        if text_of(value, &text, &scratch) != TRUE:
            raise MemoryError()
        return (<const char*>text.payload.text)[: text.length]
    finally:
        free_scratch(&scratch)


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


# ---- String.valueOf

cdef int text_of(const Value* value, Value* result, Scratch* scratch) noexcept nogil:
    cdef char* text
    cdef int scale
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
    if java_type == DECIMAL:
        scale = <int32_t>value.length
        text = <char*>take_scratch(scratch, WIDEST_WHOLE + 3 + (-scale if scale < 0 else scale))
    else:
        text = <char*>take_scratch(scratch, LONGEST_NUMBER)
    if text is NULL:
        return RAISED
    if java_type == DECIMAL:
        result.length = <uint32_t>write_plain(
            <const uint8_t*>value.payload.text, value.encoding, scale, text
        )
    elif java_type == FLOAT:
        result.length = <uint32_t>write_float(value.payload.real, text)
    elif java_type == DOUBLE:
        result.length = <uint32_t>write_double(value.payload.real, text)
    else:
        result.length = <uint32_t>write_long(value.payload.integer, text)
    result.payload.text = text
    return TRUE
