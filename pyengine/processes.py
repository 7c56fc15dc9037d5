"""Objects that live in one process: in a process that is forked from it they raise at the first call.

Their threads, locks and files are the parent's; closing one has no effect. A fork gives the copies of these objects
a class whose every attribute raises, so that no call of the parent pays for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from pyengine.errors import IllegalStateError

_living: WeakSet[Any] = WeakSet()
_process = os.getpid()
_inherited: list[Any] = []  # kept: what they would close when they are collected is the parent's
_forgets: list[Callable[[], None]] = []


def belong(thing: object) -> None:
    """``thing`` is of no use in a process that is forked from this one."""
    _living.add(thing)


def forget_at_fork(forget: Callable[[], None]) -> None:
    """Call ``forget`` in a process that is forked: it drops what a module remembers of this one."""
    _forgets.append(forget)


def leave(*arguments: object) -> None:
    """What closes, and is the parent's to close."""


def _foreign(kind: Any, process: int) -> Any:
    """The class of copies of objects of ``kind`` that belong to ``process``."""

    def refuse(self: object, name: str) -> Any:
        if name in ("__class__", "__dict__", "__doc__", "__module__"):
            return object.__getattribute__(self, name)
        if name in ("close", "shutdown"):  # a ``with`` that was entered in the parent ends without a word
            return leave
        raise IllegalStateError(
            f"this {kind.__name__} belongs to process {process}, and this is process {os.getpid()}, forked from it: "
            f"make a {kind.__name__} of its own after the fork"
        )

    def describe(self: object) -> str:
        return f"<{kind.__name__} of process {process}>"

    methods = {
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__getattribute__": refuse,
        "__setattr__": lambda self, name, value: refuse(self, name),
        "__repr__": describe,
        "__enter__": lambda self: refuse(self, "__enter__"),
        "__exit__": leave,
        "__del__": leave,
    }
    return type(kind.__name__, (kind,), methods)


def _in_child() -> None:
    global _process
    process, _process = _process, os.getpid()
    foreign: dict[type, Any] = {}
    for thing in list(_living):
        kind = type(thing)
        if kind not in foreign:
            foreign[kind] = _foreign(kind, process)
        thing.__class__ = foreign[kind]
        _inherited.append(thing)
    _living.clear()
    for forget in _forgets:
        forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
