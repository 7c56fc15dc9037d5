"""How a finding looks on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from pyengine.backlog.findings import Finding, Language, Severity, translated

INDENT = 8
WIDTH = 100  # longer lines are hard to read
STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold blue"}


def show_finding(finding: Finding, console: Console, language: Language = "en") -> None:
    """Severity, code and place; then what shows it; then what to do, and for a trap the class that has the rule."""
    head = Text(f"{finding.severity.name.lower():<8}", STYLES[finding.severity])
    console.print(head + Text(finding.code, "bold") + Text(f"  {translated(finding.where, language)}"), soft_wrap=True)
    for line in finding.evidence:
        show_indented(str(translated(line, language)), console)
    show_indented(str(translated(finding.advice, language)), console, "green")
    if finding.source:
        show_indented(f"({finding.source})", console, "dim")


def show_indented(text: str, console: Console, style: str = "") -> None:
    """Wrapped on a terminal; elsewhere one line, so that a search finds the whole of it."""
    if not console.is_terminal:
        console.print(Text(" " * INDENT + text), soft_wrap=True)
        return
    for line in Text(text, style).wrap(console, min(console.width, WIDTH) - INDENT):
        console.print(Text(" " * INDENT) + line, soft_wrap=True)
