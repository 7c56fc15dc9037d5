"""What a broker's file says and pyengine does not do."""

from __future__ import annotations

from pyengine.attributes import frozen
from pyengine.dataclass import dataclass


@frozen
@dataclass(frozen=True, slots=True)
class NotModelled:
    """Something a file says that pyengine does not do.

    element: as ``policyEntry queue="A.>"``; name: its attribute or child, or empty for the element itself. value: as
    written, placeholders included; of a password: ``***``. reason: why, in a sentence. changes_answers: True if it may
    change which consumer gets which message, so that the real broker would decide otherwise.
    """

    file: str
    line: int
    element: str
    name: str
    value: str
    reason: str
    changes_answers: bool

    def __str__(self) -> str:
        what = f"{self.element}: {self.name}" if self.name else self.element
        given = f'="{self.value}"' if self.value and self.name else ""
        return f"{self.file}:{self.line}: {what}{given}: {self.reason}"
