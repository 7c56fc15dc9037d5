"""See openwire.pxd."""

from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeLatin1
from libc.stdint cimport INT64_MAX, int8_t, int16_t, int32_t, int64_t, uint16_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from pyengine._engine.java.modified_utf8 cimport decode_modified_utf8, encode_modified_utf8
from pyengine._engine.java.strings import BLANKS
from pyengine._engine.wire.byte_block cimport put, put_all
from pyengine._engine.wire.data_structure cimport (
    ARRAY, BOOLEAN, BYTE, BYTES, CACHED, INT, LONG, MAGIC, NESTED, STRING, Program, structure_of,
)
from pyengine._engine.wire.data_structure import VERSIONS
from pyengine._engine.wire.openwire_types import NO_COMMAND, TYPES
from pyengine.errors import ProtocolError

MAX_FRAME_SIZE = 100 * 1024 * 1024
CACHE_SIZE = 16383              # OpenWireFormat.MARSHAL_CACHE_SIZE

cdef enum:
    DEEPEST = 100               # structures in structures, and causes of a throwable; ActiveMQ's stack is its limit
    CACHE_FREE = 100            # OpenWireFormat.MARSHAL_CACHE_FREE_SPACE
    LONGEST_TIGHT_STRING = 32766
    LONGEST_STRING = 65535
    SPARE_BITS = 48 * 8         # a BooleanStream of ActiveMQ has as many, though the frame has fewer
    NEW_PLACE = -1              # the cache is full: not cached

cdef list BY_NUMBER = [None] * 256
for each in TYPES.values():
    if each.number > 0:
        BY_NUMBER[each.number] = each
cdef bytes ANYTHING = bytes(256)


class TruncatedError(ProtocolError):
    """The bytes end within a frame."""


cdef inline uint64_t big_endian(const unsigned char *data, int size) noexcept nogil:
    cdef uint64_t value = 0
    cdef int place
    for place in range(size):
        value = value << 8 | data[place]
    return value


def check_version(version):
    if version not in VERSIONS:
        raise ValueError(f"version: {version!r} is not one of {min(VERSIONS)} to {max(VERSIONS)}")


