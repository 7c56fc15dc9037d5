# cython: freethreading_compatible=True
"""A segment that takes one subscription after another; see append_segment.pxd."""

from cython cimport final
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memset

from pyengine._engine.index.bucket_verdicts cimport bucket_verdicts_of
from pyengine._engine.index.requirement_list cimport (
    LONGEST_TEXT,
    Requirement,
    requirement_list_of,
)
from pyengine._engine.index.requirements cimport MOST_BRANCHES
from pyengine._engine.index.segment cimport (
    LINE,
    OPEN_TO_PROGRAMS,
    Segment,
    Table,
    first_text_stretch,
)
from pyengine._engine.index.subscription cimport Subscription
from pyengine._engine.lowlevel.memory cimport allocate_sparse_zeros


@final
cdef class AppendSegment:
    """Internal to Subscriptions; see append_segment.pxd."""

    cdef bint add(self, Subscription subscription) except -1:
        cdef Segment segment = self.segment
        cdef int32_t[MOST_BRANCHES + 1] bounds
        cdef int branch, count
        cdef int32_t hit
        self.requirements.reserve_leaves(subscription.graph.count)
        count = self.requirements.branches_of(subscription, bounds)
        if segment.size + count > self.room:
            return False
        hit = segment.size
        for branch in range(count):
            self.add_entry(subscription, hit, bounds[branch], bounds[branch + 1])
        subscription.segment = <void*> segment
        subscription.hit = hit
        segment.members += 1
        segment.needs_gil |= subscription.graph.needs_gil
        segment.widest = max(segment.widest, subscription.widest())
        return True

    cdef int add_entry(self, Subscription subscription, int32_t hit, int first, int stop) except -1:
        cdef Segment segment = self.segment
        cdef int32_t entry = segment.size
        cdef int64_t index
        if entry % LINE == 0:
            memset(segment.passed + entry // LINE * segment.line_step, 0xFF, segment.line_step * 8)
        self.requirements.clear()
        self.requirements.collect(subscription, entry, first, stop)
        for index in range(self.requirements.size):
            self.refuse(&self.requirements.at[index])
            self.verdicts.judge(&self.requirements.at[index])
        segment.subscriptions[entry] = <PyObject*> subscription
        segment.keys[entry] = subscription.key
        segment.numbers[entry] = subscription.number
        segment.order[entry] = hit
        if entry == hit:
            Py_INCREF(subscription)
        segment.size += 1
        return 0

    cdef void refuse(self, const Requirement* requirement) noexcept:
        cdef Table* table = &self.segment.tables[requirement.table]
        cdef int64_t bucket
        cdef int64_t at = (requirement.entry >> 9) * self.segment.line_step + (requirement.entry >> 6 & 7)
        for bucket in range(table.buckets):
            table.passed[at + bucket * self.segment.bucket_step] &= ~(<uint64_t> 1 << (requirement.entry & 63))


cdef AppendSegment append_segment_of(Segment model, int room):
    """An empty one. model: a built segment, or another append segment, whose model it shares."""
    cdef AppendSegment appended = AppendSegment()
    cdef Segment segment = Segment()
    cdef Table* table
    cdef int number
    if model.model is not None:
        model = model.model
    appended.segment = segment
    appended.room = room
    appended.requirements = requirement_list_of(segment, True)
    appended.verdicts = bucket_verdicts_of(segment, appended.requirements, LONGEST_TEXT)
    segment.model = model
    segment.shares = True
    segment.errors_count = model.errors_count
    segment.lines = (room + LINE - 1) // LINE
    segment.hit_lines = segment.alive_lines = segment.lines
    segment.words = (segment.lines + 7) // 8
    segment.owns = True
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
        appended.requirements.table_of[table.slot] = number
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
    return appended
