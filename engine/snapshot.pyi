from collections.abc import Callable
from typing import Any

from pyengine._engine.groups import GroupMap
from pyengine._engine.varint import Reader, SharedValues

def settings_of(
    data: bytes, load: Callable[[bytes], Any] | None = None, shared: SharedValues | None = None
) -> tuple[Reader, dict[str, Any]]: ...
def write_groups(groups: GroupMap) -> bytes: ...
def read_groups(groups: GroupMap, data: bytes) -> None: ...
