"""Tokens of a selector: see lexer.pxd."""

from cpython.unicode cimport PyUnicode_DATA, PyUnicode_KIND, PyUnicode_READ, PyUnicode_Substring
from libc.stdint cimport uint32_t, uint64_t

from pyengine.errors import InvalidSelectorError


cdef struct Reserved:
    uint64_t head       # first eight letters, upper case, one a byte
    int length
    int kind
    int dialects        # 1 activemq, 2 rocketmq, 3 both


cdef Reserved[16] RESERVED
cdef int[2][11] SLICE   # length of a word -> range of RESERVED that may hold it


cdef uint64_t head_of(bytes word) noexcept:
    cdef uint64_t head = 0
    cdef int index
    for index in range(min(<int>len(word), 8)):
        head |= (<uint64_t>(<unsigned char>word[index])) << (8 * index)
    return head


cdef int fill_reserved() except -1:
    cdef list words = [
        (b"IN", WORD_IN, 3), (b"IS", WORD_IS, 3), (b"OR", WORD_OR, 3), (b"AND", WORD_AND, 3), (b"NOT", WORD_NOT, 3),
        (b"LIKE", WORD_LIKE, 1), (b"NULL", WORD_NULL, 3), (b"TRUE", WORD_TRUE, 3), (b"FALSE", WORD_FALSE, 3),
        (b"XPATH", WORD_XPATH, 1), (b"ESCAPE", WORD_ESCAPE, 1), (b"XQUERY", WORD_XQUERY, 1),
        (b"BETWEEN", WORD_BETWEEN, 3), (b"CONTAINS", WORD_CONTAINS, 2), (b"ENDSWITH", WORD_ENDSWITH, 2),
        (b"STARTSWITH", WORD_STARTSWITH, 2),
    ]
    cdef int index, size
    for size in range(11):
        SLICE[0][size] = 16
        SLICE[1][size] = 0
    for index, (word, kind, dialects) in enumerate(words):
        RESERVED[index] = Reserved(head_of(word), len(word), kind, dialects)
        size = len(word)
        SLICE[0][size] = min(SLICE[0][size], index)
        SLICE[1][size] = index + 1
    return 0


fill_reserved()


cdef inline bint is_digit(uint32_t character) noexcept:
    return c"0" <= character <= c"9"


cdef inline bint is_name_start(uint32_t character) noexcept:
    return (c"a" <= character <= c"z") or (c"A" <= character <= c"Z") or character == c"_" or character == c"$"


