"""A queue of the broker, its messages by id; see region_queue.pxd."""

from cython cimport final
from libc.stdint cimport int32_t, int64_t

from pyengine._engine.lowlevel.linked_list cimport Chain
from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch
from pyengine._engine.message.envelope cimport SMALLEST_SIZE
from pyengine._engine.activemq.commands.message_ack cimport MessageAck
from pyengine._engine.message.message cimport Message
from pyengine._engine.activemq.region.prefetch_subscription cimport Held, PrefetchSubscription
from pyengine._engine.activemq.commands.message_ack cimport DELIVERED, INDIVIDUAL, POISON, STANDARD
from pyengine._engine.activemq.region.shared_credit cimport UNSETTLED, WANTING, WATCHED, Part, SharedCredit
from pyengine._engine.activemq.queue.admission cimport Headers, enter
from pyengine._engine.activemq.queue.queue cimport Queue
from pyengine._engine.activemq.queue.queue_state cimport QueueState
from pyengine._engine.activemq.queue.message_slots cimport IN_FLIGHT
from pyengine._engine.activemq.queue.rounds cimport Handout, QueueListener
from pyengine._engine.activemq.queue.settlement cimport settle
from pyengine._engine.matching.consumer_filter cimport BY_DISPATCH, BY_REDELIVERY

from pyengine.errors import IllegalStateError, JMSError


@final
cdef class RegionListener(QueueListener):
    """Internal to a queue of a broker; see region_queue.pxd."""

    cdef int read_on(self) except -1:
        self.reader()
        return 0

    cdef int count_redelivery(self, QueueState state, int32_t message) except -1:
        QueueListener.count_redelivery(self, state, message)
        (<Message> state.object_of(message))._redelivery_counter = state.messages.at[message].redeliveries
        return 0

    cdef int dispatched(self, QueueState state, int32_t message, int64_t now) except -1:
        cdef Message sent = <Message> state.object_of(message)
        sent._broker_out_time = now
        sent._group_first_for_consumer = state.messages.at[message].group_first
        if self.noting and not state.messages.at[message].redeliveries:
            if self.noted is None:
                self.noted = []
            self.noted.append(sent)
            self.count_redelivery(state, message)
            return state.rematch(message, BY_REDELIVERY | BY_DISPATCH)
        return QueueListener.dispatched(self, state, message, now)


