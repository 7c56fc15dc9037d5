"""Waiting messages of a queue in the order in which consumers can take them; see pending_messages.pxd."""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, qsort
from libc.string cimport memset

from pyengine._engine.lowlevel.memory cimport allocate, try_allocate, try_resize
from pyengine._engine.lowlevel.linked_list cimport start_chain
from pyengine._engine.activemq.queue.group_map cimport BUCKET, Moment
from pyengine._engine.activemq.queue.ready_index cimport Bucket, Lanes
from pyengine._engine.activemq.queue.message_slots cimport IN_DOUBT, NOWHERE, WAITING

cdef int64_t MIDDLE = <int64_t> 1 << 56      # centre of the position counters of a tier
cdef int64_t NO_LABEL = -1


cdef struct Access:
    Moment moment
    int32_t group


cdef inline int64_t label_of(int32_t match, int32_t key, int tier) noexcept nogil:
    return (<int64_t> match << 37) | ((<int64_t> key + 1) << 5) | tier


cdef int later_first(const void* left, const void* right) noexcept nogil:
    cdef const Access* one = <const Access*> left
    cdef const Access* other = <const Access*> right
    if one.moment.round != other.moment.round:
        return -1 if one.moment.round > other.moment.round else 1
    return -1 if one.moment.position > other.moment.position else 1


