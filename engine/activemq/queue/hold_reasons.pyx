"""Why messages of a queue wait; see hold_reasons.pxd."""

import numpy as np

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.queue.consumer_list cimport ConsumerList
from pyengine._engine.activemq.queue cimport message_slots as places
from pyengine._engine.activemq.queue.message_slots cimport IN_DOUBT, STORED, WAITING, Message
from pyengine._engine.activemq.queue.rounds cimport Rounds


cdef int verdict_of(Rounds rounds, int32_t message, int32_t slot) except -1:
    # Verdict of one consumer about one message, in the order in which the broker checks.
    cdef Message* sent = &rounds.messages.at[message]
    cdef int32_t owner, match = sent.match
    if rounds.consumers.at[slot].browser:
        return Verdict.BROWSES
    if rounds.consumers.full(slot):
        return Verdict.FULL
    if rounds.consumers.paused:
        return Verdict.PAUSES
    if rounds.consumers.classes[match].target >= 0 and rounds.consumers.classes[match].target_slot != slot:
        return Verdict.NOT_TARGET
    if not rounds.consumers.matches(match, slot):
        return Verdict.REFUSES_LOCAL if is_local(rounds, message, slot) else Verdict.REFUSES
    if rounds.consumers.elected not in (-1, slot):
        return Verdict.STANDS_BY
    if sent.group >= 0 and sent.group_sequence != 1:
        owner = rounds.groups.owner[rounds.groups.key[sent.group]]
        if owner not in (-1, slot):
            return Verdict.OWNED_BY_OTHER
    return Verdict.TAKES


cdef (int, int32_t) reason_of(Rounds rounds, int32_t message) noexcept:
    # The reason why no consumer took it, and the consumer that it is about (-1: none in particular).
    cdef Message* sent = &rounds.messages.at[message]
    cdef ConsumerList consumers = rounds.consumers
    cdef int32_t slot, index, owner = -1, elected = consumers.elected, only = -1
    cdef int matching = 0, local = 0, refused = 0, others = 0
    if sent.whereabouts == places.STRANDED:
        return HoldReason.STRANDED, -1
    if sent.whereabouts not in (STORED, WAITING, IN_DOUBT):
        return HoldReason.NOT_HELD, sent.consumer
    if sent.whereabouts == IN_DOUBT:
        return HoldReason.UNCOMMITTED, -1
    for index in range(consumers.size):
        slot = consumers.order[index]
        if not consumers.at[slot].browser:
            others += 1
            if consumers.matches(sent.match, slot):
                matching += 1
                only = slot
            elif is_local(rounds, message, slot):
                local += 1
            else:
                refused += 1
    if not others:
        return HoldReason.NO_CONSUMER, -1
    if rounds.start_at >= 0:
        return HoldReason.START_DELAY, -1
    if consumers.paused:
        return HoldReason.PAUSED, -1
    if sent.whereabouts == STORED and rounds.state.page_size >= 0 and rounds.pending.waiting >= rounds.state.page_size:
        return HoldReason.NOT_PAGED_IN, -1
    if consumers.classes[sent.match].target >= 0 and consumers.classes[sent.match].target_slot < 0:
        return HoldReason.TARGET_ABSENT, -1
    if sent.group >= 0 and sent.group_sequence != 1:
        owner = rounds.groups.owner[rounds.groups.key[sent.group]]
    if elected >= 0:
        if consumers.at[elected].browser:
            return HoldReason.EXCLUSIVE_BROWSER, elected
        if not consumers.matches(sent.match, elected):
            if is_local(rounds, message, elected):
                return HoldReason.EXCLUSIVE_NO_LOCAL, elected
            return HoldReason.EXCLUSIVE_SELECTOR, elected
        if owner >= 0 and owner != elected:
            return HoldReason.EXCLUSIVE_GROUP, owner
        if not consumers.at[elected].open:
            return HoldReason.EXCLUSIVE_NO_CREDIT, elected
        return HoldReason.AWAITING_WAKEUP, elected
    if not matching:
        return HoldReason.SELECTOR if refused else HoldReason.NO_LOCAL, -1
    if owner >= 0:
        if not consumers.matches(sent.match, owner):
            return HoldReason.GROUP_NO_LOCAL if is_local(rounds, message, owner) else HoldReason.GROUP_SELECTOR, owner
        if not consumers.at[owner].open:
            return HoldReason.GROUP_NO_CREDIT, owner
        return HoldReason.AWAITING_WAKEUP, owner
    if not consumers.class_open(sent.match):
        return HoldReason.NO_CREDIT, only if matching == 1 else -1
    return HoldReason.AWAITING_WAKEUP, -1


cdef bint is_local(Rounds rounds, int32_t message, int32_t slot) noexcept:
    cdef int32_t connection = rounds.consumers.predicates[rounds.consumers.at[slot].predicate].connection
    return connection >= 0 and connection == rounds.messages.at[message].connection


cdef tuple held_arrays(Rounds rounds):
    # Sequences, reasons and consumers of everything that waits, by arrival.
    cdef int32_t message, slot
    cdef int reason
    cdef int64_t size = rounds.cursors.stored + rounds.pending.waiting + rounds.state.stranded, index = 0
    sequences, reasons, consumers = np.empty(size, np.int64), np.empty(size, np.int8), np.full(size, -1, np.int64)
    cdef int64_t[::1] into = sequences, about = consumers
    cdef signed char[::1] why = reasons
    for message in range(rounds.messages.slots):
        if rounds.messages.at[message].whereabouts in (STORED, WAITING, IN_DOUBT, places.STRANDED):
            reason, slot = reason_of(rounds, message)
            into[index] = rounds.messages.at[message].sequence
            why[index] = reason
            if slot >= 0:
                about[index] = rounds.consumers.at[slot].id
            index += 1
    order = np.argsort(sequences, kind="stable")
    return sequences[order], reasons[order], consumers[order]
