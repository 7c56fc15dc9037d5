"""search: one look at many subscriptions as they were at one moment.

A *snapshot* is immutable: segments, a bitmap of those of their entries that are alive, and a tail that is asked one by
one. Who searches keeps his snapshot whatever happens to the subscriptions meanwhile.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint64_t

from pyengine._engine.columns.column_views cimport ColumnViews
from pyengine._engine.index.message_view cimport Event, Kinds, Reading
from pyengine._engine.index.bucket_lookup cimport Sought
from pyengine._engine.selector.program cimport Program
from pyengine._engine.index.segment cimport Found, Placed, Segment
from pyengine._engine.index.subscription cimport Subscription


cdef class Living:               # which entries of a segment are alive
    cdef uint64_t* bits
    cdef int64_t count               # Subscriptions
    cdef Segment segment
    cdef bint seen                   # by a snapshot: it changes no more
    cdef Living own(self)            # itself, or if it is seen its copy
    cdef Living without(self, Subscription gone)                 # in itself, or if it is seen in a copy
    cdef Living with_one(self, Subscription new)                 # which its append segment has taken; the same


cdef class Snapshot:
    cdef Program reader
    cdef tuple living
    cdef tuple tail
    cdef list removed            # keys that were removed since: a match may return them
    cdef frozenset idle_names    # that no subscription reads
    cdef dict selectors          # text -> Selector, of few; None: not made yet
    cdef PyObject** segments     # borrowed from ``living``
    cdef const uint64_t** alive
    cdef PyObject** asked        # borrowed from ``tail``
    cdef int segment_count
    cdef int tail_count
    cdef int most_tables
    cdef int most_lines
    cdef int most_columns        # of the Postings, and the same
    cdef int most_posted
    cdef int most_patterns
    cdef int widest
    cdef bint needs_gil
    cdef bint errors_count
    cdef tuple ordered           # the living by number: arrays of numbers and keys, Subscriptions; None, then set once
    cdef list idle               # Searches nobody uses, above some places that keep the list as long as it is


cdef class Search:               # working memory of matches, one after another
    cdef Event event
    cdef int* ranges
    cdef Found found
    cdef int room                # messages whose values are placed together
    cdef Placed* placed          # [segment][message]
    cdef int32_t* buckets
    cdef int32_t* points
    cdef Sought* sought
    cdef Reading* rows           # [slot][message]: of columns
    cdef Kinds* kinds            # [slot]: of the rows'

    cdef void leave_room(self) noexcept
    cdef int make_room(self, Snapshot snapshot, int room) except -1
    # What matches event's message, in order, behind what was found before.
    cdef void find(self, Snapshot snapshot) noexcept nogil
    # The same of the i-th message of those placed.
    cdef void find_placed(self, Snapshot snapshot, int message) noexcept nogil
    cdef object refusal(self, Snapshot snapshot, object row)     # the exception of what raised, or None


cdef class Rows:                 # of columns, asked one after another; read some at a time, column by column
    cdef Snapshot snapshot
    cdef Search search
    cdef int* places             # slot -> column, -1 none

    cdef int read(self, Event event, ColumnViews columns, Py_ssize_t batch, int64_t first, int count) noexcept nogil
    cdef int64_t run(
        self, Event event, ColumnViews columns, int64_t row, Py_ssize_t batch, int64_t* ends
    ) noexcept nogil


cdef list alive_of(Living one)   # its living Subscriptions
