"""Messages from STOMP frames and back, as ActiveMQ's LegacyFrameTranslator and JmsFrameTranslator convert them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from pyengine._engine.java.numbers import parsed_long
from pyengine._engine.java.strings import BLANKS
from pyengine._engine.message.body import Body, MapBody, ObjectBody
from pyengine._engine.message.message import Message
from pyengine._engine.wire.stomp import StompFrame, text_body
from pyengine.activemq.options import CONSUMER_OPTIONS
from pyengine.activemq.transport.stomp_transformations import (
    TransformationError,
    UnexplainedError,
    UntrustedObjectError,
    body_of,
    shown_advisory,
    shown_body,
)
from pyengine.destinations import ADVISORY, Destination, destination_of
from pyengine.errors import PyengineError

TRANSFORMATION, TRANSFORMATION_ERROR = "transformation", "transformation-error"
JMS_TRANSFORMATIONS = frozenset(
    f"jms-{each}" for each in ("byte", *(f"{kind}{form}" for kind in ("", "object-", "map-", "advisory-")
                                         for form in ("xml", "json")))
)  # fmt: skip
READ_FROM = frozenset({"jms-map-xml", "jms-map-json", "jms-object-xml", "jms-object-json"})
MUST_BEGIN = "ActiveMQ STOMP destinations must begin with one of: /queue/ /topic/ /temp-queue/ /temp-topic/"
_PREFIXES = (
    ("/queue/", "queue://"),
    ("/topic/", "topic://"),
    ("/remote-temp-queue/", "temp-queue://"),
    ("/remote-temp-topic/", "temp-topic://"),
)
_SHOWN = {
    "queue": "/queue/",
    "topic": "/topic/",
    "temp-queue": "/remote-temp-queue/",
    "temp-topic": "/remote-temp-topic/",
}


class RefusedFrameError(PyengineError):
    """A frame that the broker refuses: the client gets an ERROR frame (ProtocolException).

    fatal: the connection is closed behind it.
    """

    def __init__(self, problem: str, *, fatal: bool = False) -> None:
        super().__init__(problem)
        self.fatal = fatal


class BrokenFrameError(PyengineError):
    """A frame on which ActiveMQ's converter itself fails: the connection is closed without a word."""


class TemporaryNames:
    """The temporary destinations of a connection, each under the name that its client gave it.

    create: called with the kind, "temp-queue" or "temp-topic", of one whose name is new; returns it.
    """

    def __init__(self, create: Callable[[str], Destination]) -> None:
        self._create = create
        self._by_name: dict[str, Destination] = {}
        self._names: dict[str, str] = {}

    def destination(self, name: str, kind: str) -> Destination:
        """The destination of a name like ``/temp-queue/mine``, made if it is not there."""
        found = self._by_name.get(name)
        if found is None:
            found = self._by_name[name] = self._create(kind)
            self._names[str(found)] = name
        return found

    def shown(self, destination: str) -> str:
        """How this connection's client reads a destination, given as ``queue://A``."""
        if self._names and destination in self._names:
            return self._names[destination]
        return _shown(destination)

    def parse(self, text: str, *, fallback: bool) -> Destination:
        """The destination that a header names; several names, separated by commas, are one composite.

        fallback: what has no prefix is the name of a queue. Raises RefusedFrameError without it, and BrokenFrameError
        for an empty name.
        """
        if "/temp-" not in text:
            return _parsed(text, fallback)
        return self._parse(text, fallback)

    def target(self, text: str) -> tuple[Destination, str]:
        """Where the header of a SEND frame leads: ``parse``, and its text as messages have it."""
        return _target(text) if "/temp-" not in text else _with_text(self._parse(text, True))

    def reply_to(self, text: str) -> Destination | None:
        """Where an answer goes; None for what a message keeps as a property."""
        try:
            return self.parse(text, fallback=False)
        except RefusedFrameError:
            return None

    def _parse(self, text: str, fallback: bool) -> Destination:
        trimmed = text.strip(BLANKS)
        parts = []
        for part in _split(trimmed):
            for prefix, qualified in _PREFIXES:
                if part.startswith(prefix):
                    parts.append(qualified + part[len(prefix) :])
                    break
            else:
                if part.startswith(("/temp-queue/", "/temp-topic/")):
                    parts.append(str(self.destination(part, part[1:11])))
                elif fallback:
                    parts.append("queue://" + (text if len(part) == 1 else part))
                else:
                    raise RefusedFrameError(f"Illegal destination name: [{text}] -- {MUST_BEGIN}")
        return _destination(",".join(parts))


_NO_NAMES = TemporaryNames(lambda kind: Destination("", kind))


def _split(text: str) -> list[str]:
    """String.split(","): no empty parts at the end."""
    parts = text.split(",")
    while parts and not parts[-1]:
        parts.pop()
    return parts or [text]


