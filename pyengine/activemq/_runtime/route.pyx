"""The receiver of what is dispatched to a consumer; see route.pxd."""

cimport cython

from pyengine._engine.activemq.commands.message_ack cimport MessageAck
from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch


@cython.final
@cython.freelist(64)
@cython.no_gc           # it lives from a dispatch to the change that it asks for
cdef class Answer:
    """An acknowledgement that comes of a dispatch at once. failed: called with what that raises (Transport)."""

    def __init__(self, MessageAck ack not None, failed):
        self.ack = ack
        self.failed = failed

    def __reduce__(self):
        raise TypeError("an answer belongs to its connection and cannot be pickled")


cdef Answer answer_of(MessageAck ack, object failed):
    cdef Answer answer = Answer.__new__(Answer)
    answer.ack = ack
    answer.failed = failed
    return answer


cdef class Route:
    """Called with a dispatch; returns what ConnectionSink.dispatch does."""

    cdef object take(self, MessageDispatch dispatch):
        raise NotImplementedError

    def __call__(self, MessageDispatch dispatch not None):
        return self.take(dispatch)

    def __reduce__(self):
        raise TypeError("a route belongs to its connection and cannot be pickled")
