"""See subscriptions.pxd."""

from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cython.view cimport array
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free

from pyengine._engine.lowlevel.memory cimport allocate, allocate_zeros, try_resize
from pyengine._engine.index.append_segment cimport append_segment_of
from pyengine._engine.columns.batch cimport columns_of
from pyengine._engine.columns.column_views cimport ColumnViews, refused_text
from pyengine._engine.lowlevel.bits cimport lowest_bit
from pyengine._engine.index.segment_builder cimport segment_of
from pyengine._engine.index.message_view cimport Event, reader_of
from pyengine._engine.message.header cimport header_code
from pyengine._engine.message.packed_messages cimport PackedMessages
from pyengine._engine.index.search cimport Living, Rows, Search, Snapshot, alive_of
from pyengine._engine.index.segment cimport Subscription
from pyengine._engine.matching.selector cimport Selector, check_choice

import threading
from collections.abc import Iterable, Mapping

import numpy

from pyengine.errors import (
    InvalidSelectorError, MissingColumnError, SelectorEvaluationError, counted, unknown_arguments,
)

cdef enum:
    SMALL_TAIL = 64
    LARGE_TAIL = 128
    LARGE = 20_000           # subscriptions from which on the tail may be large
    SMALLEST_APPEND = 4096   # entries
    APPEND_PART = 8          # of the subscriptions that an append segment has room for
    LIKE_SIZES = 4           # segments of like size that are made one
    FEW_SLOTS = 256          # names that are not worth looking for those that nobody reads
    IDLE_PLACES = 4          # a list that is emptied and filled with one gives its memory back each time
    BY_COLUMN = 128          # subscriptions up to which a batch of columns is asked selector by selector


# The lock is held by try and finally: what Cython makes of ``with`` reads a traceback that is NULL where there was no
# memory for it.


