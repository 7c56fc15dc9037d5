"""Variants of a simulation, side by side, as an offline page."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from pyengine.backlog.findings import Language
from pyengine.backlog.pages import page as pages
from pyengine.backlog.simulate.queues import Simulation

POINTS = 240


def render(title: str, played: Mapping[str, Simulation], language: Language = "en") -> str:
    """The page as text: a table of the variants, and for each the backlog and the load over time."""
    variants = {name: found.summary() for name, found in played.items()}
    lines = {}
    for name, found in played.items():
        times = np.linspace(0, found.end / 1e9, POINTS)
        lines[name] = {
            "backlog": _line(found.backlog(times), found.backlog_max),
            "load": _line(found.load(times), found.load_max),
        }
    told = {name: found.lines() for name, found in played.items()}
    return pages.render("simulation.html", language, title=title, variants=variants, lines=lines, told=told)


def _line(values: NDArray[np.int64], most: int) -> dict[str, object]:
    top = max(int(values.max()), most, 1)
    return {"points": pages.points(values.tolist(), top), "top": top}
