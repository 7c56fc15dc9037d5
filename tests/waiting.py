"""Waiting for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(reached: Callable[[], object], seconds: float = 60) -> None:
    """Return when it is reached. Raises AssertionError if it is not in time."""
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
