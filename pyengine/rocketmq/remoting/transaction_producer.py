"""Sending in transactions: a message that consumers get if, and only if, the producer's own transaction is done."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from pyengine._engine.rocketmq.client.namespaces import without_namespace
from pyengine._engine.rocketmq.commands.stored_message import parse_message_id
from pyengine.attributes import frozen, named_arguments
from pyengine.dataclass import dataclass
from pyengine.errors import ConfigurationError, IllegalStateError, MQBrokerError, MQClientError, RemotingError
from pyengine.rocketmq import message as names
from pyengine.rocketmq.broker.transactions import COMMIT, PROPERTY_PRODUCER_GROUP, ROLLBACK
from pyengine.rocketmq.message import MAX_MESSAGE_SIZE, Message, MessageExt
from pyengine.rocketmq.remoting.acl import SessionCredentials
from pyengine.rocketmq.remoting.mq_client_api import ClientEvents, HalfMessage, SendResult, SendStatus
from pyengine.rocketmq.remoting.producer import Producer, log
from pyengine.rocketmq.remoting.sending import SendOptions

if TYPE_CHECKING:
    import ssl


class LocalTransactionState(Enum):
    """What became of the producer's own transaction. UNKNOW, spelled as in RocketMQ: the broker asks later."""

    COMMIT_MESSAGE = COMMIT
    ROLLBACK_MESSAGE = ROLLBACK
    UNKNOW = 0


Execute = Callable[[Message, Any], LocalTransactionState | None]
CheckState = Callable[[MessageExt], LocalTransactionState | None]


@frozen
@dataclass(frozen=True, slots=True)
class TransactionSendResult:
    """What a message in a transaction came to. result: of its first half. state: of the producer's own transaction."""

    result: SendResult
    state: LocalTransactionState


@named_arguments
class TransactionMQProducer(Producer):
    """A producer whose messages wait at the broker until its own transaction is decided (TransactionMQProducer).

    execute: function(message, arg) that does the producer's own transaction and returns a LocalTransactionState; where
    it raises, or returns None, the state is UNKNOW. check: function(message) that the broker's question is passed to,
    on a thread of its own, for what stayed UNKNOW: 6 s after the send at the earliest, 15 times at most. The rest is as
    with Producer, which needs namesrv_addr here: the brokers ask through the producer's connections.
    """

    execute: Execute
    check: CheckState
    _changeable: ClassVar[frozenset[str]] = Producer._changeable | {"execute", "check"}

    def __init__(
        self,
        group: str,
        *,
        namesrv_addr: str,
        execute: Execute,
        check: CheckState,
        rpc_hook: SessionCredentials | None = None,
        max_message_size: int = MAX_MESSAGE_SIZE,
        use_tls: bool = False,
        ssl_context: ssl.SSLContext | None = None,
        namespace: str | None = None,
        namespace_v2: str | None = None,
        instance_name: str | None = None,
        unit_name: str | None = None,
        send_options: SendOptions | None = None,
    ) -> None:
        for name, given in (("execute", execute), ("check", check)):
            if not callable(given):
                raise ConfigurationError(name, repr(given), "cannot be called", "give a function")
        super().__init__(
            group=group,
            namesrv_addr=namesrv_addr,
            rpc_hook=rpc_hook,
            max_message_size=max_message_size,
            use_tls=use_tls,
            ssl_context=ssl_context,
            namespace=namespace,
            namespace_v2=namespace_v2,
            instance_name=instance_name,
            unit_name=unit_name,
            send_options=send_options,
        )
        self.execute = execute
        self.check = check
        self._checks = self.broker.clock.worker("checkTransaction")

    def _client_events(self) -> ClientEvents:
        return ClientEvents(check_transaction=self._asked, reply=self._pending.arrived)

    def shutdown(self) -> None:
        """End the connections to ``namesrv_addr``. Harmless the second time."""
        super().shutdown()
        self._checks.close()

    def send_in_transaction(self, message: Message, arg: Any = None) -> TransactionSendResult:
        """Send the first half, do the producer's own transaction, tell the broker what became of it.

        A delay level of the message counts for nothing. Raises MQClientError if the half cannot be sent, and then
        nothing is executed.
        """
        if isinstance(message, Message):
            message.properties.pop(names.PROPERTY_DELAY_TIME_LEVEL, None)
            message.properties[names.PROPERTY_TRANSACTION_PREPARED] = "true"
            message.properties[PROPERTY_PRODUCER_GROUP] = self.group
        try:
            result = self.send(message)
        except (RemotingError, MQBrokerError) as error:
            raise MQClientError(f"send message Exception: {error}") from error
        state, problem = LocalTransactionState.UNKNOW, None
        if result.status is SendStatus.SEND_OK:
            message.transaction_id = result.msg_id
            state, problem = self._state_of(lambda: self.execute(message, arg), "executeLocalTransactionBranch")
        else:
            state = LocalTransactionState.ROLLBACK_MESSAGE
        _, position = parse_message_id(result.offset_msg_id)
        half = HalfMessage(
            self.group, "", result.queue.broker_name, position, result.queue_offset, result.msg_id, result.msg_id
        )
        self._end(half, state, problem, checked=False)
        return TransactionSendResult(result, state)

    def _state_of(
        self, decide: Callable[[], LocalTransactionState | None], what: str
    ) -> tuple[LocalTransactionState, str | None]:
        try:
            state = decide()
        except Exception as error:
            log.exception("%s exception", what)
            return LocalTransactionState.UNKNOW, f"{what} exception: {type(error).__name__}: {error}"
        return state if isinstance(state, LocalTransactionState) else LocalTransactionState.UNKNOW, None

    def _asked(self, message: MessageExt, half: HalfMessage) -> None:
        """A broker asks what became of a half message."""
        if half.group != self.group:
            log.warning("checkTransactionState, pick producer by group[%s] failed", half.group)
            return
        message.topic = without_namespace(message.topic, self.namespace)

        def answer() -> None:
            state, problem = self._state_of(lambda: self.check(message), "checkLocalTransactionState")
            self._end(half, state, problem, checked=True)

        try:
            self._checks.submit(answer)
        except IllegalStateError:
            log.info("a broker asks for a transaction after the shutdown of %s", self.group)

    def _end(self, half: HalfMessage, state: LocalTransactionState, problem: str | None, *, checked: bool) -> None:
        if self._own is None:
            return
        try:
            self._own.end_transaction(half, state.value, problem, checked=checked)
        except (RemotingError, MQClientError) as error:
            log.warning("local transaction execute %s, but end broker transaction failed: %s", state.name, error)
