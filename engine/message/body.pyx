"""Bodies of MapMessage, StreamMessage and ObjectMessage; see body.pxd.

Source: command.ActiveMQMapMessage, ActiveMQStreamMessage, ActiveMQObjectMessage and util.MarshallingSupport (5.18).
"""

from libc.stdint cimport int64_t

from pyengine._engine.java.comparison cimport java_equal
from pyengine._engine.java.modified_utf8 cimport java_length, modified_utf8_size
from pyengine._engine.java.value cimport (
    BOOLEAN,
    BYTE,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    NULL_VALUE,
    SHORT,
    STRING,
    Value,
    java_text,
    python_value,
    read_value,
)
from pyengine._engine.message.conversion cimport (
    DEEPEST, JAVA_NAMES, convert, float32_of, integer_between, real_number, text_or_none, truth_of,
)

import numpy

from pyengine._engine.java.hashing import map_order
from pyengine._engine.java.value import Char
from pyengine.errors import IllegalStateError, InvalidMessageError, MessageEOFError, unknown_arguments

cdef int BIG_STRING = 8191               # length of a String from which on it is marshalled with a size of four bytes
# Bytes of a marshalled value with its type.
cdef dict WIDTHS = {NULL_VALUE: 1, BOOLEAN: 2, BYTE: 2, CHAR: 3, SHORT: 3, INT: 5, LONG: 9, FLOAT: 5, DOUBLE: 9}


cdef object typed(object value, str field, bint nested, int depth=0):
    """A value as a body keeps it: immutable, or a copy of a list or map; it keeps its Java type."""
    cdef Value read
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, (list, tuple, dict)):
        if not nested:
            raise InvalidMessageError(field, value, "a stream has no lists and maps", hint="use a MapBody")
        if depth > DEEPEST:
            raise InvalidMessageError(field, "...", f"lists and maps are nested deeper than {DEEPEST}")
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, str):
                    raise InvalidMessageError(field, key, "not a key of a map", hint="the keys of a map are str")
            return {key: typed(item, field, True, depth + 1) for key, item in value.items()}
        return [typed(item, field, True, depth + 1) for item in value]
    read_value(value, &read, field, False)
    if read.type == CHAR:
        return value if type(value) is Char else Char(value)
    if read.type == STRING:
        return value if type(value) is str else "".join(value)
    return python_value(&read)


cdef str java_name(object value):
    """The name of a value's Java type."""
    cdef Value read
    if value is None:
        return "null"
    if type(value) is bytes:
        return "bytes"
    if isinstance(value, (list, dict)):
        return "list" if isinstance(value, list) else "map"
    read_value(value, &read, "", False)
    return JAVA_NAMES[read.type]


cdef int converted(object value, int java_type, Value* into, str field) except -1:
    """``value``, which is not None, as another Java type; borrows from it."""
    cdef Value given
    cdef bint scalar = type(value) is not bytes and not isinstance(value, (list, dict))
    if scalar:
        read_value(value, &given, field, False)
    if not scalar or not convert(&given, java_type, into):
        problem = f"a Java {java_name(value)} that cannot be read as a Java {JAVA_NAMES[java_type]}"
        raise InvalidMessageError(field, value, problem, hint="read it as an object")
    return 0


cdef object text_of_value(object value, str field):
    """Object.toString."""
    if type(value) is bytes:
        raise InvalidMessageError(field, value, "a Java byte array that cannot be read as a Java string",
                                  hint="read it as bytes")
    if isinstance(value, list):
        return "[" + ", ".join(["null" if each is None else inner_text(each, field) for each in value]) + "]"
    if isinstance(value, dict):
        parts = [f"{key}={'null' if value[key] is None else inner_text(value[key], field)}" for key in map_order(value)]
        return "{" + ", ".join(parts) + "}"
    return str(value) if type(value) is Char else java_text(value)


cdef object inner_text(object value, str field):
    return "[B" if type(value) is bytes else text_of_value(value, field)


cdef bint equal(object one, object other) except -1:
    """Whether both are of one Java type and equal."""
    if one is None or other is None:
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all([equal(first, second) for first, second in zip(one, other)])
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all([equal(value, other[key]) for key, value in one.items()])
    if isinstance(one, (bytes, list, dict)) or isinstance(other, (bytes, list, dict)):
        return type(one) is type(other) and one == other
    return java_equal(one, other)


