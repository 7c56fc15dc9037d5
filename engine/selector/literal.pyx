"""Number literals: see literal.pxd."""

from libc.stdint cimport uint64_t

from pyengine._engine.selector.lexer cimport DECIMAL, FLOATING, HEXADECIMAL, Lexer, Token
from pyengine._engine.java.value cimport BIG_DECIMAL, DOUBLE, INT, LONG

from pyengine.errors import InvalidSelectorError

cdef enum:
    DIGIT_LIMIT = 4300      # CPython's default limit for converting digits to int


cdef object floating(Lexer lexer, Token* token):
    cdef double value = float(lexer.text[token.start:token.end])
    if not lexer.activemq and not (0.0 < value <= 1.7976931348623157e308):
        raise InvalidSelectorError(
            lexer.text, token.start, "RocketMQ refuses a floating point number that is zero or out of range",
            expected="a number from 4.9E-324 to 1.7976931348623157E308",
            hint="write 0 without a point" if value == 0.0 else "",
        )
    return value


cdef object number(Lexer lexer, Token* token, int* java_type):
    cdef int kind = token.kind
    cdef uint64_t radix = 10 if kind == DECIMAL else 16 if kind == HEXADECIMAL else 8
    cdef int index = token.start + (2 if kind == HEXADECIMAL else 0)
    cdef int end = token.end
    cdef uint64_t low = 0
    cdef uint64_t digit
    cdef bint overflows = False
    cdef long long value
    if kind == FLOATING:
        java_type[0] = DOUBLE
        return floating(lexer, token)
    if kind == DECIMAL and (lexer.at(end - 1) | 32) == c"l":
        end -= 1
    while index < end:
        digit = lexer.at(index)
        digit = digit - c"0" if digit <= c"9" else (digit | 32) - c"a" + 10
        if low > (<uint64_t>0x7FFFFFFFFFFFFFFF - digit) // radix:
            overflows = True
        low = low * radix + digit
        index += 1
    value = <long long>low
    if overflows and (kind != DECIMAL or not lexer.activemq):
        raise InvalidSelectorError(
            lexer.text, token.start, "this integer is beyond 9223372036854775807",
            hint="write it with a decimal point" if kind == DECIMAL else "write it as a decimal",
        )
    if -0x80000000 <= value <= 0x7FFFFFFF:
        # Beyond Long the broker reads the low 64 bits only, so 18446744073709551617 is the Integer 1.
        java_type[0] = INT
        return value
    if not overflows:
        java_type[0] = LONG
        return value
    if end - token.start > DIGIT_LIMIT:
        raise InvalidSelectorError(
            lexer.text, token.start, f"an integer of more than {DIGIT_LIMIT} digits", hint="write it with an exponent"
        )
    java_type[0] = BIG_DECIMAL
    return int(lexer.text[token.start:end])
