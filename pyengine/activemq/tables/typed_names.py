"""Names of the columns in which a property's values have a type of their own each: see typed_texts."""

from __future__ import annotations

from collections.abc import Iterable

TYPED = "__json:"  # before the name of a property
NO_PROPERTY = "is not a value that a property can have"


def typed_names(names: Iterable[str]) -> tuple[str, ...]:
    """The properties that have such a column among these."""
    return tuple(name.removeprefix(TYPED) for name in names if name.startswith(TYPED))
