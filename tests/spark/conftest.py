"""One session for all the tests here, made when the first one asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import datasource
from pyspark.sql.pandas import functions

from pyengine.activemq.tables.dispatch import dispatch_table
from pyengine.backlog.tables.messages import to_messages
from pyengine.backlog.tables.sources import read_source
from pyengine.spark.session import start_session
from pyengine.topology import Topology

ROOT = Path(__file__).parents[2]
# What carries rows to a Python worker; pyspark 4.0 has no Arrow functions.
WORKERS: list[Any] = ["arrow", "pandas"] if hasattr(functions, "arrow_udf") else ["pandas"]

collect_ignore: list[str] = []
if not hasattr(datasource, "DataSourceStreamArrowWriter"):
    collect_ignore = ["test_activemq_store.py", "test_rocketmq_log.py"]
    print(f"left out, pyspark 4.0 has no data sources of Arrow: {', '.join(collect_ignore)}")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    session = start_session(
        "local[2, 2]",  # a task whose worker is lost has a second attempt
        {
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        },
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def flights() -> Topology:
    return Topology.load(ROOT / "examples" / "flights" / "flights.toml")


@pytest.fixture(scope="session")
def flight_messages(flights: Topology) -> pa.Table:
    rows = read_source(flights.source)
    messages, rejects = to_messages(rows.table, rows.numbers, flights.source)
    assert not rejects
    return messages


@pytest.fixture(scope="session")
def flight_answer(flights: Topology, flight_messages: pa.Table) -> pa.Table:
    """What a single process says, by row."""
    return dispatch_table(flights, flight_messages).sort_by("row")
