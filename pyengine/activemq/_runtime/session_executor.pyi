from collections import deque
from threading import Condition
from typing import Any, Self

from typing_extensions import disjoint_base

from pyengine._engine.activemq.client.message_consumer import Consumption
from pyengine._engine.activemq.client.session_commands import AcknowledgeMode, Begin, Later, Pull, Remove
from pyengine._engine.activemq.client.session_state import SessionState
from pyengine._engine.activemq.commands.message_ack import MessageAck
from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine.activemq._runtime.reentrant_lock import ReentrantLock
from pyengine.clock import Clock

@disjoint_base
class SessionExecutor:
    connection: Any
    session_id: str
    transport: Any
    clock: Clock
    settles: bool
    transacted: bool
    state: SessionState
    lock: ReentrantLock
    changed: Condition
    waiting: int
    _deliverer: int
    _outgoing: deque[MessageAck | Begin | Pull | Remove | Later]
    def __new__(cls, connection: Any, session_id: str, mode: AcknowledgeMode) -> Self: ...
    def _carry_out(self, command: Begin | Pull | Remove | Later, pull_timeout: int | None) -> None: ...
    def _listener_failed(
        self, dispatch: MessageDispatch, error: BaseException
    ) -> list[MessageAck | Begin | Pull | Remove | Later] | None: ...
    def _new_task(self) -> Any: ...
    def take(self, consumer: Consumption) -> MessageDispatch | None: ...
    def flush(self, pull_timeout: int | None = None) -> None: ...
    def arrive_all(self, dispatches: list[MessageDispatch]) -> None: ...
    def received_nothing(self) -> None: ...
    def wake_up(self) -> None: ...
    def _run(self) -> bool: ...
    @property
    def listening_thread(self) -> int | None: ...
