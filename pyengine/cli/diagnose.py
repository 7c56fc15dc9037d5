"""``pyengine diagnose``: files in, findings out."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console

from pyengine.backlog.diagnose import diagnose
from pyengine.backlog.evidence import Evidence, read_files
from pyengine.backlog.findings import Finding
from pyengine.cli.findings import show_finding


def ask(files: Sequence[str]) -> tuple[Evidence, list[Finding]]:
    """What the files say and what follows from it."""
    evidence = read_files(files)
    return evidence, diagnose(evidence)


def as_dict(evidence: Evidence, found: Sequence[Finding]) -> dict[str, object]:
    """The JSON document."""
    return {
        "states": evidence.count,
        "findings": [finding.as_dict() for finding in found],
        "not_understood": [
            {"file": remark.file, "line": remark.line, "text": remark.text, "why": remark.why}
            for remark in evidence.remarks
        ],
    }


def show(evidence: Evidence, found: Sequence[Finding], console: Console) -> None:
    """One paragraph a finding, the worst first; then what was not understood."""
    for finding in found:
        show_finding(finding, console)
    if not found:
        console.print(f"nothing found in {evidence.count:,} states that were read", highlight=False)
    for remark in evidence.remarks[:20]:
        place = f"{remark.file}:{remark.line}" if remark.line else remark.file
        print(f"not understood: {place}: {remark.text[:120]}: {remark.why}", file=sys.stderr)
    if len(evidence.remarks) > 20:
        print(f"not understood: {len(evidence.remarks) - 20} more places", file=sys.stderr)
