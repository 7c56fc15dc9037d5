"""wire/stomp: frames read and written by the real StompWireFormat, sessions of the real ProtocolConverter between a
script and a stub of a broker, and what a real broker answered over a socket."""

from __future__ import annotations

import re
import select
import socket
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from pyengine import Message
from pyengine._engine.wire.stomp import StompFrame, StompReader, write_frame
from pyengine.activemq import AckKind, Broker
from pyengine.activemq.transport.commands import (
    ConnectionInfo,
    ConnectionSink,
    ConsumerInfo,
    MessageAck,
    MessageDispatch,
    MessagePull,
)
from pyengine.activemq.transport.stomp_frames import BrokenFrameError
from pyengine.activemq.transport.stomp_session import StompSession
from pyengine.clock import ManualClock
from pyengine.destinations import Destination, parse_destination
from pyengine.errors import JMSError, ProtocolError
from tests.conformance.verdict import Verdict, compare
from tests.conformance.wire_recorded import octets, unpacked


def identify(case: dict[str, Any]) -> str:
    """The case's id."""
    name: str = case["id"]
    return name


def replay(case: dict[str, Any]) -> Verdict:
    """Read or write what the case says."""
    if case["kind"] == "stomp_read":
        return read(case)
    if case["kind"] == "stomp_write":
        return write(case)
    if case["kind"] == "stomp_session":
        return session(case)
    return live(case)


def read(case: dict[str, Any]) -> Verdict:
    """The frames, and why reading ended; fed at once and byte by byte."""
    data = octets(case, "in")
    assert data is not None
    expected: list[Any] = []
    for frame in case["frames"]:
        if "protocol_error" in frame:
            expected.append(frame["protocol_error"])
        else:
            expected.append((unpacked(frame["action"]), unpacked(frame["headers"]), octets(frame, "content")))
    error = case.get("error", {}).get("class")
    if error not in (None, "java.io.EOFException"):  # the real code has no check there
        expected.append("Specified content-length may not be negative")
    for pieces in ([data], [data[at : at + 1] for at in range(len(data))]):
        got: list[Any] = []
        reader = StompReader(case["version"])
        try:
            for piece in pieces:
                reader.feed(piece)
                got += [(frame.action, frame.headers, frame.body) for frame in reader]
        except ProtocolError as refused:
            got.append(str(refused))
        if got != expected:
            return compare(case["id"], expected, got)
        if pieces == [data] and error != "java.io.EOFException" and reader.waiting != case["rest"]:
            return compare(f"{case['id']}: what is left", case["rest"], reader.waiting)
    return Verdict("agree")


def write(case: dict[str, Any]) -> Verdict:
    """The bytes of a frame."""
    body = octets(case, "content")
    assert body is not None
    frame = StompFrame(unpacked(case["action"]), [(name, value) for name, value in unpacked(case["headers"])], body)
    try:
        got = write_frame(frame, case["version"])
    except TypeError as refused:
        return Verdict("agree") if "error" in case else compare(case["id"], octets(case, "out"), refused)
    return compare(case["id"], octets(case, "out"), got)


# Sessions

CONNECTION = "ID:conn"
CLASSES = {"queue": "ActiveMQQueue", "topic": "ActiveMQTopic", "temp-queue": "ActiveMQTempQueue",
           "temp-topic": "ActiveMQTempTopic"}  # fmt: skip
KINDS = {name: kind for kind, name in CLASSES.items()}
ACK_TYPES = {AckKind.DELIVERED: 0, AckKind.POISON: 1, AckKind.STANDARD: 2, AckKind.INDIVIDUAL: 4}
NEVER_ANSWERED = ("SessionInfo", "DestinationInfo", "ConsumerControl")
NUMBERS = {"byte": np.int8, "short": np.int16, "int": np.int32, "long": np.int64}


