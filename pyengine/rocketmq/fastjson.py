"""Read fastjson's dialect of JSON: keys that are bare numbers or whole objects, as RocketMQ's offset files have them.

Python's ``json`` and other JSON readers refuse both, and what people leave in such files: comments, commas too many,
single quotes, a byte order mark. What RocketMQ writes is written by :mod:`.offset_files`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from functools import partial
from json import JSONDecodeError, JSONDecoder
from typing import Any

from pyengine.errors import InvalidSourceError

MAX_DEPTH = 100

# Every control character is a blank, as the zeros that a power failure leaves behind a document.
_BLANKS = re.compile(r"(?:[\x00-\x20\x7f]|/\*.*?\*/|//[^\n]*(?:\n|$))*", re.DOTALL)
_NUMBER = re.compile(r"(-?\d+)(\.\d+)?([eE][+-]?\d+)?[LSBFD]?", re.ASCII)
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_SINGLE = re.compile(r"'(?:[^'\\]|\\.)*'", re.DOTALL)
_STRINGS = JSONDecoder(strict=False)
_WORDS = {"true": True, "false": False, "null": None}


def loads(text: str, source: str = "fastjson", *, typed: tuple[str, int] = ("", 0)) -> Any:
    """The value of a document: dict, list, str, int, Decimal (of a fraction or exponent), bool or None.

    A key that is a number becomes an int, one that is an object a tuple of its (name, value) pairs in order of the
    names, without those whose value is an array or object. typed: the member, and how many levels down in it, with the
    maps whose keys are no texts to the real reader; there it takes no comma too many but one at the end. source: where
    the text is from, for errors. Raises InvalidSourceError, which says where it makes no sense.
    """
    reader = _Reader(text, source, typed)
    value = reader.value(0)
    if reader.at < len(text):
        raise reader.error("text behind the document")
    return value


def member(found: Mapping[Any, Any], name: str) -> Any:
    """A member of an object that Java reads into a class, by its name in any case, with _ and - anywhere; the last of
    several. None without one.
    """
    value = None
    for key, each in found.items():
        if _is_name(key, name):
            value = each
    return value


def _is_name(key: object, name: str) -> bool:
    return isinstance(key, str) and (key == name or key.replace("_", "").replace("-", "").lower() == name.lower())


class _Reader:
    def __init__(self, text: str, source: str, typed: tuple[str, int]) -> None:
        self.text = text
        self.source = source
        self.typed = typed
        self.at = int(text.startswith("\ufeff"))
        self.blanks()

    def error(self, problem: str) -> InvalidSourceError:
        """What is wrong at the cursor."""
        line = self.text.count("\n", 0, self.at) + 1
        column = self.at - self.text.rfind("\n", 0, self.at)
        return InvalidSourceError(self.source, f"no fastjson at line {line}, column {column}: {problem}")

    def blanks(self) -> None:
        found = _BLANKS.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def next_is(self, mark: str) -> bool:
        """Take ``mark`` and the blanks behind it, if it comes next."""
        if not self.text.startswith(mark, self.at):
            return False
        self.at += len(mark)
        self.blanks()
        return True

    def value(self, depth: int, levels: int = 0) -> Any:
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

    def number(self, whole: str, fraction: str, exponent: str) -> int | Decimal:
        try:
            return Decimal(whole + fraction + exponent) if fraction or exponent else int(whole)
        except (InvalidOperation, ValueError) as error:
            raise self.error("a number without bounds") from error

    def string(self) -> str:
        text, start, shift = self.text, self.at, 0
        if text[start] == "'":
            quoted = _SINGLE.match(text, start)
            if quoted is None:
                raise self.error("a text does not end")
            # The same text in double quotes.
            text = '"' + re.sub(r"\\'|\"", lambda mark: "'" if mark[0] != '"' else '\\"', quoted[0][1:-1]) + '"'
            start, shift = 0, quoted.end() - len(text)
        try:
            found, end = _STRINGS.raw_decode(text, start)
        except JSONDecodeError as error:
            self.at = error.pos if text is self.text else self.at
            raise self.error(error.msg) from error
        self.at = end + shift
        self.blanks()
        return str(found)

    def commas(self) -> bool:
        """Take commas, of which fastjson allows any number. Returns False if there is none."""
        found = False
        while self.next_is(","):
            found = True
        return found

    def array(self, depth: int) -> list[Any]:
        self.next_is("[")
        found: list[Any] = []
        self.commas()
        while not self.next_is("]"):
            found.append(self.value(depth + 1))
            if not self.commas() and not self.text.startswith("]", self.at):
                raise self.error("',' or ']' is missing")
        return found

    def object(self, depth: int, levels: int = 0) -> dict[Any, Any]:
        # levels: 1 for a map of typed keys, 2 for one of such maps, 0 for others.
        commas = partial(self.next_is, ",") if levels == 1 else self.commas
        self.next_is("{")
        found: dict[Any, Any] = {}
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

    def key(self, depth: int) -> Any:
        name = _NAME.match(self.text, self.at)
        if name is not None:
            self.at = name.end()
            self.blanks()
            return name[0]
        start = self.at
        key = self.value(depth)
        if isinstance(key, dict):
            pairs = (pair for pair in key.items() if isinstance(pair[1], str | int | Decimal | None))
            return tuple(sorted(pairs, key=str))
        if isinstance(key, str | int):
            return key
        self.at = start
        raise self.error("a key is a text, a whole number or an object of texts and numbers")
