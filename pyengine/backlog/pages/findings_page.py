"""Findings as an offline page."""

from __future__ import annotations

from collections.abc import Sequence

from pyengine import __version__
from pyengine.backlog.diagnosis.evidence import Remark
from pyengine.backlog.findings import Finding, Language, Severity
from pyengine.backlog.pages import page as pages


def render(
    title: str,
    findings: Sequence[Finding],
    remarks: Sequence[Remark] = (),
    language: Language = "en",
    files: Sequence[str] = (),
    hints: Sequence[str] = (),
    read: Sequence[str] = (),
    inputs: Sequence[str] = (),
) -> str:
    """The page as text. title: English words of the pages ("Diagnosis"). files: of each finding, if there are
    several and the finding itself does not name one. hints: what to bring, or to look at again. read: a line for each
    file. inputs: the files without such lines, also those that nothing was found in. Raises MissingExtraError without
    jinja2.

    In Chinese everything is, but what the files themselves say: names, parameters, lines of logs and stacks.
    """
    counts = {severity.name.lower(): sum(each.severity == severity for each in findings) for severity in Severity}
    several = len(set(files)) > 1
    placed = [
        (each, files[number] if several and not each.where.startswith(files[number]) else "")
        for number, each in enumerate(findings)
    ]
    kinds: dict[str, list[int]] = {}  # code -> places of its findings; those of one kind behind the first are folded
    for number, finding in enumerate(findings):
        kinds.setdefault(finding.code, []).append(number)
    return pages.render(
        "findings.html",
        language,
        title=title,
        kinds=kinds,
        version=__version__,
        inputs=[] if read else list(dict.fromkeys([*inputs, *files])),
        findings=placed,
        remarks=remarks,
        counts=counts,
        hints=hints,
        read=read,
    )
