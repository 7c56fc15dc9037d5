"""The topics and subscriptions of a region by number; see registry.pxd."""

from cython cimport final
from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.topic.durable_subscription cimport Cursor, DurableSubscription
from pyengine._engine.activemq.topic.fan_out cimport FanOut
from pyengine._engine.activemq.topic.subscription cimport Subscription
from pyengine._engine.activemq.topic.topic cimport Topic

from pyengine.errors import IllegalStateError


@final
cdef class Registry:
    """Internal to a region of topics; see registry.pxd."""

    def __cinit__(self, FanOut fan_out not None, list topics not None):
        self.messages = fan_out.messages
        self.ledger = fan_out.ledger
        self.answers = fan_out.answers
        self.fan_out = fan_out
        self.topics = topics
        self.left = []
        self.vacant = []
        self.subscriptions = {}
        self.durables = {}

    cdef Topic topic_at(self, object number):
        cdef Py_ssize_t place
        if isinstance(number, int) and 0 <= number < len(self.topics):
            place = number
            if self.topics[place] is not None:
                return self.topics[place]
        raise IllegalStateError(f"topic {number!r} is not here; it was removed or never added")

    cdef int add_topic(self, Topic topic) except -1:
        if not self.vacant and len(self.left) >= max(16, self.messages.slots >> 3):
            self.find_vacant()
        topic.number = self.vacant[len(self.vacant) - 1] if self.vacant else <int32_t> len(self.topics)
        self.ledger.reserve_counts(topic.number + 1)
        if self.vacant:
            self.topics[self.vacant.pop()] = topic
        else:
            self.topics.append(topic)
        self.ledger.reset_counts(topic.number)
        return 0

    cdef int remove_topic(self, Topic topic) except -1:
        self.left.append(topic.number)
        self.topics[topic.number] = None
        return 0

    cdef int find_vacant(self) except -1:
        # A pass over the messages for every so many removals: a bounded share of each.
        cdef int32_t message
        cdef set named = {
            self.messages.at[message].topic
            for message in range(self.messages.slots) if self.messages.at[message].handle >= 0}
        self.vacant = [number for number in self.left if number not in named]
        self.left = [number for number in self.left if number in named]
        return 0

    cdef Subscription subscription_at(self, object number):
        cdef Subscription found = self.subscriptions.get(number)
        if found is None:
            raise IllegalStateError(f"subscription {number!r} is not here; it was closed or never added")
        return found

    cdef int add(self, Subscription subscription) except -1:
        subscription.id = self.next_id
        subscription.messages = self.messages
        subscription.ledger = self.ledger
        subscription.predicate = self.answers.question_for(subscription.selector)
        self.subscriptions[subscription.id] = subscription
        self.next_id += 1
        return 0

    cdef int attach(self, Subscription subscription, Topic topic, int64_t now) except -1:
        cdef DurableSubscription durable
        subscription.topics.append(topic.number)
        topic.order = None
        if isinstance(subscription, DurableSubscription):
            durable = subscription
            durable.cursors.append(Cursor(topic.number))
            if durable.active or durable.keep_active:
                topic.consumers.append(durable)
            else:
                topic.offline.append(durable)
            return durable.dispatch_waiting(now)
        topic.consumers.append(subscription)
        if subscription.retroactive or topic.always_retroactive:
            self.fan_out.recover(topic, subscription, True, now)
        return 0

    cdef int detach(self, Subscription subscription, Topic topic) except -1:
        subscription.leave(topic.number)
        if subscription in topic.consumers:
            topic.consumers.remove(subscription)
        else:
            topic.offline.remove(subscription)
        topic.order = None
        return 0

    cdef int remove(self, Subscription subscription) except -1:
        cdef Topic topic
        for number in list(subscription.topics):
            topic = self.topics[number]
            self.detach(subscription, topic)
        subscription.give_up()
        self.answers.drop_question(subscription.predicate)
        del self.subscriptions[subscription.id]
        return 0

    cdef int activate(self, DurableSubscription subscription, int64_t now) except -1:
        cdef Topic topic
        if subscription.fresh and subscription.retroactive:
            for number in subscription.topics:
                self.fan_out.recover_stored(self.topics[number], subscription)
        subscription.fresh = False
        for number in subscription.topics:
            topic = self.topics[number]
            topic.order = None
            if subscription in topic.offline:
                topic.offline.remove(subscription)
                topic.consumers.append(subscription)
            if subscription.retroactive:
                self.fan_out.recover(topic, subscription, subscription.persistent_empty(topic.number), now)
        return subscription.start(now)

    cdef int deactivate(self, DurableSubscription subscription, int64_t last_delivered, bint keep_active,
                        int64_t now) except -1:
        cdef Topic topic
        subscription.stop(keep_active, last_delivered, now)
        if not subscription.keep_active:
            for number in subscription.topics:
                topic = self.topics[number]
                topic.consumers.remove(subscription)
                topic.offline.append(subscription)
                topic.order = None
        return 0

    def _check(self):
        """Assert the invariants of registry.pxd and of the rooms that it refers to."""
        cdef Subscription subscription
        cdef Topic topic
        cdef int32_t message, before, kept
        cdef int64_t stored, chained = 0
        cdef list holds = [0] * self.messages.slots, askers = [0] * len(self.answers.questions)
        self.messages._check()
        for subscription in self.subscriptions.values():
            subscription.check_lines(holds)
            if subscription.predicate >= 0:
                askers[subscription.predicate] += 1
            for number in subscription.topics:
                topic = self.topics[number]
                assert (subscription in topic.consumers) != (subscription in topic.offline)
        assert askers == self.answers.askers
        for key, number in self.durables.items():
            assert (self.subscriptions[number].client_id, self.subscriptions[number].subscription_name) == key
        assert sorted([*self.left, *self.vacant]) == [at for at, topic in enumerate(self.topics) if topic is None]
        for message in range(self.messages.slots):
            assert self.messages.at[message].handle < 0 or self.messages.at[message].topic not in self.vacant
        for topic in self.topics:
            if topic is None:
                continue
            for subscription in topic.consumers + topic.offline:
                assert topic.number in subscription.topics and self.subscriptions[subscription.id] is subscription
            assert len(set(topic.consumers)) == len(topic.consumers)
            if topic.retained >= 0:
                holds[topic.retained] += 1
            if topic.recovery is not None:
                for kept in topic.recovery.kept():
                    holds[kept] += 1
            before = -1
            message = self.ledger.counts[topic.number].stored_first
            while message >= 0:
                chained += 1
                assert self.messages.at[message].stored > 0 and self.messages.at[message].persistent
                assert self.messages.at[message].stored_before == before
                assert before < 0 or self.messages.at[before].handle < self.messages.at[message].handle
                before = message
                message = self.messages.at[message].stored_after
            assert self.ledger.counts[topic.number].stored_last == before
        stored = 0
        for message in range(self.messages.slots):
            stored += self.messages.at[message].handle >= 0 and self.messages.at[message].stored > 0
        assert stored == sum([self.ledger.counts[topic.number].stored for topic in self.topics if topic is not None])
        assert chained == (stored if self.ledger.chained else 0)
        for topic in self.topics:
            if topic is not None:
                assert self.ledger.counts[topic.number].behind == sum(
                    [(<Subscription> each).behind_of(topic.number) for each in topic.consumers + topic.offline])
        for message in range(self.messages.slots):
            if self.messages.at[message].handle >= 0:
                assert self.messages.at[message].holds == holds[message], (
                    self.messages.at[message].handle, holds[message])
