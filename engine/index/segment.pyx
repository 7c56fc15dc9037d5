# cython: freethreading_compatible=True, cdivision=True
"""See segment.pxd."""

from cython cimport final, no_gc_clear
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF, Py_XINCREF
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from pyengine._engine.lowlevel.memory cimport allocate_sparse_zeros, try_resize, try_resize_sparse
from pyengine._engine.lowlevel.bits cimport count_bits, lowest_bit, pyengine_prefetch
from pyengine._engine.index.message_view cimport NOTHING, NUMERAL, WORD, Event, Reading
from pyengine._engine.index.bit_blocks cimport (
    pyengine_lack_nothing, pyengine_left, pyengine_line_of, pyengine_look, pyengine_meet, pyengine_rows, words_of,
)
from pyengine._engine.index.bitsets cimport (
    PYENGINE_BEHIND, PYENGINE_MOST, pyengine_collect, pyengine_gather, pyengine_gather_few, pyengine_mark,
    pyengine_spread,
)
from pyengine._engine.index.constants cimport Point, reading_of, seek
from pyengine._engine.index.postings cimport Searched
from pyengine._engine.index.residual cimport MATCHES, PROGRAM
from pyengine._engine.index.subscription cimport Subscription
from pyengine._engine.java.value cimport FUNCTION_FAILED, NO_MEMORY, RAISED, TRUE, free_scratch

import numpy

cdef enum:
    FEW = 1                  # entries of one access point that are asked one by one, unless there is only one line
    ROWS_A_PROGRAM = 16      # rows of a line that take as long to look at as a program to ask
    ROWS_A_WORD = 12         # rows of a line that take as long to look at as what a word of entries requires
    FEW_OF_A_WORD = 12       # entries of it that are asked one by one then
    FIRST_ROWS = 8           # of a line, fetched early where nothing was left of the line before
    FEW_LINES = 4            # of hits that are gathered without a look at ``marked``
    AT_ONCE = 64             # hits that are kept together
    AHEAD = 8                # candidates whose steps are fetched before they are taken
    SHORT = 64               # entries of one access point that are first asked what they require


cdef uint64_t[8] NONE_WHOLE


cdef bint reserve(Found* found, int64_t more) noexcept nogil:
    cdef int64_t room = max(64, 2 * found.room)
    cdef void* larger
    if found.size + more > found.room:
        room = max(found.size + more, found.expected if found.expected > found.room else room)
        larger = try_resize_sparse(found.numbers, room * sizeof(int64_t))
        if larger == NULL:
            found.no_memory = True
            return False
        found.numbers = <int64_t*> larger
        found.room = room
    if not found.keyless and found.key_room < found.room:
        larger = try_resize(found.keys, found.room * sizeof(PyObject*))
        if larger == NULL:
            found.no_memory = True
            return False
        found.keys = <PyObject**> larger
        found.key_room = found.room
    return True


cdef void note_raised(Found* found, PyObject* subscription) noexcept nogil:
    cdef int64_t room = max(16, 2 * found.raised_room)
    cdef void* larger
    if found.raised_size == found.raised_room:
        larger = try_resize(found.raised, room * sizeof(PyObject*))
        if larger == NULL:
            found.no_memory = True
            return
        found.raised = <PyObject**> larger
        found.raised_room = room
    found.raised[found.raised_size] = subscription
    found.raised_size += 1


cdef inline bint wants(Event event, PyObject* subscription, bint errors_count, Found* found) noexcept nogil:
    """Whether the program says so; if it raises that is noted."""
    cdef int truth = event.ask(subscription)
    cdef int problem
    if truth == RAISED:
        problem = event.scratch.problem
        if errors_count or problem == FUNCTION_FAILED or problem == NO_MEMORY:
            note_raised(found, subscription)
    return truth == TRUE


cdef void ask(Event event, PyObject* subscription, bint errors_count, Found* found) noexcept nogil:
    cdef int64_t number = (<Subscription> subscription).number
    if wants(event, subscription, errors_count, found) and reserve(found, 1):
        found.numbers[found.size] = number
        if not found.keyless:
            found.keys[found.size] = (<Subscription> subscription).key
        if found.size > found.first and found.numbers[found.size - 1] > number:
            found.unordered = True
        found.size += 1


