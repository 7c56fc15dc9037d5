"""Dispatch policies, matching and recovery of topics (spec activemq 3.1, 3.2, 3.7)."""

from collections.abc import Mapping

from cpython.object cimport PyObject
from libc.stdint cimport int8_t, int32_t, int64_t
from libc.stdlib cimport free

from pyengine._engine.lowlevel.memory cimport resize
from pyengine._engine.activemq.topic.message_audit cimport producer_and_number
from pyengine._engine.message.envelope cimport Envelope
from pyengine._engine.message.header cimport header_in
from pyengine._engine.message.message cimport Message
from pyengine._engine.matching.consumer_filter cimport answer
from pyengine._engine.activemq.topic.recovery_policies cimport (
    QueryRecovery, Recovery, retained, wants_retain, without_retain,
)
from pyengine._engine.activemq.topic.ledger cimport EventKind
from pyengine._engine.activemq.topic.subscription cimport Subscription
from pyengine._engine.java.value cimport RAISED, TRUE

from pyengine.errors import IllegalStateError


cdef class Topic:
    """Internal to a region of topics; see fan_out.pxd."""

    def __cinit__(self):
        self.retained = -1
        self.consumers = []
        self.offline = []

    def __reduce__(self):
        raise TypeError("a topic is part of its region and cannot be pickled")


