"""Virtual time for a RocketMQ consumer group; see pull_run.pxd."""

import numpy as np
from collections import deque

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc

from pyengine._engine.consume_queue cimport MAX_COUNT
from pyengine._engine.process_queue cimport ProcessQueue
from pyengine._engine.pull cimport PullGate, PullRequest
from pyengine._engine.rebalance cimport RebalanceTimer

from pyengine._engine.batches import column
from pyengine._engine.consume_concurrently import ConsumeRequest, slices
from pyengine._engine.delay import DelayLevels, send_back
from pyengine._engine.pull import PullStep, commit_with_pull
from pyengine._engine.rebalance import (
    DISPATCH_DELAY,
    is_balanced,
    queues_to_give_up,
    queues_to_take_on,
    shared_threshold,
    starting_point,
)
from pyengine.errors import IllegalStateError, InvalidMessageError

cdef enum:
    MILLISECOND = 1_000_000
    FIRST_PERSIST = 10_000      # ms, MQClientInstance.startScheduledTask
    PERSIST_PERIOD = 5_000      # persistConsumerOffsetInterval
    CLEANED_AT_ONCE = 16        # ProcessQueue.cleanExpiredMsg
    EXPIRED_LEVEL = 3
    HELD = 15_000               # ms a pull waits for a message, brokerSuspendMaxTimeMillis

cdef int SEND = PullStep.SEND
cdef int DROP = PullStep.DROP


cdef void* grown(void* memory, int64_t size) except NULL:
    cdef void* larger = realloc(memory, size)
    if larger == NULL:
        raise MemoryError()
    return larger


cdef class Stored:
    """A message as a client holds it. Made by the run alone."""

    def __reduce__(self):
        raise TypeError("a message of a simulation cannot be pickled")


cdef class Line:
    """A message queue at the broker."""

    def __cinit__(self, queue):
        self.queue = queue
        self.stored = -1
        self.held = []

    def __dealloc__(self):
        free(self.rows)

    def __reduce__(self):
        raise TypeError("a queue of a simulation cannot be pickled")

    cdef int append(self, int64_t row) except -1:
        if self.size == self.room:
            self.room = max(64, 2 * self.room)
            self.rows = <int64_t*> grown(self.rows, self.room * sizeof(int64_t))
        self.rows[self.size] = row
        self.size += 1
        return 0


cdef class Member:
    """A client of the group."""

    def __reduce__(self):
        raise TypeError("a client of a simulation cannot be pickled")


cdef class Share:
    """One stay of a queue at a client."""

    def __reduce__(self):
        raise TypeError("a share of a simulation cannot be pickled")


cdef class Batch:
    """Messages on their way through a listener."""

    def __reduce__(self):
        raise TypeError("a batch of a simulation cannot be pickled")


