"""test_planner: the tests of a plan under construction: for each node the best test there is for its columns.

Every threshold, set and truth in a test is found by asking the row rules (interpreter.node_truth, comparison.compare),
so no rule of comparison stands here.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from pyengine._engine.columns.plan cimport Plan, Test
from pyengine._engine.selector.program cimport Node, Program
from pyengine._engine.java.value cimport Value


cdef enum:                      # of ``only``
    NO_SLOT = -1
    MANY_SLOTS = -2


cdef class ColumnTests:         # of one plan, and what is known of every node
    cdef Plan plan
    cdef Program program
    cdef Node* nodes
    cdef Value* values          # by slot: the probe; defaults where no column is bound
    cdef int32_t* only          # by node: the one column slot below it, NO_SLOT or MANY_SLOTS
    cdef uint8_t* raising       # by node: can_raise, given the types of the columns
    cdef const uint8_t* signature

    cdef int child(self, int node, int which) noexcept
    cdef int storage_of(self, int slot) noexcept
    cdef uint8_t raising_of(self, int node) noexcept
    cdef int ask(self, int node) except -1
    cdef int ask_about(self, int node, int slot, Value value) except -1
    cdef int ask_null(self, int node, int slot) except -1
    cdef int relate(self, int node, const Value* left, const Value* right) except -1
    cdef Test* add_test(self, int kind, int node, int slot) except NULL
    cdef int number_type(self, int node) noexcept
    cdef int add_vector(self, int operation, int kind) except -1
    cdef int height_of(self, int node) noexcept
    cdef int add_vectors(self, int node, bint real) except -1
    cdef bint add_computed(self, int node) except -1
    cdef bint computed_range(
        self, int node, int java_type, const Value* constant, bint left, int64_t* low, int64_t* high
    ) except -1
    cdef int add_known(self, int kind, int node, int slot, int count, const uint8_t* truths) except -1
    cdef int add_by_row(self, int node) except -1
    cdef int list_slots(self, int node, int first) except -1
    cdef bint is_comparison(self, int node) noexcept
    cdef bint constant_side(self, int node, Value* constant) except -1
    cdef int add_test_of(self, int node) except -1
    cdef int add_text_test(self, int node, int slot, Value sample, uint8_t when_null) except -1
    cdef Value value_of_key(self, int slot, int64_t key) noexcept
    cdef bint range_of(self, int node, int64_t* low, int64_t* high) except -1
    cdef bint interval(
        self, int node, int storage, int java_type, Value constant, bint left, int64_t* low, int64_t* high
    ) noexcept
    cdef bint add_within(self, int node, int slot, uint8_t when_null) except -1
    cdef int bound_slot(self, Test* test, int slot, int64_t low, int64_t high, uint8_t when_null) except -1
    cdef int bound(
        self, Test* test, int storage, int java_type, int64_t low, int64_t high, uint8_t when_null
    ) except -1
    cdef int add_pair(self, int node) except -1
    cdef bint is_bounded(self, int node, int64_t* low, int64_t* high) except -1
