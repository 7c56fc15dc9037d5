"""Enumerations of the core that know their members only."""

from enum import Enum


def close(*kinds: type[Enum]) -> None:
    """Cython makes a member, for good, of every value that is asked for; these raise ValueError again."""
    for kind in kinds:
        kind._missing_ = classmethod(lambda cls, value: None)  # type: ignore[method-assign, assignment]
