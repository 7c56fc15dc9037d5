"""The client's rebalance: differences of assignments, starting offsets, thresholds shared among queues, timing."""

from libc.stdint cimport int64_t

from typing import NamedTuple

from pyengine._engine.rocketmq.client.validators import attached

from pyengine.errors import MQClientError

DISPATCH_DELAY = 500            # ms until a new queue is pulled for the first time
LOCK_FAILED_DELAY = 500         # ms until the next run after a refused lock
UNLOCK_WAIT = 500               # ms that giving up a queue waits for its listener
cdef int64_t UNLOCK_DELAY = 20000
cdef int64_t WAIT_INTERVAL = 20000
cdef int64_t MIN_INTERVAL = 1000
cdef int QUERY_NOT_FOUND = 22
cdef int SYSTEM_ERROR = 1
cdef str RETRY_PREFIX = "%RETRY%"


class StartingPoint(NamedTuple):
    """Where to pull from: ``offset``, or what to ask the broker for: ``max_offset`` or ``search_offset``."""

    offset: object = None
    ask: object = None


def starting_point(str consume_from_where not None, int64_t stored, str topic not None):
    """Where a queue's first pull begins. stored: the offset store's answer, -1 for none, below for a failure.

    Raises MQClientError with code 22 where the store failed. Source: RebalancePushImpl, spec rocketmq 4.6.
    """
    if stored >= 0:
        return StartingPoint(stored)
    retried = topic.startswith(RETRY_PREFIX)
    if consume_from_where in ("CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP"):
        if stored != -1:
            raise MQClientError(attached("Failed to query offset from offset store", QUERY_NOT_FOUND), QUERY_NOT_FOUND)
        if consume_from_where == "CONSUME_FROM_FIRST_OFFSET":
            return StartingPoint(0)
        return StartingPoint(None, "max_offset" if retried else "search_offset")
    if stored != -1:
        raise MQClientError(
            attached("Failed to query consume offset from offset store", QUERY_NOT_FOUND), QUERY_NOT_FOUND)
    return StartingPoint(0) if retried else StartingPoint(None, "max_offset")


def checked_start(int64_t offset):
    """The offset; MQClientError with code 1 for a negative one."""
    if offset < 0:
        raise MQClientError(attached(f"Found unexpected result {offset}", SYSTEM_ERROR), SYSTEM_ERROR)
    return offset


def queues_to_give_up(str topic not None, allocated, dict table not None, int64_t now, str group not None,
                      *, bint expires=True):
    """([queue], log): entries of the topic that belong to others now, or are mine but were not pulled for 120 s.

    expires: False leaves out the second, as for consumers that are asked for messages. table: message queue ->
    ProcessQueue. They are marked dropped; they leave the table only when the caller could give them up, and block their
    return until then.
    """
    queues = []
    log = []
    for queue, process_queue in table.items():
        if queue.topic != topic:
            continue
        if queue not in allocated:
            process_queue.dropped = True
            queues.append(queue)
        elif expires and process_queue.is_pull_expired(now):
            process_queue.dropped = True
            queues.append(queue)
            log.append(("ERROR", f"[BUG]doRebalance, {group}, try remove unnecessary mq, {queue}, "
                                 "because pull is pause, so try to fixed it"))
    return queues, tuple(log)


def queues_to_take_on(allocated, dict table not None):
    """Allocated queues that the table does not have, dropped ones in it included."""
    return [queue for queue in allocated if queue not in table]


def is_balanced(str topic not None, allocated, dict table not None):
    """True if the table works on exactly these queues of the topic."""
    return set(allocated) == {queue for queue, process_queue in table.items()
                              if queue.topic == topic and not process_queue.dropped}


def may_force_unlock(process_queue not None, int64_t now):
    """True if a dropped queue is given up although its listener still runs: its lock is older than 20 s."""
    return process_queue.dropped and now > process_queue.last_lock_timestamp + UNLOCK_DELAY


def shared_threshold(int64_t for_topic, int64_t queues):
    """The new per-queue threshold: the topic's divided by all queues of the consumer, at least 1 (spec rocketmq 2.7).

    None if it stays: for_topic is -1, which switches it off, or the whole table has no queues.
    """
    return None if for_topic == -1 or queues == 0 else max(1, for_topic // queues)


cdef class RebalanceTimer:
    """When the rebalance service runs: every 20 s, 1 s after an unbalanced run, at once when woken.

    now: ms, when the service starts. Source: RebalanceService, spec rocketmq 4.1.
    """

    def __cinit__(self, int64_t now):
        self.last = self.since = now
        self.wait = WAIT_INTERVAL

    def due(self):
        """When the waiting ends, ms."""
        return self.since if self.woken else self.since + self.wait

    def wake(self, int64_t now):
        """Something changed. Returns when to look again, ms."""
        self.woken = True
        self.since = now
        return now

    def run_now(self, int64_t now):
        """The waiting ended: True to run, False to wait on until ``due`` because the last run is too recent."""
        self.woken = False
        self.since = now
        if now - self.last < MIN_INTERVAL:
            self.wait = MIN_INTERVAL - (now - self.last)
            return False
        return True

    def ran(self, int64_t now, bint balanced):
        """A run ended."""
        self.last = self.since = now
        self.wait = WAIT_INTERVAL if balanced else MIN_INTERVAL

    cdef int64_t steady_period(self, int64_t due) noexcept:
        # ms until the next run, if the run before ``due`` was balanced; else 0.
        return WAIT_INTERVAL if not self.woken and self.wait == WAIT_INTERVAL and self.since + self.wait == due else 0

    cdef int put_off(self, int64_t time) noexcept:
        # As if it had run until then, every time balanced.
        self.last += time
        self.since += time
        return 0
