"""Times as a user gives them: milliseconds as a whole number, or a ``timedelta``. Only ``timeout=`` is in seconds."""

from __future__ import annotations

from datetime import timedelta
from operator import index
from typing import TYPE_CHECKING

from pyengine.errors import ConfigurationError, shown
from pyengine.whole_numbers import is_whole_number

_MILLISECOND = timedelta(milliseconds=1)

if TYPE_CHECKING:

    class Milliseconds:
        """The type of a field that is set with a whole number of ms or a timedelta and read as a whole number."""

        def __init__(self, default: int, /) -> None: ...
        def __get__(self, owner: object, kind: type, /) -> int: ...
        def __set__(self, owner: object, value: int | timedelta, /) -> None: ...

else:

    class Milliseconds(int):
        """The annotation of a field that takes ms or a timedelta; a call makes a plain number, the field's default."""

        def __new__(cls, default: int) -> int:
            return int(default)


def whole_milliseconds(span: timedelta) -> int:
    """A span in ms. A part of one counts as a whole one, so that a span above 0 never becomes 0, which often means for
    ever."""
    return -(-span // _MILLISECOND)


def milliseconds(option: str, value: int | timedelta) -> int:
    """A time in ms. Raises ConfigurationError, which calls it ``option``, for what is neither a whole number nor a
    timedelta."""
    if isinstance(value, timedelta):
        return whole_milliseconds(value)
    if not is_whole_number(value):
        hint = "a second is 1000, or timedelta(seconds=1)"
        raise ConfigurationError(option, shown(value), "must be a whole number of milliseconds, or a timedelta", hint)
    return index(value)


def seconds(timeout: float | timedelta) -> float:
    """What ``timeout=`` says: a number of seconds, or a timedelta."""
    return timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
