from typing import Any

from typing_extensions import disjoint_base

from pyengine._engine.message.message import Message

@disjoint_base
class MessageDispatch:
    consumer_id: str
    destination: Any
    redelivery_counter: int
    @property
    def message(self) -> Message | None: ...
    def __init__(
        self,
        consumer_id: str,
        destination: Any,
        message: Message | None,
        redelivery_counter: int = 0,
    ) -> None: ...
