"""``dataclass`` as the standard library has it, except that a method is made when it is first used.

The standard decorator compiles six methods of a frozen class, in half a millisecond; a program that imports a hundred
of them uses ten. Here ``__init__`` is compiled when it is first looked up, by the standard decorator itself; equality,
hash and repr are closures over the names of the fields. Type checkers see the standard decorator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any


class Deferred:
    """A method of a class that is made when it is first looked up, and then takes the place of this.

    make: called with the class, returns the function or staticmethod. Two threads may make it both; the last stays.
    """

    __slots__ = ("_kind", "_make", "_method_name")

    def __init__(self, kind: type, method_name: str, make: Callable[[Any], Any]) -> None:
        self._kind = kind
        self._method_name = method_name
        self._make = make

    def __get__(self, one: object, kind: type | None = None) -> Any:
        method = self._make(self._kind)
        setattr(self._kind, self._method_name, method)
        return method.__get__(one, kind)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(kind=None, /, *, frozen=False, slots=False, eq=True, kw_only=False):
        """Make a class a dataclass; frozen, slots, eq and kw_only as of dataclasses.dataclass."""

        def declare(kind):
            return _declared(kind, frozen=frozen, slots=slots, eq=eq, kw_only=kw_only)

        return declare if kind is None else declare(kind)


def _declared(kind: type, *, frozen: bool, slots: bool, eq: bool, kw_only: bool) -> type:
    defined = vars(kind)
    for each in kind.__bases__:
        parameters = getattr(each, "__dataclass_params__", None)
        if parameters is not None and parameters.frozen is not frozen:
            raise TypeError(f"{kind.__name__} and its base {each.__name__} must both be frozen, or neither")
    documented = kind.__doc__ is not None
    if not documented:
        kind.__doc__ = kind.__name__  # or the signature is written there, which compiles __init__
    # Of a frozen class the standard decorator compiles two methods; it refuses a derived one that is not.
    derived = any(hasattr(each, "__dataclass_params__") and frozen for each in kind.__bases__)
    make = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only, frozen=derived)
    declared: Any = make(kind)
    known = dataclasses.fields(declared)
    if not documented:
        declared.__doc__ = f"{declared.__name__}({', '.join(each.name for each in known if each.init)})"
    parameters = declared.__dataclass_params__
    parameters.init = parameters.repr = True
    parameters.eq = eq
    parameters.frozen = frozen

    def add(method: Any) -> None:
        if method.__name__ not in defined:
            method.__qualname__ = f"{declared.__qualname__}.{method.__name__}"
            setattr(declared, method.__name__, method)

    if "__init__" not in defined:
        declared.__init__ = Deferred(declared, "__init__", _initialiser)
    add(_representation(tuple(each.name for each in known if each.repr)))
    if eq:
        hashed = defined.get("__hash__") is not None
        add(_equality([each for each in known if each.compare]))
        if frozen and not hashed:
            declared.__hash__ = _hashing([each for each in known if (each.compare if each.hash is None else each.hash)])
            declared.__hash__.__qualname__ = f"{declared.__qualname__}.__hash__"
        elif not frozen and not hashed:
            declared.__hash__ = None
    if frozen:
        for method in _refusals(declared, frozenset(each.name for each in known)):
            add(method)
        if slots:
            for method in _pickling():
                add(method)
    return declared  # type: ignore[no-any-return]


def _initialiser(kind: Any) -> Any:
    """``__init__`` of a dataclass as the standard decorator writes it, for a class with the same fields."""
    known = [
        (
            each.name,
            each.type,
            dataclasses.field(
                default=each.default,
                default_factory=each.default_factory,
                init=each.init,
                kw_only=each.kw_only,
            ),
        )
        for each in dataclasses.fields(kind)
    ]
    namespace = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": ""}
    if hasattr(kind, "__post_init__"):
        namespace["__post_init__"] = kind.__post_init__
    same: Any = dataclasses.make_dataclass(
        kind.__name__,
        known,
        namespace=namespace,
        repr=False,
        eq=False,
        frozen=kind.__dataclass_params__.frozen,
        slots="__slots__" in vars(kind),  # __init__ then sets the default of a field that is not an argument
    )
    return same.__init__


def _representation(names: tuple[str, ...]) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807
        values = ", ".join(f"{each}={getattr(self, each)!r}" for each in names)
        return f"{self.__class__.__qualname__}({values})"

    return __repr__


def _values(known: list[dataclasses.Field[Any]]) -> Callable[[Any], Any]:
    """What an object has in these fields, as a tuple; of one field the value itself."""
    return attrgetter(*(each.name for each in known)) if known else lambda _: ()


def _equality(known: list[dataclasses.Field[Any]]) -> Callable[[Any, object], bool]:
    values = _values(known)
    alone = len(known) == 1

    def __eq__(self: Any, other: object) -> bool:  # noqa: N807
        if other.__class__ is not self.__class__:
            return NotImplemented
        if alone:  # in a tuple an object is equal to itself, even where its == denies it
            return (values(self),) == (values(other),)
        return values(self) == values(other)  # type: ignore[no-any-return]

    return __eq__


def _hashing(known: list[dataclasses.Field[Any]]) -> Callable[[Any], int]:
    values = _values(known)
    if len(known) == 1:
        return lambda self: hash((values(self),))
    return lambda self: hash(values(self))


def _refusals(kind: Any, names: frozenset[str]) -> tuple[Callable[..., None], ...]:
    """``__setattr__`` and ``__delattr__`` of a frozen class."""

    def __setattr__(self: object, attribute: str, value: object) -> None:  # noqa: N807
        if type(self) is kind or attribute in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {attribute!r}")
        super(kind, self).__setattr__(attribute, value)

    def __delattr__(self: object, attribute: str) -> None:  # noqa: N807
        if type(self) is kind or attribute in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {attribute!r}")
        super(kind, self).__delattr__(attribute)

    return __setattr__, __delattr__


def _pickling() -> tuple[Callable[..., Any], ...]:
    """``__getstate__`` and ``__setstate__`` of a frozen class with slots."""

    def __getstate__(self: Any) -> list[Any]:  # noqa: N807
        return [getattr(self, each.name) for each in dataclasses.fields(self)]

    def __setstate__(self: Any, state: list[Any]) -> None:  # noqa: N807
        for each, value in zip(dataclasses.fields(self), state, strict=False):
            object.__setattr__(self, each.name, value)

    return __getstate__, __setstate__
