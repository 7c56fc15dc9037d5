from collections.abc import Iterable
from typing import Final

from typing_extensions import disjoint_base

from pyengine._engine.wire.frame_reader import FrameReader

MAX_DATA_LENGTH: Final[int]
VERSIONS: Final[tuple[str, ...]]

@disjoint_base
class StompFrame:
    action: str
    headers: dict[str, str]
    body: bytes
    def __init__(
        self, action: str, headers: dict[str, str] | Iterable[tuple[str, str]] = (), body: bytes = b""
    ) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    @property
    def text(self) -> str: ...

@disjoint_base
class StompReader(FrameReader[StompFrame]):
    version: str
    max_data_length: int
    max_frame_size: int
    nio: bool
    def __init__(
        self, version: str = "1.0", max_data_length: int = ..., max_frame_size: int = ..., nio: bool = False
    ) -> None: ...
    def use(self, version: str) -> None: ...

def text_body(text: str) -> bytes: ...
def write_frame(frame: StompFrame, version: str) -> bytes: ...
