from collections.abc import Callable
from typing import Self, final

from pyengine.activemq._runtime.route import Route
from pyengine.activemq.transport.commands import ConnectionSink, MessageAck
from pyengine.clock import Clock

@final
class DispatchTask(Route):
    def __new__(
        cls,
        clock: Clock,
        name: str,
        sink: ConnectionSink,
        acknowledge: Callable[[MessageAck, Callable[[Exception], object]], object],
    ) -> Self: ...
    def close(self) -> None: ...
