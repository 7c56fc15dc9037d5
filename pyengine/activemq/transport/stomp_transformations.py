"""What ActiveMQ's JmsFrameTranslator makes of map and object messages, and of advisories: XML and JSON, as XStream and
Jettison write and read them with the classes of ActiveMQ's distribution.

Values are elements: a tag, and text or further elements. Of objects only strings and boxed values are read and
written, which are what the real broker trusts.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import struct
from typing import Any
from xml.parsers import expat

import numpy

from pyengine import Char
from pyengine._engine.java import modified_utf8
from pyengine._engine.java.hashing import map_order, set_order
from pyengine._engine.java.scalars import SCALARS
from pyengine._engine.java.value import java_text
from pyengine._engine.message.body import MapBody, ObjectBody, StreamBody
from pyengine._engine.message.message import Message
from pyengine.activemq.transport.commands import (
    ConnectionInfo,
    ConsumerInfo,
    DestinationInfo,
    ProducerInfo,
    RemoveInfo,
    RemoveSubscriptionInfo,
)
from pyengine.dataclass import dataclass
from pyengine.destinations import TYPE_NAMES, Destination
from pyengine.errors import PyengineError

DEEPEST = 64  # elements within elements
LARGEST = 1_000_000  # elements of a body


class UntrustedObjectError(PyengineError):
    """An object of a class that the broker does not trust: it closes the connection."""


class TransformationError(PyengineError):
    """A body that cannot be read: the message has a text body then, and this as its ``transformation-error``, which
    may be empty."""


class UnexplainedError(TransformationError):
    """An error without any words in the real broker: the message has no ``transformation-error``."""


@dataclass(slots=True)
class Element:
    """A tag with its attributes, its text, None if it has none, or the elements within it."""

    tag: str
    text: str | None = None
    children: tuple[Element, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()


# Writing


def shown_body(body: MapBody | ObjectBody, transformation: str) -> tuple[str, str]:
    """The text of a body, and the name of the transformation that it went through. Raises UntrustedObjectError."""
    kind = "map" if isinstance(body, MapBody) else "object"
    if transformation in ("jms-xml", "jms-json"):
        transformation = transformation.replace("jms-", f"jms-{kind}-")
    value = body.entries() if isinstance(body, MapBody) else _object(body.data)
    return _written(_element(value), transformation), transformation


def shown_advisory(command: object, transformation: str) -> str:
    """The text of an advisory's data structure."""
    return _written(_command(command), transformation, many=True)


def _written(element: Element, transformation: str, *, many: bool = False) -> str:
    return _json(element, many=many) if transformation.endswith("json") else _xml(element, 0)


def _element(value: Any) -> Element:
    if value is None:
        return Element("null")
    if isinstance(value, bytes):
        return Element("byte-array", base64.b64encode(value).decode())
    if isinstance(value, list):
        return Element("list", children=tuple(map(_element, value)))
    if isinstance(value, dict):
        names = set_order(map_order(value), max(1, len(value)))
        entries = (Element("entry", children=(Element("string", name), _element(value[name]))) for name in names)
        return Element("map", children=tuple(entries))
    if isinstance(value, Char):
        return Element("char", "" if value == "\0" else str(value))
    if isinstance(value, str):
        return Element("string", value)
    kind = MapBody({"x": value}).entry_types()["x"]
    return Element(kind, java_text(value))


_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;", "\r": "&#xd;"}
_ESCAPED = re.compile("[&<>\"'\x00-\x08\x0b-\x1f\x7f-\x9f]")


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda found: _ESCAPES.get(found[0]) or f"&#x{ord(found[0]):x};", text)


def _xml(element: Element, depth: int) -> str:
    """PrettyPrintWriter's form."""
    blank = "  " * depth
    head = element.tag + "".join(f' {name}="{_escape(value)}"' for name, value in element.attributes)
    if element.children:
        within = "\n".join(_xml(each, depth + 1) for each in element.children)
        return f"{blank}<{head}>\n{within}\n{blank}</{element.tag}>"
    if element.text is None:
        return f"{blank}<{head}/>"
    return f"{blank}<{head}>{_escape(element.text)}</{element.tag}>"


def _json(element: Element, *, many: bool) -> str:
    """As Jettison's mapped convention writes it. many: a collection is an array though it stands alone, as in the JSON
    of advisories."""
    return "{" + f"{_quoted(element.tag)}:{_json_value(element, many)}" + "}"


_COLLECTIONS = frozenset({"map", "list", "properties", "data", "byte-array"})


