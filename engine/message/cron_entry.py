"""The five fields of a cron entry, as ActiveMQ's CronParser reads them: minute, hour, day of the month, month, weekday.

Values stay ranges until they are known to lie within their field: an entry may name two billion minutes.
"""

from __future__ import annotations

import re

# Name, first and last value of each field; the last of minutes, hours and days is one beyond.
FIELDS = (("Minutes", 0, 60), ("Hours", 0, 24), ("DayOfMonth", 1, 32), ("Month", 1, 12), ("DayOfWeek", 0, 6))
HINT = "write five fields: minute, hour, day of the month, month, day of the week (0 is Sunday)"


def fields_of(entry: str) -> list[list[range]]:
    """The values of each field. Raises ValueError for what the parser does not read."""
    tokens = re.findall(r"[^ \t\n\r\f]+", entry)
    if len(tokens) != len(FIELDS):
        raise ValueError(f"it has {len(tokens)} fields")
    return [_ranges(token, first, last) for token, (_, first, last) in zip(tokens, FIELDS, strict=True)]


def check_entry(entry: str) -> None:
    """Raise ValueError for an entry that no message can have (CronParser.validate)."""
    for ranges, (name, first, last) in zip(fields_of(entry), FIELDS, strict=True):
        filled = [each for each in ranges if each]
        if not filled or min(each[0] for each in filled) < first or max(each[-1] for each in filled) > last:
            raise ValueError(f"{name} has values from {first} to {last}")


def _ranges(token: str, first: int, last: int) -> list[range]:
    if token in ("*", "?"):
        return [range(first, last + 1)]
    numerator, slash, denominator = token.partition("/")
    if slash:
        step = abs(_number(denominator))
        if step == 0:
            raise ValueError("a step of 0")
        return [range(-(-each.start // step) * step, each.stop, step) for each in _ranges(numerator, first, last)]
    if "," in token:
        return [each for part in token.split(",") if part for each in _ranges(part, first, last)]
    start, dash, stop = token.partition("-")
    if dash:
        return [range(_number(start), _number(stop) + 1)]
    return [range(_number(token), _number(token) + 1)]


def _number(text: str) -> int:
    """Integer.parseInt."""
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", text):
        raise ValueError(f"{text!r} is not a number")
    return int(text)
