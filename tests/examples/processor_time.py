"""The processor time of a job, its processes included, which a busy machine changes little."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


def _spent() -> float:
    return sum(os.times()[:4])


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Assert what the block costs; processes count when they have ended."""
    began = _spent()
    yield
    assert _spent() - began <= seconds
