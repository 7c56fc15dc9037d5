"""The whole job: a source in, folders and a summary out."""

from __future__ import annotations

import json
import os
import resource
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from pyengine.activemq.tables.dispatch import dispatch_table
from pyengine.backlog.findings import translated
from pyengine.backlog.tables import runs
from pyengine.backlog.tables.messages import to_messages
from pyengine.backlog.tables.sources import read_source
from pyengine.errors import (
    ConfigurationError,
    IllegalStateError,
    InvalidSourceError,
    InvalidTopologyError,
    MissingColumnError,
    OutputError,
    OutputExistsError,
    UnsupportedColumnError,
)
from pyengine.spark import Progress, pipeline, run
from pyengine.topology import Topology

TOML = """
title = "orders"
[source]
path = "{path}"
destination = "orders.{{region}}"
id = "id"
group = "customer"
types = {{ price = "double" }}
[[destination]]
name = "orders.empty"
[[consumer]]
name = "dear"
destination = "orders.>"
selector = "price > 100"
[[consumer]]
name = "eu"
destination = "orders.eu"
selector = "price < 10"
"""

LINES = [
    {"id": "m0", "region": "eu", "customer": "c1", "price": 250},
    {"id": "m1", "region": "eu", "customer": "c1", "price": 50},
    {"id": "m2", "region": "us", "customer": None, "price": 5},
    {"id": "m3", "region": None, "customer": "c2", "price": 5},
    {"id": "m4", "region": "eu", "customer": "c\U0001f600", "price": 1.5},
    {"id": "m5", "region": "us", "customer": "c2", "price": "cheap"},
]


def topology_for(path: Path, toml: str = TOML) -> Topology:
    return Topology.from_text(toml.format(path=path))


@pytest.fixture
def orders(tmp_path: Path) -> Topology:
    path = tmp_path / "orders.jsonl"
    lines = [json.dumps(line) for line in LINES]
    lines.insert(3, "{ broken")
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return topology_for(path)


