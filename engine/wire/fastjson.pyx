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

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object text) noexcept
    void* PyUnicode_DATA(object text) noexcept
    Py_ssize_t PyUnicode_GET_LENGTH(object text) noexcept

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
# Characters that are escaped when a string is written.
_SPECIAL = re.compile("[\x00-\x1f\"\\\\\x7f-\x9f\u2028\u2029]")
_SHORT = {mark: f"\\{name}" for name, mark in _ESCAPES.items() if name in "btnfr\"\\"}
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


cdef bint is_plain(object text) noexcept:
    """True for a string that JSON writes as it is."""
    cdef const unsigned char* data
    cdef Py_ssize_t i
    if not PyUnicode_IS_COMPACT_ASCII(text):
        return False
    data = <const unsigned char*>PyUnicode_DATA(text)
    for i in range(PyUnicode_GET_LENGTH(text)):
        if data[i] < 0x20 or data[i] == 0x22 or data[i] == 0x5C or data[i] == 0x7F:
            return False
    return True


cpdef object quoted(object text):
    """A string as fastjson writes it."""
    if isinstance(text, str) and is_plain(text):
        return f'"{text}"'
    return f'"{_SPECIAL.sub(_escaped, text)}"' if _SPECIAL.search(text) is not None else f'"{text}"'


def _escaped(found):
    mark = found[0]
    return _SHORT.get(mark) or f"\\u{ord(mark):04X}"


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
