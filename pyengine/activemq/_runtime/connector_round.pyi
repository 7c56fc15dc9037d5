import ssl
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine.errors import PyengineError

@disjoint_base
class ConnectorRound:
    thread_id: int
    woken: bool
    gathers: bool
    departed: deque[ClientSocket]
    asked: deque[ClientSocket | Callable[[], object]]
    buffer: bytearray
    def __new__(cls, *unused: Any, **also_unused: Any) -> ConnectorRound: ...
    def call(self, action: ClientSocket | Callable[[], object]) -> None: ...
    due: float
    def round(self, ready: list[ClientSocket | Callable[[], object]], broker: Any) -> None: ...
    def patience(self) -> float | None: ...
    def look_at(self, when: float) -> None: ...
    def _run_checks(self) -> None: ...
    def _wake(self) -> None: ...
    def _refute(self, error: PyengineError) -> None: ...

@disjoint_base
class ClientSocket:
    socket: Any
    session: Any
    open: bool
    _thread: Any
    _connector: Any
    _address: str
    _out: bytearray
    _dispatches: deque[MessageDispatch]
    _events: int
    _blocked: bool
    _tls: ssl.SSLSocket | None
    _handshaking: bool
    _received: bool
    _last_read: float
    _last_write: float
    _last_taken: float
    def __new__(cls, thread: ConnectorRound, connector: Any, socket: Any, address: str) -> ClientSocket: ...
    @abstractmethod
    def receive(self, data: bytes | memoryview) -> None: ...
    def close(self) -> None: ...
    def flush(self) -> None: ...
    def _shake_hands(self) -> bool: ...
    def _stopped(self, error: PyengineError) -> None: ...
    def _dispatch(self, dispatch: MessageDispatch) -> None: ...
    def _ask(self) -> None: ...
    def _wait_for(self, events: int) -> None: ...