cdef class FanOut(Ledger):
    """Internal to a region of topics; see fan_out.pxd."""

    def __cinit__(self):
        self.topics = []
        self.subscriptions = {}
        self.questions = []
        self.askers = []
        self.question_of = {}

    def __dealloc__(self):
        free(self.verdicts)
        free(self.asked_at)

    cdef Topic topic_at(self, object number):
        cdef Py_ssize_t place
        if isinstance(number, int) and 0 <= number < len(self.topics):
            place = number
            if self.topics[place] is not None:
                return self.topics[place]
        raise IllegalStateError(f"topic {number!r} is not here; it was removed or never added")

    cdef int32_t question_for(self, object selector) except -2:
        cdef int32_t number, room
        if selector is None:
            return -1
        try:
            number = self.question_of.get(selector, -1)
        except TypeError:
            number = -1
        if number >= 0:
            self.askers[number] += 1
            return number
        for number in range(len(self.questions)):
            if self.askers[number] == 0:
                break
        else:
            number = len(self.questions)
            if number == self.question_room:
                room = max(16, 2 * number)
                self.verdicts = <int8_t*> resize(self.verdicts, room * sizeof(int8_t))
                self.asked_at = <int64_t*> resize(self.asked_at, room * sizeof(int64_t))
                self.question_room = room
            self.askers.append(0)
            try:
                self.questions.append(None)
            except MemoryError:
                self.askers.pop()
                raise
        try:
            self.question_of[selector] = number
        except TypeError:
            pass                 # a callable without a hash is a question of its own
        self.questions[number] = selector
        self.askers[number] = 1
        self.asked_at[number] = -1
        return number

    cdef int drop_question(self, int32_t question) except -1:
        if question < 0:
            return 0
        self.askers[question] -= 1
        if self.askers[question] == 0:
            self.question_of = {asked: number for asked, number in self.question_of.items() if number != question}
            self.questions[question] = None
        return 0

    cdef int ask(self, int32_t question, int32_t message, int64_t consumer) except -1:
        cdef object selector = self.questions[question]
        cdef PyObject* held = self.at[message].body
        cdef object body = <object> held
        cdef int outcome
        self.asked_at[question] = self.asked
        self.busy = True
        try:
            outcome = answer(selector, body)
        finally:
            self.busy = False
        if outcome == RAISED:
            self.selector_errors += 1
            self.report(EventKind.SELECTOR_FAILED, consumer, -1, message, selector)
            outcome = 2
        else:
            outcome = outcome == TRUE
        self.verdicts[question] = outcome
        return outcome

    cdef int matches(self, Subscription it, int32_t message, object target) except -1:
        if target is not None and target != it.name:
            return 0
        if it.no_local and it.connection == self.at[message].connection:
            return 0
        if it.predicate < 0:
            return 1
        if self.asked_at[it.predicate] == self.asked:
            return self.verdicts[it.predicate]
        return self.ask(it.predicate, message, it.id)

    cdef list serving_order(self, Topic topic):
        cdef Subscription it, other
        cdef list order
        if topic.order is not None:
            return topic.order
        if topic.serving == PRIORITY:
            topic.order = sorted(topic.consumers, key=by_priority)
        else:
            # Of the subscriptions by which a bridged consumer reaches us over several ways, the most preferred one.
            order = []
            for it in topic.consumers:
                if it.network_consumers:
                    best = True
                    for other in list(order):
                        if not set(it.network_consumers).isdisjoint(other.network_consumers):
                            if other.priority < it.priority:
                                order.remove(other)
                            else:
                                best = False
                    if not best:
                        continue
                order.append(it)
            topic.order = order
        return topic.order

    cdef bint fan_out(self, Topic topic, int32_t message, object target, object producer, int64_t number,
                      Subscription discarding, int64_t now) except -1:
        # Give the message to every matching subscription; whether there was one.
        cdef list order = topic.consumers
        cdef Subscription it, first = None
        cdef Py_ssize_t index
        cdef int outcome
        cdef bint taken = False, browsers = topic.serving in (ROUND_ROBIN, STRICT_ORDER)
        cdef object only = None
        cdef bint addressed = False
        if topic.serving in (PRIORITY, PRIORITY_NETWORK):
            order = self.serving_order(topic)
        elif topic.serving == CLIENT_ID_FILTER:
            only = property_of(<object> self.at[message].body, topic.client_id_property)
            addressed = only is not None
        self.asked += 1
        for index in range(len(order)):
            it = <Subscription> order[index]
            if it.browser and not browsers:
                continue
            outcome = self.matches(it, message, target)
            if outcome == 2 and topic.exact_errors:
                self.report(EventKind.CUT, it.id, -1, message, it.selector)
                return True
            if outcome != 1:
                continue
            if addressed and (only != it.client_id or not str(topic.name).endswith(topic.suffix)):
                continue
            if first is None:
                first = it
            taken = True
            it.add(message, producer, number, it is discarding, now)
        if taken and topic.serving == ROUND_ROBIN:
            topic.consumers.remove(first)
            topic.consumers.append(first)
        if topic.offline and self.at[message].persistent:
            for it in topic.offline:
                if self.matches(it, message, target) == 1:
                    it.add(message, producer, number, False, now)
        return taken

    cdef bint retain(self, Topic topic, int32_t message, bint plain, int64_t now) except -1:
        # What later retroactive consumers will see of it. The property that asks for it is for the topic alone; a
        # plain message has none of the broker's.
        cdef PyObject* held = self.at[message].body
        cdef object body = <object> held, kept
        cdef int32_t old = topic.retained, copy
        if not plain and wants_retain(body):
            kept = retained(body)
            copy = -1 if kept is None else self.add(kept, -1)
            topic.retained = copy
            if copy >= 0:
                self.at[copy].topic = self.at[message].topic
                self.at[copy].expiration = self.at[message].expiration
                self.at[copy].timestamp = self.at[message].timestamp
                self.at[copy].size = self.at[message].size
                self.at[copy].connection = self.at[message].connection
                self.at[copy].priority = self.at[message].priority
                self.at[copy].persistent = self.at[message].persistent
            if old >= 0:
                self.release(old)
            self.replace_body(message, without_retain(body))
        if topic.recovery is None:
            return True
        if isinstance(topic.recovery, QueryRecovery):
            validate = (<QueryRecovery> topic.recovery).validate_update
            if validate is None:
                return True
            self.busy = True
            try:
                return bool(validate(<object> self.at[message].body))
            finally:
                self.busy = False
        topic.recovery.keep(message, now)
        return True

    cdef int recover(self, Topic topic, Subscription it, bint kept, int64_t now) except -1:
        # Old messages for a retroactive subscription; kept: also what the configured policy keeps.
        cdef Recovery policy = topic.recovery
        cdef int32_t message
        if topic.retained >= 0:
            self.offer(it, topic.retained, now)
        if policy is None or not kept:
            return 0
        if isinstance(policy, QueryRecovery):
            self.busy = True
            try:
                found = list((<QueryRecovery> policy).query(topic.name))
            finally:
                self.busy = False
            for body in found:
                message = self.add(body, -1)
                self.at[message].topic = topic.number
                try:
                    self.offer(it, message, now)
                finally:
                    self.release(message)
            return 0
        for message in policy.kept():
            self.offer(it, message, now)
        return 0

    cdef int offer(self, Subscription it, int32_t message, int64_t now) except -1:
        cdef object producer = None, number = 0
        self.asked += 1
        if self.matches(it, message, None) != 1:
            return 0
        if it.audit is not None:
            producer, number = producer_and_number(message_id_of(<object> self.at[message].body))
        return it.add_recovered(message, producer, number, now)


cdef object message_id_of(object body):
    if isinstance(body, Envelope):
        return (<Envelope> body)._message_id
    return header_in(body, "JMSMessageID") if isinstance(body, dict) or isinstance(body, Mapping) else None


def by_priority(subscription):
    """Sort key of the priority policy."""
    return -subscription.priority


cdef object property_of(object body, str name):
    if isinstance(body, Message):
        return (<Message> body).own(name)
    return body.get(name) if isinstance(body, dict) or isinstance(body, Mapping) else None
