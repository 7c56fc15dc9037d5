from collections.abc import Callable, Iterable
from typing import Any, Self

from typing_extensions import disjoint_base

@disjoint_base
class Recovery: ...

class NoRecovery(Recovery): ...

@disjoint_base
class FixedCountRecovery(Recovery):
    maximum_size: int
    def __new__(cls, maximum_size: int = 100) -> Self: ...

@disjoint_base
class FixedSizedRecovery(Recovery):
    maximum_size: int
    def __new__(cls, maximum_size: int = 65536) -> Self: ...

@disjoint_base
class LastImageRecovery(Recovery): ...

@disjoint_base
class TimedRecovery(Recovery):
    recover_duration: int
    def __new__(cls, recover_duration: int = 60000) -> Self: ...

@disjoint_base
class QueryRecovery(Recovery):
    query: Callable[[str], Iterable[Any]]
    validate_update: Callable[[Any], bool] | None
    def __new__(
        cls, query: Callable[[str], Iterable[Any]], validate_update: Callable[[Any], bool] | None = None
    ) -> Self: ...
