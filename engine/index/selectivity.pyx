# cython: freethreading_compatible=True
"""See selectivity.pxd."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free

from pyengine._engine.index.leaf_truths cimport Truths
from pyengine._engine.index.constants cimport Point, point_kind, seek
from pyengine._engine.index.growing cimport growing
from pyengine._engine.index.message_view cimport Reading, point_of
from pyengine._engine.lowlevel.memory cimport allocate_sparse_zeros
from pyengine._engine.index.requirements cimport LeafGraph
from pyengine._engine.java.value cimport FALSE, Scratch, Value, free_scratch
from pyengine._engine.selector.program cimport NUMBER, PATTERN, PREFIX, TEXT, TEXTS, Leaf, text_of, texts_of

import numpy

cdef enum:
    MOST_TEXTS = 1 << 16     # of the sample
    WORDS_A_TEXT = 8         # patterns that are found in one text, of as many as there may be

cdef double PRESENT = 0.7, MISSING = 0.4, FLAGGED = 0.3, UNHEARD_TEXT = 0.05, UNHEARD_NUMBER = 0.3


cdef class Selectivity:
    def __cinit__(self):
        self.texts = growing(sizeof(int64_t))
        self.patterns = growing(sizeof(int64_t))
        self.bound_starts = growing(sizeof(int64_t))

    def __dealloc__(self):
        free(self.points)
        free_scratch(&self.scratch)

    cdef int begin_sample(self, Py_ssize_t count) except -1:
        self.room = 256
        while self.room < 8 * count and self.room < 2 * MOST_TEXTS:
            self.room *= 2
        self.points = <Point*> allocate_sparse_zeros(self.room * sizeof(Point))
        self.sampled = growing(sizeof(SampledBound))
        self.distinct = set()
        return 0

    cdef int take(self, const LeafGraph* graph) except -1:
        cdef const Leaf* leaf
        cdef SampledBound* bounds
        cdef int place
        for place in range(graph.count):
            leaf = &graph.leaves[place]
            if leaf.kind not in (NUMBER, TEXT, TEXTS, PREFIX, PATTERN):
                continue
            if leaf.slot >= self.slot_count:
                self.texts.more(leaf.slot + 1 - self.slot_count)
                self.patterns.more(leaf.slot + 1 - self.slot_count)
                self.slot_count = leaf.slot + 1
            if leaf.kind == NUMBER:
                bounds = <SampledBound*> self.sampled.more(2)
                bounds[0].slot = bounds[1].slot = leaf.slot
                bounds[0].bound, bounds[1].bound = leaf.real_low, leaf.real_high
            elif (leaf.kind == TEXT or leaf.kind == TEXTS) and self.named < MOST_TEXTS:
                self.named += texts_of(leaf)
                self.count_text(leaf.slot, leaf)
            elif leaf.kind == PREFIX or leaf.kind == PATTERN:
                self.distinct.add((leaf.slot, <bytes> pattern_name(leaf)))
        return 0

    cdef int end_sample(self) except -1:
        cdef int k
        for slot, _ in self.distinct:
            (<int64_t*> self.patterns.items)[slot] += 1
        pairs = numpy.empty((0, 2), numpy.int64)
        if self.sampled.size:
            pairs = numpy.array(<int64_t[:self.sampled.size, :2]> <int64_t*> self.sampled.items)
        by_slot, ends = pairs[:, 0], pairs[:, 1]
        order = numpy.lexsort((ends, by_slot))
        self.bounds = ends[order]
        starts = numpy.searchsorted(by_slot[order], numpy.arange(self.slot_count + 1))
        for k in range(self.slot_count + 1):
            (<int64_t*> self.bound_starts.more(1))[0] = starts[k]
        cdef int64_t[::1] view = self.bounds
        self.all_bounds = &view[0] if len(view) else NULL
        self.sampled = self.distinct = None
        return 0

    cdef int count_text(self, int slot, const Leaf* leaf) except -1:
        cdef int index
        cdef Reading reading
        cdef Point* point
        cdef const Value* text
        for index in range(texts_of(leaf)):
            text = text_of(leaf, index)
            (<int64_t*> self.texts.items)[slot] += 1
            if not point_of(text, &reading, &self.scratch) or 2 * self.count > self.room:
                continue
            point = seek(self.points, self.room, slot, &reading)
            if point.of == 0:
                point.of = point_kind(slot, reading.kind)
                point.hash, point.key = reading.hash, reading.key
                point.bytes, point.length = reading.bytes, reading.length
                self.count += 1
            point.first += 1
        return 0

    cdef double inside(self, const Leaf* leaf, int slot) noexcept nogil:
        cdef int64_t first, last, low, high, middle, count = 0, named
        cdef int index, side
        cdef double part = 0
        cdef Reading reading
        cdef Scratch scratch
        cdef const Value* text
        if slot >= self.slot_count:
            return UNHEARD_NUMBER if leaf.kind == NUMBER else UNHEARD_TEXT
        if leaf.kind == NUMBER:
            first, last = (<int64_t*> self.bound_starts.items)[slot], (<int64_t*> self.bound_starts.items)[slot + 1]
            if first == last:
                return UNHEARD_NUMBER
            for side in range(2):                      # how many are below its lower bound, or not above its upper
                low, high = first, last
                while low < high:
                    middle = (low + high) >> 1
                    if self.all_bounds[middle] < leaf.real_low or side and self.all_bounds[middle] <= leaf.real_high:
                        low = middle + 1
                    else:
                        high = middle
                count = low - count
            return (count + 0.5) / (last - first + 1)
        if leaf.kind == TEXT or leaf.kind == TEXTS:
            named = (<int64_t*> self.texts.items)[slot]
            if not named:
                return UNHEARD_TEXT
            scratch.blocks = scratch.objects = scratch.error = NULL
            for index in range(texts_of(leaf)):
                text = text_of(leaf, index)
                if point_of(text, &reading, &scratch):
                    part += seek(self.points, self.room, slot, &reading).first
                part += 0.5
            free_scratch(&scratch)
            return min(1.0, part / (named + 1))
        count = (<int64_t*> self.patterns.items)[slot]
        if leaf.kind == PREFIX:
            return min(0.5, 2.0 / (count + 1))
        part = 20
        for _ in range(leaf.pattern.least):
            part /= 4
        return min(min(0.5, part), max(0.0005, <double> WORDS_A_TEXT / (count + 1)))

    cdef double part_of(self, const Leaf* leaf, const Truths* truths, int slot, int mask) noexcept nogil:
        cdef double part = 0
        if mask >> truths.of_null & 1:
            part += MISSING
        if mask >> truths.of_number & 1 and leaf.kind != NUMBER or mask >> truths.of_text & 1 or (
                leaf.kind == NUMBER and mask >> FALSE & 1):
            return min(1.0, part + PRESENT)
        if mask >> truths.of_false & 1 or mask >> truths.of_true & 1:
            part += FLAGGED
        if truths.has_inside and mask >> truths.inside & 1:
            part += self.inside(leaf, slot)
        return min(1.0, part)


cdef bytes pattern_name(const Leaf* leaf):
    """What tells a pattern from others of the sample."""
    cdef bytes name = b""
    cdef int index
    for index in range(leaf.pattern.count):
        name += (<const char*> leaf.pattern.segments[index].elements)[: 4 * leaf.pattern.segments[index].count] + b"%"
    return name
