from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch
from pyengine._engine.activemq.client.dispatch_channel cimport Channel
from pyengine._engine.activemq.client.previous_deliveries cimport Previous, PreviousDeliveries
from pyengine._engine.activemq.commands.message_ack cimport MessageAck
from pyengine._engine.activemq.client.session_commands cimport AcknowledgeMode, Exchange, Later, Pull, Remove
from pyengine._engine.message.message cimport Message
from pyengine._engine.activemq.client.redelivery_policy cimport RedeliveryPolicy

from pyengine._engine.activemq.commands.message_ack import AckKind

from pyengine.errors import IllegalStateError, JMSError, TransactionRolledBackError

cdef object INDIVIDUAL = AckKind.INDIVIDUAL
cdef object STANDARD = AckKind.STANDARD
cdef object DELIVERED = AckKind.DELIVERED
cdef object REDELIVERED = AckKind.REDELIVERED
cdef object POISON = AckKind.POISON
cdef object EXPIRED = AckKind.EXPIRED


cdef MessageDispatch first_of(dict delivered):
    for dispatch in delivered:
        return dispatch


cdef MessageDispatch last_of(dict delivered):
    for dispatch in reversed(delivered):
        return dispatch


cdef int check_no_listener(Exchange session) except -1:
    if session.listeners:
        raise IllegalStateError("Cannot synchronously receive a message when a MessageListener is set")
    return 0


