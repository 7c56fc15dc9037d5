"""The line on which a TOML key stands. tomllib gives values without positions; this finds them again for messages."""

from __future__ import annotations

import re
import tomllib

KeyPath = tuple[str | int, ...]
_HEADER = re.compile(r"^\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(
    r"""^\s*((?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)(?:\s*\.\s*(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+))*)\s*="""
)


def line_of(text: str, path: KeyPath) -> int:
    """1-based line of the deepest part of ``path`` that is written down; 0 if none is.

    path: as into the parsed document, e.g. ("consumer", 2, "selector"); a key inside an inline table or an array
    is found at the line where the outer key starts.
    """
    found, depth = 0, -1
    for line, key in _keys(text):
        shared = _shared(key, path)
        if shared > depth and shared == len(key) and shared > 0:
            found, depth = line, shared
    return found


def _shared(key: KeyPath, path: KeyPath) -> int:
    count = 0
    for a, b in zip(key, path, strict=False):
        if a != b:
            break
        count += 1
    return count


def _keys(text: str) -> list[tuple[int, KeyPath]]:
    """Every header and key with its full path and line."""
    found: list[tuple[int, KeyPath]] = []
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        if fence:
            if fence in line:
                fence = ""
            continue
        if (header := _HEADER.match(line)) and "=" not in header.group(2):
            table = _resolve(_split(header.group(2)), counts, opens=header.group(1) == "[[")
            found.append((number, table))
        elif key := _KEY.match(line):
            found.append((number, table + _split(key.group(1))))
        for mark in ('"""', "'''"):
            if line.count(mark) % 2:
                fence = mark
    return found


def _resolve(names: KeyPath, counts: dict[KeyPath, int], *, opens: bool) -> KeyPath:
    """A header's path with the index of every array of tables it passes through."""
    path: KeyPath = ()
    for position, name in enumerate(names):
        path += (name,)
        if opens and position == len(names) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path += (counts[path],)
    return path


def _split(key: str) -> KeyPath:
    """The parts of a dotted key, unquoted; a key that tomllib would refuse is one part."""
    try:
        document: object = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        return (key,)
    parts: list[str | int] = []
    while isinstance(document, dict):
        ((name, document),) = document.items()
        parts.append(name)
    return tuple(parts)
