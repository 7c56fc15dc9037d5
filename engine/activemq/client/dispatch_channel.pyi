from typing import Any, Self

from typing_extensions import disjoint_base

@disjoint_base
class Channel:
    size: int
    running: bool
    closed: bool
    def __new__(cls, prioritized: bool, backlog: Any) -> Self: ...
    def __len__(self) -> int: ...
