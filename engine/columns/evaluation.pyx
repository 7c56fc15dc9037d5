"""See evaluation.pxd."""

import numpy

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int8_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free
from libc.string cimport memset

from pyengine._engine.lowlevel.memory cimport allocate, try_allocate_zeros
from pyengine._engine.columns.column_arithmetic cimport VECTOR_BYTES
from pyengine._engine.columns.column_views cimport (
    CODES, NO_VALUES, Column, ColumnViews, read_cell, refused_text, width_of,
)
from pyengine._engine.lowlevel.bits cimport lowest_bit
from pyengine._engine.columns.executor cimport Prefixes, Run, register_at, run_steps
from pyengine._engine.message.header cimport NO_HEADER, header_code
from pyengine._engine.columns.kernels cimport best_kernels
from pyengine._engine.columns.dictionary_tables cimport LookupTables, Table, same_dictionary
from pyengine._engine.columns.planner cimport lay_out
from pyengine._engine.columns.plan cimport (
    CHUNK, CHUNK_WORDS, COMPUTED_PAIR, COMPUTED_WITHIN, LOOKUP, NO_REGISTER, SIGNATURE_SIZE, TEXT_IS, TEXT_STARTS,
    Plan, Test, as_property, describe,
)
from pyengine._engine.selector.interpreter cimport evaluate_values, match_values, node_truth
from pyengine._engine.selector.program cimport Program, raised_error
from pyengine._engine.java.value cimport FALSE, NULL_VALUE, RAISED, TRUE, UNKNOWN, Scratch, Value, free_scratch
from pyengine.errors import MissingColumnError, SelectorEvaluationError


cdef enum Shape:              # of the output
    BYTES                     # 0 or 1 a row
    WORDS                     # a bit a row
    TRUTHS                    # 1, 0, -1, -2


cdef enum Fetch:
    AHEAD = 2048              # rows, from the row at hand to the one that is fetched early
    CACHED = 1 << 25          # bytes of values that a last-level cache may hold


