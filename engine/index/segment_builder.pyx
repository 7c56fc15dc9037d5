# cython: freethreading_compatible=True
"""See segment_builder.pxd."""

from cpython.object cimport PyObject
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset

from pyengine._engine.lowlevel.memory cimport allocate_sparse_zeros, resize
from pyengine._engine.lowlevel.bits cimport count_bits
from pyengine._engine.index.entry_order cimport clustered, positions_of
from pyengine._engine.index.message_view cimport NUMERAL, WORD, Reading, point_of
from pyengine._engine.index.constants cimport Point, point_kind, reading_of, seek
from pyengine._engine.selector.program cimport NUMBER, PREFIX, TEXT, TEXTS, Leaf, leaf_truth
from pyengine._engine.index.requirements cimport (
    MAY_BE_FALSE,
    MAY_BE_TRUE,
    MAY_BE_UNKNOWN,
    MAY_RAISE,
    MOST_BRANCHES,
    OPEN,
    REFUSED,
    find_branches,
    find_requirements,
    is_indexable,
    rejects,
    verdict_of,
)
from pyengine._engine.index.postings cimport Postings
from pyengine._engine.index.postings_builder cimport PostingsBuilder
from pyengine._engine.index.segment cimport (
    FIRST_TEXT,
    LINE,
    MOST_ROWS,
    NULL_BUCKET,
    ODD_BUCKET,
    OPEN_TO_INTERVALS,
    OPEN_TO_PROGRAMS,
    SIDE_BY_SIDE,
    STRANGE_BUCKET,
    Interval,
    Intervals,
    Segment,
    Subscription,
    Table,
    first_text_stretch,
    interval_of,
    rank,
    required_of,
)
from pyengine._engine.index.partitions cimport (
    EXACT,
    beginning,
    bounds_of,
    covered,
    interval_truths,
    key_of,
    one_interval,
)
from pyengine._engine.java.sortable cimport double_to_sortable_long
from pyengine._engine.java.value cimport (
    DOUBLE,
    FALSE,
    INT,
    LATIN1,
    LONG,
    NULL_VALUE,
    STRING,
    TRUE,
    UNKNOWN,
    Scratch,
    Value,
    free_scratch,
)

import numpy

cdef enum:
    TEXT_BUCKETS = 256
    FEW_LINES = 4            # of a small segment, at most

cdef int few_lines = FEW_LINES


