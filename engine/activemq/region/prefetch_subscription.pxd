"""prefetch_subscription: one consumer of the broker (broker.region.PrefetchSubscription): its unacknowledged messages
by id, and the route of its dispatches.

Invariants: ``held`` is in dispatch order; each value has the owner that dispatched it and the handle there. The
parts of a composite get copies of one message, with one id: the first that is held stands under the id, every later one
under (id, owner, handle), and ``copies`` has those keys by id, in order. With the route None
nothing reaches the consumer any more.
"""

from libc.stdint cimport int64_t

from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch
from pyengine._engine.activemq.commands.message_ack cimport MessageAck
from pyengine._engine.message.message cimport Message


# Not garbage-collected: a consumer that leaves drops what it holds, and all do when the broker closes.
cdef class Held:
    cdef object owner
    cdef int64_t handle


cdef class PrefetchSubscription:
    cdef public object consumer_id
    cdef public object route                  # the Route of its dispatches; None: its connection is lost
    cdef public bint browser
    cdef public object queue                  # the RegionQueue, if it consumes only one and is not a browser; or None
    cdef public object number                 # its id there
    cdef public bint slow
    cdef public int64_t last_acknowledged     # ms
    cdef public object credit                 # the SharedCredit, if it has several queues or may get them; or None
    cdef public int64_t given                 # messages that its queues dispatched to it
    cdef readonly dict held
    cdef dict copies

    cdef int keep(self, object message_id, object owner, int64_t handle) except -1
    cdef Held first(self, object message_id, object owner)
    cdef Held drop(self, object message_id, object owner)
    cdef MessageDispatch give(self, list posted, object destination, Message source, int redeliveries)
