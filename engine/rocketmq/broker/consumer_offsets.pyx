# cython: freethreading_compatible=True
"""Committed offsets of groups, and the answer for a group without one (spec rocketmq 4.6, 5.2)."""

from libc.stdint cimport int32_t, int64_t

cdef int64_t VERSION_STEP = 500


cdef class ConsumerOffsets:
    """The committed offsets of one broker. Not thread-safe: the caller holds a lock."""

    def __cinit__(self):
        self.table = {}

    def commit(self, str group, str topic, int32_t queue_id, int64_t offset):
        """Store an offset, lower ones too. Returns True unless it is lower than the one before ("[NOTIFYME]")."""
        cdef dict queues = self.table.setdefault(f"{topic}@{group}", {})
        before = queues.get(queue_id)
        queues[queue_id] = offset
        self.commits += 1
        if self.commits % VERSION_STEP == 0:
            self.version += 1
        return before is None or offset >= before

    def committed(self, str group, str topic, int32_t queue_id):
        """The committed offset, -1 where there is none."""
        cdef dict queues = self.table.get(f"{topic}@{group}")
        return -1 if queues is None else queues.get(queue_id, -1)

    def query(self, str group, str topic, int32_t queue_id, int64_t min_offset, bint first_in_memory):
        """What a consumer is answered: the committed offset; for a group without one 0 if the queue still begins with
        its first message and that one is in memory, else -1, not found (queryConsumerOffset).

        min_offset: of the queue. first_in_memory: offset 0 exists and is in memory.
        """
        offset = self.committed(group, topic, queue_id)
        if offset >= 0:
            return offset
        return 0 if min_offset <= 0 and first_in_memory else -1

    def load(self, table):
        """Replace everything: {"topic@group": {queue id: offset}}. Raises OverflowError for what does not fit."""
        cdef dict fresh = {}
        cdef int32_t queue
        cdef int64_t value
        for key, queues in table.items():
            fresh[key] = {}
            for queue, value in queues.items():
                fresh[key][queue] = value
        self.table = fresh

    def dump(self):
        """A copy of everything: {"topic@group": {queue id: offset}}."""
        return {key: dict(queues) for key, queues in self.table.items()}