class Stub:
    """A broker that answers every command and keeps it in the form of the recordings.

    OpenWire's commands are more than the calls of a Transport: a SessionInfo and a ShutdownInfo, numbers of commands,
    whether an answer is wanted; and where a receipt is wanted of a SUBSCRIBE, its ConsumerInfo has prefetch 0 until a
    ConsumerControl. All that is added here.
    """

    release = "newest"

    def __init__(self, refuses: list[str]) -> None:
        self.clock = ManualClock(1)
        self.commands: list[dict[str, Any]] = []
        self.consumers: list[ConsumerInfo] = []
        self.frame = StompFrame("")
        self._refuses = refuses
        self._sent = 0

    def _say(self, name: str, number: bool = True, **fields: Any) -> None:
        wanted = name in ("ConnectionInfo", "ProducerInfo") or (
            number and "receipt" in self.frame.headers and name not in NEVER_ANSWERED
        )
        command_id = self._sent if number else 0
        self._sent += number
        self.commands.append({"class": name, "commandId": command_id, "responseRequired": wanted, **fields})
        if name in self._refuses:
            raise JMSError("the broker says no")

    def said(self, name: str) -> bool:
        """Whether a command of that class came."""
        return any(command["class"] == name for command in self.commands)

    def add_connection(self, info: ConnectionInfo, sink: ConnectionSink) -> None:
        self._say(
            "ConnectionInfo", connectionId=connection_id(), clientId=info.client_id, password=info.password,
            userName=info.user_name, brokerPath=None, brokerMasterConnector=False, manageable=False, clientMaster=True,
            faultTolerant=False, failoverReconnect=False, clientIp=info.client_ip,
        )  # fmt: skip
        session_id = {"class": "SessionId", "connectionId": CONNECTION, "value": -1}
        self._say("SessionInfo", sessionId=session_id)

    def remove_connection(self, connection: str, *, last_delivered: str | None = None, lost: bool = False) -> None:
        assert lost
        self._say("RemoveInfo", objectId=connection_id(), lastDeliveredSequenceId=-2)
        self._say("ShutdownInfo")

    def add_consumer(self, info: ConsumerInfo) -> int:
        self.consumers.append(info)
        held_back = "receipt" in self.frame.headers and info.prefetch_size > 0
        identity = consumer_id(info.consumer_id)
        self._say(
            "ConsumerInfo", consumerId=identity, browser=info.browser, destination=destination_value(info.destination),
            prefetchSize=0 if held_back else info.prefetch_size,
            maximumPendingMessageLimit=info.maximum_pending_message_limit, dispatchAsync=info.dispatch_async,
            selector=info.selector, clientId=None, subscriptionName=info.subscription_name or None,
            noLocal=info.no_local, exclusive=info.exclusive, retroactive=info.retroactive, priority=info.priority,
            brokerPath=None, additionalPredicate=None, networkSubscription=info.network_subscription,
            optimizedAcknowledge=False, noRangeAcks=False, networkConsumerPath=None,
        )  # fmt: skip
        if held_back:
            self._say(
                "ConsumerControl", destination=destination_value(info.destination), consumerId=identity, close=False,
                prefetch=info.prefetch_size, flush=False, start=False, stop=False,
            )  # fmt: skip
        return info.prefetch_size

    def remove_consumer(self, consumer: str, *, last_delivered: str | None = None, lost: bool = False) -> None:
        assert lost
        self._say("RemoveInfo", objectId=consumer_id(consumer), lastDeliveredSequenceId=-2)

    def remove_consumers(self, consumer_ids: Iterable[str], *, last_delivered: str | None = None) -> None:
        raise NotImplementedError

    def remove_subscription(self, client_id: str, name: str) -> None:
        self._say(
            "RemoveSubscriptionInfo", connectionId=connection_id(), clientId=client_id, subscriptionName=name
        )  # fmt: skip

    def add_destination(self, connection: str, destination: Destination) -> None:
        self._say(
            "DestinationInfo", connectionId=connection_id(), destination=destination_value(destination),
            operationType=0, timeout=0, brokerPath=None,
        )  # fmt: skip

    def has_destination(self, destination: Destination) -> bool:
        return True

    def remove_destination(self, connection: str, destination: Destination) -> None:
        raise NotImplementedError

    def add_producer(self, connection: str, producer_id: str, destination: Destination | None = None) -> None:
        producer = {"class": "ProducerId", "connectionId": CONNECTION, "value": 1, "sessionId": -1}
        self._say(
            "ProducerInfo", producerId=producer, destination=None, brokerPath=None, dispatchAsync=False, windowSize=0
        )

    def remove_producer(self, producer_id: str) -> None:
        raise NotImplementedError

    def send(
        self,
        connection: str,
        destination: Destination,
        message: Message,
        transaction_id: str | None = None,
        now: int | None = None,
    ) -> None:
        fields = message_value(message, destination)
        fields["transactionId"] = transaction_value(transaction_id)
        self._say(fields.pop("class"), **fields)

    def send_all(self, connection: str, destination: Destination, messages: list[Message]) -> None:
        raise NotImplementedError

    def acknowledge(self, ack: MessageAck, failed: Any = None) -> None:
        self._say(
            "MessageAck", failed is None, destination=destination_value(ack.destination),
            transactionId=transaction_value(ack.transaction_id), consumerId=consumer_id(ack.consumer_id),
            ackType=ACK_TYPES[ack.kind], firstMessageId=message_id(ack.first_message_id),
            lastMessageId=message_id(ack.last_message_id), messageCount=ack.message_count, poisonCause=None,
        )  # fmt: skip

    def pull(self, pull: MessagePull) -> None:
        raise NotImplementedError

    def _transaction(self, transaction_id: str, kind: int) -> None:
        self._say(
            "TransactionInfo", connectionId=connection_id(), transactionId=transaction_value(transaction_id), type=kind
        )

    def begin(self, connection: str, transaction_id: str) -> None:
        self._transaction(transaction_id, 0)

    def commit(self, transaction_id: str) -> None:
        self._transaction(transaction_id, 2)

    def rollback(self, transaction_id: str) -> None:
        self._transaction(transaction_id, 4)


