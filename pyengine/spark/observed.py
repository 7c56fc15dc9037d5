"""Numbers of a dispatch as observed metrics, which Spark shows beside its own: in the progress of a stream, in an
``Observation`` of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from pyengine.spark.state_files import Figures

OBSERVED = "pyengine"  # the name of a stream's metrics
ENDS = ("expired", "rejected")  # a message with these reasons does not wait
TOPIC_REASONS = ("discarded", "duplicate")
GROUP_REASONS = ("filtered", "evaluation_error", "no_owner", "no_group", "unknown_queue")


def held_reasons() -> tuple[str, ...]:
    """Why a message waits in a queue."""
    from pyengine.activemq.tables.dispatch import REASON_WORDS

    return tuple(word for word in REASON_WORDS.to_pylist() if word not in ("not_held", *ENDS))


def observed(answer: DataFrame, observation: Any, reasons: Sequence[str], *, waits: bool) -> DataFrame:
    """The answer of a batch with its numbers: lines that are ``delivered``, and those with each reason by its name.

    waits: ``held`` counts those that neither ended nor were delivered.
    """
    from pyspark.sql import functions as F  # noqa: N812

    reason = F.col("reason")
    counts = {"delivered": reason.isNull()}
    if waits:
        counts["held"] = reason.isNotNull() & ~reason.isin(*ENDS, *TOPIC_REASONS)
    counts |= {name: F.coalesce(reason == name, F.lit(False)) for name in reasons}
    return answer.observe(observation, *(F.sum(each.cast("bigint")).alias(name) for name, each in counts.items()))


# A line for each shard that a task of a micro-batch has, whether it was written or not.
def shard_schema() -> str:
    """The columns of the lines of a task, for Spark."""
    numbers = ("delivered", *ENDS, "state_bytes", *held_reasons())
    return ", ".join(["shard int", "written boolean", *(f"`{name}` bigint" for name in numbers)])


def shard_lines(
    figures: dict[int, Figures], written: Sequence[int], delivered: int, expired: int, rejected: int
) -> Any:
    """The lines of a task as a batch of this schema. figures: of all of its shards; the rest: of the task."""
    import pyarrow as pa

    reasons = held_reasons()
    first = dict.fromkeys(list(figures)[:1], (delivered, expired, rejected))
    lines = [
        (shard, shard in written, *first.get(shard, (0, 0, 0)), size, *(dict(waits).get(name, 0) for name in reasons))
        for shard, (size, waits) in figures.items()
    ]
    kinds = [pa.int32(), pa.bool_(), *[pa.int64()] * (4 + len(reasons))]
    columns = list(zip(*lines, strict=True)) or [()] * len(kinds)
    names = ["shard", "written", "delivered", *ENDS, "state_bytes", *reasons]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def figures_of(line: Any) -> Figures:
    """The figures of the shard of such a line."""
    return line["state_bytes"], tuple((name, line[name]) for name in held_reasons() if line[name])


def stream_numbers() -> list[Column]:
    """The metrics of a stream, over the lines of all shards."""
    from pyspark.sql import functions as F  # noqa: N812

    reasons = held_reasons()
    held = F.sum(sum((F.col(name) for name in reasons), F.lit(0).cast("bigint"))).alias("held")
    return [held, *(F.sum(name).alias(name) for name in ("delivered", *ENDS, "state_bytes", *reasons))]
