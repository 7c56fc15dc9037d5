"""The topics and subscriptions of a broker by number; see region.pxd."""

from collections.abc import Mapping

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t

from pyengine._engine.activemq.topic.durable_subscription cimport Cursor, DurableSubscription
from pyengine._engine.message.envelope cimport Envelope
from pyengine._engine.activemq.topic.fan_out cimport FanOut, Topic
from pyengine._engine.message.header cimport ABSENT, header_in, header_number, is_persistent
from pyengine._engine.activemq.topic.subscription cimport Subscription

from pyengine._engine.activemq.queue.queue_state import whole_number
from pyengine.errors import IllegalStateError


cdef class Headers:
    """Headers that the caller of a send names, in place of the own ones of the message; see region.pxd."""

    def __cinit__(self, *, priority=ABSENT, expiration=ABSENT, timestamp=ABSENT, persistent=ABSENT, message_id=ABSENT,
                  size=ABSENT):
        self.priority = priority
        self.expiration = expiration
        self.timestamp = timestamp
        self.persistent = persistent
        self.message_id = message_id
        self.size = size

    def __reduce__(self):
        raise TypeError("the headers of a send cannot be pickled")


ABSENT_HEADERS = Headers()
cdef Headers STORED_HEADERS = Headers(persistent=True)


