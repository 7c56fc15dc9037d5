"""requirements: what a message must satisfy for a selector to be TRUE, leaf by leaf: what an index may look at.

A leaf is a *requirement* if every way through the program to ACCEPT (and, where errors count, to one) comes by it.
A message on which all truths that it may have there lead to REJECT cannot match and cannot raise: it is refused
without a look at the rest. If all leaves are requirements, and none of its truths on a message leads to REJECT, the
message matches.

A selector that is an OR falls into *branches*, the stretches of leaves of its parts: it matches (or raises) only where
one of them does. A branch is asked as if it were alone: what leaves it to the next is REJECT.
"""

from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memcpy

from pyengine._engine.java.value cimport BOOLEAN, EXACT_TYPES, IS_EQUAL
from pyengine._engine.selector.program cimport (
    ABSENT, BY_RULE, FLAG, NO_RELATION, NUMBER, PREFIX, REJECT, TEXT, TEXTS, Leaf, Program,
)


cdef struct LeafGraph:    # what matches() asks of a compiled selector
    const Leaf* leaves
    int32_t count
    int32_t start         # first leaf, ACCEPT or REJECT
    uint8_t can_raise     # of the root node
    uint8_t needs_gil
    uint8_t branch_count
    const int32_t* branches      # of find_branches; NULL: one branch


cdef enum Possible:       # a set of Truth, as bits
    MAY_BE_FALSE = 1
    MAY_BE_TRUE = 2
    MAY_BE_UNKNOWN = 4
    MAY_RAISE = 8


cdef enum Verdict:
    REFUSED           # it is REJECT, whatever of the possible truths it is
    PASSED            # it is not
    OPEN              # ask the program


cdef enum:
    MOST_BRANCHES = 8

# The leaves at which branches begin, and behind the last one their end: from ``program.start`` to all, if there is one.
# Returns how many there are, 1 to MOST_BRANCHES; ``into`` has room for one more.
cdef int find_branches(Program program, int32_t* into) noexcept nogil
# Writes the leaves of [first, stop) that are requirements, in order, and returns how many; ``into`` has room for all
# leaves. ``whole``: there are no other leaves, and passing them all is ACCEPT. errors_count: a raise is not the same
# as no match.
cdef int find_requirements(
    const LeafGraph* graph, int first, int stop, bint errors_count, int32_t* into, bint* whole
) noexcept nogil
# What follows from the truths a leaf may have, in a branch that ends at ``stop``.
cdef int verdict_of(const Leaf* leaf, int stop, int possible, bint errors_count) noexcept nogil


cdef inline int copy_branches(const LeafGraph* graph, int32_t* into) noexcept nogil:
    """find_branches of a graph."""
    if graph.branches == NULL:
        into[0], into[1] = max(graph.start, 0), graph.count
        return 1
    memcpy(into, graph.branches, (graph.branch_count + 1) * sizeof(int32_t))
    return graph.branch_count


cdef inline bint is_boolean_rule(const Leaf* leaf) noexcept nogil:
    """Whether it compares with TRUE or FALSE, and so has one truth for all numbers and one for all texts."""
    return leaf.kind == BY_RULE and leaf.constant.type == BOOLEAN and leaf.relation == IS_EQUAL and (
        leaf.second_relation == NO_RELATION and leaf.rules == EXACT_TYPES)


cdef inline bint is_indexable(const Leaf* leaf) noexcept nogil:
    """Whether bits by bucket can say something of it."""
    return leaf.kind in (NUMBER, TEXT, TEXTS, PREFIX, ABSENT, FLAG) or is_boolean_rule(leaf)


cdef inline bint rejects(const Leaf* leaf, int stop, int truth) noexcept nogil:
    return leaf.next[truth] == REJECT or leaf.next[truth] >= stop
