"""admission: a message becomes one of a queue: its names become numbers, and every selector is asked about it once."""

from libc.stdint cimport int32_t, int64_t

from pyengine._engine.activemq.queue.queue_state cimport QueueState


cdef struct Headers:             # of a message that is enqueued, without its names
    int32_t group_sequence
    int32_t redeliveries
    int64_t expiration           # ms, 0 never
    int priority                 # 0..9
    bint persistent


# A slot whose message is in no chain yet. A name may be of a class that runs code of its own: all names are looked up
# before there is a message.
cdef int32_t admit(QueueState state, object message, const Headers* headers, object group, object connection,
                   object target) except -1
# ``admit``, and the message is stored; asks for a wakeup.
cdef int32_t enter(QueueState state, object message, const Headers* headers, object group, object connection,
                   object target) except -1
cdef int32_t connection_number(QueueState state, object connection) except -1
cdef int check_group(object name) except -1