cdef class OpenWireReader(FrameReader):
    """Commands from bytes that arrive in pieces of any size (OpenWireFormat.unmarshal).

    version: 9 to 12 (default). tight, cache, size_prefix, stack_trace: what both ends agreed on; by default as at the
    start of a connection: loose, no cache, a size prefix, no stack traces. max_frame_size: most bytes behind a size
    prefix, 100 MiB by default. cache_size: structures that the cache holds.

    Feed it and iterate: the commands that are complete come out, the rest waits for more bytes. A type byte 0 is
    NO_COMMAND. Raises ProtocolError, which names type, field and position, at the frame that is not one; the commands
    before it came out, none comes after it. A frame that is shorter or longer than its size prefix says is refused,
    which ActiveMQ does not do.
    """

    def __init__(self, int version=12, **settings):
        self.use(version, **settings)

    def use(self, int version=12, *, bint tight=False, bint cache=False, bint size_prefix=True, bint stack_trace=False,
            int64_t max_frame_size=MAX_FRAME_SIZE, int cache_size=CACHE_SIZE):
        """Read what comes next so; see the class. The cache is empty again. Raises ValueError for another version."""
        check_version(version)
        self.version, self.tight, self.cache = version, tight, cache
        self.size_prefix, self.stack_trace, self.max_frame_size = size_prefix, stack_trace, max_frame_size
        self.received = [None] * cache_size if cache else []

    cdef object next_frame(self):
        cdef Py_ssize_t waiting = len(self.buffer), start = 4 if self.size_prefix else 0
        cdef int64_t size = waiting
        cdef DataStructure found
        if waiting <= start:
            return None
        self.data = <const unsigned char*> PyByteArray_AS_STRING(self.buffer)
        if self.size_prefix:
            size = <int32_t> big_endian(self.data, 4)
            if size < 1:
                raise ProtocolError(f"a frame of {size} bytes: a frame has a type byte at least")
            if size > self.max_frame_size:
                raise ProtocolError(f"a frame of {size} bytes is longer than {self.max_frame_size}")
            if waiting - 4 < size:
                return None
        self.data += start
        self.at, self.end, self.depth = 0, size, 0
        try:
            found = self.command()
        except TruncatedError:
            if self.size_prefix or waiting > self.max_frame_size:
                raise
            return None
        finally:
            self.data = NULL
        if self.size_prefix and self.at != self.end:
            raise ProtocolError(f"{found.kind.name}: a frame of {size} bytes, whose fields end after {self.at}")
        del self.buffer[:start + self.at]
        return found

    cdef object refuse(self, str problem):
        where = "a frame" if self.kind is None else self.kind.name
        if self.kind is not None and 0 <= self.place < len(self.kind.fields):
            where = f"{where}.{self.kind.fields[self.place]}"
        raise ProtocolError(f"{where}, byte {self.at}: {problem}")

    cdef int need(self, Py_ssize_t size) except -1:
        if size > self.end - self.at:
            where = "a frame" if self.kind is None else self.kind.name
            raise TruncatedError(f"{where}, byte {self.at}: {size} bytes are needed, and {self.end - self.at} are left")
        return 0

    cdef DataStructure command(self):
        cdef int number
        self.kind, self.place = None, -1
        self.need(1)
        number = self.data[0]
        self.at = 1
        if number == 0:
            return NO_COMMAND
        if self.tight and BY_NUMBER[number] is not None:
            self.begin_bits()
        return self.structure(number, None)

    cdef int begin_bits(self) except -1:
        """The array of bits: its length in 1, 2 or 3 bytes, then the bytes (BooleanStream.unmarshal)."""
        cdef int64_t size
        self.need(1)
        size = self.data[self.at]
        self.at += 1
        if size == 0xC0:
            size = self.integer(1) & 0xFF
        elif size == 0x80:
            size = self.integer(2)
            if size < 0:
                self.refuse(f"an array of {size} bytes of bits")
        self.need(size)
        self.bits = self.data + self.at
        self.bit, self.bit_count = 0, size * 8
        self.at += size
        return 0

    cdef bint flag(self) except -1:
        cdef bint value
        if self.tight:
            if self.bit >= self.bit_count:
                if self.bit >= SPARE_BITS:
                    self.refuse(f"more than the {self.bit_count} bits of the frame are read")
                self.bit += 1
                return False
            value = self.bits[self.bit >> 3] >> (self.bit & 7) & 1
            self.bit += 1
            return value
        self.need(1)
        value = self.data[self.at] != 0
        self.at += 1
        return value

    cdef int64_t integer(self, int size) except? -1:
        cdef uint64_t value
        self.need(size)
        value = big_endian(self.data + self.at, size)
        self.at += size
        if size == 1:
            return <int8_t> value
        if size == 2:
            return <int16_t> value
        return <int32_t> value

    cdef int64_t long_integer(self) except? -1:
        cdef int size = 8
        cdef bint high, low
        cdef uint64_t value
        if self.tight:
            high = self.flag()
            low = self.flag()
            size = (8 if low else 4) if high else 2 if low else 0
        self.need(size)
        value = big_endian(self.data + self.at, size)
        self.at += size
        return <int64_t> value

    cdef str string(self):
        cdef Py_ssize_t size
        if not self.flag():
            return None
        if self.tight and self.flag():      # each byte is a character
            size = self.integer(2)
            if size < 0:
                self.refuse(f"a text of {size} bytes")
            self.need(size)
            self.at += size
            return PyUnicode_DecodeLatin1(<const char*> self.data + self.at - size, size, NULL)
        return self.utf(<uint16_t> self.integer(2))

    cdef str utf(self, Py_ssize_t size):
        cdef str text
        self.need(size)
        text = decode_modified_utf8(self.data + self.at, size)
        if text is None:
            self.refuse(f"{self.data[self.at:self.at + min(size, 40)]!r} is not modified UTF-8")
        self.at += size
        return text

    cdef bytes octets(self, Py_ssize_t size):
        self.need(size)
        self.at += size
        return PyBytes_FromStringAndSize(<const char*> self.data + self.at - size, size)

    cdef bytes sequence(self):
        cdef int64_t size
        if not self.flag():
            return None
        size = self.integer(4)
        if size < 0:
            self.refuse(f"an array of {size} bytes")
        return self.octets(size)

    cdef DataStructure nested(self, bytes allowed):
        if not self.flag():
            return None
        return self.structure(self.integer(1) & 0xFF, allowed)

    cdef DataStructure cached(self, bytes allowed):
        cdef DataStructure found
        cdef int index
        cdef bint new
        if not self.cache:
            return self.nested(allowed)
        new = self.flag()
        index = self.integer(2)
        if not new:
            if not 0 <= index < len(self.received):
                self.refuse(f"index {index} of a cache of {len(self.received)}")
            found = self.received[index]
            if found is not None and not allowed[found.kind.number]:
                self.refuse(f"index {index} of the cache is a {found.kind.name}, which cannot stand here")
            return found
        found = self.nested(allowed)
        if index != NEW_PLACE:
            if not 0 <= index < len(self.received):
                self.refuse(f"index {index} of a cache of {len(self.received)}")
            self.received[index] = found
        return found

    cdef list array(self, bytes allowed):
        cdef int64_t count
        cdef list found = []
        if not self.flag():
            return None
        count = self.integer(2)
        if count < 0:
            self.refuse(f"an array of {count} structures")
        if not self.tight:
            self.need(count)
        for _ in range(count):      # each takes a bit or a byte of the frame
            found.append(self.nested(allowed))
        return found

    cdef JavaThrowable throwable(self, int depth):
        cdef str class_name, message
        cdef int64_t count
        cdef list stack = []
        cdef JavaThrowable cause = None
        if not self.flag():
            return None
        if depth > DEEPEST:
            self.refuse(f"a throwable with more than {DEEPEST} causes")
        class_name = self.string()
        message = self.string()
        if self.stack_trace:
            count = self.integer(2)
            if count < 0:
                self.refuse(f"a stack of {count} elements")
            for _ in range(count):
                stack.append((self.string(), self.string(), self.string(), self.integer(4)))
            cause = self.throwable(depth + 1)
        return JavaThrowable(class_name, message, tuple(stack), cause)

    cdef DataStructure structure(self, int number, bytes allowed):
        cdef StructureType kind = BY_NUMBER[number]
        cdef Program program
        cdef const unsigned char *forms
        cdef const unsigned char *places
        cdef list values
        cdef int step, form
        cdef object value
        cdef str name
        if kind is None or kind.since > self.version:
            self.refuse(f"unknown data type {number}")
        if allowed is not None:
            if not allowed[number]:
                self.refuse(f"a {kind.name} cannot stand here")
            if self.tight and kind.marshal_aware and self.flag():
                self.refuse(f"a {kind.name} in a form of its own, which no version writes")
        self.depth += 1
        if self.depth > DEEPEST:
            self.refuse(f"structures are nested deeper than {DEEPEST}")
        program = kind.programs[self.version]
        forms, places = program.forms, program.places
        values = kind.defaults.copy()
        for step in range(len(program.forms)):
            form = forms[step]
            self.kind, self.place = kind, places[step]
            if form == BOOLEAN:
                value = self.flag()
            elif form == CACHED:
                value = self.cached(<bytes> program.allowed[step])
            elif form == LONG:
                value = self.long_integer()
            elif form == STRING:
                value = self.string()
            elif form == INT:
                value = self.integer(4)
            elif form == NESTED:
                value = self.nested(<bytes> program.allowed[step])
            elif form == BYTES:
                value = self.sequence()
            elif form == ARRAY:
                value = self.array(<bytes> program.allowed[step])
            elif form == BYTE:
                value = self.integer(1)
            elif form == MAGIC:
                value = self.octets(8)
            else:
                value = self.throwable(0)
            values[places[step]] = value
        self.depth -= 1
        if kind.is_destination:
            # ActiveMQDestination.setPhysicalName
            self.kind, self.place = kind, 0
            name = values[0]
            name = "" if name is None else name.strip(BLANKS)
            if not name:
                self.refuse("a destination needs a name that is not empty")
            values[0] = name.partition("?")[0]
        return structure_of(kind, values)