def connection_id() -> dict[str, Any]:
    return {"class": "ConnectionId", "value": CONNECTION}


def consumer_id(text: str) -> dict[str, Any]:
    return {"class": "ConsumerId", "connectionId": CONNECTION, "sessionId": -1, "value": int(text.rpartition(":")[2])}


def message_id(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    connection, session_number, producer, number = text.rsplit(":", 3)
    identity = {
        "class": "ProducerId", "connectionId": connection, "value": int(producer), "sessionId": int(session_number),
    }  # fmt: skip
    return {
        "class": "MessageId", "textView": None, "producerId": identity, "producerSequenceId": int(number),
        "brokerSequenceId": 0,
    }  # fmt: skip


def transaction_value(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    return {"class": "LocalTransactionId", "value": int(text.rpartition(":")[2]), "connectionId": connection_id()}


def destination_value(destination: Destination | str | None) -> dict[str, Any] | None:
    if destination is None:
        return None
    if isinstance(destination, str):
        kind, _, name = destination.partition("://")
        destination = Destination(name, kind)
    return {"class": CLASSES[destination.kind], "physicalName": destination.name}


def modified_utf8(text: str) -> bytes:
    """As Java's DataOutput writes a text: each half of a surrogate pair by itself, and no zero byte."""
    units = text.encode("utf-16-be", "surrogatepass")
    found = b""
    for at in range(0, len(units), 2):
        unit = int.from_bytes(units[at : at + 2])
        found += b"\xc0\x80" if unit == 0 else chr(unit).encode("utf-8", "surrogatepass")
    return found


def message_value(message: Message, destination: Destination) -> dict[str, Any]:
    """A message as the recordings have it."""
    if isinstance(message.body, bytes):
        name, content = "ActiveMQBytesMessage", message.body
    else:
        text = modified_utf8(message.body or "")
        name, content = "ActiveMQTextMessage", len(text).to_bytes(4) + text
    types = message.property_types()
    properties = {}
    for each, value in message.properties().items():
        properties[each] = {"t": types[each], "v": value if isinstance(value, str) else int(value)}  # type: ignore[call-overload]
    identity = message_id(message.message_id)
    assert identity is not None
    return {
        "class": name, "producerId": identity["producerId"], "destination": destination_value(destination),
        "transactionId": None, "originalDestination": None, "messageId": identity, "originalTransactionId": None,
        "groupID": message.group_id, "groupSequence": message.group_sequence, "correlationId": message.correlation_id,
        "persistent": message.persistent, "expiration": message.expiration, "priority": message.priority,
        "replyTo": destination_value(message.reply_to), "timestamp": message.timestamp, "type": message.type,
        "content": {"bytes": content.hex()}, "dataStructure": None, "targetConsumerId": None, "compressed": False,
        "redeliveryCounter": message.redelivery_counter, "brokerPath": None, "arrival": 0, "userID": message.user_id,
        "recievedByDFBridge": False, "droppable": False, "cluster": None, "brokerInTime": 0, "brokerOutTime": 0,
        "jMSXGroupFirstForConsumer": False, "properties": properties,
    }  # fmt: skip


def dispatched(value: dict[str, Any]) -> Message:
    """The message of a dispatch."""
    given = value["content"]
    content = (
        None if given is None else octets(given, "content") if "content" in given else bytes.fromhex(given["bytes"])
    )
    body: str | bytes | None = None
    if value["class"] == "ActiveMQTextMessage":
        body = value.get("body", {}).get("text") if "body" in value else (content or b"")[4:].decode()
        if body is not None:
            body = body.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    elif value["class"] == "ActiveMQBytesMessage":
        body = content or b""
    identity = value["messageId"]
    producer = identity["producerId"]
    message = Message(
        body=body, destination=destination_text(value["destination"]), reply_to=destination_text(value["replyTo"]),
        original_destination=destination_text(value["originalDestination"]), type=value["type"],
        correlation_id=value["correlationId"], priority=value["priority"], timestamp=value["timestamp"],
        expiration=value["expiration"], group_id=value["groupID"], group_sequence=value["groupSequence"],
        user_id=value["userID"], redelivery_counter=value["redeliveryCounter"],
        delivery_mode="PERSISTENT" if value["persistent"] else "NON_PERSISTENT",
        message_id=f"{producer['connectionId']}:{producer['sessionId']}:{producer['value']}:{identity['producerSequenceId']}",
    )  # fmt: skip
    for name, typed in value["properties"].items():
        set_property(message, name, typed)
    return message


def set_property(message: Message, name: str, typed: dict[str, Any]) -> None:
    kind, given = typed["t"], typed.get("v")
    if kind in ("float", "double"):
        getattr(message, f"set_{kind}_property")(name, float(given))
    elif kind == "null":
        message.set_object_property(name, None)
    else:
        getattr(message, f"set_{kind}_property")(name, given)


def destination_text(value: dict[str, Any] | None) -> str | None:
    return None if value is None else f"{KINDS[value['class']]}://{value['physicalName']}"


def without_stacks(data: bytes) -> bytes:
    """A stack of whatever depth is one line; the version that a server tells is its own."""
    data = re.sub(rb"(\tat [^\n]*\n)+", b"\tat STACK\n", data)
    return re.sub(rb"server:[^\n]*", b"server:", data)


def in_any_order(data: bytes) -> list[bytes]:
    """One MESSAGE frame's header lines sorted: of two properties in one bucket the recording lost which came first."""
    headers, _, body = data.partition(b"\n\n")
    return [*sorted(headers.split(b"\n")), body]


def session(case: dict[str, Any]) -> Verdict:
    """A script of frames and dispatches: the commands and the frames that come of each step."""
    stub, written = Stub([]), bytearray()

    def write(frame: StompFrame, version: str) -> None:
        written.extend(write_frame(frame, version))

    ours = StompSession(stub, CONNECTION, write, lambda dispatch: None)
    reader = StompReader()

    def feed(text: bytes) -> bool:
        """Whether the converter threw."""
        reader.feed(text.replace(b"ID:ack-", b"ID:conn-").replace(b"ID\\cack-", b"ID:conn-"))
        try:
            for frame in reader:
                stub.frame = frame
                ours.receive(frame)
                reader.use(ours.wire_version)
        except BrokenFrameError:
            return True
        return False

    parts = case["id"].split(".")
    if not case["steps"][0].get("in", "").startswith(("CONNECT\n", "STOMP\n")):
        found = re.search(r"\.(1\.[012])(?:\.|$)", case["id"])
        version = found[1] if found else "1.2"
        feed(f"CONNECT\naccept-version:{version}\n\n\0".encode())
        if parts[1] == "dispatch":
            chosen = "" if parts[-1] == "null" else f"transformation:{parts[-1]}\n"
            feed(f"SUBSCRIBE\nid:1\ndestination:/queue/a\n{chosen}\n\0".encode())
            stub._sent = 3
    stub._refuses = case["broker_refuses"]
    for number, step in enumerate(case["steps"]):
        stub.commands.clear()
        written.clear()
        ours.closing, stub.frame = False, StompFrame("")
        threw = False
        if "dispatch" in step:
            info = stub.consumers[step["subscription"]]
            message = dispatched(unpacked(step["dispatch"]))
            assert message.destination is not None
            (where,) = parse_destination(message.destination)
            ours.deliver(MessageDispatch(info.consumer_id, where, message, message.redelivery_counter))
        else:
            data = octets(step, "in")
            assert data is not None
            threw = feed(data)
        about = f"{case['id']}, step {number}"
        expected = b"".join(octets(frame, "out") or b"" for frame in step.get("to_client", ()))
        for name, typed in step.get("dispatch", {}).get("properties", {}).items():
            if typed["t"] == "null":  # a Message has no such properties
                expected = expected.replace(f"\n{name}:null\n".encode(), b"\n")
        # Properties were recorded sorted by name.
        alike = in_any_order if step.get("dispatch", {}).get("properties") else without_stacks
        got = bytes(written).replace(b"ID:conn-", b"ID:ack-").replace(b"ID\\cconn-", b"ID\\cack-")
        for verdict in (
            compare(f"{about}: to the broker", unpacked(step.get("to_broker", [])), stub.commands),
            compare(f"{about}: to the client", *(map(alike, (expected, got)))),
            compare(f"{about}: closes", "transport_error" in step or stub.said("ShutdownInfo"), ours.closing),
            compare(f"{about}: throws", "thrown" in step, threw),
        ):
            if verdict.kind != "agree":
                return verdict
    return Verdict("agree")


# A live broker

QUIET = 0.03  # seconds without a byte after which an answer is taken to be whole


def live(case: dict[str, Any]) -> Verdict:
    """What a listening broker answers, and whether it keeps the connection open."""
    with (
        Broker(name="conformance", transport_connectors=[f"{case['transport']}://127.0.0.1:0"]) as broker,
        socket.create_connection(("127.0.0.1", broker.transport_connectors[0].port)) as client,
    ):
        connection = "open"
        for number, step in enumerate(case["steps"]):
            data = octets(step, "in")
            assert data is not None
            try:
                client.sendall(data)
            except OSError:
                connection = "closed"
            expected = octets(step, "out") or b""
            got, ended = answer(client, len(expected))
            connection = "closed" if ended else connection
            got = re.sub(rb"ID(:|\\c)stomp-[0-9-]+(:|\\c)1", rb"ID\1conn", got)
            got = re.sub(rb"ID(:|\\c)conn-(\d+)", rb"ID\1ack-\2", got)
            got = re.sub(rb"\ntimestamp:\d+", b"\ntimestamp:1", got)
            verdict = compare(f"{case['id']}, step {number}", without_stacks(expected), without_stacks(got))
            if verdict.kind != "agree":
                return verdict
        return compare(f"{case['id']}: the connection", case["connection"], connection)


def answer(client: socket.socket, length: int) -> tuple[bytes, bool]:
    """What comes until it is quiet, and whether the other side has closed. length: about how much is expected."""
    found, deadline = b"", time.monotonic() + 2
    while time.monotonic() < deadline:
        patience = QUIET if len(found) >= length // 2 else 1
        if not select.select([client], [], [], patience)[0]:
            break
        try:
            data = client.recv(1 << 16)
        except OSError:
            return found, True
        if not data:
            return found, True
        found += data
    return found, False
