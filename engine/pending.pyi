from typing import Any, Self

from typing_extensions import disjoint_base

@disjoint_base
class Pending:
    def __new__(cls, consumers: Any, groups: Any, prioritized: bool) -> Self: ...
    def _check(self) -> None: ...
