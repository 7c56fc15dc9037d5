"""A process that runs one stream to its end; the tests kill it. Arguments: input, topology file, place."""

from __future__ import annotations

import sys
from pathlib import Path

from pyengine.spark.session import start_session
from pyengine.topology import Topology
from tests.spark.test_streaming import run

if __name__ == "__main__":
    spark = start_session("local[2]", {"spark.sql.shuffle.partitions": "2"})
    topology = Topology.load(sys.argv[2])
    run(spark, Path(sys.argv[1]), 1, topology, Path(sys.argv[3]), event="event", late=["late"])
    spark.stop()
