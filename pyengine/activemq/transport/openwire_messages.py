"""Messages from OpenWire's commands and back (command.Message and its subclasses)."""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Any

from pyengine._engine.java import modified_utf8
from pyengine._engine.java.scalars import SCALARS
from pyengine._engine.message.body import MapBody, ObjectBody, StreamBody
from pyengine._engine.message.message import Message
from pyengine._engine.wire.data_structure import DataStructure
from pyengine._engine.wire.openwire_types import TYPES
from pyengine._engine.wire.primitives import (
    read_primitive_map,
    read_primitives,
    write_primitive_map,
    write_primitives,
)
from pyengine.activemq.transport.commands import (
    ConnectionInfo,
    ConsumerInfo,
    DestinationInfo,
    ProducerInfo,
    RemoveInfo,
    RemoveSubscriptionInfo,
)
from pyengine.activemq.transport.dispatched_messages import NOT_KNOWN
from pyengine.destinations import TYPE_NAMES, Destination
from pyengine.errors import ProtocolError

BEGIN, PREPARE, COMMIT_ONE_PHASE, COMMIT_TWO_PHASE, ROLLBACK, RECOVER, FORGET, END = range(8)  # TransactionInfo
ADD, REMOVE = 0, 1  # DestinationInfo
LARGEST_BODY = 100 * 1024 * 1024  # bytes that a compressed body may become

_KINDS = {f"ActiveMQ{name}": kind for kind, name in TYPE_NAMES.items()}
_DESTINATIONS = {kind: TYPES[name] for name, kind in _KINDS.items()}
_PRODUCER_ID, _MESSAGE_ID, _BROKER_ID = TYPES["ProducerId"], TYPES["MessageId"], TYPES["BrokerId"]
_CONSUMER_ID, _SESSION_ID, _CONNECTION_ID = TYPES["ConsumerId"], TYPES["SessionId"], TYPES["ConnectionId"]
_LOCAL_TRANSACTION_ID = TYPES["LocalTransactionId"]
_BODIES = {
    type(None): TYPES["ActiveMQMessage"],
    str: TYPES["ActiveMQTextMessage"],
    bytes: TYPES["ActiveMQBytesMessage"],
    MapBody: TYPES["ActiveMQMapMessage"],
    StreamBody: TYPES["ActiveMQStreamMessage"],
    ObjectBody: TYPES["ActiveMQObjectMessage"],
}


# Ids and destinations


def id_text(identity: DataStructure) -> str:
    """The text of an id, as its toString says it; kept with the structure, which the cache gives again."""
    found: str | None = identity.meaning
    if found is None:
        found = identity.meaning = _id_text(identity)
    return found


def _id_text(identity: DataStructure) -> str:
    name = identity.kind.name
    if name == "MessageId":
        if identity.text_view is not None:
            return str(identity.text_view)
        return f"{id_text(identity.producer_id)}:{identity.producer_sequence_id}"
    if name in ("ConsumerId", "ProducerId"):
        return f"{identity.connection_id}:{identity.session_id}:{identity.value}"
    if name == "SessionId":
        return f"{identity.connection_id}:{identity.value}"
    if name == "LocalTransactionId":
        return f"TX:{id_text(identity.connection_id)}:{identity.value}"
    if name == "XATransactionId":
        parts = (identity.global_transaction_id or b"", identity.branch_qualifier or b"")
        return f"XID:[{identity.format_id},globalId={parts[0].hex()},branchId={parts[1].hex()}]"
    if name in ("ConnectionId", "BrokerId"):
        return str(identity.value)
    raise ProtocolError(f"a {name} is not an id")


def _numbers(text: str, count: int) -> list[Any] | None:
    """``connection:1:2`` as [connection, 1, 2]; None for another form."""
    parts: list[Any] = text.rsplit(":", count)
    if len(parts) != count + 1:
        return None
    for place in range(1, count + 1):
        digits = parts[place].removeprefix("-")
        if not (digits.isascii() and digits.isdecimal()) or len(digits) > 18:
            return None
        parts[place] = int(parts[place])
    return parts


@lru_cache(maxsize=4096)
def producer_id(text: str) -> DataStructure:
    """The id of a producer from its text; of another form: one that has the text as its connection."""
    parts = _numbers(text, 2) or [text, -1, 0]
    return _PRODUCER_ID(connection_id=parts[0], session_id=parts[1], value=parts[2])


