from typing import Final

from typing_extensions import disjoint_base

from pyengine._engine.wire.data_structure import DataStructure
from pyengine._engine.wire.frame_reader import FrameReader

MAX_FRAME_SIZE: Final[int]
CACHE_SIZE: Final[int]

@disjoint_base
class OpenWireReader(FrameReader[DataStructure]):
    version: int
    tight: bool
    cache: bool
    size_prefix: bool
    stack_trace: bool
    max_frame_size: int
    def __init__(
        self,
        version: int = 12,
        *,
        tight: bool = False,
        cache: bool = False,
        size_prefix: bool = True,
        stack_trace: bool = False,
        max_frame_size: int = ...,
        cache_size: int = ...,
    ) -> None: ...
    def use(
        self,
        version: int = 12,
        *,
        tight: bool = False,
        cache: bool = False,
        size_prefix: bool = True,
        stack_trace: bool = False,
        max_frame_size: int = ...,
        cache_size: int = ...,
    ) -> None: ...

@disjoint_base
class OpenWireWriter:
    version: int
    tight: bool
    cache: bool
    size_prefix: bool
    stack_trace: bool
    max_frame_size: int
    def __init__(
        self,
        version: int = 12,
        *,
        tight: bool = False,
        cache: bool = False,
        size_prefix: bool = True,
        stack_trace: bool = False,
        max_frame_size: int = ...,
        cache_size: int = ...,
    ) -> None: ...
    def use(
        self,
        version: int = 12,
        *,
        tight: bool = False,
        cache: bool = False,
        size_prefix: bool = True,
        stack_trace: bool = False,
        max_frame_size: int = ...,
        cache_size: int = ...,
    ) -> None: ...
    def write(self, command: DataStructure) -> bytes: ...