cdef class Lexer:
    """The tokens of ``text`` from ``start`` on. It lives for one parse and cannot be pickled."""

    def __init__(self, str text not None, bint activemq, int start = 0):
        if len(text) > 0x7FFFFFF0:
            raise InvalidSelectorError("", 0, f"a selector of {len(text)} characters is too long")
        self.text = text
        self.activemq = activemq
        self.data = PyUnicode_DATA(text)
        self.width = PyUnicode_KIND(text)
        self.length = <int>len(text)
        self.position = min(max(start, 0), self.length)
        self.newline = -1

    def __reduce__(self):
        raise TypeError("a Lexer lives for one parse; pickle the text")

    cdef uint32_t at(self, Py_ssize_t index) noexcept:
        """Character at ``index``, 0 outside the text (and for a NUL, which starts no token)."""
        if 0 <= index < self.length:
            return <uint32_t>PyUnicode_READ(self.width, <void*>self.data, index)
        return 0

    cdef int advance(self, Token* token) except -1:
        cdef uint32_t character, following
        cdef int start
        token.awkward = False
        while True:
            start = self.position
            token.start = start
            if start >= self.length:
                token.kind = END
                token.end = start
                return 0
            character = self.at(start)
            if character == c" " or c"\t" <= character <= c"\n" or c"\f" <= character <= c"\r":
                self.position = start + 1
                continue
            if is_name_start(character):
                return self._word(token)
            if is_digit(character):
                return self._number(token)
            if character == c"'":
                return self._quoted(token)
            following = self.at(start + 1)
            token.end = start + 1
            if character == c"=":
                token.kind = EQUALS
            elif character == c"<":
                token.kind = DIFFERS if following == c">" else AT_MOST if following == c"=" else BELOW
                if token.kind != BELOW:
                    token.end = start + 2
            elif character == c">":
                token.kind = AT_LEAST if following == c"=" else ABOVE
                if token.kind == AT_LEAST:
                    token.end = start + 2
            elif character == c"(":
                token.kind = OPEN
            elif character == c")":
                token.kind = CLOSE
            elif character == c",":
                token.kind = COMMA
            elif character == c"+":
                token.kind = PLUS
            elif character == c"-":
                if following == c"-" and self._line_comment():
                    continue
                token.kind = DASH
            elif character == c".":
                if not is_digit(following):
                    return self.refuse(start)
                token.kind = FLOATING
                token.end = self._exponent(self._digits(start + 1))
            elif character == c"/" and following == c"*":
                # Unterminated, it is / and * in ActiveMQ; no selector has these two in sequence.
                if not self._block_comment():
                    return self.refuse(start)
                continue
            elif self.activemq and character == c"/":
                token.kind = SLASH
            elif self.activemq and character == c"*":
                token.kind = STAR
            elif self.activemq and character == c"%":
                token.kind = PERCENT
            else:
                return self.refuse(start)
            self.position = token.end
            return 0

    cdef int _word(self, Token* token) noexcept:
        cdef int end = token.start
        cdef int index, size
        cdef uint64_t head = 0
        cdef uint32_t character
        while end < self.length:
            character = self.at(end)
            if not (is_name_start(character) or is_digit(character)):
                break
            if end - token.start < 8:
                if c"a" <= character <= c"z":
                    character -= 32
                head |= (<uint64_t>character) << (8 * (end - token.start))
            end += 1
        token.kind = WORD
        token.end = end
        self.position = end
        size = end - token.start
        if size <= 10:
            for index in range(SLICE[0][size], SLICE[1][size]):
                if RESERVED[index].head == head and RESERVED[index].dialects & (1 if self.activemq else 2):
                    # The only reserved word longer than its head is STARTSWITH.
                    if size <= 8 or (
                        (self.at(end - 2) | 32) == c"t" and (self.at(end - 1) | 32) == c"h"
                    ):
                        token.kind = RESERVED[index].kind
                    break
        return 0

    cdef int _digits(self, int index) noexcept:
        while is_digit(self.at(index)):
            index += 1
        return index

    cdef int _exponent(self, int index) noexcept:
        """End of an exponent that starts at ``index``; ``index`` itself when none does."""
        cdef int digits = index + 1
        if self.at(index) != c"e" and self.at(index) != c"E":
            return index
        if self.at(digits) == c"+" or self.at(digits) == c"-":
            digits += 1
        return self._digits(digits) if is_digit(self.at(digits)) else index

    cdef int _number(self, Token* token) noexcept:
        cdef int start = token.start
        cdef int end = self._digits(start)
        cdef int exponent
        cdef uint32_t following = self.at(end)
        if following == c".":
            token.kind = FLOATING
            end = self._exponent(self._digits(end + 1))
        else:
            exponent = self._exponent(end)
            if exponent > end:
                token.kind = FLOATING
                end = exponent
            elif self.at(start) != c"0":
                token.kind = DECIMAL
                if following == c"l" or following == c"L":
                    end += 1
            elif not self.activemq:
                token.kind = DECIMAL
                end = start + 1
            elif (following == c"x" or following == c"X") and end == start + 1 and self._hexadecimal(end + 1) > end + 1:
                token.kind = HEXADECIMAL
                end = self._hexadecimal(end + 1)
            else:
                token.kind = OCTAL
                end = start + 1
                while c"0" <= self.at(end) <= c"7":
                    end += 1
        token.end = end
        self.position = end
        return 0

    cdef int _hexadecimal(self, int index) noexcept:
        cdef uint32_t character = self.at(index)
        while is_digit(character) or c"a" <= (character | 32) <= c"f":
            index += 1
            character = self.at(index)
        return index

    cdef int _quoted(self, Token* token) except -1:
        cdef int end = token.start + 1
        cdef int closable = 0       # end of the string if its last doubled quote is read as two single ones
        cdef uint32_t character
        while end < self.length:
            character = <uint32_t>PyUnicode_READ(self.width, <void*>self.data, end)
            end += 1
            if character == c"'":
                if self.at(end) != c"'":
                    token.kind = QUOTED
                    token.end = end
                    self.position = end
                    return 0
                token.awkward = True
                closable = end
                end += 1
            elif 0xD800 <= character <= 0xDFFF:
                token.awkward = True
        if closable and not self.activemq:
            # Matters only in RocketMQ's ignored rest: there an unterminated string is one token later.
            token.kind = QUOTED
            token.end = closable
            self.position = closable
            return 0
        raise InvalidSelectorError(
            self.text, token.start, "this text never ends", expected="a closing '",
            hint="a quote inside a text is written twice: 'it''s'",
        )

    cdef bint _line_comment(self) noexcept:
        """Skip ``--`` to the end of its line; False if no line end follows: then these are two minus signs."""
        cdef int end = self.newline
        if end < self.position:
            end = self.position
            while end < self.length and self.at(end) != c"\n" and self.at(end) != c"\r":
                end += 1
            self.newline = end
        if end >= self.length:
            return False
        self.position = end + 1
        return True

    cdef bint _block_comment(self) noexcept:
        cdef int end = self.position + 3
        while end < self.length:
            if self.at(end) == c"/" and self.at(end - 1) == c"*":
                self.position = end + 1
                return True
            end += 1
        return False

    cdef str quoted(self, Token* token):
        cdef str value = PyUnicode_Substring(self.text, token.start + 1, token.end - 1)
        if token.awkward:
            # Java strings are UTF-16: a surrogate pair is one character.
            value = value.replace("''", "'").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return value

    cdef int refuse(self, Py_ssize_t position) except -1:
        cdef str character = self.text[position]
        cdef str pair = self.text[position:position + 2]
        cdef str hint = ""
        cdef str problem = f"{character!r} has no meaning here"
        if character == '"':
            problem = 'text stands in single quotes, not in "'
            hint = "write 'text'; names are written bare"
        elif character in "\u2018\u2019\u201c\u201d`\u00b4":
            hint = "text stands in plain single quotes: 'text'"
        elif pair == "!=":
            problem = "there is no !="
            hint = "write <> for 'differs from'"
        elif character == "!":
            hint = "write NOT (...)"
        elif character == "&":
            hint = "write AND"
        elif character == "|":
            hint = "write OR"
        elif character == ";":
            hint = "leave the semicolon out"
        elif character == ".":
            problem = "a name cannot hold a dot"
            hint = "names are letters, digits, _ and $; send the property under such a name"
        elif character == "/" and pair == "/*":
            problem = "this comment never ends"
            hint = "close it with */"
        elif character in "*/%":
            problem = "RocketMQ's language has no arithmetic"
            hint = "send the computed number as a property"
        elif character.isalpha() or character in ":#@":
            problem = f"a name cannot hold {character!r}"
            hint = "names are the letters A to Z, digits, _ and $; text stands in single quotes"
        elif character.isspace() or character == "\ufeff":
            problem = f"{character!r} is not white space here"
            hint = "only space, tab, line feed, carriage return and form feed are"
        raise InvalidSelectorError(
            self.text, position, problem, expected="a name, a number, a text in single quotes or an operator", hint=hint
        )

    cdef str usual_mistake(self, Token* token):
        cdef str word = self.text[token.start:token.end]
        cdef str before = self.text[max(0, token.start - 1):token.start]
        cdef int kind = token.kind
        if kind == EQUALS and before == "=":
            return "write a single ="
        if DIFFERS <= kind <= AT_LEAST and before == "=":
            return "write <= or >="
        if kind == FLOATING and word.startswith(".") and before and (before.isalnum() or before in "_$"):
            return "a name cannot hold a dot; names are letters, digits, _ and $"
        if kind == WORD and self.activemq and word.upper() in ("CONTAINS", "STARTSWITH", "ENDSWITH"):
            return f"{word.upper()} belongs to the rocketmq dialect; write LIKE '%...%'"
        if kind == WORD and before.isalnum():
            return "a number ends before its letters; only an L may follow a decimal integer other than 0"
        if kind == WORD:
            return "text stands in single quotes: 'two words'; names hold neither blanks nor dashes"
        if kind == QUOTED and before == "'":
            return "a quote inside a text is written twice: 'it''s'"
        if kind == DECIMAL and before.isdigit():
            return "a number that starts with 0 is octal and holds only the digits 0 to 7"
        if kind == WORD_BETWEEN or kind == WORD_IN or kind == WORD_IS or kind >= WORD_LIKE:
            return f"{word.upper()} is a reserved word and cannot be a property name"
        if kind == CLOSE:
            return "check that every bracket that is closed was opened"
        return ""
