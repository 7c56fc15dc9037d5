"""durable_subscription: a subscription that outlives its consumer (DurableTopicSubscription, spec activemq 3.8).

Waiting messages lie in *cursors*, one for non-persistent messages and one for each topic. The list of cursors rotates
by one each time the next cursor is chosen; a chosen cursor is served until it is empty. Redelivery counts belong to the
subscription, not to the message, and live in its references.

With a pager (store_pager.pxd) a cursor holds the references up to its *frontier*, and ``behind`` counts those after it,
which only the store has; a page is read when the next message to serve may be there. A message before the frontier,
because of its priority, is held; if they become too many, the last ones are left to the store again, except those that
have a redelivery count or were acknowledged in an open transaction, and the cursor is *cut*: messages beyond its
frontier may be here.

Invariants: while inactive nothing is dispatched and the extension is 0. A stored reference is to a persistent message.
References behind a frontier that are not here are stored and not released. Without a pager nothing is behind.
"""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.topic.message_references cimport Line
from pyengine._engine.activemq.topic.store_pager cimport StorePager
from pyengine._engine.activemq.topic.subscription cimport Subscription


cdef class Cursor:
    cdef readonly int32_t topic          # -1: the non-persistent one
    cdef Line tiers[10]                  # by priority, highest first; only the first if messages are not prioritized
    cdef int32_t count                   # references that are here
    cdef int64_t behind
    cdef int rank                        # the frontier: -priority if messages are prioritized, else 0; a handle
    cdef int64_t newest
    cdef bint cut


cdef class DurableSubscription(Subscription):
    cdef readonly object subscription_name
    cdef readonly object destination     # the destination it subscribed to, part of its identity
    cdef readonly bint active
    cdef readonly bint keep_active
    cdef readonly bint prioritized
    cdef bint fresh                      # it had no consumer yet
    cdef readonly object offline_since   # ms, None while active
    cdef StorePager pager                # None: all waiting messages are here
    cdef list cursors
    cdef Cursor transient

    cdef Cursor cursor_at(self, int32_t topic)                               # -1: the transient one; None: absent
    cdef Cursor cursor_of(self, int32_t message)
    cdef int push(self, Cursor cursor, int32_t reference, bint ahead) except -1
    cdef int take_from(self, Cursor cursor, int32_t reference) except -1
    cdef int tier_of(self, int32_t message) noexcept
    cdef int rank_of(self, int32_t message) noexcept
    cdef bint is_behind_frontier(self, Cursor cursor, int32_t message) noexcept          # the frontier of ``cursor``
    cdef int32_t next_of(self, Cursor cursor) except -2
    cdef Cursor next_cursor(self, Cursor current)
    cdef int page_in(self, Cursor cursor) except -1                          # at least one more
    cdef int cut_back(self, Cursor cursor) except -1
    cdef int enqueue(self, int32_t message) except -1
    cdef int leave_behind(self, Cursor cursor, int64_t count) except -1
    cdef int start(self, int64_t now) except -1
    cdef int stop(self, bint keep, int64_t last_delivered, int64_t now) except -1
    cdef bint persistent_empty(self, int32_t topic) except -1
    cdef list held(self)
    cdef int finish(self, int32_t reference) except -1
    cdef int empty(self, Cursor cursor) except -1
    cdef int expire(self, int32_t message) except -1
    cdef int expire_stored(self, int32_t topic, int64_t now, int64_t upto) except -1
    cdef int32_t dispatched_at(self, int64_t handle) except -2
    cdef int settle_one(self, int kind, int32_t reference, bint transacted, list deferred) except -1
    cdef bint holds(self, int32_t reference, int64_t handle) except -1
