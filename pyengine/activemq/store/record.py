"""A message as a row of a store: its headers and typed properties as JSON, its body beside it as it is."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from pyengine._engine.message.message import Message

Row: TypeAlias = tuple[str, str | bytes | None]

_SETTERS = {
    "byte": Message.set_byte_property,
    "short": Message.set_short_property,
    "long": Message.set_long_property,
    "float": Message.set_float_property,
}
_encode = json.JSONEncoder(separators=(",", ":")).encode


def encode_message(message: Message) -> Row:
    """``(headers, body)``: JSON of what differs from a fresh message, and the body."""
    headers: dict[str, Any] = message.attributes()
    body = headers.pop("body", None)
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
            typed[name] = [kind, float(value) if kind == "float" else int(value) if kind in _SETTERS else value]
        headers["properties"] = typed
    return _encode(headers), body


def decode_message(headers: str, body: str | bytes | None) -> Message:
    """The message of a row."""
    attributes = json.loads(headers)
    properties = attributes.pop("properties", {})
    if body is not None:
        attributes["body"] = body
    message = Message(None, **attributes)
    for name, (kind, value) in properties.items():
        setter = _SETTERS.get(kind)
        if setter is not None:
            setter(message, name, value)
        elif kind == "object":
            message.set_object_property(name, value)
        elif kind == "char":
            from pyengine import Char

            message.set_property(name, Char(value))
        else:
            message.set_property(name, value)
    return message
