"""See columns.pxd."""

import numpy

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset

from pyengine._engine.arithmetic cimport HEIGHT, VECTOR_BYTES, Vector, compute_vectors
from pyengine._engine.arrow cimport (
    DOUBLE_VALUES, FLOAT_VALUES, HALF_VALUES, INT64_VALUES, NO_VALUES, TEXT32, TEXT64, TEXT_VIEWS, Column, Columns,
    read_cell, width_of,
)
from pyengine._engine.header cimport NO_HEADER, header_code
from pyengine._engine.kernels cimport (
    best_kernels, kernel_float_of_half, kernel_load_bits, kernel_low_bytes, kernel_lowest_bit, kernel_table,
)
from pyengine._engine.plan cimport (
    BEGIN_BOTH, BEGIN_EITHER, CHUNK, CHUNK_WORDS, COMPUTED_PAIR, COMPUTED_WITHIN, END_BOTH, END_EITHER, FIXED, FLAGS,
    IS_UNKNOWN, LOOKUP, NEXT_BOTH, NEXT_EITHER, NO_REGISTER, PAIR, PRESENCE, RUN_TEST, SIGNATURE_SIZE, TEXT_IS,
    TEXT_STARTS, WITHIN, Plan,
    Step, Test, as_property, describe, lay_out,
)
from pyengine._engine.program cimport Program, evaluate_values, match_values, node_truth, raised_error
from pyengine._engine.value cimport FALSE, NULL_VALUE, RAISED, TRUE, UNKNOWN, Scratch, Value, free_scratch
from pyengine.errors import MissingColumnError, SelectorEvaluationError


ctypedef const uint64_t* RowSet      # one bit a row of a chunk


cdef struct Table:            # of a LOOKUP test: three bit sets over the codes
    uint32_t* sets            # on, off, raised: ``words`` each
    int64_t words
    int64_t size              # values of the dictionary
    uint8_t when_null         # Truth
    uint8_t by_row            # the dictionary is larger than the batch
    uint8_t borrowed          # ``sets`` belongs to the plan's LookupTables
    const Column* dictionary  # it was made for


cdef struct KnownTable:       # a table and the dictionary it answers for
    Table table               # its sets are NULL: not known
    uint8_t* offsets          # (length + 1) of them, as wide as the dictionary's
    int64_t offset_bytes
    uint8_t* text             # from the first offset to the last
    int64_t text_bytes


cdef struct Prefixes:         # of a text column's chunk
    uint64_t* first           # first 8 bytes of each text
    uint64_t* lengths
    int64_t row               # first row of the chunk they belong to; -1: of none


cdef struct Run:
    const kernel_table* kernels
    const Column** columns    # by slot; NULL: the slot has ``values[slot]`` on every row
    Value* values
    uint64_t* registers
    Table* tables             # by test
    Prefixes* prefixes        # by slot
    int64_t row               # first row of the chunk in its batch
    int64_t count             # rows of the chunk
    float* reals              # CHUNK of them, for halves
    void* vectors             # VECTOR_BYTES where a test computes


cdef inline uint64_t* register_at(Run* run, int32_t number) noexcept nogil:
    return run.registers + number * CHUNK_WORDS


cdef inline bint load_validity(Run* run, const Column* column, uint64_t* words) noexcept nogil:
    """Rows that have a value; False if all have."""
    if column.validity == NULL:
        return False
    kernel_load_bits(column.validity, column.validity_start + run.row, run.count, words)
    return True


cdef void give(
    Run* run, const Step* step, const uint64_t* on, const uint64_t* raised, const uint64_t* valid, uint8_t when_null
) noexcept nogil:
    """Write a test's registers: of a value TRUE (``on``), ``raised`` or else FALSE; of a null, ``when_null``."""
    cdef uint64_t* out
    cdef uint64_t word
    cdef int i
    if step.on != NO_REGISTER:
        out = register_at(run, step.on)
        for i in range(CHUNK_WORDS):
            word = on[i]
            if valid != NULL:
                word = word & valid[i] | (~valid[i] if when_null == TRUE else 0)
            out[i] = word
    if step.off != NO_REGISTER:
        out = register_at(run, step.off)
        for i in range(CHUNK_WORDS):
            word = ~(on[i] | raised[i]) if raised != NULL else ~on[i]
            if valid != NULL:
                word = word & valid[i] | (~valid[i] if when_null == FALSE else 0)
            out[i] = word
    if step.raised != NO_REGISTER:
        out = register_at(run, step.raised)
        for i in range(CHUNK_WORDS):
            word = raised[i] if raised != NULL else 0
            if valid != NULL:
                word = word & valid[i] | (~valid[i] if when_null == RAISED else 0)
            out[i] = word


