"""Batches of the concurrent consume service: slices, results, what is given back and which offset is committed."""

from libc.stdint cimport INT32_MAX, int64_t

from pyengine._engine.rocketmq.client.process_queue cimport ProcessQueue

RESUBMIT_DELAY = 5000       # ms until messages that could not be given back are consumed again
EXPIRED_AT_ONCE = EXPIRED_MESSAGES
EXPIRED_DELAY_LEVEL = EXPIRED_LEVEL


def slices(list messages not None, int64_t size):
    """Batches of at most ``size`` messages in order; no messages are one empty batch (submitConsumeRequest)."""
    cdef int64_t count = len(messages), start = 0, end
    if count <= size:
        return [messages]
    if size < 1:
        raise ValueError(f"size = {size}: a batch has one message at least")
    cdef list batches = []
    while start < count:
        end = slice_end(start, count, size)
        batches.append(messages[start:end])
        start = end
    return batches


def rejected(list batches not None, int64_t position):
    """The batch that is submitted later when the pool refuses batch ``position``: it and all behind it, in one."""
    return [message for batch in batches[position:] for message in batch]


def return_type(status, bint raised, int64_t elapsed, int64_t consume_timeout):
    """The label of a listener's run. status: its name or None. elapsed: ms. consume_timeout: minutes."""
    if status is None:
        return "EXCEPTION" if raised else "RETURNNULL"
    if elapsed >= consume_timeout * 60000:
        return "TIME_OUT"
    return "FAILED" if status in ("RECONSUME_LATER", "SUSPEND_CURRENT_QUEUE_A_MOMENT") else "SUCCESS"


def restored_topic(str topic, str retry_topic, str group_topic):
    """The topic that a listener sees: a retried message has its own again. retry_topic: the RETRY_TOPIC property."""
    return retry_topic if retry_topic is not None and topic == group_topic else topic


cdef class ConsumeRequest:
    """One batch on its way through a listener. messages: the list is kept, not copied.

    Driven so: ``start``; the listener; ``settle``; for each message of ``failed`` that ``holds``, give it back, and
    ``keep`` it if that fails; ``finish``. Not thread-safe with its process queue.
    """

    def __cinit__(self, list messages not None, ProcessQueue process_queue not None, queue):
        self.messages = messages
        self.process_queue = process_queue
        self.queue = queue
        self.acknowledged = -1

    @property
    def goes_on(self):
        """False: the queue was given up, and the listener's answer counts for nothing."""
        return goes_on(self.process_queue)

    def start(self, int64_t now):
        """True if the listener must be called: the queue is still owned. Stamps the messages with ``now`` (ms)."""
        if not goes_on(self.process_queue):
            return False
        stamp = str(now)
        for message in self.messages:
            message.properties["CONSUME_START_TIME"] = stamp
        return True

    def settle(self, status, int64_t ack_index=INT32_MAX):
        """(ok, failed) as the statistics count them; None for an empty batch, which ends here.

        status: CONSUME_SUCCESS, or anything else for all failed.
        """
        cdef int64_t count = len(self.messages)
        if count == 0:
            return None
        self.succeeded = status == "CONSUME_SUCCESS"
        self.acknowledged = acknowledged_to(count, self.succeeded, ack_index)
        return self.acknowledged + 1, count - self.acknowledged - 1

    def failed(self):
        """The messages behind the acknowledged ones.

        Raises IndexError for an ack_index below -1, as the real client does: the batch then stays as it is.
        """
        if self.acknowledged < -1:
            raise IndexError(f"Index {self.acknowledged + 1} out of bounds for length {len(self.messages)}")
        return self.messages[self.acknowledged + 1:]

    def holds(self, message):
        """True if the message is still cached; one that expired was given back already."""
        return self.process_queue.contains_message(message)

    def keep(self, list messages not None):
        """These could not be given back: out of the batch, to be tried here again, each counted once more."""
        kept = {id(message) for message in messages}
        for message in messages:
            message.reconsume_times += 1
        self.messages[:] = [message for message in self.messages if id(message) not in kept]

    def finish(self, int64_t now):
        """Take the batch out of the process queue; the offset to commit, never lowering it, or None. now: ms."""
        offset = self.process_queue.remove_messages(self.messages, now=now)
        return offset if commits(self.process_queue, offset) else None