@lru_cache(maxsize=4096)
def consumer_id(text: str) -> DataStructure:
    """The id of a consumer from its text."""
    parts = _numbers(text, 2) or [text, -1, 0]
    return _CONSUMER_ID(connection_id=parts[0], session_id=parts[1], value=parts[2])


def session_id(text: str) -> DataStructure:
    """The id of a session from its text."""
    parts = _numbers(text, 1) or [text, -1]
    return _SESSION_ID(connection_id=parts[0], value=parts[1])


@lru_cache(maxsize=1024)
def connection_id(text: str) -> DataStructure:
    """The id of a connection from its text."""
    return _CONNECTION_ID(value=text)


@lru_cache(maxsize=1024)
def transaction_id(text: str) -> DataStructure:
    """The id of a local transaction, ``TX:connection:number``, from its text."""
    parts = _numbers(text.removeprefix("TX:"), 1) or [text, 0]
    return _LOCAL_TRANSACTION_ID(connection_id=connection_id(parts[0]), value=parts[1])


def message_id(text: str, broker_sequence: int = 0) -> DataStructure:
    """The id of a message from its text; one of another form than ``producer:number`` is its text view."""
    producer, _, number = text.rpartition(":")
    if number.isascii() and number.isdecimal() and len(number) <= 18 and _numbers(producer, 2) is not None:
        return _MESSAGE_ID(
            producer_id=producer_id(producer), producer_sequence_id=int(number), broker_sequence_id=broker_sequence
        )
    return _MESSAGE_ID(text_view=text, producer_id=producer_id(text), broker_sequence_id=broker_sequence)


def destination_of(structure: DataStructure) -> Destination:
    """The destination that a command names; kept with the structure."""
    found: Destination | None = structure.meaning
    if found is None:
        found = structure.meaning = Destination(structure.physical_name, _KINDS[structure.kind.name])
    return found


@lru_cache(maxsize=4096)
def destination_structure(destination: Destination) -> DataStructure:
    """A destination as commands name it."""
    return _DESTINATIONS[destination.kind](physical_name=destination.name)


@lru_cache(maxsize=4096)
def _qualified(text: str) -> DataStructure:
    kind, _, name = text.partition("://")
    return _DESTINATIONS[kind](physical_name=name)


def _text_of(structure: DataStructure | None) -> str | None:
    return None if structure is None else str(destination_of(structure))


# Commands that an advisory reports

_REMOVED = {"connection": connection_id, "consumer": consumer_id, "producer": producer_id}


def structure_of(data: object) -> DataStructure | None:
    """A command that an advisory reports, as OpenWire has it; None for another object."""
    if isinstance(data, ConsumerInfo):
        return TYPES["ConsumerInfo"](
            consumer_id=consumer_id(data.consumer_id),
            destination=destination_structure(data.destination),
            prefetch_size=data.prefetch_size,
            selector=data.selector,
            subscription_name=data.subscription_name or None,
            priority=data.priority,
            exclusive=data.exclusive,
            retroactive=data.retroactive,
            no_local=data.no_local,
            browser=data.browser,
            dispatch_async=data.dispatch_async,
            maximum_pending_message_limit=data.maximum_pending_message_limit,
            network_subscription=data.network_subscription,
        )
    if isinstance(data, ProducerInfo):
        destination = None if data.destination is None else destination_structure(data.destination)
        return TYPES["ProducerInfo"](producer_id=producer_id(data.producer_id), destination=destination)
    if isinstance(data, DestinationInfo):
        return TYPES["DestinationInfo"](
            connection_id=connection_id(data.connection_id) if data.connection_id else None,
            destination=destination_structure(data.destination),
            operation_type=REMOVE if data.removed else ADD,
        )
    if isinstance(data, ConnectionInfo):
        return TYPES["ConnectionInfo"](
            connection_id=connection_id(data.connection_id),
            client_id=data.client_id,
            user_name=data.user_name,
            client_ip=data.client_ip,
        )
    if isinstance(data, RemoveInfo):
        return TYPES["RemoveInfo"](object_id=_REMOVED[data.kind](data.object_id), last_delivered_sequence_id=NOT_KNOWN)
    if isinstance(data, RemoveSubscriptionInfo):
        return TYPES["RemoveSubscriptionInfo"](
            connection_id=connection_id(data.connection_id),
            client_id=data.client_id,
            subscription_name=data.subscription_name,
        )
    if isinstance(data, Message):
        return command_of(data)
    return None