cdef class PullRun:
    """A group's run over a workload.

    queues: the topic's message queues (with ``topic``), then the group's retry queue. allocate: a function (client,
    clients, retry) -> the message queues of the client, of the topic or of the retry topic. arrivals, services: int64
    ns by row, arrivals rising. lines: int32 by row, which queue. failures: int32 by row, how many deliveries fail
    first. sizes: int64 bytes by row. round_trip: ns from a pull to its answer. Everything a client takes on starts at
    the committed offset, 0 if there is none.
    """

    def __init__(self, str group not None, queues, allocate, arrivals, services, lines, *, failures=None, sizes=None,
                 int64_t round_trip=1_000_000):
        cdef Line line
        self.kept = []
        self.rows = len(arrivals)
        self.arrival = self.wide("arrivals", arrivals)
        self.service = self.wide("services", services)
        self.line_of = self.narrow("lines", lines)
        self.failures = NULL if failures is None else self.narrow("failures", failures)
        self.sizes = NULL if sizes is None else self.wide("sizes", sizes)
        self.group = group
        self.lines = [Line(queue) for queue in queues]
        if len(self.lines) < 2:
            raise InvalidMessageError("queues", queues, "give a queue of the topic and the retry queue at least")
        line = self.lines[0]
        self.topic = line.queue.topic
        self.retry = (<Line> self.lines[len(self.lines) - 1]).queue.topic
        self.allocate = allocate
        self.levels = DelayLevels()
        self.round_trip = round_trip
        self.members = []
        self.moments = []
        self.dead = []
        cdef int64_t row
        for row in range(self.rows):
            if not 0 <= self.line_of[row] < len(self.lines) - 1:
                raise InvalidMessageError("lines", self.line_of[row], f"there are {len(self.lines) - 1} queues")
            if row and self.arrival[row] < self.arrival[row - 1]:
                raise InvalidMessageError("arrivals", self.arrival[row], "must rise")
        cdef int64_t[::1] began, ended
        cdef int32_t[::1] times
        self.started = np.full(self.rows, -1, np.int64)
        self.finished = np.full(self.rows, -1, np.int64)
        self.deliveries = np.zeros(self.rows, np.int32)
        if self.rows:
            began, ended, times = self.started, self.finished, self.deliveries
            self.began, self.ended, self.times = &began[0], &ended[0], &times[0]

    def __dealloc__(self):
        cdef int64_t index
        for index in range(self.heap_size):
            Py_DECREF(<object> self.heap[index].who)
        free(self.heap)

    def __reduce__(self):
        raise TypeError("a simulation at work cannot be pickled")

    cdef const int64_t* wide(self, str field, values) except? NULL:
        cdef const int64_t[::1] view
        array = column(field, values, self.rows, np.int64)
        self.kept.append(array)
        if not self.rows:
            return NULL
        view = array
        return &view[0]

    cdef const int32_t* narrow(self, str field, values) except? NULL:
        cdef const int32_t[::1] view
        array = column(field, values, self.rows, np.int32)
        self.kept.append(array)
        if not self.rows:
            return NULL
        view = array
        return &view[0]

    def join(self, str name not None, *, int32_t threads=20, double factor=1.0, int64_t pull_batch_size=32,
             int64_t pull_interval=0, int64_t consume_message_batch_max_size=1, int64_t pull_threshold_for_queue=1000,
             int64_t pull_threshold_size_for_queue=100, int64_t consume_concurrently_max_span=2000,
             int64_t pull_threshold_for_topic=-1, int64_t pull_threshold_size_for_topic=-1,
             int64_t max_reconsume_times=-1, int64_t consume_timeout=15, bint at_once=False):
        """A client comes; the group is told. at_once: it was there before, its queues are its own without a wait."""
        cdef Member it = Member.__new__(Member)
        if any((<Member> other).name == name and not (<Member> other).gone for other in self.members):
            raise IllegalStateError(f"client {name!r} is here already")
        it.name = name
        it.threads = threads
        it.factor = factor
        it.batch_size = consume_message_batch_max_size
        it.pull_size = min(pull_batch_size, MAX_COUNT)
        it.pull_interval = pull_interval
        it.threshold_for_topic = pull_threshold_for_topic
        it.size_for_topic = pull_threshold_size_for_topic
        it.max_reconsume_times = 16 if max_reconsume_times == -1 else max_reconsume_times
        it.consume_timeout = consume_timeout
        it.settings = {
            "pull_threshold_for_queue": pull_threshold_for_queue,
            "pull_threshold_size_for_queue": pull_threshold_size_for_queue,
            "consume_concurrently_max_span": consume_concurrently_max_span,
        }
        it.gate = PullGate(self.group)
        # A rebalance may come 20 s later, the timeout cleaner after one or two of its periods.
        self.patience = max(self.patience, (2 * consume_timeout + 1) * 60_000 * MILLISECOND)
        it.timer = RebalanceTimer(self.now // MILLISECOND)
        it.table, it.shares, it.waiting = {}, {}, deque()
        self.members.append(it)
        self.plan(self.now + <int64_t> FIRST_PERSIST * MILLISECOND, PERSIST, it)
        self.plan(self.now + consume_timeout * 60_000 * MILLISECOND, CLEAN, it)
        if not at_once:
            self.tell()

    def settle(self):
        """Give the clients that were there before their queues."""
        for it in self.members:
            self.rebalance(it, 0)
            self.plan((<Member> it).timer.due() * MILLISECOND, REBALANCE, it)

    def leave(self, str name not None, *, bint lost=False):
        """A client shuts down, its offsets written; lost: it is killed, and what it did not write is forgotten."""
        cdef Member it = self.member(name)
        if not lost:
            self.persist(it)
        it.gone = True
        for share in it.shares.values():
            (<Share> share).process.dropped = True
        it.shares, it.table = {}, {}
        self.tell()

    def kill(self, str name not None):
        """Its listeners return no more; it stays connected and keeps its queues."""
        self.member(name).dead = True

    def set_factor(self, str name not None, double factor):
        """From now on its work takes ``factor`` times as long."""
        self.member(name).factor = factor

    cdef Member member(self, str name):
        for each in self.members:
            if (<Member> each).name == name and not (<Member> each).gone:
                return each
        raise IllegalStateError(f"client {name!r} is not here")

    def members_seen(self):
        """``[(name, ns of work, messages finished, pulls held by count, by size, by span)]`` of all that ever came."""
        return [((<Member> it).name, (<Member> it).work, (<Member> it).finished, (<Member> it).count_holds,
                 (<Member> it).size_holds, (<Member> it).span_holds) for it in self.members]

    def offsets(self):
        """``[(queue, end, committed)]``: committed as the clients that have the queue know it, else as it is stored."""
        known = {}
        for it in self.members:
            for queue, share in (<Member> it).shares.items():
                known[queue] = (<Share> share).committed
        return [((<Line> line).queue, (<Line> line).size,
                 max((<Line> line).stored, known.get((<Line> line).queue, -1))) for line in self.lines]

    def run(self, until=None):
        """Let time pass to ``until`` (ns; None: until every message came to its end, or nothing can happen any more).

        Returns the time it is then, without ``until`` the time of the last thing that happened.
        """
        cdef int64_t end = 2**63 - 1 if until is None else until
        cdef int64_t next_arrival, next_due
        if end < self.now:
            raise ValueError(f"until = {until}: time does not go back (it is {self.now})")
        while until is not None or self.remaining():
            if until is None and self.moving == 0 and self.arrived == self.rows \
                    and self.now - self.progressed > self.patience:
                break
            next_due = self.heap[0].time if self.heap_size else 2**63 - 1
            next_arrival = self.arrival[self.arrived] if self.arrived < self.rows else 2**63 - 1
            if min(next_due, next_arrival) > end or (not self.heap_size and self.arrived == self.rows):
                break
            if next_due <= next_arrival:
                self.step()
            else:
                self.now = self.progressed = next_arrival
                self.arrive(self.lines[self.line_of[self.arrived]], self.arrived)
                self.arrived += 1
        if until is not None:
            self.now = self.progressed = end
        return self.progressed

    cdef bint remaining(self) except -1:
        # Somebody may still finish something.
        cdef bint alive = False
        if self.ends + len(self.dead) >= self.rows:
            return False
        for it in self.members:
            alive = alive or not ((<Member> it).gone or (<Member> it).dead)
        return alive or self.arrived < self.rows

    cdef int step(self) except -1:
        cdef Due due = self.pop()
        cdef object who = <object> due.who
        cdef Member member
        Py_DECREF(who)
        self.now = due.time
        if due.what == PULL:
            return self.pull(who, due.number)
        if due.what == DONE or due.what == RETRY:
            self.moving -= 1
            self.progressed = self.now
        if due.what == ANSWER:
            return self.answer(who)
        if due.what == DONE:
            return self.done(who, due.number)
        if due.what == RETRY:
            return self.arrive(self.lines[len(self.lines) - 1], due.number)
        member = who
        if member.gone:
            return 0
        if due.what == PERSIST:
            self.persist(member)
            return self.plan(self.now + <int64_t> PERSIST_PERIOD * MILLISECOND, PERSIST, member)
        if due.what == CLEAN:
            self.clean(member)
            return self.plan(self.now + member.consume_timeout * 60_000 * MILLISECOND, CLEAN, member)
        if member.timer.due() * MILLISECOND > self.now:
            return 0                        # it was woken meanwhile: another look is planned
        if member.timer.run_now(self.now // MILLISECOND):
            self.rebalance(member, DISPATCH_DELAY)
        return self.plan(member.timer.due() * MILLISECOND, REBALANCE, member)

    cdef int tell(self) except -1:
        # The broker tells every client that the group changed.
        for it in self.members:
            if not (<Member> it).gone:
                self.plan((<Member> it).timer.wake(self.now // MILLISECOND) * MILLISECOND, REBALANCE, it)
        return 0

    cdef int arrive(self, Line line, int64_t row) except -1:
        line.append(row)
        if line.held:
            woken, line.held = line.held, []
            for share in woken:
                (<Share> share).holds += 1
                self.plan(self.now + self.round_trip, ANSWER, share)
        return 0

    cdef int pull(self, Share share, int64_t hold) except -1:
        # hold: which of the share's holds has come to its end, 0: none.
        cdef Member member = share.member
        cdef int64_t now = self.now // MILLISECOND
        if member.gone or (hold and hold != share.holds):
            return 0
        if hold:
            share.line.held.remove(share)
            share.holds += 1
        verdict = member.gate.examine(share.request, now, **member.settings)
        cdef int step = verdict[0]
        if step == DROP:
            return 0
        if step != SEND:
            held = share.process.flow_control(**member.settings)
            member.count_holds += held == 1
            member.size_holds += held == 2
            member.span_holds += held == 3
            return self.plan(self.now + <int64_t> verdict[1] * MILLISECOND, PULL, share)
        offset, bit = commit_with_pull(share.committed)
        if bit and offset > share.line.stored:
            share.line.stored = offset
        return self.plan(self.now + self.round_trip, ANSWER, share)

    cdef int answer(self, Share share) except -1:
        cdef Member member = share.member
        cdef Line line = share.line
        cdef int64_t first = share.request.next_offset, end, offset, row
        cdef list messages
        cdef Stored message
        cdef Batch batch
        if member.gone or share.process.dropped:
            return 0
        end = min(line.size, first + member.pull_size)
        if end <= first:
            line.held.append(share)
            return self.plan(self.now + <int64_t> HELD * MILLISECOND, PULL, share, share.holds)
        self.progressed = self.now
        messages = []
        for offset in range(first, end):
            row = line.rows[offset]
            message = Stored.__new__(Stored)
            message.queue_offset = offset
            message.row = row
            message.body = range(self.sizes[row]) if self.sizes != NULL else None
            message.properties = {}
            messages.append(message)
        verdict = member.gate.answered(share.request, "FOUND", end, end - first, first, member.pull_interval)
        share.process.put_messages(messages)
        for part in slices(messages, member.batch_size):
            batch = Batch.__new__(Batch)
            batch.share = share
            batch.request = ConsumeRequest(part, share.process, line.queue)
            member.waiting.append(batch)
        self.begin(member)
        return self.plan(self.now + <int64_t> verdict[1] * MILLISECOND, PULL, share)

    cdef int begin(self, Member member) except -1:
        cdef Batch batch
        cdef Stored message
        cdef int64_t work, row
        cdef int64_t now = self.now // MILLISECOND
        while member.busy < member.threads and member.waiting and not member.dead and not member.gone:
            batch = member.waiting.popleft()
            if not batch.request.start(now):
                continue
            work = 0
            for each in batch.request.messages:
                message = each
                row = message.row
                work += <int64_t> (self.service[row] * member.factor)
                self.times[row] += 1
                if self.ended[row] < 0:
                    self.began[row] = self.now
            member.busy += 1
            self.plan(self.now + work, DONE, batch, work)
        return 0

    cdef int done(self, Batch batch, int64_t work) except -1:
        cdef Member member = batch.share.member
        cdef Stored message
        cdef bint fails = False
        if member.gone or member.dead:
            return 0
        member.busy -= 1
        member.work += work
        if batch.share.process.dropped:
            return self.begin(member)       # the new owner consumes them again
        for each in batch.request.messages:
            message = each
            if self.failures != NULL and self.times[message.row] <= self.failures[message.row]:
                fails = True
        batch.request.settle("RECONSUME_LATER" if fails else "CONSUME_SUCCESS")
        if fails:
            for each in batch.request.failed():
                message = each
                if batch.request.holds(message):
                    self.give_back(message.row, 0, member.max_reconsume_times)
        else:
            for each in batch.request.messages:
                message = each
                member.finished += 1
                if self.ended[message.row] < 0:
                    self.ended[message.row] = self.now
                    self.ends += 1
        offset = batch.request.finish(self.now // MILLISECOND)
        if offset is not None and offset > batch.share.committed:
            batch.share.committed = offset
        return self.begin(member)

    cdef int give_back(self, int64_t row, int64_t level, int64_t maximum) except -1:
        # The broker takes a message back: it comes again after its delay, or is a dead letter.
        cdef int64_t now = self.now // MILLISECOND
        wanted = send_back(level, max(0, self.times[row] - 1), maximum)
        if wanted < 0:
            self.dead.append(row)
            return 0
        return self.plan(self.levels.deliver_time(wanted, now) * MILLISECOND, RETRY, None, row)

    cdef int clean(self, Member member) except -1:
        cdef Share share
        cdef Stored message
        cdef int _turn
        cdef int64_t now = self.now // MILLISECOND
        for each in list(member.shares.values()):
            share = each
            for _turn in range(CLEANED_AT_ONCE):
                found = share.process.expired(now, member.consume_timeout)
                if found is None:
                    break
                message = found
                self.give_back(message.row, EXPIRED_LEVEL, member.max_reconsume_times)
                share.process.remove_messages([message], now=now)
        return 0

    cdef int persist(self, Member member) except -1:
        for share in member.shares.values():
            if (<Share> share).committed > (<Share> share).line.stored:
                (<Share> share).line.stored = (<Share> share).committed
        return 0

    cdef int rebalance(self, Member member, int64_t delay) except -1:
        cdef int64_t now = self.now // MILLISECOND
        cdef Share share
        cdef bint changed = False, balanced = True
        names = [(<Member> it).name for it in self.members if not (<Member> it).gone]
        for topic in (self.topic, self.retry):
            mine = self.allocate(member.name, names, topic == self.retry)
            for queue in queues_to_give_up(topic, mine, member.table, now, self.group)[0]:
                share = member.shares.pop(queue)
                del member.table[queue]
                changed = True
                if share.committed > share.line.stored:
                    share.line.stored = share.committed
            for queue in queues_to_take_on(mine, member.table):
                share = Share.__new__(Share)
                share.member = member
                share.line = next(line for line in self.lines if (<Line> line).queue == queue)
                share.process = ProcessQueue(now=now)
                share.committed = -1
                share.holds = 1
                start = starting_point("CONSUME_FROM_FIRST_OFFSET", share.line.stored, topic).offset
                share.request = PullRequest(self.group, queue, share.process, start)
                member.table[queue] = share.process
                member.shares[queue] = share
                changed = True
                self.plan(self.now + delay * MILLISECOND, PULL, share)
            balanced = balanced and is_balanced(topic, mine, member.table)
        if changed:
            self.share_thresholds(member)
            self.moments.append((self.now, member.name, len(member.table)))
        member.timer.ran(now, balanced)
        return 0

    cdef int share_thresholds(self, Member member) except -1:
        for limit, key in ((member.threshold_for_topic, "pull_threshold_for_queue"),
                           (member.size_for_topic, "pull_threshold_size_for_queue")):
            after = shared_threshold(limit, len(member.table))
            if after is not None:
                member.settings[key] = after
        return 0

    def _check(self):
        """Assert the invariants; for tests."""
        cdef int64_t index
        cdef Member it
        for index in range(1, self.heap_size):
            assert not sooner(&self.heap[index], &self.heap[(index - 1) // 2])
        for each in self.members:
            it = each
            assert 0 <= it.busy <= it.threads
            assert it.table.keys() == it.shares.keys()
            for share in it.shares.values():
                (<Share> share).process._check()
                assert (<Share> share).request.next_offset <= (<Share> share).line.size
                assert (<Share> share).committed <= (<Share> share).request.next_offset
        assert self.ends == int((self.finished >= 0).sum())

    cdef int plan(self, int64_t time, int what, object who, int64_t number=0) except -1:
        cdef int64_t place = self.heap_size, above
        cdef Due entry
        if self.heap_size == self.heap_room:
            self.heap_room = max(64, 2 * self.heap_room)
            self.heap = <Due*> grown(self.heap, self.heap_room * sizeof(Due))
        entry.time, entry.what, entry.number, entry.order = time, what, number, self.orders
        entry.who = <PyObject*> who
        Py_INCREF(who)
        self.orders += 1
        self.moving += what == DONE or what == RETRY
        self.heap_size += 1
        while place > 0:
            above = (place - 1) // 2
            if not sooner(&entry, &self.heap[above]):
                break
            self.heap[place] = self.heap[above]
            place = above
        self.heap[place] = entry
        return 0

    cdef Due pop(self) noexcept:
        cdef Due first = self.heap[0], last
        cdef int64_t place = 0, below
        self.heap_size -= 1
        last = self.heap[self.heap_size]
        while True:
            below = 2 * place + 1
            if below >= self.heap_size:
                break
            if below + 1 < self.heap_size and sooner(&self.heap[below + 1], &self.heap[below]):
                below += 1
            if not sooner(&self.heap[below], &last):
                break
            self.heap[place] = self.heap[below]
            place = below
        self.heap[place] = last
        return first


cdef bint sooner(const Due* one, const Due* other) noexcept nogil:
    return one.time < other.time or (one.time == other.time and one.order < other.order)