cdef int64_t value_size(object value) except -1:
    cdef Value read
    if type(value) is bytes:
        return 5 + len(value)
    if isinstance(value, list):
        return 5 + sum([value_size(each) for each in value])
    if isinstance(value, dict):
        return 1 + map_size(value)
    read_value(value, &read, "", False)
    if read.type == STRING:
        return (3 if java_length(value) < BIG_STRING else 5) + modified_utf8_size(value)
    return WIDTHS[read.type]


cdef int64_t map_size(dict entries) except -1:
    return 4 + sum([2 + modified_utf8_size(name) + value_size(value) for name, value in entries.items()])


cdef class Body:
    """A body other than text and bytes: a MapBody, a StreamBody or an ObjectBody."""

    cdef Body duplicate(self):
        raise NotImplementedError

    cdef int64_t marshalled_size(self) except -1:
        raise NotImplementedError

    def copy(self):
        """A body equal to this one and independent of it; a stream's is read from its first value."""
        return self.duplicate()

    def __copy__(self):
        return self.duplicate()


cdef class MapBody(Body):
    """The body of a MapMessage: names to typed values, null included.

    entries: a mapping of names to values. An int is an Integer if it fits 32 bits signed, else a Long; a float is a
    Double; numpy scalars keep their width; bytes, pyengine.Char, None, and lists and dicts of these are taken too.
    Raises InvalidMessageError, which names the entry, the value and what is accepted.
    """

    def __init__(self, entries=None, **unknown):
        if unknown:
            raise unknown_arguments("MapBody", unknown, ("entries",))
        self.entries_by_name = {}
        self.shared = False
        if entries is None:
            return
        items = getattr(entries, "items", None)
        if items is None:
            raise InvalidMessageError("entries", entries, "not a mapping of names to values", hint="give a dict")
        for name, value in items():
            self.put(name, value)

    cdef int put(self, object name, object value) except -1:
        if not isinstance(name, str) or not name:
            raise InvalidMessageError("name of a map's entry", name, "not a name", hint="give a str that is not empty")
        value = typed(value, name, True)
        if self.shared:
            self.entries_by_name = dict(self.entries_by_name)
            self.shared = False
        self.entries_by_name["".join(name)] = value
        return 0

    cdef Body duplicate(self):
        cdef MapBody body = MapBody.__new__(MapBody)
        self.shared = body.shared = True
        body.entries_by_name = self.entries_by_name
        return body

    cdef int64_t marshalled_size(self) except -1:
        return map_size(self.entries_by_name) if self.entries_by_name else 0

    def set_object(self, name, value):
        """Set an entry from a Python or numpy scalar, bytes, None, or a list or dict of these, which is copied."""
        self.put(name, value)

    def set_boolean(self, name, value):
        """Set a Boolean from a bool."""
        self.put(name, truth_of(value, name))

    def set_byte(self, name, value):
        """Set a Byte from an integer, -128..127."""
        self.put(name, numpy.int8(integer_between(value, BYTE, name)))

    def set_short(self, name, value):
        """Set a Short from an integer, -32768..32767."""
        self.put(name, numpy.int16(integer_between(value, SHORT, name)))

    def set_char(self, name, value):
        """Set a Character from a str of one UTF-16 unit."""
        self.put(name, character(value, name))

    def set_int(self, name, value):
        """Set an Integer from an integer of 32 bits signed."""
        self.put(name, integer_between(value, INT, name))

    def set_long(self, name, value):
        """Set a Long from an integer of 64 bits signed."""
        self.put(name, numpy.int64(integer_between(value, LONG, name)))

    def set_float(self, name, value):
        """Set a Float: a real number, rounded to 32 bits; InvalidMessageError if that overflows."""
        self.put(name, float32_of(value, name, "use a double"))

    def set_double(self, name, value):
        """Set a Double from a real number."""
        self.put(name, real_number(value, name))

    def set_string(self, name, value):
        """Set a String from a str, or null."""
        self.put(name, text_or_none(value, name))

    def set_bytes(self, name, value, offset=0, length=None):
        """Set a byte array from bytes, or from ``length`` of them from ``offset`` on; or null."""
        self.put(name, octets(value, name, offset, length))

    def get_object(self, name):
        """The value, which keeps its Java type (numpy scalars for all but Integer and Double); None if it is null or
        absent. A list or dict is a copy."""
        return typed(self.entries_by_name.get(name), "entry", True)

    def get_boolean(self, name):
        """As bool; False if null or absent. From Boolean, or String ("true" in any case is True)."""
        return self.integer(name, BOOLEAN) != 0

    def get_byte(self, name):
        """As int; 0 if null or absent. From Byte, or String; InvalidMessageError for anything else."""
        return self.integer(name, BYTE)

    def get_short(self, name):
        """As int; 0 if null or absent. From Byte, Short, or String; InvalidMessageError for anything else."""
        return self.integer(name, SHORT)

    def get_char(self, name):
        """As pyengine.Char. From Character; InvalidMessageError for anything else, null too."""
        cdef Value value
        if self.entries_by_name.get(name) is None:
            raise InvalidMessageError(name, None, "null, so not a Java char", hint="ask item_exists first")
        self.read(name, CHAR, &value)
        return self.entries_by_name[name]

    def get_int(self, name):
        """As int; 0 if null or absent. From Byte .. Integer, or String; InvalidMessageError for anything else."""
        return self.integer(name, INT)

    def get_long(self, name):
        """As int; 0 if null or absent. From Byte .. Long, or String; InvalidMessageError for anything else."""
        return self.integer(name, LONG)

    def get_float(self, name):
        """As float; 0 if null or absent. From Float, or String; InvalidMessageError for anything else."""
        return self.real(name, FLOAT)

    def get_double(self, name):
        """As float; 0 if null or absent. From Float, Double, or String; InvalidMessageError for anything else."""
        return self.real(name, DOUBLE)

    def get_string(self, name):
        """As Java's text of the value; None if null or absent. InvalidMessageError for a byte array."""
        value = self.entries_by_name.get(name)
        return None if value is None else text_of_value(value, name)

    def get_bytes(self, name):
        """As bytes; None if null or absent. InvalidMessageError for anything but a byte array."""
        value = self.entries_by_name.get(name)
        if value is not None and type(value) is not bytes:
            raise not_bytes(value, name)
        return value

    cdef bint read(self, object name, int java_type, Value* into) except -1:
        # False: null.
        value = self.entries_by_name.get(name)
        if value is None:
            return False
        converted(value, java_type, into, name)
        return True

    cdef int64_t integer(self, object name, int java_type) except? -1:
        cdef Value value
        return value.payload.integer if self.read(name, java_type, &value) else 0

    cdef double real(self, object name, int java_type) except? -1:
        cdef Value value
        return value.payload.real if self.read(name, java_type, &value) else 0.0

    @property
    def map_names(self):
        """The names of the entries, in the order in which they were first set."""
        return tuple(self.entries_by_name)

    def item_exists(self, name):
        """Whether there is an entry of that name, be it null."""
        return name in self.entries_by_name

    def entries(self):
        """name -> value of every entry, as from ``get_object``: a MapBody of it is equal to this one."""
        return {name: typed(value, name, True) for name, value in self.entries_by_name.items()}

    def entry_types(self):
        """name -> Java type of every entry: null, boolean, byte, short, char, int, long, float, double, string, bytes,
        list, map."""
        return {name: java_name(value) for name, value in self.entries_by_name.items()}

    def clear(self):
        """Remove every entry."""
        self.entries_by_name = {}
        self.shared = False

    def __getitem__(self, name):
        if name not in self.entries_by_name:
            raise KeyError(f"the map has no {name!r}")
        return self.get_object(name)

    def __setitem__(self, name, value):
        self.put(name, value)

    def __contains__(self, name):
        return name in self.entries_by_name

    def __iter__(self):
        return iter(self.map_names)

    def __len__(self):
        return len(self.entries_by_name)

    def __eq__(self, other):
        if not isinstance(other, MapBody):
            return NotImplemented
        return equal(self.entries_by_name, (<MapBody>other).entries_by_name)

    __hash__ = None

    def __reduce__(self):
        return MapBody, (self.entries(),)

    def __repr__(self):
        return f"MapBody({self.entries_by_name!r})"


