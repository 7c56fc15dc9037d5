from typing_extensions import disjoint_base

@disjoint_base
class References:
    next_handle: int
    def _check(self) -> None: ...
