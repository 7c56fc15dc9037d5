"""A finding: what is wrong where, what shows it, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Severity(IntEnum):
    """How much it matters. INFO: worth knowing, nothing to mend. WARNING: it will hurt. ERROR: it hurts now."""

    INFO = 0
    WARNING = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """code: the rule's name, stable for programs. where: the queue, group, client or thread. evidence: what was seen,
    the file's own numbers and words. advice: what to do."""

    code: str
    severity: Severity
    where: str
    evidence: tuple[str, ...]
    advice: str

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "code": self.code,
            "severity": self.severity.name.lower(),
            "where": self.where,
            "evidence": list(self.evidence),
            "advice": self.advice,
        }
