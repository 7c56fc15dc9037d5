"""The next message that a consumer can take; see ready_index.pxd."""

from cython cimport final
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from pyengine._engine.lowlevel.memory cimport try_resize
from pyengine._engine.activemq.queue.consumer_list cimport ConsumerList
from pyengine._engine.activemq.queue.message_slots cimport Message, MessageSlots


@final
cdef class ReadyIndex:
    """Internal to a queue; see ready_index.pxd."""

    def __cinit__(self, MessageSlots messages not None, ConsumerList consumers not None):
        self.messages = messages
        self.consumers = consumers
        self.vacant_bucket = -1

    def __dealloc__(self):
        cdef int32_t index
        for index in range(self.lane_room):
            free(self.lanes[index].heap)
        free(self.buckets)
        free(self.lanes)
        free(self.ready)
        free(self.blocked)

    cdef void shed(self) noexcept nogil:
        cdef int32_t lane
        for lane in range(self.lane_room):
            free(self.lanes[lane].heap)
        free(self.buckets)
        free(self.lanes)
        free(self.ready)
        free(self.blocked)
        self.buckets = NULL
        self.lanes = NULL
        self.ready = self.blocked = NULL
        self.bucket_slots = self.lane_room = self.ready_size = self.blocked_size = 0
        self.vacant_bucket = -1
        self.lost = False

    cdef bint add_buckets(self) noexcept nogil:
        cdef int32_t bucket, room = 4 if self.bucket_slots == 0 else 2 * self.bucket_slots
        cdef void* larger = try_resize(self.buckets, room * sizeof(Bucket))
        if larger == NULL:
            return False
        self.buckets = <Bucket*> larger
        for bucket in range(room - 1, self.bucket_slots - 1, -1):
            self.buckets[bucket].next = self.vacant_bucket
            self.buckets[bucket].head = -1
            self.buckets[bucket].late = 0
            self.vacant_bucket = bucket
        self.bucket_slots = room
        return True

    cdef int64_t urgency(self, int32_t lane) noexcept nogil:
        return self.messages.at[self.buckets[self.lanes[lane].heap[0]].current].position

    cdef bint reserve_lane(self, int32_t lane) noexcept nogil:
        cdef int32_t room, index
        cdef void* larger
        cdef Lane* grown
        if lane >= self.lane_room:
            room = max(4, 2 * (lane + 1))
            larger = try_resize(self.lanes, room * sizeof(Lane))
            if larger == NULL:
                return False
            self.lanes = <Lane*> larger
            larger = try_resize(self.ready, room * sizeof(int32_t))
            if larger == NULL:
                return False
            self.ready = <int32_t*> larger
            larger = try_resize(self.blocked, room * sizeof(int32_t))
            if larger == NULL:
                return False
            self.blocked = <int32_t*> larger
            memset(self.lanes + self.lane_room, 0, (room - self.lane_room) * sizeof(Lane))
            for index in range(self.lane_room, room):
                self.lanes[index].place = -1
                self.lanes[index].blocked = -1
            self.lane_room = room
        grown = &self.lanes[lane]
        if grown.size == grown.room:
            room = 4 if grown.room == 0 else 2 * grown.room
            larger = try_resize(grown.heap, room * sizeof(int32_t))
            if larger == NULL:
                return False
            grown.heap = <int32_t*> larger
            grown.room = room
        return True

    cdef void lose(self) noexcept nogil:
        cdef int32_t lane, bucket
        for lane in range(self.lane_room):
            self.lanes[lane].size = 0
            self.lanes[lane].place = self.lanes[lane].blocked = -1
        self.ready_size = self.blocked_size = 0
        self.vacant_bucket = -1
        for bucket in range(self.bucket_slots - 1, -1, -1):
            self.buckets[bucket].next = self.vacant_bucket
            self.buckets[bucket].head = self.buckets[bucket].current = -1
            self.buckets[bucket].late = 0
            self.vacant_bucket = bucket
        self.lost = True

    cdef bint join_lane(self, int32_t bucket, int32_t lane) noexcept nogil:
        cdef Lane* joined
        if (lane >= self.lane_room or self.lanes[lane].size == self.lanes[lane].room) and not self.reserve_lane(lane):
            return False
        joined = &self.lanes[lane]
        joined.heap[joined.size] = bucket
        self.buckets[bucket].lane = lane
        self.buckets[bucket].place = joined.size
        joined.size += 1
        self.sift(lane, joined.size - 1)
        if joined.place >= 0:
            self.reorder(lane)
        elif self.lane_open(lane):
            self.make_ready(lane)
        elif lane & 1 and joined.blocked < 0:
            self.block(lane)
        return True

    cdef void leave_lane(self, int32_t bucket) noexcept nogil:
        cdef int32_t lane = self.buckets[bucket].lane, place = self.buckets[bucket].place
        cdef Lane* left
        if lane < 0:
            return
        left = &self.lanes[lane]
        left.size -= 1
        self.buckets[bucket].lane = self.buckets[bucket].place = -1
        if place < left.size:
            left.heap[place] = left.heap[left.size]
            self.buckets[left.heap[place]].place = place
            self.sift(lane, place)
        if left.size == 0:
            self.unready(lane)
            self.unblock(lane)
        elif left.place >= 0:
            self.reorder(lane)

    cdef void advance(self, int32_t bucket) noexcept nogil:
        if self.buckets[bucket].lane >= 0:
            self.sift(self.buckets[bucket].lane, self.buckets[bucket].place)
            self.reorder(self.buckets[bucket].lane)

    cdef void sift(self, int32_t lane, int32_t place) noexcept nogil:
        # Restore a lane's heap after the bucket at ``place`` changed.
        cdef const Message* at = self.messages.at
        cdef Bucket* buckets = self.buckets
        cdef int32_t* heap = self.lanes[lane].heap
        cdef int32_t size = self.lanes[lane].size, bucket = heap[place], child, parent
        cdef int64_t position = at[buckets[bucket].current].position
        while place > 0:
            parent = (place - 1) >> 1
            if at[buckets[heap[parent]].current].position <= position:
                break
            heap[place] = heap[parent]
            buckets[heap[place]].place = place
            place = parent
        while True:
            child = 2 * place + 1
            if child >= size:
                break
            if child + 1 < size and (at[buckets[heap[child + 1]].current].position
                                     < at[buckets[heap[child]].current].position):
                child += 1
            if at[buckets[heap[child]].current].position >= position:
                break
            heap[place] = heap[child]
            buckets[heap[place]].place = place
            place = child
        heap[place] = bucket
        buckets[bucket].place = place

    cdef bint lane_open(self, int32_t lane) noexcept nogil:
        if lane & 1:
            return self.consumers.class_open(lane >> 1)
        return self.consumers.at[lane >> 1].open

    cdef void reorder(self, int32_t lane) noexcept nogil:
        # Restore the ready heap after a lane's most urgent message changed.
        cdef int32_t place = self.lanes[lane].place, child, parent
        cdef int64_t position
        if place < 0:
            return
        position = self.urgency(lane)
        while place > 0:
            parent = (place - 1) >> 1
            if self.urgency(self.ready[parent]) <= position:
                break
            self.ready[place] = self.ready[parent]
            self.lanes[self.ready[place]].place = place
            place = parent
        while True:
            child = 2 * place + 1
            if child >= self.ready_size:
                break
            if child + 1 < self.ready_size and self.urgency(self.ready[child + 1]) < self.urgency(self.ready[child]):
                child += 1
            if self.urgency(self.ready[child]) >= position:
                break
            self.ready[place] = self.ready[child]
            self.lanes[self.ready[place]].place = place
            place = child
        self.ready[place] = lane
        self.lanes[lane].place = place

    cdef void make_ready(self, int32_t lane) noexcept nogil:
        self.unblock(lane)
        self.lanes[lane].place = self.ready_size
        self.ready[self.ready_size] = lane
        self.ready_size += 1
        self.reorder(lane)

    cdef void unready(self, int32_t lane) noexcept nogil:
        cdef int32_t place = self.lanes[lane].place
        if place < 0:
            return
        self.lanes[lane].place = -1
        self.ready_size -= 1
        if place < self.ready_size:
            self.ready[place] = self.ready[self.ready_size]
            self.lanes[self.ready[place]].place = place
            self.reorder(self.ready[place])

    cdef void block(self, int32_t lane) noexcept nogil:
        self.lanes[lane].blocked = self.blocked_size
        self.blocked[self.blocked_size] = lane
        self.blocked_size += 1

    cdef void unblock(self, int32_t lane) noexcept nogil:
        cdef int32_t place = self.lanes[lane].blocked
        if place < 0:
            return
        self.lanes[lane].blocked = -1
        self.blocked_size -= 1
        if place < self.blocked_size:
            self.blocked[place] = self.blocked[self.blocked_size]
            self.lanes[self.blocked[place]].blocked = place

    cdef int wake(self, int32_t slot) except -1:
        cdef int32_t place = 0, lane = 2 * slot
        if lane < self.lane_room and self.lanes[lane].size and self.lanes[lane].place < 0:
            self.make_ready(lane)
        while place < self.blocked_size:
            lane = self.blocked[place]
            if self.consumers.matches(lane >> 1, slot):
                self.make_ready(lane)
            else:
                place += 1
        return 0

    cdef int32_t next_ready(self) except -2:
        cdef int32_t lane
        while self.ready_size and self.consumers.open_total:
            lane = self.ready[0]
            if self.lane_open(lane):
                return self.buckets[self.lanes[lane].heap[0]].current
            self.unready(lane)
            if lane & 1:
                self.block(lane)
        return -1

    cdef int retire(self, int32_t message) except -1:
        cdef int32_t lane = self.buckets[self.messages.at[message].bucket].lane
        self.unready(lane)
        if lane & 1:
            self.block(lane)
        return 0

    def _check(self):
        """Assert the invariants of ready_index.pxd."""
        cdef int32_t index, bucket, lane, place
        cdef int64_t position
        for lane in range(self.lane_room):
            place = self.lanes[lane].place
            assert place < 0 or self.ready[place] == lane and self.lanes[lane].size
            assert place < 0 or self.urgency(self.ready[(place - 1) >> 1 if place else 0]) <= self.urgency(lane)
            if self.lanes[lane].size and place < 0:
                assert not self.lane_open(lane)
                assert self.lanes[lane].blocked >= 0 or not lane & 1
            for index in range(self.lanes[lane].size):
                bucket = self.lanes[lane].heap[index]
                assert self.buckets[bucket].lane == lane and self.buckets[bucket].place == index
                place = self.lanes[lane].heap[(index - 1) >> 1 if index else 0]
                position = self.messages.at[self.buckets[place].current].position
                assert position <= self.messages.at[self.buckets[bucket].current].position
