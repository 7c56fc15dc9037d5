# cython: freethreading_compatible=True
"""How a segment is made of subscriptions; see segment_builder.pxd."""

from cpython.object cimport PyObject
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from pyengine._engine.lowlevel.memory cimport allocate_sparse_zeros
from pyengine._engine.lowlevel.bits cimport count_bits
from pyengine._engine.index.bucket_verdicts cimport bucket_verdicts_of
from pyengine._engine.index.constants cimport Point, point_kind
from pyengine._engine.index.message_view cimport NUMERAL, WORD
from pyengine._engine.index.requirement_list cimport Requirement, RequirementList, requirement_list_of
from pyengine._engine.selector.program cimport NUMBER, PREFIX
from pyengine._engine.index.requirements cimport MOST_BRANCHES, rejects
from pyengine._engine.index.postings cimport Postings
from pyengine._engine.index.postings_builder cimport PostingsBuilder
from pyengine._engine.index.segment cimport (
    FIRST_TEXT,
    LINE,
    MOST_ROWS,
    NULL_BUCKET,
    OPEN_TO_INTERVALS,
    OPEN_TO_PROGRAMS,
    SIDE_BY_SIDE,
    Interval,
    Intervals,
    Segment,
    Table,
    first_text_stretch,
    interval_of,
    required_of,
)
from pyengine._engine.index.partitions cimport beginning, bounds_of, one_interval
from pyengine._engine.index.selectivity cimport SAMPLE, Selectivity
from pyengine._engine.index.subscription cimport Subscription
from pyengine._engine.java.value cimport FALSE, TRUE

import numpy

from pyengine._engine.index.entry_order import clustered, positions_of

cdef enum:
    TEXT_BUCKETS = 256
    FEW_LINES = 4            # of a small segment, at most
    PIECE = 64               # subscriptions or requirements between which a building gives way
    LARGE_PIECE = 2048       # of those for which little is done
    FEW_TABLES = 64          # whose requirements are put in order one table after another

cdef int few_lines = FEW_LINES


