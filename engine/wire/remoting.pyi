from typing import Final

from typing_extensions import disjoint_base

from pyengine._engine.wire.frame_reader import FrameReader

MAX_FRAME_SIZE: Final[int]
LANGUAGES: Final[tuple[str, ...]]
RESPONSE: Final[int]
ONE_WAY: Final[int]

@disjoint_base
class RemotingCommand:
    code: int
    language: str | None
    version: int
    opaque: int
    flag: int
    remark: str | None
    ext_fields: dict[str, str] | None
    body: bytes | None
    serialize_type: str
    def __init__(
        self,
        code: int,
        *,
        language: str | None = "JAVA",
        version: int = 0,
        opaque: int = 0,
        flag: int = 0,
        remark: str | None = None,
        ext_fields: dict[str, str] | None = None,
        body: bytes | None = None,
        serialize_type: str = "JSON",
    ) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    @property
    def is_response(self) -> bool: ...
    @property
    def is_one_way(self) -> bool: ...

@disjoint_base
class RemotingReader(FrameReader[RemotingCommand]):
    max_frame_size: int
    def __init__(self, max_frame_size: int = ...) -> None: ...

def read_command(frame: bytes) -> RemotingCommand: ...
def write_command(command: RemotingCommand) -> bytes: ...
