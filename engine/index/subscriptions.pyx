"""See subscriptions.pxd."""

from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cython.view cimport array
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free

from pyengine._engine.lowlevel.memory cimport allocate_zeros, try_resize
from pyengine._engine.index.append_segment cimport append_segment_of
from pyengine._engine.columns.batch cimport columns_of
from pyengine._engine.columns.column_views cimport ColumnViews, refused_text
from pyengine._engine.lowlevel.bits cimport lowest_bit
from pyengine._engine.index.growing cimport Growing, growing
from pyengine._engine.index.key_table cimport KeyTable, key_table
from pyengine._engine.index.message_view cimport Event
from pyengine._engine.index.name_slots cimport NameSlots, name_slots_of
from pyengine._engine.index.segment_builder cimport SegmentBuilder, segment_of
from pyengine._engine.message.header cimport header_code
from pyengine._engine.message.packed_messages cimport PackedMessages
from pyengine._engine.index.search cimport Living, Rows, Search, Snapshot, alive_of
from pyengine._engine.index.subscription cimport Subscription, renumbered, subscription_of
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
    APPEND_ROOM = 4096       # entries of an append segment
    LIKE_SIZES = 4           # segments of like size that are made one
    LARGEST = 20_000         # subscriptions of a segment that is made piece by piece
    MOST_WAITING = 4         # full append segments, from which on additions make pieces
    FEW = 512                # subscriptions up to which an update makes a piece only
    FEW_NAMES = 256          # idle ones that are not worth numbering the others anew
    IDLE_PART = 16           # a sixteenth of the subscriptions: the same
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
        self.by_key = key_table()
        self.names = name_slots_of(dialect == "rocketmq")
        self.living = []
        self.tail = []
        self.removed = []
        self.sources = []
        self.retired = []
        self.left = []
        self._many = LARGE
        try:
            self.lock = threading.RLock()
        except RuntimeError as error:
            raise MemoryError() from error
        self.update(subscriptions)

    @classmethod
    def __class_getitem__(cls, item):
        return type(list.__class_getitem__(int))(cls, item)

    def __len__(self):
        return self.by_key.count

    def __contains__(self, key):
        return self.by_key.get(key) is not None

    def __iter__(self):
        return iter(self.keys())

    def __getitem__(self, key):
        """The selector of a key."""
        cdef Subscription found = self.by_key.get(key)
        if found is None:
            raise KeyError(key)
        return Selector(found.text, self.dialect)

    def __repr__(self):
        return f"<Subscriptions: {counted(self.by_key.count, 'selector')}, dialect={self.dialect!r}>"

    def __reduce__(self):
        return restored, (self.texts(), self.dialect, self.on_error)

    def keys(self):
        """The keys, in the order of addition."""
        cdef Subscription each
        cdef list found
        self.lock.acquire()
        try:
            found = self.by_key.in_order()
            for index in range(len(found)):
                each = found[index]
                found[index] = <object> each.key
            return found
        finally:
            self.lock.release()

    cdef dict texts(self):
        cdef Subscription each
        cdef dict texts = {}
        self.lock.acquire()
        try:
            for each in self.by_key.in_order():
                texts[<object> each.key] = each.text
            return texts
        finally:
            self.lock.release()

    cdef Subscription made(self, object key, object selector, int64_t number):
        cdef Subscription subscription
        cdef Selector compiled
        if isinstance(selector, Selector):
            if (<Selector> selector).dialect != self.dialect:
                raise ValueError(
                    f"the selector of {key!r} is of dialect {(<Selector> selector).dialect!r}, not {self.dialect!r}")
            compiled = selector
        else:
            try:
                compiled = Selector(selector, self.dialect)
            except InvalidSelectorError as error:
                error.key = key
                raise
            except TypeError as error:
                raise TypeError(f"the selector of {key!r}: {error}") from None
        try:
            subscription = subscription_of(
                <PyObject*> key, number, compiled.program, self.names.slots_of(compiled.program))
            self.names.count(subscription, 1)
        except BaseException:
            self.torn = True             # names may have slots that nobody is counted for
            raise
        return subscription

    def add(self, key, selector):
        """Add one; ValueError if the key is there already."""
        self.lock.acquire()
        try:
            if self.by_key.get(key) is not None:
                raise ValueError(f"there is a subscription {key!r} already; replace() changes its selector")
            self.mend()
            subscription = self.made(key, selector, self.next_number)
            self.next_number += 1
            self.torn = True
            self.by_key.set(key, subscription, False)
            try:
                self.swap(None, subscription)
            except BaseException:
                self.by_key.remove(key)
                raise
            self.forget_names()
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
        cdef Py_ssize_t done = 0
        cdef int64_t number = self.next_number
        if not isinstance(subscriptions, Iterable):
            raise TypeError(f"subscriptions: a mapping from keys to selectors, or such pairs; not {subscriptions!r}")
        self.mend()
        try:
            for pair in subscriptions.items() if isinstance(subscriptions, Mapping) else subscriptions:
                if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                    raise TypeError(
                        f"subscriptions: a mapping from keys to selectors, or such pairs; {pair!r} is no pair")
                key, selector = pair
                if self.by_key.get(key) is not None or key in new:
                    raise ValueError(f"there is a subscription {key!r} already; replace() changes its selector")
                fresh.append(self.made(key, selector, number))
                new[key] = fresh[len(fresh) - 1]
                number += 1
        except BaseException:
            self.torn = True             # the names of the new ones are counted
            raise
        self.torn = True
        try:
            for key, subscription in new.items():
                self.by_key.set(key, subscription, True)
                done += 1
            self.take_in(fresh)
            self.torn = False
        except BaseException:
            for subscription in fresh[:done]:
                self.by_key.remove(<object> (<Subscription> subscription).key)
            raise
        self.next_number = number
        return self.forget_names()

    def remove(self, key):
        """Remove one; KeyError if there is none."""
        self.lock.acquire()
        try:
            self.mend()
            old = self.by_key.get(key)
            if old is None:
                raise KeyError(key)
            self.swap(old, None)
            self.by_key.remove(key)
        finally:
            self.lock.release()

    def replace(self, key, selector):
        """Change the selector of a key, which keeps its place in the order; KeyError if there is none."""
        cdef Subscription old, subscription
        self.lock.acquire()
        try:
            self.mend()
            old = self.by_key.get(key)
            if old is None:
                raise KeyError(key)
            subscription = self.made(key, selector, old.number)
            subscription.key = old.key       # which ``by_key`` owns
            self.torn = True
            self.swap(old, subscription)
            self.by_key.set(key, subscription, False)
            self.forget_names()
        finally:
            self.lock.release()

    cdef int swap(self, Subscription old, Subscription new) except -1:
        if new is None:
            self.mend()
        self.torn = True
        if old is not None:
            self.drop(old)
            self.names.count(old, -1)
        if new is not None:
            self.take_in([new])
        self.torn = False
        return 0

    cdef int mend(self) except -1:
        cdef list everything
        cdef NameSlots names
        cdef Subscription subscription
        if not self.torn:
            return 0
        everything = self.by_key.in_order()
        self.snapshot = None
        self.appended = None
        self.give_up_merge()
        names = name_slots_of(self.dialect == "rocketmq")
        names.follow(self.names)
        for subscription in everything:
            subscription.segment = NULL
            names.count(subscription, 1)
        self.names = names
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
        if len(fresh) == 1 and self.by_key.count >= self._many and self.append(fresh[0]):
            if self.due and self.full_segments() > MOST_WAITING:
                self.merge()
            return 0
        self.tail.extend(fresh)
        if len(self.tail) > (SMALL_TAIL if self.by_key.count < LARGE else LARGE_TAIL):
            all_new, self.tail = self.tail, []
            self.living.append(Living(segment_of(all_new, self.on_error == "raise")))
            self.living.sort(key=size_of)
            self.due = True
            if len(fresh) > FEW:
                self.merge_all()
        elif self.due:
            self.merge()
        return 0

    cdef bint append(self, Subscription fresh) except -1:
        """To the append segment; False: there is no segment that could be its model."""
        cdef Living one
        cdef int index
        if not self.living:
            return False
        if self.appended is None or not self.appended.add(fresh):
            self.living = [one for one in self.living if (<Living> one).count or (<Living> one).segment in self.sources]
            if not self.living:
                self.appended = None
                return False
            one = self.living[0]
            self.due |= self.appended is not None
            self.appended = append_segment_of(one.segment, APPEND_ROOM)
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
        self.removed.append(<object> gone.key)
        if len(self.removed) > FEW:
            self.begin_removed()
        if gone.segment == NULL:
            self.tail = [subscription for subscription in self.tail if subscription is not gone]
            return 0
        for index in range(len(self.living)):
            one = self.living[index]
            if <void*> one.segment == gone.segment:
                one = one.without(gone)
                self.living[index] = one
                if one.segment in self.sources:
                    self.left.append(gone)
                elif self.appended is None or one.segment is not self.appended.segment:
                    if one.count == 0:
                        del self.living[index]
                    elif 2 * one.count < one.segment.members:
                        self.due = True
                return 0
        raise AssertionError("a subscription is in no segment")

    cdef int begin_removed(self) except -1:
        cdef list following = []
        self.removed.append(following)
        self.removed = following
        return 0

    cdef int full_segments(self) noexcept:
        cdef int count = 0
        cdef Living one
        for one in self.living:
            count += one.segment.shares
        return count - (self.appended is not None)

    cdef list to_merge(self):
        """Half of it gone, one; else of like size, or appended: several, the smallest first."""
        cdef Living one
        cdef list together = []
        cdef int64_t total = 0, least = -1
        self.living = [
            one for one in self.living
            if one.count or self.appended is not None and one.segment is self.appended.segment]
        for one in reversed(self.living):
            if self.appended is not None and one.segment is self.appended.segment:
                continue
            if 2 * one.count < one.segment.members:
                return [one]
            if one.segment.shares and total + one.count <= LARGEST:
                together.append(one)
                total += one.count
        if together:
            return together
        for one in reversed(self.living):
            if one.segment.shares or 2 * one.count > LARGEST:
                continue
            if least < 0 or one.count > LIKE_SIZES * least:
                if len(together) >= LIKE_SIZES:
                    break
                least, total, together = max(one.count, 1), 0, []
            if total + one.count <= LARGEST:
                together.append(one)
                total += one.count
        return together if len(together) >= LIKE_SIZES else []

    cdef int merge(self) except -1:
        cdef list together
        cdef object pieces
        if self.merging:
            return 0
        if self.retired:
            self.retired.pop()
            return 0
        if self.builder is None:
            together = self.to_merge()
            if not together:
                self.due = False
                return 0
            everything = []
            for one in together:
                everything += alive_of(one)
            self.sources = [(<Living> one).segment for one in together]
            self.left = []
            self.builder = SegmentBuilder()
            self.pieces = self.builder.steps(everything, self.on_error == "raise")
        pieces = self.pieces
        self.merging = True
        try:
            for _ in pieces:
                return 0
        except BaseException:
            self.give_up_merge()
            raise
        finally:
            self.merging = False
        return self.end_merge() if self.pieces is pieces else 0

    cdef int end_merge(self) except -1:
        cdef Living made = Living(self.builder.segment)
        cdef list living
        made.segment.adopt()
        for gone in self.left:
            made = made.without(gone)
        living = [one for one in self.living if (<Living> one).segment not in self.sources]
        if made.count:
            living.append(made)
        living.sort(key=size_of)
        self.living = living
        self.snapshot = None
        self.retired = self.sources
        self.give_up_merge()
        return 0

    cdef void give_up_merge(self) noexcept:
        self.builder = self.pieces = None
        self.sources, self.left = [], []

    cdef int merge_all(self) except -1:
        while self.due:
            self.merge()
        return 0

    cdef int attend(self) except -1:
        if not self.lock.acquire(False):
            return 0
        try:
            self.mend()
            if self.due:
                self.merge()
        finally:
            self.lock.release()
        return 0

    def optimize(self):
        """Make one index of everything, as if all had been added at once: matching is fastest afterwards."""
        self.lock.acquire()
        try:
            self.gather()
        finally:
            self.lock.release()

    cdef int forget_names(self) except -1:
        # The others are numbered anew, and so is all that knows them; who matches keeps the old subscriptions.
        cdef NameSlots names, before = self.names
        cdef Subscription subscription
        cdef Growing slots
        cdef KeyTable by_key = key_table()
        cdef Py_ssize_t idle = len(before.idle)
        if idle <= FEW_NAMES or 2 * idle <= len(before.names) or idle <= self.by_key.count // IDLE_PART:
            return 0
        names = name_slots_of(self.dialect == "rocketmq")
        slots = growing(sizeof(int))
        slots.more(len(before.names))
        for slot, name in enumerate(before.names):
            if slot not in before.idle:
                (<int*> slots.items)[<int> slot] = names.slot(name)
                names.idle.clear()
        for subscription in self.by_key.in_order():
            by_key.set(<object> subscription.key, renumbered(subscription, <int*> slots.items), True)
        self.torn = True
        self.by_key, self.names = by_key, names
        return self.mend()

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
        self.give_up_merge()
        self.due = False
        self.tail = everything if len(everything) <= 16 else []
        self.living = [] if len(everything) <= 16 else [Living(segment_of(everything, self.on_error == "raise"))]
        for subscription in self.tail:
            (<Subscription> subscription).segment = NULL
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
        snapshot.reader = self.names.reader_now()
        snapshot.living = tuple(self.living)
        snapshot.tail = tuple(self.tail)
        self.begin_removed()
        snapshot.removed = self.removed
        snapshot.idle_names = frozenset([self.names.names[slot] for slot in self.names.idle])
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
            snapshot.widest = max(snapshot.widest, subscription.widest())
            snapshot.needs_gil |= subscription.graph.needs_gil
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
        if self.due:
            self.attend()
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
                return self.match_by_selector(snapshot, columns, missing)
            except SelectorEvaluationError:
                pass             # row by row, for the error of the first message
        offsets = numpy.zeros(columns.row_count + 1, numpy.int64)
        cdef int64_t[::1] offset = offsets
        rows = Rows(snapshot, self.begin(snapshot, True, not ordered))
        for slot in range(rows.search.event.count):
            name = snapshot.reader.names[slot]
            rows.places[slot] = columns.find(name)
            if rows.places[slot] < 0 and missing == "raise" and (self.dialect == "rocketmq" or not header_code(name)):
                if name not in snapshot.idle_names:
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

    def match_by_selector(self, Snapshot snapshot, ColumnViews columns, missing):
        """Column by column: each selector of all rows, then who wants each row."""
        cdef int64_t row, at, size = columns.row_count
        cdef uint64_t word
        cdef Subscription subscription
        cdef list living = snapshot.ordered[2]
        cdef dict selectors = snapshot.selectors
        answers = {}
        if selectors is None:
            texts = {(<Subscription> each).text for each in living}
            snapshot.selectors = selectors = {text: Selector(text, self.dialect) for text in texts}
        for text in [(<Subscription> each).text for each in living]:
            if text not in answers:
                answers[text] = selectors[text].mask_words(columns, self.on_error, missing)
        offsets = numpy.zeros(size + 1, numpy.int64)
        cdef int64_t[::1] offset = offsets, into, next_of
        cdef const uint64_t[::1] words
        for subscription in living:
            words = answers[subscription.text]
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
            words = answers[subscription.text]
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
        if self.due:
            self.attend()
        cdef Snapshot snapshot = self.snapshot
        if snapshot is None or snapshot.ordered is None:
            self.lock.acquire()
            try:
                snapshot = self.current()
                if snapshot.ordered is None:
                    keys = numpy.empty(self.by_key.count, object)
                    living = self.by_key.in_order()
                    keys[:] = [<object> (<Subscription> alive).key for alive in living]
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
            assert subscription.segment == NULL
            seen[<object> subscription.key] = subscription
        for one in self.living:
            one.segment._check()
            alive = alive_of(one)
            assert len(alive) == one.count
            for subscription in alive:
                assert <object> subscription.key not in seen and subscription.segment == <void*> one.segment
                assert one.segment.at_hit(subscription.hit) == <PyObject*> subscription
                seen[<object> subscription.key] = subscription
        assert len(seen) == self.by_key.count
        assert self.builder is None or self.due
        assert not self.sources or {*self.sources} <= {(<Living> one).segment for one in self.living}
        last = -1
        names = name_slots_of(self.dialect == "rocketmq")
        names.follow(self.names)
        for subscription in self.by_key.in_order():
            assert seen[<object> subscription.key] is subscription and subscription.number > last
            assert self.by_key.get(<object> subscription.key) is subscription
            last = subscription.number
            names.count(subscription, 1)
            for place, name in enumerate(Selector(subscription.text, self.dialect).names):
                assert self.names.slot_of[name] not in self.names.idle
                if subscription.slots != NULL:
                    assert self.names.slot_of[name] == subscription.slots[place]
        assert names.counts() == self.names.counts() and names.idle == self.names.idle


cdef int64_t size_of(Living one):
    """Sorts the largest to the front."""
    return -one.count


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
