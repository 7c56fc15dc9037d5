# cython: binding=False, always_allow_keywords=False
"""RocketMQ's process queue and its flow-control verdict."""

from cpython.long cimport PyLong_Check, PyLong_CheckExact
from cpython.number cimport PyNumber_Index
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free

from pyengine._engine.lowlevel.memory cimport allocate
from pyengine._engine.java.numbers cimport parsed_long
from pyengine._engine.rocketmq.client.offset_window cimport Window

from pyengine._engine.rocketmq.commands.defaults import (
    CONSUME_CONCURRENTLY_MAX_SPAN, PULL_THRESHOLD_FOR_QUEUE, PULL_THRESHOLD_SIZE_FOR_QUEUE,
)
from pyengine.errors import ConfigurationError, IllegalStateError, InvalidMessageError, unknown_arguments

cdef extern from "lowlevel/slot_access.h":
    ctypedef struct Slot "pyengine_slot":
        pass
    object read "pyengine_read"(object item, object name, Slot* known)
    PyObject* peek "pyengine_peek"(object item, const Slot* known) noexcept     # borrowed; NULL: read it
    int64_t long_value "pyengine_long"(PyObject* number, int* overflow) noexcept

cdef extern from "Python.h":
    # Of borrowed objects, which as ``object`` would be held for each question.
    bint is_exact_bytes "PyBytes_CheckExact"(PyObject* item) noexcept
    bint is_exact_integer "PyLong_CheckExact"(PyObject* item) noexcept
    Py_ssize_t length_of_bytes "PyBytes_GET_SIZE"(PyObject* item) noexcept

cdef enum:
    FEW = 64            # offsets of a batch up to this size are kept on the stack

cdef int64_t MIB = 1048576
cdef Slot QUEUE_OFFSET, BODY
cdef str NAME_QUEUE_OFFSET = "queue_offset", NAME_BODY = "body"
cdef object BARE = object()       # stands in a window for a message that is its offset alone


cdef int64_t whole(str name, object value) except? -1:
    cdef int overflow = 1
    cdef int64_t number = 0
    if not PyLong_Check(value) and hasattr(value, "__index__"):
        value = PyNumber_Index(value)
    if PyLong_Check(value):
        number = long_value(<PyObject*>value, &overflow)
    if overflow:
        raise ConfigurationError(name, repr(value), "a whole number of 64 bits is needed")
    return number


cdef list batch_of(object messages):
    """Messages as a list of its own. Raises ConfigurationError for a string, whose bytes would be offsets, and for
    other objects that are not lists."""
    if isinstance(messages, (str, bytes)) or not hasattr(messages, "__iter__"):
        raise ConfigurationError("messages", repr(messages), "no list", "give messages or offsets, as [message]")
    return list(messages)


cdef object attribute(object message, str name, Slot* known, str missing):
    try:
        return read(message, name, known)
    except AttributeError:
        raise InvalidMessageError("message", message, missing) from None


cdef inline int64_t body_size(object message) except -1:
    cdef PyObject* body
    if message is BARE or PyLong_CheckExact(message):
        return 0
    body = peek(message, &BODY)
    return length_of_bytes(body) if body is not NULL and is_exact_bytes(body) else other_body_size(message)


cdef int64_t other_body_size(object message) except -1:
    """Of any message. Apart, because to be ready for an exception costs as much as the reading."""
    body = attribute(message, NAME_BODY, &BODY, "it has no body")
    if body is None:
        return 0
    try:
        return len(body)
    except TypeError:
        raise InvalidMessageError("body", body, "a body is bytes, a text or None") from None


cdef inline int64_t offset_of(object message) except? -1:
    cdef int overflow = 0
    cdef int64_t number
    cdef PyObject* offset = <PyObject*>message
    if not PyLong_CheckExact(message):
        offset = peek(message, &QUEUE_OFFSET)
    if offset is not NULL and is_exact_integer(offset):
        number = long_value(offset, &overflow)
        if not overflow:
            return number
    return other_offset_of(message)


cdef int64_t other_offset_of(object message) except? -1:
    """Of any message."""
    cdef int overflow = 1
    cdef int64_t number = 0
    offset = message
    if not PyLong_CheckExact(message):
        offset = attribute(message, NAME_QUEUE_OFFSET, &QUEUE_OFFSET, "it has no queue_offset")
    if PyLong_Check(offset):
        number = long_value(<PyObject*>offset, &overflow)
    if overflow:
        raise InvalidMessageError("queue_offset", offset, "an offset is a signed 64-bit integer")
    return number


