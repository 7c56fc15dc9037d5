# cython: freethreading_compatible=True
"""See program.pxd."""

from cpython.object cimport PyObject

from libc.stdlib cimport free
from pyengine._engine.lowlevel.memory cimport allocate_zeros
from pyengine._engine.selector.like cimport free_pattern
from pyengine._engine.java.value cimport (
    BOOLEAN_AGAINST_TEXT,
    DOUBLE_AGAINST_FLOAT,
    FUNCTION_FAILED,
    NEGATED_BYTE_OR_SHORT,
    NO_MEMORY,
    NOT_A_NUMBER_TEXT,
    NOT_COMPUTABLE,
    ORDERED_OBJECT,
    Scratch,
)

from pyengine.errors import SelectorEvaluationError

cdef dict PROBLEMS = {
    DOUBLE_AGAINST_FLOAT: "a double on the left cannot be compared with a float on the right",
    ORDERED_OBJECT: "a list or map cannot be ordered with <, <=, > or >=",
    BOOLEAN_AGAINST_TEXT: "a boolean on the left cannot be compared with text on the right",
    NOT_A_NUMBER_TEXT: "text that is not a number of the type asked for",
    NOT_COMPUTABLE: "arithmetic on a value that is not a number",
    NEGATED_BYTE_OR_SHORT: "a byte or short cannot be negated",
    NO_MEMORY: "out of memory",
}


cdef object raised_error(str text, Scratch* scratch, object row):
    cdef object error
    if scratch.problem == NO_MEMORY:
        return MemoryError()
    if scratch.problem != FUNCTION_FAILED:
        return SelectorEvaluationError(text, PROBLEMS[scratch.problem], row)
    error = <object>scratch.error
    if isinstance(error, SelectorEvaluationError):
        return SelectorEvaluationError(text, error.problem, row)
    return error


cdef class Program:
    def __dealloc__(self):
        cdef int i
        cdef void* block = self.blocks
        cdef void* next_block
        if self.nodes is not NULL and not self.borrows:
            for i in range(self.size):
                free_pattern(self.nodes[i].like)
        while block is not NULL:
            next_block = (<void**>block)[0]
            free(block)
            block = next_block
        if not self.borrows:
            free(self.nodes)
            free(self.children)
        free(self.leaves)
        free(self.accesses)

    def __reduce__(self):
        raise TypeError("a Program is compiled from text: ship the Selector")

    def _check(self):
        """Raise AssertionError if an invariant of program.pxd does not hold."""
        cdef int i, k
        cdef Leaf* leaf
        assert len(set(self.names)) == len(self.names)
        for i in range(self.size):
            for k in range(self.nodes[i].first, self.nodes[i].first + arity(&self.nodes[i])):
                assert 0 <= self.children[k] < i
        for i in range(self.leaf_count):
            leaf = &self.leaves[i]
            for k in range(3):
                assert leaf.next[k] in (ACCEPT, REJECT) or i < leaf.next[k] < self.leaf_count
            if leaf.kind < GENERAL:
                assert leaf.access.name == <PyObject*>self.names[leaf.slot] and leaf.access.slot == leaf.slot
            for k in range(leaf.step_count):
                if leaf.steps[k].operation == SLOT:
                    assert leaf.steps[k].access.name == <PyObject*>self.names[leaf.steps[k].access.slot]

    cdef void* take(self, size_t size) except NULL:
        """Zeroed memory that lives as long as the program."""
        cdef void** block = <void**>allocate_zeros(1, sizeof(void*) + size)
        block[0] = self.blocks
        self.blocks = block
        return block + 1
