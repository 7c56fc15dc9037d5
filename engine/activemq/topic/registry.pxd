"""registry: the topics and subscriptions of a region by number, and their attachment.

Invariants: ``durables`` finds the durable subscription of each key (client id, subscription name); a subscription is in
``consumers`` or in ``offline`` of each topic it is attached to, and of no other. A number without a topic is in
``vacant`` if no message here is of it, else in ``left``.
"""

from cython cimport final
from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.topic.durable_subscription cimport DurableSubscription
from pyengine._engine.activemq.topic.fan_out cimport FanOut
from pyengine._engine.activemq.topic.ledger cimport Ledger
from pyengine._engine.activemq.topic.message_references cimport MessageReferences
from pyengine._engine.activemq.topic.selector_answers cimport SelectorAnswers
from pyengine._engine.activemq.topic.subscription cimport Subscription
from pyengine._engine.activemq.topic.topic cimport Topic


@final
cdef class Registry:
    cdef MessageReferences messages
    cdef Ledger ledger
    cdef SelectorAnswers answers
    cdef FanOut fan_out                  # for the old messages of retroactive subscriptions
    cdef list topics                     # number -> Topic, None if removed
    cdef list left                       # numbers of topics that were removed, of which messages may be here
    cdef list vacant                     # the others, for new topics
    cdef dict subscriptions              # id -> Subscription
    cdef dict durables                   # (client id, name) -> id
    cdef int64_t next_id

    cdef Topic topic_at(self, object number)
    cdef int add_topic(self, Topic topic) except -1                  # gives it its number
    cdef int remove_topic(self, Topic topic) except -1
    cdef int find_vacant(self) except -1
    cdef Subscription subscription_at(self, object number)
    cdef int add(self, Subscription subscription) except -1          # gives it its id
    cdef int attach(self, Subscription subscription, Topic topic, int64_t now) except -1
    cdef int detach(self, Subscription subscription, Topic topic) except -1
    cdef int remove(self, Subscription subscription) except -1       # with its waiting messages
    # A durable subscription gets its consumer, or loses it.
    cdef int activate(self, DurableSubscription subscription, int64_t now) except -1
    cdef int deactivate(self, DurableSubscription subscription, int64_t last_delivered, bint keep_active,
                        int64_t now) except -1
