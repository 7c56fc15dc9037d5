"""Thousands of what-if variants at once: each task simulates its share of them, only summaries come back."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyengine.backlog.simulate.lifetimes import refuse_twice
from pyengine.backlog.simulate.queues import Playable, Workload
from pyengine.spark.failure import raised_on_driver, sent_to_driver
from pyengine.spark.pipeline import is_classic
from pyengine.spark.session import require_spark
from pyengine.topology.checked import check

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

TASKS_PER_CORE = 4

CORES_UNKNOWN = 16


def _cores(session: SparkSession) -> int:
    """Of the cluster; Spark Connect tells them only where the configuration does."""
    if is_classic(session):
        return int(session.sparkContext.defaultParallelism)
    return int(session.conf.get("spark.default.parallelism", str(CORES_UNKNOWN)) or CORES_UNKNOWN)


def sweep(
    session: SparkSession, workload: Workload, variants: Sequence[Playable], *, until: float | None = None
) -> dict[str, dict[str, Any]]:
    """``{variant: summary}`` as ``pyengine.backlog.simulate.compare`` gives it, the variants spread over the cluster.

    The workload is shipped to each task once. Raises ConfigurationError for two variants of one name, what the
    simulation raises, and MissingExtraError.
    """
    require_spark()
    check("workload", workload, Workload)
    check("variants", variants, Sequence[Playable])
    refuse_twice("sweep.variants", variants)
    names = [variant.name for variant in variants]
    # Neighbours in a grid cost much alike: they go to different tasks. A few tasks a core make up for what is left.
    tasks = min(len(names), TASKS_PER_CORE * _cores(session))
    shipped = pickle.dumps((workload, tuple(variants), until))

    def play(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        with sent_to_driver():
            messages, every, end = pickle.loads(shipped)
            for batch in batches:
                numbers = [n for first in batch.column(0).to_pylist() for n in range(first, len(every), tasks)]
                found = (every[n].play(messages, end).summary() for n in numbers)
                yield pyarrow.RecordBatch.from_pydict(
                    {"number": pyarrow.array(numbers, pyarrow.int64()), "summary": [json.dumps(each) for each in found]}
                )

    starts = session.range(tasks, numPartitions=max(1, tasks))
    with raised_on_driver():
        rows = starts.mapInArrow(play, "number long, summary string").collect()
    return {names[row.number]: json.loads(row.summary) for row in sorted(rows, key=lambda row: row.number)}
