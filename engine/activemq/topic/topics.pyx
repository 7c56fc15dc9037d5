"""Topics, their subscriptions and what is sent to them (spec activemq 3)."""

from libc.stdint cimport INT64_MAX, int32_t, int64_t

from pyengine._engine.activemq.commands.message_ack cimport STANDARD, AckKind
from pyengine._engine.activemq.topic.durable_subscription cimport Cursor, DurableSubscription
from pyengine._engine.activemq.topic.eviction_strategies cimport Eviction, OldestEviction, pending_limit
from pyengine._engine.activemq.topic.fan_out cimport SERVING, FanOut, message_id_of
from pyengine._engine.activemq.topic.ledger cimport EventKind, Ledger, TopicDelivery
from pyengine._engine.activemq.topic.message_audit cimport Audit, producer_and_number
from pyengine._engine.activemq.topic.message_intake cimport ABSENT_HEADERS, Headers, MessageIntake
from pyengine._engine.activemq.topic.message_references cimport MessageReferences
from pyengine._engine.activemq.topic.recovery_policies cimport Recovery
from pyengine._engine.activemq.topic.registry cimport Registry
from pyengine._engine.activemq.topic.selector_answers cimport SelectorAnswers
from pyengine._engine.activemq.topic.store_pager cimport StorePager
from pyengine._engine.activemq.topic.subscription cimport Subscription
from pyengine._engine.activemq.topic.topic cimport Topic
from pyengine._engine.matching.consumer_filter cimport check_question
from pyengine._engine.message.envelope cimport SMALLEST_SIZE, Envelope
from pyengine._engine.message.header cimport ABSENT, may_have_header

from pyengine._engine.activemq.queue.queue_state import whole_number
from pyengine.errors import (
    IllegalStateError,
    InvalidDestinationError,
    InvalidTopologyError,
    JMSError,
)


