"""The state of a queue: settings, consumers, messages; see queue_state.pxd."""

from collections.abc import Mapping

from cython cimport final
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t
from libc.stdlib cimport free

from pyengine._engine.lowlevel.memory cimport allocate_zeros
from pyengine._engine.activemq.queue.consumer_list cimport kept_numbers
from pyengine._engine.activemq.queue.group_map cimport CACHED
from pyengine._engine.activemq.queue.message_cursors cimport (
    ONE_CURSOR, PERSISTENT_FIRST, UNTIL_DRAINED, MessageCursors,
)
from pyengine._engine.activemq.queue.message_slots cimport (
    IN_DOUBT, IN_FLIGHT, NOWHERE, REMOVED, STORED, STRANDED, WAITING, Message, MessageSlots,
)
from pyengine._engine.activemq.queue.pending_messages cimport PendingMessages
from pyengine._engine.activemq.queue.ready_index cimport ReadyIndex
from pyengine._engine.matching.consumer_filter cimport answer, check_question
from pyengine._engine.java.value cimport RAISED, TRUE
from pyengine._engine.message.message cimport Message as JmsMessage

from pyengine.errors import IllegalStateError, InvalidTopologyError

cdef int64_t FEW = 256               # number of names below which unused ones are not looked for
cdef int FAILURES_KEPT = 10_000      # bounds the memory if the caller never asks


def whole_number(str field, object value, object low, object high):
    """A number of a setting, or InvalidTopologyError naming it."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidTopologyError(f"must be a whole number from {low} to {high}", key=field, value=value)
    return value


CURSORS = {"store": UNTIL_DRAINED, "memory": PERSISTENT_FIRST, "single": ONE_CURSOR}


cdef object counter_sent(object body):
    """The redelivery counter that a mapping's headers say."""
    count = body.get("JMSXDeliveryCount")
    counter = count - 1 if type(count) is int and count > 0 else 0
    return max(counter, 1 if body.get("JMSRedelivered") is True else 0)


