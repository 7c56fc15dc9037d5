"""selector_answers: the answers of selectors to a message; each distinct selector is asked at most once for it.

Subscriptions with equal selectors share a *question*, a number. Question -1 is always answered with 1.

Invariants: ``verdicts[q]`` is the answer of question q to the message for which ``asked_at[q]`` equals ``asked``;
``askers[q]`` counts the subscriptions that share q, and a question without one is free.
"""

from cython cimport final
from libc.stdint cimport int8_t, int32_t, int64_t

from pyengine._engine.activemq.topic.ledger cimport Ledger
from pyengine._engine.activemq.topic.message_references cimport MessageReferences


cdef enum:
    FAILED = 2                           # an answer: the selector cannot be evaluated


@final
cdef class SelectorAnswers:
    cdef MessageReferences messages
    cdef Ledger ledger
    cdef list questions                  # number -> selector, None if free
    cdef list askers                     # number -> number of its subscriptions
    cdef dict question_of                # hashable selector -> number
    cdef int8_t* verdicts
    cdef int64_t* asked_at
    cdef int32_t question_room
    cdef int64_t asked                   # messages so far
    cdef int64_t errors

    cdef int32_t question_for(self, object selector) except -2      # for one more subscription
    cdef int drop_question(self, int32_t question) except -1        # for one subscription less
    cdef int ask(self, int32_t question, int32_t message, int64_t consumer) except -1

    cdef inline int answer(self, int32_t question, int32_t message, int64_t consumer) except -1:    # 0, 1 or FAILED
        if question < 0:
            return 1
        if self.asked_at[question] == self.asked:
            return self.verdicts[question]
        return self.ask(question, message, consumer)
