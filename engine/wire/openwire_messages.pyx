"""See openwire_messages.pxd."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from pyengine._engine.activemq.commands.message_dispatch cimport MessageDispatch
from pyengine._engine.java cimport value as java
from pyengine._engine.java.modified_utf8 cimport decode_modified_utf8, encode_modified_utf8
from pyengine._engine.java.value cimport Value, python_value
from pyengine._engine.message.conversion cimport destination_text, hidden_prefix
from pyengine._engine.message.message cimport Message
from pyengine._engine.wire.byte_block cimport Block, put, written
from pyengine._engine.wire.data_structure cimport DataStructure, StructureType
from pyengine._engine.wire.data_structure cimport structure_of as new_structure
from pyengine._engine.wire.primitives cimport (
    BOOLEAN, BYTE, DOUBLE, FLOAT, INTEGER, LONG, SHORT, PrimitiveReader, add, add_double, add_float, add_name, add_text,
)

import zlib
from functools import lru_cache

from pyengine._engine.activemq.commands.destination import Destination
from pyengine._engine.activemq.commands.info import (
    ConnectionInfo,
    ConsumerInfo,
    DestinationInfo,
    ProducerInfo,
    RemoveInfo,
    RemoveSubscriptionInfo,
)
from pyengine._engine.java.scalars import SCALARS
from pyengine._engine.message.body import MapBody, ObjectBody, StreamBody
from pyengine._engine.wire.openwire_types import TYPES
from pyengine._engine.wire.primitives import (
    read_primitive_map,
    read_primitives,
    write_primitive_map,
    write_primitives,
)
from pyengine.errors import ProtocolError

BEGIN, PREPARE, COMMIT_ONE_PHASE, COMMIT_TWO_PHASE, ROLLBACK, RECOVER, FORGET, END = range(8)  # TransactionInfo
ADD, REMOVE = 0, 1  # DestinationInfo
NEVER_DELIVERED = -1  # RemoveInfo.LAST_DELIVERED_UNSET
NOT_KNOWN = -2  # RemoveInfo.LAST_DELIVERED_UNKNOWN
LARGEST_BODY = 100 * 1024 * 1024  # bytes that a compressed body may become

cdef dict KINDS = {"ActiveMQQueue": "queue", "ActiveMQTopic": "topic", "ActiveMQTempQueue": "temp-queue",
                   "ActiveMQTempTopic": "temp-topic"}
cdef dict DESTINATIONS = {kind: TYPES[name] for name, kind in KINDS.items()}
cdef StructureType PRODUCER_ID = TYPES["ProducerId"]
cdef StructureType MESSAGE_ID = TYPES["MessageId"]
cdef StructureType BROKER_ID = TYPES["BrokerId"]
cdef StructureType CONSUMER_ID = TYPES["ConsumerId"]
cdef StructureType SESSION_ID = TYPES["SessionId"]
cdef StructureType CONNECTION_ID = TYPES["ConnectionId"]
cdef StructureType LOCAL_TRANSACTION_ID = TYPES["LocalTransactionId"]
cdef StructureType XA_TRANSACTION_ID = TYPES["XATransactionId"]
cdef StructureType MESSAGE = TYPES["Message"]
cdef StructureType PLAIN = TYPES["ActiveMQMessage"]
cdef StructureType TEXT = TYPES["ActiveMQTextMessage"]
cdef StructureType OCTETS = TYPES["ActiveMQBytesMessage"]
cdef dict BODIES = {
    MapBody: TYPES["ActiveMQMapMessage"],
    StreamBody: TYPES["ActiveMQStreamMessage"],
    ObjectBody: TYPES["ActiveMQObjectMessage"],
}
cdef dict SLOTS = MESSAGE.places       # of every message
cdef int PRODUCER = SLOTS["producer_id"]
cdef int WHERE = SLOTS["destination"]
cdef int TRANSACTION = SLOTS["transaction_id"]
cdef int ORIGINAL = SLOTS["original_destination"]
cdef int IDENTITY = SLOTS["message_id"]
cdef int ORIGINAL_TRANSACTION = SLOTS["original_transaction_id"]
cdef int GROUP = SLOTS["group_id"]
cdef int GROUP_NUMBER = SLOTS["group_sequence"]
cdef int CORRELATION = SLOTS["correlation_id"]
cdef int PERSISTENT = SLOTS["persistent"]
cdef int EXPIRATION = SLOTS["expiration"]
cdef int PRIORITY = SLOTS["priority"]
cdef int REPLY = SLOTS["reply_to"]
cdef int TIMESTAMP = SLOTS["timestamp"]
cdef int TYPE = SLOTS["type"]
cdef int CONTENT = SLOTS["content"]
cdef int PROPERTIES = SLOTS["marshalled_properties"]
cdef int REPORTED = SLOTS["data_structure"]
cdef int TARGET = SLOTS["target_consumer_id"]
cdef int COMPRESSED = SLOTS["compressed"]
cdef int REDELIVERIES = SLOTS["redelivery_counter"]
cdef int PATH = SLOTS["broker_path"]
cdef int USER = SLOTS["user_id"]
cdef int IN_TIME = SLOTS["broker_in_time"]
cdef int OUT_TIME = SLOTS["broker_out_time"]
cdef int GROUP_FIRST = SLOTS["group_first_for_consumer"]
# Of a MessageId, and of the ids of consumers and producers.
cdef int ID_TEXT = MESSAGE_ID.places["text_view"]
cdef int ID_PRODUCER = MESSAGE_ID.places["producer_id"]
cdef int ID_NUMBER = MESSAGE_ID.places["producer_sequence_id"]
cdef int ID_POSITION = MESSAGE_ID.places["broker_sequence_id"]


# Ids and destinations


cpdef str id_text(DataStructure identity):
    """The text of an id, as its toString says it; kept with the structure, which the cache gives again."""
    cdef object found = identity.meaning
    if found is None:
        found = identity.meaning = text_of_id(identity)
    return found


cdef str text_of_id(DataStructure identity):
    cdef StructureType kind = identity.kind
    cdef list values = identity.values
    if kind is MESSAGE_ID:
        if values[ID_TEXT] is not None:
            return values[ID_TEXT]
        if values[ID_PRODUCER] is None:
            raise ProtocolError("a MessageId without a producer")
        return f"{id_text(values[ID_PRODUCER])}:{<int64_t> values[ID_NUMBER]}"
    if kind is CONSUMER_ID or kind is PRODUCER_ID:
        return f"{identity.connection_id}:{identity.session_id}:{identity.value}"
    if kind is SESSION_ID:
        return f"{identity.connection_id}:{identity.value}"
    if kind is LOCAL_TRANSACTION_ID:
        if identity.connection_id is None:
            raise ProtocolError("a LocalTransactionId without a connection")
        return f"TX:{id_text(identity.connection_id)}:{identity.value}"
    if kind is XA_TRANSACTION_ID:
        parts = (identity.global_transaction_id or b"", identity.branch_qualifier or b"")
        return f"XID:[{identity.format_id},globalId={parts[0].hex()},branchId={parts[1].hex()}]"
    if kind is CONNECTION_ID or kind is BROKER_ID:
        return str(identity.value)
    raise ProtocolError(f"a {kind.name} is not an id")


cdef list numbers(str text, int count):
    """``connection:1:2`` as [connection, 1, 2]; None for another form."""
    cdef list parts = text.rsplit(":", count)
    cdef int place
    if len(parts) != count + 1:
        return None
    for place in range(1, count + 1):
        digits = parts[place].removeprefix("-")
        if not (digits.isascii() and digits.isdecimal()) or len(digits) > 18:
            return None
        parts[place] = int(parts[place])
    return parts


@lru_cache(maxsize=4096)
def producer_id(str text not None):
    """The id of a producer from its text; of another form: one that has the text as its connection."""
    parts = numbers(text, 2) or [text, -1, 0]
    return PRODUCER_ID(connection_id=parts[0], session_id=parts[1], value=parts[2])


@lru_cache(maxsize=4096)
def consumer_id(str text not None):
    """The id of a consumer from its text."""
    parts = numbers(text, 2) or [text, -1, 0]
    return CONSUMER_ID(connection_id=parts[0], session_id=parts[1], value=parts[2])


def session_id(str text not None):
    """The id of a session from its text."""
    parts = numbers(text, 1) or [text, -1]
    return SESSION_ID(connection_id=parts[0], value=parts[1])


@lru_cache(maxsize=1024)
def connection_id(str text not None):
    """The id of a connection from its text."""
    return CONNECTION_ID(value=text)


@lru_cache(maxsize=1024)
def transaction_id(str text not None):
    """The id of a transaction from its text: ``TX:connection:number``, or ``XID:[...]``."""
    if text.startswith("XID:["):
        return xa_transaction_id(text)
    parts = numbers(text.removeprefix("TX:"), 1) or [text, 0]
    return LOCAL_TRANSACTION_ID(connection_id=connection_id(parts[0]), value=parts[1])


cdef DataStructure xa_transaction_id(str text):
    cdef list parts = text.removeprefix("XID:[").removesuffix("]").split(",")
    return XA_TRANSACTION_ID(
        format_id=int(parts[0]),
        global_transaction_id=bytes.fromhex(parts[1].removeprefix("globalId=")),
        branch_qualifier=bytes.fromhex(parts[2].removeprefix("branchId=")),
    )


# The producers of the messages of late -> their ids' structures; None: their text is not of a producer's id.
cdef dict producers = {}


cdef DataStructure producer_of(str text):
    cdef object found = producers.get(text, producers)
    if found is producers:
        if len(producers) >= 4096:
            producers.clear()
        found = producers[text] = producer_id(text) if numbers(text, 2) is not None else None
    return found


cpdef DataStructure message_id(str text, int64_t broker_sequence=0):
    """The id of a message from its text; one of another form than ``producer:number`` is its text view."""
    cdef list values = MESSAGE_ID.defaults.copy()
    cdef Py_ssize_t colon = text.rfind(":")
    cdef Py_ssize_t at, size = len(text)
    cdef int64_t number = 0
    cdef Py_UCS4 digit
    cdef DataStructure producer
    values[ID_POSITION] = broker_sequence
    if colon >= 0 and 0 < size - colon - 1 <= 18:
        for at in range(colon + 1, size):
            digit = text[at]
            if not 48 <= digit <= 57:       # 0 to 9
                break
            number = number * 10 + <int> digit - 48
        else:
            producer = producer_of(text[:colon])
            if producer is not None:
                values[ID_PRODUCER], values[ID_NUMBER] = producer, number
                return new_structure(MESSAGE_ID, values)
    values[ID_TEXT], values[ID_PRODUCER] = text, producer_id(text)
    return new_structure(MESSAGE_ID, values)


cdef class Where:
    """A destination that a command names."""

    cdef object destination
    cdef str text                   # qualified
    cdef int hidden                 # see Envelope

    def __reduce__(self):
        raise TypeError("what a structure means is not pickled")


cdef Where where_of(DataStructure structure):
    cdef object found = structure.meaning
    cdef Where where
    if found is None:
        where = Where.__new__(Where)
        where.destination = Destination(structure.physical_name, KINDS[structure.kind.name])
        where.text = destination_text(str(where.destination), "destination")
        where.hidden = <int> hidden_prefix(where.text)
        found = structure.meaning = where
    return found


cpdef object destination_of(DataStructure structure):
    """The destination that a command names; kept with the structure."""
    return where_of(structure).destination


cdef int address(Message message, DataStructure destination) except -1:
    cdef Where where = where_of(destination)
    message._destination = where.text
    message._destination_hidden = where.hidden
    return 0


@lru_cache(maxsize=4096)
def destination_structure(destination):
    """A destination as commands name it."""
    return DESTINATIONS[destination.kind](physical_name=destination.name)


@lru_cache(maxsize=4096)
def qualified(str text not None):
    """A destination as commands name it, from its qualified name."""
    kind, _, name = text.partition("://")
    return DESTINATIONS[kind](physical_name=name)


cdef str text_of_destination(DataStructure structure):
    return str(destination_of(structure))


# Commands that an advisory reports

_REMOVED = {"connection": connection_id, "consumer": consumer_id, "producer": producer_id}


cpdef DataStructure structure_of(object data):
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


cpdef object reported(DataStructure structure):
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


def consumer_info(DataStructure command not None, str connection):
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


cpdef Message message_of(DataStructure command):
    """The message of a command. Raises ProtocolError for properties or a body that are not what they should be."""
    cdef Message message = Message.__new__(Message)
    cdef list values = command.values
    cdef object found
    cdef str identity
    cdef int priority
    if not command.kind.extends(MESSAGE) or values[IDENTITY] is None:
        raise ProtocolError(f"{command.kind.name}: not a message with an id")
    message._body = body_of(command)
    identity = id_text(values[IDENTITY])
    if identity.startswith("ID:"):
        message._message_id = identity
    else:
        message.message_id = identity
    message._persistent = values[PERSISTENT]
    priority = values[PRIORITY]
    message._priority = 0 if priority < 0 else 9 if priority > 9 else priority
    message._timestamp = values[TIMESTAMP]
    message._expiration = values[EXPIRATION]
    message._redelivery_counter = values[REDELIVERIES]
    found = values[ORIGINAL]
    if found is not None:
        message.original_destination = text_of_destination(found)
    found = values[REPLY]
    if found is not None:
        message.reply_to = text_of_destination(found)
    message._type = values[TYPE]
    message._correlation_id = values[CORRELATION]
    message._group_id = values[GROUP]
    message._group_sequence = values[GROUP_NUMBER]
    message._user_id = values[USER]
    message._group_first_for_consumer = values[GROUP_FIRST]
    found = values[PATH]
    if found is not None:
        message.broker_path = [id_text(each) for each in found if each is not None]
    found = values[TARGET]
    if found is not None:
        message._target_consumer_id = id_text(found)
    found = values[ORIGINAL_TRANSACTION]
    if found is not None:
        message._producer_transaction_id = id_text(found)
    found = values[REPORTED]
    if found is not None:
        message.data_structure = reported(found)
    found = values[PROPERTIES]
    if found is not None:
        read_properties(message, found)
    return message


cdef int read_properties(Message message, bytes data) except -1:
    cdef PrimitiveReader reader = PrimitiveReader(data)
    cdef int kind, left, place
    cdef int32_t length
    cdef uint64_t bits
    cdef uint32_t half
    cdef float single
    cdef Value read
    cdef str name
    cdef tuple value
    cdef const unsigned char *at = data
    reader.need(4)
    length = <int32_t> (<uint32_t> at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3])
    reader.at = 4
    if length > 0:
        reader.need(length)
    while length > 0:
        length -= 1
        name = reader.text(2)
        reader.need(1)
        kind = at[reader.at]
        if kind == INTEGER or kind == FLOAT:
            left = 4
        elif kind == LONG or kind == DOUBLE:
            left = 8
        elif kind == BOOLEAN or kind == BYTE:
            left = 1
        elif kind == SHORT:
            left = 2
        else:
            value = reader.primitive()
            set_property(message, name, value[0], value[1])
            continue
        reader.at += 1
        reader.need(left)
        bits = 0
        for place in range(left):
            bits = bits << 8 | at[reader.at + place]
        reader.at += left
        if kind == DOUBLE:
            read.type = java.DOUBLE
            memcpy(&read.payload.real, &bits, 8)
        elif kind == FLOAT:
            half = <uint32_t> bits
            memcpy(&single, &half, 4)
            read.type = java.FLOAT
            read.payload.real = single
        elif kind == INTEGER:
            read.type = java.INT
            read.payload.integer = <int32_t> bits
        elif kind == LONG:
            read.type = java.LONG
            read.payload.integer = <int64_t> bits
        elif kind == SHORT:
            read.type = java.SHORT
            read.payload.integer = <int16_t> bits
        elif kind == BYTE:
            read.type = java.BYTE
            read.payload.integer = <int8_t> bits
        else:
            read.type = java.BOOLEAN
            read.payload.integer = bits != 0
        message.put_number(name, &read)
    return 0


cdef int set_property(Message message, str name, str kind, object value) except -1:
    if kind in SCALARS:
        return message.put(name, SCALARS[kind](value), False)
    if kind == "map" or kind == "list":
        return message.put(name, plain(kind, value), True)
    if kind == "bytes":
        raise ProtocolError(f"property {name}: a byte array is not a value of a property")
    return message.put(name, value, False)


cdef object plain(str kind, object value):
    if kind == "map":
        return None if value is None else {name: plain(each, inner) for name, each, inner in value}
    if kind == "list":
        return [plain(each, inner) for each, inner in value]
    return SCALARS[kind](value) if kind in SCALARS else value


cdef bytes inflated(bytes data):
    inflater = zlib.decompressobj()
    try:
        found = inflater.decompress(data, LARGEST_BODY)
    except zlib.error as error:
        raise ProtocolError(f"a compressed body cannot be decompressed: {error}") from error
    if not inflater.eof:
        problem = f"more than {LARGEST_BODY} bytes" if len(found) == LARGEST_BODY else "ends too early"
        raise ProtocolError(f"a compressed body cannot be decompressed: {problem}")
    return found


cdef object body_of(DataStructure command):
    cdef StructureType kind = command.kind
    cdef bytes content = command.values[CONTENT]
    if content is not None and command.values[COMPRESSED]:
        content = inflated(content[4:] if kind is OCTETS else content)
    if kind is TEXT:
        return "" if content is None else text_body(content)
    if kind is OCTETS:
        return content or b""
    name = kind.name
    if name == "ActiveMQMapMessage":
        return MapBody(plain("map", read_primitive_map(content) or []) if content else {})
    if name == "ActiveMQStreamMessage":
        stream = StreamBody([plain(each, value) for each, value in read_primitives(content or b"")])
        stream.reset()
        return stream
    if name == "ActiveMQObjectMessage":
        return ObjectBody(content or b"")
    return None


cdef str text_body(bytes content):
    cdef const unsigned char *data = content
    cdef int64_t size = int.from_bytes(content[:4], "big", signed=True)
    cdef str text
    if len(content) < 4 or size != len(content) - 4:
        if size == -1:
            return None
        raise ProtocolError(f"a text body says that it has {size} bytes, and {len(content) - 4} follow")
    text = decode_modified_utf8(data + 4, size)
    if text is None:
        raise ProtocolError("a text body is not modified UTF-8")
    return text


cpdef bytes content_of(object body):
    """A body as the content of its message."""
    if body is None:
        return None
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        data = encode_modified_utf8(body)
        return len(data).to_bytes(4, "big") + data
    if isinstance(body, MapBody):
        return write_primitive_map(typed_map(body.entries(), body.entry_types()))
    if isinstance(body, StreamBody):
        return write_primitives(
            [typed(each, kind) for each, kind in zip(body.values(), body.value_types(), strict=True)]
        )
    return body.data or None


cdef tuple typed(object value, str kind):
    if kind == "map":
        nested = MapBody(value)
        return kind, typed_map(nested.entries(), nested.entry_types())
    if kind == "list":
        kinds = MapBody({str(place): each for place, each in enumerate(value)}).entry_types()
        return kind, [typed(each, kinds[str(place)]) for place, each in enumerate(value)]
    return kind, value


cdef list typed_map(dict entries, dict kinds):
    return [(name, *typed(value, kinds[name])) for name, value in entries.items()]


cdef bytes marshalled_properties(Message message):
    """The properties of a message as its command has them; None: it has none."""
    cdef Block block
    cdef int index
    if not message.count:
        return None
    memset(&block, 0, sizeof(block))
    try:
        put(&block, message.count, 4)
        for index in range(message.count):
            add_name(&block, <object> message.names[index])
            add_property(&block, &message.values[index])
        return written(&block)
    finally:
        free(block.data)


cdef int add_property(Block *block, const Value *value) except -1:
    cdef int kind = value.type
    if kind == java.STRING:
        return add_text(block, python_value(value))
    if kind == java.DOUBLE:
        return add_double(block, value.payload.real)
    if kind == java.FLOAT:
        return add_float(block, <float> value.payload.real)
    if kind == java.INT:
        put(block, INTEGER, 1)
        return put(block, <uint64_t> value.payload.integer, 4)
    if kind == java.LONG:
        put(block, LONG, 1)
        return put(block, <uint64_t> value.payload.integer, 8)
    if kind == java.BOOLEAN:
        put(block, BOOLEAN, 1)
        return put(block, value.payload.integer != 0, 1)
    if kind == java.SHORT:
        put(block, SHORT, 1)
        return put(block, <uint64_t> value.payload.integer, 2)
    if kind == java.BYTE:
        put(block, BYTE, 1)
        return put(block, <uint64_t> value.payload.integer, 1)
    found = python_value(value)
    if kind == java.CHAR:
        return add(block, "char", found)
    name, found = typed(found, "map" if isinstance(found, dict) else "list")
    return add(block, name, found)


cpdef DataStructure command_of(Message message, object destination=None, DataStructure transaction_id=None):
    """A message as a command. destination: its own by default."""
    cdef DataStructure identity = message_id(message._message_id or "", message.broker_sequence)
    cdef object body = message._body
    cdef StructureType kind
    cdef list values
    if body is None:
        kind = PLAIN
    elif isinstance(body, bytes):
        kind = OCTETS
    elif isinstance(body, str):
        kind = TEXT
    else:
        kind = BODIES[type(body)]
    values = kind.defaults.copy()
    values[PRODUCER] = identity.values[ID_PRODUCER]
    values[IDENTITY] = identity
    if destination is not None:
        values[WHERE] = destination_structure(destination)
    elif message._destination is not None:
        values[WHERE] = qualified(message._destination)
    values[TRANSACTION] = transaction_id
    if message._original_destination is not None:
        values[ORIGINAL] = qualified(message._original_destination)
    if message._producer_transaction_id is not None:
        values[ORIGINAL_TRANSACTION] = transaction_of(message._producer_transaction_id)
    values[GROUP] = message._group_id
    values[GROUP_NUMBER] = message._group_sequence
    values[CORRELATION] = message._correlation_id
    values[PERSISTENT] = message._persistent != 0
    values[EXPIRATION] = message._expiration
    values[PRIORITY] = message._priority
    if message._reply_to is not None:
        values[REPLY] = qualified(message._reply_to)
    values[TIMESTAMP] = message._timestamp
    values[TYPE] = message._type
    values[CONTENT] = content_of(body)
    values[PROPERTIES] = marshalled_properties(message)
    if message._data_structure is not None:
        values[REPORTED] = structure_of(message._data_structure)
    if message._target_consumer_id is not None:
        values[TARGET] = consumer_id(message._target_consumer_id)
    values[REDELIVERIES] = message._redelivery_counter
    if message._broker_path is not None:
        values[PATH] = [BROKER_ID(value=each) for each in message._broker_path]
    values[USER] = message._user_id
    values[IN_TIME] = message._broker_in_time
    values[OUT_TIME] = message._broker_out_time
    values[GROUP_FIRST] = message._group_first_for_consumer != 0
    return new_structure(kind, values)


cdef object transaction_of(str text):
    return transaction_id(text)


cdef DataStructure dispatched(MessageDispatch dispatch):
    cdef DataStructure command
    if dispatch.own is not None:
        return command_of(dispatch.own)
    command = command_of(dispatch.source)
    command.values[REDELIVERIES] = dispatch.counter
    command.values[GROUP_FIRST] = dispatch.group_first != 0
    command.values[OUT_TIME] = dispatch.out_time
    return command
