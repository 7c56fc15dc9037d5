"""Rounds of one queue, as org.apache.activemq.broker.region.Queue makes them (spec activemq 2.2-2.8)."""

from cython cimport final
from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from pyengine._engine.lowlevel.memory cimport resize
from pyengine._engine.lowlevel.linked_list cimport Chain, start_chain
from pyengine._engine.activemq.queue.consumer_list cimport ConsumerList
from pyengine._engine.activemq.queue.group_map cimport CACHED
from pyengine._engine.activemq.queue.message_slots cimport IN_FLIGHT, STRANDED, WAITING, Message
from pyengine._engine.activemq.queue.queue_state cimport QueueState
from pyengine._engine.matching.consumer_filter cimport BY_DISPATCH

from pyengine.errors import IllegalStateError

# A round ends after this number of expired messages if more must be read from the store, so that they do not fill the
# memory; the next round continues.
cdef Py_ssize_t EXPIRED_AT_ONCE = 5000


cdef class QueueListener:
    """Internal to a queue; see rounds.pxd."""

    def __reduce__(self):
        raise TypeError("a listener belongs to its queue and cannot be pickled")

    cdef int dispatched(self, QueueState state, int32_t message, int64_t now) except -1:
        return state.rematch(message, BY_DISPATCH) if state.consumers.changing & BY_DISPATCH else 0

    cdef int count_redelivery(self, QueueState state, int32_t message) except -1:
        state.messages.at[message].redeliveries += 1
        return 0

    cdef int read_on(self) except -1:
        raise IllegalStateError("messages are behind the ones that a queue holds, and no owner reads them in")


cdef QueueListener PLAIN = QueueListener()


