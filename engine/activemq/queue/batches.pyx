"""Many messages in one call, through the same rounds as single messages; see batches.pxd."""

import numpy as np

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint64_t
from libc.stdlib cimport free, qsort
from libc.string cimport memset

from pyengine._engine.lowlevel.memory cimport allocate_zeros, resize
from pyengine._engine.activemq.queue.group_map cimport GroupMap
from pyengine._engine.activemq.queue.message_slots cimport IN_DOUBT, IN_FLIGHT, NOWHERE, STORED, WAITING, Message
from pyengine._engine.activemq.queue.hold_reasons cimport reason_of
from pyengine._engine.activemq.queue.rounds cimport Handout, Rounds
from pyengine._engine.serialization.codec cimport SharedValues

from pyengine.errors import InvalidMessageError


def column(str field, values, int64_t size, dtype):
    """One column of a batch, contiguous and of the right width, or InvalidMessageError."""
    array = np.asarray(values)
    if array.shape != (size,):
        raise InvalidMessageError(field, array.shape, f"must have one value a message ({size})")
    if array.dtype.kind not in "iu":
        raise InvalidMessageError(field, array.dtype, "must be an array of integers")
    if array.dtype != dtype and size and (array.max() > np.iinfo(dtype).max or array.min() < np.iinfo(dtype).min):
        raise InvalidMessageError(field, int(array.max()), f"must fit {np.dtype(dtype).name}")
    return np.ascontiguousarray(array, dtype=dtype)


cdef Rounds rounds_in(object queue):
    try:
        return <Rounds?> queue.rounds
    except AttributeError as error:
        raise TypeError(f"{queue!r} is not a queue") from error


cdef int64_t offer_rows(Rounds rounds, const Rows* rows, int64_t start, int64_t stop, set prompt, bint steady,
                        Lines lines) except -1:
    # The deliveries stand in ``lines`` or, without them, in rounds.out. steady: stop where nothing can move any more,
    # and return that row.
    cdef int64_t row, first, now = 0
    cdef int32_t message, spare = -1
    cdef bint idle
    rounds.begin_handing_out()
    if steady and (rounds.reported or rounds.consumers.size == 0):
        return start
    idle = rounds.idle()
    for row in range(start, stop):
        if rows.arrivals != NULL:
            now = rows.arrivals[row]
        message = spare if spare >= 0 else rounds.messages.allot()
        spare = -1
        try:
            rounds.reserve_out()
            fill_in(rounds, rows, row, message)
        except BaseException:
            rounds.messages.discard(message)
            raise
        first = rounds.out_size
        if not idle or 0 < rounds.messages.at[message].expiration < now or not rounds.bypasses(message):
            rounds.state.accept(message)
        elif rounds.pass_through(message, now, prompt):
            if lines is None:
                rounds.reserve_out()
                rounds.emit(rounds.messages.at[message].consumer, message)
            else:
                lines.deliver(row, rounds.consumers.at[rounds.messages.at[message].consumer].id)
            spare = message
            continue
        else:
            acknowledge(rounds, prompt, first)
        make_rounds(rounds, prompt, now)
        if lines is not None:
            lines.take(rounds)
        idle = rounds.idle()
        if steady and rounds.at_rest():
            return row + 1
    if spare >= 0:
        rounds.messages.discard(spare)
    return stop


cdef int fill_in(Rounds rounds, const Rows* rows, int64_t row, int32_t message) except -1:
    # Fill an allotted slot from a row; it lies in no chain yet.
    cdef int32_t words = <int32_t> min(rows.words, rounds.consumers.word_count)
    cdef uint64_t none = 1
    cdef Message* sent = &rounds.messages.at[message]
    sent.group = rows.groups[row] if rows.groups != NULL else -1
    sent.group_sequence = rows.group_sequences[row] if rows.group_sequences != NULL else 0
    sent.priority = min(9, max(0, rows.priorities[row])) if rows.priorities != NULL else 4
    sent.expiration = rows.expirations[row] if rows.expirations != NULL else 0
    sent.transient = rows.persistent != NULL and rows.persistent[row] == 0
    sent.connection = -1
    sent.match = rounds.consumers.class_for_words(&rows.matches[row * rows.words] if words else &none, max(1, words))
    return 0


