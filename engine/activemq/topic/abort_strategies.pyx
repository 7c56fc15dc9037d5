"""Abort strategies for slow consumers (AbortSlowConsumerStrategy, AbortSlowAckConsumerStrategy; spec activemq 3.6)."""

from libc.stdint cimport int64_t

from pyengine.errors import ConfigurationError
from pyengine.whole_numbers import is_whole_number


cdef int64_t whole(str strategy, str option, object value) except? -2:
    if not is_whole_number(value, -(2**63), 2**63 - 1):
        raise ConfigurationError(f"{strategy}.{option}", value, "must be a whole number")
    return value


cdef class Entry:
    """Internal to a strategy: how often its consumer was found slow, and at how many checks it has been since."""

    def __cinit__(self):
        self.slow_count = 1

    def __reduce__(self):
        raise TypeError("an entry is part of its strategy and cannot be pickled")


cdef class AbortSlowConsumer:
    """abortSlowConsumerStrategy: close consumers that are slow too often or too long.

    max_slow_count: this many slow events (-1: any number). max_slow_duration: slow for so long (30000 ms; -1: for
    ever), counted in whole check periods. check_period: ms between two checks (30000). Both limits below 0: nothing
    happens. abort_connection: end the connection instead. ignore_network_consumers (True): spare those of bridges.
    """

    strategy = "abortSlowConsumerStrategy"

    def __cinit__(self, *, max_slow_count=-1, max_slow_duration=30000, check_period=30000,
                  bint abort_connection=False, bint ignore_network_consumers=True, **others):
        self.max_slow_count = whole(self.strategy, "maxSlowCount", max_slow_count)
        self.max_slow_duration = whole(self.strategy, "maxSlowDuration", max_slow_duration)
        self.check_period = whole(self.strategy, "checkPeriod", check_period)
        self.abort_connection = abort_connection
        self.ignore_network_consumers = ignore_network_consumers
        self.entries = {}

    def __reduce__(self):
        raise TypeError("a strategy at work cannot be pickled")

    def __class_getitem__(cls, item):
        return cls

    def slow(self, consumer):
        """A consumer was found slow. True: the first check is due ``check_period`` from now, if none is planned."""
        cdef Entry entry
        if self.max_slow_count < 0 and self.max_slow_duration < 0:
            return False
        entry = self.entries.get(consumer)
        if entry is None:
            self.entries[consumer] = Entry()
        elif self.max_slow_count > 0:
            entry.slow_count += 1
        return True

    def forget(self, consumer):
        """A consumer is gone. Was it known as slow?"""
        return self.entries.pop(consumer, None) is not None

    cdef bint due(self, Entry entry) noexcept:
        return ((self.max_slow_duration > 0 and entry.mark_count * self.check_period >= self.max_slow_duration)
                or (self.max_slow_count > 0 and entry.slow_count >= self.max_slow_count))

    cdef list take_due(self):
        cdef list aborted = [consumer for consumer, entry in self.entries.items() if self.due(entry)]
        for consumer in aborted:
            del self.entries[consumer]
        return aborted

    def check(self, is_slow, *, network_consumers=()):
        """The periodic look, every ``check_period``: the consumers to abort now, in the order they became slow.

        is_slow: a callable from a consumer to its slow flag. network_consumers: those of bridges.
        """
        cdef Entry entry
        cdef set network = set(network_consumers) if self.ignore_network_consumers else set()
        for consumer, entry in list(self.entries.items()):
            if self.max_slow_duration > 0:
                entry.mark_count += 1
            if consumer in network or not is_slow(consumer):
                del self.entries[consumer]
        return self.take_due()

    @property
    def slow_consumers(self):
        """``{consumer: (slow count, mark count)}`` of those known as slow."""
        cdef Entry entry
        return {consumer: (entry.slow_count, entry.mark_count) for consumer, entry in self.entries.items()}

    def _check(self):
        """Assert that every entry counts at least one slow event."""
        cdef Entry entry
        for entry in self.entries.values():
            assert entry.slow_count >= 1 and entry.mark_count >= 0


cdef class AbortSlowAckConsumer(AbortSlowConsumer):
    """abortSlowAckConsumerStrategy: a consumer is slow when its last acknowledgement is too old.

    max_time_since_last_ack: ms (30000; below 0: nothing happens). ignore_idle_consumers (True): one that holds nothing
    is not slow. The others as in AbortSlowConsumer. Slow events do not count; checks run from the first destination on.
    The last acknowledgement of a consumer that never acknowledged is its creation: being handed a message changes
    nothing, so that one that was idle for long is slow at the next check.
    """

    strategy = "abortSlowAckConsumerStrategy"

    def __cinit__(self, *, max_time_since_last_ack=30000, bint ignore_idle_consumers=True, **others):
        self.max_time_since_last_ack = whole(self.strategy, "maxTimeSinceLastAck", max_time_since_last_ack)
        self.ignore_idle_consumers = ignore_idle_consumers

    def slow(self, consumer):
        """This strategy ignores slow events."""
        return False

    def check(self, is_slow, *, network_consumers=()):
        """This strategy looks at every consumer: see ``check_acknowledgements``."""
        raise TypeError("ask check_acknowledgements, with the consumers")

    def check_acknowledgements(self, is_slow, consumers, int64_t now, *, network_consumers=()):
        """The periodic look, every ``check_period``; returns ``(found slow now, to abort now)``.

        is_slow: a callable from a consumer to its slow flag. consumers: for each destination that uses the strategy,
        for each of its consumers, ``(consumer, messages it holds, time of its last acknowledgement in ms)``. The caller
        flags those found slow.
        """
        cdef Entry entry
        cdef set network = set(network_consumers) if self.ignore_network_consumers else set()
        cdef list found = []
        if self.max_time_since_last_ack < 0:
            return [], []
        for consumer, entry in list(self.entries.items()):
            if self.max_slow_duration > 0:
                entry.mark_count += 1
            if not is_slow(consumer):
                del self.entries[consumer]
        for consumer, held, last_ack in consumers:
            if consumer in network or (self.ignore_idle_consumers and held == 0):
                self.entries.pop(consumer, None)
            elif now - last_ack > self.max_time_since_last_ack:
                entry = self.entries.get(consumer)
                if entry is None:
                    entry = Entry()
                    entry.mark_count = 1
                    self.entries[consumer] = entry
                    if not is_slow(consumer):
                        found.append(consumer)
                elif self.max_slow_count > 0:
                    entry.slow_count += 1
            else:
                self.entries.pop(consumer, None)
        return found, self.take_due()
