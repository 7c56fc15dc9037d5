"""topic: one topic: its settings, its subscriptions in order, and what it keeps for retroactive consumers.

Invariants: ``consumers`` are attached to it, once each; a subscription is in ``consumers`` or in ``offline``.
"""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.topic.recovery_policies cimport Recovery


cdef enum Serving:
    SIMPLE = 0
    ROUND_ROBIN = 1
    STRICT_ORDER = 2
    PRIORITY = 3
    PRIORITY_NETWORK = 4
    CLIENT_ID_FILTER = 5


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
