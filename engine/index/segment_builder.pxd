"""segment_builder: the building of a segment from subscriptions: its entries, their order, its buckets and bits."""

from libc.stdint cimport int32_t, int64_t, uint64_t

from pyengine._engine.index.bucket_verdicts cimport BucketVerdicts
from pyengine._engine.index.postings_builder cimport PostingsBuilder
from pyengine._engine.index.requirement_list cimport Requirement, RequirementList
from pyengine._engine.index.segment cimport Segment
from pyengine._engine.index.subscription cimport Subscription


cdef class SegmentBuilder:       # of one segment
    cdef Segment segment
    cdef RequirementList requirements
    cdef BucketVerdicts verdicts
    cdef object numbers          # of the subscriptions, ascending
    cdef list owners             # the Subscription of each entry
    cdef int32_t* firsts         # the leaf at which the branch of each entry begins
    cdef int32_t* stops
    cdef uint64_t* asked         # [table][line][8]: which entries ask about it
    cdef uint64_t* whole         # of the entries, until they have their order; then what that replaced
    cdef Requirement* sorted     # the same of the requirements
    cdef bint branching          # some Subscription has several entries

    # At once; the segment is theirs then. ``steps`` of the room is the same in pieces, and leaves them where they are.
    cdef Segment build(self, list subscriptions, bint errors_count)
    cdef int number_members(self, list subscriptions) except -1
    cdef int number_posted(self, PostingsBuilder lists) except -1
    cdef int make_entries(self, Subscription subscription) except -1
    cdef object point_uses(self)
    cdef int drop_access_requirements(self, const int64_t* access, const int64_t* place_of) except -1
    cdef int begin_buckets(self) except -1
    cdef int judge(self, int64_t first, int64_t last) except -1
    cdef int fill_table(self, int number) except -1
    cdef int sort_tables(self) except -1
    cdef bint is_interval(self, const Requirement* requirement) noexcept nogil


cdef Segment segment_of(list subscriptions, bint errors_count)     # moves them into it