def _json_value(element: Element, many: bool) -> str:
    if not element.children and not element.attributes:
        return _primitive(element.text or "")
    parts = [f"{_quoted('@' + name)}:{_quoted(value)}" for name, value in element.attributes]
    by_tag: dict[str, list[str]] = {}
    for child in element.children:
        by_tag.setdefault(child.tag, []).append(_json_value(child, many))
    for tag, values in by_tag.items():
        single = len(values) == 1 and not (many and tag in _COLLECTIONS)
        parts.append(f"{_quoted(tag)}:{values[0] if single else '[' + ','.join(values) + ']'}")
    return "{" + ",".join(parts) + "}"


def _primitive(text: str) -> str:
    """A string that has the very form of a number or a truth value is written as one."""
    if text in ("true", "false"):
        return text
    if re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text) and -(1 << 63) <= int(text) < 1 << 63:
        return text
    if re.fullmatch(r"-?[0-9]+\.[0-9]+(E-?[0-9]+)?", text) and java_text(float(text)) == text:
        return text if "E" in text else text.rstrip("0").rstrip(".")
    return _quoted(text)


_SHORT = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_QUOTED = re.compile(r'["\\\x00-\x1f]|^/|(?<=<)/')


def _quoted(text: str) -> str:
    """JSONObject.quote."""
    return '"' + _QUOTED.sub(lambda each: _SHORT.get(each[0]) or f"\\u{ord(each[0]):04x}", text) + '"'


# Reading


def body_of(text: str, transformation: str) -> MapBody | ObjectBody:
    """The body that a SEND carries as XML or JSON. Raises TransformationError."""
    element = _read_json(text) if transformation.endswith("json") else _read_xml(text)
    value = _value(element)
    if not transformation.startswith("jms-map-"):
        return ObjectBody(_serialized(value))
    if not isinstance(value, dict):
        kind = _class_name(value)
        raise TransformationError(
            f"class {kind} cannot be cast to class java.util.Map ({kind} and java.util.Map are in module java.base of "
            "loader 'bootstrap')"
        )
    for name, each in value.items():
        if not name:
            raise TransformationError("The name of the property cannot be an emprty string.")
        _check_flat(each)
    return MapBody(value)


def _check_flat(value: Any) -> None:
    if isinstance(value, bytes):
        raise TransformationError("[B")


def _read_xml(text: str) -> Element:
    """The elements of a document, without anything of a DTD."""
    root = Element("")
    open_elements: list[tuple[Element, list[Element], list[str]]] = [(root, [], [])]
    number = 0
    parser = expat.ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal number
        number += 1
        if len(open_elements) > DEEPEST or number > LARGEST:
            raise TransformationError("")
        open_elements.append((Element(tag, attributes=tuple(attributes.items())), [], []))

    def end(tag: str) -> None:
        element, children, texts = open_elements.pop()
        element.children = tuple(children)
        element.text = "".join(texts)
        open_elements[-1][1].append(element)

    def refuse(*unused: object) -> None:
        raise TransformationError("")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = lambda data: open_elements[-1][2].append(data)
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, UnicodeEncodeError) as error:
        raise TransformationError("") from error
    return open_elements[0][1][0]


class _Number(str):
    """A number of a JSON document, as it is written."""


def _read_json(text: str) -> Element:
    try:
        found = json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_Number)
    except (ValueError, RecursionError) as error:
        raise TransformationError("") from error
    if not isinstance(found, dict) or len(found) != 1:
        raise UnexplainedError("")
    ((tag, value),) = found.items()
    return _from_json(tag, value, 0)


def _from_json(tag: str, value: Any, depth: int) -> Element:
    if depth > DEEPEST:
        raise TransformationError("")
    if isinstance(value, dict):
        children: list[Element] = []
        for name, each in value.items():
            if name[:1] not in ("@", "$"):
                many = each if isinstance(each, list) else [each]
                children += [_from_json(name, part, depth + 1) for part in many]
        return Element(tag, "", tuple(children))
    if isinstance(value, list):
        raise TransformationError("")
    return Element(tag, value if isinstance(value, str) else {True: "true", False: "false", None: ""}[value])


# Classes that XStream knows by a name of its own, and does not trust, or that a message cannot carry.
_REFUSED = {
    "date": "java.util.Date", "sql-date": "java.sql.Date", "sql-timestamp": "java.sql.Timestamp", "url": "java.net.URL",
    "big-decimal": "java.math.BigDecimal", "big-int": "java.math.BigInteger",
}  # fmt: skip
_MAPS = ("map", "linked-hash-map", "java.util.HashMap", "java.util.LinkedHashMap")
_LISTS = ("list", "linked-list", "java.util.ArrayList", "java.util.LinkedList")
_BITS = {"byte": 8, "short": 16, "int": 32, "long": 64}


