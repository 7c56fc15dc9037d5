# cython: freethreading_compatible=True
"""See append_segment.pxd."""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memset

from pyengine._engine.lowlevel.memory cimport allocate_sparse_zeros, resize
from pyengine._engine.index.segment_builder cimport Builder, Need
from pyengine._engine.index.message_view cimport WORD, Reading, point_of
from pyengine._engine.index.constants cimport Point, seek
from pyengine._engine.selector.program cimport PREFIX, Leaf
from pyengine._engine.index.requirements cimport MAY_BE_FALSE, MAY_BE_TRUE, MOST_BRANCHES
from pyengine._engine.index.segment cimport (
    LINE,
    OPEN_TO_PROGRAMS,
    STRANGE_BUCKET,
    Segment,
    Subscription,
    Table,
    first_text_stretch,
)
from pyengine._engine.java.value cimport Value

cdef enum:
    LONGEST = 250            # bytes of a text that is indexed


cdef class Annex(Builder):
    """An annex under construction, as long as it lives; see append_segment.pxd."""

    cdef int table(self, int slot) except -2:
        return self.table_of.get(slot, -1)

    cdef bint add_point(self, Need* need, const Value* constant) except -1:
        cdef Segment segment = self.segment
        cdef Reading reading
        cdef Point* point
        if not point_of(constant, &reading, &segment.scratch):
            return False
        if reading.kind != WORD:
            return True              # of no use without access points
        if reading.length > LONGEST:
            return False
        point = seek(segment.points, segment.point_room, need.table, &reading)
        if point.of == 0:
            self.unknown = True
            return True
        self.seat(need, point)
        return True

    cdef bint add_need(self, int32_t entry, const Leaf* leaf, int slot, int stop) except -1:
        cdef Need* need
        cdef Table* table
        cdef int64_t bucket, at
        self.unknown = False
        if not Builder.add_need(self, entry, leaf, slot, stop):
            return False
        need = &self.needs[self.need_count - 1]
        table = &self.segment.tables[need.table]
        # Refused is what a bucket says until it is marked.
        at = (entry >> 9) * self.segment.line_step + (entry >> 6 & 7)
        for bucket in range(table.buckets):
            table.passed[at + bucket * self.segment.bucket_step] &= ~(<uint64_t> 1 << (entry & 63))
        if leaf.kind == PREFIX and self.texts_of is None:
            self.find_texts()
        self.judge(need)
        if self.unknown:
            if table.text_bound_count:
                self.mark(need, first_text_stretch(table), table.text_bound_count + 1, MAY_BE_FALSE | MAY_BE_TRUE)
            self.mark(need, STRANGE_BUCKET, 1, MAY_BE_FALSE | MAY_BE_TRUE)
        return True

    cdef int find_texts(self) except -1:
        """The texts of tables that have a bucket for each."""
        cdef int64_t index
        cdef const Point* point
        cdef const Table* table
        self.texts_of = {}
        for index in range(self.segment.point_room):
            point = &self.segment.points[index]
            if point.of & 3 == WORD:
                table = &self.segment.tables[point.of >> 2]
                if table.distinct <= table.texts:
                    self.texts_of.setdefault(point.of >> 2, []).append(index)
        return 0

    cdef bint take(self, Subscription it) except -1:
        cdef Segment segment = self.segment
        cdef int32_t[MOST_BRANCHES + 1] bounds
        cdef int branch, count
        if it.program.leaf_count > self.leaf_room:
            self.requirements = <int32_t*> resize(self.requirements, it.program.leaf_count * sizeof(int32_t))
            self.leaf_room = it.program.leaf_count
        count = self.branches_of(it, bounds)
        if segment.size + count > self.room:
            return False
        for branch in range(count):
            self.enter(it, bounds[branch], bounds[branch + 1])
        segment.members += 1
        segment.needs_gil |= it.program.needs_gil
        segment.widest = max(segment.widest, <int> len(it.program.names))
        return True

    cdef int enter(self, Subscription it, int first, int stop) except -1:
        """The next entry."""
        cdef Segment segment = self.segment
        cdef int32_t entry = segment.size
        if entry % LINE == 0:
            memset(segment.passed + entry // LINE * segment.line_step, 0xFF, segment.line_step * 8)
        self.need_count = self.seat_count = 0
        self.collect_entry(it, entry, first, stop)
        segment.entries.append(it)
        segment.subscriptions[entry] = <PyObject*> it
        segment.keys[entry] = <PyObject*> it.key
        segment.numbers[entry] = it.number
        it.settle(segment, entry)
        segment.order[entry] = it.places[0]
        segment.size += 1
        return 0


cdef Annex annex_of(Segment model, int room):
    """An empty annex of a built segment, or of the same model as another annex."""
    cdef Annex annex = Annex()
    cdef Segment segment = Segment()
    cdef Table* table
    cdef int number
    if model.model is not None:
        model = model.model
    annex.segment = segment
    annex.room = room
    annex.table_of = {}
    annex.name_strange(LONGEST)
    segment.model = model
    segment.shares = True
    segment.errors_count = model.errors_count
    segment.lines = (room + LINE - 1) // LINE
    segment.hit_lines = segment.alive_lines = segment.lines
    segment.words = (segment.lines + 7) // 8
    segment.entries = []
    segment.subscriptions = <PyObject**> allocate_sparse_zeros((room + 1) * sizeof(PyObject*))
    segment.numbers = <int64_t*> allocate_sparse_zeros((room + 1) * sizeof(int64_t))
    segment.keys = <PyObject**> allocate_sparse_zeros((room + 1) * sizeof(PyObject*))
    segment.order = <int32_t*> allocate_sparse_zeros((room + 1) * sizeof(int32_t))
    segment.required = segment.bits(128 * 8 * segment.lines)
    segment.whole = <uint64_t*> allocate_sparse_zeros(segment.lines * 64)
    segment.points = model.points
    segment.point_room = model.point_room
    segment.point_count = model.point_count
    segment.tables = <Table*> allocate_sparse_zeros((model.table_count + 1) * sizeof(Table))
    memcpy(segment.tables, model.tables, model.table_count * sizeof(Table))
    for number in range(model.table_count):
        table = &segment.tables[number]
        table.bounded = False
        table.numbers_are_points = False
        table.buckets = first_text_stretch(table) + (table.text_bound_count + 1 if table.text_bound_count else 0)
        table.first = segment.buckets
        segment.buckets += table.buckets
        annex.table_of[table.slot] = number
    segment.table_count = segment.with_buckets = model.table_count
    segment.bucket_step = 8
    segment.line_step = <int64_t> segment.buckets * 8
    segment.passed = segment.bits(segment.lines * segment.line_step)
    segment.open = segment.bits(segment.lines * segment.line_step)
    segment.lively = <uint64_t*> allocate_sparse_zeros(<size_t> segment.buckets * segment.words * 8)
    memset(segment.lively, 0xFF, <size_t> segment.buckets * segment.words * 8)
    segment.opens = <unsigned char*> allocate_sparse_zeros(segment.buckets)
    memset(segment.opens, OPEN_TO_PROGRAMS, segment.buckets)
    segment.share_buckets()
    segment.note_tables()
    return annex
