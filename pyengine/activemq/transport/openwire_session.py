"""One OpenWire connection at the broker: what ActiveMQ's TransportConnection makes of its commands.

Commands come in by ``receive``, dispatched messages by ``deliver``; what the client will read goes out through
``write``. No socket, no thread: the owner of the connection calls it, one call at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine._engine.message.message import Message
from pyengine._engine.wire.data_structure import DataStructure, JavaThrowable
from pyengine._engine.wire.openwire_messages import (
    BEGIN,
    COMMIT_ONE_PHASE,
    COMMIT_TWO_PHASE,
    END,
    FORGET,
    NEVER_DELIVERED,
    NOT_KNOWN,
    PREPARE,
    RECOVER,
    REMOVE,
    ROLLBACK,
    consumer_info,
    destination_of,
    destination_structure,
    id_text,
)
from pyengine._engine.wire.openwire_types import TYPES
from pyengine.activemq._runtime.openwire_traffic import ConsumerOfClient, OpenWireTraffic
from pyengine.activemq.transport.client_connection import ListeningBroker
from pyengine.activemq.transport.commands import (
    ConnectionInfo,
    ConnectionSink,
    ConsumerControl,
    MessagePull,
)
from pyengine.activemq.transport.java_exceptions import java_error
from pyengine.destinations import Destination
from pyengine.errors import AuthenticationError, InvalidClientIDError, JMSError, ProtocolError, PyengineError
from pyengine.visible import logger

LOG = logger("pyengine.activemq")
XA_EXCEPTION = "javax.transaction.xa.XAException"
XA_ROLLED_BACK_OTHER = 104  # XAException.XA_RBOTHER, which clients read behind "xaErrorCode:"
FAREWELL = 2.0  # seconds after which a client goes whose connection was refused
_EXCEPTION_RESPONSE, _DATA_ARRAY_RESPONSE = TYPES["ExceptionResponse"], TYPES["DataArrayResponse"]
_CONNECTION_CONTROL, _CONSUMER_CONTROL = TYPES["ConnectionControl"], TYPES["ConsumerControl"]


class UnexpectedCommandError(ProtocolError):
    """A command that no client sends."""


class OpenWireSession(OpenWireTraffic):
    """One connection of a client.

    write: a command for the client. dispatch: what the broker calls with a message for this connection (see
    ConnectionSink); it leads to ``deliver``. control: the same for a command that closes a consumer; it leads to
    ``controlled``. failed: the broker ends the connection, with the reason. authenticate: raises AuthenticationError
    for a name and a password that may not come in. displace: called with the id of a connection that comes, before it
    is added: one with that id ends. end_later: the connection ends in so many seconds, with the reason.

    connected: the client has sent its ConnectionInfo. closing: the client or a fatal error ended it; what was written
    must still be sent.
    """

    def __init__(
        self,
        broker: ListeningBroker,
        write: Callable[[DataStructure], object],
        dispatch: Callable[[MessageDispatch], None],
        control: Callable[[ConsumerControl], None] = lambda command: None,
        failed: Callable[[str], None] = lambda reason: None,
        *,
        displace: Callable[[str], None] = lambda connection_id: None,
        end_later: Callable[[float, str], None] = lambda seconds, reason: None,
        authenticate: Callable[[str | None, str | None], tuple[str, ...]] = lambda user, password: (),
        client_address: str = "",
    ) -> None:
        super().__init__(broker, write)
        self._broker: ListeningBroker
        self._sink = ConnectionSink(dispatch, control=control, failed=failed, queued=True)
        self._authenticate = authenticate
        self._displace, self._end_later = displace, end_later
        # Of a client that has failed over: the last number of each of its producers that the store has.
        self._audited: dict[str, int] | None = None
        self._client_address = client_address
        self._actions: dict[str, Callable[[DataStructure], DataStructure | None]] = {
            "MessagePull": self._pull,
            "TransactionInfo": self._transaction,
            "ConnectionInfo": self._add_connection,
            "SessionInfo": self._nothing,
            "ConsumerInfo": self._add_consumer,
            "ProducerInfo": self._add_producer,
            "DestinationInfo": self._destination,
            "RemoveInfo": self._remove,
            "RemoveSubscriptionInfo": self._remove_subscription,
            "KeepAliveInfo": self._nothing,
            "FlushCommand": self._nothing,
            "ConnectionControl": self._control_connection,
            "ConsumerControl": self._control_consumer,
            "ControlCommand": self._nothing,
            "ConnectionError": self._client_failed,
            "ShutdownInfo": self._shut_down,
            **{name: self._nothing for name, kind in TYPES.items() if name.endswith("Response")},
        }

    # Commands in

    def _act(self, command: DataStructure) -> DataStructure | None:
        action = self._actions.get(command.kind.name)
        if action is None:
            raise UnexpectedCommandError(f"a {command.kind.name} is not what a client sends")
        return action(command)

    def _refused(self, command: DataStructure, error: PyengineError) -> DataStructure:
        """The answer to what went wrong, if the client waits for one."""
        if isinstance(error, UnexpectedCommandError):
            raise error
        if isinstance(error, ProtocolError):
            error = JMSError(str(error))
        LOG.warning("%s: refused: %s", self.connection_id or self._client_address, error)
        if isinstance(error, AuthenticationError):
            self.closing = True
        elif command.kind.name == "ConnectionInfo" and not self.connected:
            self._end_later(FAREWELL, f"Failed with SecurityException: {error}")
        return self._exception(error)

    def _exception(self, error: PyengineError) -> DataStructure:
        kind, text, cause = java_error(error)
        if cause:
            name, _, words = cause.partition(": ")
            return _EXCEPTION_RESPONSE(exception=JavaThrowable(kind, text, (), JavaThrowable(name, words)))
        return _EXCEPTION_RESPONSE(exception=JavaThrowable(kind, text))

    def _nothing(self, command: DataStructure) -> None:
        """What the broker has nothing to do for."""

    def _client_failed(self, command: DataStructure) -> None:
        LOG.warning("%s: the client failed: %s", self.connection_id, command.exception)

    def _shut_down(self, command: DataStructure) -> None:
        self.closing = True

    def _check_connected(self) -> None:
        if not self.connected:
            raise ProtocolError("a command before the ConnectionInfo")

    # Connection, sessions, consumers, producers

    def _add_connection(self, command: DataStructure) -> None:
        if self.connected:
            return  # a client that failed over says it again
        if command.connection_id is None:
            raise ProtocolError("ConnectionInfo.connection_id is null")
        if command.client_id is None:
            raise InvalidClientIDError("No clientID specified for connection request")
        groups = self._authenticate(command.user_name, command.password)
        info = ConnectionInfo(
            id_text(command.connection_id),
            command.client_id,
            user_name=command.user_name,
            password=command.password,
            client_ip=self._client_address,
            groups=groups,
        )
        self._displace(info.connection_id)
        self._broker.add_connection(info, self._sink)
        self.connection_id = info.connection_id
        self.connected = True
        self._fault_tolerant = command.fault_tolerant
        self._audited = {} if command.failover_reconnect else None
        self._write(_CONNECTION_CONTROL(connected_brokers="", reconnect_to=""))

    def _control_connection(self, command: DataStructure) -> None:
        self._fault_tolerant = command.fault_tolerant

    def _control_consumer(self, command: DataStructure) -> None:
        """The client changes the prefetch of a consumer."""
        if command.consumer_id is not None and id_text(command.consumer_id) in self._consumers:
            self._broker.set_prefetch(id_text(command.consumer_id), command.prefetch)

    def _add_consumer(self, command: DataStructure) -> None:
        self._check_connected()
        identity = command.consumer_id
        name = id_text(identity)
        if name in self._consumers:
            return
        info = consumer_info(command, self.connection_id)
        self._consumers[name] = ConsumerOfClient(identity, info)
        try:
            self._broker.add_consumer(info)
        except BaseException:
            del self._consumers[name]
            raise

    def _add_producer(self, command: DataStructure) -> None:
        self._check_connected()
        name = id_text(command.producer_id)
        destination = None if command.destination is None else destination_of(command.destination)
        self._broker.add_producer(self.connection_id, name, destination)
        self._producers[name] = command.window_size

    def _last_delivered(self, sequence: int, consumers: list[ConsumerOfClient]) -> dict[str, Any]:
        if sequence == NOT_KNOWN:
            return {"lost": True}
        if sequence > NEVER_DELIVERED:
            for consumer in consumers:
                found = consumer.dispatched.message_id(sequence)
                if found is not None:
                    return {"last_delivered": found}
        return {}

    def _remove(self, command: DataStructure) -> None:
        if not self.connected:
            return
        identity, sequence = command.object_id, command.last_delivered_sequence_id
        kind = "" if identity is None else identity.kind.name
        if kind == "ConsumerId":
            consumer = self._consumers.pop(id_text(identity), None)
            if consumer is not None:
                said = self._last_delivered(sequence, [consumer, *self._consumers.values()])
                self._broker.remove_consumer(consumer.info.consumer_id, **said)
        elif kind == "SessionId":
            session = id_text(identity)
            leaving = [each for each in self._consumers.values() if each.info.session_id == session]
            said = self._last_delivered(sequence, leaving)
            for each in leaving:
                del self._consumers[each.info.consumer_id]
            if said.get("lost"):
                for each in leaving:
                    self._broker.remove_consumer(each.info.consumer_id, lost=True)
            else:
                self._broker.remove_consumers([each.info.consumer_id for each in leaving], **said)
            for producer in [each for each in self._producers if each.startswith(f"{session}:")]:
                self._remove_producer(producer)
        elif kind == "ProducerId":
            self._remove_producer(id_text(identity))
        elif kind == "ConnectionId":
            said = self._last_delivered(sequence, list(self._consumers.values()))
            self._consumers.clear()
            self._producers.clear()
            self.connected = False
            self._broker.remove_connection(self.connection_id, **said)
        else:
            raise JMSError(f"Unknown object type in remove command: {kind or 'null'}")

    def _remove_producer(self, name: str) -> None:
        if self._producers.pop(name, None) is not None:
            self._broker.remove_producer(name)

    def _remove_subscription(self, command: DataStructure) -> None:
        self._check_connected()
        self._broker.remove_subscription(command.client_id or "", command.subscription_name or "")

    def _destination(self, command: DataStructure) -> None:
        self._check_connected()
        destination = destination_of(command.destination)
        if command.operation_type == REMOVE:
            self._broker.remove_destination(self.connection_id, destination)
        else:
            self._broker.add_destination(self.connection_id, destination)

    # Messages

    def _send_once(
        self, identity: DataStructure, destination: Destination, message: Message, transaction: str | None
    ) -> None:
        """A persistent message of a client that fails over: what the store has of its producer is not sent again
        (ProducerBrokerExchange.canDispatch)."""
        producer, number = id_text(identity.producer_id), identity.producer_sequence_id
        if self._audited is not None:
            last = self._audited.get(producer)
            if last is None:
                last = self._broker.last_produced(producer)
            if number <= last:
                LOG.debug("%s: suppressing duplicate message send, number %d <= %d", producer, number, last)
                return
            self._audited[producer] = number
        with self._broker.outbox:
            self._broker.send(self.connection_id, destination, message, transaction)
            if transaction is None:
                self._broker.produced(producer, number)

    def _pull(self, command: DataStructure) -> None:
        self._check_connected()
        self._broker.pull(
            MessagePull(id_text(command.consumer_id), destination_of(command.destination), command.timeout)
        )

    # Transactions

    def _transaction(self, command: DataStructure) -> DataStructure | None:
        self._check_connected()
        kind = command.type
        if kind == RECOVER:
            return _DATA_ARRAY_RESPONSE(data=[])
        if command.transaction_id is None:
            raise ProtocolError("TransactionInfo: without a transaction")
        name = id_text(command.transaction_id)
        if kind == BEGIN:
            self._broker.begin(self.connection_id, name)
        elif kind in (COMMIT_ONE_PHASE, COMMIT_TWO_PHASE):
            self._broker.commit(name)
        elif kind == ROLLBACK:
            self._broker.rollback(name)
        elif kind == PREPARE:
            # What a resource answers that has rolled back on its own: the transaction manager rolls back the others.
            self._broker.rollback(name)
            text = f"{name}: rolled back: this broker commits in one phase only, XA's prepare is not supported"
            LOG.warning("%s: refused: %s", self.connection_id, text)
            return _EXCEPTION_RESPONSE(
                exception=JavaThrowable(XA_EXCEPTION, f"{text} xaErrorCode:{XA_ROLLED_BACK_OTHER}")
            )
        elif kind not in (FORGET, END):
            raise JMSError(f"Unknown transaction info type: {kind}")
        return None

    def controlled(self, command: ConsumerControl) -> None:
        """The broker closes a consumer (abort of a slow consumer)."""
        consumer = self._consumers.get(command.consumer_id)
        if consumer is not None:
            self._write(
                _CONSUMER_CONTROL(
                    consumer_id=consumer.identity,
                    destination=destination_structure(consumer.info.destination),
                    close=command.close,
                )
            )

    def leave(self) -> None:
        """The connection has ended."""
        self.closing = True
        if self.connected:
            self.connected = False
            self._consumers.clear()
            self._producers.clear()
            self._broker.remove_connection(self.connection_id, lost=True)
