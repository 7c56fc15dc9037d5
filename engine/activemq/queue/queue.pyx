"""The public queue: events in, deliveries out (spec activemq 2)."""

from collections.abc import Mapping

import numpy as np

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint64_t

from pyengine._engine.activemq.commands.message_ack cimport (
    DELIVERED, EXPIRED, INDIVIDUAL, POISON, REDELIVERED, STANDARD, AckKind,
)
from pyengine._engine.activemq.queue.batches cimport MessageColumns, offer
from pyengine._engine.message.envelope cimport Envelope
from pyengine._engine.message.header cimport ABSENT, header_in, header_number, is_persistent
from pyengine._engine.activemq.queue.group_map cimport BUCKET
from pyengine._engine.activemq.queue.inspection cimport Inspection
from pyengine._engine.activemq.queue.message_slots cimport (
    IN_DOUBT, IN_FLIGHT, REMOVED, STORED, STRANDED, WAITING, Message,
)
from pyengine._engine.activemq.queue.rounds cimport Handout
from pyengine._engine.matching.consumer_filter cimport BY_REDELIVERY
from pyengine._engine.activemq.queue.snapshot cimport read_queue, write_queue
from pyengine._engine.serialization.codec cimport SharedValues

from pyengine._engine.activemq.queue.queue_state import whole_number
from pyengine._engine.activemq.queue.snapshot import settings_of
from pyengine.errors import (
    IllegalStateError, InvalidMessageError, InvalidTopologyError, SnapshotError, counted, unknown_arguments,
)


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


cdef int check_group(object name) except -1:
    if name is not None and not isinstance(name, str):
        raise InvalidMessageError("JMSXGroupID", name, "must be a string", hint="None has no group")
    return 0


