# cython: freethreading_compatible=True
"""See message_view.pxd."""

from cython cimport final
from cpython.dict cimport PyDict_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF, Py_XINCREF
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from pyengine._engine.lowlevel.memory cimport allocate_zeros, resize
from pyengine._engine.columns.column_views cimport DOUBLE_VALUES, INT32_VALUES, INT64_VALUES, TEXT32, Column, read_cell
from pyengine._engine.lowlevel.bits cimport numbers_of
from pyengine._engine.message.header cimport fresh_header, header_code
from pyengine._engine.columns.kernels cimport kernel_load_bits
from pyengine._engine.lowlevel.dict_entries cimport pyengine_next
from pyengine._engine.message.message cimport Message
from pyengine._engine.columns.plan cimport as_property
from pyengine._engine.selector.interpreter cimport general_truth
from pyengine._engine.index.requirements cimport LeafGraph
from pyengine._engine.index.subscription cimport Subscription
from pyengine._engine.selector.program cimport ACCEPT, GENERAL, Leaf, Program, leaf_truth
from pyengine._engine.selector.row cimport found_value, read_slot
from pyengine._engine.java.sortable cimport double_to_sortable_long
from pyengine._engine.java.value cimport (
    BYTE,
    DOUBLE,
    LATIN1,
    LONG,
    NO_MEMORY,
    NULL_VALUE,
    OBJECT,
    RAISED,
    STRING,
    UCS2,
    UTF8,
    Scratch,
    Value,
    ascii_data,
    fail,
    free_scratch,
    is_ascii,
    is_exact_text,
    pyengine_same_bytes,
    quick_value,
    take_scratch,
    text_length,
)

import sys

cdef enum:
    BEYOND = 64              # names that no slot has and an event knows
    PROPERTIES = 4           # times as many as there are slots a dict may have and is read property by property

cdef int64_t EXACT_REAL = <int64_t> 1 << 53      # integers up to here are doubles, each its own


