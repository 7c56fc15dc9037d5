"""fastjson's dialect of JSON, read and written as version 1.2.83 does.

Its keys may be bare numbers or whole objects, as in RocketMQ's offset files and in the bodies of its commands. Python's
``json`` and other JSON readers refuse both, and what people leave in such files: comments, commas too many, single
quotes, a byte order mark.
"""

import re
from decimal import Decimal, InvalidOperation
from functools import partial

from pyengine._engine.java.numbers import parsed_long
from pyengine.errors import InvalidSourceError

from libc.stdint cimport uint32_t
from libc.string cimport strchr

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object text) noexcept
    int PyUnicode_KIND(object text) noexcept
    void* PyUnicode_DATA(object text) noexcept
    Py_ssize_t PyUnicode_GET_LENGTH(object text) noexcept
    Py_UCS4 PyUnicode_READ(int kind, const void* data, Py_ssize_t index) noexcept

# Characters that are written as a backslash and a letter, and the letters.
cdef const char* SHORT_MARKS = b"\b\t\n\f\r\"\\"
cdef const char* SHORT_NAMES = b"btnfr\"\\"
cdef enum:
    ESCAPE = 6                           # bytes of the longest escape

INT32 = 2**31
INT64 = 2**63
MOST_SCALE = 100  # of a BigDecimal whose bits fastjson takes; others have to be whole
MAX_DEPTH = 100

# Every control character is a blank, as the zeros that a power failure leaves behind a document.
_BLANKS = re.compile(r"(?:[\x00-\x20\x7f]|/\*.*?\*/|//[^\n]*(?:\n|$))*", re.DOTALL)
_NUMBER = re.compile(r"(-?\d+)(\.\d+)?([eE][+-]?\d+)?[LSBFD]?", re.ASCII)
_NAME = re.compile(r"(?:[A-Za-z_$]|[^\x00-\xff])(?:[\w$]|[^\x00-\xff])*")
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = {
    **{str(digit): chr(digit) for digit in range(8)}, **{mark: mark for mark in "\"'\\/"},
    "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "F": "\f", "r": "\r",
}
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS = {"true": True, "false": False, "null": None}


def loads(text, source="fastjson", *, typed=("", 0)):
    """The value of a document: dict, list, str, int, Decimal (of a fraction or exponent), bool or None.

    A key that is a number becomes an int, one that is an object a tuple of its (name, value) pairs in order of the
    names, without those whose value is an array or object. typed: the member, and how many levels down in it, with the
    maps whose keys the real reader does not read as strings; in these it accepts an extra comma only at the end.
    source: where the text is from, for errors. Raises InvalidSourceError, which has the position.
    """
    reader = _Reader(text, source, typed)
    value = reader.value(0)
    if reader.at < len(text):
        raise reader.error("text behind the document")
    return value


def member(found, name):
    """A member of an object that Java reads into a class, by its name in any case, with _ and - anywhere; the last of
    several. None without one.
    """
    value = None
    for key, each in found.items():
        if _is_name(key, name):
            value = each
    return value


def whole_of(value, limit, what, source, *, absent=None):
    """A number as fastjson takes it: of a decimal the lowest bits, true as 1, of a string the number that Java parses,
    with commas
    in it; an int's text may end with ".0".

    absent: the result if fastjson finds no value; None refuses that. Raises InvalidSourceError for a value that is not
    a number and for one outside -limit to limit - 1.
    """
    if absent is not None and (value is None or value in ("", "null", "NULL")):
        return absent
    number = value
    if isinstance(value, Decimal) and abs(int(value.as_tuple().exponent)) <= MOST_SCALE:
        number = (int(value) + limit) % (2 * limit) - limit
    elif isinstance(value, str):
        text = value.replace(",", "")
        if limit == INT32 and "." in text:
            text = text.rstrip("0").removesuffix(".")
        try:
            number = parsed_long(what, text)
        except ValueError:
            number = value
    if not isinstance(number, int) or not -limit <= number < limit:
        shown = str(value) if isinstance(value, Decimal) else repr(value)
        raise InvalidSourceError(source, f"{what} = {shown[:60]} is no whole number from {-limit} to {limit - 1}")
    return int(number)


def text_of(value):
    """A value converted to a string: for an object or array its JSON."""
    if isinstance(value, str):
        return value
    return _json(value)


def _json(value):
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return f"[{','.join([_json(each) for each in value])}]"
    if isinstance(value, dict):
        pairs = [f"{quoted(text_of(name))}:{_json(each)}" for name, each in value.items() if each is not None]
        return f"{{{','.join(pairs)}}}"
    if isinstance(value, tuple):
        return _json(dict(value))
    return quoted(value) if isinstance(value, str) else str(value)


cdef inline int escape(uint32_t mark, char* out) noexcept:
    """Write the escape of a character, up to ESCAPE bytes, and return how many; 0 for a character without one."""
    cdef const char* digits = b"0123456789ABCDEF"
    cdef const char* found
    if 0x20 <= mark < 0x7F and mark != 0x22 and mark != 0x5C or mark > 0x9F and mark != 0x2028 and mark != 0x2029:
        return 0
    out[0] = 0x5C
    found = strchr(SHORT_MARKS, <int>mark) if 0 < mark < 0x7F else NULL
    if found is not NULL:
        out[1] = SHORT_NAMES[found - SHORT_MARKS]
        return 2
    out[1], out[2], out[3] = 0x75, digits[mark >> 12 & 15], digits[mark >> 8 & 15]
    out[4], out[5] = digits[mark >> 4 & 15], digits[mark & 15]
    return ESCAPE


cdef bint is_ascii(str text) noexcept:
    return PyUnicode_IS_COMPACT_ASCII(text)


