"""``pyengine run``: the pipeline with a progress bar in front and a table behind."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from rich.cells import set_cell_size
from rich.console import Console, Group
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from pyengine.backlog.findings import Language, say, translated, word
from pyengine.backlog.pages import page as pages
from pyengine.backlog.pages import report
from pyengine.backlog.pages.report import causes_first, share
from pyengine.backlog.sentence_templates import heard
from pyengine.backlog.tables.output import replace_file
from pyengine.backlog.tables.summary import DestinationSummary, Summary
from pyengine.cli.outlet import tell
from pyengine.cli.tables import Table, plain, show_line, show_table
from pyengine.topology import Topology

if TYPE_CHECKING:
    from pyengine.spark.pipeline import Progress as Stage


def run(
    file: Path, out: Path, master: str | None, partitions: int | None, quiet: bool, language: Language = "en"
) -> Summary:
    """Read the topology, run the pipeline, write summary.json and report.html; the summary with its paths filled in."""
    topology = Topology.load(file)
    pages.check_installed()
    from pyengine.spark import pipeline

    try:
        with stdout_to_stderr(), _without_log(), _progress(quiet, language) as show:
            result = pipeline.run(topology, out, master=master, partitions=partitions, progress=show)
    except KeyboardInterrupt:
        left = pipeline.aside_of(out)
        if left.exists():
            tell(f"pyengine: {left} holds what was begun: run the same command again, or remove it")
        raise
    summary: Summary = result.summary
    summary["paths"]["report"] = str(out / "report.html")
    summary["paths"]["summary"] = str(out / "summary.json")
    report.write(summary, out / "report.html", language)
    text = json.dumps(summary, ensure_ascii=False, indent=2)
    replace_file(out / "summary.json", lambda path: path.write_text(text, "utf-8"))
    return summary


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """What the JVM prints meanwhile goes to standard error, so that standard output holds results only."""
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(saved, 1)
        os.close(saved)


@contextmanager
def _without_log() -> Iterator[None]:
    """Spark's gateway logs an interrupt as tracebacks; the error itself is raised as well."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        root.setLevel(level)


STAGES = {
    "read": say("reading the source"),
    "start": say("starting Spark"),
    "ingest": say("reading and sorting"),
    "dispatch": say("dispatching"),
    "measure": say("counting"),
}


@contextmanager
def _progress(quiet: bool, language: Language) -> Iterator[Callable[[Stage], None]]:
    """A callback for the pipeline's Progress: one bar for each stage on a terminal, one line for each elsewhere."""
    console = Console(stderr=True)
    bars = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        console=console,
    )
    tasks: dict[str, TaskID] = {}

    def tell(progress: Stage) -> None:
        stage = progress.stage
        if stage not in tasks:
            for task in tasks.values():
                bars.update(task, completed=1, total=1, count="")
            if stage == "done":
                return
            words = STAGES[stage].in_language(language)
            tasks[stage] = bars.add_task(words, total=None, count="")
            if not quiet and not console.is_terminal:
                print(f"{words} ...", file=sys.stderr)
        if progress.total:
            count = say("{done} of {total:task|tasks}", done=progress.done, total=progress.total).in_language(language)
            bars.update(tasks[stage], completed=progress.done, total=progress.total, count=count)

    with (
        bars if console.is_terminal and not quiet else nullcontext()
    ):  # rich 13 ends one that shows nothing with a line
        yield tell


def show(summary: Summary, console: Console, language: Language = "en") -> None:
    """A table of queues and consumers, what waits and why, and where the files are."""
    title = summary["title"] or summary["topology"]
    console.print(plain(title, style="bold"))
    line = say(
        "{rows:,row|rows}: {delivered:,} delivered, {held:,} waiting, {rejected:,} rejected, in {seconds:.1f} s",
        rows=summary["rows"],
        delivered=summary["delivered"],
        held=summary["held"],
        rejected=summary["rejected"],
        seconds=summary["times"]["total"],
    )
    show_line(line.in_language(language), console)
    show_table(_deliveries(summary, language), console)
    waiting = [(name, queue) for name, queue in summary["destinations"].items() if queue["held_by_reason"]]
    for name, queue in waiting:
        console.print(_held(name, queue, language))
    for reject in summary["rejects"]:
        rows = ", ".join(reject["places"][:3])
        line = say(
            "rejected {count:,}: {column} {reason} ({count:|row|rows} {rows})",
            count=reject["count"],
            column=reject["column"],
            reason=heard(reject["reason"]),
            rows=rows,
        )
        show_line(line.in_language(language), console)
    for label in ("report", "deliveries", "held", "rejects"):
        if path := summary["paths"].get(label):
            console.print(plain(set_cell_size(word(label, language), 11) + str(path)), soft_wrap=True)


def _deliveries(summary: Summary, language: Language) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(word("queue / consumer", language), overflow="fold")
    for name in ("messages", "delivered", "waiting", "share", "groups"):
        table.add_column(word(name, language), justify="right")
    for name, queue in summary["destinations"].items():
        table.add_row(
            Text(name, style="bold"),
            f"{queue['messages']:,}",
            f"{queue['delivered']:,}",
            Text(f"{queue['held']:,}", style="bold red" if queue["held"] else ""),
            share(queue["delivered"], queue["messages"]),
            "",
        )
        for each in queue["consumers"]:
            words = " ".join(filter(None, (word("exclusive", language) if each["exclusive"] else "", each["selector"])))
            table.add_row(
                Text(f"  {each['name']}") + Text(f"  {words}" if words else "", style="dim"),
                "",
                f"{each['delivered']:,}",
                "",
                share(each["delivered"], queue["messages"]),
                f"{each['groups']:,}" if each["groups"] else "",
            )
    return table


def _held(name: str, queue: DestinationSummary, language: Language) -> Group:
    reasons = Table(box=None, show_header=False, pad_edge=False)
    reasons.add_column(justify="right", style="red", no_wrap=True)
    reasons.add_column(overflow="fold")
    for held in causes_first(queue):
        reason = translated(held["explanation"], language) or held["reason"]
        reasons.add_row(f"{held['count']:,}", Text(str(reason)))
    title = say(
        "why {held:,} of {messages:,} wait on {queue}", held=queue["held"], messages=queue["messages"], queue=name
    )
    return Group(Text("\n" + title.in_language(language), style="bold"), reasons)
