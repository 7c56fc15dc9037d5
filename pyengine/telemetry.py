"""Spans and metrics of messages, as OpenTelemetry's semantic conventions for messaging name them.

``pyengine.activemq.telemetry.instrument`` and ``pyengine.rocketmq.telemetry.instrument`` make a :class:`Telemetry` and
have clients use it; a client that is not instrumented runs none of this. The context travels in the messages'
properties, ``traceparent`` and ``tracestate`` unless the propagator says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from time import time_ns
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, TypeVar

from pyengine.attributes import frozen
from pyengine.dataclass import dataclass
from pyengine.errors import MissingExtraError

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.propagators.textmap import Getter, Setter, TextMapPropagator
    from opentelemetry.trace import Link, Span, SpanKind, TracerProvider

Attributes: TypeAlias = dict[str, str | int | bool | list[str]]
Carrier = TypeVar("Carrier")


@frozen
@dataclass(frozen=True, slots=True)
class Subject(Generic[Carrier]):
    """What an operation is about. destination: its name. shared: attributes of the destination and of the client, for
    metrics too. client: those for spans alone. messages: each with its own attributes."""

    destination: str
    shared: Attributes = field(default_factory=dict)
    client: Attributes = field(default_factory=dict)
    messages: Sequence[tuple[Carrier, Attributes]] = ()


class Telemetry(Generic[Carrier]):
    """A tracer, a meter and a propagator for the messages of one system.

    system: ``activemq`` or ``rocketmq``. describe: what an operation on messages is about. write: sets a property of a
    message. read: its value, None if the message does not have it. The providers and the propagator are the global ones
    unless given. Raises MissingExtraError without opentelemetry-api (extra ``opentelemetry``).
    """

    def __init__(
        self,
        system: str,
        describe: Callable[[Sequence[Carrier]], Subject[Carrier]],
        write: Callable[[Carrier, str, str], None],
        read: Callable[[Carrier, str], str | None],
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        propagator: TextMapPropagator | None = None,
    ) -> None:
        try:
            from opentelemetry import context, metrics, propagate, trace
        except ImportError as error:
            raise MissingExtraError("opentelemetry", "opentelemetry-api") from error
        from pyengine import __version__

        self.system = system
        self.trace = trace
        self._describe = describe
        self._nothing = context.Context()
        self._propagator = propagate.get_global_textmap() if propagator is None else propagator
        self._getter, self._setter = _accessors(write, read)
        self.tracer = trace.get_tracer("pyengine", __version__, tracer_provider)
        meter = metrics.get_meter("pyengine", __version__, meter_provider)
        self.sent = meter.create_counter(
            "messaging.client.sent.messages", "{message}", "Messages that producers tried to send"
        )
        self.consumed = meter.create_counter(
            "messaging.client.consumed.messages", "{message}", "Messages that were delivered to the application"
        )
        self.operation_duration = meter.create_histogram(
            "messaging.client.operation.duration", "s", "How long sending and receiving took"
        )
        self.process_duration = meter.create_histogram("messaging.process.duration", "s", "How long processing took")

    def process(self, *messages: Carrier) -> Operation[Carrier]:
        """A span around the processing of messages that were received: ``with telemetry.process(message):``.

        It is linked to where each message was sent; of one message it is a child of that, too. What the block raises
        is recorded, and raised.
        """
        return self.processing(self._describe(messages))

    # -- what clients call

    def sending(self, subject: Subject[Carrier]) -> Operation[Carrier]:
        """The sending of one message, which carries the context of its span."""
        found = Operation(self, "send", subject, self.trace.SpanKind.PRODUCER)
        self._inject(found.span, subject.messages[0][0])
        return found

    def sending_batch(self, subject: Subject[Carrier]) -> Operation[Carrier]:
        """The sending of several messages, which are announced with ``created``, each before it is sent."""
        return Operation(self, "send", subject, self.trace.SpanKind.CLIENT)

    def created(self, batch: Operation[Carrier], subject: Subject[Carrier]) -> None:
        """One message of a batch; it carries the context of a span of its own, which the batch's is linked to."""
        kind, attributes = self.trace.SpanKind.PRODUCER, self.attributes("create", subject)
        span = self.tracer.start_span(f"create {subject.destination}", None, kind, attributes)
        self._inject(span, subject.messages[0][0])
        span.end()
        batch.count += 1
        batch.span.add_link(span.get_span_context())

    def received(self, began: int, subject: Subject[Carrier], error: BaseException | None = None) -> None:
        """A receive ended with messages, or with an error. began: ns since 1970."""
        kind, links = self.trace.SpanKind.CLIENT, self._links(subject)
        Operation(self, "receive", subject, kind, began=began, links=links).end(error)

    def processing(self, subject: Subject[Carrier], *, delivers: bool = False) -> Operation[Carrier]:
        """The processing of messages. delivers: it was not received before, so it counts as consumed now."""
        parent = self._created(subject.messages[0][0]) if len(subject.messages) == 1 else None
        kind, links = self.trace.SpanKind.CONSUMER, self._links(subject)
        return Operation(self, "process", subject, kind, parent=parent, links=links, delivers=delivers)

    def shared(self, name: str, subject: Subject[Any]) -> Attributes:
        """Attributes of an operation's spans and metrics."""
        return {
            "messaging.system": self.system,
            "messaging.operation.name": name,
            "messaging.destination.name": subject.destination,
            **subject.shared,
        }

    def attributes(self, name: str, subject: Subject[Any]) -> Attributes:
        """Attributes of an operation's span."""
        found = self.shared(name, subject) | {"messaging.operation.type": name} | subject.client
        if len(subject.messages) == 1:
            found.update(subject.messages[0][1])
        elif subject.messages:
            found["messaging.batch.message_count"] = len(subject.messages)
        return found

    def _inject(self, span: Span, message: Carrier) -> None:
        self._propagator.inject(message, self.trace.set_span_in_context(span), self._setter)

    def _created(self, message: Carrier) -> Context:
        """The context that a message brings, of its sending."""
        return self._propagator.extract(message, self._nothing, self._getter)

    def _links(self, subject: Subject[Carrier]) -> list[Link]:
        found = [self.trace.get_current_span(self._created(each)).get_span_context() for each, _ in subject.messages]
        return [self.trace.Link(each) for each in found if each.is_valid]


