"""One table of metrics, as rows; as Prometheus's text, or through the Prometheus and OpenTelemetry clients.

An object that can be measured has ``metrics() -> iterable of Metric``; a table is the rows of such sources at one
moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol

from pyengine.attributes import frozen
from pyengine.dataclass import dataclass
from pyengine.errors import MissingExtraError

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Meter, Observation
    from prometheus_client.core import Metric as PrometheusMetric


class MetricKind(Enum):
    """COUNTER only grows while its source lives; GAUGE is a value of the moment."""

    COUNTER = "counter"
    GAUGE = "gauge"


@frozen
@dataclass(frozen=True, slots=True)
class Metric:
    """One number. name: in snake_case, ending in ``_total`` at counters. help: what it is, with its unit.

    labels: what it is of; the same names for every row of one metric.
    """

    name: str
    kind: MetricKind
    help: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


Family = tuple[str, MetricKind, str]
"""Name, kind and help of the rows of one metric."""


class Source(Protocol):
    """Something that can be measured. One whose rows come and go, as a broker's with its destinations, also has
    ``metric_families() -> iterable of Family``: what may come."""

    def metrics(self) -> Iterable[Metric]:
        """Its numbers now."""


def metric_table(*sources: Source) -> list[Metric]:
    """All rows of the sources now, those of one metric together."""
    return sorted((row for source in sources for row in source.metrics()), key=lambda row: row.name)


def prometheus_text(*sources: Source) -> str:
    """The table in Prometheus's text format, version 0.0.4, for a page that is scraped."""
    lines = []
    for (name, kind, text), rows in _families(sources):
        lines += [f"# HELP {name} {_escaped(text)}", f"# TYPE {name} {kind.value}"]
        for row in rows:
            labels = ",".join(f'{label}="{_escaped(value, quotes=True)}"' for label, value in row.labels.items())
            lines.append(f"{name}{'{' + labels + '}' if labels else ''} {float(row.value)!r}")
    return "\n".join(lines) + "\n"


class PrometheusCollector:
    """A collector for prometheus_client: ``REGISTRY.register(PrometheusCollector(consumer))``.

    Raises MissingExtraError without prometheus_client (extra ``metrics``).
    """

    def __init__(self, *sources: Source) -> None:
        try:
            from prometheus_client import core
        except ImportError as error:
            raise MissingExtraError("metrics", "prometheus_client") from error
        self._core = core
        self._sources = sources

    def collect(self) -> Iterator[PrometheusMetric]:
        """The table as prometheus_client's families; a scrape calls it."""
        families: dict[MetricKind, Any] = {
            MetricKind.COUNTER: self._core.CounterMetricFamily,
            MetricKind.GAUGE: self._core.GaugeMetricFamily,
        }
        for (name, kind, text), rows in _families(self._sources):
            family = families[kind](name, text, labels=list(rows[0].labels))
            for row in rows:
                family.add_metric([row.labels[label] for label in rows[0].labels], row.value)
            yield family


def observe(meter: Meter, *sources: Source) -> None:
    """Let an OpenTelemetry meter observe the sources from now on, one instrument for each metric that they have now or
    say they may have.

    Raises MissingExtraError without opentelemetry-api (extra ``metrics``).
    """
    try:
        from opentelemetry.metrics import Observation as Observed
    except ImportError as error:
        raise MissingExtraError("metrics", "opentelemetry-api") from error

    def instrument(name: str, kind: MetricKind, text: str) -> None:
        def read(options: CallbackOptions) -> Iterable[Observation]:
            return [Observed(row.value, dict(row.labels)) for row in metric_table(*sources) if row.name == name]

        make = meter.create_observable_counter if kind is MetricKind.COUNTER else meter.create_observable_gauge
        make(name, [read], description=text)

    coming = (family for source in sources for family in getattr(source, "metric_families", tuple)())
    for key in dict.fromkeys([*(key for key, _ in _families(sources)), *coming]):
        instrument(*key)


def _families(sources: Iterable[Source]) -> list[tuple[Family, list[Metric]]]:
    rows = metric_table(*sources)
    return [(key, list(group)) for key, group in groupby(rows, key=lambda row: (row.name, row.kind, row.help))]


def _escaped(text: str, *, quotes: bool = False) -> str:
    text = text.replace("\\", r"\\").replace("\n", r"\n")
    return text.replace('"', r"\"") if quotes else text