cdef class RegionQueue(Queue):
    """One queue of a broker with its subscriptions.

    owner: the owner of a handle in ``PrefetchSubscription.held``. destination: the destination of dispatches. direct:
    only the core decides (see QueueRegion). noting: a message's first dispatch counts as a redelivery for the next
    consumer, and is remembered (``take_noted``). max_expire_page_size: messages that a look for expired ones pages in.
    look_planned: one is due, or there are none. The settings are Queue's.

    Where Queue returns deliveries this one returns dispatches, ``[(route, MessageDispatch)]`` in order: the route of
    the subscription and the dispatch, with a copy of the message that has the counter, JMSXGroupFirstForConsumer and
    JMSActiveMQBrokerOutTime of this delivery. The message itself belongs to the queue and has the current values, for
    selectors and administrative operations.
    """

    def __cinit__(self):                         # the settings are Queue's
        self.subscriptions = {}
        self.at_slot = []
        self.minimum_message_size = SMALLEST_SIZE
        self.max_expire_page_size = 400
        self.look_planned = True
        self.listener = RegionListener()
        self.rounds.listener = self.listener

    def __reduce__(self):
        raise TypeError("a queue of a broker cannot be pickled")

    def add_consumer(self, **settings):
        """TypeError: a consumer of a broker's queue comes with its subscription; see ``subscribe``."""
        raise TypeError("a consumer of a broker's queue comes with its subscription: call subscribe()")

    def snapshot(self, **settings):
        """TypeError: the state of a broker's queue is in its store."""
        raise TypeError("a queue of a broker has subscriptions that bytes cannot carry: its store keeps its messages")

    @property
    def reader(self):
        """Callback that puts messages that are ``behind`` into the queue."""
        return self.listener.reader

    @reader.setter
    def reader(self, reader):
        self.listener.reader = reader

    @property
    def noting(self):
        """Whether first dispatches count, and are in ``take_noted``."""
        return self.listener.noting

    @noting.setter
    def noting(self, bint noting):
        self.listener.noting = noting

    @property
    def persistent_stored(self):
        """Persistent messages that wait to be paged in."""
        cdef int tier
        cdef int64_t total = 0
        for tier in range(10):
            total += self.state.cursors.cursor[tier].count
        for tier in range(3):
            total += self.state.cursors.unread[tier].count
        return total

    @property
    def cached(self):
        """Whether an arriving persistent message is put in its place by priority at once. If not it is read from the
        store in batches (message_slots.pxd), as in a broker that was started with messages, until none is left."""
        return self.state.cursors.cached

    @cached.setter
    def cached(self, bint cached):
        self.state.cursors.cached = cached

    @property
    def due(self):
        """Whether a requested round must run now."""
        return (self.state.rounds_due > 0 or self.rounds.echo) and self.rounds.start_at < 0

    @property
    def in_flight_count(self):
        """Messages that consumers hold, also those that were removed meanwhile (JMX InFlightCount)."""
        return self.state.in_flight + (<int64_t> len(self.purged) if self.purged else 0)

    def leave_behind(self, int64_t limit):
        """Take the persistent messages that would be paged in last out of the queue until ``limit`` of those that wait
        to be paged in are left, as if they had never been here; return them, the last one first."""
        cdef int tier
        cdef Chain* chain
        cdef int32_t number
        cdef int64_t left = self.persistent_stored
        cdef Message message
        cdef list result = []
        for tier in range(12, -1, -1):
            chain = &self.state.cursors.unread[tier - 10] if tier > 9 else &self.state.cursors.cursor[tier]
            while left > limit and chain.count:
                number = chain.last
                message = self.state.object_of(number)
                self.state.cursors.unstore(number)
                self.messages.discard(number)
                self.bytes -= message.size_in_bytes(self.minimum_message_size)
                self.state.totals.enqueues -= 1
                left -= 1
                result.append(message)
        return result

    def subscribe(self, PrefetchSubscription subscription not None, **settings):
        """Add a consumer (see add_consumer) with its subscription; return its id."""
        cdef object consumer = self.consumers.next_id
        while len(self.at_slot) <= self.consumers.slots:       # all that wants memory comes first
            self.at_slot.append(None)
        self.subscriptions[consumer] = subscription
        try:
            Queue.add_consumer(self, name=subscription.consumer_id, browser=subscription.browser, **settings)
        except BaseException:
            self.subscriptions.pop(consumer, None)
            raise
        self.at_slot[self.state.slot_of(consumer)] = subscription
        return consumer

    def unsubscribe(self, consumer, *, last_delivered=None, bint lost=False, int64_t now=0):
        """Remove a consumer (see close); return the dispatches made at once, to the others."""
        posted = self.close(consumer, last_delivered=last_delivered, lost=lost, now=now)
        self.note_parts()
        return posted

    def spread(self, consumer, SharedCredit credit not None):
        """A consumer has other queues, or may get them: it holds nothing here yet, and its prefetch is one for all."""
        if self.parts is None:
            self.parts = []
        self.parts.append(credit.begin(self, consumer, self.state.slot_of(consumer)))

    def share(self):
        """Learn what consumers of several queues hold in the others; before a change, and before a round."""
        self.share_parts()

    def note(self):
        """Tell consumers of several queues whether this one needs a round when they have room again; after a change."""
        self.note_parts()

    cdef int share_parts(self) except -1:
        cdef Part part
        self.state.refuse_while_asked()
        if self.parts:
            for part in self.parts:
                part.credit.share(part)
        return 0

    cdef int note_parts(self) except -1:
        cdef Part part
        if not self.parts:
            return 0
        for part in self.parts:
            part.credit.read(part)
        if not self.rounds.steady():
            for part in self.parts:
                part.credit.note(part, UNSETTLED)
        elif self.pending.waiting:
            for part in self.parts:
                part.credit.note(part, WANTING if self.consumers.at[part.slot].filled else WATCHED)
        return 0

    cdef int remove_consumer(self, object consumer, object last_delivered, bint lost, tuple closing,
                             list recounted, bint known) except -1:
        cdef PrefetchSubscription subscription
        cdef list given_up = []
        cdef Part part
        cdef Py_ssize_t place
        if self.purged:
            subscription = self.subscriptions[consumer]
            for held in subscription.held.values():
                if (<Held> held).owner is self.owner:
                    given_up.append((<Held> held).handle)
        Queue.remove_consumer(self, consumer, last_delivered, lost, closing, recounted, known)
        for handle in given_up:
            self.purged.discard(handle)
        for place in range(len(self.parts) if self.parts else 0):
            part = self.parts[place]
            if part.number == consumer:
                part.credit.end(part)
                del self.parts[place]
                break
        self.subscriptions.pop(consumer, None)
        return 0

    def put(self, Message message not None, bint wake=True):
        """Put a message on the queue and ask for a round; wake False: without one, as for a message of the store."""
        self.take_in(message)
        if not wake:
            self.state.rounds_due -= 1

    cdef int take_in(self, Message message) except -1:
        cdef Headers headers = Headers(message._group_sequence, message._redelivery_counter, message.expires(),
                                       message._priority, message._persistent)
        cdef int32_t number = enter(
            self.state, message, &headers, message._group_id, message._connection_id, message._target_consumer_id)
        self.messages.at[number].group_first = message._group_first_for_consumer
        self.bytes += message.size_in_bytes(self.minimum_message_size)
        return 0

    cdef list offer(self, Message message, int64_t now):
        # ``put`` and ``run`` in one.
        self.take_in(message)
        if self.parts:
            self.share_parts()
        self.rounds.begin_handing_out()
        self.rounds.run_wakeups(now, -1)
        if self.parts:
            self.note_parts()
        return self.take_out(now)

    def offer_all(self, list messages not None, destination, connection_id, int64_t sequence, int64_t now):
        """``received``, ``put`` and ``run`` for one message after the other: the dispatches of all of them.

        None, and nothing is done, if one of them may expire or a consumer has other queues. sequence: broker_sequence
        of the first.
        """
        cdef Message message
        if self.parts:
            return None
        for message in messages:
            if message.expires():
                return None
        self.rounds.begin_handing_out()
        for message in messages:
            message._connection_id = connection_id
            message.received(destination, sequence, now)
            sequence += 1
            self.take_in(message)
            self.rounds.run_wakeups(now, -1)
        return self.take_out(now)

    cdef list take_out(self, int64_t now):
        cdef int64_t index
        cdef list posted = []
        cdef Handout* handout
        cdef Message sent
        cdef MessageDispatch dispatch
        cdef PrefetchSubscription subscription
        for index in range(self.rounds.out_size):
            handout = &self.rounds.out[index]
            subscription = <PrefetchSubscription> self.at_slot[handout.slot]
            if handout.handle < 0:
                subscription.give(posted, None, None, 0)
                continue
            subscription.given += 1
            sent = <Message> self.state.object_of(handout.message)
            if not subscription.browser:
                subscription.keep(sent._message_id or "", self.owner, handout.handle)
                subscription.slow = False
            dispatch = subscription.give(posted, self.destination, sent, handout.redeliveries)
            if dispatch is not None:
                dispatch.group_first = handout.group_first != 0
                dispatch.out_time = now
        self.rounds.out_size = 0
        return posted

    @property
    def news(self):
        """Whether there is news: removed, failed, slow or noted messages or consumers, or a delay runs, or
        a look for expired messages that is not planned would page in."""
        return self.has_news()

    cdef bint has_news(self):
        return (bool(self.state.removed or self.state.failed or self.consumers.slowed or self.listener.noted)
                or self.rounds.start_at >= 0
                or not self.look_planned and self.rounds.looks_further(self.max_expire_page_size))

    def take_noted(self):
        """With ``noting``: messages dispatched for the first time since the last call."""
        result, self.listener.noted = self.listener.noted or [], None
        return result

    def answer(self, PrefetchSubscription subscription not None, consumer, MessageAck ack not None, int64_t now,
               transaction=None):
        """An acknowledgement of held messages; asks for rounds.

        consumer: the subscription's id here. transaction: see acknowledge. Returns the messages acknowledged; without a
        transaction those that are gone now and were not removed before. Raises JMSError for a message that it does not
        hold.
        """
        return self.answered(subscription, consumer, ack, now, transaction)

    cdef list answered(self, PrefetchSubscription subscription, object consumer, MessageAck ack, int64_t now,
                       object transaction):
        cdef int kind = ack.kind
        cdef Held last = subscription.first(ack.last_message_id, self.owner)
        cdef Held first = None
        cdef int32_t last_number, first_number = -1
        cdef list messages, gone = []
        cdef object end = None
        # Where the last message alone counts, the first may be acknowledged already.
        cdef bint ranged = ack.first_message_id is not None and kind != DELIVERED and kind != INDIVIDUAL
        if ranged:
            first = last
            if ack.first_message_id is not ack.last_message_id:
                first = subscription.first(ack.first_message_id, self.owner)
        if last is None or (ranged and first is None):
            missing = ack.last_message_id if last is None else ack.first_message_id
            raise JMSError(f"unmatched acknowledge: message {missing} is not held by consumer {ack.consumer_id} "
                           f"(kind {ack.kind})")
        if kind == POISON and first is not last:
            # The broker drops messages on its way from the first one, and finds no match at the end.
            end = subscription.astray(ack)
            if end is not None:
                last = subscription.first(end, self.owner)
        try:
            last_number = self.state.message_of(last.handle)
            if first is not None:
                first_number = last_number if first is last else self.state.message_of(first.handle)
            messages = settle(self.state, self.state.slot_of(consumer), last_number, first_number, kind,
                              ack.message_count, transaction, end is not None)
        except IllegalStateError as error:
            raise JMSError(f"unmatched acknowledge: {error}") from error
        subscription.slow = False
        if kind == STANDARD or kind == INDIVIDUAL or kind == POISON:
            subscription.last_acknowledged = now
        if transaction is not None:
            return messages
        for message in messages:
            self.settled(subscription, message, gone)
        return gone

    def complete_transaction(self, transaction, PrefetchSubscription subscription not None, messages):
        """Commit what ``answer`` returned for this transaction; return what is gone now, as there."""
        cdef list gone = []
        cdef list parts = (self.state.transactions or {}).get(transaction, [])
        cdef list there = [self.state.find(handle) >= 0 for handle, _ in parts]
        there += [True] * (len(messages) - len(there))
        self.commit(transaction)
        for place, message in enumerate(messages):
            # Messages that the consumer found expired, or gave up, are gone already.
            if there[place] or subscription.first(message.message_id or "", self.owner) is not None:
                self.settled(subscription, message, gone)
        return gone

    cdef int settled(self, PrefetchSubscription subscription, Message message, list gone) except -1:
        cdef Held held = subscription.drop(message._message_id or "", self.owner)
        if self.purged and held is not None and held.handle in self.purged:
            self.purged.discard(held.handle)
        else:
            self.bytes -= message.size_in_bytes(self.minimum_message_size)
            gone.append(message)
        return 0

    def take_off_message(self, handle):
        """Remove a message from the queue and return it. One that a consumer holds keeps its place there."""
        cdef int32_t number = self.state.message_of(handle)
        cdef Message message = self.state.object_of(number)
        if self.messages.at[number].whereabouts == IN_FLIGHT:
            if self.purged is None:
                self.purged = set()
            self.purged.add(handle)
        self.bytes -= message.size_in_bytes(self.minimum_message_size)
        self.state.take_off(number)
        return message

    def forget(self, Message message not None):
        """A message expired; its bytes are released."""
        self.bytes -= message.size_in_bytes(self.minimum_message_size)

    def _check(self):
        """Assert the invariants of the queue and of its rooms."""
        cdef Part part
        super()._check()
        for consumer, subscription in self.subscriptions.items():
            assert self.at_slot[self.state.slot_of(consumer)] is subscription
        for part in self.parts or ():
            assert part.queue is self and part.slot == self.state.slot_of(part.number)
            assert part.held == self.consumers.at[part.slot].held.count
            assert self.rounds.steady() or part.places[UNSETTLED]
            assert not self.pending.waiting or part.places[UNSETTLED] or part.places[WANTING] or part.places[WATCHED]
        assert self.bytes >= 0
