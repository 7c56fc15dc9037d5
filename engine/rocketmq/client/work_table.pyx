# cython: freethreading_compatible=True, binding=False, always_allow_keywords=False
"""Out-of-order work on ordered queues, over RocketMQ's ProcessQueue: for clients of any broker."""

from heapq import heapify, heappop, heappush

cimport cython
from cpython.long cimport PyLong_Check
from libc.stdint cimport int64_t

from pyengine._engine.rocketmq.client.process_queue cimport ProcessQueue

from pyengine._engine.rocketmq.client.process_queue import FlowControl
from pyengine.errors import IllegalStateError, InvalidMessageError


cpdef enum WorkOrder:
    BY_KEY = 0          # one record of a key at a time, in order; records without a key in any order
    BY_QUEUE = 1        # one record of a queue at a time, in order
    UNORDERED = 2       # all at once


cdef class Lane:
    """Records that wait for each other."""

    def __init__(self):
        raise TypeError("a Lane is made by WorkTable")

    cdef bint idle(self) noexcept:
        """Nothing waits."""
        return self.first == len(self.waiting)

    cdef Work next(self):
        """The first that waits, which waits no longer."""
        cdef Work work = self.waiting[self.first]
        self.waiting[self.first] = None
        self.first += 1
        if self.first > 32 and 2 * self.first > len(self.waiting):
            del self.waiting[:self.first]
            self.first = 0
        return work

    cdef int back(self, Work work) except -1:
        """It waits again, before the others."""
        if self.first:
            self.first -= 1
            self.waiting[self.first] = work
        else:
            self.waiting.insert(0, work)
        return 0


cdef class Assigned:
    """One queue that this client has."""

    def __init__(self):
        raise TypeError("an Assigned is made by WorkTable")

    cdef int64_t spans(self) noexcept:
        """From the smallest offset that is not completed to the largest that was put: what a restart repeats."""
        return self.largest - self.process_queue.cached.smallest() if self.process_queue.cached.count else 0


cdef class Work:
    """One record in hand. queue, key, record: as they were put. queue_offset: its offset. attempts: 1 the first time.

    epoch: of the assignment under which it was put; see WorkTable.assign.
    """

    def __init__(self):
        raise TypeError("a Work comes from take()")

    def __repr__(self):
        return f"Work({self.queue!r}, {self.queue_offset}, key={self.key!r})"


cdef enum Shape:
    METHODS                 # confluent-kafka's
    ATTRIBUTES              # aiokafka's and kafka-python's
    ROCKETMQ


cdef Shape shape_of(object record) except *:
    if hasattr(record, "queue_offset"):
        return ROCKETMQ
    return METHODS if callable(record.offset) else ATTRIBUTES


@cython.always_allow_keywords(True)          # else Python 3.14 takes its argument for a method's self
def polled(records):
    """The records as a list of Work that no table has yet; queue is (topic, partition) or (topic, broker, queue id).

    A record has confluent-kafka's methods, aiokafka's and kafka-python's attributes, or RocketMQ's. Records of one
    type have one shape. Raises InvalidMessageError for an object that is not a record, also for one of confluent-kafka
    with an error: the end of a partition has the offset of the record that comes next, which would not be taken then.
    """
    cdef list works = []
    cdef Work work
    cdef Shape shape = METHODS
    cdef bint may_err = False
    cdef object last_type = None, topic = None, partition = None, place = None, offset, body, here, number
    for record in records:
        try:
            if type(record) is not last_type:
                shape = shape_of(record)
                last_type, topic = type(record), None
                may_err = shape == METHODS and callable(getattr(record, "error", None))
            if may_err and record.error() is not None:
                raise InvalidMessageError(
                    "record", record, f"an error and no record: {record.error()}", hint="ask error() before put()")
            work = Work.__new__(Work)
            if shape == METHODS:
                here, number, offset = record.topic(), record.partition(), record.offset()
                work.key, body = record.key(), record.value()
            elif shape == ATTRIBUTES:
                here, number, offset = record.topic, record.partition, record.offset
                work.key, body = record.key, record.value
            else:
                here, number, offset = record.topic, record.queue_id, record.queue_offset
                work.key, body = record.keys or None, record.body
                if topic is not None and place[1] != record.broker_name:
                    topic = None
            if topic is None or number != partition or here != topic:
                topic, partition = here, number
                place = (here, record.broker_name, number) if shape == ROCKETMQ else (here, number)
        except AttributeError as error:
            raise InvalidMessageError(
                "record", record, f"this is no record of a queue: {error}",
                hint="it needs topic, partition, offset, key and value, as attributes or methods",
            ) from error
        if not PyLong_Check(offset) or not 0 <= offset < 2**63:
            raise InvalidMessageError(
                "offset", offset, "a consumed record has an offset from 0 to 2**63 - 1",
                hint="put what the client's poll returned")
        work.queue, work.record, work.queue_offset = place, record, offset
        work.body = body if isinstance(body, (bytes, str)) else None
        works.append(work)
    return works


