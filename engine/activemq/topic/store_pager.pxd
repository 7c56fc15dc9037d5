"""store_pager: messages that only a store has, read for durable subscriptions page by page.

Without a pager all waiting messages are in the region. With one the caller keeps messages for durable subscriptions in
a store, by the events STORED and RELEASED, and a cursor holds the messages up to its frontier: ``read(changes,
subscription, topic, after, limit)`` carries out ``changes``, the newest of these events, and returns at most ``limit``
``(handle, message)`` that wait for the subscription (None: for any) in the topic, in order, after a position:
``(-priority, handle)`` if messages are prioritized, otherwise ``(0, handle)``.
"""

from cython cimport final
from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.topic.ledger cimport Ledger
from pyengine._engine.activemq.topic.message_intake cimport MessageIntake
from pyengine._engine.activemq.topic.message_references cimport MessageReferences


@final
cdef class StorePager:
    cdef MessageReferences messages
    cdef Ledger ledger
    cdef MessageIntake intake
    cdef list topics                # of the region: number -> Topic
    cdef object read                # the caller's function
    cdef int64_t page               # messages that a cursor holds, at least 1

    cdef list load(self, object subscription, int32_t topic, tuple after, int64_t limit)
    cdef int32_t bring(self, int32_t topic, object body, int64_t handle) except -1    # a slot, with one more hold