cdef extern from "Python.h":
    PyObject* PyDict_GetItemWithError(object mapping, object name) except? NULL


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    static inline uint64_t pyengine_mix(uint64_t a, uint64_t b) {
    #ifdef __SIZEOF_INT128__
        __uint128_t product = (__uint128_t)a * b;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    #else
        uint64_t x = (a ^ (b >> 32)) * 0x9E3779B97F4A7C15u;
        return x ^ (x >> 29) ^ b * 0xD6E8FEB86659FD93u;
    #endif
    }
    /* Eight bytes at a time, the last ones wherever they begin: ``last``, all there is of a text no longer than them.
       ``high`` gathers the top bits of all bytes. */
    static inline uint64_t pyengine_hash(
            const uint8_t *bytes, uint32_t length, uint64_t seed, int64_t *last, uint64_t *high) {
        uint64_t word = 0, hash = seed ^ (length * 0xA0761D6478BD642Fu), seen = 0;
        uint32_t half, other;
        const uint8_t *end = bytes + length;
        if (length > 8) {
            do {
                memcpy(&word, bytes, 8);
                seen |= word;
                hash = pyengine_mix(hash ^ word, 0xE7037ED1A0B428DBu);
                bytes += 8;
            } while (end - bytes > 8);
            memcpy(&word, end - 8, 8);
        } else if (length >= 4) {
            memcpy(&half, bytes, 4), memcpy(&other, end - 4, 4);
            word = half | (uint64_t)other << 32;
        } else if (length) {
            word = bytes[0] | (uint64_t)bytes[length >> 1] << 32 | (uint64_t)end[-1] << 56;
        }
        *last = (int64_t)word;
        *high = (seen | word) & 0x8080808080808080u;
        return pyengine_mix(hash ^ word, 0x8EBC6AF09C88C6E3u);
    }
    """
    uint64_t pyengine_hash(
        const uint8_t* bytes, uint32_t length, uint64_t seed, int64_t* last, uint64_t* high) noexcept nogil


cdef inline bint is_named(const Known* known, PyObject* name) noexcept:
    """Whether a name is a known one, asked of the object itself or of ASCII; no need not mean that it is another."""
    return known.name == name or (
        is_exact_text(name) and is_ascii(name) and text_length(name) == known.length
        and pyengine_same_bytes(known.text, ascii_data(name), known.length)
    )


cdef inline uint32_t unit(const Value* text, uint32_t place) noexcept nogil:
    if text.encoding == LATIN1:
        return (<const uint8_t*> text.payload.text)[place]
    if text.encoding == UCS2:
        return (<const uint16_t*> text.payload.text)[place]
    return (<const uint32_t*> text.payload.text)[place]


cdef int transcode(const Value* text, Reading* reading, Scratch* scratch) noexcept nogil:
    """CPython text as UTF-8, a surrogate pair as its code point; ODD with a lone surrogate; -1 without memory."""
    cdef uint8_t* bytes = <uint8_t*> take_scratch(scratch, 4 * <size_t> text.length + 1)
    cdef uint32_t place = 0, point, low, length = 0
    if bytes == NULL:
        return -1
    while place < text.length:
        point = unit(text, place)
        place += 1
        if 0xD800 <= point < 0xE000:
            low = unit(text, place) if point < 0xDC00 and place < text.length else 0
            if not 0xDC00 <= low < 0xE000:
                reading.kind = ODD
                return 0
            point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)
            place += 1
        if point < 0x80:
            bytes[length] = <uint8_t> point
            length += 1
        elif point < 0x800:
            bytes[length] = <uint8_t> (0xC0 | point >> 6)
            bytes[length + 1] = <uint8_t> (0x80 | point & 0x3F)
            length += 2
        elif point < 0x10000:
            bytes[length] = <uint8_t> (0xE0 | point >> 12)
            bytes[length + 1] = <uint8_t> (0x80 | point >> 6 & 0x3F)
            bytes[length + 2] = <uint8_t> (0x80 | point & 0x3F)
            length += 3
        else:
            bytes[length] = <uint8_t> (0xF0 | point >> 18)
            bytes[length + 1] = <uint8_t> (0x80 | point >> 12 & 0x3F)
            bytes[length + 2] = <uint8_t> (0x80 | point >> 6 & 0x3F)
            bytes[length + 3] = <uint8_t> (0x80 | point & 0x3F)
            length += 4
    reading.bytes = bytes
    reading.length = length
    return 0


cdef inline void read_integer_as_point(int64_t integer, Reading* reading) noexcept nogil:
    # Which are exact nobody can foresee, so that no branch is taken on it.
    reading.kind = NUMERAL if (-EXACT_REAL <= integer) & (integer <= EXACT_REAL) else ODD
    reading.key = double_to_sortable_long(<double> integer)


cdef inline int read_value_as_point(const Value* value, Reading* reading, Scratch* scratch) noexcept nogil:
    """-1 without memory."""
    cdef uint64_t high
    if value.type == STRING:
        reading.kind = WORD
        if value.encoding == UTF8 or value.encoding == LATIN1:
            reading.bytes = <const uint8_t*> value.payload.text
            reading.length = value.length
            reading.hash = pyengine_hash(reading.bytes, reading.length, 1, &reading.key, &high)
            if value.encoding == UTF8 or not high:
                return 0
        if transcode(value, reading, scratch) < 0:
            return -1
        if reading.kind == WORD:
            reading.hash = pyengine_hash(reading.bytes, reading.length, 1, &reading.key, &high)
    elif BYTE <= value.type <= LONG:
        read_integer_as_point(value.payload.integer, reading)
    elif value.type == DOUBLE:
        reading.kind = NUMERAL
        reading.key = double_to_sortable_long(value.payload.real)
    else:
        reading.kind = NOTHING if value.type == NULL_VALUE else ODD
    return 0


cdef inline uint64_t valid_bits(const Column* column, int64_t first, int count) noexcept nogil:
    """A bit for each of up to 64 rows that is not null."""
    cdef uint64_t bits = 0
    if column.validity == NULL:
        return ~(<uint64_t> 0) >> (64 - count)
    kernel_load_bits(column.validity, column.validity_start + first, count, &bits)
    return bits


cdef void number_points(const Column* column, int64_t first, uint64_t rows, Reading* at, Kinds* kinds) noexcept nogil:
    """Of a column of doubles, longs or ints."""
    cdef int index, row, count
    cdef uint64_t odd = 0
    cdef bint wide = column.storage == INT64_VALUES
    cdef const double* reals = <const double*> column.values + first
    cdef const int64_t* longs = <const int64_t*> column.values + first
    cdef const int32_t* ints = <const int32_t*> column.values + first
    cdef uint8_t[64] those
    count = numbers_of(rows, those)
    if column.storage == DOUBLE_VALUES:
        for index in range(count):
            row = those[index]
            at[row].kind = NUMERAL
            at[row].key = double_to_sortable_long(reals[row])
    else:
        for index in range(count):
            row = those[index]
            read_integer_as_point(longs[row] if wide else ints[row], &at[row])
            odd |= <uint64_t> (at[row].kind == ODD) << row
    kinds.odd |= odd
    kinds.numerals = rows & ~odd


cdef void text_points(const Column* column, int64_t first, uint64_t rows, Reading* at, Kinds* kinds) noexcept nogil:
    cdef int index, row
    cdef uint64_t high
    cdef const int32_t* offsets = <const int32_t*> column.values + first
    cdef const uint8_t* data = column.data
    cdef uint8_t[64] those
    kinds.words = rows
    for index in range(numbers_of(rows, those)):
        row = those[index]
        at[row].kind = WORD
        at[row].bytes = data + offsets[row]
        at[row].length = <uint32_t> (offsets[row + 1] - offsets[row])
        at[row].hash = pyengine_hash(at[row].bytes, at[row].length, 1, &at[row].key, &high)


cdef bint point_of(const Value* constant, Reading* reading, Scratch* scratch) noexcept nogil:
    cdef uint32_t place
    cdef const uint8_t* bytes = <const uint8_t*> constant.payload.text
    cdef int64_t* key
    memset(reading, 0, sizeof(Reading))
    if constant.type == STRING and constant.encoding == UTF8:
        # A lone surrogate is ED A0..BF; such a text is the same as texts that have no UTF-8.
        for place in range(1, constant.length):
            if bytes[place - 1] == 0xED and bytes[place] >= 0xA0:
                return False
    if read_value_as_point(constant, reading, scratch) < 0 or reading.kind == ODD or reading.kind == NOTHING:
        return False
    if reading.kind == NUMERAL:
        key = <int64_t*> take_scratch(scratch, 8)
        if key == NULL:
            return False
        key[0] = reading.key
        reading.bytes = <const uint8_t*> key
        reading.length = 8
        reading.hash = number_hash(reading.key)
    return True


cdef Program reader_of(list names, bint every_text):
    cdef Program program = Program()
    cdef int slot, count = <int> len(names)
    program.every_text = every_text
    program.owned = []
    program.names = tuple([sys.intern(name) for name in names])
    program.text = ""
    program.dialect = "rocketmq" if every_text else "activemq"
    program.defaults = <Value*> program.take(max(1, count) * sizeof(Value))
    program.headers = <int32_t*> program.take(max(1, count) * sizeof(int32_t))
    if not every_text:
        for slot in range(count):
            program.headers[slot] = header_code(program.names[slot])
            if program.headers[slot]:
                fresh_header(program.headers[slot], &program.defaults[slot])
    return program


@final
cdef class Event:
    def __cinit__(self, Program reader not None):
        cdef int slot
        self.step = 1
        self.row = -1
        self.reader = reader
        cdef int count = <int> len(reader.names)
        self.values = <Value*> allocate_zeros(count + 1, sizeof(Value))
        self.at = self.own_at = <Reading*> allocate_zeros(count + 1, sizeof(Reading))
        self.cells = <const Column**> allocate_zeros(count + 1, sizeof(Column*))
        self.read_in = <int64_t*> allocate_zeros(count + 1, sizeof(int64_t))
        self.held = <PyObject**> allocate_zeros(count + 1, sizeof(PyObject*))
        self.fresh = <Reading*> allocate_zeros(count + 1, sizeof(Reading))
        self.count = count        # which __dealloc__ goes by
        self.slots = {name: slot for slot, name in enumerate(reader.names)}
        self.names = <Known*> allocate_zeros(self.count + BEYOND + 1, sizeof(Known))
        self.after = <int*> allocate_zeros(self.count + BEYOND + 1, sizeof(int))
        for slot in range(self.count + BEYOND + 1):
            self.names[slot].length = -1
        for slot in range(self.count):
            self.know(slot, <PyObject*> reader.names[slot])
        for slot in range(self.count):
            if read_value_as_point(&reader.defaults[slot], &self.fresh[slot], &self.scratch) < 0:
                raise MemoryError()
        if self.scratch.blocks != NULL:
            raise AssertionError("the text of a fresh header is not plain")

    def __dealloc__(self):
        self.clear()
        free(self.values)
        free(self.own_at)
        free(self.cells)
        free(self.read_in)
        free(self.fresh)
        free(self.held)
        free(self.names)
        free(self.after)
        free(self.gathered)

    cdef int reserve(self, int slots) except -1:
        if slots > self.gathered_room:
            self.gathered = <Value*> resize(self.gathered, slots * sizeof(Value))
            self.gathered_room = slots
        return 0

    cdef void clear(self) noexcept:
        cdef int slot
        for slot in range(self.count):
            if self.held[slot] != NULL:
                Py_XDECREF(self.held[slot])
                self.held[slot] = NULL
        self.at = self.own_at
        self.step = 1
        self.row = -1
        self.forget()

    cdef void forget(self) noexcept nogil:
        if self.scratch.blocks != NULL or self.scratch.objects != NULL or self.scratch.error != NULL:
            free_scratch(&self.scratch)
            memset(&self.scratch, 0, sizeof(Scratch))

    cdef int read(self, object message) except -1:
        cdef int slot
        self.has_objects = False
        self.body = NULL
        if PyDict_CheckExact(message):
            return self.read_dict(message)
        if isinstance(message, Message):
            self.body = <void*> (<Message> message)._body
        for slot in range(self.count):
            read_slot(self.reader, message, slot, &self.values[slot], &self.held[slot], &self.scratch)
            if self.interpret(slot) < 0:
                raise MemoryError()
        return 0

    cdef int read_dict(self, dict message) except -1:
        cdef int slot = self.count + BEYOND, guess
        cdef int count = self.count
        cdef const Known* names = self.names
        cdef int* after = self.after
        cdef bint every_text = self.reader.every_text
        cdef Py_ssize_t position = 0
        cdef PyObject* name
        cdef PyObject* found
        cdef Value* value
        memcpy(self.values, self.reader.defaults, count * sizeof(Value))
        memcpy(self.at, self.fresh, count * sizeof(Reading))
        if len(message) <= PROPERTIES * count:
            # By property. Only a name that is no plain str may run Python code.
            while pyengine_next(<PyObject*> message, &position, &name, &found):
                guess = after[slot]
                if not is_named(&names[guess], name):
                    if not is_exact_text(name):
                        break
                    guess = after[slot] = self.slot_of(name)
                slot = guess
                if slot >= count:
                    continue
                value = &self.values[slot]
                if self.held[slot] != NULL or not quick_value(found, value) or (
                        value.type != STRING and (every_text or value.type == NULL_VALUE)):
                    self.take(slot, found)
                    continue
                if value.type == STRING:
                    Py_INCREF(<object> found)
                    self.held[slot] = found
                if read_value_as_point(value, &self.at[slot], &self.scratch) < 0:
                    raise MemoryError()
            else:
                return 0
        for slot in range(count):
            found = PyDict_GetItemWithError(message, self.reader.names[slot])
            if found != NULL:
                self.take(slot, found)
        return 0

    cdef int know(self, int slot, PyObject* name) noexcept:
        self.names[slot].name = name
        if is_ascii(name):
            self.names[slot].text = ascii_data(name)
            self.names[slot].length = text_length(name)
        return 0

    cdef int slot_of(self, PyObject* name) except -1:
        cdef PyObject* place = PyDict_GetItemWithError(self.slots, <object> name)
        cdef int slot = <int> len(self.slots)
        if place != NULL:
            return <int> (<object> place)
        if slot < self.count + BEYOND:
            self.slots[<object> name] = slot
            self.know(slot, name)
        return slot

    cdef int take(self, int slot, PyObject* found) except -1:
        cdef PyObject* before = self.held[slot]
        Py_XINCREF(found)              # to read it may run code that takes it out of the dict
        self.held[slot] = found
        Py_XDECREF(before)
        found_value(self.reader, found, slot, &self.values[slot], &self.scratch)
        if self.interpret(slot) < 0:
            raise MemoryError()
        return 0

    cdef int interpret(self, int slot) noexcept nogil:
        cdef Reading* reading = &self.at[slot]
        if self.values[slot].type == OBJECT:
            self.has_objects = True
        return read_value_as_point(&self.values[slot], reading, &self.scratch)

    cdef int cell(self, int slot, int64_t row, Value* value) noexcept nogil:
        value.type = NULL_VALUE
        if self.cells[slot] != NULL:
            read_cell(self.cells[slot], row, value)
            if self.reader.every_text and not as_property(self.reader, value, &self.scratch):
                return -1
        if value.type == NULL_VALUE:
            value[0] = self.reader.defaults[slot]
        return 0

    cdef int interpret_rows(self, int slot, int64_t first, int count, Reading* at, Kinds* kinds) noexcept nogil:
        cdef int index
        cdef uint64_t valid = 0
        cdef const Column* column = self.cells[slot]
        cdef Value value
        memset(kinds, 0, sizeof(Kinds))
        if not self.reader.every_text and self.reader.defaults[slot].type == NULL_VALUE and (
                column == NULL or column.storage in (DOUBLE_VALUES, INT64_VALUES, INT32_VALUES, TEXT32)):
            if column != NULL:
                valid = valid_bits(column, first, count)
            for index in range(0 if valid == ~(<uint64_t> 0) >> (64 - count) else count):
                at[index].kind = NOTHING
            if column == NULL:
                return 0
            if column.storage == TEXT32:
                text_points(column, first, valid, at, kinds)
            else:
                number_points(column, first, valid, at, kinds)
            return 0
        for index in range(count):
            if column == NULL:
                at[index] = self.fresh[slot]
            elif self.cell(slot, first + index, &value) < 0 or (
                    read_value_as_point(&value, &at[index], &self.scratch) < 0):
                return -1
            kinds.numerals |= <uint64_t> (at[index].kind == NUMERAL) << index
            kinds.words |= <uint64_t> (at[index].kind == WORD) << index
            kinds.odd |= <uint64_t> (at[index].kind == ODD) << index
        return 0

    cdef inline int see(self, int slot) noexcept nogil:
        if self.row < 0 or self.read_in[slot] == self.row_number:
            return 0
        self.read_in[slot] = self.row_number
        return self.cell(slot, self.row, &self.values[slot])

    cdef int ask(self, const PyObject* subscription) noexcept nogil:
        cdef const LeafGraph* graph = &(<Subscription> subscription).graph
        cdef const int* slots
        cdef const Leaf* leaf
        cdef int at = graph.start, truth, index, slot
        while at >= 0:
            leaf = &graph.leaves[at]
            if leaf.kind < GENERAL:
                if self.see(leaf.slot) < 0:
                    return fail(NO_MEMORY, &self.scratch)
                truth = leaf_truth(leaf, &self.values[leaf.slot], &self.scratch)
            else:
                slots = (<Subscription> subscription).slots
                for index in range(leaf.count):
                    slot = slots[leaf.slots[index]]
                    if self.see(slot) < 0:
                        return fail(NO_MEMORY, &self.scratch)
                    self.gathered[leaf.slots[index]] = self.values[slot]
                truth = general_truth(
                    (<Subscription> subscription).program, leaf, self.gathered, self.body, &self.scratch)
            if truth == RAISED:
                return RAISED
            at = leaf.next[truth]
        return at == ACCEPT
