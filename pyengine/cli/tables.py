"""Tables in a terminal, and lines below them."""

from __future__ import annotations

from typing import Any

import rich.table
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.text import Text

from pyengine.visible import one_line

NARROWEST = 80  # columns; rich cuts the numbers of a table that has less, and half a number is another number


class Table(rich.table.Table):
    """A table whose cells are names and numbers, each on a line of its own and without a command."""

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """As rich's."""
        super().add_row(*(plain(cell) if isinstance(cell, (str, Text)) else cell for cell in cells), **options)


def plain(text: str | Text, style: str = "") -> Text:
    """A string of one line without control characters; no part of it is markup."""
    if isinstance(text, str):
        return Text(one_line(text), style)
    shown = one_line(text.plain)
    return text if shown == text.plain else Text(shown, text.style)


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
    console.print(plain(line, style), soft_wrap=not console.is_terminal)
