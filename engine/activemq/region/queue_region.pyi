from collections import deque
from collections.abc import Callable
from typing import Any, Self

from typing_extensions import disjoint_base

from pyengine._engine.activemq.commands.message_ack import MessageAck
from pyengine._engine.activemq.region.region_queue import RegionQueue
from pyengine._engine.message.message import Message

@disjoint_base
class QueueRegion:
    posted: deque[tuple[Callable[[Any], object], Any]]
    subscriptions: dict[str, Any]
    ways: dict[int, tuple[Any, str, Any, RegionQueue | None]]
    sent: int
    def __new__(cls, posted: deque[tuple[Callable[[Any], object], Any]]) -> Self: ...
    def lead(self, destination: object, text: str, target: object, queue: RegionQueue | None) -> None: ...
    def way(self, destination: object) -> tuple[Any, str, Any, RegionQueue | None] | None: ...
    def send(self, destination: object, message: Message, connection_id: str, now: int) -> Any: ...
    def acknowledge(self, ack: MessageAck, now: int) -> Any: ...
