from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from cpython.ref cimport PyObject
from libc.string cimport memcpy, memset

from pyengine._engine.java.comparison cimport compare
from pyengine._engine.message.conversion cimport frozen_copy
from pyengine._engine.message.header cimport fresh_header, header_code
from pyengine._engine.message.message cimport Message, slot_value
from pyengine._engine.java.value cimport (
    BIG_DECIMAL,
    EXACT_TYPES,
    IS_EQUAL,
    NULL_VALUE,
    OBJECT,
    STRING,
    TRUE,
    UTF8,
    Scratch,
    Value,
    python_value,
    read_value,
)

from collections.abc import Mapping
from sys import intern

from pyengine._engine.message.header import fresh_headers
from pyengine.errors import InvalidMessageError, counted, unknown_arguments


cdef inline size_t text_bytes_of(const Value* value) noexcept nogil:
    return <size_t>value.length * (value.encoding if value.encoding != UTF8 else 1)


cdef inline size_t text_size(const Value* value) noexcept nogil:
    """Bytes reserved for a string: aligned, at least one, so that no two strings have the same address."""
    return max(text_bytes_of(value) + TEXT_ALIGNMENT - 1, <size_t>TEXT_ALIGNMENT) & ~<size_t>(TEXT_ALIGNMENT - 1)


cdef object text_key(const Value* value):
    return value.encoding, (<const char*>value.payload.text)[:text_bytes_of(value)]


cdef bint is_fresh(Message message, str name, int code):
    """Whether a header has its value in a new message."""
    cdef Value found
    cdef Value fresh
    cdef Scratch scratch
    memset(&scratch, 0, sizeof(Scratch))
    fresh_header(code, &fresh)
    if not slot_value(message, <PyObject*>name, code, &found):
        return fresh.type == NULL_VALUE
    return found.type == fresh.type and compare(IS_EQUAL, &found, &fresh, EXACT_TYPES, &scratch) == TRUE


cdef frozenset fresh_names(list sources):
    """The headers that have their value in a new message, in all messages."""
    cdef dict left = {name: header_code(name) for name in fresh_headers()}
    for source in sources:
        if isinstance(source, Message):
            stale = [name for name, code in left.items() if not is_fresh(source, name, code)]
        else:
            stale = [name for name in source if name in left]
        for name in stale:
            del left[name]
    return frozenset(left)


cdef tuple names_in(list sources, frozenset fresh):
    """Property names in order of first occurrence, and headers that differ from a new message in some row."""
    cdef dict found = {}
    cdef dict headers = fresh_headers()
    for source in sources:
        if isinstance(source, Message):
            found.update(dict.fromkeys(source.property_names))
            continue
        for name in source:
            if not isinstance(name, str) or not name:
                raise InvalidMessageError("property name", name, "not a name", hint="give a str that is not empty")
            found[name] = None
    # JMSXUserID is a header and may also be a property.
    names = [intern(name) for name in found if name not in headers]
    return tuple(names + [name for name in headers if name not in fresh])


def rebuild(tuple names, bint complete, list rows, tuple bodies, frozenset fresh):
    """Packed messages from the values of ``__reduce__``."""
    cdef PackedMessages packed = PackedMessages.__new__(PackedMessages, (), names)
    packed.complete = complete
    packed.bodies = bodies
    packed.fresh = fresh
    packed.take_rows([dict(zip(names, row)) for row in rows], True)
    return packed