cdef void collect(
    Run* run, int32_t number, int truth, const RowSet* cases, const uint8_t* truths, int count
) noexcept nogil:
    """Write a register: the cases that have this truth."""
    cdef int i, k
    cdef uint64_t word
    cdef uint64_t* out
    if number == NO_REGISTER:
        return
    out = register_at(run, number)
    for i in range(CHUNK_WORDS):
        word = 0
        for k in range(count):
            if truths[k] == truth:
                word |= cases[k][i]
        out[i] = word


cdef void give_by_case(
    Run* run, const Step* step, const RowSet* cases, const uint8_t* truths, int count
) noexcept nogil:
    """Write a test's registers from disjoint row sets that have one truth each."""
    collect(run, step.on, TRUE, cases, truths, count)
    collect(run, step.off, FALSE, cases, truths, count)
    collect(run, step.raised, RAISED, cases, truths, count)


cdef void run_flags(Run* run, const Step* step, const Test* test) noexcept nogil:
    cdef const Column* column = run.columns[test.slot]
    cdef uint64_t[CHUNK_WORDS] set, clear, null, valid
    cdef RowSet[3] cases
    cdef bint nulls = load_validity(run, column, valid)
    cdef int i
    kernel_load_bits(<const uint8_t*> column.values, column.bit_start + run.row, run.count, set)
    for i in range(CHUNK_WORDS):
        null[i] = ~valid[i] if nulls else 0
        clear[i] = ~set[i] & ~null[i]
        set[i] &= ~null[i]
    cases[0], cases[1], cases[2] = clear, set, null
    give_by_case(run, step, cases, test.truths, 3)


cdef void run_presence(Run* run, const Step* step, const Test* test) noexcept nogil:
    cdef uint64_t[CHUNK_WORDS] valid, null
    cdef RowSet[2] cases
    cdef int i
    if not load_validity(run, run.columns[test.slot], valid):
        memset(valid, 255, sizeof(valid))
    for i in range(CHUNK_WORDS):
        null[i] = ~valid[i]
    cases[0], cases[1] = valid, null
    give_by_case(run, step, cases, test.truths, 2)


cdef void run_fixed(Run* run, const Step* step, const Test* test) noexcept nogil:
    cdef RowSet[1] cases
    cases[0] = run.registers
    give_by_case(run, step, cases, test.truths, 1)


cdef void run_within(Run* run, const Step* step, const Test* test) noexcept nogil:
    cdef const Column* column = run.columns[test.slot]
    cdef uint64_t[CHUNK_WORDS] inside, valid
    cdef int storage = column.storage, loop = storage
    cdef const void* values
    cdef int64_t i
    if storage == HALF_VALUES:
        for i in range(run.count):
            run.reals[i] = kernel_float_of_half((<const uint16_t*> column.values)[run.row + i])
        values = run.reals
        storage = FLOAT_VALUES
        loop = FLOAT_VALUES
    else:
        values = <const char*> column.values + run.row * width_of(storage)
    if storage >= FLOAT_VALUES and test.bounds.keyed:
        loop = storage + 2
    run.kernels.range[loop](values, run.count, &test.bounds, inside)
    give(run, step, inside, NULL, valid if load_validity(run, column, valid) else NULL, test.truths[1])


cdef void run_computed(Run* run, Plan plan, const Step* step, const Test* test) noexcept nogil:
    cdef Vector[HEIGHT] stack
    cdef uint64_t[CHUNK_WORDS] on
    cdef int storage = DOUBLE_VALUES if test.real else INT64_VALUES
    cdef int i
    compute_vectors(
        plan.vector_steps + test.first_step, test.vector_count, run.columns, run.row, run.count, run.kernels,
        run.vectors, stack,
    )
    if test.kind == COMPUTED_WITHIN:
        run.kernels.range[storage + 2 if test.real and test.bounds.keyed else storage](
            stack[0].values, run.count, &test.bounds, on
        )
        give(run, step, on, NULL, stack[0].valid if stack[0].nulls else NULL, test.truths[1])
        return
    run.kernels.pair[storage](stack[0].values, stack[1].values, run.count, test.order, on)
    for i in range(2):
        if not stack[i].nulls:
            memset(stack[i].valid, 255, sizeof(on))
    give_pair(run, step, test, on, stack[0].valid, stack[1].valid)


