from collections.abc import Callable
from typing import Any, Self

from typing_extensions import disjoint_base

from pyengine._engine.activemq.commands.message_ack import MessageAck
from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine._engine.activemq.region.shared_credit import SharedCredit

@disjoint_base
class PrefetchSubscription:
    consumer_id: str
    route: Callable[[MessageDispatch], object] | None
    browser: bool
    queue: Any
    number: int | None
    slow: bool
    credit: SharedCredit | None
    def __new__(cls, *unused: object, **also_unused: object) -> Self: ...
    given: int
    last_acknowledged: int
    @property
    def held(self) -> dict[str | tuple[str, Any, int], tuple[Any, int]]: ...
    def hold(self, message_id: str, owner: object, handle: int) -> None: ...
    def find(self, message_id: str, owner: object) -> tuple[Any, int] | None: ...
    def latest(self, message_id: str) -> tuple[Any, int] | None: ...
    def release(self, message_id: str, owner: object) -> tuple[Any, int] | None: ...
    def forget(self) -> None: ...
    def astray(self, ack: MessageAck) -> str | None: ...
    def parts_of(self, ack: MessageAck, before: int = 0) -> list[tuple[Any, MessageAck]]: ...
