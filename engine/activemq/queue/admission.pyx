"""A message becomes one of a queue; see admission.pxd."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int32_t, uint64_t

from pyengine._engine.activemq.queue.message_slots cimport Message
from pyengine._engine.activemq.queue.queue_state cimport QueueState

from pyengine.errors import InvalidMessageError


cdef int check_group(object name) except -1:
    if name is not None and not isinstance(name, str):
        raise InvalidMessageError("JMSXGroupID", name, "must be a string", hint="None has no group")
    return 0


cdef int32_t connection_number(QueueState state, object connection) except -1:
    return state.connections.setdefault(connection, len(state.connections))


cdef int32_t match_of(QueueState state, int32_t number, int32_t target) except -1:
    # The class of a message that every selector is asked about once.
    cdef int32_t index
    cdef uint64_t word = 1
    if target < 0 and state.consumers.predicate_count <= 64:
        for index in range(1, state.consumers.predicate_count):
            question = state.consumers.questions[index]
            if question is not None and state.ask(number, (<tuple> question)[0], (<tuple> question)[1]):
                word |= <uint64_t> 1 << index
        return state.consumers.class_for_words(&word, 1)
    bits = 1
    for index in range(1, state.consumers.predicate_count):
        question = state.consumers.questions[index]
        if question is not None and state.ask(number, (<tuple> question)[0], (<tuple> question)[1]):
            bits |= 1 << <object> index
    return state.consumers.class_for(bits, target)


cdef int32_t admit(QueueState state, object message, const Headers* headers, object group, object connection,
                   object target) except -1:
    cdef int32_t handle, producer, receiver, number
    cdef Message* admitted
    state.before_names()
    handle = -1 if group is None else state.groups.intern(group)
    producer = -1 if connection is None else connection_number(state, connection)
    receiver = -1 if target is None else state.consumers.target_number(target)
    state.refuse_while_asked()
    number = state.messages.allot()
    admitted = &state.messages.at[number]
    admitted.group = handle
    admitted.group_sequence = headers.group_sequence
    admitted.priority = headers.priority
    admitted.expiration = headers.expiration
    admitted.transient = not headers.persistent
    admitted.redeliveries = headers.redeliveries
    admitted.connection = producer
    if message is not None:
        Py_INCREF(message)
        admitted.body = <PyObject*> message
    try:
        admitted.match = match_of(state, number, receiver)
    except BaseException:
        state.messages.discard(number)
        raise
    return number


cdef int32_t enter(QueueState state, object message, const Headers* headers, object group, object connection,
                   object target) except -1:
    cdef int32_t number = admit(state, message, headers, group, connection, target)
    state.accept(number)
    return number
