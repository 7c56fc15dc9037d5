"""The offsets of one group on one client, kept in memory between two commits."""

from libc.stdint cimport int64_t

from pyengine._engine.rocketmq.client.process_queue cimport whole

from pyengine.errors import unknown_arguments


cdef class ControllableOffset:
    """One offset that can be frozen. value: where it starts. Source: ControllableOffset, spec rocketmq 5.1.

    Raises ConfigurationError for an offset that is not an integer of 64 bits.
    """

    def __cinit__(self, value=0, **unknown):
        if unknown:
            raise unknown_arguments("ControllableOffset", unknown, ("value",))
        self.value = whole("value", value)

    def update(self, value, *, bint increase_only=False):
        """Set it; with ``increase_only`` never lower it. Nothing happens to a frozen one."""
        self.replace(whole("value", value), increase_only)

    cdef int replace(self, int64_t value, bint increase_only) except -1:
        if not self.frozen and replaces(value, self.value, increase_only):
            self.value = value
        return 0

    def update_and_freeze(self, value):
        """Set it, frozen or not, and freeze it."""
        self.value = whole("value", value)
        self.frozen = True

    def __reduce__(self):
        return _restored, (self.value, self.frozen)

    def __repr__(self):
        return f"ControllableOffset({self.value}{', frozen' if self.frozen else ''})"


def _restored(int64_t value, bint frozen):
    cdef ControllableOffset offset = ControllableOffset(value)
    offset.frozen = frozen
    return offset


cdef class OffsetTable:
    """Message queue -> offset, by the rules of RemoteBrokerOffsetStore. A key is any hashable object; None is not a
    queue.

    Not thread-safe: the caller holds a lock.
    """

    def __cinit__(self):
        self.entries = {}

    def update(self, queue, int64_t offset, *, bint increase_only=False):
        """Store as it is where absent (negative ones too), else as the entry's update does; None is ignored."""
        if queue is None:
            return
        cdef ControllableOffset entry = self.entries.get(queue)
        if entry is None:
            self.entries[queue] = ControllableOffset(offset)
        else:
            entry.replace(offset, increase_only)

    def update_and_freeze(self, queue, int64_t offset):
        """Store the offset and let nothing but this change it until it is removed; None is ignored."""
        if queue is None:
            return
        if queue not in self.entries:
            self.entries[queue] = ControllableOffset(offset)
        cdef ControllableOffset entry = self.entries[queue]
        entry.update_and_freeze(offset)

    def get(self, queue):
        """The offset, None where absent."""
        cdef ControllableOffset entry = self.entries.get(queue)
        return None if entry is None else entry.value

    def remove(self, queue):
        """Forget the entry and that it was frozen."""
        self.entries.pop(queue, None)

    def persist_all(self, queues):
        """[(queue, offset)] to send for a whole commit; entries of queues that are not in ``queues`` are forgotten.

        Nothing happens for no queues at all.
        """
        wanted = set(queues or ())
        if not wanted:
            return []
        for queue in [queue for queue in self.entries if queue not in wanted]:
            del self.entries[queue]
        return self.items()

    def items(self):
        """[(queue, offset)] of all entries."""
        cdef ControllableOffset entry
        pairs = []
        for queue, entry in self.entries.items():
            pairs.append((queue, entry.value))
        return pairs

    def __len__(self):
        return len(self.entries)

    def _check(self):
        """Raise AssertionError unless every entry is an offset of a queue."""
        for queue, entry in self.entries.items():
            assert queue is not None and isinstance(entry, ControllableOffset)

    def __reduce__(self):
        return _rebuilt, (self.entries,)


def _rebuilt(dict entries):
    cdef OffsetTable table = OffsetTable()
    table.entries = entries
    return table
