from typing import Self

from typing_extensions import disjoint_base

@disjoint_base
class Numbering:
    def __new__(cls, size: int) -> Self: ...
