"""Tag expressions of a subscription: what the broker and the client compare (FilterAPI, spec rocketmq 8.1)."""

from collections.abc import Set

from pyengine._engine.java.hashing import hash_code
from pyengine.errors import MQClientError

# String.trim cuts what is not above U+0020, and nothing else.
TRIMMED = "".join(map(chr, range(0x21)))


def parse_tags(expression: str | None) -> tuple[str, frozenset[str], frozenset[int]]:
    """(text as stored, tags, their hash codes); no tags and ``*`` stand for everything.

    None, an empty text and ``*`` ask for everything. Otherwise the parts between ``||``, trimmed; so ``A || *`` wants
    the tag ``*``, and a blank text wants no tag at all. Raises MQClientError for a string of nothing but ``||``.
    """
    if not expression or expression == "*":
        return "*", frozenset(), frozenset()
    parts = expression.split("||")
    while parts and not parts[-1]:
        parts.pop()
    if not parts:
        raise MQClientError("subString split error")
    tags = frozenset(part for part in [part.strip(TRIMMED) for part in parts] if part)
    return expression, tags, frozenset(hash_code(tag) for tag in tags)


def broker_accepts(sub_string: str, codes: Set[int], stored_code: int) -> bool:
    """The broker's test: a subscription to everything, or the code among the wanted ones (collisions pass)."""
    return sub_string == "*" or stored_code in codes


def client_accepts(tags: Set[str], tag: str | None) -> bool:
    """The client's test behind the broker's: no wanted tags, or the very tag among them."""
    return not tags or (tag is not None and tag in tags)
