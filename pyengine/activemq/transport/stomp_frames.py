"""Messages from STOMP frames and back, as ActiveMQ's LegacyFrameTranslator and JmsFrameTranslator convert them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from pyengine._engine.java.hashing import set_order
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
# Capacity of the HashMap whose order the headers of a MESSAGE are written in (LegacyFrameTranslator.convertMessage).
CAPACITY = 32
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
# What a frame says of a message in words of its own, or what a client may not say; the rest become properties.
_TAKEN = ("destination", "correlation-id", "expires", "timestamp", "priority", "type", "reply-to", "persistent",
          "receipt", "message-id", "redelivered", "subscription", "JMSXUserID")  # fmt: skip
_NOT_TAKEN = frozenset(_TAKEN)


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
        kind, _, name = destination.partition("://")
        return _SHOWN[kind] + name

    def parse(self, text: str, *, fallback: bool) -> Destination:
        """The destination that a header names; several names, separated by commas, are one composite.

        fallback: what has no prefix is the name of a queue. Raises RefusedFrameError without it, and BrokenFrameError
        for an empty name.
        """
        if "/temp-" not in text:
            return _parsed(text, fallback)
        return self._parse(text, fallback)

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
def _destination(text: str) -> Destination:
    try:
        return destination_of(text, "queue")
    except PyengineError as error:
        raise BrokenFrameError("Invalid destination name: a non-empty name is required") from error


def long_of(text: str) -> int:
    """Long.parseLong. Raises BrokenFrameError."""
    if not re.fullmatch(r"[+-]?[0-9]{1,400}", text) or not _fits(int(text), 64):
        raise BrokenFrameError(f'For input string: "{text}"')
    return int(text)


def message_of(frame: StompFrame, names: TemporaryNames, now: int) -> tuple[Message, Destination]:
    """The message that a SEND frame is, and where it goes. now: ms, its timestamp if it says none.

    Raises RefusedFrameError and BrokenFrameError.
    """
    headers = dict(frame.headers)
    transformation = headers.get(TRANSFORMATION)
    body: str | bytes | Body | None = None
    if transformation in JMS_TRANSFORMATIONS and transformation != "jms-byte" and "content-length" not in headers:
        if transformation in READ_FROM:
            try:
                body = body_of(frame.text, transformation)
            except UnexplainedError:
                headers.pop(TRANSFORMATION_ERROR, None)
            except TransformationError as error:
                headers[TRANSFORMATION_ERROR] = str(error)
        else:
            headers[TRANSFORMATION_ERROR] = f"Unknown transformation: {transformation}"
    intended = headers.get("amq-msg-type")
    if body is not None:
        pass
    elif intended is not None:
        if intended.lower() == "text":
            body = frame.text
        elif intended.lower() == "bytes":
            body = frame.body
        else:
            raise RefusedFrameError(f"Unsupported message type '{intended}'")
    elif "content-length" in headers:
        del headers["content-length"]
        body = frame.body
    else:
        body = frame.text
    destination = names.parse(headers["destination"], fallback=True)
    message = Message(body=body, destination=destination)
    message.persistent = headers.get("persistent") == "true"
    message.correlation_id = headers.get("correlation-id")
    try:
        if "expires" in headers:
            message.expiration = long_of(headers["expires"])
        message.timestamp = long_of(headers["timestamp"]) if "timestamp" in headers else now
        if "priority" in headers:
            message.priority = max(0, min(9, _int_of(headers["priority"])))
        if "type" in headers:
            message.type = headers["type"]
        reply_to = headers.get("reply-to")
        if reply_to is not None:
            try:
                message.reply_to = names.parse(reply_to, fallback=False)
            except RefusedFrameError:
                message.set_string_property("reply-to", reply_to)
        for name, text in headers.items():
            if name not in _NOT_TAKEN:
                if name in _SPECIAL or name[:3] in ("JMS", "AMQ") or not name:
                    message.set_object_property(name, text)
                else:
                    message.set_string_property(name, text)
    except (BrokenFrameError, RefusedFrameError):
        raise
    except PyengineError as error:
        raise BrokenFrameError(str(error)) from error
    return message, destination


_SPECIAL = frozenset({"JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount"})


def _int_of(text: str) -> int:
    number = long_of(text)
    if not _fits(number, 32):
        raise BrokenFrameError(f'For input string: "{text}"')
    return number


@lru_cache(maxsize=1024)
def hash_order(names: tuple[str, ...], capacity: int) -> tuple[str, ...]:
    """The order in which a HashMap of that capacity writes these headers."""
    return tuple(set_order(names, capacity))


def ordered(headers: dict[str, str], capacity: int = 16) -> dict[str, str]:
    """Headers in the order in which ActiveMQ writes them."""
    return {name: headers[name] for name in hash_order(tuple(headers), capacity)}


def frame_of(
    message: Message, names: TemporaryNames, *, redeliveries: int, ignore_transformation: bool = False
) -> tuple[dict[str, str], bytes]:
    """The headers and the body of a MESSAGE frame. redeliveries: how often it was dispatched before.

    ignore_transformation: its ``transformation`` is the producer's, not the subscriber's.
    """
    destination = message.destination or ""
    headers = {"destination": names.shown(destination), "message-id": message.message_id or ""}
    if message.correlation_id is not None:
        headers["correlation-id"] = message.correlation_id
    headers["expires"] = str(message.expiration)
    if redeliveries > 0:
        headers["redelivered"] = "true"
    headers["priority"] = str(message.priority)
    if message.reply_to is not None:
        headers["reply-to"] = names.shown(message.reply_to)
    headers["timestamp"] = str(message.timestamp)
    if message.type is not None:
        headers["type"] = message.type
    if message.user_id is not None:
        headers["JMSXUserID"] = message.user_id
    if message.original_destination is not None:
        headers["original-destination"] = names.shown(message.original_destination)
    if message.persistent:
        headers["persistent"] = "true"
    properties = message.properties()
    for name in hash_order(tuple(properties), 16):
        headers[name] = _shown_property(message, name, properties[name])
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
    if isinstance(body, Body):
        wanted = headers.get(TRANSFORMATION)
        if ignore_transformation or wanted not in JMS_TRANSFORMATIONS or not isinstance(body, (MapBody, ObjectBody)):
            return headers, b""
        try:
            text, headers[TRANSFORMATION] = shown_body(body, wanted)
        except UntrustedObjectError as error:
            raise BrokenFrameError(str(error)) from error
        return headers, text_body(text)
    if isinstance(body, bytes):
        headers["content-length"] = str(len(body))
        return headers, body
    return headers, text_body(body)


def _advisory(headers: dict[str, str], command: object) -> tuple[dict[str, str], bytes]:
    """An advisory's data structure as XStream writes it."""
    kind = headers.get(TRANSFORMATION, "jms-json")
    if kind in ("jms-xml", "jms-json"):
        kind = kind.replace("jms-", "jms-advisory-")
    headers[TRANSFORMATION] = kind
    return headers, text_body(shown_advisory(command, kind))


