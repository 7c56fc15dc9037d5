"""Topics, their subscriptions and what is sent to them (spec activemq 3)."""

from libc.stdint cimport INT64_MAX, int32_t, int64_t

from pyengine._engine.activemq.topic.message_audit cimport Audit, producer_and_number
from pyengine._engine.activemq.topic.durable_subscription cimport Cursor, DurableSubscription
from pyengine._engine.message.envelope cimport SMALLEST_SIZE, Envelope
from pyengine._engine.activemq.topic.eviction_strategies cimport Eviction, OldestEviction, pending_limit
from pyengine._engine.activemq.topic.fan_out cimport Serving, Topic, message_id_of
from pyengine._engine.message.header cimport ABSENT, may_have_header
from pyengine._engine.activemq.commands.message_ack cimport STANDARD, AckKind
from pyengine._engine.matching.consumer_filter cimport check_question
from pyengine._engine.activemq.topic.recovery_policies cimport Recovery
from pyengine._engine.activemq.topic.ledger cimport EventKind, TopicDelivery
from pyengine._engine.activemq.topic.region cimport ABSENT_HEADERS, Headers, Region
from pyengine._engine.activemq.topic.subscription cimport Subscription

from pyengine._engine.activemq.queue.queue_state import whole_number
from pyengine.errors import (
    IllegalStateError,
    InvalidDestinationError,
    InvalidTopologyError,
    JMSError,
)

cdef dict SERVING = {
    "simple": Serving.SIMPLE,
    "round_robin": Serving.ROUND_ROBIN,
    "strict_order": Serving.STRICT_ORDER,
    "priority": Serving.PRIORITY,
    "priority_network": Serving.PRIORITY_NETWORK,
    "client_id_filter": Serving.CLIENT_ID_FILTER,
}


