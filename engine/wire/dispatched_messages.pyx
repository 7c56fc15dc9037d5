"""See dispatched_messages.pxd."""

from libc.stdint cimport int64_t

from pyengine._engine.activemq.commands.message_ack cimport AckKind, MessageAck


cdef class DispatchedMessages:
    """In the order of dispatch. A RemoveInfo names the last one that reached the user by its number."""

    def __cinit__(self):
        self.by_number = {}

    def __reduce__(self):
        raise TypeError("what a consumer was given is part of its connection and cannot be pickled")

    cpdef add(self, int64_t number, str message_id):
        """One was dispatched."""
        self.by_number[number] = message_id

    def message_id(self, int64_t number):
        """The id of the message with that number, None if it is not among them."""
        return self.by_number.get(number)

    def number(self, str message_id not None):
        """The number of a message, None if it is not among them."""
        return next((number for number, each in reversed(self.by_number.items()) if each == message_id), None)

    cpdef acknowledge(self, MessageAck ack):
        """Forget what an acknowledgement settles: nothing yet, if it belongs to a transaction."""
        cdef int kind = ack.kind
        cdef bint one = kind == AckKind.INDIVIDUAL
        cdef bint found = False
        cdef str last = ack.last_message_id
        cdef list settled
        if kind == AckKind.DELIVERED or kind == AckKind.REDELIVERED or ack.transaction_id is not None:
            return
        settled = []
        for number, message_id in self.by_number.items():
            found = message_id == last
            if found or not one:
                settled.append(number)
            if found:
                break
        if found:
            for number in settled:
                del self.by_number[number]
