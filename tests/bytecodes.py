"""The cost of a step in bytecodes, which see a loop without calls and are the same on every run."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType


def bytecodes(step: Callable[[], object]) -> int:
    """How many bytecodes a step takes."""
    taken = 0

    def count(frame: FrameType, event: str, argument: object) -> object:
        nonlocal taken
        frame.f_trace_opcodes = True
        taken += event == "opcode"
        return count

    gc.collect()
    gc.disable()  # finalizers of what others left
    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # or the first trace of a process sees no bytecode in Python 3.12
    sys.settrace(count)
    try:
        step()
    finally:
        sys.settrace(before)
        gc.enable()
    return taken