cdef int acknowledge(Rounds rounds, set prompt, int64_t first) except -1:
    # Acknowledge rounds.out from ``first`` on, for the consumers that do it at once.
    cdef int64_t index
    cdef Handout* given
    if prompt is None or prompt:
        for index in range(first, rounds.out_size):
            given = &rounds.out[index]
            if given.handle >= 0 and not rounds.consumers.at[given.slot].browser and (
                    prompt is None or given.consumer in prompt):
                rounds.state.acknowledge_one(given.slot, given.message)
    return 0


cdef int make_rounds(Rounds rounds, set prompt, int64_t now) except -1:
    # Run the due rounds, each with the acknowledgements of consumers that do it at once.
    cdef int64_t index = rounds.out_size
    while rounds.next_round(now):
        acknowledge(rounds, prompt, index)
        index = rounds.out_size
    return 0


cdef class MessageColumns:
    """The messages of a batch as columns, checked. size: their number. None: the default for every message.

    group_sequences: int32 (0). priorities (4). expirations: int64 ms (0 never). persistent: 1 or 0 (1). arrivals: int64
    ms (0). matches: uint64, shape (size,) or (size, words): bit p says that predicate p of the queue matches. groups:
    int32, -1 none: handles of the queue; with ``group_names`` codes into these. Raises InvalidMessageError.
    """

    def __cinit__(self, int64_t size, *, groups=None, list group_names=None, group_sequences=None, priorities=None,
                  expirations=None, persistent=None, matches=None, arrivals=None):
        cdef const uint64_t[:, ::1] bits
        memset(&self.rows, 0, sizeof(Rows))
        self.size = size
        self.groups = groups
        self.group_names = group_names
        self.kept = []
        self.rows.group_sequences = self.narrow("group_sequences", group_sequences)
        self.rows.priorities = self.narrow("priorities", priorities)
        self.rows.expirations = self.wide("expirations", expirations)
        self.rows.persistent = self.narrow("persistent", persistent)
        self.rows.arrivals = self.wide("arrivals", arrivals)
        if matches is not None:
            matches = np.asarray(matches)
            matches = matches.reshape(-1, 1) if matches.ndim == 1 else matches
            if matches.dtype != np.uint64 or matches.ndim != 2 or matches.shape[0] != size:
                raise InvalidMessageError("matches", matches.dtype, "must be uint64 with one row a message")
            matches = np.ascontiguousarray(matches)
            self.kept.append(matches)
            self.rows.words = matches.shape[1]
            if size and self.rows.words:
                bits = matches
                self.rows.matches = &bits[0, 0]

    def __reduce__(self):
        raise TypeError("the columns of a batch cannot be pickled")

    cdef const int32_t* narrow(self, str field, object values) except? NULL:
        cdef const int32_t[::1] array
        if values is None or not self.size:
            return NULL
        self.kept.append(column(field, values, self.size, np.int32))
        array = self.kept[len(self.kept) - 1]
        return &array[0]

    cdef const int64_t* wide(self, str field, object values) except? NULL:
        cdef const int64_t[::1] array
        if values is None or not self.size:
            return NULL
        self.kept.append(column(field, values, self.size, np.int64))
        array = self.kept[len(self.kept) - 1]
        return &array[0]

    cdef int suits(self, Rounds rounds) except -1:
        if not self.rows.words and rounds.consumers.predicate_count > 1:
            raise InvalidMessageError("matches", None, "is needed because a consumer of this queue has a selector")
        return 0


cdef tuple offer(Rounds rounds, MessageColumns given, set prompt):
    cdef int64_t index, size = given.size, first = rounds.state.next_sequence
    given.suits(rounds)
    if given.groups is not None and size:
        given.rows.groups = given.narrow("groups", given.groups)
        if np.max(given.groups) >= rounds.groups.size or np.min(given.groups) < -1:
            raise InvalidMessageError(
                "groups", int(np.max(given.groups)), "is no group handle", hint="see intern_groups")
    offer_rows(rounds, &given.rows, 0, size, prompt, False, None)
    consumers = np.full(size, -1, np.int64)
    sequences, order = np.empty(rounds.out_size, np.int64), np.empty(rounds.out_size, np.int64)
    cdef int64_t[::1] got = consumers, which = sequences, whom = order
    for index in range(rounds.out_size):
        which[index] = rounds.out[index].sequence
        whom[index] = rounds.out[index].consumer
        if rounds.out[index].sequence >= first:
            got[rounds.out[index].sequence - first] = rounds.out[index].consumer
    rounds.out_size = 0
    return consumers, sequences, order


