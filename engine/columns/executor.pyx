"""See executor.pxd."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from pyengine._engine.columns.column_arithmetic cimport HEIGHT, Vector, VectorRows, compute_vectors
from pyengine._engine.columns.column_views cimport (
    DOUBLE_VALUES, FLOAT_VALUES, HALF_VALUES, INT64_VALUES, TEXT32, TEXT64, TEXT_VIEWS, Column, read_cell, width_of,
)
from pyengine._engine.lowlevel.bits cimport lowest_bit
from pyengine._engine.columns.kernels cimport (
    kernel_float_of_half, kernel_load_bits, kernel_low_bytes, kernel_texts_loop,
)
from pyengine._engine.columns.dictionary_tables cimport Table
from pyengine._engine.columns.plan cimport (
    BEGIN_BOTH, BEGIN_EITHER, CHUNK_WORDS, COMPUTED_PAIR, COMPUTED_WITHIN, END_BOTH, END_EITHER, FIXED, FLAGS,
    IS_UNKNOWN, LOOKUP, NEXT_BOTH, NEXT_EITHER, NO_REGISTER, PAIR, PRESENCE, RUN_TEST, TEXT_IS, TEXT_LIKE, TEXT_STARTS,
    WITHIN,
    Plan, Step, Test, as_property,
)
from pyengine._engine.columns.text_sets cimport (
    text_rows, text_set, texts_in_offsets32, texts_in_offsets64, texts_in_views,
)
from pyengine._engine.selector.interpreter cimport node_truth
from pyengine._engine.selector.like cimport Pattern, bytes_match, pattern_matches
from pyengine._engine.selector.program cimport Program
from pyengine._engine.java.value cimport FALSE, NULL_VALUE, RAISED, TRUE, Scratch, Value, free_scratch


ctypedef const uint64_t* RowSet      # one bit a row of a chunk


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
    run.kernels.range[loop](values, run.count, run.ahead, &test.bounds, inside)
    give(run, step, inside, NULL, valid if load_validity(run, column, valid) else NULL, test.truths[1])


cdef void run_computed(Run* run, Plan plan, const Step* step, const Test* test) noexcept nogil:
    cdef Vector[HEIGHT] stack
    cdef uint64_t[CHUNK_WORDS] on
    cdef int storage = DOUBLE_VALUES if test.real else INT64_VALUES
    cdef int i
    cdef VectorRows of = VectorRows(run.columns, run.row, run.count, run.ahead, run.kernels, run.vectors)
    compute_vectors(plan.vector_steps + test.first_step, test.vector_count, &of, stack)
    if test.kind == COMPUTED_WITHIN:
        run.kernels.range[storage + 2 if test.real and test.bounds.keyed else storage](
            stack[0].values, run.count, 0, &test.bounds, on
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
        run.kernels.codes[loop](codes, run.count, run.ahead, table.sets + which * table.words, table.size, out)
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
            row = 64 * w + lowest_bit(rest)
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


cdef void look_up_texts(
    Run* run, const Column* column, const text_set* set, const Prefixes* prefixes, const uint64_t* live,
    const uint64_t* valid, uint64_t* words
) noexcept nogil:
    cdef const char* values = <const char*> column.values + run.row * width_of(column.storage)
    cdef text_rows rows = text_rows(prefixes.first, prefixes.lengths, live, valid, run.count)
    if column.storage == TEXT32:
        texts_in_offsets32(set, <const int32_t*> values, column.data, &rows, words)
    elif column.storage == TEXT64:
        texts_in_offsets64(set, <const int64_t*> values, column.data, &rows, words)
    else:
        texts_in_views(set, <const uint8_t*> values, column.parts, &rows, words)


cdef void run_like(Run* run, Plan plan, const Step* step, const Test* test) noexcept nogil:
    cdef const Column* column = run.columns[test.slot]
    cdef const uint64_t* live = register_at(run, step.live)
    cdef const Pattern* pattern = plan.program.nodes[test.node].like
    cdef uint64_t[CHUNK_WORDS] valid, on
    cdef bint nulls = load_validity(run, column, valid), offsets = column.storage != TEXT_VIEWS
    cdef uint64_t rest
    cdef int64_t w, row
    cdef const uint8_t* limit = column.data + column.data_end
    cdef const uint8_t* text
    cdef Value value
    memset(on, 0, sizeof(on))
    for w in range((run.count + 63) >> 6):
        rest = live[w] & valid[w] if nulls else live[w]
        while rest:
            row = run.row + 64 * w + lowest_bit(rest)
            read_cell(column, row, &value)
            text = <const uint8_t*> value.payload.text
            if pattern.plain:
                on[w] |= <uint64_t> bytes_match(
                    pattern, text, value.length, limit if offsets else text + value.length
                ) << (row - run.row & 63)
            else:
                on[w] |= <uint64_t> pattern_matches(pattern, &value) << (row - run.row & 63)
            rest &= rest - 1
    give(run, step, on, NULL, valid if nulls else NULL, test.truths[1])


cdef void run_texts(Run* run, const Step* step, const Test* test) noexcept nogil:
    cdef const Column* column = run.columns[test.slot]
    cdef uint64_t[CHUNK_WORDS] valid, one, found
    cdef bint nulls = load_validity(run, column, valid)
    cdef const Prefixes* prefixes = load_prefixes(run, test.slot, valid if nulls else NULL)
    cdef kernel_texts_loop texts = run.kernels.text_equal if test.kind == TEXT_IS else run.kernels.text_starts
    cdef const Value* text
    cdef int i, k
    memset(found, 0, sizeof(found))
    if test.set != NULL:
        look_up_texts(run, column, test.set, prefixes, register_at(run, step.live), valid if nulls else NULL, found)
    for k in range(test.text_count if test.set == NULL else 0):
        text = &test.texts[k] if test.texts != NULL else &test.text
        texts(
            prefixes.first, prefixes.lengths, run.count,
            prefix_of(text), kernel_low_bytes(text.length), text.length, one,
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
    Program program, int node, Scratch* scratch, const int32_t* slots, int count, Run* run, int64_t row
) noexcept nogil:
    """Truth of a node, which reads ``count`` slots, on one row of the batch."""
    cdef Value* values = run.values
    cdef int i, slot, truth
    for i in range(count):
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
    cdef int w, truth, count = test.slot_count
    cdef const int32_t* slots = plan.slot_lists + test.first_slot
    cdef Scratch scratch
    cdef int32_t only = test.slot
    memset(&scratch, 0, sizeof(Scratch))
    if test.kind == LOOKUP:
        slots, count = &only, 1
    for w in range(CHUNK_WORDS):
        rest = live[w]
        on = off = raised = 0
        while rest:
            bit = rest & (~rest + 1)
            truth = cell_truth(
                plan.program, test.node, &scratch, slots, count, run, run.row + 64 * w + lowest_bit(rest),
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
            elif test.kind == TEXT_LIKE:
                run_like(run, plan, step, test)
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
            elif plan.program.nodes[test.node].needs_gil:
                with gil:      # once a chunk instead of once a row
                    run_by_row(run, plan, step, test)
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
