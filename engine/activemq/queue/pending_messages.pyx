"""Waiting messages of a queue in the order in which consumers can take them; see pending_messages.pxd."""

from cython cimport final
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, qsort
from libc.string cimport memset

from pyengine._engine.lowlevel.memory cimport allocate, try_resize
from pyengine._engine.lowlevel.linked_list cimport start_chain
from pyengine._engine.activemq.queue.bucket_labels cimport BucketLabels, label_of, tier_of_label
from pyengine._engine.activemq.queue.consumer_list cimport ConsumerList
from pyengine._engine.activemq.queue.group_map cimport BUCKET, GroupMap, Moment
from pyengine._engine.activemq.queue.ready_index cimport Bucket, ReadyIndex
from pyengine._engine.activemq.queue.message_slots cimport IN_DOUBT, NOWHERE, WAITING, Message, MessageSlots

cdef int64_t MIDDLE = <int64_t> 1 << 56      # centre of the position counters of a tier


cdef struct Access:
    Moment moment
    int32_t group


cdef int later_first(const void* left, const void* right) noexcept nogil:
    cdef const Access* one = <const Access*> left
    cdef const Access* other = <const Access*> right
    if one.moment.round != other.moment.round:
        return -1 if one.moment.round > other.moment.round else 1
    return -1 if one.moment.position > other.moment.position else 1


cdef inline int tier_of_position(int64_t position) noexcept nogil:
    return <int> (position >> 58)


