"""Entries of an authorization map that count for a destination."""

from __future__ import annotations

import pytest

from pyengine._engine.activemq.region.authorization_map import AuthorizationMap

ENTRIES = ["a.x.b.c", "d.x.b.e", "a.x.>", "*.x.b.*", ">", "d.y"]


@pytest.mark.parametrize(
    ("destination", "expected"),
    [
        ("a.x.b.c", {"a.x.b.c", "a.x.>", "*.x.b.*", ">"}),
        ("*.x.b.c", {"a.x.b.c", "a.x.>", "*.x.b.*", ">"}),
        ("*.x.b.e", {"d.x.b.e", "a.x.>", "*.x.b.*", ">"}),
        ("*.*.b.*", {"a.x.b.c", "d.x.b.e", "a.x.>", "*.x.b.*", ">"}),
        ("a.x", {"a.x.>", ">"}),
        ("d.y", {"d.y", ">"}),
    ],
)
def test_a_wildcard_of_the_destination_follows_every_branch(destination: str, expected: set[str]) -> None:
    """As DestinationMapNode and AnyChildDestinationNode walk them."""
    found = AuthorizationMap(enumerate(ENTRIES)).matching(destination)
    assert {ENTRIES[number] for number in found} == expected
