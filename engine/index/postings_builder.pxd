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
from pyengine._engine.index.requirements cimport LeafGraph
from pyengine._engine.index.subscription cimport Subscription
from pyengine._engine.index.selectivity cimport Selectivity
from pyengine._engine.java.value cimport Scratch, Value
from pyengine._engine.selector.program cimport Leaf


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
    cdef Growing posted_graphs   # LeafGraph: of the posted, those of messages without lists and maps
    cdef Growing scanned_graphs
    cdef list plain_programs     # that own some of the graphs
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
    cdef Growing first_steps     # [place]
    cdef Growing requirements
    cdef Scratch scratch         # texts while it is built

    cdef int begin(self, Selectivity selectivity, bint errors_count) except -1
    cdef bint take(self, Subscription it) except -1              # False: the lists do not serve it
    cdef int bits_serve(self, Subscription it) except -1         # Served
    # Afterwards, in this order: the columns; each place; the postings. ``made`` stays empty if none was taken.
    cdef int lay_columns(self) except -1
    cdef int lay_place(self, int place) except -1
    cdef int lay_jumps(self, int place) except -1
    cdef int lay_lists(self) except -1
    cdef int column(self, int slot) except -1
    # The graph whose leaves are listed; it belongs to ``it``, or to one of ``plain_programs``.
    cdef LeafGraph plain_graph(self, Subscription it) except *
    cdef int register(self, const LeafGraph* graph, const Listed* listed) except -1
    cdef int register_leaf(self, const Leaf* leaf) except -1
    cdef int register_text(self, int column, const Value* text) except -1
    cdef const uint8_t* copied(self, const uint8_t* bytes_, uint32_t length) except NULL
    cdef Point* find_text(self, int column, const Value* text) noexcept nogil
    cdef int list_posting(self, int64_t number, int32_t posting) except -1
    cdef int list_jump(self, const Leaf* leaf, const Jump* jump, int32_t posting) except -1
    cdef LeafGraph* graph_at(self, int place) noexcept
    cdef int lay_steps(self, const LeafGraph* graph) except -1
    cdef int lay_leaf(self, const Leaf* leaf) except -1
    cdef int inside_step(self, const Leaf* leaf, int column, Step* step) except -1
    cdef Step* step(self, int yes, int no) except NULL
