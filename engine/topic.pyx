"""Topics, their subscriptions and what is sent to them (spec activemq section 3)."""

from collections.abc import Mapping

from cpython.number cimport PyIndex_Check, PyNumber_Index
from libc.stdint cimport int32_t, int64_t

from pyengine._engine.audit cimport Audit
from pyengine._engine.envelope cimport Envelope
from pyengine._engine.eviction cimport Eviction, OldestEviction, pending_limit
from pyengine._engine.fan_out cimport FanOut, Serving, Topic
from pyengine._engine.queue cimport AckKind
from pyengine._engine.recovery cimport Recovery
from pyengine._engine.topic_ledger cimport EventKind
from pyengine._engine.topic_subscription cimport Subscription

from pyengine._engine.rounds import whole_number
from pyengine.errors import IllegalStateError, InvalidMessageError, InvalidTopologyError

cdef dict SERVING = {
    "simple": Serving.SIMPLE,
    "roundRobin": Serving.ROUND_ROBIN,
    "strictOrder": Serving.STRICT_ORDER,
    "priority": Serving.PRIORITY,
    "priorityNetwork": Serving.PRIORITY_NETWORK,
    "clientIdFilter": Serving.CLIENT_ID_FILTER,
}

cdef object ABSENT = object()


cdef object header(str field, object value, object default, object low, object high):
    # The int of a header, its default if it is absent, or InvalidMessageError naming it.
    if value is ABSENT or value is None:
        return default
    if isinstance(value, bool) or not PyIndex_Check(value) or not low <= PyNumber_Index(value) <= high:
        raise InvalidMessageError(field, value, f"must be a whole number from {low} to {high}")
    return PyNumber_Index(value)


cdef tuple origin(object identity):
    # Producer and sequence number of a message id; (None, 0): it has none, and is like no other.
    if not isinstance(identity, str):
        return None, 0
    producer, colon, number = identity.rpartition(":")
    if not colon or not number.isascii() or not number.isdigit():
        return None, 0
    return producer, int(number)


