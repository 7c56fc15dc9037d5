"""Measure every question, print one table of ratios, and keep it in docs/benchmarks.md."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import jvm, plots, rooms
from bench.contest import Row

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
RIVALS = ("numpy", "polars", "duckdb", "pyarrow", "sortedcontainers")
HEADINGS = ("question", "rival", "ours", "rival's", "a", "ratio (best)", "ratio (median)", "goal", "reached")


def modules(wanted: list[str]) -> list[str]:
    found = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    unknown = sorted(set(wanted) - set(found))
    if unknown:
        sys.exit(f"no such bench: {', '.join(unknown)}; there are {', '.join(found)}")
    return wanted or found


def amount(value: float | None, row: Row) -> str:
    if value is None:
        return "not available"
    if row.bytes:
        return f"{value:,.0f} B" if value >= 100 else f"{value:.3g} B"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def cells(row: Row) -> tuple[str, ...]:
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}x"
    median = "" if row.rival_median is None else f"{row.rival_median / row.ours_median:.2f}x"
    goal = f">= {row.goal:g}x" if row.goal is not None else ""
    if row.at_most is not None:
        goal = f"<= {amount(row.at_most, row)}"
    reached = {True: "yes", False: "NO", None: ""}[row.reached]
    theirs = amount(row.rival_best, row) if row.rival else ""
    return (row.question, row.rival, amount(row.ours_best, row), theirs, row.unit, ratio, median, goal, reached)


def processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def line_of(row: Row) -> str:
    """A row as the page has it."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells(row)) + " |"


def page(measured: list[Row]) -> str:
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench` (`python -m bench`). What is measured and how: [bench/README.md](../bench/README.md).",
        "Answers were asserted equal before anything was timed. Times are CPU time of one core; each ratio is rival",
        "/ ours within one run, of the minima and of the medians of interleaved repetitions. Absolute times are this",
        "machine's and do not carry over. `python -m bench --into-page ROOM` writes the rows of one room again.",
        "",
        f"* processor: {processor()}",
        f"* Python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in RIVALS),
        f"* {jvm.description()}",
        "* one question alone: `python -m bench selector`; under pytest-benchmark: `pytest bench`",
        "",
        "| " + " | ".join(HEADINGS) + " |",
        "|" + "---|" * len(HEADINGS),
    ]
    lines += map(line_of, measured)
    notes = sorted({f"{row.rival}: {row.note}" for row in measured if row.note})
    if notes:
        lines += ["", *(f"* {note}" for note in notes)]
    lines += ["", "## How cost grows", "", "Both axes are logarithmic; `python -m bench.plots` draws them again.", ""]
    lines += [f"![cost against {path.stem}](plots/{path.name})" for path in sorted(plots.FOLDER.glob("*.svg"))]
    return "\n".join(lines) + "\n"


def merged(text: str, measured: list[Row]) -> str:
    """A page with other rows in place of those of the same question and rival, or below its table."""
    lines = text.splitlines()
    places = {tuple(line.split(" | ")[:2]): place for place, line in enumerate(lines) if line.startswith("| ")}
    last = max(places.values())
    new = []
    for row in measured:
        line = line_of(row)
        place = places.get(tuple(line.split(" | ")[:2]))
        if place is None:
            new.append(line)
        else:
            lines[place] = line
    return "\n".join([*lines[: last + 1], *new, *lines[last + 1 :]]) + "\n"


def main(wanted: list[str]) -> None:
    into_page = wanted[:1] == ["--into-page"]
    wanted = wanted[into_page:]
    console = Console(width=None if sys.stdout.isatty() else 180)
    measured: list[Row] = []
    with Progress(console=console, transient=True) as progress:
        names = modules(wanted)
        task = progress.add_task("measuring", total=len(names))
        for name in names:
            for row in rooms.rows(name):
                measured.append(row)
                progress.update(task, description=f"{name}: {row.question}")
            progress.advance(task)
    table = Table(*HEADINGS)
    for row in measured:
        table.add_row(*cells(row), style={True: "green", False: "red", None: ""}[row.reached])
    console.print(table)
    for note in sorted({f"{row.rival}: {row.note}" for row in measured if row.note}):
        console.print(note)
    if not wanted:
        plots.main()
        PAGE.write_text(page(measured), encoding="utf-8")
    elif into_page:
        PAGE.write_text(merged(PAGE.read_text("utf-8"), measured), encoding="utf-8")
    if not wanted or into_page:
        console.print(f"written: {PAGE.relative_to(Path.cwd()) if PAGE.is_relative_to(Path.cwd()) else PAGE}")


if __name__ == "__main__":
    main(sys.argv[1:])