@final
cdef class Rounds:
    """Internal to a queue; see rounds.pxd."""

    def __cinit__(self):
        self.start_at = -1

    def __dealloc__(self):
        free(self.out)
        free(self.fresh)

    cdef int start_over(self) except -1:
        self.state.refuse_while_asked()
        if self.consumers.vacant_count or self.browsers or self.consumers.targets:
            raise IllegalStateError(
                "a queue that a consumer left, or with browsers or named consumers, is not used for another: make one")
        self.pending.renew()
        self.cursors.renew()
        self.groups.renew()
        self.consumers.renew()
        memset(&self.state.totals, 0, sizeof(self.state.totals))
        self.state.rounds_due = self.consumers.size
        self.state.flagged = self.state.stranded = self.state.next_sequence = self.state.in_flight = self.out_size = 0
        self.echo = self.extra = self.stirred = self.reported = False
        self.first_consumer = self.consumers.size > 0
        self.latch = self.state.consumers_before_dispatch_starts - self.consumers.size if self.first_consumer else 0
        self.start_at = -1
        self.state.transactions = self.state.removed = self.state.failed = None
        return 0

    cdef int keep_handouts(self) except -1:
        cdef int64_t index, kept = 0
        cdef int32_t message
        cdef Handout* handout
        for index in range(self.out_size):
            handout = &self.out[index]
            if not self.consumers.at[handout.slot].live or self.consumers.at[handout.slot].id != handout.consumer:
                continue
            if handout.handle >= 0:
                message = self.state.find(handout.handle)
                if message < 0 or not self.consumers.at[handout.slot].browser and (
                        self.messages.at[message].whereabouts != IN_FLIGHT
                        or self.messages.at[message].consumer != handout.slot):
                    continue
            self.out[kept] = handout[0]
            kept += 1
        self.out_size = kept
        return 0

    cdef bint at_rest(self) noexcept:
        if self.consumers.size == 0:
            return True
        if self.stirred or self.state.rounds_due or self.echo or self.start_at >= 0:
            return False
        return (self.state.page_size >= 0 and self.pending.waiting >= self.state.page_size
                or self.state.lazy_dispatch and self.consumers.free_slots() <= 0)

    cdef bint next_round(self, int64_t now) except -1:
        # After a round without a change the other requested rounds change nothing.
        if self.state.rounds_due <= 0 and not self.echo or not self.round(now):
            return False
        if not self.stirred:
            self.state.rounds_due = 0
            self.echo = False
        return True

    cdef int run_wakeups(self, int64_t now, int64_t limit) except -1:
        self.state.refuse_while_asked()
        while limit != 0 and self.next_round(now):
            limit -= limit > 0
        return 0

    cdef int ask_again(self) except -1:
        # Queue.asyncWakeup from inside iterate(): the task runner notes that it was woken while it ran and runs once
        # more at the end, regardless of the count of pending wakeups.
        self.state.rounds_due += not self.extra
        self.extra = False
        self.echo = True
        return 0

    cdef int enlarge_out(self) except -1:
        self.out = <Handout*> resize(self.out, max(4, 2 * self.out_room) * sizeof(Handout))
        self.out_room = max(4, 2 * self.out_room)
        return 0

    cdef void emit(self, int32_t slot, int32_t message) noexcept nogil:
        cdef Handout* handout = &self.out[self.out_size]
        handout.slot = slot
        handout.consumer = self.consumers.at[slot].id
        handout.message = message
        handout.handle = -1
        handout.sequence = -1
        handout.redeliveries = handout.group_first = 0
        if message >= 0:
            handout.handle = self.messages.handle_of(message)
            handout.sequence = self.messages.at[message].sequence
            handout.redeliveries = self.messages.at[message].redeliveries
            handout.group_first = self.messages.at[message].group_first
        self.out_size += 1

    cdef bint delayed(self, int64_t now) except -1:
        if self.start_at < 0 and self.first_consumer:
            self.first_consumer = False
            if self.state.consumers_before_dispatch_starts > 0:
                self.start_at = now + (self.state.time_before_dispatch_starts or 1000)
            elif self.state.time_before_dispatch_starts > 0:
                self.start_at = now + self.state.time_before_dispatch_starts
        if self.start_at >= 0:
            if now < self.start_at and not (self.state.consumers_before_dispatch_starts > 0 and self.latch <= 0):
                return True
            self.start_at = -1
        return False

    cdef int round(self, int64_t now) except -1:
        # One wakeup; 0 if a start delay holds it back.
        cdef int64_t due = self.state.rounds_due
        cdef bint echo = self.echo, whole = False
        if self.delayed(now):
            return 0
        self.open_round()
        try:
            self.make_round(now)
            whole = True
        finally:
            if not whole:                     # it was interrupted, and is still to be made
                self.state.rounds_due = max(self.state.rounds_due, due)
                self.echo |= echo
        return 1

    cdef int make_round(self, int64_t now) except -1:
        cdef int64_t wanted
        cdef int32_t active
        cdef bint forced
        active = len(self.browsers) if self.browsers else 0
        self.stirred = active > 0 or self.first_consumer      # a start delay may begin at the next round
        forced = active > 0 and self.state.max_browse_page_size != 0
        wanted = self.cursors.stored
        if self.state.page_size >= 0:
            wanted = min(wanted, self.state.page_size)
            if self.state.lazy_dispatch and not forced:
                wanted = min(wanted, self.consumers.free_slots())
        if not (forced or self.consumers.size > active and (
                self.state.page_size < 0 or self.pending.waiting < self.state.page_size)):
            wanted = 0
        self.stirred |= self.serve(wanted, now) > 0
        if active:
            self.browse_round(now)
        return 0

    cdef int64_t serve(self, int64_t wanted, int64_t now) except -1:
        cdef int64_t taken = 0
        self.placed = self.fresh_size = 0
        try:
            if wanted > 0:
                taken = self.page_in(wanted, now)
            self.dispatch(now, taken)
        finally:
            if self.placed < self.fresh_size:
                self.keep_page()
        return taken

    cdef int keep_page(self) except -1:
        self.place_page(self.fresh_size)
        self.groups.now.position = INT64_MAX
        self.stirred = True
        return 0

    cdef void place_page(self, int64_t fresh) noexcept:
        while self.placed < fresh:
            self.pending.wait(self.fresh[self.placed], False, False)
            self.placed += 1

    cdef int64_t page_in(self, int64_t wanted, int64_t now) except -1:
        # Page in to ``fresh`` and return the number; expired messages leave instead.
        cdef int64_t taken = 0
        cdef int32_t message
        if wanted > self.fresh_room:
            self.fresh = <int32_t*> resize(self.fresh, max(8, 2 * wanted) * sizeof(int32_t))
            self.fresh_room = max(8, 2 * wanted)
        self.cursors.begin_page(wanted)
        while taken < wanted:
            if self.behind and not self.cursors.has_unread() and not self.cursors.serves(0):
                if self.state.removed and len(self.state.removed) >= EXPIRED_AT_ONCE:
                    self.state.rounds_due += not self.extra      # this round again
                    self.echo |= self.extra
                    break
                self.state.rounds_due += 1      # if it is interrupted, the round is still due
                self.listener.read_on()
                self.state.rounds_due -= 1
            message = self.cursors.page_in()
            if message < 0:
                break
            self.fresh[taken] = message
            self.fresh_size = taken + 1
            if 0 < self.messages.at[message].expiration < now:
                self.stirred = True
                self.state.note_expired(message)
                self.fresh_size = taken
                self.state.drop_expired(message)
                continue
            taken += 1
        if self.state.prioritized_messages:
            self.sort(taken)
        return taken

    cdef int look_for_expired(self, int64_t now, int64_t limit) except -1:
        # Queue.expireMessages: a page of its own, with or without consumers and start delays, then the waiting
        # messages, in order.
        cdef int tier
        cdef int32_t message, following
        cdef int64_t staying = 0
        self.extra = False
        if self.looks_further(limit):
            self.serve(min(self.cursors.stored, limit), now)
        for tier in range(20):
            message = self.pending.window[tier].first
            while message >= 0 and staying < limit:
                following = self.messages.at[message].next
                if self.messages.at[message].whereabouts == WAITING:
                    if 0 < self.messages.at[message].expiration < now:
                        self.state.note_expired(message)
                        self.pending.withdraw(message)
                        self.state.drop_expired(message)
                    else:
                        staying += 1
                message = following
        if self.state.stranded and staying < limit:
            for _, _, which in self.paged_in():
                message = which
                if staying == limit:
                    break
                if self.messages.at[message].whereabouts == STRANDED and 0 < self.messages.at[message].expiration < now:
                    self.state.note_expired(message)
                    self.state.stranded -= 1
                    self.state.drop_expired(message)
                else:
                    staying += 1
        self.state.rounds_due += 1
        return 0

    cdef bint looks_further(self, int64_t limit) noexcept:
        return 0 < self.cursors.stored and self.pending.waiting + self.state.in_flight + self.state.stranded < limit

    cdef void sort(self, int64_t fresh) noexcept:
        # By priority, each in the order in which they were paged in: of two cursors the second starts again (the
        # broker has a PrioritizedPendingList).
        cdef Chain levels[10]
        cdef int64_t index
        cdef int32_t message
        cdef int level
        for level in range(10):
            start_chain(&levels[level])
        for index in range(fresh):                    # they are in no chain now
            message = self.fresh[index]
            self.messages.link(&levels[9 - self.messages.at[message].priority], message)
        index = 0
        for level in range(10):
            message = levels[level].first
            while message >= 0:
                self.fresh[index] = message
                index += 1
                message = self.messages.at[message].next

    cdef bint idle(self) noexcept:
        return (self.cursors.stored == 0 and self.state.rounds_due == 0 and not self.echo
                and self.consumers.size > 0 and not self.browsers and not self.state.lazy_dispatch
                and self.state.flagged == 0
                and self.consumers.unmarked == 0 and not self.first_consumer and self.start_at < 0
                and not self.ready.lost
                and (self.pending.waiting == 0 or self.pending.waiting < self.state.page_size
                     and not self.state.prioritized_messages and self.ready.next_ready() < 0))

    cdef bint steady(self) noexcept:
        # As long as no consumer's credit changes.
        if (self.state.rounds_due or self.echo or self.browsers or self.first_consumer or self.start_at >= 0
                or self.pending.redelivered or self.ready.lost):
            return False
        if self.cursors.stored or self.behind:
            if self.state.lazy_dispatch or self.state.page_size < 0 or self.pending.waiting < self.state.page_size:
                return False
        return self.pending.waiting == 0 or (
            not self.state.flagged and not self.consumers.unmarked and self.ready.next_ready() < 0)

    cdef bint bypasses(self, int32_t message) noexcept:
        cdef Message* sent = &self.messages.at[message]
        cdef int32_t key = -1, owner = -1
        if self.pending.waiting == 0:
            return True
        if sent.group >= 0:
            key = self.groups.key[sent.group]
            if sent.group_sequence != 1:
                owner = self.groups.owner[key]
            if owner < 0 or sent.group_sequence < 0:     # the group, and with it another one, may change its owner
                if self.pending.awaited(key) or (
                        self.groups.form == CACHED and self.groups.listed >= self.groups.capacity):
                    return False
        if owner >= 0:
            return self.consumers.at[owner].open and self.consumers.matches(sent.match, owner)
        return self.consumers.class_open(sent.match)

    cdef bint pass_through(self, int32_t message, int64_t now, set prompt) except -1:
        # ``accept`` and the rounds that follow, for a message that ``bypasses`` what waits and has not expired. True:
        # its ``consumer``, one of ``prompt`` (None: of all) that stays open all the while, has acknowledged it too, and
        # the message, which was in no chain, is still allotted. False: as after the round that dispatched it, or left
        # it waiting.
        cdef int32_t slot
        cdef int32_t changed[2]
        cdef bint passes, given = False, behind = self.pending.waiting > 0
        self.reserve_out()
        self.state.arrive(message)
        self.open_round()
        self.cursors.page_alone(message)
        self.groups.now.round += 1
        self.groups.now.position = 0
        if behind:                                    # paged in after the others, it waits for the next round
            self.pending.go_behind(message, self.pending.tier(message, False))
            self.ask_again()
            self.open_round()
            self.groups.now.round += 1
            self.groups.now.position = self.messages.at[message].position
        try:
            slot = self.choose(message, changed) if self.consumers.open_total else -1
            passes = (slot >= 0 and not self.consumers.at[slot].extension and not self.consumers.full_with(slot, 1)
                      and (prompt is None or self.consumers.at[slot].id in prompt))
            if slot >= 0 and not passes:
                self.reserve_handout(message, slot, now)
            given = True
        finally:
            if not given:
                self.pending.wait(message, False, False)
                self.groups.now.position = INT64_MAX
                self.state.rounds_due += 1
        self.stirred = not passes
        if passes:
            # It takes a credit and returns it, and no state changes in between.
            self.state.count_dispatch(slot)
            self.take_turns(slot, self.messages.at[message].group >= 0)
            self.state.count_gone(slot)
            self.open_round()                         # requested by the acknowledgement; nothing is left to dispatch
            self.groups.now.round += behind
            self.messages.at[message].consumer = slot
            self.messages.at[message].group_first = 0
        else:
            self.give(message, slot, changed, now)
        self.groups.now.position = INT64_MAX
        return passes

    cdef int dispatch(self, int64_t now, int64_t fresh) except -1:
        cdef int64_t index
        cdef int32_t message, slot
        cdef int32_t changed[2]
        if self.state.prioritized_messages and fresh and self.pending.waiting:
            self.place_page(fresh)
            fresh = 0
        if self.pending.waiting and not self.hop(now):
            return self.strand_page(0, fresh)
        if fresh and self.pending.waiting and self.state.page_size >= 0:
            self.place_page(fresh)
            self.ask_again()
            return 0
        if fresh:
            self.groups.now.round += 1
        for index in range(fresh):
            self.groups.now.position = index
            message = self.fresh[index]
            if self.state.flagged and self.state.raises(message):
                self.strand_page(index, fresh)
                break
            slot = self.choose(message, changed) if self.consumers.open_total else -1
            if self.consumers.unmarked:
                self.consumers.mark_slow(slot)
            if slot >= 0:
                self.reserve_handout(message, slot, now)
            self.placed = index + 1
            self.give(message, slot, changed, now)
        self.groups.now.position = INT64_MAX
        return 0

    cdef int give(self, int32_t message, int32_t slot, int32_t* changed, int64_t now) except -1:
        # Give a paged-in message to the chosen consumer; slot -1: to none.
        if slot < 0:
            self.pending.wait(message, False, False)
            return 0
        self.hand_out(message, slot, now)
        return self.regrouped(changed)

    cdef int hop(self, int64_t now) except -1:
        # From one message that a consumer can take to the next, in order; the others are not visited. 0: a selector
        # raised as the broker's do, and the round ends.
        cdef int32_t message, slot, suspect
        cdef list flagged = self.state.flagged_messages() if self.state.flagged else None
        cdef int64_t looked = -1
        cdef int32_t changed[2]
        self.pending.begin()
        self.groups.now.round += 1
        self.groups.now.position = -1
        try:
            while True:
                message = self.ready.next_ready()
                while flagged:
                    suspect = flagged[len(flagged) - 1]
                    if message >= 0 and self.messages.at[suspect].position > self.messages.at[message].position:
                        break
                    flagged.pop()
                    if self.messages.at[suspect].whereabouts == WAITING and self.state.raises(suspect):
                        return 0
                if self.consumers.unmarked and self.pending.passes(looked, message):
                    self.consumers.mark_slow(-1)
                if message < 0:
                    break
                looked = self.messages.at[message].position
                self.pending.frontier = self.groups.now.position = self.messages.at[message].position
                slot = self.choose(message, changed)
                if self.consumers.unmarked:
                    self.consumers.mark_slow(slot)
                if slot < 0:
                    self.ready.retire(message)
                    continue
                self.reserve_handout(message, slot, now)
                self.pending.withdraw(message)
                self.hand_out(message, slot, now)
                self.regrouped(changed)
                if self.ready.lost:
                    raise MemoryError()
        finally:
            self.groups.now.position = INT64_MAX
            self.pending.finish()
        return 1

    cdef int strand_page(self, int64_t start, int64_t fresh) except -1:
        # The broker's round ends when a selector raises, and its page is in no list any more.
        cdef int64_t index
        for index in range(start, fresh):
            self.messages.at[self.fresh[index]].whereabouts = STRANDED
        self.state.stranded += fresh - start
        self.placed = max(self.placed, fresh)
        self.stirred = True
        return 0

    cdef int regrouped(self, int32_t* changed) except -1:
        if changed[0] >= 0:
            self.pending.regroup(changed[0])
        if changed[1] >= 0:
            self.pending.regroup(changed[1])
        return 0

    cdef int32_t choose(self, int32_t message, int32_t* changed) except -2:
        # The consumer that gets this message now: the literal walk over the list. ``changed``: group keys whose owner
        # it changed.
        cdef Message* sent = &self.messages.at[message]
        cdef int32_t index, slot, owner = -1
        cdef ConsumerList consumers = self.consumers
        self.state.totals.tries += 1
        changed[0] = changed[1] = -1
        if sent.group >= 0 and sent.group_sequence != 1:
            owner = self.groups.owner[self.groups.key[sent.group]]
            if owner >= 0:
                if consumers.at[owner].open and consumers.matches(sent.match, owner):
                    self.groups.touch(sent.group)
                    if sent.group_sequence < 0:
                        changed[0] = self.groups.key[sent.group]
                        self.groups.close(sent.group, owner)
                    return owner
                if self.state.page_size >= 0 and consumers.class_open(sent.match):
                    self.groups.touch(sent.group)
                return -1
        for index in range(consumers.size):
            slot = consumers.order[index]
            if consumers.at[slot].open and consumers.matches(sent.match, slot):
                if sent.group >= 0:
                    if not consumers.counts_matter:
                        consumers.counts_matter = True
                        consumers.sorted = False
                    changed[0] = self.groups.key[sent.group]
                    if (self.groups.watched and owner < 0 and self.groups.listed >= self.groups.capacity
                            and self.groups.owner[changed[0]] < 0):
                        self.pending.settle_eldest()
                    changed[1] = self.groups.assign(sent.group, slot)
                    if changed[1] >= 0:
                        consumers.displace(self.groups.loser)
                    sent.group_first = 1
                return slot
        return -1

    cdef int reserve_handout(self, int32_t message, int32_t slot, int64_t now) except -1:
        if 0 < self.messages.at[message].expiration < now:
            return self.state.note_expired(message)
        self.reserve_out()
        return self.consumers.reserve_walks(slot) if self.groups.watched else 0

    cdef int hand_out(self, int32_t message, int32_t slot, int64_t now) except -1:
        # The subscription takes it (and drops an expired one), then the consumer moves to the end of the list.
        cdef Message* sent = &self.messages.at[message]
        cdef bint grouped = sent.group >= 0, expired = 0 < sent.expiration < now
        self.stirred = True
        if expired:
            self.consumers.at[slot].enqueued += 1
            self.state.drop_expired(message)
        else:
            sent.whereabouts = IN_FLIGHT
            sent.consumer = slot
            self.messages.link(&self.consumers.at[slot].held, message)
            self.state.in_flight += 1
            self.state.count_dispatch(slot)
            if self.consumers.at[slot].prefetch == 0:
                self.consumers.at[slot].extension = max(0, self.consumers.at[slot].extension - 1)
            self.emit(slot, message)
            self.state.refresh(slot)
        self.take_turns(slot, grouped)
        return 0 if expired else self.listener.dispatched(self.state, message, now)

    cdef void take_turns(self, int32_t slot, bint grouped) noexcept:
        if not self.state.strict_order_dispatch and self.consumers.size > 1 and self.consumers.elected != slot:
            self.consumers.rotate(slot)
        elif grouped:
            self.consumers.sorted = False

    cdef list paged_in(self):
        # Paged-in and unacknowledged messages, in the order of the broker's list: (priority, page-in number, slot).
        cdef int32_t message
        cdef list found = []
        for message in range(self.messages.slots):
            if (self.messages.at[message].whereabouts in (WAITING, IN_FLIGHT, STRANDED)
                    and self.messages.at[message].paged >= 0 and not self.messages.at[message].acknowledged):
                found.append((9 - self.messages.at[message].priority if self.state.prioritized_messages else 0,
                              self.messages.at[message].paged, message))
        found.sort()
        return found

    cdef int browse_round(self, int64_t now) except -1:
        cdef int32_t slot, message
        cdef bint added
        cdef list candidates = self.paged_in()
        for number in list(self.browsers):
            slot = number
            added = False
            audit = self.browsed[slot]
            for _, page, which in candidates:
                message = which
                if page in audit:
                    continue
                self.reserve_out()
                audit.add(page)
                if self.browsed_enough(slot):
                    continue
                if self.consumers.matches(self.messages.at[message].match, slot):
                    self.state.count_dispatch(slot)
                    self.emit(slot, message)
                    added = True
                    self.listener.dispatched(self.state, message, now)
            if not added or self.browsed_enough(slot):
                self.reserve_out()
                self.browsers.remove(number)
                self.emit(slot, -1)
            else:
                self.ask_again()
        return 0

    cdef bint browsed_enough(self, int32_t slot) except -1:
        return self.consumers.at[slot].browse_limit and (
            self.consumers.at[slot].enqueued >= self.consumers.at[slot].browse_limit)

    cdef int end_pull(self, int32_t slot) except -1:
        self.reserve_out()
        self.consumers.at[slot].extension = 0
        self.state.refresh(slot)
        self.emit(slot, -1)
        return 0


cdef Rounds rounds_of(QueueState state):
    cdef Rounds rounds = Rounds.__new__(Rounds)
    rounds.state = state
    rounds.listener = PLAIN
    rounds.messages = state.messages
    rounds.cursors = state.cursors
    rounds.ready = state.ready
    rounds.pending = state.pending
    rounds.consumers = state.consumers
    rounds.groups = state.groups
    return rounds