cdef class Subscriptions:
    """Many selectors, each under a key, asked together: which of them want this message?

    subscriptions: a mapping from keys (hashable) to selectors (text, or Selector of this dialect). dialect: as for
    Selector. on_error: what a message does on which a selector cannot be evaluated: "raise" SelectorEvaluationError, or
    "reject" it for that selector. The answer is the one of a loop over the selectors in the order of their addition;
    only, every property that any of them names is read, so a value that no message can carry always raises
    InvalidMessageError. Threads may change them while others match, who see the subscriptions as they were.
    Raises InvalidSelectorError.
    """

    def __init__(self, subscriptions=(), *, dialect="activemq", on_error="raise", **unknown):
        if unknown:
            raise unknown_arguments("Subscriptions", unknown, ("subscriptions", "dialect", "on_error"))
        check_choice("on_error", on_error, ("raise", "reject"))
        Selector("TRUE", dialect)
        self.dialect = dialect
        self.on_error = on_error
        self.by_key = {}
        self.slot_of = {}
        self.living = []
        self.tail = []
        self._many = LARGE
        self.slots_due = 2 * FEW_SLOTS
        try:
            self.lock = threading.RLock()
        except RuntimeError as error:
            raise MemoryError() from error
        self.update(subscriptions)

    @classmethod
    def __class_getitem__(cls, item):
        return type(list.__class_getitem__(int))(cls, item)

    def __len__(self):
        return len(self.by_key)

    def __contains__(self, key):
        return key in self.by_key

    def __iter__(self):
        return iter(list(self.by_key))

    def __getitem__(self, key):
        """The selector of a key."""
        return (<Subscription> self.by_key[key]).selector

    def __repr__(self):
        return f"<Subscriptions: {counted(len(self.by_key), 'selector')}, dialect={self.dialect!r}>"

    def __reduce__(self):
        texts = {key: (<Subscription> subscription).selector.text for key, subscription in list(self.by_key.items())}
        return restored, (texts, self.dialect, self.on_error)

    def keys(self):
        """The keys, in the order of addition."""
        return list(self.by_key)

    cdef Subscription made(self, object key, object selector, int64_t number):
        cdef Subscription subscription = Subscription.__new__(Subscription)
        cdef int slot
        if isinstance(selector, Selector):
            if (<Selector> selector).dialect != self.dialect:
                raise ValueError(
                    f"the selector of {key!r} is of dialect {(<Selector> selector).dialect!r}, not {self.dialect!r}")
            subscription.selector = selector
        else:
            try:
                subscription.selector = Selector(selector, self.dialect)
            except InvalidSelectorError as error:
                error.key = key
                raise
            except TypeError as error:
                raise TypeError(f"the selector of {key!r}: {error}") from None
        subscription.key = key
        subscription.program = subscription.selector.program
        subscription.number = number
        subscription.slots = <int*> allocate((len(subscription.program.names) + 1) * sizeof(int))
        for slot, name in enumerate(subscription.program.names):
            subscription.slots[slot] = self.slot_of.setdefault(name, len(self.slot_of))
        return subscription

    def add(self, key, selector):
        """Add one; ValueError if the key is there already."""
        self.lock.acquire()
        try:
            if key in self.by_key:
                raise ValueError(f"there is a subscription {key!r} already; replace() changes its selector")
            subscription = self.made(key, selector, self.next_number)
            self.next_number += 1
            self.mend()
            self.by_key[key] = subscription
            try:
                self.swap(None, subscription)
            except BaseException:
                del self.by_key[key]
                raise
            self.forget_slots()
        finally:
            self.lock.release()

    def update(self, subscriptions):
        """Add many, all or none: a mapping, or pairs; one index is built for them. ValueError for a key that is there.

        """
        self.lock.acquire()
        try:
            self.update_all(subscriptions)
        finally:
            self.lock.release()

    cdef int update_all(self, object subscriptions) except -1:
        cdef list fresh = []
        cdef dict new = {}
        cdef int64_t number = self.next_number
        if not isinstance(subscriptions, Iterable):
            raise TypeError(f"subscriptions: a mapping from keys to selectors, or such pairs; not {subscriptions!r}")
        for pair in subscriptions.items() if isinstance(subscriptions, Mapping) else subscriptions:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(f"subscriptions: a mapping from keys to selectors, or such pairs; {pair!r} is no pair")
            key, selector = pair
            if key in self.by_key or key in new:
                raise ValueError(f"there is a subscription {key!r} already; replace() changes its selector")
            new[key] = self.made(key, selector, number)
            fresh.append(new[key])
            number += 1
        together = {**self.by_key, **new}
        self.mend()
        self.torn = True
        before, self.by_key = self.by_key, together
        try:
            self.take_in(fresh)
            self.torn = False
        except BaseException:
            self.by_key = before
            raise
        self.next_number = number
        return self.forget_slots()

    def remove(self, key):
        """Remove one; KeyError if there is none."""
        self.lock.acquire()
        try:
            self.swap(self.by_key[key], None)
            del self.by_key[key]
        finally:
            self.lock.release()

    def replace(self, key, selector):
        """Change the selector of a key, which keeps its place in the order; KeyError if there is none."""
        cdef Subscription old
        self.lock.acquire()
        try:
            old = self.by_key[key]
            subscription = self.made(key, selector, old.number)
            self.swap(old, subscription)
            self.by_key[key] = subscription
            self.forget_slots()
        finally:
            self.lock.release()

    cdef int swap(self, Subscription old, Subscription new) except -1:
        self.mend()
        self.torn = True
        if old is not None:
            self.drop(old)
        if new is not None:
            self.take_in([new])
        self.torn = False
        return 0

    cdef int mend(self) except -1:
        cdef list everything
        if not self.torn:
            return 0
        everything = list(self.by_key.values())
        self.snapshot = None
        self.appended = None
        for subscription in everything:
            (<Subscription> subscription).segment = None
        self.living = []
        self.tail = everything
        if len(everything) > SMALL_TAIL:
            self.living = [Living(segment_of(everything, self.on_error == "raise"))]
            self.tail = []
        self.torn = False
        return 0

    cdef int take_in(self, list fresh) except -1:
        cdef list all_new
        self.snapshot = None
        if len(fresh) == 1 and len(self.by_key) >= self._many and self.append(fresh[0]):
            return 0
        self.tail.extend(fresh)
        if len(self.tail) > (SMALL_TAIL if len(self.by_key) < LARGE else LARGE_TAIL):
            all_new, self.tail = self.tail, []
            self.living.append(Living(segment_of(all_new, self.on_error == "raise")))
            self.compact()
        return 0

    cdef bint append(self, Subscription fresh) except -1:
        """To the append segment; False: there is no segment that could be its model."""
        cdef Living one
        cdef int index
        if not self.living:
            return False
        if self.appended is None or not self.appended.add(fresh):
            self.living = [one for one in self.living if (<Living> one).count]
            if not self.living:
                self.appended = None
                return False
            one = self.living[0]
            self.appended = append_segment_of(one.segment, max(SMALLEST_APPEND, <int> len(self.by_key) // APPEND_PART))
            self.living.append(Living(self.appended.segment))
            self.appended.add(fresh)
        for index in range(len(self.living) - 1, -1, -1):
            one = self.living[index]
            if one.segment is self.appended.segment:
                self.living[index] = one.with_one(fresh)
                return True
        raise AssertionError("the append segment is not among the living ones")

    cdef int drop(self, Subscription gone) except -1:
        cdef int index
        cdef Living one
        self.snapshot = None
        if gone.segment is None:
            self.tail = [subscription for subscription in self.tail if subscription is not gone]
            return 0
        for index in range(len(self.living)):
            one = self.living[index]
            if one.segment is gone.segment:
                one = one.without(gone)
                self.living[index] = one
                if self.appended is not None and one.segment is self.appended.segment:
                    return 0
                if one.count == 0:
                    del self.living[index]
                elif 2 * one.count < one.segment.members:
                    self.living[index] = Living(segment_of(alive_of(one), self.on_error == "raise"))
                return 0
        raise AssertionError("a subscription is in no segment")

    cdef int compact(self) except -1:
        """Make one of the last segments while there are several of like size."""
        cdef list together
        cdef Living one
        self.appended = None            # it may become part of another
        self.living.sort(key=lambda one: -(<Living> one).count)
        while len(self.living) >= LIKE_SIZES:
            least = (<Living> self.living[len(self.living) - 1]).count
            together = [one for one in self.living if (<Living> one).count <= LIKE_SIZES * least]
            if len(together) < LIKE_SIZES:
                break
            self.living = [one for one in self.living if (<Living> one).count > LIKE_SIZES * least]
            merged = []
            for one in together:
                merged += alive_of(one)
            self.living.append(Living(segment_of(merged, self.on_error == "raise")))
            self.living.sort(key=lambda one: -(<Living> one).count)
        return 0

    def optimize(self):
        """Make one index of everything, as if all had been added at once: matching is fastest afterwards."""
        self.lock.acquire()
        try:
            self.gather()
        finally:
            self.lock.release()

    cdef int forget_slots(self) except -1:
        # Slots are numbered anew, and so is all that knows them; who matches keeps the old subscriptions.
        cdef dict before = self.slot_of, by_key = {}
        cdef Subscription subscription
        cdef set read
        if len(before) < self.slots_due:
            return 0
        read = {name for subscription in self.by_key.values() for name in subscription.program.names}
        self.slots_due = 2 * max(FEW_SLOTS, <int> len(read))
        if 2 * len(read) > len(before):
            return 0
        self.slot_of = {}
        try:
            for key, subscription in self.by_key.items():
                by_key[key] = self.made(key, subscription.selector, subscription.number)
            segment = segment_of(list(by_key.values()), self.on_error == "raise") if len(by_key) > 16 else None
        except BaseException:
            self.slot_of = before
            raise
        self.by_key = by_key
        self.torn = True
        self.snapshot = None
        self.appended = None
        self.tail = [] if segment is not None else list(by_key.values())
        self.living = [] if segment is None else [Living(segment)]
        self.torn = False
        return 0

    cdef int gather(self) except -1:
        cdef Living one
        cdef list everything
        self.mend()
        everything = list(self.tail)
        self.torn = True
        for one in self.living:
            everything += alive_of(one)
        everything.sort(key=lambda subscription: (<Subscription> subscription).number)
        self.snapshot = None
        self.appended = None
        self.tail = everything if len(everything) <= 16 else []
        self.living = [] if len(everything) <= 16 else [Living(segment_of(everything, self.on_error == "raise"))]
        for subscription in self.tail:
            (<Subscription> subscription).segment = None
        self.torn = False
        return 0

    cdef Snapshot current(self):
        cdef Snapshot snapshot = self.snapshot
        if snapshot is None:
            self.lock.acquire()
            try:
                snapshot = self.snapshot if self.snapshot is not None else self.made_anew()
            finally:
                self.lock.release()
        return snapshot

    cdef Snapshot made_anew(self):
        cdef Snapshot snapshot
        cdef Living one
        cdef Subscription subscription
        cdef int index
        self.mend()
        snapshot = Snapshot.__new__(Snapshot)
        snapshot.reader = reader_of(list(self.slot_of), self.dialect == "rocketmq")
        snapshot.living = tuple(self.living)
        snapshot.tail = tuple(self.tail)
        snapshot.errors_count = self.on_error == "raise"
        snapshot.idle = [None] * IDLE_PLACES
        snapshot.segment_count = <int> len(snapshot.living)
        snapshot.tail_count = <int> len(snapshot.tail)
        snapshot.segments = <PyObject**> allocate_zeros(snapshot.segment_count + 1, sizeof(PyObject*))
        snapshot.alive = <const uint64_t**> allocate_zeros(snapshot.segment_count + 1, sizeof(uint64_t*))
        snapshot.asked = <PyObject**> allocate_zeros(snapshot.tail_count + 1, sizeof(PyObject*))
        for index in range(snapshot.segment_count):
            one = snapshot.living[index]
            one.seen = True
            snapshot.segments[index] = <PyObject*> one.segment
            snapshot.alive[index] = one.bits
            snapshot.most_tables = max(snapshot.most_tables, one.segment.table_count)
            snapshot.most_lines = max(snapshot.most_lines, one.segment.lines, one.segment.hit_lines)
            if one.segment.posted is not None:
                snapshot.most_columns = max(snapshot.most_columns, one.segment.posted.column_count)
                snapshot.most_posted = max(snapshot.most_posted, one.segment.posted.count)
                snapshot.most_patterns = max(snapshot.most_patterns, one.segment.posted.pattern_count)
            snapshot.widest = max(snapshot.widest, one.segment.widest)
            snapshot.needs_gil |= one.segment.needs_gil
        for index in range(snapshot.tail_count):
            subscription = snapshot.tail[index]
            snapshot.asked[index] = <PyObject*> subscription
            snapshot.widest = max(snapshot.widest, <int> len(subscription.program.names))
            snapshot.needs_gil |= subscription.program.needs_gil
        self.snapshot = snapshot
        return snapshot

    cdef Search begin(self, Snapshot snapshot, bint keyless, bint any_order):
        cdef Search search = snapshot.idle.pop() if len(snapshot.idle) > IDLE_PLACES else None
        if search is None:
            search = Search(snapshot)
        search.found.keyless = keyless
        search.found.any_order = any_order
        search.found.size = search.found.expected = 0
        return search

    def match(self, message, /):
        """The keys of the subscriptions that want a message (a mapping or a Message): a list, in order of addition.

        Raises SelectorEvaluationError (of the first that raises; unless on_error is "reject"), InvalidMessageError.
        """
        cdef Snapshot snapshot = self.snapshot if self.snapshot is not None else self.current()
        cdef Search search = self.begin(snapshot, False, False)
        cdef int64_t index
        cdef list keys
        try:
            search.event.read(message)
            search.find(snapshot)
            if search.found.raised_size or search.found.no_memory:
                error = search.refusal(snapshot, None)
                if error is not None:
                    raise error
            keys = PyList_New(search.found.size)
            for index in range(search.found.size):
                key = <object> search.found.keys[index]
                Py_INCREF(key)
                PyList_SET_ITEM(keys, index, key)
            return keys
        finally:
            search.event.clear()
            snapshot.idle.append(search)

    def match_batch(self, batch, *, missing="raise", ordered=True):
        """Who wants each message of a batch: ``(offsets, keys)``.

        batch: a list or tuple of messages, a dict of equally long numpy arrays by property name, or any object with the
        Arrow PyCapsule interface. missing: of a column that a selector reads, "raise" MissingColumnError or take it for
        "null". ordered: the keys of a message are in the order of addition, or, if False, in any order, which is faster
        where many want a message. offsets: int64, one more than messages; message r is wanted by
        keys[offsets[r]:offsets[r + 1]] (an array of objects). Raises as ``match``, with the row.
        """
        cdef Snapshot snapshot = self.keyed()
        offsets, places = self.placed(snapshot, batch, missing, ordered)
        return offsets, snapshot.ordered[1][places]

    def match_places(self, batch, *, missing="raise", ordered=True):
        """``match_batch`` with places in ``keys()`` (int64) instead of keys."""
        return self.placed(self.keyed(), batch, missing, ordered)

    cdef tuple placed(self, Snapshot snapshot, object batch, object missing, bint ordered):
        check_choice("missing", missing, ("raise", "null"))
        numbers = snapshot.ordered[0]
        if isinstance(batch, (list, tuple)):
            offsets, found = self.match_messages(snapshot, batch, ordered)
        elif isinstance(batch, PackedMessages):
            raise TypeError("Subscriptions do not read PackedMessages, a Selector does: give the list of the messages")
        else:
            offsets, found = self.match_columns(
                snapshot, columns_of(batch, snapshot.reader.names), missing, ordered
            )
        if len(numbers) and numbers[len(numbers) - 1] - numbers[0] + 1 == len(numbers):
            return offsets, found - numbers[0] if numbers[0] else found
        return offsets, numpy.searchsorted(numbers, found)

    def match_messages(self, Snapshot snapshot, messages, bint ordered):
        cdef Search search = self.begin(snapshot, True, not ordered)
        cdef list rows = list(messages)
        cdef int64_t row
        offsets = numpy.zeros(len(rows) + 1, numpy.int64)
        cdef int64_t[::1] offset = offsets
        try:
            for row in range(len(rows)):
                search.event.read(rows[row])
                search.find(snapshot)
                if search.found.raised_size or search.found.no_memory:
                    error = search.refusal(snapshot, row)
                    if error is not None:
                        raise error
                offset[row + 1] = search.found.size
                search.event.clear()
            return offsets, numbers_of(search)
        finally:
            search.event.clear()
            snapshot.idle.append(search)

    def match_columns(self, Snapshot snapshot, ColumnViews columns, missing, bint ordered):
        cdef Rows rows
        cdef Event event
        cdef int64_t row = 0
        cdef Py_ssize_t batch = 0
        cdef int slot
        cdef list living = snapshot.ordered[2]
        if len(living) <= BY_COLUMN and columns.row_count >= 64:
            try:
                return self.match_by_selector(living, columns, missing)
            except SelectorEvaluationError:
                pass             # row by row, for the error of the first message
        offsets = numpy.zeros(columns.row_count + 1, numpy.int64)
        cdef int64_t[::1] offset = offsets
        rows = Rows(snapshot, self.begin(snapshot, True, not ordered))
        for slot in range(rows.search.event.count):
            name = snapshot.reader.names[slot]
            rows.places[slot] = columns.find(name)
            if rows.places[slot] < 0 and missing == "raise" and (self.dialect == "rocketmq" or not header_code(name)):
                if any([name in (<Subscription> subscription).selector.names for subscription in living]):
                    raise MissingColumnError(name, columns.offered)
        event = rows.search.event
        cdef int64_t* ends = &offset[0] + 1
        try:
            event.body = NULL
            while row < columns.row_count:
                if snapshot.needs_gil:
                    row = rows.run(event, columns, row, batch, ends)
                else:
                    with nogil:
                        row = rows.run(event, columns, row, batch, ends)
                if row < 0:
                    raise MemoryError()
                if row < columns.row_count:
                    error = rows.search.refusal(snapshot, row)
                    if isinstance(error, UnicodeDecodeError):
                        error = refused_text(columns, snapshot.reader.names, row) or error
                    if error is not None:
                        raise error
                    row += 1
                    rows.search.event.forget()
            return offsets, numbers_of(rows.search)
        finally:
            rows.search.event.clear()
            snapshot.idle.append(rows.search)

    def match_by_selector(self, list living, ColumnViews columns, missing):
        """Column by column: each selector of all rows, then who wants each row."""
        cdef int64_t row, at, size = columns.row_count
        cdef uint64_t word
        cdef Subscription subscription
        answers = {}
        for subscription in living:
            if subscription.selector not in answers:
                answers[subscription.selector] = subscription.selector.mask_words(columns, self.on_error, missing)
        offsets = numpy.zeros(size + 1, numpy.int64)
        cdef int64_t[::1] offset = offsets, into, next_of
        cdef const uint64_t[::1] words
        for subscription in living:
            words = answers[subscription.selector]
            for at in range(len(words)):
                word = words[at]
                while word:
                    offset[64 * at + lowest_bit(word) + 1] += 1
                    word &= word - 1
        numpy.cumsum(offsets, out=offsets)
        found = numpy.empty(offsets[size], numpy.int64)
        into = found
        next_of = offsets[:size].copy()
        for subscription in living:
            words = answers[subscription.selector]
            for at in range(len(words)):
                word = words[at]
                while word:
                    row = 64 * at + lowest_bit(word)
                    into[next_of[row]] = subscription.number
                    next_of[row] += 1
                    word &= word - 1
        return offsets, found

    cdef Snapshot keyed(self):
        """The snapshot, with what is known of its living."""
        cdef Snapshot snapshot = self.snapshot
        if snapshot is None or snapshot.ordered is None:
            self.lock.acquire()
            try:
                snapshot = self.current()
                if snapshot.ordered is None:
                    keys = numpy.empty(len(self.by_key), object)
                    keys[:] = list(self.by_key)
                    living = list(self.by_key.values())
                    numbers = numpy.array([(<Subscription> alive).number for alive in living], numpy.int64)
                    snapshot.ordered = (numbers, keys, living)
            finally:
                self.lock.release()
        return snapshot

    def _sizes(self):
        """How many are in each segment."""
        return [(<Living> one).count for one in self.living]

    def _check(self):
        """Assert the invariants of subscriptions.pxd."""
        cdef Living one
        cdef Subscription subscription
        cdef int place
        self.mend()
        seen = {}
        for subscription in self.tail:
            assert subscription.segment is None
            seen[subscription.key] = subscription
        for one in self.living:
            one.segment._check()
            alive = alive_of(one)
            assert len(alive) == one.count
            for subscription in alive:
                assert subscription.key not in seen and subscription.segment is one.segment
                seen[subscription.key] = subscription
        assert len(seen) == len(self.by_key)
        last = -1
        for key, subscription in self.by_key.items():
            assert seen[key] is subscription and subscription.number > last
            last = subscription.number
            for place, name in enumerate(subscription.program.names):
                assert self.slot_of[name] == subscription.slots[place]


cdef object numbers_of(Search search):
    """What a search has found, int64; it has it no more."""
    cdef int64_t size = search.found.size
    cdef void* fitting
    cdef array numbers
    if not size:
        return numpy.empty(0, numpy.int64)
    fitting = try_resize(search.found.numbers, size * sizeof(int64_t))
    if fitting != NULL:
        search.found.numbers = <int64_t*> fitting
        search.found.room = size
    numbers = <int64_t[:size]> search.found.numbers
    numbers.callback_free_data = free
    search.found.numbers = NULL
    search.found.size = search.found.room = 0
    return numpy.asarray(numbers)


def restored(texts, dialect, on_error):
    """Subscriptions from what ``__reduce__`` gives."""
    return Subscriptions(texts, dialect=dialect, on_error=on_error)
