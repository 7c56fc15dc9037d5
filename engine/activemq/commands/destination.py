"""A destination as commands name it (command.ActiveMQDestination)."""

from __future__ import annotations

from dataclasses import field
from functools import lru_cache

from pyengine.attributes import frozen, named_arguments
from pyengine.dataclass import dataclass

ANY_ELEMENT = "*"
ANY_REST = ">"


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class Destination:
    """One destination, or a pattern of destinations.

    name: without prefix and options, trimmed, case-sensitive. kind: "queue" (default), "topic", "temp-queue" or
    "temp-topic"; destinations of different kinds are never equal and never match. options: what followed the first
    ``?``, as pairs in the order given, None for what has no ``=``; they take no part in comparing.
    """

    name: str
    kind: str = "queue"
    options: tuple[tuple[str, str | None], ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f"{self.kind}://{self.name}"

    @property
    def elements(self) -> tuple[str, ...]:
        """The parts between the dots."""
        return elements_of(self.name)

    @property
    def is_temporary(self) -> bool:
        """Whether it ends with the connection that made it."""
        return self.kind.startswith("temp-")

    @property
    def is_pattern(self) -> bool:
        """True if ``*`` stands as a whole element anywhere, or ``>`` as the last one."""
        return is_pattern(self.name)

    def matches(self, other: Destination) -> bool:
        """True if this pattern (or exact name) covers ``other`` (spec activemq 4.2)."""
        return self.kind == other.kind and name_matches(self.name, other.name)


@lru_cache(maxsize=4096)
def elements_of(name: str) -> tuple[str, ...]:
    """The parts of a name between the dots."""
    return tuple(name.split("."))


def prefix_of(elements: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """The elements before the ``>`` at the end, one or many, and whether there is none."""
    count = len(elements)
    while count and elements[count - 1] == ANY_REST:
        count -= 1
    return elements[:count], count == len(elements)


def is_pattern(name: str) -> bool:
    """True if ``*`` stands as a whole element anywhere, or ``>`` as the last one."""
    parts = elements_of(name)
    return parts[-1] == ANY_REST or ANY_ELEMENT in parts


@lru_cache(maxsize=65536)
def name_matches(pattern: str, name: str) -> bool:
    """Whether a pattern, or an exact name, covers a name (spec activemq 4.2)."""
    wanted, given = elements_of(pattern), elements_of(name)
    prefix, whole = prefix_of(wanted)
    if not whole:
        return len(given) >= len(prefix) and all(
            a == b or ANY_ELEMENT in (a, b) for a, b in zip(prefix, given, strict=False)
        )
    if ANY_ELEMENT in wanted:
        return len(wanted) == len(given) and all(a in (ANY_ELEMENT, b) for a, b in zip(wanted, given, strict=True))
    return pattern == name
