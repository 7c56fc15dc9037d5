"""Rounds of one point-to-point queue, as org.apache.activemq.broker.region.Queue makes them (spec activemq section 2)."""

from collections.abc import Mapping

import numpy as np

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, realloc

from pyengine._engine.consumers cimport ConsumerList
from pyengine._engine.groups cimport GroupMap
from pyengine._engine.pending cimport IN_DOUBT, IN_FLIGHT, NOWHERE, REMOVED, STORED, WAITING, Message, Pending
from pyengine._engine.selector cimport Selector
from pyengine._engine.value cimport RAISED, TRUE

from pyengine.errors import IllegalStateError, InvalidMessageError, InvalidTopologyError, SelectorEvaluationError

cdef object ABSENT = object()


def _whole(str field, object value, object low, object high):
    """A number of a setting, or InvalidTopologyError naming it."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidTopologyError(f"must be a whole number from {low} to {high}", key=field, value=value)
    return value


cdef class Delivery:
    """One message handed to one consumer. ``message`` is its handle, or None for the null dispatch that ends a pull;
    ``body`` what was sent; ``redeliveries`` the broker's counter; ``group_first`` JMSXGroupFirstForConsumer."""

    def __init__(self, consumer, message, body, redeliveries, group_first):
        self.consumer = consumer
        self.message = message
        self.body = body
        self.redeliveries = redeliveries
        self.group_first = group_first

    def __repr__(self):
        return (f"Delivery(consumer={self.consumer}, message={self.message}, body={self.body!r}, "
                f"redeliveries={self.redeliveries}, group_first={self.group_first})")

    def __reduce__(self):
        return Delivery, (self.consumer, self.message, self.body, self.redeliveries, self.group_first)


