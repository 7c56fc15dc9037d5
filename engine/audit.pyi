from collections.abc import Hashable
from typing import Self

from typing_extensions import disjoint_base

@disjoint_base
class Window:
    def __new__(cls, depth: int) -> Self: ...

@disjoint_base
class Audit:
    depth: int
    producers: int
    def __new__(cls, depth: int = 2048, producers: int = 64) -> Self: ...
    def is_duplicate(self, producer: Hashable, number: int) -> bool: ...
    def rollback(self, producer: Hashable, number: int) -> None: ...
    def _check(self) -> None: ...
