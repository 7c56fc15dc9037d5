cimport cython
from cpython.object cimport PyObject_GenericSetAttr
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.ref cimport Py_INCREF, Py_XDECREF, Py_XINCREF
from libc.string cimport memcpy

from pyengine._engine.java.comparison cimport java_equal
from pyengine._engine.message.conversion cimport (
    JAVA_NAMES, convert, float32_of, frozen_copy, integer_between, real_number, text_or_none, truth_of,
)
from pyengine._engine.message.envelope cimport header_attribute
from pyengine._engine.message.header cimport header_code, settable_code
from pyengine._engine.java.value cimport (
    BOOLEAN,
    BYTE,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    OBJECT,
    SHORT,
    STRING,
    java_text,
    python_value,
    quick_value,
    read_value,
    text_length,
)

from collections.abc import Mapping

import numpy

from pyengine._engine.message.cron_entry import HINT, check_entry
from pyengine._engine.message.header import fresh_headers
from pyengine.errors import InvalidMessageError, UnknownNameError, did_you_mean

cdef extern from "Python.h":
    void PyUnicode_InternInPlace(PyObject** text)
    bint PyUnicode_CHECK_INTERNED(PyObject* text)
    bint PyUnicode_CheckExact(object thing)
    Py_UCS4 PyUnicode_READ_CHAR(object text, Py_ssize_t index)

cdef tuple HEADER_NAMES = tuple(fresh_headers())
# Properties of the scheduler: checked and converted when set; numbers are never negative.
cdef dict SCHEDULED = {
    "AMQ_SCHEDULED_DELAY": LONG, "AMQ_SCHEDULED_PERIOD": LONG, "AMQ_SCHEDULED_REPEAT": INT,
    "AMQ_SCHEDULED_CRON": STRING,
}
# Keyword arguments of the constructor -> value in a new message.
cdef dict FRESH = {
    "body": None,
    "data_structure": None,
    "destination": None,
    "original_destination": None,
    "reply_to": None,
    "type": None,
    "correlation_id": None,
    "message_id": None,
    "delivery_mode": "PERSISTENT",
    "priority": 4,
    "timestamp": 0,
    "expiration": 0,
    "redelivery_counter": 0,
    "group_id": None,
    "group_sequence": 0,
    "group_first_for_consumer": False,
    "user_id": None,
    "producer_transaction_id": None,
    "broker_in_time": 0,
    "broker_out_time": 0,
    "broker_path": None,
    "connection_id": None,
    "target_consumer_id": None,
    "size": None,
}
cdef object interned(object name):
    """``name`` as an interned str of the exact type."""
    cdef PyObject* text
    if not isinstance(name, str) or not name:
        raise InvalidMessageError("property name", name, "not a name", hint="give a str that is not empty")
    if not PyUnicode_CheckExact(name):
        name = "".join(name)
    text = <PyObject*>name
    if PyUnicode_CHECK_INTERNED(text):
        return name
    Py_INCREF(name)
    PyUnicode_InternInPlace(&text)
    name = <object>text
    Py_XDECREF(text)
    return name


def rebuild(type kind, dict attributes, dict properties):
    """A message from the values of ``__reduce__``."""
    cdef Message message = <Message?>kind(None, **attributes)
    for name, value in properties.items():
        message.put(name, value, True)
    return message


cdef object no_such(Message message, name, value, str problem):
    # The error for a name that no message has, with the one that was meant.
    code = header_code(name)
    written = name[3:] if name[:3].lower() == "jms" else name
    hint = f"did you mean {header_attribute(code)!r}?" if code else did_you_mean(written, FRESH)
    return UnknownNameError(f"{type(message).__name__}.{name}", value, problem, hint)