cdef class Queue:
    """One queue of a broker: who gets which message, in which order, and why the rest waits.

    Settings are the broker's policyEntry attributes with its defaults (spec activemq 4.5). ``max_page_size=None`` removes
    the paging window, and with it starvation behind messages nobody takes. ``max_browse_page_size=None`` is the broker
    without a matching policyEntry: browsers see everything. Nothing happens by itself: events ask for wakeups, and ``run``
    makes the rounds. Raises InvalidTopologyError for a setting out of range.
    """

    def __cinit__(self, *, object max_page_size=200, object max_browse_page_size=400, bint use_consumer_priority=True,
                  bint strict_order_dispatch=False, bint prioritized_messages=False, bint lazy_dispatch=False,
                  bint use_prefetch_extension=True, bint all_consumers_exclusive_by_default=False,
                  str message_group_map_factory_type not None="cached", object consumers_before_dispatch_starts=0,
                  object time_before_dispatch_starts=0):
        self.max_page_size = max_page_size
        self.page_size = -1 if max_page_size is None else _whole("maxPageSize", max_page_size, 1, 2**31 - 1)
        self.max_browse_page_size = max_browse_page_size
        if max_browse_page_size is not None:
            _whole("maxBrowsePageSize", max_browse_page_size, 0, 2**31 - 1)
        self.strict_order_dispatch = strict_order_dispatch
        self.prioritized_messages = prioritized_messages
        self.lazy_dispatch = lazy_dispatch
        self.consumers_before_dispatch_starts = _whole(
            "consumersBeforeDispatchStarts", consumers_before_dispatch_starts, 0, 2**31 - 1)
        self.time_before_dispatch_starts = _whole(
            "timeBeforeDispatchStarts", time_before_dispatch_starts, 0, 2**31 - 1)
        self.groups = GroupMap(message_group_map_factory_type)
        self.consumers = ConsumerList(
            self.groups, use_consumer_priority, use_prefetch_extension, all_consumers_exclusive_by_default)
        self.pending = Pending(self.consumers, self.groups, prioritized_messages)
        self.connections = {}
        self.transactions = {}
        self.browsers = []
        self.browsed = {}
        self.removed = []
        self.start_at = -1

    def __dealloc__(self):
        free(self.out)
        free(self.fresh)

    # Consumers

    def add_consumer(self, *, object selector=None, bint exclusive=False, object priority=0, object prefetch=1000,
                     bint no_local=False, object connection=None, object name=None, bint browser=False):
        """Add a consumer and ask for a wakeup; return its id (0, 1, ... in order of arrival, never used again).

        selector: None, a Selector, or any callable from the sent object to bool; equal selectors are asked once per
        message. priority: -128..127. prefetch: messages it may hold unacknowledged; 0 pulls. no_local: refuse messages
        sent on the same ``connection`` (any hashable). name: what messages sent with ``target`` mean.
        """
        cdef int32_t slot, number = -1
        _whole("consumer.priority", priority, -128, 127)
        _whole("consumer.prefetchSize", prefetch, -(2**31), 2**31 - 1)
        if connection is not None:
            number = self.connections.setdefault(connection, len(self.connections))
        elif no_local:
            raise InvalidTopologyError("noLocal needs the consumer's connection", key="consumer.noLocal", value=True)
        slot = self.join(selector, number, no_local)
        self.consumers.at[slot].priority = priority
        self.consumers.at[slot].prefetch = prefetch
        self.consumers.at[slot].exclusive = exclusive
        self.consumers.at[slot].browser = browser
        if name is not None:
            self.name_consumer(slot, name)
        if self.consumers.size == 0:
            self.first_consumer = True
            self.latch = self.consumers_before_dispatch_starts - 1
        else:
            self.latch -= 1
        self.consumers.append(slot)
        if self.consumers.elect_on_join(slot):
            self.reopen()
        elif self.consumers.refresh(slot) > 0:
            self.pending.wake(slot)
        if browser:
            self.browsers.append(slot)
            self.browsed[slot] = set()
        self.rounds_due += 1
        return self.consumers.at[slot].id

    cdef int32_t join(self, object selector, int32_t connection, bint no_local) except -1:
        # A question nobody asked before is put to every message here, once.
        cdef int32_t predicate, message
        cdef Message* at = self.pending.at
        cdef dict moved = {}
        cdef object asked = (selector, connection if no_local else -1)
        cdef bint known = any(
            [self.consumers.questions[index] == asked and self.consumers.predicates[<int32_t> index].users > 0
             for index in range(self.consumers.predicate_count)])
        cdef list matching = []
        if not known:
            for message in range(self.pending.slots):
                if at[message].whereabouts != NOWHERE:
                    if selector is not None and at[message].body == NULL:
                        raise IllegalStateError(
                            "a new selector cannot be asked of messages that wait without their objects; "
                            "add every consumer before offer_batch, or give it the messages")
                    if self.ask(message, selector, connection if no_local else -1):
                        matching.append(message)
        cdef int32_t slot = self.consumers.join(selector, connection, no_local)
        predicate = self.consumers.at[slot].predicate
        for number in matching:
            message = number
            if at[message].match not in moved:
                moved[at[message].match] = self.consumers.class_for(
                    self.consumers.bits_of(at[message].match) | (1 << predicate),
                    self.consumers.classes[at[message].match].target)
            self.reclass(message, moved[at[message].match])
        return slot

    cdef int reclass(self, int32_t message, int32_t match) except -1:
        cdef Message* at = self.pending.at
        if at[message].bucket >= 0:
            self.pending.unindex(message)
            at[message].match = match
            self.pending.index(message)
        else:
            at[message].match = match
        return 0

    cdef int name_consumer(self, int32_t slot, object name) except -1:
        cdef int32_t number = self.consumers.target_number(name), match
        for match in range(self.consumers.slots):
            if self.consumers.at[match].live and self.consumers.at[match].target == number:
                self.consumers.at[slot].live = 0
                raise InvalidTopologyError("another consumer of this queue has that name", key="name", value=name)
        self.consumers.at[slot].target = number
        for match in range(self.consumers.class_count):
            if self.consumers.classes[match].target == number:
                self.consumers.classes[match].target_slot = slot
        return 0

    cdef bint ask(self, int32_t message, object selector, int32_t connection) except -1:
        cdef Message* it = &self.pending.at[message]
        cdef int outcome
        if connection >= 0 and it.connection == connection:
            return False
        if selector is None:
            return True
        body = <object> it.body if it.body != NULL else None
        if isinstance(selector, Selector):
            outcome = (<Selector> selector).outcome(body)
            if outcome == RAISED:
                self.totals.selector_errors += 1
                self.pending.at[message].errors = 1
            return outcome == TRUE
        try:
            if callable(selector):
                return bool(selector(body))
            return bool(selector.matches(body))
        except SelectorEvaluationError:
            self.totals.selector_errors += 1
            self.pending.at[message].errors = 1
            return False

    cdef int reopen(self) except -1:
        cdef int32_t slot
        self.consumers.refresh_all()
        for slot in range(self.consumers.slots):
            if self.consumers.at[slot].open:
                self.pending.wake(slot)
        return 0

    cdef int refresh(self, int32_t slot) except -1:
        if self.consumers.refresh(slot) > 0:
            self.pending.wake(slot)
        return 0

    cdef int32_t slot_of(self, object consumer) except -1:
        found = self.consumers.slot_of.get(consumer)
        if found is None:
            raise IllegalStateError(f"consumer {consumer!r} is not on this queue; it was closed or never added")
        return found

    cdef int32_t find(self, object handle) except -2:
        cdef int64_t number = handle
        cdef int32_t message = <int32_t> (number & 0xFFFFFFFF)
        if (number < 0 or message >= self.pending.slots or self.pending.at[message].whereabouts == NOWHERE
                or self.pending.at[message].generation != number >> 32):
            return -1
        return message

    cdef int32_t message_of(self, object handle) except -1:
        cdef int32_t message = self.find(handle)
        if message < 0:
            raise IllegalStateError(f"message {handle!r} is not here; it was acknowledged, removed or never sent")
        return message

    cdef object handle_of(self, int32_t message):
        return (<int64_t> self.pending.at[message].generation << 32) | message

    def close(self, consumer, *, last_delivered=None, bint lost=False, int64_t now=0):
        """Remove a consumer: its groups are free, its unacknowledged messages go first to the others, at once.

        last_delivered: the last message the client reports as delivered; redelivery counters of the messages up to it go up
        if it is still unacknowledged. lost: the connection broke and reports nothing, every counter goes up. Returns the
        deliveries made at once (ActiveMQ's removeSubscription); a wakeup is asked for too.
        """
        cdef int32_t slot = self.slot_of(consumer), message, mark = -1, first
        cdef bint counting = False, ahead
        cdef list unacknowledged = [], kept = []
        cdef Message* at = self.pending.at
        if last_delivered is not None:
            # A message that is acknowledged by now counts for nothing, and its handle may be stale.
            message = self.find(last_delivered)
            if message >= 0 and at[message].consumer == slot:
                mark = message
                counting = True
        self.consumers.withdraw(slot)
        self.consumers.at[slot].live = 0
        self.consumers.refresh(slot)
        if self.consumers.elect_on_leave(slot):
            self.reopen()
        if not self.consumers.counts_matter:
            self.consumers.counts_matter = True
            self.consumers.sorted = False
        for key in self.groups.drop_consumer(slot):
            self.pending.regroup(key)
        message = self.consumers.at[slot].held.first
        while message >= 0:
            unacknowledged.append(message)
            message = at[message].next
        for number in unacknowledged:
            message = number
            self.pending.unlink(&self.consumers.at[slot].held, message)
            if at[message].whereabouts == REMOVED:
                self.pending.discard(message)
                continue
            self.in_flight -= 1
            if lost or counting:
                at[message].redeliveries += 1
            if message == mark:
                counting = False
            kept.append(message)
        ahead = False
        if self.strict_order_dispatch and self.consumers.size == 0 and kept and self.pending.redelivered \
                and not self.prioritized_messages:
            first = self.pending.window[0].first
            ahead = at[first].sequence > at[<int32_t> kept[len(kept) - 1]].sequence
        for number in reversed(kept) if ahead else kept:
            self.pending.wait(number, True, ahead)
        if self.consumers.at[slot].browser:
            self.browsed.pop(slot, None)
            if slot in self.browsers:
                self.browsers.remove(slot)
        self.consumers.leave(slot)
        self.rounds_due += 1
        self.out_size = 0
        if self.pending.redelivered:
            self.dispatch(now)
        return self.take_out()

    # Messages

    def send(self, object message=None, *, object group=ABSENT, object group_sequence=ABSENT, object priority=ABSENT,
             object expiration=ABSENT, object connection=None, object target=None):
        """Put a message on the queue and ask for a wakeup; return its handle.

        message: what the selectors are asked about and what is handed out, any object. What is not given as a keyword is
        read from a mapping's JMSXGroupID, JMSXGroupSeq, JMSPriority (4), JMSExpiration (0: never). connection: the
        producer's, for noLocal. target: name of the only consumer that may have it.
        """
        cdef int32_t number, match
        cdef Message* it
        if group is ABSENT or group_sequence is ABSENT or priority is ABSENT or expiration is ABSENT:
            if isinstance(message, Mapping):
                group = message.get("JMSXGroupID") if group is ABSENT else group
                group_sequence = message.get("JMSXGroupSeq") if group_sequence is ABSENT else group_sequence
                priority = message.get("JMSPriority") if priority is ABSENT else priority
                expiration = message.get("JMSExpiration") if expiration is ABSENT else expiration
        group = None if group is ABSENT else group
        group_sequence = 0 if group_sequence is ABSENT or group_sequence is None else group_sequence
        priority = 4 if priority is ABSENT or priority is None else priority
        expiration = 0 if expiration is ABSENT or expiration is None else expiration
        for field, value, low, high in (
                ("JMSXGroupSeq", group_sequence, -(2**31), 2**31 - 1), ("JMSPriority", priority, 0, 9),
                ("JMSExpiration", expiration, 0, 2**63 - 1)):
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise InvalidMessageError(field, value, f"must be a whole number from {low} to {high}")
        if group is not None and not isinstance(group, str):
            raise InvalidMessageError("JMSXGroupID", group, "must be a string")
        number = self.pending.allot()
        it = &self.pending.at[number]
        it.group = -1 if group is None else self.groups.intern(group)
        it.group_sequence = group_sequence
        it.priority = priority
        it.expiration = expiration
        it.connection = -1
        if connection is not None:
            it.connection = self.connections.setdefault(connection, len(self.connections))
        if message is not None:
            Py_INCREF(message)
            it.body = <PyObject*> message
        it.whereabouts = STORED
        bits = 1
        for index in range(1, self.consumers.predicate_count):
            question = self.consumers.questions[index]
            if question is not None and self.ask(number, question[0], question[1]):
                bits |= 1 << index
        match = self.consumers.class_for(bits, -1 if target is None else self.consumers.target_number(target))
        self.pending.at[number].match = match
        self.accept(number)
        return self.handle_of(number)

    cdef int accept(self, int32_t message) except -1:
        self.pending.at[message].sequence = self.next_sequence
        self.next_sequence += 1
        self.totals.enqueues += 1
        self.pending.store(message)
        self.rounds_due += 1
        return 0

    # Rounds

    def run(self, int64_t now=0):
        """Make one round for each wakeup asked for, also for those the rounds ask for; return the deliveries in order.

        now: ms, for expiry and the start delay. While a start delay runs nothing happens; ``starts_at`` says until when.
        """
        self.out_size = 0
        self.run_wakeups(now)
        return self.take_out()

    cdef int run_wakeups(self, int64_t now) except -1:
        while self.rounds_due > 0:
            if not self.round(now):
                break
        return 0

    cdef list take_out(self):
        cdef int64_t index
        cdef list result = []
        cdef Handout* it
        for index in range(self.out_size):
            it = &self.out[index]
            body = None
            if it.handle >= 0 and self.pending.at[it.message].body != NULL:
                body = <object> self.pending.at[it.message].body
            result.append(Delivery(
                it.consumer, it.handle if it.handle >= 0 else None, body, it.redeliveries, it.group_first))
        self.out_size = 0
        return result

    cdef int emit(self, int32_t slot, int32_t message) except -1:
        cdef Handout* larger
        cdef Handout* it
        if self.out_size == self.out_room:
            larger = <Handout*> realloc(self.out, max(64, 2 * self.out_room) * sizeof(Handout))
            if larger == NULL:
                raise MemoryError()
            self.out = larger
            self.out_room = max(64, 2 * self.out_room)
        it = &self.out[self.out_size]
        it.slot = slot
        it.consumer = self.consumers.at[slot].id
        it.message = message
        it.handle = -1
        it.sequence = -1
        it.redeliveries = it.group_first = 0
        if message >= 0:
            it.handle = (<int64_t> self.pending.at[message].generation << 32) | message
            it.sequence = self.pending.at[message].sequence
            it.redeliveries = self.pending.at[message].redeliveries
            it.group_first = self.pending.at[message].group_first
        self.out_size += 1
        return 0

    cdef bint delayed(self, int64_t now) except -1:
        if self.start_at < 0 and self.first_consumer:
            self.first_consumer = False
            if self.consumers_before_dispatch_starts > 0:
                self.start_at = now + (self.time_before_dispatch_starts or 1000)
            elif self.time_before_dispatch_starts > 0:
                self.start_at = now + self.time_before_dispatch_starts
        if self.start_at >= 0:
            if now < self.start_at and not (self.consumers_before_dispatch_starts > 0 and self.latch <= 0):
                return True
            self.start_at = -1
        return False

    cdef int round(self, int64_t now) except -1:
        # One wakeup; 0 if a start delay holds it back.
        cdef int64_t wanted, taken = 0
        cdef int32_t message, active
        cdef bint forced
        cdef int32_t* larger
        if self.delayed(now):
            return 0
        self.rounds_due -= self.rounds_due > 0
        self.totals.rounds += 1
        active = len(self.browsers)
        forced = active > 0 and self.max_browse_page_size != 0
        wanted = self.pending.stored
        if self.page_size >= 0:
            wanted = min(wanted, self.page_size)
            if self.lazy_dispatch and not forced:
                wanted = min(wanted, self.consumers.free_slots())
        if wanted > 0 and (forced or self.consumers.size > active and (
                self.page_size < 0 or self.pending.waiting < self.page_size)):
            if wanted > self.fresh_room:
                larger = <int32_t*> realloc(self.fresh, max(256, 2 * wanted) * sizeof(int32_t))
                if larger == NULL:
                    raise MemoryError()
                self.fresh = larger
                self.fresh_room = max(256, 2 * wanted)
            while taken < wanted:
                message = self.pending.page_in()
                if message < 0:
                    break
                if 0 < self.pending.at[message].expiration < now:
                    self.expire_message(message)
                    continue
                self.fresh[taken] = message
                taken += 1
        self.dispatch_with(now, taken)
        if active:
            self.browse_round()
        return 1

    cdef int dispatch(self, int64_t now) except -1:
        return self.dispatch_with(now, 0)

    cdef int dispatch_with(self, int64_t now, int64_t fresh) except -1:
        cdef int64_t index
        cdef int32_t message, slot
        cdef int32_t changed[2]
        if self.prioritized_messages and fresh and self.pending.waiting:
            for index in range(fresh):
                self.pending.wait(self.fresh[index], False, False)
            fresh = 0
        if self.pending.waiting:
            if self.page_size >= 0 and self.groups.accesses_count():
                self.walk(now)
            else:
                self.hop(now)
        if fresh and self.pending.waiting and self.page_size >= 0:
            for index in range(fresh):
                self.pending.wait(self.fresh[index], False, False)
            self.rounds_due += 1
            return 0
        for index in range(fresh):
            message = self.fresh[index]
            slot = self.choose(message, changed) if self.consumers.open_total else -1
            if slot >= 0:
                self.hand_out(message, slot, now)
                self.regrouped(changed)
            else:
                self.pending.wait(message, False, False)
        return 0

    cdef int hop(self, int64_t now) except -1:
        # From one message somebody can take to the next, in order; what nobody can take is not looked at.
        cdef int32_t message, slot
        cdef int32_t changed[2]
        self.pending.begin()
        try:
            while True:
                message = self.pending.next_ready()
                if message < 0:
                    break
                self.pending.frontier = self.pending.at[message].position
                slot = self.choose(message, changed)
                if slot < 0:
                    self.pending.retire(message)
                    continue
                self.pending.withdraw(message)
                self.hand_out(message, slot, now)
                self.regrouped(changed)
        finally:
            self.pending.finish()
        return 0

    cdef int walk(self, int64_t now) except -1:
        # The window message by message. At capacity a cached group map remembers who was asked about, so held messages count.
        cdef int tier
        cdef int32_t message, after, slot
        cdef int32_t changed[2]
        for tier in range(20):
            message = self.pending.window[tier].first
            while message >= 0 and self.consumers.open_total:
                after = self.pending.at[message].next
                if self.pending.at[message].whereabouts == WAITING:
                    slot = self.choose(message, changed)
                    if slot >= 0:
                        self.pending.withdraw(message)
                        self.hand_out(message, slot, now)
                        self.regrouped(changed)
                message = after
        return 0

    cdef int regrouped(self, int32_t* changed) except -1:
        if changed[0] >= 0:
            self.pending.regroup(changed[0])
        if changed[1] >= 0:
            self.pending.regroup(changed[1])
        return 0

    cdef int32_t choose(self, int32_t message, int32_t* changed) except -2:
        # Who gets this message now: the one literal try. ``changed``: group keys whose owner it changed.
        cdef Message* it = &self.pending.at[message]
        cdef int32_t index, slot, owner = -1
        cdef ConsumerList consumers = self.consumers
        self.totals.tries += 1
        changed[0] = changed[1] = -1
        if it.group >= 0 and it.group_sequence != 1:
            owner = self.groups.owner[self.groups.key[it.group]]
            if owner >= 0:
                if consumers.at[owner].open and consumers.matches(it.match, owner):
                    self.groups.touch(it.group)
                    if it.group_sequence < 0:
                        changed[0] = self.groups.key[it.group]
                        self.groups.close(it.group, owner)
                    return owner
                if self.page_size >= 0 and consumers.class_open(it.match):
                    self.groups.touch(it.group)
                return -1
        for index in range(consumers.size):
            slot = consumers.order[index]
            if consumers.at[slot].open and consumers.matches(it.match, slot):
                if it.group >= 0:
                    if not consumers.counts_matter:
                        consumers.counts_matter = True
                        consumers.sorted = False
                    changed[0] = self.groups.key[it.group]
                    changed[1] = self.groups.assign(it.group, slot)
                    if changed[1] >= 0:
                        consumers.sorted = False
                    it.group_first = 1
                return slot
        return -1

    cdef int hand_out(self, int32_t message, int32_t slot, int64_t now) except -1:
        # The subscription takes it (an expired one it drops), then the consumer goes to the end of the list.
        cdef Message* it = &self.pending.at[message]
        cdef bint grouped = it.group >= 0
        self.consumers.at[slot].enqueued += 1
        if 0 < it.expiration < now:
            self.expire_message(message)
        else:
            it.whereabouts = IN_FLIGHT
            it.consumer = slot
            self.pending.link(&self.consumers.at[slot].held, message)
            self.consumers.at[slot].dispatched += 1
            self.in_flight += 1
            self.totals.dispatched += 1
            if self.consumers.at[slot].prefetch == 0:
                self.consumers.at[slot].extension = max(0, self.consumers.at[slot].extension - 1)
            self.emit(slot, message)
            self.refresh(slot)
        if not self.strict_order_dispatch and self.consumers.size > 1 and self.consumers.elected != slot:
            self.consumers.rotate(slot)
        elif grouped:
            self.consumers.sorted = False
        return 0

    cdef int expire_message(self, int32_t message) except -1:
        self.totals.expired += 1
        self.totals.dequeues += 1
        self.removed.append((self.handle_of(message), "expired"))
        self.pending.discard(message)
        return 0

    cdef int browse_round(self) except -1:
        cdef int32_t slot, message
        cdef bint added
        cdef list seen = []
        for message in range(self.pending.slots):
            if (self.pending.at[message].whereabouts in (WAITING, IN_FLIGHT) and self.pending.at[message].paged >= 0
                    and not self.pending.at[message].acknowledged):
                seen.append((9 - self.pending.at[message].priority if self.prioritized_messages else 0,
                             self.pending.at[message].paged, message))
        seen.sort()
        for number in list(self.browsers):
            slot = number
            added = False
            audit = self.browsed[slot]
            for _, page, which in seen:
                message = which
                if page in audit:
                    continue
                audit.add(page)
                if self.browsed_enough(slot):
                    continue
                if self.consumers.matches(self.pending.at[message].match, slot):
                    self.consumers.at[slot].enqueued += 1
                    self.emit(slot, message)
                    added = True
            if not added or self.browsed_enough(slot):
                self.browsers.remove(slot)
                self.emit(slot, -1)
            else:
                self.rounds_due += 1
        return 0

    cdef bint browsed_enough(self, int32_t slot) except -1:
        limit = self.max_browse_page_size
        return limit is not None and limit > 0 and self.consumers.at[slot].enqueued >= limit

    # Acknowledgements

    def acknowledge(self, consumer, last, *, kind=AckKind.INDIVIDUAL, first=None, int64_t count=1, transaction=None):
        """A client's acknowledgement; asks for wakeups.

        last: handle. kind: INDIVIDUAL acknowledges it alone; STANDARD everything from ``first`` (None: the oldest the consumer
        holds) to it in dispatch order; POISON and EXPIRED take the same range off the queue for another reason; DELIVERED
        acknowledges nothing and widens the prefetch window by ``count``. transaction: any hashable; what is acknowledged in
        it stays in flight until ``commit``. Raises IllegalStateError for a message the consumer does not hold.
        """
        cdef int32_t slot = self.slot_of(consumer), end = self.message_of(last), start, message
        cdef list chosen = []
        if self.pending.at[end].consumer != slot or self.pending.at[end].acknowledged:
            raise IllegalStateError(f"consumer {consumer!r} does not hold message {last!r}, or acknowledged it before")
        if kind == AckKind.DELIVERED:
            self.consumers.expand(slot, count)
            self.refresh(slot)
            self.rounds_due += 2
            return
        if kind == AckKind.INDIVIDUAL:
            chosen.append(end)
        else:
            start = self.consumers.at[slot].held.first if first is None else self.message_of(first)
            message = start
            while message >= 0:
                chosen.append(message)
                if message == end:
                    break
                message = self.pending.at[message].next
            if message < 0 or self.pending.at[start].consumer != slot:
                raise IllegalStateError(f"message {first!r} does not come before {last!r} at consumer {consumer!r}")
        if transaction is not None:
            if kind == AckKind.POISON:
                raise IllegalStateError("a poison acknowledgement cannot be part of a transaction")
            for number in chosen:
                message = number
                if not self.pending.at[message].acknowledged:
                    self.pending.at[message].acknowledged = 1
                    self.transactions.setdefault(transaction, []).append((self.handle_of(message), consumer))
            if kind == AckKind.INDIVIDUAL:
                self.consumers.expand(slot, 1)
        else:
            for number in chosen:
                message = number
                if kind in (AckKind.POISON, AckKind.EXPIRED):
                    self.removed.append((self.handle_of(message), "poison" if kind == AckKind.POISON else "expired"))
                    self.totals.expired += kind == AckKind.EXPIRED
                self.complete(slot, message)
            self.consumers.contract(slot, len(chosen) if kind in (AckKind.INDIVIDUAL, AckKind.STANDARD) else 1)
        self.refresh(slot)
        self.rounds_due += 2

    cdef int complete(self, int32_t slot, int32_t message) except -1:
        self.pending.unlink(&self.consumers.at[slot].held, message)
        self.consumers.at[slot].dequeued += 1
        if self.pending.at[message].whereabouts == IN_FLIGHT:
            self.in_flight -= 1
            self.totals.dequeues += 1
        self.pending.discard(message)
        return 0

    def commit(self, transaction):
        """Acknowledge for good what was acknowledged in a transaction; two wakeups a message."""
        cdef int32_t message, slot
        for handle, consumer in self.transactions.pop(transaction, ()):
            message = self.find(handle)
            found = self.consumers.slot_of.get(consumer)
            if message >= 0 and self.pending.at[message].whereabouts == IN_DOUBT:
                self.pending.withdraw(message)
                self.totals.dequeues += 1
                self.pending.discard(message)
            elif message >= 0:
                self.complete(found, message)
            if found is not None:
                slot = found
                self.consumers.contract(slot, 1)
                self.refresh(slot)
            self.rounds_due += 2

    def rollback(self, transaction):
        """Take back what was acknowledged in a transaction: the messages are unacknowledged again, where they are."""
        cdef int32_t message, slot
        for handle, consumer in self.transactions.pop(transaction, ()):
            message = self.find(handle)
            if message >= 0:
                self.pending.at[message].acknowledged = 0
                if self.pending.at[message].whereabouts == IN_DOUBT:
                    self.pending.at[message].whereabouts = WAITING
                    self.pending.index(message)
            found = self.consumers.slot_of.get(consumer)
            if found is not None:
                slot = found
                self.consumers.contract(slot, 1)
                self.refresh(slot)
            self.rounds_due += 1

    def pull(self, consumer, *, int64_t quantity=1, int64_t timeout=0, int64_t now=0):
        """A consumer with prefetch 0 asks for messages: one round, at once; return its deliveries.

        timeout: -1 ends with the null dispatch (message None) if there is nothing; 0 keeps the credit until something comes;
        above 0 the caller calls ``pull_timeout`` when these ms have passed. Other consumers are not affected by the call.
        """
        cdef int32_t slot = self.slot_of(consumer)
        self.out_size = 0
        if self.consumers.at[slot].prefetch == 0:
            self.consumers.at[slot].extension = quantity
            self.refresh(slot)
            self.consumers.at[slot].pull_mark = self.consumers.at[slot].dispatched
            self.round(now)
            if timeout == -1 and self.consumers.at[slot].dispatched == self.consumers.at[slot].pull_mark:
                self.end_pull(slot)
        return self.take_out()

    def pull_timeout(self, consumer):
        """The time of the last pull has passed: the null dispatch and no credit, unless something was handed out since."""
        cdef int32_t slot = self.slot_of(consumer)
        self.out_size = 0
        if self.consumers.at[slot].prefetch == 0 and (
                self.consumers.at[slot].dispatched == self.consumers.at[slot].pull_mark):
            self.end_pull(slot)
        return self.take_out()

    cdef int end_pull(self, int32_t slot) except -1:
        self.consumers.at[slot].extension = 0
        self.refresh(slot)
        return self.emit(slot, -1)

    # Administration

    def wakeup(self):
        """Ask for one more round."""
        self.rounds_due += 1

    def pause(self):
        """Stop handing out; messages are still paged in."""
        self.consumers.paused = True
        self.reopen()

    def resume(self):
        """Hand out again; asks for a wakeup."""
        self.consumers.paused = False
        self.reopen()
        self.rounds_due += 1

    cdef int take_off(self, int32_t message) except -1:
        cdef int where = self.pending.at[message].whereabouts
        if where in (WAITING, IN_DOUBT):
            self.pending.withdraw(message)
        elif where == STORED:
            self.pending.unlink(
                &self.pending.cursor[9 - self.pending.at[message].priority if self.prioritized_messages else 0], message)
            self.pending.stored -= 1
        elif where == IN_FLIGHT:
            self.pending.at[message].whereabouts = REMOVED
            self.in_flight -= 1
            self.totals.dequeues += 1
            return 0
        else:
            return 0
        self.totals.dequeues += 1
        return self.pending.discard(message)

    def remove_message(self, handle):
        """Take one message off the queue. One in flight keeps its place in the consumer's window until acknowledged."""
        self.take_off(self.message_of(handle))

    def purge(self):
        """Take every message off the queue, also those in flight; return how many."""
        cdef int32_t message
        cdef int64_t before = self.totals.dequeues
        for message in range(self.pending.slots):
            if self.pending.at[message].whereabouts in (WAITING, IN_DOUBT, STORED, IN_FLIGHT):
                self.take_off(message)
        return self.totals.dequeues - before

    def expire(self, int64_t now):
        """Take off what expired before ``now`` and is not in flight; return how many (the broker's periodic scan)."""
        cdef int32_t message
        cdef int64_t before = self.totals.expired
        for message in range(self.pending.slots):
            if 0 < self.pending.at[message].expiration < now and self.pending.at[message].whereabouts in (WAITING, STORED):
                self.removed.append((self.handle_of(message), "expired"))
                self.take_off(message)
                self.totals.expired += 1
        return self.totals.expired - before

    def remove_group(self, group):
        """Forget the owner of a group (JMX removeMessageGroup); counts stay. Return the owner it had, or None."""
        cdef int32_t handle = self.groups.intern(group)
        cdef int32_t owner = self.groups.drop(handle)
        self.pending.regroup(self.groups.key[handle])
        return None if owner < 0 else self.consumers.at[owner].id

    def remove_all_groups(self):
        """Forget every owner (JMX removeAllMessageGroups)."""
        self.groups.drop_all()
        self.consumers.sorted = False
        self.pending.replace_all()

    # Questions

    @property
    def starts_at(self):
        """Until when (ms) the running start delay lasts at most, or None."""
        return None if self.start_at < 0 else self.start_at

    @property
    def wakeups(self):
        """Rounds asked for and not made yet."""
        return self.rounds_due

    @property
    def consumer_order(self):
        """Ids in the order in which they are asked next."""
        return [self.consumers.at[self.consumers.order[index]].id for index in range(self.consumers.size)]

    @property
    def exclusive_consumer(self):
        """Id of the elected consumer, or None."""
        return None if self.consumers.elected < 0 else self.consumers.at[self.consumers.elected].id

    @property
    def group_owners(self):
        """``{group: consumer id}``, as the broker displays it."""
        return {name: self.consumers.at[<int32_t> slot].id for name, slot in self.groups.owners().items()}

    def assigned_groups(self, consumer):
        """How many groups the broker counts for a consumer."""
        return self.groups.counts[self.slot_of(consumer)]

    def unacknowledged(self, consumer):
        """Handles a consumer holds, in dispatch order."""
        cdef int32_t message = self.consumers.at[self.slot_of(consumer)].held.first
        cdef list result = []
        while message >= 0:
            result.append(self.handle_of(message))
            message = self.pending.at[message].next
        return result

    def waiting(self):
        """Handles of the paged-in messages that wait, in the order in which they are tried."""
        cdef int tier
        cdef int32_t message
        cdef list result = []
        for tier in range(20):
            message = self.pending.window[tier].first
            while message >= 0:
                result.append(self.handle_of(message))
                message = self.pending.at[message].next
        return result

    def take_removed(self):
        """What left the queue unconsumed since the last call: ``[(handle, "expired" | "poison")]``."""
        result, self.removed = self.removed, []
        return result

    @property
    def statistics(self):
        """Counters since the start, and what is here now: ``size``, ``stored`` (not paged in), ``waiting``, ``in_flight``."""
        cdef dict result = self.totals
        result["size"] = self.pending.stored + self.pending.waiting + self.in_flight
        result["stored"] = self.pending.stored
        result["waiting"] = self.pending.waiting
        result["in_flight"] = self.in_flight
        return result

    cdef int refusal(self, int32_t message, int32_t slot) except -1:
        # Verdict of one consumer about one message, in the order in which the broker checks.
        cdef Message* it = &self.pending.at[message]
        cdef int32_t owner, match = it.match
        cdef int32_t connection = self.consumers.predicates[self.consumers.at[slot].predicate].connection
        if self.consumers.at[slot].browser:
            return Verdict.BROWSES
        if self.consumers.full(slot):
            return Verdict.FULL
        if self.consumers.paused:
            return Verdict.PAUSES
        if self.consumers.classes[match].target >= 0 and self.consumers.classes[match].target_slot != slot:
            return Verdict.NOT_TARGET
        if not self.consumers.matches(match, slot):
            return Verdict.REFUSES_LOCAL if connection >= 0 and connection == it.connection else Verdict.REFUSES
        if self.consumers.elected not in (-1, slot):
            return Verdict.STANDS_BY
        if it.group >= 0 and it.group_sequence != 1:
            owner = self.groups.owner[self.groups.key[it.group]]
            if owner not in (-1, slot):
                return Verdict.OWNED_BY_OTHER
        return Verdict.TAKES

    cdef (int, int32_t) reason_for(self, int32_t message):
        # Why nobody took it, and the consumer it is about (-1: none in particular).
        cdef Message* it = &self.pending.at[message]
        cdef ConsumerList consumers = self.consumers
        cdef int32_t slot, index, owner = -1, elected = consumers.elected, only = -1
        cdef int matching = 0, local = 0, refused = 0, others = 0
        if it.whereabouts not in (STORED, WAITING, IN_DOUBT):
            return HoldReason.NOT_HELD, it.consumer
        if it.whereabouts == IN_DOUBT:
            return HoldReason.UNCOMMITTED, -1
        for index in range(consumers.size):
            slot = consumers.order[index]
            if not consumers.at[slot].browser:
                others += 1
                if consumers.matches(it.match, slot):
                    matching += 1
                    only = slot
                elif self.is_local(message, slot):
                    local += 1
                else:
                    refused += 1
        if not others:
            return HoldReason.NO_CONSUMER, -1
        if self.start_at >= 0:
            return HoldReason.START_DELAY, -1
        if consumers.paused:
            return HoldReason.PAUSED, -1
        if it.whereabouts == STORED and self.page_size >= 0 and self.pending.waiting >= self.page_size:
            return HoldReason.NOT_PAGED_IN, -1
        if consumers.classes[it.match].target >= 0 and consumers.classes[it.match].target_slot < 0:
            return HoldReason.TARGET_ABSENT, -1
        if it.group >= 0 and it.group_sequence != 1:
            owner = self.groups.owner[self.groups.key[it.group]]
        if elected >= 0:
            if not consumers.matches(it.match, elected):
                if self.is_local(message, elected):
                    return HoldReason.EXCLUSIVE_NO_LOCAL, elected
                return HoldReason.EXCLUSIVE_SELECTOR, elected
            if owner >= 0 and owner != elected:
                return HoldReason.EXCLUSIVE_GROUP, owner
            if not consumers.at[elected].open:
                return HoldReason.EXCLUSIVE_NO_CREDIT, elected
            return HoldReason.AWAITING_WAKEUP, elected
        if not matching:
            return HoldReason.SELECTOR if refused else HoldReason.NO_LOCAL, -1
        if owner >= 0:
            if not consumers.matches(it.match, owner):
                return HoldReason.GROUP_NO_LOCAL if self.is_local(message, owner) else HoldReason.GROUP_SELECTOR, owner
            if not consumers.at[owner].open:
                return HoldReason.GROUP_NO_CREDIT, owner
            return HoldReason.AWAITING_WAKEUP, owner
        if not consumers.class_open(it.match):
            return HoldReason.NO_CREDIT, only if matching == 1 else -1
        return HoldReason.AWAITING_WAKEUP, -1

    cdef bint is_local(self, int32_t message, int32_t slot) noexcept:
        cdef int32_t connection = self.consumers.predicates[self.consumers.at[slot].predicate].connection
        return connection >= 0 and connection == self.pending.at[message].connection

    def why(self, handle):
        """Why a message waits: ``(HoldReason, consumer id or None)``; the consumer is the owner, the elected one, the holder."""
        cdef int reason
        cdef int32_t slot
        reason, slot = self.reason_for(self.message_of(handle))
        return HoldReason(reason), None if slot < 0 else self.consumers.at[slot].id

    def why_each(self, handle):
        """``{consumer id: Verdict}`` in the order in which consumers are asked: the first check each one fails."""
        cdef int32_t message = self.message_of(handle), index, slot
        cdef dict result = {}
        for index in range(self.consumers.size):
            slot = self.consumers.order[index]
            result[self.consumers.at[slot].id] = Verdict(self.refusal(message, slot))
        return result

    def held(self):
        """Everything that waits: ``(sequences int64, reasons int8, consumers int64 (-1 none))``, by arrival."""
        cdef int32_t message, slot
        cdef int reason
        cdef int64_t size = self.pending.stored + self.pending.waiting, index = 0
        sequences, reasons, consumers = np.empty(size, np.int64), np.empty(size, np.int8), np.full(size, -1, np.int64)
        cdef int64_t[::1] into = sequences, about = consumers
        cdef signed char[::1] why = reasons
        for message in range(self.pending.slots):
            if self.pending.at[message].whereabouts in (STORED, WAITING, IN_DOUBT):
                reason, slot = self.reason_for(message)
                into[index] = self.pending.at[message].sequence
                why[index] = reason
                if slot >= 0:
                    about[index] = self.consumers.at[slot].id
                index += 1
        order = np.argsort(sequences, kind="stable")
        return sequences[order], reasons[order], consumers[order]

    def hold_counts(self):
        """``{HoldReason: messages}`` of everything that waits."""
        cdef dict result = {}
        reasons, totals = np.unique(self.held()[1], return_counts=True)
        for reason, total in zip(reasons.tolist(), totals.tolist()):
            result[HoldReason(reason)] = total
        return result

    # Batches

    def intern_groups(self, names):
        """Handles (int32 array) of group names, for ``offer_batch``; None has no group (-1)."""
        return np.array([-1 if name is None else self.groups.intern(name) for name in names], dtype=np.int32)

    def predicate_of(self, consumer):
        """Bit of a consumer's selector in ``offer_batch``'s ``matches``; 0 for a consumer that asks nothing."""
        return self.consumers.at[self.slot_of(consumer)].predicate

    def offer_batch(self, int64_t size, *, groups=None, group_sequences=None, priorities=None, expirations=None,
                    matches=None, arrivals=None, object acknowledge not None="at_once"):
        """Send ``size`` messages one after another, with the rounds each asks for; what is left stays for later batches.

        groups: int32 handles of ``intern_groups``, -1 none. group_sequences int32 (0). priorities (4). expirations int64 ms
        (0 never). matches: uint64, shape (size,) or (size, words): bit ``predicate_of(consumer)`` says that the selector
        matches; needed once a consumer has a selector. arrivals: int64 ms, ``now`` of each message (0). acknowledge: "at_once"
        (after the round that hands it out), "never" (prefetch holds), or the ids of the consumers that do it at once. Returns ``(consumers, sequences, order)``: int64
        consumer id of each message of this batch (-1 held), and every delivery made, older messages included, as int64
        arrival number and consumer id in order of dispatch.
        """
        cdef int64_t row, index, first = self.next_sequence, now = 0, after
        cdef int32_t number, words = 0, slot
        cdef set prompt = None if isinstance(acknowledge, str) else set(acknowledge)
        cdef bint at_once = prompt is not None or acknowledge == "at_once"
        cdef const int32_t[::1] group = None if groups is None else column("groups", groups, size, np.int32)
        cdef const int32_t[::1] part = None if group_sequences is None else column("group_sequences", group_sequences, size, np.int32)
        cdef const int32_t[::1] urgency = None if priorities is None else column("priorities", priorities, size, np.int32)
        cdef const int64_t[::1] until = None if expirations is None else column("expirations", expirations, size, np.int64)
        cdef const int64_t[::1] at_time = None if arrivals is None else column("arrivals", arrivals, size, np.int64)
        cdef const uint64_t[:, ::1] bits = None
        cdef uint64_t none = 1
        cdef Message* it
        if prompt is None and acknowledge not in ("at_once", "never"):
            raise InvalidTopologyError("must be 'at_once', 'never' or consumer ids", key="acknowledge", value=acknowledge)
        if matches is not None:
            matches = np.asarray(matches)
            matches = matches.reshape(size, -1) if matches.ndim == 1 else matches
            if matches.dtype != np.uint64 or matches.ndim != 2 or matches.shape[0] != size:
                raise InvalidMessageError("matches", matches.dtype, "must be uint64 with one row a message")
            bits = np.ascontiguousarray(matches)
            words = min(bits.shape[1], self.consumers.word_count)
        elif self.consumers.predicate_count > 1:
            raise InvalidMessageError("matches", None, "is needed because a consumer of this queue has a selector")
        if group is not None and size and (
                np.max(group) >= self.groups.size or np.min(group) < -1):
            raise InvalidMessageError("groups", int(np.max(group)), "is no group handle", hint="see intern_groups")
        consumers = np.full(size, -1, np.int64)
        cdef int64_t[::1] got = consumers
        cdef Handout* given = NULL
        self.out_size = 0
        for row in range(size):
            number = self.pending.allot()
            it = &self.pending.at[number]
            it.group = group[row] if group is not None else -1
            it.group_sequence = part[row] if part is not None else 0
            it.priority = min(9, max(0, urgency[row])) if urgency is not None else 4
            it.expiration = until[row] if until is not None else 0
            it.connection = -1
            if words:
                self.pending.at[number].match = self.consumers.class_for_words(&bits[row, 0], words)
            else:
                self.pending.at[number].match = self.consumers.class_for_words(&none, 1)
            if at_time is not None:
                now = at_time[row]
            self.accept(number)
            after = self.out_size
            while self.rounds_due > 0:
                index = self.out_size
                if not self.round(now):
                    break
                if at_once:
                    for index in range(index, self.out_size):
                        given = &self.out[index]
                        if given.handle >= 0 and not self.consumers.at[given.slot].browser and (
                                prompt is None or given.consumer in prompt):
                            slot = given.slot
                            self.complete(slot, given.message)
                            self.consumers.contract(slot, 1)
                            self.refresh(slot)
                            self.rounds_due += 2
            for index in range(after, self.out_size):
                if self.out[index].sequence >= first:
                    got[self.out[index].sequence - first] = self.out[index].consumer
        sequences, order = np.empty(self.out_size, np.int64), np.empty(self.out_size, np.int64)
        cdef int64_t[::1] which = sequences, whom = order
        for index in range(self.out_size):
            which[index] = self.out[index].sequence
            whom[index] = self.out[index].consumer
        self.out_size = 0
        return consumers, sequences, order

    def _check(self):
        """Assert the invariants of the queue and of its rooms."""
        cdef int32_t message, slot, flying = 0
        self.groups._check()
        self.consumers._check()
        self.pending._check()
        for slot in range(self.consumers.slots):
            message = self.consumers.at[slot].held.first
            held = 0
            while message >= 0:
                assert self.pending.at[message].consumer == slot
                assert self.pending.at[message].whereabouts in (IN_FLIGHT, REMOVED)
                flying += self.pending.at[message].whereabouts == IN_FLIGHT
                held += 1
                message = self.pending.at[message].next
            assert held == self.consumers.at[slot].held.count
        assert flying == self.in_flight
        statistics = self.statistics
        assert statistics["enqueues"] == statistics["dequeues"] + statistics["size"]


def column(str field, values, int64_t size, dtype):
    """One column of a batch, contiguous and of the right width, or InvalidMessageError."""
    array = np.asarray(values)
    if array.shape != (size,):
        raise InvalidMessageError(field, array.shape, f"must have one value a message ({size})")
    if array.dtype.kind not in "iu":
        raise InvalidMessageError(field, array.dtype, "must be an array of integers")
    if array.dtype != dtype and size and (array.max() > np.iinfo(dtype).max or array.min() < np.iinfo(dtype).min):
        raise InvalidMessageError(field, int(array.max()), f"must fit {np.dtype(dtype).name}")
    return np.ascontiguousarray(array, dtype=dtype)
