"""Durable subscriptions, as ActiveMQ's DurableTopicSubscription over its store cursor (spec activemq 3.8)."""

from libc.stdint cimport INT64_MAX, int32_t, int64_t

from pyengine._engine.lowlevel.linked_list cimport start_chain
from pyengine._engine.activemq.commands.message_ack cimport AckKind
from pyengine._engine.activemq.topic.ledger cimport EventKind
from pyengine._engine.activemq.topic.message_references cimport Post
from pyengine._engine.activemq.topic.subscription cimport Subscription

from pyengine.errors import IllegalStateError, JMSError, counted


cdef class Cursor:
    """Internal to a durable subscription; see durable_subscription.pxd."""

    def __cinit__(self, int32_t topic):
        cdef int tier
        self.topic = topic
        self.rank = -10
        self.newest = -1
        for tier in range(10):
            start_chain(&self.tiers[tier])

    def __reduce__(self):
        raise TypeError("a cursor is part of its subscription and cannot be pickled")


cdef class DurableSubscription(Subscription):
    """Internal to a region of topics; see durable_subscription.pxd."""

    def __cinit__(self):
        self.transient = Cursor(-1)
        self.cursors = [self.transient]
        self.keep_active = True

    cdef Cursor cursor_at(self, int32_t topic):
        cdef Cursor cursor
        for cursor in self.cursors:
            if cursor.topic == topic:
                return cursor
        return None

    cdef Cursor cursor_of(self, int32_t message):
        # None: a persistent message of a topic it is not attached to.
        cdef const Post* post = &self.messages.at[message]
        return self.cursor_at(post.topic) if post.persistent else self.transient

    cdef int tier_of(self, int32_t message) noexcept:
        return 9 - self.messages.at[message].priority if self.prioritized else 0

    cdef int rank_of(self, int32_t message) noexcept:
        return -self.messages.at[message].priority if self.prioritized else 0

    cdef bint is_behind_frontier(self, Cursor cursor, int32_t message) noexcept:
        cdef int rank = self.rank_of(message)
        return rank > cursor.rank or (rank == cursor.rank and self.messages.at[message].handle > cursor.newest)

    cdef int push(self, Cursor cursor, int32_t reference, bint ahead) except -1:
        cdef int tier = self.tier_of(self.messages.refs[reference].message)
        if ahead:
            self.messages.prepend(&cursor.tiers[tier], reference)
        else:
            self.messages.append(&cursor.tiers[tier], reference)
        cursor.count += 1
        self.messages.refs[reference].queued = 1
        return 0

    cdef int take_from(self, Cursor cursor, int32_t reference) except -1:
        cdef int tier = self.tier_of(self.messages.refs[reference].message)
        self.messages.unlink(&cursor.tiers[tier], reference)
        self.messages.refs[reference].queued = 0
        cursor.count -= 1
        return 0

    cdef int32_t next_of(self, Cursor cursor) except -2:
        # What an open transaction has acknowledged before the consumer came back is passed over.
        cdef int tier
        cdef int32_t reference
        while True:
            for tier in range(10 if cursor.count else 0):
                reference = cursor.tiers[tier].first
                while reference >= 0 and self.messages.refs[reference].acknowledged:
                    reference = self.messages.refs[reference].next
                if reference >= 0:
                    if cursor.behind and self.is_behind_frontier(cursor, self.messages.refs[reference].message):
                        break
                    return reference
            if not cursor.behind:
                return -1
            self.page_in(cursor)

    cdef int page_in(self, Cursor cursor) except -1:
        cdef set here = set()
        cdef list found
        cdef int tier
        cdef int32_t message, reference
        cdef int64_t before = cursor.behind
        if cursor.cut:
            here.update(self.messages.handles(&self.dispatched))
            for tier in range(10):
                here.update(self.messages.handles(&cursor.tiers[tier]))
        while cursor.behind == before:
            found = self.pager.load(self.id, cursor.topic, (cursor.rank, cursor.newest), self.pager.page)
            if not found:
                raise IllegalStateError(
                    f"the store lacks {counted(before, 'message that waits', 'messages that wait')} for subscription "
                    f"{self.id} in topic {cursor.topic}")
            for handle, body in found:
                message = self.pager.bring(cursor.topic, body, handle)
                cursor.rank = self.rank_of(message)
                cursor.newest = handle
                if handle not in here:
                    reference = self.messages.refer(message)
                    self.push(cursor, reference, False)
                    self.ledger.store(reference, self.id, False)
                    self.leave_behind(cursor, -1)
                self.messages.release(message)
        return 0

    cdef int cut_back(self, Cursor cursor) except -1:
        # Messages of higher priority came before the frontier: the last ones are left to the store.
        cdef int tier
        cdef int32_t reference, before, message
        for tier in range(9, -1, -1):
            reference = cursor.tiers[tier].last
            while reference >= 0 and cursor.count > self.pager.page:
                before = self.messages.refs[reference].previous
                message = self.messages.refs[reference].message
                if self.messages.refs[reference].redeliveries or self.messages.refs[reference].acknowledged:
                    break           # messages before it in its tier were dispatched too
                if not self.is_behind_frontier(cursor, message):
                    cursor.rank = self.rank_of(message)
                    cursor.newest = self.messages.at[message].handle - 1
                    cursor.cut = True
                self.take_from(cursor, reference)
                self.ledger.unstore(reference, self.id, False)
                self.leave_behind(cursor, 1)
                self.messages.drop(reference)
                reference = before
        return 0

    cdef int leave_behind(self, Cursor cursor, int64_t count) except -1:
        cursor.behind += count
        self.ledger.counts[cursor.topic].behind += count
        return 0

    cdef int enqueue(self, int32_t message) except -1:
        # A message begins to wait.
        cdef int32_t reference
        cdef Cursor cursor = self.cursor_of(message)
        self.messages.reserve_reference()
        self.enqueued += 1
        if cursor is None:
            return 0
        if cursor.topic >= 0 and self.pager is not None and self.is_behind_frontier(cursor, message):
            if cursor.behind or cursor.count >= self.pager.page:
                self.leave_behind(cursor, 1)
                return self.ledger.report(EventKind.STORED, self.id, -1, message, None)
            cursor.rank = self.rank_of(message)
            cursor.newest = self.messages.at[message].handle
        reference = self.messages.refer(message)
        self.push(cursor, reference, False)
        if cursor.topic >= 0:
            self.ledger.store(reference, self.id, True)
            if self.prioritized and self.pager is not None and cursor.count > 2 * self.pager.page:
                self.cut_back(cursor)
        return 0

    cdef Cursor next_cursor(self, Cursor current):
        # The one that is served is served until it is empty or the dispatch is over; each look for another one turns
        # the list.
        cdef Cursor cursor
        if current is None or self.next_of(current) < 0:
            current = None
            for cursor in self.cursors:
                if self.next_of(cursor) >= 0:
                    current = cursor
                    break
            if len(self.cursors) > 1:
                self.cursors.append(self.cursors.pop(0))
        return current

    cdef int serve_null(self) except -1:
        # The null dispatch is looked for as a message is.
        self.next_cursor(None)
        return 0

    cdef bint full(self) noexcept:
        return not self.active or Subscription.full(self)

    cdef int64_t waiting(self) noexcept:
        cdef Cursor cursor
        cdef int64_t total = 0
        for cursor in self.cursors:
            total += cursor.count + cursor.behind
        return total

    cdef int64_t behind_of(self, int32_t topic) noexcept:
        cdef Cursor cursor = self.cursor_at(topic)
        return 0 if cursor is None else cursor.behind

    cdef int add(self, int32_t message, object producer, int64_t number, bint ignored, int64_t now) except -1:
        if not self.active and not self.messages.at[message].persistent:
            if not self.keep_active:
                return 0
            if self.fresh:            # a store knows it; its cursor is not started yet
                self.enqueued += 1
                return 0
        self.enqueue(message)
        return self.dispatch_waiting(now)

    cdef int add_recovered(self, int32_t message, object producer, int64_t number, int64_t now) except -1:
        # Neither counted nor stored; dispatched when the subscription starts.
        return self.push(self.transient, self.messages.refer(message), False)

    cdef bint persistent_empty(self, int32_t topic) except -1:
        cdef Cursor cursor = self.cursor_at(topic)
        return cursor is None or cursor.count + cursor.behind == 0

    cdef int start(self, int64_t now) except -1:
        self.active = True
        self.offline_since = None
        return self.dispatch_waiting(now)

    cdef int stop(self, bint keep, int64_t last_delivered, int64_t now) except -1:
        # Dispatched messages go back to the front; those up to last_delivered count as delivered.
        cdef int32_t reference, message
        cdef Cursor cursor
        self.active = False
        self.keep_active = keep
        self.offline_since = now
        while self.dispatched.count:
            reference = self.dispatched.last
            message = self.messages.refs[reference].message
            self.messages.unlink(&self.dispatched, reference)
            self.in_flight -= 1
            self.ledger.counts[self.messages.at[message].topic].in_flight -= 1
            if self.messages.at[message].handle <= last_delivered:
                self.messages.refs[reference].redeliveries += 1
            cursor = self.cursor_of(message)
            if cursor is None:
                self.finish(reference)
            else:
                self.push(cursor, reference, True)
        if not keep:
            self.empty(self.transient)
        self.extension = 0
        return 0

    cdef int empty(self, Cursor cursor) except -1:
        cdef int tier
        cdef int32_t reference
        if cursor.behind:
            self.leave_behind(cursor, -cursor.behind)
        for tier in range(10):
            while cursor.tiers[tier].count:
                reference = cursor.tiers[tier].first
                self.messages.unlink(&cursor.tiers[tier], reference)
                cursor.count -= 1
                self.ledger.unstore(reference, self.id, False)
                self.messages.drop(reference)
        return 0

    cdef int dispatch_waiting(self, int64_t now) except -1:
        cdef int64_t room, count = 0
        cdef int32_t reference, message
        cdef Cursor cursor = None
        if not self.active:
            return 0
        room = self.extension if self.prefetch == 0 else self.prefetch + self.extension - self.in_flight
        if room <= 0:
            if self.waiting() and not self.slow:
                self.find_slow()
            return 0
        self.slow = False
        while count < room and not self.full():
            cursor = self.next_cursor(cursor)
            reference = -1 if cursor is None else self.next_of(cursor)
            if reference < 0:
                break
            message = self.messages.refs[reference].message
            if 0 < self.messages.at[message].expiration < now:
                room += 1
                if self.messages.at[message].persistent or not self.messages.at[message].expiry_reported:
                    self.expire(message)
                self.take_from(cursor, reference)
                self.finish(reference)
            else:
                self.ledger.deliver(self.id, message, self.messages.refs[reference].redeliveries)
                self.take_from(cursor, reference)
                self.hand_out(reference)
                count += 1
        return 0

    cdef int expire(self, int32_t message) except -1:
        if not self.messages.at[message].persistent:
            self.messages.at[message].expiry_reported = 1
        self.ledger.counts[self.messages.at[message].topic].expired += 1
        return self.ledger.report(EventKind.EXPIRED, self.id, -1, message, None)

    cdef int expire_stored(self, int32_t topic, int64_t now, int64_t upto) except -1:
        cdef Cursor cursor = self.cursor_at(topic)
        cdef int tier
        cdef int32_t reference, after, message
        if cursor is None:
            return 0
        while cursor.behind and (upto == INT64_MAX or (cursor.newest < upto and not self.prioritized)):
            self.page_in(cursor)
        for tier in range(10):
            reference = cursor.tiers[tier].first
            while reference >= 0:
                after = self.messages.refs[reference].next
                message = self.messages.refs[reference].message
                if (self.messages.at[message].handle <= upto and 0 < self.messages.at[message].expiration < now
                        and not self.messages.refs[reference].acknowledged):
                    self.take_from(cursor, reference)
                    self.expire(message)
                    self.finish(reference)
                reference = after
        return 0

    cdef int finish(self, int32_t reference) except -1:
        # The subscription is done with the message, and the store with its reference.
        self.ledger.unstore(reference, self.id, True)
        return self.messages.drop(reference)

    cdef int32_t dispatched_at(self, int64_t handle) except -2:
        cdef int32_t reference = self.dispatched.first
        while reference >= 0:
            if self.messages.at[self.messages.refs[reference].message].handle == handle:
                return reference
            reference = self.messages.refs[reference].next
        return -1

    cdef int acknowledge(self, int kind, int64_t first, int64_t last, int64_t count, object transaction,
                         list deferred, int64_t now) except -1:
        cdef int32_t start, end, reference
        cdef int64_t size
        cdef list chosen
        if transaction is not None and kind == AckKind.POISON:
            raise IllegalStateError("a poison acknowledgement cannot be part of a transaction")
        end = self.dispatched_at(last)
        if end < 0 and kind == AckKind.INDIVIDUAL:
            return 0
        start = self.dispatched.first if first < 0 else self.dispatched_at(first)
        if kind == AckKind.INDIVIDUAL or kind == AckKind.DELIVERED:
            start = end
        chosen = []
        reference = start
        while reference >= 0:
            chosen.append(reference)
            if reference == end:
                break
            reference = self.messages.refs[reference].next
        if start < 0 or end < 0 or reference < 0:
            raise JMSError(f"Unmatched acknowledge: subscription {self.id} does not hold message "
                           f"{first if first >= 0 and start < 0 else last} in the acknowledged order")
        size = len(chosen)
        if kind == AckKind.STANDARD and transaction is None and count >= 0 and count != size:
            raise JMSError(f"Unmatched acknowledge: it counts {counted(count, 'message')}, the range has {size}")
        if kind == AckKind.DELIVERED:
            self.expand(1 if count < 0 else count)
            return self.dispatch_waiting(now)
        if kind == AckKind.REDELIVERED:
            return self.dispatch_waiting(now)
        if kind != AckKind.EXPIRED:
            self.last_ack = now
        for number in chosen:
            reference = number
            self.settle_one(kind, reference, transaction is not None, deferred)
        if kind in (AckKind.POISON, AckKind.EXPIRED):
            self.contract(1)
        elif kind == AckKind.INDIVIDUAL and transaction is not None:
            self.expand(1)
        return self.dispatch_waiting(now)

    cdef int settle_one(self, int kind, int32_t reference, bint transacted, list deferred) except -1:
        cdef int32_t message = self.messages.refs[reference].message
        cdef int32_t topic = self.messages.at[message].topic
        if kind == AckKind.EXPIRED:
            if self.messages.at[message].persistent or not self.messages.at[message].expiry_reported:
                self.expire(message)
        else:
            if kind == AckKind.POISON:
                self.ledger.report(EventKind.POISONED, self.id, -1, message, None)
            self.ledger.counts[topic].dequeues += 1
            self.messages.refs[reference].redeliveries = 0
            if transacted:
                if not self.messages.refs[reference].acknowledged:
                    self.messages.refs[reference].acknowledged = 1
                    deferred.append((self, reference, self.messages.at[message].handle))
                return 0
            self.dequeued += 1
            if kind != AckKind.POISON:
                self.contract(1)
        self.ledger.give_up_message(message)
        self.messages.unlink(&self.dispatched, reference)
        self.in_flight -= 1
        self.ledger.counts[topic].in_flight -= 1
        return self.finish(reference)

    cdef bint holds(self, int32_t reference, int64_t handle) except -1:
        # Is it still the reference that a transaction acknowledged?
        return (not self.closed and self.messages.refs[reference].message >= 0
                and self.messages.refs[reference].acknowledged
                and self.messages.at[self.messages.refs[reference].message].handle == handle)

    cdef int commit(self, tuple deferred, int64_t now) except -1:
        cdef int32_t reference = deferred[1], message
        cdef Cursor cursor
        self.dequeued += 1
        if self.holds(reference, deferred[2]):
            message = self.messages.refs[reference].message
            self.ledger.give_up_message(message)
            cursor = self.cursor_of(message)
            if self.messages.refs[reference].queued:
                self.take_from(cursor, reference)
            else:
                self.messages.unlink(&self.dispatched, reference)
                self.in_flight -= 1
                self.ledger.counts[self.messages.at[message].topic].in_flight -= 1
            self.finish(reference)
        self.contract(1)
        return self.dispatch_waiting(now)

    cdef int roll_back(self, tuple deferred, int64_t now) except -1:
        # A message that went back to its cursor meanwhile can be served again.
        cdef int32_t reference = deferred[1]
        cdef bint queued = False
        if self.holds(reference, deferred[2]):
            self.messages.refs[reference].acknowledged = 0
            queued = self.messages.refs[reference].queued
        self.contract(1)
        return self.dispatch_waiting(now) if queued else 0

    cdef int leave(self, int32_t topic) except -1:
        # The topic goes away, and with it everything that came through it.
        cdef Cursor cursor = self.cursor_at(topic)
        Subscription.leave(self, topic)
        if cursor is not None:
            self.empty(cursor)
            self.cursors.remove(cursor)
        return 0

    cdef int give_up(self) except -1:
        cdef Cursor cursor
        for topic in list(self.topics):
            self.leave(topic)
        for cursor in self.cursors:
            self.empty(cursor)
        return Subscription.give_up(self)

    cdef list held(self):
        # Handles that wait, cursor by cursor in the order in which they will be served if nothing turns the list.
        cdef Cursor cursor
        cdef int tier
        cdef list result = []
        for cursor in self.cursors:
            for tier in range(10):
                result += self.messages.handles(&cursor.tiers[tier])
        return result

    cdef int check_lines(self, list holds) except -1:
        cdef Cursor cursor
        cdef int tier, reference, passed = 0
        self.messages.check_line(&self.dispatched, holds)
        assert self.matched.count == 0 and self.in_flight == self.dispatched.count
        assert self.active or (self.dispatched.count == 0 and self.extension == 0)
        assert sorted([cursor.topic for cursor in self.cursors]) == sorted([-1, *self.topics])
        for cursor in self.cursors:
            count = 0
            for tier in range(10):
                assert tier == 0 or self.prioritized or cursor.tiers[tier].count == 0
                count += self.messages.check_line(&cursor.tiers[tier], holds)
                reference = cursor.tiers[tier].first
                while reference >= 0:
                    passed += self.messages.refs[reference].acknowledged
                    assert not self.messages.refs[reference].stored or (
                        self.messages.at[self.messages.refs[reference].message].persistent)
                    reference = self.messages.refs[reference].next
            assert count == cursor.count
            assert cursor.behind == 0 or (cursor.behind > 0 and cursor.topic >= 0 and self.pager is not None)
        assert self.full() or self.waiting() == passed
        return 0