@cython.no_gc
cdef class Message(Envelope):
    """Message(properties=None, *, body=None, data_structure=None, destination=None, original_destination=None,
    reply_to=None, type=None, correlation_id=None, message_id=None, delivery_mode='PERSISTENT', priority=4,
    timestamp=0, expiration=0, redelivery_counter=0, group_id=None, group_sequence=0, group_first_for_consumer=False,
    user_id=None, producer_transaction_id=None, broker_in_time=0, broker_out_time=0, broker_path=None,
    connection_id=None, target_consumer_id=None, size=None)
    --

    One message: the JMS headers and the typed properties (spec activemq 1.7).

    properties: a mapping of names to bool, int, float, str, None (absent), pyengine.Char or numpy scalars. An int is an
    Integer if it fits 32 bits signed, else a Long; a float is a Double; numpy scalars keep their width. A name whose
    property setter sets a header, such as JMSPriority, sets that header.
    Keywords set the attributes of the same names; an attribute that is not given has its value in a new message.
    Raises InvalidMessageError, which names the field, the value and what is accepted.
    """

    def __dealloc__(self):
        self.clear()
        PyMem_Free(self.names)

    def __init__(self, properties=None, **attributes):
        if properties is not None:
            self.put_all(properties)
        for name, value in attributes.items():
            if name not in FRESH:
                raise no_such(self, name, value, "no such argument")
            setattr(self, name, value)

    def __setattr__(self, name, value):
        try:
            PyObject_GenericSetAttr(self, name, value)
        except AttributeError:
            if hasattr(type(self), name):
                raise
            raise no_such(self, name, value, "no such attribute, nothing would read it") from None

    @classmethod
    def from_mapping(cls, mapping):
        """A message that selectors evaluate as the mapping: keys of headers set these, others are properties."""
        cdef Message message = cls()
        if not isinstance(mapping, Mapping):
            raise TypeError(f"a message is made of a mapping of names to values, not {type(mapping).__name__!r}")
        for name, value in mapping.items():
            code = header_code(name)
            if code and value is not None:
                setattr(message, header_attribute(code), value)
            else:
                message.put(name, value, False)
        return message

    # Properties

    cdef int reserve(self, int wanted) except -1:
        cdef char* block
        cdef Py_ssize_t pointers = wanted * sizeof(void*)
        if wanted <= self.capacity:
            return 0
        block = <char*>PyMem_Malloc(2 * pointers + wanted * sizeof(Value))
        if block == NULL:
            raise MemoryError()
        if self.count:
            memcpy(block, self.names, self.count * sizeof(void*))
            memcpy(block + pointers, self.owners, self.count * sizeof(void*))
            memcpy(block + 2 * pointers, self.values, self.count * sizeof(Value))
        PyMem_Free(self.names)
        self.names = <PyObject**>block
        self.owners = <PyObject**>(block + pointers)
        self.values = <Value*>(block + 2 * pointers)
        self.capacity = wanted
        return 0

    cdef int put_all(self, object properties) except -1:
        if type(properties) is dict:
            self.reserve(self.count + <int>len(<dict>properties))
            for name, value in (<dict>properties).items():
                self.put(name, value, False)
            return 0
        items = getattr(properties, "items", None)
        if items is None:
            hint = "give a dict; what a message carries is Message(body=...)"
            raise InvalidMessageError("properties", properties, "not a mapping of names to values", hint=hint)
        for name, value in items():
            self.put(name, value, False)
        return 0

    cdef int put(self, object name, object value, bint objects) except -1:
        cdef Value read
        cdef PyObject* key
        cdef Py_UCS4 first
        cdef int code
        if not PyUnicode_CheckExact(name) or not PyUnicode_CHECK_INTERNED(<PyObject*>name):
            name = interned(name)
        key = <PyObject*>name
        if not text_length(key):
            interned("")
        first = PyUnicode_READ_CHAR(name, 0)
        if first == c"J":
            code = settable_code(name)
            if code and value is not None:
                return self.put_header(code, name, value)
        elif first == c"A" and name in SCHEDULED:
            value = self.scheduled(name, value)
        if not quick_value(<PyObject*>value, &read):
            read_value(value, &read, name, objects)
        if read.type == OBJECT:
            value = frozen_copy(value, name, 0)
            read.payload.object = <void*>value
        return self.keep(name, value, &read)

    cdef int put_number(self, str name, const Value* read) except -1:
        if not text_length(<PyObject*>name) or name[0] in "JA":
            return self.put(name, python_value(read), False)
        return self.keep(interned(name), None, read)

    cdef int keep(self, object name, object value, const Value* read) except -1:
        # ``name`` is interned. No code of the value's class runs here.
        cdef PyObject* key = <PyObject*>name
        cdef PyObject* old
        cdef int index = place_of(self, key)
        if read.type == NULL_VALUE:
            return self.remove_at(index) if index >= 0 else 0
        if index < 0:
            if self.count == self.capacity:
                self.reserve(2 * self.capacity + 4)
            index = self.count
            self.count += 1
            Py_INCREF(name)
            self.names[index] = key
            self.owners[index] = NULL
        old = self.owners[index]
        self.values[index] = read[0]
        if read.type >= STRING:
            Py_INCREF(value)
            self.owners[index] = <PyObject*>value
        else:
            self.owners[index] = NULL
        Py_XDECREF(old)
        return 0

    cdef object own(self, str name):
        cdef int index
        for index in range(self.count):
            if <object> self.names[index] == name:
                return python_value(&self.values[index])
        return None

    cdef int remove_at(self, int index) except -1:
        cdef PyObject* name = self.names[index]
        cdef PyObject* owner = self.owners[index]
        cdef int last = self.count - 1
        # The others keep their order, as in a dict.
        while index < last:
            self.names[index] = self.names[index + 1]
            self.owners[index] = self.owners[index + 1]
            self.values[index] = self.values[index + 1]
            index += 1
        self.count = last
        Py_XDECREF(owner)
        Py_XDECREF(name)
        return 0

    cdef int clear(self) except -1:
        while self.count:
            self.count -= 1
            Py_XDECREF(self.owners[self.count])
            Py_XDECREF(self.names[self.count])
        return 0

    cdef object scheduled(self, object name, object value):
        cdef Value given, number
        cdef int java_type = SCHEDULED[name]
        read_value(value, &given, name, False)
        if given.type == NULL_VALUE:
            return None
        if java_type == STRING:
            try:
                check_entry(java_text(value))
            except ValueError as error:
                raise InvalidMessageError(name, value, f"not a cron entry: {error}", hint=HINT) from error
            return value
        if not convert(&given, java_type, &number):
            if given.type == STRING:
                raise InvalidMessageError(name, value, f"not a Java {JAVA_NAMES[java_type]}", hint="give an integer")
            return None
        if number.payload.integer < 0:
            raise InvalidMessageError(name, value, "must not be negative", hint="give 0 or more")
        return python_value(&number)

    def set_property(self, name, value):
        """Set a property from a Python or numpy scalar; None removes it. Header names: see the class."""
        self.put(name, value, False)

    def set_object_property(self, name, value):
        """As ``set_property``, and also a list, tuple (a List) or dict (a Map) of such values, which is copied."""
        self.put(name, value, True)

    def set_boolean_property(self, name, value):
        """Set a Boolean from a bool."""
        self.put(name, truth_of(value, name), False)

    def set_byte_property(self, name, value):
        """Set a Byte from an integer, -128..127."""
        self.put(name, numpy.int8(integer_between(value, BYTE, name)), False)

    def set_short_property(self, name, value):
        """Set a Short from an integer, -32768..32767."""
        self.put(name, numpy.int16(integer_between(value, SHORT, name)), False)

    def set_int_property(self, name, value):
        """Set an Integer from an integer of 32 bits signed."""
        self.put(name, integer_between(value, INT, name), False)

    def set_long_property(self, name, value):
        """Set a Long from an integer of 64 bits signed."""
        self.put(name, numpy.int64(integer_between(value, LONG, name)), False)

    def set_float_property(self, name, value):
        """Set a Float: a real number, rounded to 32 bits; InvalidMessageError if that overflows."""
        self.put(name, float32_of(value, name, "use set_double_property"), False)

    def set_double_property(self, name, value):
        """Set a Double from a real number."""
        self.put(name, real_number(value, name), False)

    def set_string_property(self, name, value):
        """Set a String from a str; None removes it."""
        self.put(name, text_or_none(value, name), False)

    cdef int read(self, object name, Value* into) except -1:
        name = interned(name)
        slot_value(self, <PyObject*>name, header_code(name), into)
        return 0

    cdef int converted(self, object name, int java_type, Value* into) except -1:
        cdef Value given
        self.read(name, &given)
        if given.type == NULL_VALUE:
            if java_type != BOOLEAN:
                raise InvalidMessageError(
                    name, None, f"absent, so not a Java {JAVA_NAMES[java_type]}", hint="ask property_exists first"
                )
            into.type = BOOLEAN
            into.payload.integer = 0
            return 0
        if not convert(&given, java_type, into):
            raise InvalidMessageError(
                name,
                python_value(&given),
                f"a Java {JAVA_NAMES[given.type]} that cannot be read as a Java {JAVA_NAMES[java_type]}",
                hint="use get_object_property",
            )
        return 0

    def get_object_property(self, name):
        """The property or header as a Python object that keeps its Java type (numpy scalars for all but Integer and
        Double), None if it is absent. A List or Map is a copy."""
        cdef Value value
        self.read(name, &value)
        if value.type == OBJECT:
            return frozen_copy(python_value(&value), name, 0)
        return python_value(&value)

    def get_boolean_property(self, name):
        """As bool; False if absent. From Boolean, or String ("true" in any case is True)."""
        cdef Value value
        self.converted(name, BOOLEAN, &value)
        return value.payload.integer != 0

    def get_byte_property(self, name):
        """As int. From Byte, or String; InvalidMessageError for anything else or if absent."""
        cdef Value value
        self.converted(name, BYTE, &value)
        return value.payload.integer

    def get_short_property(self, name):
        """As int. From Byte, Short, or String; InvalidMessageError for anything else or if absent."""
        cdef Value value
        self.converted(name, SHORT, &value)
        return value.payload.integer

    def get_int_property(self, name):
        """As int. From Byte, Short, Integer, or String; InvalidMessageError for anything else or if absent."""
        cdef Value value
        self.converted(name, INT, &value)
        return value.payload.integer

    def get_long_property(self, name):
        """As int. From Byte .. Long, or String; InvalidMessageError for anything else or if absent."""
        cdef Value value
        self.converted(name, LONG, &value)
        return value.payload.integer

    def get_float_property(self, name):
        """As float. From Float, or String; InvalidMessageError for anything else or if absent."""
        cdef Value value
        self.converted(name, FLOAT, &value)
        return value.payload.real

    def get_double_property(self, name):
        """As float. From Float, Double, or String; InvalidMessageError for anything else or if absent."""
        cdef Value value
        self.converted(name, DOUBLE, &value)
        return value.payload.real

    def get_string_property(self, name):
        """As Java's text of the value; None if absent. InvalidMessageError for Character, List and Map, as in JMS."""
        cdef Value value
        self.read(name, &value)
        if value.type == CHAR or value.type == OBJECT:
            raise InvalidMessageError(
                name, python_value(&value), f"a Java {JAVA_NAMES[value.type]} that cannot be read as a Java string",
                hint="use get_object_property",
            )
        return None if value.type == NULL_VALUE else java_text(python_value(&value))

    def property_exists(self, name):
        """Whether the property, or the header of that name, is not null."""
        cdef Value value
        self.read(name, &value)
        return value.type != NULL_VALUE

    def __getitem__(self, name):
        """The property or header, as :meth:`get_object_property`. Raises KeyError where it is absent or null."""
        found = self.get_object_property(name)
        if found is None:
            hint = did_you_mean(name, (*self.property_names, *HEADER_NAMES))
            raise KeyError(f"the message has no {name!r}" + (f"; {hint}" if hint else ""))
        return found

    def get(self, name, default=None):
        """The property or header, ``default`` where it is absent or null."""
        found = self.get_object_property(name)
        return default if found is None else found

    def __contains__(self, name):
        return isinstance(name, str) and bool(name) and self.property_exists(name)

    def __iter__(self):
        return iter(self.property_names)

    @property
    def property_names(self):
        """The names of the properties, without headers, in the order in which they were first set."""
        return tuple([<object>self.names[index] for index in range(self.count)])

    def clear_properties(self):
        """Remove every property. Headers stay."""
        self.clear()

    def properties(self):
        """name -> value of every property, as from ``get_object_property``: setting them again keeps the types."""
        return {name: self.get_object_property(name) for name in self.property_names}

    def property_types(self):
        """name -> Java type of every property: boolean, byte, short, int, long, float, double, string, char, object."""
        return {<object>self.names[index]: JAVA_NAMES[self.values[index].type] for index in range(self.count)}

    def headers(self):
        """name -> value of all headers as a selector sees them (JMSPriority ...), None where null."""
        return {name: self.get_object_property(name) for name in HEADER_NAMES}

    # The whole

    def copy(self):
        """A message equal to this one and independent of it."""
        cdef type kind = type(self)
        cdef Message message = <Message?>kind.__new__(kind)
        self.copy_into(message)
        return message

    cdef int copy_into(self, Message message) except -1:
        """Make a fresh message equal to this one."""
        cdef int index
        self.copy_headers(message)
        message.clear()                # a derived class may have set some
        message.reserve(self.count)
        for index in range(self.count):
            if self.values[index].type == OBJECT:
                message.put(<object>self.names[index], python_value(&self.values[index]), True)
                continue
            message.names[message.count] = self.names[index]
            message.owners[message.count] = self.owners[index]
            message.values[message.count] = self.values[index]
            Py_XINCREF(self.names[index])
            Py_XINCREF(self.owners[index])
            message.count += 1
        return 0

    def __copy__(self):
        return self.copy()

    def acknowledge(self):
        """Acknowledge a received message: in a CLIENT_ACKNOWLEDGE session all messages that the session has delivered,
        in an INDIVIDUAL_ACKNOWLEDGE session this one. It has no effect in other sessions and on a message that was not
        received. Raises IllegalStateError if the consumer is closed."""
        if self._acknowledge is not None:
            self._acknowledge()

    def __reduce__(self):
        return rebuild, (type(self), self.attributes(), self.properties())

    def attributes(self):
        """The attributes that differ from those of a new message, as keyword arguments of the constructor."""
        cdef dict found = {}
        for name, fresh in FRESH.items():
            value = getattr(self, name) if name != "size" else (self._size or None)
            if value != fresh:
                found[name] = value
        return found

    def __eq__(self, other):
        cdef Message message
        cdef int index, place
        if not isinstance(other, Message):
            return NotImplemented
        message = other
        if self.count != message.count or self.attributes() != message.attributes():
            return False
        for index in range(self.count):
            place = place_of(message, self.names[index])
            if place < 0 or not java_equal(python_value(&self.values[index]), python_value(&message.values[place])):
                return False
        return True

    __hash__ = None

    def __repr__(self):
        cdef list parts = [repr(self.properties())] if self.count else []
        parts += [f"{name}={value!r}" for name, value in self.attributes().items()]
        return f"{type(self).__name__}({', '.join(parts)})"

    def _check(self):
        """Raise AssertionError if an invariant of the room does not hold."""
        cdef Value again
        assert 0 <= self.count <= self.capacity
        assert len(set(self.property_names)) == self.count
        assert 0 <= self._priority <= 9
        assert (self._broker_path is None) == (self._broker_path_text is None)
        for index in range(self.count):
            name = <object>self.names[index]
            assert type(name) is str and name and PyUnicode_CHECK_INTERNED(self.names[index])
            assert not settable_code(name)
            if self.values[index].type < STRING:
                assert BOOLEAN <= self.values[index].type and self.owners[index] == NULL
            else:
                read_value(<object>self.owners[index], &again, name, True)
                assert again.type == self.values[index].type and again.payload.text == self.values[index].payload.text
                assert again.type == OBJECT or again.length == self.values[index].length
