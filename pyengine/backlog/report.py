"""A run's summary as one offline HTML page: no script, no outside reference, light and dark, readable on a phone."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyengine.backlog.summary import DaySummary, DestinationSummary, HeldSummary, Summary
from pyengine.errors import InvalidSourceError, MissingExtraError

CHART_WIDTH, CHART_HEIGHT = 720, 120
MAX_POINTS = 400


@dataclass(frozen=True, slots=True)
class Line:
    """Points of an SVG polyline in a box of CHART_WIDTH x CHART_HEIGHT."""

    points: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Messages a day. top: the value of the upper edge. every: days in one point."""

    delivered: Line
    held: Line
    top: int
    first: str
    last: str
    every: int


@dataclass(frozen=True, slots=True)
class Month:
    """Sums of one month, for the table beside the chart."""

    month: str
    delivered: int
    held: int


def check_installed() -> None:
    """Raise MissingExtraError if the page cannot be made, before a long run rather than after it."""
    if importlib.util.find_spec("jinja2") is None:
        raise MissingExtraError("report", "jinja2")


def write(summary: Summary, path: Path) -> None:
    """Write the page. Raises MissingExtraError without jinja2, InvalidSourceError if the file cannot be written."""
    text = render(summary)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidSourceError(str(path), f"cannot be written: {error.strerror}", "choose another folder") from error


def render(summary: Summary) -> str:
    """The page as text; everything that came from outside is escaped."""
    check_installed()
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pyengine.backlog", ""),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(number=number, moment=moment, share=share, causes_first=causes_first)
    template = environment.get_template("report.html")
    charts = {name: chart(queue["days"]) for name, queue in summary["destinations"].items()}
    return template.render(
        summary=summary,
        charts=charts,
        months={name: months(queue["days"]) for name, queue in summary["destinations"].items()},
        rates={name: rates(queue) for name, queue in summary["destinations"].items()},
        width=CHART_WIDTH,
        height=CHART_HEIGHT,
    )


def number(value: int) -> str:
    """1234567 as 1,234,567."""
    return f"{value:,}"


def moment(milliseconds: int | None) -> str:
    """A timestamp to the minute, in UTC."""
    if milliseconds is None:
        return "-"
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"


def share(part: int, whole: int) -> str:
    """A percentage that is 0 or 100 only if it is exact."""
    if part == 0 or whole == 0:
        return "0%"
    if part == whole:
        return "100%"
    return f"{min(max(100 * part / whole, 0.1), 99.9):.1f}%"


def causes_first(queue: DestinationSummary) -> list[HeldSummary]:
    """Why messages wait, with those that were never looked at behind the reasons that keep them from it."""
    return sorted(queue["held_by_reason"], key=lambda held: held["reason"] == "not_paged_in")


def chart(days: list[DaySummary]) -> Chart | None:
    """The lines of a queue, or None for fewer than two days; long runs are summed into at most MAX_POINTS points."""
    if len(days) < 2:
        return None
    every = -(-len(days) // MAX_POINTS)
    groups = [days[start : start + every] for start in range(0, len(days), every)]
    delivered = [sum(day["delivered"] for day in group) for group in groups]
    held = [sum(day["held"] for day in group) for group in groups]
    top = max(*delivered, *held, 1)
    return Chart(_line(delivered, top), _line(held, top), top, days[0]["day"], days[-1]["day"], every)


def months(days: list[DaySummary]) -> list[Month]:
    """Days summed by month."""
    sums: dict[str, list[int]] = {}
    for day in days:
        total = sums.setdefault(day["day"][:7], [0, 0])
        total[0] += day["delivered"]
        total[1] += day["held"]
    return [Month(month, *total) for month, total in sums.items()]


def rates(queue: DestinationSummary) -> dict[str, Any]:
    """Messages a day: the mean over the days between the first and the last message, and the busiest day."""
    days = queue["days"]
    if not days:
        return {"mean": 0.0, "busiest": "-", "most": 0}
    first, last = (datetime.fromisoformat(days[index]["day"]) for index in (0, -1))
    total = sum(day["delivered"] + day["held"] for day in days)
    busiest = max(days, key=lambda day: day["delivered"] + day["held"])
    return {
        "mean": total / ((last - first).days + 1),
        "busiest": busiest["day"],
        "most": busiest["delivered"] + busiest["held"],
    }


def _line(values: list[int], top: int) -> Line:
    step = CHART_WIDTH / max(len(values) - 1, 1)
    heights = (CHART_HEIGHT * (1 - value / top) for value in values)
    return Line(" ".join(f"{index * step:.1f},{height:.1f}" for index, height in enumerate(heights)))
