"""Which entries of an authorization map count for a destination: all that match, wildcards on both sides.

Source: filter.DestinationMap and DestinationMapNode, security.DefaultAuthorizationMap (5.18).
"""

from __future__ import annotations

from collections.abc import Iterable

from pyengine._engine.activemq.commands.destination import ANY_ELEMENT, ANY_REST


class Node:
    """A place in the tree of names: its entries, by number, and the places below it."""

    __slots__ = ("children", "entries")

    def __init__(self, entries: set[int], children: dict[str, Node]) -> None:
        self.entries = entries
        self.children = children

    def all_below(self) -> set[int]:
        """The entries of this place and of those below it."""
        return self.entries.union(*(child.all_below() for child in self.children.values()))


class AuthorizationMap:
    """Entries under the names of destinations of one kind."""

    def __init__(self, names: Iterable[tuple[int, str]]) -> None:
        self._root = Node(set(), {})
        for number, name in names:
            node = self._root
            for part in name.split("."):
                node = node.children.setdefault(part, Node(set(), {}))
            node.entries.add(number)

    def matching(self, name: str) -> set[int]:
        """The numbers of the entries that count for a destination, which may be a wildcard, and is not a composite."""
        found: set[int] = set()
        _collect([self._root], found, name.split("."), 0, deep=False)
        return found


def _children(level: list[Node], name: str) -> list[Node]:
    return [node.children[name] for node in level if name in node.children]


def _collect(level: list[Node], found: set[int], parts: list[str], index: int, *, deep: bool) -> None:
    """level: the places that the parts before ``index`` lead to: more than one behind a ``*`` of the destination."""
    could_match_any = True
    for place in range(index, len(parts)):
        if not level:
            return
        part = parts[place]
        if deep and part == ANY_REST:
            found.update(*(node.all_below() for node in level))
            could_match_any = False
            break
        _collect(_children(level, ANY_ELEMENT), found, parts, place + 1, deep=True)
        found.update(*(rest.all_below() for rest in _children(level, ANY_REST)))
        if part == ANY_ELEMENT:
            level = [child for node in level for child in node.children.values()]
        else:
            level = _children(level, part)
    found.update(*(node.entries for node in level))
    if could_match_any:  # FOO.BAR matches the entry of FOO.BAR.>
        found.update(*(rest.entries for rest in _children(level, ANY_REST)))
