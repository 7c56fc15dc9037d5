"""Values looked at where they are given, against the annotations of a class's fields or of a call's arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pyengine._engine.selector.parser import parse
from pyengine.durations import Milliseconds, milliseconds
from pyengine.errors import ConfigurationError, shown
from pyengine.topology.limits import Problem
from pyengine.topology.schema import java_name, largest, smallest
from pyengine.whole_numbers import is_whole_number

_PLAIN = {bool: "True or False", int: "a whole number", float: "a number", str: "a string", NoneType: "None"}
_TEXTS = (str, bytes, bytearray, Mapping)  # iterable, but not lists


class Checked:
    """A dataclass whose fields take what their annotations say; a list is taken as a tuple where that is wanted.

    Making one with another value raises ConfigurationError, which names the field, and the place in a tuple.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, hint in _hints(kind).items():
            value = getattr(self, name)
            value = milliseconds(f"{kind.__name__}.{name}", value) if hint is Milliseconds else _tupled(value, hint)
            object.__setattr__(self, name, value)
            check(f"{kind.__name__}.{name}", value, int if hint is Milliseconds else hint)


class Properties(Checked):
    """Settings of a broker: a whole number is one that the broker's own property of this name holds."""

    __slots__ = ()

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        kind: Any = type(self)
        for name, hint in _hints(kind).items():
            value = getattr(self, name)
            if isinstance(value, int) and (int in _choices(hint) or hint is Milliseconds):
                low, high = smallest(java_name(name)), largest(java_name(name))
                if not low <= value <= high:
                    refuse_if(f"{kind.__name__}.{name}", value, (f"must be a whole number from {low} to {high}", ""))


def refuse_if(name: str, value: object, problem: Problem | None) -> None:
    """Raises ConfigurationError, which calls the value ``name``, if there is a problem with it."""
    if problem is not None:
        raise ConfigurationError(name, shown(value), *problem)


def check_selector(owner: Any) -> None:
    """Make a selector of blanks the empty one, which takes all; raises InvalidSelectorError for one that is none."""
    object.__setattr__(owner, "selector", owner.selector if owner.selector.strip() else "")
    if owner.selector:
        parse(owner.selector, "activemq")


def check_arguments(owner: str, function: Callable[..., object], given: Mapping[str, object]) -> None:
    """That arguments are what the annotations of a function say. Raises ConfigurationError.

    owner: what its caller wrote. given: arguments by name; what the function does not annotate is not looked at.
    """
    for name, hint in _hints(function).items():
        if name in given:
            check(f"{owner}.{name}", given[name], hint)


def check(name: str, value: object, hint: Any) -> None:
    """That a value is what an annotation says. Raises ConfigurationError, which calls it ``name``."""
    if _fits(value, hint):
        return
    for each in _choices(hint):
        if _of_many(each) and isinstance(value, (tuple, list)):
            for place, item in enumerate(value):
                check(f"{name}[{place}]", item, get_args(each)[0])
    raise ConfigurationError(name, shown(value), f"must be {_words(hint)}")


def _tupled(value: object, hint: Any) -> object:
    """A list as a tuple where that is wanted, and the lists in it."""
    for each in _choices(hint):
        if isinstance(value, (list, tuple)) and get_origin(each) is tuple:
            inner = get_args(each)[:1] * len(value) if _of_many(each) else get_args(each)
            if len(inner) == len(value):
                return tuple(map(_tupled, value, inner))
    return value


@cache
def _hints(owner: Any) -> dict[str, Any]:
    return {name: hint for name, hint in get_type_hints(owner).items() if name != "return"}


def _choices(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _of_many(hint: Any) -> bool:
    return get_origin(hint) is Sequence or (get_origin(hint) is tuple and get_args(hint)[1:] == (...,))


def _fits(value: object, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is Literal:
        return value in inner
    if _of_many(hint) or origin is tuple:
        if not isinstance(value, Sequence) or isinstance(value, _TEXTS):
            return False
        kinds = inner[:1] * len(value) if _of_many(hint) else inner
        return len(kinds) == len(value) and all(map(_fits, value, kinds))
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            _fits(key, inner[0]) and _fits(item, inner[1]) for key, item in value.items()
        )
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return isinstance(value, origin) and not isinstance(value, _TEXTS)
    if origin is Callable:
        return callable(value)
    if getattr(hint, "_is_protocol", False):
        # isinstance() asks no __getattr__ since Python 3.12, with which one transport stands in front of another.
        members = [name for name in dir(hint) if not name.startswith("_")]
        return not getattr(hint, "_is_runtime_protocol", False) or all(hasattr(value, name) for name in members)
    if hint in (int, float):
        return (isinstance(value, int) and is_whole_number(value)) or (
            hint is float and isinstance(value, float) and value == value
        )
    if hint is Any:
        return True
    return not isinstance(hint, type) or isinstance(value, hint)


def _words(hint: Any) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(map(_words, inner))
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if origin is tuple and inner[1:] != (...,):
        return f"({', '.join(map(_words, inner))})"
    if origin is Mapping:
        return f"a mapping from {_words(inner[0])} to {_words(inner[1])}"
    if origin is Callable:
        return "a function"
    if origin is not None:
        return f"a list of which each is {_words(inner[0])}"
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return f"one of {hint.__name__}"
    name = getattr(hint, "__name__", str(hint))
    return f"{'an' if name[0] in 'AEIO' else 'a'} {name}"