cdef class TopicRegion:
    """The topics of one broker and their subscriptions.

    keep_durable_subscriptions_active: keepDurableSubsActive (True): durable subscriptions are served while their
    consumer is away, non-persistent messages included. expired_as_discarded: count a message that expired while it
    waited as discarded, as releases before 5.17.3 did. pager: reads messages that only a store has (see
    store_pager.pxd), None: all messages are here. page: with a pager, the messages of one topic that wait here for a
    durable subscription (1000). Every setting out of range raises InvalidTopologyError.
    """

    def __cinit__(self, *, bint keep_durable_subscriptions_active=True, bint expired_as_discarded=False, pager=None,
                  page=1000):
        cdef list topics = []
        page = whole_number("page", page, 1, 2**31 - 1)
        self.keep_durable_subscriptions_active = keep_durable_subscriptions_active
        self.references = MessageReferences()
        self.references.next_handle = 1
        self.ledger = Ledger(self.references, expired_as_discarded, pager is None)
        self.intake = MessageIntake(self.references)
        if pager is not None:
            self.pager = StorePager(self.ledger, self.intake, topics, pager, page)
        self.fan_out = FanOut(SelectorAnswers(self.ledger), self.pager)
        self.registry = Registry(self.fan_out, topics)
        self.transactions = {}

    def __reduce__(self):
        raise TypeError("the messages of topics cannot be pickled")

    cdef int refuse_while_asked(self) except -1:
        if self.ledger.busy:
            raise IllegalStateError("a selector, strategy or query cannot call the region that is asking it")
        return 0

    # Topics

    def add_topic(self, name, *, str dispatch_policy not None="simple", recovery=None, bint always_retroactive=False,
                  str selector_errors not None="no_match", str client_id_property not None="PTP_CLIENTID",
                  str suffix not None=".PTP", int64_t minimum_message_size=SMALLEST_SIZE, int64_t now=0):
        """Add a topic; return its number: one that a removed topic had, once no message of that is here, or the next.

        dispatch_policy: "simple", "round_robin", "strict_order", "priority", "priority_network" or
        "client_id_filter": the order in which subscriptions are served. recovery: a Recovery, of which the topic takes
        a copy, or None; a message with the property ActiveMQ.Retain = true is kept in any case. always_retroactive:
        every non-durable subscription is retroactive. selector_errors: treatment of a selector that cannot be
        evaluated: "no_match" (reported as SELECTOR_FAILED), or "exact", as in the broker: subscriptions behind that one
        do not get the message (reported as CUT too). client_id_property, suffix: clientIdFilter's ptpClientId and
        ptpSuffix. minimum_message_size: bytes that a message counts in a recovery policy without its body. now: ms.
        """
        cdef Topic added
        if dispatch_policy not in SERVING:
            raise InvalidTopologyError(
                "is not a dispatch policy", key="dispatchPolicy", value=dispatch_policy,
                hint="known: " + ", ".join(SERVING))
        if selector_errors not in ("no_match", "exact"):
            raise InvalidTopologyError("must be 'no_match' or 'exact'", key="selector_errors", value=selector_errors)
        if recovery is not None and not isinstance(recovery, Recovery):
            raise InvalidTopologyError("must be a Recovery", key="subscriptionRecoveryPolicy", value=recovery)
        self.refuse_while_asked()
        added = Topic.__new__(Topic)
        added.name = name
        added.serving = SERVING[dispatch_policy]
        added.always_retroactive = always_retroactive
        added.exact_errors = selector_errors == "exact"
        added.client_id_property = client_id_property
        added.suffix = suffix
        added.minimum_message_size = minimum_message_size
        if recovery is not None:
            added.recovery = (<Recovery> recovery).fresh(self.references, now)
        self.registry.add_topic(added)
        return added.number

    def remove_topic(self, topic):
        """Remove a topic without subscriptions; what it kept for retroactive consumers is forgotten."""
        cdef Topic removed = self.registry.topic_at(topic)
        self.refuse_while_asked()
        if removed.consumers or removed.offline:
            raise IllegalStateError(f"topic {removed.name!r} has subscriptions")
        if removed.recovery is not None:
            removed.recovery.clear()
        if removed.retained >= 0:
            self.references.release(removed.retained)
        self.registry.remove_topic(removed)

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
        cdef Subscription added
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
        self.refuse_while_asked()
        added = Subscription.__new__(Subscription)
        added.limit = pending_limit(pending_limit_strategy, prefetch, maximum_pending_message_limit)
        added.selector = selector
        added.no_local = no_local
        added.connection = self.intake.connection_number(connection)
        added.client_id = client_id
        added.name = name
        added.priority = priority
        added.browser = browser
        added.retroactive = retroactive
        added.network_consumers = tuple(network_consumers)
        added.prefetch = prefetch
        added.use_prefetch_extension = use_prefetch_extension
        added.eviction = OldestEviction() if eviction is None else eviction
        added.audit = audit
        added.last_ack = now
        self.registry.add(added)
        return added.id

    def attach(self, subscription, topic, *, int64_t now=0):
        """Attach a subscription to a topic; return the deliveries made at once: old messages if it is retroactive.

        A durable subscription is attached to its topics by ``subscribe``; a wildcard's, here, to those made later.
        """
        cdef Subscription attached = self.registry.subscription_at(subscription)
        cdef Topic destination = self.registry.topic_at(topic)
        self.refuse_while_asked()
        if destination.number not in attached.topics:
            self.registry.attach(attached, destination, now)
        return self.ledger.take()

    def close(self, subscription):
        """Remove a non-durable subscription and its waiting messages. Returns the events, at present none."""
        cdef Subscription closed = self.registry.subscription_at(subscription)
        self.refuse_while_asked()
        if isinstance(closed, DurableSubscription):
            raise IllegalStateError(f"subscription {subscription!r} is durable: deactivate it, or unsubscribe")
        self.registry.remove(closed)
        return self.ledger.take()

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
        cdef DurableSubscription durable
        cdef Topic topic
        cdef tuple key = (client_id, subscription_name)
        whole_number("consumer.priority", priority, -128, 127)
        whole_number("consumer.prefetchSize", prefetch, -(2**31), 2**31 - 1)
        check_question(selector)
        if no_local and connection is None and active:
            raise InvalidTopologyError("noLocal needs the consumer's connection", key="consumer.noLocal", value=True)
        wanted = [self.registry.topic_at(number) for number in topics]
        destination = tuple(topics) if destination is None else destination
        self.refuse_while_asked()
        durable = None
        if key in self.registry.durables:
            durable = self.registry.subscriptions[self.registry.durables[key]]
            if durable.active and not link_stealing:
                raise JMSError(f"Durable consumer is in use for client: {client_id} and subscriptionName: "
                               f"{subscription_name}")
            if durable.selector != selector or durable.no_local != no_local or durable.destination != destination:
                self.registry.remove(durable)
                durable = None
            elif durable.active:
                durable.stop(self.keep_durable_subscriptions_active, -1, now)
        if durable is not None:
            durable.fresh = False
        else:
            durable = DurableSubscription.__new__(DurableSubscription)
            durable.fresh = True
            durable.pager = self.pager
            durable.client_id = client_id
            durable.subscription_name = subscription_name
            durable.destination = destination
            durable.selector = selector
            durable.no_local = no_local
            durable.prioritized = prioritized_messages
            durable.use_prefetch_extension = use_prefetch_extension
            durable.keep_active = self.keep_durable_subscriptions_active
            durable.last_ack = now
            durable.offline_since = now
            self.registry.add(durable)
            self.registry.durables[key] = durable.id
        durable.connection = self.intake.connection_number(connection)
        durable.name = name
        durable.priority = priority
        durable.prefetch = prefetch
        durable.retroactive = retroactive
        for topic in wanted:
            if topic.number not in durable.topics:
                self.registry.attach(durable, topic, now)
        if active:
            self.registry.activate(durable, now)
        return durable.id, self.ledger.take()

    def activate(self, subscription, *, prefetch=None, int64_t now=0):
        """Activate a durable subscription that was created with active=False; returns the deliveries.

        prefetch: instead of the one that ``subscribe`` was given.
        """
        cdef Subscription activated = self.registry.subscription_at(subscription)
        self.refuse_while_asked()
        if not isinstance(activated, DurableSubscription) or (<DurableSubscription> activated).active:
            raise IllegalStateError(f"subscription {subscription!r} is no durable one whose consumer is away")
        if prefetch is not None:
            whole_number("consumer.prefetchSize", prefetch, -(2**31), 2**31 - 1)
            activated.prefetch = prefetch
        self.registry.activate(activated, now)
        return self.ledger.take()

    def leave_behind(self, subscription, topic, int64_t count):
        """A store has ``count`` messages of a topic that wait for a durable subscription that was just made."""
        cdef Subscription behind = self.registry.subscription_at(subscription)
        cdef Topic destination = self.registry.topic_at(topic)
        cdef Cursor cursor
        self.refuse_while_asked()
        if self.pager is None or not isinstance(behind, DurableSubscription):
            raise IllegalStateError(f"subscription {subscription!r} is not durable, or there is no pager")
        cursor = (<DurableSubscription> behind).cursor_at(destination.number)
        if cursor is None:
            raise IllegalStateError(f"subscription {behind.id} is not attached to topic {destination.number}")
        (<DurableSubscription> behind).leave_behind(cursor, count)

    def deactivate(self, subscription, *, last_delivered=None, bint lost=False, int64_t now=0):
        """The consumer of a durable subscription leaves; its unacknowledged messages wait again, in front.

        last_delivered: the last message the client reports as delivered, acknowledged or not: the redelivery counts of
        messages up to it go up; None: none was. lost: the connection broke and reports nothing, all of them go up.
        """
        cdef Subscription found = self.registry.subscription_at(subscription)
        cdef DurableSubscription durable
        self.refuse_while_asked()
        if not isinstance(found, DurableSubscription):
            raise IllegalStateError(f"subscription {subscription!r} is not durable; close it")
        durable = found
        if durable.active:
            self.registry.deactivate(
                durable, INT64_MAX if lost else -1 if last_delivered is None else last_delivered,
                self.keep_durable_subscriptions_active, now)

    def unsubscribe(self, client_id, subscription_name):
        """Delete a durable subscription and its backlog.

        Raises InvalidDestinationError if there is none, JMSError if it is active.
        """
        cdef DurableSubscription durable
        self.refuse_while_asked()
        if (client_id, subscription_name) not in self.registry.durables:
            raise InvalidDestinationError(f"No durable subscription exists for clientID: {client_id} and "
                                          f"subscriptionName: {subscription_name}")
        durable = self.registry.subscriptions[self.registry.durables[client_id, subscription_name]]
        if durable.active:
            raise JMSError("Durable consumer is in use")
        self.registry.remove(durable)
        del self.registry.durables[client_id, subscription_name]

    def remove_offline(self, int64_t timeout, *, int64_t now):
        """Delete the durable subscriptions whose consumer has been away for ``timeout`` ms (-1: none).

        Returns their keys (offlineDurableSubscriberTimeout).
        """
        cdef DurableSubscription durable
        cdef list removed = []
        self.refuse_while_asked()
        for key, number in list(self.registry.durables.items()):
            durable = self.registry.subscriptions[number]
            if timeout != -1 and not durable.active and now - durable.offline_since >= timeout:
                self.registry.remove(durable)
                del self.registry.durables[key]
                removed.append(key)
        return removed

    def expire(self, topic, int64_t now, *, upto=None, bint active_too=False):
        """The periodic scan: expired stored messages leave the durable subscriptions whose consumer is away.

        upto: the newest message that is looked at (None: all are); by a subscription with a pager that is served by
        priority, of what is here. active_too: enableMessageExpirationOnActiveDurableSubs. Returns what happened.
        """
        cdef Topic destination = self.registry.topic_at(topic)
        cdef Subscription subscription_here
        cdef DurableSubscription durable
        cdef int64_t newest = INT64_MAX if upto is None else upto
        self.refuse_while_asked()
        for subscription_here in destination.consumers + destination.offline:
            if isinstance(subscription_here, DurableSubscription):
                durable = subscription_here
                if active_too or not durable.active:
                    durable.expire_stored(destination.number, now, newest)
        return self.ledger.take()

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
        cdef Topic destination = self.registry.topic_at(topic)
        cdef Subscription suppressed = None if discarding is None else self.registry.subscriptions.get(discarding)
        cdef Headers given = ABSENT_HEADERS
        self.refuse_while_asked()
        if -1 != handle < self.references.next_handle:
            raise IllegalStateError(
                f"message {handle} cannot be sent: handles ascend from {self.references.next_handle} on")
        if (priority is not ABSENT or expiration is not ABSENT or timestamp is not ABSENT or persistent is not ABSENT
                or message_id is not ABSENT or size is not ABSENT):
            given = Headers(priority=priority, expiration=expiration, timestamp=timestamp, persistent=persistent,
                            message_id=message_id, size=size)
        self.publish(destination, message, given, connection, target, suppressed, handle, now)
        return self.ledger.take()

    def send_each(self, topic, messages, *, object persistent=ABSENT, object connection=None, int64_t now=0):
        """``send`` every one of ``messages`` by itself, in order, in one call; return what happens.

        If one raises, those before it are sent, and the next call returns their events.
        """
        cdef Topic destination = self.registry.topic_at(topic)
        cdef Headers given = ABSENT_HEADERS if persistent is ABSENT else Headers(persistent=persistent)
        self.refuse_while_asked()
        for message in messages:
            self.publish(destination, message, given, connection, None, None, -1, now)
        return self.ledger.take()

    cdef int publish(self, Topic topic, object message, Headers given, object connection, object target,
                     Subscription suppressed, int64_t handle, int64_t now) except -1:
        # ``send``, without its result.
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
        slot = self.intake.accept(topic, message, handle, given, connection, plain)
        try:
            if 0 < self.references.at[slot].expiration < now:
                self.ledger.counts[topic.number].expired += 1
                return self.ledger.report(EventKind.EXPIRED, None, -1, slot, None)
            self.ledger.counts[topic.number].enqueues += 1
            if not self.fan_out.retain(topic, slot, plain, now):
                self.ledger.report(EventKind.REFUSED, None, -1, slot, None)
            elif not self.fan_out.give(topic, slot, target, producer, number, suppressed, now):
                self.ledger.report(EventKind.NO_CONSUMER, None, -1, slot, None)
        finally:
            self.references.release(slot)
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
        cdef Subscription acknowledging = self.registry.subscription_at(subscription)
        cdef int64_t size = -1 if count is None else count
        cdef list deferred
        self.refuse_while_asked()
        self.ledger.given_up = []
        deferred = None if transaction is None else []
        acknowledging.acknowledge(kind, -1 if first is None else first, last, size, transaction, deferred, now)
        if deferred:
            self.transactions.setdefault(transaction, []).extend(deferred)
        return self.ledger.take()

    def acknowledge_each(self, deliveries, *, int64_t now=0):
        """``acknowledge`` (STANDARD) every TopicDelivery among ``deliveries`` by itself, in order, in one call; returns
        the dispatches that this makes room for. ``settled`` returns the messages that they released."""
        cdef TopicDelivery delivery
        cdef Subscription acknowledging = None
        self.refuse_while_asked()
        self.ledger.given_up = []
        for each in deliveries:
            if type(each) is TopicDelivery and (<TopicDelivery> each).message is not None:
                delivery = each
                if acknowledging is None or acknowledging.id != delivery.consumer:
                    acknowledging = self.registry.subscription_at(delivery.consumer)
                acknowledging.acknowledge(STANDARD, -1, delivery.message, -1, None, None, now)
        return self.ledger.take()

    def mark_slow(self, subscription):
        """Mark a subscription slow, as abortSlowAckConsumerStrategy does; SLOW for each topic unless it is already."""
        cdef Subscription slow = self.registry.subscription_at(subscription)
        self.refuse_while_asked()
        if not slow.slow:
            slow.find_slow()
        return self.ledger.take()

    @property
    def settled(self):
        """Messages that the last ``acknowledge`` or ``commit`` released: ``[(handle, object)]``, in order."""
        return list(zip(self.ledger.given_up[::2], self.ledger.given_up[1::2]))

    def commit(self, transaction, *, int64_t now=0):
        """Commit the acknowledgements of a transaction; returns the dispatches that this makes room for."""
        cdef Subscription subscription
        self.refuse_while_asked()
        self.ledger.given_up = []
        for deferred in self.transactions.pop(transaction, ()):
            subscription = deferred[0]
            subscription.commit(deferred, now)
        return self.ledger.take()

    def rollback(self, transaction, *, int64_t now=0):
        """Roll the acknowledgements of a transaction back: the messages are unacknowledged again, at their consumers.

        Returns dispatches: messages that went back to waiting because their consumer left.
        """
        cdef Subscription subscription
        self.refuse_while_asked()
        for deferred in self.transactions.pop(transaction, ()):
            subscription = deferred[0]
            subscription.roll_back(deferred, now)
        return self.ledger.take()

    def pull(self, subscription, *, int64_t quantity=1, int64_t timeout=0, int64_t now=0):
        """A consumer with prefetch 0 asks for messages; return what it gets.

        timeout: -1 ends with the null dispatch (message None) if there is nothing; 0 keeps the credit until a message
        comes; above 0 the caller calls ``pull_timeout`` with ``pull_mark`` when these ms have passed.
        """
        cdef Subscription puller = self.registry.subscription_at(subscription)
        self.refuse_while_asked()
        if puller.prefetch == 0:
            puller.pull_mark = puller.handed_out
            puller.extension = quantity
            puller.dispatch_waiting(now)
            if timeout == -1 and puller.handed_out == puller.pull_mark:
                puller.end_pull()
        return self.ledger.take()

    def set_prefetch(self, subscription, int64_t prefetch, *, int64_t now=0):
        """A subscription may hold so many messages unacknowledged from now on; return what it gets."""
        cdef Subscription found = self.registry.subscription_at(subscription)
        self.refuse_while_asked()
        found.prefetch = prefetch
        found.dispatch_waiting(now)
        return self.ledger.take()

    def pull_mark(self, subscription):
        """The argument of ``pull_timeout`` for the last pull."""
        return self.registry.subscription_at(subscription).pull_mark

    def pull_timeout(self, subscription, mark):
        """A pull has timed out: the null dispatch and no credit, unless a message was dispatched since."""
        cdef Subscription puller = self.registry.subscription_at(subscription)
        self.refuse_while_asked()
        if puller.prefetch == 0 and puller.handed_out == mark:
            puller.end_pull()
        return self.ledger.take()

    def tick(self, int64_t now):
        """One second has passed: timed recovery drops old messages."""
        cdef Topic topic
        self.refuse_while_asked()
        for topic in self.registry.topics:
            if topic is not None and topic.recovery is not None:
                topic.recovery.tick(now)

    # Questions; no answer changes later dispatch

    @property
    def next_handle(self):
        """The handle of the next message that is sent without one."""
        return self.references.next_handle

    @property
    def expired_as_discarded(self):
        """Whether a message that expired while it waited counts as discarded."""
        return self.ledger.expired_as_discarded

    @property
    def selector_errors(self):
        """How often a selector could not be evaluated."""
        return self.fan_out.answers.errors

    def durable_subscriptions(self):
        """``{(client id, subscription name): id}`` of all durable subscriptions."""
        return dict(self.registry.durables)

    def topics_of(self, subscription):
        """Numbers of the topics that a subscription is attached to, in the order of attachment."""
        return list(self.registry.subscription_at(subscription).topics)

    def is_active(self, subscription):
        """Whether a durable subscription has its consumer; always true for a non-durable one."""
        cdef Subscription asked = self.registry.subscription_at(subscription)
        return not isinstance(asked, DurableSubscription) or (<DurableSubscription> asked).active

    def is_prioritized(self, subscription):
        """Whether a durable subscription is served by priority."""
        cdef Subscription asked = self.registry.subscription_at(subscription)
        return isinstance(asked, DurableSubscription) and (<DurableSubscription> asked).prioritized

    def consumers(self, topic):
        """Ids of the subscriptions of a topic, in list order."""
        cdef Subscription subscription
        return [subscription.id for subscription in self.registry.topic_at(topic).consumers]

    def recoverable(self, topic):
        """Handles of the messages that a topic keeps for retroactive consumers, the retained one first."""
        cdef Topic asked = self.registry.topic_at(topic)
        cdef list result = [] if asked.retained < 0 else [self.references.at[asked.retained].handle]
        if asked.recovery is not None:
            result.extend([self.references.at[<int32_t> kept].handle for kept in asked.recovery.kept()])
        return result

    def unacknowledged(self, subscription):
        """Handles of a subscription's unacknowledged messages, in order."""
        cdef Subscription asked = self.registry.subscription_at(subscription)
        return self.references.handles(&asked.dispatched)

    def waiting(self, subscription):
        """Handles that wait for a subscription, in order, without those that only the store has."""
        cdef Subscription asked = self.registry.subscription_at(subscription)
        if isinstance(asked, DurableSubscription):
            return (<DurableSubscription> asked).held()
        return self.references.handles(&asked.matched)

    def is_slow(self, subscription):
        """Whether a subscription is marked slow."""
        return self.registry.subscription_at(subscription).slow

    def subscription_statistics(self, subscription):
        """Counters of a subscription since its start, and now: ``pending``, ``in_flight``, ``slow``, ``limit``..."""
        cdef Subscription asked = self.registry.subscription_at(subscription)
        return {
            "enqueues": asked.enqueued,
            "dispatched": asked.handed_out,
            "dequeues": asked.dequeued,
            "discarded": asked.discarded,
            "consumed": asked.consumed,
            "pending": asked.waiting(),
            "in_flight": asked.in_flight,
            "slow": asked.slow,
            "limit": asked.limit,
            "prefetch": asked.prefetch,
            "extension": asked.extension,
            "last_ack": asked.last_ack,
        }

    def statistics(self, topic):
        """Counters of a topic since its start, and now: ``consumers``, ``in_flight``; ``stored``: messages here that
        durable subscriptions hold; ``behind``: references that only the store has."""
        cdef Topic asked = self.registry.topic_at(topic)
        return {
            "enqueues": self.ledger.counts[asked.number].enqueues,
            "dispatched": self.ledger.counts[asked.number].dispatched,
            "dequeues": self.ledger.counts[asked.number].dequeues,
            "in_flight": self.ledger.counts[asked.number].in_flight,
            "expired": self.ledger.counts[asked.number].expired,
            "discarded": self.ledger.counts[asked.number].discarded,
            "consumers": len(asked.consumers) + len(asked.offline),
            "stored": self.ledger.counts[asked.number].stored,
            "behind": self.ledger.counts[asked.number].behind,
        }

    @property
    def messages(self):
        """Number of messages in the region."""
        return self.references.live

    def _check(self):
        """Assert the invariants of the region and of its rooms."""
        self.registry._check()
