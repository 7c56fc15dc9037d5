"""Numbers in files: whole ones of 64 bits, or a reason why not."""

from __future__ import annotations


def whole(name: str, value: object) -> int:
    """A JSON number or string as a signed 64-bit integer. Raises ValueError that shows the field and what it holds."""
    try:
        number = int(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else None
    except ValueError:
        number = None
    if number is None or not -(2**63) <= number < 2**63:
        raise ValueError(f"{name} = {str(value)[:60]}")
    return number


def whole_or_none(name: str, value: object) -> int | None:
    """The same; None if nothing is said."""
    return None if value is None else whole(name, value)


def number_or_none(name: str, value: object) -> float | None:
    """A JSON number, None if nothing is said. Raises ValueError."""
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return value
    raise ValueError(f"{name} = {str(value)[:60]}")


def object_of(name: str, value: object) -> dict[str, object]:
    """A JSON object. Raises ValueError."""
    if not isinstance(value, dict):
        raise ValueError(f"{name} = {str(value)[:60]}")
    return value
