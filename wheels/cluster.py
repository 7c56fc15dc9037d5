"""A standalone Spark cluster of two workers on loopback whose executors run an environment of their own with our wheel.

    python wheels/cluster.py ENVIRONMENT

ENVIRONMENT holds the wheel, pyarrow and pandas for this version of Python; Spark brings pyspark to its workers. Starts
a master and two workers from the pyspark package, dispatches on them, and asserts that the workers ran that environment
and gave the answer of a single process. After seven minutes it gives up; whatever it started is stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pyarrow as pa
import pyspark

from pyengine import spark as ps
from pyengine.activemq.tables.dispatch import dispatch_table
from pyengine.backlog.tables.messages import to_messages
from pyengine.spark.java import find_java
from pyengine.spark.session import start_session
from pyengine.spark.shards import scheduled
from pyengine.topology import Consumer, Source, Topology

SECONDS = 420
MESSAGES = 20_000
HOST = "127.0.0.1"


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def cluster(scratch: Path) -> Iterator[str]:
    """The address of a master with two workers of one core each; their logs are in ``scratch``."""
    home, port = Path(pyspark.__file__).parent, free_port()
    settings = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_WORKER_DIR": str(scratch / "work"),
    }
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", *arguments]
        with (scratch / f"{len(started)}.log").open("wb") as log:
            started.append(subprocess.Popen(command, env=settings, stdout=log, stderr=log, cwd=scratch))
        return started[-1]

    try:
        master = start("master.Master", "--host", HOST, "--port", str(port), "--webui-port", "0")
        while True:
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection((HOST, port), 1):
                break
            if master.poll() is not None:
                sys.exit(f"the master ended:\n{(scratch / '0.log').read_text('utf-8', 'replace')}")
            time.sleep(0.2)
        address = f"spark://{HOST}:{port}"
        for _ in range(2):
            start("worker.Worker", address, "--host", HOST, "--cores", "1", "--memory", "1g", "--webui-port", "0")
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def check(master: str, python: Path) -> None:
    """Dispatch on the cluster and compare."""
    topology = Topology(
        source=Source(destination="{queue}", path="x", group="who"),
        consumers=(Consumer("small", "q.>", selector="n < 4"), Consumer("rest", "q.>")),
    )
    table = pa.table(
        {
            "queue": [f"q.{n % 40}" for n in range(MESSAGES)],
            "n": pa.array([n % 11 for n in range(MESSAGES)], pa.int32()),
            "who": [f"g{n % 7}" if n % 3 else None for n in range(MESSAGES)],
        }
    )
    messages, _ = to_messages(table, range(MESSAGES), topology.source)
    expected = dispatch_table(topology, messages).sort_by("row").drop_columns(["bytes"])
    session = start_session(
        master,
        {
            "spark.pyspark.python": str(python),
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.executor.memory": "600m",
            "spark.executor.cores": "1",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{SECONDS}s",
        },
    )

    def who(number: int) -> str:
        import pyengine

        time.sleep(2)  # long enough for the other executor to take the next one
        return f"{sys.executable}\n{Path(pyengine.__file__).parents[4]}\n{os.getppid()}"

    try:
        seen = {tuple(line.split("\n")) for line in scheduled(session, 4, who)}
        frame = session.createDataFrame(table.append_column("number", pa.array(range(MESSAGES), pa.int64())))
        found = frame.transform(ps.dispatch, topology, row="number", partitions=6).toArrow()
    finally:
        session.stop()
    assert {(each[0], each[1]) for each in seen} == {(str(python), str(python.parents[1]))}, seen
    assert len({each[2] for each in seen}) == 2, f"one executor did all the work: {seen}"
    assert found.drop_columns(["bytes"]).cast(expected.schema).sort_by("row").equals(expected)
    print(f"Spark {pyspark.__version__}, two workers, executors of {python}:")
    print(f"{found.num_rows:,} messages, the answer of a single process")


def give_up(number: int, frame: FrameType | None) -> None:
    """What the alarm does; the blocks that started something stop it."""
    raise TimeoutError(f"not done after {SECONDS} seconds")


def main() -> None:
    """Run the check."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("environment", type=Path)
    folder: Path = given.parse_args().environment.absolute()
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS)
    with tempfile.TemporaryDirectory() as scratch, cluster(Path(scratch)) as master:
        check(master, folder / "bin" / "python")


if __name__ == "__main__":
    main()
