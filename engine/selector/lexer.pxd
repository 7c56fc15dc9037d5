"""lexer: selector text -> tokens, one at a time; spec activemq 1.2, rocketmq 8.2.

Longest match, as in the brokers' generated scanners; white space and comments are skipped. The two dialects differ
in their reserved words, in the operators ``* / %`` and in hexadecimal and octal numbers (activemq only).

Invariants: ``start <= end <= length``; a token's characters are ``text[start:end]``; advance() moves strictly forward
until END, in time linear in the characters that it passes.
"""

from libc.stdint cimport uint32_t


cdef enum TokenKind:
    END
    WORD                # a name
    QUOTED              # 'text'
    DECIMAL
    HEXADECIMAL
    OCTAL
    FLOATING
    EQUALS
    DIFFERS             # <>
    BELOW
    AT_MOST
    ABOVE
    AT_LEAST
    PLUS
    DASH
    STAR
    SLASH
    PERCENT
    OPEN
    CLOSE
    COMMA
    # Reserved words come last: kind >= WORD_NOT.
    WORD_NOT
    WORD_AND
    WORD_OR
    WORD_BETWEEN
    WORD_IN
    WORD_IS
    WORD_TRUE
    WORD_FALSE
    WORD_NULL
    WORD_LIKE           # activemq
    WORD_ESCAPE
    WORD_XPATH
    WORD_XQUERY
    WORD_CONTAINS       # rocketmq
    WORD_STARTSWITH
    WORD_ENDSWITH


cdef struct Token:
    int kind            # TokenKind
    int start
    int end
    bint awkward        # QUOTED: holds a doubled quote or a surrogate, so its value is not its characters


cdef class Lexer:
    cdef readonly str text
    cdef readonly bint activemq
    cdef const void* data
    cdef int width          # bytes a character: 1, 2, 4
    cdef int length
    cdef int position       # next character
    cdef int newline        # position of the next line end, valid if not before ``position``; length: there is none
    cdef int advance(self, Token* token) except -1
    cdef str quoted(self, Token* token)     # value of a QUOTED token
    cdef uint32_t at(self, Py_ssize_t index) noexcept
    cdef int refuse(self, Py_ssize_t position) except -1    # raises: no token starts with this character
    cdef str usual_mistake(self, Token* token)  # advice for a token that is not legal there; or ""
    cdef int _word(self, Token* token) noexcept
    cdef int _number(self, Token* token) noexcept
    cdef int _quoted(self, Token* token) except -1
    cdef int _digits(self, int index) noexcept
    cdef int _hexadecimal(self, int index) noexcept
    cdef int _exponent(self, int index) noexcept
    cdef bint _line_comment(self) noexcept
    cdef bint _block_comment(self) noexcept
