"""A stream of a random topology answers as the single process does, on any number of shards and partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spark.stream_shapes import SHAPES, agree_on


@pytest.mark.parametrize("shape", SHAPES)
def test_random_topologies_as_a_stream_agree_with_the_single_process(spark: Any, shape: int, tmp_path: Path) -> None:
    """``python -m tests.spark.stream_shapes`` asks more of them, and all flights."""
    agree_on(spark, 100 + shape, shape, tmp_path)
