from collections.abc import Callable
from typing import Self, final

from typing_extensions import disjoint_base

from pyengine._engine.activemq.commands.message_ack import MessageAck
from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch

@final
class Answer:
    @property
    def ack(self) -> MessageAck: ...
    @property
    def failed(self) -> Callable[[Exception], object]: ...
    def __new__(cls, ack: MessageAck, failed: Callable[[Exception], object]) -> Self: ...

@disjoint_base
class Route:
    def __call__(self, dispatch: MessageDispatch) -> Answer | None: ...
