"""How a finding looks on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from pyengine.backlog.findings import Finding, Severity

INDENT = (0, 0, 0, 8)
STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold blue"}


def show_finding(finding: Finding, console: Console) -> None:
    """Severity, code and place; then what shows it; then what to do."""
    head = Text(f"{finding.severity.name.lower():<8}", STYLES[finding.severity])
    console.print(head + Text(finding.code, "bold") + Text(f"  {finding.where}"))
    for line in finding.evidence:
        console.print(Padding(Text(line), INDENT))
    console.print(Padding(Text(finding.advice, "green"), INDENT))
