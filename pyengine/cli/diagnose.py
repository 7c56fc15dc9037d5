"""``pyengine diagnose``: files in, findings out."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console

from pyengine.backlog.diagnose import diagnose
from pyengine.backlog.evidence import Evidence, read_files
from pyengine.backlog.findings import Finding, Language, say
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


def show(evidence: Evidence, found: Sequence[Finding], console: Console, language: Language = "en") -> None:
    """One paragraph a finding, the worst first; then what was not understood."""
    for finding in found:
        show_finding(finding, console, language)
    if not found:
        nothing = say("nothing found in {count:,} states that were read", count=evidence.count)
        console.print(nothing.in_language(language), highlight=False)
    for remark in evidence.remarks[:20]:
        place = f"{remark.file}:{remark.line}" if remark.line else remark.file
        said = say("not understood: {place}: {text}: {why}", place=place, text=remark.text[:120], why=remark.why)
        print(said.in_language(language), file=sys.stderr)
    if len(evidence.remarks) > 20:
        said = say("not understood: {more} more places", more=len(evidence.remarks) - 20)
        print(said.in_language(language), file=sys.stderr)
