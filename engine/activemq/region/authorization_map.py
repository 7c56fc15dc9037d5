"""Which entries of an authorization map count for a destination: all that match, wildcards on both sides.

Source: filter.DestinationMap and DestinationMapNode, security.DefaultAuthorizationMap (5.18).
"""

from __future__ import annotations

from collections.abc import Iterable

ANY_CHILD, ANY_DESCENDANT = "*", ">"


class Node:
    """A place in the tree of names: its entries, by number, and the places below it."""

    __slots__ = ("children", "entries")

    def __init__(self, entries: set[int], children: dict[str, Node]) -> None:
        self.entries = entries
        self.children = children

    def all_below(self) -> set[int]:
        """The entries of this place and of those below it."""
        return self.entries.union(*(child.all_below() for child in self.children.values()))


def _any_child(node: Node) -> Node:
    """All places below one, as if they were one."""
    children: dict[str, Node] = {}
    for child in node.children.values():
        for name, below in child.children.items():
            known = children.get(name)
            children[name] = (
                below if known is None else Node(known.entries | below.entries, {**known.children, **below.children})
            )
    return Node(set().union(*(child.entries for child in node.children.values())), children)


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
        _collect(self._root, found, name.split("."), 0, deep=False)
        return found


def _collect(start: Node, found: set[int], parts: list[str], index: int, *, deep: bool) -> None:
    node: Node | None = start
    could_match_any = True
    for place in range(index, len(parts)):
        if node is None:
            break
        part = parts[place]
        if deep and part == ANY_DESCENDANT:
            found |= node.all_below()
            could_match_any = False
            break
        wildcard = node.children.get(ANY_CHILD)
        if wildcard is not None:
            _collect(wildcard, found, parts, place + 1, deep=True)
        rest = node.children.get(ANY_DESCENDANT)
        if rest is not None:
            found |= rest.all_below()
        node = _any_child(node) if part == ANY_CHILD else node.children.get(part)
    if node is not None:
        found |= node.entries
        rest = node.children.get(ANY_DESCENDANT)
        if could_match_any and rest is not None:
            found |= rest.entries  # FOO.BAR matches the entry of FOO.BAR.>
