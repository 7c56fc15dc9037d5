"""Messages of a queue and the index over the waiting ones; see pending.pxd for what the words mean."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, qsort, realloc
from libc.string cimport memset

from pyengine._engine.consumers cimport Chain, ConsumerList
from pyengine._engine.groups cimport GroupMap, Moment

cdef int64_t MIDDLE = <int64_t> 1 << 56      # position counters of one tier run around it
cdef int64_t NO_LABEL = -1


cdef void* sized(void* items, int64_t size) except NULL:
    cdef void* result = realloc(items, size)
    if result == NULL:
        raise MemoryError()
    return result


cdef struct Access:
    Moment moment
    int32_t group


cdef int later_first(const void* left, const void* right) noexcept nogil:
    cdef const Access* one = <const Access*> left
    cdef const Access* other = <const Access*> right
    if one.moment.round != other.moment.round:
        return -1 if one.moment.round > other.moment.round else 1
    return -1 if one.moment.position > other.moment.position else 1


cdef class Pending:
    """Internal to a queue; see pending.pxd."""

    def __cinit__(self, ConsumerList consumers not None, GroupMap groups not None, bint prioritized, int turns):
        cdef int tier
        self.consumers = consumers
        self.groups = groups
        self.prioritized = prioritized
        self.turns = turns
        self.vacant = self.vacant_bucket = -1
        self.frontier = -1
        for tier in range(20):
            self.cursor[tier].first = self.cursor[tier].last = -1
            self.window[tier].first = self.window[tier].last = -1
        self.resize_labels(64)

    def __dealloc__(self):
        cdef int32_t index
        for index in range(self.slots):
            if self.at[index].whereabouts != NOWHERE:
                Py_XDECREF(self.at[index].body)
        for index in range(self.lane_room):
            free(self.lanes[index].heap)
        free(self.at)
        free(self.buckets)
        free(self.labels)
        free(self.labelled)
        free(self.of_group)
        free(self.lanes)
        free(self.ready)
        free(self.blocked)
        free(self.late)

    # Messages and chains

    cdef int32_t allot(self) except -1:
        cdef int32_t message, room
        if self.vacant < 0:
            room = 64 if self.slots == 0 else 2 * self.slots
            self.at = <Message*> sized(self.at, room * sizeof(Message))
            memset(self.at + self.slots, 0, (room - self.slots) * sizeof(Message))
            for message in range(room - 1, self.slots - 1, -1):
                self.at[message].next = self.vacant
                self.vacant = message
            self.slots = room
        message = self.vacant
        self.vacant = self.at[message].next
        self.clear(message)
        return message

    cdef void clear(self, int32_t message) noexcept nogil:
        self.at[message].body = NULL
        self.at[message].transient = 0
        self.at[message].paged = -1
        self.at[message].bucket = -1
        self.at[message].consumer = -1
        self.at[message].redeliveries = 0
        self.at[message].group_first = 0
        self.at[message].acknowledged = 0
        self.at[message].errors = 0

    cdef int discard(self, int32_t message) except -1:
        cdef PyObject* body = self.at[message].body
        self.at[message].whereabouts = NOWHERE
        self.at[message].generation = (self.at[message].generation + 1) & 0x3FFFFFFF
        self.at[message].next = self.vacant
        self.at[message].body = NULL
        self.vacant = message
        Py_XDECREF(body)
        return 0

    cdef int renew(self) except -1:
        cdef int32_t message
        cdef int where
        for message in range(self.slots):
            where = self.at[message].whereabouts
            if where == NOWHERE:
                continue
            if where == WAITING or where == IN_DOUBT:
                self.withdraw(message)
            self.discard(message)
        for where in range(20):
            self.cursor[where].first = self.cursor[where].last = -1
            self.cursor[where].count = 0
        self.stored = self.served = 0
        self.appended = self.prepended = self.pages = 0
        return 0

    cdef void link(self, Chain* chain, int32_t message) noexcept nogil:
        self.at[message].previous = chain.last
        self.at[message].next = -1
        if chain.last >= 0:
            self.at[chain.last].next = message
        else:
            chain.first = message
        chain.last = message
        chain.count += 1

    cdef void link_first(self, Chain* chain, int32_t message) noexcept nogil:
        self.at[message].previous = -1
        self.at[message].next = chain.first
        if chain.first >= 0:
            self.at[chain.first].previous = message
        else:
            chain.last = message
        chain.first = message
        chain.count += 1

    cdef void unlink(self, Chain* chain, int32_t message) noexcept nogil:
        cdef int32_t previous = self.at[message].previous, after = self.at[message].next
        if previous >= 0:
            self.at[previous].next = after
        else:
            chain.first = after
        if after >= 0:
            self.at[after].previous = previous
        else:
            chain.last = previous
        chain.count -= 1

    cdef void store(self, int32_t message) noexcept nogil:
        self.link(self.cursor_of(message), message)
        self.at[message].whereabouts = STORED
        self.stored += 1

    cdef Chain* cursor_of(self, int32_t message) noexcept nogil:
        cdef int tier = 9 - self.at[message].priority if self.prioritized else 0
        return &self.cursor[10 + tier if self.at[message].transient and self.turns != ONE_CURSOR else tier]

    cdef int32_t page_in(self) noexcept nogil:
        cdef int _, level
        cdef int32_t message
        if self.turns != UNTIL_DRAINED:
            self.served = 0
        for _ in range(2):
            for level in range(10 * self.served, 10 * self.served + (10 if self.prioritized else 1)):
                message = self.cursor[level].first
                if message >= 0:
                    self.unlink(&self.cursor[level], message)
                    self.stored -= 1
                    self.at[message].paged = self.pages
                    self.pages += 1
                    return message
            self.served = 1 - self.served
        return -1

    cdef int tier(self, int32_t message, bint redelivered) noexcept nogil:
        return (2 * (9 - self.at[message].priority) if self.prioritized else 0) + (not redelivered)

    cdef int wait(self, int32_t message, bint redelivered, bint ahead) except -1:
        cdef int tier = self.tier(message, redelivered)
        if ahead:
            self.prepended += 1
            self.at[message].position = (<int64_t> tier << 58) + MIDDLE - self.prepended
            self.link_first(&self.window[tier], message)
        else:
            self.appended += 1
            self.at[message].position = (<int64_t> tier << 58) + MIDDLE + self.appended
            self.link(&self.window[tier], message)
        self.waiting += 1
        self.redelivered += redelivered
        self.at[message].consumer = -1
        if self.at[message].acknowledged:
            self.at[message].whereabouts = IN_DOUBT
            return 0
        self.at[message].whereabouts = WAITING
        return self.index(message)

    cdef int withdraw(self, int32_t message) except -1:
        cdef int tier = <int> (self.at[message].position >> 58)
        if self.at[message].bucket >= 0:
            self.unindex(message)
        self.unlink(&self.window[tier], message)
        self.waiting -= 1
        self.redelivered -= not tier & 1
        return 0

    # Labels: (class, group key, tier) -> bucket, open addressing with backward shift

    cdef int resize_labels(self, int64_t room) except -1:
        cdef int64_t* old = self.labels
        cdef int32_t* old_buckets = self.labelled
        cdef int64_t index, old_room = self.label_room
        self.labels = <int64_t*> sized(NULL, room * sizeof(int64_t))
        self.labelled = <int32_t*> sized(NULL, room * sizeof(int32_t))
        memset(self.labels, 0xFF, room * sizeof(int64_t))
        self.label_room = room
        self.label_count = 0
        for index in range(old_room):
            if old[index] != NO_LABEL:
                self.put_label(old[index], old_buckets[index])
        free(old)
        free(old_buckets)
        return 0

    cdef int64_t seat(self, int64_t label) noexcept nogil:
        return <int64_t> ((<uint64_t> label * <uint64_t> 0x9E3779B97F4A7C15) >> 20) & (self.label_room - 1)

    cdef int32_t get_label(self, int64_t label) noexcept nogil:
        cdef int64_t seat = self.seat(label)
        while self.labels[seat] != NO_LABEL:
            if self.labels[seat] == label:
                return self.labelled[seat]
            seat = (seat + 1) & (self.label_room - 1)
        return -1

    cdef int put_label(self, int64_t label, int32_t bucket) except -1:
        cdef int64_t seat
        if 2 * self.label_count >= self.label_room:
            self.resize_labels(2 * self.label_room)
        seat = self.seat(label)
        while self.labels[seat] != NO_LABEL:
            seat = (seat + 1) & (self.label_room - 1)
        self.labels[seat] = label
        self.labelled[seat] = bucket
        self.label_count += 1
        return 0

    cdef void drop_label(self, int64_t label) noexcept nogil:
        cdef int64_t hole = self.seat(label), seat, home, mask = self.label_room - 1
        while self.labels[hole] != label:
            hole = (hole + 1) & mask
        seat = hole
        while True:
            seat = (seat + 1) & mask
            if self.labels[seat] == NO_LABEL:
                break
            home = self.seat(self.labels[seat])
            if ((seat - home) & mask) >= ((seat - hole) & mask):
                self.labels[hole] = self.labels[seat]
                self.labelled[hole] = self.labelled[seat]
                hole = seat
        self.labels[hole] = NO_LABEL
        self.label_count -= 1

    # Buckets

    cdef int index(self, int32_t message) except -1:
        cdef int32_t key = -1, match = self.at[message].match, bucket, room, beyond
        cdef int64_t label
        self.at[message].joined = self.groups.now.round + 1
        if self.at[message].group >= 0 and self.at[message].group_sequence != 1:
            key = self.groups.key[self.at[message].group]
        label = (<int64_t> match << 37) | ((<int64_t> key + 1) << 5) | (self.at[message].position >> 58)
        bucket = self.get_label(label)
        if bucket >= 0:
            beyond = self.buckets[bucket].tail
            while beyond >= 0 and self.at[beyond].position > self.at[message].position:
                if self.at[self.buckets[bucket].head].position > self.at[message].position:
                    beyond = -1
                else:
                    beyond = self.at[beyond].before
            self.at[message].bucket = bucket
            self.at[message].before = beyond
            self.at[message].after = self.at[beyond].after if beyond >= 0 else self.buckets[bucket].head
            if self.at[message].after >= 0:
                self.at[self.at[message].after].before = message
            else:
                self.buckets[bucket].tail = message
            self.buckets[bucket].count += 1
            if beyond >= 0:
                self.at[beyond].after = message
            else:
                self.buckets[bucket].head = message
                self.replace(bucket)
            return 0
        if self.vacant_bucket < 0:
            room = 64 if self.bucket_slots == 0 else 2 * self.bucket_slots
            self.buckets = <Bucket*> sized(self.buckets, room * sizeof(Bucket))
            for bucket in range(room - 1, self.bucket_slots - 1, -1):
                self.buckets[bucket].next = self.vacant_bucket
                self.buckets[bucket].head = -1
                self.buckets[bucket].late = 0
                self.vacant_bucket = bucket
            self.bucket_slots = room
        bucket = self.vacant_bucket
        self.put_label(label, bucket)
        self.vacant_bucket = self.buckets[bucket].next
        self.buckets[bucket].label = label
        self.buckets[bucket].match = match
        self.buckets[bucket].key = key
        self.buckets[bucket].head = self.buckets[bucket].tail = self.buckets[bucket].current = message
        self.buckets[bucket].count = 1
        self.buckets[bucket].lane = self.buckets[bucket].place = -1
        self.buckets[bucket].previous = self.buckets[bucket].next = -1
        self.at[message].bucket = bucket
        self.at[message].before = self.at[message].after = -1
        if key >= 0:
            if key >= self.group_room:
                room = max(64, 2 * self.group_room, self.groups.keys)
                self.of_group = <int32_t*> sized(self.of_group, room * sizeof(int32_t))
                memset(self.of_group + self.group_room, 0xFF, (room - self.group_room) * sizeof(int32_t))
                self.group_room = room
            self.buckets[bucket].next = self.of_group[key]
            if self.of_group[key] >= 0:
                self.buckets[self.of_group[key]].previous = bucket
            self.of_group[key] = bucket
        return self.replace(bucket)

    cdef int unindex(self, int32_t message) except -1:
        cdef int32_t bucket = self.at[message].bucket
        cdef int32_t before = self.at[message].before, after = self.at[message].after
        cdef Bucket* it = &self.buckets[bucket]
        cdef Moment moment
        if self.groups.watched and it.key >= 0 and self.groups.owner[it.key] >= 0:
            moment.position = self.at[message].position
            if (self.groups.accessed[it.key].round != self.groups.now.round
                    or self.groups.accessed[it.key].position != moment.position):
                moment.round = self.consumers.last_look(it.match, moment.position, self.at[message].joined)
                if self.groups.precedes(self.groups.accessed[it.key], moment):
                    self.groups.advance(it.key, moment, self.groups.youngest)
        self.at[message].bucket = -1
        if before >= 0:
            self.at[before].after = after
        else:
            it.head = after
        if after >= 0:
            self.at[after].before = before
        else:
            it.tail = before
        it.count -= 1
        if it.count == 0:
            self.leave_lane(bucket)
            self.drop_label(it.label)
            if it.key >= 0:
                if it.previous >= 0:
                    self.buckets[it.previous].next = it.next
                else:
                    self.of_group[it.key] = it.next
                if it.next >= 0:
                    self.buckets[it.next].previous = it.previous
            it.next = self.vacant_bucket
            it.head = it.current = -1
            self.vacant_bucket = bucket
        elif it.current == message:
            it.current = after
            if after < 0:
                self.leave_lane(bucket)
            elif it.lane >= 0:
                self.sift(it.lane, it.place)
                self.reorder(it.lane)
        return 0

    cdef int replace(self, int32_t bucket) except -1:
        # The lane a bucket belongs to now, and the first message of it that the running round has not gone past.
        cdef Bucket* it = &self.buckets[bucket]
        cdef int32_t owner, lane, current = it.head
        if self.at[current].position <= self.frontier:
            if not it.late:
                if self.late_size == self.late_room:
                    self.late_room = max(16, 2 * self.late_room)
                    self.late = <int32_t*> sized(self.late, self.late_room * sizeof(int32_t))
                self.late[self.late_size] = bucket
                self.late_size += 1
                it.late = 1
            while current >= 0 and self.at[current].position <= self.frontier:
                current = self.at[current].after
        self.leave_lane(bucket)
        it.current = current
        if current < 0:
            return 0
        lane = 2 * it.match + 1
        if it.key >= 0:
            owner = self.groups.owner[it.key]
            if owner >= 0:
                if not self.consumers.matches(it.match, owner):
                    return 0
                lane = 2 * owner
        return self.join_lane(bucket, lane)

    cdef int regroup(self, int32_t key) except -1:
        cdef int32_t bucket
        if key < self.group_room:
            bucket = self.of_group[key]
            while bucket >= 0:
                self.replace(bucket)
                bucket = self.buckets[bucket].next
        return 0

    cdef int replace_all(self) except -1:
        cdef int32_t bucket
        for bucket in range(self.bucket_slots):
            if self.buckets[bucket].head >= 0:
                self.replace(bucket)
        return 0

    # Lanes

    cdef int64_t urgency(self, int32_t lane) noexcept nogil:
        return self.at[self.buckets[self.lanes[lane].heap[0]].current].position

    cdef int join_lane(self, int32_t bucket, int32_t lane) except -1:
        cdef int32_t room
        cdef Lane* it
        if lane >= self.lane_room:
            room = max(16, 2 * (lane + 1))
            self.lanes = <Lane*> sized(self.lanes, room * sizeof(Lane))
            self.ready = <int32_t*> sized(self.ready, room * sizeof(int32_t))
            self.blocked = <int32_t*> sized(self.blocked, room * sizeof(int32_t))
            memset(self.lanes + self.lane_room, 0, (room - self.lane_room) * sizeof(Lane))
            for lane_index in range(self.lane_room, room):
                self.lanes[<int32_t> lane_index].place = -1
                self.lanes[<int32_t> lane_index].blocked = -1
            self.lane_room = room
        it = &self.lanes[lane]
        if it.size == it.room:
            room = 4 if it.room == 0 else 2 * it.room
            it.heap = <int32_t*> sized(it.heap, room * sizeof(int32_t))
            it.room = room
        it.heap[it.size] = bucket
        self.buckets[bucket].lane = lane
        self.buckets[bucket].place = it.size
        it.size += 1
        self.sift(lane, it.size - 1)
        if it.place >= 0:
            self.reorder(lane)
        elif self.lane_open(lane):
            self.make_ready(lane)
        elif lane & 1 and it.blocked < 0:
            self.block(lane)
        return 0

    cdef int leave_lane(self, int32_t bucket) except -1:
        cdef int32_t lane = self.buckets[bucket].lane, place = self.buckets[bucket].place
        cdef Lane* it
        if lane < 0:
            return 0
        it = &self.lanes[lane]
        it.size -= 1
        self.buckets[bucket].lane = self.buckets[bucket].place = -1
        if place < it.size:
            it.heap[place] = it.heap[it.size]
            self.buckets[it.heap[place]].place = place
            self.sift(lane, place)
        if it.size == 0:
            self.unready(lane)
            self.unblock(lane)
        elif it.place >= 0:
            self.reorder(lane)
        return 0

    cdef void sift(self, int32_t lane, int32_t place) noexcept nogil:
        cdef int32_t* heap = self.lanes[lane].heap
        cdef int32_t size = self.lanes[lane].size, bucket = heap[place], child, parent
        cdef int64_t position = self.at[self.buckets[bucket].current].position
        while place > 0:
            parent = (place - 1) >> 1
            if self.at[self.buckets[heap[parent]].current].position <= position:
                break
            heap[place] = heap[parent]
            self.buckets[heap[place]].place = place
            place = parent
        while True:
            child = 2 * place + 1
            if child >= size:
                break
            if child + 1 < size and (self.at[self.buckets[heap[child + 1]].current].position
                                     < self.at[self.buckets[heap[child]].current].position):
                child += 1
            if self.at[self.buckets[heap[child]].current].position >= position:
                break
            heap[place] = heap[child]
            self.buckets[heap[place]].place = place
            place = child
        heap[place] = bucket
        self.buckets[bucket].place = place

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

    cdef bint passes(self, int64_t after, int32_t message) noexcept nogil:
        cdef int tier, last = 19 if message < 0 else <int> (self.at[message].position >> 58)
        cdef int32_t found
        for tier in range(last + 1):
            found = self.window[tier].last
            if message >= 0 and tier == last:
                found = self.at[message].previous
            if found >= 0 and self.at[found].position > after:
                return True
        return False

    cdef int retire(self, int32_t message) except -1:
        cdef int32_t lane = self.buckets[self.at[message].bucket].lane
        self.unready(lane)
        if lane & 1:
            self.block(lane)
        return 0

    # Look-ups for messages that wait: not made, reckoned

    cdef Moment last_look(self, int32_t key) noexcept nogil:
        cdef Moment best, moment
        cdef int32_t bucket = self.of_group[key] if key < self.group_room else -1, message
        best.round = best.position = -1
        while bucket >= 0:
            message = self.buckets[bucket].head
            while message >= 0:
                moment.position = self.at[message].position
                moment.round = self.consumers.last_look(
                    self.buckets[bucket].match, moment.position, self.at[message].joined)
                if moment.round >= 0 and self.groups.precedes(best, moment):
                    best = moment
                message = self.at[message].after
            bucket = self.buckets[bucket].next
        return best

    cdef int settle(self) except -1:
        cdef int32_t bucket, key, count = 0, index, cursor
        cdef Moment moment
        cdef Access* accesses
        if not self.groups.watched or self.label_count == 0:
            return 0
        accesses = <Access*> sized(NULL, self.label_count * sizeof(Access))
        for bucket in range(self.bucket_slots):
            if self.buckets[bucket].head < 0:
                continue
            key = self.buckets[bucket].key
            if key >= 0 and self.of_group[key] == bucket and self.groups.owner[key] >= 0:
                moment = self.last_look(key)
                if self.groups.precedes(self.groups.accessed[key], moment):
                    accesses[count].moment = moment
                    accesses[count].group = key
                    count += 1
        qsort(accesses, count, sizeof(Access), later_first)
        cursor = self.groups.youngest
        for index in range(count):
            self.groups.advance(accesses[index].group, accesses[index].moment, cursor)
            cursor = accesses[index].group
        free(accesses)
        return 0

    cdef int settle_eldest(self) except -1:
        cdef int32_t eldest = self.groups.eldest
        if eldest >= 0 and self.groups.precedes(self.groups.accessed[eldest], self.last_look(eldest)):
            return self.settle()
        return 0

    cdef int begin(self) except -1:
        self.frontier = -1
        return 0

    cdef int finish(self) except -1:
        cdef int32_t index, bucket
        self.frontier = -1
        for index in range(self.late_size):
            bucket = self.late[index]
            self.buckets[bucket].late = 0
            if self.buckets[bucket].head >= 0:
                self.replace(bucket)
        self.late_size = 0
        return 0

    def _check(self):
        """Assert the invariants of pending.pxd."""
        cdef int32_t index, bucket, message, previous, lane, place, total = 0, indexed = 0
        cdef int tier
        cdef int64_t position
        for tier in range(20):
            previous = -1
            message = self.window[tier].first
            while message >= 0:
                assert self.at[message].whereabouts in (WAITING, IN_DOUBT)
                assert self.at[message].position >> 58 == tier
                assert self.at[message].previous == previous
                assert previous < 0 or self.at[previous].position < self.at[message].position
                assert (self.at[message].bucket >= 0) == (self.at[message].whereabouts == WAITING)
                indexed += self.at[message].bucket >= 0
                total += 1
                previous = message
                message = self.at[message].next
            assert previous == self.window[tier].last
        assert total == self.waiting
        assert sum([self.window[tier].count for tier in range(20)]) == self.waiting
        assert sum([self.window[tier].count for tier in range(0, 20, 2)]) == self.redelivered
        assert sum([self.cursor[tier].count for tier in range(20)]) == self.stored
        assert self.late_size == 0 and self.frontier == -1
        total = 0
        for bucket in range(self.bucket_slots):
            if self.buckets[bucket].head < 0:
                continue
            assert self.get_label(self.buckets[bucket].label) == bucket
            assert self.buckets[bucket].current == self.buckets[bucket].head
            total += 1
            index = 0
            position = -1
            message = self.buckets[bucket].head
            while message >= 0:
                assert self.at[message].bucket == bucket and self.at[message].match == self.buckets[bucket].match
                assert self.at[message].position > position
                position = self.at[message].position
                index += 1
                message = self.at[message].after
            assert index == self.buckets[bucket].count
            indexed -= index
            lane = self.buckets[bucket].lane
            message = self.groups.owner[self.buckets[bucket].key] if self.buckets[bucket].key >= 0 else -1
            if message < 0:
                assert lane == 2 * self.buckets[bucket].match + 1
            elif self.consumers.matches(self.buckets[bucket].match, message):
                assert lane == 2 * message
            else:
                assert lane == -1
        assert indexed == 0 and total == self.label_count
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
                position = self.at[self.buckets[place].current].position
                assert position <= self.at[self.buckets[bucket].current].position
