from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from cpython.ref cimport PyObject
from libc.stdint cimport int8_t, uintptr_t
from libc.string cimport memcpy

from pyengine._engine.conversion cimport frozen_copy
from pyengine._engine.header cimport fresh_header, header_code
from pyengine._engine.message cimport Message, slot_value
from pyengine._engine.program cimport (
    ACCEPT,
    GENERAL,
    Leaf,
    evaluate_values,
    general_truth,
    leaf_truth,
    raised_error,
)
from pyengine._engine.value cimport (
    BIG_DECIMAL,
    NULL_VALUE,
    OBJECT,
    RAISED,
    STRING,
    UNKNOWN,
    UTF8,
    Scratch,
    Value,
    free_scratch,
    java_equal,
    python_value,
    read_value,
    text_of,
)

from collections.abc import Mapping
from sys import intern

import numpy

from pyengine._engine.header import fresh_headers
from pyengine.errors import InvalidMessageError, MissingColumnError, SelectorEvaluationError


cdef inline size_t text_size(const Value* value) noexcept nogil:
    """Bytes of a text, rounded up so that the next one is aligned."""
    cdef size_t unit = value.encoding if value.encoding != UTF8 else 1
    return (value.length * unit + 3) & ~<size_t>3


cdef tuple names_in(list sources):
    """Every property name, as first met, and every header that is not fresh somewhere."""
    cdef dict found = {}
    cdef dict fresh = fresh_headers()
    cdef set left = set(fresh)
    for source in sources:
        if isinstance(source, Message):
            found.update(dict.fromkeys(source.property_names))
            for name in list(left):
                if not java_equal(source.get_object_property(name), fresh[name]):
                    left.discard(name)
        else:
            for name in source:
                if not isinstance(name, str) or not name:
                    raise InvalidMessageError("property name", name, "not a name", hint="give a str that is not empty")
                if header_code(name):
                    left.discard(name)
                else:
                    found[name] = None
    # JMSXUserID is a header and may also be a property.
    return tuple([intern(name) for name in found if name not in fresh] + [name for name in fresh if name not in left])


def rebuild(tuple names, bint complete, list rows, tuple bodies):
    """Packed messages from what ``__reduce__`` gives."""
    cdef PackedMessages packed = PackedMessages([dict(zip(names, row)) for row in rows], names)
    packed.complete = complete
    packed.bodies = bodies
    return packed