cdef int by_row(const void* left, const void* right) noexcept nogil:
    cdef int64_t a = (<const Line*> left).row, b = (<const Line*> right).row
    return (a > b) - (a < b)


cdef class Numbers:
    """Numbers of the groups of one batch in SharedValues."""
    cdef int32_t* at                  # by code; -1 not looked up yet

    def __cinit__(self, int64_t codes):
        cdef int64_t code
        self.at = <int32_t*> allocate_zeros(codes + 1, sizeof(int32_t))
        for code in range(codes):
            self.at[code] = -1

    def __dealloc__(self):
        free(self.at)

    def __reduce__(self):
        raise TypeError("Numbers cannot be pickled")


cdef class Lines:
    """The outcomes of messages of many queues, queue by queue."""
    cdef Line* at
    cdef int64_t size
    cdef int64_t room
    cdef char* has_line                   # rows of the batch that have a line
    cdef int32_t* handles             # group code -> handle in the queue of ``run_of`` it
    cdef int32_t* run_of
    cdef int32_t* groups              # handle by row
    cdef dict numbers                 # SharedValues -> Numbers
    cdef int32_t run                  # the run at hand,
    cdef int64_t start                # its first row,
    cdef int64_t offset               # arrival number -> row,
    cdef int64_t delivered            # deliveries of its queue so far

    def __cinit__(self, int64_t rows, int64_t codes):
        cdef int64_t code
        self.numbers = {}
        self.has_line = <char*> allocate_zeros(rows + 1, 1)
        self.groups = <int32_t*> allocate_zeros(rows + 1, sizeof(int32_t))
        self.handles = <int32_t*> allocate_zeros(codes + 1, sizeof(int32_t))
        self.run_of = <int32_t*> allocate_zeros(codes + 1, sizeof(int32_t))
        for code in range(codes):
            self.run_of[code] = -1

    def __dealloc__(self):
        free(self.at)
        free(self.has_line)
        free(self.groups)
        free(self.handles)
        free(self.run_of)

    cdef Line* add(self, int32_t run, int64_t row) except NULL:
        cdef Line* line
        if self.size == self.room:
            self.at = <Line*> resize(self.at, max(1024, 2 * self.room) * sizeof(Line))
            self.room = max(1024, 2 * self.room)
        line = &self.at[self.size]
        self.size += 1
        line.run = run
        line.row = row
        line.delivery = line.consumer = -1
        line.reason = DELIVERED
        return line

    cdef int intern(self, Rounds rounds, int32_t run, const int32_t* codes, list names, int64_t start,
                    int64_t stop, bint whole) except -1:
        # whole: these are all messages of the queue, so their groups are not looked up by name again.
        cdef int64_t row
        cdef int32_t code
        for row in range(start, stop):
            code = codes[row]
            if code < 0:
                self.groups[row] = -1
                continue
            if self.run_of[code] != run:
                self.run_of[code] = run
                self.handles[code] = rounds.groups.append(names[code]) if whole else rounds.groups.intern(names[code])
            self.groups[row] = self.handles[code]
        return 0

    cdef int intern_shared(self, GroupMap groups, const int32_t* codes, list names, int64_t start,
                           int64_t stop) except -1:
        # As ``intern``, by number, without looking a name up.
        cdef SharedValues shared = groups.shared
        cdef Numbers numbers = self.numbers.get(shared)
        cdef int64_t row, number
        cdef int32_t code, handle
        if numbers is None:
            numbers = self.numbers[shared] = Numbers(len(names))
        shared.begin()
        for handle in range(groups.size):
            if groups.number[handle] < 0:
                groups.number[handle] = <int32_t> shared.number_of(groups.names[handle])
            shared.note(groups.number[handle], handle)
        for row in range(start, stop):
            code = codes[row]
            if code < 0:
                self.groups[row] = -1
                continue
            number = numbers.at[code]
            if number < 0:
                number = shared.number_of(names[code])
                numbers.at[code] = <int32_t> number
            if not shared.noted(number):
                shared.note(number, groups.append_number(number))
            self.groups[row] = shared.handle[number]
        return 0

    cdef void begin(self, Rounds rounds, int32_t run, int64_t start) noexcept:
        self.run = run
        self.start = start
        self.offset = start - rounds.state.next_sequence
        self.delivered = rounds.state.totals.dispatched

    cdef int take(self, Rounds rounds) except -1:
        cdef int64_t index
        for index in range(rounds.out_size):
            self.deliver(rounds.out[index].sequence + self.offset, rounds.out[index].consumer)
        rounds.out_size = 0
        return 0

    cdef int deliver(self, int64_t row, int64_t consumer) except -1:
        cdef Line* line = self.add(self.run, row)
        line.consumer = consumer
        line.delivery = self.delivered
        self.delivered += 1
        if row >= self.start:
            self.has_line[row] = 1
        return 0

    cdef int hold(self, Rounds rounds, int32_t run, int64_t start, int64_t offset) except -1:
        # The held messages, by arrival.
        cdef int32_t message
        cdef int64_t first = self.size
        if rounds.cursors.stored + rounds.pending.waiting == 0:
            return 0
        for message in range(rounds.messages.slots):
            if rounds.messages.at[message].whereabouts in (STORED, WAITING, IN_DOUBT):
                self.explain(rounds, message, self.add(run, rounds.messages.at[message].sequence + offset), start)
        if self.size > first + 1:
            qsort(&self.at[first], self.size - first, sizeof(Line), by_row)
        return 0

    cdef int explain(self, Rounds rounds, int32_t message, Line* line, int64_t start) except -1:
        cdef int32_t slot
        line.reason, slot = reason_of(rounds, message)
        if slot >= 0:
            line.consumer = rounds.consumers.at[slot].id
        if line.row >= start:
            self.has_line[line.row] = 1
        return 0

    cdef int see(self, Rounds rounds, int64_t start, int64_t offset) except -1:
        # Drop the held messages without reporting them.
        cdef int32_t message
        if rounds.cursors.stored + rounds.pending.waiting == 0:
            return 0
        for message in range(rounds.messages.slots):
            if (rounds.messages.at[message].whereabouts in (STORED, WAITING, IN_DOUBT)
                    and rounds.messages.at[message].sequence + offset >= start):
                self.has_line[rounds.messages.at[message].sequence + offset] = 1
        return 0

    cdef int expire(self, int32_t run, int64_t start, int64_t stop) except -1:
        # Rows of this batch that are neither delivered nor held: they expired.
        cdef int64_t row
        for row in range(start, stop):
            if not self.has_line[row]:
                self.add(run, row).reason = EXPIRED
        return 0

    cdef int pass_by(self, Rounds rounds, int32_t run, const Rows* rows, int64_t start, int64_t stop) except -1:
        # Rows for a queue in which nothing can move: they stay in the store after the waiting ones.
        cdef int64_t row
        cdef int32_t message
        for row in range(start, stop):
            message = rounds.messages.allot()
            fill_in(rounds, rows, row, message)
            rounds.messages.at[message].whereabouts = STORED
            self.explain(rounds, message, self.add(run, row), start)
            rounds.messages.discard(message)
        return 0

    cdef tuple arrays(self):
        cdef int64_t index
        runs, rows = np.empty(self.size, np.int32), np.empty(self.size, np.int64)
        consumers, deliveries = np.empty(self.size, np.int64), np.empty(self.size, np.int64)
        reasons = np.empty(self.size, np.int8)
        cdef int32_t[::1] run = runs
        cdef int64_t[::1] row = rows, consumer = consumers, delivery = deliveries
        cdef signed char[::1] reason = reasons
        for index in range(self.size):
            run[index] = self.at[index].run
            row[index] = self.at[index].row
            consumer[index] = self.at[index].consumer
            delivery[index] = self.at[index].delivery
            reason[index] = <signed char> self.at[index].reason
        return runs, rows, consumers, deliveries, reasons


