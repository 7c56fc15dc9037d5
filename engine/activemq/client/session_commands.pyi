from enum import IntEnum
from typing import Any, Self, TypeAlias

from typing_extensions import disjoint_base

from pyengine._engine.activemq.commands.message_ack import MessageAck
from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch

class AcknowledgeMode(IntEnum):
    SESSION_TRANSACTED = 0
    AUTO_ACKNOWLEDGE = 1
    CLIENT_ACKNOWLEDGE = 2
    DUPS_OK_ACKNOWLEDGE = 3
    INDIVIDUAL_ACKNOWLEDGE = 4

@disjoint_base
class Begin:
    transaction_id: str
    def __new__(cls, transaction_id: str) -> Self: ...

@disjoint_base
class Pull:
    consumer: Any
    def __new__(cls, consumer: Any) -> Self: ...

@disjoint_base
class Remove:
    consumer: Any
    last_delivered: str | None
    def __new__(cls, consumer: Any, last_delivered: str | None) -> Self: ...

@disjoint_base
class Later:
    consumer: Any
    delay: int
    dispatches: list[MessageDispatch]
    def __new__(cls, consumer: Any, delay: int, dispatches: list[MessageDispatch]) -> Self: ...

_Command: TypeAlias = MessageAck | Begin | Pull | Remove | Later

@disjoint_base
class Exchange:
    mode: AcknowledgeMode
    transaction: str | None
    rollback_only: bool
    def __new__(cls, mode: AcknowledgeMode, prefix: str, *, prioritized: bool = False) -> Self: ...
    def take_commands(self) -> list[_Command] | None: ...