cdef class PackedMessages:
    """Messages packed for selectors: a copy of the named properties and headers in native memory; immutable.

    messages: an iterable of Message and mappings (headers by name; a missing one is that of a fresh message).
    names: properties and headers to keep, without repetition. None keeps every property that occurs and every header
    that is not fresh in some message. A selector that reads a name not kept raises MissingColumnError.
    Raises InvalidMessageError for a value that no message property can have.
    """

    def __cinit__(self, messages, names=None):
        cdef list sources = list(messages)
        for row, source in enumerate(sources):
            if not isinstance(source, (Message, Mapping)):
                raise InvalidMessageError(f"message {row}", source, "not a message", hint="give a Message or a mapping")
        self.complete = names is None
        if names is None:
            self.names = names_in(sources)
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
        self.objects = []
        self.rows = len(sources)
        self.width = <int>len(self.names)
        self.values = <Value*>PyMem_Calloc(self.rows * self.width + 1, sizeof(Value))
        if self.values == NULL:
            raise MemoryError()
        self.fill(sources)
        if any([isinstance(source, Message) and source.body is not None for source in sources]):
            self.bodies = tuple([source.body if isinstance(source, Message) else None for source in sources])

    def __dealloc__(self):
        PyMem_Free(self.values)
        PyMem_Free(self.texts)

    cdef int fill(self, list sources) except -1:
        cdef Value* row = self.values
        cdef Message message
        cdef list held = []
        cdef list codes = [header_code(name) for name in self.names]
        cdef int slot, code
        cdef bint header_only
        for source in sources:
            for slot in range(self.width):
                name = self.names[slot]
                code = codes[slot]
                if isinstance(source, Message):
                    message = source
                    header_only = code != 0 and not slot_value(message, <PyObject*>name, 0, &row[slot])
                    slot_value(message, <PyObject*>name, code, &row[slot])
                    row[slot].reserved = header_only
                else:
                    found = source.get(name)
                    if found is None and code:
                        fresh_header(code, &row[slot])
                        row[slot].reserved = 1
                        continue
                    held.append(found)
                    read_value(found, &row[slot], name, True)
                    row[slot].reserved = 0
                if row[slot].type == OBJECT:
                    self.objects.append(frozen_copy(<object>row[slot].payload.object, name, 0))
                    row[slot].payload.object = <void*>self.objects[len(self.objects) - 1]
            row += self.width
        return self.own_texts()

    cdef int own_texts(self) except -1:
        """Copy every text into memory of this object; one that several values share is copied once."""
        cdef Py_ssize_t index
        cdef Value* value
        cdef dict places = {}
        cdef size_t place = 0
        cdef object key
        for index in range(self.rows * self.width):
            value = &self.values[index]
            if STRING <= value.type <= BIG_DECIMAL:
                key = (<uintptr_t>value.payload.text, value.length)
                if key not in places:
                    places[key] = place
                    place += text_size(value)
        self.texts = <char*>PyMem_Malloc(place + 1)
        if self.texts == NULL:
            raise MemoryError()
        self.text_bytes = place
        for index in range(self.rows * self.width):
            value = &self.values[index]
            if STRING <= value.type <= BIG_DECIMAL:
                place = places[<uintptr_t>value.payload.text, value.length]
                memcpy(
                    self.texts + place, value.payload.text,
                    value.length * (value.encoding if value.encoding != UTF8 else 1),
                )
                value.payload.text = self.texts + place
        return 0

    cdef int slot_of(self, str name) except -2:
        found = self.slots.get(name)
        return -1 if found is None else found

    def __len__(self):
        return self.rows

    @property
    def nbytes(self):
        """Bytes of native memory: 16 a value, and the texts."""
        return self.rows * self.width * sizeof(Value) + self.text_bytes

    def row(self, Py_ssize_t index):
        """name -> value of one row, None where null. Raises IndexError beyond the last row."""
        if not 0 <= index < self.rows:
            raise IndexError(f"row {index} of {self.rows}")
        cdef Value* values = self.values + index * self.width
        return {self.names[slot]: python_value(&values[slot]) for slot in range(self.width)}

    def __reduce__(self):
        rows = [list(self.row(index).values()) for index in range(self.rows)]
        return rebuild, (self.names, bool(self.complete), rows, self.bodies)

    def __repr__(self):
        return f"PackedMessages({self.rows} messages, names={self.names!r}, {self.nbytes} bytes)"

    def _check(self):
        """Raise AssertionError if an invariant of the room does not hold."""
        cdef Py_ssize_t index
        cdef const Value* value
        assert len(self.names) == len(set(self.names)) == self.width
        for index in range(self.rows * self.width):
            value = &self.values[index]
            assert NULL_VALUE <= value.type <= OBJECT
            if STRING <= value.type <= BIG_DECIMAL:
                assert self.texts <= <char*>value.payload.text <= self.texts + self.text_bytes
                assert <char*>value.payload.text + text_size(value) <= self.texts + self.text_bytes


cdef void* body_at(PackedMessages messages, Py_ssize_t row) noexcept with gil:
    return NULL if messages.bodies is None else <void*>messages.bodies[row]


