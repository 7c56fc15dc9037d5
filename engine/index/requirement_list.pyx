# cython: freethreading_compatible=True
"""The requirements of entries that an index looks at; see requirement_list.pxd."""

from cython cimport final
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from pyengine._engine.index.constants cimport Point, point_kind, reading_of, seek
from pyengine._engine.index.message_view cimport WORD, Reading, point_of
from pyengine._engine.index.partitions cimport EXACT
from pyengine._engine.index.requirements cimport copy_branches, find_requirements, is_indexable, rejects
from pyengine._engine.index.segment cimport Segment, Table
from pyengine._engine.index.subscription cimport Subscription
from pyengine._engine.java.sortable cimport double_to_sortable_long
from pyengine._engine.java.value cimport FALSE, LONG, TRUE, UNKNOWN, Value
from pyengine._engine.lowlevel.memory cimport allocate_sparse_zeros, resize
from pyengine._engine.selector.program cimport NUMBER, TEXT, TEXTS, Leaf


@final
cdef class RequirementList:
    """Internal to the building of a segment; see requirement_list.pxd."""

    def __dealloc__(self):
        free(self.at)
        free(self.points)
        free(self.leaves)

    cdef int reserve_leaves(self, int count) except -1:
        if count > self.leaf_room:
            self.leaves = <int32_t*> resize(self.leaves, count * sizeof(int32_t))
            self.leaf_room = count
        return 0

    cdef int branches_of(self, Subscription subscription, int32_t* bounds) noexcept:
        cdef int branch, count = copy_branches(&subscription.graph, bounds)
        for branch in range(count):
            if count > 1 and not self.is_indexed(subscription, bounds[branch], bounds[branch + 1]):
                bounds[1] = bounds[count]
                return 1
        return count

    cdef bint is_indexed(self, Subscription subscription, int first, int stop) noexcept:
        """Whether an index can look at one of the requirements of a branch."""
        cdef bint whole
        cdef int index
        for index in range(find_requirements(
                &subscription.graph, first, stop, self.segment.errors_count, self.leaves, &whole)):
            if is_indexable(&subscription.graph.leaves[self.leaves[index]]):
                return True
        return False

    cdef int collect(self, Subscription subscription, int32_t entry, int first, int stop) except -1:
        """Append the requirements of one entry, the branch [first, stop) of a subscription."""
        cdef Segment segment = self.segment
        cdef const Leaf* leaf
        cdef int index, slot
        cdef bint whole
        cdef int count = find_requirements(
            &subscription.graph, first, stop, segment.errors_count, self.leaves, &whole)
        cdef int64_t start = self.size, other
        if stop - first < subscription.graph.count:
            # If another branch raises, this one alone does not say that all of it matches.
            whole = whole and subscription.graph.can_raise <= 1
        for index in range(count):
            leaf = &subscription.graph.leaves[self.leaves[index]]
            if not is_indexable(leaf):
                whole = False
                continue
            slot = leaf.slot
            for other in range(start, self.size):
                if segment.tables[self.at[other].table].slot == slot:
                    break           # one row of bits a slot: a second requirement on it is left to the program
            else:
                if self.append(entry, leaf, slot, stop):
                    continue
            whole = False
        if whole:
            segment.whole[entry >> 6] |= <uint64_t> 1 << (entry & 63)
        return 0

    cdef int table(self, int slot) except -2:
        cdef object known = self.table_of.get(slot)
        cdef Segment segment = self.segment
        if known is not None:
            return known
        if self.fixed:
            return -1
        segment.tables = <Table*> resize(segment.tables, (segment.table_count + 1) * sizeof(Table))
        memset(&segment.tables[segment.table_count], 0, sizeof(Table))
        segment.tables[segment.table_count].slot = slot
        self.table_of[slot] = segment.table_count
        segment.table_count += 1
        return segment.table_count - 1

    cdef bint append(self, int32_t entry, const Leaf* leaf, int slot, int stop) except -1:
        cdef Requirement* requirement
        cdef Value number
        cdef int index
        if self.size == self.room:
            self.room = max(64, 2 * self.room)
            self.at = <Requirement*> resize(self.at, self.room * sizeof(Requirement))
        requirement = &self.at[self.size]
        requirement.entry = entry
        requirement.stop = stop
        requirement.table = self.table(slot)
        if requirement.table < 0:
            return False
        requirement.leaf = leaf
        requirement.first_point = -1
        requirement.point_count = 0
        requirement.unknown_text = False
        if leaf.kind == TEXT:
            if not self.add_value(requirement, &leaf.constant):
                return False
        elif leaf.kind == TEXTS:
            for index in range(leaf.count):
                if not self.add_value(requirement, &leaf.texts[index]):
                    return False
        elif leaf.kind == NUMBER and leaf.low == leaf.high and -EXACT <= leaf.low <= EXACT:
            if leaf.real_low == leaf.real_high == double_to_sortable_long(<double> leaf.low):
                number.type = LONG
                number.payload.integer = leaf.low
                self.add_value(requirement, &number)
        requirement.equality = (
            (leaf.kind == TEXT or leaf.kind == NUMBER) and requirement.point_count == 1
            and not rejects(leaf, stop, TRUE) and rejects(leaf, stop, FALSE) and rejects(leaf, stop, UNKNOWN)
        )
        self.size += 1
        return True

    cdef bint add_value(self, Requirement* requirement, const Value* constant) except -1:
        """One more value that satisfies a requirement; False: the index cannot look at it."""
        cdef Segment segment = self.segment
        cdef Reading reading
        cdef Point* point
        cdef Table* table = &segment.tables[requirement.table]
        if not point_of(constant, &reading, &segment.scratch):
            return False
        if self.fixed:
            if reading.kind != WORD:
                return True              # a number: its point only serves as an access point, and there is none
            if reading.length > LONGEST_TEXT:
                return False
        elif 3 * segment.point_count >= 2 * segment.point_room:
            self.rehash(max(64, 2 * segment.point_room))
        point = seek(segment.points, segment.point_room, requirement.table, &reading)
        if point.of == 0:
            if self.fixed:
                requirement.unknown_text = True
                return True
            point.of = point_kind(requirement.table, reading.kind)
            point.hash, point.key = reading.hash, reading.key
            point.bytes, point.length = reading.bytes, reading.length
            point.code = table.texts
            table.texts += reading.kind == WORD
            segment.point_count += 1
        self.add_point(requirement, point)
        return True

    cdef int add_point(self, Requirement* requirement, const Point* point) except -1:
        if self.point_count == self.point_room:
            self.point_room = max(64, 2 * self.point_room)
            self.points = <int64_t*> resize(self.points, self.point_room * sizeof(int64_t))
        if requirement.point_count == 0:
            requirement.first_point = <int32_t> self.point_count
        self.points[self.point_count] = <int64_t> (point - self.segment.points)
        self.point_count += 1
        requirement.point_count += 1
        return 0

    cdef int rehash(self, int64_t room) except -1:
        cdef Segment segment = self.segment
        cdef Point* old = segment.points
        cdef Point* seat
        cdef Reading reading
        cdef int64_t index, former = segment.point_room
        cdef int64_t* moved = <int64_t*> allocate_sparse_zeros((former + 1) * sizeof(int64_t))   # old place -> new
        segment.points = <Point*> allocate_sparse_zeros(room * sizeof(Point))
        segment.point_room = room
        for index in range(former):
            if old[index].of:
                reading = reading_of(&old[index])
                seat = seek(segment.points, room, old[index].of >> 2, &reading)
                seat[0] = old[index]
                moved[index] = seat - segment.points
        for index in range(self.point_count):
            self.points[index] = moved[self.points[index]]
        free(old)
        free(moved)
        return 0

    cdef void clear(self) noexcept:
        self.size = self.point_count = 0


cdef RequirementList requirement_list_of(Segment segment, bint fixed):
    cdef RequirementList requirements = RequirementList()
    requirements.segment = segment
    requirements.fixed = fixed
    requirements.table_of = {}
    return requirements