def offer_runs(list queues not None, bounds, closing, list prompts not None, MessageColumns given not None, *,
               bint steady=False, queue_of=None):
    """One batch for many queues in one call: run r, rows bounds[r] to bounds[r + 1], goes to queues[r] as offer_batch;
    with ``queue_of`` (int32 by run) to queues[queue_of[r]].

    given: by row of the whole batch; a name in ``group_names`` is looked at where the queue was there before or stays,
    and for a bucket map; bit p of ``matches`` is predicate p of the row's own queue. closing[r] (uint8): after the run,
    messages that queue r still holds are reported with the reasons. prompts, by queue: ids of the consumers that
    acknowledge at once, None all.

    steady: consumers neither join nor leave nor acknowledge later than at once, in this batch and all that follow. Then
    expired messages are reported with their batch, and a queue in which nothing can move any more reports all that it
    holds and every later message at once and keeps none; one that is closed is renewed (Queue.renew), and may stand in
    several runs that close it. Otherwise a queue stands in one run only.

    Returns ``(runs int32, rows int64, consumers int64, deliveries int64, reasons int8)``, run by run: first what was
    delivered, in order (reason -1); then, if reported, the held messages, by arrival (HoldReason; the consumer it is
    about or -1), and what had expired (-2). A row before its run's first is a message of an earlier batch, counted back
    from there.
    """
    cdef int64_t count = len(queues) if queue_of is None else len(queue_of)
    cdef const int64_t[::1] bound = column("bounds", bounds, count + 1, np.int64)
    cdef const unsigned char[::1] last = column("closing", closing, count, np.uint8)
    cdef const int32_t[::1] which = None if queue_of is None else column("queue_of", queue_of, count, np.int32)
    cdef int64_t size = bound[count], start, stop, offset, reached
    cdef bint resting
    cdef list group_names = given.group_names
    cdef object groups = given.groups
    cdef const int32_t* codes = given.narrow("groups", groups)
    cdef Lines lines = Lines(size, len(group_names) if group_names is not None else 0)
    cdef int32_t run, at
    cdef Rounds rounds
    cdef set prompt
    if size != given.size:
        raise InvalidMessageError("bounds", int(size), f"must end at the number of messages ({given.size})")
    if codes != NULL and (group_names is None or np.max(groups) >= len(group_names) or np.min(groups) < -1):
        raise InvalidMessageError("groups", int(np.max(groups)), "is no index of group_names")
    if bound[0] != 0 or len(prompts) != len(queues) or np.any(np.diff(bound) < 0):
        raise InvalidMessageError("bounds", bounds, "must ascend from 0, with one prompt a queue")
    if queue_of is not None and count and (np.max(queue_of) >= len(queues) or np.min(queue_of) < 0):
        raise InvalidMessageError("queue_of", int(np.max(queue_of)), "is no index of queues")
    if codes != NULL:
        given.rows.groups = lines.groups
    for run in range(<int32_t> count):
        at = run if queue_of is None else which[run]
        rounds, prompt = rounds_in(queues[at]), prompts[at]
        given.suits(rounds)
        start, stop = bound[run], bound[run + 1]
        offset = start - rounds.state.next_sequence
        lines.begin(rounds, run, start)
        if codes != NULL and rounds.reported and not rounds.state.lazy_dispatch:
            memset(lines.groups + start, 0xFF, (stop - start) * sizeof(int32_t))     # not paged in, in any group
        elif codes != NULL and rounds.groups.shared is not None:
            lines.intern_shared(rounds.groups, codes, group_names, start, stop)
        elif codes != NULL:
            lines.intern(rounds, run, codes, group_names, start, stop, last[run] and rounds.groups.size == 0)
        reached = offer_rows(rounds, &given.rows, start, stop, prompt, steady, lines)
        if rounds.reported:
            lines.pass_by(rounds, run, &given.rows, start, stop)
        else:
            resting = steady and rounds.at_rest()
            if resting or last[run]:
                lines.hold(rounds, run, start, offset)
            elif steady:
                lines.see(rounds, start, offset)
            if steady or last[run]:
                lines.expire(run, start, reached)
                rounds.state.removed = None
            if resting:
                rounds.reported = True
                lines.pass_by(rounds, run, &given.rows, reached, stop)
        if steady and last[run]:
            rounds.start_over()
    return lines.arrays()


