"""Ctrl-C at every moment of a call at which Python looks for it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pyengine

LIBRARY = Path(pyengine.__file__).parent


class CtrlC:
    """Ends a call behind the ``at``-th event of the code in a file or folder, counted from 1 over all its calls.

    An event is where Python looks for signals, which it tells a profiler: a function begins, or a call is over. Not one
    is that a lock's __enter__ is over, which Python 3.14 tells too: between it and its block nobody could let go.
    """

    def __init__(self, code: Path, at: int) -> None:
        self._code = str(code)
        self._at = at
        self._seen = 0

    @property
    def came(self) -> bool:
        """Whether a call was ended."""
        return self._seen >= self._at

    def ends(self, call: Callable[[], object]) -> bool:
        """Make the call; whether Ctrl-C ended it."""
        if self.came:
            call()
            return False
        before = sys.getprofile()
        gc.disable()  # a callback of the collector keeps to itself what is raised in it
        sys.setprofile(self._count)
        try:
            call()
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(before)
            gc.enable()
        return False

    def _count(self, frame: FrameType, event: str, argument: object) -> None:
        caller = frame.f_back if event in ("call", "return") else frame
        if event.startswith("c_") and getattr(argument, "__name__", "") == "__enter__":
            return
        if event != "c_call" and caller is not None and caller.f_code.co_filename.startswith(self._code):
            self._seen += 1
            if self.came:
                sys.setprofile(None)
                raise KeyboardInterrupt