class Operation(Generic[Carrier]):
    """One operation of a client, from now, or from ``began`` (ns since 1970), to its ``end``.

    ``with`` makes its span the current one and ends it. count: of its messages.
    """

    def __init__(
        self,
        telemetry: Telemetry[Carrier],
        name: str,
        subject: Subject[Carrier],
        kind: SpanKind,
        *,
        began: int | None = None,
        parent: Context | None = None,
        links: Sequence[Link] = (),
        delivers: bool = False,
    ) -> None:
        self._telemetry, self._name, self._subject, self._delivers = telemetry, name, subject, delivers
        self._began = time_ns() if began is None else began
        self._answer = ""
        self._entered: AbstractContextManager[object] = nullcontext()
        self.count = len(subject.messages)
        self.span = telemetry.tracer.start_span(
            f"{name} {subject.destination}", parent, kind, telemetry.attributes(name, subject), links, self._began
        )

    def current(self) -> AbstractContextManager[object]:
        """``with`` it the span is the current one."""
        use: Callable[..., AbstractContextManager[object]] = self._telemetry.trace.use_span
        return use(self.span, record_exception=False, set_status_on_exception=False)

    def __enter__(self) -> Self:
        self._entered = self.current()
        self._entered.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.__exit__(kind, error, trace)
        self.end(error)

    def fail(self, answer: str) -> None:
        """It failed, as the application has answered or a call has raised."""
        self._answer = answer
        self.span.set_attribute("error.type", answer)
        self.span.set_status(self._telemetry.trace.Status(self._telemetry.trace.StatusCode.ERROR, answer))

    def end(self, error: BaseException | None = None) -> None:
        """It ended, with an error or without."""
        telemetry, name = self._telemetry, self._name
        if error is not None:
            self.span.record_exception(error)
            self.fail(type(error).__qualname__)
        ended = time_ns()
        if self.count > 1:
            self.span.set_attribute("messaging.batch.message_count", self.count)
        self.span.end(ended)
        attributes = telemetry.shared(name, self._subject)
        if self._answer:
            attributes["error.type"] = self._answer
        duration = telemetry.process_duration if name == "process" else telemetry.operation_duration
        duration.record((ended - self._began) / 1e9, attributes)
        if name == "send":
            telemetry.sent.add(self.count, attributes)
        elif name == "receive" or self._delivers:
            telemetry.consumed.add(self.count, attributes)


def _accessors(
    write: Callable[[Carrier, str, str], None], read: Callable[[Carrier, str], str | None]
) -> tuple[Getter[Carrier], Setter[Carrier]]:
    """How a propagator reads and writes properties of a message."""
    from opentelemetry.propagators.textmap import Getter, Setter

    class Reads(Getter[Carrier]):
        def get(self, carrier: Carrier, key: str) -> list[str] | None:
            found = read(carrier, key)
            return None if found is None else [found]

        def keys(self, carrier: Carrier) -> list[str]:
            return []  # propagators ask for the keys that they have written

    class Writes(Setter[Carrier]):
        def set(self, carrier: Carrier, key: str, value: str) -> None:
            write(carrier, key, value)

    return Reads(), Writes()
