from collections.abc import Callable, Hashable, Iterable
from typing import Generic, Self, TypeVar

from typing_extensions import disjoint_base

_Consumer = TypeVar("_Consumer", bound=Hashable)

@disjoint_base
class Entry: ...

@disjoint_base
class AbortSlowConsumer(Generic[_Consumer]):
    max_slow_count: int
    max_slow_duration: int
    check_period: int
    abort_connection: bool
    ignore_network_consumers: bool
    def __new__(
        cls,
        *,
        max_slow_count: int = -1,
        max_slow_duration: int = 30000,
        check_period: int = 30000,
        abort_connection: bool = False,
        ignore_network_consumers: bool = True,
    ) -> Self: ...
    def slow(self, consumer: _Consumer) -> bool: ...
    def forget(self, consumer: _Consumer) -> bool: ...
    def check(
        self, is_slow: Callable[[_Consumer], bool], *, network_consumers: Iterable[_Consumer] = ()
    ) -> list[_Consumer]: ...
    @property
    def slow_consumers(self) -> dict[_Consumer, tuple[int, int]]: ...
    def __class_getitem__(cls, item: object) -> object: ...

@disjoint_base
class AbortSlowAckConsumer(AbortSlowConsumer[_Consumer]):
    max_time_since_last_ack: int
    ignore_idle_consumers: bool
    def __new__(
        cls,
        *,
        max_slow_count: int = -1,
        max_slow_duration: int = 30000,
        check_period: int = 30000,
        abort_connection: bool = False,
        ignore_network_consumers: bool = True,
        max_time_since_last_ack: int = 30000,
        ignore_idle_consumers: bool = True,
    ) -> Self: ...
    def check_acknowledgements(
        self,
        is_slow: Callable[[_Consumer], bool],
        consumers: Iterable[tuple[_Consumer, int, int]],
        now: int,
        *,
        network_consumers: Iterable[_Consumer] = (),
    ) -> tuple[list[_Consumer], list[_Consumer]]: ...
