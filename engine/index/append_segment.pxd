"""append_segment: a segment that takes one subscription after another, for sets too large to build again.

It shares the bounds and points of a built segment, its *model*; only the bits of its entries in the buckets are its
own. A string that the model does not know falls into the buckets of unknown texts, and the programs are asked about it.
No entry has an access point. The bits lie line by line, and a line is written when its first entry is added: an
addition touches only that line.

A search that runs meanwhile does not see a new entry, because the entry is not alive in the search's snapshot.
"""

from cython cimport final
from libc.stdint cimport int32_t

from pyengine._engine.index.bucket_verdicts cimport BucketVerdicts
from pyengine._engine.index.requirement_list cimport Requirement, RequirementList
from pyengine._engine.index.segment cimport Segment
from pyengine._engine.index.subscription cimport Subscription


@final
cdef class AppendSegment:
    cdef Segment segment
    cdef RequirementList requirements    # of the entry that is added
    cdef BucketVerdicts verdicts
    cdef int room                        # entries

    cdef bint add(self, Subscription subscription) except -1         # False: it is full
    cdef int add_entry(self, Subscription subscription, int32_t hit, int first, int stop) except -1
    cdef void refuse(self, const Requirement* requirement) noexcept  # in every bucket


cdef AppendSegment append_segment_of(Segment model, int room)
