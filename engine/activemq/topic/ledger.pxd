"""ledger: the deliveries and events of a region of topics, in order, and counters per topic.

Invariants: per topic ``in_flight`` is the number of messages dispatched to its subscriptions and not acknowledged,
``stored`` the number of messages here whose ``stored`` is not 0, and ``behind`` the sum over its cursors. While
``chained``, the chain from ``stored_first`` ascends by handle and holds exactly the messages that ``stored`` counts.
"""

from cython cimport final
from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.topic.message_references cimport MessageReferences


cpdef enum EventKind:
    SLOW = 1                    # the subscription was found slow; once for each topic it is attached to
    DISCARDED = 2               # evicted, or expired if that counts as a discard; detail: number of its discards
    EXPIRED = 3                 # expired: on arrival (consumer None) or while it waited for the consumer
    DROPPED = 4                 # the limit is 0: dropped; the broker does not report it
    STORED = 5                  # a durable subscription begins to refer to a persistent message
    RELEASED = 6                # and ends to
    POISONED = 7                # a durable subscription's client sent a poison acknowledgement: a dead letter
    NO_CONSUMER = 8             # no subscription, or no selector matched
    REFUSED = 9                 # the recovery policy's query vetoed the message: it was not delivered
    SELECTOR_FAILED = 10        # a selector could not be evaluated; detail: the selector
    CUT = 11                    # as in the broker, consumers behind that one did not get the message
    NOT_EVICTED = 12            # an eviction strategy named nothing, or (detail: the exception) something else


cdef class TopicDelivery:
    cdef readonly int64_t consumer
    cdef readonly object message
    cdef readonly object body
    cdef readonly int32_t redeliveries
    cdef readonly int32_t topic


cdef class Event:
    cdef readonly object kind
    cdef readonly object topic
    cdef readonly object consumer
    cdef readonly object message
    cdef readonly object body
    cdef readonly object detail


cdef struct Counts:
    int64_t enqueues
    int64_t dispatched
    int64_t dequeues
    int64_t in_flight
    int64_t expired
    int64_t discarded
    int64_t stored
    int64_t behind               # references that only the store has
    int32_t stored_first         # persistent messages that durable subscriptions refer to, by arrival; slots, -1 none
    int32_t stored_last


@final
cdef class Ledger:
    cdef MessageReferences messages
    cdef Counts* counts             # topic -> counters
    cdef int32_t counts_room
    cdef list out
    cdef object latest              # the handle of the last delivery: a message's deliveries share it
    cdef list given_up              # handle, body, handle.. of the last acknowledgement or commit
    cdef bint expired_as_discarded
    cdef bint chained               # all stored messages are here: no pager reads them
    cdef bint busy                  # user code runs inside

    cdef int reserve_counts(self, int32_t topics) except -1
    cdef void reset_counts(self, int32_t topic) noexcept                # of a new one, whose number an earlier one had
    cdef int deliver(self, int64_t consumer, int32_t message, int32_t redeliveries) except -1
    cdef int deliver_nothing(self, int64_t consumer) except -1
    cdef int report(self, int kind, object consumer, int32_t topic, int32_t message, object detail) except -1
    cdef int store(self, int32_t reference, int64_t consumer, bint reported) except -1
    cdef int unstore(self, int32_t reference, int64_t consumer, bint reported) except -1
    cdef int give_up_message(self, int32_t message) except -1
    cdef list take(self)                                         # deliveries and events since the last call
    cdef list take_changes(self)                                 # of these, STORED and RELEASED; the others stay
