from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

from pyengine._engine.channel import MessageDispatch

@disjoint_base
class PrefetchSubscription:
    consumer_id: str
    route: Callable[[MessageDispatch], object] | None
    browser: bool
    slow: bool
    last_acknowledged: int
    @property
    def held(self) -> dict[str, tuple[Any, int]]: ...
