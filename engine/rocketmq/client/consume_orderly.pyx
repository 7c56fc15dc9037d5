"""The ordered consume service's decisions for one queue: whether to go on, what to commit, when to come back."""

from libc.stdint cimport INT32_MAX, int64_t

from pyengine._engine.rocketmq.client.process_queue cimport ProcessQueue

from typing import NamedTuple

cdef int64_t MAX_TIME_CONSUME_CONTINUOUSLY = 60000
LOCK_PERIOD = 20000         # ms between two renewals of all locks; the first comes after LOCK_FIRST
LOCK_FIRST = 1000


cpdef enum OrderlyStep:
    STOP = 0            # nothing more to do until something is put
    LOCK_LATER = 1      # after the delay ask for the broker's lock, then come back
    RESUBMIT = 2        # come back after the delay
    CONSUME = 3         # give the batch to the listener
    SEND_BACK = 4       # give the message to the broker; not_sent_back if that fails
    CONTINUE = 5        # next


class OrderlyVerdict(NamedTuple):
    """What to do. delay: ms. log: (level, text) lines. offset: to be committed as it is, or None."""

    step: int
    delay: int = 0
    log: tuple = ()
    offset: object = None


def reconsume_after(bint lock_ok):
    """ms from an attempt at the broker's lock to the next run."""
    return 10 if lock_ok else 3000


def suspend_time(int64_t asked, int64_t configured):
    """ms until a suspended queue goes on. asked: the context's, -1 for the consumer's own; kept in 10 .. 30000."""
    return min(30000, max(10, configured if asked == -1 else asked))


cdef class OrderlyRun:
    """One run over a queue. clustering: False in broadcasting, where nothing is locked.

    Driven so: ``start``; then ``next`` until it says otherwise than CONSUME; after each listener, for each
    suspended message ``check`` and what it asks for, then ``close``. Not thread-safe with its process queue.
    Source: ConsumeMessageOrderlyService.ConsumeRequest.
    """

    def __cinit__(self, ProcessQueue process_queue not None, queue, *, bint clustering=True):
        self.process_queue = process_queue
        self.queue = queue
        self.clustering = clustering
        self.messages = []

    def start(self, int64_t now):
        """CONTINUE if the queue is ours and locked, else what to do instead. now: ms."""
        cdef ProcessQueue queue = self.process_queue
        if queue.dropped:
            return OrderlyVerdict(OrderlyStep.STOP, 0, (
                ("WARN", f"run, the message queue not be able to consume, because it's dropped. {self.queue}"),))
        if self.clustering and (not queue.locked or queue.is_lock_expired(now)):
            return OrderlyVerdict(OrderlyStep.LOCK_LATER, 100)
        self.began = now
        return OrderlyVerdict(OrderlyStep.CONTINUE)

    def next(self, int64_t now, int64_t batch_size):
        """CONSUME with the next ``messages`` taken, or the end of the run."""
        cdef ProcessQueue queue = self.process_queue
        if queue.dropped:
            return self.dropped()
        if self.clustering and not queue.locked:
            return OrderlyVerdict(OrderlyStep.LOCK_LATER, 10, (
                ("WARN", f"the message queue not locked, so consume later, {self.queue}"),))
        if self.clustering and queue.is_lock_expired(now):
            return OrderlyVerdict(OrderlyStep.LOCK_LATER, 10, (
                ("WARN", f"the message queue lock expired, so consume later, {self.queue}"),))
        if now - self.began > MAX_TIME_CONSUME_CONTINUOUSLY:
            return OrderlyVerdict(OrderlyStep.RESUBMIT, 10)
        self.messages = queue.take_messages(batch_size, now=now)
        self.suspends = False
        return OrderlyVerdict(OrderlyStep.CONSUME if self.messages else OrderlyStep.STOP)

    def dropped(self, *, bint before_listener=False):
        """The end of a run whose queue was lost; what is taken stays taken."""
        where = "consumeMessage, " if before_listener else ""
        return OrderlyVerdict(OrderlyStep.STOP, 0, (
            ("WARN", f"{where}the message queue not be able to consume, because it's dropped. {self.queue}"),))

    def not_ok(self, status):
        """True if the listener's answer deserves a line: nothing, ROLLBACK or suspend."""
        return status is None or status in ("ROLLBACK", "SUSPEND_CURRENT_QUEUE_A_MOMENT")

    def check(self, int position, int64_t max_reconsume_times):
        """Before a suspended batch is settled: what to do with its message number ``position``.

        SEND_BACK if its tries are used up, else CONTINUE: it is counted and suspends the queue. max_reconsume_times:
        -1 for without end.
        """
        message = self.messages[position]
        if message.reconsume_times >= (INT32_MAX if max_reconsume_times == -1 else max_reconsume_times):
            message.properties["RECONSUME_TIME"] = str(message.reconsume_times)
            return OrderlyStep.SEND_BACK
        self.suspends = True
        message.reconsume_times += 1
        return OrderlyStep.CONTINUE

    def not_sent_back(self, int position):
        """Giving this message back failed: it is counted and suspends the queue."""
        self.suspends = True
        self.messages[position].reconsume_times += 1

    def close(self, str status not None, *, bint auto_commit=True, int64_t suspend_millis=-1,
              int64_t configured_millis=1000):
        """What the listener's answer leads to. status: SUCCESS, COMMIT, ROLLBACK or SUSPEND_CURRENT_QUEUE_A_MOMENT.

        CONTINUE or RESUBMIT. suspend_millis: the context's; configured_millis: the consumer's. Raises
        IllegalStateError where the real client fails: a commit with nothing taken.
        """
        cdef ProcessQueue queue = self.process_queue
        log = ()
        offset = None
        stop = False
        if status == "SUSPEND_CURRENT_QUEUE_A_MOMENT":
            if self.suspends:
                queue.make_message_to_consume_again(self.messages)
                stop = True
            elif auto_commit:
                offset = queue.commit()
        elif not auto_commit:
            if status == "COMMIT":
                offset = queue.commit()
            elif status == "ROLLBACK":
                queue.rollback()
                stop = True
        else:
            if status != "SUCCESS":
                log = (("WARN", "the message queue consume result is illegal, "
                                f"we think you want to ack these message {self.queue}"),)
            offset = queue.commit()
        if offset is not None and (offset < 0 or queue.dropped):
            offset = None
        if stop:
            return OrderlyVerdict(OrderlyStep.RESUBMIT, suspend_time(suspend_millis, configured_millis), log, offset)
        return OrderlyVerdict(OrderlyStep.CONTINUE, 0, log, offset)

    def counts(self, status, *, bint auto_commit=True):
        """(ok, failed) as the statistics count the batch."""
        if status == "SUSPEND_CURRENT_QUEUE_A_MOMENT":
            return 0, len(self.messages)
        if auto_commit or status == "SUCCESS":
            return len(self.messages), 0
        return 0, 0
