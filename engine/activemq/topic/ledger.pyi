from enum import IntEnum
from typing import Any

from typing_extensions import disjoint_base

class EventKind(IntEnum):
    SLOW = 1
    DISCARDED = 2
    EXPIRED = 3
    DROPPED = 4
    STORED = 5
    RELEASED = 6
    POISONED = 7
    NO_CONSUMER = 8
    REFUSED = 9
    SELECTOR_FAILED = 10
    CUT = 11
    NOT_EVICTED = 12

@disjoint_base
class TopicDelivery:
    consumer: int
    message: int | None
    body: Any
    redeliveries: int
    topic: int
    def __init__(self, consumer: int, message: int | None, body: Any, redeliveries: int, topic: int) -> None: ...

@disjoint_base
class Event:
    kind: EventKind
    topic: int | None
    consumer: int | None
    message: int | None
    body: Any
    detail: Any
    def __init__(
        self,
        kind: EventKind,
        topic: int | None = None,
        consumer: int | None = None,
        message: int | None = None,
        body: Any = None,
        detail: Any = None,
    ) -> None: ...