cdef class TopicRegion(Region):
    """The topics of one broker and their subscriptions.

    keep_durable_subscriptions_active: keepDurableSubsActive (True): durable subscriptions are served while their
    consumer is away, non-persistent messages included. expired_as_discarded: count a message that expired while it
    waited as discarded, as releases before 5.17.3 did. pager: reads messages that only a store has (see ledger.pxd),
    None: all messages are here. page: with a pager, the messages of one topic that wait here for a durable subscription
    (1000). Every setting out of range raises InvalidTopologyError.
    """

    def add_topic(self, name, *, str dispatch_policy not None="simple", recovery=None, bint always_retroactive=False,
                  str selector_errors not None="no_match", str client_id_property not None="PTP_CLIENTID",
                  str suffix not None=".PTP", int64_t minimum_message_size=SMALLEST_SIZE, int64_t now=0):
        """Add a topic; return its number (0, 1, ... never reused).

        dispatch_policy: "simple", "round_robin", "strict_order", "priority", "priority_network" or
        "client_id_filter": the order in which subscriptions are served. recovery: a Recovery, of which the topic takes
        a copy, or None; a message with the property ActiveMQ.Retain = true is kept in any case. always_retroactive:
        every non-durable subscription is retroactive. selector_errors: treatment of a selector that cannot be
        evaluated: "no_match" (reported as SELECTOR_FAILED), or "exact", as in the broker: subscriptions behind that one
        do not get the message (reported as CUT too). client_id_property, suffix: clientIdFilter's ptpClientId and
        ptpSuffix. minimum_message_size: bytes that a message counts in a recovery policy without its body. now: ms.
        """
        cdef Topic it
        if dispatch_policy not in SERVING:
            raise InvalidTopologyError(
                "is not a dispatch policy", key="dispatchPolicy", value=dispatch_policy,
                hint="known: " + ", ".join(SERVING))
        if selector_errors not in ("no_match", "exact"):
            raise InvalidTopologyError("must be 'no_match' or 'exact'", key="selector_errors", value=selector_errors)
        if recovery is not None and not isinstance(recovery, Recovery):
            raise InvalidTopologyError("must be a Recovery", key="subscriptionRecoveryPolicy", value=recovery)
        self.open()
        it = Topic.__new__(Topic)
        it.number = len(self.topics)
        it.name = name
        it.serving = SERVING[dispatch_policy]
        it.always_retroactive = always_retroactive
        it.exact_errors = selector_errors == "exact"
        it.client_id_property = client_id_property
        it.suffix = suffix
        it.minimum_message_size = minimum_message_size
        if recovery is not None:
            it.recovery = (<Recovery> recovery).fresh(self, now)
        self.reserve_counts(it.number + 1)
        self.topics.append(it)
        return it.number

    def remove_topic(self, topic):
        """Remove a topic without subscriptions; what it kept for retroactive consumers is forgotten."""
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
                         bint use_prefetch_extension=True, int64_t now=0):
        """Add a subscription that is attached to no topic yet; return its id (0, 1, ... never reused).

        selector: None, a Selector, or any callable from the sent object to bool; equal selectors are asked once per
        message. priority: -128..127. prefetch: messages it may hold unacknowledged; 0 pulls, below 0 gets nothing.
        no_local: refuse messages sent on the same ``connection`` (any hashable). client_id: clientIdFilter compares it.
        name: matches the ``target`` of messages. network_consumers: the consumers at other brokers a bridge's
        subscription stands for. pending_limit_strategy, maximum_pending_message_limit: see ``maximum_pending_messages``
        in eviction. eviction: an Eviction (None: OldestEviction). audit: an Audit of its own, to refuse messages it
        saw before; None: off, as without a policyEntry. now: ms.
        """
        cdef Subscription it
        whole_number("consumer.priority", priority, -128, 127)
        whole_number("consumer.prefetchSize", prefetch, -(2**31), 2**31 - 1)
        check_question(selector)
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
        it.eviction = OldestEviction() if eviction is None else eviction
        it.audit = audit
        it.last_ack = now
        it.predicate = self.question_for(selector)
        self.subscriptions[it.id] = it
        self.next_id += 1
        return it.id

    def attach(self, subscription, topic, *, int64_t now=0):
        """Attach a subscription to a topic; return the deliveries made at once: old messages if it is retroactive.

        A durable subscription is attached to its topics by ``subscribe``; a wildcard's, here, to those made later.
        """
        cdef Subscription it = self.subscription_at(subscription)
        cdef Topic to = self.topic_at(topic)
        self.open()
        if to.number not in it.topics:
            self.join(it, to, now)
        return self.take()

    def close(self, subscription):
        """Remove a non-durable subscription and its waiting messages. Returns the events, at present none."""
        cdef Subscription it = self.subscription_at(subscription)
        self.open()
        if isinstance(it, DurableSubscription):
            raise IllegalStateError(f"subscription {subscription!r} is durable: deactivate it, or unsubscribe")
        self.destroy(it)
        return self.take()

    # Durable subscriptions

    def subscribe(self, client_id, subscription_name, topics, *, destination=None, selector=None, priority=0,
                  prefetch=100, bint no_local=False, connection=None, name=None, bint retroactive=False,
                  bint prioritized_messages=False, bint use_prefetch_extension=True, bint link_stealing=False,
                  bint active=True, int64_t now=0):
        """A consumer of a durable subscription subscribes; returns ``(id, deliveries)``.

        The key is (client_id, subscription_name). If it exists with the same selector, noLocal and destination, the
        subscription goes on with the consumer's other settings; if one of them differs, it is deleted with its backlog
        and made again, with a new id. topics: the numbers of the topics it matches now. destination: the destination it
        subscribed to (None: the topics). retroactive: a new subscription also gets messages stored for others; any gets
        those that the topics keep, the recovery policy's part only if nothing stored waits for it. prefetch: 100; the
        client asks for 1000 with automatic acknowledgement. prioritized_messages: higher priorities first.
        link_stealing: take it over from an active consumer. active=False: create it offline, from a store. The others
        as in ``add_subscription``. Raises JMSError if it is in use.
        """
        cdef DurableSubscription it
        cdef Topic topic
        cdef tuple key = (client_id, subscription_name)
        cdef bint fresh
        whole_number("consumer.priority", priority, -128, 127)
        whole_number("consumer.prefetchSize", prefetch, -(2**31), 2**31 - 1)
        check_question(selector)
        if no_local and connection is None and active:
            raise InvalidTopologyError("noLocal needs the consumer's connection", key="consumer.noLocal", value=True)
        wanted = [self.topic_at(number) for number in topics]
        destination = tuple(topics) if destination is None else destination
        self.open()
        it = None
        if key in self.durables:
            it = self.subscriptions[self.durables[key]]
            if it.active and not link_stealing:
                raise JMSError(f"Durable consumer is in use for client: {client_id} and subscriptionName: "
                               f"{subscription_name}")
            if it.selector != selector or it.no_local != no_local or it.destination != destination:
                self.destroy(it)
                it = None
            elif it.active:
                it.stop(self.keep_durable_subscriptions_active, -1, now)
        fresh = it is None
        if not fresh:
            it.fresh = False
        else:
            it = DurableSubscription.__new__(DurableSubscription)
            it.fresh = True
            it.ledger = self
            it.id = self.next_id
            it.client_id = client_id
            it.subscription_name = subscription_name
            it.destination = destination
            it.selector = selector
            it.no_local = no_local
            it.prioritized = prioritized_messages
            it.use_prefetch_extension = use_prefetch_extension
            it.keep_active = self.keep_durable_subscriptions_active
            it.last_ack = now
            it.offline_since = now
            it.predicate = self.question_for(selector)
            self.subscriptions[it.id] = it
            self.durables[key] = it.id
            self.next_id += 1
        it.connection = self.connection_number(connection)
        it.name = name
        it.priority = priority
        it.prefetch = prefetch
        it.retroactive = retroactive
        for topic in wanted:
            if topic.number not in it.topics:
                self.join(it, topic, now)
        if active:
            self.enliven(it, now)
        return it.id, self.take()

    def activate(self, subscription, *, prefetch=None, int64_t now=0):
        """Activate a durable subscription that was created with active=False; returns the deliveries.

        prefetch: instead of the one that ``subscribe`` was given.
        """
        cdef Subscription it = self.subscription_at(subscription)
        self.open()
        if not isinstance(it, DurableSubscription) or (<DurableSubscription> it).active:
            raise IllegalStateError(f"subscription {subscription!r} is no durable one whose consumer is away")
        if prefetch is not None:
            whole_number("consumer.prefetchSize", prefetch, -(2**31), 2**31 - 1)
            it.prefetch = prefetch
        self.enliven(it, now)
        return self.take()

    def leave_behind(self, subscription, topic, int64_t count):
        """A store has ``count`` messages of a topic that wait for a durable subscription that was just made."""
        cdef Subscription it = self.subscription_at(subscription)
        cdef Topic of = self.topic_at(topic)
        cdef Cursor cursor
        self.open()
        if self.pager is None or not isinstance(it, DurableSubscription):
            raise IllegalStateError(f"subscription {subscription!r} is not durable, or there is no pager")
        cursor = (<DurableSubscription> it).cursor_at(of.number)
        if cursor is None:
            raise IllegalStateError(f"subscription {it.id} is not attached to topic {of.number}")
        (<DurableSubscription> it).leave_behind(cursor, count)

    cdef int recover_stored(self, Topic topic, DurableSubscription it) except -1:
        cdef int32_t message = self.counts[topic.number].stored_first, after
        cdef int64_t newest = -1
        cdef list found
        if self.pager is not None:
            while True:
                found = self.load(None, topic.number, (0, newest), self.page)
                if not found:
                    return 0
                for handle, body in found:
                    newest = handle
                    message = self.bring(topic.number, body, handle)
                    self.asked += 1
                    if self.matches(it, message, None) == 1:
                        it.enqueue(message)
                    self.release(message)
        while message >= 0:
            after = self.at[message].stored_after
            self.asked += 1
            if self.matches(it, message, None) == 1:
                it.enqueue(message)
            message = after
        return 0

    cdef int enliven(self, DurableSubscription it, int64_t now) except -1:
        cdef Topic topic
        if it.fresh and it.retroactive:
            for number in it.topics:
                self.recover_stored(self.topics[number], it)
        it.fresh = False
        for number in it.topics:
            topic = self.topics[number]
            topic.order = None
            if it in topic.offline:
                topic.offline.remove(it)
                topic.consumers.append(it)
            if it.retroactive:
                self.recover(topic, it, it.persistent_empty(topic.number), now)
        return it.start(now)

    def deactivate(self, subscription, *, last_delivered=None, bint lost=False, int64_t now=0):
        """The consumer of a durable subscription leaves; its unacknowledged messages wait again, in front.

        last_delivered: the last message the client reports as delivered, acknowledged or not: the redelivery counts of
        messages up to it go up; None: none was. lost: the connection broke and reports nothing, all of them go up.
        """
        cdef Subscription found = self.subscription_at(subscription)
        cdef DurableSubscription it
        cdef Topic topic
        self.open()
        if not isinstance(found, DurableSubscription):
            raise IllegalStateError(f"subscription {subscription!r} is not durable; close it")
        it = found
        if it.active:
            it.stop(self.keep_durable_subscriptions_active,
                    INT64_MAX if lost else -1 if last_delivered is None else last_delivered, now)
            if not it.keep_active:
                for number in it.topics:
                    topic = self.topics[number]
                    topic.consumers.remove(it)
                    topic.offline.append(it)
                    topic.order = None

    def unsubscribe(self, client_id, subscription_name):
        """Delete a durable subscription and its backlog.

        Raises InvalidDestinationError if there is none, JMSError if it is active.
        """
        cdef DurableSubscription it
        self.open()
        if (client_id, subscription_name) not in self.durables:
            raise InvalidDestinationError(f"No durable subscription exists for clientID: {client_id} and "
                                          f"subscriptionName: {subscription_name}")
        it = self.subscriptions[self.durables[client_id, subscription_name]]
        if it.active:
            raise JMSError("Durable consumer is in use")
        self.destroy(it)
        del self.durables[client_id, subscription_name]

    def remove_offline(self, int64_t timeout, *, int64_t now):
        """Delete the durable subscriptions whose consumer has been away for ``timeout`` ms (-1: none).

        Returns their keys (offlineDurableSubscriberTimeout).
        """
        cdef DurableSubscription it
        cdef list removed = []
        self.open()
        for key, number in list(self.durables.items()):
            it = self.subscriptions[number]
            if timeout != -1 and not it.active and now - it.offline_since >= timeout:
                self.destroy(it)
                del self.durables[key]
                removed.append(key)
        return removed

    def expire(self, topic, int64_t now, *, upto=None, bint active_too=False):
        """The periodic scan: expired stored messages leave the durable subscriptions whose consumer is away.

        upto: the newest message that is looked at (None: all are); by a subscription with a pager that is served by
        priority, of what is here. active_too: enableMessageExpirationOnActiveDurableSubs. Returns what happened.
        """
        cdef Topic of = self.topic_at(topic)
        cdef Subscription it
        cdef DurableSubscription durable
        cdef int64_t newest = INT64_MAX if upto is None else upto
        self.open()
        for it in of.consumers + of.offline:
            if isinstance(it, DurableSubscription):
                durable = it
                if active_too or not durable.active:
                    durable.expire_stored(of.number, now, newest)
        return self.take()

    def send(self, topic, object message=None, *, object priority=ABSENT, object expiration=ABSENT,
             object timestamp=ABSENT, object persistent=ABSENT, object message_id=ABSENT, object size=ABSENT,
             object connection=None, object target=None, object discarding=None, int64_t handle=-1, int64_t now=0):
        """Send a message to a topic; returns the deliveries and events, in order.

        message: the object that selectors evaluate and that is dispatched, of any type. Values without a keyword are
        read once, here, from a Message or from a mapping's JMSPriority (4), JMSExpiration (ms, 0: never), JMSTimestamp
        (ms, 0), JMSDeliveryMode (PERSISTENT) and JMSMessageID (``producer:number``, for audits). size: bytes, for
        fixedSized recovery (a Message knows its own, else the topic's minimum_message_size). connection: the
        producer's, for noLocal. target: name of the only subscription that may have it. discarding: the subscription
        whose discard this advisory reports; it does not get it. handle: the message's, from ``next_handle`` on (-1:
        that). now: ms.
        """
        cdef Topic to = self.topic_at(topic)
        cdef Subscription suppressed = None if discarding is None else self.subscriptions.get(discarding)
        cdef Headers given = ABSENT_HEADERS
        self.open()
        if -1 != handle < self.next_handle:
            raise IllegalStateError(f"message {handle} cannot be sent: handles ascend from {self.next_handle} on")
        if (priority is not ABSENT or expiration is not ABSENT or timestamp is not ABSENT or persistent is not ABSENT
                or message_id is not ABSENT or size is not ABSENT):
            given = Headers(priority=priority, expiration=expiration, timestamp=timestamp, persistent=persistent,
                            message_id=message_id, size=size)
        self.publish(to, message, given, connection, target, suppressed, handle, now)
        return self.take()

    def send_each(self, topic, messages, *, object persistent=ABSENT, object connection=None, int64_t now=0):
        """``send`` every one of ``messages`` by itself, in order, in one call; return what happens.

        If one raises, those before it are sent, and the next call returns their events.
        """
        cdef Topic to = self.topic_at(topic)
        cdef Headers given = ABSENT_HEADERS if persistent is ABSENT else Headers(persistent=persistent)
        self.open()
        for message in messages:
            self.publish(to, message, given, connection, None, None, -1, now)
        return self.take()

    cdef int publish(self, Topic to, object message, Headers given, object connection, object target,
                     Subscription suppressed, int64_t handle, int64_t now) except -1:
        # What ``send`` says, but for what it returns.
        cdef object producer = None
        cdef int64_t number = 0
        cdef int32_t slot
        cdef bint plain = type(message) is dict and not may_have_header(message)
        if isinstance(message, Envelope):
            connection = (<Envelope> message)._connection_id if connection is None else connection
            target = (<Envelope> message)._target_consumer_id if target is None else target
        message_id = given.message_id
        if message_id is ABSENT:
            message_id = None if plain else message_id_of(message)
        if message_id is not None:
            producer, number = producer_and_number(message_id)
        slot = self.accept(to, message, handle, given, connection, plain)
        try:
            if 0 < self.at[slot].expiration < now:
                self.counts[to.number].expired += 1
                return self.report(EventKind.EXPIRED, None, -1, slot, None)
            self.counts[to.number].enqueues += 1
            if not self.retain(to, slot, plain, now):
                self.report(EventKind.REFUSED, None, -1, slot, None)
            elif not self.fan_out(to, slot, target, producer, number, suppressed, now):
                self.report(EventKind.NO_CONSUMER, None, -1, slot, None)
        finally:
            self.release(slot)
        return 0

    def acknowledge(self, subscription, last=-1, *, kind=AckKind.INDIVIDUAL, first=None, count=None,
                    object transaction=None, int64_t now=0):
        """A client's acknowledgement; returns the dispatches that it makes room for.

        last: handle. A non-durable subscription gives up everything from ``first`` (None: the oldest it holds) to it,
        INDIVIDUAL too, and everything behind ``first`` if it does not hold ``last``: nothing is refused. DELIVERED
        widens the window by ``count``; REDELIVERED gives up nothing; POISON and EXPIRED narrow it once more.
        count: the client's count (None: the actual one). transaction: any hashable; only ``commit`` gives
        up what is acknowledged in it. ``settled`` returns the released messages.
        """
        cdef Subscription it = self.subscription_at(subscription)
        cdef int64_t size = -1 if count is None else count
        cdef list deferred
        self.open()
        self.given_up = []
        deferred = None if transaction is None else []
        it.acknowledge(kind, -1 if first is None else first, last, size, transaction, deferred, now)
        if deferred:
            self.transactions.setdefault(transaction, []).extend(deferred)
        return self.take()

    def acknowledge_each(self, deliveries, *, int64_t now=0):
        """``acknowledge`` (STANDARD) every TopicDelivery among ``deliveries`` by itself, in order, in one call; returns
        the dispatches that this makes room for. ``settled`` returns the messages that they released."""
        cdef TopicDelivery delivery
        cdef Subscription it = None
        self.open()
        self.given_up = []
        for each in deliveries:
            if type(each) is TopicDelivery and (<TopicDelivery> each).message is not None:
                delivery = each
                if it is None or it.id != delivery.consumer:
                    it = self.subscription_at(delivery.consumer)
                it.acknowledge(STANDARD, -1, delivery.message, -1, None, None, now)
        return self.take()

    def mark_slow(self, subscription):
        """Mark a subscription slow, as abortSlowAckConsumerStrategy does; SLOW for each topic unless it is already."""
        cdef Subscription it = self.subscription_at(subscription)
        self.open()
        if not it.slow:
            it.find_slow()
        return self.take()

    @property
    def settled(self):
        """Messages that the last ``acknowledge`` or ``commit`` released: ``[(handle, object)]``, in order."""
        return list(zip(self.given_up[::2], self.given_up[1::2]))

    def commit(self, transaction, *, int64_t now=0):
        """Commit the acknowledgements of a transaction; returns the dispatches that this makes room for."""
        cdef Subscription it
        self.open()
        self.given_up = []
        for deferred in self.transactions.pop(transaction, ()):
            it = deferred[0]
            it.commit(deferred, now)
        return self.take()

    def rollback(self, transaction, *, int64_t now=0):
        """Roll the acknowledgements of a transaction back: the messages are unacknowledged again, at their consumers.

        Returns dispatches: messages that went back to waiting because their consumer left.
        """
        cdef Subscription it
        self.open()
        for deferred in self.transactions.pop(transaction, ()):
            it = deferred[0]
            it.roll_back(deferred, now)
        return self.take()

    def pull(self, subscription, *, int64_t quantity=1, int64_t timeout=0, int64_t now=0):
        """A consumer with prefetch 0 asks for messages; return what it gets.

        timeout: -1 ends with the null dispatch (message None) if there is nothing; 0 keeps the credit until a message
        comes; above 0 the caller calls ``pull_timeout`` with ``pull_mark`` when these ms have passed.
        """
        cdef Subscription it = self.subscription_at(subscription)
        self.open()
        if it.prefetch == 0:
            it.pull_mark = it.handed_out
            it.extension = quantity
            it.dispatch_waiting(now)
            if timeout == -1 and it.handed_out == it.pull_mark:
                it.serve_null()
                self.deliver_nothing(it.id)
                it.extension = 0
        return self.take()

    def set_prefetch(self, subscription, int64_t prefetch, *, int64_t now=0):
        """A subscription may hold so many messages unacknowledged from now on; return what it gets."""
        cdef Subscription found = self.subscription_at(subscription)
        self.open()
        found.prefetch = prefetch
        found.dispatch_waiting(now)
        return self.take()

    def pull_mark(self, subscription):
        """The argument of ``pull_timeout`` for the last pull."""
        return self.subscription_at(subscription).pull_mark

    def pull_timeout(self, subscription, mark):
        """A pull has timed out: the null dispatch and no credit, unless a message was dispatched since."""
        cdef Subscription it = self.subscription_at(subscription)
        self.open()
        if it.prefetch == 0 and it.handed_out == mark:
            it.serve_null()
            self.deliver_nothing(it.id)
            it.extension = 0
        return self.take()

    def tick(self, int64_t now):
        """One second has passed: timed recovery drops old messages."""
        cdef Topic it
        self.open()
        for it in self.topics:
            if it is not None and it.recovery is not None:
                it.recovery.tick(now)
