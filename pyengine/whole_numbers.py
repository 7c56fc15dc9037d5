"""What counts as a whole number: one test for every parameter, size, offset and time in ms that a user gives."""

from __future__ import annotations

from operator import index
from typing import TypeGuard

from pyengine.errors import ConfigurationError, shown


def is_whole_number(value: object, low: int | None = None, high: int | None = None) -> TypeGuard[int]:
    """True for an int, numpy's too, from ``low`` to ``high``; never for True and False, nor for 1.0."""
    try:
        number = index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return not isinstance(value, bool) and (low is None or low <= number) and (high is None or number <= high)


def whole_number(name: str, value: object, limit: int = 2**63) -> int:
    """The value as Java's long takes it, or its int, whose ``limit`` is 2**31. Raises ConfigurationError, which calls
    it ``name``, for any other."""
    if not is_whole_number(value, -limit, limit - 1):
        raise ConfigurationError(name, shown(value), f"a whole number of {limit.bit_length()} bits is needed")
    return index(value)


def whole_number_from(name: str, value: object, low: int, high: int) -> int:
    """The value, from ``low`` to ``high``. Raises ConfigurationError, which calls it ``name``, for any other."""
    if not is_whole_number(value, low, high):
        raise ConfigurationError(name, value, f"must be a whole number from {low} to {high}")
    return index(value)
