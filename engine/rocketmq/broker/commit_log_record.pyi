from collections.abc import Sequence
from enum import IntEnum

from pyengine._engine.rocketmq.commands.message import Message
from pyengine._engine.rocketmq.commands.origin import Origin, OriginFields

HEADER_SIZE: int
DELIVERS_SIZE: int

class RecordKind(IntEnum):
    MESSAGE = 1
    DELIVERED = 2
    DELETED = 3

def encode_message(
    topic: str,
    body: bytes | None,
    properties: dict[str, str],
    place: tuple[int, int, int],
    origin: OriginFields,
    stored: tuple[int, bytes],
) -> bytes: ...
def encode_messages(
    topic: str,
    messages: Sequence[Message],
    place: tuple[int, int, int],
    origin: Origin,
    stored: tuple[int, bytes],
) -> tuple[list[int], list[bytes], list[int], list[int]]: ...
def are_plain(messages: Sequence[Message], special: frozenset[str], most: int) -> bool: ...
def encode_deletion(topic: str, queue_id: int, min_offset: int) -> bytes: ...
def stored_size(frame: bytes) -> int: ...
def payload(frame: bytes) -> bytes: ...
def is_whole(frame: bytes) -> bool: ...
def whole_size(data: bytes) -> int: ...
def frame_follows(data: bytes, at: int) -> bool: ...
def scan(
    data: bytes, start: int = 0
) -> tuple[list[tuple[int, int, int, str, int, int, int, int, tuple[int, int] | None]], int]: ...
def decode_message(
    frame: bytes,
) -> tuple[str, bytes, dict[str, str], int, int, int, int, int, bytes, bytes, int, int, int, int, int, int]: ...
