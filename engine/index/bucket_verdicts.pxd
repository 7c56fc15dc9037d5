"""bucket_verdicts: the bits that a requirement has in each bucket of its table: refused, passed or open.

The verdict of a bucket follows from what the requirement's own leaf answers on the bucket's values
(program.leaf_truth), so no rule of comparison stands here. The buckets of the segment are cut before, and a bit says
refused until it is marked.
"""

from cython cimport final

from pyengine._engine.index.requirement_list cimport Requirement, RequirementList
from pyengine._engine.index.segment cimport Segment
from pyengine._engine.java.value cimport Value
from pyengine._engine.selector.program cimport Leaf


@final
cdef class BucketVerdicts:
    cdef Segment segment
    cdef RequirementList requirements
    cdef Value unknown_text      # an example: it is longer than any text of the index
    cdef bytes unknown_bytes
    cdef dict texts_of           # table -> points that are its texts, of tables with a bucket for each; None: not yet

    cdef int judge(self, const Requirement* requirement) except -1
    cdef int judge_prefix(self, const Requirement* requirement) except -1
    cdef int find_texts(self) except -1
    cdef int mark(self, const Requirement* requirement, int bucket, int count, int possible) except -1
    cdef int truth(self, const Leaf* leaf, const Value* value) except -1        # as a Possible


# longest: bytes of the longest text of the index
cdef BucketVerdicts bucket_verdicts_of(Segment segment, RequirementList requirements, int longest)
