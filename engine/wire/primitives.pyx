"""See primitives.pxd."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from pyengine._engine.java.modified_utf8 cimport decode_modified_utf8, encode_modified_utf8, java_length
from pyengine._engine.java.utf8 cimport decode_utf8
from pyengine._engine.wire.byte_block cimport Block, put, put_all, written
from pyengine.errors import ProtocolError

# By the byte that stands for the type; a string from BIG on has a type of its own.
TYPE_NAMES = ("null", "boolean", "byte", "char", "short", "int", "long", "double", "float", "string", "bytes", "map",
              "list")
cdef dict NUMBERS = {name: number for number, name in enumerate(TYPE_NAMES)}
cdef dict SIZES = {"byte": 1, "short": 2, "int": 4, "long": 8}

cdef enum:
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
    cdef Block block
    memset(&block, 0, sizeof(block))
    try:
        add_map(&block, items)
        return written(&block)
    finally:
        free(block.data)


def write_primitives(list items not None):
    """The bytes of a stream body. Raises TypeError and ValueError for values that their type cannot have."""
    cdef Block block
    memset(&block, 0, sizeof(block))
    try:
        for kind, value in items:
            add(&block, kind, value)
        return written(&block)
    finally:
        free(block.data)


cdef int add_map(Block *block, list items) except -1:
    if items is None:
        return put(block, 0xFFFFFFFF, 4)
    put(block, len(items), 4)
    for name, kind, value in items:
        add_name(block, name)
        add(block, kind, value)
    return 0


cdef int add_name(Block *block, str name) except -1:
    cdef bytes data = encode_modified_utf8(name)
    if len(data) > 65535:
        raise ValueError(f"a name of {len(data)} bytes is too long: {name[:40]!r}")
    put(block, len(data), 2)
    return put_all(block, data)


cdef int add_text(Block *block, str value) except -1:
    cdef bytes data = encode_modified_utf8(value)
    if java_length(value) < BIG:
        put(block, STRING, 1)
        put(block, len(data), 2)
    else:
        put(block, BIG_STRING, 1)
        put(block, len(data), 4)
    return put_all(block, data)


cdef int add_double(Block *block, double real) except -1:
    cdef uint64_t bits
    memcpy(&bits, &real, 8)
    put(block, DOUBLE, 1)
    return put(block, bits if real == real else 0x7FF8000000000000, 8)


cdef int add_float(Block *block, float single) except -1:
    cdef uint32_t half
    memcpy(&half, &single, 4)
    put(block, FLOAT, 1)
    return put(block, half if single == single else 0x7FC00000, 4)


cdef int add(Block *block, str kind, object value) except -1:
    cdef int number
    if kind not in NUMBERS:
        raise ValueError(f"{kind!r} is not a type of a property or of a body: {', '.join(TYPE_NAMES)}")
    number = NUMBERS[kind]
    if number == STRING:
        return add_text(block, value)
    if number == DOUBLE:
        return add_double(block, value)
    if number == FLOAT:
        return add_float(block, value)
    put(block, number, 1)
    if number == BOOLEAN:
        put(block, 1 if value else 0, 1)
    elif number == CHAR:
        put(block, ord(value), 2)
    elif number == BYTE_ARRAY:
        put(block, len(value), 4)
        put_all(block, bytes(value))
    elif number == MAP:
        add_map(block, value)
    elif number == LIST:
        put(block, len(value), 4)
        for each in value:
            add(block, each[0], each[1])
    elif number != NULL_:
        put_all(block, int(value).to_bytes(SIZES[kind], "big", signed=True))
    return 0
