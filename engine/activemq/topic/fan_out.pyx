"""Dispatch policies, matching and recovery of topics (spec activemq 3.1, 3.2, 3.7)."""

from collections.abc import Mapping

from cython cimport final
from libc.stdint cimport int32_t, int64_t

from pyengine._engine.message.envelope cimport Envelope
from pyengine._engine.message.header cimport header_in
from pyengine._engine.message.message cimport Message
from pyengine._engine.activemq.topic.durable_subscription cimport DurableSubscription
from pyengine._engine.activemq.topic.ledger cimport EventKind
from pyengine._engine.activemq.topic.message_audit cimport producer_and_number
from pyengine._engine.activemq.topic.message_references cimport Post
from pyengine._engine.activemq.topic.recovery_policies cimport (
    QueryRecovery, Recovery, retained, wants_retain, without_retain,
)
from pyengine._engine.activemq.topic.selector_answers cimport FAILED, SelectorAnswers
from pyengine._engine.activemq.topic.store_pager cimport StorePager
from pyengine._engine.activemq.topic.subscription cimport Subscription
from pyengine._engine.activemq.topic.topic cimport (
    CLIENT_ID_FILTER, PRIORITY, PRIORITY_NETWORK, ROUND_ROBIN, SIMPLE, STRICT_ORDER, Topic,
)

SERVING = {
    "simple": SIMPLE,
    "round_robin": ROUND_ROBIN,
    "strict_order": STRICT_ORDER,
    "priority": PRIORITY,
    "priority_network": PRIORITY_NETWORK,
    "client_id_filter": CLIENT_ID_FILTER,
}