cdef void run_pair(Run* run, const Step* step, const Test* test) noexcept nogil:
    cdef const Column* left = run.columns[test.slot]
    cdef const Column* right = run.columns[test.other]
    cdef uint64_t[CHUNK_WORDS] on, left_valid, right_valid
    cdef int width = width_of(left.storage)
    run.kernels.pair[left.storage](
        <const char*> left.values + run.row * width, <const char*> right.values + run.row * width, run.count,
        test.order, on,
    )
    if not load_validity(run, left, left_valid):
        memset(left_valid, 255, sizeof(left_valid))
    if not load_validity(run, right, right_valid):
        memset(right_valid, 255, sizeof(right_valid))
    give_pair(run, step, test, on, left_valid, right_valid)


cdef void give_pair(
    Run* run, const Step* step, const Test* test, const uint64_t* on, const uint64_t* left, const uint64_t* right
) noexcept nogil:
    """Write the registers of a test of two numbers, given where they are not null."""
    cdef uint64_t[CHUNK_WORDS] first, second, third, fourth, fifth
    cdef RowSet[5] cases
    cdef uint8_t[5] truths
    cdef uint64_t valid
    cdef int i
    for i in range(CHUNK_WORDS):
        valid = left[i] & right[i]
        first[i] = on[i] & valid
        second[i] = ~on[i] & valid
        third[i] = ~left[i] & right[i]
        fourth[i] = left[i] & ~right[i]
        fifth[i] = ~(left[i] | right[i])
    cases[0], cases[1], cases[2], cases[3], cases[4] = first, second, third, fourth, fifth
    truths[0], truths[1], truths[2], truths[3], truths[4] = TRUE, FALSE, test.truths[1], test.truths[2], test.truths[3]
    give_by_case(run, step, cases, truths, 5)


cdef void run_lookup(Run* run, const Step* step, const Test* test, const Table* table) noexcept nogil:
    cdef const Column* column = run.columns[test.slot]
    cdef uint64_t[CHUNK_WORDS] valid
    cdef uint64_t* out
    cdef bint nulls = load_validity(run, column, valid)
    cdef int i, which, number, width = width_of(column.code_storage)
    cdef int loop = 0 if width == 1 else 1 if width == 2 else 2 if width == 4 else 3
    cdef const char* codes = <const char*> column.values + run.row * width
    cdef uint64_t fill
    for which in range(3):
        number = step.on if which == 0 else step.off if which == 1 else step.raised
        if number == NO_REGISTER:
            continue
        out = register_at(run, number)
        run.kernels.codes[loop](codes, run.count, table.sets + which * table.words, table.size, out)
        if nulls:
            fill = 0
            if table.when_null == (TRUE if which == 0 else FALSE if which == 1 else RAISED):
                fill = ~(<uint64_t> 0)
            for i in range(CHUNK_WORDS):
                out[i] = out[i] & valid[i] | fill & ~valid[i]


cdef const Prefixes* load_prefixes(Run* run, int slot, const uint64_t* valid) noexcept nogil:
    """First bytes and lengths of a text column's chunk, made once a chunk."""
    cdef Prefixes* prefixes = &run.prefixes[slot]
    cdef const Column* column = run.columns[slot]
    cdef const char* values
    if prefixes.row == run.row:
        return prefixes
    prefixes.row = run.row
    values = <const char*> column.values + run.row * width_of(column.storage)
    if column.storage == TEXT_VIEWS:
        run.kernels.prefixes_views(values, column.parts, valid, run.count, prefixes.first, prefixes.lengths)
    else:
        run.kernels.prefixes[0 if column.storage == TEXT32 else 1](
            values, column.data, column.data_end, run.count, prefixes.first, prefixes.lengths
        )
    return prefixes


