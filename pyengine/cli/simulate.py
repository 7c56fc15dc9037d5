"""``pyengine simulate``: variants side by side."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from pyengine.backlog.diagnosis.evidence.opening import open_whole
from pyengine.backlog.findings import Language, say, word
from pyengine.backlog.simulate import scenario
from pyengine.backlog.simulate.queues import Simulation
from pyengine.backlog.simulate.scenario import Scenario
from pyengine.cli.tables import Table, plain, show_line, show_table

POINTS = 200


def ask(file: str, encoding: str = "", language: Language = "en") -> tuple[Scenario, dict[str, Simulation]]:
    """Every variant of a scenario, played. Raises InvalidSourceError, InvalidTopologyError."""
    opened = open_whole(file, encoding)
    asked = scenario.parse(opened.text, opened.name)
    played: dict[str, Simulation] = {}
    with _progress(len(asked.variants), language) as advance:
        for variant in asked.variants:
            played[variant.name] = variant.play(asked.workload, asked.until)
            advance()
    return asked, played


@contextmanager
def _progress(total: int, language: Language) -> Iterator[Any]:
    console = Console(stderr=True)
    words = say("simulating").in_language(language)
    columns = (TextColumn(words), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bars = Progress(*columns, console=console, transient=True)
    task = bars.add_task("", total=total)
    with bars if console.is_terminal else nullcontext():  # rich 13 ends one that shows nothing with a line
        yield lambda: bars.advance(task)


def as_dict(asked: Scenario, played: dict[str, Simulation]) -> dict[str, Any]:
    """The JSON document: a summary of each variant, and its series over time."""
    return {
        "title": asked.title,
        "variants": {name: {**found.summary(), "series": series(found)} for name, found in played.items()},
    }


def series(found: Simulation) -> dict[str, list[float]]:
    """Backlog, load and the time consumed up to, at POINTS moments."""
    times = np.linspace(0, found.end / 1e9, POINTS)
    return {
        "seconds": [round(float(at), 6) for at in times],
        "backlog": found.backlog(times).tolist(),
        "load": found.load(times).tolist(),
    }


def show(asked: Scenario, played: dict[str, Simulation], console: Console, language: Language = "en") -> None:
    """One row a variant (delay: mean; backlog, load: the most at any time); below it why messages are still held."""
    if asked.title:
        console.print(plain(asked.title, "bold"))
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(word("variant", language), min_width=20, overflow="fold")
    for heading in ("finished", "waiting", "delay", "p99", "backlog", "load"):
        table.add_column(word(heading, language), justify="right", no_wrap=True)
    for name, found in played.items():
        row = found.summary()
        table.add_row(
            Text(name, "bold"),
            f"{row['finished']:,}",
            Text(f"{row['backlog_end']:,}", "bold red" if row["backlog_end"] else ""),
            *(_seconds(row[key]) for key in ("delay_mean", "delay_p99")),
            f"{row['backlog_max']:,}",
            f"{row['load_max']:,}",
        )
    show_table(table, console)
    for name, found in played.items():
        if found.held:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in found.held.items())
            held = say("{variant}: held at the end: {reasons}", variant=name, reasons=reasons)
            show_line(held.in_language(language), console, "red")
        for line in found.lines():
            show_line(f"{name}: {line.in_language(language)}", console, "yellow")
        idle = [each for each, (work, _) in found.work.items() if not work]
        if idle:
            line = say("{variant}: never worked: {names}", variant=name, names=", ".join(idle[:8]))
            show_line(line.in_language(language), console, "yellow")


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:,.2f} s"