cdef object character(object value, field):
    if not isinstance(value, str):
        raise InvalidMessageError(field, value, "not a character", hint="give a str of one character")
    return value if type(value) is Char else Char(value)


cdef object octets(object value, field, offset, length):
    cdef int64_t start, count
    if value is None:
        return None
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise InvalidMessageError(field, value, "not bytes", hint="give bytes or None")
    value = bytes(value)
    start = integer_between(offset, INT, "offset")
    count = len(value) - start if length is None else integer_between(length, INT, "length")
    if start < 0 or count < 0 or start + count > len(value):
        raise InvalidMessageError(field, value, f"{count} bytes from {start} on are not within its {len(value)} bytes")
    return value[start : start + count]


cdef object not_bytes(object value, field):
    problem = f"a Java {java_name(value)} that cannot be read as a byte array"
    return InvalidMessageError(field, value, problem, hint="read it as an object")


cdef class StreamBody(Body):
    """The body of a StreamMessage: typed values in a row, null included, that are written and then read in order.

    values: those it begins with, as ``write_object`` takes them. A new body is written; ``reset`` makes it one that is
    read, from the first value on, and so is every copy: what was sent, and what is received. Reading one that is
    written raises IllegalStateError, as does writing one that is read; ``clear`` makes it empty and written.
    """

    def __init__(self, values=(), **unknown):
        if unknown:
            raise unknown_arguments("StreamBody", unknown, ("values",))
        self.items = []
        self.shared = False
        self.position = -1
        self.read_of_bytes = 0
        if isinstance(values, (str, bytes, dict)) or not hasattr(values, "__iter__"):
            raise InvalidMessageError("values", values, "not a row of values", hint="give a list")
        for value in values:
            self.append(value)

    cdef int append(self, object value) except -1:
        if self.position >= 0:
            raise IllegalStateError("the stream is read, so nothing can be written to it; clear it first")
        value = typed(value, f"value {len(self.items)} of a stream", False)
        if self.shared:
            self.items = list(self.items)
            self.shared = False
        self.items.append(value)
        return 0

    cdef Body duplicate(self):
        cdef StreamBody body = StreamBody.__new__(StreamBody)
        self.shared = body.shared = True
        body.items = self.items
        return body

    cdef int64_t marshalled_size(self) except -1:
        return sum([value_size(each) for each in self.items])

    cdef object peek(self):
        """The next value. Raises for a stream that is written, and at its end."""
        if self.position < 0:
            raise IllegalStateError("the stream is written, so nothing can be read from it; reset it first")
        if self.position >= len(self.items):
            raise MessageEOFError(f"the stream has ended: all of its {len(self.items)} values are read")
        if self.read_of_bytes:
            raise InvalidMessageError(self.field(), self.items[self.position], "a byte array that is read in part",
                                      hint="call read_bytes until it returns None")
        return self.items[self.position]

    cdef str field(self):
        return f"value {self.position} of a stream"

    cdef int read(self, int java_type, Value* into) except -1:
        # A value that cannot be converted stays the next.
        value = self.peek()
        if value is None:
            problem = f"null, so not a Java {JAVA_NAMES[java_type]}"
            raise InvalidMessageError(self.field(), None, problem, hint="read it as an object")
        converted(value, java_type, into, self.field())
        self.position += 1
        return 0

    cdef int64_t integer(self, int java_type) except? -1:
        cdef Value value
        self.read(java_type, &value)
        return value.payload.integer

    cdef double real(self, int java_type) except? -1:
        cdef Value value
        self.read(java_type, &value)
        return value.payload.real

    def write_object(self, value):
        """Write a Python or numpy scalar, bytes or None."""
        self.append(value)

    def write_boolean(self, value):
        """Write a Boolean from a bool."""
        self.append(truth_of(value, "value"))

    def write_byte(self, value):
        """Write a Byte from an integer, -128..127."""
        self.append(numpy.int8(integer_between(value, BYTE, "value")))

    def write_short(self, value):
        """Write a Short from an integer, -32768..32767."""
        self.append(numpy.int16(integer_between(value, SHORT, "value")))

    def write_char(self, value):
        """Write a Character from a str of one UTF-16 unit."""
        self.append(character(value, "value"))

    def write_int(self, value):
        """Write an Integer from an integer of 32 bits signed."""
        self.append(integer_between(value, INT, "value"))

    def write_long(self, value):
        """Write a Long from an integer of 64 bits signed."""
        self.append(numpy.int64(integer_between(value, LONG, "value")))

    def write_float(self, value):
        """Write a Float: a real number, rounded to 32 bits; InvalidMessageError if that overflows."""
        self.append(float32_of(value, "value", "use a double"))

    def write_double(self, value):
        """Write a Double from a real number."""
        self.append(real_number(value, "value"))

    def write_string(self, value):
        """Write a String from a str, or null."""
        self.append(text_or_none(value, "value"))

    def write_bytes(self, value, offset=0, length=None):
        """Write a byte array from bytes, or from ``length`` of them from ``offset`` on."""
        if value is None:
            raise InvalidMessageError("value", None, "not bytes", hint="write null with write_object")
        self.append(octets(value, "value", offset, length))

    def read_object(self):
        """The next value, which keeps its Java type; None if it is null. Raises MessageEOFError at the end, as all
        reads do."""
        value = self.peek()
        self.position += 1
        return value

    def read_boolean(self):
        """As bool. From Boolean, or String. A value that cannot be converted, null too, raises InvalidMessageError and
        stays the next, as for all reads."""
        return self.integer(BOOLEAN) != 0

    def read_byte(self):
        """As int. From Byte, or String."""
        return self.integer(BYTE)

    def read_short(self):
        """As int. From Byte, Short, or String."""
        return self.integer(SHORT)

    def read_char(self):
        """As pyengine.Char. From Character."""
        cdef Value value
        self.read(CHAR, &value)
        return self.items[self.position - 1]

    def read_int(self):
        """As int. From Byte .. Integer, or String."""
        return self.integer(INT)

    def read_long(self):
        """As int. From Byte .. Long, or String."""
        return self.integer(LONG)

    def read_float(self):
        """As float. From Float, or String."""
        return self.real(FLOAT)

    def read_double(self):
        """As float. From Float, Double, or String."""
        return self.real(DOUBLE)

    def read_string(self):
        """As Java's text of the value; None if it is null. InvalidMessageError for a byte array."""
        value = self.peek()
        text = None if value is None else text_of_value(value, self.field())
        self.position += 1
        return text

    def read_bytes(self, size=None):
        """A byte array, or up to ``size`` of its bytes and the next time those that follow, until None says that there
        are no more. Fewer than ``size`` are its last: the next value follows. InvalidMessageError for anything else,
        null too."""
        cdef Py_ssize_t wanted
        cdef Py_ssize_t begun = self.read_of_bytes
        self.read_of_bytes = 0
        try:
            value = self.peek()
        finally:
            self.read_of_bytes = begun
        if type(value) is not bytes:
            raise not_bytes(value, self.field())
        if size is None:
            self.position += 1
            self.read_of_bytes = 0
            return value[max(begun, 0):]
        wanted = <Py_ssize_t>integer_between(size, INT, "size")
        if wanted < 1:
            raise InvalidMessageError("size", size, "not a number of bytes", hint="give 1 or more")
        part = value[begun : begun + wanted]
        if len(part) < wanted:
            self.position += 1
            self.read_of_bytes = 0
            return part or (None if begun else part)
        self.read_of_bytes = begun + wanted
        return part

    def reset(self):
        """Read it from the first value on."""
        self.position = self.read_of_bytes = 0

    def clear(self):
        """Remove every value; it is written now."""
        self.items = []
        self.shared = False
        self.position = -1
        self.read_of_bytes = 0

    def values(self):
        """All values, as ``read_object`` gives them: a StreamBody of them is equal to this one."""
        return tuple(self.items)

    def value_types(self):
        """The Java type of each value: null, boolean, byte, short, char, int, long, float, double, string, bytes."""
        return tuple([java_name(value) for value in self.items])

    def __len__(self):
        return len(self.items)

    def __eq__(self, other):
        if not isinstance(other, StreamBody):
            return NotImplemented
        return equal(self.items, (<StreamBody>other).items)

    __hash__ = None

    def __reduce__(self):
        return rebuild_stream, (self.items, self.position)

    def __repr__(self):
        return f"StreamBody({self.items!r})"


def rebuild_stream(list values not None, Py_ssize_t position):
    """A stream from the values of ``__reduce__``."""
    cdef StreamBody body = StreamBody(values)
    body.position = position
    return body


cdef class ObjectBody(Body):
    """The body of an ObjectMessage: a serialized object of Java's, as bytes. Nothing deserializes it.

    data: what ObjectOutputStream wrote.
    """

    def __init__(self, data=b"", **unknown):
        if unknown:
            raise unknown_arguments("ObjectBody", unknown, ("data",))
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise InvalidMessageError("data", data, "not a serialized object", hint="give bytes")
        self._data = bytes(data)

    @property
    def data(self):
        """The serialized object."""
        return self._data

    cdef Body duplicate(self):
        return self        # nothing of it changes

    cdef int64_t marshalled_size(self) except -1:
        return len(self._data)

    def __len__(self):
        return len(self._data)

    def __eq__(self, other):
        if not isinstance(other, ObjectBody):
            return NotImplemented
        return self._data == (<ObjectBody>other)._data

    def __hash__(self):
        return hash(self._data)

    def __reduce__(self):
        return ObjectBody, (self._data,)

    def __repr__(self):
        return f"ObjectBody({self._data!r})"
