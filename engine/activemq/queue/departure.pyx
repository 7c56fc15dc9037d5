"""A consumer leaves a queue; see departure.pxd."""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.queue.message_slots cimport REMOVED
from pyengine._engine.activemq.queue.queue_state cimport QueueState
from pyengine._engine.activemq.queue.rounds cimport Rounds
from pyengine._engine.matching.consumer_filter cimport BY_REDELIVERY


cdef int leave_queue(Rounds rounds, object consumer, object last_delivered, bint lost, tuple closing, list recounted,
                     bint known) except -1:
    cdef QueueState state = rounds.state
    # All that may want memory comes first.
    cdef int64_t reported = -1 if last_delivered is None else last_delivered
    cdef int32_t slot = state.slot_of(consumer), message, mark = -1, first
    cdef bint counting = False, ahead
    cdef list unacknowledged = [], kept = [], redelivered = []
    cdef object place = slot
    if last_delivered is not None:
        # An acknowledged message is ignored, and its handle may be stale.
        message = state.find(reported)
        if message >= 0 and state.messages.at[message].consumer == slot:
            mark = message
            counting = True
    message = state.consumers.at[slot].held.first
    while message >= 0:
        unacknowledged.append(message)
        if state.messages.at[message].whereabouts != REMOVED:
            kept.append(message)
            if lost or counting:
                redelivered.append(message)
            if message == mark:
                counting = False
        message = state.messages.at[message].next
    if known:
        recounted.extend(reversed(kept))
    elif state.consumers.changing & BY_REDELIVERY:
        recounted.extend(reversed(redelivered))
    state.pending.settle()
    # A list that becomes shorter may move, so that the browser goes before anything has changed.
    if state.consumers.at[slot].browser and place in rounds.browsers:
        rounds.browsers.remove(place)
    lost_groups = state.groups.drop_consumer(slot)
    rounds.closing = closing
    state.consumers.withdraw(slot)
    state.consumers.at[slot].live = 0
    state.consumers.refresh(slot)
    if state.consumers.elect_on_leave(slot):
        state.reopen()
    for key in lost_groups:
        state.pending.regroup(key)
    for number in unacknowledged:
        message = number
        state.messages.unlink(&state.consumers.at[slot].held, message)
        if state.messages.at[message].whereabouts == REMOVED:
            state.messages.discard(message)
        else:
            state.in_flight -= 1
    for number in redelivered:
        rounds.listener.count_redelivery(state, number)
    ahead = False
    if state.strict_order_dispatch and state.consumers.size == 0 and kept and state.pending.redelivered \
            and not state.prioritized_messages:
        first = state.pending.window[0].first
        ahead = state.messages.at[first].sequence > state.messages.at[<int32_t> kept[len(kept) - 1]].sequence
    if ahead:
        kept.reverse()
    for number in kept:
        state.pending.wait(number, True, ahead)
    if state.consumers.at[slot].browser:
        rounds.browsed.pop(place, None)
    state.consumers.leave(slot, consumer)
    state.rounds_due += 1
    return 0
