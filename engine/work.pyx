# cython: freethreading_compatible=True, binding=False, always_allow_keywords=False
"""Out-of-order work on ordered queues, over RocketMQ's ProcessQueue: for clients of any broker."""

from collections import deque

from libc.stdint cimport int64_t

from pyengine._engine.process_queue cimport ProcessQueue

from pyengine._engine.process_queue import FlowControl
from pyengine.errors import IllegalStateError


cpdef enum WorkOrder:
    BY_KEY = 0          # one record of a key at a time, in order; records without a key in any order
    BY_QUEUE = 1        # one record of a queue at a time, in order
    UNORDERED = 2       # all at once


cdef class Lane:
    """Records that wait for each other."""

    def __init__(self):
        raise TypeError("a Lane is made by WorkTable")


cdef class Assigned:
    """One queue that this client has."""

    def __init__(self):
        raise TypeError("an Assigned is made by WorkTable")


cdef class Work:
    """One record in hand. queue, key, record: as they were put. queue_offset: its offset. attempts: 1 the first time.

    epoch: of the assignment under which it was put; see WorkTable.assign.
    """

    def __init__(self):
        raise TypeError("a Work comes from take()")

    def __repr__(self):
        return f"Work({self.queue!r}, {self.queue_offset}, key={self.key!r})"


cdef class WorkTable:
    """All records that were put and not completed. Not thread-safe: whoever drives it holds its lock.

    order: WorkOrder. max_messages, max_mebibytes, max_span: budget of one queue, with the meaning of RocketMQ's
    pullThresholdForQueue, pullThresholdSizeForQueue and consumeConcurrentlyMaxSpan (spec rocketmq 2.2): the queue is
    full when one of them is exceeded.
    """

    def __cinit__(self, order=WorkOrder.BY_KEY, *, int64_t max_messages=1000, int64_t max_mebibytes=100,
                  int64_t max_span=2000):
        self.queues = {}
        self.ready = deque()
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
        assigned.queue, assigned.epoch, assigned.lanes = queue, self.epochs, {}
        assigned.process_queue = ProcessQueue(now=now)
        assigned.safe = assigned.told = -1
        self.queues[queue] = assigned
        return self.epochs

    def revoke(self, queue):
        """The queue belongs to somebody else now: forget its records. Returns the offset safe to commit, -1 for none.

        Records in hand may still be completed; that is dropped and counted. Raises IllegalStateError if it is not
        assigned.
        """
        cdef Assigned assigned = self.of(queue)
        cdef Lane lane
        del self.queues[queue]
        assigned.revoked = True
        self.ready = deque([lane for lane in self.ready if lane.assigned is not assigned])
        assigned.lanes = {}
        return assigned.safe

    def put(self, queue, int64_t offset, key, record, body=None):
        """Take in a polled record. Returns False if one of this offset is there already (it stays).

        body: what counts against the budget in bytes, bytes or str. Raises IllegalStateError for a queue that is not
        assigned.
        """
        cdef Assigned assigned = self.of(queue)
        cdef Work work
        cdef Lane lane
        if assigned.process_queue.cached.has(offset):
            return False
        work = Work.__new__(Work)
        work.queue, work.key, work.record, work.queue_offset = queue, key, record, offset
        work.body = body if isinstance(body, (bytes, str)) else None
        work.epoch = assigned.epoch
        assigned.process_queue.put_one(offset, work, 0 if work.body is None else len(work.body))
        group = work if self.order == WorkOrder.UNORDERED or (self.order == WorkOrder.BY_KEY and key is None) else (
            key if self.order == WorkOrder.BY_KEY else None
        )
        lane = assigned.lanes.get(group)
        if lane is None:
            lane = Lane.__new__(Lane)
            lane.waiting, lane.key, lane.assigned = deque(), group, assigned
            assigned.lanes[group] = lane
        work.lane = lane
        lane.waiting.append(work)
        if not lane.busy and len(lane.waiting) == 1:
            self.ready.append(lane)
        return True

    def take(self):
        """The next record that may be worked on, None if there is none now. Lanes take turns."""
        cdef Lane lane
        cdef Work work
        if not self.ready:
            return None
        lane = self.ready.popleft()
        work = lane.waiting.popleft()
        lane.busy = work.taken = True
        work.attempts += 1
        lane.assigned.in_hand += 1
        return work

    cdef int leave(self, Work work) except -1:
        """Let go of a record in hand."""
        if not work.taken:
            raise IllegalStateError(f"{work!r} is not in hand: take() comes first, and each record is finished once")
        work.taken = False
        work.lane.assigned.in_hand -= 1
        work.lane.busy = False
        return 0

    def complete(self, Work work not None, int64_t now=0):
        """The work is done. Returns True; False if the queue was revoked meanwhile: then it counts for nothing.

        Raises IllegalStateError for a record that is not in hand.
        """
        cdef Lane lane = work.lane
        cdef Assigned assigned = lane.assigned
        cdef int64_t safe
        self.leave(work)
        if assigned.revoked:
            self.dropped += 1
            return False
        if lane.waiting:
            self.ready.append(lane)
        else:
            del assigned.lanes[lane.key]
        assigned.process_queue.last_consume_timestamp = now
        assigned.process_queue.take_out(work.queue_offset, 0 if work.body is None else len(work.body))
        safe = assigned.process_queue.safe()
        if safe > assigned.safe:
            assigned.safe = safe
        return True

    def give_back(self, Work work not None):
        """The work failed: it is taken again later, before the rest of its lane. Returns False if it was revoked.

        Raises IllegalStateError for a record that is not in hand.
        """
        cdef Lane lane = work.lane
        self.leave(work)
        if lane.assigned.revoked:
            self.dropped += 1
            return False
        lane.waiting.appendleft(work)
        self.ready.append(lane)
        return True

    def safe_offset(self, queue):
        """The offset that is safe to commit: everything below is done. -1 before anything was completed."""
        return self.of(queue).safe

    def commits(self):
        """{queue: safe offset} of the queues where it moved since the last call."""
        cdef Assigned assigned
        cdef dict moved = {}
        for queue, assigned in self.queues.items():
            if assigned.safe != assigned.told:
                moved[queue] = assigned.safe
                assigned.told = assigned.safe
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
            if verdict != FlowControl.PULL:
                found[queue] = verdict
        return found

    def in_hand(self, queue):
        """How many records of the queue are being worked on."""
        return self.of(queue).in_hand

    def unfinished(self, queue):
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
        ready = set(self.ready)
        assert len(ready) == len(self.ready)
        for queue, assigned in self.queues.items():
            assert not assigned.revoked
            assigned.process_queue._check()
            waiting = 0
            for key, lane in assigned.lanes.items():
                assert lane.assigned is assigned
                assert lane.busy or lane.waiting, key
                assert (lane in ready) == (not lane.busy and bool(lane.waiting)), key
                for work in lane.waiting:
                    assert work.epoch == assigned.epoch and not work.taken, work
                waiting += len(lane.waiting)
            assert waiting + assigned.in_hand == assigned.process_queue.message_count, queue
        for lane in ready:
            assert not lane.assigned.revoked
