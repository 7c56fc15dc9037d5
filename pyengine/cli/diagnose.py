"""``pyengine diagnose``: files in, findings out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.console import Console

from pyengine.backlog.diagnose import diagnose, seen_too_seldom
from pyengine.backlog.evidence import Evidence, read_what_can_be
from pyengine.backlog.findings import Finding, Language, say
from pyengine.cli.findings import show_finding
from pyengine.cli.outlet import tell
from pyengine.cli.tables import show_line
from pyengine.errors import InvalidSourceError


class Answer(NamedTuple):
    """What was read, what follows from it, and which files could not be read."""

    evidence: Evidence
    found: list[Finding]
    refused: list[InvalidSourceError]

    @property
    def exit_code(self) -> int:
        """2 if a file, or all that is in the files, was not understood; 1 for warnings and errors."""
        if self.refused or (self.evidence.remarks and not self.evidence.count):
            return 2
        return int(any(finding.severity for finding in self.found))


def ask(files: Sequence[str], encoding: str = "", properties: Mapping[str, str] | None = None) -> Answer:
    """What the files say and what follows from it. Raises InvalidSourceError if none of them can be read."""
    evidence, refused = read_what_can_be(files, encoding, properties)
    if refused and not evidence.count:
        raise refused[0]
    return Answer(evidence, diagnose(evidence), refused)


def as_dict(
    evidence: Evidence, found: Sequence[Finding], refused: Sequence[InvalidSourceError] = ()
) -> dict[str, object]:
    """The JSON document."""
    return {
        "states": evidence.count,
        "findings": [finding.as_dict() for finding in found],
        "seen_too_seldom": [str(said) for said in seen_too_seldom(evidence)],
        "not_understood": [
            {"file": remark.file, "line": remark.line, "text": remark.text, "why": remark.why}
            for remark in evidence.remarks
        ],
        "not_read": [{"file": error.source, "why": error.problem} for error in refused],
    }


def show(evidence: Evidence, found: Sequence[Finding], console: Console, language: Language = "en") -> None:
    """One paragraph a finding, the worst first; then what was not understood."""
    for finding in found:
        show_finding(finding, console, language)
    if not found:
        nothing = say("nothing found in {count:,state that was|states that were} read", count=evidence.count)
        show_line(nothing.in_language(language), console)
    for said in seen_too_seldom(evidence):
        show_line(said.in_language(language), console)
    for remark in evidence.remarks[:20]:
        place = f"{remark.file}:{remark.line}" if remark.line else remark.file
        said = say("not understood: {place}: {text}: {why}", place=place, text=remark.text[:120], why=remark.why)
        tell(said.in_language(language))
    if len(evidence.remarks) > 20:
        said = say("not understood: {more:more place|more places}", more=len(evidence.remarks) - 20)
        tell(said.in_language(language))
