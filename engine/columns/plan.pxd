"""plan: what a Program is for columns of given types: tests of one or two columns, steps that combine the answers.

A chunk is up to 1024 rows, a register one bit a row in 16 words. A boolean node answers in up to three registers: rows
on which it is TRUE, FALSE, or raises; only those that a step above reads are computed. ``live`` holds the rows whose
answer still matters; the bits of other rows are undefined.

Invariants: registers that a step reads were written by an earlier step, or it is jumped over; register 0 is the chunk's
live rows; a test reads only slots that are bound to columns of the plan's ``signature``.
"""

from libc.stdint cimport int32_t, uint8_t

from pyengine._engine.columns.column_arithmetic cimport VectorStep
from pyengine._engine.columns.column_views cimport Column
from pyengine._engine.columns.kernels cimport kernel_range
from pyengine._engine.columns.text_sets cimport text_set
from pyengine._engine.selector.program cimport Program
from pyengine._engine.java.value cimport Scratch, Value


cdef enum:
    CHUNK = 1024
    CHUNK_WORDS = 16
    NO_REGISTER = -1


cdef enum TestKind:
    FIXED             # truths[0] on every row
    PRESENCE          # truths[0] of a value, truths[1] of a null
    FLAGS             # a boolean column: truths[0] of false, [1] of true, [2] of null
    WITHIN            # a number in ``bounds``; truths[1] of a null
    PAIR              # two numbers of one type: ``order``; truths[1 .. 3] of nulls left, right, both
    LOOKUP            # a dictionary: the node is asked once for each of its values
    TEXT_IS           # one of ``texts``; truths[1] of a null
    TEXT_STARTS       # with texts[0]; truths[1] of a null
    TEXT_LIKE         # the node's pattern; truths[1] of a null
    COMPUTED_WITHIN   # a computed number in ``bounds``; truths[1] of a null
    COMPUTED_PAIR     # two computed numbers, both long or both double (``real``): as PAIR
    BY_ROW            # the node, row by row


cdef struct Test:
    uint8_t kind              # TestKind
    uint8_t can_raise
    uint8_t negated           # TEXT_IS, TEXT_STARTS
    uint8_t order             # PAIR: which hold: bit 0 less, 1 equal, 2 greater
    uint8_t[4] truths         # Truth
    int32_t node
    int32_t slot              # of the column; LOOKUP, PRESENCE, FLAGS, WITHIN, TEXT_*, PAIR's left
    int32_t other             # PAIR's right
    int32_t first_slot        # BY_ROW: slot_lists[first_slot .. first_slot + slot_count)
    int32_t slot_count
    int32_t first_step        # COMPUTED_*: vector_steps[first_step .. first_step + vector_count)
    int32_t vector_count
    uint8_t real              # COMPUTED_*: of doubles, else of longs
    int32_t text_count
    const Value* texts        # borrowed from the program, UTF-8
    text_set* set             # TEXT_IS: of many ``texts``; NULL
    Value text                # where ``texts`` points when the program has no such constant
    kernel_range bounds


cdef enum StepKind:
    RUN_TEST          # test -> on, off, raised
    BEGIN_BOTH        # child_live := live
    NEXT_BOTH         # takes in one child; to ``jump`` if no row is left
    END_BOTH
    BEGIN_EITHER
    NEXT_EITHER
    END_EITHER
    IS_UNKNOWN        # the child's unknown rows -> on, all its others -> off
    SAME_TRUTH        # outcomes[3 left + right] of two children


cdef struct Step:
    uint8_t kind              # StepKind
    uint8_t definite          # AND, OR: only a definite answer ends a row (evaluate()); else, for AND, unknown too
    uint8_t[9] outcomes       # SAME_TRUTH: Truth, children by Truth (FALSE, TRUE, UNKNOWN)
    int32_t live
    int32_t on
    int32_t off
    int32_t raised
    int32_t child_live
    int32_t child_on
    int32_t child_off
    int32_t child_raised
    int32_t other_on          # SAME_TRUTH: the right child
    int32_t other_off
    int32_t other_raised
    int32_t jump
    int32_t test


cdef class Plan:
    cdef Program program
    cdef bytes signature      # of the slots' columns, see describe
    cdef bint matching        # answers matches(): register ``on``; else evaluate(): ``on`` and ``off``
    cdef Test* tests
    cdef int test_count
    cdef Step* steps
    cdef int step_count
    cdef int register_count
    cdef int32_t* slot_lists
    cdef int slot_list_count
    cdef VectorStep* vector_steps
    cdef int vector_step_count
    cdef int on               # registers of the whole selector
    cdef int off
    cdef int raised
    cdef object known_tables  # columns: LookupTables of the dictionaries seen last; None


cdef enum:
    SIGNATURE_SIZE = 4

# What a plan depends on of one slot: SIGNATURE_SIZE bytes. NULL: the slot has the program's default on every row.
cdef void describe(const Column* column, uint8_t* into) noexcept nogil
# A value as the program's dialect sees it: for one whose properties are all text, its Java text.
cdef bint as_property(Program program, Value* value, Scratch* scratch) noexcept nogil
