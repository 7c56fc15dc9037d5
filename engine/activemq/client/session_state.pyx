from libc.stdint cimport int64_t

from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch
from pyengine._engine.activemq.client.dispatch_channel cimport Backlog, Channel
from pyengine._engine.activemq.client.message_consumer cimport Consumption, Offer
from pyengine._engine.activemq.client.session_commands cimport AcknowledgeMode, Exchange

from pyengine.errors import IllegalStateError

cdef tuple OFFERS = (Offer.KEPT, Offer.LISTEN, Offer.QUEUED)      # looked up once: access to an enum's member is slow


cdef class SessionState(Exchange):
    """The consumers of one session (org.apache.activemq.ActiveMQSession and its executor).

    mode, prefix, prioritized: see Exchange. asynchronous: messages for listeners wait for the session's own task
    (alwaysSessionAsync); otherwise they are offered at once.
    """

    def __cinit__(self, mode, prefix, *, bint asynchronous=True, **unused):
        self.consumers = {}
        self.asynchronous = asynchronous
        self.late = Channel(False, Backlog())

    def add(self, Consumption consumer not None):
        """A consumer joins."""
        self.consumers[consumer.consumer_id] = consumer

    def discard(self, Consumption consumer not None):
        """Remove a consumer that the broker refused."""
        self.consumers.pop(consumer.consumer_id, None)

    def arrive(self, MessageDispatch dispatch not None, int64_t now, bint later=False):
        """A message arrived. LISTEN: call the listener; QUEUED: ``step`` will; KEPT: see Offer. later: a listener of
        the session is at work, so that no other one is offered anything."""
        return OFFERS[<int> self.offered(dispatch, now, later)]

    cdef Offer offered(self, MessageDispatch dispatch, int64_t now, bint later) except? <Offer>-1:
        cdef Consumption consumer = self.consumers.get(dispatch.consumer_id)
        if consumer is None:
            return Offer.KEPT
        if self.asynchronous:
            if consumer.listening or self.queue.size:
                self.queue.enqueue(dispatch)
                return Offer.QUEUED
        elif later and (consumer.listening or self.late.size or self.queue.size) or self.behind(consumer):
            self.late.enqueue(dispatch)
            return Offer.QUEUED
        return self.offer(consumer, dispatch, now)

    cdef bint keeps(self, MessageDispatch dispatch):
        cdef Consumption consumer = self.consumers.get(dispatch.consumer_id)
        return self.asynchronous and not self.queue.size and (consumer is None or not consumer.listening)

    cdef bint behind(self, Consumption consumer):
        # Whether something waits for the listener already, which acknowledges one message after the other, or
        # ``resume`` is still to come.
        return consumer.listening and (
            self.late.size > 0 or (self.started and (self.queue.size > 0 or not self.queue.running))
            or (consumer.waiting.running and consumer.waiting.size > 0))

    cdef Offer offer(self, Consumption consumer, MessageDispatch dispatch, int64_t now) except? <Offer>-1:
        cdef Offer offer = consumer.offer(dispatch, now)
        if offer == Offer.LISTEN:
            dispatch.consumer = consumer
        return offer

    def arrive_for_listeners(self, list dispatches not None):
        """Many arrived: take from the front those that wait for the session's task; return their number."""
        cdef Consumption consumer
        cdef MessageDispatch dispatch
        cdef Py_ssize_t count = 0
        if self.asynchronous:
            for count, dispatch in enumerate(dispatches):
                consumer = self.consumers.get(dispatch.consumer_id)
                if consumer is None or not (consumer.listening or self.queue.size):
                    return count
                self.queue.enqueue(dispatch)
            count = len(dispatches)
        return count

    cpdef MessageDispatch step(self, int64_t now):
        """The next message for a listener, or None when none is left (ActiveMQSessionExecutor.iterate)."""
        cdef Consumption consumer
        cdef MessageDispatch dispatch
        while True:
            dispatch = None
            if self.backlog.size:
                for found in self.consumers.values():
                    consumer = found
                    if consumer.listening:
                        dispatch = consumer.waiting.dequeue()
                        if dispatch is not None:
                            break
            if dispatch is None:
                dispatch = self.queue.dequeue()
                if dispatch is None:
                    dispatch = self.late.dequeue()
                    if dispatch is None:
                        return None
                consumer = self.consumers.get(dispatch.consumer_id)
            if consumer is not None and self.offer(consumer, dispatch, now) == Offer.LISTEN:
                return dispatch

    @property
    def has_work(self):
        """Whether ``step`` may find a message."""
        return self.waits()

    cdef bint waits(self):
        cdef Consumption consumer
        if self.queue.running and self.queue.size + self.late.size:
            return True
        if not self.backlog.size:
            return False
        for found in self.consumers.values():
            consumer = found
            if consumer.listening and consumer.waiting.running and consumer.waiting.size:
                return True
        return False

    def owner_of(self, MessageDispatch dispatch not None):
        """The owner of the Consumption whose listener gets this message, or has it."""
        return (<Consumption> dispatch.consumer).owner

    def listened(self, MessageDispatch dispatch not None, int64_t now):
        """The listener has returned; the commands to carry out now, as ``take_commands``."""
        return self.heard(dispatch, now)

    cdef list heard(self, MessageDispatch dispatch, int64_t now):
        cdef Consumption consumer = dispatch.consumer
        dispatch.consumer = None
        consumer.after(dispatch, False, now)
        return self.take_commands()

    def check_open(self):
        """Raise IllegalStateError if it is closed."""
        if self.closed:
            raise IllegalStateError("The Session is closed")

    def check_transacted(self):
        """Raise IllegalStateError if it is closed or has no transactions."""
        self.check_open()
        if self.mode != AcknowledgeMode.SESSION_TRANSACTED:
            raise IllegalStateError("Not a transacted session")

    def start(self):
        """Messages may be delivered. In a session without a thread the messages that wait at its consumers are
        delivered first, then
        ``resume`` is called."""
        self.started = True
        for consumer in self.consumers.values():
            consumer.start()
        if self.asynchronous:
            self.resume()

    def resume(self):
        """Messages that came back to the session may be delivered too."""
        if self.started:
            self.queue.start()
            self.late.start()

    def stop(self):
        """No message is delivered until ``start``."""
        self.started = False
        for consumer in self.consumers.values():
            consumer.stop()
        self.queue.stop()
        self.late.stop()

    def acknowledge(self):
        """The user of CLIENT_ACKNOWLEDGE acknowledges: everything delivered to any consumer of the session."""
        cdef Consumption consumer
        for found in self.consumers.values():
            consumer = found
            consumer.acknowledge()

    def recover(self, int64_t now, object chance=None):
        """Deliver what was not acknowledged again. chance: see Consumption.rollback. Raises IllegalStateError if the
        session is transacted or closed."""
        self.check_open()
        if self.mode == AcknowledgeMode.SESSION_TRANSACTED:
            raise IllegalStateError("This session is transacted")
        for consumer in list(self.consumers.values()):
            consumer.rollback(now, chance)

    def interrupt(self):
        """The transport was interrupted: what was not delivered is dropped, the broker dispatches it again."""
        cdef Consumption consumer
        self.queue.remove_all()
        self.late.remove_all()
        for found in self.consumers.values():
            consumer = found
            consumer.interrupt()

    @property
    def missing_messages(self):
        """See Consumption.missing_messages; of all consumers."""
        return sum([consumer.missing_messages for consumer in self.consumers.values()])

    # Transactions

    def start_transaction(self):
        """Before a send: the id of the transaction, opened if need be; None in a session without transactions."""
        if self.mode == AcknowledgeMode.SESSION_TRANSACTED:
            self.begin()
        return self.transaction

    def before_end(self):
        """Before commit or rollback: the id of the transaction, or None. Carry out the commands, call the broker, then
        after_commit or after_rollback. Raises TransactionRolledBackError where it can only be rolled back: called
        again, it goes on behind the consumer that raised."""
        cdef Consumption consumer
        while self.ended < len(self.synchronizations):
            found, closing = self.synchronizations[self.ended]
            self.ended += 1
            if not closing:
                consumer = found
                consumer.before_end()
        return self.transaction

    def after_commit(self):
        """The broker committed."""
        self.settle(True, 0, None)

    def after_rollback(self, int64_t now, object chance=None):
        """The broker rolled back. chance: see Consumption.rollback."""
        self.settle(False, now, chance)

    cdef int settle(self, bint committed, int64_t now, object chance) except -1:
        cdef Consumption consumer
        synchronizations, self.synchronizations = self.synchronizations, []
        self.ended = 0
        self.transaction = None
        for found, closing in synchronizations:
            consumer = found
            if closing:
                self.end(consumer, consumer.last_delivered)
            elif committed:
                consumer.commit()
            else:
                consumer.rollback(now, chance)
        return 0

    # Closing

    def close_consumer(self, Consumption consumer not None):
        """Close one consumer; False: when the transaction ends."""
        if not consumer.close():
            return False
        self.consumers.pop(consumer.consumer_id, None)
        return True

    cdef int end(self, Consumption consumer, object last_delivered) except -1:
        consumer.dispose()
        consumer.remove(last_delivered)
        self.consumers.pop(consumer.consumer_id, None)
        return 0

    def dispose(self):
        """Close: every consumer acknowledges what its mode allows. Returns the consumers, for ``leave``."""
        cdef Consumption consumer
        if self.closed:
            return []
        for channel in (self.queue, self.late):
            (<Channel> channel).close()
            (<Channel> channel).remove_all()
        consumers = list(self.consumers.values())
        for found in consumers:
            consumer = found
            consumer.dispose()
        self.consumers.clear()
        self.closed = True
        self.started = False
        return consumers

    @staticmethod
    def leave(list consumers):
        """These consumers leave the broker together. Returns the ids of those that it still has, and the id of the last
        message that any of them delivered, or None: only that one counts as delivered (RemoveInfo of a session or
        connection, spec activemq 2.7)."""
        cdef Consumption consumer, latest = None
        cdef list left = []
        for found in consumers:
            consumer = found
            if consumer.last_delivered is not None and (
                    latest is None or consumer.last_sequence > latest.last_sequence):
                latest = consumer
        for found in consumers:
            consumer = found
            if not consumer.removed:
                consumer.removed = True
                left.append(consumer.consumer_id)
        return left, None if latest is None else latest.last_delivered

    def _check(self):
        """Raise AssertionError if an invariant of the room does not hold."""
        cdef Consumption consumer
        self.queue._check()
        self.late._check()
        assert not (self.asynchronous and self.late.size)
        assert self.transaction is not None or not self.synchronizations
        assert self.listeners == sum([consumer.listening for consumer in self.consumers.values()])
        assert self.backlog.size == sum([consumer.waiting.size for consumer in self.consumers.values()])
        for name, found in self.consumers.items():
            consumer = found
            assert consumer.consumer_id == name and consumer.session is self
            consumer._check()
        if self.closed:
            assert not self.consumers and not self.queue.running
