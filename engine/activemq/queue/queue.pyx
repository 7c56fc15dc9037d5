"""The public queue: events in, deliveries out (spec activemq 2)."""

from collections.abc import Mapping

import numpy as np

cimport cython
from libc.stdint cimport INT64_MAX, int32_t, int64_t

from pyengine._engine.activemq.commands.message_ack cimport DELIVERED, INDIVIDUAL, AckKind
from pyengine._engine.message.envelope cimport Envelope
from pyengine._engine.message.header cimport ABSENT, header_in, header_number, is_persistent
from pyengine._engine.activemq.queue.admission cimport Headers, admit, check_group, connection_number
from pyengine._engine.activemq.queue.batches cimport MessageColumns, offer
from pyengine._engine.activemq.queue.departure cimport leave_queue
from pyengine._engine.activemq.queue.consumer_list cimport ConsumerList
from pyengine._engine.activemq.queue.group_map cimport BUCKET, GroupMap
from pyengine._engine.activemq.queue.hold_reasons cimport held_arrays, reason_of, verdict_of
from pyengine._engine.activemq.queue.inspection cimport (
    all_handles, counters_at, expiring_messages, held_by, is_wanted, statistics_of, waiting_handles,
)
from pyengine._engine.activemq.queue.message_slots cimport STORED
from pyengine._engine.activemq.queue.queue_state cimport QueueState
from pyengine._engine.activemq.queue.rounds cimport Handout, rounds_of
from pyengine._engine.activemq.queue.settlement cimport commit_transaction, roll_back_transaction, settle
from pyengine._engine.matching.consumer_filter cimport BY_REDELIVERY
from pyengine._engine.activemq.queue.snapshot cimport read_queue, write_queue
from pyengine._engine.serialization.codec cimport SharedValues

from pyengine._engine.activemq.queue.hold_reasons import HoldReason, Verdict
from pyengine._engine.activemq.queue.queue_state import whole_number
from pyengine._engine.activemq.queue.snapshot import settings_of
from pyengine.errors import InvalidTopologyError, SnapshotError, unknown_arguments


SETTINGS = (
    "max_page_size", "max_browse_page_size", "use_consumer_priority", "strict_order_dispatch", "prioritized_messages",
    "lazy_dispatch", "use_prefetch_extension", "all_consumers_exclusive_by_default", "message_group_map_factory_type",
    "consumers_before_dispatch_starts", "time_before_dispatch_starts", "selector_errors", "cursor")