cdef class Queue(Inspection):
    """One queue of a broker: which consumer gets which message, in which order, and why the rest waits.

    Settings are the broker's policyEntry attributes with its defaults (spec activemq 4.5). ``max_page_size=None``
    removes the paging window, and with it starvation behind messages that no consumer takes.
    ``max_browse_page_size=None`` is the broker without a matching policyEntry: browsers see everything. Nothing happens
    by itself: events ask for wakeups, and ``run`` makes the rounds. Raises InvalidTopologyError for a setting out of
    range.
    """

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
        limit = self.max_browse_page_size
        if max_browse_page_size is not ABSENT and max_browse_page_size is not None:
            limit = whole_number("maxBrowsePageSize", max_browse_page_size, -1, 2**31 - 1)
        elif max_browse_page_size is None:
            limit = None
        self.before_names()
        if connection is not None:
            number = self.connection_number(connection)
        elif no_local:
            raise InvalidTopologyError("noLocal needs the consumer's connection", key="consumer.noLocal", value=True)
        if name is not None:
            target = self.free_name(name)
        slot = self.join(selector, number, no_local, None if matching is None else set(matching))
        if browser:
            try:
                if self.browsers is None:
                    self.browsers, self.browsed = [], {}
                self.browsed[slot] = set()
                self.browsers.append(slot)
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
            self.name_consumer(slot, target)
        if self.consumers.size == 0:
            self.first_consumer = True
            self.latch = self.consumers_before_dispatch_starts - 1
        else:
            self.latch -= 1
        self.consumers.append(slot)
        if self.consumers.elect_on_join(slot):
            self.reopen()
        elif self.consumers.refresh(slot) > 0:
            self.ready.wake(slot)
        self.rounds_due += 1
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
        self.refuse_while_asked()
        if matching is not None:
            known = self.known_answers(matching)
        if self.closing is None or self.closing[0] != consumer or consumer in self.consumers.slot_of:
            recounted = []
            self.remove_consumer(consumer, last_delivered, lost, (consumer, recounted), recounted, known is not None)
        recounted = self.closing[1]
        while recounted:
            if known is None:
                self.rematch(recounted[len(recounted) - 1], BY_REDELIVERY)
            else:
                self.match_known(recounted[len(recounted) - 1], known)
            recounted.pop()
        self.begin_handing_out()
        if self.pending.redelivered:
            self.dispatch(now, 0)
        recounted = self.empty_out(now)
        self.closing = None
        return recounted

    cdef int remove_consumer(self, object consumer, object last_delivered, bint lost, tuple closing,
                             list recounted, bint known) except -1:
        # All that may want memory comes first; recounted: the messages whose redelivery counter goes up, or, where the
        # answers of selectors are known, all that return.
        cdef int64_t reported = -1 if last_delivered is None else last_delivered
        cdef int32_t slot = self.slot_of(consumer), message, mark = -1, first
        cdef bint counting = False, ahead
        cdef list unacknowledged = [], kept = [], redelivered = []
        cdef object place = slot
        if last_delivered is not None:
            # An acknowledged message is ignored, and its handle may be stale.
            message = self.find(reported)
            if message >= 0 and self.messages.at[message].consumer == slot:
                mark = message
                counting = True
        message = self.consumers.at[slot].held.first
        while message >= 0:
            unacknowledged.append(message)
            if self.messages.at[message].whereabouts != REMOVED:
                kept.append(message)
                if lost or counting:
                    redelivered.append(message)
                if message == mark:
                    counting = False
            message = self.messages.at[message].next
        if known:
            recounted.extend(reversed(kept))
        elif self.consumers.changing & BY_REDELIVERY:
            recounted.extend(reversed(redelivered))
        self.pending.settle()
        # A list that becomes shorter may move, so that the browser goes before anything has changed.
        if self.consumers.at[slot].browser and place in self.browsers:
            self.browsers.remove(place)
        lost_groups = self.groups.drop_consumer(slot)
        self.closing = closing
        self.consumers.withdraw(slot)
        self.consumers.at[slot].live = 0
        self.consumers.refresh(slot)
        if self.consumers.elect_on_leave(slot):
            self.reopen()
        for key in lost_groups:
            self.pending.regroup(key)
        for number in unacknowledged:
            message = number
            self.messages.unlink(&self.consumers.at[slot].held, message)
            if self.messages.at[message].whereabouts == REMOVED:
                self.messages.discard(message)
            else:
                self.in_flight -= 1
        for number in redelivered:
            self.count_redelivery(number)
        ahead = False
        if self.strict_order_dispatch and self.consumers.size == 0 and kept and self.pending.redelivered \
                and not self.prioritized_messages:
            first = self.pending.window[0].first
            ahead = self.messages.at[first].sequence > self.messages.at[<int32_t> kept[len(kept) - 1]].sequence
        if ahead:
            kept.reverse()
        for number in kept:
            self.pending.wait(number, True, ahead)
        if self.consumers.at[slot].browser:
            self.browsed.pop(place, None)
        self.consumers.leave(slot, consumer)
        self.rounds_due += 1
        return 0

    def renew(self):
        """Reset to the state after its consumers joined, for another queue with the same ones.

        Raises IllegalStateError if a consumer has left, or if one is a browser or has a name.
        """
        self.start_over()

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
        cdef Headers of
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
        of.group_sequence = <int32_t> header_number("JMSXGroupSeq", group_sequence, 0, -(2**31), 2**31 - 1)
        of.priority = <int> header_number("JMSPriority", priority, 4, 0, 9)
        of.expiration = header_number("JMSExpiration", expiration, 0, 0, INT64_MAX)
        of.persistent = persistent is ABSENT or <bint> persistent
        of.redeliveries = 0 if redeliveries is ABSENT else redeliveries
        number = self.admit(message, &of, group, connection, target)
        try:
            result = self.handle_of(number)
        except BaseException:
            self.messages.discard(number)
            raise
        self.accept(number)
        if not wake:
            self.rounds_due -= 1
        return result

    cdef int32_t enter(self, object message, const Headers* of, object group, object connection,
                       object target) except -1:
        # Put a message on the queue and ask for a wakeup.
        cdef int32_t number = self.admit(message, of, group, connection, target)
        self.accept(number)
        return number

    cdef int32_t admit(self, object message, const Headers* of, object group, object connection,
                       object target) except -1:
        # A message that is not on the queue yet; every selector is asked about it once.
        # A name may be of a class that runs code of its own: all of them are looked up before there is a message.
        cdef int32_t handle, producer, receiver, number
        cdef Message* it
        self.before_names()
        handle = -1 if group is None else self.groups.intern(group)
        producer = -1 if connection is None else self.connection_number(connection)
        receiver = -1 if target is None else self.consumers.target_number(target)
        self.refuse_while_asked()
        number = self.messages.allot()
        it = &self.messages.at[number]
        it.group = handle
        it.group_sequence = of.group_sequence
        it.priority = of.priority
        it.expiration = of.expiration
        it.transient = not of.persistent
        it.redeliveries = of.redeliveries
        it.connection = producer
        if message is not None:
            Py_INCREF(message)
            it.body = <PyObject*> message
        try:
            it.match = self.match_of(number, receiver)
        except BaseException:
            self.messages.discard(number)
            raise
        return number

    cdef int32_t match_of(self, int32_t number, int32_t target) except -1:
        # The class of a message that every selector is asked about once.
        cdef int32_t index
        cdef uint64_t word = 1
        if target < 0 and self.consumers.predicate_count <= 64:
            for index in range(1, self.consumers.predicate_count):
                question = self.consumers.questions[index]
                if question is not None and self.ask(number, (<tuple> question)[0], (<tuple> question)[1]):
                    word |= <uint64_t> 1 << index
            return self.consumers.class_for_words(&word, 1)
        bits = 1
        for index in range(1, self.consumers.predicate_count):
            question = self.consumers.questions[index]
            if question is not None and self.ask(number, (<tuple> question)[0], (<tuple> question)[1]):
                bits |= 1 << <object> index
        return self.consumers.class_for(bits, target)

    cdef int32_t connection_number(self, object connection) except -1:
        return self.connections.setdefault(connection, len(self.connections))

    def run(self, int64_t now=0, int64_t limit=-1):
        """Make one round for each wakeup asked for, also for those the rounds ask for; return the deliveries in order.

        now: ms, for expiry and the start delay. limit: at most this number of rounds. While a start delay runs nothing
        happens; ``starts_at`` says until when.
        """
        self.begin_handing_out()
        self.run_wakeups(now, limit)
        return self.empty_out(now)

    cdef list empty_out(self, int64_t now):
        cdef list result = self.take_out(now)
        self.after_messages()
        return result

    cdef list take_out(self, int64_t now):
        # Deliveries of the last call, returned once.
        cdef int64_t index
        cdef list result = []
        cdef Handout* it
        cdef Delivery made
        for index in range(self.out_size):
            it = &self.out[index]
            made = Delivery.__new__(Delivery)
            made.consumer = it.consumer
            if it.handle >= 0:
                made.message = it.handle
                made.body = self.object_of(it.message)
            made.redeliveries = it.redeliveries
            made.group_first = it.group_first
            result.append(made)
        self.out_size = 0
        return result

    def acknowledge(self, consumer, last, *, kind=AckKind.INDIVIDUAL, first=None, int64_t count=1, transaction=None):
        """A client's acknowledgement; asks for wakeups.

        last: handle. kind: INDIVIDUAL acknowledges it alone; STANDARD everything from ``first`` (None: the oldest the
        consumer holds) to it in dispatch order; POISON and EXPIRED take the same range off the queue for another
        reason; DELIVERED acknowledges nothing and widens the prefetch window by ``count``; REDELIVERED acknowledges
        nothing. transaction: any hashable; what is acknowledged in it stays in flight until ``commit``. Returns the
        objects sent of the messages acknowledged. Raises IllegalStateError for a message the consumer does not hold.
        """
        cdef int32_t slot = self.slot_of(consumer), end = self.message_of(last)
        cdef int what = kind
        cdef list bodies = self.settle(slot, end, -1 if first is None else self.message_of(first), what,
                                       count if what == DELIVERED else -1, transaction)
        self.after_messages()
        return bodies

    def acknowledge_each(self, deliveries):
        """``acknowledge`` every delivery by itself, in order, in one call; earlier deliveries do not change.

        Raises IllegalStateError at the first that its consumer does not hold; those before it are acknowledged.
        """
        cdef Delivery delivery
        for delivery in deliveries:
            self.settle(self.slot_of(delivery.consumer), self.message_of(delivery.message), -1, INDIVIDUAL, 1, None)
        self.after_messages()

    cdef list settle(self, int32_t slot, int32_t end, int32_t start, int kind, int64_t count, object transaction,
                     bint astray=False):
        # ``acknowledge``, from slot to slot; start -1: the oldest it holds. count: of DELIVERED, and the size of a
        # STANDARD range according to the client, -1 unknown. astray: the range does not match the client's, so the
        # window stays and no round is asked for.
        cdef int32_t message, following
        cdef int64_t total = 0
        cdef list bodies = [], parts = [], gone = []
        cdef bint unconsumed = kind == POISON or kind == EXPIRED
        self.refuse_while_asked()
        # A client may acknowledge a message in a transaction and then find it expired, or give it up.
        if self.messages.at[end].consumer != slot or (self.messages.at[end].acknowledged and not unconsumed):
            raise IllegalStateError(f"consumer {self.consumers.at[slot].id!r} does not hold message "
                                    f"{self.handle_of(end)!r}, or acknowledged it before")
        if kind == DELIVERED or kind == REDELIVERED:
            if kind == DELIVERED:
                self.consumers.expand(slot, count)
            self.refresh(slot)
            self.rounds_due += 2
            return bodies
        if kind == INDIVIDUAL and transaction is None:
            bodies.append(self.object_of(end))
            self.acknowledge_one(slot, end)
            return bodies
        if kind == INDIVIDUAL:
            start = end
        elif start < 0:
            start = self.consumers.at[slot].held.first
        message = start
        while message >= 0:
            bodies.append(self.object_of(message))
            total += 1
            if transaction is not None:
                if not self.messages.at[message].acknowledged:
                    parts.append((self.handle_of(message), self.consumers.at[slot].id))
            elif unconsumed:
                gone.append((self.handle_of(message), "poison" if kind == POISON else "expired",
                             self.object_of(message), self.messages.at[message].redeliveries))
            if message == end:
                break
            message = self.messages.at[message].next
        if message < 0 or self.messages.at[start].consumer != slot:
            raise IllegalStateError(f"message {self.handle_of(start)!r} does not come before {self.handle_of(end)!r} "
                                    f"at consumer {self.consumers.at[slot].id!r}")
        if kind == STANDARD and transaction is None and 0 <= count != total:
            raise IllegalStateError(f"{counted(count, 'message')} up to {self.handle_of(end)!r}, where consumer "
                                    f"{self.consumers.at[slot].id!r} holds {total}")
        if transaction is not None and kind == POISON:
            raise IllegalStateError("a poison acknowledgement cannot be part of a transaction")
        if parts:
            if self.transactions is None:
                self.transactions = {}
            self.transactions.setdefault(transaction, []).extend(parts)
        if gone:
            if self.removed is None:
                self.removed = []
            self.removed.extend(gone)
        # Nothing from here on wants memory.
        message = start
        while True:
            following = self.messages.at[message].next
            if transaction is None:
                self.totals.expired += kind == EXPIRED
                self.complete(slot, message)
            else:
                self.messages.at[message].acknowledged = 1
            if message == end:
                break
            message = following
        if astray:
            self.refresh(slot)
            return bodies
        if transaction is None:
            self.consumers.contract(slot, 1 if unconsumed else total)
        elif kind == INDIVIDUAL:
            self.consumers.expand(slot, 1)
        self.refresh(slot)
        self.rounds_due += 2
        return bodies

    def commit(self, transaction):
        """Commit the acknowledgements of a transaction; two wakeups for each message."""
        cdef int32_t message, slot
        cdef list parts
        self.refuse_while_asked()
        parts = (self.transactions.pop(transaction, None) if self.transactions else None) or []
        for handle, consumer in parts:
            message = self.find(handle)
            found = self.consumers.slot_of.get(consumer)
            if message >= 0 and self.messages.at[message].whereabouts == IN_DOUBT:
                self.pending.withdraw(message)
                self.totals.dequeues += 1
                self.messages.discard(message)
            elif message >= 0:
                self.complete(found, message)
            if found is not None:
                slot = found
                self.consumers.contract(slot, 1)
                self.refresh(slot)
            self.rounds_due += 2
        self.after_messages()

    def rollback(self, transaction):
        """Roll the acknowledgements of a transaction back: the messages are unacknowledged again, at their
        consumers."""
        cdef int32_t message, slot
        cdef list parts
        self.refuse_while_asked()
        parts = (self.transactions.pop(transaction, None) if self.transactions else None) or []
        for handle, consumer in parts:
            message = self.find(handle)
            if message >= 0:
                self.messages.at[message].acknowledged = 0
                if self.messages.at[message].whereabouts == IN_DOUBT:
                    self.messages.at[message].whereabouts = WAITING
                    self.pending.index(message)
            found = self.consumers.slot_of.get(consumer)
            if found is not None:
                slot = found
                self.consumers.contract(slot, 1)
                self.refresh(slot)
            self.rounds_due += 1

    def pull(self, consumer, *, int64_t quantity=1, int64_t timeout=0, int64_t now=0):
        """A consumer with prefetch 0 asks for messages: one round, at once; return its deliveries.

        timeout: -1 ends with the null dispatch (message None) if there is nothing; 0 keeps the credit until a message
        comes; above 0 the caller calls ``pull_timeout`` when these ms have passed. Other consumers are not affected by
        the call.
        """
        cdef int32_t slot = self.slot_of(consumer)
        self.begin_handing_out()
        if self.consumers.at[slot].prefetch == 0:
            self.consumers.at[slot].extension = quantity
            self.refresh(slot)
            self.consumers.at[slot].pull_mark = self.consumers.at[slot].dispatched
            self.round(now)
            if timeout == -1 and self.consumers.at[slot].dispatched == self.consumers.at[slot].pull_mark:
                self.end_pull(slot)
        return self.take_out(now)

    def pull_timeout(self, consumer, *, int64_t now=0):
        """The last pull has timed out: the null dispatch and no credit, unless a message was dispatched since."""
        cdef int32_t slot = self.slot_of(consumer)
        self.begin_handing_out()
        if self.consumers.at[slot].prefetch == 0 and (
                self.consumers.at[slot].dispatched == self.consumers.at[slot].pull_mark):
            self.end_pull(slot)
        return self.take_out(now)

    def set_prefetch(self, consumer, int32_t prefetch):
        """A consumer may hold so many messages unacknowledged from now on; asks for a round."""
        cdef int32_t slot = self.slot_of(consumer)
        self.refuse_while_asked()
        self.consumers.at[slot].prefetch = prefetch
        self.refresh(slot)
        self.rounds_due += 1

    def share_credit(self, consumer, int64_t elsewhere, int64_t extension):
        """For a subscription that consumes several queues with one prefetch: what it holds unacknowledged in the other
        ones, and its prefetch extension. The caller sets it before a round if another queue changed it."""
        cdef int32_t slot = self.slot_of(consumer)
        self.refuse_while_asked()
        self.consumers.at[slot].elsewhere = elsewhere
        self.consumers.at[slot].extension = extension
        self.refresh(slot)

    def wakeup(self):
        """Ask for one more round."""
        self.rounds_due += 1

    def pause(self):
        """Stop dispatching; messages are still paged in."""
        self.refuse_while_asked()
        self.consumers.paused = True
        self.reopen()

    def resume(self):
        """Dispatch again; asks for a wakeup."""
        self.refuse_while_asked()
        self.consumers.paused = False
        self.reopen()
        self.rounds_due += 1

    def remove_message(self, handle):
        """Remove one message. One in flight keeps its place in the consumer's window until acknowledged."""
        self.take_off(self.message_of(handle))
        self.after_messages()

    def purge(self):
        """Remove every message, also those in flight; return their number."""
        cdef int32_t message
        cdef int64_t before = self.totals.dequeues
        for message in range(self.messages.slots):
            if self.messages.at[message].whereabouts in (WAITING, IN_DOUBT, STORED, IN_FLIGHT, STRANDED):
                self.take_off(message)
        self.after_messages()
        return self.totals.dequeues - before

    def expire(self, int64_t now, *, int64_t limit=400):
        """The broker's periodic look for expired messages; return the deliveries it makes. Asks for a wakeup.

        limit: maxExpirePageSize. If fewer are paged in, up to this number are, with or without consumers, and
        dispatched; those that expired before ``now`` leave instead. Expired ones among the waiting messages leave; the
        look ends after ``limit`` that stay. Raises InvalidTopologyError for a limit below 1.
        """
        whole_number("maxExpirePageSize", limit, 1, 2**31 - 1)
        self.begin_handing_out()
        self.look_for_expired(now, limit)
        return self.empty_out(now)

    def expire_stored(self, int64_t now):
        """Remove messages that expired before ``now`` and are not paged in."""
        cdef int32_t message
        self.refuse_while_asked()
        for message in range(self.messages.slots):
            if self.messages.at[message].whereabouts == STORED and 0 < self.messages.at[message].expiration < now:
                self.note_expired(message)
                self.cursors.unstore(message)
                self.drop_expired(message)
        self.after_messages()

    def remove_group(self, group):
        """Forget the owner of a group (JMX removeMessageGroup); counts stay. Return the owner it had, or None."""
        cdef int32_t handle
        cdef int32_t owner
        self.refuse_while_asked()
        handle = self.groups.find(group)
        if handle < 0 and self.groups.form != BUCKET:
            return None
        self.before_names()
        handle = self.groups.intern(group)
        owner = self.groups.drop(handle)
        self.pending.regroup(self.groups.key[handle])
        return None if owner < 0 else self.consumers.at[owner].id

    def remove_all_groups(self):
        """Forget every owner (JMX removeAllMessageGroups)."""
        self.refuse_while_asked()
        self.groups.drop_all()
        self.consumers.sorted = False
        self.pending.place_all()

    def take_failed(self):
        """``[(object sent, selector)]`` that could not be evaluated since the last call, at most 10000: no match."""
        result, self.failed = self.failed or [], None
        return result

    def take_slow(self):
        """Ids of the consumers that a round found without credit while they were not slow, since the last call."""
        result, self.consumers.slowed = self.consumers.slowed or [], None
        return result

    def take_removed(self):
        """Messages that left the queue unconsumed since the last call: ``[(handle, "expired" | "poison", object sent,
        redeliveries)]``."""
        result, self.removed = self.removed or [], None
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
        return offer(self, MessageColumns(
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
        return write_queue(self, save, shared)

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
        read_queue(queue, reader)
        return queue

    def __reduce__(self):
        raise TypeError("a queue holds objects of its caller: snapshot(save=...) and Queue.restore(load=...) carry it")