@final
cdef class PendingMessages:
    """Internal to a queue; see pending_messages.pxd."""

    def __cinit__(self, MessageSlots messages not None, ReadyIndex ready not None, ConsumerList consumers not None,
                  GroupMap groups not None, bint prioritized):
        cdef int tier
        self.messages = messages
        self.ready = ready
        self.consumers = consumers
        self.groups = groups
        self.prioritized = prioritized
        self.labels = BucketLabels()
        self.frontier = -1
        for tier in range(20):
            start_chain(&self.window[tier])

    def __dealloc__(self):
        free(self.of_group)
        free(self.late)

    # The window

    cdef int renew(self) except -1:
        cdef int32_t message
        cdef int where
        for message in range(self.messages.slots):
            where = self.messages.at[message].whereabouts
            if where == NOWHERE:
                continue
            if where == WAITING or where == IN_DOUBT:
                self.withdraw(message)
            self.messages.discard(message)
        self.appended = self.prepended = 0
        return 0

    cdef void shed(self) noexcept nogil:
        self.labels.resize(4)                          # which stay as they are if they cannot be made smaller
        free(self.of_group)
        free(self.late)
        self.of_group = self.late = NULL
        self.group_room = self.late_room = 0

    cdef void renumber_groups(self, const int32_t* moved) noexcept nogil:
        # In place: a new handle is never above the old one.
        cdef int32_t message, key, bucket
        cdef Bucket* named
        for message in range(self.messages.slots):
            if self.messages.at[message].whereabouts != NOWHERE and self.messages.at[message].group >= 0:
                self.messages.at[message].group = moved[self.messages.at[message].group]
        if self.groups.form == BUCKET:                # its keys are not handles
            return
        for key in range(self.group_room):
            bucket = self.of_group[key]
            self.of_group[key] = -1
            if bucket >= 0:
                self.of_group[moved[key]] = bucket
        self.labels.clear()
        for bucket in range(self.ready.bucket_slots):
            named = &self.ready.buckets[bucket]
            if named.head >= 0:
                if named.key >= 0:
                    named.key = moved[named.key]
                named.label = label_of(named.match, named.key, tier_of_label(named.label))
                self.labels.add(named.label, bucket)

    cdef int tier(self, int32_t message, bint redelivered) noexcept nogil:
        return (2 * (9 - self.messages.at[message].priority) if self.prioritized else 0) + (not redelivered)

    cdef void wait(self, int32_t message, bint redelivered, bint ahead) noexcept nogil:
        cdef int tier = self.tier(message, redelivered)
        cdef Message* waiting = &self.messages.at[message]
        if ahead:
            self.prepended += 1
            waiting.position = (<int64_t> tier << 58) + MIDDLE - self.prepended
            self.messages.link_first(&self.window[tier], message)
        else:
            self.go_behind(message, tier)
            self.messages.link(&self.window[tier], message)
        self.waiting += 1
        self.redelivered += redelivered
        waiting.consumer = -1
        if waiting.acknowledged:
            waiting.whereabouts = IN_DOUBT
            return
        waiting.whereabouts = WAITING
        self.index(message)

    cdef void go_behind(self, int32_t message, int tier) noexcept nogil:
        self.appended += 1
        self.messages.at[message].position = (<int64_t> tier << 58) + MIDDLE + self.appended

    cdef void withdraw(self, int32_t message) noexcept nogil:
        cdef int tier = tier_of_position(self.messages.at[message].position)
        if self.messages.at[message].bucket >= 0:
            self.unindex(message)
        self.messages.unlink(&self.window[tier], message)
        self.waiting -= 1
        self.redelivered -= not tier & 1

    cdef bint passes(self, int64_t after, int32_t message) noexcept nogil:
        cdef int tier, last = 19 if message < 0 else tier_of_position(self.messages.at[message].position)
        cdef int32_t found
        for tier in range(last + 1):
            found = self.window[tier].last
            if message >= 0 and tier == last:
                found = self.messages.at[message].previous
            if found >= 0 and self.messages.at[found].position > after:
                return True
        return False

    # Buckets

    cdef void index(self, int32_t message) noexcept nogil:
        self.messages.at[message].joined = self.groups.now.round + 1
        if not self.ready.lost:
            self.put_in_bucket(message)

    cdef bint reserve_bucket(self, int32_t key) noexcept nogil:
        cdef int32_t room
        cdef void* larger
        if self.ready.vacant_bucket < 0 and not self.ready.add_buckets():
            return False
        if key >= self.group_room:
            room = max(64, 2 * self.group_room, self.groups.keys)
            larger = try_resize(self.of_group, room * sizeof(int32_t))
            if larger == NULL:
                return False
            self.of_group = <int32_t*> larger
            memset(self.of_group + self.group_room, 0xFF, (room - self.group_room) * sizeof(int32_t))
            self.group_room = room
        return self.labels.has_room() or self.labels.resize(2 * self.labels.room)

    cdef void lose(self) noexcept nogil:
        cdef int32_t message
        cdef int tier
        for tier in range(20):
            message = self.window[tier].first
            while message >= 0:
                self.messages.at[message].bucket = -1
                message = self.messages.at[message].next
        self.labels.clear()
        if self.group_room:
            memset(self.of_group, 0xFF, self.group_room * sizeof(int32_t))
        self.late_size = 0
        self.ready.lose()

    cdef int restore(self) except -1:
        cdef int32_t message
        cdef int tier
        if not self.ready.lost:
            return 0
        self.ready.lost = False
        for tier in range(20):
            message = self.window[tier].first
            while message >= 0:
                if self.messages.at[message].whereabouts == WAITING:
                    self.put_in_bucket(message)
                if self.ready.lost:
                    raise MemoryError()
                message = self.messages.at[message].next
        return 0

    cdef void put_in_bucket(self, int32_t message) noexcept nogil:
        cdef Message* at = self.messages.at
        cdef Message* waiting = &at[message]
        cdef Bucket* joined
        cdef int32_t key = -1, bucket, before
        cdef int64_t label
        if waiting.group >= 0 and waiting.group_sequence != 1:
            key = self.groups.key[waiting.group]
        label = label_of(waiting.match, key, tier_of_position(waiting.position))
        bucket = self.labels.find(label)
        if bucket >= 0:
            joined = &self.ready.buckets[bucket]
            before = joined.tail
            while before >= 0 and at[before].position > waiting.position:
                if at[joined.head].position > waiting.position:
                    before = -1
                else:
                    before = at[before].before
            waiting.bucket = bucket
            waiting.before = before
            waiting.after = at[before].after if before >= 0 else joined.head
            if waiting.after >= 0:
                at[waiting.after].before = message
            else:
                joined.tail = message
            joined.count += 1
            if before >= 0:
                at[before].after = message
            else:
                joined.head = message
                self.place_bucket(bucket)
            return
        if (self.ready.vacant_bucket < 0 or key >= self.group_room or not self.labels.has_room()) \
                and not self.reserve_bucket(key):
            self.lose()
            return
        bucket = self.ready.vacant_bucket
        joined = &self.ready.buckets[bucket]
        self.labels.add(label, bucket)
        self.ready.vacant_bucket = joined.next
        joined.label = label
        joined.match = waiting.match
        joined.key = key
        joined.head = joined.tail = joined.current = message
        joined.count = 1
        joined.lane = joined.place = -1
        joined.previous = joined.next = -1
        waiting.bucket = bucket
        waiting.before = waiting.after = -1
        if key >= 0:
            joined.next = self.of_group[key]
            if self.of_group[key] >= 0:
                self.ready.buckets[self.of_group[key]].previous = bucket
            self.of_group[key] = bucket
        self.place_bucket(bucket)

    cdef void unindex(self, int32_t message) noexcept nogil:
        cdef Message* at = self.messages.at
        cdef int32_t bucket = at[message].bucket, before = at[message].before, after = at[message].after
        cdef Bucket* left = &self.ready.buckets[bucket]
        if self.groups.watched and left.key >= 0 and self.groups.owner[left.key] >= 0:
            self.note_look(message)
        at[message].bucket = -1
        if before >= 0:
            at[before].after = after
        else:
            left.head = after
        if after >= 0:
            at[after].before = before
        else:
            left.tail = before
        left.count -= 1
        if left.count == 0:
            self.free_bucket(bucket)
        elif left.current == message:
            left.current = after
            if after < 0:
                self.ready.leave_lane(bucket)
            else:
                self.ready.advance(bucket)

    cdef void note_look(self, int32_t message) noexcept nogil:
        # The last look at its group for its sake, which was not made (see ``settle``).
        cdef const Message* at = &self.messages.at[message]
        cdef int32_t key = self.ready.buckets[at.bucket].key
        cdef Moment moment
        moment.position = at.position
        if (self.groups.accessed[key].round != self.groups.now.round
                or self.groups.accessed[key].position != moment.position):
            moment.round = self.consumers.last_look(at.match, moment.position, at.joined)
            if self.groups.precedes(self.groups.accessed[key], moment):
                self.groups.advance(key, moment, self.groups.youngest)

    cdef void free_bucket(self, int32_t bucket) noexcept nogil:
        cdef Bucket* buckets = self.ready.buckets
        cdef Bucket* freed = &buckets[bucket]
        self.ready.leave_lane(bucket)
        self.labels.remove(freed.label)
        if freed.key >= 0:
            if freed.previous >= 0:
                buckets[freed.previous].next = freed.next
            else:
                self.of_group[freed.key] = freed.next
            if freed.next >= 0:
                buckets[freed.next].previous = freed.previous
        freed.next = self.ready.vacant_bucket
        freed.head = freed.current = -1
        self.ready.vacant_bucket = bucket

    cdef bint note_late(self, int32_t bucket) noexcept nogil:
        cdef int32_t room
        cdef void* larger
        if self.ready.buckets[bucket].late:
            return True
        if self.late_size == self.late_room:
            room = max(16, 2 * self.late_room)
            larger = try_resize(self.late, room * sizeof(int32_t))
            if larger == NULL:
                return False
            self.late = <int32_t*> larger
            self.late_room = room
        self.late[self.late_size] = bucket
        self.late_size += 1
        self.ready.buckets[bucket].late = 1
        return True

    cdef void place_bucket(self, int32_t bucket) noexcept nogil:
        # ``current`` is the first message of it that the running round has not gone past.
        cdef const Message* at = self.messages.at
        cdef Bucket* placed = &self.ready.buckets[bucket]
        cdef int32_t owner, lane, current = placed.head
        if at[current].position <= self.frontier:
            if not self.note_late(bucket):
                self.lose()
                return
            while current >= 0 and at[current].position <= self.frontier:
                current = at[current].after
        self.ready.leave_lane(bucket)
        placed.current = current
        if current < 0:
            return
        lane = 2 * placed.match + 1
        if placed.key >= 0:
            owner = self.groups.owner[placed.key]
            if owner >= 0:
                if not self.consumers.matches(placed.match, owner):
                    return
                lane = 2 * owner
        if not self.ready.join_lane(bucket, lane):
            self.lose()

    cdef void regroup(self, int32_t key) noexcept nogil:
        cdef int32_t bucket
        if key < self.group_room:
            bucket = self.of_group[key]
            while bucket >= 0 and not self.ready.lost:
                self.place_bucket(bucket)
                bucket = self.ready.buckets[bucket].next

    cdef bint awaited(self, int32_t key) noexcept nogil:
        return key < self.group_room and self.of_group[key] >= 0

    cdef void place_all(self) noexcept nogil:
        cdef int32_t bucket
        for bucket in range(self.ready.bucket_slots):
            if self.ready.buckets[bucket].head >= 0:
                self.place_bucket(bucket)

    # Deferred look-ups for waiting messages, computed on demand

    cdef Moment last_look(self, int32_t key) noexcept nogil:
        cdef Moment best, moment
        cdef int32_t bucket = self.of_group[key] if key < self.group_room else -1, message
        best.round = best.position = -1
        while bucket >= 0:
            message = self.ready.buckets[bucket].head
            while message >= 0:
                moment.position = self.messages.at[message].position
                moment.round = self.consumers.last_look(
                    self.ready.buckets[bucket].match, moment.position, self.messages.at[message].joined)
                if moment.round >= 0 and self.groups.precedes(best, moment):
                    best = moment
                message = self.messages.at[message].after
            bucket = self.ready.buckets[bucket].next
        return best

    cdef int settle(self) except -1:
        cdef int32_t bucket, key, count = 0, index, cursor
        cdef Moment moment
        cdef Access* accesses
        self.restore()
        if not self.groups.watched or self.labels.count == 0:
            return 0
        accesses = <Access*> allocate(self.labels.count * sizeof(Access))
        for bucket in range(self.ready.bucket_slots):
            if self.ready.buckets[bucket].head < 0:
                continue
            key = self.ready.buckets[bucket].key
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
            if self.ready.lost:
                break
            bucket = self.late[index]
            self.ready.buckets[bucket].late = 0
            if self.ready.buckets[bucket].head >= 0:
                self.place_bucket(bucket)
        self.late_size = 0

    def _check(self):
        """Assert the invariants of pending_messages.pxd."""
        cdef int32_t index, bucket, message, previous, lane, owner, total = 0, indexed = 0
        cdef int tier
        cdef int64_t position
        cdef const Message* at = self.messages.at
        cdef const Bucket* checked
        for tier in range(20):
            previous = -1
            message = self.window[tier].first
            while message >= 0:
                assert at[message].whereabouts in (WAITING, IN_DOUBT)
                assert tier_of_position(at[message].position) == tier
                assert at[message].previous == previous
                assert previous < 0 or at[previous].position < at[message].position
                assert (at[message].bucket >= 0) == (at[message].whereabouts == WAITING and not self.ready.lost)
                indexed += at[message].bucket >= 0
                total += 1
                previous = message
                message = at[message].next
            assert previous == self.window[tier].last
        assert total == self.waiting
        assert sum([self.window[tier].count for tier in range(20)]) == self.waiting
        assert sum([self.window[tier].count for tier in range(0, 20, 2)]) == self.redelivered
        assert self.late_size == 0 and self.frontier == -1
        total = 0
        for bucket in range(self.ready.bucket_slots):
            checked = &self.ready.buckets[bucket]
            if checked.head < 0:
                continue
            assert self.labels.find(checked.label) == bucket
            assert checked.current == checked.head
            total += 1
            index = 0
            position = -1
            message = checked.head
            while message >= 0:
                assert at[message].bucket == bucket and at[message].match == checked.match
                assert at[message].position > position
                position = at[message].position
                index += 1
                message = at[message].after
            assert index == checked.count
            indexed -= index
            lane = checked.lane
            owner = self.groups.owner[checked.key] if checked.key >= 0 else -1
            if owner < 0:
                assert lane == 2 * checked.match + 1
            elif self.consumers.matches(checked.match, owner):
                assert lane == 2 * owner
            else:
                assert lane == -1
        assert indexed == 0 and total == self.labels.count
