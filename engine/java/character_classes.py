"""Sets of Unicode code points, and the character classes of java.util.regex by name.

A set is a tuple of ranges (first, last), both inclusive, ascending, with gaps between: equal sets are equal tuples.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]

LAST = 0x10FFFF


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Any ranges, in any order, as a set."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            if last > found[-1][1]:
                found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    return tuple(found)


def union(left: Ranges, right: Ranges) -> Ranges:
    return joined([*left, *right])


def complement(ranges: Ranges) -> Ranges:
    found: list[tuple[int, int]] = []
    start = 0
    for first, last in ranges:
        if first > start:
            found.append((start, first - 1))
        start = last + 1
    if start <= LAST:
        found.append((start, LAST))
    return tuple(found)


def intersection(left: Ranges, right: Ranges) -> Ranges:
    return complement(union(complement(left), complement(right)))


POSIX: dict[str, Ranges] = {
    "ASCII": ((0, 127),),
    "Alnum": ((48, 57), (65, 90), (97, 122)),
    "Alpha": ((65, 90), (97, 122)),
    "Blank": ((9, 9), (32, 32)),
    "Cntrl": ((0, 31), (127, 127)),
    "Digit": ((48, 57),),
    "Graph": ((33, 126),),
    "Lower": ((97, 122),),
    "Print": ((32, 126),),
    "Punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "Space": ((9, 13), (32, 32)),
    "Upper": ((65, 90),),
    "XDigit": ((48, 57), (65, 70), (97, 102)),
    "L1": ((0, 255),),
    "all": ((0, LAST),),
}
CATEGORIES = (
    "Lu",
    "Ll",
    "Lt",
    "Lm",
    "Lo",
    "Mn",
    "Mc",
    "Me",
    "Nd",
    "Nl",
    "No",
    "Pc",
    "Pd",
    "Ps",
    "Pe",
    "Pi",
    "Pf",
    "Po",
    "Sm",
    "Sc",
    "Sk",
    "So",
    "Zs",
    "Zl",
    "Zp",
    "Cc",
    "Cf",
    "Cs",
    "Co",
    "Cn",
)

SEVERAL = {"LC": ("Lu", "Ll", "Lt"), "LD": ("Lu", "Ll", "Lt", "Lm", "Lo", "Nd")}


@cache
def categories() -> dict[str, Ranges]:
    """general category -> the set of its code points, from the tables of the running Python."""
    found: dict[str, list[tuple[int, int]]] = {name: [] for name in CATEGORIES}
    start = 0
    before = unicodedata.category("\0")
    category = unicodedata.category
    for point in range(1, LAST + 1):
        now = category(chr(point))
        if now != before:
            found[before].append((start, point - 1))
            start = point
            before = now
    found[before].append((start, LAST))
    return {name: tuple(ranges) for name, ranges in found.items()}


def named_class(name: str, ignore_case: bool) -> Ranges | None:
    r"""That of \p{name}; None if there is no table of it here."""
    if name.startswith("Is"):
        name = name[2:]
        if name not in CATEGORIES and name not in ("L", "M", "N", "Z", "C", "P", "S", "LC"):
            return None
    elif name.startswith(("gc=", "general_category=")):
        name = name.partition("=")[2]
    if ignore_case and name in ("Lower", "Upper"):
        return POSIX["Alpha"]
    if name in POSIX:
        return POSIX[name]
    if ignore_case and name in ("Lu", "Ll", "Lt"):
        name = "LC"
    if name in CATEGORIES or name in SEVERAL or (len(name) == 1 and name in "LMNZCPS"):
        return general_category(name)
    return None


def general_category(name: str) -> Ranges:
    """That of ``Lu`` and its like, of all that begin with a letter, of LC and of LD."""
    parts = SEVERAL.get(name) or [one for one in CATEGORIES if one.startswith(name)]
    return joined(pair for part in parts for pair in categories()[part])


def with_cases(ranges: Ranges) -> Ranges:
    """With the other case of every letter of ASCII in it."""
    found = list(ranges)
    for first, last in ranges:
        for point in range(max(first, 65), min(last, 90) + 1):
            found.append((point + 32, point + 32))
        for point in range(max(first, 97), min(last, 122) + 1):
            found.append((point - 32, point - 32))
    return joined(found)


def class_text(ranges: Ranges) -> str:
    """As a character class of Python's ``re``, without flags."""
    parts = []
    if not ranges:
        return "(?!)"
    if ranges == ((0, LAST),):
        return "(?s:.)"
    if len(ranges) > 1 and ranges[0][0] == 0 and ranges[-1][1] == LAST:
        return "[^" + class_text(complement(ranges))[1:]
    for first, last in ranges:
        parts.append(f"\\U{first:08x}" if first == last else f"\\U{first:08x}-\\U{last:08x}")
    return "[" + "".join(parts) + "]"
