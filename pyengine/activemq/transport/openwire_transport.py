"""A broker of the network, as a client sees it: OpenWire's commands, and the answers to them."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urlsplit

from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine._engine.message.message import Message
from pyengine._engine.wire import openwire_messages as openwire
from pyengine._engine.wire.data_structure import DataStructure, JavaThrowable
from pyengine._engine.wire.dispatched_messages import DispatchedMessages
from pyengine._engine.wire.openwire_types import NO_COMMAND, TYPES
from pyengine.activemq._runtime.openwire_client import OpenWireClient
from pyengine.activemq.transport.commands import (
    ConnectionInfo,
    ConnectionSink,
    ConsumerControl,
    ConsumerInfo,
    DestinationInfo,
    MessagePull,
)
from pyengine.activemq.transport.java_exceptions import cause_of, error_of
from pyengine.activemq.transport.openwire_channel import Channel, ChannelListener
from pyengine.activemq.transport.tcp_options import TcpOptions
from pyengine.clock import Clock, SystemClock, Worker
from pyengine.destinations import Destination
from pyengine.errors import IllegalStateError, JMSError, PyengineError
from pyengine.visible import logger

LOG = logger("pyengine.activemq")
EXCEPTION_RESPONSE = TYPES["ExceptionResponse"]
TEMPORARY = Destination("ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic", "topic")


def _removal(identity: DataStructure, last_delivered: int) -> DataStructure:
    return TYPES["RemoveInfo"](object_id=identity, last_delivered_sequence_id=last_delivered)


class _Answer:
    """The answer to one command, for the thread that waits for it. clock: of its waits."""

    __slots__ = ("_arrived", "_clock", "_given", "command", "failure")

    def __init__(self, clock: Clock) -> None:
        self.command: DataStructure | None = None
        self.failure: str | None = None
        self._clock = clock
        # With real threads a lock, which is taken until the answer is given, is half the work of a condition.
        self._given = threading.Lock() if type(clock) is SystemClock else None
        self._arrived = threading.Condition() if self._given is None else None
        if self._given is not None:
            self._given.acquire()

    def _is_given(self) -> bool:
        return self.command is not None or self.failure is not None

    def wait(self, patience: int | None) -> bool:
        """Whether it is given within so many ms; None: for ever."""
        if self._given is not None:
            return self._given.acquire(timeout=-1 if patience is None else min(patience / 1000, threading.TIMEOUT_MAX))
        assert self._arrived is not None
        with self._arrived:
            return self._clock.wait(self._arrived, self._is_given, patience)

    def give(self, command: DataStructure | None, failure: str | None = None) -> None:
        """It came, or will not; the first time counts."""
        if self._given is not None:
            if not self._is_given():
                self.command, self.failure = command, failure
                self._given.release()
            return
        assert self._arrived is not None
        with self._arrived:
            self.command, self.failure = command, failure
            self._arrived.notify_all()


class OpenWireTransport(OpenWireClient):
    """A client at a broker of the network: Transport's calls as OpenWire's commands, and the answers to them.

    channel: where the commands go out. options: of the connection. clock: of its waits. fault_tolerant: the channel
    fails over.

    See commands.Transport for its calls.

    Raises JMSError if the broker cannot be reached. After a failure every call raises JMSError, except those that
    remove something.
    """

    def __init__(self, channel: Channel, options: TcpOptions, clock: Clock, *, fault_tolerant: bool = False) -> None:
        super().__init__(channel, options, clock)
        self.fault_tolerant = fault_tolerant
        self._channel: Channel
        self._options: TcpOptions
        self._clock: Clock
        self._answers: dict[int, _Answer]
        self._sink: ConnectionSink | None
        self._state = threading.Lock()
        self._leaving = False  # the broker ends the connection, as it is asked to
        # Sessions that the broker knows -> their consumers and producers, which number their ids each by themselves.
        self._sessions: dict[str, set[DataStructure]] = {}
        self._temporary: set[Destination] = set()
        self._worker: Worker | None = None
        self._info: ConnectionInfo | None = None
        self.broker_name: str | None = None

    def __str__(self) -> str:
        return str(self._channel)

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port of the broker that it is connected to; None while it looks for one."""
        found = urlsplit(str(self._channel))
        return None if found.hostname is None or found.port is None else (found.hostname, found.port)

    @property
    def clock(self) -> Clock:
        """The one that it was given."""
        return self._clock

    @property
    def release(self) -> str:
        """See Transport. The newest: what differs is the broker's."""
        return "newest"

    def _check(self) -> None:
        if self._failed is not None:
            raise JMSError(f"the connection failed: {self._failed}")
        if self._closed:
            raise IllegalStateError("The connection is closed")

    def _fail(self, reason: str) -> None:
        with self._state:
            if self._failed is not None or self._closed:
                return
            self._failed = reason
            waiting, self._answers = list(self._answers.values()), {}
        for answer in waiting:
            answer.give(None, reason)
        if self._sink is not None and not self._leaving:
            self._sink.failed(reason)

    def close(self) -> None:
        """End the connection without a word. Closing twice is harmless."""
        with self._state:
            self._closed = True
            waiting, self._answers = list(self._answers.values()), {}
        for answer in waiting:
            answer.give(None, "it is closed")
        self._channel.close()
        if self._worker is not None:
            self._worker.close()
        self._channel.join()

    # Commands out

    def _wait_for(self, number: int, command: DataStructure, timeout: int | None) -> DataStructure:
        answer = self._answers[number] = _Answer(self._clock)
        try:
            self._check()
            self._channel.oneway(command)
        except BaseException:
            self._answers.pop(number, None)
            raise
        patience = self._options.request_timeout if timeout is None else timeout
        if not answer.wait(patience or None):
            self._answers.pop(number, None)
            raise JMSError(f"{command.kind.name}: the broker did not answer within {patience} ms")
        if answer.failure is not None or answer.command is None:
            raise JMSError(f"the connection failed: {answer.failure}")
        if answer.command.kind is EXCEPTION_RESPONSE:
            raise error_of(answer.command.exception)
        return answer.command

    def _cause(self, text: str) -> JavaThrowable | None:
        return cause_of(text)

    # Commands in

    def _control(self, command: DataStructure) -> None:
        name = command.kind.name
        if name == "BrokerInfo":
            self.broker_name = command.broker_name
        elif name == "ConsumerControl":
            if command.close and self._sink is not None and command.consumer_id is not None:
                self._sink.control(ConsumerControl(openwire.id_text(command.consumer_id)))
        elif name == "ConnectionError":
            LOG.error("%s: the broker reports: %s", self, error_of(command.exception))
        elif command is not NO_COMMAND and name not in ("ConnectionControl", "ProducerAck", "ControlCommand"):
            LOG.warning("%s: the broker sent a %s, which is not for a client", self, name)

    def _hand_over(self, dispatch: MessageDispatch) -> None:
        if not self._options.dispatch_on_worker:
            self._deliver(dispatch)
            return
        if self._worker is None:
            self._worker = self._clock.worker(f"ActiveMQ Connection Dispatcher: {self}")
        self._worker.submit(lambda: self._deliver(dispatch))

    def _deliver(self, dispatch: MessageDispatch) -> None:
        if self._sink is not None:
            answer = self._sink.dispatch(dispatch)
            if answer is not None:
                self.acknowledge(answer.ack, answer.failed)

    def _advised(self, content: DataStructure | None) -> None:
        command = None if content is None else openwire.reported(content.data_structure)
        if isinstance(command, DestinationInfo) and command.destination.is_temporary:
            if command.removed:
                self._temporary.discard(command.destination)
            else:
                self._temporary.add(command.destination)

    # Connection

    def add_connection(self, info: ConnectionInfo, sink: ConnectionSink) -> None:
        """See Transport."""
        own = self._options.client_id_prefix + info.connection_id.rpartition(":")[0].removeprefix("ID:")
        self._info = info = replace(info, client_id=info.client_id or own)
        self._sink = sink
        try:
            self._channel.start(
                ChannelListener(self._receive, self._fail, lambda: sink.interrupted(), lambda: sink.resumed())
            )
            self._request(
                TYPES["ConnectionInfo"](
                    connection_id=openwire.connection_id(info.connection_id),
                    client_id=info.client_id,
                    user_name=self._options.user_name,
                    password=self._options.password,
                    manageable=True,
                    client_master=True,
                    fault_tolerant=self.fault_tolerant,
                ),
                self._options.connect_response_timeout,
            )
            if self._options.watch_advisories:
                watching = self._watching = f"{info.connection_id}:-1:1"
                self._consumers[watching] = DispatchedMessages()
                self._request(
                    TYPES["ConsumerInfo"](
                        consumer_id=openwire.consumer_id(watching),
                        destination=openwire.destination_structure(TEMPORARY),
                        prefetch_size=1000,
                        no_local=True,
                        dispatch_async=True,
                    )
                )
        except BaseException:
            self._sink = None
            self.close()
            raise

    def remove_connection(self, connection_id: str, *, last_delivered: str | None = None, lost: bool = False) -> None:
        """See Transport. Closes the socket."""
        self._leaving = True
        if not lost and not self._closed and self._failed is None:
            with suppress(PyengineError):
                number = self._number(last_delivered, self._consumers)
                leaving = openwire.connection_id(connection_id)
                self._request(_removal(leaving, number), self._options.close_timeout)
                self._send(TYPES["ShutdownInfo"]())
        self.close()

    def _number(self, last_delivered: str | None, consumers: Iterable[str]) -> int:
        if last_delivered is not None:
            for consumer in consumers:
                number = self._consumers[consumer].number(last_delivered)
                if number is not None:
                    return number
        return openwire.NEVER_DELIVERED

    def _leave(self, command: DataStructure) -> None:
        """Tell the broker that something is there no more; a broker that has gone knows."""
        if not self._closed and self._failed is None:
            self._send(command)

    # Consumers, producers, destinations

    def _join(self, member: str, identity: DataStructure) -> None:
        """A consumer or a producer comes: the broker must know its session."""
        session = member.rpartition(":")[0]
        members = self._sessions.setdefault(session, set())
        if not members:
            self._send(TYPES["SessionInfo"](session_id=openwire.session_id(session)))
        members.add(identity)

    def _part(self, member: str, identity: DataStructure, last_delivered: int | None = openwire.NOT_KNOWN) -> None:
        """One leaves; with the last one the session does, until another one comes. None: the broker refused it."""
        session = member.rpartition(":")[0]
        members = self._sessions.get(session)
        if members is None or identity not in members:
            return
        members.discard(identity)
        if last_delivered is not None:
            self._leave(_removal(identity, last_delivered))
        if not members:
            del self._sessions[session]
            self._leave(_removal(openwire.session_id(session), openwire.NOT_KNOWN))

    def add_consumer(self, info: ConsumerInfo) -> int:
        """See Transport."""
        command = openwire.structure_of(info)
        assert command is not None
        self._consumers[info.consumer_id] = DispatchedMessages()
        try:
            self._join(info.consumer_id, command.consumer_id)
            self._request(command)
        except BaseException:
            del self._consumers[info.consumer_id]
            self._part(info.consumer_id, command.consumer_id, None)
            raise
        return info.prefetch_size

    def remove_consumer(self, consumer_id: str, *, last_delivered: str | None = None, lost: bool = False) -> None:
        """See Transport."""
        if consumer_id in self._consumers:
            number = openwire.NOT_KNOWN if lost else self._number(last_delivered, [consumer_id, *self._consumers])
            del self._consumers[consumer_id]
            self._part(consumer_id, openwire.consumer_id(consumer_id), number)

    def remove_consumers(self, consumer_ids: Iterable[str], *, last_delivered: str | None = None) -> None:
        """See Transport."""
        leaving = [each for each in consumer_ids if each in self._consumers]
        number = self._number(last_delivered, leaving)
        for each in leaving:
            del self._consumers[each]
        for session in dict.fromkeys(each.rpartition(":")[0] for each in leaving):
            del self._sessions[session]  # its producers leave with it
            self._leave(_removal(openwire.session_id(session), number))

    def remove_subscription(self, client_id: str, name: str) -> None:
        """See Transport."""
        assert self._info is not None
        self._request(
            TYPES["RemoveSubscriptionInfo"](
                connection_id=openwire.connection_id(self._info.connection_id),
                client_id=self._info.client_id,
                subscription_name=name,
            )
        )

    def _destination_info(self, connection: str, destination: Destination, operation: int) -> DataStructure:
        return TYPES["DestinationInfo"](
            connection_id=openwire.connection_id(connection),
            destination=openwire.destination_structure(destination),
            operation_type=operation,
        )

    def add_destination(self, connection_id: str, destination: Destination) -> None:
        """See Transport."""
        self._request(self._destination_info(connection_id, destination, openwire.ADD))
        if destination.is_temporary:
            self._temporary.add(destination)

    def has_destination(self, destination: Destination) -> bool:
        """See Transport. Of a temporary one that another connection made it is known from the broker's advisories."""
        return not destination.is_temporary or not self._options.watch_advisories or destination in self._temporary

    def remove_destination(self, connection_id: str, destination: Destination) -> None:
        """See Transport."""
        self._request(self._destination_info(connection_id, destination, openwire.REMOVE))
        self._temporary.discard(destination)

    def add_producer(self, connection_id: str, producer_id: str, destination: Destination | None = None) -> None:
        """See Transport."""
        where = None if destination is None else openwire.destination_structure(destination)
        identity = openwire.producer_id(producer_id)
        self._join(producer_id, identity)
        try:
            self._request(TYPES["ProducerInfo"](producer_id=identity, destination=where))
        except BaseException:
            self._part(producer_id, identity, None)
            raise

    def remove_producer(self, producer_id: str) -> None:
        """See Transport."""
        self._part(producer_id, openwire.producer_id(producer_id))

    # Messages

    def send_all(self, connection_id: str, destination: Destination, messages: list[Message]) -> None:
        """See Transport. One after the other: OpenWire has no command for several."""
        for message in messages:
            self.send(connection_id, destination, message)

    def pull(self, pull: MessagePull) -> None:
        """See Transport."""
        self._send(
            TYPES["MessagePull"](
                consumer_id=openwire.consumer_id(pull.consumer_id),
                destination=openwire.destination_structure(pull.destination),
                timeout=pull.timeout,
            )
        )

    # Transactions

    def _transaction_info(self, transaction: str, kind: int) -> DataStructure:
        assert self._info is not None
        return TYPES["TransactionInfo"](
            connection_id=openwire.connection_id(self._info.connection_id),
            transaction_id=openwire.transaction_id(transaction),
            type=kind,
        )

    def begin(self, connection_id: str, transaction_id: str) -> None:
        """See Transport."""
        self._send(self._transaction_info(transaction_id, openwire.BEGIN))

    def commit(self, transaction_id: str) -> None:
        """See Transport."""
        self._request(self._transaction_info(transaction_id, openwire.COMMIT_ONE_PHASE))

    def rollback(self, transaction_id: str) -> None:
        """See Transport."""
        self._request(self._transaction_info(transaction_id, openwire.ROLLBACK))
