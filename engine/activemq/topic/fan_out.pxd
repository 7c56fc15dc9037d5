"""fan_out: the topics of a region, and the subscriptions that get a message of a topic, in order.

Each distinct selector is evaluated at most once for a message. noLocal is checked before the selector (spec activemq
3.9).

Invariants: ``consumers`` of a topic are attached to it, once each; ``verdicts[q]`` is the answer of question q to the
message for which ``asked_at[q]`` equals ``asked``.
"""

from libc.stdint cimport int8_t, int32_t, int64_t

from pyengine._engine.activemq.topic.recovery_policies cimport Recovery
from pyengine._engine.activemq.topic.ledger cimport Ledger
from pyengine._engine.activemq.topic.subscription cimport Subscription


cdef enum Serving:
    SIMPLE = 0
    ROUND_ROBIN = 1
    STRICT_ORDER = 2
    PRIORITY = 3
    PRIORITY_NETWORK = 4
    CLIENT_ID_FILTER = 5


cdef object message_id_of(object body)       # of the sent object, or None


cdef class Topic:
    cdef readonly int32_t number
    cdef readonly object name
    cdef Serving serving
    cdef readonly bint always_retroactive
    cdef readonly bint exact_errors          # a selector that cannot be evaluated ends the fan-out, as in the broker
    cdef int64_t minimum_message_size     # bytes that a message counts without its body
    cdef str client_id_property
    cdef str suffix
    cdef Recovery recovery               # None: only the retained message
    cdef int32_t retained                # message, -1 none
    cdef list consumers                  # subscriptions, in order
    cdef list order                      # consumers in the order of PRIORITY and PRIORITY_NETWORK; None: not computed
    cdef list offline                    # durable subscriptions that are not served while their consumer is away


cdef class FanOut(Ledger):
    cdef list topics                     # number -> Topic, None if removed
    cdef dict subscriptions              # id -> Subscription
    cdef list questions                  # number -> selector, None if free
    cdef list askers                     # number -> number of its subscriptions
    cdef dict question_of                # hashable selector -> number
    cdef int8_t* verdicts
    cdef int64_t* asked_at
    cdef int32_t question_room
    cdef int64_t asked
    cdef readonly int64_t selector_errors

    cdef Topic topic_at(self, object number)
    cdef int32_t question_for(self, object selector) except -2
    cdef int drop_question(self, int32_t question) except -1
    cdef int ask(self, int32_t question, int32_t message, int64_t consumer) except -1     # 2: it cannot be evaluated
    cdef int matches(self, Subscription it, int32_t message, object target) except -1
    cdef list serving_order(self, Topic topic)
    cdef bint fan_out(self, Topic topic, int32_t message, object target, object producer, int64_t number,
                      Subscription discarding, int64_t now) except -1
    cdef bint retain(self, Topic topic, int32_t message, bint plain, int64_t now) except -1           # False: vetoed
    cdef int recover(self, Topic topic, Subscription it, bint kept, int64_t now) except -1
    cdef int offer(self, Subscription it, int32_t message, int64_t now) except -1