cdef class Pending(Lanes):
    """Internal to a queue; see pending_messages.pxd."""

    def __cinit__(self):
        self.vacant_bucket = -1
        self.frontier = -1
        if not self.resize_labels(4):
            raise MemoryError()

    def __dealloc__(self):
        free(self.labels)
        free(self.labelled)
        free(self.of_group)
        free(self.late)

    # The window

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
            start_chain(&self.cursor[where])
        for where in range(3):
            start_chain(&self.unread[where])
        self.cached = True
        self.stored = self.served = 0
        self.appended = self.prepended = self.pages = 0
        return 0

    cdef int shed(self) except -1:
        self.resize_labels(4)                          # which stay as they are if they cannot be made smaller
        Lanes.shed(self)
        self.lost = False
        free(self.of_group)
        free(self.late)
        self.of_group = self.late = NULL
        self.bucket_slots = self.group_room = self.late_room = 0
        self.vacant_bucket = -1
        return 0

    cdef void renumber_groups(self, const int32_t* moved) noexcept nogil:
        # In place: a new handle is never above the old one.
        cdef int32_t message, key, bucket
        cdef Bucket* it
        for message in range(self.slots):
            if self.at[message].whereabouts != NOWHERE and self.at[message].group >= 0:
                self.at[message].group = moved[self.at[message].group]
        if self.groups.form == BUCKET:                # its keys are not handles
            return
        for key in range(self.group_room):
            bucket = self.of_group[key]
            self.of_group[key] = -1
            if bucket >= 0:
                self.of_group[moved[key]] = bucket
        memset(self.labels, 0xFF, self.label_room * sizeof(int64_t))
        self.label_count = 0
        for bucket in range(self.bucket_slots):
            it = &self.buckets[bucket]
            if it.head >= 0:
                if it.key >= 0:
                    it.key = moved[it.key]
                it.label = label_of(it.match, it.key, <int> (it.label & 31))
                self.seat_label(it.label, bucket)

    cdef void wait(self, int32_t message, bint redelivered, bint ahead) noexcept nogil:
        cdef int tier = self.tier(message, redelivered)
        if ahead:
            self.prepended += 1
            self.at[message].position = (<int64_t> tier << 58) + MIDDLE - self.prepended
            self.link_first(&self.window[tier], message)
        else:
            self.go_behind(message, tier)
            self.link(&self.window[tier], message)
        self.waiting += 1
        self.redelivered += redelivered
        self.at[message].consumer = -1
        if self.at[message].acknowledged:
            self.at[message].whereabouts = IN_DOUBT
            return
        self.at[message].whereabouts = WAITING
        self.index(message)

    cdef void go_behind(self, int32_t message, int tier) noexcept nogil:
        self.appended += 1
        self.at[message].position = (<int64_t> tier << 58) + MIDDLE + self.appended

    cdef void withdraw(self, int32_t message) noexcept nogil:
        cdef int tier = <int> (self.at[message].position >> 58)
        if self.at[message].bucket >= 0:
            self.unindex(message)
        self.unlink(&self.window[tier], message)
        self.waiting -= 1
        self.redelivered -= not tier & 1

    # Labels: (class, group key, tier) -> bucket, open addressing with backward shift

    cdef bint resize_labels(self, int64_t room) noexcept nogil:
        cdef int64_t* old = self.labels
        cdef int32_t* old_buckets = self.labelled
        cdef int64_t index, old_room = self.label_room
        cdef int64_t* labels = <int64_t*> try_allocate(room * sizeof(int64_t))
        cdef int32_t* labelled = <int32_t*> try_allocate(room * sizeof(int32_t))
        if labels == NULL or labelled == NULL:
            free(labels)
            free(labelled)
            return False
        self.labels = labels
        self.labelled = labelled
        memset(self.labels, 0xFF, room * sizeof(int64_t))
        self.label_room = room
        self.label_count = 0
        for index in range(old_room):
            if old[index] != NO_LABEL:
                self.seat_label(old[index], old_buckets[index])
        free(old)
        free(old_buckets)
        return True

    cdef int64_t seat(self, int64_t label) noexcept nogil:
        return <int64_t> ((<uint64_t> label * <uint64_t> 0x9E3779B97F4A7C15) >> 20) & (self.label_room - 1)

    cdef int32_t get_label(self, int64_t label) noexcept nogil:
        cdef int64_t seat = self.seat(label)
        while self.labels[seat] != NO_LABEL:
            if self.labels[seat] == label:
                return self.labelled[seat]
            seat = (seat + 1) & (self.label_room - 1)
        return -1

    cdef void seat_label(self, int64_t label, int32_t bucket) noexcept nogil:
        cdef int64_t seat = self.seat(label)
        while self.labels[seat] != NO_LABEL:
            seat = (seat + 1) & (self.label_room - 1)
        self.labels[seat] = label
        self.labelled[seat] = bucket
        self.label_count += 1

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

    cdef void index(self, int32_t message) noexcept nogil:
        self.at[message].joined = self.groups.now.round + 1
        if not self.lost:
            self.put_in_bucket(message)

    cdef bint reserve_bucket(self, int32_t key) noexcept nogil:
        cdef int32_t room, bucket
        cdef void* larger
        if self.vacant_bucket < 0:
            room = 4 if self.bucket_slots == 0 else 2 * self.bucket_slots
            larger = try_resize(self.buckets, room * sizeof(Bucket))
            if larger == NULL:
                return False
            self.buckets = <Bucket*> larger
            for bucket in range(room - 1, self.bucket_slots - 1, -1):
                self.buckets[bucket].next = self.vacant_bucket
                self.buckets[bucket].head = -1
                self.buckets[bucket].late = 0
                self.vacant_bucket = bucket
            self.bucket_slots = room
        if key >= self.group_room:
            room = max(64, 2 * self.group_room, self.groups.keys)
            larger = try_resize(self.of_group, room * sizeof(int32_t))
            if larger == NULL:
                return False
            self.of_group = <int32_t*> larger
            memset(self.of_group + self.group_room, 0xFF, (room - self.group_room) * sizeof(int32_t))
            self.group_room = room
        return 2 * self.label_count < self.label_room or self.resize_labels(2 * self.label_room)

    cdef void lose(self) noexcept nogil:
        cdef int32_t message, bucket
        cdef int tier
        for tier in range(20):
            message = self.window[tier].first
            while message >= 0:
                self.at[message].bucket = -1
                message = self.at[message].next
        self.vacant_bucket = -1
        for bucket in range(self.bucket_slots - 1, -1, -1):
            self.buckets[bucket].next = self.vacant_bucket
            self.buckets[bucket].head = self.buckets[bucket].current = -1
            self.buckets[bucket].late = 0
            self.vacant_bucket = bucket
        memset(self.labels, 0xFF, self.label_room * sizeof(int64_t))
        if self.group_room:
            memset(self.of_group, 0xFF, self.group_room * sizeof(int32_t))
        self.label_count = self.late_size = 0
        Lanes.lose(self)

    cdef int restore(self) except -1:
        cdef int32_t message
        cdef int tier
        if not self.lost:
            return 0
        self.lost = False
        for tier in range(20):
            message = self.window[tier].first
            while message >= 0:
                if self.at[message].whereabouts == WAITING:
                    self.put_in_bucket(message)
                if self.lost:
                    raise MemoryError()
                message = self.at[message].next
        return 0

    cdef void put_in_bucket(self, int32_t message) noexcept nogil:
        cdef int32_t key = -1, match = self.at[message].match, bucket, beyond
        cdef int64_t label
        if self.at[message].group >= 0 and self.at[message].group_sequence != 1:
            key = self.groups.key[self.at[message].group]
        label = label_of(match, key, <int> (self.at[message].position >> 58))
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
            return
        if (self.vacant_bucket < 0 or key >= self.group_room or 2 * self.label_count >= self.label_room) \
                and not self.reserve_bucket(key):
            self.lose()
            return
        bucket = self.vacant_bucket
        self.seat_label(label, bucket)
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
            self.buckets[bucket].next = self.of_group[key]
            if self.of_group[key] >= 0:
                self.buckets[self.of_group[key]].previous = bucket
            self.of_group[key] = bucket
        self.replace(bucket)

    cdef void unindex(self, int32_t message) noexcept nogil:
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

    cdef void replace(self, int32_t bucket) noexcept nogil:
        # The lane a bucket belongs to now, and the first message of it that the running round has not gone past.
        cdef Bucket* it = &self.buckets[bucket]
        cdef int32_t owner, lane, current = it.head, room
        cdef void* larger
        if self.at[current].position <= self.frontier:
            if not it.late:
                if self.late_size == self.late_room:
                    room = max(16, 2 * self.late_room)
                    larger = try_resize(self.late, room * sizeof(int32_t))
                    if larger == NULL:
                        self.lose()
                        return
                    self.late = <int32_t*> larger
                    self.late_room = room
                self.late[self.late_size] = bucket
                self.late_size += 1
                it.late = 1
            while current >= 0 and self.at[current].position <= self.frontier:
                current = self.at[current].after
        self.leave_lane(bucket)
        it.current = current
        if current < 0:
            return
        lane = 2 * it.match + 1
        if it.key >= 0:
            owner = self.groups.owner[it.key]
            if owner >= 0:
                if not self.consumers.matches(it.match, owner):
                    return
                lane = 2 * owner
        self.join_lane(bucket, lane)

    cdef void regroup(self, int32_t key) noexcept nogil:
        cdef int32_t bucket
        if key < self.group_room:
            bucket = self.of_group[key]
            while bucket >= 0 and not self.lost:
                self.replace(bucket)
                bucket = self.buckets[bucket].next

    cdef bint awaited(self, int32_t key) noexcept nogil:
        return key < self.group_room and self.of_group[key] >= 0

    cdef void replace_all(self) noexcept nogil:
        cdef int32_t bucket
        for bucket in range(self.bucket_slots):
            if self.buckets[bucket].head >= 0:
                self.replace(bucket)

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

    # Deferred look-ups for waiting messages, computed on demand

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
        self.restore()
        if not self.groups.watched or self.label_count == 0:
            return 0
        accesses = <Access*> allocate(self.label_count * sizeof(Access))
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
        return self.restore()

    cdef void finish(self) noexcept nogil:
        cdef int32_t index, bucket
        self.frontier = -1
        for index in range(self.late_size):
            if self.lost:
                break
            bucket = self.late[index]
            self.buckets[bucket].late = 0
            if self.buckets[bucket].head >= 0:
                self.replace(bucket)
        self.late_size = 0

    def _check(self):
        """Assert the invariants of pending_messages.pxd."""
        cdef int32_t index, bucket, message, lane, total = 0, indexed = 0
        cdef int tier
        cdef int64_t position
        Lanes._check(self)
        for tier in range(20):
            message = self.window[tier].first
            while message >= 0:
                assert (self.at[message].bucket >= 0) == (self.at[message].whereabouts == WAITING and not self.lost)
                indexed += self.at[message].bucket >= 0
                message = self.at[message].next
        assert self.late_size == 0 and self.frontier == -1
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
