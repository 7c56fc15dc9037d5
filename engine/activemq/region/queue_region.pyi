from collections import deque
from collections.abc import Callable
from typing import Any, Self

from typing_extensions import disjoint_base

from pyengine._engine.activemq.commands.destination import Destination
from pyengine._engine.activemq.region.region_queue import RegionQueue
from pyengine._engine.message.message import Message

@disjoint_base
class Way:
    @property
    def destination(self) -> Destination: ...
    @property
    def text(self) -> str: ...
    @property
    def queue(self) -> RegionQueue | None: ...
    def __new__(cls, destination: Destination, text: str, queue: RegionQueue | None, *unused: Any) -> Self: ...
    def send(self, message: Message, now: int, within: Any) -> None: ...

@disjoint_base
class QueueRegion:
    posted: deque[tuple[Callable[[Any], object], Any]]
    subscriptions: dict[str, Any]
    ways: dict[int, Way]
    sent: int
    reports_no_consumer: bool
    def __new__(cls, posted: deque[tuple[Callable[[Any], object], Any]]) -> Self: ...
    def lead(self, way: Way) -> None: ...
    def way(self, destination: object) -> Way | None: ...
