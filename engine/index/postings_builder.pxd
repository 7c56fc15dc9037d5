"""postings_builder: how subscriptions are divided between posting lists and bits, and how the lists are made.

A subscription goes to the lists if they decide it, or if so few messages make it a candidate that to ask it costs less
than its bits. What bits cannot serve at all is scanned. What has an equality that every match must meet, and intervals
besides, stays with the bits: thousands of such entries are compared at once there.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from pyengine._engine.index.access_predicates cimport AccessPredicates, Jump
from pyengine._engine.index.constants cimport Point
from pyengine._engine.index.growing cimport Growing
from pyengine._engine.index.postings cimport Postings
from pyengine._engine.index.residual cimport Step
from pyengine._engine.index.segment cimport Subscription
from pyengine._engine.java.value cimport Scratch, Value
from pyengine._engine.selector.program cimport Leaf, Program


cdef struct Posting:             # while the lists are made
    int64_t number               # of the list
    int32_t posting


cdef struct Listed:              # a subscription with its access predicates
    int64_t first                # among all ``jumps``
    int32_t count
    bint decided                 # by each of them


cdef class PostingsBuilder:
    cdef Postings made
    cdef AccessPredicates chooser
    cdef bint errors_count
    cdef Growing listed          # Listed
    cdef Growing jumps           # Jump
    cdef list posted             # Subscription, in the order of ``listed``
    cdef list scanned
    cdef list posted_programs    # of the posted: those of messages without lists and maps
    cdef list scanned_programs
    cdef list programs           # of both, by place
    cdef dict column_of          # slot -> column
    cdef dict pattern_of         # (column, piece, at start, at end), or the address of a leaf -> pattern
    cdef list bounds             # [column]: Growing of int64
    cdef Growing columns         # PostedColumn
    cdef Growing points          # Point: a hash table
    cdef int64_t text_count
    cdef Growing all_postings    # Posting
    cdef Growing steps
    cdef Growing pool
    cdef Growing targets         # two of a step: leaves, ACCEPT or REJECT
    cdef Growing first_step_of   # [leaf]
    cdef Growing requirements
    cdef Scratch scratch         # texts while it is built

    # Takes those that the lists serve; returns the others.
    cdef list take(self, list subscriptions, bint errors_count)
    cdef int bits_serve(self, Subscription it) except -1         # Served
    cdef Postings finish(self)           # None if it took none
    cdef int column(self, int slot) except -1
    cdef int register(self, Subscription it, Program program, const Listed* listed) except -1
    cdef int register_leaf(self, Subscription it, const Leaf* leaf) except -1
    cdef int register_text(self, int column, const Value* text) except -1
    cdef const uint8_t* copied(self, const uint8_t* bytes_, uint32_t length) except NULL
    cdef Point* find_text(self, int column, const Value* text) noexcept nogil
    cdef int lay_columns(self) except -1
    cdef int lay_lists(self) except -1
    cdef int list_posting(self, int64_t number, int32_t posting) except -1
    cdef int list_jump(self, Subscription it, const Leaf* leaf, const Jump* jump, int32_t posting) except -1
    cdef int lay_steps(self, Subscription it, Program program) except -1
    cdef int lay_leaf(self, Subscription it, const Leaf* leaf) except -1
    cdef int inside_step(self, const Leaf* leaf, int column, Step* step) except -1
    cdef Step* step(self, int yes, int no) except NULL
