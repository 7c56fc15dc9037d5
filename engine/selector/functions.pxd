"""functions: the selector functions INLIST, MAKELIST, REGEX, REPLACE and SPLIT (spec activemq 1.13).

Arguments and answers are Python objects that keep their Java type, as ``python_value`` gives and ``read_value`` takes:
bool, int8, int16, int (Integer, or Long beyond 32 bits), int64, float32, float, str, Char, list, dict, None.
"""


cpdef object call(str name, tuple arguments)      # SelectorEvaluationError (text "") where the broker throws