def settle_runs(list queues not None, list prompts not None, int64_t now):
    """The rounds that an event between two batches asked for, as ``offer_runs`` makes them: ``(runs int32, sequences
    int64, consumers int64, deliveries int64)`` of what was delivered, queue by queue, in order."""
    cdef Lines lines = Lines(0, 0)
    cdef int32_t run
    cdef Rounds rounds
    for run in range(<int32_t> len(queues)):
        rounds = rounds_in(queues[run])
        rounds.out_size = 0
        lines.begin(rounds, run, INT64_MAX)
        lines.offset = 0
        make_rounds(rounds, prompts[run], now)
        lines.take(rounds)
    return lines.arrays()[:4]


def enqueued(list queues not None):
    """Number of messages sent to each queue: the arrival number of its next one. int64."""
    cdef int64_t index
    numbers = np.empty(len(queues), np.int64)
    cdef int64_t[::1] number = numbers
    for index in range(len(queues)):
        number[index] = rounds_in(queues[index]).state.next_sequence
    return numbers


def headers_now(list queues not None):
    """Changes to the messages of queues: ``(runs int32, sequences int64, consumers int64, redeliveries int32,
    group_first bool)``, queue by queue and by arrival number, of every message that a consumer (id, else -1) holds, or
    whose counter or mark of a group's first is not that of a new one. Selectors read these values from then on."""
    cdef int32_t run, message
    cdef Rounds rounds
    cdef Message* sent
    cdef int64_t total = 0, index = 0
    for run in range(<int32_t> len(queues)):
        rounds = rounds_in(queues[run])
        for message in range(rounds.messages.slots):
            total += has_changed(&rounds.messages.at[message])
    runs, sequences, consumers = np.empty(total, np.int32), np.empty(total, np.int64), np.empty(total, np.int64)
    redeliveries, firsts = np.empty(total, np.int32), np.empty(total, np.bool_)
    cdef int32_t[::1] to_run = runs, to_redeliveries = redeliveries
    cdef int64_t[::1] to_sequence = sequences, to_consumer = consumers
    cdef unsigned char[::1] to_first = firsts.view(np.uint8)
    for run in range(<int32_t> len(queues)):
        rounds = rounds_in(queues[run])
        for message in range(rounds.messages.slots):
            sent = &rounds.messages.at[message]
            if has_changed(sent):
                to_run[index] = run
                to_sequence[index] = sent.sequence
                to_consumer[index] = rounds.consumers.at[sent.consumer].id if sent.whereabouts == IN_FLIGHT else -1
                to_redeliveries[index] = sent.redeliveries
                to_first[index] = sent.group_first
                index += 1
    order = np.lexsort((sequences, runs))
    return runs[order], sequences[order], consumers[order], redeliveries[order], firsts[order]