cdef class Evaluation:
    """One program over one imported batch: working memory, made and dropped with the call."""
    cdef Plan plan
    cdef ColumnViews columns
    cdef Program program
    cdef Run run
    cdef int* places              # slot -> column, -1: not bound
    cdef int slot_count
    cdef void* memory
    cdef int64_t first_raised     # row, or -1
    cdef LookupTables known       # of the plan, from before this call; None
    cdef bint learned             # a table was made that the plan may remember

    def __cinit__(self, Program program, ColumnViews columns, bint matching, str missing):
        cdef int slot
        self.program = program
        self.columns = columns
        self.slot_count = <int> len(program.names)
        self.first_raised = -1
        self.places = <int*> allocate((self.slot_count + 1) * sizeof(int))
        for slot in range(self.slot_count):
            name = program.names[slot]
            self.places[slot] = columns.find(name)
            if self.places[slot] >= 0 or missing == "null":
                continue
            if program.every_text or header_code(name) == NO_HEADER:
                raise MissingColumnError(name, columns.offered)
        self.plan = self.find_plan(matching)
        self.known = self.plan.known_tables
        self.divide_memory()

    def __dealloc__(self):
        cdef int i
        if self.run.tables != NULL:
            for i in range(self.plan.test_count):
                if not self.run.tables[i].borrowed:
                    free(self.run.tables[i].sets)
        free(self.places)
        free(self.memory)

    cdef Plan find_plan(self, bint matching):
        """The program's last plan of this kind if it is for columns of these types, else a new one."""
        cdef bytes signature = bytes(SIGNATURE_SIZE * self.slot_count)
        cdef uint8_t* into = <uint8_t*> <char*> signature
        cdef Column null
        cdef int slot
        cdef Plan plan
        memset(&null, 0, sizeof(Column))
        null.storage = NO_VALUES
        for slot in range(self.slot_count):
            if self.places[slot] < 0:
                describe(NULL, into + SIGNATURE_SIZE * slot)
            elif self.columns.batch_count == 0:
                describe(&null, into + SIGNATURE_SIZE * slot)
            else:
                describe(&self.columns.views[self.places[slot]], into + SIGNATURE_SIZE * slot)
        plan = self.program.matching_plan if matching else self.program.truth_plan
        if plan is None or plan.signature != signature:
            plan = lay_out(self.program, signature, matching)
            if matching:
                self.program.matching_plan = plan
            else:
                self.program.truth_plan = plan
        return plan

    cdef int divide_memory(self) except -1:
        """One block: registers, columns, values, tables, prefixes and their words, reals."""
        cdef int slot, texts = 0, i
        cdef size_t vectors = 0
        cdef Plan plan = self.plan
        cdef uint8_t* at
        cdef size_t size
        for i in range(plan.test_count):
            if plan.tests[i].kind == TEXT_IS or plan.tests[i].kind == TEXT_STARTS:
                texts += 1
            elif plan.tests[i].kind == COMPUTED_WITHIN or plan.tests[i].kind == COMPUTED_PAIR:
                vectors = VECTOR_BYTES
        size = (
            64 + 8 * CHUNK_WORDS * plan.register_count
            + self.slot_count * (sizeof(void*) + sizeof(Value) + sizeof(Prefixes))
            + plan.test_count * sizeof(Table) + texts * 16 * CHUNK + 4 * CHUNK + vectors
        )
        self.memory = allocate(size)
        at = <uint8_t*> ((<uintptr_t> self.memory + 63) & ~<uintptr_t> 63)
        self.run.vectors = at
        at += vectors
        self.run.registers = <uint64_t*> at
        at += 8 * CHUNK_WORDS * plan.register_count
        self.run.values = <Value*> at
        at += self.slot_count * sizeof(Value)
        self.run.columns = <const Column**> at
        at += self.slot_count * sizeof(void*)
        self.run.prefixes = <Prefixes*> at
        at += self.slot_count * sizeof(Prefixes)
        self.run.tables = <Table*> at
        at += plan.test_count * sizeof(Table)
        memset(self.run.tables, 0, plan.test_count * sizeof(Table))
        for slot in range(self.slot_count):
            self.run.values[slot] = self.program.defaults[slot]
            self.run.prefixes[slot].first = NULL
        for i in range(plan.test_count):
            slot = plan.tests[i].slot
            if plan.tests[i].kind != TEXT_IS and plan.tests[i].kind != TEXT_STARTS:
                continue
            if self.run.prefixes[slot].first == NULL:
                self.run.prefixes[slot].first = <uint64_t*> at
                self.run.prefixes[slot].lengths = <uint64_t*> (at + 8 * CHUNK)
                at += 16 * CHUNK
        self.run.reals = <float*> at
        self.run.ahead = AHEAD if self.columns.row_count * self.row_bytes() > CACHED else 0
        self.run.kernels = best_kernels()
        return 0

    cdef int64_t row_bytes(self) noexcept nogil:
        """Bytes of a row's values, without strings."""
        cdef int64_t size = 0
        cdef int slot
        cdef const Column* column
        for slot in range(self.slot_count if self.columns.batch_count else 0):
            if self.places[slot] >= 0:
                column = &self.columns.views[self.places[slot]]
                size += width_of(column.code_storage if column.storage == CODES else column.storage)
        return size

    cdef int fill_table(self, int number, int64_t rows) noexcept nogil:
        """Ask the test's node once for each value of the dictionary; -1 without memory."""
        cdef const Test* test = &self.plan.tests[number]
        cdef Table* table = &self.run.tables[number]
        cdef const Column* dictionary = self.run.columns[test.slot].dictionary
        cdef int64_t code
        cdef int truth
        cdef Value value
        cdef Value* values = self.run.values
        cdef Scratch scratch
        if table.dictionary != NULL and same_dictionary(table.dictionary, dictionary):
            return 0
        table.by_row = dictionary.length > 4 * rows + 64
        if table.by_row:
            table.dictionary = NULL
            return 0
        if not table.borrowed:
            free(table.sets)
        if self.known is not None and self.known.answers_for(number, dictionary):
            table[0] = self.known.known[number].table
            table.dictionary = dictionary
            return 0
        # What a function or XPATH answers is not remembered from call to call.
        self.learned = not self.program.needs_gil
        table.borrowed = 0
        table.size = dictionary.length if dictionary.length else 1
        table.words = table.size // 32 + 2
        table.sets = <uint32_t*> try_allocate_zeros(3 * table.words, sizeof(uint32_t))
        if table.sets == NULL:
            return -1
        table.dictionary = dictionary
        memset(&scratch, 0, sizeof(Scratch))
        for code in range(-1, dictionary.length):
            value.type = NULL_VALUE
            if code >= 0:
                read_cell(dictionary, code, &value)
            truth = RAISED
            if value.type == NULL_VALUE:
                value = self.program.defaults[test.slot]
            if as_property(self.program, &value, &scratch):
                values[test.slot] = value
                truth = node_truth(self.program, test.node, values, NULL, &scratch)
            if scratch.blocks != NULL or scratch.objects != NULL or scratch.error != NULL:
                free_scratch(&scratch)
                memset(&scratch, 0, sizeof(Scratch))
            if code < 0:
                table.when_null = <uint8_t> truth
            elif truth != UNKNOWN:
                table.sets[
                    table.words * (0 if truth == TRUE else 1 if truth == FALSE else 2) + (code >> 5)
                ] |= <uint32_t> 1 << (code & 31)
        return 0

    cdef int run_batch(self, Plan plan, Py_ssize_t batch, uint8_t* out, int shape) noexcept nogil:
        """Evaluate one batch into its rows of the output; -1 without memory."""
        cdef int slot, i, count
        cdef int64_t start = self.columns.starts[batch], rows = self.columns.starts[batch + 1] - start
        cdef Run* run = &self.run
        cdef const Column* column
        for slot in range(self.slot_count):
            run.columns[slot] = NULL
            run.prefixes[slot].row = -1
            if self.places[slot] >= 0:
                column = &self.columns.views[batch * self.columns.column_count + self.places[slot]]
                if column.storage != NO_VALUES:
                    run.columns[slot] = column
        for i in range(plan.test_count):
            if plan.tests[i].kind == LOOKUP and self.fill_table(i, rows) < 0:
                return -1
        run.row = 0
        while run.row < rows:
            run.count = rows - run.row if rows - run.row < CHUNK else CHUNK
            if run.count == CHUNK:
                memset(run.registers, 255, 8 * CHUNK_WORDS)
            else:
                memset(run.registers, 0, 8 * CHUNK_WORDS)
                count = <int> run.count
                for i in range(count >> 6):
                    run.registers[i] = ~(<uint64_t> 0)
                if count & 63:
                    run.registers[count >> 6] = (<uint64_t> 1 << (count & 63)) - 1
            run_steps(run, plan)
            self.put(out, start + run.row, shape)
            run.row += CHUNK
        return 0

    cdef void put(self, uint8_t* out, int64_t row, int shape) noexcept nogil:
        """Write one chunk's answers to rows from ``row`` on."""
        cdef Run* run = &self.run
        cdef const uint64_t* live = run.registers
        cdef uint64_t* on = register_at(run, self.plan.on)
        cdef const uint64_t* raised = register_at(run, self.plan.raised) if self.plan.raised != NO_REGISTER else NULL
        cdef const uint64_t* off
        cdef uint64_t* words
        cdef uint64_t word
        cdef int64_t i
        cdef int shift, bit
        for i in range(CHUNK_WORDS):
            on[i] &= live[i]
        if raised != NULL and self.first_raised < 0:
            for i in range(CHUNK_WORDS):
                if raised[i] & live[i]:
                    self.first_raised = row + 64 * i + lowest_bit(raised[i] & live[i])
                    break
        if shape == BYTES:
            run.kernels.expand(on, run.count, out + row)
        elif shape == WORDS:
            words = <uint64_t*> out + (row >> 6)
            shift = <int> (row & 63)
            for i in range((run.count + 63) >> 6):
                words[i] |= on[i] << shift
                if shift and on[i] >> (64 - shift):
                    words[i + 1] |= on[i] >> (64 - shift)
        else:
            off = register_at(run, self.plan.off)
            for i in range(run.count):
                bit = <int> (i & 63)
                word = on[i >> 6] >> bit & 1
                if word:
                    (<int8_t*> out)[row + i] = 1
                elif off[i >> 6] >> bit & 1:
                    (<int8_t*> out)[row + i] = 0
                elif raised != NULL and raised[i >> 6] >> bit & 1:
                    (<int8_t*> out)[row + i] = -2
                else:
                    (<int8_t*> out)[row + i] = -1

    cdef int evaluate(self, object array, int shape) except -1:
        """Evaluate every batch into a numpy array (zeroed if words)."""
        cdef Py_buffer buffer
        cdef Py_ssize_t batch
        cdef int failed = 0
        cdef uint8_t* out
        cdef Plan plan = self.plan
        if self.columns.row_count == 0:
            return 0
        PyObject_GetBuffer(array, &buffer, PyBUF_WRITABLE)
        out = <uint8_t*> buffer.buf
        if self.program.needs_gil:
            for batch in range(self.columns.batch_count):
                failed |= self.run_batch(plan, batch, out, shape)
        else:
            with nogil:
                for batch in range(self.columns.batch_count):
                    failed |= self.run_batch(plan, batch, out, shape)
        PyBuffer_Release(&buffer)
        if failed:
            raise MemoryError()
        return self.remember_tables()

    cdef int remember_tables(self) except -1:
        """Leave the tables to the plan: the next batch often has the same dictionaries."""
        cdef LookupTables tables
        cdef int i
        if not self.learned:
            return 0
        tables = LookupTables(self.plan.test_count)
        for i in range(self.plan.test_count):
            if self.run.tables[i].dictionary != NULL:
                tables.remember(i, &self.run.tables[i])
        self.plan.known_tables = tables
        return 0

    cdef int refuse(self, bint tolerant) except -1:
        """Raise the exception of the first row that raises; if tolerant, only one that is not a
        SelectorEvaluationError."""
        cdef int64_t row = self.first_raised
        cdef Py_ssize_t batch = 0
        if row < 0 or tolerant and not self.program.needs_gil:
            return 0
        cdef int slot
        cdef Scratch scratch
        cdef Value* values = self.run.values
        while row >= self.columns.starts[batch + 1]:
            batch += 1
        memset(&scratch, 0, sizeof(Scratch))
        for slot in range(self.slot_count):
            values[slot].type = NULL_VALUE
            if self.places[slot] >= 0:
                read_cell(
                    &self.columns.views[batch * self.columns.column_count + self.places[slot]],
                    row - self.columns.starts[batch], &values[slot],
                )
            if values[slot].type == NULL_VALUE:
                values[slot] = self.program.defaults[slot]
            as_property(self.program, &values[slot], &scratch)
        if tolerant:
            evaluate_values(self.program, values, NULL, &scratch)
        else:
            match_values(self.program, values, NULL, &scratch)
        try:
            error = raised_error(self.program.text, &scratch, row)
            if isinstance(error, UnicodeDecodeError):
                error = refused_text(self.columns, self.program.names, row) or error
            if not tolerant or not isinstance(error, SelectorEvaluationError):
                raise error
        finally:
            free_scratch(&scratch)


cdef object mask_columns(Program program, ColumnViews columns, str on_error, str missing):
    cdef Evaluation evaluation = Evaluation(program, columns, True, missing)
    mask = numpy.empty(columns.row_count, numpy.bool_)
    evaluation.evaluate(mask, BYTES)
    evaluation.refuse(on_error == "reject")
    return mask


cdef object words_columns(Program program, ColumnViews columns, str on_error, str missing):
    cdef Evaluation evaluation = Evaluation(program, columns, True, missing)
    words = numpy.zeros((columns.row_count + 63) // 64, numpy.uint64)
    evaluation.evaluate(words, WORDS)
    evaluation.refuse(on_error == "reject")
    return words


cdef object truth_columns(Program program, ColumnViews columns, str missing):
    cdef Evaluation evaluation = Evaluation(program, columns, False, missing)
    truth = numpy.empty(columns.row_count, numpy.int8)
    evaluation.evaluate(truth, TRUTHS)
    evaluation.refuse(True)
    return truth