@lru_cache(maxsize=4096)
def _parsed(text: str, fallback: bool) -> Destination:
    """``TemporaryNames.parse`` of what names no temporary destination: the same for every connection."""
    return _NO_NAMES._parse(text, fallback)


@lru_cache(maxsize=4096)
def _shown(destination: str) -> str:
    kind, _, name = destination.partition("://")
    return _SHOWN[kind] + name


@lru_cache(maxsize=4096)
def _target(text: str) -> tuple[Destination, str]:
    """``TemporaryNames.target`` of what names no temporary destination."""
    return _with_text(_parsed(text, True))


def _with_text(destination: Destination) -> tuple[Destination, str]:
    return destination, Message(destination=destination).destination or ""


@lru_cache(maxsize=4096)
def _destination(text: str) -> Destination:
    try:
        return destination_of(text, "queue")
    except PyengineError as error:
        raise BrokenFrameError("Invalid destination name: a non-empty name is required") from error


def long_of(text: str) -> int:
    """Long.parseLong. Raises BrokenFrameError."""
    try:
        return parsed_long("", text)
    except ValueError as error:
        raise BrokenFrameError(f'For input string: "{text}"') from error


def converted(frame: StompFrame) -> tuple[dict[str, str], str | bytes | Body | None, bool]:
    """The headers and the body of a SEND frame with ``transformation`` or ``amq-msg-type``, and whether the body's
    length was taken from the headers. Raises RefusedFrameError."""
    headers = frame.headers
    transformation = headers.get(TRANSFORMATION)
    body: Body | None = None
    if transformation in JMS_TRANSFORMATIONS and transformation != "jms-byte" and "content-length" not in headers:
        if transformation in READ_FROM:
            try:
                body = body_of(frame.text, transformation)
            except UnexplainedError:
                headers = {name: text for name, text in headers.items() if name != TRANSFORMATION_ERROR}
            except TransformationError as error:
                headers = {**headers, TRANSFORMATION_ERROR: str(error)}
        else:
            headers = {**headers, TRANSFORMATION_ERROR: f"Unknown transformation: {transformation}"}
    if body is not None:
        return headers, body, False
    intended = headers.get("amq-msg-type")
    if intended is None:
        counted = "content-length" in headers
        return headers, frame.body if counted else frame.text, counted
    if intended.lower() not in ("text", "bytes"):
        raise RefusedFrameError(f"Unsupported message type '{intended}'")
    return headers, frame.text if intended.lower() == "text" else frame.body, False


def shown(message: Message, headers: dict[str, str], ignore_transformation: bool) -> tuple[dict[str, str], bytes]:
    """The headers and the body of a MESSAGE frame for a message whose body is neither bytes nor a string.

    headers: those that do not describe the body. ignore_transformation: the ``transformation`` is the producer's, not
    the subscriber's.
    """
    destination = message.destination or ""
    body = message.body
    if body is None:
        if (
            message.type == "Advisory"
            and not ignore_transformation
            and destination.startswith(f"topic://{ADVISORY}")
            and headers.get(TRANSFORMATION) in (None, *JMS_TRANSFORMATIONS)
        ):
            return _advisory(headers, message.data_structure)
        return headers, b""
    wanted = headers.get(TRANSFORMATION)
    if ignore_transformation or wanted not in JMS_TRANSFORMATIONS or not isinstance(body, (MapBody, ObjectBody)):
        return headers, b""
    try:
        text, headers[TRANSFORMATION] = shown_body(body, wanted)
    except UntrustedObjectError as error:
        raise BrokenFrameError(str(error)) from error
    return headers, text_body(text)


def _advisory(headers: dict[str, str], command: object) -> tuple[dict[str, str], bytes]:
    """An advisory's data structure as XStream writes it."""
    kind = headers.get(TRANSFORMATION, "jms-json")
    if kind in ("jms-xml", "jms-json"):
        kind = kind.replace("jms-", "jms-advisory-")
    headers[TRANSFORMATION] = kind
    return headers, text_body(shown_advisory(command, kind))


def consumer_settings(headers: Mapping[str, str]) -> dict[str, Any]:
    """The options that the ``activemq.*`` headers of a SUBSCRIBE give its consumer; a name that ConsumerInfo does not
    have, and a value that its setter does not take, is passed over (IntrospectionSupport.setProperties)."""
    found: dict[str, Any] = {}
    for header, text in headers.items():
        kind = CONSUMER_OPTIONS.get(header[9:]) if header.startswith("activemq.") else None
        if kind is str:
            found[header[9:]] = text
        elif kind is bool:
            found[header[9:]] = text.lower() == "true"
        elif isinstance(kind, int):
            with suppress(BrokenFrameError):
                number = long_of(text)
                if -(1 << kind - 1) <= number < 1 << kind - 1:
                    found[header[9:]] = number
    return found