cdef class Consumption:
    """One consumer as its client counts (org.apache.activemq.ActiveMQMessageConsumer, spec activemq 2.4, 2.11-2.14).

    session: the state shared by the consumers of its session. prefetch, topic, browser, durable: of the
    subscription. optimize_acknowledge_time_out: ms, 0 never. delay_by_counter: as since AMQ-8617 the delay of a
    redelivery follows from the message's counter, not from the consumer's last delay, and the broker is notified of the
    first too. owner: the public consumer, not read here. now: ms since 1970, as in every method that has it.
    audit: knows what the connection was given before, with ``is_duplicate(consumer id, message)``, ``rollback(consumer
    id, message)``, ``expect(consumer id, message id)``, ``expect_nothing(consumer id)`` and ``expected(message id)``;
    None where the transport cannot be interrupted.
    Acknowledgements and other commands are appended to the session's; its driver carries them out in order.
    """

    def __cinit__(self, Exchange session, object consumer_id, object destination, int prefetch, *,
                  RedeliveryPolicy redelivery_policy, bint topic=False, bint browser=False, bint durable=False,
                  bint prioritized=False, bint optimize_acknowledge=False, int64_t optimize_acknowledge_time_out=0,
                  bint transacted_individual_ack=False, bint non_blocking_redelivery=False,
                  bint consumer_expiry_check=True, bint delay_by_counter=False, int64_t now=0,
                  object audit=None):
        self.session = session
        self.consumer_id = consumer_id
        self.destination = destination
        self.prefetch = prefetch
        self.topic = topic
        self.browser = browser
        self.durable = durable
        self.redelivery_policy = redelivery_policy
        self.acknowledges_each = session.mode == AcknowledgeMode.AUTO_ACKNOWLEDGE or (
            session.mode == AcknowledgeMode.DUPS_OK_ACKNOWLEDGE and not topic)
        self.acknowledges_batch = session.mode == AcknowledgeMode.DUPS_OK_ACKNOWLEDGE and topic
        self.optimize_acknowledge = (
            optimize_acknowledge and session.mode == AcknowledgeMode.AUTO_ACKNOWLEDGE and not browser)
        self.optimize_acknowledge_time_out = optimize_acknowledge_time_out
        self.optimized_at = now
        self.non_blocking_redelivery = non_blocking_redelivery
        self.transacted_individual_ack = transacted_individual_ack or non_blocking_redelivery or prioritized
        self.consumer_expiry_check = consumer_expiry_check
        self.delay_by_counter = delay_by_counter
        self.waiting = Channel(prioritized, session.backlog)
        self.delivered = {}
        self.audit = audit
        self.previous = PreviousDeliveries(consumer_id, audit)

    # Tests of a message

    cdef bint expired(self, MessageDispatch dispatch, int64_t now) except -1:
        return self.consumer_expiry_check and 0 < dispatch.source._expiration < now

    cdef bint exceeded(self, MessageDispatch dispatch) except -1:
        if self.session.mode != AcknowledgeMode.SESSION_TRANSACTED or not self.redelivery_policy.pre_dispatch_check:
            return False
        # The broker's redelivery plugin marks the messages that it sends again.
        return (self.redelivery_policy.exhausted(dispatch.redelivery_counter)
                and not dispatch.source.property_exists("redeliveryDelay"))

    # Acknowledgements

    cdef int say(self, object kind, MessageDispatch last, MessageDispatch first, int64_t count, object transaction,
                 object cause) except -1:
        cdef MessageAck ack = MessageAck.__new__(MessageAck)
        ack.consumer_id = self.consumer_id
        ack.destination = last.destination
        ack.kind = kind
        ack.last_message_id = last.source._message_id
        ack.first_message_id = None if first is None else first.source._message_id
        ack.message_count = <int>count
        ack.transaction_id = transaction
        ack.poison_cause = cause
        self.session.commands.append(ack)
        return 0

    cdef int say_pending(self) except -1:
        self.pending = False
        self.say(self.pending_kind, self.pending_last, self.pending_first, self.pending_count,
                 self.pending_transaction, "")
        self.pending_first = self.pending_last = None
        return 0

    cdef int say_all(self, object kind, object transaction, object cause) except -1:
        cdef MessageDispatch first = first_of(self.delivered)
        cdef Py_ssize_t count = len(self.delivered)
        return self.say(kind, first if count == 1 else last_of(self.delivered), first, count, transaction, cause)

    cdef int poison(self, MessageDispatch dispatch, object cause) except -1:
        return self.say(POISON, dispatch, dispatch, 1, None, f"java.lang.Throwable: {cause}")

    cdef int register(self) except -1:
        self.session.begin()
        if not self.registered:
            self.registered = True
            self.session.synchronizations.append((self, False))
        return 0

    cdef int before(self, MessageDispatch dispatch) except -1:
        self.last_sequence = dispatch.source.broker_sequence
        self.last_delivered = dispatch.source._message_id
        if self.acknowledges_batch:
            return 0
        self.delivered[dispatch] = None
        if self.session.mode == AcknowledgeMode.SESSION_TRANSACTED:
            if self.previous.entries:
                self.previous.delivered_again(dispatch.source._message_id)
            if self.transacted_individual_ack:
                self.register()
                self.say(INDIVIDUAL, dispatch, None, 1, self.session.transaction, "")
            else:
                self.later(dispatch, DELIVERED)
        return 0

    cdef int after(self, MessageDispatch dispatch, bint expired, int64_t now) except -1:
        if self.waiting.closed:
            return 0
        if expired:
            self.say(EXPIRED, dispatch, dispatch, 1, None, "")
            self.delivered.pop(dispatch, None)
            self.expired_messages += 1
        elif self.session.mode == AcknowledgeMode.SESSION_TRANSACTED:
            pass
        elif self.acknowledges_each:
            if not self.delivered:
                pass
            elif not self.optimize_acknowledge:
                self.say_all(STANDARD, None, "")
                self.delivered.clear()
            else:
                self.optimized_count += 1
                if (self.optimized_count + self.delivered_count >= self.prefetch * 0.65 or (
                        self.optimize_acknowledge_time_out > 0
                        and now >= self.optimized_at + self.optimize_acknowledge_time_out)):
                    self.say_all(STANDARD, None, "")
                    self.delivered.clear()
                    self.optimized_count = 0
                    self.optimized_at = now
                    if self.pending and self.delivered_count > 0:
                        self.say_pending()
                        self.delivered_count = 0
        elif self.acknowledges_batch:
            self.later(dispatch, STANDARD)
        elif dispatch in self.delivered:
            self.later(dispatch, DELIVERED)
        return 0

    cdef int later(self, MessageDispatch dispatch, object kind) except -1:
        """Hold an acknowledgement back until half of the prefetch window was delivered (ackLater)."""
        cdef MessageDispatch first = dispatch
        if self.session.mode == AcknowledgeMode.SESSION_TRANSACTED:
            self.register()
        self.delivered_count += 1
        if self.pending:
            first = self.pending_first
            if self.pending_kind is not kind:
                if self.pending_kind is not DELIVERED:
                    self.say_pending()
                first = None
        self.pending = True
        self.pending_kind = kind
        self.pending_first = first
        self.pending_last = dispatch
        self.pending_count = self.delivered_count
        self.pending_transaction = self.session.transaction
        if 0.5 * self.prefetch <= self.delivered_count + self.optimized_count:
            self.say_pending()
            self.delivered_count = 0
        return 0

    cdef int acknowledge(self) except -1:
        """Acknowledge everything delivered so far: on the user's call, or at the end of a transaction."""
        if not self.delivered:
            return 0
        if self.session.mode == AcknowledgeMode.SESSION_TRANSACTED:
            self.check_redelivered()
            self.session.begin()
        self.pending = False
        self.say_all(STANDARD, self.session.transaction, "")
        self.delivered_count = max(0, self.delivered_count - <int64_t>len(self.delivered))
        if self.session.mode != AcknowledgeMode.SESSION_TRANSACTED:
            self.delivered.clear()
        return 0

    def acknowledge_one(self, MessageDispatch dispatch not None):
        """Acknowledge one message alone (INDIVIDUAL_ACKNOWLEDGE)."""
        self.say(INDIVIDUAL, dispatch, None, 1, None, "")
        self.delivered.pop(dispatch, None)

    def deliver_acks(self):
        """Send the acknowledgement that is held back: before a close, and every optimizedAckScheduledAckInterval."""
        if self.acknowledges_each and self.delivered:
            self.say_all(STANDARD, None, "")
            self.delivered.clear()
            self.optimized_count = 0
        elif self.pending and (self.acknowledges_each or self.pending_kind is STANDARD):
            self.say_pending()

    # Arriving messages

    cpdef Offer offer(self, MessageDispatch dispatch, int64_t now) except? <Offer>-1:
        """A message has arrived. LISTEN: call the listener, then SessionState.listened or
        ``failed``."""
        if self.waiting.closed:
            return Offer.KEPT
        if self.audit is not None and not dispatch.offered and not self.browser:
            if self.repeated(dispatch):
                return self.answer_repeated(dispatch, now)
            dispatch.offered = True
        if self.listening and self.waiting.running:
            if self.exceeded(dispatch):
                self.poison(dispatch, f"listener dispatch[{dispatch.redelivery_counter}] to {self.consumer_id} exceeds "
                                      f"redelivery policy limit:{self.redelivery_policy.text()}")
                return Offer.KEPT
            self.before(dispatch)
            if not self.expired(dispatch, now):
                return Offer.LISTEN
            self.after(dispatch, True, now)
        else:
            if dispatch.source is None or not self.expired(dispatch, now):
                self.waiting.enqueue(dispatch)
            else:
                self.before(dispatch)
                self.after(dispatch, True, now)
                if self.prefetch == 0:
                    self.waiting.enqueue(MessageDispatch(self.consumer_id, None, None))
        return Offer.KEPT

    def receive(self, int64_t now):
        """The next message, or None: no message waits, or (``ended``) none will come, or the consumer is closed. Raises
        IllegalStateError if a listener is set in the session."""
        cdef MessageDispatch dispatch
        check_no_listener(self.session)
        while True:
            dispatch = self.waiting.dequeue()
            if dispatch is None:
                return None
            if dispatch.source is None:
                self.ended = True
                return None
            if self.expired(dispatch, now):
                self.before(dispatch)
                self.after(dispatch, True, now)
            elif self.exceeded(dispatch):
                self.poison(dispatch, f"Dispatch[{dispatch.redelivery_counter}] to {self.consumer_id} exceeds "
                                      f"redelivery policy limit:{self.redelivery_policy.text()}")
            else:
                self.before(dispatch)
                self.after(dispatch, False, now)
                return dispatch
            if self.prefetch == 0 and not self.waiting.size:
                self.session.commands.append(Pull(self))

    def receive_batch(self, int size, int64_t now):
        """Up to ``size`` messages that wait. If each would be acknowledged when it is taken, one acknowledgement covers
        all of them.
        Raises as ``receive``."""
        cdef bint together = self.acknowledges_each and not self.optimize_acknowledge
        cdef list found = []
        self.acknowledges_each &= not together
        try:
            while len(found) < size:
                dispatch = self.receive(now)
                if dispatch is None:
                    break
                found.append(dispatch)
        finally:
            self.acknowledges_each |= together
            if together:
                self.acknowledge()
        return found

    def give(self, MessageDispatch dispatch not None, object acknowledge):
        """The message for the user; changes by the user do not reach a redelivery. acknowledge: the callback of
        Message.acknowledge, or None."""
        return self.handed(dispatch, acknowledge)

    cdef Message handed(self, MessageDispatch dispatch, object acknowledge):
        cdef Message message
        if acknowledge is None and dispatch.source is not dispatch.own:
            return dispatch.take()            # a redelivered message is copied again
        if self.acknowledges_each and not self.optimize_acknowledge and dispatch not in self.delivered:
            return dispatch.take()            # acknowledged: it is not redelivered
        message = Message.__new__(Message)
        dispatch.take().copy_into(message)
        message._acknowledge = acknowledge
        return message

    @property
    def ready(self):
        """Whether ``receive`` has an answer: a message, the end of a browse, or that it is closed."""
        return self.waiting.closed or (self.waiting.running and self.waiting.size > 0)

    def wants_pull(self):
        """Whether the broker must be asked before a message can come (prefetch 0). Raises as ``receive``."""
        check_no_listener(self.session)
        self.ended = False
        return self.prefetch == 0 and not self.waiting.size

    def failed(self, MessageDispatch dispatch not None, int64_t now, object cause, object chance=None):
        """The listener has raised; cause: its text. chance: see ``rollback``."""
        dispatch.cause = cause
        dispatch.consumer = None
        if (self.acknowledges_each or self.acknowledges_batch
                or self.session.mode == AcknowledgeMode.INDIVIDUAL_ACKNOWLEDGE):
            self.rollback(now, chance)
        else:
            self.after(dispatch, False, now)

    # A transport that was interrupted

    cdef bint repeated(self, MessageDispatch dispatch) except -1:
        if dispatch.source is None or (self.session.mode == AcknowledgeMode.SESSION_TRANSACTED
                                       and self.previous.is_prefetched(dispatch.source._message_id)):
            return False
        return self.audit.is_duplicate(self.consumer_id, dispatch.source)

    cdef Offer answer_repeated(self, MessageDispatch dispatch, int64_t now) except? <Offer>-1:
        """The connection was given it before."""
        cdef object message_id = dispatch.source._message_id
        if self.session.mode == AcknowledgeMode.SESSION_TRANSACTED and self.previous.comes_again(message_id):
            if self.transacted_individual_ack:
                self.register()
                self.say(INDIVIDUAL, dispatch, None, 1, self.session.transaction, "")
            else:
                self.say(DELIVERED, dispatch, None, 1, None, "")
        elif self.audit.expected(message_id):
            self.audit.rollback(self.consumer_id, dispatch.source)
            return self.offer(dispatch, now)
        else:
            self.poison(dispatch, f"Suppressing duplicate delivery on connection, consumer {self.consumer_id}")
        if self.prefetch == 0:                 # its receiver would wait for ever, as in the real client
            self.waiting.enqueue(MessageDispatch(self.consumer_id, None, None))
        return Offer.KEPT

    cdef int give_up(self, object dispatches) except -1:
        """These messages may come again, and are not duplicates then."""
        cdef MessageDispatch dispatch
        if self.audit is not None and not self.browser:
            for found in dispatches:
                dispatch = found
                if dispatch.source is not None:
                    self.audit.rollback(self.consumer_id, dispatch.source)
        return 0

    cdef int interrupt(self) except -1:
        """The transport was interrupted (inProgressClearRequired, clearMessagesInProgress): what waits comes again,
        what was delivered is remembered in a transaction and forgotten without one."""
        cdef MessageDispatch dispatch
        cdef bint transacted = self.session.mode == AcknowledgeMode.SESSION_TRANSACTED
        cdef list waiting = self.waiting.remove_all()
        if self.delivered and self.session.transaction is not None:
            self.session.rollback_only = True
        if transacted and not self.browser:
            for found in waiting:
                dispatch = found
                if dispatch.source is not None:
                    self.previous.add(dispatch, self.session.transaction, False, True)
        self.give_up(waiting)
        if not self.delivered:
            return 0
        if transacted:
            for found in self.delivered:
                self.previous.add(found, self.session.transaction, False, False)
            return 0
        if self.session.mode == AcknowledgeMode.CLIENT_ACKNOWLEDGE:
            self.give_up(self.delivered)
        self.delivered.clear()
        self.pending = False
        self.pending_first = self.pending_last = None
        return 0

    @property
    def missing_messages(self):
        """Number of messages that it had when the transport was interrupted and that did not come again."""
        return len(self.previous.missing())

    cdef int check_redelivered(self) except -1:
        """Raise TransactionRolledBackError where a message of the transaction may be another consumer's by now."""
        cdef list missing
        if self.previous.entries:
            missing = self.previous.missing()
            if missing:
                raise TransactionRolledBackError(
                    f"rolling back transaction ({self.previous.transaction}) post failover recovery. {len(missing)} "
                    f"previously delivered message(s) not replayed to consumer: {self.consumer_id}")
        return 0

    # Transactions and redelivery

    cdef int before_end(self) except -1:
        self.registered = False
        if self.transacted_individual_ack:
            self.check_redelivered()
        else:
            self.acknowledge()
        return 0

    cdef int commit(self) except -1:
        self.delivered.clear()
        self.previous.clear()
        self.redelivery_delay = 0
        self.registered = False
        return 0

    cdef int64_t next_delay(self, object chance) except? -1:
        return self.redelivery_policy.next_delay(self.redelivery_delay, 0.5 if chance is None else chance())

    cpdef rollback(self, int64_t now, object chance=None):
        """Redeliver the delivered and unacknowledged messages after the policy's delay, or send a poison
        acknowledgement.

        chance: draws the random number of each step of the back-off (see RedeliveryPolicy.next_delay); None: 0.5.
        """
        cdef MessageDispatch last, dispatch
        cdef int64_t index = 0
        cdef int32_t _
        cdef bint again
        cdef list dispatches
        self.registered = False
        if self.optimize_acknowledge and not self.browser:
            # The real client's loop takes this number: its bound shrinks while it runs.
            while index < len(self.delivered) and index < self.optimized_count:
                dispatch = first_of(self.delivered)
                del self.delivered[dispatch]
                self.give_up((dispatch,))
                index += 1
        if self.previous.entries:
            for found in self.previous.missing():  # they are not here any more
                self.forget((<MessageDispatch> found).source._message_id)
            self.previous.clear()
        if not self.delivered:
            return
        last = last_of(self.delivered)
        again = last.counter > 0
        if self.delay_by_counter:
            self.redelivery_delay = self.redelivery_policy.initial_redelivery_delay
            for _ in range(last.counter):
                self.redelivery_delay = self.next_delay(chance)
        elif again:
            self.redelivery_delay = self.next_delay(chance)
        else:
            self.redelivery_delay = self.redelivery_policy.initial_redelivery_delay
        dispatches = list(self.delivered)
        for dispatch in dispatches:
            dispatch.counter += 1
        self.give_up(dispatches)
        self.delivered_count -= len(dispatches)
        if self.redelivery_policy.exhausted(last.counter):
            self.say_all(POISON, None, f"java.lang.Throwable: Delivery[{last.counter}] exceeds redelivery policy limit:"
                                       f"{self.redelivery_policy.text()}, cause:{last.cause or 'null'}")
            self.delivered.clear()
            self.redelivery_delay = 0
            return
        if again or self.delay_by_counter:
            self.say_all(REDELIVERED, None, "")
        self.delivered.clear()
        for dispatch in dispatches:
            dispatch.renew()
            if self.audit is not None:
                self.previous.add(dispatch, self.session.transaction, True, False)
        if self.waiting.closed:
            return
        if not self.non_blocking_redelivery:
            self.waiting.stop()
            if self.redelivery_delay <= 0:
                self.redeliver(dispatches, now)
                return
        self.session.commands.append(Later(self, self.redelivery_delay, dispatches))

    cdef int forget(self, object message_id) except -1:
        cdef MessageDispatch dispatch
        for found in self.delivered:
            dispatch = found
            if dispatch.source._message_id == message_id:
                del self.delivered[dispatch]
                self.give_up((dispatch,))
                break
        return 0

    def redeliver(self, list dispatches, int64_t now):
        """The delay of a redelivery is over."""
        cdef MessageDispatch dispatch
        if self.waiting.closed:
            return
        if self.non_blocking_redelivery:
            for dispatch in dispatches:
                if self.listening and (self.session.asynchronous or self.waiting.running):
                    self.session.queue.enqueue(dispatch)
                else:
                    self.offer(dispatch, now)
            return
        for dispatch in reversed(dispatches):
            self.waiting.enqueue_first(dispatch)
        if self.listening:
            if self.session.asynchronous or not self.session.queue.running:
                self.redispatch()
            else:
                self.turn(now)
        if self.started:
            self.waiting.start()

    cdef int redispatch(self) except -1:
        """Return the waiting messages to the front of the session, the last one first."""
        for dispatch in reversed(self.waiting.remove_all()):
            self.session.queue.enqueue_first(dispatch)
        return 0

    cdef int turn(self, int64_t now) except -1:
        """The same in a session without a thread, which returns each one before it takes the next: the last one comes
        first, then the session's other messages."""
        cdef MessageDispatch dispatch
        cdef list waiting = self.waiting.remove_all()
        waiting.reverse()
        waiting[1:1] = self.session.queue.remove_all()
        for dispatch in waiting:
            if self.waiting.running or dispatch.consumer_id != self.consumer_id:
                self.session.queue.enqueue(dispatch)
            else:
                self.offer(dispatch, now)
        return 0

    # Life

    def listen(self, bint listening):
        """A listener is set or removed. Raises JMSError for a consumer without prefetch."""
        if self.prefetch == 0:
            raise JMSError("Illegal prefetch size of zero. This setting is not supported for asynchronous consumers "
                           "please set a value of at least 1")
        self.session.listeners += <int>listening - <int>self.listening
        self.listening = listening
        if listening:
            self.redispatch()

    def start(self):
        """Start: messages may be taken."""
        if not self.waiting.closed:
            self.started = True
            self.waiting.start()

    def stop(self):
        """Stop: no message is taken until ``start``."""
        self.started = False
        self.waiting.stop()

    def close(self):
        """Close; with delivered messages of an open transaction only when that ends. True: it is closed."""
        if self.waiting.closed:
            return True
        if self.delivered and self.session.transaction is not None:
            self.session.synchronizations.append((self, True))
            return False
        self.dispose()
        self.remove(self.last_delivered)
        return True

    cdef int dispose(self) except -1:
        if self.waiting.closed:
            return 0
        if self.session.mode != AcknowledgeMode.SESSION_TRANSACTED:
            self.deliver_acks()
            if self.acknowledges_batch:
                self.acknowledge()
            if self.session.mode != AcknowledgeMode.AUTO_ACKNOWLEDGE:
                self.give_up(self.delivered)
            self.delivered.clear()
        self.waiting.close()
        self.session.listeners -= self.listening
        self.listening = False
        self.listener = None           # it may hold messages that know how they are acknowledged, and so this consumer
        self.give_up(self.waiting.remove_all())
        for found in self.previous.entries.values():
            self.give_up(((<Previous> found).dispatch,))
        self.previous.clear()
        return 0

    cdef int remove(self, object last_delivered) except -1:
        if not self.removed:
            self.removed = True
            self.session.commands.append(Remove(self, last_delivered))
        return 0

    @property
    def closed(self):
        """Whether it is closed."""
        return self.waiting.closed

    @property
    def waiting_messages(self):
        """Number of messages that arrived and were not taken."""
        return self.waiting.size

    @property
    def delivered_messages(self):
        """Delivered and unacknowledged messages, in order."""
        return [dispatch.message for dispatch in self.delivered]

    def check_open(self):
        """Raise IllegalStateError if it is closed."""
        if self.waiting.closed:
            raise IllegalStateError("The Consumer is closed")

    def _check(self):
        """Raise AssertionError if an invariant of the room does not hold."""
        self.waiting._check()
        assert not (self.acknowledges_batch and self.delivered)
        waiting = {id(dispatch) for part in self.waiting.lists for dispatch in part}
        assert not any(id(dispatch) in waiting for dispatch in self.delivered)
        assert not self.registered or self.session.transaction is not None
        assert self.pending == (self.pending_last is not None) or not self.pending
