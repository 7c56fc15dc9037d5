cimport cython

from libc.stdint cimport int64_t

from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch
from pyengine._engine.activemq.commands.message_ack cimport MessageAck
from pyengine._engine.message.message cimport Message
from pyengine._engine.activemq.commands.message_ack cimport DELIVERED, INDIVIDUAL, POISON, REDELIVERED, STANDARD

from pyengine.errors import JMSError, counted


@cython.final
@cython.freelist(256)
@cython.no_gc
cdef class Held:
    """A dispatched message: its owner and its handle there."""


cdef class PrefetchSubscription:
    """One consumer at the broker.

    consumer_id: see ConsumerInfo. route: what its dispatches are posted to, or None over a lost connection. browser:
    it holds nothing. queue, number: its only queue and its id there, None if it has several or browses. slow: it was
    aborted or marked so, and has not acknowledged since. last_acknowledged: ms. credit: of one that has several queues
    or may get them, else None. given: messages that its queues dispatched to it. held: ``{message id: Held}`` of
    unacknowledged messages, in dispatch order; a copy of such a message has the key (message id, owner, handle).
    """

    def __cinit__(self, *unused, **also_unused):
        self.consumer_id = ""
        self.held = {}
        self.copies = {}

    def __reduce__(self):
        raise TypeError("a subscription belongs to its broker and cannot be pickled")

    cdef int keep(self, object message_id, object owner, int64_t handle) except -1:
        cdef Held held = Held.__new__(Held), found
        cdef tuple key
        held.owner = owner
        held.handle = handle
        if (not self.copies or message_id not in self.copies) and self.held.setdefault(message_id, held) is held:
            return 0
        # A queue that had no memory for its dispatches makes them again, those of messages that are held too.
        found = self.held.get(message_id)
        key = (message_id, owner, handle)
        if key in self.held or found is not None and found.owner is owner and found.handle == handle:
            return 0
        keys = self.copies.get(message_id)
        self.held[key] = held
        try:
            if keys is None:
                self.copies[message_id] = [key]
            else:
                (<list> keys).append(key)
        except BaseException:
            del self.held[key]
            raise
        return 0

    cdef Held first(self, object message_id, object owner):
        cdef Held found = self.held.get(message_id)
        if found is not None and found.owner is owner:
            return found
        if not self.copies:
            return None
        for key in self.copies.get(message_id, ()):
            if (<tuple> key)[1] is owner:
                return self.held[key]
        return None

    cdef Held drop(self, object message_id, object owner):
        cdef list keys
        cdef tuple key
        cdef Held found
        if not self.copies:
            return self.held.pop(message_id, None)
        found = self.first(message_id, owner)
        if found is None:
            return None
        if self.held.get(message_id) is found:
            del self.held[message_id]
            return found
        keys = self.copies[message_id]
        key = (message_id, found.owner, found.handle)
        keys.remove(key)
        if not keys:
            del self.copies[message_id]
        return self.held.pop(key)

    def hold(self, object message_id, object owner, int64_t handle):
        """A message was dispatched to it."""
        self.keep(message_id, owner, handle)

    def find(self, object message_id, object owner):
        """The first message of this id that it holds from ``owner``: (owner, handle), or None."""
        cdef Held found = self.first(message_id, owner)
        return None if found is None else (found.owner, found.handle)

    def latest(self, object message_id):
        """The last message of this id that it holds: (owner, handle), or None."""
        cdef object keys = self.copies.get(message_id)
        cdef Held found = self.held.get(message_id if keys is None else (<list> keys)[len(<list> keys) - 1])
        return None if found is None else (found.owner, found.handle)

    def release(self, object message_id, object owner):
        """Drop the first message of this id from ``owner``; return what ``find`` returned."""
        cdef Held found = self.drop(message_id, owner)
        return None if found is None else (found.owner, found.handle)

    def forget(self):
        """Drop all messages."""
        self.held.clear()
        self.copies.clear()

    def astray(self, MessageAck ack not None):
        """The id of the last message that it holds, if it holds the first one of the range and the last one does not
        come behind it; None otherwise."""
        cdef object message_id = None
        cdef bint inside = False
        for key in self.held:
            message_id = (<tuple> key)[0] if isinstance(key, tuple) else key
            inside = inside or message_id == ack.first_message_id
            if inside and message_id == ack.last_message_id:
                return None
        return message_id if inside else None

    def parts_of(self, MessageAck ack not None, int before=0):
        """The part of an acknowledgement for each owner: ``[(owner, MessageAck)]``, for messages of several of them.

        As in the broker (PrefetchSubscription.acknowledge) one walk through all it holds, in order, finds the first
        message and ends at the first that has the last one's id. before: the number of messages of that id that are
        acknowledged already in the same transaction. Raises JMSError if it holds no such messages, or if outside a
        transaction a STANDARD acknowledgement does not count as many.
        """
        cdef int kind = ack.kind
        cdef bint one = kind == INDIVIDUAL or kind == DELIVERED
        cdef bint inside = not one and ack.first_message_id is None
        cdef bint ended = False
        cdef int count = 0
        cdef list run = None, runs = []
        cdef object message_id, owner, held
        for key, held in self.held.items():
            owner = (<Held> held).owner
            message_id = (<tuple> key)[0] if isinstance(key, tuple) else key
            if not inside and not one and message_id == ack.first_message_id:
                inside = True
            ended = (inside or one) and message_id == ack.last_message_id
            if one and ended and before:
                before -= 1
                ended = False
            if inside or ended:
                count += 1
                if run is None or run[0] is not owner:
                    run = [owner, message_id, message_id, 0]
                    runs.append(run)
                run[2] = message_id
                run[3] += 1
            if ended:
                break
        if not ended and not (inside and kind == POISON):
            raise JMSError(f"unmatched acknowledge: messages from {ack.first_message_id} to {ack.last_message_id} are "
                           f"not held by consumer {ack.consumer_id} (kind {ack.kind})")
        if kind == STANDARD and ack.transaction_id is None and count != ack.message_count:
            raise JMSError(f"unmatched acknowledge: {counted(ack.message_count, 'message')} up to "
                           f"{ack.last_message_id}, where consumer {ack.consumer_id} holds {count}")
        if kind == REDELIVERED:
            runs = [run]
        return [(owner, MessageAck(ack.consumer_id, ack.destination, ack.kind, last,
                                   None if ack.first_message_id is None else first,
                                   ack.message_count if one else number, ack.transaction_id, ack.poison_cause))
                for owner, first, last, number in runs]

    cdef MessageDispatch give(self, list posted, object destination, Message source, int redeliveries):
        # None if no dispatch reaches the consumer any more.
        cdef MessageDispatch dispatch
        if self.route is None:
            return None
        dispatch = MessageDispatch.__new__(MessageDispatch)
        dispatch.consumer_id = self.consumer_id
        dispatch.destination = destination
        dispatch.source = source
        dispatch.redelivery_counter = dispatch.counter = redeliveries
        posted.append((self.route, dispatch))
        return dispatch
