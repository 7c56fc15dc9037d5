"""Rights to read from, write to and create destinations: authorizationPlugin of an activemq.xml."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Literal

from pyengine._engine.activemq.region.authorization_map import AuthorizationMap
from pyengine.attributes import frozen
from pyengine.dataclass import dataclass
from pyengine.destinations import Destination, composite_parts, destination_of
from pyengine.topology.checked import Checked

ANYONE = "*"
Operation = Literal["read", "write", "admin"]


@frozen
@dataclass(frozen=True)
class AuthorizationEntry(Checked):
    """An authorizationEntry: the groups that may read from, write to and create (``admin``) what it covers.

    destination: ``queue://USERS.>``, a plain name is a queue; of the entry for temporary destinations, and of the
    default entry, it is not used. ``*`` is every group. A user of no group may do nothing.
    """

    destination: str = ">"
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    admin: tuple[str, ...] = ()


@frozen
@dataclass(frozen=True)
class AuthorizationPlugin(Checked):
    """An authorizationMap. The groups of all entries that match a destination count, and those of default_entry; of a
    composite only those that count for each part. What no entry matches is refused.

    temp_destination_entry: of all temporary destinations; None: every user may use them.
    """

    entries: tuple[AuthorizationEntry, ...] = ()
    temp_destination_entry: AuthorizationEntry | None = None
    default_entry: AuthorizationEntry | None = None

    @cached_property
    def _maps(self) -> dict[str, AuthorizationMap]:
        names = [destination_of(entry.destination, "queue") for entry in self.entries]
        return {
            kind: AuthorizationMap((number, each.name) for number, each in enumerate(names) if each.kind == kind)
            for kind in ("queue", "topic")
        }

    def allowed(self, destination: Destination, operation: Operation) -> frozenset[str] | None:
        """The groups that may do it; None: every user may."""
        if destination.is_temporary:
            entry = self.temp_destination_entry
            return None if entry is None else frozenset(getattr(entry, operation))
        matching: set[int] | None = None
        for part in composite_parts(destination):
            found = self._maps[part.kind].matching(part.name)
            matching = found if matching is None else matching & found
        groups = {group for number in matching or () for group in getattr(self.entries[number], operation)}
        if self.default_entry is not None:
            groups.update(getattr(self.default_entry, operation))
        return frozenset(groups)

    def allows(self, groups: tuple[str, ...], destination: Destination, operation: Operation) -> bool:
        """Whether a user of these groups may do it."""
        allowed = self.allowed(destination, operation)
        return allowed is None or any(ANYONE in allowed or group in allowed for group in groups)


@lru_cache(maxsize=1024)
def groups_of(text: str) -> tuple[str, ...]:
    """The groups that an attribute names, separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