cdef void keep_tails(
    Run* run, const Column* column, const Value* text, const uint64_t* live, uint64_t* words
) noexcept nogil:
    """Of rows that agree with ``text`` in its first 8 bytes, keep those that agree in the rest."""
    cdef int w
    cdef int64_t row
    cdef uint64_t rest
    cdef Value value
    for w in range(CHUNK_WORDS):
        words[w] &= live[w]
        rest = words[w]
        while rest:
            row = 64 * w + kernel_lowest_bit(rest)
            rest &= rest - 1
            read_cell(column, run.row + row, &value)
            if value.type == NULL_VALUE or memcmp(
                <const char*> value.payload.text + 8, <const char*> text.payload.text + 8, text.length - 8
            ):
                words[w] &= ~(<uint64_t> 1 << (row & 63))


cdef uint64_t prefix_of(const Value* text) noexcept nogil:
    cdef uint64_t prefix = 0
    memcpy(&prefix, text.payload.text, text.length if text.length < 8 else 8)
    return prefix


cdef void run_texts(Run* run, const Step* step, const Test* test) noexcept nogil:
    cdef const Column* column = run.columns[test.slot]
    cdef uint64_t[CHUNK_WORDS] valid, one, found
    cdef bint nulls = load_validity(run, column, valid)
    cdef const Prefixes* prefixes = load_prefixes(run, test.slot, valid if nulls else NULL)
    cdef const Value* text
    cdef int i, k
    memset(found, 0, sizeof(found))
    for k in range(test.text_count):
        text = &test.texts[k] if test.texts != NULL else &test.text
        if test.kind == TEXT_IS:
            run.kernels.text_equal(prefixes.first, prefixes.lengths, run.count, prefix_of(text), text.length, one)
        else:
            run.kernels.text_starts(
                prefixes.first, prefixes.lengths, run.count, prefix_of(text), kernel_low_bytes(text.length),
                text.length, one,
            )
        if text.length > 8:
            keep_tails(run, column, text, register_at(run, step.live), one)
        for i in range(CHUNK_WORDS):
            found[i] |= one[i]
    if test.negated:
        for i in range(CHUNK_WORDS):
            found[i] = ~found[i]
    give(run, step, found, NULL, valid if nulls else NULL, test.truths[1])


cdef int cell_truth(
    Program program, int node, Value* values, Scratch* scratch, int first, int count, const int32_t* slots, Run* run,
    int64_t row
) noexcept nogil:
    """Truth of a node on one row of the batch."""
    cdef int i, slot, truth
    for i in range(first, first + count):
        slot = slots[i]
        read_cell(run.columns[slot], row, &values[slot])
        if values[slot].type == NULL_VALUE:
            values[slot] = program.defaults[slot]
        elif not as_property(program, &values[slot], scratch):
            return RAISED
    truth = node_truth(program, node, values, NULL, scratch)
    return truth


cdef void run_by_row(Run* run, Plan plan, const Step* step, const Test* test) noexcept nogil:
    cdef const uint64_t* live = register_at(run, step.live)
    cdef uint64_t rest, bit, on, off, raised
    cdef int w, truth, first = test.first_slot, count = test.slot_count
    cdef const int32_t* slots = plan.slot_lists
    cdef Scratch scratch
    cdef int32_t only = test.slot
    memset(&scratch, 0, sizeof(Scratch))
    if test.kind == LOOKUP:
        slots, first, count = &only, 0, 1
    for w in range(CHUNK_WORDS):
        rest = live[w]
        on = off = raised = 0
        while rest:
            bit = rest & (~rest + 1)
            truth = cell_truth(
                plan.program, test.node, run.values, &scratch, first, count, slots, run,
                run.row + 64 * w + kernel_lowest_bit(rest),
            )
            if scratch.blocks != NULL or scratch.objects != NULL or scratch.error != NULL:
                free_scratch(&scratch)
                memset(&scratch, 0, sizeof(Scratch))
            if truth == TRUE:
                on |= bit
            elif truth == FALSE:
                off |= bit
            elif truth == RAISED:
                raised |= bit
            rest ^= bit
        if step.on != NO_REGISTER:
            register_at(run, step.on)[w] = on
        if step.off != NO_REGISTER:
            register_at(run, step.off)[w] = off
        if step.raised != NO_REGISTER:
            register_at(run, step.raised)[w] = raised


