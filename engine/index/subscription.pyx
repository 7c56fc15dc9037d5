# cython: freethreading_compatible=True
"""See subscription.pxd."""

import cython
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from pyengine._engine.index.requirements cimport MOST_BRANCHES, LeafGraph, find_branches
from pyengine._engine.java.value cimport BIG_DECIMAL, STRING, Value
from pyengine._engine.lowlevel.bits cimport count_bits
from pyengine._engine.lowlevel.memory cimport allocate
from pyengine._engine.selector.like cimport free_pattern, share_pattern
from pyengine._engine.selector.program cimport GENERAL, NO_SLOT, Leaf, Program


@cython.final
@cython.no_gc
cdef class Subscription:
    """One key with its selector; see subscription.pxd."""

    def __dealloc__(self):
        cdef int index
        for index in range(self.graph.count):
            free_pattern(self.graph.leaves[index].pattern)
        free(<void*> self.graph.leaves)
        free(self.slots)

    cdef int widest(self) noexcept:
        return 0 if self.program is None else <int> len(self.program.names)


cdef LeafGraph graph_of(Program program) noexcept:
    cdef LeafGraph graph
    graph.leaves = program.leaves
    graph.count = program.leaf_count
    graph.start = program.start
    graph.can_raise = program.nodes[program.root].can_raise
    graph.needs_gil = program.needs_gil
    graph.branch_count = 1
    graph.branches = NULL
    return graph


cdef inline size_t bytes_of(const Value* value) noexcept nogil:
    return value.length if STRING <= value.type <= BIG_DECIMAL else 0       # constants are UTF8 or LATIN1


cdef size_t room_of(const LeafGraph* graph) noexcept nogil:
    """Bytes of the strings of all leaves."""
    cdef const Leaf* leaf
    cdef size_t room = 0
    cdef int index, text
    for index in range(graph.count):
        leaf = &graph.leaves[index]
        room += bytes_of(&leaf.constant) + bytes_of(&leaf.second) + 8
        if leaf.texts != NULL:
            for text in range(leaf.count):
                room += sizeof(Value) + bytes_of(&leaf.texts[text])
    return room


cdef char* move_text(Value* value, char* into) noexcept nogil:
    """Its bytes to ``into``; returns what is behind them."""
    cdef size_t size = bytes_of(value)
    if size:
        memcpy(into, value.payload.text, size)
        value.payload.text = into
    return into + size


cdef char* copy_leaf(Leaf* leaf, char* into) noexcept nogil:
    cdef Value* texts = <Value*> into
    cdef int text
    leaf.access = NULL
    if leaf.pattern != NULL:
        share_pattern(leaf.pattern)
    if leaf.texts != NULL:
        memcpy(texts, leaf.texts, leaf.count * sizeof(Value))
        leaf.texts = texts
        into += leaf.count * sizeof(Value)
        for text in range(leaf.count):
            into = move_text(&texts[text], into)
    into = move_text(&leaf.constant, into)
    into = move_text(&leaf.second, into)
    return into + (-(<size_t> into) & 7)


cdef int copy_graph(Subscription made, const LeafGraph* graph, const int32_t* branches, const int* slots) except -1:
    """Leaves and branches; slot s becomes slots[s]."""
    cdef int index
    cdef size_t leaf_room = graph.count * sizeof(Leaf)
    cdef size_t branch_room = (graph.branch_count + 1) * sizeof(int32_t) if graph.branch_count > 1 else 0
    cdef Leaf* leaves = <Leaf*> allocate(leaf_room + room_of(graph) + branch_room + 8)
    cdef char* into = <char*> leaves + leaf_room
    memcpy(leaves, graph.leaves, leaf_room)
    for index in range(graph.count):
        into = copy_leaf(&leaves[index], into)
        if leaves[index].slot != NO_SLOT:
            leaves[index].slot = slots[leaves[index].slot]
    made.graph = graph[0]
    made.graph.leaves = leaves
    if branch_room:
        memcpy(into, branches, branch_room)
        made.graph.branches = <int32_t*> into
    return 0


cdef bint is_general(Program program) noexcept:
    """Whether its nodes are needed to ask it, or to know what it reads."""
    cdef uint64_t read = 0
    cdef int index, names = <int> len(program.names)
    if names > 64:
        return True
    for index in range(program.leaf_count):
        if program.leaves[index].kind >= GENERAL:
            return True
        read |= <uint64_t> 1 << program.leaves[index].slot
    return count_bits(read) != names


cdef Subscription subscription_of(PyObject* key, int64_t number, Program program, const int* slots):
    cdef Subscription made = Subscription.__new__(Subscription)
    cdef int32_t[MOST_BRANCHES + 1] branches
    cdef LeafGraph graph = graph_of(program)
    cdef int names = <int> len(program.names)
    graph.branch_count = <uint8_t> find_branches(program, branches)
    if is_general(program):
        made.slots = <int*> allocate((names + 1) * sizeof(int))
        memcpy(made.slots, slots, names * sizeof(int))
        made.program = program
    copy_graph(made, &graph, branches, slots)
    made.key = key
    made.number = number
    made.text = program.text
    return made


cdef Subscription renumbered(Subscription old, const int* slots):
    cdef Subscription made = Subscription.__new__(Subscription)
    cdef int index
    if old.slots != NULL:
        made.slots = <int*> allocate((old.widest() + 1) * sizeof(int))
        for index in range(old.widest()):
            made.slots[index] = slots[old.slots[index]]
        made.program = old.program
    copy_graph(made, &old.graph, old.graph.branches, slots)
    made.key, made.number, made.text = old.key, old.number, old.text
    return made
