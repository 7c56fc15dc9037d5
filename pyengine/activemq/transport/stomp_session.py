"""One STOMP connection at the broker: what ActiveMQ's ProtocolConverter and StompSubscription make of its frames.

Frames come in by ``receive``, dispatched messages by ``deliver``; frames for the client go out through
``write``. No socket, no thread: the owner of the connection calls it, one call at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import NoReturn

from pyengine._engine.activemq.commands.message_ack import AckKind, MessageAck
from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine._engine.java.strings import BLANKS
from pyengine._engine.message.body import Body
from pyengine._engine.message.message import Message
from pyengine._engine.wire.stomp import StompFrame
from pyengine._engine.wire.stomp_messages import ordered
from pyengine.activemq._runtime.stomp_traffic import StompTraffic
from pyengine.activemq.options import MAX_PREFETCH_SIZE, PrefetchPolicy
from pyengine.activemq.transport.commands import ConnectionInfo, ConnectionSink, ConsumerInfo, Transport
from pyengine.activemq.transport.java_exceptions import CONVERT, SECURITY, MissingDestinationError, java_error
from pyengine.activemq.transport.stomp_frames import (
    TRANSFORMATION,
    BrokenFrameError,
    RefusedFrameError,
    TemporaryNames,
    consumer_settings,
    converted,
    long_of,
    shown,
)
from pyengine.destinations import Destination
from pyengine.errors import AuthenticationError, ProtocolError, PyengineError
from pyengine.visible import logger

LOG = logger("pyengine.activemq")
VERSIONS = ("1.2", "1.1", "1.0")
SERVER = "ActiveMQ/5.18.6"
PROTOCOL = "org.apache.activemq.transport.stomp.ProtocolException"
TRACE = "\tat pyengine.activemq\n"  # in place of ActiveMQ's own lines
_POLICY = PrefetchPolicy()


class Subscription:
    """What a SUBSCRIBE frame asked for, and what its client has not acknowledged yet (StompSubscription).

    dispatched: message id -> its dispatch, in order. transacted: those of them that an open transaction acknowledges.
    """

    __slots__ = ("dispatched", "info", "mode", "name", "transacted", "transformation")

    def __init__(self, name: str | None, info: ConsumerInfo, mode: str, transformation: str | None) -> None:
        self.name = name
        self.info = info
        self.mode = mode
        self.transformation = transformation
        self.dispatched: dict[str, Pending] = {}
        self.transacted: dict[str, Pending] = {}


class Pending:
    """A message that a client has to acknowledge (StompAckEntry). ack_id: its ``ack`` header, of STOMP 1.2."""

    __slots__ = ("ack_id", "destination", "message_id", "subscription")

    def __init__(self, ack_id: str, message_id: str, destination: Destination, subscription: Subscription) -> None:
        self.ack_id = ack_id
        self.message_id = message_id
        self.destination = destination
        self.subscription = subscription


class StompSession(StompTraffic):
    """One connection. connection_id: unique in the broker. write: a frame for the client, with the version it is
    written in. dispatch: what the broker calls with a message for this connection (see ConnectionSink); it leads to
    ``deliver``. failed: the broker ends the connection, with the reason. default_heart_beat: of a client that asks for
    none. authenticate: raises AuthenticationError for a name and a password that may not come in.

    version: "1.0" until CONNECT has agreed on another. read_interval, write_interval: ms of the agreed heart-beats, 0
    none. closing: the client or a fatal error ended it; what was written is still to be sent.
    """

    def __init__(
        self,
        broker: Transport,
        connection_id: str,
        write: Callable[[StompFrame, str], object],
        dispatch: Callable[[MessageDispatch], None],
        failed: Callable[[str], None] = lambda reason: None,
        *,
        default_heart_beat: str = "0,0",
        authenticate: Callable[[str | None, str | None], tuple[str, ...]] = lambda user, password: (),
    ) -> None:
        super().__init__(broker, connection_id, write, TemporaryNames(self._create_temporary))
        self.client_id = ""
        self.read_interval = self.write_interval = 0
        self._sink = ConnectionSink(dispatch, failed=failed, queued=True)
        self._default_heart_beat = default_heart_beat
        self._authenticate = authenticate
        self._added = False
        self._consumer_numbers = count(1)
        self._transaction_numbers = count(1)
        self._temporary_numbers = count(1)
        self._by_name: dict[str, Subscription] = {}
        self._transactions: dict[str, str] = {}
        self._session_id = f"{connection_id}:-1"
        self._commands: list[tuple[str, Callable[[StompFrame], None]]] = [
            ("SEND", self._send),
            ("ACK", self._ack),
            ("NACK", self._nack),
            ("BEGIN", self._begin),
            ("COMMIT", self._commit),
            ("ABORT", self._abort),
            ("SUB", self._subscribe),
            ("UNSUB", self._unsubscribe),
            ("CONNECT", self._connect),
            ("STOMP", self._connect),
            ("DISCONNECT", self._disconnect),
        ]
        self._exact = dict(self._commands)

    # Frames in

    def receive(self, frame: StompFrame) -> None:
        """A frame of the client's. Raises BrokenFrameError where ActiveMQ closes the connection without a word."""
        try:
            action = self._exact.get(frame.action)
            if action is None:
                action = next((act for name, act in self._commands if frame.action.startswith(name)), None)
                if action is None:
                    raise RefusedFrameError(f"Unknown STOMP action: {frame.action}", fatal=True)
            action(frame)
        except RefusedFrameError as error:
            self._error(PROTOCOL, error._words(), frame)
            self.closing |= error.fatal

    def refuse(self, error: ProtocolError) -> None:
        """Bytes that are not a frame: an ERROR, and the end."""
        self._error(PROTOCOL, error._words(), None)
        self.closing = True

    def _connect(self, frame: StompFrame) -> None:
        if self.connected:
            raise RefusedFrameError("Already connected.")
        headers = frame.headers
        accepted = headers.get("accept-version", "1.0")
        common = [version for version in VERSIONS if version in accepted.strip(BLANKS).split(",")]
        if not common:
            problem = f"Invalid Protocol version[{accepted}], supported versions are: [{', '.join(VERSIONS)}]"
            raise RefusedFrameError(problem, fatal=True)
        self.version = max(common)
        self._agree_on_heart_beats(headers.get("heart-beat", self._default_heart_beat).strip(BLANKS))
        self.client_id = headers.get("client-id", self.connection_id)
        info = ConnectionInfo(
            self.connection_id,
            self.client_id,
            user_name=headers.get("login"),
            password=headers.get("passcode"),
            client_ip=headers.get("host"),
        )
        try:
            groups = self._authenticate(info.user_name, info.password)
            self._broker.add_connection(replace(info, groups=groups), self._sink)
            self._added = True
            self._broker.add_producer(self.connection_id, self._producer_id)
        except PyengineError as error:
            self._report(error, frame)
            self.closing = True
            return
        self.connected = True
        answer = {"session": self.client_id}
        request = headers.get("request-id", headers.get("receipt"))
        if request is not None:
            answer["response-id"] = answer["receipt-id"] = request
        answer["version"] = self.version
        answer["heart-beat"] = f"{self.write_interval},{self.read_interval}"
        answer["server"] = SERVER
        self._write(StompFrame("CONNECTED", ordered(answer)), self.wire_version)
        self.wire_version = self.version

    def _agree_on_heart_beats(self, text: str) -> None:
        parts = text.split(",")
        while parts and not parts[-1]:
            parts.pop()
        try:
            if len(parts) != 2:
                raise BrokenFrameError(text)
            self.read_interval, self.write_interval = map(long_of, parts)
        except BrokenFrameError as error:
            raise RefusedFrameError(f"Invalid heart-beat header:{text}", fatal=True) from error

    def _disconnect(self, frame: StompFrame) -> None:
        if self.connected:
            self.leave()
            self._receipt(frame)
            self.closing = True

    def leave(self) -> None:
        """The connection ends: what it has at the broker is removed, and what it has not acknowledged goes back."""
        self.connected = False
        if self._added:
            self._added = False
            self._broker.remove_connection(self.connection_id, lost=True)
        self._by_consumer.clear()
        self._by_name.clear()
        self._pending.clear()

    def _check_connected(self) -> None:
        if not self.connected:
            raise RefusedFrameError("Not connected.")

    def _without_destination(self) -> NoReturn:
        raise RefusedFrameError("SEND received without a Destination specified!")

    def _converted(self, frame: StompFrame) -> tuple[dict[str, str], str | bytes | Body | None, bool]:
        return converted(frame)

    def _broken(self, error: Exception) -> NoReturn:
        if isinstance(error, BrokenFrameError):
            raise error
        raise BrokenFrameError(str(error)) from error

    def _check_temporary(self, destination: Destination) -> None:
        if not self._broker.has_destination(destination):
            raise MissingDestinationError(str(destination))

    def _create_temporary(self, kind: str) -> Destination:
        temporary = Destination(f"{self.connection_id}:{next(self._temporary_numbers)}", kind)
        try:
            self._broker.add_destination(self.connection_id, temporary)
        except AuthenticationError as error:
            self.asynchronous_failure(error)
        return temporary

    # Subscriptions

    def _subscribe(self, frame: StompFrame) -> None:
        self._check_connected()
        headers = frame.headers
        name = headers.get("id")
        if self.version != "1.0" and name is None:
            raise RefusedFrameError("SUBSCRIBE received without a subscription id!")
        if not headers.get("destination"):
            raise RefusedFrameError("Invalid empty or 'null' Destination header")
        destination = self._names.parse(headers["destination"], fallback=True)
        queue = destination.kind.endswith("queue")
        prefetch = _POLICY.queue_prefetch
        if not queue:
            durable = "activemq.subscriptionName" in headers
            prefetch = _POLICY.durable_topic_prefetch if durable else MAX_PREFETCH_SIZE
        browser = headers.get("browser") == "true"
        if browser:
            if self.version == "1.0":
                raise RefusedFrameError("Queue Browser feature only valid for Stomp v1.1+ clients!")
            prefetch = _POLICY.queue_browser_prefetch
        given = consumer_settings(headers)
        selector = headers.get("selector")
        if selector is not None:
            selector = CONVERT + selector
        selector = given.get("selector", selector)
        subscription_name = given.get("subscriptionName", "")
        if queue and "subscriptionName" in given:
            raise RefusedFrameError("Invalid Subscription: cannot durably subscribe to a Queue destination!")
        info = ConsumerInfo(
            consumer_id=f"{self._session_id}:{next(self._consumer_numbers)}",
            session_id=self._session_id,
            connection_id=self.connection_id,
            destination=destination,
            prefetch_size=given.get("prefetchSize", prefetch),
            selector=selector,
            subscription_name=subscription_name,
            priority=given.get("priority", 0),
            exclusive=given.get("exclusive", False),
            retroactive=given.get("retroactive", False),
            no_local=given.get("noLocal", False),
            browser=given.get("browser", browser),
            network_subscription=given.get("networkSubscription", False),
            maximum_pending_message_limit=given.get("maximumPendingMessageLimit", 0),
        )
        mode = headers.get("ack", "auto")
        if mode not in ("client", "client-individual"):
            mode = "auto"
        subscription = Subscription(name, info, mode, headers.get(TRANSFORMATION))
        self._by_consumer[info.consumer_id] = subscription
        if name is not None:
            self._by_name[name] = subscription
        # ActiveMQ adds it with prefetch 0 if a receipt is asked for, lest a message comes before the receipt; here
        # ``deliver`` comes behind everything that was written.
        with self._answered(frame):
            self._broker.add_consumer(info)

    def _unsubscribe(self, frame: StompFrame) -> None:
        self._check_connected()
        headers = frame.headers
        destination = None
        if "destination" in headers:
            destination = self._names.parse(headers["destination"], fallback=True)
        name = headers.get("id")
        if self.version != "1.0" and name is None:
            raise RefusedFrameError("UNSUBSCRIBE received without a subscription id!")
        if name is None and destination is None:
            raise RefusedFrameError("Must specify the subscriptionId or the destination you are unsubscribing from")
        durable = headers.get("activemq.subscriptionName")
        if durable is not None:
            client_id = durable if self.version == "1.0" else self.client_id
            with self._answered(frame):
                self._broker.remove_subscription(client_id, durable)
            return
        found = None
        if name is not None:
            found = self._by_name.pop(name, None)
        else:
            matching = (each for each in self._by_consumer.values() if each.info.destination == destination)
            found = next(matching, None)
        if found is None:
            raise RefusedFrameError("No subscription matched.")
        del self._by_consumer[found.info.consumer_id]
        with self._answered(frame):
            self._broker.remove_consumer(found.info.consumer_id, lost=True)

    # Acknowledgements

    def _ack(self, frame: StompFrame) -> None:
        self._check_connected()
        headers = frame.headers
        message_id = headers.get("message-id")
        if message_id is None and self.version != "1.2":
            raise RefusedFrameError("ACK received without a message-id to acknowledge!")
        name = headers.get("subscription")
        if name is None and self.version == "1.1":
            raise RefusedFrameError("ACK received without a subscription id for acknowledge!")
        ack_id = headers.get("id")
        if ack_id is None and self.version == "1.2":
            raise RefusedFrameError("ACK received without a ack id for acknowledge!")
        transaction = self._transaction_of(headers)
        ack = None
        if ack_id is not None:
            pending = self._pending.get(ack_id)
            if pending is not None:
                message_id = pending.message_id
                ack = self._acknowledge(pending.subscription, message_id, transaction)
        elif name is not None:
            subscription = self._by_name.get(name)
            if subscription is not None:
                ack = self._acknowledge(subscription, message_id, transaction)
        else:  # STOMP 1.0: a message id alone, of any subscription
            for subscription in self._by_consumer.values():
                ack = self._acknowledge(subscription, message_id, transaction)
                if ack is not None:
                    break
        if ack is None:
            raise RefusedFrameError(f"Unexpected ACK received for message-id [{_java(message_id)}]")
        with self._answered(frame):
            self._broker.acknowledge(ack)

    def _acknowledge(
        self, subscription: Subscription, message_id: str | None, transaction: str | None
    ) -> MessageAck | None:
        """The acknowledgement that an ACK is (StompSubscription.onStompMessageAck); None: not a message it has."""
        entry = subscription.dispatched.get(message_id or "")
        if entry is None:
            return None
        info = subscription.info
        if subscription.mode == "client":
            kind = AckKind.STANDARD if transaction is None else AckKind.DELIVERED
            number = 0
            for each in list(subscription.dispatched.values()):
                self._pending.pop(each.ack_id, None)
                if transaction is None:
                    del subscription.dispatched[each.message_id]
                    number += 1
                elif each.message_id not in subscription.transacted:
                    subscription.transacted[each.message_id] = each
                    number += 1
                if each is entry:
                    break
            return MessageAck(
                info.consumer_id,
                info.destination,
                kind,
                entry.message_id,
                message_count=number,
                transaction_id=transaction,
            )
        self._settle(subscription, entry, transaction)
        return MessageAck(
            info.consumer_id,
            info.destination,
            AckKind.INDIVIDUAL,
            entry.message_id,
            entry.message_id,
            transaction_id=transaction,
        )

    def _settle(self, subscription: Subscription, entry: Pending, transaction: str | None) -> None:
        self._pending.pop(entry.ack_id, None)
        if transaction is None:
            del subscription.dispatched[entry.message_id]
        else:
            subscription.transacted[entry.message_id] = entry

    def _nack(self, frame: StompFrame) -> None:
        self._check_connected()
        if self.version == "1.0":
            raise RefusedFrameError("NACK received but connection is in v1.0 mode.")
        headers = frame.headers
        name, message_id, ack_id = headers.get("subscription"), headers.get("message-id"), headers.get("id")
        if self.version != "1.2":
            if name is None:
                raise RefusedFrameError("NACK received without a subscription id for acknowledge!")
            if message_id is None:
                raise RefusedFrameError("NACK received without a message-id to acknowledge!")
        elif ack_id is None:
            raise RefusedFrameError("NACK received without an ack header to acknowledge!")
        transaction = self._transaction_of(headers)
        subscription = None
        if ack_id is not None:
            pending = self._pending.get(ack_id)
            if pending is not None:
                message_id, subscription = pending.message_id, pending.subscription
        elif name is not None:
            subscription = self._by_name.get(name)
        if subscription is not None and subscription.info.browser:
            raise RefusedFrameError("Cannot Nack a message on a Queue Browser Subscription.")
        entry = None if subscription is None else subscription.dispatched.get(message_id or "")
        if subscription is None or entry is None:
            raise RefusedFrameError(f"Unexpected NACK received for message-id [{_java(message_id)}]")
        self._settle(subscription, entry, transaction)
        info = subscription.info
        ack = MessageAck(
            info.consumer_id, info.destination, AckKind.POISON, entry.message_id, entry.message_id,
            transaction_id=transaction,
        )  # fmt: skip
        with self._answered(frame):
            self._broker.acknowledge(ack)

    # Transactions

    def _transaction_of(self, headers: dict[str, str]) -> str | None:
        name = headers.get("transaction")
        return None if name is None else self._open_transaction(name)

    def _open_transaction(self, name: str) -> str:
        found = self._transactions.get(name)
        if found is None:
            raise RefusedFrameError(f"Invalid transaction id: {name}")
        return found

    def _begin(self, frame: StompFrame) -> None:
        self._check_connected()
        name = frame.headers.get("transaction")
        if name is None:
            raise RefusedFrameError("Must specify the transaction you are beginning")
        if name in self._transactions:
            raise RefusedFrameError(f"The transaction was already started: {name}")
        transaction = f"TX:{self.connection_id}:{next(self._transaction_numbers)}"
        self._transactions[name] = transaction
        with self._answered(frame):
            self._broker.begin(self.connection_id, transaction)

    def _end_transaction(self, frame: StompFrame) -> str:
        self._check_connected()
        name = frame.headers.get("transaction")
        if name is None:
            raise RefusedFrameError("Must specify the transaction you are committing")
        transaction = self._open_transaction(name)
        del self._transactions[name]
        return transaction

    def _commit(self, frame: StompFrame) -> None:
        transaction = self._end_transaction(frame)
        for subscription in self._by_consumer.values():
            if not subscription.transacted:
                continue
            last = next(reversed(subscription.transacted.values()))
            number = len(subscription.transacted)
            for message_id in subscription.transacted:
                subscription.dispatched.pop(message_id, None)
            subscription.transacted.clear()
            if subscription.mode == "client":
                ack = MessageAck(
                    subscription.info.consumer_id,
                    last.destination,
                    AckKind.STANDARD,
                    last.message_id,
                    message_count=number,
                    transaction_id=transaction,
                )
                self._broker.acknowledge(ack, self.asynchronous_failure)
        with self._answered(frame):
            self._broker.commit(transaction)

    def _abort(self, frame: StompFrame) -> None:
        transaction = self._end_transaction(frame)
        for subscription in self._by_consumer.values():
            if self.version == "1.2":
                self._pending.update({each.ack_id: each for each in subscription.transacted.values()})
            subscription.transacted.clear()
        with self._answered(frame):
            self._broker.rollback(transaction)

    # Messages out

    def _shown(
        self, message: Message, headers: dict[str, str], ignore_transformation: bool
    ) -> tuple[dict[str, str], bytes]:
        return shown(message, headers, ignore_transformation)

    def _await(self, ack_id: str, message_id: str, dispatch: MessageDispatch, subscription: Subscription) -> None:
        entry = Pending(ack_id, message_id, dispatch.destination, subscription)
        subscription.dispatched[message_id] = entry
        if self.version == "1.2":
            self._pending[ack_id] = entry

    def _end_of_browsing(self, subscription: Subscription) -> None:
        headers = {
            "subscription": subscription.name or "",
            "browser": "end",
            "destination": self._names.shown(str(subscription.info.destination)),
            "message-id": "0",
        }
        self._write(StompFrame("MESSAGE", ordered(headers)), self.wire_version)

    # Answers

    @contextmanager
    def _answered(self, frame: StompFrame) -> Iterator[None]:
        """What the broker is asked meanwhile gives a RECEIPT, if one is wanted, or an ERROR."""
        try:
            yield
        except PyengineError as error:
            self._report(error, frame)
        else:
            self._receipt(frame)

    def asynchronous_failure(self, error: Exception) -> None:
        """An error that belongs to no frame of the client's."""
        self._report(error, None)

    def _report(self, error: Exception, frame: StompFrame | None) -> None:
        kind, text, cause = java_error(error)
        self._error(kind, text, frame, cause)

    def _error(self, kind: str, text: str, frame: StompFrame | None, cause: str = "") -> None:
        LOG.warning("%s: refused: %s", self.connection_id, text)
        headers = {"message": text, "content-type": "text/plain"}
        if frame is not None and "receipt" in frame.headers:
            headers["receipt-id"] = frame.headers["receipt"]
        stack = f"{kind}: {text}\n{TRACE}" + (f"Caused by: {cause}\n{TRACE}" if cause else "")
        if kind == SECURITY:
            stack = text
        self._write(StompFrame("ERROR", ordered(headers), stack.encode("utf-8", "replace")), self.wire_version)


def _java(text: str | None) -> str:
    return "null" if text is None else text
