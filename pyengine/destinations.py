"""Destination names: parsing, wildcards, composites, and which of several patterns speaks for a name.

Rules of ActiveMQ Classic (spec activemq 4.1-4.3); classes DestinationFilter, PrefixDestinationFilter,
WildcardDestinationFilter, DestinationMap. If the broker's order is undefined, the rule here is in
:func:`most_specific`; :class:`DestinationMap` gives its answer without asking every pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cmp_to_key
from typing import Generic, TypeVar
from urllib.parse import unquote_plus

from pyengine._engine.activemq.commands.destination import ANY_ELEMENT as ANY_ELEMENT
from pyengine._engine.activemq.commands.destination import ANY_REST as ANY_REST
from pyengine._engine.activemq.commands.destination import Destination as Destination
from pyengine._engine.activemq.commands.destination import (
    elements_of,
    prefix_of,
)
from pyengine._engine.java.hashing import set_order
from pyengine.errors import InvalidDestinationError

V = TypeVar("V")
# Kind -> its name in ActiveMQ's classes and topics of advisories (ActiveMQDestination.getDestinationTypeAsString).
TYPE_NAMES = {"queue": "Queue", "topic": "Topic", "temp-queue": "TempQueue", "temp-topic": "TempTopic"}
KINDS = tuple(TYPE_NAMES)
PLAIN_NAME = re.compile(r"[\w.>*-]+")  # a name without prefix, parts, options or spaces around it
ADVISORY = "ActiveMQ.Advisory."  # prefix of the topics on which a broker publishes advisories


def is_advisory(destination: Destination) -> bool:
    """Whether it is a topic on which a broker publishes advisories (AdvisorySupport.isAdvisoryTopic)."""
    return destination.kind == "topic" and destination.name.startswith(ADVISORY)


def parse_destination(text: str, kind: str = "queue") -> tuple[Destination, ...]:
    """The destinations that a string names: one, or the parts of a composite ``A,topic://B`` each once, in the order
    written.

    kind: of a part without a prefix of its own; a prefix on the whole text sets it for the parts that follow it.
    Sends to a composite and consumers of one take the parts as :func:`composite_parts` gives them.
    Raises ValueError for an empty name, and for a ``%`` in its options that begins no escape.
    """
    body, _, query = text.strip().partition("?")
    options = query_options(query)
    whole, body = _split_kind(body.strip(), kind)
    parts: dict[Destination, None] = {}
    for part in body.split(","):
        # A name that is not a composite keeps a second prefix as part of the name.
        part_kind, name = _split_kind(part.strip(), whole) if "," in body else (whole, body)
        if name:
            parts[Destination(name, part_kind, options)] = None
    if not parts:
        raise ValueError(f"destination {text!r} has an empty name")
    return tuple(parts)


def destination_of(text: str | Destination, kind: str) -> Destination:
    """A destination from its text with options; a composite keeps its text as its name.

    kind: of a name without a prefix. Raises InvalidDestinationError for an empty name and for anything but a string.
    """
    if isinstance(text, Destination):
        return text
    if not isinstance(text, str):
        raise InvalidDestinationError(f"{text!r} is not a destination; give its name, or what create_{kind} makes")
    if PLAIN_NAME.fullmatch(text):
        return Destination(text, kind)
    try:
        parts = parse_destination(text, kind)
    except ValueError as error:
        raise InvalidDestinationError(str(error)) from error
    whole = entry_pattern(text, kind)
    return replace(whole, options=parts[0].options) if "," in whole.name else parts[0]


def query_options(query: str) -> tuple[tuple[str, str | None], ...]:
    """The options after a ``?``, decoded: what follows the last ``?`` (URISupport.parseQuery). Raises ValueError for a
    ``%`` that begins no escape."""
    wrong = re.search(r"%(?![0-9A-Fa-f]{2})", query)
    if wrong is not None:
        raise ValueError(f"options {query!r}: the % at {wrong.start()} begins no escape; write %25 for a %")
    pairs = (part.partition("=") for part in query.rpartition("?")[2].split("&") if part)
    return tuple((unquote_plus(name), unquote_plus(value) if equals else None) for name, equals, value in pairs)


def composite_parts(destination: Destination) -> tuple[Destination, ...]:
    """The destinations that a composite names, each once, as the broker walks them: the texts of its parts in a HashSet
    (ActiveMQDestination.setPhysicalName). Of any other: the destination itself.
    """
    if "," not in destination.name:
        return (destination,)
    texts = set_order(filter(None, map(str.strip, destination.name.split(","))))
    return tuple(
        dict.fromkeys(Destination(name, kind) for kind, name in (_split_kind(text, destination.kind) for text in texts))
    )


def entry_pattern(text: str, kind: str = "queue") -> Destination:
    """The name of a policy entry as one pattern, a composite undivided: what :func:`most_specific` compares."""
    found, name = _split_kind(text.partition("?")[0].strip(), kind)
    return Destination(name, found)


def most_specific(patterns: Iterable[Destination], destination: Destination) -> Destination | None:
    """The pattern whose policy applies to ``destination``, or None if none matches (spec activemq 4.3).

    The exact name comes first. Of two patterns, one that covers the other's text as if it were a name is less specific;
    two that do not cover each other are ordered as strings, so ``*.B`` comes before ``A.*``. The broker leaves open
    what happens when each covers the other (``A.>`` and ``A.*``); here the one with more literal elements wins, then
    the one with more ``*``, then string order. A composite takes part under its whole text, so it is the exact name of
    that text alone and never covers another; one of queues comes before one of topics. Nothing is merged: one pattern
    wins whole.
    """
    candidates = sorted((p for p in patterns if _covers(p, destination)), key=lambda p: p.name)
    if not candidates:
        return None
    for candidate in candidates:
        if candidate.name == destination.name:
            return candidate
    return min(candidates, key=cmp_to_key(_compare_patterns))


class DestinationMap(Generic[V]):
    """Values by pattern, each of which counts for the destinations of which its pattern is the most specific.

    A lookup takes a walk along the destination's elements, however many patterns there are. The tree only narrows down
    what may cover a destination; which of them wins is left to :func:`most_specific`. patterns: in the order given.
    """

    def __init__(self, values: Mapping[Destination, V]) -> None:
        self._values = dict(values)
        self.patterns = tuple(self._values)
        self._roots: dict[str, _Branch] = {}
        for place, pattern in enumerate(self.patterns):
            for part in _parts(pattern):
                branch = self._roots.setdefault(part.kind, _Branch())
                path, whole = prefix_of(part.elements)
                for element in path:
                    branch = branch.below.setdefault(element, _Branch())
                (branch.names if whole else branch.rests).append(place)

    def get(self, destination: Destination) -> V | None:
        """The value of the most specific pattern that covers a destination, or None if none does."""
        places: set[int] = set()
        for part in _parts(destination):
            level = [self._roots[part.kind]] if part.kind in self._roots else []
            for element in part.elements:
                following: list[_Branch] = []
                for branch in level:
                    places.update(branch.rests)
                    if element == ANY_REST:  # of a pattern that is looked up, as the next: it meets all that follows
                        places.update(*(below.every() for below in branch.below.values()))
                    elif element == ANY_ELEMENT:  # it meets every element
                        following += branch.below.values()
                    else:
                        following += filter(None, (branch.below.get(element), branch.below.get(ANY_ELEMENT)))
                level = following
            for branch in level:
                places.update(branch.names, branch.rests)
        winner = most_specific((self.patterns[place] for place in sorted(places)), destination)
        return None if winner is None else self._values[winner]


class _Branch:
    """What a tree of patterns has behind one element."""

    __slots__ = ("below", "names", "rests")

    def __init__(self) -> None:
        self.below: dict[str, _Branch] = {}
        self.names: list[int] = []  # places of the patterns that end here,
        self.rests: list[int] = []  # and of those that go on with ``>``

    def every(self) -> set[int]:
        """The places of the patterns that end here or below."""
        return {*self.names, *self.rests}.union(*(branch.every() for branch in self.below.values()))


def overlap(one: str, other: str) -> bool:
    """True if two names, each of which may be a pattern, have a name in common, as DestinationMap looks them up."""
    ours, theirs = elements_of(one), elements_of(other)
    for a, b in zip(ours, theirs, strict=False):
        if ANY_REST in (a, b):
            return True
        if a != b and ANY_ELEMENT not in (a, b):
            return False
    rest = ours[len(theirs) :] or theirs[len(ours) :]
    return not rest or rest[0] == ANY_REST


def _split_kind(text: str, default: str) -> tuple[str, str]:
    for kind in KINDS:
        if text.startswith(kind + "://"):
            return kind, text[len(kind) + 3 :].strip()
    return default, text


def _parts(destination: Destination) -> tuple[Destination, ...]:
    if "," not in destination.name:
        return (destination,)
    return parse_destination(destination.name, destination.kind)


def _covers(pattern: Destination, destination: Destination) -> bool:
    # Of a composite a part must be met, and its text covered as if it were a name.
    parts, whole = _parts(pattern), _parts(destination)
    if whole != (destination,) and not any(_meets(one, part) for one in parts for part in whole):
        return False
    return pattern == destination or any(one.matches(destination) for one in parts)


def _meets(pattern: Destination, sought: Destination) -> bool:
    # DestinationMap looks up what stands before a ``>``, and then takes everything below.
    wanted, given = pattern.elements, sought.elements
    above = ANY_REST in given and ANY_REST not in wanted and len(wanted) <= given.index(ANY_REST)
    return not above and pattern.kind == sought.kind and overlap(pattern.name, sought.name)


def _compare_patterns(a: Destination, b: Destination) -> int:
    if a.kind != b.kind:  # a composite has parts of several kinds, and one of its own
        return -1 if a.kind.endswith("queue") else 1
    a_covers, b_covers = ("," not in one.name and one.matches(other) for one, other in ((a, b), (b, a)))
    if a_covers != b_covers:
        return 1 if a_covers else -1
    if a_covers:
        key_a, key_b = _literalness(a), _literalness(b)
        if key_a != key_b:
            return -1 if key_a > key_b else 1
    return (a.name > b.name) - (a.name < b.name)


def _literalness(pattern: Destination) -> tuple[int, int]:
    parts = pattern.elements
    stars = parts.count(ANY_ELEMENT)
    return len(parts) - stars - parts.count(ANY_REST), stars
