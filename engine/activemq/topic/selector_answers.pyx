"""The answers of selectors to a message; see selector_answers.pxd."""

from cython cimport final
from libc.stdint cimport int8_t, int32_t, int64_t
from libc.stdlib cimport free

from pyengine._engine.java.value cimport RAISED, TRUE
from pyengine._engine.lowlevel.memory cimport resize
from pyengine._engine.matching.consumer_filter cimport answer
from pyengine._engine.activemq.topic.ledger cimport EventKind, Ledger


@final
cdef class SelectorAnswers:
    """Internal to a region of topics; see selector_answers.pxd."""

    def __cinit__(self, Ledger ledger not None):
        self.messages = ledger.messages
        self.ledger = ledger
        self.questions = []
        self.askers = []
        self.question_of = {}

    def __dealloc__(self):
        free(self.verdicts)
        free(self.asked_at)

    cdef int32_t question_for(self, object selector) except -2:
        cdef int32_t number, room
        if selector is None:
            return -1
        try:
            number = self.question_of.get(selector, -1)
        except TypeError:
            number = -1
        if number >= 0:
            self.askers[number] += 1
            return number
        for number in range(len(self.questions)):
            if self.askers[number] == 0:
                break
        else:
            number = len(self.questions)
            if number == self.question_room:
                room = max(16, 2 * number)
                self.verdicts = <int8_t*> resize(self.verdicts, room * sizeof(int8_t))
                self.asked_at = <int64_t*> resize(self.asked_at, room * sizeof(int64_t))
                self.question_room = room
            self.askers.append(0)
            try:
                self.questions.append(None)
            except MemoryError:
                self.askers.pop()
                raise
        try:
            self.question_of[selector] = number
        except TypeError:
            pass                 # a callable without a hash is a question of its own
        self.questions[number] = selector
        self.askers[number] = 1
        self.asked_at[number] = -1
        return number

    cdef int drop_question(self, int32_t question) except -1:
        if question < 0:
            return 0
        self.askers[question] -= 1
        if self.askers[question] == 0:
            self.question_of = {asked: number for asked, number in self.question_of.items() if number != question}
            self.questions[question] = None
        return 0

    cdef int ask(self, int32_t question, int32_t message, int64_t consumer) except -1:
        cdef object selector = self.questions[question]
        cdef object body = <object> self.messages.at[message].body
        cdef int outcome
        self.asked_at[question] = self.asked
        self.ledger.busy = True
        try:
            outcome = answer(selector, body)
        finally:
            self.ledger.busy = False
        if outcome == RAISED:
            self.errors += 1
            self.ledger.report(EventKind.SELECTOR_FAILED, consumer, -1, message, selector)
            outcome = FAILED
        else:
            outcome = outcome == TRUE
        self.verdicts[question] = outcome
        return outcome
