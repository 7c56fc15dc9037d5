from typing import Any

from typing_extensions import disjoint_base

@disjoint_base
class Program:
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def text(self) -> str: ...
    @property
    def dialect(self) -> str: ...

def match_and_tree(program: Program, values: list[Any]) -> tuple[int, int]: ...