def reported(structure: DataStructure | None) -> object | None:
    """The command that an advisory of a broker reports; None for one that is not known here."""
    if structure is None:
        return None
    kind = structure.kind.name
    if kind == "ConsumerInfo" and structure.consumer_id is not None and structure.destination is not None:
        return consumer_info(structure, "")
    if kind == "ProducerInfo" and structure.producer_id is not None:
        destination = None if structure.destination is None else destination_of(structure.destination)
        return ProducerInfo(id_text(structure.producer_id), str(structure.producer_id.connection_id), destination)
    if kind == "DestinationInfo" and structure.destination is not None:
        identity = structure.connection_id
        return DestinationInfo(
            destination_of(structure.destination),
            removed=structure.operation_type == REMOVE,
            connection_id="" if identity is None else id_text(identity),
        )
    if kind == "ConnectionInfo" and structure.connection_id is not None:
        return ConnectionInfo(
            id_text(structure.connection_id),
            structure.client_id or "",
            user_name=structure.user_name,
            client_ip=structure.client_ip,
        )
    if kind == "RemoveInfo" and structure.object_id is not None:
        name = structure.object_id.kind.name.removesuffix("Id").lower()
        if name in _REMOVED:
            return RemoveInfo(name, id_text(structure.object_id))
    return None


def consumer_info(command: DataStructure, connection: str) -> ConsumerInfo:
    """A consumer as the broker takes it; connection: its connection's id, by default that of its own id."""
    identity = command.consumer_id
    return ConsumerInfo(
        consumer_id=id_text(identity),
        session_id=f"{identity.connection_id}:{identity.session_id}",
        connection_id=connection or str(identity.connection_id),
        destination=destination_of(command.destination),
        prefetch_size=command.prefetch_size,
        selector=command.selector,
        subscription_name=command.subscription_name or "",
        priority=command.priority,
        exclusive=command.exclusive,
        retroactive=command.retroactive,
        no_local=command.no_local,
        browser=command.browser,
        dispatch_async=command.dispatch_async,
        maximum_pending_message_limit=command.maximum_pending_message_limit,
        network_subscription=command.network_subscription,
    )


# Messages


def message_of(command: DataStructure) -> Message:
    """The message of a command. Raises ProtocolError for properties or a body that are not what they should be."""
    message = Message()
    message.body = _body(command)
    message.message_id = id_text(command.message_id)
    message.persistent = command.persistent
    message.priority = min(max(command.priority, 0), 9)
    message.timestamp = command.timestamp
    message.expiration = command.expiration
    message.redelivery_counter = command.redelivery_counter
    if command.original_destination is not None:
        message.original_destination = _text_of(command.original_destination)
    if command.reply_to is not None:
        message.reply_to = _text_of(command.reply_to)
    message.type = command.type
    message.correlation_id = command.correlation_id
    message.group_id = command.group_id
    message.group_sequence = command.group_sequence
    message.user_id = command.user_id
    message.group_first_for_consumer = command.group_first_for_consumer
    if command.broker_path is not None:
        message.broker_path = [id_text(each) for each in command.broker_path if each is not None]
    if command.target_consumer_id is not None:
        message.target_consumer_id = id_text(command.target_consumer_id)
    if command.original_transaction_id is not None:
        message.producer_transaction_id = id_text(command.original_transaction_id)
    if command.data_structure is not None:
        message.data_structure = reported(command.data_structure)
    if command.marshalled_properties is not None:
        for name, kind, value in read_primitive_map(command.marshalled_properties) or ():
            _set_property(message, name, kind, value)
    return message


def _set_property(message: Message, name: str, kind: str, value: Any) -> None:
    if kind in SCALARS:
        message.set_property(name, SCALARS[kind](value))
    elif kind in ("map", "list"):
        message.set_object_property(name, _plain(kind, value))
    elif kind == "bytes":
        raise ProtocolError(f"property {name}: a byte array is not a value of a property")
    else:
        message.set_property(name, value)


def _plain(kind: str, value: Any) -> Any:
    if kind == "map":
        return None if value is None else {name: _plain(each, inner) for name, each, inner in value}
    if kind == "list":
        return [_plain(each, inner) for each, inner in value]
    return SCALARS[kind](value) if kind in SCALARS else value


def _inflated(data: bytes) -> bytes:
    inflater = zlib.decompressobj()
    try:
        found = inflater.decompress(data, LARGEST_BODY)
    except zlib.error as error:
        raise ProtocolError(f"a compressed body cannot be decompressed: {error}") from error
    if not inflater.eof:
        problem = f"more than {LARGEST_BODY} bytes" if len(found) == LARGEST_BODY else "ends too early"
        raise ProtocolError(f"a compressed body cannot be decompressed: {problem}")
    return found


