"""See consumer_filter.pxd."""

from pyengine._engine.matching.selector cimport Selector
from pyengine._engine.java.value cimport FALSE, RAISED, TRUE
from pyengine._engine.message.header cimport (
    BROKER_OUT_TIME, DELIVERY_COUNT, GROUP_FIRST_FOR_CONSUMER, REDELIVERED, header_code
)

from pyengine.errors import SelectorEvaluationError


cdef int answer(object question, object body) except -1:
    if question is None:
        return TRUE
    if isinstance(question, Selector):
        return (<Selector> question).outcome(body)
    try:
        return TRUE if (question(body) if callable(question) else question.matches(body)) else FALSE
    except SelectorEvaluationError:
        return RAISED


cdef int check_question(object question) except -1:
    if question is None or isinstance(question, Selector) or callable(question) or hasattr(question, "matches"):
        return 0
    if isinstance(question, str):
        raise TypeError(f"selector is a bare text; give pyengine.Selector({question!r})")
    raise TypeError(
        f"selector is {question!r}; give None, a pyengine.Selector, or a function from what is sent to bool")


cdef int volatile_headers(object question) except -1:
    cdef int found = 0, code
    if not isinstance(question, Selector) or (<Selector> question).dialect != "activemq":
        return 0
    for name in (<Selector> question).program.names:
        code = header_code(name)
        if code == REDELIVERED or code == DELIVERY_COUNT:
            found |= BY_REDELIVERY
        elif code == GROUP_FIRST_FOR_CONSUMER or code == BROKER_OUT_TIME:
            found |= BY_DISPATCH
    return found


def reads_changing(selector):
    """Whether a Selector reads a header that changes while a message waits, as JMSRedelivered does."""
    return volatile_headers(selector) != 0
