"""How cost grows with subscriptions, rows, queues and groups: four charts, docs/plots/*.svg, in about a minute.

    python -m bench.plots

Each point is the best of a few repetitions, CPU time of one core. Both axes are logarithmic.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
import pyarrow as pa

import pyengine
from bench import bench_columns, bench_subscriptions, workloads
from pyengine.activemq.tables.dispatch import DESTINATION, dispatch_table
from pyengine.topology import Consumer, Policy, Source, Topology

FOLDER = Path(__file__).parent.parent / "docs" / "plots"
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 400, 70, 44, 150, 50
COLORS = ("#0b6e99", "#c2571a", "#5a7d2a", "#7a4b9d")
MESSAGES = 200_000

Points = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Chart:
    """series: name -> (x, seconds a unit)."""

    name: str
    title: str
    across: str
    unit: str
    series: dict[str, Points]


def best(call: Callable[[], object], repetitions: int = 3) -> float:
    """CPU seconds of the fastest."""
    spent = []
    for _ in range(repetitions):
        start = time.process_time()
        call()
        spent.append(time.process_time() - start)
    return min(spent)


def subscriptions() -> Chart:
    series: dict[str, Points] = {}
    for workload in bench_subscriptions.WORKLOADS:
        given = bench_subscriptions.messages(workload)
        for count in (10, 100, 1_000, 10_000, 100_000):
            index = bench_subscriptions.index(workload, count)
            spent = best(lambda index=index, given=given: [index.match(message) for message in given])
            series.setdefault(workload, []).append((count, spent / len(given)))
    texts = bench_subscriptions.texts("W1", 10_000)
    selectors = [pyengine.Selector(text) for text in texts]
    few = bench_subscriptions.messages("W1")[:5]
    for count in (10, 100, 1_000, 10_000):
        some = selectors[:count]
        spent = best(lambda some=some: [[each for each in some if each.matches(message)] for message in few])
        series.setdefault("W1, one by one", []).append((count, spent / len(few)))
    return Chart("subscriptions", "one message against N subscriptions", "subscriptions", "message", series)


def rows() -> Chart:
    series: dict[str, Points] = {}
    for count in (1_000, 10_000, 100_000, 1_000_000):
        batch = bench_columns.batch(count, True)
        for name, text in workloads.SELECTORS.items():
            selector = pyengine.Selector(text)
            spent = best(lambda selector=selector, batch=batch: selector.mask(batch), 7)
            series.setdefault(name, []).append((count, spent / count))
    return Chart("rows", "a selector over the columns of a batch", "rows of the batch", "row", series)


def dispatched(queues: int, groups: int, factory: str) -> float:
    """Seconds a message of a table that is dispatched in this process."""
    topology = Topology(
        source=Source(destination="{queue}", path="x", group="who"),
        policies=(Policy("q.>", message_group_map_factory_type=factory),),
        consumers=(Consumer("a", "q.>"), Consumer("b", "q.>"), Consumer("c", "q.>")),
    )
    draw = np.random.default_rng(20223)
    table = pa.table(
        {
            "__row": pa.array(np.arange(MESSAGES)),
            DESTINATION: pa.array([f"q.{number}" for number in range(queues)]).take(
                pa.array(draw.integers(0, queues, MESSAGES))
            ),
            "__bytes": pa.array(np.full(MESSAGES, 64)),
            "JMSXGroupID": pa.array([f"g{number}" for number in range(groups)]).take(
                pa.array(draw.integers(0, groups, MESSAGES))
            ),
        }
    )
    return best(lambda: dispatch_table(topology, table, 32_768), 2) / MESSAGES


def queues() -> Chart:
    counts = (1, 10, 100, 1_000, 10_000, 50_000)
    points = [(float(count), dispatched(count, 1_000, "simple")) for count in counts]
    title = f"{MESSAGES:,} messages through N queues (sorting included)"
    return Chart("queues", title, "queues", "message", {"three consumers, groups": points})


def groups() -> Chart:
    counts = (1, 10, 100, 1_000, 10_000, 100_000)
    series = {
        name: [(float(count), dispatched(100, count, name)) for count in counts]
        for name in ("simple", "bucket", "cached")
    }
    return Chart("groups", f"{MESSAGES:,} messages of N groups through 100 queues", "groups", "message", series)


def label(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= 0.999 * scale:
            return f"{seconds / scale:g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def drawn(chart: Chart) -> str:
    """The chart as SVG, the same for the same points."""
    every = [point for points in chart.series.values() for point in points]
    low, high = (round(math.log10(pick(x for x, _ in every))) for pick in (min, max))
    bottom = math.floor(math.log10(min(y for _, y in every)))
    top = math.ceil(math.log10(max(y for _, y in every)) + 1e-9)

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - low) / max(1, high - low)
        up = (math.log10(y) - bottom) / max(1, top - bottom)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="12" fill="#333">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{escape(chart.title)}</text>',
        f'<text x="{LEFT}" y="38" fill="#777">CPU time a {escape(chart.unit)}</text>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">'
        f"{escape(chart.across)}</text>",
    ]
    for power in range(bottom, top + 1):
        _, y = place(10**low, 10.0**power)
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e3e3e3"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label(10.0**power)}</text>')
    for power in range(low, high + 1):
        x, y = place(10.0**power, 10.0**bottom)
        lines.append(f'<text x="{x:.1f}" y="{y + 18:.1f}" text-anchor="middle">{10**power:,}</text>')
    ends: list[float] = []
    ranked = sorted(chart.series.items(), key=lambda each: -each[1][-1][1])
    for number, (name, points) in enumerate(ranked):
        color = COLORS[number % len(COLORS)]
        spots = [place(x, y) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        lines += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in spots]
        x, y = spots[-1]
        y = max(y, ends[-1] + 30 if ends else y)
        ends.append(y)
        lines.append(f'<text x="{x + 8:.1f}" y="{y + 4:.1f}" fill="{color}">{escape(name)}</text>')
        lines.append(f'<text x="{x + 8:.1f}" y="{y + 18:.1f}" fill="{color}">{label(points[-1][1])}</text>')
    return "\n".join([*lines, "</svg>", ""])


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for make in (subscriptions, rows, queues, groups):
        chart = make()
        (FOLDER / f"{chart.name}.svg").write_text(drawn(chart), "utf-8")
        for name, points in chart.series.items():
            print(f"{chart.name}: {name}: " + ", ".join(f"{x:,.0f}: {y * 1e9:,.1f} ns" for x, y in points), flush=True)


if __name__ == "__main__":
    main()
