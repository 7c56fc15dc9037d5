# cython: freethreading_compatible=True
"""See postings.pxd."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free

from pyengine._engine.index.constants cimport Point, seat_of, seek
from pyengine._engine.index.message_view cimport NOTHING, NUMERAL, ODD, WORD, Event, Reading
from pyengine._engine.index.pattern_automaton cimport PatternAutomaton
from pyengine._engine.index.residual cimport FALSE_CODE, FIRST_STRETCH, NULL_CODE, ODD_CODE, TRUE_CODE
from pyengine._engine.java.value cimport BOOLEAN, free_scratch
from pyengine._engine.lowlevel.bits cimport pyengine_prefetch


cdef class Postings:
    def __dealloc__(self):
        cdef int number
        for number in range(self.column_count if self.columns != NULL else 0):
            free(self.columns[number].bounds)
        free(self.columns)
        free(self.points)
        free(self.postings)
        free(self.starts)
        free(self.steps)
        free(self.first_steps)
        free(self.pool)
        free(self.hits)
        free(self.members)
        free_scratch(&self.scratch)

    cdef int64_t take(
            self, int64_t number, const uint64_t* alive, Searched* searched, uint64_t* marks, uint8_t* marked,
            void** keys) noexcept nogil:
        """A list's postings; returns how many decided."""
        cdef int64_t index, first = self.starts[number], last = self.starts[number + 1], decided = 0
        cdef int32_t place, hit
        cdef uint64_t bit
        for index in range(first, last):
            place = self.postings[index] >> 1
            bit = <uint64_t> 1 << (place & 63)
            if not alive[place >> 6] & bit:
                continue
            if self.postings[index] & 1 and not searched.odd:
                hit = self.hits[place]
                marks[hit >> 6] |= <uint64_t> 1 << (hit & 63)
                marked[hit >> 6] = 1
                if keys != NULL:
                    pyengine_prefetch(&keys[hit])
                decided += 1
            elif not searched.candidates[place >> 6] & bit:
                searched.candidates[place >> 6] |= bit
                searched.chosen[searched.count] = place
                searched.count += 1
                pyengine_prefetch(&self.first_steps[place])
        return decided

    cdef int64_t find(
            self, Event event, const uint64_t* alive, Searched* searched, uint64_t* marks, uint8_t* marked,
            void** keys) noexcept nogil:
        cdef int number
        cdef int32_t list_, node, index
        cdef int64_t decided = 0
        cdef const PostedColumn* column
        cdef const Reading* reading
        cdef const Point* point
        searched.count = searched.matched.count = 0
        searched.odd = False
        for number in range(self.column_count):
            column = &self.columns[number]
            reading = &event.at[<int64_t> column.slot * event.step]
            if reading.kind == WORD and column.texts:
                pyengine_prefetch(&self.points[seat_of(self.point_room, number, reading.hash)])
            elif reading.kind == ODD:
                if event.see(column.slot) < 0 or event.values[column.slot].type != BOOLEAN:
                    searched.odd = True
        for number in range(self.column_count):
            column = &self.columns[number]
            reading = &event.at[<int64_t> column.slot * event.step]
            list_ = column.first_list
            if reading.kind == NOTHING:
                searched.codes[number] = NULL_CODE
                decided += self.take(list_ + OF_NULL, alive, searched, marks, marked, keys)
                continue
            decided += self.take(list_ + OF_PRESENT, alive, searched, marks, marked, keys)
            if reading.kind == NUMERAL:
                node = <int32_t> stretch_of(column, reading.key)
                searched.codes[number] = FIRST_STRETCH + node
                node += column.tree_leaves
                while node and column.tree_leaves:
                    decided += self.take(column.tree_list + node, alive, searched, marks, marked, keys)
                    node >>= 1
            elif reading.kind == WORD:
                searched.codes[number] = FIRST_STRETCH + column.bound_count + 1
                if column.texts:
                    point = seek(self.points, self.point_room, number, reading)
                    if point.of:
                        searched.codes[number] += point.code
                        decided += self.take(point.first, alive, searched, marks, marked, keys)
                if column.automaton != NULL:
                    if event.see(column.slot) < 0:
                        searched.odd = True
                    index = searched.matched.count
                    (<PatternAutomaton> column.automaton).find(
                        reading.bytes, reading.length, &event.values[column.slot], &searched.matched)
                    for index in range(index, searched.matched.count):
                        node = searched.matched.ids[index]
                        if searched.matched.bits[node >> 6] >> (node & 63) & 1:
                            decided += self.take(self.pattern_list + node, alive, searched, marks, marked, keys)
            elif event.values[column.slot].type == BOOLEAN:
                searched.codes[number] = TRUE_CODE if event.values[column.slot].payload.integer else FALSE_CODE
                decided += self.take(
                    list_ + (OF_TRUE if event.values[column.slot].payload.integer else OF_FALSE), alive, searched,
                    marks, marked, keys)
            else:
                searched.codes[number] = ODD_CODE
                decided += self.take(list_ + OF_ODD, alive, searched, marks, marked, keys)
        return decided

    cdef void forget(self, Searched* searched) noexcept nogil:
        cdef int32_t index, id
        for index in range(searched.count):
            searched.candidates[searched.chosen[index] >> 6] = 0
        for index in range(searched.matched.count):
            id = searched.matched.ids[index]
            searched.matched.bits[id >> 6] = searched.matched.tried[id >> 6] = 0

    def _check(self):
        """Assert the invariants of postings.pxd."""
        cdef int64_t index, number
        cdef int place
        for number in range(self.list_count):
            assert self.starts[number] <= self.starts[number + 1]
        for index in range(self.starts[self.list_count] if self.list_count else 0):
            assert 0 <= self.postings[index] >> 1 < self.scanned
        for place in range(self.count):
            assert self.first_steps[place] <= self.first_steps[place + 1]
            assert self.members[place] != NULL
        for number in range(self.column_count):
            for index in range(1, self.columns[number].bound_count):
                assert self.columns[number].bounds[index - 1] < self.columns[number].bounds[index]
