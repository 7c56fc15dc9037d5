"""consumer_filter: what a consumer asks of each message: nothing, a Selector, or a function or filter of the user's
own."""

# TRUE, FALSE, or RAISED where it cannot be evaluated; any other exception of the user's own passes.
cdef int answer(object question, object body) except -1
# Raises TypeError for what asks nothing, a selector's bare text for one.
cdef int check_question(object question) except -1
