"""The state of a connection, which another broker is given after a failover (state.ConnectionStateTracker)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from pyengine._engine.message.envelope import SMALLEST_SIZE
from pyengine._engine.wire.data_structure import DataStructure, JavaThrowable
from pyengine._engine.wire.openwire_messages import (
    BEGIN,
    COMMIT_ONE_PHASE,
    COMMIT_TWO_PHASE,
    END,
    PREPARE,
    REMOVE,
    ROLLBACK,
    id_text,
    session_id,
)
from pyengine._engine.wire.openwire_types import TYPES

PULL_SIZE = 400  # bytes that a MessagePull counts for
_MESSAGE = TYPES["Message"]


class Tracked:
    """A command that is restored by itself. on_response: called with its answer; None: the answer changes nothing."""

    __slots__ = ("on_response",)

    def __init__(self, on_response: Callable[[DataStructure], object] | None = None) -> None:
        self.on_response = on_response


TRACKED: Final = Tracked()


@dataclass(slots=True)
class _Transaction:
    """An open transaction: its commands in order, and its producers that have gone since."""

    commands: list[DataStructure] = field(default_factory=list)
    producers: dict[str, DataStructure] = field(default_factory=dict)


@dataclass(slots=True)
class _Producer:
    info: DataStructure
    transaction: _Transaction | None = None


@dataclass(slots=True)
class _Session:
    info: DataStructure
    producers: dict[str, _Producer] = field(default_factory=dict)
    consumers: dict[str, DataStructure] = field(default_factory=dict)


def _session_of(member: str) -> str:
    return member.rpartition(":")[0]


def size_of(message: DataStructure) -> int:
    """Bytes that a message counts for (Message.getSize)."""
    return SMALLEST_SIZE + len(message.content or b"") + len(message.marshalled_properties or b"")


class ConnectionStateTracker:
    """One connection, its temporary destinations, sessions, producers, consumers, transactions and open pulls.

    track_messages: messages outside transactions too, as far as they have max_cache_size bytes. track_transaction_
    producers: a producer that is closed before its transaction ends comes again with that.
    """

    def __init__(self, *, track_messages: bool, track_transaction_producers: bool, max_cache_size: int) -> None:
        self._track_messages = track_messages
        self._track_producers = track_transaction_producers
        self._max_cache_size = max_cache_size
        self._cache_size = 0
        self._cache: dict[Any, DataStructure] = {}
        self._connection: DataStructure | None = None
        self._temporary: dict[DataStructure, DataStructure] = {}
        self._sessions: dict[str, _Session] = {}
        self._transactions: dict[str, _Transaction] = {}
        self._actions: dict[str, Callable[[DataStructure], Tracked | None]] = {
            "ConnectionInfo": self._add_connection,
            "DestinationInfo": self._destination,
            "SessionInfo": self._add_session,
            "ConsumerInfo": self._add_consumer,
            "ProducerInfo": self._add_producer,
            "RemoveInfo": self._remove,
            "TransactionInfo": self._transaction,
            "MessagePull": self._pull,
        }

    def track(self, command: DataStructure) -> Tracked | None:
        """A command is about to be sent. None: it is not restored, and is sent again if its answer does not come."""
        action = self._actions.get(command.kind.name)
        if action is not None:
            return action(command)
        return self._message(command) if command.kind.extends(_MESSAGE) else None

    def track_back(self, command: DataStructure) -> None:
        """It was sent."""
        if self._track_messages and command.kind.extends(_MESSAGE) and command.transaction_id is None:
            self._cache_size += size_of(command)

    # Tracking

    def _add_connection(self, command: DataStructure) -> Tracked:
        self._connection = command
        name = id_text(command.connection_id)  # the connection's own consumers are of session -1
        session = TYPES["SessionInfo"](session_id=session_id(f"{name}:-1"))
        self._sessions = {f"{name}:-1": _Session(session)}
        return TRACKED

    def _destination(self, command: DataStructure) -> Tracked:
        destination = command.destination
        if destination.kind.extends(TYPES["ActiveMQTempDestination"]):
            if command.operation_type == REMOVE:
                self._temporary.pop(destination, None)
            else:
                self._temporary[destination] = command
        return TRACKED

    def _add_session(self, command: DataStructure) -> Tracked:
        self._sessions[id_text(command.session_id)] = _Session(command)
        return TRACKED

    def _add_consumer(self, command: DataStructure) -> Tracked:
        name = id_text(command.consumer_id)
        session = self._sessions.get(_session_of(name))
        if session is None:
            return TRACKED
        session.consumers[name] = command
        return self._checked(lambda: self.remove_consumer(name)) if command.response_required else TRACKED

    def _add_producer(self, command: DataStructure) -> Tracked:
        name = id_text(command.producer_id)
        session = self._sessions.get(_session_of(name))
        if session is None:
            return TRACKED
        session.producers[name] = _Producer(command)
        return self._checked(lambda: self._remove_producer(name)) if command.response_required else TRACKED

    def _checked(self, forget: Callable[[], object]) -> Tracked:
        """What the broker refuses is not restored."""
        return Tracked(lambda answer: forget() if answer.kind.name == "ExceptionResponse" else None)

    def remove_consumer(self, name: str) -> None:
        """A consumer is there no more."""
        session = self._sessions.get(_session_of(name))
        if session is not None:
            session.consumers.pop(name, None)

    def _remove_producer(self, name: str) -> None:
        session = self._sessions.get(_session_of(name))
        producer = None if session is None else session.producers.pop(name, None)
        if producer is not None and producer.transaction is not None:
            producer.transaction.producers[name] = producer.info

    def _remove(self, command: DataStructure) -> Tracked:
        identity = command.object_id
        kind, name = identity.kind.name, id_text(identity)
        if kind == "ConsumerId":
            self.remove_consumer(name)
        elif kind == "ProducerId":
            self._remove_producer(name)
        elif kind == "SessionId":
            self._sessions.pop(name, None)
        elif kind == "ConnectionId":
            self._connection = None
            self._temporary.clear()
            self._sessions.clear()
            self._transactions.clear()
        return TRACKED

    def _message(self, command: DataStructure) -> Tracked | None:
        if command.transaction_id is not None:
            transaction = self._transactions.get(id_text(command.transaction_id))
            if transaction is not None:
                transaction.commands.append(command)
                if self._track_producers and command.producer_id is not None:
                    name = id_text(command.producer_id)
                    session = self._sessions.get(_session_of(name))
                    producer = None if session is None else session.producers.get(name)
                    if producer is not None:
                        producer.transaction = transaction
            return TRACKED
        if self._track_messages:
            self._keep(command.message_id, command)
        return None

    def _pull(self, command: DataStructure) -> None:
        key = id_text(command.consumer_id)
        if key not in self._cache:
            self._cache_size += PULL_SIZE
        self._keep(key, command)

    def _keep(self, key: Any, command: DataStructure) -> None:
        self._cache[key] = command
        if self._cache_size > self._max_cache_size:
            eldest = self._cache.pop(next(iter(self._cache)))
            self._cache_size -= size_of(eldest) if eldest.kind.extends(_MESSAGE) else PULL_SIZE

    def _transaction(self, command: DataStructure) -> Tracked | None:
        if command.transaction_id is None:
            return None
        name, kind = id_text(command.transaction_id), command.type
        if kind == BEGIN:
            self._transactions[name] = _Transaction([command])
            return TRACKED
        transaction = self._transactions.get(name)
        if transaction is None:
            return TRACKED if kind == END else None
        transaction.commands.append(command)
        if kind == END:
            return TRACKED
        if kind in (COMMIT_ONE_PHASE, COMMIT_TWO_PHASE, ROLLBACK):
            return Tracked(lambda answer: self._transactions.pop(name, None))
        return Tracked() if kind == PREPARE else None

    # Restoring

    def restore(self, send: Callable[[DataStructure], None], answer: Callable[[DataStructure], None]) -> None:
        """Send a broker everything. answer: is given the answers that no broker can give: a commit that was under way
        has become a rollback."""
        if self._connection is None:
            return
        self._connection = self._connection.replace(failover_reconnect=True)
        send(self._connection)
        for command in list(self._temporary.values()):
            send(command)
        for session in list(self._sessions.values()):
            send(session.info)
            for producer in list(session.producers.values()):
                send(producer.info)
            for command in list(session.consumers.values()):
                send(command)
        for command in self._restored_transactions(answer):
            send(command)
        for command in list(self._cache.values()):
            send(command)

    def _restored_transactions(self, answer: Callable[[DataStructure], None]) -> Iterator[DataStructure]:
        in_doubt = []
        for transaction in list(self._transactions.values()):
            last = transaction.commands[-1]
            if last.kind.name == "TransactionInfo" and last.type == COMMIT_ONE_PHASE:
                in_doubt.append(last)
                continue
            yield from transaction.producers.values()
            yield from transaction.commands
            for info in transaction.producers.values():
                yield TYPES["RemoveInfo"](object_id=info.producer_id, last_delivered_sequence_id=0)
        for command in in_doubt:
            text = (
                "Transaction completion in doubt due to failover. Forcing rollback of "
                f"{id_text(command.transaction_id)}"
            )
            failure = JavaThrowable("javax.jms.TransactionRolledBackException", text)
            answer(TYPES["ExceptionResponse"](correlation_id=command.command_id, exception=failure))