cdef void run_same(Run* run, const Step* step) noexcept nogil:
    """= of two truths."""
    cdef uint64_t[9][CHUNK_WORDS] sets
    cdef RowSet[10] cases
    cdef uint8_t[10] truths
    cdef uint64_t[CHUNK_WORDS] raised
    cdef uint64_t[3] left, right
    cdef int i, k
    for i in range(CHUNK_WORDS):
        raised[i] = 0
        left[0], left[1] = register_at(run, step.child_off)[i], register_at(run, step.child_on)[i]
        right[0], right[1] = register_at(run, step.other_off)[i], register_at(run, step.other_on)[i]
        if step.child_raised != NO_REGISTER:
            raised[i] |= register_at(run, step.child_raised)[i]
        if step.other_raised != NO_REGISTER:
            raised[i] |= register_at(run, step.other_raised)[i]
        left[2] = ~(left[0] | left[1])
        right[2] = ~(right[0] | right[1])
        for k in range(9):
            sets[k][i] = left[k // 3] & right[k % 3] & ~raised[i]
    for k in range(9):
        cases[k] = sets[k]
        truths[k] = step.outcomes[k]
    cases[9] = raised
    truths[9] = RAISED
    give_by_case(run, step, cases, truths, 10)


cdef bint take_child(Run* run, const Step* step) noexcept nogil:
    """Take one child into AND or OR; False when no row's answer is open any more."""
    cdef uint64_t* live = register_at(run, step.child_live)
    cdef uint64_t* on = register_at(run, step.on) if step.on != NO_REGISTER else NULL
    cdef uint64_t* off = register_at(run, step.off) if step.off != NO_REGISTER else NULL
    cdef const uint64_t* child_on = register_at(run, step.child_on) if step.child_on != NO_REGISTER else NULL
    cdef const uint64_t* child_off = register_at(run, step.child_off) if step.child_off != NO_REGISTER else NULL
    cdef const uint64_t* child_raised = (
        register_at(run, step.child_raised) if step.child_raised != NO_REGISTER else NULL
    )
    cdef uint64_t* raised = register_at(run, step.raised) if step.raised != NO_REGISTER else NULL
    cdef uint64_t any = 0
    cdef int i
    if child_raised != NULL:
        for i in range(CHUNK_WORDS):
            raised[i] |= live[i] & child_raised[i]
    if step.kind == NEXT_BOTH:
        if off == NULL:
            for i in range(CHUNK_WORDS):
                live[i] &= child_on[i]
        else:
            for i in range(CHUNK_WORDS):
                off[i] |= live[i] & child_off[i]
                if on != NULL:
                    on[i] &= child_on[i]
                live[i] &= ~child_off[i]
    elif on == NULL:
        for i in range(CHUNK_WORDS):
            live[i] &= child_off[i]
    else:
        for i in range(CHUNK_WORDS):
            on[i] |= live[i] & child_on[i]
            if off != NULL:
                off[i] &= child_off[i]
            live[i] &= ~child_on[i]
    if child_raised != NULL:
        for i in range(CHUNK_WORDS):
            live[i] &= ~child_raised[i]
    for i in range(CHUNK_WORDS):
        any |= live[i]
    return any != 0


cdef void run_steps(Run* run, Plan plan) noexcept nogil:
    """Evaluate one chunk."""
    cdef int at = 0
    cdef const Step* step
    cdef const Test* test
    cdef uint64_t* live
    cdef int i
    while at < plan.step_count:
        step = &plan.steps[at]
        at += 1
        if step.kind == RUN_TEST:
            test = &plan.tests[step.test]
            if test.kind == WITHIN:
                run_within(run, step, test)
            elif test.kind == LOOKUP and not run.tables[step.test].by_row:
                run_lookup(run, step, test, &run.tables[step.test])
            elif test.kind == TEXT_IS or test.kind == TEXT_STARTS:
                run_texts(run, step, test)
            elif test.kind == PRESENCE:
                run_presence(run, step, test)
            elif test.kind == FLAGS:
                run_flags(run, step, test)
            elif test.kind == PAIR:
                run_pair(run, step, test)
            elif test.kind == COMPUTED_WITHIN or test.kind == COMPUTED_PAIR:
                run_computed(run, plan, step, test)
            elif test.kind == FIXED:
                run_fixed(run, step, test)
            else:
                run_by_row(run, plan, step, test)
        elif step.kind == NEXT_BOTH or step.kind == NEXT_EITHER:
            if not take_child(run, step):
                at = step.jump
        elif step.kind == BEGIN_BOTH or step.kind == BEGIN_EITHER:
            live = register_at(run, step.live)
            memcpy(register_at(run, step.child_live), live, 8 * CHUNK_WORDS)
            for i in range(2):
                if (step.on if i else step.off) == NO_REGISTER:
                    continue
                if (step.kind == BEGIN_BOTH) == (i == 1):
                    memcpy(register_at(run, step.on if i else step.off), live, 8 * CHUNK_WORDS)
                else:
                    memset(register_at(run, step.on if i else step.off), 0, 8 * CHUNK_WORDS)
            if step.raised != NO_REGISTER:
                memset(register_at(run, step.raised), 0, 8 * CHUNK_WORDS)
        elif step.kind == END_BOTH:
            if step.off == NO_REGISTER:
                memcpy(register_at(run, step.on), register_at(run, step.child_live), 8 * CHUNK_WORDS)
        elif step.kind == END_EITHER:
            if step.on == NO_REGISTER:
                memcpy(register_at(run, step.off), register_at(run, step.child_live), 8 * CHUNK_WORDS)
        elif step.kind == IS_UNKNOWN:
            for i in range(CHUNK_WORDS):
                if step.off != NO_REGISTER:
                    register_at(run, step.off)[i] = (
                        register_at(run, step.child_on)[i] | register_at(run, step.child_off)[i]
                    )
                if step.on != NO_REGISTER:
                    register_at(run, step.on)[i] = ~(
                        register_at(run, step.child_on)[i] | register_at(run, step.child_off)[i]
                        | (register_at(run, step.child_raised)[i] if step.child_raised != NO_REGISTER else 0)
                    )
        else:
            run_same(run, step)


cdef enum:
    KNOWN_BYTES = 65536           # a dictionary of more text or offsets is not remembered


cdef bint contents_of(const Column* dictionary, const uint8_t** offsets, int64_t* offset_bytes, const uint8_t** text,
                      int64_t* text_bytes) noexcept nogil:
    """The bytes that make a small dictionary of texts without nulls; False for others."""
    cdef int64_t first, last
    if dictionary.validity != NULL or dictionary.length <= 0 or dictionary.length >= KNOWN_BYTES // 8:
        return False
    if dictionary.storage == TEXT32:
        first = (<const int32_t*> dictionary.values)[0]
        last = (<const int32_t*> dictionary.values)[dictionary.length]
    elif dictionary.storage == TEXT64:
        first = (<const int64_t*> dictionary.values)[0]
        last = (<const int64_t*> dictionary.values)[dictionary.length]
    else:
        return False
    if first > last or last - first > KNOWN_BYTES:
        return False
    offsets[0] = <const uint8_t*> dictionary.values
    offset_bytes[0] = (dictionary.length + 1) * (4 if dictionary.storage == TEXT32 else 8)
    text[0] = dictionary.data + first
    text_bytes[0] = last - first
    return True


cdef class LookupTables:
    """Tables of a plan's LOOKUP tests with copies of the dictionaries they answer for; never changed once made."""
    cdef KnownTable* known        # by test
    cdef int count

    def __cinit__(self, int count):
        self.known = <KnownTable*> calloc(count + 1, sizeof(KnownTable))
        if self.known == NULL:
            raise MemoryError()
        self.count = count

    def __dealloc__(self):
        cdef int i
        if self.known != NULL:
            for i in range(self.count):
                free(self.known[i].table.sets)
        free(self.known)

    cdef int remember(self, int number, const Table* table) except -1:
        """Copy a table and its dictionary into one block; nothing for a dictionary that is not small."""
        cdef KnownTable* known = &self.known[number]
        cdef const uint8_t* offsets
        cdef const uint8_t* text
        cdef size_t set_bytes = 3 * table.words * sizeof(uint32_t)
        cdef uint8_t* block
        if not contents_of(table.dictionary, &offsets, &known.offset_bytes, &text, &known.text_bytes):
            return 0
        block = <uint8_t*> malloc(set_bytes + known.offset_bytes + known.text_bytes)
        if block == NULL:
            raise MemoryError()
        known.table = table[0]
        known.table.sets = <uint32_t*> block
        known.table.borrowed = 1
        known.table.dictionary = NULL
        known.offsets = block + set_bytes
        known.text = known.offsets + known.offset_bytes
        memcpy(block, table.sets, set_bytes)
        memcpy(known.offsets, offsets, known.offset_bytes)
        if known.text_bytes:
            memcpy(known.text, text, known.text_bytes)
        return 0

    cdef bint answers_for(self, int number, const Column* dictionary) noexcept nogil:
        cdef const KnownTable* known = &self.known[number]
        cdef const uint8_t* offsets
        cdef const uint8_t* text
        cdef int64_t offset_bytes, text_bytes
        return (
            known.table.sets != NULL
            and contents_of(dictionary, &offsets, &offset_bytes, &text, &text_bytes)
            and offset_bytes == known.offset_bytes and text_bytes == known.text_bytes
            and not memcmp(offsets, known.offsets, offset_bytes)
            and (not text_bytes or not memcmp(text, known.text, text_bytes))
        )


cdef enum Shape:              # of the output
    BYTES                     # 0 or 1 a row
    WORDS                     # a bit a row
    TRUTHS                    # 1, 0, -1, -2


cdef class Evaluation:
    """One program over one imported batch: working memory, made and dropped with the call."""
    cdef Plan plan
    cdef Columns columns
    cdef Program program
    cdef Run run
    cdef int* places              # slot -> column, -1: not bound
    cdef int slot_count
    cdef void* memory
    cdef int64_t first_raised     # row, or -1
    cdef LookupTables known       # of the plan, from before this call; None
    cdef bint learned             # a table was made that the plan may remember

    def __cinit__(self, Program program, Columns columns, bint matching, str missing):
        cdef int slot
        self.program = program
        self.columns = columns
        self.slot_count = <int> len(program.names)
        self.first_raised = -1
        self.places = <int*> malloc((self.slot_count + 1) * sizeof(int))
        if self.places == NULL:
            raise MemoryError()
        for slot in range(self.slot_count):
            name = program.names[slot]
            self.places[slot] = columns.find(name)
            if self.places[slot] >= 0 or missing == "null":
                continue
            if program.every_text or header_code(name) == NO_HEADER:
                raise MissingColumnError(name, columns.names)
        self.plan = self.find_plan(matching)
        self.known = self.plan.known_tables
        self.allocate()

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

    cdef int allocate(self) except -1:
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
        self.memory = malloc(size)
        if self.memory == NULL:
            raise MemoryError()
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
        self.run.kernels = best_kernels()
        return 0

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
        table.sets = <uint32_t*> calloc(3 * table.words, sizeof(uint32_t))
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
                    self.first_raised = row + 64 * i + kernel_lowest_bit(raised[i] & live[i])
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
        """Raise what the first raising row raises; if tolerant, only what is no SelectorEvaluationError."""
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
            error = raised_error(self.program, &scratch, row)
            if not tolerant or not isinstance(error, SelectorEvaluationError):
                raise error
        finally:
            free_scratch(&scratch)


cdef bint same_dictionary(const Column* one, const Column* other) noexcept nogil:
    """Whether two batches share one dictionary."""
    return (
        one == other
        or one.values == other.values and one.data == other.data and one.length == other.length
        and one.validity == other.validity and one.validity_start == other.validity_start
        and one.bit_start == other.bit_start and one.storage == other.storage and one.parts == other.parts
    )


cdef object mask_columns(Program program, Columns columns, str on_error, str missing):
    cdef Evaluation evaluation = Evaluation(program, columns, True, missing)
    mask = numpy.empty(columns.row_count, numpy.bool_)
    evaluation.evaluate(mask, BYTES)
    evaluation.refuse(on_error == "reject")
    return mask


cdef object words_columns(Program program, Columns columns, str on_error, str missing):
    cdef Evaluation evaluation = Evaluation(program, columns, True, missing)
    words = numpy.zeros((columns.row_count + 63) // 64, numpy.uint64)
    evaluation.evaluate(words, WORDS)
    evaluation.refuse(on_error == "reject")
    return words


cdef object truth_columns(Program program, Columns columns, str missing):
    cdef Evaluation evaluation = Evaluation(program, columns, False, missing)
    truth = numpy.empty(columns.row_count, numpy.int8)
    evaluation.evaluate(truth, TRUTHS)
    evaluation.refuse(True)
    return truth
