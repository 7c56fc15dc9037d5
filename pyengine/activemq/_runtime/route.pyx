"""Who takes what is dispatched to a consumer; see route.pxd."""

from pyengine._engine.activemq.client.dispatch_channel cimport MessageDispatch


cdef class Route:
    """Called with a dispatch; returns what ConnectionSink.dispatch does."""

    cdef object take(self, MessageDispatch dispatch):
        raise NotImplementedError

    def __call__(self, MessageDispatch dispatch not None):
        return self.take(dispatch)

    def __reduce__(self):
        raise TypeError("a route belongs to its connection and cannot be pickled")
