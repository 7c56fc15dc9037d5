"""See search.pxd."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from pyengine._engine.arrow cimport Column, Columns, read_cells
from pyengine._engine.bits cimport highest_bit
from pyengine._engine.event cimport Event, Reading
from pyengine._engine.plan cimport as_property
from pyengine._engine.program cimport raised_error
from pyengine._engine.segment cimport Found, Hit, Segment, Subscription, ask
from pyengine._engine.value cimport NULL_VALUE, RAISED, Value

from pyengine.errors import SelectorEvaluationError


cdef enum:
    FEW = 24                 # numbers that are sorted by insertion
    WIDEST_DIGIT = 11        # bits
    TOGETHER = 32            # rows of columns that are read at a time


cdef class Living:
    def __cinit__(self, Segment segment not None):
        self.segment = segment
        self.bits = <uint64_t*> calloc(segment.lines * 8 + 1, sizeof(uint64_t))
        if self.bits == NULL:
            raise MemoryError()
        self.count = segment.members
        memset(self.bits, 0xFF, (segment.size >> 6) * sizeof(uint64_t))
        if segment.size & 63:
            self.bits[segment.size >> 6] = (<uint64_t> 1 << (segment.size & 63)) - 1

    def __dealloc__(self):
        free(self.bits)

    cdef Living own(self):
        cdef Living copy
        if not self.seen:
            return self
        copy = Living.__new__(Living, self.segment)
        memcpy(copy.bits, self.bits, self.segment.lines * 8 * sizeof(uint64_t))
        copy.count = self.count
        return copy

    cdef Living without(self, Subscription gone):
        cdef int32_t place
        cdef Living it = self.own()
        for place in gone.places[:gone.place_count]:
            it.bits[place >> 6] &= ~(<uint64_t> 1 << (place & 63))
        it.count -= 1
        return it

    cdef Living with_one(self, Subscription new):
        cdef int32_t place
        cdef Living it = self.own()
        for place in new.places[:new.place_count]:
            it.bits[place >> 6] |= <uint64_t> 1 << (place & 63)
        it.count += 1
        return it


cdef class Snapshot:
    def __dealloc__(self):
        free(self.segments)
        free(<void*> self.alive)
        free(self.asked)


cdef void sort_found(Found* found, Found* spare) noexcept nogil:
    """By number: by insertion if there are few, else by digits of which there are about as many as numbers."""
    cdef int64_t size = found.size, index, at, digit, total, most = 0
    cdef int shift = 0, width = 0
    cdef int32_t[1 << WIDEST_DIGIT] counts
    cdef Hit held
    if size <= FEW:
        for index in range(1, size):
            held = found.hits[index]
            at = index
            while at > 0 and found.hits[at - 1].number > held.number:
                found.hits[at] = found.hits[at - 1]
                at -= 1
            found.hits[at] = held
        return
    if spare.room < found.room:
        free(spare.hits)
        spare.hits = <Hit*> malloc(found.room * sizeof(Hit))
        spare.room = found.room
        if spare.hits == NULL:
            spare.room = 0
            found.no_memory = True
            return
    for index in range(size):
        most |= found.hits[index].number
    width = min(highest_bit(size) + 1, WIDEST_DIGIT)
    while most >> shift:
        memset(counts, 0, sizeof(int32_t) << width)
        for index in range(size):
            counts[found.hits[index].number >> shift & ((1 << width) - 1)] += 1
        total = 0
        for index in range(1 << width):
            at = counts[index]
            counts[index] = <int32_t> total
            total += at
        for index in range(size):
            digit = found.hits[index].number >> shift & ((1 << width) - 1)
            spare.hits[counts[digit]] = found.hits[index]
            counts[digit] += 1
        memcpy(found.hits, spare.hits, size * sizeof(Hit))
        shift += width


cdef class Search:
    def __cinit__(self, Snapshot snapshot not None):
        self.event = Event(snapshot.reader)
        self.event.reserve(snapshot.widest + 1)
        self.ranges = <int*> malloc((3 * snapshot.most_tables + 2) * sizeof(int))
        self.found.marks = <uint64_t*> calloc(snapshot.most_lines + 1, 8 * sizeof(uint64_t))
        self.found.marked = <uint8_t*> calloc(snapshot.most_lines // 8 + 1, 64)
        self.found.wanted = <uint64_t*> calloc(snapshot.most_lines + 1, 8 * sizeof(uint64_t))
        self.found.wanted_words = <uint64_t*> calloc(snapshot.most_lines // 8 + 1, sizeof(uint64_t))
        if (self.ranges == NULL or self.found.marks == NULL or self.found.marked == NULL
                or self.found.wanted == NULL or self.found.wanted_words == NULL):
            raise MemoryError()

    def __dealloc__(self):
        free(self.ranges)
        free(self.found.hits)
        free(self.found.marks)
        free(self.found.marked)
        free(self.found.wanted)
        free(self.found.wanted_words)
        free(self.spare.hits)

    cdef void find(self, Snapshot snapshot) noexcept nogil:
        cdef int index
        self.found.size = self.found.raised_size = 0
        self.found.no_memory = self.found.unordered = False
        for index in range(snapshot.segment_count):
            (<Segment> snapshot.segments[index]).match(
                self.event, snapshot.alive[index], self.ranges, &self.found)
        for index in range(snapshot.tail_count):
            ask(self.event, snapshot.asked[index], snapshot.errors_count, &self.found)
        if self.found.unordered:
            sort_found(&self.found, &self.spare)

    cdef object refusal(self, Snapshot snapshot, object row):
        cdef int64_t index
        cdef Subscription it
        cdef list raised
        if self.found.no_memory:
            return MemoryError()
        if not self.found.raised_size:
            return None
        raised = []
        for index in range(self.found.room - self.found.raised_size, self.found.room):
            it = <Subscription> self.found.hits[index].key
            raised.append(it)
        raised.sort(key=lambda it: (<Subscription> it).number)
        for it in raised:
            if self.event.ask(it.program, it.slots) == RAISED:
                error = raised_error(it.program, &self.event.scratch, row)
                if snapshot.errors_count or not isinstance(error, SelectorEvaluationError):
                    return error
        return None


cdef class Rows:
    def __dealloc__(self):
        free(self.places)
        free(self.values)
        free(self.at)
        free(self.numbers)
        free(self.offsets)

    def __cinit__(self, Snapshot snapshot not None, Search search not None, int64_t rows):
        self.snapshot = snapshot
        self.search = search
        self.places = <int*> malloc((search.event.count + 1) * sizeof(int))
        self.values = <Value*> calloc(TOGETHER * search.event.count + 1, sizeof(Value))
        self.at = <Reading*> calloc(TOGETHER * search.event.count + 1, sizeof(Reading))
        self.offsets = <int64_t*> calloc(rows + 1, sizeof(int64_t))
        if self.places == NULL or self.values == NULL or self.at == NULL or self.offsets == NULL:
            raise MemoryError()

    cdef int take(self, int64_t row) noexcept nogil:
        """What the search found becomes the answer of a row; -1 without memory."""
        cdef int64_t* larger
        cdef int64_t index, size = self.search.found.size
        if self.size + size > self.room:
            larger = <int64_t*> realloc(self.numbers, max(1024, 2 * (self.room + size)) * sizeof(int64_t))
            if larger == NULL:
                return -1
            self.numbers = larger
            self.room = max(1024, 2 * (self.room + size))
        for index in range(size):
            self.numbers[self.size + index] = self.search.found.hits[index].number
        self.size += size
        self.offsets[row + 1] = self.size
        return 0

    cdef int read(self, Event event, Columns columns, Py_ssize_t batch, int64_t first, int count) noexcept nogil:
        """Rows of a batch, of which there are no more than TOGETHER; -1 without memory."""
        cdef int slot, type, index
        cdef Value* values
        cdef const Column* column
        for slot in range(event.count):
            values = &self.values[slot]
            type = NULL_VALUE
            if self.places[slot] >= 0:
                column = &columns.views[batch * columns.column_count + self.places[slot]]
                read_cells(column, first - columns.starts[batch], count, values, event.count)
                type = column.java_type
            else:
                for index in range(count):
                    values[index * event.count].type = NULL_VALUE
            if event.reader.every_text:
                for index in range(count):
                    if not as_property(event.reader, &values[index * event.count], &event.scratch):
                        return -1
                type = NULL_VALUE
            if event.interpret_rows(slot, type, count, self.values, self.at) < 0:
                return -1
        return 0

    cdef int64_t run(self, Event event, Columns columns, int64_t row, Py_ssize_t batch) noexcept nogil:
        """From ``row`` on, not before ``batch``; returns the row that raised, or the number of rows; -1: no memory."""
        cdef int64_t first
        cdef int count, index
        event.has_objects = False
        while row < columns.row_count:
            while row >= columns.starts[batch + 1]:
                batch += 1
            first = row
            count = <int> min(TOGETHER, columns.starts[batch + 1] - first)
            if self.read(event, columns, batch, first, count) < 0:
                return -1
            for index in range(count):
                row = first + index
                event.values = &self.values[index * event.count]
                event.at = &self.at[index * event.count]
                self.search.find(self.snapshot)
                if self.search.found.raised_size or self.search.found.no_memory:
                    return row
                if self.take(row) < 0:
                    return -1
            row += 1
            if event.scratch.blocks != NULL:
                event.forget()
        return row


cdef list alive_of(Living one):
    cdef int place
    cdef list alive = []
    cdef Subscription it
    for place in range(one.segment.size):
        if one.bits[place >> 6] >> (place & 63) & 1:
            it = one.segment.entries[place]
            if it.places[0] == place:
                alive.append(it)
    return alive
