from collections.abc import Callable
from typing import Any

from pyengine._engine.serialization.codec import Reader, SharedValues

def settings_of(
    data: bytes, load: Callable[[bytes], Any] | None = None, shared: SharedValues | None = None
) -> tuple[Reader, dict[str, Any]]: ...