cdef int64_t* offsets_of(list batch, int64_t* few) except NULL:
    """The offsets of all messages and behind them the sizes of their bodies; in ``few``, which has room for twice FEW,
    if they fit; else the caller frees them."""
    cdef int64_t count = len(batch), i
    cdef int64_t* offsets = few
    if count > FEW:
        offsets = <int64_t*>allocate(2 * count * sizeof(int64_t))
    try:
        for i in range(count):
            offsets[i] = offset_of(batch[i])
            offsets[count + i] = body_size(batch[i])
    except BaseException:
        if offsets != few:
            free(offsets)
        raise
    return offsets


cdef inline int64_t run_of(list batch, const int64_t* offsets, int64_t i, int64_t count) noexcept:
    """How many ints from ``i`` - 1 on are offsets in a row, in one chunk of a window."""
    cdef int64_t first = i - 1
    while i < count and offsets[i] & 63 and offsets[i] - 1 == offsets[i - 1] and PyLong_CheckExact(batch[i]):
        i += 1
    return i - first


def lock_expired(int64_t now, int64_t locked_at):
    """Whether a lock of the broker that was granted at ``locked_at`` (ms) counts no longer (spec rocketmq 1.10)."""
    return now - locked_at > 30000


def pull_expired(int64_t now, int64_t pulled_at):
    """Whether the last pull was so long ago that a rebalance gives the queue up (spec rocketmq 1.10)."""
    return now - pulled_at > 120000


def flow_control_of(int64_t count, int64_t mebibytes, int64_t span, *,
                    int64_t pull_threshold_for_queue=PULL_THRESHOLD_FOR_QUEUE,
                    int64_t pull_threshold_size_for_queue=PULL_THRESHOLD_SIZE_FOR_QUEUE,
                    int64_t consume_concurrently_max_span=CONSUME_CONCURRENTLY_MAX_SPAN, bint orderly=False):
    """flow_control_of(count, mebibytes, span, *, pull_threshold_for_queue=1000, pull_threshold_size_for_queue=100,
    consume_concurrently_max_span=2000, orderly=False)
    --

    What holds a pull back: count, size in whole MiB, span unless orderly, all strict (spec rocketmq 2.2)."""
    cdef PullLimits limits = PullLimits(
        pull_threshold_for_queue, pull_threshold_size_for_queue, consume_concurrently_max_span)
    return <FlowControl>(holding(count, mebibytes, span, &limits, orderly))


cdef int holding(int64_t count, int64_t mebibytes, int64_t span, const PullLimits* limits, bint orderly) noexcept:
    """flow_control_of with the limits in one place."""
    if count > limits.count:
        return COUNT
    if mebibytes > limits.size:
        return SIZE
    if not orderly and span > limits.span:
        return SPAN
    return PULL


cdef bint overdue(int64_t now, int64_t started, int64_t consume_timeout) noexcept:
    """Whether a listener that began at ``started`` (ms) has had its message for longer than these minutes."""
    return <int64_t>(<uint64_t>now - <uint64_t>started) > consume_timeout * 60000


