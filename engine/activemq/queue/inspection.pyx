"""Questions about a queue (spec activemq 2); see inspection.pxd."""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.java.value cimport RAISED, TRUE
from pyengine._engine.matching.consumer_filter cimport answer
from pyengine._engine.activemq.queue.consumer_list cimport Consumer
from pyengine._engine.activemq.queue.queue_state cimport QueueState


cdef bint is_wanted(QueueState state, object message) except -1:
    cdef int32_t index, slot, connection
    cdef int outcome
    for index in range(state.consumers.size):
        slot = state.consumers.order[index]
        selector, connection = state.consumers.questions[state.consumers.at[slot].predicate] or (None, -1)
        if connection >= 0 and state.connections.get(getattr(message, "connection_id", None), -1) == connection:
            continue
        outcome = answer(selector, message)
        if outcome == TRUE:
            return True
        state.totals.selector_errors += outcome == RAISED
    return False


cdef int64_t expiring_messages(QueueState state) noexcept:
    cdef int32_t message
    cdef int64_t total = 0
    for message in range(state.messages.slots):
        total += state.messages.at[message].expiration > 0 and state.messages.on_queue(message)
    return total


cdef list held_by(QueueState state, int32_t slot):
    return state.messages.handles(&state.consumers.at[slot].held)


cdef list waiting_handles(QueueState state):
    cdef int tier
    cdef list result = []
    for tier in range(20):
        result += state.messages.handles(&state.pending.window[tier])
    return result


cdef list all_handles(QueueState state):
    cdef int32_t message
    cdef list found = []
    for message in range(state.messages.slots):
        if state.messages.on_queue(message):
            found.append((state.messages.at[message].sequence, state.handle_of(message)))
    found.sort()
    return [handle for _, handle in found]


cdef dict counters_at(QueueState state, int32_t slot):
    cdef const Consumer* consumer = &state.consumers.at[slot]
    return {
        "enqueued": consumer.enqueued,
        "dispatched": consumer.dispatched,
        "dequeued": consumer.dequeued,
        "held": consumer.held.count,
        "slow": consumer.slow,
    }


cdef dict statistics_of(QueueState state):
    cdef dict result = state.totals
    result["size"] = state.size()
    result["stranded"] = state.stranded
    result["stored"] = state.cursors.stored
    result["waiting"] = state.pending.waiting
    result["in_flight"] = state.in_flight
    return result
