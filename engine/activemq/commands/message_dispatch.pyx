cimport cython

from pyengine._engine.message.message cimport Message


@cython.freelist(256)
@cython.no_gc
cdef class MessageDispatch:
    """One message for one consumer.

    consumer_id: see ConsumerInfo. destination: where the consumer took it from (of a wildcard consumer: the real one).
    message: the consumer's own copy; None is the answer to a pull that found nothing, or the end of a browse.
    redelivery_counter: the broker's.
    """

    def __init__(self, object consumer_id, object destination, Message message, int redelivery_counter=0):
        self.consumer_id = consumer_id
        self.destination = destination
        self.source = self.own = message
        self.redelivery_counter = redelivery_counter
        if message is not None:
            self.counter = message._redelivery_counter

    cdef Message take(self):
        cdef Message own = self.own
        if own is None and self.source is not None:
            self.own = own = Message.__new__(Message)
            self.source.copy_into(own)
            own._redelivery_counter = self.counter
            own._group_first_for_consumer = self.group_first
            own._broker_out_time = self.out_time
        return own

    cdef int renew(self) except -1:
        if self.source is self.own:
            self.own._redelivery_counter = self.counter
        else:
            self.own = None
        return 0

    @property
    def message(self):
        return self.take()

    def __repr__(self):
        return (f"MessageDispatch(consumer_id={self.consumer_id!r}, destination={self.destination!r}, "
                f"message={self.message!r}, redelivery_counter={self.redelivery_counter})")

    def __reduce__(self):
        return MessageDispatch, (self.consumer_id, self.destination, self.message, self.redelivery_counter)
