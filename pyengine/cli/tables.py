"""Tables in a terminal, and lines below them."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

NARROWEST = 80  # columns; rich cuts the numbers of a table that has less, and half a number is another number


def show_table(table: Table, console: Console) -> None:
    """A table as wide as it needs, up to 80 columns in a terminal that is narrower; that breaks its lines itself."""
    width = console.width
    wanted = Measurement.get(console, console.options.update(width=NARROWEST), table).maximum
    console.width = max(width, min(wanted, NARROWEST))
    try:
        console.print(table, crop=False)
    finally:
        console.width = width


def show_line(line: str, console: Console, style: str = "") -> None:
    """Wrapped on a terminal; elsewhere one line, so that a search finds the whole of it."""
    console.print(Text(line, style), soft_wrap=not console.is_terminal)
