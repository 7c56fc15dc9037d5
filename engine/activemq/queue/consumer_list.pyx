"""The consumer list of a queue: order, credit, exclusive election, predicates (spec activemq 2.3-2.5)."""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memmove, memset

from pyengine._engine.lowlevel.memory cimport allocate, resize, resize_zeros
from pyengine._engine.lowlevel.linked_list cimport start_chain
from pyengine._engine.activemq.queue.group_map cimport GroupMap, Moment
from pyengine._engine.matching.consumer_filter cimport volatile_headers


cdef int32_t* kept_numbers(dict names, set held, dict kept) except NULL:
    # All at once: no memory may be wanted between the first number that is changed and the last.
    cdef int32_t* moved = <int32_t*> allocate(<int64_t> len(names) * sizeof(int32_t))
    try:
        for name, number in names.items():
            moved[<int64_t> number] = -1
            if number in held:
                kept[name] = len(kept)
                moved[<int64_t> number] = <int32_t> len(kept) - 1
    except BaseException:
        free(moved)
        raise
    return moved


cdef int32_t place_of(uint64_t bits) noexcept nogil:
    return <int32_t> ((bits * <uint64_t> 0x9E3779B97F4A7C15) >> 56)


cdef class ConsumerList:
    """Internal to a queue; see consumer_list.pxd."""

    def __cinit__(self, GroupMap groups not None, bint use_consumer_priority, bint use_prefetch_extension,
                  bint all_exclusive):
        self.groups = groups
        self.use_consumer_priority = use_consumer_priority
        self.use_prefetch_extension = use_prefetch_extension
        self.all_exclusive = all_exclusive
        self.slot_of = {}
        self.questions = []
        self.class_of = {}
        self.targets = {}
        self.elected = self.displaced = -1
        self.sorted = True
        self.forget_recent()
        self.word_count = 1
        self.open_words = <uint64_t*> resize_zeros(NULL, 0, sizeof(uint64_t))
        self.predicate_for(None, -1)
        self.predicates[0].users = 1

    def __dealloc__(self):
        cdef int32_t index
        for index in range(self.class_count):
            free(self.classes[index].words)
        free(self.classes)
        for index in range(self.slots):
            free(self.at[index].walks)
        free(self.at)
        free(self.order)
        free(self.vacant)
        free(self.predicates)
        free(self.open_words)
        free(self.recent_bits)
        free(self.recent_class)

    cdef int32_t predicate_for(self, object selector, int32_t connection) except -1:
        cdef int32_t index, vacancy = -1
        for index in range(self.predicate_count):
            if self.predicates[index].users == 0 and index:
                vacancy = index if vacancy < 0 else vacancy
            elif self.questions[index] == (selector, connection):
                return index
        index = vacancy if vacancy >= 0 else self.append_predicate()
        self.predicates[index].users = 0
        self.predicates[index].open = 0
        self.set_question(index, selector, connection)
        return index

    cdef int set_question(self, int32_t predicate, object selector, int32_t connection) except -1:
        cdef tuple question = (selector, connection)
        self.predicates[predicate].changing = volatile_headers(selector)
        self.predicates[predicate].connection = connection
        self.questions[predicate] = question
        self.changing |= self.predicates[predicate].changing
        return 0

    cdef int32_t append_predicate(self) except -1:
        cdef int32_t index = self.predicate_count
        cdef int64_t before = index * <int64_t> sizeof(Predicate)
        self.predicates = <Predicate*> resize_zeros(self.predicates, before, before + sizeof(Predicate))
        self.predicates[index].connection = -1
        if index >= self.word_count * 64:
            self.widen(self.word_count + 1)
        self.questions.append(None)
        self.predicate_count = index + 1
        return index

    cdef int widen(self, int32_t words) except -1:
        cdef int32_t index
        cdef int64_t old = self.word_count * sizeof(uint64_t), new = words * sizeof(uint64_t)
        self.open_words = <uint64_t*> resize_zeros(self.open_words, old, new)
        for index in range(self.class_count):
            self.classes[index].words = <uint64_t*> resize_zeros(self.classes[index].words, old, new)
        self.word_count = words
        return 0

    cdef int free_predicate(self, int32_t predicate) except -1:
        # Clear the bit in place; two classes may then be equal, which costs a lane and changes no result.
        cdef int32_t index
        self.questions[predicate] = None
        self.predicates[predicate].changing = self.changing = 0
        for index in range(self.predicate_count):
            self.changing |= self.predicates[index].changing
        for index in range(self.class_count):
            self.classes[index].words[predicate >> 6] &= ~(<uint64_t> 1 << (predicate & 63))
        self.class_of = None
        self.forget_recent()
        return 0

    cdef void forget_recent(self) noexcept nogil:
        self.latest_class = -1
        if self.recent_class != NULL:
            memset(self.recent_class, 0xFF, RECENT * sizeof(int32_t))

    cdef int note_recent(self, uint64_t bits, int32_t match) except -1:
        cdef int32_t place
        if self.latest_class >= 0 and self.recent_class == NULL:
            self.recent_bits = <uint64_t*> resize(self.recent_bits, RECENT * sizeof(uint64_t))
            self.recent_class = <int32_t*> resize(NULL, RECENT * sizeof(int32_t))
            memset(self.recent_class, 0xFF, RECENT * sizeof(int32_t))
            place = place_of(self.latest_bits)
            self.recent_bits[place] = self.latest_bits
            self.recent_class[place] = self.latest_class
        if self.recent_class != NULL:
            place = place_of(bits)
            self.recent_bits[place] = bits
            self.recent_class[place] = match
        self.latest_bits = bits
        self.latest_class = match
        return 0

    cdef int note_classes(self) except -1:
        cdef int32_t index
        cdef dict class_of = {}
        for index in range(self.class_count):
            if self.classes[index].target != NO_CLASS:
                class_of.setdefault((self.bits_of(index), self.classes[index].target), index)
        self.class_of = class_of
        return 0

    cdef int free_classes(self, const uint8_t* held) except -1:
        cdef int32_t index
        cdef list vacant = [index for index in range(self.class_count) if held == NULL or not held[index]]
        for index in vacant:
            self.classes[index].target = NO_CLASS
            self.classes[index].target_slot = -1
        if len(vacant) == self.class_count:
            for index in range(self.class_count):
                free(self.classes[index].words)
            free(self.classes)
            self.classes = NULL
            self.class_count = self.class_room = 0
            vacant.clear()
        self.vacant_classes = vacant
        self.class_of = None
        self.forget_recent()
        return 0

    cdef int forget_targets(self) except -1:
        cdef int32_t index
        cdef set held = {self.at[index].target for index in range(self.slots) if self.at[index].live}
        held.update([self.classes[index].target for index in range(self.class_count)])
        cdef dict targets = {}
        cdef int32_t* moved = kept_numbers(self.targets, held, targets)
        self.targets = targets
        for index in range(self.slots):
            if self.at[index].target >= 0:
                self.at[index].target = moved[self.at[index].target]
        for index in range(self.class_count):
            if self.classes[index].target >= 0:
                self.classes[index].target = moved[self.classes[index].target]
        free(moved)
        self.class_of = None
        self.forget_recent()
        return 0

    cdef object bits_of(self, int32_t match):
        return int.from_bytes((<char*> self.classes[match].words)[:self.word_count * 8], "little")

    cdef int32_t class_for(self, object bits, int32_t target) except -1:
        cdef object known
        cdef int32_t index, slot, room
        cdef bytes raw
        if self.class_of is None:
            self.note_classes()
        known = self.class_of.get((bits, target))
        if known is not None:
            return known
        raw = bits.to_bytes(self.word_count * 8, "little")
        if self.vacant_classes:
            index = self.vacant_classes.pop()
        else:
            index = self.class_count
            if index == self.class_room:
                room = 2 if index == 0 else 2 * index
                self.classes = <MatchClass*> resize_zeros(
                    self.classes, index * <int64_t> sizeof(MatchClass), room * <int64_t> sizeof(MatchClass))
                self.class_room = room
            self.classes[index].words = <uint64_t*> resize_zeros(NULL, 0, self.word_count * sizeof(uint64_t))
            self.class_count = index + 1
        memcpy(self.classes[index].words, <char*> raw, self.word_count * 8)
        self.classes[index].target = target
        self.classes[index].target_slot = -1
        if target >= 0:
            for slot in range(self.slots):
                if self.at[slot].live and self.at[slot].target == target:
                    self.classes[index].target_slot = slot
        self.class_of[(bits, target)] = index
        return index

    cdef int32_t class_for_words(self, const uint64_t* words, int32_t count) except -1:
        cdef uint64_t bits = words[0] if count else 0
        cdef int32_t place, found
        if count <= 1:
            bits |= 1
            if self.latest_class >= 0 and self.latest_bits == bits:
                return self.latest_class
            if self.recent_class != NULL:
                place = place_of(bits)
                if self.recent_class[place] >= 0 and self.recent_bits[place] == bits:
                    self.latest_bits = bits
                    self.latest_class = self.recent_class[place]
                    return self.latest_class
            found = self.class_for(bits, -1)
            self.note_recent(bits, found)
            return found
        return self.class_for(int.from_bytes((<const char*> words)[:count * 8], "little") | 1, -1)

    cdef int32_t target_number(self, object name) except -1:
        return self.targets.setdefault(name, len(self.targets))

    cdef int32_t settle_in(self, int32_t predicate, int32_t connection) except -1:
        cdef int32_t slot
        cdef int64_t before = self.slots
        if not self.vacant_count:
            self.at = <Consumer*> resize_zeros(
                self.at, before * <int64_t> sizeof(Consumer), (before + 1) * <int64_t> sizeof(Consumer))
            self.order = <int32_t*> resize(self.order, (before + 1) * sizeof(int32_t))
            self.vacant = <int32_t*> resize(self.vacant, (before + 1) * sizeof(int32_t))
            self.groups.reserve_slots(self.slots + 1)
            self.clear(<int32_t> before)
            self.vacant[0] = self.slots
            self.vacant_count = 1
            self.slots += 1
        slot = self.vacant[self.vacant_count - 1]
        free(self.at[slot].walks)
        self.clear(slot)
        self.reserve_walks(slot)
        self.slot_of[self.next_id] = slot
        self.vacant_count -= 1
        self.groups.counts[slot] = 0
        self.at[slot].id = self.next_id
        self.at[slot].predicate = predicate
        self.at[slot].connection = connection
        self.at[slot].extends = self.use_prefetch_extension
        self.at[slot].live = 1
        self.predicates[predicate].users += 1
        self.next_id += 1
        return slot

    cdef void clear(self, int32_t slot) noexcept nogil:
        memset(&self.at[slot], 0, sizeof(Consumer))
        start_chain(&self.at[slot].held)
        self.at[slot].connection = self.at[slot].target = -1

    cdef int leave(self, int32_t slot, object id) except -1:
        # The caller has taken it off the order and given its messages away.
        cdef int32_t predicate = self.at[slot].predicate
        cdef int32_t index
        self.at[slot].live = 0
        self.refresh(slot)
        if self.at[slot].target >= 0:
            for index in range(self.class_count):
                if self.classes[index].target_slot == slot:
                    self.classes[index].target_slot = -1
        del self.slot_of[id]
        self.vacant[self.vacant_count] = slot
        self.vacant_count += 1
        self.predicates[predicate].users -= 1
        if self.predicates[predicate].users == 0:
            self.free_predicate(predicate)
        return 0

    cdef int renew(self) except -1:
        cdef int32_t slot, index
        cdef Consumer* consumer
        self.size = self.open_total = self.unmarked = 0
        self.sorted = True
        self.displaced = self.elected = -1
        self.paused = self.counts_matter = False
        self.slowed = None
        memset(self.open_words, 0, self.word_count * sizeof(uint64_t))
        for index in range(self.predicate_count):
            self.predicates[index].open = 0
        for slot in range(self.slots):
            consumer = &self.at[slot]
            consumer.enqueued = consumer.dispatched = consumer.dequeued = consumer.pull_mark = 0
            consumer.extension = consumer.elsewhere = consumer.opened = 0
            start_chain(&consumer.held)
            consumer.walk_count = 0
            consumer.live = consumer.open = consumer.filled = consumer.slow = consumer.done = 0
        for slot in range(self.slots):
            self.at[slot].live = 1
            self.append(slot)
            if self.elect_on_join(slot):
                self.refresh_all()
            else:
                self.refresh(slot)
        return 0

    cdef bint matches(self, int32_t match, int32_t slot) noexcept nogil:
        cdef int32_t predicate = self.at[slot].predicate
        if self.classes[match].target >= 0 and self.classes[match].target_slot != slot:
            return False
        return (self.classes[match].words[predicate >> 6] >> (predicate & 63)) & 1

    cdef bint class_open(self, int32_t match) noexcept nogil:
        cdef int32_t word, slot
        if self.classes[match].target >= 0:
            slot = self.classes[match].target_slot
            return slot >= 0 and self.at[slot].open and self.matches(match, slot)
        for word in range(self.word_count):
            if self.classes[match].words[word] & self.open_words[word]:
                return True
        return False

    cdef int64_t free_slots(self) noexcept nogil:
        cdef int64_t total = 0
        cdef int32_t index, slot
        for index in range(self.size):
            slot = self.order[index]
            if self.at[slot].browser:
                continue
            if self.at[slot].prefetch == 0:
                total += self.at[slot].extension
            else:
                total += (self.at[slot].prefetch + self.at[slot].extension - self.at[slot].held.count
                          - self.at[slot].elsewhere)
        return total

    cdef int reserve_walks(self, int32_t slot) except -1:
        # A closing records two at most.
        cdef int32_t room = 2 * self.at[slot].walk_room + 2
        if self.at[slot].walk_count + 2 > self.at[slot].walk_room:
            self.at[slot].walks = <Moment*> resize_zeros(
                self.at[slot].walks, self.at[slot].walk_room * <int64_t> sizeof(Moment),
                room * <int64_t> sizeof(Moment))
            self.at[slot].walk_room = room
        return 0

    cdef void record_walk(self, int32_t slot, int64_t round, int64_t position) noexcept nogil:
        # A later round that reached as far supersedes the earlier one.
        cdef Consumer* consumer = &self.at[slot]
        while consumer.walk_count and consumer.walks[consumer.walk_count - 1].position <= position:
            consumer.walk_count -= 1
        consumer.walks[consumer.walk_count].round = round
        consumer.walks[consumer.walk_count].position = position
        consumer.walk_count += 1

    cdef int64_t last_look(self, int32_t match, int64_t position, int64_t since) noexcept nogil:
        # The last round in which a matching consumer was open when the round came to this position.
        cdef int64_t best = -1, round = self.groups.now.round
        cdef int32_t index, low, high, middle
        cdef Consumer* consumer
        for index in range(self.size):
            if not self.matches(match, self.order[index]):
                continue
            consumer = &self.at[self.order[index]]
            if consumer.open and consumer.opened <= round and position <= self.groups.now.position:
                best = round
                break
            if consumer.open and consumer.opened < round:
                best = max(best, round - 1)
                continue
            low = 0
            high = consumer.walk_count
            while low < high:
                middle = (low + high) >> 1
                if consumer.walks[middle].position >= position:
                    low = middle + 1
                else:
                    high = middle
            if low > 0:
                best = max(best, consumer.walks[low - 1].round)
        return best if best >= since else -1

    cdef int refresh(self, int32_t slot) noexcept nogil:
        cdef int32_t predicate = self.at[slot].predicate
        cdef bint served = self.at[slot].live and not self.at[slot].browser, full = self.full(slot)
        cdef bint filled = served and full
        if filled != self.at[slot].filled:
            self.at[slot].filled = filled
            self.unmarked += 1 if filled else -(not self.at[slot].slow)
            self.at[slot].slow = 0
        cdef bint opened = (
            served and not self.paused and (self.elected < 0 or self.elected == slot) and not full)
        if opened == self.at[slot].open:
            return 0
        self.at[slot].open = opened
        if self.groups.watched and opened:
            self.at[slot].opened = self.groups.now.round + 1
        elif self.groups.watched and self.at[slot].opened <= self.groups.now.round:
            if self.groups.now.position != INT64_MAX and self.at[slot].opened < self.groups.now.round:
                self.record_walk(slot, self.groups.now.round - 1, INT64_MAX)
            self.record_walk(slot, self.groups.now.round, self.groups.now.position)
        if opened:
            self.open_total += 1
            self.predicates[predicate].open += 1
            if self.predicates[predicate].open == 1:
                self.open_words[predicate >> 6] |= <uint64_t> 1 << (predicate & 63)
            return 1
        self.open_total -= 1
        self.predicates[predicate].open -= 1
        if self.predicates[predicate].open == 0:
            self.open_words[predicate >> 6] &= ~(<uint64_t> 1 << (predicate & 63))
        return -1

    cdef void refresh_all(self) noexcept nogil:
        cdef int32_t slot
        for slot in range(self.slots):
            self.refresh(slot)

    cdef int mark_slow(self, int32_t until) except -1:
        cdef int32_t index, slot
        for index in range(self.size):
            slot = self.order[index]
            if slot == until:
                break
            if self.at[slot].filled and not self.at[slot].slow:
                if self.slowed is None:
                    self.slowed = []
                self.slowed.append(self.at[slot].id)
                self.at[slot].slow = 1
                self.unmarked -= 1
        return 0

    cdef bint precedes(self, int32_t left, int32_t right) noexcept nogil:
        """Strictly before, by (-priority, assigned groups)."""
        if self.at[left].priority != self.at[right].priority:
            return self.at[left].priority > self.at[right].priority
        return self.counts_matter and self.groups.counts[left] < self.groups.counts[right]

    cdef void append(self, int32_t slot) noexcept nogil:
        cdef int32_t index = self.size, sorting, place
        self.order[index] = slot
        self.size += 1
        if not self.use_consumer_priority:
            return
        # A stable sort; if only the new consumer and one more are out of place, two insertions.
        if self.sorted and self.displaced >= 0 and self.displaced != slot:
            place = 0
            while self.order[place] != self.displaced:
                place += 1
            while place > 0 and self.precedes(self.displaced, self.order[place - 1]):
                self.order[place] = self.order[place - 1]
                place -= 1
            self.order[place] = self.displaced
        self.displaced = -1
        for sorting in range(index if self.sorted else 1, self.size):
            slot = self.order[sorting]
            place = sorting
            while place > 0 and self.precedes(slot, self.order[place - 1]):
                self.order[place] = self.order[place - 1]
                place -= 1
            self.order[place] = slot
        self.sorted = True

    cdef void withdraw(self, int32_t slot) noexcept nogil:
        cdef int32_t index = 0
        while index < self.size and self.order[index] != slot:
            index += 1
        if self.displaced == slot:
            self.displaced = -1
        if index < self.size:
            memmove(self.order + index, self.order + index + 1, (self.size - index - 1) * sizeof(int32_t))
            self.size -= 1

    cdef void displace(self, int32_t slot) noexcept nogil:
        if self.displaced >= 0 and self.displaced != slot:
            self.sorted = False
        self.displaced = slot

    cdef void rotate(self, int32_t slot) noexcept nogil:
        self.withdraw(slot)
        self.append(slot)

    cdef void expand(self, int32_t slot, int64_t amount) noexcept nogil:
        if self.at[slot].extends and self.at[slot].prefetch != 0 and amount > 0:
            self.at[slot].extension += amount

    cdef void contract(self, int32_t slot, int64_t amount) noexcept nogil:
        if self.at[slot].extends and self.at[slot].prefetch != 0:
            self.at[slot].extension = max(0, self.at[slot].extension - amount)

    cdef int elect_on_join(self, int32_t slot) noexcept nogil:
        cdef int32_t elected = self.elected
        if not self.at[slot].exclusive and not self.all_exclusive:
            return 0
        if elected < 0 or self.at[slot].priority == 127 or self.at[slot].priority > self.at[elected].priority:
            self.elected = slot
        return self.elected != elected

    cdef int elect_on_leave(self, int32_t slot) noexcept nogil:
        # One that asked for exclusivity is followed only by others that asked, even if all are exclusive by default.
        cdef int32_t elected = self.elected, index, candidate
        cdef bint asked = self.at[slot].exclusive
        if asked and elected != slot or not asked and not self.all_exclusive:
            return 0
        self.elected = -1
        for index in range(self.size):
            candidate = self.order[index]
            if asked and not self.at[candidate].exclusive:
                continue
            if self.elected < 0 or self.at[candidate].priority > self.at[self.elected].priority:
                self.elected = candidate
        return self.elected != elected

    def _check(self):
        """Assert the invariants of consumer_list.pxd."""
        cdef int32_t slot, index, predicate, total = 0, unmarked = 0
        live = [slot for slot in range(self.slots) if self.at[slot].live]
        assert sorted(self.order[index] for index in range(self.size)) == live
        assert {self.at[slot].id: slot for slot in live} == self.slot_of
        assert self.elected < 0 or self.at[self.elected].live
        opened = [0] * self.predicate_count
        for slot in live:
            assert self.at[slot].open == (
                not self.at[slot].browser and not self.paused and not self.full(slot)
                and self.elected in (-1, slot))
            opened[self.at[slot].predicate] += self.at[slot].open
            total += self.at[slot].open
            assert self.at[slot].filled == (not self.at[slot].browser and self.full(slot))
            assert self.at[slot].filled or not self.at[slot].slow
            unmarked += self.at[slot].filled and not self.at[slot].slow
        assert total == self.open_total
        assert self.unmarked == unmarked
        for predicate in range(self.predicate_count):
            assert self.predicates[predicate].open == opened[predicate]
            bit = (self.open_words[predicate >> 6] >> (predicate & 63)) & 1
            assert bit == (opened[predicate] > 0)
        if self.sorted and self.use_consumer_priority and self.displaced < 0:
            for index in range(1, self.size):
                assert not self.precedes(self.order[index], self.order[index - 1])
