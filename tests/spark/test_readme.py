"""The README's Spark runs as it stands and shows what it shows."""

from __future__ import annotations

from typing import Any

import pyengine
from pyengine.topology import Topology
from tests.house.examples import blocks, run

TOPOLOGY = """
[source]
path = "orders.parquet"
destination = "orders"
properties = ["region"]

[[consumer]]
name = "desk"
destination = "orders"
selector = "region = 'EU'"
"""


def test_the_code_on_spark_runs(spark: Any) -> None:
    (block,) = [block for block in blocks("README.md", "python") if "spark" in block]
    rows = [(1, "EU", 250, 7), (2, "US", 250, 8)]
    run(
        block,
        {  # the reader's own
            "messages": spark.createDataFrame(rows, "id long, region string, price int, customer int"),
            "rules": pyengine.Subscriptions({"dear": "customer = 7 AND price > 100"}),
            "topology": Topology.from_text(TOPOLOGY),
        },
    )