cdef class ProcessQueue:
    """The messages of one queue that this client has pulled and not finished.

    now: milliseconds, the creation time that the real class reads from the clock. A message is anything with
    ``queue_offset`` (int) and ``body`` (bytes, str or None); ``properties`` (mapping) is read where present. It may be
    an int: an offset whose message the caller holds. Not thread-safe: the caller holds a lock. Raises
    ConfigurationError for a wrong time, number or list.
    Source: org.apache.rocketmq...consumer.ProcessQueue.
    """

    def __cinit__(self, *, now=0, **unknown):
        if unknown:
            raise unknown_arguments("ProcessQueue", unknown, ("now",))
        self.cached = Window()
        self.taken = Window()
        self.last_pull_timestamp = self.last_consume_timestamp = self.last_lock_timestamp = whole("now", now)

    def put_messages(self, messages, /):
        """Cache pulled messages, in list order. Returns True if consumption should be started (spec rocketmq 1.1).

        A known offset replaces the message and changes no counter. Raises InvalidMessageError for an object that is not
        a message, an offset that is not a signed 64-bit integer and a body without a length (nothing is stored),
        ValueError for a MAX_OFFSET that is not a number (all are stored).
        """
        cdef list batch = batch_of(messages)
        cdef int64_t few[2 * FEW]
        cdef int64_t count = len(batch), i = 0, offset = 0, ahead, run
        cdef int64_t* offsets = offsets_of(batch, few)
        try:
            while i < count:
                offset = offsets[i]
                message = batch[i]
                i += 1
                if not PyLong_CheckExact(message):
                    if self.cached.put(offset, message):
                        self.message_count += 1
                        self.queue_offset_max = offset
                        self.message_size += offsets[count + i - 1]
                    continue
                run = run_of(batch, offsets, i, count)
                if run > 1 and self.cached.put_run(offset, run, BARE):
                    self.message_count += run
                    self.queue_offset_max = offset = offset + run - 1
                else:
                    for offset in offsets[i - 1:i - 1 + run]:
                        if self.cached.put(offset, BARE):
                            self.message_count += 1
                            self.queue_offset_max = offset
                i += run - 1
        finally:
            if offsets != few:
                free(offsets)
        cdef bint start = self.cached.count > 0 and not self.consuming
        if start:
            self.consuming = True
        if count and not PyLong_CheckExact(batch[count - 1]):
            properties = getattr(batch[count - 1], "properties", None)
            end = properties.get("MAX_OFFSET") if properties else None
            if end is not None:
                ahead = <int64_t>(<uint64_t>parsed_long("MAX_OFFSET", end) - <uint64_t>offset)
                if ahead > 0:
                    self.accumulated = ahead
        return start

    def remove_messages(self, messages, *, now=0):
        """Finish messages. Returns the offset that is safe to commit, or -1 if nothing was cached (spec rocketmq 1.2).

        now: ms. The answer is the smallest offset still cached; queue_offset_max + 1 when none is left. Raises
        InvalidMessageError as ``put_messages``, and finishes nothing then.
        """
        cdef list batch
        cdef int64_t few[2 * FEW]
        cdef int64_t* offsets
        cdef int64_t i, count, time = whole("now", now)
        if type(messages) is list and len(<list>messages) == 1:
            return self.finish_one((<list>messages)[0], time)
        batch = batch_of(messages)
        count = len(batch)
        offsets = offsets_of(batch, few)
        try:
            if not self.finishing(time):
                return -1
            for i in range(count):
                if self.cached.drop(offsets[i]):
                    self.message_count -= 1
                    self.message_size -= offsets[count + i]
        finally:
            if offsets != few:
                free(offsets)
        return self.safe()

    def finish(self, message, /):
        """remove_messages of one message, the time of the last consumption left as it is."""
        if not PyLong_CheckExact(message):
            return self.finish_one(message, self.last_consume_timestamp)
        cdef int64_t offset = offset_of(message)
        if self.cached.count == 0:
            return -1
        self.take_out(offset, 0)
        return self.safe()

    cdef inline object finish_one(self, object message, int64_t now):
        cdef int64_t offset = offset_of(message)
        cdef int64_t size = body_size(message)  # of the one given counts, not of the one that was cached
        if not self.finishing(now):
            return -1
        if self.cached.drop(offset):
            self.message_count -= 1
            self.message_size -= size
        return self.safe()

    cdef bint put_offset(self, int64_t offset, int64_t size) except -1:
        """Cache one message that the caller holds."""
        return self.put_one(offset, BARE, size)

    cdef inline bint finishing(self, int64_t now) noexcept:
        """Before messages are removed; False: nothing is cached, and no offset is safe to commit."""
        self.last_consume_timestamp = now
        return self.cached.count > 0

    cdef object held(self, Window window, int64_t offset):
        """The message at an offset as it was put; None where absent."""
        message = window.get(offset)
        return offset if message is BARE else message

    def take_messages(self, size, *, now=0):
        """Move up to ``size`` smallest offsets to the taken ones; return their messages in order (spec rocketmq 1.3).

        An empty answer ends consumption: the next put asks to start it again. Raises ConfigurationError for a negative
        size.
        """
        cdef int64_t most = whole("size", size)
        if most < 0:
            raise ConfigurationError("size", size, "take none or more messages")
        self.last_consume_timestamp = whole("now", now)
        cdef list batch = []
        cdef int64_t offset
        while self.cached.count and len(batch) < most:
            offset = self.cached.smallest()
            message = self.cached.pop(offset)
            self.taken.put(offset, message)
            batch.append(offset if message is BARE else message)
        if not batch:
            self.consuming = False
        return batch

    def commit(self):
        """Finish all taken messages. Returns the offset to commit (spec rocketmq 1.4).

        Raises IllegalStateError if none is taken, InvalidMessageError for a body that has no length any more; none is
        finished then.
        """
        if self.taken.count == 0:
            raise IllegalStateError("commit: no message is taken; take_messages comes first")
        cdef int64_t answer = wrapped_next(self.taken.largest())
        cdef int64_t size = self.message_size
        if self.message_count != self.taken.count:
            for offset in self.taken:
                size -= body_size(self.taken.get(offset))
        else:
            size = 0
        self.message_count -= self.taken.count
        self.message_size = size
        self.taken.clear()
        return answer

    def rollback(self):
        """Put all taken messages back among the cached ones (spec rocketmq 1.5)."""
        for offset in self.taken:
            self.cached.put(offset, self.taken.get(offset))
        self.taken.clear()

    def make_message_to_consume_again(self, messages, /):
        """Put these messages back, taken or not; counters stay (spec rocketmq 1.6)."""
        for message in batch_of(messages):
            offset = offset_of(message)
            self.taken.pop(offset)
            self.cached.put(offset, BARE if PyLong_CheckExact(message) else message)

    def clear(self):
        """Forget all messages and counters; accumulated, consuming, dropped and locked stay (spec rocketmq 1.7)."""
        self.cached.clear()
        self.taken.clear()
        self.message_count = self.message_size = self.queue_offset_max = 0

    @property
    def max_span(self):
        """Largest less smallest cached offset, as Java's long; 0 for none or one (spec rocketmq 1.8)."""
        return self.span()

    cdef int64_t span(self) noexcept:
        if self.cached.count == 0:
            return 0
        return <int64_t>(<uint64_t>self.cached.largest() - <uint64_t>self.cached.smallest())

    def contains_message(self, message, /):
        """True if the message's offset is cached; None never is."""
        return message is not None and self.cached.has(offset_of(message))

    @property
    def has_temp_message(self):
        """True if any message is cached."""
        return self.cached.count > 0

    @property
    def cached_offsets(self):
        """Offsets cached and not taken, ascending."""
        return list(self.cached)

    @property
    def taken_offsets(self):
        """Offsets taken in order and not committed, ascending."""
        return list(self.taken)

    def expired(self, now, consume_timeout):
        """The first cached message if it is being consumed for longer than ``consume_timeout`` minutes, else None.

        Started: its property CONSUME_START_TIME (ms, set before the listener is called) is not empty. The caller sends
        it back and removes it, at most 16 times a run (spec rocketmq 1.9). Raises ValueError for a bad stamp.
        """
        cdef int64_t time = whole("now", now), minutes = whole("consume_timeout", consume_timeout)
        if self.cached.count == 0:
            return None
        message = self.held(self.cached, self.cached.smallest())
        started = (getattr(message, "properties", None) or {}).get("CONSUME_START_TIME")
        if not started:
            return None
        return message if overdue(time, parsed_long("CONSUME_START_TIME", started), minutes) else None

    def flow_control(self, *, pull_threshold_for_queue=PULL_THRESHOLD_FOR_QUEUE,
                     pull_threshold_size_for_queue=PULL_THRESHOLD_SIZE_FOR_QUEUE,
                     consume_concurrently_max_span=CONSUME_CONCURRENTLY_MAX_SPAN, bint orderly=False):
        """flow_control($self, /, *, pull_threshold_for_queue=1000, pull_threshold_size_for_queue=100,
        consume_concurrently_max_span=2000, orderly=False)
        --

        What holds the next pull back; see ``flow_control_of``."""
        cdef PullLimits limits = PullLimits(
            whole("pull_threshold_for_queue", pull_threshold_for_queue),
            whole("pull_threshold_size_for_queue", pull_threshold_size_for_queue),
            whole("consume_concurrently_max_span", consume_concurrently_max_span),
        )
        return <FlowControl>(self.hold(&limits, orderly))

    cdef int hold(self, const PullLimits* limits, bint orderly) noexcept:
        return holding(self.message_count, self.mebibytes(), self.span(), limits, orderly)

    @property
    def message_mebibytes(self):
        """Whole MiB of the cached bodies, cut towards zero as Java's int does."""
        return self.mebibytes()

    cdef int64_t mebibytes(self) noexcept:
        cdef int64_t mebibytes = abs(self.message_size) // MIB
        return mebibytes if self.message_size >= 0 else -mebibytes

    def info(self):
        """ProcessQueueInfo with its own field names (spec rocketmq 1.11); the offset store fills in commitOffset."""
        return {
            "commitOffset": 0,
            "cachedMsgMinOffset": self.cached.smallest() if self.cached.count else 0,
            "cachedMsgMaxOffset": self.cached.largest() if self.cached.count else 0,
            "cachedMsgCount": self.cached.count,
            "cachedMsgSizeInMiB": self.message_mebibytes,
            "transactionMsgMinOffset": self.taken.smallest() if self.taken.count else 0,
            "transactionMsgMaxOffset": self.taken.largest() if self.taken.count else 0,
            "transactionMsgCount": self.taken.count,
            "locked": self.locked,
            "tryUnlockTimes": self.try_unlock_times,
            "lastLockTimestamp": self.last_lock_timestamp,
            "droped": self.dropped,
            "lastPullTimestamp": self.last_pull_timestamp,
            "lastConsumeTimestamp": self.last_consume_timestamp,
        }

    def is_lock_expired(self, now, /):
        """True if the broker lock is older than 30 s (spec rocketmq 1.10)."""
        return lock_expired(whole("now", now), self.last_lock_timestamp)

    def is_pull_expired(self, now, /):
        """True if the last pull is older than 120 s (spec rocketmq 1.10)."""
        return pull_expired(whole("now", now), self.last_pull_timestamp)

    def _check(self):
        """Raise AssertionError unless both windows hold their invariants."""
        self.cached._check()
        self.taken._check()
