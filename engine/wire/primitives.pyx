"""See primitives.pxd."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pyengine._engine.java.modified_utf8 cimport decode_modified_utf8, encode_modified_utf8, java_length
from pyengine._engine.java.utf8 cimport decode_utf8
from pyengine.errors import ProtocolError

# By the byte that stands for the type; a string from BIG on has a type of its own.
TYPE_NAMES = ("null", "boolean", "byte", "char", "short", "int", "long", "double", "float", "string", "bytes", "map",
              "list")
cdef dict NUMBERS = {name: number for number, name in enumerate(TYPE_NAMES)}
cdef dict SIZES = {"byte": 1, "short": 2, "int": 4, "long": 8}

cdef enum:
    NULL_, BOOLEAN, BYTE, CHAR, SHORT, INTEGER, LONG, DOUBLE, FLOAT, STRING, BYTE_ARRAY, MAP, LIST, BIG_STRING
    BIG = 8191                          # characters of a string that is written as a big one
    DEEPEST = 100                       # maps and lists in one another; ActiveMQ's is 127 in new releases


def read_primitive_map(bytes data not None):
    """The entries of a marshalled map; None for a null one. Raises ProtocolError for what is not one."""
    cdef PrimitiveReader reader = PrimitiveReader(data)
    return reader.map()


def read_primitives(bytes data not None):
    """The values of a stream body. Raises ProtocolError for what is not one."""
    cdef PrimitiveReader reader = PrimitiveReader(data)
    cdef list found = []
    while reader.at < len(data):
        found.append(reader.primitive())
    return found


cdef class PrimitiveReader:
    def __init__(self, bytes data):
        self.data = data

    def __reduce__(self):
        raise TypeError("a reader is not pickled")

    cdef int need(self, Py_ssize_t size) except -1:
        if size < 0 or size > len(self.data) - self.at:
            raise ProtocolError(
                f"marshalled values, byte {self.at}: {size} bytes are needed, and {len(self.data) - self.at} are left")
        return 0

    cdef Py_ssize_t count(self, int size) except -1:
        """A length that is written in ``size`` bytes, of as many bytes or entries as can follow."""
        cdef int64_t length = 0
        cdef int place
        self.need(size)
        for place in range(size):
            length = length << 8 | <unsigned char> self.data[self.at + place]
        if size == 4:
            length = <int32_t> length
        self.at += size
        self.need(length)
        return length

    cdef str text(self, int size):
        cdef Py_ssize_t length = self.count(size)
        cdef const unsigned char *start = self.data
        cdef str found = decode_modified_utf8(start + self.at, length)
        if found is None:
            found = decode_utf8(self.data[self.at:self.at + length])
        self.at += length
        return found

    cdef tuple primitive(self):
        cdef int kind, size, place
        cdef uint64_t bits = 0
        cdef uint32_t half
        cdef double real
        cdef float single
        cdef Py_ssize_t length
        self.need(1)
        kind = <unsigned char> self.data[self.at]
        self.at += 1
        if kind == NULL_:
            return ("null", None)
        if kind == STRING:
            return ("string", self.text(2))
        if kind == BIG_STRING:
            return ("string", self.text(4))
        if kind == BYTE_ARRAY:
            length = self.count(4)
            self.at += length
            return ("bytes", self.data[self.at - length:self.at])
        if kind == MAP or kind == LIST:
            if self.depth >= DEEPEST:
                raise ProtocolError(f"marshalled values, byte {self.at}: nested deeper than {DEEPEST}")
            self.depth += 1
            found = self.map() if kind == MAP else self.sequence()
            self.depth -= 1
            return ("map" if kind == MAP else "list", found)
        if kind > BIG_STRING:
            raise ProtocolError(f"marshalled values, byte {self.at - 1}: unknown primitive type {<int8_t> kind}")
        size = 1 if kind <= BYTE else 2 if kind <= SHORT else 4 if kind == INTEGER or kind == FLOAT else 8
        self.need(size)
        for place in range(size):
            bits = bits << 8 | <unsigned char> self.data[self.at + place]
        self.at += size
        if kind == BOOLEAN:
            return ("boolean", bits != 0)
        if kind == BYTE:
            return ("byte", <int> <int8_t> bits)
        if kind == CHAR:
            return ("char", chr(bits))
        if kind == SHORT:
            return ("short", <int> <int16_t> bits)
        if kind == INTEGER:
            return ("int", <int32_t> bits)
        if kind == LONG:
            return ("long", <int64_t> bits)
        if kind == DOUBLE:
            memcpy(&real, &bits, 8)
            return ("double", real)
        half = <uint32_t> bits
        memcpy(&single, &half, 4)
        return ("float", <double> single)

    cdef list map(self):
        cdef list found = []
        cdef int32_t length
        cdef str name
        cdef tuple value
        self.need(4)
        length = <int32_t> (<uint32_t> <unsigned char> self.data[self.at] << 24
                            | <unsigned char> self.data[self.at + 1] << 16
                            | <unsigned char> self.data[self.at + 2] << 8 | <unsigned char> self.data[self.at + 3])
        if length < 0:
            self.at += 4
            return None
        self.count(4)
        for _ in range(length):
            name = self.text(2)
            value = self.primitive()
            found.append((name, value[0], value[1]))
        return found

    cdef list sequence(self):
        cdef Py_ssize_t length = self.count(4)
        return [self.primitive() for _ in range(length)]


def write_primitive_map(list items):
    """The bytes of a map; None: of a null one. Raises TypeError and ValueError for values that their type cannot have.
    """
    cdef list parts = []
    add_map(parts, items)
    return b"".join(parts)


def write_primitives(list items not None):
    """The bytes of a stream body. Raises TypeError and ValueError for values that their type cannot have."""
    cdef list parts = []
    for kind, value in items:
        add(parts, kind, value)
    return b"".join(parts)


cdef int add_map(list parts, object items) except -1:
    if items is None:
        parts.append(b"\xff\xff\xff\xff")
        return 0
    parts.append(len(items).to_bytes(4, "big"))
    for name, kind, value in items:
        data = encode_modified_utf8(name)
        if len(data) > 65535:
            raise ValueError(f"a name of {len(data)} bytes is too long: {name[:40]!r}")
        parts.append(len(data).to_bytes(2, "big"))
        parts.append(data)
        add(parts, kind, value)
    return 0


cdef int add(list parts, str kind, object value) except -1:
    cdef int number
    cdef double real
    cdef float single
    cdef uint64_t bits
    cdef uint32_t half
    cdef bytes data
    if kind not in NUMBERS:
        raise ValueError(f"{kind!r} is not a type of a property or of a body: {', '.join(TYPE_NAMES)}")
    number = NUMBERS[kind]
    if number == STRING:
        data = encode_modified_utf8(value)
        if java_length(value) < BIG:
            parts.append(b"\x09" + len(data).to_bytes(2, "big"))
        else:
            parts.append(b"\x0d" + len(data).to_bytes(4, "big"))
        parts.append(data)
        return 0
    parts.append(bytes((number,)))
    if number == BOOLEAN:
        parts.append(b"\x01" if value else b"\x00")
    elif number == CHAR:
        parts.append(ord(value).to_bytes(2, "big"))
    elif number == DOUBLE:
        real = value
        memcpy(&bits, &real, 8)
        parts.append(bits.to_bytes(8, "big") if real == real else b"\x7f\xf8\0\0\0\0\0\0")
    elif number == FLOAT:
        single = value
        memcpy(&half, &single, 4)
        parts.append(half.to_bytes(4, "big") if single == single else b"\x7f\xc0\0\0")
    elif number == BYTE_ARRAY:
        parts.append(len(value).to_bytes(4, "big"))
        parts.append(bytes(value))
    elif number == MAP:
        add_map(parts, value)
    elif number == LIST:
        parts.append(len(value).to_bytes(4, "big"))
        for each in value:
            add(parts, each[0], each[1])
    elif number != NULL_:
        parts.append(int(value).to_bytes(SIZES[kind], "big", signed=True))
    return 0
