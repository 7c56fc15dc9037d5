from collections.abc import Iterable
from datetime import timedelta
from typing import Self

from typing_extensions import disjoint_base

from pyengine._engine.message.body import Body
from pyengine._engine.message.message import Message

@disjoint_base
class Outgoing:
    producer_id: str
    sent: int
    persistent: bool
    priority: int
    time_to_live: int
    timestamps: bool
    copies: bool
    keeps_untimed: bool
    def __new__(
        cls, producer_id: str, *, timestamps: bool = True, copies: bool = True, keeps_untimed: bool = False
    ) -> Self: ...
    def set_priority(self, priority: int) -> None: ...
    def set_time_to_live(self, life: int | timedelta) -> None: ...
    def set_delivery_mode(self, mode: str) -> None: ...
    def prepare_all(
        self, given: Iterable[Message | Body | str | bytes], destination: str, now: int, prepared: list[Message]
    ) -> None: ...
    def prepare(
        self,
        given: Message | Body | str | bytes,
        destination: str,
        now: int,
        *,
        delivery_mode: str | None = None,
        priority: int | None = None,
        time_to_live: int | timedelta | None = None,
    ) -> Message: ...
