from collections.abc import Callable
from typing import final

from typing_extensions import disjoint_base

from pyengine._engine.activemq.commands.message_ack import MessageAck
from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch

@final
class Answer:
    @property
    def ack(self) -> MessageAck: ...
    @property
    def failed(self) -> Callable[[Exception], object]: ...
    def __init__(self, ack: MessageAck, failed: Callable[[Exception], object]) -> None: ...

@disjoint_base
class Route:
    def __call__(self, dispatch: MessageDispatch) -> Answer | None: ...
