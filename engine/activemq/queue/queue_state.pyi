from typing import Any, Self

from typing_extensions import disjoint_base

def whole_number(field: str, value: Any, low: int, high: int) -> int: ...

@disjoint_base
class QueueState:
    max_page_size: int | None
    max_browse_page_size: int | None
    strict_order_dispatch: bool
    prioritized_messages: bool
    lazy_dispatch: bool
    consumers_before_dispatch_starts: int
    time_before_dispatch_starts: int
    selector_errors: str
    cursor: str
    def __new__(
        cls,
        *,
        max_page_size: int | None = 200,
        max_browse_page_size: int | None = 400,
        use_consumer_priority: bool = True,
        strict_order_dispatch: bool = False,
        prioritized_messages: bool = False,
        lazy_dispatch: bool = False,
        use_prefetch_extension: bool = True,
        all_consumers_exclusive_by_default: bool = False,
        message_group_map_factory_type: str = "cached",
        consumers_before_dispatch_starts: int = 0,
        time_before_dispatch_starts: int = 0,
        selector_errors: str = "no_match",
        cursor: str = "store",
    ) -> Self: ...
    def _check(self) -> None: ...
