"""Settings that are looked at where they are written down."""

from __future__ import annotations

from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pyengine.errors import ConfigurationError

_PLAIN = {bool: "True or False", int: "a whole number", float: "a number", str: "a text", NoneType: "None"}


class Checked:
    """A dataclass whose fields take what their annotations say, where that is a plain type or one of some texts.

    Making one with another value raises ConfigurationError; strategies and the like are not looked at.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, hint in _hints(kind).items():
            value = getattr(self, name)
            if not _fits(value, hint):
                raise ConfigurationError(f"{kind.__name__}.{name}", repr(value), f"must be {_words(hint)}")


@cache
def _hints(kind: type) -> dict[str, Any]:
    """What the fields of a class take, of those that can be looked at."""
    return {
        name: hint
        for name, hint in get_type_hints(kind).items()
        if get_origin(hint) is Literal or all(each in _PLAIN for each in get_args(hint) or (hint,))
    }


def _fits(value: object, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    kinds = get_args(hint) or (hint,)
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, kinds) or (float in kinds and isinstance(value, int))


def _words(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    return " or ".join(_PLAIN[each] for each in get_args(hint) or (hint,))