cdef class TopicRegion(FanOut):
    """The topics of one broker and their subscriptions.

    keep_durable_subscriptions_active: keepDurableSubsActive (True): durable subscriptions are served while their
    consumer is away, non-persistent messages included. evaluation_errors: what a selector that cannot be evaluated
    means: "reject" (no match, reported as SELECTOR_FAILED) or "strand" (as the broker: nobody behind that subscription
    gets the message, reported as CUT too). expired_as_discarded: count a message that expired while it waited as
    discarded, as releases before 5.17.3 did. Raises InvalidTopologyError for a setting out of range.
    """

    def __cinit__(self, *, bint keep_durable_subscriptions_active=True, str evaluation_errors not None="reject",
                  bint expired_as_discarded=False):
        if evaluation_errors not in ("reject", "strand"):
            raise InvalidTopologyError("must be 'reject' or 'strand'", key="evaluation_errors", value=evaluation_errors)
        self.keep_durable_subscriptions_active = keep_durable_subscriptions_active
        self.evaluation_errors = evaluation_errors
        self.cut_on_error = evaluation_errors == "strand"
        self.expired_as_discarded = expired_as_discarded
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

    def add_topic(self, name, *, str dispatch_policy not None="simple", recovery=None, bint always_retroactive=False,
                  str client_id_property not None="PTP_CLIENTID", str suffix not None=".PTP", int64_t now=0):
        """Add a topic; return its number (0, 1, ... never used again).

        dispatch_policy: "simple", "roundRobin", "strictOrder", "priority", "priorityNetwork" or "clientIdFilter": the
        order in which subscriptions are served. recovery: a Recovery, of which the topic takes a copy, or None; a
        message with the property ActiveMQ.Retain = true is kept in any case. always_retroactive: every non-durable
        subscription is retroactive. client_id_property, suffix: clientIdFilter's ptpClientId and ptpSuffix. now: ms.
        """
        cdef Topic it
        if dispatch_policy not in SERVING:
            raise InvalidTopologyError(
                "is not a dispatch policy", key="dispatchPolicy", value=dispatch_policy,
                hint="known: " + ", ".join(SERVING))
        if recovery is not None and not isinstance(recovery, Recovery):
            raise InvalidTopologyError("must be a Recovery", key="subscriptionRecoveryPolicy", value=recovery)
        self.open()
        it = Topic.__new__(Topic)
        it.number = len(self.topics)
        it.name = name
        it.serving = SERVING[dispatch_policy]
        it.always_retroactive = always_retroactive
        it.client_id_property = client_id_property
        it.suffix = suffix
        if recovery is not None:
            it.recovery = (<Recovery> recovery).fresh(self, now)
        self.reserve_counts(it.number + 1)
        self.topics.append(it)
        return it.number

    def remove_topic(self, topic):
        """Remove a topic nobody is attached to; what it kept for retroactive consumers is forgotten."""
        cdef Topic it = self.topic_at(topic)
        self.open()
        if it.consumers or it.offline:
            raise IllegalStateError(f"topic {it.name!r} has subscriptions")
        if it.recovery is not None:
            it.recovery.clear()
        if it.retained >= 0:
            self.release(it.retained)
        self.topics[it.number] = None

    def add_subscription(self, *, selector=None, priority=0, prefetch=32767, bint no_local=False, connection=None,
                         client_id=None, name=None, bint browser=False, bint retroactive=False, network_consumers=(),
                         pending_limit_strategy=None, maximum_pending_message_limit=0, eviction=None, audit=None,
                         bint use_prefetch_extension=True, bint inflight_statistics=True, int64_t now=0):
        """Add a subscription that is attached to no topic yet; return its id (0, 1, ... never used again).

        selector: None, a Selector, or any callable from the sent object to bool; equal selectors are asked once per
        message. priority: -128..127. prefetch: messages it may hold unacknowledged; 0 pulls, below 0 gets nothing.
        no_local: refuse what is sent on the same ``connection`` (any hashable). client_id: clientIdFilter compares it.
        name: what messages sent with ``target`` mean. network_consumers: the consumers at other brokers a bridge's
        subscription stands for. pending_limit_strategy, maximum_pending_message_limit: see ``maximum_pending_messages``
        in eviction. eviction: an Eviction (None: OldestEviction). audit: an Audit of its own, to refuse messages it
        saw before; None: off, as without a policyEntry. inflight_statistics: useTopicSubscriptionInflightStats; False
        remembers how many messages are unacknowledged, not which. now: ms.
        """
        cdef Subscription it
        whole_number("consumer.priority", priority, -128, 127)
        whole_number("consumer.prefetchSize", prefetch, -(2**31), 2**31 - 1)
        whole_number("consumer.maximumPendingMessageLimit", maximum_pending_message_limit, -(2**31), 2**31 - 1)
        if no_local and connection is None:
            raise InvalidTopologyError("noLocal needs the consumer's connection", key="consumer.noLocal", value=True)
        if eviction is not None and not isinstance(eviction, Eviction):
            raise InvalidTopologyError("must be an Eviction", key="messageEvictionStrategy", value=eviction)
        if audit is not None and not isinstance(audit, Audit):
            raise InvalidTopologyError("must be an Audit", key="enableAudit", value=audit)
        self.open()
        it = Subscription.__new__(Subscription)
        it.limit = pending_limit(pending_limit_strategy, prefetch, maximum_pending_message_limit)
        it.ledger = self
        it.id = self.next_id
        it.selector = selector
        it.no_local = no_local
        it.connection = self.connection_number(connection)
        it.client_id = client_id
        it.name = name
        it.priority = priority
        it.browser = browser
        it.retroactive = retroactive
        it.network_consumers = tuple(network_consumers)
        it.prefetch = prefetch
        it.use_prefetch_extension = use_prefetch_extension
        it.inflight_statistics = inflight_statistics
        it.eviction = OldestEviction() if eviction is None else eviction
        it.audit = audit
        it.last_ack = now
        it.predicate = self.question_for(selector)
        self.subscriptions[it.id] = it
        self.next_id += 1
        return it.id

    def attach(self, subscription, topic, *, int64_t now=0):
        """Attach a subscription to a topic; return what it is handed at once: old messages if it is retroactive."""
        cdef Subscription it = self.subscription_at(subscription)
        cdef Topic to = self.topic_at(topic)
        self.open()
        if to.number not in it.topics:
            self.join(it, to, now)
        return self.take()

    cdef int join(self, Subscription it, Topic topic, int64_t now) except -1:
        it.topics.append(topic.number)
        topic.consumers.append(it)
        topic.order = None
        if it.retroactive or topic.always_retroactive:
            self.recover(topic, it, True, now)
        return 0

    def detach(self, subscription, topic):
        """Detach a subscription from a topic: what it holds of that topic unacknowledged is in flight no more."""
        cdef Subscription it = self.subscription_at(subscription)
        cdef Topic source = self.topic_at(topic)
        self.open()
        if source.number in it.topics:
            it.leave(source.number)
            source.consumers.remove(it)
            source.order = None
        return self.take()

    def close(self, subscription):
        """Remove a non-durable subscription: what waits for it is gone."""
        cdef Subscription it = self.subscription_at(subscription)
        cdef Topic topic
        self.open()
        for number in it.topics:
            topic = self.topics[number]
            topic.consumers.remove(it)
            topic.order = None
        it.give_up()
        self.drop_question(it.predicate)
        del self.subscriptions[it.id]
        return self.take()

    def send(self, topic, object message=None, *, object priority=ABSENT, object expiration=ABSENT,
             object timestamp=ABSENT, object persistent=ABSENT, object message_id=ABSENT, object size=ABSENT,
             object connection=None, object target=None, object discarding=None, int64_t now=0):
        """Send a message to a topic; return what happens, in order.

        message: what the selectors are asked about and what is handed out, any object. What is not given as a keyword
        is read once, here, from a Message or from a mapping's JMSPriority (4), JMSExpiration (ms, 0: never),
        JMSTimestamp (ms, 0), JMSDeliveryMode (PERSISTENT) and JMSMessageID (``producer:number``, for audits). size:
        bytes, for fixedSized recovery (a Message knows its own, else 1024). connection: the producer's, for noLocal.
        target: name of the only subscription that may have it. discarding: the subscription whose discard this message
        tells about; it does not get it. now: ms.
        """
        cdef Topic to = self.topic_at(topic)
        cdef Subscription suppressed = None if discarding is None else self.subscriptions.get(discarding)
        cdef int32_t slot
        cdef bint lasting = True, taken
        self.open()
        if isinstance(message, Envelope):
            priority = (<Envelope> message)._priority if priority is ABSENT else priority
            expiration = (<Envelope> message)._expiration if expiration is ABSENT else expiration
            timestamp = (<Envelope> message)._timestamp if timestamp is ABSENT else timestamp
            lasting = (<Envelope> message)._persistent
            message_id = (<Envelope> message)._message_id if message_id is ABSENT else message_id
            connection = (<Envelope> message)._connection_id if connection is None else connection
            target = (<Envelope> message)._target_consumer_id if target is None else target
            size = (<Envelope> message).size_in_bytes() if size is ABSENT else size
        elif isinstance(message, Mapping):
            priority = message.get("JMSPriority") if priority is ABSENT else priority
            expiration = message.get("JMSExpiration") if expiration is ABSENT else expiration
            timestamp = message.get("JMSTimestamp") if timestamp is ABSENT else timestamp
            lasting = message.get("JMSDeliveryMode", "PERSISTENT") not in ("NON_PERSISTENT", 1)
            message_id = message.get("JMSMessageID") if message_id is ABSENT else message_id
        priority = header("JMSPriority", priority, 4, 0, 9)
        expiration = header("JMSExpiration", expiration, 0, 0, 2**63 - 1)
        timestamp = header("JMSTimestamp", timestamp, 0, -(2**63), 2**63 - 1)
        size = header("size", size, 1024, 0, 2**63 - 1)
        producer, number = origin(None if message_id is ABSENT else message_id)
        slot = self.add(message, -1)
        try:
            self.at[slot].topic = to.number
            self.at[slot].priority = priority
            self.at[slot].expiration = expiration
            self.at[slot].timestamp = timestamp
            self.at[slot].persistent = lasting if persistent is ABSENT else bool(persistent)
            self.at[slot].size = size
            self.at[slot].connection = self.connection_number(connection)
            if 0 < self.at[slot].expiration < now:
                self.counts[to.number].expired += 1
                self.report(EventKind.EXPIRED, None, -1, slot, None)
                return self.take()
            self.counts[to.number].enqueues += 1
            if not self.retain(to, slot, now):
                self.report(EventKind.REFUSED, None, -1, slot, None)
                return self.take()
            taken = self.fan_out(to, slot, target, producer, number, suppressed, now)
            if not taken:
                self.report(EventKind.NO_CONSUMER, None, -1, slot, None)
        finally:
            self.release(slot)
        return self.take()

    def acknowledge(self, subscription, last=-1, *, kind=AckKind.INDIVIDUAL, first=None, count=None,
                    object transaction=None, int64_t now=0):
        """A client's acknowledgement; return what is handed out for the room it makes.

        last: handle. A non-durable subscription gives up everything from ``first`` (None: the oldest it holds) to it,
        INDIVIDUAL too, and everything behind ``first`` if it does not hold ``last``: nothing is refused. DELIVERED
        widens the window by ``count``; POISON and EXPIRED narrow it once more. count: what the client counted (None:
        as many as there are). transaction: any hashable; only ``commit`` gives up what is acknowledged in it.
        """
        cdef Subscription it = self.subscription_at(subscription)
        cdef int64_t size = -1 if count is None else count
        cdef list deferred
        self.open()
        deferred = []
        it.acknowledge(kind, -1 if first is None else first, last, size, transaction, deferred, now)
        if deferred:
            self.transactions.setdefault(transaction, []).extend(deferred)
        return self.take()

    def commit(self, transaction, *, int64_t now=0):
        """Give up what was acknowledged in a transaction; return what is handed out for the room it makes."""
        cdef Subscription it
        self.open()
        for deferred in self.transactions.pop(transaction, ()):
            it = deferred[0]
            it.commit(deferred, now)
        return self.take()

    def rollback(self, transaction):
        """Take back what was acknowledged in a transaction; the messages are unacknowledged again."""
        cdef Subscription it
        self.open()
        for deferred in self.transactions.pop(transaction, ()):
            it = deferred[0]
            it.roll_back(deferred)

    def pull(self, subscription, *, int64_t quantity=1, int64_t timeout=0, int64_t now=0):
        """A consumer with prefetch 0 asks for messages; return what it gets.

        timeout: -1 ends with the null dispatch (message None) if there is nothing; 0 keeps the credit until something
        comes; above 0 the caller calls ``pull_timeout`` with ``pull_mark`` when these ms have passed.
        """
        cdef Subscription it = self.subscription_at(subscription)
        self.open()
        if it.prefetch == 0:
            it.pull_mark = it.handed_out
            it.extension = quantity
            it.dispatch_waiting(now)
            if timeout == -1 and it.handed_out == it.pull_mark:
                self.deliver_nothing(it.id)
                it.extension = 0
        return self.take()

    def pull_mark(self, subscription):
        """What ``pull_timeout`` wants to know of the last pull."""
        return self.subscription_at(subscription).pull_mark

    def pull_timeout(self, subscription, mark):
        """A pull has timed out: the null dispatch and no credit, unless something was handed out since."""
        cdef Subscription it = self.subscription_at(subscription)
        self.open()
        if it.prefetch == 0 and it.handed_out == mark:
            self.deliver_nothing(it.id)
            it.extension = 0
        return self.take()

    def tick(self, int64_t now):
        """One second has passed: timed recovery forgets what is too old."""
        cdef Topic it
        self.open()
        for it in self.topics:
            if it is not None and it.recovery is not None:
                it.recovery.tick(now)

    def consumers(self, topic):
        """Ids of the subscriptions of a topic, in list order."""
        cdef Subscription it
        return [it.id for it in self.topic_at(topic).consumers]

    def recoverable(self, topic):
        """Handles of what a topic keeps for retroactive consumers, the retained message first."""
        cdef Topic it = self.topic_at(topic)
        cdef list result = [] if it.retained < 0 else [self.at[it.retained].handle]
        if it.recovery is not None:
            result.extend([self.at[<int32_t> kept].handle for kept in it.recovery.kept()])
        return result

    def unacknowledged(self, subscription):
        """Handles a subscription was handed and has not acknowledged, in order."""
        cdef Subscription it = self.subscription_at(subscription)
        cdef int32_t reference = it.dispatched.first
        cdef list result = []
        while reference >= 0:
            result.append(self.at[self.refs[reference].message].handle)
            reference = self.refs[reference].next
        return result

    def waiting(self, subscription):
        """Handles that wait for a subscription, in order."""
        cdef Subscription it = self.subscription_at(subscription)
        cdef int32_t reference = it.matched.first
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
        """Counters of a topic since its start, and now: ``consumers``, ``in_flight``, ``stored``."""
        cdef Topic it = self.topic_at(topic)
        cdef int32_t message = self.counts[it.number].stored_first, stored = 0
        while message >= 0:
            stored += 1
            message = self.at[message].stored_after
        return {
            "enqueues": self.counts[it.number].enqueues,
            "dispatched": self.counts[it.number].dispatched,
            "dequeues": self.counts[it.number].dequeues,
            "in_flight": self.counts[it.number].in_flight,
            "expired": self.counts[it.number].expired,
            "discarded": self.counts[it.number].discarded,
            "consumers": len(it.consumers) + len(it.offline),
            "stored": stored,
        }

    @property
    def messages(self):
        """How many messages the region holds."""
        return self.live

    def _check(self):
        """Assert the invariants of the region and of its rooms."""
        cdef Subscription it
        cdef Topic topic
        cdef int32_t message, before, kept
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
                assert self.at[message].stored > 0 and self.at[message].persistent
                assert self.at[message].stored_before == before
                assert before < 0 or self.at[before].handle < self.at[message].handle
                before = message
                message = self.at[message].stored_after
            assert self.counts[topic.number].stored_last == before
        for message in range(self.slots):
            if self.at[message].handle >= 0:
                assert self.at[message].holds == holds[message], (self.at[message].handle, holds[message])
