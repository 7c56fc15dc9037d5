"""``pyengine lint``: configuration files in, traps out."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from pyengine.backlog.findings import Finding
from pyengine.backlog.lint import lint, lint_consumer
from pyengine.cli.findings import show_finding
from pyengine.errors import InvalidSourceError
from pyengine.topology import Topology

Found = list[tuple[str, Finding]]


def ask(files: Sequence[str]) -> Found:
    """The findings of each file, with its name. A TOML file with ``consumer_group`` is a push consumer's parameters."""
    found: Found = []
    for file in files:
        name = "standard input" if file == "-" else file
        try:
            text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
        except OSError as error:
            raise InvalidSourceError(file, f"cannot be read: {error.strerror}") from error
        found += [(name, finding) for finding in _of_text(text, name)]
    return found


def _of_text(text: str, name: str) -> list[Finding]:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        table = {}  # the topology's reader says what is wrong, with the line
    if "consumer_group" in table:
        return lint_consumer(table)
    return lint(Topology.from_text(text, name))


def as_dict(found: Found) -> dict[str, object]:
    """The JSON document."""
    return {"findings": [{"file": file, **finding.as_dict()} for file, finding in found]}


def show(found: Found, console: Console) -> None:
    """By file, the worst first."""
    for file in dict.fromkeys(file for file, _ in found):
        console.print(Text(file, "underline"))
        for name, finding in found:
            if name == file:
                show_finding(finding, console)
    if not found:
        console.print("no traps found")
