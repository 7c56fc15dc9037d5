"""Questions about a queue (spec activemq 2); see inspection.pxd."""

import numpy as np

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.queue.message_slots cimport IN_DOUBT, IN_FLIGHT, STORED, STRANDED, WAITING
from pyengine._engine.matching.consumer_filter cimport answer
from pyengine._engine.activemq.queue.hold_reasons cimport held_arrays, reason_of, verdict_of
from pyengine._engine.activemq.queue.rounds cimport Rounds
from pyengine._engine.java.value cimport RAISED, TRUE

from pyengine._engine.activemq.queue.hold_reasons import HoldReason, Verdict


cdef class Inspection(Rounds):
    """The questions of a Queue."""

    def wanted(self, object message):
        """Would the selector and noLocal of any consumer, browsers included, let a message pass that is elsewhere?"""
        cdef int32_t index, slot, connection
        cdef int outcome
        for index in range(self.consumers.size):
            slot = self.consumers.order[index]
            selector, connection = self.consumers.questions[self.consumers.at[slot].predicate] or (None, -1)
            if connection >= 0 and self.connections.get(getattr(message, "connection_id", None), -1) == connection:
                continue
            outcome = answer(selector, message)
            if outcome == TRUE:
                return True
            self.totals.selector_errors += outcome == RAISED
        return False

    @property
    def expiring(self):
        """Messages that have an expiration."""
        cdef int32_t message
        cdef int64_t total = 0
        for message in range(self.messages.slots):
            total += (self.messages.at[message].expiration > 0
                      and self.messages.at[message].whereabouts in (WAITING, IN_DOUBT, STORED, IN_FLIGHT, STRANDED))
        return total

    @property
    def starts_at(self):
        """Until when (ms) the running start delay lasts at most, or None."""
        return None if self.start_at < 0 else self.start_at

    @property
    def wakeups(self):
        """Rounds asked for and not made yet."""
        return self.rounds_due

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
        return self.groups.counts[self.slot_of(consumer)]

    def unacknowledged(self, consumer):
        """Handles a consumer holds, in dispatch order."""
        cdef int32_t message = self.consumers.at[self.slot_of(consumer)].held.first
        cdef list result = []
        while message >= 0:
            result.append(self.handle_of(message))
            message = self.messages.at[message].next
        return result

    def waiting(self):
        """Handles of the paged-in messages that wait, in the order in which they are tried."""
        cdef int tier
        cdef int32_t message
        cdef list result = []
        for tier in range(20):
            message = self.pending.window[tier].first
            while message >= 0:
                result.append(self.handle_of(message))
                message = self.messages.at[message].next
        return result

    def object_of_handle(self, handle):
        """The object that was sent as this message."""
        return self.object_of(self.message_of(handle))

    def sequence_of(self, handle):
        """Arrival number of a message in this queue, from 0."""
        return self.messages.at[self.message_of(handle)].sequence

    def handles(self):
        """Handles of every message on the queue, in order of arrival."""
        cdef int32_t message
        cdef list found = []
        for message in range(self.messages.slots):
            if self.messages.at[message].whereabouts in (WAITING, IN_DOUBT, STORED, IN_FLIGHT, STRANDED):
                found.append((self.messages.at[message].sequence, self.handle_of(message)))
        found.sort()
        return [handle for _, handle in found]

    def counters_of(self, consumer):
        """What a consumer's subscription counts: ``enqueued``, ``dispatched``, ``dequeued``, ``held``, ``slow``."""
        cdef int32_t slot = self.slot_of(consumer)
        return {
            "enqueued": self.consumers.at[slot].enqueued,
            "dispatched": self.consumers.at[slot].dispatched,
            "dequeued": self.consumers.at[slot].dequeued,
            "held": self.consumers.at[slot].held.count,
            "slow": self.consumers.at[slot].slow,
        }

    def credit(self, consumer):
        """``(held, elsewhere, extension)``: messages it holds here and in other queues, and its prefetch extension."""
        cdef int32_t slot = self.slot_of(consumer)
        return self.consumers.at[slot].held.count, self.consumers.at[slot].elsewhere, self.consumers.at[slot].extension

    @property
    def statistics(self):
        """Counters since the start, and of now: size, stored (not paged in), waiting, in_flight, stranded."""
        cdef dict result = self.totals
        result["size"] = self.size()
        result["stranded"] = self.stranded
        result["stored"] = self.cursors.stored
        result["waiting"] = self.pending.waiting
        result["in_flight"] = self.in_flight
        return result

    def why(self, handle):
        """Why a message waits: ``(HoldReason, consumer id or None)``: the owner, the elected one, the holder."""
        cdef int reason
        cdef int32_t slot
        reason, slot = reason_of(self, self.message_of(handle))
        return HoldReason(reason), None if slot < 0 else self.consumers.at[slot].id

    def why_each(self, handle):
        """``{consumer id: Verdict}`` in the order in which consumers are asked: the first check each one fails."""
        cdef int32_t message = self.message_of(handle), index, slot
        cdef dict result = {}
        for index in range(self.consumers.size):
            slot = self.consumers.order[index]
            result[self.consumers.at[slot].id] = Verdict(verdict_of(self, message, slot))
        return result

    def held(self):
        """Everything that waits: ``(sequences int64, reasons int8, consumers int64 (-1 none))``, by arrival."""
        return held_arrays(self)

    def hold_counts(self):
        """``{HoldReason: messages}`` of everything that waits."""
        cdef dict result = {}
        reasons, totals = np.unique(self.held()[1], return_counts=True)
        for reason, total in zip(reasons.tolist(), totals.tolist()):
            result[HoldReason(reason)] = total
        return result

    def predicate_of(self, consumer):
        """Bit of a consumer's selector in ``offer_batch``'s ``matches``; 0 for a consumer that asks nothing."""
        return self.consumers.at[self.slot_of(consumer)].predicate
