"""How a finding looks on a terminal."""

from __future__ import annotations

from rich.cells import set_cell_size
from rich.console import Console
from rich.text import Text

from pyengine.backlog.findings import Finding, Language, Severity, chinese, say, translated
from pyengine.cli.tables import plain
from pyengine.visible import one_line

INDENT = 8
WIDTH = 100  # longer lines are hard to read
STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold blue"}


def show_finding(finding: Finding, console: Console, language: Language = "en") -> None:
    """Severity, code (in Chinese with its meaning) and place; then what shows it; then what to do, and for a trap the
    class that has the rule."""
    severity, meaning = finding.severity.name.lower(), ""
    if language == "zh":
        severity, meaning = chinese()[severity], "  " + chinese().get(finding.code, "")
    head = Text(set_cell_size(severity, INDENT), STYLES[finding.severity])
    place = plain(f"{meaning}  {translated(finding.where, language)}")
    console.print(head + Text(finding.code, "bold") + place, soft_wrap=True)
    for line in finding.evidence:
        show_indented(str(translated(line, language)), console)
    show_indented(str(translated(finding.advice, language)), console, "green")
    if finding.source:
        show_indented(f"({finding.source})", console, "dim")
    for each in finding.consequences:
        of_it = say("{code}, {where}, comes of it: {first}", code=each.code, where=each.where, first=each.evidence[0])
        show_indented(of_it.in_language(language), console, "dim")


def show_indented(text: str, console: Console, style: str = "") -> None:
    """Wrapped on a terminal; elsewhere one line, so that a search finds the whole of it. What would end the line, as a
    name may, is shown."""
    text = one_line(text)
    if not console.is_terminal:
        console.print(plain(" " * INDENT + text), soft_wrap=True)
        return
    for line in plain(text, style).wrap(console, min(console.width, WIDTH) - INDENT):
        console.print(Text(" " * INDENT) + line, soft_wrap=True)
