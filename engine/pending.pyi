from typing import Any

from typing_extensions import Self, disjoint_base

@disjoint_base
class Pending:
    def __new__(cls, consumers: Any, groups: Any, prioritized: bool) -> Self: ...
    def _check(self) -> None: ...
