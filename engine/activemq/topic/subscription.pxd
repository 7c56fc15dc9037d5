"""subscription: a non-durable subscription to topics (spec activemq 3.3).

Invariants: ``matched`` holds waiting messages, ``dispatched`` unacknowledged ones, both in order;
``in_flight`` counts the latter. While ``limit`` is above 0, matched.count <= limit between calls, unless a strategy
named nothing to evict. No message waits while the subscription has room.
"""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.topic.message_audit cimport Audit
from pyengine._engine.activemq.topic.eviction_strategies cimport Eviction
from pyengine._engine.activemq.topic.message_references cimport Line, MessageReferences
from pyengine._engine.activemq.topic.ledger cimport Ledger


cdef class Subscription:
    cdef MessageReferences messages
    cdef Ledger ledger
    cdef readonly int64_t id
    cdef int32_t predicate               # number of its selector; -1: none
    cdef readonly object selector
    cdef readonly bint no_local
    cdef int32_t connection              # -1 unknown
    cdef readonly object client_id
    cdef readonly object name            # matches the target of messages
    cdef readonly int priority
    cdef readonly bint browser
    cdef readonly bint retroactive
    cdef readonly object network_consumers
    cdef readonly int64_t prefetch
    cdef readonly int64_t extension
    cdef readonly bint use_prefetch_extension
    cdef readonly int64_t limit          # of waiting messages; -1 none
    cdef readonly bint slow
    cdef Eviction eviction
    cdef Audit audit                     # None: off
    cdef list topics                     # numbers, in the order of attachment
    cdef int32_t first_topic             # topic of its first dispatched message; -1
    cdef bint closed
    cdef Line matched
    cdef Line dispatched
    cdef int64_t in_flight
    cdef int64_t enqueued
    cdef int64_t handed_out
    cdef int64_t dequeued
    cdef int64_t discarded
    cdef int64_t consumed                # acknowledgements of any kind
    cdef readonly int64_t last_ack       # ms
    cdef int64_t pull_mark               # ``handed_out`` at the last pull

    cdef bint full(self) noexcept
    cdef void expand(self, int64_t amount) noexcept
    cdef void contract(self, int64_t amount) noexcept
    cdef int64_t waiting(self) noexcept
    cdef int64_t behind_of(self, int32_t topic) noexcept        # references that only the store has
    cdef int add(self, int32_t message, object producer, int64_t number, bint ignored, int64_t now) except -1
    cdef int add_recovered(self, int32_t message, object producer, int64_t number, int64_t now) except -1
    cdef int dispatch_waiting(self, int64_t now) except -1
    cdef int hand_out(self, int32_t reference) except -1      # what was delivered (Ledger.deliver); takes no memory
    cdef int find_slow(self) except -1
    cdef int acknowledge(self, int kind, int64_t first, int64_t last, int64_t count, object transaction,
                         list deferred, int64_t now) except -1
    cdef int commit(self, tuple deferred, int64_t now) except -1
    cdef int roll_back(self, tuple deferred, int64_t now) except -1
    cdef int serve_null(self) except -1
    cdef int end_pull(self) except -1                # the null dispatch, and no credit
    cdef int leave(self, int32_t topic) except -1        # drop the messages of a topic
    cdef int give_up(self) except -1                     # drop all messages
    cdef int evict(self, int64_t now) except -1
    cdef int remove_expired(self, int64_t now) except -1
    cdef int discard(self, int32_t reference, bint expired) except -1
    cdef int64_t range_size(self, int64_t first, int64_t last) noexcept
    cdef int settle(self, int kind, int64_t first, int64_t last, bint transacted) except -1
    cdef int check_lines(self, list holds) except -1
