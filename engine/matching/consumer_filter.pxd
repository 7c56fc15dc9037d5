"""consumer_filter: a consumer's condition on messages: none, a Selector, or a function or filter of the user."""

cdef enum Volatile:              # headers that change while a message waits, by what changes them
    BY_REDELIVERY = 1            # JMSRedelivered, JMSXDeliveryCount
    BY_DISPATCH = 2              # JMSXGroupFirstForConsumer, JMSActiveMQBrokerOutTime

# TRUE, FALSE, or RAISED if it cannot be evaluated; any other exception of the user's function propagates.
cdef int answer(object question, object body) except -1
# Raises TypeError for an object that is not a condition, for example the text of a selector.
cdef int check_question(object question) except -1
cdef int volatile_headers(object question) except -1     # those that a Selector reads; 0 for any other condition