cdef inline bint few(const Look* look, uint64_t words) noexcept nogil:
    """Whether the entries of so many words of a line are to be asked what they require, and the line not be looked at.
    """
    return look.sparse and count_bits(words) * ROWS_A_WORD <= look.count


cdef inline pyengine_rows rows_of(const Look* look) noexcept nogil:
    cdef pyengine_rows rows
    rows.passed = &look.passed[0]
    rows.count = look.count
    rows.open = &look.open[0]
    rows.open_count = look.open_count
    rows.bounded = &look.between[0]
    rows.bounded_count = look.bounded_count
    return rows


cdef inline bint lacks(const uint64_t* required, const Look* look) noexcept nogil:
    """Whether something is absent that an entry requires."""
    return (required[0] & look.absent[0] | required[4] & look.absent[1]) != 0


cdef inline void set_bits(uint64_t* bits, int first, int last) noexcept nogil:
    cdef uint64_t head = ~(<uint64_t> 0) << (first & 63), foot = ~(<uint64_t> 0) >> (63 - (last & 63))
    if first >> 6 == last >> 6:
        bits[first >> 6] |= head & foot
    else:
        bits[first >> 6] |= head
        memset(bits + (first >> 6) + 1, 0xFF, ((last >> 6) - (first >> 6) - 1) * sizeof(uint64_t))
        bits[last >> 6] |= foot


cdef inline void want(Found* found, int first, int last) noexcept nogil:
    """Look at the entries from ``first`` to ``last``."""
    set_bits(found.wanted, first, last)
    set_bits(found.wanted_words, first >> 6, last >> 6)


cdef inline bint leaves(const Interval* interval, const Look* look) noexcept nogil:
    """Whether a value is no number, or one of the interval's."""
    cdef const Reading* reading = &look.at[<int64_t> interval.slot * look.step]
    return (reading.kind != NUMERAL) | (interval.low <= reading.key) & (reading.key <= interval.high)


