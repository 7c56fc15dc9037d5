from typing import Any, Self

from typing_extensions import disjoint_base

@disjoint_base
class ConsumerList:
    use_consumer_priority: bool
    use_prefetch_extension: bool
    all_exclusive: bool
    def __new__(
        cls, groups: Any, use_consumer_priority: bool, use_prefetch_extension: bool, all_exclusive: bool
    ) -> Self: ...
    def _check(self) -> None: ...
