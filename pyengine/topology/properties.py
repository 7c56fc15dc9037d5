"""Java's .properties files, as java.util.Properties reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator

LINE = re.compile(r"((?:\\.|[^ \t\f=:\\])*)[ \t\f]*([=:]?)[ \t\f]*(.*)", re.DOTALL)
LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str, *, bare_names: bool = True) -> dict[str, str]:
    """``name = value``, ``#`` and ``!`` comments, lines joined by a backslash at the end, ``\\t`` and ``\\uXXXX``.

    bare_names: a line without ``=`` or ``:`` counts too, whose value white space parts from the name.
    """
    found: dict[str, str] = {}
    for line in _lines(text):
        name, sign, value = LINE.fullmatch(line).groups()  # type: ignore[union-attr]
        if sign or bare_names:
            found[_unescape(name)] = _unescape(value)
    return found


def _lines(text: str) -> Iterator[str]:
    """Without comments, each with the lines that go on with it. A comment does not go on."""
    begun: str | None = None
    for line in re.split(r"\r\n|[\r\n]", text):
        line = line.lstrip(" \t\f")
        if begun is None and line[:1] in ("", "#", "!"):
            continue
        line = (begun or "") + line
        goes_on = (len(line) - len(line.rstrip("\\"))) % 2
        begun = line[:-1] if goes_on else None
        if not goes_on:
            yield line
    if begun:
        yield begun


def _unescape(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else LETTERS.get(match[2], match[2])

    units = re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", one, text, flags=re.DOTALL)
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")  # what two units are one of
