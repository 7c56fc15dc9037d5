"""Virtual time for a RocketMQ consumer group; see group_simulation.pxd."""

import numpy as np

from libc.stdint cimport INT32_MAX, int32_t, int64_t
from libc.stdlib cimport free

from pyengine._engine.lowlevel.memory cimport resize
from pyengine._engine.simulation.event_queue cimport NEVER, EventQueue, Event, nanoseconds, time_after, work_factor
from pyengine._engine.rocketmq.client.consume_concurrently cimport (
    EXPIRED_LEVEL,
    EXPIRED_MESSAGES,
    acknowledged_to,
    commits,
    goes_on,
    slice_end,
)
from pyengine._engine.rocketmq.broker.consume_queue cimport MAX_COUNT
from pyengine._engine.rocketmq.client.offset_table cimport replaces
from pyengine._engine.rocketmq.client.process_queue cimport COUNT, SIZE, SPAN, ProcessQueue, overdue
from pyengine._engine.rocketmq.client.pull_gate cimport PullRequest, commits_with_pull, pull_delay
from pyengine._engine.rocketmq.client.rebalance cimport RebalanceTimer

from pyengine._engine.activemq.queue.batches import column
from pyengine._engine.rocketmq.broker.delay_levels import DelayLevels, send_back
from pyengine._engine.rocketmq.client.pull_gate import CACHE_FLOW_CONTROL
from pyengine._engine.rocketmq.client.rebalance import (
    DISPATCH_DELAY,
    is_balanced,
    queues_to_give_up,
    queues_to_take_on,
    shared_threshold,
    starting_point,
)
from pyengine._engine.rocketmq.commands.defaults import (
    CONSUME_CONCURRENTLY_MAX_SPAN, PULL_THRESHOLD_FOR_QUEUE, PULL_THRESHOLD_SIZE_FOR_QUEUE,
    CONSUME_MESSAGE_BATCH_MAX_SIZE, CONSUME_THREADS, CONSUME_TIMEOUT, PULL_BATCH_SIZE,
)
from pyengine.errors import IllegalStateError, InvalidMessageError, counted

cdef enum:
    MILLISECOND = 1_000_000
    FIRST_PERSIST = 10_000      # ms, MQClientInstance.startScheduledTask
    PERSIST_PERIOD = 5_000      # persistConsumerOffsetInterval
    HELD = 15_000               # ms a pull waits for a message, brokerSuspendMaxTimeMillis

cdef int64_t MINUTE = 60_000 * <int64_t> MILLISECOND
cdef int64_t HELD_BACK = CACHE_FLOW_CONTROL * MILLISECOND
cdef int64_t IDLE_CHECK_PERIOD = 1_000 * <int64_t> MILLISECOND
cdef int64_t SHORTEST_IDLE = 60_000 * <int64_t> MILLISECOND    # the shortest consumeTimeout


cdef class Line:
    """A message queue at the broker."""

    def __cinit__(self, queue):
        self.queue = queue
        self.stored = -1
        self.held = []

    def __dealloc__(self):
        free(self.rows)
        free(self.consume_start)

    def __reduce__(self):
        raise TypeError("a queue of a simulation cannot be pickled")

    cdef int append(self, int64_t row) except -1:
        if self.size == self.capacity:
            self.capacity = max(64, 2 * self.capacity)
            self.rows = <int64_t*> resize(self.rows, self.capacity * sizeof(int64_t))
            self.consume_start = <int64_t*> resize(self.consume_start, self.capacity * sizeof(int64_t))
        self.rows[self.size] = row
        self.consume_start[self.size] = -1
        self.size += 1
        return 0


cdef class Member:
    """A client of the group."""

    def __reduce__(self):
        raise TypeError("a client of a simulation cannot be pickled")

    cdef int64_t timeout(self) noexcept:
        return nanoseconds(self.consume_timeout, MINUTE)


