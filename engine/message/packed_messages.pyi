from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from typing_extensions import disjoint_base

from pyengine._engine.message.message import Message

@disjoint_base
class PackedMessages:
    def __new__(cls, messages: Iterable[Message | Mapping[str, Any]], names: Sequence[str] | None = None) -> Self: ...
    @property
    def rows(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def complete(self) -> bool: ...
    @property
    def nbytes(self) -> int: ...
    def __len__(self) -> int: ...
    def row(self, index: int) -> dict[str, Any]: ...

def rebuild(
    names: tuple[str, ...],
    complete: bool,
    rows: list[list[Any]],
    bodies: tuple[str | bytes | None, ...] | None,
    fresh: frozenset[str],
) -> PackedMessages: ...