def _shown_property(message: Message, name: str, value: object) -> str:
    """``"" + value``."""
    if type(value) is str:
        return value
    if value is None:
        return "null"
    if isinstance(value, (dict, list, tuple)):
        return _nested(value)
    return message.get_string_property(name) or "null"


def _nested(value: object) -> str:
    """A map or list of a property, as Java's AbstractMap and AbstractCollection show themselves."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}={_nested(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_nested, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def consumer_settings(headers: Mapping[str, str]) -> dict[str, Any]:
    """What the ``activemq.*`` headers of a SUBSCRIBE say of its consumer; a name that ConsumerInfo does not have, and
    a value that its setter does not take, is passed over (IntrospectionSupport.setProperties)."""
    found: dict[str, Any] = {}
    for header, text in headers.items():
        kind = CONSUMER_OPTIONS.get(header[9:]) if header.startswith("activemq.") else None
        if kind is str:
            found[header[9:]] = text
        elif kind is bool:
            found[header[9:]] = text.lower() == "true"
        elif isinstance(kind, int) and re.fullmatch(r"[+-]?[0-9]{1,400}", text) and _fits(int(text), kind):
            found[header[9:]] = int(text)
    return found


def _fits(value: int, bits: int) -> bool:
    return -(1 << bits - 1) <= value < 1 << bits - 1
