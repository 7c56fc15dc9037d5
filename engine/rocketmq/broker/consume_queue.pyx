"""A broker's index of one message queue and the answer to a pull (DefaultMessageStore.getMessage, ConsumeQueue)."""

from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memmove

from pyengine._engine.lowlevel.memory cimport resize, try_resize


MAX_TRANSFER_COUNT = MAX_COUNT
# The limit of one answer in bytes, and how many index entries of 20 bytes a pull looks at
# (MessageStoreConfig: maxTransferBytesOnMessageInMemory, maxFilterMessageSize).
cdef int64_t MAX_BYTES = 262144
cdef int64_t MAX_SCAN_BYTES = 16000
cdef int64_t ENTRY_BYTES = 20
# How many messages one file of the real index holds (mappedFileSizeConsumeQueue).
cdef int64_t FILE_ENTRIES = 300000


cpdef enum PullCode:
    SUCCESS = 0             # messages were found
    NOT_FOUND = 19          # nothing new: the pull may wait
    RETRY_IMMEDIATELY = 20  # nothing that the subscription wants; go on from the next offset
    OFFSET_MOVED = 21       # the offset lies outside the queue


cdef class ConsumeQueue:
    """Offsets of one queue. min_offset: of the first message that is there. Source: spec rocketmq 4.6, 10.1."""

    def __cinit__(self, *, int64_t min_offset=0):
        if min_offset < 0:
            raise ValueError(f"min_offset = {min_offset}: offsets start at 0")
        self.base = min_offset

    def __dealloc__(self):
        free(self.entries)

    @property
    def min_offset(self):
        """The smallest offset that is still there; in an empty queue the next one."""
        return self.base

    @property
    def max_offset(self):
        """The offset that the next message will get."""
        return self.base + self.end - self.first

    def __len__(self):
        return self.end - self.first

    cdef Entry* at(self, int64_t offset) except NULL:
        if not self.base <= offset < self.base + self.end - self.first:
            raise IndexError(f"offset {offset} is not in {self.base} .. {self.base + self.end - self.first - 1}")
        return &self.entries[self.first + offset - self.base]

    def append(self, int64_t position, int32_t size, int64_t tags_code, int64_t store_time):
        """Index the next message. Returns its offset.

        position: of its record in the log, larger than all before. size: bytes. store_time: ms.
        """
        cdef int64_t wanted
        if size <= 0:
            raise ValueError(f"size = {size}: a stored message has bytes")
        if self.end > self.first and self.entries[self.end - 1].position >= position:
            raise ValueError(f"position = {position} does not lie behind {self.entries[self.end - 1].position}")
        if self.end == self.capacity:
            wanted = max(<int64_t>16, 2 * self.capacity)
            self.entries = <Entry*>resize(self.entries, wanted * sizeof(Entry))
            self.capacity = wanted
        self.entries[self.end] = Entry(position, tags_code, store_time, size)
        self.end += 1
        return self.base + self.end - 1 - self.first

    def extend(self, list positions not None, list sizes not None, list tags_codes not None, int64_t store_time):
        """Index messages that were stored together, as :meth:`append` does; as many as there are positions."""
        cdef Py_ssize_t i
        for i in range(len(positions)):
            self.append(positions[i], sizes[i], tags_codes[i], store_time)

    def position(self, int64_t offset):
        """Where the record of an offset lies. Raises IndexError for one that is not there."""
        return self.at(offset).position

    def tags_code(self, int64_t offset):
        """The tags code of an offset. Raises IndexError for one that is not there."""
        return self.at(offset).tags_code

    def store_time(self, int64_t offset):
        """When an offset was stored, ms. Raises IndexError for one that is not there."""
        return self.at(offset).store_time

    def delete_below(self, int64_t offset):
        """Forget all offsets below ``offset`` (at most all there are). Returns how many were forgotten."""
        cdef int64_t wanted, gone = min(max(offset - self.base, <int64_t>0), self.end - self.first)
        cdef Entry* fewer
        self.base += gone
        self.first += gone
        if self.first > 1024 and (self.first > self.capacity // 2 or self.first == self.end):
            memmove(self.entries, &self.entries[self.first], (self.end - self.first) * sizeof(Entry))
            self.end -= self.first
            self.first = 0
            wanted = max(<int64_t>1024, 2 * self.end)
            if wanted < self.capacity // 2:
                fewer = <Entry*>try_resize(self.entries, wanted * sizeof(Entry))
                if fewer != NULL:
                    self.entries = fewer
                    self.capacity = wanted
        return gone

    def delete_before(self, int64_t position):
        """Forget all offsets whose records lie before ``position`` in the log. Returns how many were forgotten."""
        cdef int64_t low = self.first, high = self.end, middle
        while low < high:
            middle = (low + high) >> 1
            if self.entries[middle].position < position:
                low = middle + 1
            else:
                high = middle
        return self.delete_below(self.base + low - self.first)

    def search(self, int64_t timestamp, int64_t file_entries=FILE_ENTRIES):
        """The first offset stored at ``timestamp`` (ms) or later; max_offset if all are older (spec rocketmq 4.6).

        Where the clock was set back in between, what the real store comes upon: in the first of its files of
        ``file_entries`` offsets whose last message is not older (MappedFileQueue.getConsumeQueueMappedFileByTime), by
        ConsumeQueue.binarySearchInQueueByTime.
        """
        cdef int64_t zero = self.first - self.base, floor = self.first, end, middle, low, high, found
        end = zero + (self.base // file_entries + 1) * file_entries
        while end < self.end and self.entries[end - 1].store_time < timestamp:
            floor, end = end, end + file_entries
        low, high = floor, min(end, self.end) - 1
        found = high + 1
        if low > high or self.entries[high].store_time < timestamp:
            return found - zero
        if self.entries[low].store_time > timestamp:
            return low - zero
        while low <= high:
            middle = (low + high) >> 1
            if self.entries[middle].store_time < timestamp:
                low = middle + 1
                continue
            found = middle
            if self.entries[middle].store_time == timestamp:
                while found > floor and self.entries[found - 1].store_time == timestamp:
                    found -= 1
                break
            high = middle - 1
        return found - zero

    def expired_end(self, int64_t timestamp):
        """The offset behind the messages at the head that were all stored before ``timestamp`` (ms)."""
        cdef int64_t place = self.first
        while place < self.end and self.entries[place].store_time < timestamp:
            place += 1
        return self.base + place - self.first

    def pull(self, int64_t offset, int64_t max_nums, codes=None, matches=None):
        """What a pull from ``offset`` finds: (PullCode, next offset, offsets found).

        codes: the tags codes wanted, None for all. matches: function(offset) -> bool for what codes cannot say, asked
        in order. At most max_nums messages, never more than 32 or 262144 bytes (the first message always comes); a
        pull that finds little gives up after max(800, max_nums) offsets. Source:
        DefaultMessageStore.getMessage and PullMessageProcessor's codes.
        """
        cdef int64_t end = self.base + self.end - self.first, following = offset, total = 0, scan
        cdef list found = []
        cdef Entry* entry
        if end == 0:
            return (PullCode.NOT_FOUND if offset == 0 else PullCode.OFFSET_MOVED), <int64_t>0, found
        if offset < self.base:
            return PullCode.OFFSET_MOVED, self.base, found
        if offset == end:
            return PullCode.NOT_FOUND, offset, found
        if offset > end:
            return PullCode.OFFSET_MOVED, end, found
        scan = max(MAX_SCAN_BYTES, min(max_nums, INT64_MAX // ENTRY_BYTES) * ENTRY_BYTES)
        while following < end and (following - offset) * ENTRY_BYTES < scan:
            entry = self.at(following)
            if found and (
                <int64_t>len(found) >= max_nums or <int64_t>len(found) >= MAX_COUNT
                or total + entry.size > MAX_BYTES
            ):
                break
            if (codes is None or <int32_t>entry.tags_code in codes) and (matches is None or matches(following)):
                found.append(following)
                total += self.at(following).size
            following += 1
        return (PullCode.SUCCESS if found else PullCode.RETRY_IMMEDIATELY), following, found

    def _check(self):
        """Raise AssertionError unless the invariants hold."""
        assert 0 <= self.first <= self.end <= self.capacity, (self.first, self.end, self.capacity)
        assert self.base >= 0
        for i in range(self.first + 1, self.end):
            assert self.entries[i - 1].position < self.entries[i].position, i
