from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

from pyengine._engine.channel import MessageDispatch
from pyengine._engine.exchange import MessageAck

@disjoint_base
class PrefetchSubscription:
    consumer_id: str
    route: Callable[[MessageDispatch], object] | None
    browser: bool
    queue: Any
    number: int | None
    slow: bool
    last_acknowledged: int
    @property
    def held(self) -> dict[str | tuple[str, Any, int], tuple[Any, int]]: ...
    def hold(self, message_id: str, owner: object, handle: int) -> None: ...
    def find(self, message_id: str, owner: object) -> tuple[Any, int] | None: ...
    def latest(self, message_id: str) -> tuple[Any, int] | None: ...
    def release(self, message_id: str, owner: object) -> tuple[Any, int] | None: ...
    def forget(self) -> None: ...
    def parts_of(self, ack: MessageAck, before: int = 0) -> list[tuple[Any, MessageAck]]: ...