@cython.freelist(256)
cdef class Delivery:
    """One message dispatched to one consumer. ``message`` is its handle, or None for the null dispatch that ends a
    pull;
    ``body`` the object that was sent; ``redeliveries`` the broker's counter; ``group_first``
    JMSXGroupFirstForConsumer."""

    def __init__(self, consumer, message, body, redeliveries, group_first, **unknown):
        if unknown:
            raise unknown_arguments("Delivery", unknown, ("consumer", "message", "body", "redeliveries", "group_first"))
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
    """One queue of a broker: which consumer gets which message, in which order, and why the rest waits.

    Settings are the broker's policyEntry attributes with its defaults (spec activemq 4.5). ``max_page_size=None``
    removes the paging window, and with it starvation behind messages that no consumer takes.
    ``max_browse_page_size=None`` is the broker without a matching policyEntry: browsers see everything. Nothing happens
    by itself: events ask for wakeups, and ``run`` makes the rounds. Raises InvalidTopologyError for a setting out of
    range.
    """

    def __cinit__(self, *, object max_page_size=200, object max_browse_page_size=400, bint use_consumer_priority=True,
                  bint strict_order_dispatch=False, bint prioritized_messages=False, bint lazy_dispatch=False,
                  bint use_prefetch_extension=True, bint all_consumers_exclusive_by_default=False,
                  str message_group_map_factory_type not None="cached", object consumers_before_dispatch_starts=0,
                  object time_before_dispatch_starts=0, str selector_errors not None="no_match",
                  str cursor not None="store", **unknown):
        if unknown:
            raise unknown_arguments("Queue", unknown, SETTINGS)
        self.state = QueueState.__new__(QueueState)
        self.state.selector_errors = selector_errors
        self.state.cursor = cursor
        self.state.max_page_size = max_page_size
        self.state.max_browse_page_size = max_browse_page_size
        self.state.strict_order_dispatch = strict_order_dispatch
        self.state.prioritized_messages = prioritized_messages
        self.state.lazy_dispatch = lazy_dispatch
        self.state.consumers_before_dispatch_starts = whole_number(
            "consumersBeforeDispatchStarts", consumers_before_dispatch_starts, 0, 2**31 - 1)
        self.state.time_before_dispatch_starts = whole_number(
            "timeBeforeDispatchStarts", time_before_dispatch_starts, 0, 2**31 - 1)
        self.state.groups = GroupMap(message_group_map_factory_type)
        self.state.consumers = ConsumerList(
            self.state.groups, use_consumer_priority, use_prefetch_extension, all_consumers_exclusive_by_default)
        self.state.begin()
        self.rounds = rounds_of(self.state)
        self.messages = self.state.messages
        self.pending = self.state.pending
        self.ready = self.state.ready
        self.consumers = self.state.consumers
        self.groups = self.state.groups

    def add_consumer(self, *, object selector=None, bint exclusive=False, object priority=0, object prefetch=1000,
                     bint no_local=False, object connection=None, object name=None, bint browser=False,
                     object matching=None, object use_prefetch_extension=None, object max_browse_page_size=ABSENT):
        """Add a consumer and ask for a wakeup; return its id (0, 1, ... in order of arrival, never used again).

        selector: None, a Selector, or any callable from the sent object to bool; equal selectors are asked once per
        message. A Selector that reads a header that changes while a message waits (JMSRedelivered, JMSXDeliveryCount,
        JMSXGroupFirstForConsumer) is asked again when it does, of a copy that has the queue's values. priority:
        -128..127. prefetch: messages it may hold unacknowledged; 0 pulls. no_local: refuse messages sent on the same
        ``connection`` (any hashable). name: matches the ``target`` of messages. matching: arrival numbers of the
        waiting messages that selector and no_local match, for messages that are here without their objects
        (``offer_batch``); the selector is not asked then. use_prefetch_extension, max_browse_page_size: as the queue's
        settings of the name, which they are if not given: a consumer of several queues has a policy of its own. Of
        max_browse_page_size -1 a browser gets nothing: it had as many elsewhere.
        """
        cdef int32_t slot, number = -1, target = -1
        cdef object id = self.consumers.next_id
        whole_number("consumer.priority", priority, -128, 127)
        whole_number("consumer.prefetchSize", prefetch, -(2**31), 2**31 - 1)
        limit = self.state.max_browse_page_size
        if max_browse_page_size is not ABSENT and max_browse_page_size is not None:
            limit = whole_number("maxBrowsePageSize", max_browse_page_size, -1, 2**31 - 1)
        elif max_browse_page_size is None:
            limit = None
        self.state.before_names()
        if connection is not None:
            number = connection_number(self.state, connection)
        elif no_local:
            raise InvalidTopologyError("noLocal needs the consumer's connection", key="consumer.noLocal", value=True)
        if name is not None:
            target = self.state.free_name(name)
        slot = self.state.join(selector, number, no_local, None if matching is None else set(matching))
        if browser:
            try:
                if self.rounds.browsers is None:
                    self.rounds.browsers, self.rounds.browsed = [], {}
                self.rounds.browsed[slot] = set()
                self.rounds.browsers.append(slot)
            except BaseException:
                self.consumers.leave(slot, id)
                self.consumers.next_id -= 1
                raise
        self.consumers.at[slot].priority = priority
        self.consumers.at[slot].prefetch = prefetch
        self.consumers.at[slot].exclusive = exclusive
        self.consumers.at[slot].browser = browser
        self.consumers.at[slot].browse_limit = 0 if limit is None else limit
        if use_prefetch_extension is not None:
            self.consumers.at[slot].extends = <bint> use_prefetch_extension
        if name is not None:
            self.state.name_consumer(slot, target)
        if self.consumers.size == 0:
            self.rounds.first_consumer = True
            self.rounds.latch = self.state.consumers_before_dispatch_starts - 1
        else:
            self.rounds.latch -= 1
        self.consumers.append(slot)
        if self.consumers.elect_on_join(slot):
            self.state.reopen()
        elif self.consumers.refresh(slot) > 0:
            self.ready.wake(slot)
        self.state.rounds_due += 1
        return id

    def close(self, consumer, *, last_delivered=None, bint lost=False, int64_t now=0, matching=None):
        """Remove a consumer: its groups lose their owner, its unacknowledged messages go to the others at once, before
        new ones.

        last_delivered: the last message the client reports as delivered; redelivery counters of the messages up to it
        go up if it is still unacknowledged. lost: the connection broke and reports nothing, every counter goes up.
        matching: ``{bit (predicate_of): arrival numbers}`` of the messages that return and that this selector matches
        as they are then, for messages that are here without their objects (``offer_batch``, ``headers_now``).
        Returns the deliveries made at once (ActiveMQ's removeSubscription); a wakeup is asked for too.

        Where the memory ends when the consumer has been removed already, the same call again makes the deliveries.
        """
        cdef list recounted
        cdef dict known = None
        self.state.refuse_while_asked()
        if matching is not None:
            known = self.state.known_answers(matching)
        if self.rounds.closing is None or self.rounds.closing[0] != consumer or consumer in self.consumers.slot_of:
            recounted = []
            self.remove_consumer(consumer, last_delivered, lost, (consumer, recounted), recounted, known is not None)
        recounted = self.rounds.closing[1]
        while recounted:
            if known is None:
                self.state.rematch(recounted[len(recounted) - 1], BY_REDELIVERY)
            else:
                self.state.match_known(recounted[len(recounted) - 1], known)
            recounted.pop()
        self.rounds.begin_handing_out()
        if self.pending.redelivered:
            self.rounds.dispatch(now, 0)
        recounted = self.empty_out(now)
        self.rounds.closing = None
        return recounted

    cdef int remove_consumer(self, object consumer, object last_delivered, bint lost, tuple closing,
                             list recounted, bint known) except -1:
        return leave_queue(self.rounds, consumer, last_delivered, lost, closing, recounted, known)

    def renew(self):
        """Reset to the state after its consumers joined, for another queue with the same ones.

        Raises IllegalStateError if a consumer has left, or if one is a browser or has a name.
        """
        self.rounds.start_over()

    def send(self, object message=None, *, object group=ABSENT, object group_sequence=ABSENT, object priority=ABSENT,
             object expiration=ABSENT, object persistent=ABSENT, object connection=None, object target=None,
             object redeliveries=ABSENT, bint wake=True):
        """Put a message on the queue and ask for a wakeup; return its handle.

        message: the object that selectors evaluate and that is dispatched, of any type. Values without a keyword are
        read once, here, from a Message or from a mapping's JMSXGroupID, JMSXGroupSeq, JMSPriority (4), JMSExpiration
        (ms, 0: never), JMSDeliveryMode (PERSISTENT). connection: the producer's, for noLocal. target: name of the only
        consumer that may have it. redeliveries: the counter it starts with, of a Message its own; a mapping's
        JMSXDeliveryCount counts on from what it says. wake False: ask for no wakeup, as for one that was there before.
        """
        cdef int32_t number
        cdef Headers headers
        cdef Envelope envelope
        if isinstance(message, Envelope):
            envelope = message
            group = envelope._group_id if group is ABSENT else group
            group_sequence = envelope._group_sequence if group_sequence is ABSENT else group_sequence
            priority = envelope._priority if priority is ABSENT else priority
            expiration = envelope.expires() if expiration is ABSENT else expiration
            persistent = envelope._persistent if persistent is ABSENT else persistent
            connection = envelope._connection_id if connection is None else connection
            target = envelope._target_consumer_id if target is None else target
            redeliveries = envelope._redelivery_counter if redeliveries is ABSENT else redeliveries
        elif isinstance(message, dict) or isinstance(message, Mapping):
            group = header_in(message, "JMSXGroupID") if group is ABSENT else group
            group_sequence = header_in(message, "JMSXGroupSeq") if group_sequence is ABSENT else group_sequence
            priority = header_in(message, "JMSPriority") if priority is ABSENT else priority
            expiration = header_in(message, "JMSExpiration") if expiration is ABSENT else expiration
            if persistent is ABSENT:
                persistent = is_persistent(header_in(message, "JMSDeliveryMode"))
        group = None if group is ABSENT else group
        check_group(group)
        # A name that cannot be hashed is refused before anything changes.
        if connection is not None:
            hash(connection)
        if target is not None:
            hash(target)
        headers.group_sequence = <int32_t> header_number("JMSXGroupSeq", group_sequence, 0, -(2**31), 2**31 - 1)
        headers.priority = <int> header_number("JMSPriority", priority, 4, 0, 9)
        headers.expiration = header_number("JMSExpiration", expiration, 0, 0, INT64_MAX)
        headers.persistent = persistent is ABSENT or <bint> persistent
        headers.redeliveries = 0 if redeliveries is ABSENT else redeliveries
        number = admit(self.state, message, &headers, group, connection, target)
        try:
            result = self.state.handle_of(number)
        except BaseException:
            self.messages.discard(number)
            raise
        self.state.accept(number)
        if not wake:
            self.state.rounds_due -= 1
        return result

    def run(self, int64_t now=0, int64_t limit=-1):
        """Make one round for each wakeup asked for, also for those the rounds ask for; return the deliveries in order.

        now: ms, for expiry and the start delay. limit: at most this number of rounds. While a start delay runs nothing
        happens; ``starts_at`` says until when.
        """
        self.rounds.begin_handing_out()
        self.rounds.run_wakeups(now, limit)
        return self.empty_out(now)

    cdef list empty_out(self, int64_t now):
        cdef list result = self.take_out(now)
        self.state.after_messages()
        return result

    cdef list take_out(self, int64_t now):
        # Deliveries of the last call, returned once.
        cdef int64_t index
        cdef list result = []
        cdef Handout* handout
        cdef Delivery delivery
        for index in range(self.rounds.out_size):
            handout = &self.rounds.out[index]
            delivery = Delivery.__new__(Delivery)
            delivery.consumer = handout.consumer
            if handout.handle >= 0:
                delivery.message = handout.handle
                delivery.body = self.state.object_of(handout.message)
            delivery.redeliveries = handout.redeliveries
            delivery.group_first = handout.group_first
            result.append(delivery)
        self.rounds.out_size = 0
        return result

    def acknowledge(self, consumer, last, *, kind=AckKind.INDIVIDUAL, first=None, int64_t count=1, transaction=None):
        """A client's acknowledgement; asks for wakeups.

        last: handle. kind: INDIVIDUAL acknowledges it alone; STANDARD everything from ``first`` (None: the oldest the
        consumer holds) to it in dispatch order; POISON and EXPIRED take the same range off the queue for another
        reason; DELIVERED acknowledges nothing and widens the prefetch window by ``count``; REDELIVERED acknowledges
        nothing. transaction: any hashable; what is acknowledged in it stays in flight until ``commit``. Returns the
        objects sent of the messages acknowledged. Raises IllegalStateError for a message the consumer does not hold.
        """
        cdef int32_t slot = self.state.slot_of(consumer), end = self.state.message_of(last)
        cdef int what = kind
        cdef list bodies = settle(self.state, slot, end, -1 if first is None else self.state.message_of(first), what,
                                  count if what == DELIVERED else -1, transaction, False)
        self.state.after_messages()
        return bodies

    def acknowledge_each(self, deliveries):
        """``acknowledge`` every delivery by itself, in order, in one call; earlier deliveries do not change.

        Raises IllegalStateError at the first that its consumer does not hold; those before it are acknowledged.
        """
        cdef Delivery delivery
        for delivery in deliveries:
            settle(self.state, self.state.slot_of(delivery.consumer), self.state.message_of(delivery.message), -1,
                   INDIVIDUAL, 1, None, False)
        self.state.after_messages()

    def commit(self, transaction):
        """Commit the acknowledgements of a transaction; two wakeups for each message."""
        commit_transaction(self.state, transaction)

    def rollback(self, transaction):
        """Roll the acknowledgements of a transaction back: the messages are unacknowledged again, at their
        consumers."""
        roll_back_transaction(self.state, transaction)

    def pull(self, consumer, *, int64_t quantity=1, int64_t timeout=0, int64_t now=0):
        """A consumer with prefetch 0 asks for messages: one round, at once; return its deliveries.

        timeout: -1 ends with the null dispatch (message None) if there is nothing; 0 keeps the credit until a message
        comes; above 0 the caller calls ``pull_timeout`` when these ms have passed. Other consumers are not affected by
        the call.
        """
        cdef int32_t slot = self.state.slot_of(consumer)
        self.rounds.begin_handing_out()
        if self.consumers.at[slot].prefetch == 0:
            self.consumers.at[slot].extension = quantity
            self.state.refresh(slot)
            self.consumers.at[slot].pull_mark = self.consumers.at[slot].dispatched
            self.rounds.round(now)
            if timeout == -1 and self.consumers.at[slot].dispatched == self.consumers.at[slot].pull_mark:
                self.rounds.end_pull(slot)
        return self.take_out(now)

    def pull_timeout(self, consumer, *, int64_t now=0):
        """The last pull has timed out: the null dispatch and no credit, unless a message was dispatched since."""
        cdef int32_t slot = self.state.slot_of(consumer)
        self.rounds.begin_handing_out()
        if self.consumers.at[slot].prefetch == 0 and (
                self.consumers.at[slot].dispatched == self.consumers.at[slot].pull_mark):
            self.rounds.end_pull(slot)
        return self.take_out(now)

    def set_prefetch(self, consumer, int32_t prefetch):
        """A consumer may hold so many messages unacknowledged from now on; asks for a round."""
        cdef int32_t slot = self.state.slot_of(consumer)
        self.state.refuse_while_asked()
        self.consumers.at[slot].prefetch = prefetch
        self.state.refresh(slot)
        self.state.rounds_due += 1

    def share_credit(self, consumer, int64_t elsewhere, int64_t extension):
        """For a subscription that consumes several queues with one prefetch: what it holds unacknowledged in the other
        ones, and its prefetch extension. The caller sets it before a round if another queue changed it."""
        cdef int32_t slot = self.state.slot_of(consumer)
        self.state.refuse_while_asked()
        self.consumers.at[slot].elsewhere = elsewhere
        self.consumers.at[slot].extension = extension
        self.state.refresh(slot)

    def wakeup(self):
        """Ask for one more round."""
        self.state.rounds_due += 1

    def pause(self):
        """Stop dispatching; messages are still paged in."""
        self.state.refuse_while_asked()
        self.consumers.paused = True
        self.state.reopen()

    def resume(self):
        """Dispatch again; asks for a wakeup."""
        self.state.refuse_while_asked()
        self.consumers.paused = False
        self.state.reopen()
        self.state.rounds_due += 1

    def remove_message(self, handle):
        """Remove one message. One in flight keeps its place in the consumer's window until acknowledged."""
        self.state.take_off(self.state.message_of(handle))
        self.state.after_messages()

    def purge(self):
        """Remove every message, also those in flight; return their number."""
        cdef int32_t message
        cdef int64_t before = self.state.totals.dequeues
        for message in range(self.messages.slots):
            if self.messages.on_queue(message):
                self.state.take_off(message)
        self.state.after_messages()
        return self.state.totals.dequeues - before

    def expire(self, int64_t now, *, int64_t limit=400):
        """The broker's periodic look for expired messages; return the deliveries it makes. Asks for a wakeup.

        limit: maxExpirePageSize. If fewer are paged in, up to this number are, with or without consumers, and
        dispatched; those that expired before ``now`` leave instead. Expired ones among the waiting messages leave; the
        look ends after ``limit`` that stay. Raises InvalidTopologyError for a limit below 1.
        """
        whole_number("maxExpirePageSize", limit, 1, 2**31 - 1)
        self.rounds.begin_handing_out()
        self.rounds.look_for_expired(now, limit)
        return self.empty_out(now)

    def expire_stored(self, int64_t now):
        """Remove messages that expired before ``now`` and are not paged in."""
        cdef int32_t message
        self.state.refuse_while_asked()
        for message in range(self.messages.slots):
            if self.messages.at[message].whereabouts == STORED and 0 < self.messages.at[message].expiration < now:
                self.state.note_expired(message)
                self.state.cursors.unstore(message)
                self.state.drop_expired(message)
        self.state.after_messages()

    def remove_group(self, group):
        """Forget the owner of a group (JMX removeMessageGroup); counts stay. Return the owner it had, or None."""
        cdef int32_t handle
        cdef int32_t owner
        self.state.refuse_while_asked()
        handle = self.groups.find(group)
        if handle < 0 and self.groups.form != BUCKET:
            return None
        self.state.before_names()
        handle = self.groups.intern(group)
        owner = self.groups.drop(handle)
        self.pending.regroup(self.groups.key[handle])
        return None if owner < 0 else self.consumers.at[owner].id

    def remove_all_groups(self):
        """Forget every owner (JMX removeAllMessageGroups)."""
        self.state.refuse_while_asked()
        self.groups.drop_all()
        self.consumers.sorted = False
        self.pending.place_all()

    def take_failed(self):
        """``[(object sent, selector)]`` that could not be evaluated since the last call, at most 10000: no match."""
        result, self.state.failed = self.state.failed or [], None
        return result

    def take_slow(self):
        """Ids of the consumers that a round found without credit while they were not slow, since the last call."""
        result, self.consumers.slowed = self.consumers.slowed or [], None
        return result

    def take_removed(self):
        """Messages that left the queue unconsumed since the last call: ``[(handle, "expired" | "poison", object sent,
        redeliveries)]``."""
        result, self.state.removed = self.state.removed or [], None
        return result

    def intern_groups(self, names):
        """Handles (int32 array) of group names, for ``offer_batch``; None has no group (-1).

        A handle stays valid as long as the queue, which therefore forgets no group's name from then on.
        Raises InvalidMessageError for other objects, such as Arrow's scalars and the nulls of a data frame.
        """
        names = list(names)
        for name in names:
            check_group(name)
        self.groups.lent = True
        return np.array([-1 if name is None else self.groups.intern(name) for name in names], dtype=np.int32)

    def offer_batch(self, int64_t size, *, groups=None, group_sequences=None, priorities=None, expirations=None,
                    persistent=None, matches=None, arrivals=None, object acknowledge not None="at_once"):
        """Send ``size`` messages one after another, with the rounds each asks for; the rest stays for later batches.

        groups: int32 handles of ``intern_groups``, -1 none. group_sequences int32 (0). priorities (4). expirations
        int64 ms (0 never). persistent: 1 or 0 (1). matches: uint64, shape (size,) or (size, words): bit
        ``predicate_of(consumer)`` says that the selector matches; needed once a consumer has a selector. arrivals:
        int64 ms, ``now`` of each message (0).
        acknowledge: "at_once" (after the round that dispatches it), "never" (prefetch holds), or the ids of the
        consumers that do it at once. Returns ``(consumers, sequences, order)``: int64 consumer id of each message of
        this batch (-1 held), and every delivery made, older messages included, as int64 arrival number and consumer id
        in order of dispatch. Where the memory ends, the rows before are sent (``statistics["enqueues"]`` counts them).
        """
        cdef set prompt = None if isinstance(acknowledge, str) else set(acknowledge)
        if prompt is None and acknowledge not in ("at_once", "never"):
            raise InvalidTopologyError(
                "must be 'at_once', 'never' or consumer ids", key="acknowledge", value=acknowledge)
        if acknowledge == "never":
            prompt = set()
        return offer(self.rounds, MessageColumns(
            size, groups=groups, group_sequences=group_sequences, priorities=priorities, expirations=expirations,
            persistent=persistent, matches=matches, arrivals=arrivals), prompt)

    def snapshot(self, *, object save=None, SharedValues shared=None):
        """The state of this queue as bytes: versioned, checksummed, and about ten bytes a message.

        A queue that ``restore`` makes of them goes on exactly as this one. Consumer ids, message handles and selector
        bits stay valid there; handles of ``intern_groups`` do not. Objects sent, selectors, connections and names are
        written as they are if they are None, bool, int, float, str, bytes, a tuple of these or a Selector; for any
        other ``save(object)`` gives the bytes, or a reference of the caller's. Raises SnapshotError without it.
        shared: takes group names and selectors, which are written once for many queues then.
        """
        return write_queue(self.rounds, save, shared)

    @classmethod
    def restore(cls, bytes data not None, *, object load=None, SharedValues shared=None):
        """The queue of a snapshot, with the settings it had. load: bytes of ``save`` -> the object.
        shared: what it was written with.

        Raises SnapshotError for bytes that are damaged, cut off, of another version, or not a snapshot of a queue.
        """
        reader, settings = settings_of(data, load, shared)
        try:
            queue = cls(**settings)
        except InvalidTopologyError as error:
            raise SnapshotError("its settings are not those of a queue") from error
        read_queue((<Queue> queue).rounds, reader)
        return queue

    def __reduce__(self):
        raise TypeError("a queue holds objects of its caller: snapshot(save=...) and Queue.restore(load=...) carry it")

    # Questions; no answer changes later dispatch

    def wanted(self, object message):
        """Would the selector and noLocal of any consumer, browsers included, let a message pass that is elsewhere?"""
        return is_wanted(self.state, message)

    @property
    def expiring(self):
        """Messages that have an expiration."""
        return expiring_messages(self.state)

    @property
    def behind(self):
        """Persistent messages after those here, which the reader of a store brings."""
        return self.rounds.behind

    @behind.setter
    def behind(self, int64_t behind):
        self.rounds.behind = behind

    @property
    def starts_at(self):
        """Until when (ms) the running start delay lasts at most, or None."""
        return None if self.rounds.start_at < 0 else self.rounds.start_at

    @property
    def wakeups(self):
        """Rounds asked for and not made yet."""
        return self.state.rounds_due

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
        self.pending.settle()
        return {name: self.consumers.at[<int32_t> slot].id for name, slot in self.groups.owners().items()}

    def assigned_groups(self, consumer):
        """How many groups the broker counts for a consumer."""
        return self.groups.counts[self.state.slot_of(consumer)]

    def unacknowledged(self, consumer):
        """Handles a consumer holds, in dispatch order."""
        return held_by(self.state, self.state.slot_of(consumer))

    def waiting(self):
        """Handles of the paged-in messages that wait, in the order in which they are tried."""
        return waiting_handles(self.state)

    def object_of_handle(self, handle):
        """The object that was sent as this message."""
        return self.state.object_of(self.state.message_of(handle))

    def sequence_of(self, handle):
        """Arrival number of a message in this queue, from 0."""
        return self.messages.at[self.state.message_of(handle)].sequence

    def handles(self):
        """Handles of every message on the queue, in order of arrival."""
        return all_handles(self.state)

    def counters_of(self, consumer):
        """What a consumer's subscription counts: ``enqueued``, ``dispatched``, ``dequeued``, ``held``, ``slow``."""
        return counters_at(self.state, self.state.slot_of(consumer))

    def credit(self, consumer):
        """``(held, elsewhere, extension)``: messages it holds here and in other queues, and its prefetch extension."""
        cdef int32_t slot = self.state.slot_of(consumer)
        return self.consumers.at[slot].held.count, self.consumers.at[slot].elsewhere, self.consumers.at[slot].extension

    @property
    def statistics(self):
        """Counters since the start, and of now: size, stored (not paged in), waiting, in_flight, stranded."""
        return statistics_of(self.state)

    def why(self, handle):
        """Why a message waits: ``(HoldReason, consumer id or None)``: the owner, the elected one, the holder."""
        cdef int reason
        cdef int32_t slot
        reason, slot = reason_of(self.rounds, self.state.message_of(handle))
        return HoldReason(reason), None if slot < 0 else self.consumers.at[slot].id

    def why_each(self, handle):
        """``{consumer id: Verdict}`` in the order in which consumers are asked: the first check each one fails."""
        cdef int32_t message = self.state.message_of(handle), index, slot
        cdef dict result = {}
        for index in range(self.consumers.size):
            slot = self.consumers.order[index]
            result[self.consumers.at[slot].id] = Verdict(verdict_of(self.rounds, message, slot))
        return result

    def held(self):
        """Everything that waits: ``(sequences int64, reasons int8, consumers int64 (-1 none))``, by arrival."""
        return held_arrays(self.rounds)

    def hold_counts(self):
        """``{HoldReason: messages}`` of everything that waits."""
        cdef dict result = {}
        reasons, totals = np.unique(self.held()[1], return_counts=True)
        for reason, total in zip(reasons.tolist(), totals.tolist()):
            result[HoldReason(reason)] = total
        return result

    def predicate_of(self, consumer):
        """Bit of a consumer's selector in ``offer_batch``'s ``matches``; 0 for a consumer that asks nothing."""
        return self.consumers.at[self.state.slot_of(consumer)].predicate

    # Settings

    @property
    def max_page_size(self):
        return self.state.max_page_size

    @property
    def max_browse_page_size(self):
        return self.state.max_browse_page_size

    @property
    def strict_order_dispatch(self):
        return self.state.strict_order_dispatch

    @property
    def prioritized_messages(self):
        return self.state.prioritized_messages

    @property
    def lazy_dispatch(self):
        return self.state.lazy_dispatch

    @property
    def consumers_before_dispatch_starts(self):
        return self.state.consumers_before_dispatch_starts

    @property
    def time_before_dispatch_starts(self):
        return self.state.time_before_dispatch_starts

    @property
    def selector_errors(self):
        return self.state.selector_errors

    @property
    def cursor(self):
        return self.state.cursor

    def _check(self):
        """Assert the invariants of the queue and of its parts."""
        self.state._check()
