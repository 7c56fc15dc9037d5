from pyengine._engine.channel cimport MessageDispatch
from pyengine._engine.message cimport Message


cdef class PrefetchSubscription:
    """One consumer at the broker.

    consumer_id: see ConsumerInfo. route: what its dispatches are posted to, or None over a lost connection. browser:
    it holds nothing. slow: it was aborted or marked so, and has not acknowledged since. last_acknowledged: ms. held:
    ``{message id: (where it comes from, handle there)}`` of what it was handed and has not acknowledged, in order.
    """

    def __cinit__(self, *unused, **also_unused):
        self.consumer_id = ""
        self.held = {}

    def __reduce__(self):
        raise TypeError("a subscription belongs to its broker and cannot be pickled")

    cdef int give(self, list posted, object destination, Message message, int redeliveries) except -1:
        cdef MessageDispatch dispatch
        if self.route is None:
            return 0
        dispatch = MessageDispatch.__new__(MessageDispatch)
        dispatch.consumer_id = self.consumer_id
        dispatch.destination = destination
        dispatch.message = message
        dispatch.redelivery_counter = redeliveries
        posted.append((self.route, dispatch))
        return 0