cdef bint has_changed(const Message* sent) noexcept:
    return sent.whereabouts != NOWHERE and (
        sent.whereabouts == IN_FLIGHT or sent.redeliveries != 0 or sent.group_first != 0)


def carried(list queues not None):
    """What queues hold when a batch is over: ``(runs int32, sequences int64, in_flight bool)``, queue by queue and by
    arrival number: every message that is here, also those that a consumer holds unacknowledged."""
    cdef int64_t total = 0, index = 0
    cdef int32_t run, message
    cdef Rounds rounds
    for run in range(<int32_t> len(queues)):
        rounds = rounds_in(queues[run])
        for message in range(rounds.messages.slots):
            total += rounds.messages.at[message].whereabouts != NOWHERE
    runs, sequences = np.empty(total, np.int32), np.empty(total, np.int64)
    flying = np.empty(total, np.bool_)
    cdef int32_t[::1] to_run = runs
    cdef int64_t[::1] to_sequence = sequences
    cdef unsigned char[::1] to_flying = flying.view(np.uint8)
    for run in range(<int32_t> len(queues)):
        rounds = rounds_in(queues[run])
        for message in range(rounds.messages.slots):
            if rounds.messages.at[message].whereabouts != NOWHERE:
                to_run[index] = run
                to_sequence[index] = rounds.messages.at[message].sequence
                to_flying[index] = rounds.messages.at[message].whereabouts == IN_FLIGHT
                index += 1
    order = np.lexsort((sequences, runs))
    return runs[order], sequences[order], flying[order]
