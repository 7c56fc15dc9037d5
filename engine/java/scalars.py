"""The Python type whose values have each Java type in a message: as a property, an entry of a map, a value of a stream.

A Python int is an Integer or a Long by its size, so that a Long has a type of its own here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from pyengine._engine.java.value import Char

SCALARS: dict[str, Callable[[Any], Any]] = {
    "boolean": bool, "byte": numpy.int8, "short": numpy.int16, "int": int, "long": numpy.int64,
    "float": numpy.float32, "double": float, "char": Char,
}  # fmt: skip