cdef class Region(FanOut):
    """Internal to a region of topics; see region.pxd."""

    def __cinit__(self, *, bint keep_durable_subscriptions_active=True, bint expired_as_discarded=False, pager=None,
                  page=1000):
        self.keep_durable_subscriptions_active = keep_durable_subscriptions_active
        self.expired_as_discarded = expired_as_discarded
        self.pager = pager
        self.page = whole_number("page", page, 1, 2**31 - 1)
        self.connections = {}
        self.transactions = {}
        self.durables = {}
        self.next_handle = 1

    cdef int open(self) except -1:
        if self.busy:
            raise IllegalStateError("a selector, strategy or query cannot call the region that is asking it")
        return 0

    cdef Subscription subscription_at(self, object number):
        cdef Subscription found = self.subscriptions.get(number)
        if found is None:
            raise IllegalStateError(f"subscription {number!r} is not here; it was closed or never added")
        return found

    cdef int32_t connection_number(self, object connection):
        return -1 if connection is None else self.connections.setdefault(connection, len(self.connections))

    cdef int join(self, Subscription it, Topic topic, int64_t now) except -1:
        cdef DurableSubscription durable
        it.topics.append(topic.number)
        topic.order = None
        if isinstance(it, DurableSubscription):
            durable = it
            durable.cursors.append(Cursor(topic.number))
            if durable.active or durable.keep_active:
                topic.consumers.append(it)
            else:
                topic.offline.append(it)
            return it.dispatch_waiting(now)
        topic.consumers.append(it)
        if it.retroactive or topic.always_retroactive:
            self.recover(topic, it, True, now)
        return 0

    cdef int quit(self, Subscription it, Topic topic) except -1:
        it.leave(topic.number)
        if it in topic.consumers:
            topic.consumers.remove(it)
        else:
            topic.offline.remove(it)
        topic.order = None
        return 0

    cdef int destroy(self, Subscription it) except -1:
        cdef Topic topic
        for number in list(it.topics):
            topic = self.topics[number]
            self.quit(it, topic)
        it.give_up()
        self.drop_question(it.predicate)
        del self.subscriptions[it.id]
        return 0

    cdef int32_t accept(self, Topic to, object message, int64_t handle, Headers given, object connection,
                        bint plain) except -1:
        # plain: the mapping has no key of a header.
        cdef int32_t slot
        cdef int urgency
        cdef int64_t until, at, bytes
        cdef bint lasting = True
        cdef object priority = given.priority, expiration = given.expiration, timestamp = given.timestamp
        cdef object persistent = given.persistent, size = given.size
        if isinstance(message, Envelope):
            priority = (<Envelope> message)._priority if priority is ABSENT else priority
            expiration = (<Envelope> message).expires() if expiration is ABSENT else expiration
            timestamp = (<Envelope> message)._timestamp if timestamp is ABSENT else timestamp
            size = (<Envelope> message).size_in_bytes(to.minimum_message_size) if size is ABSENT else size
            lasting = (<Envelope> message)._persistent
        elif not plain and (isinstance(message, dict) or isinstance(message, Mapping)):
            priority = header_in(message, "JMSPriority") if priority is ABSENT else priority
            expiration = header_in(message, "JMSExpiration") if expiration is ABSENT else expiration
            timestamp = header_in(message, "JMSTimestamp") if timestamp is ABSENT else timestamp
            if persistent is ABSENT:
                lasting = is_persistent(header_in(message, "JMSDeliveryMode"))
        urgency = <int> header_number("JMSPriority", priority, 4, 0, 9)
        until = header_number("JMSExpiration", expiration, 0, 0, INT64_MAX)
        at = header_number("JMSTimestamp", timestamp, 0, INT64_MIN, INT64_MAX)
        bytes = header_number("size", size, to.minimum_message_size, 0, INT64_MAX)
        slot = self.add(message, handle)
        self.at[slot].topic = to.number
        self.at[slot].priority = urgency
        self.at[slot].expiration = until
        self.at[slot].timestamp = at
        self.at[slot].persistent = lasting if persistent is ABSENT else bool(persistent)
        self.at[slot].size = bytes
        self.at[slot].connection = self.connection_number(connection)
        return slot

    cdef int32_t bring(self, int32_t topic, object body, int64_t handle) except -1:
        # A message of the store; other subscriptions may hold it already.
        cdef int32_t slot = self.find(handle)
        if slot >= 0:
            self.at[slot].holds += 1
            return slot
        connection = (<Envelope> body)._connection_id if isinstance(body, Envelope) else None
        return self.accept(self.topics[topic], body, handle, STORED_HEADERS, connection, False)

    def durable_subscriptions(self):
        """``{(client id, subscription name): id}`` of all durable subscriptions."""
        return dict(self.durables)

    def topics_of(self, subscription):
        """Numbers of the topics that a subscription is attached to, in the order of attachment."""
        return list(self.subscription_at(subscription).topics)

    def is_active(self, subscription):
        """Whether a durable subscription has its consumer; always true for a non-durable one."""
        cdef Subscription it = self.subscription_at(subscription)
        return not isinstance(it, DurableSubscription) or (<DurableSubscription> it).active

    def is_prioritized(self, subscription):
        """Whether a durable subscription is served by priority."""
        cdef Subscription it = self.subscription_at(subscription)
        return isinstance(it, DurableSubscription) and (<DurableSubscription> it).prioritized

    def consumers(self, topic):
        """Ids of the subscriptions of a topic, in list order."""
        cdef Subscription it
        return [it.id for it in self.topic_at(topic).consumers]

    def recoverable(self, topic):
        """Handles of the messages that a topic keeps for retroactive consumers, the retained one first."""
        cdef Topic it = self.topic_at(topic)
        cdef list result = [] if it.retained < 0 else [self.at[it.retained].handle]
        if it.recovery is not None:
            result.extend([self.at[<int32_t> kept].handle for kept in it.recovery.kept()])
        return result

    def unacknowledged(self, subscription):
        """Handles of a subscription's unacknowledged messages, in order."""
        cdef Subscription it = self.subscription_at(subscription)
        cdef int32_t reference = it.dispatched.first
        cdef list result = []
        while reference >= 0:
            result.append(self.at[self.refs[reference].message].handle)
            reference = self.refs[reference].next
        return result

    def waiting(self, subscription):
        """Handles that wait for a subscription, in order, without those that only the store has."""
        cdef Subscription it = self.subscription_at(subscription)
        cdef int32_t reference = it.matched.first
        if isinstance(it, DurableSubscription):
            return (<DurableSubscription> it).held()
        cdef list result = []
        while reference >= 0:
            result.append(self.at[self.refs[reference].message].handle)
            reference = self.refs[reference].next
        return result

    def is_slow(self, subscription):
        """Whether a subscription is marked slow."""
        return self.subscription_at(subscription).slow

    def subscription_statistics(self, subscription):
        """Counters of a subscription since its start, and now: ``pending``, ``in_flight``, ``slow``, ``limit``..."""
        cdef Subscription it = self.subscription_at(subscription)
        return {
            "enqueues": it.enqueued,
            "dispatched": it.handed_out,
            "dequeues": it.dequeued,
            "discarded": it.discarded,
            "consumed": it.consumed,
            "pending": it.waiting(),
            "in_flight": it.in_flight,
            "slow": it.slow,
            "limit": it.limit,
            "prefetch": it.prefetch,
            "extension": it.extension,
            "last_ack": it.last_ack,
        }

    def statistics(self, topic):
        """Counters of a topic since its start, and now: ``consumers``, ``in_flight``; ``stored``: messages here that
        durable subscriptions hold; ``behind``: references that only the store has."""
        cdef Topic it = self.topic_at(topic)
        return {
            "enqueues": self.counts[it.number].enqueues,
            "dispatched": self.counts[it.number].dispatched,
            "dequeues": self.counts[it.number].dequeues,
            "in_flight": self.counts[it.number].in_flight,
            "expired": self.counts[it.number].expired,
            "discarded": self.counts[it.number].discarded,
            "consumers": len(it.consumers) + len(it.offline),
            "stored": self.counts[it.number].stored,
            "behind": self.counts[it.number].behind,
        }

    @property
    def messages(self):
        """Number of messages in the region."""
        return self.live

    def _check(self):
        """Assert the invariants of the region and of its rooms."""
        cdef Subscription it
        cdef Topic topic
        cdef int32_t message, before, kept
        cdef int64_t stored, chained = 0
        cdef list holds = [0] * self.slots, askers = [0] * len(self.questions)
        FanOut._check(self)
        for it in self.subscriptions.values():
            it.check_lines(holds)
            if it.predicate >= 0:
                askers[it.predicate] += 1
            for number in it.topics:
                topic = self.topics[number]
                assert (it in topic.consumers) != (it in topic.offline)
        assert askers == self.askers
        for key, number in self.durables.items():
            assert (self.subscriptions[number].client_id, self.subscriptions[number].subscription_name) == key
        for topic in self.topics:
            if topic is None:
                continue
            for it in topic.consumers + topic.offline:
                assert topic.number in it.topics and self.subscriptions[it.id] is it
            assert len(set(topic.consumers)) == len(topic.consumers)
            if topic.retained >= 0:
                holds[topic.retained] += 1
            if topic.recovery is not None:
                for kept in topic.recovery.kept():
                    holds[kept] += 1
            before = -1
            message = self.counts[topic.number].stored_first
            while message >= 0:
                chained += 1
                assert self.at[message].stored > 0 and self.at[message].persistent
                assert self.at[message].stored_before == before
                assert before < 0 or self.at[before].handle < self.at[message].handle
                before = message
                message = self.at[message].stored_after
            assert self.counts[topic.number].stored_last == before
        stored = 0
        for message in range(self.slots):
            stored += self.at[message].handle >= 0 and self.at[message].stored > 0
        assert stored == sum([self.counts[topic.number].stored for topic in self.topics if topic is not None])
        assert chained == (stored if self.pager is None else 0)
        for topic in self.topics:
            if topic is not None:
                assert self.counts[topic.number].behind == sum(
                    [it.behind_of(topic.number) for it in topic.consumers + topic.offline])
        for message in range(self.slots):
            if self.at[message].handle >= 0:
                assert self.at[message].holds == holds[message], (self.at[message].handle, holds[message])
