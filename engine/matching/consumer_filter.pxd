"""consumer_filter: what a consumer asks of each message: nothing, a Selector, or a function or filter of the user's
own."""

cdef enum Volatile:              # headers that change while a message waits, by what changes them
    BY_REDELIVERY = 1            # JMSRedelivered, JMSXDeliveryCount
    BY_DISPATCH = 2              # JMSXGroupFirstForConsumer, JMSActiveMQBrokerOutTime

# TRUE, FALSE, or RAISED where it cannot be evaluated; any other exception of the user's own passes.
cdef int answer(object question, object body) except -1
# Raises TypeError for what asks nothing, a selector's bare text for one.
cdef int check_question(object question) except -1
cdef int volatile_headers(object question) except -1     # those that a Selector reads; of anything else none are known
