from typing import Any, Self, final

@final
class PreviousDeliveries:
    def __new__(cls, consumer_id: str, audit: Any) -> Self: ...
