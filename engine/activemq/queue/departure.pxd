"""departure: a consumer leaves a queue, and its unacknowledged messages wait again."""

from pyengine._engine.activemq.queue.rounds cimport Rounds


# recounted: gets the messages whose redelivery counter goes up, or, if the answers of selectors are ``known``, all that
# return. closing: is noted in ``rounds`` as soon as the consumer is removed.
cdef int leave_queue(Rounds rounds, object consumer, object last_delivered, bint lost, tuple closing, list recounted,
                     bint known) except -1
