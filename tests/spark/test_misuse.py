"""What is no topology, folder or workload is named by the call that was given it, before anything is written."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyengine import Subscriptions
from pyengine import spark as ps
from pyengine.errors import ConfigurationError, MissingColumnError
from pyengine.spark.rocketmq_log import RocketMQLog
from pyengine.spark.session import require_path
from pyengine.topology import Consumer, Source, Topology


def stream(out: Path, **given: Any) -> object:
    """A stream of one consumer, with what is given to it."""
    asked: Any = {"row": "n", "state": out / "state", "sink": out / "sink"} | given
    return ps.dispatch_stream(None, Topology(Source("q"), (Consumer("c", "q"),)), **asked)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda out: ps.run(None, out), "topology=None: must be a Topology"),
        (lambda out: ps.run(Topology(Source("q")), 5), "out=5: must be a string or a PathLike"),
        (lambda out: ps.write_shards(None, "flights.toml", out), "topology='flights.toml': must be a Topology"),
        (lambda out: ps.write_shards(None, Topology(Source("q")), None), "folder=None: must be a string or a PathLike"),
        (lambda out: ps.dispatch_shards(None, 5, out), "topology=5: must be a Topology"),
        (lambda out: ps.dispatch(None, "flights.toml"), "topology='flights.toml': must be a Topology or a ConsumerG"),
        (
            lambda out: ps.dispatch_stream(None, None, row="n", state=out, sink=out),
            "topology=None: must be a Topology",
        ),
        (lambda out: stream(out, row=5), "row=5: must be a string"),
        (lambda out: stream(out, state=None), "state=None: must be a string or a PathLike"),
        (lambda out: stream(out, state=""), "state='': names no folder"),
        (lambda out: stream(out, sink=5), "sink=5: must be a string or a PathLike or a function"),
        (lambda out: stream(out, event=5), "event=5: must be a string or None"),
        (lambda out: stream(out, late="c"), "late='c': must be a list of which each is a string"),
        (lambda out: ps.held(None, 5), "state=5: must be a string or a PathLike"),
        (lambda out: ps.assign_shards(None, Topology(Source("q")), out, 5), "out=5: must be a string or a PathLike"),
        (
            lambda out: ps.run(Topology(Source("q")), "s3://bucket/out"),
            "out=s3://bucket/out: is an address",
        ),
        (
            lambda out: ps.write_shards(None, Topology(Source("q")), "file:///out"),
            "folder=file:///out: is an address",
        ),
        (
            lambda out: ps.dispatch_shards(None, Topology(Source("q")), Path("hdfs://out")),
            "folder=hdfs:/out: is an address",
        ),
        (lambda out: ps.assign_shards(None, Topology(Source("q")), out, "dbfs:/out"), "out=dbfs:/out: is an address"),
        (lambda out: stream(out, state="s3a://b/state"), "state=s3a://b/state: is an address"),
        (lambda out: stream(out, sink="s3a://b/sink"), "sink=s3a://b/sink: is an address"),
        (lambda out: ps.held(None, "gs://b/state"), "state=gs://b/state: is an address"),
        (lambda out: RocketMQLog({"path": "file:/out"}).reader(None), "path=file:/out: is an address"),  # type: ignore[arg-type]
        (lambda out: ps.sweep(None, 5, []), "workload=5: must be a Workload"),
    ],
)
def test_what_cannot_be_used_is_named_before_anything_is_written(
    tmp_path: Path, call: Callable[[Path], object], words: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        call(tmp_path / "out")
    assert words in str(refused.value)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("path", ["out", "a:b", "./s3:/b", "/a/s3://b", "C:/out", r"C:\out", "c:", Path("out")])
def test_a_path_is_no_address(path: str | Path) -> None:
    require_path("out", path)


def test_a_column_of_numbers_or_events_that_is_not_there_is_named(spark: Any, tmp_path: Path) -> None:
    """As any other column that a topology names is; Spark finds them in capitals too."""
    topology = Topology(Source("q.{queue}"), (Consumer("c", "q.>"),))
    frame = spark.createDataFrame([(0, "a", None)], "number long, queue string, event string")
    frame.write.parquet(str(tmp_path / "in"))
    messages = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "in"))
    folders: dict[str, Any] = {"state": tmp_path / "state", "sink": tmp_path / "sink"}
    for ask, name in (
        (lambda: ps.dispatch(frame, topology, row="nunber"), "nunber"),
        (lambda: ps.dispatch_stream(messages, topology, row="nunber", **folders), "nunber"),
        (lambda: ps.dispatch_stream(messages, topology, row="number", event="evnt", **folders), "evnt"),
    ):
        with pytest.raises(MissingColumnError, match=f"the DataFrame has no column '{name}'; did you mean"):
            ask()
    with pytest.raises(ConfigurationError, match=r"is a stream, .* use dispatch_stream"):
        ps.dispatch(messages, topology, row="number")
    with pytest.raises(ConfigurationError, match="row=5: must be a Column or a string or None"):
        ps.dispatch(frame, topology, row=5)  # type: ignore[arg-type]
    assert ps.dispatch(frame, topology, row="NUMBER").count() == 1


@pytest.mark.parametrize("ask", [ps.where, lambda df, text, **given: df.where(ps.matches(text, schema=df, **given))])
def test_an_argument_of_matches_is_checked_whoever_evaluates(spark: Any, ask: Callable[..., object]) -> None:
    """Spark's own expressions do not look at it, and a worker's complaint would come as Spark's report."""
    frame = spark.range(1)
    for given, words in (
        ({"on_error": "ignore"}, "on_error='ignore': must be 'raise' or 'reject'"),
        ({"using": "spark"}, "using='spark': must be 'auto' or 'native' or 'arrow' or 'pandas'"),
        ({"columns": {"id": 5}}, "columns={'id': 5}: must be a mapping from a string to a Column or a string or None"),
        ({"columns": {"nr": "id"}}, "columns names 'nr', which the selector does not read: it reads id"),
    ):
        with pytest.raises(ValueError, match=re.escape(words)):
            ask(frame, "id > 1", **given)


def test_the_names_of_subscriptions_are_texts(spark: Any) -> None:
    for wanted in ({1: "id > 1"}, Subscriptions({1: "id > 1"})):
        with pytest.raises(ConfigurationError, match=r"subscriptions\[0\]=1: must be a string"):
            ps.match(spark.range(1), wanted)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="into=5: must be a string"):
        ps.match(spark.range(1), {"a": "id > 1"}, into=5)  # type: ignore[arg-type]
