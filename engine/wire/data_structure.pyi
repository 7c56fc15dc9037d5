from typing import Any, Final, Self

from typing_extensions import disjoint_base

VERSIONS: Final[range]

@disjoint_base
class StructureType:
    name: str
    number: int
    fields: tuple[str, ...]
    base: StructureType | None
    since: int
    marshal_aware: bool
    def __call__(self, *args: Any, **kwargs: Any) -> DataStructure: ...
    def forms(self, version: int) -> list[tuple[str, str]]: ...
    def extends(self, other: StructureType) -> bool: ...

@disjoint_base
class DataStructure:
    kind: StructureType
    meaning: Any
    def __init__(self) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def replace(self, **fields: Any) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@disjoint_base
class JavaThrowable:
    class_name: str | None
    message: str | None
    stack: tuple[tuple[str | None, str | None, str | None, int], ...]
    cause: JavaThrowable | None
    def __init__(
        self,
        class_name: str | None,
        message: str | None,
        stack: tuple[tuple[str | None, str | None, str | None, int], ...] = (),
        cause: JavaThrowable | None = None,
    ) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

def structure_types(table: str) -> dict[str, StructureType]: ...