cdef class Share:
    """One stay of a queue at a client."""

    def __reduce__(self):
        raise TypeError("a share of a simulation cannot be pickled")


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
        if failures is not None:
            self.failures = self.narrow("failures", failures)
        if sizes is not None:
            self.sizes = self.wide("sizes", sizes)
        self.group = group
        self.lines = [Line(queue) for queue in queues]
        self.line_by = {(<Line> line).queue: line for line in self.lines}
        if len(self.lines) < 2:
            raise InvalidMessageError("queues", queues, "give a queue of the topic and the retry queue at least")
        line = self.lines[0]
        self.topic = line.queue.topic
        self.retry = (<Line> self.lines[len(self.lines) - 1]).queue.topic
        self.allocate = allocate
        self.levels = DelayLevels()
        self.round_trip = round_trip
        self.members = []
        self.shares = []
        self.events = EventQueue()
        self.batch_free = -1
        self.moments = []
        self.dead = []
        cdef int64_t row
        self.longest = 1
        for row in range(self.rows):
            if not 0 <= self.line_of[row] < len(self.lines) - 1:
                has = f"the topic has {counted(len(self.lines) - 1, 'queue')}"
                raise InvalidMessageError("lines", self.line_of[row], has)
            if row and self.arrival[row] < self.arrival[row - 1]:
                raise InvalidMessageError("arrivals", self.arrival[row], "must rise")
            if self.service[row] < 0:
                raise InvalidMessageError("services", self.service[row], "must not be negative")
            self.longest = max(self.longest, self.service[row])
        cdef int64_t[::1] started, finished, stopped, workers
        cdef int32_t[::1] deliveries
        self.started = np.full(self.rows, -1, np.int64)
        self.finished = np.full(self.rows, -1, np.int64)
        self.stopped = np.full(self.rows, -1, np.int64)
        self.workers = np.full(self.rows, -1, np.int64)
        self.deliveries = np.zeros(self.rows, np.int32)
        if self.rows:
            started, finished, deliveries = self.started, self.finished, self.deliveries
            stopped, workers = self.stopped, self.workers
            self.start_time, self.finish_time, self.delivery_count = &started[0], &finished[0], &deliveries[0]
            self.stop_time, self.worker = &stopped[0], &workers[0]

    def __dealloc__(self):
        free(self.batches)

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

    def join(self, str name not None, *, int32_t threads=CONSUME_THREADS, double factor=1.0,
             int64_t pull_batch_size=PULL_BATCH_SIZE, int64_t pull_interval=0,
             int64_t consume_message_batch_max_size=CONSUME_MESSAGE_BATCH_MAX_SIZE,
             int64_t pull_threshold_for_queue=PULL_THRESHOLD_FOR_QUEUE,
             int64_t pull_threshold_size_for_queue=PULL_THRESHOLD_SIZE_FOR_QUEUE,
             int64_t consume_concurrently_max_span=CONSUME_CONCURRENTLY_MAX_SPAN,
             int64_t pull_threshold_for_topic=-1, int64_t pull_threshold_size_for_topic=-1,
             int64_t max_reconsume_times=-1, int64_t consume_timeout=CONSUME_TIMEOUT, bint at_once=False):
        """A client joins and the group is notified. at_once: it joined earlier and owns its queues without a wait."""
        cdef Member member = Member.__new__(Member)
        if any((<Member> other).name == name and not (<Member> other).gone for other in self.members):
            raise IllegalStateError(f"client {name!r} is here already")
        for field, value in (("threads", threads), ("pull_batch_size", pull_batch_size),
                             ("consume_message_batch_max_size", consume_message_batch_max_size),
                             ("consume_timeout", consume_timeout)):
            if value < 1:
                raise InvalidMessageError(field, value, "must be 1 or more")
        member.name = name
        member.number = len(self.members)
        member.head = member.tail = -1
        member.threads = threads
        member.factor = work_factor(factor, self.longest)
        member.batch_size = consume_message_batch_max_size
        member.pull_size = min(pull_batch_size, MAX_COUNT)
        member.pull_interval = pull_interval
        member.threshold_for_topic = pull_threshold_for_topic
        member.size_for_topic = pull_threshold_size_for_topic
        member.max_reconsume_times = 16 if max_reconsume_times == -1 else max_reconsume_times
        member.consume_timeout = consume_timeout
        member.limits.count = pull_threshold_for_queue
        member.limits.size = pull_threshold_size_for_queue
        member.limits.span = consume_concurrently_max_span
        # A rebalance may come 20 s later, the timeout cleaner after one or two of its periods.
        self.patience = max(self.patience, time_after(time_after(MINUTE, member.timeout()), member.timeout()))
        member.timer = RebalanceTimer(self.now // MILLISECOND)
        member.table, member.shares = {}, {}
        self.members.append(member)
        self.plan(time_after(self.now, <int64_t> FIRST_PERSIST * MILLISECOND), PERSIST, member.number)
        self.plan(time_after(self.now, member.timeout()), CLEAN, member.number)
        if not at_once:
            self.notify_members()

    def settle(self):
        """Assign their queues to the clients that joined with ``at_once``."""
        for member in self.members:
            self.rebalance(member, 0)
            self.plan(nanoseconds((<Member> member).timer.due(), MILLISECOND), REBALANCE, (<Member> member).number)

    def leave(self, str name not None, *, bint lost=False):
        """A client shuts down and persists its offsets. lost: it is killed, and offsets not yet persisted are lost."""
        cdef Member member = self.member(name)
        if not lost:
            self.persist(member)
        member.gone = True
        for share in member.shares.values():
            (<Share> share).process.dropped = True
        member.shares, member.table = {}, {}
        self.notify_members()

    def kill(self, str name not None):
        """The client's listeners never return again; it stays connected and keeps its queues."""
        self.member(name).dead = True

    def set_factor(self, str name not None, double factor):
        """From now on the client's work takes ``factor`` times as long."""
        self.member(name).factor = work_factor(factor, self.longest)

    cdef Member member(self, str name):
        for each in self.members:
            if (<Member> each).name == name and not (<Member> each).gone:
                return each
        raise IllegalStateError(f"client {name!r} is not in this run")

    def members_seen(self):
        """``[(name, ns of work, messages finished, pulls held by count, by size, by span)]`` of every client so far."""
        return [((<Member> member).name, (<Member> member).work, (<Member> member).finished,
                 (<Member> member).count_holds, (<Member> member).size_holds, (<Member> member).span_holds)
                for member in self.members]

    def offsets(self):
        """``[(queue, end, committed)]``: the owning client's offset, else the broker's."""
        known = {}
        for member in self.members:
            for queue, share in (<Member> member).shares.items():
                known[queue] = (<Share> share).committed
        return [((<Line> line).queue, (<Line> line).size,
                 max((<Line> line).stored, known.get((<Line> line).queue, -1))) for line in self.lines]

    def run(self, until=None):
        """Let time pass to ``until`` (ns; None: until every message is finished, or no event is left).

        Returns the time then; without ``until``, the time of the last event.
        """
        cdef int64_t end = NEVER if until is None else until
        cdef int64_t next_arrival, next_due
        if end < self.now:
            raise ValueError(f"until = {until}: time does not go back (it is {self.now})")
        while until is not None or self.remaining():
            if until is None and self.pending_results == 0 and self.arrived == self.rows \
                    and self.now - self.progressed > self.patience:
                break
            next_due = self.events.next_time()
            next_arrival = self.arrival[self.arrived] if self.arrived < self.rows else NEVER
            if min(next_due, next_arrival) > end or (not self.events.size and self.arrived == self.rows):
                break
            if self.now >= self.next_idle_check and self.pending_results == 0 and min(end, next_arrival) < NEVER:
                self.next_idle_check = time_after(self.now, IDLE_CHECK_PERIOD)
                self.skip(min(end, next_arrival))
                next_due = self.events.next_time()
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
        # A client may still finish a message.
        cdef bint alive = False
        if self.finished_count + len(self.dead) >= self.rows:
            return False
        for member in self.members:
            alive = alive or not ((<Member> member).gone or (<Member> member).dead)
        return alive or self.arrived < self.rows

    cdef int step(self) except -1:
        cdef Event event = self.events.pop()
        cdef Member member
        self.now = event.time
        if event.kind == LISTENER_RETURN:
            self.pending_results -= 1
            self.progressed = self.now
            return self.finish_batch(event.subject)
        if event.kind == PULL:
            return self.pull(self.shares[event.subject])
        if event.kind == PULL_RESULT:
            return self.pull_result(self.shares[event.subject])
        if event.kind == PULL_TIMEOUT:
            return self.pull_timed_out(event)
        if event.kind == RETRY:
            self.pending_results -= 1
            self.progressed = self.now
            return self.arrive(self.lines[len(self.lines) - 1], event.number)
        member = self.members[event.subject]
        if member.gone:
            return 0
        if event.kind == PERSIST:
            self.persist(member)
            return self.plan(time_after(self.now, <int64_t> PERSIST_PERIOD * MILLISECOND), PERSIST, member.number)
        if event.kind == CLEAN:
            self.clean(member)
            return self.plan(time_after(self.now, member.timeout()), CLEAN, member.number)
        if nanoseconds(member.timer.due(), MILLISECOND) > self.now:
            return 0                        # it was woken meanwhile: another event is planned
        if member.timer.run_now(self.now // MILLISECOND):
            self.rebalance(member, DISPATCH_DELAY)
        return self.plan(nanoseconds(member.timer.due(), MILLISECOND), REBALANCE, member.number)

    cdef int notify_members(self) except -1:
        # The broker tells every client that the group changed.
        for member in self.members:
            if not (<Member> member).gone:
                self.plan(nanoseconds((<Member> member).timer.wake(self.now // MILLISECOND), MILLISECOND), REBALANCE,
                          (<Member> member).number)
        return 0

    cdef int64_t period(self, const Event* event) except -1:
        # The period in ns of an event that recurs without changing anything; 0 for one that changes something.
        cdef Share share
        cdef Member member
        if event.kind == PULL_TIMEOUT:
            share = self.shares[event.subject]
            if share.held and event.time == share.held_until and goes_on(share.process) and not share.member.gone:
                return time_after(<int64_t> HELD * MILLISECOND, self.round_trip)
            return 0
        if event.kind != PERSIST and event.kind != CLEAN and event.kind != REBALANCE:
            return 0
        member = self.members[event.subject]
        if member.gone or member.head >= 0:
            return 0
        for each in member.shares.values():
            share = each
            if not share.held or share.process.cached.count or not (share.committed in (-1, share.line.stored)):
                return 0
        if event.kind == PERSIST:
            return <int64_t> PERSIST_PERIOD * MILLISECOND
        if event.kind == CLEAN:
            return member.timeout()
        return member.timer.steady_period(event.time // MILLISECOND) * MILLISECOND

    cdef int skip(self, int64_t to) except -1:
        # Postpone all periodic events to shortly before ``to`` if no client has work until then.
        cdef int64_t index, period, postponement, longest = 0
        cdef EventQueue later
        cdef Event event
        cdef Share share
        if not self.events.size or to - self.now < 3 * SHORTEST_IDLE:
            return 0
        for index in range(self.events.size):
            period = self.period(&self.events.heap[index])
            longest = max(longest, period)
            if period == 0 or to - self.now < 3 * longest:
                return 0
        later = EventQueue()
        while self.events.size:
            event = self.events.pop()
            period = self.period(&event)
            postponement = (to - 2 * longest - event.time) // period * period
            event.time += postponement
            later.push(event)
            if event.kind == PULL_TIMEOUT:
                share = self.shares[event.subject]
                share.held_until = event.time
                share.process.last_pull_timestamp = (event.time - period) // MILLISECOND
            elif event.kind == REBALANCE:
                (<Member> self.members[event.subject]).timer.put_off(postponement // MILLISECOND)
        later.last_order = self.events.last_order
        self.events = later
        return 0

    cdef int plan(self, int64_t time, int kind, int32_t subject) except -1:
        return self.events.plan(time, kind, subject, 0)

    cdef int64_t size_of(self, int64_t row) noexcept:
        return self.sizes[row] if self.sizes != NULL else 0

    cdef int32_t new_batch(self, Share share, int64_t first, int64_t end) except -1:
        cdef int32_t number
        if self.batch_free < 0:
            number = self.batch_capacity
            self.batches = <Batch*> resize(self.batches, 2 * (number + 32) * sizeof(Batch))
            self.batch_capacity = 2 * (number + 32)
            while number < self.batch_capacity:
                self.free_batch(number)
                number += 1
        number = self.batch_free
        self.batch_free = self.batches[number].next
        self.batches[number] = Batch(first, end, 0, share.number, -1)
        return number

    cdef int free_batch(self, int32_t number) noexcept:
        self.batches[number].next = self.batch_free
        self.batch_free = number
        return 0

    cdef int arrive(self, Line line, int64_t row) except -1:
        cdef Share share
        line.append(row)
        if line.held:
            for each in line.held:
                share = each
                share.held = False
                self.plan(time_after(self.now, self.round_trip), PULL_RESULT, share.number)
            line.held.clear()
        return 0

    cdef int pull(self, Share share) except -1:
        cdef Member member = share.member
        cdef int held
        if member.gone or not share.request.opens(self.now // MILLISECOND):
            return 0
        held = share.process.hold(&member.limits, False)
        if held:
            member.count_holds += held == COUNT
            member.size_holds += held == SIZE
            member.span_holds += held == SPAN
            return self.plan(time_after(self.now, HELD_BACK), PULL, share.number)
        if commits_with_pull(share.committed):
            share.line.stored = share.committed
        return self.plan(time_after(self.now, self.round_trip), PULL_RESULT, share.number)

    cdef int pull_timed_out(self, Event event) except -1:
        cdef Share share = self.shares[event.subject]
        share.watched = share.held
        if not share.held:
            return 0
        if share.held_until > event.time:     # a later hold
            event.time, event.order = share.held_until, share.held_order
            return self.events.push(event)
        share.held = share.watched = False
        share.line.held.remove(share)
        return self.pull(share)

    cdef int pull_result(self, Share share) except -1:
        cdef Member member = share.member
        cdef Line line = share.line
        cdef int64_t first = share.request.next_offset, end, offset, delay
        cdef int32_t number
        if member.gone or not goes_on(share.process):
            return 0
        end = min(line.size, first + member.pull_size)
        if end <= first:
            line.held.append(share)
            share.held = True
            share.held_until = time_after(self.now, <int64_t> HELD * MILLISECOND)
            share.held_order = self.events.next_order()
            if not share.watched:
                share.watched = True
                self.events.push(Event(share.held_until, share.held_order, 0, 0, share.number, PULL_TIMEOUT))
            return 0
        self.progressed = self.now
        share.request.found(end, first)
        for offset in range(first, end):
            line.consume_start[offset] = -1
            share.process.put_offset(offset, self.size_of(line.rows[offset]))
        while first < end:
            number = self.new_batch(share, first, slice_end(first, end, member.batch_size))
            first = self.batches[number].end
            if member.head < 0:
                member.head = number
            else:
                self.batches[member.tail].next = number
            member.tail = number
        self.start_batches(member)
        delay = nanoseconds(pull_delay(member.pull_interval), MILLISECOND)
        if delay == 0 and self.events.next_time() > self.now:
            return self.pull(share)         # no event is due earlier
        return self.plan(time_after(self.now, delay), PULL, share.number)

    cdef int start_batches(self, Member member) except -1:
        cdef Share share
        cdef Batch* batch
        cdef int64_t row, offset, end
        cdef int64_t now = self.now // MILLISECOND
        cdef int32_t number
        while member.busy < member.threads and member.head >= 0 and not member.dead and not member.gone:
            number = member.head
            batch = &self.batches[number]
            member.head = batch.next
            share = self.shares[batch.share]
            if not goes_on(share.process):
                self.free_batch(number)
                continue
            for offset in range(batch.first, batch.end):
                row = share.line.rows[offset]
                share.line.consume_start[offset] = now
                batch.work = time_after(batch.work, <int64_t> (self.service[row] * member.factor))
                self.delivery_count[row] += 1
                if self.finish_time[row] < 0:
                    self.start_time[row] = self.now
                    self.stop_time[row] = -1
                    self.worker[row] = member.number
            member.busy += 1
            end = time_after(self.now, batch.work)
            self.pending_results += end < NEVER
            self.plan(end, LISTENER_RETURN, number)
        return 0

    cdef int finish_batch(self, int32_t number) except -1:
        cdef Batch batch = self.batches[number]
        cdef Share share = self.shares[batch.share]
        cdef Member member = share.member
        cdef ProcessQueue process = share.process
        cdef Line line = share.line
        cdef int64_t offset, row, done, offset_to_commit = -1
        cdef bint fails = False, any_cached
        self.free_batch(number)
        if member.gone or member.dead:
            return 0
        member.busy -= 1
        member.work = time_after(member.work, batch.work)
        if not goes_on(process):
            self.stop(member, line, batch.first, batch.end)
            return self.start_batches(member)       # the new owner consumes them again
        if self.failures != NULL:
            for offset in range(batch.first, batch.end):
                row = line.rows[offset]
                fails = fails or self.delivery_count[row] <= self.failures[row]
        done = batch.first + acknowledged_to(batch.end - batch.first, not fails, INT32_MAX) + 1
        for offset in range(batch.first, done):
            row = line.rows[offset]
            member.finished += 1
            if self.finish_time[row] < 0:
                self.finish_time[row] = self.now
                self.finished_count += 1
        self.stop(member, line, done, batch.end)
        for offset in range(done, batch.end):
            if process.cached.has(offset):
                self.give_back(line.rows[offset], 0, member.max_reconsume_times)
        any_cached = process.finishing(self.now // MILLISECOND)
        for offset in range(batch.first, batch.end):
            process.take_out(offset, self.size_of(line.rows[offset]))
        if any_cached:
            offset_to_commit = process.safe()
        if commits(process, offset_to_commit) and replaces(offset_to_commit, share.committed, True):
            share.committed = offset_to_commit
        return self.start_batches(member)

    cdef int stop(self, Member member, Line line, int64_t first, int64_t end) except -1:
        # A listener has returned without finishing these messages; one that began again elsewhere goes on there.
        cdef int64_t offset, row
        for offset in range(first, end):
            row = line.rows[offset]
            if self.finish_time[row] < 0 and self.worker[row] == member.number:
                self.stop_time[row] = self.now
        return 0

    cdef int give_back(self, int64_t row, int64_t level, int64_t maximum) except -1:
        # The broker takes a message back: it is redelivered after its delay, or becomes a dead letter.
        cdef int64_t now = self.now // MILLISECOND, retry_time
        wanted = send_back(level, max(0, self.delivery_count[row] - 1), maximum)
        if wanted < 0:
            self.dead.append(row)
            return 0
        retry_time = nanoseconds(self.levels.deliver_time(wanted, now), MILLISECOND)
        self.pending_results += retry_time < NEVER
        return self.events.plan(retry_time, RETRY, -1, row)

    cdef int clean(self, Member member) except -1:
        cdef Share share
        cdef int64_t offset, row, start
        cdef int _turn
        cdef int64_t now = self.now // MILLISECOND
        for each in list(member.shares.values()):
            share = each
            for _turn in range(EXPIRED_MESSAGES):
                if not share.process.cached.count:
                    break
                offset = share.process.cached.smallest()
                start = share.line.consume_start[offset]
                if start < 0 or not overdue(now, start, member.consume_timeout):
                    break
                row = share.line.rows[offset]
                self.give_back(row, EXPIRED_LEVEL, member.max_reconsume_times)
                share.process.finishing(now)
                share.process.take_out(offset, self.size_of(row))
                share.process.safe()
        return 0

    cdef int persist(self, Member member) except -1:
        for share in member.shares.values():
            if (<Share> share).committed >= 0:
                (<Share> share).line.stored = (<Share> share).committed
        return 0

    cdef int rebalance(self, Member member, int64_t delay) except -1:
        cdef int64_t now = self.now // MILLISECOND
        cdef Share share
        cdef bint changed = False, balanced = True
        names = [(<Member> other).name for other in self.members if not (<Member> other).gone]
        for topic in (self.topic, self.retry):
            mine = self.allocate(member.name, names, topic == self.retry)
            for queue in queues_to_give_up(topic, mine, member.table, now, self.group)[0]:
                share = member.shares.pop(queue)
                del member.table[queue]
                changed = True
                if share.committed >= 0:
                    share.line.stored = share.committed
            for queue in queues_to_take_on(mine, member.table):
                share = Share.__new__(Share)
                share.number = len(self.shares)
                self.shares.append(share)
                share.member = member
                share.line = self.line_by[queue]
                share.process = ProcessQueue(now=now)
                share.committed = share.line.stored
                start = starting_point("CONSUME_FROM_FIRST_OFFSET", share.line.stored, topic).offset
                share.request = PullRequest(self.group, queue, share.process, start)
                member.table[queue] = share.process
                member.shares[queue] = share
                changed = True
                self.plan(time_after(self.now, delay * MILLISECOND), PULL, share.number)
            balanced = balanced and is_balanced(topic, mine, member.table)
        if changed:
            self.share_thresholds(member)
            self.moments.append((self.now, member.name, len(member.table)))
        member.timer.ran(now, balanced)
        return 0

    cdef int share_thresholds(self, Member member) except -1:
        count = shared_threshold(member.threshold_for_topic, len(member.table))
        if count is not None:
            member.limits.count = count
        size = shared_threshold(member.size_for_topic, len(member.table))
        if size is not None:
            member.limits.size = size
        return 0

    def _check(self):
        """Assert the invariants; for tests."""
        cdef Member member
        cdef int32_t number
        cdef int64_t free_ones = 0, waiting = 0, busy = 0
        self.events._check()
        number = self.batch_free
        while number >= 0:
            free_ones += 1
            number = self.batches[number].next
        for each in self.members:
            member = each
            assert 0 <= member.busy <= member.threads
            assert member.table.keys() == member.shares.keys()
            busy += 0 if member.dead or member.gone else member.busy
            number = member.head
            while number >= 0:
                waiting += 1
                assert member.tail == number or self.batches[number].next >= 0
                number = self.batches[number].next
            for share in member.shares.values():
                (<Share> share).process._check()
                assert (<Share> share).request.next_offset <= (<Share> share).line.size
                assert (<Share> share).committed <= (<Share> share).request.next_offset
        for share in self.shares:
            assert (<Share> share).held == (share in (<Share> share).line.held)
            assert (<Share> share).watched or not (<Share> share).held
        assert free_ones + waiting + busy <= self.batch_capacity
        assert self.finished_count == int((self.finished >= 0).sum())
