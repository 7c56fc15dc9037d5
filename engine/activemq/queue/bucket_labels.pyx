"""The bucket of each label; see bucket_labels.pxd."""

from cython cimport final
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from pyengine._engine.lowlevel.memory cimport try_allocate

cdef int64_t FREE = -1


@final
cdef class BucketLabels:
    """Internal to a queue; see bucket_labels.pxd."""

    def __cinit__(self):
        if not self.resize(4):
            raise MemoryError()

    def __dealloc__(self):
        free(self.labels)
        free(self.buckets)

    cdef bint resize(self, int64_t room) noexcept nogil:
        cdef int64_t* old_labels = self.labels
        cdef int32_t* old_buckets = self.buckets
        cdef int64_t seat, old_room = self.room
        cdef int64_t* labels = <int64_t*> try_allocate(room * sizeof(int64_t))
        cdef int32_t* buckets = <int32_t*> try_allocate(room * sizeof(int32_t))
        if labels == NULL or buckets == NULL:
            free(labels)
            free(buckets)
            return False
        self.labels = labels
        self.buckets = buckets
        self.room = room
        self.clear()
        for seat in range(old_room):
            if old_labels[seat] != FREE:
                self.add(old_labels[seat], old_buckets[seat])
        free(old_labels)
        free(old_buckets)
        return True

    cdef void clear(self) noexcept nogil:
        memset(self.labels, 0xFF, self.room * sizeof(int64_t))
        self.count = 0

    cdef int64_t seat_of(self, int64_t label) noexcept nogil:
        return <int64_t> ((<uint64_t> label * <uint64_t> 0x9E3779B97F4A7C15) >> 20) & (self.room - 1)

    cdef int32_t find(self, int64_t label) noexcept nogil:
        cdef int64_t seat = self.seat_of(label)
        while self.labels[seat] != FREE:
            if self.labels[seat] == label:
                return self.buckets[seat]
            seat = (seat + 1) & (self.room - 1)
        return -1

    cdef void add(self, int64_t label, int32_t bucket) noexcept nogil:
        cdef int64_t seat = self.seat_of(label)
        while self.labels[seat] != FREE:
            seat = (seat + 1) & (self.room - 1)
        self.labels[seat] = label
        self.buckets[seat] = bucket
        self.count += 1

    cdef void remove(self, int64_t label) noexcept nogil:
        cdef int64_t hole = self.seat_of(label), seat, home, mask = self.room - 1
        while self.labels[hole] != label:
            hole = (hole + 1) & mask
        seat = hole
        while True:
            seat = (seat + 1) & mask
            if self.labels[seat] == FREE:
                break
            home = self.seat_of(self.labels[seat])
            if ((seat - home) & mask) >= ((seat - hole) & mask):
                self.labels[hole] = self.labels[seat]
                self.buckets[hole] = self.buckets[seat]
                hole = seat
        self.labels[hole] = FREE
        self.count -= 1