cdef class OpenWireWriter:
    """Frames of commands (OpenWireFormat.marshal). Its settings are a reader's: see OpenWireReader.

    Raises TypeError and ValueError, which name type and field, for a value that the field cannot have.
    """

    def __init__(self, int version=12, **settings):
        self.use(version, **settings)

    def __dealloc__(self):
        free(self.out.data)
        free(self.bits.data)

    def __reduce__(self):
        raise TypeError("a writer is part of its connection and cannot be pickled")

    def use(self, int version=12, *, bint tight=False, bint cache=False, bint size_prefix=True, bint stack_trace=False,
            int64_t max_frame_size=INT64_MAX, int cache_size=CACHE_SIZE):
        """Write what comes next so; see the class. The cache is empty again. Raises ValueError for another version."""
        check_version(version)
        self.version, self.tight, self.cache = version, tight, cache
        self.size_prefix, self.stack_trace, self.max_frame_size = size_prefix, stack_trace, max_frame_size
        self.sent = [None] * cache_size if cache else []
        self.sent_places = {}
        self.next_place = self.next_eviction = 0

    def write(self, DataStructure command not None):
        """The frame of one command."""
        cdef Py_ssize_t size
        cdef int lengths
        cdef bytes frame
        cdef unsigned char *at
        while self.cache and len(self.sent_places) > max(0, len(self.sent) - CACHE_FREE):
            self.sent_places.pop(self.sent[self.next_eviction], None)
            self.sent[self.next_eviction] = None
            self.next_eviction += 1
            if self.next_eviction >= len(self.sent):
                self.next_eviction = 0
        self.out.size = self.bits.size = 0
        self.bit = 0
        self.depth = 0
        self.kind, self.place = command.kind, -1
        if command.kind.number < 0 or command.kind.since > self.version:
            self.wrong(command.kind.name, f"cannot be written in version {self.version}")
        if command.kind.number > 0:
            self.structure(command)
        size = 1 + self.out.size
        lengths = 0
        if self.tight and command.kind.number > 0:
            lengths = 1 if self.bits.size < 64 else 2 if self.bits.size < 256 else 3
            if self.bits.size > 32767:
                raise ValueError(f"{command.kind.name}: more than {32767 * 8} flags")
            size += lengths + self.bits.size
        if size > self.max_frame_size or size > 0x7FFFFFFF:
            raise ValueError(f"{command.kind.name}: a frame of {size} bytes is longer than {self.max_frame_size}")
        frame = PyBytes_FromStringAndSize(NULL, size + (4 if self.size_prefix else 0))
        at = <unsigned char*> PyBytes_AS_STRING(frame)
        if self.size_prefix:
            at[0], at[1], at[2], at[3] = size >> 24 & 0xFF, size >> 16 & 0xFF, size >> 8 & 0xFF, size & 0xFF
            at += 4
        at[0] = command.kind.number
        at += 1
        if lengths:
            if lengths == 3:
                at[0], at[1], at[2] = 0x80, self.bits.size >> 8, self.bits.size & 0xFF
            elif lengths == 2:
                at[0], at[1] = 0xC0, self.bits.size
            else:
                at[0] = self.bits.size
            at += lengths
            memcpy(at, self.bits.data, self.bits.size)
            at += self.bits.size
        if self.out.size:
            memcpy(at, self.out.data, self.out.size)
        return frame

    cdef object wrong(self, object value, str problem):
        where = self.kind.name
        if 0 <= self.place < len(self.kind.fields):
            where = f"{where}.{self.kind.fields[self.place]}"
        kind = ValueError if isinstance(value, (str, int, list)) else TypeError
        raise kind(f"{where}: {str(value)[:80]!r} {problem}")

    cdef int flag(self, bint value) except -1:
        if not self.tight:
            return put(&self.out, value, 1)
        if self.bit & 7 == 0:
            put(&self.bits, 0, 1)
        if value:
            self.bits.data[self.bit >> 3] |= 1 << (self.bit & 7)
        self.bit += 1
        return 0

    cdef int structure(self, DataStructure value) except -1:
        cdef StructureType kind = value.kind
        cdef Program program = kind.programs[self.version]
        cdef const unsigned char *forms = program.forms
        cdef const unsigned char *places = program.places
        cdef int step
        self.depth += 1
        if self.depth > DEEPEST:
            self.wrong(kind.name, f"is nested deeper than {DEEPEST}")
        for step in range(len(program.forms)):
            self.kind, self.place = kind, places[step]
            self.field(forms[step], value.values[places[step]], <bytes> program.allowed[step])
        self.depth -= 1
        return 0

    cdef int field(self, int form, object value, bytes allowed) except -1:
        if form == BOOLEAN:
            return self.flag(value)
        if form == CACHED:
            return self.cached(value, allowed)
        if form == LONG:
            return self.long_integer(self.whole(value, 64))
        if form == STRING:
            return self.string(value)
        if form == INT:
            return put(&self.out, self.whole(value, 32), 4)
        if form == NESTED:
            return self.nested(value, allowed)
        if form == BYTES:
            return self.sequence(value)
        if form == ARRAY:
            return self.array(value, allowed)
        if form == BYTE:
            return put(&self.out, self.whole(value, 8), 1)
        if form == MAGIC:
            if type(value) is not bytes or len(value) != 8:
                self.wrong(value, "is not 8 bytes")
            return put_all(&self.out, value)
        return self.throwable(value, 0)

    cdef int64_t whole(self, object value, int bits) except? -1:
        cdef int64_t number = 0
        if not isinstance(value, int):
            self.wrong(value, "is not a whole number")
        try:
            number = value
        except OverflowError:
            self.wrong(value, f"does not fit into {bits} bits")
        if bits < 64 and not -(<int64_t> 1 << (bits - 1)) <= number < <int64_t> 1 << (bits - 1):
            self.wrong(value, f"does not fit into {bits} bits")
        return number

    cdef int long_integer(self, int64_t value) except -1:
        cdef uint64_t number = <uint64_t> value
        cdef int size = 8
        if self.tight:
            size = 0 if number == 0 else 2 if number >> 16 == 0 else 4 if number >> 32 == 0 else 8
            self.flag(size >= 4)
            self.flag(size == 2 or size == 8)
        return put(&self.out, number, size)

    cdef int string(self, object value) except -1:
        cdef bytes data
        cdef bint plain
        if value is not None and not isinstance(value, str):
            self.wrong(value, "is not a text")
        self.flag(value is not None)
        if value is None:
            return 0
        data = encode_modified_utf8(value)
        if len(data) > (LONGEST_TIGHT_STRING if self.tight else LONGEST_STRING):
            self.wrong(value, f"is a text of {len(data)} bytes, which is too long")
        if self.tight:
            plain = len(data) == len(value) and value.isascii()
            self.flag(plain)
        put(&self.out, len(data), 2)
        return put_all(&self.out, data)

    cdef int sequence(self, object value) except -1:
        if value is not None and type(value) is not bytes:
            self.wrong(value, "is not bytes")
        self.flag(value is not None)
        if value is None:
            return 0
        put(&self.out, len(<bytes> value), 4)
        return put_all(&self.out, value)

    cdef int nested(self, object value, bytes allowed) except -1:
        cdef StructureType kind
        if value is None:
            return self.flag(False)
        if type(value) is not DataStructure:
            self.wrong(value, "is not a structure")
        kind = (<DataStructure> value).kind
        if kind.number <= 0 or not allowed[kind.number]:
            self.wrong(kind.name, f"cannot stand here in version {self.version}")
        self.flag(True)
        if self.tight and kind.marshal_aware:
            self.flag(False)
        put(&self.out, kind.number, 1)
        return self.structure(value)

    cdef int cached(self, object value, bytes allowed) except -1:
        cdef object index
        cdef Py_ssize_t hole
        if not self.cache:
            return self.nested(value, allowed)
        index = self.sent_places.get(value)
        self.flag(index is None)
        if index is not None:
            if value is not None and not allowed[(<DataStructure> value).kind.number]:
                self.wrong((<DataStructure> value).kind.name, "cannot stand here")
            return put(&self.out, <int> index, 2)
        if not self.tight:
            put(&self.out, <uint16_t> self.remember(value), 2)
            return self.nested(value, allowed)
        hole = self.out.size            # what is nested in it gets its index first
        put(&self.out, 0, 2)
        self.nested(value, allowed)
        index = self.remember(value)
        self.out.data[hole] = <uint16_t> <int> index >> 8
        self.out.data[hole + 1] = <uint16_t> <int> index & 0xFF
        return 0

    cdef int remember(self, object value) except -2:
        cdef int place = self.next_place
        self.next_place += 1
        if self.next_place >= len(self.sent):
            self.next_place = 0
        if len(self.sent_places) >= len(self.sent):
            return NEW_PLACE
        self.sent[place] = value
        self.sent_places[value] = place
        return place

    cdef int array(self, object value, bytes allowed) except -1:
        if value is not None and not isinstance(value, (list, tuple)):
            self.wrong(value, "is not a list")
        self.flag(value is not None)
        if value is None:
            return 0
        if len(value) > 32767:
            self.wrong(len(value), "structures are too many")
        put(&self.out, len(value), 2)
        for each in value:
            self.nested(each, allowed)
        return 0

    cdef int throwable(self, object value, int depth) except -1:
        cdef JavaThrowable given
        if value is not None and type(value) is not JavaThrowable:
            self.wrong(value, "is not a JavaThrowable")
        self.flag(value is not None)
        if value is None:
            return 0
        given = value
        if depth > DEEPEST:
            self.wrong(given.class_name, f"has more than {DEEPEST} causes")
        if given.message is None and self.version == 10:
            self.wrong(given.class_name, "has no message, and version 10 cannot say so")
        self.string(given.class_name)
        self.string(given.message)
        if self.stack_trace:
            if len(given.stack) > 32767:
                self.wrong(given.class_name, "has too many elements of a stack")
            put(&self.out, len(given.stack), 2)
            for element in given.stack:
                for part in element[:3]:
                    self.string(part)
                put(&self.out, self.whole(element[3], 32), 4)
            self.throwable(given.cause, depth + 1)
        return 0
