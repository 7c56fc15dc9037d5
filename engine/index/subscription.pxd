"""subscription: one key with its selector as an index keeps it: the leaves alone, in one block of memory.

A set has a million of them. A selector's nodes are needed where a leaf computes, calls or may raise later (GENERAL and
above); only then is its Program kept. The leaves are copies whose ``slot`` is that of the set's messages.

Invariants: the block holds the leaves, then the strings that they name, then where branches begin; a pattern is shared
with the program that it was compiled for; ``key`` is borrowed: ``by_key`` of the Subscriptions owns it, and after a
removal every snapshot from before (``removed``). Without cycle collection, because nothing that it owns refers to it.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t

from pyengine._engine.index.requirements cimport LeafGraph
from pyengine._engine.selector.program cimport Program


cdef class Subscription:
    cdef PyObject* key           # borrowed
    cdef str text
    cdef Program program         # None: leaves are all there is to ask
    cdef int* slots              # of the program -> of the event; NULL without a program
    cdef LeafGraph graph
    cdef void* segment           # that it lies in; NULL: in the tail
    cdef int64_t number          # place in the order of addition; never used again
    cdef int32_t hit             # of the segment

    cdef int widest(self) noexcept       # slots that one question gathers


cdef Subscription subscription_of(PyObject* key, int64_t number, Program program, const int* slots)
# The same with slots[s] for its slot s.
cdef Subscription renumbered(Subscription old, const int* slots)
cdef LeafGraph graph_of(Program program) noexcept        # the program's own leaves, as one branch
