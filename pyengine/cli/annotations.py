"""Findings in the forms that code hosts read: SARIF 2.1.0 and GitHub's workflow commands. They are in English."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from pyengine import __version__
from pyengine.backlog.findings import Finding, Said, Severity
from pyengine.visible import one_line

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_SARIF = {Severity.INFO: "note", Severity.WARNING: "warning", Severity.ERROR: "error"}
_GITHUB = {Severity.INFO: "notice", Severity.WARNING: "warning", Severity.ERROR: "error"}


def line_of(finding: Finding, text: str) -> int:
    """The line that ``where`` names; else the first line of the file with the last word of ``where``, which is the name
    of a queue, group or client; else 1. A name in quotes goes before one in a comment.
    """
    if isinstance(finding.where, Said) and isinstance(line := finding.where.fields.get("line"), int):
        return line
    name = (str(finding.where).split() or [""])[-1]
    place = next((place for each in (f'"{name}"', f"'{name}'", name) if (place := text.find(each)) >= 0), -1)
    return 1 if place < 0 else text.count("\n", 0, place) + 1


def message_of(finding: Finding) -> str:
    """The whole finding as lines."""
    return "\n".join([str(finding.where), *map(str, finding.evidence), str(finding.advice)])


def sarif(
    found: Sequence[tuple[str, Finding]], texts: dict[str, str], refused: Sequence[tuple[str, Exception]]
) -> dict[str, Any]:
    """A SARIF log of one run. texts: of the files, by name. refused: files that could not be read, and why."""
    codes = list(dict.fromkeys(finding.code for _, finding in found))
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "pyengine lint",
                        "version": __version__,
                        "rules": [{"id": code, "shortDescription": {"text": code.replace("_", " ")}} for code in codes],
                    }
                },
                "results": [
                    {
                        "ruleId": finding.code,
                        "ruleIndex": codes.index(finding.code),
                        "level": _SARIF[finding.severity],
                        "message": {"text": message_of(finding)},
                        "locations": [_location(file, line_of(finding, texts.get(file, "")), str(finding.where))],
                    }
                    for file, finding in found
                ],
                "invocations": [
                    {
                        "executionSuccessful": not refused,
                        "toolExecutionNotifications": [
                            {"level": "error", "message": {"text": str(error)}, "locations": [_location(file, 1)]}
                            for file, error in refused
                        ],
                    }
                ],
            }
        ],
    }


def _location(file: str, line: int, where: str = "") -> dict[str, Any]:
    uri = quote(PurePath(file).as_posix()) if not PurePath(file).is_absolute() else PurePath(file).as_uri()
    place = {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}
    logical = {"logicalLocations": [{"fullyQualifiedName": where}]} if where else {}
    return {"physicalLocation": place, **logical}


def github(
    found: Sequence[tuple[str, Finding]], texts: dict[str, str], refused: Sequence[tuple[str, Exception]]
) -> Iterator[str]:
    """A line for each finding, which GitHub shows beside the file, and one for each file that could not be read."""
    for file, finding in found:
        line = line_of(finding, texts.get(file, ""))
        kind, text = _GITHUB[finding.severity], message_of(finding)
        yield f"::{kind} file={_property(file)},line={line},title={_property(finding.code)}::{_data(text)}"
    for file, error in refused:
        yield f"::error file={_property(file)},line=1,title=not_read::{_data(str(error))}"


def _data(text: str) -> str:
    """A message: its ends of lines and percent signs are numbers; nothing in it begins another command."""
    lines = (one_line(line) for line in text.split("\n"))
    return "%0A".join(line.replace("%", "%25").replace("\r", "%0D") for line in lines)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