_CLASSES = {f"java.lang.{kind.title()}": kind for kind in ("byte", "short", "long", "float", "double", "boolean")}
_CLASSES |= {"java.lang.String": "string", "java.lang.Integer": "int", "java.lang.Character": "char"}


def _value(element: Element) -> Any:
    text = element.text or ""
    tag = _CLASSES.get(element.tag, element.tag)
    if tag == "null":
        return None
    if tag == "string":
        return text
    if tag == "char":
        if len(text) > 1:
            raise TransformationError(text)
        return Char(text or "\0")
    if tag == "boolean":
        return text.strip().lower() in ("true", "yes", "on")
    if tag in _BITS:
        bits = _BITS[tag]
        if not re.fullmatch(r"[+-]?(0x|#)?[0-9a-fA-F]{1,20}", text.strip()):
            raise TransformationError(f'For input string: "{text}"')
        try:
            number = int(text.strip().replace("#", "0x"), 16 if "x" in text or "#" in text else 10)
            if not -(1 << bits - 1) <= number < 1 << bits - 1:
                raise ValueError(text)
        except ValueError as error:
            raise TransformationError(f'For input string: "{text}"') from error
        return SCALARS[tag](number)
    if tag in ("float", "double"):
        body = MapBody({"x": text})
        try:
            return numpy.float32(body.get_float("x")) if tag == "float" else body.get_double("x")
        except PyengineError as error:
            raise TransformationError(f'For input string: "{text}"') from error
    if tag == "byte-array":
        try:
            return base64.b64decode(text)
        except binascii.Error as error:
            raise TransformationError("") from error
    if tag in _LISTS:
        return [_value(each) for each in element.children]
    if tag in _MAPS:
        found: dict[str, Any] = {}
        for entry in element.children:
            if len(entry.children) < 2:
                raise TransformationError("")
            name = _value(entry.children[0])
            if not isinstance(name, str):
                kind = _class_name(name)
                raise TransformationError(
                    f"class {kind} cannot be cast to class java.lang.String ({kind} and java.lang.String are in module "
                    "java.base of loader 'bootstrap')"
                )
            found[name] = _value(entry.children[1])
        return found
    if tag in ("tree-map", "tree-set"):
        raise UnexplainedError("")
    raise TransformationError(_REFUSED.get(tag, tag))


def _class_name(value: Any) -> str:
    kind = MapBody({"x": value}).entry_types()["x"]
    return {
        "int": "java.lang.Integer", "list": "java.util.ArrayList", "map": "java.util.HashMap", "bytes": "[B",
        "char": "java.lang.Character",
    }.get(kind, f"java.lang.{kind.title()}")  # fmt: skip


# Java's serialized form


_MAGIC = b"\xac\xed\x00\x05"
_NUMBER = bytes.fromhex("7200106a6176612e6c616e672e4e756d62657286ac951d0b94e08b02000078 70".replace(" ", ""))
# Element -> its class, serialVersionUID, the type of its field and how that is packed, and whether it is a Number.
_BOXED: dict[str, tuple[str, str, str, str, bool]] = {
    "byte": ("java.lang.Byte", "9c4e6084ee50f51c", "B", ">b", True),
    "short": ("java.lang.Short", "684d37133460da52", "S", ">h", True),
    "int": ("java.lang.Integer", "12e2a0a4f7818738", "I", ">i", True),
    "long": ("java.lang.Long", "3b8be490cc8f23df", "J", ">q", True),
    "float": ("java.lang.Float", "daedc9a2db3cf0ec", "F", ">f", True),
    "double": ("java.lang.Double", "80b3c24a296bfb04", "D", ">d", True),
    "boolean": ("java.lang.Boolean", "cd207280d59cfaee", "Z", ">?", False),
    "char": ("java.lang.Character", "348b47d96b1a2678", "C", ">H", False),
}


def _header(kind: str) -> bytes:
    name, version, field, _, number = _BOXED[kind]
    head = b"sr" + struct.pack(">H", len(name)) + name.encode() + bytes.fromhex(version) + b"\x02\x00\x01"
    return _MAGIC + head + field.encode() + b"\x00\x05valuex" + (_NUMBER if number else b"p")


_HEADERS = {_header(kind): kind for kind in _BOXED}
_RESET = b"y"  # what ActiveMQ's ObjectMessage ends with


