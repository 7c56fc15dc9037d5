from typing_extensions import disjoint_base

@disjoint_base
class References:
    def _check(self) -> None: ...
