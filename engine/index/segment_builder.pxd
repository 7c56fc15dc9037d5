"""segment_builder: how a segment is made of subscriptions: its points, its order, its buckets.

What a bucket says of an entry is what the requirement's own leaf answers on the bucket's values (program.leaf_truth),
so no rule of comparison stands here.
"""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.selector.program cimport Leaf
from pyengine._engine.index.constants cimport Point
from pyengine._engine.index.segment cimport Segment, Subscription
from pyengine._engine.java.value cimport Value


cdef struct Need:                # a requirement that is indexed
    int32_t entry
    int32_t table
    int32_t stop                 # of the branch
    const Leaf* leaf
    int32_t point                # first of its ``points`` in the builder's list, -1 none
    int32_t point_count
    bint equality                # satisfied by its one point and by nothing else


cdef class Builder:              # one building of a segment
    cdef Segment segment
    cdef int32_t* requirements
    cdef object numbers          # of the subscriptions, ascending
    cdef list owners             # the Subscription of each entry
    cdef int32_t* firsts         # the leaf at which the branch of each entry begins
    cdef int32_t* stops
    cdef Need* needs
    cdef int64_t need_count
    cdef int64_t need_room
    cdef int64_t* seats          # points of the needs
    cdef int64_t seat_count
    cdef int64_t seat_room
    cdef dict table_of           # slot -> table
    cdef Value strange           # a text that is none of the points
    cdef object strange_text
    cdef dict texts_of           # table -> points that are its texts

    cdef Segment build(self, list subscriptions, bint errors_count)
    cdef int number_members(self, list subscriptions) except -1
    cdef int part(self, list subscriptions) except -1
    # find_branches, but one if an index can look at none of the requirements of some branch
    cdef int branches_of(self, Subscription it, int32_t* bounds) noexcept
    cdef bint indexed(self, Subscription it, int first, int stop) noexcept
    cdef int collect(self) except -1
    cdef int collect_entry(self, Subscription it, int32_t entry, int first, int stop) except -1
    cdef int table(self, int slot) except -2                        # -1: none, in an annex
    cdef bint add_need(self, int32_t entry, const Leaf* leaf, int slot, int stop) except -1
    cdef bint add_point(self, Need* need, const Value* constant) except -1
    cdef int seat(self, Need* need, const Point* point) except -1   # one more point of it
    cdef int rehash(self, int64_t room) except -1
    cdef Point* point(self, const Need* need, int which) noexcept nogil
    cdef object users(self)
    cdef int choose_order(self) except -1
    cdef int cut_number_lines(self) except -1
    cdef int fill(self) except -1
    cdef int name_strange(self, int longest) except -1              # longer than any text of the index
    cdef int mark(self, const Need* need, int bucket, int count, int possible) except -1
    cdef int truth(self, const Leaf* leaf, const Value* value) except -1
    cdef int judge(self, const Need* need) except -1
    cdef bint is_interval(self, const Need* need) noexcept nogil
    cdef int keep_intervals(self) except -1
    cdef int judge_beginning(self, const Need* need) except -1


cdef Segment segment_of(list subscriptions, bint errors_count)     # moves them into it