def _object(data: bytes) -> Any:
    """The value of a serialized string or boxed value. Raises UntrustedObjectError for anything else."""
    if not data:
        return None
    if data.startswith(_MAGIC):
        rest = data[len(_MAGIC) :].removesuffix(_RESET)
        if rest == b"p":
            return None
        length = 3 if rest[:1] == b"t" else 9 if rest[:1] == b"|" else 0
        if length and len(rest) >= length and int.from_bytes(rest[1:length], "big") == len(rest) - length:
            text = modified_utf8.decode(rest[length:])
            if text is None:
                raise UntrustedObjectError("a string that is not Java's")
            return text
        for header, kind in _HEADERS.items():
            form = _BOXED[kind][3]
            if data.startswith(header) and len(data) - len(header) - struct.calcsize(form) in (0, 1):
                number = struct.unpack_from(form, data, len(header))[0]
                return SCALARS[kind](chr(number) if kind == "char" else number)
    raise UntrustedObjectError("an object of a class that is not trusted")


def _serialized(value: Any) -> bytes:
    """The bytes of an ObjectMessage; the classes of maps and lists are HashMap and ArrayList. Raises
    TransformationError for an array of bytes, a class that XStream does not trust."""
    return b"" if value is None else _MAGIC + _ObjectStream().written(value) + _RESET


class _ObjectStream:
    """Java's object serialization stream protocol, for strings, boxed values, and maps and lists of them.

    A class is described at its first object; what was written has a handle, by its number.
    """

    def __init__(self) -> None:
        self._handles = 0x7E0000
        self._described: dict[str, int] = {}

    def written(self, value: Any) -> bytes:
        """A value with its type code."""
        if value is None:
            return b"p"
        if isinstance(value, str) and not isinstance(value, Char):
            self._handles += 1
            data = modified_utf8.encode(value)
            head = b"t" + struct.pack(">H", len(data)) if len(data) < 1 << 16 else b"|" + struct.pack(">Q", len(data))
            return head + data
        kind = MapBody({"x": value}).entry_types()["x"]
        if kind == "bytes":
            raise TransformationError("[B")
        described = self._class(kind)
        self._handles += 1
        return b"s" + described + self._fields(kind, value)

    def _class(self, kind: str) -> bytes:
        if kind in self._described:
            return b"q" + struct.pack(">I", self._described[kind])
        self._described[kind] = self._handles
        self._handles += 1
        parent = b"p"
        if kind in _BOXED:
            name, version, field, _, number = _BOXED[kind]
            flags, fields = 2, [(field, "value")]
            if number:
                parent = self._class("number")
        else:
            name, version, flags, fields = _CLASSES_OF_VALUES[kind]
        parts = b"".join(each.encode() + _named(field) for each, field in fields)
        head = b"r" + _named(name) + bytes.fromhex(version) + struct.pack(">BH", flags, len(fields))
        return head + parts + b"x" + parent

    def _fields(self, kind: str, value: Any) -> bytes:
        if kind == "map":
            buckets = 16
            while len(value) > buckets * 3 // 4:
                buckets *= 2
            threshold = buckets * 3 // 4 if value else 0
            entries = b"".join(self.written(key) + self.written(value[key]) for key in set_order(value))
            sizes = b"w\x08" + struct.pack(">ii", buckets, len(value))
            return struct.pack(">fi", 0.75, threshold) + sizes + entries + b"x"
        if kind == "list":
            size = struct.pack(">i", len(value))
            return size + b"w\x04" + size + b"".join(map(self.written, value)) + b"x"
        return struct.pack(_BOXED[kind][3], ord(value) if kind == "char" else value)


