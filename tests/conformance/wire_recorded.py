"""The forms that the recorded bytes of the real codecs share."""

from __future__ import annotations

import base64
import zlib
from typing import Any


def unpacked(value: Any) -> Any:
    """A value without ``{"repeat": [unit, times]}``."""
    if isinstance(value, dict):
        if set(value) == {"repeat"}:
            unit, times = value["repeat"]
            return unit * times
        return {unpacked(name): unpacked(each) for name, each in value.items()}
    return [unpacked(each) for each in value] if isinstance(value, list) else value


def octets(case: dict[str, Any], name: str) -> bytes | None:
    """The bytes under ``name``: as text, in hex, or in hex compressed; None if there are none.

    A Java String's surrogates come in pairs in the text.
    """
    if name in case:
        text: str = unpacked(case[name])
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le").encode("utf-8")
    if f"{name}_hex" in case:
        return bytes.fromhex(unpacked(case[f"{name}_hex"]))
    if f"{name}_hexz" in case:
        return zlib.decompress(base64.b64decode(unpacked(case[f"{name}_hexz"])))
    return None
