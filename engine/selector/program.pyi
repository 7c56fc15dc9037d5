from typing_extensions import disjoint_base

@disjoint_base
class Program:
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def text(self) -> str: ...
    @property
    def dialect(self) -> str: ...
