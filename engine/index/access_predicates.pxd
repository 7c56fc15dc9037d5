"""access_predicates: predicates of which one at least is met wherever a selector is TRUE or raises.

A compiled selector is a graph of leaves with a jump for each truth. A set of jumps that every way to ACCEPT takes is a
*cut*: a selector can match only where a leaf has the truth of one of the cut's jumps. Each jump has a cost, the part
of the messages that take it (selectivity.pxd), and the cut of least cost is found as a minimum cut is: by maximum flow
(Edmonds and Karp). For an AND that is its most selective part, for an OR all of its parts, and for a tree what follows
from both. Its jumps are the selector's *access predicates*.

    color = 'red' AND (size > 3 OR shape = 'round')

        start -> color --TRUE--> size --TRUE-------------> ACCEPT
                                   \\-FALSE-> shape -TRUE->      the cut is the jump ``color --TRUE-->``
"""

from libc.stdint cimport int32_t

from pyengine._engine.index.growing cimport Growing
from pyengine._engine.index.selectivity cimport Selectivity
from pyengine._engine.index.requirements cimport LeafGraph


cdef enum:
    CERTAIN = 1000               # a cost no cut is worth


cdef struct Jump:                # an access predicate
    int32_t leaf
    int32_t mask                 # bits 1 << Truth
    bint decides                 # the selector is TRUE wherever this is met


cdef struct Edge:
    int32_t source
    int32_t target               # a leaf; behind the last leaf ACCEPT
    int32_t mask
    double room                  # of flow
    double back                  # flow there is


cdef class AccessPredicates:
    cdef Selectivity selectivity
    cdef bint errors_count
    cdef Growing jumps           # Jump: those of the selector at hand
    cdef Growing edges           # Edge
    cdef Growing truths          # Truths: by leaf
    cdef Growing reached_by      # [leaf]: the edge that the search came by, forwards or (~) backwards
    cdef Growing queue
    cdef bint known              # some leaf is not left to the program
    cdef bint quiet              # no leaf raises, or is left to the program

    # Finds the access predicates of a graph; returns their cost, CERTAIN if there are none.
    cdef double choose(self, const LeafGraph* graph) except -1
    cdef bint is_alternation(self, const LeafGraph* graph) noexcept nogil
    cdef int lay_edges(self, const LeafGraph* graph) except -1
    cdef bint augment(self, int sink, double* flow) noexcept nogil
    cdef bint decides(self, const LeafGraph* graph, const Jump* jump) except -1
