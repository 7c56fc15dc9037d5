from collections.abc import Iterable, Mapping
from typing import Final

from typing_extensions import disjoint_base

from pyengine._engine.rocketmq.commands.origin import Origin

COMPRESSED: Final[int]
BORN_HOST_V6: Final[int]
STORE_HOST_V6: Final[int]

@disjoint_base
class Reader:
    def __init__(self, *args: object, **kwargs: object) -> None: ...

def body_crc(body: bytes) -> int: ...
def properties_text(properties: Mapping[str, str | None] | Iterable[tuple[str, str | None]] | None) -> str: ...
def parse_properties(text: str | None) -> dict[str, str]: ...
def decode_stored(
    data: bytes, start: int = 0
) -> tuple[
    tuple[str, bytes, dict[str, str], int, int, int, int, int, bytes, bytes, int, int, int, int, int, int], int
]: ...
def encode_stored(
    topic: str,
    body: bytes,
    properties: Mapping[str, str] | Iterable[tuple[str, str]] | None,
    place: tuple[int, int, int],
    origin: Origin,
    stored: tuple[int, bytes],
    *,
    version: int = 1,
    crc: int | None = None,
) -> bytes: ...
def encode_client_message(
    body: bytes, properties: Mapping[str, str] | Iterable[tuple[str, str]] | None, flag: int = 0
) -> bytes: ...
def decode_client_messages(data: bytes) -> list[tuple[bytes, dict[str, str], int]]: ...
def message_id(host: bytes, offset: int) -> str: ...
def parse_message_id(text: str) -> tuple[bytes, int]: ...
def parse_unique_id(text: str) -> tuple[bytes, int]: ...