@pytest.mark.parametrize("rows", [pipeline._RUN_ROWS, 2])
def test_a_run_accounts_for_every_row(
    spark: Any, orders: Topology, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(pipeline, "_RUN_ROWS", rows)
    seen: list[Progress] = []
    result = run(orders, tmp_path / "out", spark=spark, partitions=2, progress=seen.append)
    summary = result.summary
    assert (summary["rows"], summary["messages"], summary["delivered"], summary["held"], summary["rejected"]) == (
        7,
        4,
        2,
        2,
        3,
    )
    assert sorted((line["column"], tuple(line["examples"])) for line in summary["rejects"]) == [
        ("", (3,)),
        ("price", (6,)),
        ("region", (4,)),
    ]
    assert [line["places"] for line in summary["rejects"] if line["column"] == "price"] == [["orders.jsonl:6"]]
    eu = summary["destinations"]["orders.eu"]
    assert [(line["name"], line["delivered"], line["groups"]) for line in eu["consumers"]] == [
        ("dear", 1, 1),
        ("eu", 1, 1),
    ]
    assert [(line["reason"], line["consumer"], line["examples"]) for line in eu["held_by_reason"]] == [
        ("selector", "", ["m1"])
    ]
    assert summary["destinations"]["orders.empty"]["messages"] == 0
    rejected = pq.read_table(tmp_path / "out" / "rejects").sort_by("row").to_pylist()
    assert [line["row"] for line in rejected] == [line["file_row"] for line in rejected] == [3, 4, 6]
    assert {line["file"] for line in rejected} == {orders.source.path}
    assert rejected[2]["value"] in ("cheap", '"cheap"')
    assert pq.read_table(tmp_path / "out" / "deliveries").num_rows == 2
    assert pq.read_table(tmp_path / "out" / "held").num_rows == 2
    assert json.loads((tmp_path / "out" / "summary.json").read_text("utf-8")) == summary
    assert [each.stage for each in seen if each.stage != "dispatch"] == ["read", "start", "measure", "done"]
    assert not list(tmp_path.glob(".out*"))


def test_what_waits_is_explained_in_chinese_too(spark: Any, orders: Topology, tmp_path: Path) -> None:
    summary = run(orders, tmp_path / "out", spark=spark).summary
    (held,) = summary["destinations"]["orders.eu"]["held_by_reason"]
    assert held["explanation"].startswith("No consumer's selector matches (dear: price > 100; eu: price < 10).")
    assert str(translated(held["explanation"], "zh")).startswith("没有消费者的选择器匹配")


def test_messages_keep_types_and_absence(spark: Any, orders: Topology, tmp_path: Path) -> None:
    run(orders, tmp_path / "out", spark=spark)
    messages = pq.read_table(tmp_path / "out" / "messages")
    assert messages.schema.field("price").type == pa.float64()
    assert messages.column("JMSXGroupID").to_pylist() == ["c1", "c1", None, "c\U0001f600"]
    assert messages.column("__row").to_pylist() == [0, 1, 2, 5]


@pytest.mark.parametrize("kind", ["deliveries", "held"])
def test_spark_reads_back_what_a_run_wrote(spark: Any, orders: Topology, tmp_path: Path, kind: str) -> None:
    run(orders, tmp_path / "out", spark=spark)
    own = pq.read_table(tmp_path / "out" / kind)
    found = spark.read.parquet(str(tmp_path / "out" / kind)).toArrow()
    assert found.cast(own.schema).sort_by("row").equals(own.sort_by("row"))
    assert own.num_rows == 2


def test_a_run_replaces_its_own_result_and_nothing_else(spark: Any, orders: Topology, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(orders, out, spark=spark)
    (out / "report.html").write_text("old")
    run(orders, out, spark=spark)
    assert not (out / "report.html").exists()
    foreign = tmp_path / "mine"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("precious")
    with pytest.raises(OutputExistsError, match="mine"):
        run(orders, foreign, spark=spark)
    with pytest.raises(OutputExistsError, match="it is a file"):
        run(orders, foreign / "thesis.txt", spark=spark)
    assert (foreign / "thesis.txt").read_text() == "precious"


def test_a_failed_run_leaves_the_earlier_result(spark: Any, orders: Topology, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(orders, out, spark=spark)
    before = (out / "summary.json").read_text("utf-8")
    Path(orders.source.path).unlink()
    with pytest.raises(InvalidSourceError, match=r"orders\.jsonl"):
        run(orders, out, spark=spark)
    assert (out / "summary.json").read_text("utf-8") == before
    assert not list(tmp_path.glob(".out*"))


def test_a_session_that_runs_is_used_and_goes_on(spark: Any, orders: Topology, tmp_path: Path) -> None:
    summary = run(orders, tmp_path / "out").summary
    assert summary["master"] == "the caller's session"
    assert spark.range(3).count() == 3
    assert run(orders, tmp_path / "out", master="local[2, 2]").summary["delivered"] == summary["delivered"]
    for given in (None, spark):
        with pytest.raises(ConfigurationError, match=r"master.*local\[7\].*a session runs here on local\[2, 2\]"):
            run(orders, tmp_path / "other", spark=given, master="local[7]")
    assert not (tmp_path / "other").exists()


def test_no_messages_at_all(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "none.parquet"
    schema = pa.schema(
        [("id", pa.string()), ("region", pa.string()), ("customer", pa.string()), ("price", pa.float64())]
    )
    pq.write_table(schema.empty_table(), path)
    summary = run(topology_for(path), tmp_path / "out", spark=spark).summary
    assert (summary["rows"], summary["messages"]) == (0, 0)
    assert pq.read_table(tmp_path / "out" / "held").num_rows == 0


def test_bad_input_is_told_before_spark_runs(tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("id,region,customer\n1,eu,c\n")
    with pytest.raises(MissingColumnError, match="price"):
        run(topology_for(path), tmp_path / "out")
    with pytest.raises(MissingColumnError, match="regio"):
        run(topology_for(path, TOML.replace("{{region}}", "{{regio}}").replace("types", "# types")), tmp_path / "out")
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 not really")
    with pytest.raises(InvalidSourceError, match=r"broken\.parquet"):
        run(topology_for(broken), tmp_path / "out")
    listed = tmp_path / "listed.parquet"
    pq.write_table(
        pa.table({"id": ["1"], "region": ["eu"], "customer": ["c"], "price": [1.0], "tags": [["a"]]}), listed
    )
    with pytest.raises(UnsupportedColumnError, match="tags"):
        run(topology_for(listed), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_files_say_what_a_single_process_says(spark: Any, orders: Topology, tmp_path: Path) -> None:
    run(orders, tmp_path / "out", spark=spark, partitions=3)
    messages = pq.read_table(tmp_path / "out" / "messages")
    expected = dispatch_table(orders, messages).sort_by("row").to_pylist()
    parts = [pq.read_table(tmp_path / "out" / name, partitioning=None) for name in ("deliveries", "held")]
    assert pa.concat_tables(parts).sort_by("row").to_pylist() == expected


def test_ctrl_c_stays_one_where_py4j_fails_behind_it() -> None:
    from py4j.protocol import Py4JError

    from pyengine.spark.failure import interrupted_as_such

    def call(error: BaseException) -> None:
        try:
            raise error
        except BaseException:
            raise Py4JError("Gateway must be connected to send cancel cmd.") from None

    with pytest.raises(KeyboardInterrupt), interrupted_as_such():
        call(KeyboardInterrupt())
    with pytest.raises(Py4JError), interrupted_as_such():
        call(OSError())


def test_an_error_in_a_worker_is_raised_as_itself(spark: Any) -> None:
    from pyengine.spark.failure import raised_on_driver
    from pyengine.spark.transforms import Assignment

    broken = spark.range(3).mapInArrow(Assignment("[sauce]\n"), "id long")
    with pytest.raises(InvalidTopologyError) as caught, raised_on_driver():
        broken.collect()
    assert "Traceback" not in str(caught.value)


PARQUET = TOML.replace('id = "id"', 'id = "id"\ntimestamp = "at"')


def parquet_orders(folder: Path, count: int = 900) -> Topology:
    table = pa.table(
        {
            "id": [f"m{n}" for n in range(count)],
            "region": pa.array([None if n % 150 == 7 else ("eu", "us", "\U0001f600")[n % 3] for n in range(count)]),
            "customer": [f"c{n % 97}" if n % 4 else None for n in range(count)],
            "price": pa.array([float(n % 211) for n in range(count)]),
            "at": pa.array([n * 3_600_000 for n in range(count)]),
        }
    )
    folder.mkdir()
    for number in range(3):
        part = table.slice(number * 300, 300)
        pq.write_table(part, folder / f"{number}.parquet", row_group_size=120)
    return topology_for(folder, PARQUET)


def test_parquet_is_read_by_the_workers_with_the_same_answer(spark: Any, tmp_path: Path) -> None:
    topology = parquet_orders(tmp_path / "orders")
    result = run(topology, tmp_path / "out", spark=spark, partitions=3)
    rows = read_source(topology.source)
    messages, rejects = to_messages(rows.table, rows.numbers, topology.source)
    expected = dispatch_table(topology, messages).sort_by("row")
    parts = [pq.read_table(tmp_path / "out" / name, partitioning=None) for name in ("deliveries", "held")]
    assert pa.concat_tables(parts).sort_by("row").equals(expected)
    assert pq.read_table(tmp_path / "out" / "messages").sort_by("__row").equals(messages)
    summary = result.summary
    assert (summary["rows"], summary["rejected"], summary["partitions"]) == (900, len(rejects), 3)
    eu = summary["destinations"]["orders.eu"]
    mine = expected.filter(pa.compute.equal(expected.column("destination"), "orders.eu"))
    assert (eu["messages"], sum(day["delivered"] + day["held"] for day in eu["days"])) == (mine.num_rows, mine.num_rows)
    assert eu["groups"] == len(set(mine.filter(pa.compute.is_null(mine["reason"]))["group"].drop_null().to_pylist()))
    assert eu["group_skew"] >= 1 <= eu["consumer_skew"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "deliveries", "held", "messages", "rejects", "summary.json"
    ]  # fmt: skip


def test_an_interrupted_run_goes_on_where_it_was(spark: Any, tmp_path: Path) -> None:
    topology = parquet_orders(tmp_path / "orders")
    whole = run(topology, tmp_path / "whole", spark=spark, partitions=2).summary

    def interrupt(progress: Progress) -> None:
        if progress.stage == "measure":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(topology, tmp_path / "out", spark=spark, partitions=2, progress=interrupt)
    (work,) = (path for path in (tmp_path / ".out.partial").iterdir() if path.is_dir())
    done = sorted(work.joinpath("done").iterdir())
    runs = {path: path.stat().st_mtime_ns for path in work.joinpath("runs").iterdir()}
    done[-1].unlink()  # as if it had been killed before its last shard
    (work / "deliveries" / ".part-9.parquet.1.partial").write_text("half a file")
    stamps: list[int] = []

    def look(progress: Progress) -> None:
        if progress.stage == "measure":
            stamps.extend(path.stat().st_mtime_ns for path in runs)

    resumed = run(topology, tmp_path / "out", spark=spark, progress=look).summary
    assert stamps == list(runs.values())  # what was read and sorted was not read again
    assert not list((tmp_path / "out").rglob("*.partial"))
    assert {**resumed, "times": 0, "versions": 0, "paths": 0} == {**whole, "times": 0, "versions": 0, "paths": 0}
    assert not work.exists()


def test_a_changed_source_is_not_gone_on_with(spark: Any, tmp_path: Path) -> None:
    topology = parquet_orders(tmp_path / "orders")

    def interrupt(progress: Progress) -> None:
        if progress.stage == "measure":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(topology, tmp_path / "out", spark=spark, partitions=2, progress=interrupt)
    extra = pq.read_table(tmp_path / "orders" / "0.parquet").slice(0, 10)
    pq.write_table(extra, tmp_path / "orders" / "3.parquet")
    assert run(topology, tmp_path / "out", spark=spark).summary["rows"] == 910


def test_the_files_of_another_layout_are_not_gone_on_with(tmp_path: Path) -> None:
    topology = parquet_orders(tmp_path / "orders")
    aside = tmp_path / ".out.partial"
    aside.mkdir()
    plan = pipeline._plan(topology, aside, 2)
    run_file = runs.run_path(aside / plan.work / "runs", 0)
    run_file.write_bytes(b"PAR1" + b"\0" * 40 + b"PAR1")
    with pytest.raises(InvalidSourceError, match="not a run of this version"):
        next(runs.blocks(run_file, 0))
    (aside / pipeline.PLAN).write_text(plan.to_text(), "utf-8")
    assert pipeline._plan(topology, aside, None) == pipeline._plan(topology, aside, 2) == plan
    assert run_file.exists()
    (aside / pipeline.PLAN).write_text(json.dumps([runs.LAYOUT - 1, *json.loads(plan.to_text())[1:]]), "utf-8")
    other = pipeline._plan(topology, aside, 2)
    assert other.work != plan.work  # what a worker of the killed run still writes is in nobody's way
    assert [path.name for path in aside.iterdir()] == [other.work]


def test_another_plan_is_not_gone_on_with(tmp_path: Path) -> None:
    topology = parquet_orders(tmp_path / "orders")
    aside = tmp_path / ".out.partial"
    aside.mkdir()

    def kept(given: Topology, shards: int | None) -> bool:
        plan = pipeline._plan(topology, aside, 2)
        (aside / pipeline.PLAN).write_text(plan.to_text(), "utf-8")
        return pipeline._plan(given, aside, shards).work == plan.work

    assert kept(topology, 2)
    assert not kept(topology, 3)
    assert not kept(topology_for(tmp_path / "orders", PARQUET.replace("price > 100", "price > 99")), 2)
    plan = pipeline._plan(topology, aside, 2)
    (aside / pipeline.PLAN).write_text(plan.to_text(), "utf-8")
    os.utime(tmp_path / "orders" / "0.parquet", (1, 1))  # written anew, as long as before
    assert pipeline._plan(topology, aside, 2).work != plan.work


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("step", ["rmtree", "rename"])
def test_a_run_killed_while_it_tidies_up_has_only_that_left(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, step: str
) -> None:
    topology = parquet_orders(tmp_path / "orders")
    if kind == "csv":
        table = read_source(topology.source).table
        shutil.rmtree(tmp_path / "orders")
        (tmp_path / "orders").mkdir()
        pyarrow.csv.write_csv(table, tmp_path / "orders" / "1.csv")
    run(topology, tmp_path / "out", spark=spark)
    before = (tmp_path / "out" / pipeline.MARKER).stat().st_mtime_ns
    calls = 0

    def die(*_: Any, **__: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        if step == "rmtree":
            patched.setattr(pipeline.shutil, "rmtree", die)
        else:
            rename = Path.rename
            patched.setattr(Path, "rename", lambda path, to: die() or rename(path, to))
        with pytest.raises(KeyboardInterrupt):
            run(topology, tmp_path / "out", spark=spark)
    stages: list[str] = []
    if step == "rename":  # between the two: an earlier result stays, whatever comes next
        with pytest.raises(MissingColumnError):
            run(topology_for(tmp_path / "orders", TOML.replace("customer", "nobody")), tmp_path / "out", spark=spark)
        assert (tmp_path / "out" / pipeline.MARKER).stat().st_mtime_ns == before
        return
    run(topology, tmp_path / "out", spark=spark, progress=lambda progress: stages.append(progress.stage))
    assert stages == ["read", "done"]
    assert (tmp_path / "out" / pipeline.MARKER).stat().st_mtime_ns > before
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "deliveries", "held", "messages", "rejects", "summary.json"
    ]  # fmt: skip
    assert not (tmp_path / ".out.partial").exists()


def test_two_runs_do_not_write_one_folder(spark: Any, orders: Topology, tmp_path: Path) -> None:
    def again(progress: Progress) -> None:
        if progress.stage == "measure":
            with pytest.raises(IllegalStateError, match="another run works here"):
                run(orders, tmp_path / "out", spark=spark)

    assert run(orders, tmp_path / "out", spark=spark, progress=again).summary["rows"] == 7


def test_a_full_disk_is_told_and_the_next_run_goes_on(spark: Any, tmp_path: Path) -> None:
    topology = parquet_orders(tmp_path / "orders")
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(progress: Progress) -> None:
        if progress.stage == "measure":
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, unlimited[1]))

    try:
        with pytest.raises(OutputError, match=r"summary.json: cannot be written: File too large"):
            run(topology, tmp_path / "out", spark=spark, partitions=2, progress=fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert list((tmp_path / ".out.partial").glob("*/done/*"))
    assert run(topology, tmp_path / "out", spark=spark).summary["rows"] == 900
