"""Tests beside the real software: those that ``make interop`` runs, and programs that not every machine has."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import pytest

from bench.contest import RivalMissingError

T = TypeVar("T")

INTEROP_ASKED = "PYENGINE_INTEROP" in os.environ
INTEROP = pytest.mark.skipif(not INTEROP_ASKED, reason="run by make interop")


def started_or_skipped(start: Callable[[], T]) -> T:
    """What ``start`` returns; the test is skipped, with the reason, if the real software cannot be had."""
    try:
        return start()
    except RivalMissingError as reason:
        pytest.skip(str(reason))
