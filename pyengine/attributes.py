"""Attributes that can be set: a name that nothing would read raises, with the name that was meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache, wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Never, TypeVar

from pyengine.dataclass import Deferred
from pyengine.errors import UnknownNameError, shown, unknown_arguments

Kind = TypeVar("Kind", bound=type)


def letters(name: str) -> str:
    """A name without its spelling: ``timeToLive``, ``time_to_live`` and ``TIME_TO_LIVE`` are one."""
    return name.replace("_", "").casefold()


def meant(name: str, known: Iterable[str]) -> str:
    """The known name that is spelled otherwise, or with a slip; empty if there is none."""
    from difflib import get_close_matches  # it takes time to import, and few err

    plain = {letters(each): each for each in known}
    close = get_close_matches(letters(name), plain, n=1, cutoff=0.85)
    return plain[close[0]] if close else ""


def unknown_name(owner: str, name: str, value: object, known: Iterable[str]) -> UnknownNameError:
    """The error for a name that nothing reads. owner: the class or object that should have it."""
    near = meant(name, known)
    return UnknownNameError(
        f"{owner}.{name}", shown(value), "no such attribute, nothing would read it", near and f"did you mean {near!r}?"
    )


class Renamed:
    """An attribute that has another name now, because its values mean something else: it raises, read or set.

    new: its name now. why: what has changed.
    """

    def __init__(self, new: str, why: str) -> None:
        self.new = new
        self._why = why

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def _error(self, owner: type, value: object) -> UnknownNameError:
        return UnknownNameError(
            f"{owner.__name__}.{self._name}", shown(value, str), self._why, f"it is {self.new!r} now"
        )

    if not TYPE_CHECKING:  # of a class it is itself

        def __get__(self, owner: object, kind: type) -> Renamed:
            if owner is None:
                return self
            raise self._error(kind, "...")

    def __set__(self, owner: object, value: Never) -> None:
        raise self._error(type(owner), value)


def _public(kind: type) -> set[str]:
    """The public names that objects of a class have."""
    found: set[str] = set()
    for each in kind.__mro__:
        names = (*vars(each), *getattr(each, "__annotations__", ()))
        found.update(name for name in names if name[0] != "_" and not isinstance(vars(each).get(name), Renamed))
    return found


def _settable(kind: type) -> list[str]:
    return sorted(name for name in _public(kind) if not callable(getattr(kind, name, None)))


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "pyengine"


@cache
def _declaration(kind: Any) -> tuple[type, frozenset[str]]:
    """Our own class of a class, and the names that are annotated in it and above it."""
    declared: set[str] = set()
    for each in kind.__mro__:
        declared.update(getattr(each, "__annotations__", ()))
    ours = [each for each in kind.__mro__ if _is_ours(each)]
    return ours[0], frozenset(declared)


class Declared:
    """A class whose attributes are those that it declares; setting another one raises UnknownNameError.

    What an annotation alone declares is set once, by the class itself, unless it is ``_changeable``. A user's own class
    may have attributes of its own, except names that are nearly one of these. _elsewhere: letters of a name -> what to
    do instead.
    """

    __slots__ = ()
    _elsewhere: ClassVar[Mapping[str, str]] = {}
    _changeable: ClassVar[frozenset[str]] = frozenset()

    if not TYPE_CHECKING:  # which says so of every name

        def __setattr__(self, name: str, value: Any) -> None:
            kind = type(self)
            if name[:1] != "_" and not hasattr(kind, name):
                self._check_declared(kind, name, value)
            super().__setattr__(name, value)

    def _check_declared(self, kind: type, name: str, value: object) -> None:
        own, declared = _declaration(kind)
        if name in declared:
            if name in vars(self) and name not in self._changeable and own is kind:
                problem = f"is fixed once the {own.__name__} is made"
                raise UnknownNameError(f"{own.__name__}.{name}", shown(value), problem)
            return
        instead = self._elsewhere.get(letters(name))
        if instead is not None:
            raise UnknownNameError(f"{own.__name__}.{name}", shown(value), "no such attribute", instead)
        error = unknown_name(own.__name__, name, value, _settable(own))
        if own is kind or error.hint:
            raise error


def frozen(kind: Kind) -> Kind:
    """Of a frozen dataclass, above its decorator: setting an attribute raises an error with what to do instead."""

    def refuse(self: object, name: str, value: object) -> None:
        if name not in _public(kind):
            if not _is_ours(type(self)):
                object.__setattr__(self, name, value)
                return
            raise unknown_name(kind.__name__, name, value, _settable(kind))
        problem = f"a {kind.__name__} cannot be changed"
        hint = f"make another one: dataclasses.replace(this, {name}={shown(value)})"
        raise UnknownNameError(f"{kind.__name__}.{name}", shown(value), problem, hint)

    def restore(self: object, state: Sequence[object]) -> None:
        known = fields(kind)
        for each, value in zip(known, state, strict=False):
            object.__setattr__(self, each.name, value)
        for each in known[len(state) :]:
            value = each.default if each.default_factory is MISSING else each.default_factory()
            object.__setattr__(self, each.name, value)

    kind.__setattr__ = refuse  # type: ignore[method-assign, assignment]
    if "__slots__" in vars(kind):
        # A pickle has the values in the order of the fields: a new field comes last, and older pickles lack it.
        kind.__setstate__ = restore  # type: ignore[attr-defined]
    return kind


def named_arguments(kind: Kind) -> Kind:
    """Of a class, above its other decorators: a keyword that its constructor does not take raises UnknownNameError with
    the one that was meant.

    Keywords are looked at when the object is made, before it is initialised: nothing stands around ``__init__``, behind
    whose end Ctrl-C could lose what it has opened. A class derived from it takes what its own constructor takes.
    """
    own = vars(kind).get("__new__")

    def make(kind: Any) -> Any:
        inherited = own.__get__(None, kind) if own is not None else super(kind, kind).__new__
        initialise = kind.__init__
        named = inherited if issubclass(kind, tuple) else initialise
        known = [] if named is object.__init__ else list(signature(named).parameters)[1:]
        names = frozenset(known)

        @wraps(named)
        def new(cls: Any, *values: Any, **named: Any) -> Any:
            if not named.keys() <= names and cls.__init__ is initialise:
                unknown = {name: value for name, value in named.items() if name not in names}
                raise unknown_arguments(kind.__name__, unknown, known)
            return inherited(cls) if inherited is object.__new__ else inherited(cls, *values, **named)

        return staticmethod(new)

    kind.__new__ = Deferred(kind, "__new__", make)  # type: ignore[method-assign, assignment]
    return kind
