# cython: boundscheck=True, wraparound=True
from pyengine._engine.java.comparison cimport java_equal
from pyengine._engine.java.regex cimport compile_pattern, finds, replace_all, split
from pyengine._engine.java.value cimport java_text

from pyengine._engine.java.value import Char

from pyengine.errors import SelectorEvaluationError


cdef object failed(str problem):
    return SelectorEvaluationError("", problem)


cdef bint in_list(tuple arguments) except -1:
    cdef object candidate = arguments[1]
    if arguments[0] is None:
        raise failed("INLIST: the list is null")
    if not isinstance(arguments[0], list):
        raise failed("INLIST: the first argument is not a list")
    for element in arguments[0]:
        if element is None:
            raise failed("INLIST: an element of the list is null")
        if java_equal(element, candidate):
            return True
    return False


cdef bint regex(tuple arguments) except -1:
    if arguments[0] is None or arguments[1] is None:
        return False
    return finds(compile_pattern(java_text(arguments[0])), java_text(arguments[1]))


cdef str text_argument(str name, object argument, str role):
    if argument is None:
        raise failed(f"{name}: the {role} is null")
    if not isinstance(argument, str) or isinstance(argument, Char):
        raise failed(f"{name}: the {role} is not a string")
    return str(argument)


cdef str replaced(tuple arguments):
    cdef object replacement = arguments[2]
    cdef str text, pattern
    if arguments[0] is not None:
        text_argument("REPLACE", arguments[0], "text")
    if arguments[1] is not None:
        text_argument("REPLACE", arguments[1], "pattern")
    if replacement is not None:
        replacement = text_argument("REPLACE", replacement, "replacement")
    text = text_argument("REPLACE", arguments[0], "text")
    pattern = text_argument("REPLACE", arguments[1], "pattern")
    return replace_all(compile_pattern(pattern), text, replacement)


cdef list divided(tuple arguments):
    cdef str text = text_argument("SPLIT", arguments[0], "text")
    cdef str pattern = text_argument("SPLIT", arguments[1], "pattern")
    cdef int limit = 0
    if len(arguments) > 2:
        if arguments[2] is None:
            raise failed("SPLIT: the limit is null")
        if type(arguments[2]) is not int or not -0x80000000 <= arguments[2] <= 0x7FFFFFFF:
            raise failed("SPLIT: the limit is not an Integer")
        limit = arguments[2]
    return split(compile_pattern(pattern), text, limit)


cpdef object call(str name, tuple arguments):
    """The function's answer; ``name`` and the number of arguments are those of a valid selector.

    arguments: Python objects that keep their Java type: bool, numpy.int8, numpy.int16, int (Integer, or Long beyond 32
    bits), numpy.int64, numpy.float32, float, str, Char, list, dict, None for null. The answer is one of these too.
    INLIST: whether an element equals the candidate, Java type included. REGEX: Matcher.find; null is False. REPLACE:
    String.replaceAll. SPLIT: String.split. MAKELIST: the arguments.
    Raises SelectorEvaluationError with an empty ``text`` if the broker throws, and for regular expressions that cannot
    be evaluated as in Java (docs/selectors.md).
    """
    if name == "INLIST":
        return in_list(arguments)
    if name == "MAKELIST":
        return list(arguments)
    if name == "REGEX":
        return regex(arguments)
    if name == "REPLACE":
        return replaced(arguments)
    if name == "SPLIT":
        return divided(arguments)
    raise failed(f"there is no function {name}")
