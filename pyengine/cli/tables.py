"""Tables in a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

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
