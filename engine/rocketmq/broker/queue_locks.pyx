# cython: freethreading_compatible=True
"""A broker's locks on queues that are consumed in order (spec rocketmq 4.5)."""

from libc.stdint cimport int64_t


cdef class Lock:
    """The holder of one queue, and the time of the last renewal."""

    def __init__(self):
        raise TypeError("a Lock is made by RebalanceLocks")


cdef class RebalanceLocks:
    """The lock table of one broker. max_live_time: ms a lock lives without renewal.

    Not thread-safe: the caller holds a lock. Source: RebalanceLockManager.
    """

    def __cinit__(self, *, int64_t max_live_time=60000):
        self.groups = {}
        self.max_live_time = max_live_time

    cdef bint is_expired(self, Lock lock, int64_t now) noexcept:
        return now - lock.updated > self.max_live_time

    def lock(self, str group, str client_id, queues, int64_t now):
        """Take or renew locks. Returns the set of those queues that the client now holds. now: ms."""
        cdef dict table = self.groups.setdefault(group, {})
        cdef set held = set()
        cdef Lock lock
        for queue in queues:
            lock = table.get(queue)
            if lock is None:
                lock = Lock.__new__(Lock)
                table[queue] = lock
            elif lock.client_id != client_id and not self.is_expired(lock, now):
                continue
            lock.client_id = client_id
            lock.updated = now
            held.add(queue)
        return held

    def unlock(self, str group, str client_id, queues):
        """Give locks back; those of other clients stay. Returns the set of queues that were given back."""
        cdef dict table = self.groups.get(group, {})
        cdef set given = set()
        cdef Lock lock
        for queue in queues:
            lock = table.get(queue)
            if lock is not None and lock.client_id == client_id:
                del table[queue]
                given.add(queue)
        return given

    def all_expired(self, str group, int64_t now):
        """True if the group holds no living lock, so that it does not consume in order (isLockAllExpired)."""
        cdef Lock lock
        for lock in self.groups.get(group, {}).values():
            if not self.is_expired(lock, now):
                return False
        return True

    def owner(self, str group, queue, int64_t now):
        """The client that holds the queue, None if the queue is not locked or the lock has expired."""
        cdef Lock lock = self.groups.get(group, {}).get(queue)
        return None if lock is None or self.is_expired(lock, now) else lock.client_id

    def _check(self):
        """Raise AssertionError unless every lock has an owner."""
        cdef Lock lock
        for table in self.groups.values():
            for queue, lock in table.items():
                assert isinstance(lock.client_id, str), queue
