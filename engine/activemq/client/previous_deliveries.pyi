from typing import Any, Self

from typing_extensions import disjoint_base

@disjoint_base
class PreviousDeliveries:
    def __new__(cls, consumer_id: str, audit: Any) -> Self: ...