def _body(command: DataStructure) -> Any:
    name, content = command.kind.name, command.content
    if content is not None and command.compressed:
        content = _inflated(content[4:] if name == "ActiveMQBytesMessage" else content)
    if name == "ActiveMQTextMessage":
        return "" if content is None else _text_body(content)
    if name == "ActiveMQBytesMessage":
        return content or b""
    if name == "ActiveMQMapMessage":
        return MapBody(_plain("map", read_primitive_map(content) or []) if content else {})
    if name == "ActiveMQStreamMessage":
        stream = StreamBody([_plain(kind, value) for kind, value in read_primitives(content or b"")])
        stream.reset()
        return stream
    if name == "ActiveMQObjectMessage":
        return ObjectBody(content or b"")
    return None


def _text_body(content: bytes) -> str | None:
    size = int.from_bytes(content[:4], signed=True)
    if len(content) < 4 or size != len(content) - 4:
        if size == -1:
            return None
        raise ProtocolError(f"a text body says that it has {size} bytes, and {len(content) - 4} follow")
    text = modified_utf8.decode(content[4:])
    if text is None:
        raise ProtocolError("a text body is not modified UTF-8")
    return text


def content_of(body: Any) -> bytes | None:
    """A body as the content of its message."""
    if body is None:
        return None
    if isinstance(body, str):
        data = modified_utf8.encode(body)
        return len(data).to_bytes(4) + data
    if isinstance(body, bytes):
        return body
    if isinstance(body, MapBody):
        return write_primitive_map(_typed_map(body.entries(), body.entry_types()))
    if isinstance(body, StreamBody):
        return write_primitives(
            [_typed(each, kind) for each, kind in zip(body.values(), body.value_types(), strict=True)]
        )
    return body.data or None


def _typed(value: Any, kind: str) -> tuple[str, Any]:
    if kind == "map":
        nested = MapBody(value)
        return kind, _typed_map(nested.entries(), nested.entry_types())
    if kind == "list":
        kinds = MapBody({str(place): each for place, each in enumerate(value)}).entry_types()
        return kind, [_typed(each, kinds[str(place)]) for place, each in enumerate(value)]
    return kind, value


def _typed_map(entries: dict[str, Any], kinds: dict[str, str]) -> list[tuple[str, str, Any]]:
    return [(name, *_typed(value, kinds[name])) for name, value in entries.items()]


def marshalled_properties(message: Message) -> bytes | None:
    """The properties of a message as its command has them."""
    properties = message.properties()
    if not properties:
        return None
    kinds = message.property_types()
    items = []
    for name, value in properties.items():
        kind = kinds[name]
        if kind == "object":
            kind = "map" if isinstance(value, dict) else "list"
        items.append((name, *_typed(value, kind)))
    return write_primitive_map(items)


def command_of(message: Message, destination: Destination | None = None, **fields: Any) -> DataStructure:
    """A message as a command. destination: its own by default. fields: other fields of the command."""
    text = message.message_id or ""
    identity = message_id(text, message.broker_sequence)
    if destination is not None:
        fields["destination"] = destination_structure(destination)
    elif message.destination is not None:
        fields["destination"] = _qualified(message.destination)
    path = message.broker_path
    body = message.body
    return _BODIES[type(body)](
        producer_id=identity.producer_id,
        message_id=identity,
        original_destination=None if message.original_destination is None else _qualified(message.original_destination),
        original_transaction_id=(
            None if message.producer_transaction_id is None else transaction_id(message.producer_transaction_id)
        ),
        group_id=message.group_id,
        group_sequence=message.group_sequence,
        correlation_id=message.correlation_id,
        persistent=message.persistent,
        expiration=message.expiration,
        priority=message.priority,
        reply_to=None if message.reply_to is None else _qualified(message.reply_to),
        timestamp=message.timestamp,
        type=message.type,
        content=content_of(body),
        marshalled_properties=marshalled_properties(message),
        data_structure=None if message.data_structure is None else structure_of(message.data_structure),
        target_consumer_id=None if message.target_consumer_id is None else consumer_id(message.target_consumer_id),
        redelivery_counter=message.redelivery_counter,
        broker_path=None if path is None else [_BROKER_ID(value=each) for each in path],
        user_id=message.user_id,
        broker_in_time=message.broker_in_time,
        broker_out_time=message.broker_out_time,
        group_first_for_consumer=message.group_first_for_consumer,
        **fields,
    )
