from typing import Any, Self

from typing_extensions import disjoint_base

@disjoint_base
class MessageSlots:
    def __new__(cls, consumers: Any, groups: Any, prioritized: bool, turns: int) -> Self: ...
    def _check(self) -> None: ...
