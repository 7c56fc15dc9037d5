"""Bytes that carry numbers and values; see codec.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from pyengine._engine.lowlevel.memory cimport resize

from pyengine._engine.matching.selector import Selector
from pyengine.errors import SnapshotError, unknown_arguments

cdef extern from "lowlevel/crc32.h":
    void pyengine_crc32_prepare() noexcept nogil
    uint32_t pyengine_crc32(const unsigned char* data, size_t length) noexcept nogil

pyengine_crc32_prepare()

cdef int NONE = 0, TRUE = 1, FALSE = 2, WHOLE = 3, LONG = 4, FLOAT = 5, TEXT = 6, BYTES = 7, TUPLE = 8, SELECTOR = 9
cdef int FOREIGN = 10, SHARED = 11
cdef int DEEPEST = 50            # levels of nested tuples; deeper bytes were not written by this codec


cdef uint32_t checksum(const unsigned char* data, int64_t size) noexcept nogil:
    return pyengine_crc32(data, size)


cdef class SharedValues:
    """Values that many snapshots share, such as group names and selectors, so that each is written once.

    A snapshot written with it has numbers in place of the values. It is read with the same SharedValues, or with one
    that ``restore`` makes of its ``snapshot()``. Values are only added, never removed.
    """

    def __cinit__(self, **unknown):
        if unknown:
            raise unknown_arguments("SharedValues", unknown, ())
        self.numbers = {}
        self.values = []

    def __dealloc__(self):
        free(self.handle)
        free(self.turn)

    def __len__(self):
        return len(self.values)

    def __reduce__(self):
        return type(self).restore, (self.snapshot(),)

    cdef int64_t number_of(self, object value) except -1:
        cdef object known = self.numbers.get(value)
        if known is None:
            known = self.numbers[value] = len(self.values)
            self.values.append(value)
            if len(self.values) > self.room:
                self.widen(2 * len(self.values) + 62)
        return known

    cdef int widen(self, int64_t room) except -1:
        self.handle = <int32_t*> resize(self.handle, room * sizeof(int32_t))
        self.turn = <int64_t*> resize(self.turn, room * sizeof(int64_t))
        memset(self.turn + self.room, 0, (room - self.room) * sizeof(int64_t))
        self.room = room
        return 0

    cdef void begin(self) noexcept:
        self.turns += 1

    cdef bint noted(self, int64_t number) noexcept:
        return self.turn[number] == self.turns

    cdef void note(self, int64_t number, int32_t handle) noexcept:
        self.turn[number] = self.turns
        self.handle[number] = handle

    def snapshot(self):
        """The values as a frame of bytes."""
        cdef Writer writer = Writer()
        writer.value(tuple(self.values))
        return seal(b"PYEV", 1, writer.content())

    @classmethod
    def restore(cls, bytes data not None):
        """Raises SnapshotError for bytes that are damaged or are not a frame of shared values."""
        cdef SharedValues shared = cls()
        start, end = unseal(b"PYEV", 1, data)
        cdef Reader reader = Reader(data, start, end)
        values = reader.value()
        if type(values) is not tuple:
            raise reader.refuse("they are no row of values")
        for value in values:
            if shared.number_of(value) != len(shared.values) - 1:
                raise reader.refuse("a value stands twice")
        return shared


cdef class Writer:
    """Internal to snapshots; see codec.pxd."""

    def __dealloc__(self):
        free(self.at)

    def __reduce__(self):
        raise TypeError("a Writer cannot be pickled")

    cdef int reserve(self, int64_t more) except -1:
        cdef int64_t room
        if self.size + more > self.room:
            room = max(256, 2 * self.room, self.size + more)
            self.at = <unsigned char*> resize(self.at, room)
            self.room = room
        return 0

    cdef int count(self, uint64_t number) except -1:
        if self.size + 10 > self.room:
            self.reserve(10)
        while number >= 0x80:
            self.at[self.size] = <unsigned char> (number | 0x80)
            self.size += 1
            number >>= 7
        self.at[self.size] = <unsigned char> number
        self.size += 1
        return 0

    cdef int number(self, int64_t number) except -1:
        return self.count((<uint64_t> number << 1) ^ <uint64_t> (number >> 63))

    cdef int raw(self, const void* source, int64_t size) except -1:
        self.reserve(size)
        memcpy(self.at + self.size, source, size)
        self.size += size
        return 0

    cdef int text(self, str text) except -1:
        cdef bytes data = text.encode("utf-8", "surrogatepass")
        self.count(PyBytes_GET_SIZE(data))
        return self.raw(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))

    cdef int value(self, object value) except -1:
        cdef double number
        cdef bytes data
        kind = type(value)
        if value is None:
            return self.count(NONE)
        if kind is bool:
            return self.count(TRUE if value else FALSE)
        if kind is str:
            self.count(TEXT)
            return self.text(value)
        if kind is int:
            if -(2**63) <= value < 2**63:
                self.count(WHOLE)
                return self.number(value)
            self.count(LONG)
            data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        elif kind is float:
            number = value
            self.count(FLOAT)
            return self.raw(&number, sizeof(double))
        elif kind is tuple:
            self.count(TUPLE)
            self.count(len(value))
            for item in value:
                self.value(item)
            return 0
        elif kind is Selector:
            self.count(SELECTOR)
            self.text(value.dialect)
            return self.text(value.text)
        elif kind is bytes:
            self.count(BYTES)
            data = value
        else:
            if self.save is None:
                raise SnapshotError(f"{value!r} ({kind.__name__}) is no plain value: say how to write it with save=")
            data = self.save(value)
            self.count(FOREIGN)
        self.count(PyBytes_GET_SIZE(data))
        return self.raw(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))

    cdef int common(self, object value) except -1:
        if self.shared is None:
            return self.value(value)
        return self.common_number(self.shared.number_of(value))

    cdef int common_number(self, int64_t number) except -1:
        self.count(SHARED)
        return self.count(number)

    cdef bytes content(self):
        return PyBytes_FromStringAndSize(<char*> self.at, self.size)


cdef class Reader:
    """Internal to snapshots; see codec.pxd."""

    def __cinit__(self, bytes data not None, int64_t start=0, int64_t end=-1, object load=None):
        self.data = data
        self.at = <const unsigned char*> PyBytes_AS_STRING(data)
        self.end = PyBytes_GET_SIZE(data) if end < 0 else min(end, PyBytes_GET_SIZE(data))
        self.position = min(start, self.end)
        self.load = load

    def __reduce__(self):
        raise TypeError("a Reader cannot be pickled")

    cdef object refuse(self, str problem):
        return SnapshotError(problem, self.position)

    cdef inline uint64_t digits(self) except? 1:
        cdef uint64_t number = 0
        cdef int shift = 0
        cdef unsigned char byte
        while True:
            if self.position >= self.end or shift > 63:
                raise self.refuse("the snapshot ends within a number")
            byte = self.at[self.position]
            self.position += 1
            number |= <uint64_t> (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    cdef int64_t count(self, int64_t limit) except -1:
        cdef uint64_t number = self.digits()
        if limit < 0 or number > <uint64_t> limit:
            raise self.refuse(f"{number} stands where nothing above {limit} can")
        return <int64_t> number

    cdef int64_t number(self) except? -1:
        cdef uint64_t number = self.digits()
        return <int64_t> ((number >> 1) ^ (~(number & 1) + 1))

    cdef const unsigned char* raw(self, int64_t size) except NULL:
        cdef const unsigned char* start = self.at + self.position
        if size < 0 or size > self.end - self.position:
            raise self.refuse("the snapshot ends within a value")
        self.position += size
        return start

    cdef str text(self):
        cdef int64_t size = self.count(INT64_MAX)
        cdef const unsigned char* start = self.raw(size)
        try:
            return (<const char*> start)[:size].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise self.refuse("a text is no UTF-8") from error

    cdef object value(self):
        return self._value(0)

    cdef int64_t common_number(self) except -2:
        if self.shared is None or self.position >= self.end or self.at[self.position] != SHARED:
            return -1
        self.position += 1
        return self.count(len(self.shared.values) - 1)

    def _value(self, int depth):
        cdef int kind = <int> self.count(SHARED)
        cdef double number
        cdef int64_t _, size
        cdef bytes data
        cdef list items
        if kind == NONE:
            return None
        if kind == TRUE or kind == FALSE:
            return kind == TRUE
        if kind == TEXT:
            return self.text()
        if kind == WHOLE:
            return self.number()
        if kind == FLOAT:
            memcpy(&number, self.raw(sizeof(double)), sizeof(double))
            return number
        if kind == SHARED:
            if self.shared is None:
                raise self.refuse("it was written with shared=, so it needs that to be read")
            return self.shared.values[self.count(len(self.shared.values) - 1)]
        if kind == TUPLE:
            size = self.count(self.end - self.position)
            if depth == DEEPEST:
                raise self.refuse("tuples are nested too deep")
            items = []
            for _ in range(size):
                items.append(self._value(depth + 1))
            return tuple(items)
        if kind == SELECTOR:
            dialect = self.text()
            try:
                return Selector(self.text(), dialect)
            except ValueError as error:
                raise self.refuse("a selector cannot be compiled") from error
        size = self.count(self.end - self.position)
        data = (<const char*> self.raw(size))[:size]
        if kind == BYTES:
            return data
        if kind == LONG:
            return int.from_bytes(data, "little", signed=True)
        if self.load is None:
            raise self.refuse("an object was written with save=, so it needs load= to be read")
        return self.load(data)


def seal(bytes magic not None, int version, bytes content not None):
    """A frame: magic, version, content and checksum."""
    cdef Writer writer = Writer()
    cdef uint32_t crc
    writer.raw(PyBytes_AS_STRING(magic), PyBytes_GET_SIZE(magic))
    writer.count(version)
    writer.raw(PyBytes_AS_STRING(content), PyBytes_GET_SIZE(content))
    crc = checksum(writer.at, writer.size)
    writer.raw(&crc, sizeof(uint32_t))
    return writer.content()


def unseal(bytes magic not None, int version, bytes data not None):
    """Start and end of a frame's content in ``data``; SnapshotError if this is not a whole frame of its kind."""
    cdef Reader reader = Reader(data)
    cdef uint32_t crc
    cdef int64_t end = PyBytes_GET_SIZE(data) - <int64_t> sizeof(uint32_t), found
    if not data.startswith(magic):
        raise SnapshotError(f"it does not begin with {magic!r}: it is no snapshot of this kind", 0)
    reader.position = PyBytes_GET_SIZE(magic)
    found = reader.count(INT64_MAX)
    if found != version:
        raise SnapshotError(f"it has version {found}, and this release reads version {version}", len(magic))
    if end < reader.position:
        raise SnapshotError("it ends before its checksum", PyBytes_GET_SIZE(data))
    memcpy(&crc, reader.at + end, sizeof(uint32_t))
    if crc != checksum(reader.at, end):
        raise SnapshotError("its checksum does not fit: it is damaged or was cut off", end)
    return reader.position, end