cdef bint belongs(object turn, Assigned assigned) except -1:
    """Whether a lane, or a record without one, is of this queue."""
    if type(turn) is Work:
        return (<Work>turn).assigned is assigned
    return (<Lane>turn).assigned is assigned


cdef class WorkTable:
    """All records that were put and not completed. Not thread-safe: the caller holds a lock.

    order: WorkOrder. max_messages, max_mebibytes, max_span: budget of one queue, with the meaning of RocketMQ's
    pullThresholdForQueue, pullThresholdSizeForQueue and consumeConcurrentlyMaxSpan (spec rocketmq 2.2): the queue is
    full when one of them is exceeded. But for the span: RocketMQ's ends at the largest offset that is not completed,
    so that behind one record that hangs a restart repeats without end; here it ends at the largest that was put.
    """

    def __cinit__(self, order=WorkOrder.BY_KEY, *, int64_t max_messages=1000, int64_t max_mebibytes=100,
                  int64_t max_span=2000):
        self.queues = {}
        self.ready = []
        self.delayed = []
        self.order = WorkOrder(order)
        self.max_messages, self.max_mebibytes, self.max_span = max_messages, max_mebibytes, max_span

    cdef Assigned of(self, queue):
        cdef Assigned assigned = self.queues.get(queue)
        if assigned is None:
            raise IllegalStateError(f"{queue!r} is not assigned: assign() comes before its records")
        return assigned

    def assign(self, queue, int64_t now=0):
        """This client has the queue from now on. Returns the epoch of the assignment, which no other one gets.

        Raises IllegalStateError if it has it already.
        """
        cdef Assigned assigned
        if queue in self.queues:
            raise IllegalStateError(f"{queue!r} is assigned already: revoke() comes first")
        self.epochs += 1
        assigned = Assigned.__new__(Assigned)
        assigned.queue, assigned.epoch, assigned.lanes, assigned.table = queue, self.epochs, {}, self
        assigned.process_queue = ProcessQueue(now=now)
        assigned.safe = assigned.reported = assigned.largest = -1
        self.queues[queue] = assigned
        return self.epochs

    def revoke(self, queue, /):
        """The queue was revoked: forget its records. Returns the offset safe to commit, -1 for none.

        Records in hand may still be completed; that is dropped and counted. Raises IllegalStateError if it is not
        assigned.
        """
        cdef Assigned assigned = self.of(queue)
        del self.queues[queue]
        assigned.revoked = True
        self.ready = [turn for turn in self.ready[self.ready_first:] if not belongs(turn, assigned)]
        self.ready_first = 0
        if assigned.delayed:
            self.delayed = [entry for entry in self.delayed if not belongs(entry[2], assigned)]
            heapify(self.delayed)
        assigned.lanes = {}
        return assigned.safe

    def put(self, queue, int64_t offset, key, record, body=None):
        """Take in a polled record. Returns False if one of this offset is there already (it stays).

        body: what counts against the budget in bytes, bytes or str. Raises IllegalStateError for a queue that is not
        assigned.
        """
        cdef Work work = Work.__new__(Work)
        work.key, work.record, work.queue_offset = key, record, offset
        work.body = body if isinstance(body, (bytes, str)) else None
        return self.take_in(self.of(queue), work)

    def put_polled(self, list works not None, /):
        """Take in what :func:`polled` made. Returns how many were new.

        Raises IllegalStateError at the first whose queue is not assigned; those before it are in.
        """
        cdef Work work
        cdef Assigned assigned = None
        cdef object place = None
        cdef int64_t new = 0
        for work in works:
            if work.queue is not place:
                place = work.queue
                assigned = self.of(place)
            new += self.take_in(assigned, work)
        return new

    cdef bint take_in(self, Assigned assigned, Work work) except -1:
        """Whether the record's offset is new; then it waits."""
        cdef Lane lane
        cdef int64_t offset = work.queue_offset
        if assigned.process_queue.cached.has(offset):
            return False
        work.queue, work.epoch, work.assigned = assigned.queue, assigned.epoch, assigned
        assigned.largest = max(assigned.largest, offset)
        group = None if self.order == WorkOrder.BY_QUEUE else work.key
        if self.order == WorkOrder.UNORDERED or (self.order == WorkOrder.BY_KEY and group is None):
            assigned.process_queue.put_offset(offset, 0 if work.body is None else len(work.body))
            self.ready.append(work)
            return True
        lane = assigned.lanes.get(group)
        if lane is None:
            lane = Lane.__new__(Lane)
            lane.waiting, lane.key, lane.assigned = [], group, assigned
            assigned.lanes[group] = lane
        assigned.process_queue.put_offset(offset, 0 if work.body is None else len(work.body))
        work.lane = lane
        if not lane.busy and lane.idle():
            self.ready.append(lane)
        lane.waiting.append(work)
        return True

    cpdef Work take(self):
        """The next record that may be worked on, None if there is none now. Lanes take turns."""
        cdef Lane lane
        cdef Work work
        cdef list ready = self.ready
        if self.ready_first == len(ready):
            return None
        turn = ready[self.ready_first]
        ready[self.ready_first] = None
        self.ready_first += 1
        if self.ready_first > 32 and 2 * self.ready_first > len(ready):
            del ready[:self.ready_first]
            self.ready_first = 0
        if type(turn) is Work:
            work = <Work>turn
        else:
            lane = turn
            work = lane.next()
            lane.busy = True
        work.taken = True
        work.attempts += 1
        work.assigned.in_hand += 1
        return work

    def __iter__(self):
        return self

    def __next__(self):
        """Take one. A loop does not check for Ctrl-C between taking and storing it; a call does."""
        cdef Work work = self.take()
        if work is None:
            raise StopIteration
        return work

    cdef Assigned leave(self, Work work):
        """Let go of a record in hand. Returns its queue."""
        if not work.taken:
            raise IllegalStateError(f"{work!r} is not in hand: take() comes first, and each record is finished once")
        if work.assigned.table is not self:
            raise IllegalStateError(f"{work!r} was taken from another worker: finish it there")
        work.taken = False
        work.assigned.in_hand -= 1
        if work.lane is not None:
            work.lane.busy = False
        return work.assigned

    def complete(self, Work work not None, int64_t now=0):
        """The work is done. Returns True; False if the queue was revoked meanwhile: then it counts for nothing.

        Raises IllegalStateError for a record that is not in hand, or in that of another table.
        """
        return self.finish(work, now)

    cdef bint finish(self, Work work, int64_t now) except -1:
        cdef Assigned assigned = self.leave(work)
        cdef Lane lane = work.lane
        cdef int64_t safe
        if assigned.revoked:
            self.dropped += 1
            return False
        if lane is not None:
            if lane.idle():
                del assigned.lanes[lane.key]
            else:
                self.ready.append(lane)
        assigned.process_queue.last_consume_timestamp = now
        assigned.process_queue.take_out(work.queue_offset, 0 if work.body is None else len(work.body))
        safe = assigned.process_queue.safe()
        if safe > assigned.safe:
            assigned.safe = safe
        return True

    def give_back(self, Work work not None, int64_t due=-1):
        """The work failed: it is taken again later, before the rest of its lane. Returns False if it was revoked.

        due: ms from which :meth:`release` lets it be taken; until then the rest of its lane waits too. -1: at once.
        Raises IllegalStateError for a record that is not in hand.
        """
        cdef Assigned assigned = self.leave(work)
        if assigned.revoked:
            self.dropped += 1
            return False
        if due < 0:
            self.wait_again(work)
            return True
        if work.lane is not None:
            work.lane.busy = True
        self.delays += 1
        assigned.delayed += 1
        heappush(self.delayed, (due, self.delays, work))
        return True

    cdef int wait_again(self, Work work) except -1:
        """A record that was given back may be taken, before the rest of its lane."""
        if work.lane is None:
            self.ready.append(work)
        else:
            work.lane.busy = False
            work.lane.back(work)
            self.ready.append(work.lane)
        return 0

    def release(self, int64_t now, /):
        """Records whose delay is over at ``now`` (ms) may be taken. Returns when the next one is due, -1 for none."""
        cdef Work work
        while self.delayed and self.delayed[0][0] <= now:
            work = heappop(self.delayed)[2]
            work.assigned.delayed -= 1
            self.wait_again(work)
        return self.delayed[0][0] if self.delayed else -1

    def safe_offset(self, queue, /):
        """The offset that is safe to commit: everything below is done. -1 before anything was completed."""
        return self.of(queue).safe

    def commits(self):
        """{queue: safe offset} of the queues where it moved since the last call."""
        cdef Assigned assigned
        cdef dict moved = {}
        for queue, assigned in self.queues.items():
            if assigned.safe != assigned.reported:
                moved[queue] = assigned.safe
                assigned.reported = assigned.safe
        return moved

    def full(self):
        """The queues whose budget is exceeded, with the reason: {queue: FlowControl}. Pause them; poll the others."""
        cdef Assigned assigned
        cdef dict found = {}
        for queue, assigned in self.queues.items():
            verdict = assigned.process_queue.flow_control(
                pull_threshold_for_queue=self.max_messages, pull_threshold_size_for_queue=self.max_mebibytes,
                consume_concurrently_max_span=self.max_span,
            )
            if verdict == FlowControl.PULL and assigned.spans() > self.max_span:
                verdict = FlowControl.SPAN
            if verdict != FlowControl.PULL:
                found[queue] = verdict
        return found

    def in_hand(self, queue, /):
        """How many records of the queue are being worked on."""
        return self.of(queue).in_hand

    def unfinished(self, queue, /):
        """Offsets that were put and not completed, ascending."""
        return self.of(queue).process_queue.cached_offsets

    def assigned(self):
        """{queue: epoch}."""
        cdef Assigned assigned
        return {queue: assigned.epoch for queue, assigned in self.queues.items()}

    def _check(self):
        """Raise AssertionError unless the invariants hold."""
        cdef Assigned assigned
        cdef Lane lane
        cdef Work work
        cdef int64_t waiting
        delayed = [entry[2] for entry in self.delayed]
        for work in delayed:
            assert not work.taken and not work.assigned.revoked, work
            assert work.lane is None or work.lane.busy, work
        assert all(turn is None for turn in self.ready[:self.ready_first])
        ready = set(self.ready[self.ready_first:])
        assert len(ready) == len(self.ready) - self.ready_first
        for queue, assigned in self.queues.items():
            assert not assigned.revoked
            assigned.process_queue._check()
            waiting = 0
            for key, lane in assigned.lanes.items():
                assert lane.assigned is assigned
                assert lane.busy or not lane.idle(), key
                assert (lane in ready) == (not lane.busy and not lane.idle()), key
                assert all(work is None for work in lane.waiting[:lane.first])
                for work in lane.waiting[lane.first:]:
                    assert work.epoch == assigned.epoch and work.lane is lane and not work.taken, work
                waiting += len(lane.waiting) - lane.first
            for turn in ready:
                if type(turn) is Work and (<Work>turn).assigned is assigned:
                    work = turn
                    assert work.epoch == assigned.epoch and work.lane is None and not work.taken, work
                    waiting += 1
            assert assigned.delayed == sum([belongs(work, assigned) for work in delayed]), queue
            assert waiting + assigned.in_hand + assigned.delayed == assigned.process_queue.message_count, queue
        for turn in ready:
            assert not ((<Work>turn).assigned if type(turn) is Work else (<Lane>turn).assigned).revoked


cdef class LockedTable:
    """The steps that each record takes, under a lock that the caller gives: threading.RLock or what has its methods.

    It is an iterator: iterating takes the next record. A loop does not check for Ctrl-C between taking and storing it;
    a call does.
    """

    def __cinit__(self, WorkTable table not None, lock):
        self.table = table
        self.acquire, self.release = lock.acquire, lock.release

    def __iter__(self):
        return self

    def __next__(self):
        cdef Work work
        self.acquire()
        try:
            work = self.table.take()
        finally:
            self.release()
        if work is None:
            raise StopIteration
        return work

    def complete(self, Work work not None):
        """WorkTable.complete."""
        self.acquire()
        try:
            return self.table.finish(work, 0)
        finally:
            self.release()
