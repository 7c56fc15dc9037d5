"""See packed_columns.pxd."""

from libc.stdint cimport INT8_MAX, INT16_MAX, INT32_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from pyengine._engine.lowlevel.memory cimport allocate_zeros
from pyengine._engine.columns.column_views cimport (
    BOOLEAN_BITS,
    CODES,
    DOUBLE_VALUES,
    FLOAT_VALUES,
    INT8_VALUES,
    INT16_VALUES,
    INT32_VALUES,
    INT64_VALUES,
    NO_VALUES,
    TEXT32,
    UNSUPPORTED,
    Column,
    ColumnViews,
    allocate_views,
)
from pyengine._engine.message.packed_messages cimport TEXT_ALIGNMENT, PackedMessages
from pyengine._engine.selector.program cimport Program
from pyengine._engine.java.strings cimport utf8_of
from pyengine._engine.java.value cimport (
    BOOLEAN,
    BYTE,
    FLOAT,
    INT,
    LONG,
    NULL_VALUE,
    SHORT,
    STRING,
    Value,
    python_value,
)


cdef class Packing:
    """One slot being made a column."""
    cdef ColumnViews columns
    cdef PackedMessages messages
    cdef const Value* first            # of the slot; ``stride`` values to the next row
    cdef Py_ssize_t stride
    cdef Py_ssize_t rows
    cdef Column* column

    cdef int take_slot(self, int slot) except -1:
        cdef int java_type = NULL_VALUE
        cdef Py_ssize_t row, nulls = 0
        cdef const Value* value
        self.first = &self.messages.values[slot]
        self.column = &self.columns.views[slot]
        for row in range(self.rows):
            value = &self.first[row * self.stride]
            if value.type == NULL_VALUE:
                nulls += 1
            elif java_type == NULL_VALUE:
                java_type = value.type
            elif java_type != value.type:
                return 0
        if java_type > STRING:
            return 0
        self.column.java_type = <uint8_t>java_type
        if java_type == NULL_VALUE:
            self.column.storage = NO_VALUES
            return 0
        if nulls:
            self.column.validity = self.bits(False)
        if java_type == STRING:
            return self.take_texts()
        if java_type == BOOLEAN:
            self.column.values = self.bits(True)
            self.column.storage = BOOLEAN_BITS
        else:
            self.take_numbers(java_type)
        return 0

    cdef const uint8_t* bits(self, bint truths) except NULL:
        """A bitmap of the rows that have a value, or of those whose value is true."""
        cdef uint8_t* bitmap = <uint8_t*>self.columns.own((self.rows >> 3) + 8)
        cdef const Value* value
        cdef Py_ssize_t row
        for row in range(self.rows):
            value = &self.first[row * self.stride]
            if value.type != NULL_VALUE and (not truths or value.payload.integer):
                bitmap[row >> 3] |= <uint8_t>(1 << (row & 7))
        return bitmap

    cdef int take_numbers(self, int java_type) except -1:
        cdef void* values = self.columns.own(self.rows * 8)
        cdef const Value* value
        cdef Py_ssize_t row
        for row in range(self.rows):
            value = &self.first[row * self.stride]
            if value.type == NULL_VALUE:
                continue
            if java_type == BYTE:
                (<int8_t*>values)[row] = <int8_t>value.payload.integer
            elif java_type == SHORT:
                (<int16_t*>values)[row] = <int16_t>value.payload.integer
            elif java_type == INT:
                (<int32_t*>values)[row] = <int32_t>value.payload.integer
            elif java_type == LONG:
                (<int64_t*>values)[row] = value.payload.integer
            elif java_type == FLOAT:
                (<float*>values)[row] = <float>value.payload.real
            else:
                (<double*>values)[row] = value.payload.real
        self.column.values = values
        self.column.storage = (
            INT8_VALUES if java_type == BYTE
            else INT16_VALUES if java_type == SHORT
            else INT32_VALUES if java_type == INT
            else INT64_VALUES if java_type == LONG
            else FLOAT_VALUES if java_type == FLOAT
            else DOUBLE_VALUES
        )
        return 0

    cdef int take_texts(self) except -1:
        """Codes into a dictionary of the slot's texts; equal texts have one place in the messages' memory."""
        cdef int32_t* codes = <int32_t*>self.columns.own(self.rows * sizeof(int32_t))
        cdef int32_t* known = <int32_t*>allocate_zeros(self.messages.text_bytes // TEXT_ALIGNMENT + 1, sizeof(int32_t))
        cdef const Value* value
        cdef int32_t* code
        cdef list texts = []
        cdef Py_ssize_t row, size = 0
        try:
            for row in range(self.rows):
                value = &self.first[row * self.stride]
                if value.type == NULL_VALUE:
                    continue
                code = &known[(<const char*>value.payload.text - self.messages.texts) // TEXT_ALIGNMENT]
                if not code[0]:
                    texts.append(utf8_of(python_value(value)))
                    size += len(<bytes>texts[len(texts) - 1])
                    code[0] = <int32_t>len(texts)
                codes[row] = code[0] - 1
        finally:
            free(known)
        if size > INT32_MAX:
            return 0
        self.take_dictionary(texts, size)
        self.narrow(codes, len(texts))
        return 0

    cdef int take_dictionary(self, list texts, Py_ssize_t size) except -1:
        cdef Column* dictionary = <Column*>self.columns.own(sizeof(Column))
        cdef int32_t* offsets = <int32_t*>self.columns.own((len(texts) + 1) * sizeof(int32_t))
        cdef char* data = <char*>self.columns.own(size)
        cdef bytes text
        cdef int32_t end = 0
        cdef Py_ssize_t i
        for i in range(len(texts)):
            text = texts[i]
            memcpy(data + end, <const char*>text, len(text))
            end += <int32_t>len(text)
            offsets[i + 1] = end
        dictionary.storage = TEXT32
        dictionary.java_type = STRING
        dictionary.length = len(texts)
        dictionary.values = offsets
        dictionary.data = <const uint8_t*>data
        dictionary.data_end = size
        self.column.dictionary = dictionary
        return 0

    cdef int narrow(self, int32_t* codes, Py_ssize_t count) noexcept:
        """The narrowest codes there are, in the same memory: less to read."""
        cdef Py_ssize_t row
        self.column.values = codes
        self.column.code_storage = (
            INT8_VALUES if count <= INT8_MAX else INT16_VALUES if count <= INT16_MAX else INT32_VALUES
        )
        if self.column.code_storage == INT8_VALUES:
            for row in range(self.rows):
                (<int8_t*>codes)[row] = <int8_t>codes[row]
        elif self.column.code_storage == INT16_VALUES:
            for row in range(self.rows):
                (<int16_t*>codes)[row] = <int16_t>codes[row]
        self.column.storage = CODES
        return 0


cdef ColumnViews empty_columns(PackedMessages messages):
    """No slot has a column yet."""
    cdef ColumnViews columns = ColumnViews()
    cdef int slot
    columns.batch_count = 1
    columns.column_count = messages.width
    columns.names = columns.offered = messages.names
    allocate_views(columns)
    for slot in range(messages.width):
        columns.views[slot].storage = UNSUPPORTED
        columns.views[slot].length = messages.rows
    columns.types = ["values of several types"] * messages.width
    columns.row_count = columns.starts[1] = messages.rows
    return columns


cdef ColumnViews packed_columns(PackedMessages messages, Program program):
    cdef ColumnViews columns = messages.columns
    cdef Packing packing
    cdef object name, slot
    if program.every_text or program.needs_gil:
        return None
    if columns is None:
        columns = messages.columns = empty_columns(messages)
    for name in program.names:
        slot = messages.slots.get(name)
        if slot is None:
            continue
        if name not in columns.positions:
            packing = Packing()
            packing.columns = columns
            packing.messages = messages
            packing.stride = messages.width
            packing.rows = messages.rows
            packing.take_slot(slot)
            columns.positions[name] = slot
        if columns.views[<int>slot].storage == UNSUPPORTED:
            return None
    return columns