cdef class Sweep:
    """One program over packed messages: where its slots lie, and the row at hand."""
    cdef Program program
    cdef PackedMessages messages
    cdef int count                 # slots of the program
    cdef int* places               # slot of the program -> slot of the messages, or -1
    cdef Value* gathered           # by slot of the program; those of -1 stay as they are
    cdef Scratch scratch

    def __cinit__(self, Program program, PackedMessages messages, bint missing_is_null):
        cdef int slot
        self.program = program
        self.messages = messages
        self.count = <int>len(program.names)
        self.places = <int*>PyMem_Calloc(self.count + 1, sizeof(int))
        self.gathered = <Value*>PyMem_Calloc(self.count + 1, sizeof(Value))
        if self.places is NULL or self.gathered is NULL:
            raise MemoryError()
        for slot in range(self.count):
            name = program.names[slot]
            self.gathered[slot] = program.defaults[slot]
            self.places[slot] = messages.slot_of(name)
            if self.places[slot] < 0 and not messages.complete and not missing_is_null:
                raise MissingColumnError(name, messages.names, "the packed messages")

    def __dealloc__(self):
        free_scratch(&self.scratch)
        PyMem_Free(self.places)
        PyMem_Free(self.gathered)

    cdef int gather(self, const Value* row) noexcept nogil:
        """All slots of a row side by side, as text where the dialect wants text."""
        cdef int slot, place
        cdef const Value* value
        for slot in range(self.count):
            place = self.places[slot]
            if place < 0:
                continue
            value = &row[place]
            if self.program.every_text and value.reserved:
                self.gathered[slot] = self.program.defaults[slot]
            elif self.program.every_text and value.type != STRING and value.type != NULL_VALUE:
                if text_of(value, &self.gathered[slot], &self.scratch) == RAISED:
                    return RAISED
            else:
                self.gathered[slot] = value[0]
        return 0

    cdef Py_ssize_t match(self, Py_ssize_t row, int8_t* answers) noexcept nogil:
        """matches() from ``row`` on; returns the row that raised, or the number of rows."""
        cdef const Leaf* leaves = self.program.leaves
        cdef const Leaf* leaf
        cdef const int* places = self.places
        cdef const Value* values = self.messages.values + row * self.messages.width
        cdef Py_ssize_t rows = self.messages.rows
        cdef Py_ssize_t gathered = -1
        cdef int width = self.messages.width
        cdef int start = self.program.start
        cdef bint together = self.program.every_text
        cdef void* body = NULL
        cdef int at, truth, place
        while row < rows:
            at = start
            while at >= 0:
                leaf = &leaves[at]
                if not together and leaf.kind < GENERAL:
                    place = places[leaf.access.slot]
                    truth = leaf_truth(leaf, &values[place] if place >= 0 else &self.gathered[leaf.access.slot], &self.scratch)
                else:
                    if gathered != row:
                        gathered = row
                        if self.gather(values) == RAISED:
                            return row
                        if self.program.needs_gil:
                            body = body_at(self.messages, row)
                    if leaf.kind < GENERAL:
                        truth = leaf_truth(leaf, &self.gathered[leaf.access.slot], &self.scratch)
                    else:
                        truth = general_truth(self.program, leaf, self.gathered, body, &self.scratch)
                if truth == RAISED:
                    return row
                at = leaf.next[truth]
            answers[row] = at == ACCEPT
            if gathered == row:
                free_scratch(&self.scratch)
            values += width
            row += 1
        return row

    cdef Py_ssize_t evaluate(self, Py_ssize_t row, int8_t* answers) noexcept nogil:
        """evaluate() from ``row`` on; returns the row that raised, or the number of rows."""
        cdef void* body = NULL
        cdef int truth
        while row < self.messages.rows:
            if self.program.needs_gil:
                body = body_at(self.messages, row)
            if self.gather(self.messages.values + row * self.messages.width) == RAISED:
                return row
            truth = evaluate_values(self.program, self.gathered, body, &self.scratch)
            if truth == RAISED:
                return row
            answers[row] = -1 if truth == UNKNOWN else <int8_t>truth
            free_scratch(&self.scratch)
            row += 1
        return row

    cdef Py_ssize_t run(self, Py_ssize_t row, int8_t* answers, bint evaluating) noexcept nogil:
        return self.evaluate(row, answers) if evaluating else self.match(row, answers)


cdef object packed_truth(Program program, PackedMessages messages, int question, bint missing_is_null):
    cdef Sweep sweep = Sweep(program, messages, missing_is_null)
    cdef object answer = numpy.empty(messages.rows, numpy.int8)
    cdef int8_t[::1] truths = answer
    cdef int8_t* answers = &truths[0] if messages.rows else NULL
    cdef Py_ssize_t row = 0
    cdef bint evaluating = question == EVALUATE
    while True:
        if program.needs_gil:
            row = sweep.run(row, answers, evaluating)
        else:
            with nogil:
                row = sweep.run(row, answers, evaluating)
        if row == messages.rows:
            return answer
        error = raised_error(program, &sweep.scratch, row)
        if question == MATCH_OR_RAISE or not isinstance(error, SelectorEvaluationError):
            raise error
        truths[row] = 0 if question == MATCH_OR_REJECT else -2
        free_scratch(&sweep.scratch)
        row += 1
