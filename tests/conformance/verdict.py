"""What replaying one recorded case can come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Verdict:
    """agree; or differ, with what the real software and what pyengine answer; or unsupported, with a reason."""

    kind: str
    asked: str = ""
    expected: Any = None
    got: Any = None


def compare(asked: str, expected: Any, got: Any) -> Verdict:
    """agree if both answers are equal, else differ."""
    return Verdict("agree") if expected == got else Verdict("differ", asked, expected, got)


def unsupported(reason: str) -> Verdict:
    """The runner has no way to express this case."""
    return Verdict("unsupported", reason)
