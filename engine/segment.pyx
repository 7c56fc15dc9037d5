# cython: freethreading_compatible=True
"""See segment.pxd."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp

from pyengine._engine.bits cimport count_bits, lowest_bit
from pyengine._engine.event cimport NOTHING, NUMERAL, WORD, Event, Reading, number_hash
from pyengine._engine.requirements cimport OPEN, PASSED, REFUSED
from pyengine._engine.value cimport FUNCTION_FAILED, NO_MEMORY, RAISED, TRUE, free_scratch

cdef enum:
    FEW = 1                  # entries of one access point that are asked one by one


cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__)
    #define PYENGINE_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
    #else
    #define PYENGINE_CLONES
    #endif
    /* line &= every row's line, until nothing is left; whether something is. */
    PYENGINE_CLONES
    static int pyengine_narrow(uint64_t *line, const uint64_t *const *rows, int count, int64_t at) {
        uint64_t left = 0;
        int i, k;
        for (i = 0; i + 4 <= count; i += 4) {  /* whether something is left is asked after every fourth row */
            const uint64_t *a = rows[i] + at, *b = rows[i + 1] + at, *c = rows[i + 2] + at, *d = rows[i + 3] + at;
            left = 0;
            for (k = 0; k < 8; k++) {
                line[k] &= a[k] & b[k] & c[k] & d[k];
                left |= line[k];
            }
            if (!left) return 0;
        }
        for (; i < count; i++) {
            const uint64_t *row = rows[i] + at;
            for (k = 0; k < 8; k++) line[k] &= row[k];
        }
        left = 0;
        for (k = 0; k < 8; k++) left |= line[k];
        return left != 0;
    }
    /* line |= every row's line */
    PYENGINE_CLONES
    static void pyengine_widen(uint64_t *line, const uint64_t *const *rows, int count, int64_t at) {
        int i, k;
        for (i = 0; i < count; i++) {
            const uint64_t *row = rows[i] + at;
            for (k = 0; k < 8; k++) line[k] |= row[k];
        }
    }
    """
    bint pyengine_narrow(uint64_t* line, const Row* rows, int count, int64_t at) noexcept nogil
    void pyengine_widen(uint64_t* line, const Row* rows, int count, int64_t at) noexcept nogil


cdef class Subscription:
    """One key with its selector; see segment.pxd."""

    def __dealloc__(self):
        free(self.slots)
        free(self.places)

    cdef int settle(self, Segment segment, int32_t place) except -1:
        cdef int32_t* larger
        if self.segment is not segment:
            self.segment = segment
            self.place_count = 0
        larger = <int32_t*> realloc(self.places, (self.place_count + 1) * sizeof(int32_t))
        if larger == NULL:
            raise MemoryError()
        larger[self.place_count] = place
        self.places = larger
        self.place_count += 1
        return 0


cdef bint grow(Found* found) noexcept nogil:
    cdef int64_t room = 64 if found.room == 0 else 2 * found.room, index
    cdef int64_t* numbers = <int64_t*> realloc(found.numbers, room * sizeof(int64_t))
    cdef PyObject** keys
    if numbers == NULL:
        return False
    found.numbers = numbers
    keys = <PyObject**> realloc(<void*> found.keys, room * sizeof(PyObject*))
    if keys == NULL:
        return False
    found.keys = keys
    for index in range(1, found.raised_size + 1):
        numbers[room - index] = numbers[found.room - index]
        keys[room - index] = keys[found.room - index]
    found.room = room
    return True


cdef inline void add(Found* found, int64_t number, PyObject* key, bint raised) noexcept nogil:
    cdef int64_t place
    if found.size + found.raised_size == found.room and not grow(found):
        found.no_memory = True
        return
    if raised:
        found.raised_size += 1
        place = found.room - found.raised_size
    else:
        place = found.size
        found.size += 1
    found.numbers[place] = number
    found.keys[place] = key


cdef void ask(Event event, PyObject* subscription, bint errors_count, Found* found) noexcept nogil:
    cdef int truth = event.ask((<Subscription> subscription).program, (<Subscription> subscription).slots)
    cdef int problem
    if truth == TRUE:
        add(found, (<Subscription> subscription).number, <PyObject*> (<Subscription> subscription).key, False)
    elif truth == RAISED:
        problem = event.scratch.problem
        if errors_count or problem == FUNCTION_FAILED or problem == NO_MEMORY:
            add(found, (<Subscription> subscription).number, subscription, True)