cdef Py_ssize_t quoted_size(str text) noexcept:
    """How many characters :func:`quoted` has."""
    cdef int kind = PyUnicode_KIND(text), size
    cdef const void* data = PyUnicode_DATA(text)
    cdef Py_ssize_t length = PyUnicode_GET_LENGTH(text), found = length + 2, i
    cdef char out[ESCAPE]
    for i in range(length):
        size = escape(<uint32_t>PyUnicode_READ(kind, data, i), out)
        if size:
            found += size - 1
    return found


cdef char* put_quoted(char* out, str text) noexcept:
    """Write a string of ASCII characters as :func:`quoted` does; returns where it ends."""
    cdef const char* data = <const char*>PyUnicode_DATA(text)
    cdef Py_ssize_t length = PyUnicode_GET_LENGTH(text), i
    cdef int size
    out[0] = 0x22
    out += 1
    for i in range(length):
        size = escape(<unsigned char>data[i], out)
        if size:
            out += size
        else:
            out[0] = data[i]
            out += 1
    out[0] = 0x22
    return out + 1


cpdef str quoted(str text):
    """A string as fastjson writes it."""
    cdef char out[ESCAPE]
    cdef int size
    cdef list parts
    if text is None:
        raise TypeError("a string is needed")
    if quoted_size(text) == PyUnicode_GET_LENGTH(text) + 2:
        return f'"{text}"'
    parts = ['"']
    for mark in text:
        size = escape(ord(mark), out)
        parts.append(out[:size].decode("ascii") if size else mark)
    parts.append('"')
    return "".join(parts)


def _is_name(key, name):
    return isinstance(key, str) and (key == name or key.replace("_", "").replace("-", "").lower() == name.lower())


class _Reader:
    def __init__(self, text, source, typed):
        self.text = text
        self.source = source
        self.typed = typed
        self.at = int(text.startswith("\ufeff"))
        self.blanks()

    def error(self, problem):
        """The error at the cursor."""
        line = self.text.count("\n", 0, self.at) + 1
        column = self.at - self.text.rfind("\n", 0, self.at)
        return InvalidSourceError(self.source, f"no fastjson at line {line}, column {column}: {problem}")

    def blanks(self):
        found = _BLANKS.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def next_is(self, mark):
        """Take ``mark`` and the blanks behind it, if it comes next."""
        if not self.text.startswith(mark, self.at):
            return False
        self.at += len(mark)
        self.blanks()
        return True

    def value(self, depth, levels=0):
        if depth > MAX_DEPTH:
            raise self.error(f"nested deeper than {MAX_DEPTH}")
        first = self.text[self.at : self.at + 1]
        if first == "{":
            return self.object(depth, levels)
        if first == "[":
            return self.array(depth)
        if first in ('"', "'"):
            return self.string()
        number = _NUMBER.match(self.text, self.at)
        if number is not None:
            found = self.number(*number.groups(default=""))
            self.at = number.end()
            self.blanks()
            return found
        word = _NAME.match(self.text, self.at)
        if word is not None and word[0] in _WORDS:
            self.at = word.end()
            self.blanks()
            return _WORDS[word[0]]
        raise self.error("a value is missing" if first else "the document ends within a value")

    def number(self, whole, fraction, exponent):
        try:
            return Decimal(whole + fraction + exponent) if fraction or exponent else int(whole)
        except (InvalidOperation, ValueError) as error:
            raise self.error("a number without bounds") from error

    def string(self):
        found = _QUOTED.match(self.text, self.at)
        if found is None:
            raise self.error("a text does not end")
        inner = self.text[found.start() + 1:found.end() - 1]
        if "\\" in inner:
            inner = _ESCAPE.sub(self.unescaped, inner)
            if _SURROGATE.search(inner) is not None:        # two in a row, escaped each, are one character
                inner = inner.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        self.at = found.end()
        self.blanks()
        return inner

    def unescaped(self, found):
        meant = found[1]
        if len(meant) > 1:
            return chr(int(meant[1:], 16))
        if meant not in _ESCAPES:
            raise self.error(f"\\{meant} is not an escape")
        return _ESCAPES[meant]

    def commas(self):
        """Take commas, of which fastjson allows any number. Returns False if there is none."""
        found = False
        while self.next_is(","):
            found = True
        return found

    def array(self, depth):
        self.next_is("[")
        found = []
        self.commas()
        while not self.next_is("]"):
            found.append(self.value(depth + 1))
            if not self.commas() and not self.text.startswith("]", self.at):
                raise self.error("',' or ']' is missing")
        return found

    def object(self, depth, levels=0):
        # levels: 1 for a map of typed keys, 2 for one of such maps, 0 for others.
        commas = partial(self.next_is, ",") if levels == 1 else self.commas
        self.next_is("{")
        found = {}
        if levels != 1:
            self.commas()
        while not self.next_is("}"):
            key = self.key(depth + 1)
            if not self.next_is(":"):
                raise self.error("':' is missing")
            inner = self.typed[1] if depth == 0 and _is_name(key, self.typed[0]) else max(0, levels - 1)
            found[key] = self.value(depth + 1, inner)
            if not commas() and not self.text.startswith("}", self.at):
                raise self.error("',' or '}' is missing")
        return found

    def key(self, depth):
        name = _NAME.match(self.text, self.at)
        if name is not None:
            self.at = name.end()
            self.blanks()
            return name[0] if name[0] != "null" else None
        start = self.at
        key = self.value(depth)
        if isinstance(key, dict):
            pairs = [pair for pair in key.items() if not isinstance(pair[1], (dict, list))]
            return tuple(sorted(pairs, key=str))
        if isinstance(key, (str, int)):
            return key
        self.at = start
        raise self.error("a key is a text, a whole number or an object of texts and numbers")
