from enum import IntEnum
from typing import Any

from typing_extensions import disjoint_base

class AckKind(IntEnum):
    INDIVIDUAL = 4
    STANDARD = 2
    DELIVERED = 0
    REDELIVERED = 3
    POISON = 1
    EXPIRED = 6

@disjoint_base
class MessageAck:
    consumer_id: str
    destination: Any
    kind: AckKind
    last_message_id: str
    first_message_id: str | None
    message_count: int
    transaction_id: str | None
    poison_cause: str
    def __init__(
        self,
        consumer_id: str,
        destination: Any,
        kind: AckKind,
        last_message_id: str,
        first_message_id: str | None = None,
        message_count: int = 1,
        transaction_id: str | None = None,
        poison_cause: str = "",
    ) -> None: ...