@final
cdef class FanOut:
    """Internal to a region of topics; see fan_out.pxd."""

    def __cinit__(self, SelectorAnswers answers not None, StorePager pager):
        self.messages = answers.messages
        self.ledger = answers.ledger
        self.answers = answers
        self.pager = pager

    cdef int matches(self, Subscription subscription, int32_t message, object target) except -1:
        if target is not None and target != subscription.name:
            return 0
        if subscription.no_local and subscription.connection == self.messages.at[message].connection:
            return 0
        return self.answers.answer(subscription.predicate, message, subscription.id)

    cdef list serving_order(self, Topic topic):
        cdef Subscription subscription, other
        cdef list order
        if topic.order is not None:
            return topic.order
        if topic.serving == PRIORITY:
            topic.order = sorted(topic.consumers, key=by_priority)
        else:
            # Several subscriptions may be ways to one bridged consumer: the most preferred of them.
            order = []
            for subscription in topic.consumers:
                if subscription.network_consumers:
                    best = True
                    for other in list(order):
                        if not set(subscription.network_consumers).isdisjoint(other.network_consumers):
                            if other.priority < subscription.priority:
                                order.remove(other)
                            else:
                                best = False
                    if not best:
                        continue
                order.append(subscription)
            topic.order = order
        return topic.order

    cdef bint give(self, Topic topic, int32_t message, object target, object producer, int64_t number,
                   Subscription suppressed, int64_t now) except -1:
        cdef list order = topic.consumers
        cdef Subscription subscription, first = None
        cdef Py_ssize_t index
        cdef int outcome
        cdef bint taken = False, browsers = topic.serving in (ROUND_ROBIN, STRICT_ORDER)
        cdef object only = None
        cdef bint addressed = False
        if topic.serving in (PRIORITY, PRIORITY_NETWORK):
            order = self.serving_order(topic)
        elif topic.serving == CLIENT_ID_FILTER:
            only = property_of(<object> self.messages.at[message].body, topic.client_id_property)
            addressed = only is not None
        self.answers.asked += 1
        for index in range(len(order)):
            subscription = <Subscription> order[index]
            if subscription.browser and not browsers:
                continue
            outcome = self.matches(subscription, message, target)
            if outcome == FAILED and topic.exact_errors:
                self.ledger.report(EventKind.CUT, subscription.id, -1, message, subscription.selector)
                return True
            if outcome != 1:
                continue
            if addressed and (only != subscription.client_id or not str(topic.name).endswith(topic.suffix)):
                continue
            if first is None:
                first = subscription
            taken = True
            subscription.add(message, producer, number, subscription is suppressed, now)
        if taken and topic.serving == ROUND_ROBIN:
            topic.consumers.remove(first)
            topic.consumers.append(first)
        if topic.offline and self.messages.at[message].persistent:
            for subscription in topic.offline:
                if self.matches(subscription, message, target) == 1:
                    subscription.add(message, producer, number, False, now)
        return taken

    cdef bint retain(self, Topic topic, int32_t message, bint plain, int64_t now) except -1:
        # The property that asks for it is for the topic alone; a plain message has none of the broker's.
        cdef object body = <object> self.messages.at[message].body, kept
        cdef int32_t old = topic.retained, copy
        cdef Post* sent
        cdef Post* post
        if not plain and wants_retain(body):
            kept = retained(body)
            copy = -1 if kept is None else self.messages.add(kept, -1)
            topic.retained = copy
            if copy >= 0:
                sent, post = &self.messages.at[message], &self.messages.at[copy]
                post.topic = sent.topic
                post.expiration = sent.expiration
                post.timestamp = sent.timestamp
                post.size = sent.size
                post.connection = sent.connection
                post.priority = sent.priority
                post.persistent = sent.persistent
            if old >= 0:
                self.messages.release(old)
            self.messages.replace_body(message, without_retain(body))
        if topic.recovery is None:
            return True
        if isinstance(topic.recovery, QueryRecovery):
            validate = (<QueryRecovery> topic.recovery).validate_update
            if validate is None:
                return True
            self.ledger.busy = True
            try:
                return bool(validate(<object> self.messages.at[message].body))
            finally:
                self.ledger.busy = False
        topic.recovery.keep(message, now)
        return True

    cdef int recover(self, Topic topic, Subscription subscription, bint kept, int64_t now) except -1:
        cdef Recovery policy = topic.recovery
        cdef int32_t message
        if topic.retained >= 0:
            self.offer(subscription, topic.retained, now)
        if policy is None or not kept:
            return 0
        if isinstance(policy, QueryRecovery):
            self.ledger.busy = True
            try:
                found = list((<QueryRecovery> policy).query(topic.name))
            finally:
                self.ledger.busy = False
            for body in found:
                message = self.messages.add(body, -1)
                self.messages.at[message].topic = topic.number
                try:
                    self.offer(subscription, message, now)
                finally:
                    self.messages.release(message)
            return 0
        for message in policy.kept():
            self.offer(subscription, message, now)
        return 0

    cdef int offer(self, Subscription subscription, int32_t message, int64_t now) except -1:
        cdef object producer = None, number = 0
        self.answers.asked += 1
        if self.matches(subscription, message, None) != 1:
            return 0
        if subscription.audit is not None:
            producer, number = producer_and_number(message_id_of(<object> self.messages.at[message].body))
        return subscription.add_recovered(message, producer, number, now)

    cdef int recover_stored(self, Topic topic, DurableSubscription subscription) except -1:
        cdef int32_t message = self.ledger.counts[topic.number].stored_first, after
        cdef int64_t newest = -1
        cdef list found
        if self.pager is not None:
            while True:
                found = self.pager.load(None, topic.number, (0, newest), self.pager.page)
                if not found:
                    return 0
                for handle, body in found:
                    newest = handle
                    message = self.pager.bring(topic.number, body, handle)
                    self.answers.asked += 1
                    if self.matches(subscription, message, None) == 1:
                        subscription.enqueue(message)
                    self.messages.release(message)
        while message >= 0:
            after = self.messages.at[message].stored_after
            self.answers.asked += 1
            if self.matches(subscription, message, None) == 1:
                subscription.enqueue(message)
            message = after
        return 0


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
