"""Variants of a simulation, side by side, as an offline page."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from pyengine import __version__
from pyengine.backlog.findings import Language
from pyengine.backlog.pages import page as pages
from pyengine.backlog.simulate.queues import NS, Simulation

POINTS = 240


def render(title: str, played: Mapping[str, Simulation], language: Language = "en", source: str = "") -> str:
    """The page as text: a table of the variants, and for each the backlog and the load over time.

    All variants are drawn on the same axes. source: the scenario, as the page names it.
    """
    variants = {name: found.summary() for name, found in played.items()}
    most_waiting = max((found.backlog_max for found in played.values()), default=0) or 1
    most_worked_on = max((found.load_max for found in played.values()), default=0) or 1
    longest = max((found.end for found in played.values()), default=0) / NS
    lines = {}
    for name, found in played.items():
        came = found.workload.arrivals[found.workload.arrivals <= found.end]
        begun = np.sort(found.started[found.started >= 0])
        lines[name] = {
            "backlog": _line(found.backlog, came, found.end, longest, most_waiting),
            "load": _line(found.load, begun, found.end, longest, most_worked_on),
        }
    outcomes = {name: found.lines() for name, found in played.items()}
    return pages.render(
        "simulation.html", language, title=title, variants=variants, lines=lines, outcomes=outcomes, longest=longest,
        source=source, version=__version__,
    )  # fmt: skip


def _line(
    count: Callable[[NDArray[np.float64]], NDArray[np.int64]],
    rises: NDArray[np.int64],
    end: int,
    longest: float,
    top: int,
) -> dict[str, object]:
    """A point for each stretch of time with the most that it had, so that no peak falls between two points.

    rises: the moments (ns) behind one of which the most is.
    """
    edges = np.linspace(0, end / NS, POINTS)
    values = count(edges)
    moments = (rises + 0.5) / NS  # behind the rise, also where it is rounded
    np.maximum.at(values, np.searchsorted(edges, moments).clip(0, POINTS - 1), count(moments))
    width = end / NS / longest if longest else 1.0
    return {"points": pages.points(values.tolist(), top, width), "top": top, "most": int(values.max(initial=0))}
