"""A message as a row of a store: its headers and typed properties as JSON, its body beside it as it is."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from pyengine._engine.java.scalars import SCALARS
from pyengine._engine.message.body import MapBody, ObjectBody, StreamBody
from pyengine._engine.message.message import Message

Row: TypeAlias = tuple[str, str | bytes | None]

_encode = json.JSONEncoder(separators=(",", ":")).encode


def encode_message(message: Message) -> Row:
    """``(headers, body)``: JSON of what differs from a fresh message, and the body; a map or a stream is in the
    headers."""
    headers: dict[str, Any] = message.attributes()
    headers.pop("data_structure", None)  # of advisories, which are not persistent
    body = headers.pop("body", None)
    if isinstance(body, MapBody):
        headers["map"] = {name: _typed(value) for name, value in body.entries().items()}
        body = None
    elif isinstance(body, StreamBody):
        headers["stream"] = [_typed(value) for value in body.values()]
        body = None
    elif isinstance(body, ObjectBody):
        headers["object"] = True
        body = body.data
    if isinstance(body, str):
        try:
            body.encode()
        except UnicodeEncodeError:
            headers["body"], body = body, None
    if headers.get("broker_path") is not None:
        headers["broker_path"] = list(headers["broker_path"])
    properties = message.properties()
    if properties:
        kinds = message.property_types()
        typed: dict[str, list[Any]] = {}
        value: Any
        for name, value in properties.items():
            kind = kinds[name]
            typed[name] = [kind, _json_value(kind, value)]
        headers["properties"] = typed
    return _encode(headers), body


def decode_message(headers: str, body: str | bytes | None) -> Message:
    """The message of a row."""
    attributes = json.loads(headers)
    properties = attributes.pop("properties", {})
    if "map" in attributes:
        attributes["body"] = MapBody({name: _untyped(value) for name, value in attributes.pop("map").items()})
    elif "stream" in attributes:
        attributes["body"] = StreamBody([_untyped(value) for value in attributes.pop("stream")])
        attributes["body"].reset()
    elif attributes.pop("object", False):
        attributes["body"] = ObjectBody(body if isinstance(body, bytes) else b"")
    elif body is not None:
        attributes["body"] = body
    message = Message(None, **attributes)
    for name, (kind, value) in properties.items():
        if kind == "object":
            message.set_object_property(name, value)
        else:
            message.set_property(name, SCALARS[kind](value) if kind in SCALARS else value)
    return message


# The kinds of values of a map or stream that JSON alone does not tell apart.
_APART = ("byte", "short", "long", "float", "char")
_KINDS: dict[Any, str] = {SCALARS[kind]: kind for kind in _APART} | {bytes: "bytes", list: "list", dict: "map"}


def _json_value(kind: str, value: Any) -> Any:
    """A value of a Java type in the form of JSON."""
    if kind not in _APART:
        return value
    return str(value) if kind == "char" else float(value) if kind == "float" else int(value)


def _typed(value: Any) -> Any:
    kind = _KINDS.get(type(value))
    if kind is None:
        return value
    if kind == "bytes":
        return [kind, value.decode("latin-1")]
    if kind == "list":
        return [kind, [_typed(each) for each in value]]
    if kind == "map":
        return [kind, {name: _typed(each) for name, each in value.items()}]
    return [kind, _json_value(kind, value)]


def _untyped(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    kind, value = value
    if kind == "bytes":
        return value.encode("latin-1")
    if kind == "list":
        return [_untyped(each) for each in value]
    if kind == "map":
        return {name: _untyped(each) for name, each in value.items()}
    return SCALARS[kind](value)