@final
@no_gc_clear                     # it drops its Subscriptions by what it has of them
cdef class Segment:
    """An index over subscriptions; see segment.pxd. Made by building.segment_of."""

    def __cinit__(self):
        self.blocks = ()

    def __dealloc__(self):
        cdef int number
        for number in range(self.hit_count() if self.owns else 0):
            Py_XDECREF(self.at_hit(number))
        for number in range(self.table_count):
            if not self.shares:
                free(self.tables[number].bounds)
                free(self.tables[number].text_bounds)
        free(self.tables)
        free(self.lively)
        free(self.opens)
        free(self.null_buckets)
        free(self.slots)
        if not self.shares:
            free(self.points)
        free(self.subscriptions)
        free(self.first_places)
        free(self.next_places)
        free(self.numbers)
        free(self.keys)
        free(self.order)
        free(self.whole)
        free(self.more_intervals)
        free(self.by_intervals)
        free(self.of_intervals)
        free_scratch(&self.scratch)

    cdef void own(self) noexcept:
        cdef int hit
        for hit in range(self.hit_count()):
            Py_XINCREF(self.at_hit(hit))
        self.owns = True

    cdef void adopt(self) noexcept:
        cdef int hit
        cdef PyObject* it
        for hit in range(self.hit_count()):
            it = self.at_hit(hit)
            if it != NULL:
                (<Subscription> it).segment = <void*> self
                (<Subscription> it).hit = hit

    cdef uint64_t* bits(self, Py_ssize_t words) except NULL:
        block = numpy.zeros(words + 7, numpy.uint64)
        cdef uint64_t[::1] zeroed = block
        self.blocks += (block,)
        return <uint64_t*> (<size_t> &zeroed[0] + 63 & ~(<size_t> 63))

    cdef void share_buckets(self) noexcept:
        cdef int number
        cdef Table* table
        for number in range(self.table_count):
            table = &self.tables[number]
            table.passed = self.passed + table.first * self.bucket_step
            table.open = self.open + table.first * self.bucket_step
            table.lively = self.lively + <int64_t> table.first * self.words
            table.opens = self.opens + table.first

    cdef int note_tables(self) except -1:
        cdef int number
        self.null_buckets = <int32_t*> allocate_sparse_zeros(self.table_count * sizeof(int32_t))
        self.slots = <int32_t*> allocate_sparse_zeros(self.table_count * sizeof(int32_t))
        for number in range(self.table_count):
            self.null_buckets[number] = self.tables[number].first + NULL_BUCKET
            self.slots[number] = self.tables[number].slot
        return 0

    cdef void match(
            self, Event event, const Placed* placed, const uint64_t* alive, int* ranges, Found* found) noexcept nogil:
        cdef int64_t first = found.size
        # An OR has several entries or postings and is found once; whether an append segment has one is not known.
        found.at_once = found.any_order and not self.shares and self.posted is None and self.size == self.members
        if self.size:
            self.keep_matches(event, placed, alive, ranges, found)
        if self.posted is not None:
            self.match_posted(event, alive + 8 * <int64_t> self.lines, found)
        if found.mark_count:
            self.gather(found)
        self.number_hits(found, first)

    cdef inline void keep_matches(
            self, Event event, const Placed* placed, const uint64_t* alive, int* ranges, Found* found) noexcept nogil:
        cdef int shown = min(self.with_buckets, MOST_ROWS)
        cdef int64_t bucket_step = self.bucket_step
        cdef const uint8_t* opens = self.opens
        cdef const uint64_t* lively = self.lively + (self.loose >> 12)
        cdef const int32_t* buckets = placed.buckets
        cdef int words = self.words
        cdef int number, place, range_count = 0, open_count = 0, bounded_count = 0
        cdef int64_t at
        cdef const Point* point
        cdef uint8_t openness
        cdef Look look
        if placed.strange or event.has_objects:
            for place in range(self.size):
                if alive[place >> 6] >> (place & 63) & 1:
                    self.ask_entry(event, place, found)
            return
        # Shown are the most refusing; what the others would say the program says.
        for number in range(0 if self.is_small else shown):
            pyengine_prefetch(lively + <int64_t> buckets[number] * words)
        for number in range(shown):
            at = buckets[number] * bucket_step
            openness = opens[buckets[number]]
            look.passed[number] = look.open[open_count] = look.between[bounded_count] = at
            open_count += openness & OPEN_TO_PROGRAMS
            bounded_count += openness >> 1
        look.at = event.at
        look.step = event.step
        look.buckets = buckets
        look.count = shown
        look.open_count = open_count
        look.bounded_count = bounded_count
        look.absent[0], look.absent[1] = placed.absent[0], placed.absent[1]
        look.sparse = not self.shares and 2 * placed.present < self.table_count
        look.picked_count = look.open_entry_count = 0
        if self.is_small:
            self.scan_small(event, alive, &look, found)
            return
        for number in range(placed.point_count):
            point = &self.points[placed.points[number]]
            ranges[2 * range_count] = point.first
            ranges[2 * range_count + 1] = point.last
            pyengine_prefetch(required_of(self.required, point.first))
            range_count += 1
        if self.loose < self.size:
            ranges[2 * range_count] = self.loose
            ranges[2 * range_count + 1] = self.size
            range_count += 1
        look.whole = self.lines
        for number in range(range_count):
            place = ranges[2 * number]
            if self.lines > 1 and self.pick(alive, place, ranges[2 * number + 1], &look):
                continue
            if ranges[2 * number + 1] == self.size and place >> 9 < self.lines - 1:
                look.whole = (place + LINE - 1) >> 9
                set_bits(found.wanted_words, look.whole << 3, (self.size - 1) >> 6)
                ranges[2 * number + 1] = look.whole << 9
            if place < ranges[2 * number + 1]:
                want(found, place, ranges[2 * number + 1] - 1)
        self.ask_picked(event, &look, found)
        self.scan(event, alive, &look, found)
        for number in range(range_count):
            place = ranges[2 * number]
            memset(found.wanted + (place >> 6), 0, ((ranges[2 * number + 1] + 63 >> 6) - (place >> 6)) << 3)

    cdef void match_posted(self, Event event, const uint64_t* alive, Found* found) noexcept nogil:
        cdef Searched* searched = &found.searched
        cdef int32_t[AT_ONCE] hits
        cdef int place, outcome, index, count = 0
        cdef const int64_t* first_steps = self.posted.first_steps
        if event.has_objects:
            for place in range(self.posted.count):
                if alive[place >> 6] >> (place & 63) & 1:
                    self.ask_posted(event, place, found)
            return
        found.mark_count += self.posted.find(
            event, alive, searched, found.marks, found.marked, self.keys_of(found))
        for index in range(min(searched.count, <int> AHEAD)):
            pyengine_prefetch(self.posted.steps + first_steps[searched.chosen[index]])
        for index in range(searched.count):
            if index + AHEAD < searched.count:
                pyengine_prefetch(self.posted.steps + first_steps[searched.chosen[index + AHEAD]])
            place = searched.chosen[index]
            outcome = self.posted.try_place(place, searched)
            if outcome == MATCHES:
                hits[count] = self.posted.hits[place]
                count += 1
                if count == AT_ONCE:
                    self.keep(hits, count, found)
                    count = 0
            elif outcome == PROGRAM:
                self.ask_posted(event, place, found)
        for place in range(self.posted.scanned, self.posted.count):
            if not alive[place >> 6] >> (place & 63) & 1:
                continue
            pyengine_prefetch(self.posted.steps + first_steps[place] + 64)
            pyengine_prefetch(self.posted.steps + first_steps[place] + 68)
            pyengine_prefetch(self.posted.steps + first_steps[place] + 72)
            pyengine_prefetch(self.posted.steps + first_steps[place] + 76)
            outcome = self.posted.try_place(place, searched)
            if outcome == MATCHES:
                hits[count] = self.posted.hits[place]
                count += 1
                if count == AT_ONCE:
                    self.keep(hits, count, found)
                    count = 0
            elif outcome == PROGRAM:
                self.ask_posted(event, place, found)
        self.keep(hits, count, found)
        self.posted.forget(searched)

    cdef void ask_posted(self, Event event, int place, Found* found) noexcept nogil:
        if wants(event, self.posted.members[place], self.errors_count, found):
            self.keep(&self.posted.hits[place], 1, found)

    cdef bint pick(self, const uint64_t* alive, int first, int last, Look* look) noexcept nogil:
        cdef int place, count = look.picked_count
        cdef int most = min(count + FEW + look.count // ROWS_A_PROGRAM, MOST_PICKED)
        if last - first > SHORT or last - first > most - count and not look.absent[0] | look.absent[1]:
            return False
        for place in range(first, last):
            if not lacks(required_of(self.required, place), look) and alive[place >> 6] >> (place & 63) & 1:
                if count == most:
                    return False
                look.picked[count] = place
                count += 1
                pyengine_prefetch(&self.subscriptions[place])
        look.picked_count = count
        return True

    cdef void ask_picked(self, Event event, const Look* look, Found* found) noexcept nogil:
        """What one needs of them for a question is fetched for all first."""
        cdef int index
        for index in range(look.picked_count):
            pyengine_prefetch(self.subscriptions[look.picked[index]])
        for index in range(look.picked_count):
            pyengine_prefetch((<Subscription> self.subscriptions[look.picked[index]]).graph.leaves)
        for index in range(look.picked_count):
            self.ask_entry(event, look.picked[index], found)

    cdef void ask_entry(self, Event event, int place, Found* found) noexcept nogil:
        if wants(event, self.subscriptions[place], self.errors_count, found):
            self.keep(&self.order[place], 1, found)

    cdef bint take_word(self, Event event, const uint64_t* alive, int word, Look* look, Found* found) noexcept nogil:
        cdef uint64_t left = pyengine_lack_nothing(self.required + 128 * <int64_t> word, look.absent)
        cdef int place, count
        left &= found.wanted[word] & alive[word]
        count = count_bits(left)
        if count > FEW_OF_A_WORD:
            return False
        found.wanted[word] = 0
        if look.open_entry_count + count > MOST_OPEN:
            self.ask_intervals(event, look, found)
        while left:
            place = 64 * word + lowest_bit(left)
            if self.of_intervals[word] & left & (0 - left):
                look.open_entries[look.open_entry_count] = ~place
                look.open_entry_count += 1
                pyengine_prefetch(&self.intervals[place])
            else:
                self.ask_entry(event, place, found)
            left &= left - 1
        return True

    cdef void ask_intervals(self, Event event, Look* look, Found* found) noexcept nogil:
        cdef int index, k, place, meets, kept = 0
        cdef Intervals* its
        cdef const Interval* interval
        cdef const Reading* reading
        for index in range(look.open_entry_count):
            place = look.open_entries[index]
            pyengine_prefetch(&self.intervals[place if place >= 0 else ~place])
        for index in range(look.open_entry_count):
            place = look.open_entries[index]
            its = &self.intervals[place if place >= 0 else ~place]
            meets = True
            if place >= 0:                           # of what is no number the bits have said what there is to say
                for k in range(SIDE_BY_SIDE):
                    meets &= leaves(&its.first[k], look)
                for k in range(SIDE_BY_SIDE, its.count):
                    meets &= leaves(interval_of(its, self.more_intervals, k), look)
            for k in range(its.count if place < 0 else 0):
                interval = interval_of(its, self.more_intervals, k)
                reading = &look.at[<int64_t> interval.slot * look.step]
                if reading.kind == NUMERAL:
                    meets &= interval.low <= reading.key <= interval.high
                else:
                    if meets and reading.kind != NOTHING:
                        self.ask_entry(event, ~place, found)
                    meets = False
            look.open_entries[kept] = its.hit
            kept += meets
        self.keep(look.open_entries, kept, found)
        look.open_entry_count = 0

    cdef void keep(self, const int32_t* hits, int count, Found* found) noexcept nogil:
        cdef int64_t more = self.numbers[0] if self.consecutive else 0
        cdef int index
        if not found.at_once:
            pyengine_mark(hits, count, found.marks, found.marked, self.keys_of(found))
            found.mark_count += count
        elif reserve(found, count):
            for index in range(count):
                found.numbers[found.size + index] = hits[index] + more
            found.size += count

    cdef void keep_wanted(self, Found* found) noexcept nogil:
        cdef int32_t[PYENGINE_MOST] hits
        cdef int word = 0, count = 1
        while count:
            count = pyengine_collect(found.wanted, found.wanted_words, self.words, &word, self.order, hits)
            self.keep(hits, count, found)

    cdef inline void** keys_of(self, Found* found) noexcept nogil:
        return NULL if found.keyless else <void**> self.keys

    cdef void gather(self, Found* found) noexcept nogil:
        cdef int64_t more = self.numbers[0] if self.consecutive else 0
        cdef int64_t first = found.size, index
        cdef int64_t* into
        if not reserve(found, found.mark_count + PYENGINE_BEHIND):
            memset(found.marks, 0, self.hit_lines * sizeof(uint64_t) * 8)
            memset(found.marked, 0, self.hit_lines * 8)
            found.mark_count = 0
            return
        into = found.numbers + first
        if self.is_small and self.posted is None or self.hit_lines <= FEW_LINES:
            into = pyengine_gather_few(found.marks, found.marked, self.hit_lines, more, into)
        else:
            into = pyengine_gather(found.marks, found.marked, self.hit_lines, more, into)
        found.size = into - found.numbers
        found.mark_count = 0
        if not found.keyless:
            for index in range(first, found.size):
                found.keys[index] = self.keys[found.numbers[index] - more]
                pyengine_prefetch(found.keys[index])

    cdef inline void number_hits(self, Found* found, int64_t first) noexcept nogil:
        cdef int64_t index
        if self.consecutive:
            found.unordered |= found.first < first < found.size and found.numbers[first] < found.numbers[first - 1]
            return
        for index in range(first, found.size):
            found.numbers[index] = self.numbers[found.numbers[index]]
            found.unordered |= index > found.first and found.numbers[index] < found.numbers[index - 1]

    cdef int lively_lines(self, const Look* look, Found* found) noexcept nogil:
        cdef int word, first, count = 0
        cdef uint64_t words
        pyengine_meet(found.wanted_words, self.words, self.lively, self.words, look.buckets, look.count)
        for word in range(self.words):
            words = found.wanted_words[word]
            found.wanted_words[word] = 0
            while words:
                first = lowest_bit(words) & ~7           # of the line's words in this one
                found.lines[count].line = (word << 3) + (first >> 3)
                found.lines[count].words = words >> first & 0xFF
                count += 1
                words &= ~(<uint64_t> 0xFF << first)
        return count

    cdef void ask_line(
            self, Event event, int line, const uint64_t* asked, const uint64_t* between, Look* look,
            Found* found) noexcept nogil:
        cdef int k, place, words = words_of(asked) | words_of(between) << 8
        cdef uint64_t left
        while words:
            k = lowest_bit(words)
            words &= words - 1
            place = line * LINE + 64 * (k & 7)
            if k >= 8:
                if look.open_entry_count >= MOST_OPEN:
                    self.ask_intervals(event, look, found)
                look.open_entry_count += pyengine_spread(
                    between[k - 8], place, look.open_entries + look.open_entry_count)
                continue
            left = asked[k]
            while left:
                self.ask_entry(event, place + lowest_bit(left), found)
                left &= left - 1

    cdef void scan_small(self, Event event, const uint64_t* alive, Look* look, Found* found) noexcept nogil:
        cdef int line, left_over
        cdef const uint64_t* whole = self.whole if look.count == self.with_buckets else NULL
        cdef uint64_t* bits = found.marks if self.in_order else found.wanted
        cdef pyengine_left left
        cdef pyengine_line_of of
        cdef pyengine_rows rows = rows_of(look)
        for line in range(self.lines):
            of.alive = alive + line * 8
            of.whole = whole + line * 8 if whole != NULL else NONE_WHOLE
            of.by_intervals = self.by_intervals + line * 8
            of.passes = self.passed + line * self.line_step
            of.opens = self.open + line * self.line_step
            left_over = pyengine_look(bits + line * 8, &left, of.alive, &of, &rows)
            if left_over == 0:
                continue
            if self.in_order:
                found.mark_count += LINE
            else:
                found.wanted_words[0] |= <uint64_t> words_of(bits + line * 8) << 8 * line
            if left_over == 2:
                self.ask_line(event, line, left.asked, left.between, look, found)
        if not self.in_order:
            self.keep_wanted(found)
        if look.open_entry_count:
            self.ask_intervals(event, look, found)

    cdef void scan(self, Event event, const uint64_t* alive, Look* look, Found* found) noexcept nogil:
        cdef int index, line, words, number, k, count = self.lively_lines(look, found)
        cdef int64_t at
        cdef uint64_t left
        cdef uint64_t* bits
        cdef uint64_t* whole = self.whole
        cdef pyengine_left left_of
        cdef pyengine_line_of of
        cdef pyengine_rows rows_here = rows_of(look)
        cdef int left_over, rows = look.count    # to fetch of the next line: few after one that left nothing
        for index in range(count):
            line = found.lines[index].line
            words = found.lines[index].words
            if index + 1 < count and not few(look, found.lines[index + 1].words):
                at = found.lines[index + 1].line * self.line_step
                for number in range(rows):
                    pyengine_prefetch(self.passed + look.passed[number] + at)
                for number in range(look.bounded_count if rows == look.count else 0):
                    pyengine_prefetch(self.open + look.between[number] + at)
            bits = found.wanted + line * 8
            if line >= look.whole:
                memset(bits, 0xFF, LINE // 8)
            if few(look, words):
                left = words
                while left:
                    k = lowest_bit(left)
                    left &= left - 1
                    if left:
                        at = 128 * (<int64_t> line * 8 + lowest_bit(left))
                        for number in range(0, 128, 8):
                            pyengine_prefetch(self.required + at + number)
                    if self.take_word(event, alive, line * 8 + k, look, found):
                        words ^= 1 << k
            left_over = 0
            if words:
                of.alive = alive + line * 8
                of.whole = whole + line * 8 if look.count == self.with_buckets else NONE_WHOLE
                of.by_intervals = whole + line * 8 if self.shares else self.by_intervals + line * 8
                of.passes = self.passed + line * self.line_step
                of.opens = self.open + line * self.line_step
                left_over = pyengine_look(bits, &left_of, bits, &of, &rows_here)
            if left_over == 0:
                if line >= look.whole:
                    memset(bits, 0, LINE // 8)
                if words:
                    rows = min(look.count, FIRST_ROWS)
                continue
            rows = look.count
            found.wanted_words[line >> 3] |= <uint64_t> words << 8 * (line & 7)
            if left_over == 1:
                continue
            self.ask_line(event, line, left_of.asked, left_of.between, look, found)
        self.keep_wanted(found)
        self.ask_intervals(event, look, found)

    def _check(self):
        """Assert the invariants of segment.pxd."""
        cdef int64_t index
        cdef int number, bucket, line, k
        cdef Table* table
        cdef uint64_t any_bit
        cdef uint64_t[2] required
        cdef Subscription it
        cdef Reading reading
        cdef Intervals* its
        cdef const Interval* interval
        points = {}
        for index in range(self.point_room):
            if self.points[index].of:
                reading = reading_of(&self.points[index])
                label = self.points[index].of, reading.key
                if reading.kind == WORD:
                    label += ((<const char*> reading.bytes)[:reading.length],)
                assert label not in points
                points[label] = index
                assert seek(
                    self.points, self.point_room, self.points[index].of >> 2, &reading) == &self.points[index]
                assert self.shares or 0 <= self.points[index].first <= self.points[index].last <= self.loose
        assert self.shares or len(points) == self.point_count
        seen = set()
        for index in range(self.hit_count()):
            if self.at_hit(index) == NULL:
                continue
            it = <Subscription> self.at_hit(index)
            assert it.number == self.numbers[index] and it.key == self.keys[index]
            number = self.first_place(index)
            while number >= 0:
                assert number not in seen
                seen.add(number)
                if number < self.lines * LINE:
                    assert self.order[number] == index and self.subscriptions[number] == <PyObject*> it
                number = self.place_after(number)
        assert seen == {*range(self.size), *range(
            self.lines * LINE, self.lines * LINE + (self.posted.count if self.posted is not None else 0))}
        for index in range(self.size):
            assert not self.in_order or self.order[index] == index
        assert self.hit_lines == self.lines if self.shares else 512 * self.hit_lines >= self.members
        for index in range(self.posted.count if self.posted is not None else 0):
            assert self.first_places[self.posted.hits[index]] == self.lines * LINE + index
        if self.posted is not None:
            self.posted._check()
        assert not self.is_small or self.loose == 0 and not self.shares
        for index in range(1, 0 if self.shares else self.members):
            assert self.numbers[index - 1] < self.numbers[index]
            assert not self.consecutive or self.numbers[index - 1] + 1 == self.numbers[index]
        for number in range(self.table_count):
            table = &self.tables[number]
            assert (table.buckets > 0) == (number < self.with_buckets)
            assert table.passed == self.passed + table.first * self.bucket_step
            assert table.open == self.open + table.first * self.bucket_step
            assert table.lively == self.lively + table.first * self.words
            assert table.opens == self.opens + table.first
            for bucket in range(table.buckets):
                for line in range(self.lines):
                    for k in range(8):
                        index = bucket * self.bucket_step + line * self.line_step + k
                        any_bit = table.passed[index]
                        assert not table.open[index] & ~any_bit
                        assert not table.open[index] or table.opens[bucket] != SHUT
                        index = table.lively[bucket * self.words + (line >> 3)] >> (8 * (line & 7) + k) & 1
                        assert index >= (any_bit != 0) and (self.shares or index == (any_bit != 0))
        for index in range(0 if self.shares else self.size):
            required[0] = required[1] = 0
            for number in range(self.with_buckets):
                if not self.tables[number].passed[NULL_BUCKET * self.bucket_step + (index >> 6)] >> (index & 63) & 1:
                    required[number >> 6 & 1] |= <uint64_t> 1 << (number & 63)
            assert required_of(self.required, index)[0] == required[0]
            assert required_of(self.required, index)[4] == required[1]
            its = &self.intervals[index]
            assert its.hit == self.order[index] and 0 <= its.count
            for k in range(max(its.count, SIDE_BY_SIDE)):
                interval = interval_of(its, self.more_intervals, k)
                assert interval.low <= interval.high
                assert k < its.count or interval.low == INT64_MIN and interval.high == INT64_MAX
                assert k >= its.count or [
                    number for number in range(self.table_count)
                    if self.tables[number].slot == interval.slot and self.tables[number].bounded]
