from collections.abc import Callable
from typing import Protocol, Self, final, type_check_only

from pyengine._engine.activemq.commands.message_ack import MessageAck
from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine.activemq._runtime.route import Answer, Route
from pyengine.clock import Clock

@type_check_only
class _Sink(Protocol):
    @property
    def dispatch(self) -> Callable[[MessageDispatch], Answer | None]: ...
    @property
    def dispatch_all(self) -> Callable[[list[MessageDispatch]], None] | None: ...

@final
class DispatchTask(Route):
    def __new__(
        cls,
        clock: Clock,
        name: str,
        sink: _Sink,
        acknowledge: Callable[[MessageAck, Callable[[Exception], object]], object],
    ) -> Self: ...
    def close(self) -> None: ...
