from collections.abc import Callable, Container, Mapping
from typing import Any, Self

from typing_extensions import disjoint_base

CHECK_INTERVAL: int

@disjoint_base
class Held:
    def __init__(self) -> None: ...

@disjoint_base
class PullHold:
    def __new__(cls) -> Self: ...
    def __len__(self) -> int: ...
    def hold(
        self,
        pull: Any,
        offset: int,
        now: int,
        timeout: int,
        codes: Container[int] | None = None,
        matches: Callable[[Mapping[str, str]], bool] | None = None,
    ) -> None: ...
    def arrived(self, max_offset: int, tags_code: int, properties: Mapping[str, str], now: int) -> list[Any]: ...
    def check(self, max_offset: int, now: int) -> list[Any]: ...
    def drop_all(self) -> list[Any]: ...
