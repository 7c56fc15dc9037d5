"""fan_out: the subscriptions that get a message of a topic, in the order of its dispatch policy.

noLocal is checked before the selector (spec activemq 3.9). What later retroactive subscriptions will get of a message
is kept first.
"""

from cython cimport final
from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.topic.durable_subscription cimport DurableSubscription
from pyengine._engine.activemq.topic.ledger cimport Ledger
from pyengine._engine.activemq.topic.message_references cimport MessageReferences
from pyengine._engine.activemq.topic.selector_answers cimport SelectorAnswers
from pyengine._engine.activemq.topic.store_pager cimport StorePager
from pyengine._engine.activemq.topic.subscription cimport Subscription
from pyengine._engine.activemq.topic.topic cimport Topic


cdef dict SERVING                        # dispatch policy -> Serving (topic.pxd)
cdef object message_id_of(object body)   # of the sent object, or None


@final
cdef class FanOut:
    cdef MessageReferences messages
    cdef Ledger ledger
    cdef SelectorAnswers answers
    cdef StorePager pager                # None: all stored messages are here

    cdef int matches(self, Subscription subscription, int32_t message, object target) except -1    # as an answer
    cdef list serving_order(self, Topic topic)
    # Give the message to every matching subscription; was there one?
    cdef bint give(self, Topic topic, int32_t message, object target, object producer, int64_t number,
                   Subscription suppressed, int64_t now) except -1
    cdef bint retain(self, Topic topic, int32_t message, bint plain, int64_t now) except -1           # False: vetoed
    # Old messages for a retroactive subscription; kept: also the messages that the configured policy keeps.
    cdef int recover(self, Topic topic, Subscription subscription, bint kept, int64_t now) except -1
    cdef int offer(self, Subscription subscription, int32_t message, int64_t now) except -1
    # Messages that are stored for others, for a new durable subscription that is retroactive.
    cdef int recover_stored(self, Topic topic, DurableSubscription subscription) except -1
