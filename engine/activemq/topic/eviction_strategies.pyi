from collections.abc import Callable, Iterable
from typing import Any, Self

from typing_extensions import disjoint_base

@disjoint_base
class PendingLimit: ...

@disjoint_base
class ConstantPendingLimit(PendingLimit):
    limit: int
    def __new__(cls, limit: int = -1) -> Self: ...

@disjoint_base
class PrefetchRatePendingLimit(PendingLimit):
    multiplier: float
    def __new__(cls, multiplier: float = 0.5) -> Self: ...

def maximum_pending_messages(
    strategy: PendingLimit | Callable[[int], int] | None, prefetch: int, consumer_limit: int = 0
) -> int: ...

@disjoint_base
class Eviction:
    high_watermark: int
    expiry_check: bool
    def __new__(cls, *args: Any, high_watermark: int = 1000, expiry_check: bool = True) -> Self: ...

class OldestEviction(Eviction): ...
class LowestPriorityEviction(Eviction): ...

@disjoint_base
class UniquePropertyEviction(Eviction):
    property_name: str | None
    def __new__(
        cls, property_name: str | None = None, *, high_watermark: int = 1000, expiry_check: bool = True
    ) -> Self: ...

@disjoint_base
class CustomEviction(Eviction):
    strategy: Callable[[list[Any]], Iterable[Any]]
    def __new__(
        cls,
        strategy: Callable[[list[Any]], Iterable[Any]],
        *,
        high_watermark: int = 1000,
        expiry_check: bool = True,
    ) -> Self: ...