@final
cdef class QueueState:
    """Internal to a queue; see queue_state.pxd."""

    cdef int begin(self) except -1:
        if self.selector_errors not in ("no_match", "exact"):
            raise InvalidTopologyError(
                "must be 'no_match' or 'exact'", key="selector_errors", value=self.selector_errors)
        if self.cursor not in CURSORS:
            raise InvalidTopologyError(f"must be one of {', '.join(CURSORS)}", key="cursor", value=self.cursor)
        self.page_size = -1
        if self.max_page_size is not None:
            self.page_size = whole_number("maxPageSize", self.max_page_size, 1, 2**31 - 1)
        if self.max_browse_page_size is not None:
            whole_number("maxBrowsePageSize", self.max_browse_page_size, 0, 2**31 - 1)
        self.groups.watched = self.groups.form == CACHED and self.page_size >= 0
        self.groups.now.position = INT64_MAX
        self.messages = MessageSlots()
        self.cursors = MessageCursors(self.messages, self.prioritized_messages, CURSORS[self.cursor])
        self.ready = ReadyIndex(self.messages, self.consumers)
        self.pending = PendingMessages(
            self.messages, self.ready, self.consumers, self.groups, self.prioritized_messages)
        self.connections = {}
        self.connections_due = self.targets_due = self.classes_due = 2 * FEW
        return 0

    # Names

    cdef int forget_names(self) except -1:
        cdef int32_t message
        cdef uint8_t* held = <uint8_t*> allocate_zeros(self.consumers.class_count + 1, 1)
        for message in range(self.messages.slots):
            if self.messages.at[message].whereabouts != NOWHERE:
                held[self.messages.at[message].match] = 1
        try:
            self.consumers.free_classes(held)
        finally:
            free(held)
        self.consumers.forget_targets()
        self.forget_connections()
        self.classes_due = 2 * max(FEW, self.consumers.class_count - <int64_t> len(self.consumers.vacant_classes or ()))
        self.targets_due = 2 * max(FEW, <int64_t> len(self.consumers.targets))
        self.connections_due = 2 * max(FEW, <int64_t> len(self.connections))
        return self.forget_groups()

    cdef int forget_groups(self) except -1:
        cdef int32_t message
        cdef int32_t* moved
        cdef uint8_t* held = <uint8_t*> allocate_zeros(self.groups.size + 1, 1)
        for message in range(self.messages.slots):
            if self.messages.at[message].whereabouts != NOWHERE and self.messages.at[message].group >= 0:
                held[self.messages.at[message].group] = 1
        try:
            moved = self.groups.compact(held)
        finally:
            free(held)
        if moved != NULL:
            self.pending.renumber_groups(moved)
            free(moved)
        return self.groups.trim()

    cdef int forget_connections(self) except -1:
        cdef int32_t index
        cdef set held = {self.messages.at[index].connection for index in range(self.messages.slots)
                         if self.messages.at[index].whereabouts != NOWHERE}
        held.update([self.consumers.at[index].connection for index in range(self.consumers.slots)
                     if self.consumers.at[index].live])
        cdef dict connections = {}
        cdef int32_t* moved = kept_numbers(self.connections, held, connections)
        try:
            questions = [None if asked is None else (asked[0], asked[1] if asked[1] < 0 else moved[<int32_t> asked[1]])
                         for asked in self.consumers.questions]
        except BaseException:
            free(moved)
            raise
        self.connections = connections
        self.consumers.questions = questions
        for index in range(self.consumers.predicate_count):
            if self.consumers.predicates[index].connection >= 0:
                self.consumers.predicates[index].connection = moved[self.consumers.predicates[index].connection]
        for index in range(self.consumers.slots):
            if self.consumers.at[index].connection >= 0:
                self.consumers.at[index].connection = moved[self.consumers.at[index].connection]
        for index in range(self.messages.slots):
            if self.messages.at[index].whereabouts != NOWHERE and self.messages.at[index].connection >= 0:
                self.messages.at[index].connection = moved[self.messages.at[index].connection]
        free(moved)
        return 0

    cdef int shed(self) except -1:
        cdef int32_t slot
        for slot in range(self.consumers.slots):
            if self.consumers.at[slot].held.count:      # removed, and not acknowledged yet
                return 0
        self.forget_names()
        self.pending.shed()
        self.ready.shed()
        return self.messages.shed()

    # Consumers

    cdef int32_t join(self, object selector, int32_t connection, bint no_local, set matching) except -1:
        # A new predicate is evaluated on every message here, once; ``matching``: or its answer is known.
        cdef int32_t predicate, message
        cdef dict moved = {}
        cdef object asked = (selector, connection if no_local else -1)
        cdef bint known = any(
            [self.consumers.questions[index] == asked and self.consumers.predicates[<int32_t> index].users > 0
             for index in range(self.consumers.predicate_count)])
        cdef list found = []
        self.refuse_while_asked()
        if not known:
            check_question(selector)
            for message in range(self.messages.slots):
                if self.messages.at[message].whereabouts != NOWHERE:
                    if matching is not None:
                        if self.messages.at[message].sequence in matching:
                            found.append(message)
                        continue
                    if selector is not None and self.messages.at[message].body == NULL:
                        raise IllegalStateError(
                            "a new selector cannot be asked of messages that wait without their objects; "
                            "add every consumer before offer_batch, or say with matching= which it takes")
                    if self.ask(message, selector, connection if no_local else -1):
                        found.append(message)
        # All that may want memory comes before the consumer is there.
        cdef list matches = []
        cdef int32_t slot = -1
        predicate = self.consumers.predicate_for(selector, connection if no_local else -1)
        try:
            for number in found:
                message = number
                if self.messages.at[message].match not in moved:
                    moved[self.messages.at[message].match] = self.consumers.class_for(
                        self.consumers.bits_of(self.messages.at[message].match) | (1 << <object> predicate),
                        self.consumers.classes[self.messages.at[message].match].target)
                matches.append(moved[self.messages.at[message].match])
            slot = self.consumers.settle_in(predicate, connection)
        finally:
            if slot < 0 and predicate and self.consumers.predicates[predicate].users == 0:
                self.consumers.free_predicate(predicate)
        for index in range(len(found)):
            self.reclass(found[index], matches[index])
        return slot

    cdef int reclass(self, int32_t message, int32_t match) except -1:
        cdef Message* at = self.messages.at
        if at[message].bucket >= 0:
            self.pending.unindex(message)
            at[message].match = match
            self.pending.index(message)
        else:
            at[message].match = match
        return 0

    cdef int rematch(self, int32_t message, int changed) except -1:
        # Only the selectors that read such a header are asked again; a message without its object cannot be.
        cdef int32_t predicate, match = self.messages.at[message].match
        cdef object bits, found
        if not self.consumers.changing & changed or self.messages.at[message].body == NULL:
            return 0
        bits = found = self.consumers.bits_of(match)
        for predicate in range(1, self.consumers.predicate_count):
            if self.consumers.predicates[predicate].changing & changed:
                selector, connection = self.consumers.questions[predicate]
                if self.ask(message, selector, connection):
                    found |= 1 << <object> predicate
                else:
                    found &= ~(1 << <object> predicate)
        if found != bits:
            self.reclass(message, self.consumers.class_for(found, self.consumers.classes[match].target))
        return 0

    cdef dict known_answers(self, object matching):
        cdef dict known = {}
        for predicate, sequences in matching.items():
            whole_number("matching", predicate, 1, self.consumers.predicate_count - 1)
            known[predicate] = set(sequences)
        return known

    cdef int match_known(self, int32_t message, dict known) except -1:
        # The answers of some selectors; a selector that left with its consumer has none.
        cdef int32_t match = self.messages.at[message].match
        cdef object bits = self.consumers.bits_of(match), found = bits
        for predicate, sequences in known.items():
            if self.consumers.questions[predicate] is not None:
                if self.messages.at[message].sequence in sequences:
                    found |= 1 << predicate
                else:
                    found &= ~(1 << predicate)
        if found != bits:
            self.reclass(message, self.consumers.class_for(found, self.consumers.classes[match].target))
        return 0

    cdef int32_t free_name(self, object name) except -1:
        cdef int32_t number = self.consumers.target_number(name), slot
        for slot in range(self.consumers.slots):
            if self.consumers.at[slot].live and self.consumers.at[slot].target == number:
                raise InvalidTopologyError("another consumer of this queue has that name", key="name", value=name)
        return number

    cdef int name_consumer(self, int32_t slot, int32_t number) except -1:
        cdef int32_t match
        self.consumers.at[slot].target = number
        for match in range(self.consumers.class_count):
            if self.consumers.classes[match].target == number:
                self.consumers.classes[match].target_slot = slot
        return 0

    cdef int reopen(self) except -1:
        cdef int32_t slot
        self.consumers.refresh_all()
        for slot in range(self.consumers.slots):
            if self.consumers.at[slot].open:
                self.ready.wake(slot)
        return 0

    cdef int refresh(self, int32_t slot) except -1:
        if self.consumers.refresh(slot) > 0:
            self.ready.wake(slot)
        return 0

    cdef int32_t slot_of(self, object consumer) except -1:
        found = self.consumers.slot_of.get(consumer)
        if found is None:
            raise IllegalStateError(f"consumer {consumer!r} is not on this queue; it was closed or never added")
        return found

    # Selectors

    cdef bint ask(self, int32_t message, object selector, int32_t connection) except -1:
        cdef Message* sent = &self.messages.at[message]
        cdef int outcome
        if connection >= 0 and sent.connection == connection:
            return False
        if selector is None:
            return True
        outcome = self.put_question(selector, self.current_object(message))
        if outcome == RAISED:
            self.note_failure(message, selector)
        return outcome == TRUE

    cdef int put_question(self, object selector, object body) except -1:
        self.busy = True
        try:
            return answer(selector, body)
        finally:
            self.busy = False

    cdef int refuse_call(self) except -1:
        raise IllegalStateError("a selector cannot call the queue that is asking it")

    cdef int note_failure(self, int32_t message, object selector) except -1:
        self.totals.selector_errors += 1
        self.messages.at[message].errors = 1
        self.flagged += self.selector_errors == "exact"
        if self.failed is None:
            self.failed = []
        if len(self.failed) < FAILURES_KEPT:
            self.failed.append((self.object_of(message), selector))
        return 0

    cdef bint raises(self, int32_t message) except -1:
        # Whether a consumer's selector raises before one takes it, asked in the broker's order: a full consumer is not
        # asked, noLocal comes before the selector, and the exclusive and group checks after it.
        cdef Message* sent = &self.messages.at[message]
        cdef int32_t index, slot, owner = -1
        cdef int outcome
        if not sent.errors or self.consumers.paused or sent.body == NULL:
            return False
        if sent.group >= 0 and sent.group_sequence != 1:
            owner = self.groups.owner[self.groups.key[sent.group]]
        for index in range(self.consumers.size):
            slot = self.consumers.order[index]
            if self.consumers.at[slot].browser or self.consumers.full(slot):
                continue
            if self.consumers.matches(sent.match, slot):
                if self.consumers.elected in (-1, slot) and owner in (-1, slot):
                    return False
                continue
            selector, connection = self.consumers.questions[self.consumers.at[slot].predicate]
            if selector is None or (connection >= 0 and connection == sent.connection):
                continue
            self.rounds_due += 1          # if it is interrupted, the round is still due
            outcome = self.put_question(selector, self.current_object(message))
            self.rounds_due -= 1
            if outcome == RAISED:
                return True
        return False

    cdef list flagged_messages(self):
        cdef int tier
        cdef int32_t message
        cdef list found = []
        for tier in range(20):
            message = self.pending.window[tier].first
            while message >= 0:
                if self.messages.at[message].errors:
                    found.append(message)
                message = self.messages.at[message].next
        found.reverse()
        return found

    # Messages

    cdef int32_t find(self, int64_t handle) except -2:
        cdef int64_t message = handle & <int64_t> 0xFFFFFFFF        # the bare literal would be a Python integer
        if (handle < 0 or message >= self.messages.slots or self.messages.at[message].whereabouts == NOWHERE
                or self.messages.at[message].generation != handle >> 32):
            return -1
        return <int32_t> message

    cdef int32_t message_of(self, int64_t handle) except -1:
        cdef int32_t message = self.find(handle)
        if message < 0:
            raise IllegalStateError(f"message {handle} is not here; it was acknowledged, removed or never sent")
        return message

    cdef object handle_of(self, int32_t message):
        return self.messages.handle_of(message)

    cdef object object_of(self, int32_t message):
        return <object> self.messages.at[message].body if self.messages.at[message].body != NULL else None

    cdef object current_object(self, int32_t message):
        # The object itself if its values are current; the sent object belongs to the caller and is not changed.
        cdef Message* sent = &self.messages.at[message]
        cdef object body = <object> sent.body if sent.body != NULL else None
        cdef JmsMessage copy
        if not sent.redeliveries and not sent.group_first:
            return body
        if isinstance(body, JmsMessage):
            copy = body
            if copy._redelivery_counter == sent.redeliveries and copy._group_first_for_consumer >= sent.group_first:
                return body
            copy = body.copy()
            copy._redelivery_counter = sent.redeliveries
            copy._group_first_for_consumer |= sent.group_first
            return copy
        if isinstance(body, dict) or isinstance(body, Mapping):
            changed = {}
            if sent.redeliveries:
                counter = sent.redeliveries + counter_sent(body)
                changed = {"JMSRedelivered": counter > 0, "JMSXDeliveryCount": counter + 1}
            if sent.group_first:
                changed["JMSXGroupFirstForConsumer"] = True
            return {**body, **changed}
        return body

    cdef int accept(self, int32_t message) except -1:
        self.arrive(message)
        self.cursors.store(message)
        return 0

    cdef int complete(self, int32_t slot, int32_t message) except -1:
        self.messages.unlink(&self.consumers.at[slot].held, message)
        if self.messages.at[message].whereabouts == IN_FLIGHT:
            self.in_flight -= 1
            self.count_gone(slot)
        else:
            self.consumers.at[slot].dequeued += 1      # removed messages are counted already
        self.messages.discard(message)
        return 0

    cdef int acknowledge_one(self, int32_t slot, int32_t message) except -1:
        self.complete(slot, message)
        self.consumers.contract(slot, 1)
        self.refresh(slot)
        self.rounds_due += 2
        return 0

    cdef int take_off(self, int32_t message) except -1:
        cdef int where = self.messages.at[message].whereabouts
        self.refuse_while_asked()
        if where in (WAITING, IN_DOUBT):
            self.pending.withdraw(message)
        elif where == STORED:
            self.cursors.unstore(message)
        elif where == STRANDED:
            self.stranded -= 1
        elif where == IN_FLIGHT:
            self.messages.at[message].whereabouts = REMOVED
            self.in_flight -= 1
            self.totals.dequeues += 1
            return 0
        else:
            return 0
        self.totals.dequeues += 1
        return self.messages.discard(message)

    cdef int note_expired(self, int32_t message) except -1:
        if self.removed is None:
            self.removed = []
        self.removed.append((self.handle_of(message), "expired", self.object_of(message),
                             self.messages.at[message].redeliveries))
        return 0

    cdef int drop_expired(self, int32_t message) except -1:
        self.totals.expired += 1
        self.totals.dequeues += 1
        self.messages.discard(message)
        return 0

    cdef int64_t size(self) noexcept:
        return self.cursors.stored + self.pending.waiting + self.in_flight + self.stranded

    def _check(self):
        """Assert the invariants of queue_state.pxd and of its parts."""
        cdef int32_t message, slot, flying = 0
        self.groups._check()
        self.consumers._check()
        self.cursors._check()
        self.ready._check()
        self.pending._check()
        for slot in range(self.consumers.slots):
            message = self.consumers.at[slot].held.first
            held = 0
            while message >= 0:
                assert self.messages.at[message].consumer == slot
                assert self.messages.at[message].whereabouts in (IN_FLIGHT, REMOVED)
                flying += self.messages.at[message].whereabouts == IN_FLIGHT
                held += 1
                message = self.messages.at[message].next
            assert held == self.consumers.at[slot].held.count
        assert flying == self.in_flight
        assert self.totals.enqueues == self.totals.dequeues + self.size()