cdef inline int verdict_between(const Look* look, int64_t at, int64_t word, uint64_t bit) noexcept nogil:
    """What the intervals say of an open entry; ``at``: its word in ``between``, ``word``: its word in ``bounded``."""
    cdef int number
    cdef const Table* table
    cdef const Interval* interval
    for number in range(look.bounded_count):
        if look.between[number][at] & bit:
            table = look.bounded[number]
            if not table.bounded[word] & bit:
                return OPEN
            interval = &table.intervals[table.earlier[word] + count_bits(table.bounded[word] & (bit - 1))]
            if not interval.low <= look.key[number] <= interval.high:
                return REFUSED
    return PASSED


cdef class Segment:
    """An index over subscriptions; see segment.pxd. Made by building.segment_of."""

    def __dealloc__(self):
        cdef int number
        for number in range(self.table_count):
            if not self.shares:
                free(self.tables[number].bounds)
                free(self.tables[number].text_bounds)
            if not self.shares or number == 0:      # of an annex the first has the memory of all
                free(self.tables[number].passed)
                free(self.tables[number].open)
            free(self.tables[number].lively)
            free(self.tables[number].opens)
            free(self.tables[number].bounded)
            free(self.tables[number].earlier)
            free(self.tables[number].intervals)
        free(self.tables)
        if not self.shares:
            free(self.points)
        free(self.subscriptions)
        free(self.keys)
        free(self.numbers)
        free(self.whole)
        free_scratch(&self.scratch)

    cdef Point* seek(self, int table, int kind, uint64_t hash, const uint8_t* bytes, uint32_t length) noexcept nogil:
        """The seat of a point, or the empty one where it would sit."""
        cdef uint64_t mask = self.point_room - 1
        cdef uint64_t place = (hash + <uint64_t> table * <uint64_t> 0x9E3779B97F4A7C15) & mask
        cdef Point* point
        while True:
            point = &self.points[place]
            if point.kind == NOTHING:
                return point
            if (point.hash == hash and point.table == table and point.kind == kind and point.length == length
                    and not memcmp(point.bytes, bytes, length)):
                return point
            place = (place + 1) & mask

    cdef void match(self, Event event, const uint64_t* alive, int* buckets, Found* found) noexcept nogil:
        cdef int number, place
        cdef int* seats = buckets + self.table_count
        cdef const Table* table
        cdef const Reading* reading
        cdef const Point* point
        cdef Look look
        cdef bint ordinary = not event.has_objects
        for number in range(self.table_count):
            table = &self.tables[number]
            reading = &event.at[table.slot]
            seats[number] = -1
            if reading.kind == NUMERAL:
                buckets[number] = FIRST_TEXT + table.texts + (
                    rank(table.bounds, table.steps, table.bound_count, reading.key) if table.steps else 0)
                if table.numbers_are_points:
                    point = self.seek(
                        number, NUMERAL, number_hash(reading.key), <const uint8_t*> &reading.key, 8)
                    if point.kind != NOTHING:
                        seats[number] = <int> (point - self.points)
            elif reading.kind == WORD:
                buckets[number] = STRANGE_BUCKET
                if table.texts:
                    point = self.seek(number, WORD, reading.hash, reading.bytes, reading.length)
                    if point.kind != NOTHING:
                        buckets[number] = FIRST_TEXT + (point.code & (table.texts - 1))
                        seats[number] = <int> (point - self.points)
                if table.text_bound_count and buckets[number] == STRANGE_BUCKET:
                    buckets[number] = first_text_stretch(table) + rank(
                        table.text_bounds, table.text_steps, table.text_bound_count,
                        text_key(reading.bytes, reading.length, 0))
            elif reading.kind == NOTHING:
                buckets[number] = NULL_BUCKET
            else:
                buckets[number] = ODD_BUCKET
                if table.numbers_are_points:
                    ordinary = False
        if not ordinary:
            for place in range(self.size):
                if alive[place >> 6] >> (place & 63) & 1:
                    ask(event, self.subscriptions[place], self.errors_count, found)
            return
        self.look(event, buckets, &look)
        if self.loose < self.size:
            self.scan(event, alive, &look, self.loose, self.size, found)
        if self.loose == 0:
            return                   # no entry has an access point
        for number in range(self.table_count):
            if seats[number] >= 0:
                point = &self.points[seats[number]]
                if point.last:
                    self.scan(event, alive, &look, point.first, point.last, found)

    cdef void look(self, Event event, const int* buckets, Look* look) noexcept nogil:
        cdef int number
        cdef int64_t at
        cdef const Table* table
        look.count = min(self.with_buckets, MOST_ROWS)   # the most refusing; what the others would say the program says
        look.open_count = look.bounded_count = 0
        for number in range(look.count):
            table = &self.tables[number]
            at = buckets[number] * self.bucket_step
            look.passed[number] = table.passed + at
            look.lively[number] = table.lively + buckets[number] * self.words
            if table.opens != NULL and not table.opens[buckets[number]]:
                continue
            if table.intervals != NULL and event.at[table.slot].kind == NUMERAL:
                look.between[look.bounded_count] = table.open + at
                look.bounded[look.bounded_count] = table
                look.key[look.bounded_count] = event.at[table.slot].key
                look.bounded_count += 1
            else:
                look.open[look.open_count] = table.open + at
                look.open_count += 1

    cdef void scan(self, Event event, const uint64_t* alive, const Look* look, int first, int last,
                   Found* found) noexcept nogil:
        cdef int place, word, line, k, number, verdict
        cdef uint64_t lines, left, bit
        cdef uint64_t[8] bits, opened, between
        if last - first <= FEW:
            for place in range(first, last):
                if alive[place >> 6] >> (place & 63) & 1:
                    ask(event, self.subscriptions[place], self.errors_count, found)
            return
        for word in range((first >> 9) >> 6, (((last - 1) >> 9) >> 6) + 1):
            lines = ~(<uint64_t> 0)
            for number in range(look.count):
                lines &= look.lively[number][word]
            while lines:
                line = (word << 6) + lowest_bit(lines)
                lines &= lines - 1
                if line < first >> 9:
                    continue
                if line > (last - 1) >> 9:
                    break
                for k in range(8):
                    bits[k] = alive[line * 8 + k]
                    place = line * LINE + 64 * k
                    if place < first:
                        bits[k] = bits[k] & (~(<uint64_t> 0) << (first - place)) if first - place < 64 else 0
                    if place + 64 > last:
                        bits[k] = bits[k] & (~(<uint64_t> 0) >> (place + 64 - last)) if place < last else 0
                if not pyengine_narrow(bits, look.passed, look.count, line * self.line_step):
                    continue
                for k in range(8):
                    opened[k] = ~self.whole[line * 8 + k] if look.count == self.with_buckets else ~(<uint64_t> 0)
                    between[k] = 0
                pyengine_widen(opened, look.open, look.open_count, line * self.line_step)
                pyengine_widen(between, look.between, look.bounded_count, line * self.line_step)
                for k in range(8):
                    left = bits[k]
                    while left:
                        bit = left & (0 - left)
                        place = line * LINE + 64 * k + lowest_bit(left)
                        left ^= bit
                        if opened[k] & bit:
                            verdict = OPEN
                        elif between[k] & bit:
                            verdict = verdict_between(look, line * self.line_step + k, line * 8 + k, bit)
                        else:
                            verdict = PASSED
                        if verdict == PASSED:
                            add(found, self.numbers[place], self.keys[place], False)
                        elif verdict == OPEN:
                            ask(event, self.subscriptions[place], self.errors_count, found)

    def _check(self):
        """Assert the invariants of segment.pxd."""
        cdef int64_t index
        cdef int number, bucket, line, k
        cdef int64_t bounded
        cdef Table* table
        cdef uint64_t any_bit
        cdef Subscription it
        points = {}
        for index in range(self.point_room):
            if self.points[index].kind != NOTHING:
                label = (self.points[index].table, self.points[index].kind,
                         (<const char*> self.points[index].bytes)[:self.points[index].length])
                assert label not in points
                points[label] = index
                assert self.seek(
                    self.points[index].table, self.points[index].kind, self.points[index].hash,
                    self.points[index].bytes, self.points[index].length) == &self.points[index]
                assert self.shares or 0 <= self.points[index].first <= self.points[index].last <= self.loose
        assert self.shares or len(points) == self.point_count
        for index in range(self.size):
            it = self.entries[index]
            assert it.segment is self and it.number == self.numbers[index]
            assert [place for place in it.places[:it.place_count] if place == index] == [index]
        assert len({id(it) for it in self.entries}) == self.members
        for number in range(self.table_count):
            table = &self.tables[number]
            assert (table.buckets > 0) == (number < self.with_buckets)
            bounded = 0
            for index in range(self.lines * 8 if table.intervals != NULL else 0):
                assert table.earlier[index] == bounded
                bounded += count_bits(table.bounded[index])
            for index in range(bounded):
                assert table.intervals[index].low <= table.intervals[index].high
            for bucket in range(table.buckets):
                for line in range(self.lines):
                    any_bit = 0
                    for k in range(8):
                        index = bucket * self.bucket_step + line * self.line_step + k
                        any_bit |= table.passed[index]
                        assert not table.open[index] & ~table.passed[index]
                        assert not table.open[index] or table.opens == NULL or table.opens[bucket]
                    index = table.lively[bucket * self.words + (line >> 6)] >> (line & 63) & 1
                    assert index >= (any_bit != 0) and (self.shares or index == (any_bit != 0))


cdef void* zeros(size_t size) except NULL:
    cdef void* block = calloc(1, size if size else 1)
    if block == NULL:
        raise MemoryError()
    return block
