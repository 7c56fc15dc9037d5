"""What the SDK's exporters were given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator


class Exported:
    """Providers whose spans and points can be read. settings: what ``instrument`` takes."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.tracer_provider = TracerProvider()
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meter_provider = MeterProvider([self._reader])
        self.settings: dict[str, Any] = {
            "tracer_provider": self.tracer_provider,
            "meter_provider": self.meter_provider,
            "propagator": TraceContextTextMapPropagator(),
        }

    @property
    def spans(self) -> list[ReadableSpan]:
        """Those that ended, in that order."""
        return list(self._exporter.get_finished_spans())

    def one(self, name: str) -> ReadableSpan:
        """The only one of a name."""
        (found,) = (span for span in self.spans if span.name == name)
        return found

    def points(self) -> dict[tuple[str, str, str], float]:
        """(metric, operation, error) -> a counter's value, or how often a histogram was recorded."""
        data = self._reader.get_metrics_data()
        assert data is not None
        found = {}
        for metric in data.resource_metrics[0].scope_metrics[0].metrics:
            for point in metric.data.data_points:
                named: Any = point.attributes or {}
                key = metric.name, named["messaging.operation.name"], named.get("error.type", "")
                found[key] = getattr(point, "value", None) or getattr(point, "count", 0)
        return found


@pytest.fixture
def exported() -> Iterator[Exported]:
    """Providers of the SDK, in memory."""
    found = Exported()
    yield found
    found.tracer_provider.shutdown()
    found.meter_provider.shutdown()


def linked(span: ReadableSpan) -> list[int]:
    """The spans that a span is linked to."""
    return [link.context.span_id for link in span.links]


def identity(span: ReadableSpan) -> int:
    """Its id."""
    assert span.context is not None
    return span.context.span_id


def trace(span: ReadableSpan) -> int:
    """The id of its trace."""
    assert span.context is not None
    return span.context.trace_id
