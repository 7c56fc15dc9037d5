"""Non-durable subscriptions, as ActiveMQ's TopicSubscription (spec activemq 3.3)."""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.lowlevel.linked_list cimport start_chain
from pyengine._engine.activemq.topic.eviction_strategies cimport Eviction, OldestEviction
from pyengine._engine.activemq.commands.message_ack cimport AckKind
from pyengine._engine.activemq.topic.ledger cimport EventKind
from pyengine._engine.activemq.topic.message_references cimport Post, Reference

from pyengine.errors import IllegalStateError


cdef class Subscription:
    """Internal to a region of topics; see subscription.pxd."""

    def __cinit__(self):
        self.predicate = self.connection = self.first_topic = -1
        self.use_prefetch_extension = True
        self.limit = -1
        self.topics = []
        self.network_consumers = ()
        start_chain(&self.matched)
        start_chain(&self.dispatched)

    def __reduce__(self):
        raise TypeError("a subscription is part of its region and cannot be pickled")

    cdef bint full(self) noexcept:
        if self.prefetch == 0:
            return self.extension == 0
        return self.in_flight - self.extension >= self.prefetch

    cdef void expand(self, int64_t amount) noexcept:
        if self.use_prefetch_extension and self.prefetch != 0:
            self.extension += amount

    cdef void contract(self, int64_t amount) noexcept:
        if self.use_prefetch_extension and self.prefetch != 0:
            self.extension = max(0, self.extension - amount)

    cdef int64_t waiting(self) noexcept:
        return self.matched.count

    cdef int64_t behind_of(self, int32_t topic) noexcept:
        return 0

    cdef int add(self, int32_t message, object producer, int64_t number, bint ignored, int64_t now) except -1:
        # A matching message arrived. ignored: it is the advisory about a discard of this subscription.
        cdef int32_t reference
        if self.audit is not None and producer is not None and self.audit.was_recorded(producer, number):
            return 0
        self.messages.reserve_reference()
        self.enqueued += 1
        if ignored:
            return 0
        if self.matched.count == 0 and not self.full():
            self.ledger.deliver(self.id, message, 0)
            self.hand_out(self.messages.refer(message))
            self.slow = False
            return 0
        if self.prefetch > 1 and self.matched.count > self.prefetch and not self.slow:
            self.find_slow()
        if self.limit == 0:
            self.ledger.report(EventKind.DROPPED, self.id, -1, message, None)
            return 0
        reference = self.messages.refer(message)
        self.messages.append(&self.matched, reference)
        if self.limit > 0:
            self.evict(now)
        return self.dispatch_waiting(now)

    cdef int add_recovered(self, int32_t message, object producer, int64_t number, int64_t now) except -1:
        return self.add(message, producer, number, False, now)

    cdef int find_slow(self) except -1:
        self.slow = True
        for topic in self.topics:
            self.ledger.report(EventKind.SLOW, self.id, topic, -1, None)
        return 0

    cdef int evict(self, int64_t now) except -1:
        # Candidates: max(1000, excess); the intended cap of the broker is a floor.
        cdef Eviction eviction = self.eviction
        cdef int64_t size
        cdef int32_t reference
        cdef list candidates, places, chosen
        cdef object trouble
        if eviction.expiry_check and self.matched.count > min(eviction.high_watermark, self.limit):
            self.remove_expired(now)
        while self.matched.count > self.limit:
            if type(eviction) is OldestEviction:
                self.discard(self.matched.first, False)
                continue
            size = max(1000, self.matched.count - self.limit)
            candidates, places = [], []
            reference = self.matched.first
            while reference >= 0 and len(candidates) < size:
                candidates.append(self.messages.refs[reference].message)
                places.append(reference)
                reference = self.messages.refs[reference].next
            trouble = None
            self.ledger.busy = True
            try:
                chosen = eviction.choose(self.messages, candidates)
            except KeyboardInterrupt:
                raise
            except BaseException as problem:  # of user code; other subscriptions still need the message
                chosen, trouble = [], problem
            finally:
                self.ledger.busy = False
            if not chosen:
                self.ledger.report(EventKind.NOT_EVICTED, self.id, -1, -1, trouble)
                break
            for place in chosen:
                self.discard(places[place], False)
        return 0

    cdef int remove_expired(self, int64_t now) except -1:
        # Remove the first expired message; the topic is notified once for each message.
        cdef Post* at = self.messages.at
        cdef const Reference* refs = self.messages.refs
        cdef int32_t reference = self.matched.first, message
        while reference >= 0:
            message = refs[reference].message
            if 0 < at[message].expiration < now:
                if not at[message].expiry_reported:
                    self.ledger.report(EventKind.EXPIRED, self.id, -1, message, None)
                    at[message].expiry_reported = 1
                    self.ledger.counts[at[message].topic].expired += 1
                self.messages.unlink(&self.matched, reference)
                self.messages.drop(reference)
                return 0
            reference = refs[reference].next
        return 0

    cdef int discard(self, int32_t reference, bint expired) except -1:
        # Out of the waiting ones. Reported first: nothing has changed if there is no memory for that.
        cdef int32_t message = self.messages.refs[reference].message
        if expired and not self.ledger.expired_as_discarded:
            self.ledger.report(EventKind.EXPIRED, self.id, -1, message, None)
            self.ledger.counts[self.messages.at[message].topic].expired += 1
        else:
            self.ledger.report(EventKind.DISCARDED, self.id, -1, message, self.discarded + 1)
            self.discarded += 1
            self.ledger.counts[self.messages.at[message].topic].discarded += 1
        if self.first_topic >= 0:
            self.ledger.counts[self.first_topic].dequeues += 1
        self.messages.unlink(&self.matched, reference)
        return self.messages.drop(reference)

    cdef int dispatch_waiting(self, int64_t now) except -1:
        cdef int32_t reference, message
        while self.matched.count and not self.full():
            reference = self.matched.first
            message = self.messages.refs[reference].message
            if 0 < self.messages.at[message].expiration < now:
                self.discard(reference, True)
            else:
                self.ledger.deliver(self.id, message, self.messages.refs[reference].redeliveries)
                self.messages.unlink(&self.matched, reference)
                self.hand_out(reference)
        return 0

    cdef int hand_out(self, int32_t reference) except -1:
        cdef int32_t message = self.messages.refs[reference].message, topic = self.messages.at[message].topic
        self.handed_out += 1
        self.in_flight += 1
        self.ledger.counts[topic].dispatched += 1
        self.ledger.counts[topic].in_flight += 1
        if self.first_topic < 0:
            self.first_topic = topic
        if self.prefetch == 0 and self.extension > 0:
            self.extension -= 1
        self.messages.append(&self.dispatched, reference)
        return 0

    cdef int acknowledge(self, int kind, int64_t first, int64_t last, int64_t count, object transaction,
                         list deferred, int64_t now) except -1:
        # count -1: the size of the range. Messages held back by a transaction go to ``deferred``.
        cdef int64_t size
        self.last_ack = now
        self.consumed += 1
        if kind == AckKind.DELIVERED:
            self.expand(max(count, 0) if count != -1 else 1)
            return self.dispatch_waiting(now)
        if kind == AckKind.REDELIVERED:
            return 0
        if transaction is not None and kind == AckKind.POISON:
            raise IllegalStateError("a poison acknowledgement cannot be part of a transaction")
        size = count
        if count < 0 and (transaction is not None or kind in (AckKind.POISON, AckKind.EXPIRED)):
            size = self.range_size(first, last)
        if transaction is not None and kind != AckKind.EXPIRED:
            deferred.append((self, kind, first, last, size))
        else:
            self.settle(kind, first, last, transaction is not None)
        if kind in (AckKind.POISON, AckKind.EXPIRED):
            self.contract(size)
        elif kind == AckKind.INDIVIDUAL and transaction is not None:
            self.expand(1)
        return self.dispatch_waiting(now)

    cdef int64_t range_size(self, int64_t first, int64_t last) noexcept:
        cdef int32_t reference = self.dispatched.first
        cdef int64_t handle, size = 0
        while reference >= 0:
            handle = self.messages.at[self.messages.refs[reference].message].handle
            if size or first < 0 or handle == first:
                size += 1
                if handle == last:
                    break
            reference = self.messages.refs[reference].next
        return size

    cdef int settle(self, int kind, int64_t first, int64_t last, bint transacted) except -1:
        # Removes everything from ``first`` (-1: the oldest) to ``last``, or to the end if ``last`` is absent.
        cdef int32_t reference = self.dispatched.first, after, topic
        cdef int64_t handle
        cdef bint within = False
        while reference >= 0:
            handle = self.messages.at[self.messages.refs[reference].message].handle
            after = self.messages.refs[reference].next
            if first < 0 or handle == first:
                within = True
            if within:
                topic = self.messages.at[self.messages.refs[reference].message].topic
                self.ledger.give_up_message(self.messages.refs[reference].message)
                self.messages.unlink(&self.dispatched, reference)
                self.messages.drop(reference)
                self.in_flight -= 1
                self.dequeued += 1
                self.ledger.counts[topic].dequeues += 1
                self.ledger.counts[topic].in_flight -= 1
                if kind == AckKind.EXPIRED:
                    self.ledger.counts[topic].expired += 1
                if not transacted:
                    self.contract(1)
                if handle == last:
                    break
            reference = after
        return 0

    cdef int commit(self, tuple deferred, int64_t now) except -1:
        _, kind, first, last, count = deferred
        self.contract(count)
        self.settle(kind, first, last, True)
        return self.dispatch_waiting(now)

    cdef int roll_back(self, tuple deferred, int64_t now) except -1:
        self.contract(deferred[4])
        return 0

    cdef int serve_null(self) except -1:
        return 0

    cdef int end_pull(self) except -1:
        self.serve_null()
        self.ledger.deliver_nothing(self.id)
        self.extension = 0
        return 0

    cdef int leave(self, int32_t topic) except -1:
        # Messages dispatched from the topic are no longer in flight; waiting ones stay until the subscription closes.
        cdef int32_t reference = self.dispatched.first, after, message
        self.topics.remove(topic)
        while reference >= 0:
            after = self.messages.refs[reference].next
            message = self.messages.refs[reference].message
            if self.messages.at[message].topic == topic:
                self.messages.unlink(&self.dispatched, reference)
                self.in_flight -= 1
                self.ledger.counts[topic].in_flight -= 1
                self.ledger.unstore(reference, self.id, False)
                self.messages.drop(reference)
            reference = after
        return 0

    cdef int give_up(self) except -1:
        cdef int32_t reference
        for topic in list(self.topics):
            self.leave(topic)
        while self.dispatched.count:
            reference = self.dispatched.first
            self.messages.unlink(&self.dispatched, reference)
            self.messages.drop(reference)
        while self.matched.count:
            reference = self.matched.first
            self.messages.unlink(&self.matched, reference)
            self.messages.drop(reference)
        self.closed = True
        return 0

    cdef int check_lines(self, list holds) except -1:
        self.messages.check_line(&self.matched, holds)
        self.messages.check_line(&self.dispatched, holds)
        assert self.in_flight == self.dispatched.count
        assert self.extension >= 0
        assert self.full() or not self.matched.count
        assert self.limit < 0 or self.matched.count <= self.limit or type(self.eviction) is not OldestEviction
        return 0
