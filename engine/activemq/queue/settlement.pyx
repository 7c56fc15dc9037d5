"""Acknowledgements of a queue; see settlement.pxd."""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.commands.message_ack cimport (
    DELIVERED, EXPIRED, INDIVIDUAL, POISON, REDELIVERED, STANDARD,
)
from pyengine._engine.activemq.queue.message_slots cimport IN_DOUBT, WAITING
from pyengine._engine.activemq.queue.queue_state cimport QueueState

from pyengine.errors import IllegalStateError, counted


cdef list settle(QueueState state, int32_t slot, int32_t end, int32_t start, int kind, int64_t count,
                 object transaction, bint astray):
    cdef int32_t message, following
    cdef int64_t total = 0
    cdef list bodies = [], parts = [], gone = []
    cdef bint unconsumed = kind == POISON or kind == EXPIRED
    state.refuse_while_asked()
    # A client may acknowledge a message in a transaction and then find it expired, or give it up.
    if state.messages.at[end].consumer != slot or (state.messages.at[end].acknowledged and not unconsumed):
        raise IllegalStateError(f"consumer {state.consumers.at[slot].id!r} does not hold message "
                                f"{state.handle_of(end)!r}, or acknowledged it before")
    if kind == DELIVERED or kind == REDELIVERED:
        if kind == DELIVERED:
            state.consumers.expand(slot, count)
        state.refresh(slot)
        state.rounds_due += 2
        return bodies
    if kind == INDIVIDUAL and transaction is None:
        bodies.append(state.object_of(end))
        state.acknowledge_one(slot, end)
        return bodies
    if kind == INDIVIDUAL:
        start = end
    elif start < 0:
        start = state.consumers.at[slot].held.first
    message = start
    while message >= 0:
        bodies.append(state.object_of(message))
        total += 1
        if transaction is not None:
            if not state.messages.at[message].acknowledged:
                parts.append((state.handle_of(message), state.consumers.at[slot].id))
        elif unconsumed:
            gone.append((state.handle_of(message), "poison" if kind == POISON else "expired",
                         state.object_of(message), state.messages.at[message].redeliveries))
        if message == end:
            break
        message = state.messages.at[message].next
    if message < 0 or state.messages.at[start].consumer != slot:
        raise IllegalStateError(f"message {state.handle_of(start)!r} does not come before {state.handle_of(end)!r} "
                                f"at consumer {state.consumers.at[slot].id!r}")
    if kind == STANDARD and transaction is None and 0 <= count != total:
        raise IllegalStateError(f"{counted(count, 'message')} up to {state.handle_of(end)!r}, where consumer "
                                f"{state.consumers.at[slot].id!r} holds {total}")
    if transaction is not None and kind == POISON:
        raise IllegalStateError("a poison acknowledgement cannot be part of a transaction")
    if parts:
        if state.transactions is None:
            state.transactions = {}
        state.transactions.setdefault(transaction, []).extend(parts)
    if gone:
        if state.removed is None:
            state.removed = []
        state.removed.extend(gone)
    # Nothing from here on wants memory.
    message = start
    while True:
        following = state.messages.at[message].next
        if transaction is None:
            state.totals.expired += kind == EXPIRED
            state.complete(slot, message)
        else:
            state.messages.at[message].acknowledged = 1
        if message == end:
            break
        message = following
    if astray:
        state.refresh(slot)
        return bodies
    if transaction is None:
        state.consumers.contract(slot, 1 if unconsumed else total)
    elif kind == INDIVIDUAL:
        state.consumers.expand(slot, 1)
    state.refresh(slot)
    state.rounds_due += 2
    return bodies


cdef list take_parts(QueueState state, object transaction):
    # The acknowledgements of a transaction that is over.
    return (state.transactions.pop(transaction, None) if state.transactions else None) or []


cdef int narrow(QueueState state, object slot) except -1:
    # The window of a consumer, by one acknowledgement of a transaction that is over; None: it left.
    if slot is not None:
        state.consumers.contract(slot, 1)
        state.refresh(slot)
    return 0


cdef int commit_transaction(QueueState state, object transaction) except -1:
    cdef int32_t message
    cdef list parts
    state.refuse_while_asked()
    parts = take_parts(state, transaction)
    for handle, consumer in parts:
        message = state.find(handle)
        found = state.consumers.slot_of.get(consumer)
        if message >= 0 and state.messages.at[message].whereabouts == IN_DOUBT:
            state.pending.withdraw(message)
            state.totals.dequeues += 1
            state.messages.discard(message)
        elif message >= 0:
            state.complete(found, message)
        narrow(state, found)
        state.rounds_due += 2
    state.after_messages()
    return 0


cdef int roll_back_transaction(QueueState state, object transaction) except -1:
    cdef int32_t message
    cdef list parts
    state.refuse_while_asked()
    parts = take_parts(state, transaction)
    for handle, consumer in parts:
        message = state.find(handle)
        if message >= 0:
            state.messages.at[message].acknowledged = 0
            if state.messages.at[message].whereabouts == IN_DOUBT:
                state.messages.at[message].whereabouts = WAITING
                state.pending.index(message)
        found = state.consumers.slot_of.get(consumer)
        narrow(state, found)
        state.rounds_due += 1
    return 0
