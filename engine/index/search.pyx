"""See search.pxd."""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from pyengine._engine.lowlevel.memory cimport allocate, allocate_zeros
from pyengine._engine.columns.column_views cimport ColumnViews
from pyengine._engine.lowlevel.bits cimport highest_bit
from pyengine._engine.index.message_view cimport Event, Kinds, Reading
from pyengine._engine.index.bucket_lookup cimport Sought, place_many, place_one
from pyengine._engine.selector.program cimport raised_error
from pyengine._engine.index.segment cimport TOGETHER, Found, Line, Placed, Segment, ask, reserve
from pyengine._engine.index.subscription cimport Subscription
from pyengine._engine.java.value cimport RAISED

from pyengine.errors import SelectorEvaluationError


cdef enum:
    FEW = 24                 # numbers that are sorted by insertion
    WIDEST_DIGIT = 11        # bits


cdef inline void set_first(uint64_t* bits, int count) noexcept nogil:
    memset(bits, 0xFF, (count >> 6) * sizeof(uint64_t))
    if count & 63:
        bits[count >> 6] = (<uint64_t> 1 << (count & 63)) - 1


cdef class Living:
    def __cinit__(self, Segment segment not None):
        self.segment = segment
        self.bits = <uint64_t*> allocate_zeros(segment.alive_lines * 8 + 1, sizeof(uint64_t))
        self.count = segment.members
        set_first(self.bits, segment.size)
        if segment.posted is not None:
            set_first(self.bits + segment.lines * 8, segment.posted.count)

    def __dealloc__(self):
        free(self.bits)

    cdef Living own(self):
        cdef Living copy
        if not self.seen:
            return self
        copy = Living.__new__(Living, self.segment)
        memcpy(copy.bits, self.bits, self.segment.alive_lines * 8 * sizeof(uint64_t))
        copy.count = self.count
        return copy

    cdef Living without(self, Subscription gone):
        cdef Living it = self.own()
        cdef int32_t place = self.segment.first_place(gone.hit)
        while place >= 0:
            it.bits[place >> 6] &= ~(<uint64_t> 1 << (place & 63))
            place = self.segment.place_after(place)
        it.count -= 1
        return it

    cdef Living with_one(self, Subscription new):
        cdef Living it = self.own()
        cdef int32_t place = self.segment.first_place(new.hit)
        while place >= 0:
            it.bits[place >> 6] |= <uint64_t> 1 << (place & 63)
            place = self.segment.place_after(place)
        it.count += 1
        return it


cdef class Snapshot:
    def __dealloc__(self):
        free(self.segments)
        free(<void*> self.alive)
        free(self.asked)


cdef void sort_few(Found* found) noexcept nogil:
    cdef int64_t index, at, number
    cdef PyObject* key = NULL
    for index in range(found.first + 1, found.size):
        number = found.numbers[index]
        if not found.keyless:
            key = found.keys[index]
        at = index
        while at > found.first and found.numbers[at - 1] > number:
            found.numbers[at] = found.numbers[at - 1]
            if not found.keyless:
                found.keys[at] = found.keys[at - 1]
            at -= 1
        found.numbers[at] = number
        if not found.keyless:
            found.keys[at] = key


cdef void sort_found(Found* found) noexcept nogil:
    """The message's, by number: by insertion if they are few, else by digits of which there are about as many as
    numbers, to behind them and back."""
    cdef int64_t size = found.size - found.first, index, at, digit, total, most = 0
    cdef int shift = 0, width = 0
    cdef int32_t[1 << WIDEST_DIGIT] counts
    cdef int64_t* numbers
    cdef PyObject** keys = NULL
    if size <= FEW:
        sort_few(found)
        return
    if not reserve(found, size):
        return
    numbers = found.numbers + found.first
    if not found.keyless:
        keys = found.keys + found.first
    for index in range(size):
        most |= numbers[index]
    width = min(highest_bit(size) + 1, WIDEST_DIGIT)
    while most >> shift:
        memset(counts, 0, sizeof(int32_t) << width)
        for index in range(size):
            counts[numbers[index] >> shift & ((1 << width) - 1)] += 1
        total = 0
        for index in range(1 << width):
            at = counts[index]
            counts[index] = <int32_t> total
            total += at
        for index in range(size):
            digit = numbers[index] >> shift & ((1 << width) - 1)
            at = size + counts[digit]
            counts[digit] += 1
            numbers[at] = numbers[index]
            if not found.keyless:
                keys[at] = keys[index]
        memcpy(numbers, numbers + size, size * sizeof(int64_t))
        if not found.keyless:
            memcpy(keys, keys + size, size * sizeof(PyObject*))
        shift += width


