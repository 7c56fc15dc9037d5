"""segment_builder: the building of a segment from subscriptions: its entries, their order, its buckets and bits."""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.index.bucket_verdicts cimport BucketVerdicts
from pyengine._engine.index.requirement_list cimport Requirement, RequirementList
from pyengine._engine.index.segment cimport Segment


cdef class SegmentBuilder:       # of one segment
    cdef Segment segment
    cdef RequirementList requirements
    cdef BucketVerdicts verdicts
    cdef object numbers          # of the subscriptions, ascending
    cdef list owners             # the Subscription of each entry
    cdef int32_t* firsts         # the leaf at which the branch of each entry begins
    cdef int32_t* stops

    cdef Segment build(self, list subscriptions, bint errors_count)
    cdef int number_members(self, list subscriptions) except -1
    cdef int make_entries(self, list subscriptions) except -1
    cdef int collect_requirements(self) except -1
    cdef object point_uses(self)
    cdef int choose_order(self) except -1
    cdef int drop_access_requirements(self, const int64_t* access, const int64_t* place_of) except -1
    cdef int sort_requirements(self) except -1
    cdef int cut_number_lines(self) except -1
    cdef int fill_buckets(self) except -1
    cdef int sort_tables(self) except -1
    cdef bint is_interval(self, const Requirement* requirement) noexcept nogil
    cdef int keep_intervals(self) except -1


cdef Segment segment_of(list subscriptions, bint errors_count)     # moves them into it
