"""See packed_scan.pxd."""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from libc.stdint cimport int8_t, uint8_t, uint16_t
from libc.string cimport memset

from pyengine._engine.columns.column_views cimport ColumnViews
from pyengine._engine.columns.evaluation cimport mask_columns, truth_columns
from pyengine._engine.message.packed_messages cimport TEXT_ALIGNMENT, PackedMessages
from pyengine._engine.columns.packed_columns cimport packed_columns
from pyengine._engine.selector.interpreter cimport evaluate_values, match_values
from pyengine._engine.selector.program cimport (
    ACCEPT,
    ARITHMETIC,
    GENERAL,
    NUMBER,
    PATTERN,
    REJECT,
    SLOT,
    STACK,
    TEXT,
    UNDECIDED,
    Access,
    Leaf,
    Program,
    StackStep,
    arithmetic_truth,
    compute,
    push,
    quick_truth,
    raised_error,
    takes_integer,
    takes_real,
)
from pyengine._engine.java.value cimport (
    BYTE,
    DOUBLE,
    LONG,
    NULL_VALUE,
    RAISED,
    STRING,
    TRUE,
    UNKNOWN,
    Scratch,
    Value,
    free_scratch,
    text_of,
)

import numpy

from pyengine.errors import MissingColumnError, SelectorEvaluationError

cdef object TRUTHS = numpy.dtype(numpy.int8)
cdef object FLAGS = numpy.dtype(numpy.bool_)


cdef void* body_at(PackedMessages messages, Py_ssize_t row) noexcept with gil:
    return NULL if messages.bodies is None else <void*>messages.bodies[row]


cdef enum:
    BLOCK = 1024
    NOT_ASKED = 255
    MOST_TEXT = 1 << 24       # bytes of strings up to which leaves memoize their answers


cdef struct Waiting:          # rows of a block that stand before one leaf
    int count
    uint16_t[BLOCK + 1] rows  # one more is written, and not counted


cdef inline void keep(Waiting* target, const Waiting* asked, const uint8_t* truths, int mask) noexcept nogil:
    """Append the rows whose truth is in the mask."""
    cdef uint16_t* rows = target.rows
    cdef int kept = target.count
    cdef int count = asked.count
    cdef int i
    for i in range(count):
        rows[kept] = asked.rows[i]
        kept += mask >> truths[i] & 1
    target.count = kept