cdef class SegmentBuilder:
    """One building of a segment; see segment_builder.pxd."""

    def __dealloc__(self):
        free(self.firsts)
        free(self.stops)
        free(self.asked)
        free(self.whole)
        free(self.sorted)

    cdef Segment build(self, list subscriptions, bint errors_count):
        for _ in self.steps(subscriptions, errors_count):
            pass
        self.segment.adopt()
        return self.segment

    def steps(self, list subscriptions, bint errors_count):
        """Builds ``segment`` piece by piece, and gives way between the pieces."""
        cdef Selectivity selectivity = Selectivity()
        cdef PostingsBuilder lists = PostingsBuilder()
        cdef Segment segment = Segment()
        cdef Subscription it
        cdef list others = []
        cdef Py_ssize_t index, at = 0
        cdef int leaves = 1
        self.segment = segment
        self.requirements = requirement_list_of(segment, False)
        segment.members = <int> len(subscriptions)
        segment.errors_count = errors_count
        selectivity.begin_sample(len(subscriptions))
        for index in range(0, len(subscriptions), max(1, len(subscriptions) // SAMPLE)):
            it = subscriptions[index]
            selectivity.take(&it.graph)
            at += 1
            if at % PIECE == 0:
                yield
        selectivity.end_sample()
        yield
        lists.begin(selectivity, errors_count)
        for index in range(len(subscriptions)):
            it = subscriptions[index]
            segment.needs_gil |= it.graph.needs_gil
            segment.widest = max(segment.widest, it.widest())
            leaves = max(leaves, it.graph.count)
            if not lists.take(it):
                others.append(it)
            if index % PIECE == PIECE - 1:
                yield
        self.requirements.reserve_leaves(leaves)
        self.owners = []
        self.firsts = <int32_t*> allocate_sparse_zeros((MOST_BRANCHES * len(others) + 1) * sizeof(int32_t))
        self.stops = <int32_t*> allocate_sparse_zeros((MOST_BRANCHES * len(others) + 1) * sizeof(int32_t))
        for index in range(len(others)):
            self.make_entries(others[index])
            if index % LARGE_PIECE == LARGE_PIECE - 1:
                yield
        segment.size = <int> len(self.owners)
        segment.lines = (segment.size + LINE - 1) // LINE
        segment.words = (segment.lines + 7) // 8
        segment.bucket_step = <int64_t> segment.lines * 8
        segment.line_step = 8
        segment.whole = <uint64_t*> allocate_sparse_zeros(segment.lines * 64)
        segment.is_small = segment.lines <= few_lines
        yield
        for index in range(segment.size):
            self.requirements.collect(
                self.owners[index], <int32_t> index, self.firsts[index], self.stops[index])
            if index % PIECE == PIECE - 1:
                yield
        lists.lay_columns()
        yield
        for index in range(lists.made.count):
            lists.lay_place(<int> index)
            if index % PIECE == PIECE - 1:
                yield
        if lists.made.count:
            lists.lay_lists()
            segment.posted = lists.made
        yield
        self.number_members(subscriptions)
        yield
        if segment.posted is not None:
            self.number_posted(lists)
            yield
        yield from self.choose_order()
        yield from self.cut_number_lines()
        self.begin_buckets()
        yield
        for at in range(0, self.requirements.size, PIECE):
            self.judge(at, min(at + PIECE, self.requirements.size))
            yield
        for index in range(segment.table_count):
            self.fill_table(<int> index)
            yield
        self.sort_tables()
        yield
        yield from self.keep_intervals()
        self.requirements.rehash(segment.point_room)     # the hash of a point depends on its table's number
        yield
        segment.own()

    cdef int number_members(self, list subscriptions) except -1:
        """The hits, in the order of addition."""
        cdef Segment segment = self.segment
        numbers = numpy.array([(<Subscription> each).number for each in subscriptions], numpy.int64)
        self.numbers = numpy.sort(numbers)
        segment.hit_lines = (segment.members + LINE - 1) // LINE
        segment.alive_lines = segment.lines
        segment.consecutive = segment.members > 0 and (
            self.numbers[segment.members - 1] - self.numbers[0] + 1 == segment.members)
        segment.numbers = <int64_t*> allocate_sparse_zeros((segment.members + 1) * sizeof(int64_t))
        segment.keys = <PyObject**> allocate_sparse_zeros((segment.members + 1) * sizeof(PyObject*))
        segment.first_places = <int32_t*> allocate_sparse_zeros((segment.members + 1) * sizeof(int32_t))
        return 0

    cdef int number_posted(self, PostingsBuilder lists) except -1:
        """The hits of what is posted."""
        cdef Segment segment = self.segment
        cdef Postings posted = segment.posted
        cdef Subscription subscription
        cdef int64_t hit
        cdef int place
        segment.alive_lines += (posted.count + LINE - 1) // LINE
        posted.hits = <int32_t*> allocate_sparse_zeros((posted.count + 1) * sizeof(int32_t))
        posted.members = <PyObject**> allocate_sparse_zeros((posted.count + 1) * sizeof(PyObject*))
        members = lists.posted + lists.scanned
        cdef int64_t[::1] hits = numpy.searchsorted(
            self.numbers, numpy.array([(<Subscription> each).number for each in members], numpy.int64))
        for place in range(posted.count):
            subscription = members[place]
            hit = hits[place]
            segment.first_places[hit] = segment.lines * LINE + place
            posted.hits[place] = <int32_t> hit
            posted.members[place] = <PyObject*> subscription
            segment.numbers[hit] = subscription.number
            segment.keys[hit] = subscription.key
        return 0

    cdef int make_entries(self, Subscription subscription) except -1:
        """The entries: an OR is one for each branch if every branch can be indexed."""
        cdef int32_t[MOST_BRANCHES + 1] bounds
        cdef int branch, count = self.requirements.branches_of(subscription, bounds)
        cdef int entry = <int> len(self.owners)
        self.branching |= count > 1
        for branch in range(count):
            self.owners.append(subscription)
            self.firsts[entry + branch] = bounds[branch]
            self.stops[entry + branch] = bounds[branch + 1]
        return 0

    cdef object point_uses(self):
        """How many requirements name each point, by its place."""
        cdef RequirementList requirements = self.requirements
        return numpy.bincount(
            numpy.asarray(<int64_t[:requirements.point_count]> requirements.points) if requirements.point_count
            else numpy.empty(0, numpy.int64),
            minlength=self.segment.point_room)

    def choose_order(self):
        """Entries by access point; many of one, and those without, in clusters."""
        cdef Segment segment = self.segment
        cdef int64_t index, size = segment.size
        cdef Requirement* requirement
        cdef Point* point
        cdef Subscription subscription
        cdef int32_t place = 0, hit
        access = numpy.full(size, -1, numpy.int64)
        rarest = numpy.full(size, 2**31 - 1, numpy.int64)
        cdef int64_t[::1] access_of = access, least = rarest, uses = self.point_uses()
        cdef int64_t low, high, point_place
        numeric = numpy.empty(self.requirements.size, bool)
        cdef uint8_t[::1] is_numeric = numeric.view(numpy.uint8)
        columns = numpy.empty((4, self.requirements.size), numpy.int64)
        cdef int64_t[:, ::1] column = columns
        for index in range(self.requirements.size):
            requirement = &self.requirements.at[index]
            is_numeric[index] = requirement.leaf.kind == NUMBER
            column[0, index] = requirement.entry
            column[1, index] = requirement.table
            low, high = requirement.leaf.real_low, requirement.leaf.real_high
            column[2, index] = low == INT64_MIN
            column[3, index] = high if low == INT64_MIN else low
            if requirement.equality and not segment.is_small:
                point_place = self.requirements.points[requirement.first_point]
                if uses[point_place] < least[requirement.entry]:
                    least[requirement.entry] = uses[point_place]
                    access_of[requirement.entry] = point_place
            if index % (4 * LARGE_PIECE) == 4 * LARGE_PIECE - 1:
                yield
        askers, tables, upper, bounds = columns[:, numeric]
        numbers = numpy.array([(<Subscription> each).number for each in self.owners], numpy.int64)
        if segment.is_small:
            order = numpy.argsort(numbers, kind="stable")
            segment.in_order = size == segment.members and segment.posted is None
        else:
            yield
            positions = yield from positions_of(size, askers, tables, upper, bounds)
            yield
            order = numpy.argsort(numpy.where(access < 0, 2**62, access), kind="stable")
            yield
            ends = numpy.flatnonzero(numpy.diff(access[order], append=-2)) + 1
            for first, end in zip([0, *ends.tolist()], ends.tolist(), strict=False):
                place += 1
                if place % LARGE_PIECE == 0:
                    yield
                if end - first > LINE:
                    order[first:end] = yield from clustered(order[first:end], positions, first)
        cdef int64_t[::1] entries = order
        places = numpy.empty(size, numpy.int64)
        places[order] = numpy.arange(size)
        cdef int64_t[::1] place_of = places
        yield
        segment.subscriptions = <PyObject**> allocate_sparse_zeros((size + 1) * sizeof(PyObject*))
        segment.order = <int32_t*> allocate_sparse_zeros((size + 1) * sizeof(int32_t))
        segment.required = segment.bits(128 * 8 * segment.lines)
        yield
        cdef int64_t[::1] hit_of = numpy.searchsorted(self.numbers, numbers)
        yield
        self.whole = <uint64_t*> allocate_sparse_zeros(segment.lines * 64)
        segment.loose = segment.size
        if self.branching:
            segment.next_places = <int32_t*> allocate_sparse_zeros((segment.lines * LINE + 1) * sizeof(int32_t))
            memset(segment.next_places, 0xFF, segment.lines * LINE * sizeof(int32_t))
        for place in range(segment.size - 1, -1, -1):        # so that the first place of each is written last
            hit = <int32_t> hit_of[entries[place]]
            if segment.keys[hit] != NULL:
                segment.next_places[place] = segment.first_places[hit]
            segment.first_places[hit] = place
            subscription = self.owners[entries[place]]
            segment.keys[hit] = subscription.key
            segment.numbers[hit] = subscription.number
            if place % LARGE_PIECE == 0:
                yield
        for place in range(segment.size):
            if place % LARGE_PIECE == LARGE_PIECE - 1:
                yield
            index = entries[place]
            segment.subscriptions[place] = <PyObject*> self.owners[index]
            segment.order[place] = <int32_t> hit_of[index]
            if segment.whole[index >> 6] >> (index & 63) & 1:
                self.whole[place >> 6] |= <uint64_t> 1 << (place & 63)
            if access_of[index] >= 0:
                point = &segment.points[access_of[index]]
                if point.last == 0:
                    point.first = place
                point.last = place + 1
                if point.of & 3 == NUMERAL:
                    segment.tables[point.of >> 2].numbers_are_points = True
            elif segment.loose == segment.size:
                segment.loose = place
        self.whole, segment.whole = segment.whole, self.whole
        yield
        self.drop_access_requirements(&access_of[0] if size else NULL, &place_of[0] if size else NULL)
        yield
        yield from self.sort_requirements()

    cdef int drop_access_requirements(self, const int64_t* access, const int64_t* place_of) except -1:
        """The requirement that an entry's access point answers needs no bits; the others get the entry's place."""
        cdef RequirementList requirements = self.requirements
        cdef Requirement* requirement
        cdef int64_t index, kept = 0
        for index in range(requirements.size):
            requirement = &requirements.at[index]
            if requirement.equality and access[requirement.entry] == requirements.points[requirement.first_point]:
                continue
            requirements.at[kept] = requirement[0]
            requirements.at[kept].entry = <int32_t> place_of[requirement.entry]
            kept += 1
        requirements.size = kept
        return 0

    def sort_requirements(self):
        """By table and entry, so that filling goes through memory in order."""
        cdef RequirementList requirements = self.requirements
        cdef int64_t index, size = requirements.size
        tables, entries = numpy.empty(size, numpy.int64), numpy.empty(size, numpy.int64)
        cdef int64_t[::1] table_of = tables, entry_of = entries, sequence
        cdef int64_t at = 0
        for index in range(size):
            table_of[index] = requirements.at[index].table
            entry_of[index] = requirements.at[index].entry
        self.sorted = <Requirement*> allocate_sparse_zeros((size + 1) * sizeof(Requirement))
        yield
        parts = self.segment.table_count if self.segment.table_count <= FEW_TABLES else 1
        for number in range(parts):
            if parts > 1:
                chosen = numpy.flatnonzero(tables == number)
                sequence = chosen[numpy.argsort(entries[chosen])]
            else:
                sequence = numpy.argsort(tables * numpy.int64(self.segment.size + 1) + entries)
            for index in range(len(sequence)):
                self.sorted[at] = requirements.at[sequence[index]]
                at += 1
            yield
        self.sorted, requirements.at = requirements.at, self.sorted
        requirements.room = size + 1

    def cut_number_lines(self):
        """The bounds of each table, at ends of its intervals."""
        cdef Segment segment = self.segment
        cdef Table* table
        cdef Requirement* requirement
        cdef int64_t index
        cdef int number, texts
        cdef list ends = [[] for _ in range(segment.table_count)]
        cdef list text_ends = [[] for _ in range(segment.table_count)]
        cdef int64_t low, high
        for number in range(segment.table_count):
            segment.tables[number].buckets = 0
        for index in range(self.requirements.size):
            requirement = &self.requirements.at[index]
            segment.tables[requirement.table].buckets = 1
            if requirement.leaf.kind == NUMBER:
                if requirement.leaf.real_low > INT64_MIN:
                    ends[requirement.table].append(requirement.leaf.real_low)
                if requirement.leaf.real_high < INT64_MAX:
                    ends[requirement.table].append(requirement.leaf.real_high + 1)
            elif requirement.leaf.kind == PREFIX:
                beginning(requirement.leaf, &low, &high)
                text_ends[requirement.table].append(low)
                text_ends[requirement.table].append(high + 1)
            if index % (8 * PIECE) == 0:
                yield
        for number in range(segment.table_count):
            table = &segment.tables[number]
            table.distinct = table.texts
            texts = 1
            while texts < table.texts and texts < TEXT_BUCKETS:
                texts *= 2
            table.texts = texts if table.texts else 0
            if not table.buckets:
                continue
            yield
            table.bounds = bounds_of(numpy.array(ends[number], numpy.int64), &table.bound_count)
            table.buckets = first_text_stretch(table)
            if text_ends[number]:
                table.text_bounds = bounds_of(numpy.array(text_ends[number], numpy.int64), &table.text_bound_count)
                table.buckets += table.text_bound_count + 1
            table.first = segment.buckets
            segment.buckets += table.buckets
        segment.passed = segment.bits(segment.buckets * segment.bucket_step)
        segment.open = segment.bits(segment.buckets * segment.bucket_step)
        segment.lively = <uint64_t*> allocate_sparse_zeros(<size_t> segment.buckets * segment.words * 8)
        segment.opens = <uint8_t*> allocate_sparse_zeros(segment.buckets)
        segment.share_buckets()

    cdef int begin_buckets(self) except -1:
        cdef Segment segment = self.segment
        cdef const Point* point
        cdef int64_t index
        cdef int longest = 0
        self.asked = <uint64_t*> allocate_sparse_zeros(<size_t> segment.table_count * segment.lines * 64)
        for index in range(segment.point_room):
            point = &segment.points[index]
            if point.of & 3 == WORD:
                longest = max(longest, <int> point.length)
        self.verdicts = bucket_verdicts_of(segment, self.requirements, longest)
        return 0

    cdef int judge(self, int64_t first, int64_t last) except -1:
        """The verdicts of some requirements."""
        cdef const Requirement* requirement
        cdef int64_t index, cells = <int64_t> self.segment.lines * 8
        for index in range(first, last):
            requirement = &self.requirements.at[index]
            self.asked[requirement.table * cells + (requirement.entry >> 6)] |= (
                <uint64_t> 1 << (requirement.entry & 63))
            self.verdicts.judge(requirement)
        return 0

    cdef int fill_table(self, int number) except -1:
        """The bits of every bucket of a table that are of no requirement; what is known of its buckets."""
        cdef Segment segment = self.segment
        cdef Table* table = &segment.tables[number]
        cdef int64_t cells = <int64_t> segment.lines * 8, passing = 0
        cdef int bucket, line, word
        cdef uint64_t* row
        for bucket in range(table.buckets):
            for line in range(segment.lines):
                for word in range(8):
                    if table.open[bucket * cells + line * 8 + word]:
                        table.opens[bucket] = OPEN_TO_PROGRAMS
                row = table.passed + bucket * cells + line * 8
                for word in range(8):
                    row[word] |= ~self.asked[number * cells + line * 8 + word]
                    passing += count_bits(row[word])
                    if row[word]:
                        table.lively[bucket * segment.words + (line >> 3)] |= (
                            <uint64_t> 1 << (8 * (line & 7) + word))
        table.passing = <double> passing / (table.buckets * cells * 64) if table.buckets else 2.0
        return 0

    cdef int sort_tables(self) except -1:
        """The most refusing first."""
        cdef Segment segment = self.segment
        cdef Requirement* requirement
        cdef int64_t index, at
        cdef int number
        cdef Point* point
        cdef uint64_t* required
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
        for index in range(self.requirements.size):
            requirement = &self.requirements.at[index]
            number = requirement.table = place_of[requirement.table]
            at = NULL_BUCKET * segment.bucket_step + (requirement.entry >> 6)
            if not segment.tables[number].passed[at] >> (requirement.entry & 63) & 1:
                required = required_of(segment.required, requirement.entry)
                required[number >> 4 & 4] |= <uint64_t> 1 << (number & 63)
        segment.note_tables()
        return 0

    cdef bint is_interval(self, const Requirement* requirement) noexcept nogil:
        """Whether a number that an open stretch has meets it exactly if one interval has its key."""
        return (
            requirement.table < MOST_ROWS and requirement.leaf.kind == NUMBER and one_interval(requirement.leaf)
            and not rejects(requirement.leaf, requirement.stop, TRUE)
            and rejects(requirement.leaf, requirement.stop, FALSE))

    def keep_intervals(self):
        """What the open stretches leave to be asked."""
        cdef Segment segment = self.segment
        cdef const Table* table
        cdef const Requirement* requirement
        cdef int64_t index, at, word, rest = 0
        cdef int32_t place, number, k
        cdef uint64_t bit
        cdef Intervals* intervals
        cdef Interval* interval
        segment.intervals = <Intervals*> segment.bits(segment.size * (sizeof(Intervals) // sizeof(uint64_t)))
        segment.by_intervals = <uint64_t*> allocate_sparse_zeros(segment.lines * 64)
        memset(segment.by_intervals, 0xFF, segment.lines * 64)
        segment.of_intervals = <uint64_t*> allocate_sparse_zeros(segment.lines * 64)
        memcpy(segment.of_intervals, segment.whole, segment.lines * 64)
        for index in range(self.requirements.size):
            if index % LARGE_PIECE == LARGE_PIECE - 1:
                yield
            requirement = &self.requirements.at[index]
            table = &segment.tables[requirement.table]
            word = requirement.entry >> 6
            bit = <uint64_t> 1 << (requirement.entry & 63)
            at = (FIRST_TEXT + table.texts) * segment.bucket_step + word
            if self.is_interval(requirement):
                segment.intervals[requirement.entry].count += 1
            elif requirement.leaf.kind == NUMBER or table.open[at] & bit:
                segment.by_intervals[word] &= ~bit
            if not self.is_interval(requirement) or table.passed[NULL_BUCKET * segment.bucket_step + word] & bit:
                segment.of_intervals[word] &= ~bit
        yield
        for place in range(segment.size):
            if place % LARGE_PIECE == LARGE_PIECE - 1:
                yield
            intervals = &segment.intervals[place]
            intervals.hit = segment.order[place]
            intervals.rest = rest
            rest += max(0, intervals.count - SIDE_BY_SIDE)
            intervals.count = 0                                        # counted again as they are written
            for k in range(SIDE_BY_SIDE):
                intervals.first[k].low, intervals.first[k].high = INT64_MIN, INT64_MAX
        yield
        segment.more_intervals = <Interval*> allocate_sparse_zeros(rest * sizeof(Interval))
        for index in range(self.requirements.size):
            if index % LARGE_PIECE == LARGE_PIECE - 1:
                yield
            requirement = &self.requirements.at[index]
            if self.is_interval(requirement):
                intervals = &segment.intervals[requirement.entry]
                interval = interval_of(intervals, segment.more_intervals, intervals.count)
                intervals.count += 1
                interval.low = requirement.leaf.real_low
                interval.high = requirement.leaf.real_high
                interval.slot = segment.tables[requirement.table].slot
                segment.tables[requirement.table].bounded = True
        yield
        for number in range(segment.table_count):
            table = &segment.tables[number]
            for at in range(FIRST_TEXT + table.texts, FIRST_TEXT + table.texts + table.bound_count + 1
                            if table.bounded else 0):
                if table.opens[at]:
                    table.opens[at] = OPEN_TO_INTERVALS


def use_few_lines(int lines):
    """Choose how many lines a small segment has at most, for tests and measurements; return what it was."""
    global few_lines
    former, few_lines = few_lines, lines
    return former


cdef Segment segment_of(list subscriptions, bint errors_count):
    return SegmentBuilder().build(subscriptions, errors_count)