cdef class Builder:
    def __dealloc__(self):
        free(self.requirements)
        free(self.firsts)
        free(self.stops)
        free(self.needs)
        free(self.seats)

    cdef Segment build(self, list subscriptions, bint errors_count):
        cdef Segment segment = Segment()
        cdef Subscription it
        cdef int leaves = 1
        self.segment = segment
        self.table_of = {}
        segment.members = <int> len(subscriptions)
        segment.errors_count = errors_count
        for it in subscriptions:
            segment.needs_gil |= it.program.needs_gil
            segment.widest = max(segment.widest, <int> len(it.program.names))
            leaves = max(leaves, it.program.leaf_count)
        self.requirements = <int32_t*> allocate_sparse_zeros(leaves * sizeof(int32_t))
        lists = PostingsBuilder()
        self.part((<PostingsBuilder> lists).take(subscriptions, errors_count))
        segment.size = <int> len(self.owners)
        segment.lines = (segment.size + LINE - 1) // LINE
        segment.words = (segment.lines + 7) // 8
        segment.bucket_step = <int64_t> segment.lines * 8
        segment.line_step = 8
        segment.whole = <uint64_t*> allocate_sparse_zeros(segment.lines * 64)
        segment.is_small = segment.lines <= few_lines
        self.collect()
        segment.posted = (<PostingsBuilder> lists).finish()
        self.number_members(subscriptions)
        self.choose_order()
        self.cut_number_lines()
        self.fill()
        return segment

    cdef int number_members(self, list subscriptions) except -1:
        """The hits, in the order of addition; those of what is posted."""
        cdef Segment segment = self.segment
        cdef Postings posted = segment.posted
        cdef Subscription it
        cdef int64_t hit
        cdef int place
        numbers = numpy.array([(<Subscription> it).number for it in subscriptions], numpy.int64)
        self.numbers = numpy.sort(numbers)
        segment.hit_lines = (segment.members + LINE - 1) // LINE
        segment.alive_lines = segment.lines
        segment.consecutive = segment.members > 0 and (
            self.numbers[segment.members - 1] - self.numbers[0] + 1 == segment.members)
        segment.numbers = <int64_t*> allocate_sparse_zeros((segment.members + 1) * sizeof(int64_t))
        segment.keys = <PyObject**> allocate_sparse_zeros((segment.members + 1) * sizeof(PyObject*))
        if posted is None:
            return 0
        segment.alive_lines += (posted.count + LINE - 1) // LINE
        posted.hits = <int32_t*> allocate_sparse_zeros((posted.count + 1) * sizeof(int32_t))
        posted.members = <PyObject**> allocate_sparse_zeros((posted.count + 1) * sizeof(PyObject*))
        cdef int64_t[::1] hits = numpy.searchsorted(
            self.numbers, numpy.array([(<Subscription> it).number for it in posted.subscriptions], numpy.int64))
        for place in range(posted.count):
            it = posted.subscriptions[place]
            hit = hits[place]
            it.settle(segment, segment.lines * LINE + place)
            posted.hits[place] = <int32_t> hit
            posted.members[place] = <PyObject*> it
            segment.numbers[hit] = it.number
            segment.keys[hit] = <PyObject*> it.key
        return 0

    cdef int part(self, list subscriptions) except -1:
        """The entries: an OR is one for each branch if every branch can be indexed."""
        cdef Subscription it
        cdef int32_t[MOST_BRANCHES + 1] bounds
        cdef int count, branch, entry = 0
        self.owners = []
        self.firsts = <int32_t*> allocate_sparse_zeros((MOST_BRANCHES * len(subscriptions) + 1) * sizeof(int32_t))
        self.stops = <int32_t*> allocate_sparse_zeros((MOST_BRANCHES * len(subscriptions) + 1) * sizeof(int32_t))
        for it in subscriptions:
            count = self.branches_of(it, bounds)
            for branch in range(count):
                self.owners.append(it)
                self.firsts[entry] = bounds[branch]
                self.stops[entry] = bounds[branch + 1]
                entry += 1
        return 0

    cdef int branches_of(self, Subscription it, int32_t* bounds) noexcept:
        cdef int branch, count = find_branches(it.program, bounds)
        for branch in range(count):
            if count > 1 and not self.indexed(it, bounds[branch], bounds[branch + 1]):
                bounds[1] = bounds[count]
                return 1
        return count

    cdef bint indexed(self, Subscription it, int first, int stop) noexcept:
        """Whether an index can look at one of the requirements of a branch."""
        cdef bint whole
        cdef int index
        for index in range(
                find_requirements(it.program, first, stop, self.segment.errors_count, self.requirements, &whole)):
            if is_indexable(&it.program.leaves[self.requirements[index]]):
                return True
        return False

    cdef int collect(self) except -1:
        """The needs of every entry, and the points they name."""
        cdef Subscription it
        cdef int32_t entry = 0
        for it in self.owners:
            self.collect_entry(it, entry, self.firsts[entry], self.stops[entry])
            entry += 1
        return 0

    cdef int collect_entry(self, Subscription it, int32_t entry, int first, int stop) except -1:
        cdef Segment segment = self.segment
        cdef const Leaf* leaf
        cdef int index, slot
        cdef bint whole
        cdef int count = find_requirements(
            it.program, first, stop, segment.errors_count, self.requirements, &whole)
        cdef int64_t index_of_first = self.need_count, other
        if stop - first < it.program.leaf_count:
            # Where another branch raises, this one alone does not say that all of it matches.
            whole = whole and it.program.nodes[it.program.root].can_raise <= 1
        for index in range(count):
            leaf = &it.program.leaves[self.requirements[index]]
            if not is_indexable(leaf):
                whole = False
                continue
            slot = it.slots[leaf.access.slot]
            for other in range(index_of_first, self.need_count):
                if self.segment.tables[self.needs[other].table].slot == slot:
                    break           # one row of bits a slot: a second requirement on it is left to the program
            else:
                if self.add_need(entry, leaf, slot, stop):
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
        segment.tables = <Table*> resize(segment.tables, (segment.table_count + 1) * sizeof(Table))
        memset(&segment.tables[segment.table_count], 0, sizeof(Table))
        segment.tables[segment.table_count].slot = slot
        self.table_of[slot] = segment.table_count
        segment.table_count += 1
        return segment.table_count - 1

    cdef bint add_need(self, int32_t entry, const Leaf* leaf, int slot, int stop) except -1:
        cdef Need* need
        cdef Value number
        cdef int index
        if self.need_count == self.need_room:
            self.need_room = max(64, 2 * self.need_room)
            self.needs = <Need*> resize(self.needs, self.need_room * sizeof(Need))
        need = &self.needs[self.need_count]
        need.entry = entry
        need.stop = stop
        need.table = self.table(slot)
        if need.table < 0:
            return False
        need.leaf = leaf
        need.point = -1
        need.point_count = 0
        need.equality = False
        if leaf.kind == TEXT:
            if not self.add_point(need, &leaf.constant):
                return False
        elif leaf.kind == TEXTS:
            for index in range(leaf.count):
                if not self.add_point(need, &leaf.texts[index]):
                    return False
        elif leaf.kind == NUMBER and leaf.low == leaf.high and -EXACT <= leaf.low <= EXACT:
            if leaf.real_low == leaf.real_high == double_to_sortable_long(<double> leaf.low):
                number.type = LONG
                number.payload.integer = leaf.low
                self.add_point(need, &number)
        need.equality = (
            (leaf.kind == TEXT or leaf.kind == NUMBER) and need.point_count == 1
            and not rejects(leaf, need.stop, TRUE) and rejects(leaf, need.stop, FALSE)
            and rejects(leaf, need.stop, UNKNOWN)
        )
        self.need_count += 1
        return True

    cdef bint add_point(self, Need* need, const Value* constant) except -1:
        cdef Segment segment = self.segment
        cdef Reading reading
        cdef Point* point
        cdef Table* table = &segment.tables[need.table]
        if not point_of(constant, &reading, &segment.scratch):
            return False
        if 3 * segment.point_count >= 2 * segment.point_room:
            self.rehash(max(64, 2 * segment.point_room))
        point = seek(segment.points, segment.point_room, need.table, &reading)
        if point.of == 0:
            point.of = point_kind(need.table, reading.kind)
            point.hash, point.key = reading.hash, reading.key
            point.bytes, point.length = reading.bytes, reading.length
            point.code = table.texts
            table.texts += reading.kind == WORD
            segment.point_count += 1
        self.seat(need, point)
        return True

    cdef int seat(self, Need* need, const Point* point) except -1:
        if self.seat_count == self.seat_room:
            self.seat_room = max(64, 2 * self.seat_room)
            self.seats = <int64_t*> resize(self.seats, self.seat_room * sizeof(int64_t))
        if need.point_count == 0:
            need.point = <int32_t> self.seat_count
        self.seats[self.seat_count] = <int64_t> (point - self.segment.points)
        self.seat_count += 1
        need.point_count += 1
        return 0

    cdef int rehash(self, int64_t room) except -1:
        cdef Segment segment = self.segment
        cdef Point* old = segment.points
        cdef Point* seat
        cdef Reading reading
        cdef int64_t index, former = segment.point_room
        cdef int64_t* moved = <int64_t*> allocate_sparse_zeros((former + 1) * sizeof(int64_t))
        segment.points = <Point*> allocate_sparse_zeros(room * sizeof(Point))
        segment.point_room = room
        for index in range(former):
            if old[index].of:
                reading = reading_of(&old[index])
                seat = seek(segment.points, room, old[index].of >> 2, &reading)
                seat[0] = old[index]
                moved[index] = seat - segment.points
        for index in range(self.seat_count):
            self.seats[index] = moved[self.seats[index]]
        free(old)
        free(moved)
        return 0

    cdef Point* point(self, const Need* need, int which) noexcept nogil:
        return &self.segment.points[self.seats[need.point + which]]

    cdef object users(self):
        """How often a need names each point."""
        return numpy.bincount(
            numpy.asarray(<int64_t[:self.seat_count]> self.seats) if self.seat_count else numpy.empty(0, numpy.int64),
            minlength=self.segment.point_room)

    cdef int choose_order(self) except -1:
        """Entries by access point; many of one, and those without, in clusters."""
        cdef Segment segment = self.segment
        cdef int64_t index, size = segment.size
        cdef Need* need
        cdef Point* point
        cdef Subscription it
        cdef int32_t place
        access = numpy.full(size, -1, numpy.int64)
        rarest = numpy.full(size, 2**31 - 1, numpy.int64)
        cdef int64_t[::1] of = access, rare = rarest, users = self.users()
        numeric = numpy.empty(self.need_count, bool)
        cdef uint8_t[::1] is_numeric = numeric.view(numpy.uint8)
        columns = numpy.empty((4, self.need_count), numpy.int64)
        cdef int64_t[:, ::1] column = columns
        for index in range(self.need_count):
            need = &self.needs[index]
            is_numeric[index] = need.leaf.kind == NUMBER
            column[0, index] = need.entry
            column[1, index] = need.table
            column[2, index] = need.leaf.real_low == INT64_MIN
            column[3, index] = need.leaf.real_high if need.leaf.real_low == INT64_MIN else need.leaf.real_low
            if need.equality and not segment.is_small and users[self.seats[need.point]] < rare[need.entry]:
                rare[need.entry] = users[self.seats[need.point]]
                of[need.entry] = self.seats[need.point]
        askers, tables, upper, bounds = columns[:, numeric]
        numbers = numpy.array([(<Subscription> it).number for it in self.owners], numpy.int64)
        if segment.is_small:
            order = numpy.argsort(numbers, kind="stable")
            segment.in_order = size == segment.members and segment.posted is None
        else:
            positions = positions_of(size, askers, tables, upper, bounds)
            order = numpy.argsort(numpy.where(access < 0, 2**62, access), kind="stable")
            ends = numpy.flatnonzero(numpy.diff(access[order], append=-2)) + 1
            for first, end in zip([0, *ends.tolist()], ends.tolist(), strict=False):
                if end - first > LINE:
                    order[first:end] = clustered(order[first:end], positions, first)
        cdef int64_t[::1] entries = order
        places = numpy.empty(size, numpy.int64)
        places[order] = numpy.arange(size)
        cdef int64_t[::1] place_of = places
        segment.entries = [self.owners[number] for number in order.tolist()]
        segment.subscriptions = <PyObject**> allocate_sparse_zeros((size + 1) * sizeof(PyObject*))
        segment.order = <int32_t*> allocate_sparse_zeros((size + 1) * sizeof(int32_t))
        segment.required = segment.bits(128 * 8 * segment.lines)
        cdef int64_t[::1] hit_of = numpy.searchsorted(self.numbers, numbers)
        cdef uint64_t* whole = <uint64_t*> allocate_sparse_zeros(segment.lines * 64)
        segment.loose = segment.size
        place = 0
        for it in segment.entries:
            it.settle(segment, place)
            segment.subscriptions[place] = <PyObject*> it
            index = entries[place]
            segment.order[place] = <int32_t> hit_of[index]
            segment.keys[hit_of[index]] = <PyObject*> it.key
            segment.numbers[hit_of[index]] = it.number
            if segment.whole[index >> 6] >> (index & 63) & 1:
                whole[place >> 6] |= <uint64_t> 1 << (place & 63)
            if of[index] >= 0:
                point = &segment.points[of[index]]
                if point.last == 0:
                    point.first = place
                point.last = place + 1
                if point.of & 3 == NUMERAL:
                    segment.tables[point.of >> 2].numbers_are_points = True
            elif segment.loose == segment.size:
                segment.loose = place
            place += 1
        free(segment.whole)
        segment.whole = whole
        # What the access point says needs no bits.
        cdef int64_t kept = 0
        for index in range(self.need_count):
            need = &self.needs[index]
            if need.equality and of[need.entry] == self.seats[need.point]:
                continue
            self.needs[kept] = need[0]
            self.needs[kept].entry = <int32_t> place_of[need.entry]
            kept += 1
        self.need_count = kept
        # By table and entry, so that filling goes through memory in order.
        tables, entries_of = numpy.empty(kept, numpy.int64), numpy.empty(kept, numpy.int64)
        cdef int64_t[::1] table_of = tables, entry_of = entries_of, sequence
        for index in range(kept):
            table_of[index] = self.needs[index].table
            entry_of[index] = self.needs[index].entry
        sequence = numpy.lexsort((entries_of, tables))
        cdef Need* ordered = <Need*> allocate_sparse_zeros((kept + 1) * sizeof(Need))
        for index in range(kept):
            ordered[index] = self.needs[sequence[index]]
        free(self.needs)
        self.needs = ordered
        self.need_room = kept + 1
        return 0

    cdef int cut_number_lines(self) except -1:
        """The bounds of each table, at ends of its intervals."""
        cdef Segment segment = self.segment
        cdef Table* table
        cdef Need* need
        cdef int64_t index
        cdef int number, texts
        cdef list ends = [[] for _ in range(segment.table_count)]
        cdef list text_ends = [[] for _ in range(segment.table_count)]
        cdef int64_t low, high
        for number in range(segment.table_count):
            segment.tables[number].buckets = 0
        for index in range(self.need_count):
            need = &self.needs[index]
            segment.tables[need.table].buckets = 1
            if need.leaf.kind == NUMBER:
                if need.leaf.real_low > INT64_MIN:
                    ends[need.table].append(need.leaf.real_low)
                if need.leaf.real_high < INT64_MAX:
                    ends[need.table].append(need.leaf.real_high + 1)
            elif need.leaf.kind == PREFIX:
                beginning(need.leaf, &low, &high)
                text_ends[need.table].append(low)
                text_ends[need.table].append(high + 1)
        for number in range(segment.table_count):
            table = &segment.tables[number]
            table.distinct = table.texts
            texts = 1
            while texts < table.texts and texts < TEXT_BUCKETS:
                texts *= 2
            table.texts = texts if table.texts else 0
            if not table.buckets:
                continue
            table.bounds = bounds_of(ends[number], &table.bound_count)
            table.buckets = first_text_stretch(table)
            if text_ends[number]:
                table.text_bounds = bounds_of(text_ends[number], &table.text_bound_count)
                table.buckets += table.text_bound_count + 1
            table.first = segment.buckets
            segment.buckets += table.buckets
        segment.passed = segment.bits(segment.buckets * segment.bucket_step)
        segment.open = segment.bits(segment.buckets * segment.bucket_step)
        segment.lively = <uint64_t*> allocate_sparse_zeros(<size_t> segment.buckets * segment.words * 8)
        segment.opens = <uint8_t*> allocate_sparse_zeros(segment.buckets)
        segment.share_buckets()
        return 0

    cdef int fill(self) except -1:
        """The bits of every bucket."""
        cdef Segment segment = self.segment
        cdef Table* table
        cdef Need* need
        cdef int64_t index, at, cells = <int64_t> segment.lines * 8
        cdef int number, bucket, line, other, longest = 0
        cdef Point* point
        self.texts_of = {}
        cdef uint64_t* asked = <uint64_t*> allocate_sparse_zeros(segment.table_count * cells * 8)
        cdef uint64_t* row
        cdef int64_t passing
        cdef uint64_t* required
        for index in range(segment.point_room):
            point = &segment.points[index]
            if point.of & 3 == WORD:
                longest = max(longest, <int> point.length)
                self.texts_of.setdefault(point.of >> 2, []).append(index)
        self.name_strange(longest)
        for index in range(self.need_count):
            need = &self.needs[index]
            asked[need.table * cells + (need.entry >> 6)] |= <uint64_t> 1 << (need.entry & 63)
            self.judge(need)
        for number in range(segment.table_count):
            table = &segment.tables[number]
            passing = 0
            for bucket in range(table.buckets):
                for line in range(segment.lines):
                    for other in range(8):
                        if table.open[bucket * cells + line * 8 + other]:
                            table.opens[bucket] = OPEN_TO_PROGRAMS
                    row = table.passed + bucket * cells + line * 8
                    for other in range(8):
                        row[other] |= ~asked[number * cells + line * 8 + other]
                        passing += count_bits(row[other])
                        if row[other]:
                            table.lively[bucket * segment.words + (line >> 3)] |= (
                                <uint64_t> 1 << (8 * (line & 7) + other))
            table.passing = <double> passing / (table.buckets * cells * 64) if table.buckets else 2.0
        free(asked)
        # The most refusing first. Points know their table by its number.
        order = sorted(range(segment.table_count), key=lambda place: (segment.tables[<int> place].passing, place))
        cdef Table* sorted_tables = <Table*> allocate_sparse_zeros((segment.table_count + 1) * sizeof(Table))
        cdef int32_t[::1] place_of = numpy.empty(segment.table_count + 1, numpy.int32)
        for number, former in enumerate(order):
            sorted_tables[number] = segment.tables[<int> former]
            place_of[<int> former] = number
            segment.with_buckets += segment.tables[<int> former].buckets > 0
        free(segment.tables)
        segment.tables = sorted_tables
        for index in range(segment.point_room):
            point = &segment.points[index]
            if point.of:
                point.of = point_kind(place_of[point.of >> 2], point.of & 3)
        for index in range(self.need_count):
            need = &self.needs[index]
            number = need.table = place_of[need.table]
            at = NULL_BUCKET * segment.bucket_step + (need.entry >> 6)
            if not segment.tables[number].passed[at] >> (need.entry & 63) & 1:
                required = required_of(segment.required, need.entry)
                required[number >> 4 & 4] |= <uint64_t> 1 << (number & 63)
        segment.note_tables()
        self.keep_intervals()
        return self.rehash(segment.point_room)          # points hash by their table too

    cdef int name_strange(self, int longest) except -1:
        self.strange_text = b"x" * (longest + 1)
        self.strange.type = STRING
        self.strange.encoding = LATIN1
        self.strange.length = longest + 1
        self.strange.payload.text = <const char*> <bytes> self.strange_text
        return 0

    cdef bint is_interval(self, const Need* need) noexcept nogil:
        """Whether a number that an open stretch has meets it exactly if one interval has its key."""
        return (
            need.table < MOST_ROWS and need.leaf.kind == NUMBER and one_interval(need.leaf)
            and not rejects(need.leaf, need.stop, TRUE) and rejects(need.leaf, need.stop, FALSE))

    cdef int keep_intervals(self) except -1:
        """What the open stretches leave to be asked."""
        cdef Segment segment = self.segment
        cdef const Table* table
        cdef const Need* need
        cdef int64_t index, at, word, rest = 0
        cdef int32_t place, number, k
        cdef uint64_t bit
        cdef Intervals* its
        cdef Interval* interval
        segment.intervals = <Intervals*> segment.bits(segment.size * (sizeof(Intervals) // sizeof(uint64_t)))
        segment.by_intervals = <uint64_t*> allocate_sparse_zeros(segment.lines * 64)
        memset(segment.by_intervals, 0xFF, segment.lines * 64)
        segment.of_intervals = <uint64_t*> allocate_sparse_zeros(segment.lines * 64)
        memcpy(segment.of_intervals, segment.whole, segment.lines * 64)
        for index in range(self.need_count):
            need = &self.needs[index]
            table = &segment.tables[need.table]
            word = need.entry >> 6
            bit = <uint64_t> 1 << (need.entry & 63)
            at = (FIRST_TEXT + table.texts) * segment.bucket_step + word
            if self.is_interval(need):
                segment.intervals[need.entry].count += 1
            elif need.leaf.kind == NUMBER or table.open[at] & bit:
                segment.by_intervals[word] &= ~bit
            if not self.is_interval(need) or table.passed[NULL_BUCKET * segment.bucket_step + word] & bit:
                segment.of_intervals[word] &= ~bit
        for place in range(segment.size):
            its = &segment.intervals[place]
            its.hit = segment.order[place]
            its.rest = rest
            rest += max(0, its.count - SIDE_BY_SIDE)
            its.count = 0                                        # until they are there
            for k in range(SIDE_BY_SIDE):
                its.first[k].low, its.first[k].high = INT64_MIN, INT64_MAX
        segment.more_intervals = <Interval*> allocate_sparse_zeros(rest * sizeof(Interval))
        for index in range(self.need_count):
            need = &self.needs[index]
            if self.is_interval(need):
                its = &segment.intervals[need.entry]
                interval = interval_of(its, segment.more_intervals, its.count)
                its.count += 1
                interval.low = need.leaf.real_low
                interval.high = need.leaf.real_high
                interval.slot = segment.tables[need.table].slot
                segment.tables[need.table].bounded = True
        for number in range(segment.table_count):
            table = &segment.tables[number]
            for at in range(FIRST_TEXT + table.texts, FIRST_TEXT + table.texts + table.bound_count + 1
                            if table.bounded else 0):
                if table.opens[at]:
                    table.opens[at] = OPEN_TO_INTERVALS
        return 0

    cdef int mark(self, const Need* need, int bucket, int count, int possible) except -1:
        """The same verdict in ``count`` buckets; they are REFUSED until marked."""
        cdef Table* table = &self.segment.tables[need.table]
        cdef int verdict = verdict_of(need.leaf, need.stop, possible, self.segment.errors_count)
        cdef Segment segment = self.segment
        cdef int64_t at
        cdef uint64_t bit = <uint64_t> 1 << (need.entry & 63)
        assert bucket + count <= table.buckets
        if verdict == REFUSED and count > 1:
            return 0
        for at in range(bucket, bucket + count):
            at = at * segment.bucket_step + (need.entry >> 9) * segment.line_step + (need.entry >> 6 & 7)
            table.passed[at] = table.passed[at] & ~bit if verdict == REFUSED else table.passed[at] | bit
            table.open[at] = table.open[at] | bit if verdict == OPEN else table.open[at] & ~bit
        return 0

    cdef int truth(self, const Leaf* leaf, const Value* value) except -1:
        cdef Scratch scratch
        memset(&scratch, 0, sizeof(Scratch))
        cdef int truth = leaf_truth(leaf, value, &scratch)
        free_scratch(&scratch)
        return 1 << truth

    cdef int judge(self, const Need* need) except -1:
        """Passed or open, bucket by bucket, by asking the leaf itself what it says of the bucket's values."""
        cdef const Leaf* leaf = need.leaf
        cdef Table* table = &self.segment.tables[need.table]
        cdef int first = FIRST_TEXT + table.texts, bucket, last, strange, numbers, index, own
        cdef int64_t low, high
        cdef Value value
        memset(&value, 0, sizeof(Value))
        value.type = NULL_VALUE
        self.mark(need, NULL_BUCKET, 1, self.truth(leaf, &value))
        self.mark(need, ODD_BUCKET, 1, MAY_BE_FALSE | MAY_BE_TRUE | MAY_BE_UNKNOWN | MAY_RAISE)
        strange = MAY_BE_FALSE | MAY_BE_TRUE if leaf.kind == PREFIX else self.truth(leaf, &self.strange)
        value.type = INT
        value.payload.integer = 0
        numbers = self.truth(leaf, &value)
        value.type = DOUBLE
        value.payload.real = 0.0
        numbers |= self.truth(leaf, &value)
        self.mark(need, STRANGE_BUCKET, 1, strange)
        self.mark(need, FIRST_TEXT, table.texts, strange)
        if leaf.kind == PREFIX:
            self.judge_beginning(need)
        elif table.text_bound_count:
            self.mark(need, first_text_stretch(table), table.text_bound_count + 1, strange)
        if leaf.kind == TEXT or leaf.kind == TEXTS:
            own = MAY_BE_TRUE if leaf.kind == TEXT else self.truth(leaf, &leaf.texts[0])
            for index in range(need.point_count):
                bucket = FIRST_TEXT + (self.point(need, index).code & (table.texts - 1))
                # Of a bucket shared by two texts nobody knows which it is.
                self.mark(need, bucket, 1, own if table.distinct <= table.texts else own | strange)
        if leaf.kind != NUMBER:
            self.mark(need, first, table.bound_count + 1, numbers)
            return 0
        bucket = 0
        last = table.bound_count
        if verdict_of(leaf, need.stop, MAY_BE_FALSE, self.segment.errors_count) == REFUSED:
            # Refused is what they are until marked, so only the stretches that the interval touches count.
            bucket = rank(table.bounds, table.bound_count, min(leaf.real_low, key_of(leaf.low)))
            last = rank(table.bounds, table.bound_count, max(leaf.real_high, key_of(leaf.high)))
        for bucket in range(bucket, last + 1):
            low = table.bounds[bucket - 1] if bucket else INT64_MIN
            high = table.bounds[bucket] - 1 if bucket < table.bound_count else INT64_MAX
            self.mark(need, first + bucket, 1, interval_truths(leaf, low, high))
        return 0

    cdef int judge_beginning(self, const Need* need) except -1:
        """Of a text that begins in some way: one by one if each has a bucket, else by the order of texts."""
        cdef const Leaf* leaf = need.leaf
        cdef Table* table = &self.segment.tables[need.table]
        cdef const Point* point
        cdef uint32_t length = leaf.constant.length
        cdef int64_t low, high, least, most, index
        cdef int bucket
        cdef bint exact = beginning(leaf, &least, &most)
        if table.distinct <= table.texts:
            for index in self.texts_of.get(need.table, ()):
                point = &self.segment.points[index]
                self.mark(
                    need, FIRST_TEXT + point.code, 1,
                    MAY_BE_TRUE if point.length >= length
                    and not memcmp(point.bytes, leaf.constant.payload.text, length) else MAY_BE_FALSE)
        for bucket in range(table.text_bound_count + 1 if table.text_bound_count else 0):
            low = table.text_bounds[bucket - 1] if bucket else INT64_MIN
            high = table.text_bounds[bucket] - 1 if bucket < table.text_bound_count else INT64_MAX
            self.mark(
                need, first_text_stretch(table) + bucket, 1,
                covered(least, most, low, high) | (0 if exact or most < low or least > high else MAY_BE_FALSE))
        return 0


def use_few_lines(int lines):
    """Choose how many lines a small segment has at most, for tests and measurements; return what it was."""
    global few_lines
    former, few_lines = few_lines, lines
    return former


cdef Segment segment_of(list subscriptions, bint errors_count):
    return Builder().build(subscriptions, errors_count)