cdef class Sweep:
    """One program over packed messages: where its slots lie, and the rows at hand.

    Leaves are asked in their order, each about all rows of a block that have come to it: jumps go forward, so every row
    passes at most once, and no branch depends on the answer of a row. Rows that a leaf cannot decide at once are
    evaluated again, one by one.
    """
    cdef Program program
    cdef PackedMessages messages
    cdef int count                 # slots of the program
    cdef int* places               # slot of the program -> slot of the messages, or -1
    cdef Value* gathered           # by slot of the program; those of -1 stay as they are
    cdef Scratch scratch
    cdef Waiting* waiting          # by leaf
    cdef Waiting left              # for one by one
    cdef uint8_t[BLOCK] truths     # of the rows that wait before the leaf at hand
    cdef uint8_t** memory          # leaf -> Truth by position of a string, or NOT_ASKED; NULL: not memoized
    cdef Py_ssize_t single         # rows before this one are asked one by one

    def __cinit__(self, Program program, PackedMessages messages):
        cdef int slot, at
        self.program = program
        self.messages = messages
        self.count = <int>len(program.names)
        self.places = <int*>PyMem_Calloc(self.count + 1, sizeof(int))
        self.gathered = <Value*>PyMem_Calloc(self.count + 1, sizeof(Value))
        self.waiting = <Waiting*>PyMem_Malloc((program.leaf_count + 1) * sizeof(Waiting))
        self.memory = <uint8_t**>PyMem_Calloc(program.leaf_count + 1, sizeof(uint8_t*))
        if self.places is NULL or self.gathered is NULL or self.waiting is NULL or self.memory is NULL:
            raise MemoryError()
        for slot in range(self.count):
            name = program.names[slot]
            self.gathered[slot] = program.defaults[slot]
            self.places[slot] = messages.slot_of(name)
        for at in range(program.leaf_count):
            self.waiting[at].count = 0
            if TEXT <= program.leaves[at].kind <= PATTERN and messages.text_bytes <= MOST_TEXT:
                self.memory[at] = <uint8_t*>PyMem_Malloc(messages.text_bytes // TEXT_ALIGNMENT + 1)
                if self.memory[at] is NULL:
                    raise MemoryError()
                memset(self.memory[at], NOT_ASKED, messages.text_bytes // TEXT_ALIGNMENT + 1)

    def __dealloc__(self):
        cdef int at
        free_scratch(&self.scratch)
        if self.memory is not NULL:
            for at in range(self.program.leaf_count):
                PyMem_Free(self.memory[at])
        PyMem_Free(self.memory)
        PyMem_Free(self.waiting)
        PyMem_Free(self.places)
        PyMem_Free(self.gathered)

    # Block by block

    cdef void ask_numbers(self, const Leaf* asking, const Waiting* asked, const Value* values) noexcept nogil:
        """NUMBER; ``values``: the leaf's slot of the first row."""
        cdef Leaf leaf = asking[0]            # copies: stores of truths could change what is behind a pointer
        cdef size_t width = self.messages.width
        cdef uint8_t* truths = self.truths
        cdef const Value* value
        cdef int count = asked.count
        cdef int i
        for i in range(count):
            value = &values[asked.rows[i] * width]
            if BYTE <= value.type <= LONG:
                truths[i] = takes_integer(&leaf, value.payload.integer)
            elif value.type == DOUBLE:
                truths[i] = takes_real(&leaf, value.payload.real)
            else:
                truths[i] = UNKNOWN if value.type == NULL_VALUE else UNDECIDED

    cdef void ask_texts(self, int at, const Waiting* asked, const Value* values) noexcept nogil:
        """TEXT .. PATTERN of a leaf that remembers."""
        cdef const Leaf* leaf = &self.program.leaves[at]
        cdef uint8_t* memory = self.memory[at]
        cdef const char* texts = self.messages.texts
        cdef size_t width = self.messages.width
        cdef uint8_t* truths = self.truths
        cdef const Value* value
        cdef size_t place
        cdef uint8_t truth
        cdef int count = asked.count
        cdef int i
        for i in range(count):
            value = &values[asked.rows[i] * width]
            if value.type == STRING:
                place = <size_t>(<const char*>value.payload.text - texts) // TEXT_ALIGNMENT
                truth = memory[place]
                if truth == NOT_ASKED:
                    truth = memory[place] = <uint8_t>quick_truth(leaf, value)
                truths[i] = truth
            else:
                truths[i] = <uint8_t>quick_truth(leaf, value)

    cdef int read(self, const Access* access, const Value* row, Value* into) noexcept nogil:
        """A slot of a row as the dialect has it; False where it must be made."""
        cdef int place = self.places[access.slot]
        cdef const Value* value = &row[place] if place >= 0 else &self.gathered[access.slot]
        into[0] = value[0]
        if not self.program.every_text:
            return True
        if place >= 0 and value.reserved:
            into.type = NULL_VALUE
        return into.type == STRING or into.type == NULL_VALUE

    cdef int computed_truth(self, const Leaf* leaf, const Value* row) noexcept nogil:
        """ARITHMETIC."""
        cdef Value[STACK] stack
        cdef bint missing = False
        cdef int height = 0
        cdef int i
        cdef const StackStep* step
        for i in range(leaf.step_count):
            step = &leaf.steps[i]
            if step.operation != SLOT:
                compute(step, stack, &height, missing)
                continue
            if not self.read(&step.access, row, &stack[height]):
                return UNDECIDED
            if not push(&stack[height], &stack[height], &missing):
                return UNDECIDED
            height += 1
        return arithmetic_truth(leaf, stack, missing)

    cdef void ask_rows(self, const Leaf* leaf, const Waiting* asked, const Value* values) noexcept nogil:
        """Any leaf; ``values``: the first slot of the first row."""
        cdef const Value* row
        cdef Value value
        cdef int i
        for i in range(asked.count):
            row = &values[<Py_ssize_t>asked.rows[i] * self.messages.width]
            if leaf.kind == ARITHMETIC:
                self.truths[i] = <uint8_t>self.computed_truth(leaf, row)
            elif leaf.kind >= GENERAL or not self.read(leaf.access, row, &value):
                self.truths[i] = UNDECIDED
            else:
                self.truths[i] = <uint8_t>quick_truth(leaf, &value)

    cdef void send_on(self, const Leaf* leaf, const Waiting* asked, int8_t* answers) noexcept nogil:
        """Every row to where its truth leads."""
        cdef int k, i, target, mask
        cdef uint8_t odd = 0
        cdef int count = asked.count
        for i in range(count):
            odd = max(odd, self.truths[i])
        if odd > UNKNOWN:
            keep(&self.left, asked, self.truths, 1 << UNDECIDED | 1 << RAISED)
        for k in range(3):
            target = leaf.next[k]
            mask = 0
            for i in range(3):
                if leaf.next[i] == target:
                    mask |= 1 << i
            if target == REJECT or mask & ((1 << k) - 1):
                continue
            if target >= 0:
                keep(&self.waiting[target], asked, self.truths, mask)
            else:
                for i in range(count):
                    answers[asked.rows[i]] |= mask >> self.truths[i] & 1

    cdef void ask_block(self, const Value* values, int count, int8_t* answers) noexcept nogil:
        """matches() of ``count`` rows, except those that are ``left``."""
        cdef const Leaf* leaf
        cdef Waiting* asked
        cdef int at, place
        cdef bint typed = not self.program.every_text
        memset(answers, self.program.start == ACCEPT, count)
        self.left.count = 0
        if self.program.start < 0:
            return
        asked = &self.waiting[self.program.start]
        asked.count = count
        for at in range(count):
            asked.rows[at] = <uint16_t>at
        for at in range(self.program.start, self.program.leaf_count):
            asked = &self.waiting[at]
            if not asked.count:
                continue
            leaf = &self.program.leaves[at]
            place = self.places[leaf.slot] if leaf.kind < GENERAL else -1
            if typed and place >= 0 and leaf.kind == NUMBER:
                self.ask_numbers(leaf, asked, values + place)
            elif typed and place >= 0 and self.memory[at] is not NULL:
                self.ask_texts(at, asked, values + place)
            else:
                self.ask_rows(leaf, asked, values)
            self.send_on(leaf, asked, answers)
            asked.count = 0

    cdef Py_ssize_t match(self, Py_ssize_t row, int8_t* answers) noexcept nogil:
        """matches() from ``row`` on; returns the row that raised, or the number of rows."""
        cdef Py_ssize_t rows = self.messages.rows
        cdef Py_ssize_t first
        cdef int count, i, truth
        cdef uint8_t[BLOCK] again
        while row < rows:
            if row < self.single:
                truth = self.match_one(row)
                if truth == RAISED:
                    return row
                answers[row] = truth == TRUE
                row += 1
                continue
            count = <int>min(rows - row, <Py_ssize_t>BLOCK)
            self.ask_block(self.messages.values + row * self.messages.width, count, answers + row)
            first = row
            row += count
            if not self.left.count:
                continue
            memset(again, 0, BLOCK)
            for i in range(self.left.count):
                again[self.left.rows[i]] = 1
            for i in range(count):
                if not again[i]:
                    continue
                truth = self.match_one(first + i)
                if truth == RAISED:
                    self.single = first + count
                    return first + i
                answers[first + i] = truth == TRUE
        return row

    # Row by row

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

    cdef int match_one(self, Py_ssize_t row) noexcept nogil:
        """Truth of matches(), or RAISED; the scratch says why."""
        cdef void* body = NULL
        cdef int truth
        if self.program.needs_gil:
            body = body_at(self.messages, row)
        if self.gather(self.messages.values + row * self.messages.width) == RAISED:
            return RAISED
        truth = match_values(self.program, self.gathered, body, &self.scratch)
        if truth != RAISED:
            free_scratch(&self.scratch)
        return truth

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
    cdef bint evaluating = question == EVALUATE
    cdef ColumnViews columns
    cdef Sweep sweep
    cdef object answer
    cdef int8_t* answers
    cdef Py_buffer buffer
    cdef Py_ssize_t row = 0
    if not missing_is_null and not messages.complete:
        for name in program.names:
            if messages.slot_of(name) < 0 and not messages.knows(name, program.every_text):
                raise MissingColumnError(name, messages.names, "the batch of packed messages")
    columns = packed_columns(messages, program)
    if columns is not None:
        if evaluating:
            return truth_columns(program, columns, "null")
        return mask_columns(program, columns, "raise" if question == MATCH_OR_RAISE else "reject", "null")
    sweep = Sweep(program, messages)
    answer = numpy.empty(messages.rows, TRUTHS if evaluating else FLAGS)
    if not messages.rows:
        return answer
    PyObject_GetBuffer(answer, &buffer, PyBUF_WRITABLE)
    answers = <int8_t*>buffer.buf
    try:
        while True:
            if program.needs_gil:
                row = sweep.run(row, answers, evaluating)
            else:
                with nogil:
                    row = sweep.run(row, answers, evaluating)
            if row == messages.rows:
                return answer
            error = raised_error(program.text, &sweep.scratch, row)
            if question == MATCH_OR_RAISE or not isinstance(error, SelectorEvaluationError):
                raise error
            answers[row] = 0 if question == MATCH_OR_REJECT else -2
            free_scratch(&sweep.scratch)
            row += 1
    finally:
        PyBuffer_Release(&buffer)