def _named(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


# Kind of a value -> its class, serialVersionUID, flags and fields.
_CLASSES_OF_VALUES: dict[str, tuple[str, str, int, list[tuple[str, str]]]] = {
    "number": ("java.lang.Number", "86ac951d0b94e08b", 2, []),
    "map": ("java.util.HashMap", "0507dac1c31660d1", 3, [("F", "loadFactor"), ("I", "threshold")]),
    "list": ("java.util.ArrayList", "7881d21d99c7619d", 3, [("I", "size")]),
}


# Commands, as XStream shows their fields


def _texts(**given: object) -> list[Element]:
    return [
        Element(name, str(value).lower() if isinstance(value, bool) else str(value))
        for name, value in given.items()
        if value is not None
    ]


def _id(tag: str, name: str, kind: str, *, typed: bool = False) -> Element:
    """A connection's id, or one of a session, consumer or producer: connection, session and number."""
    attributes = (("class", f"{kind.title()}Id"),) if typed else ()
    connection, session, number = [*name.rsplit(":", 2), "0", "0"][:3]
    if kind == "connection" or not session.lstrip("-").isdecimal() or not number.isdecimal():
        return Element(tag, children=(Element("value", name),), attributes=attributes)
    parts = _texts(connectionId=connection, sessionId=session, value=number)
    return Element(tag, children=tuple(parts), attributes=attributes)


def _destination(tag: str, destination: Destination) -> Element:
    options = {name: value or "" for name, value in destination.options}
    last = _element(options) if options else Element("null")
    kind = f"ActiveMQ{TYPE_NAMES[destination.kind]}"
    return Element(tag, children=(Element("string", destination.name), last), attributes=(("class", kind),))


def _command(command: object) -> Element:
    found = _texts(commandId=0, responseRequired=False)
    if isinstance(command, ConnectionInfo):
        found.append(_id("connectionId", command.connection_id, "connection"))
        found += _texts(clientId=command.client_id, clientIp=command.client_ip, userName=command.user_name)
        found += _texts(password="", brokerMasterConnector=False, manageable=False, clientMaster=True)
        found += _texts(faultTolerant=False, failoverReconnect=False)
    elif isinstance(command, ConsumerInfo):
        found.append(_id("consumerId", command.consumer_id, "consumer"))
        found.append(_destination("destination", command.destination))
        found += _texts(prefetchSize=command.prefetch_size)
        found += _texts(maximumPendingMessageLimit=command.maximum_pending_message_limit, browser=command.browser)
        found += _texts(dispatchAsync=command.dispatch_async, selector=command.selector)
        found += _texts(subscriptionName=command.subscription_name or None, noLocal=command.no_local)
        found += _texts(exclusive=command.exclusive, retroactive=command.retroactive, priority=command.priority)
        found += _texts(optimizedAcknowledge=False, noRangeAcks=False)
    elif isinstance(command, ProducerInfo):
        found.append(_id("producerId", command.producer_id, "producer"))
        if command.destination is not None:
            found.append(_destination("destination", command.destination))
        found += _texts(dispatchAsync=False, windowSize=0, sentCount=0)
    elif isinstance(command, DestinationInfo):
        if command.connection_id:
            found.append(_id("connectionId", command.connection_id, "connection"))
        found.append(_destination("destination", command.destination))
        found += _texts(operationType=int(command.removed), timeout=0)
    elif isinstance(command, RemoveInfo):
        found.append(_id("objectId", command.object_id, command.kind, typed=True))
        found += _texts(lastDeliveredSequenceId=-2)
    elif isinstance(command, RemoveSubscriptionInfo):
        found.append(_id("connectionId", command.connection_id, "connection"))
        found += _texts(clientId=command.client_id, subscriptionName=command.subscription_name)
    elif isinstance(command, Message):
        return _message(command, found)
    else:
        return Element("null")
    return Element(type(command).__name__, children=tuple(found))


def _message(message: Message, found: list[Element]) -> Element:
    """A message without its body and its marshalled properties."""
    head, _, sequence = (message.message_id or "").rpartition(":")
    producer = _id("producerId", head, "producer")
    numbers = _texts(producerSequenceId=sequence, brokerSequenceId=message.broker_sequence)
    found.append(Element("messageId", children=(producer, *numbers)))
    for tag, name in (("originalDestination", message.original_destination), ("destination", message.destination)):
        if tag == "destination":
            found.append(producer)
        if name is not None:
            kind, _, text = name.partition("://")
            found.append(_destination(tag, Destination(text, kind)))
    found += _texts(deliveryTime=0, expiration=message.expiration, timestamp=message.timestamp, arrival=0)
    found += _texts(brokerInTime=message.broker_in_time, brokerOutTime=message.broker_out_time)
    found += _texts(correlationId=message.correlation_id, persistent=message.persistent, type=message.type)
    found += _texts(priority=message.priority, groupID=message.group_id, groupSequence=message.group_sequence)
    found += _texts(compressed=False, userID=message.user_id, redeliveryCounter=message.redelivery_counter)
    found += _texts(size=message.size)
    properties = message.properties()
    if properties:
        entries = _element(MapBody(properties).entries()).children
        found.append(Element("properties", children=entries))
    found += _texts(readOnlyProperties=True, readOnlyBody=False, droppable=False)
    found += _texts(jmsXGroupFirstForConsumer=message.group_first_for_consumer)
    kinds = {str: "Text", bytes: "Bytes", MapBody: "Map", StreamBody: "Stream", ObjectBody: "Object"}
    return Element(f"ActiveMQ{kinds.get(type(message.body), '')}Message", children=tuple(found))
