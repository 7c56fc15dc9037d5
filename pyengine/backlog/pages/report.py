"""A run's summary as one offline HTML page: no script, no outside reference, light and dark, readable on a phone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from pyengine.backlog.findings import Language
from pyengine.backlog.pages import page as pages
from pyengine.backlog.tables.summary import DaySummary, DestinationSummary, HeldSummary, Summary
from pyengine.dataclass import dataclass

MAX_POINTS = 400
MAX_SECTIONS = 200  # queues with a section of their own: the page of thousands would be tens of megabytes
BEYOND = "day "  # before the number of a day since 1970 that no calendar holds


@dataclass(frozen=True, slots=True)
class Chart:
    """Messages a day, as SVG points. top: the value of the upper edge. every: days in one point."""

    delivered: str
    held: str
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


def write(summary: Summary, path: Path, language: Language = "en") -> None:
    """Write the page. Raises MissingExtraError without jinja2, OutputError if the file cannot be written."""
    pages.write(render(summary, language), path)


def render(summary: Summary, language: Language = "en") -> str:
    """The page as text; everything that came from outside is escaped."""
    environment = pages.environment(language)
    environment.filters.update(number=number, moment=moment, share=share, causes_first=causes_first)
    sections = shown(summary["destinations"])
    return environment.get_template("report.html").render(
        summary=summary,
        sections=sections,
        numbers={name: number for number, name in enumerate(sections, 1)},
        charts={name: chart(queue["days"]) for name, queue in sections.items()},
        months={name: months(queue["days"]) for name, queue in sections.items()},
        rates={name: rates(queue) for name, queue in sections.items()},
    )


def shown(queues: Mapping[str, DestinationSummary]) -> dict[str, DestinationSummary]:
    """The MAX_SECTIONS queues with the most waiting messages, then the most messages, in their order."""

    def weight(name: str) -> tuple[int, int]:
        return queues[name]["held"], queues[name]["messages"]

    chosen = set(sorted(queues, key=weight, reverse=True)[:MAX_SECTIONS])
    return {name: queue for name, queue in queues.items() if name in chosen}


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
    first, last = days[0]["day"], days[-1]["day"]
    return Chart(pages.points(delivered, top), pages.points(held, top), top, first, last, every)


def months(days: list[DaySummary]) -> list[Month]:
    """Days summed by month."""
    sums: dict[str, list[int]] = {}
    for day in days:
        total = sums.setdefault(day["day"] if day["day"].startswith(BEYOND) else day["day"][:7], [0, 0])
        total[0] += day["delivered"]
        total[1] += day["held"]
    return [Month(month, *total) for month, total in sums.items()]


def rates(queue: DestinationSummary) -> dict[str, Any]:
    """Messages a day: the mean over the days between the first and the last message, and the busiest day."""
    days = queue["days"]
    if not days:
        return {"mean": 0.0, "busiest": "-", "most": 0}
    first, last = (_since_1970(days[index]["day"]) for index in (0, -1))
    total = sum(day["delivered"] + day["held"] for day in days)
    busiest = max(days, key=lambda day: day["delivered"] + day["held"])
    return {
        "mean": total / (last - first + 1),
        "busiest": busiest["day"],
        "most": busiest["delivered"] + busiest["held"],
    }


def _since_1970(day: str) -> int:
    if day.startswith(BEYOND):
        return int(day.removeprefix(BEYOND))
    return (date.fromisoformat(day) - date(1970, 1, 1)).days