cdef class Search:
    def __cinit__(self, Snapshot snapshot not None):
        self.event = Event(snapshot.reader)
        self.event.reserve(snapshot.widest + 1)
        self.ranges = <int*> allocate((2 * snapshot.most_tables + 2) * sizeof(int))
        self.found.marks = <uint64_t*> allocate_zeros(snapshot.most_lines + 1, 8 * sizeof(uint64_t))
        self.found.marked = <uint8_t*> allocate_zeros(snapshot.most_lines // 8 + 1, 64)
        self.found.wanted = <uint64_t*> allocate_zeros(snapshot.most_lines + 1, 8 * sizeof(uint64_t))
        self.found.wanted_words = <uint64_t*> allocate_zeros(snapshot.most_lines // 8 + 1, sizeof(uint64_t))
        self.found.lines = <Line*> allocate((snapshot.most_lines + 1) * sizeof(Line))
        self.found.searched.codes = <uint32_t*> allocate_zeros(snapshot.most_columns + 1, sizeof(uint32_t))
        self.found.searched.candidates = <uint64_t*> allocate_zeros(snapshot.most_posted // 64 + 1, sizeof(uint64_t))
        self.found.searched.chosen = <int32_t*> allocate((snapshot.most_posted + 1) * sizeof(int32_t))
        cdef int64_t words = snapshot.most_patterns // 64 + 1
        self.found.searched.matched.bits = <uint64_t*> allocate_zeros(words, sizeof(uint64_t))
        self.found.searched.matched.tried = <uint64_t*> allocate_zeros(words, sizeof(uint64_t))
        self.found.searched.matched.ids = <int32_t*> allocate((snapshot.most_patterns + 1) * sizeof(int32_t))
        self.make_room(snapshot, 1)

    def __dealloc__(self):
        self.leave_room()
        free(self.ranges)
        free(self.found.numbers)
        free(self.found.keys)
        free(self.found.raised)
        free(self.found.marks)
        free(self.found.marked)
        free(self.found.wanted)
        free(self.found.wanted_words)
        free(self.found.lines)
        free(self.found.searched.codes)
        free(self.found.searched.candidates)
        free(self.found.searched.chosen)
        free(self.found.searched.matched.bits)
        free(self.found.searched.matched.tried)
        free(self.found.searched.matched.ids)

    cdef void leave_room(self) noexcept:
        free(self.placed)
        free(self.buckets)
        free(self.points)
        free(self.sought)
        free(self.rows)
        free(self.kinds)
        self.placed = NULL
        self.buckets = self.points = NULL
        self.sought = NULL
        self.rows = NULL
        self.kinds = NULL
        self.room = 0

    cdef int make_room(self, Snapshot snapshot, int room) except -1:
        cdef int64_t width = snapshot.most_tables + 1, index, count = <int64_t> room * snapshot.segment_count
        if room <= self.room:
            return 0
        self.leave_room()
        self.placed = <Placed*> allocate_zeros(count + 1, sizeof(Placed))
        self.buckets = <int32_t*> allocate((count + 1) * width * sizeof(int32_t))
        self.points = <int32_t*> allocate((count + 1) * width * sizeof(int32_t))
        self.sought = <Sought*> allocate(width * sizeof(Sought))
        self.rows = <Reading*> allocate_zeros(room * self.event.count + 1, sizeof(Reading))
        self.kinds = <Kinds*> allocate_zeros(self.event.count + 1, sizeof(Kinds))
        for index in range(count):
            self.placed[index].buckets = self.buckets + index * width
            self.placed[index].points = self.points + index * width
        self.room = room
        return 0

    cdef void find(self, Snapshot snapshot) noexcept nogil:
        cdef int index
        for index in range(snapshot.segment_count):
            place_one(
                <Segment> snapshot.segments[index], self.event.at, &self.placed[index * self.room], self.sought)
        self.find_placed(snapshot, 0)

    cdef void find_placed(self, Snapshot snapshot, int message) noexcept nogil:
        cdef int index
        self.found.first = self.found.size
        self.found.raised_size = 0
        self.found.no_memory = self.found.unordered = False
        for index in range(snapshot.segment_count):
            (<Segment> snapshot.segments[index]).match(
                self.event, &self.placed[index * self.room + message], snapshot.alive[index], self.ranges, &self.found)
        for index in range(snapshot.tail_count):
            ask(self.event, snapshot.asked[index], snapshot.errors_count, &self.found)
        if self.found.unordered and not self.found.any_order:
            sort_found(&self.found)

    cdef object refusal(self, Snapshot snapshot, object row):
        cdef int64_t index
        cdef Subscription it
        cdef list raised
        if self.found.no_memory:
            return MemoryError()
        if not self.found.raised_size:
            return None
        raised = []
        for index in range(self.found.raised_size):
            it = <Subscription> self.found.raised[index]
            raised.append(it)
        raised.sort(key=lambda it: (<Subscription> it).number)
        for it in raised:
            if self.event.ask(<PyObject*> it) == RAISED:
                error = raised_error(it.text, &self.event.scratch, row)
                if snapshot.errors_count or not isinstance(error, SelectorEvaluationError):
                    return error
        return None


cdef class Rows:
    def __dealloc__(self):
        free(self.places)

    def __cinit__(self, Snapshot snapshot not None, Search search not None):
        self.snapshot = snapshot
        self.search = search
        self.places = <int*> allocate((search.event.count + 1) * sizeof(int))
        search.make_room(snapshot, TOGETHER)

    cdef int read(self, Event event, ColumnViews columns, Py_ssize_t batch, int64_t first, int count) noexcept nogil:
        """Rows of a batch, of which there are no more than TOGETHER; -1 without memory."""
        cdef int slot, index
        for slot in range(event.count):
            event.cells[slot] = NULL
            if self.places[slot] >= 0:
                event.cells[slot] = &columns.views[batch * columns.column_count + self.places[slot]]
            if event.interpret_rows(
                    slot, first, count, self.search.rows + slot * TOGETHER, &self.search.kinds[slot]) < 0:
                return -1
        for index in range(self.snapshot.segment_count):
            place_many(
                <Segment> self.snapshot.segments[index], self.search.rows, TOGETHER, self.search.kinds, count,
                &self.search.placed[index * TOGETHER], self.search.sought)
        return 0

    cdef int64_t run(
        self, Event event, ColumnViews columns, int64_t row, Py_ssize_t batch, int64_t* ends
    ) noexcept nogil:
        """From ``row`` on, not before ``batch``; returns the row that raised, or the number of rows; -1: no memory.
        ends[row]: where the numbers of the row end."""
        cdef int64_t first, begin = row, size = self.search.found.size
        cdef int count, index
        event.has_objects = False
        event.step = TOGETHER
        while row < columns.row_count:
            while row >= columns.starts[batch + 1]:
                batch += 1
            first = row - columns.starts[batch]
            count = <int> min(TOGETHER, columns.starts[batch + 1] - row)
            if self.read(event, columns, batch, first, count) < 0:
                return -1
            for index in range(count):
                event.row = first + index
                event.row_number += 1
                event.at = self.search.rows + index
                self.search.find_placed(self.snapshot, index)
                ends[row] = self.search.found.size
                if self.search.found.raised_size or self.search.found.no_memory:
                    return row
                row += 1
            self.search.found.expected = size + <int64_t> (
                1.1 * (self.search.found.size - size) / (row - begin) * (columns.row_count - begin))
            if event.scratch.blocks != NULL:
                event.forget()
        return row


cdef list alive_of(Living one):
    cdef int32_t hit, place
    cdef list alive = []
    for hit in range(one.segment.hit_count()):
        place = one.segment.first_place(hit)
        if one.bits[place >> 6] >> (place & 63) & 1 and one.segment.at_hit(hit) != NULL:
            alive.append(<Subscription> one.segment.at_hit(hit))
    return alive
