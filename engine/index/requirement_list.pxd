"""requirement_list: the requirements of entries that an index looks at, and the values that they name.

The list of a new segment adds the tables and points that its requirements name. A list is *fixed* if these are the
ones of another segment: a requirement on an unknown table is left to the program, and an unknown string is noted.

Invariants: an entry has at most one requirement in each table; ``points[first_point + k]``, for k < ``point_count``,
are places in ``segment.points``.
"""

from cython cimport final
from libc.stdint cimport int32_t, int64_t

from pyengine._engine.index.constants cimport Point
from pyengine._engine.index.segment cimport Segment
from pyengine._engine.index.subscription cimport Subscription
from pyengine._engine.java.value cimport Value
from pyengine._engine.selector.program cimport Leaf


cdef enum:
    LONGEST_TEXT = 250           # bytes of a string that a fixed list takes


cdef struct Requirement:
    int32_t entry
    int32_t table
    int32_t stop                 # leaf at which the branch of the entry ends
    const Leaf* leaf
    int32_t first_point          # in ``points``; -1 none
    int32_t point_count
    bint equality                # one point satisfies it, and nothing else does
    bint unknown_text            # of a fixed list: it names a string that is not among the points


@final
cdef class RequirementList:
    cdef Segment segment
    cdef bint fixed
    cdef Requirement* at
    cdef int64_t size
    cdef int64_t room
    cdef int64_t* points         # places in ``segment.points``
    cdef int64_t point_count
    cdef int64_t point_room
    cdef dict table_of           # slot -> table
    cdef int32_t* leaves         # scratch: the requirements of one branch, by leaf
    cdef int leaf_room

    cdef int reserve_leaves(self, int count) except -1               # of the longest program
    # copy_branches, but one if an index can look at none of the requirements of some branch
    cdef int branches_of(self, Subscription subscription, int32_t* bounds) noexcept
    cdef bint is_indexed(self, Subscription subscription, int first, int stop) noexcept
    cdef int collect(self, Subscription subscription, int32_t entry, int first, int stop) except -1
    cdef int table(self, int slot) except -2                         # -1: a fixed list has none
    cdef bint append(self, int32_t entry, const Leaf* leaf, int slot, int stop) except -1   # False: not indexed
    cdef bint add_value(self, Requirement* requirement, const Value* constant) except -1
    cdef int add_point(self, Requirement* requirement, const Point* point) except -1
    cdef int rehash(self, int64_t room) except -1                    # the points of the segment
    cdef void clear(self) noexcept

    cdef inline Point* point(self, const Requirement* requirement, int which) noexcept nogil:
        return &self.segment.points[self.points[requirement.first_point + which]]


cdef RequirementList requirement_list_of(Segment segment, bint fixed)