cdef class PackedMessages:
    """Messages packed for selectors: a copy of the named properties and headers in native memory; immutable.

    messages: an iterable of Message and mappings (headers by name; a missing one has its value in a new message).
    names: properties and headers to keep, without repetition. None keeps every property that occurs and every header
    that differs from a new message in some row. A selector that reads another name raises
    MissingColumnError, except for a header that has its value in a new message in all of them.
    Raises InvalidMessageError for a value that no message property can have.
    """

    def __cinit__(self, messages, names=None, **unknown):
        if unknown:
            raise unknown_arguments("PackedMessages", unknown, ("messages", "names"))
        cdef list sources = list(messages)
        for row, source in enumerate(sources):
            if not isinstance(source, (Message, Mapping)):
                raise InvalidMessageError(f"message {row}", source, "not a message", hint="give a Message or a mapping")
        self.complete = names is None
        self.fresh = fresh_names(sources)
        if names is None:
            self.names = names_in(sources, self.fresh)
        else:
            if isinstance(names, str):
                raise InvalidMessageError("names", names, "one str", hint="give a sequence of names")
            for name in names:
                if not isinstance(name, str) or not name:
                    raise InvalidMessageError("names", name, "not a name", hint="give a str that is not empty")
            self.names = tuple([intern(str(name)) for name in names])
        self.slots = {name: slot for slot, name in enumerate(self.names)}
        if len(self.slots) != len(self.names):
            raise InvalidMessageError("names", self.names, "a name occurs twice", hint="give each name once")
        self.width = <int>len(self.names)
        self.take_rows(sources, False)
        if any([isinstance(source, Message) and source.body is not None for source in sources]):
            self.bodies = tuple([source.body if isinstance(source, Message) else None for source in sources])

    def __dealloc__(self):
        PyMem_Free(self.values)
        PyMem_Free(self.texts)

    cdef int take_rows(self, list sources, bint objects) except -1:
        """The rows in new memory. objects: a mapping may hold lists and maps, which only a Message can."""
        PyMem_Free(self.values)
        self.values = NULL
        self.objects = []
        self.rows = 0
        self.values = <Value*>PyMem_Calloc(len(sources) * self.width + 1, sizeof(Value))
        if self.values == NULL:
            raise MemoryError()
        self.rows = len(sources)
        return self.fill(sources, objects)

    cdef bint knows(self, str name, bint every_text):
        """Whether the value of a name without a slot is known: absent, or that of a new message."""
        if self.complete:
            return True
        return not every_text and name in self.fresh

    cdef int fill(self, list sources, bint objects) except -1:
        cdef list held = []
        cdef list codes = [header_code(name) for name in self.names]
        cdef Py_ssize_t index
        # Messages last: their values are borrowed, and reading a mapping may run code that changes them.
        for index in range(len(sources)):
            if not isinstance(sources[index], Message):
                self.fill_mapping(self.values + index * self.width, sources[index], codes, objects, held)
        for index in range(len(sources)):
            if isinstance(sources[index], Message):
                self.fill_message(self.values + index * self.width, sources[index], codes)
        return self.own_texts()

    cdef int fill_mapping(self, Value* row, object source, list codes, bint objects, list held) except -1:
        cdef int slot, code
        for slot in range(self.width):
            name = self.names[slot]
            code = codes[slot]
            found = source.get(name)
            if found is None and code:
                fresh_header(code, &row[slot])
                row[slot].reserved = 1
                continue
            held.append(found)
            read_value(found, &row[slot], name, objects)
            row[slot].reserved = 0
            self.keep_object(&row[slot], name)
        return 0

    cdef int fill_message(self, Value* row, Message message, list codes) except -1:
        cdef int slot, code
        cdef bint header_only
        for slot in range(self.width):
            name = self.names[slot]
            code = codes[slot]
            header_only = code != 0 and not slot_value(message, <PyObject*>name, 0, &row[slot])
            slot_value(message, <PyObject*>name, code, &row[slot])
            row[slot].reserved = header_only
            self.keep_object(&row[slot], name)
        return 0

    cdef int keep_object(self, Value* value, str name) except -1:
        """A list or map is copied; the copy is owned here."""
        if value.type == OBJECT:
            self.objects.append(frozen_copy(<object>value.payload.object, name, 0))
            value.payload.object = <void*>self.objects[len(self.objects) - 1]
        return 0

    cdef int own_texts(self) except -1:
        """Copy every string into memory of this object, equal ones once."""
        cdef Py_ssize_t index
        cdef Value* value
        cdef dict places = {}
        cdef size_t place = 0
        cdef object key
        for index in range(self.rows * self.width):
            value = &self.values[index]
            if STRING <= value.type <= BIG_DECIMAL:
                key = text_key(value)
                if key not in places:
                    places[key] = place
                    place += text_size(value)
        PyMem_Free(self.texts)
        self.texts = <char*>PyMem_Malloc(place + 1)
        if self.texts == NULL:
            raise MemoryError()
        self.text_bytes = place
        for index in range(self.rows * self.width):
            value = &self.values[index]
            if STRING <= value.type <= BIG_DECIMAL:
                place = places[text_key(value)]
                memcpy(self.texts + place, value.payload.text, text_bytes_of(value))
                value.payload.text = self.texts + place
        return 0

    cdef int slot_of(self, str name) except -2:
        found = self.slots.get(name)
        return -1 if found is None else found

    def __len__(self):
        return self.rows

    @property
    def nbytes(self):
        """Bytes of native memory: 16 for each value, and the strings; without cached columns."""
        return self.rows * self.width * sizeof(Value) + self.text_bytes

    def row(self, Py_ssize_t index):
        """name -> value of one row, None where null. Raises IndexError beyond the last row."""
        if not 0 <= index < self.rows:
            raise IndexError(f"row {index} of {self.rows}")
        cdef Value* values = self.values + index * self.width
        return {self.names[slot]: python_value(&values[slot]) for slot in range(self.width)}

    def __reduce__(self):
        rows = [list(self.row(index).values()) for index in range(self.rows)]
        return rebuild, (self.names, bool(self.complete), rows, self.bodies, self.fresh)

    def __repr__(self):
        return f"PackedMessages({counted(self.rows, 'message')}, names={self.names!r}, {self.nbytes} bytes)"

    def _check(self):
        """Raise AssertionError if an invariant of the room does not hold."""
        cdef Py_ssize_t index
        cdef const Value* value
        assert len(self.names) == len(set(self.names)) == self.width
        if self.columns is not None:
            self.columns._check()
        for index in range(self.rows * self.width):
            value = &self.values[index]
            assert NULL_VALUE <= value.type <= OBJECT
            if STRING <= value.type <= BIG_DECIMAL:
                assert self.texts <= <char*>value.payload.text <= self.texts + self.text_bytes
                assert <char*>value.payload.text + text_size(value) <= self.texts + self.text_bytes
