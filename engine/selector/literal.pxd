"""literal: a number in a selector -> its Java type and value; spec activemq 1.6, rocketmq 8.2.

A minus sign is not part of it. Beyond Long only decimals of activemq are legal, as BIG_DECIMAL with a Python int.
"""

from pyengine._engine.selector.lexer cimport Lexer, Token


cdef object number(Lexer lexer, Token* token, int* java_type)   # INT, LONG, BIG_DECIMAL: int; DOUBLE: float
