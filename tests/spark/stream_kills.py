"""A Spark stream whose whole process is killed again and again, at moments that are up to the machine.

``python -m tests.spark.stream_kills --kills 30``. The same input through an undisturbed run gives the same deliveries.
Before that it walks through every step between which a micro-batch can die, one after another.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyengine.spark.session import start_session
from pyengine.topology import Topology
from tests.spark.test_streaming import (
    IN_A_WORKER,
    ON_THE_DRIVER,
    OPTIONS,
    assert_same_lines,
    come_and_go,
    run,
    told,
    traffic,
    walk,
    write_files,
)

# A process dies within seconds, most of which Java would spend on compiling and loading classes.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable"
AHEAD = 8  # micro-batches that wait when a process starts: more than it finishes before its death
ROOT = Path(__file__).parents[2]


def stream(place: Path) -> None:
    """One process: the stream to its end. It prints a line when Spark is there."""
    spark = start_session("local[2]", {"spark.sql.shuffle.partitions": "2"})
    print("begins", flush=True)
    run(spark, place / "in", 1, Topology.load(place / "topology.toml"), place, **OPTIONS)
    spark.stop()


def prepare(place: Path) -> None:
    """A stream that nobody disturbs; what Java loads for it is loaded at once by the processes that start later."""
    feed(place, 2)
    (place / "topology.toml").write_text(come_and_go().to_text())
    classes, given = place / "classes.jsa", os.environ.get("SPARK_SUBMIT_OPTS", "")
    os.environ["SPARK_SUBMIT_OPTS"] = f"{given} {JAVA} -XX:ArchiveClassesAtExit={classes}"
    process = begun(place)
    process.communicate()
    limit = time.monotonic() + 120
    with suppress(ProcessLookupError):
        while time.monotonic() < limit:  # Java ends after Python
            os.killpg(process.pid, 0)
            time.sleep(0.1)
    os.environ["SPARK_SUBMIT_OPTS"] = f"{given} {JAVA} -XX:SharedArchiveFile={classes}"


def begun(place: Path) -> subprocess.Popen[bytes]:
    """A process that runs the stream of a place."""
    command = [sys.executable, "-m", "tests.spark.stream_kills", "--stream", str(place)]
    return subprocess.Popen(command, cwd=ROOT, start_new_session=True, stdout=subprocess.PIPE)


def done(place: Path) -> int:
    return len(list((place / "sink").glob("batch=*")))


def feed(place: Path, files: int) -> None:
    """The input has at least this many files."""
    (place / "in").mkdir(exist_ok=True)
    for index in range(len(list((place / "in").glob("*.parquet"))), files):
        write_files(traffic(index), place / "in", 1, first=index)


def kill_often(place: Path, kills: int, minutes: float, draw: random.Random) -> int:
    """Processes that are killed, one after another; each finishes at least one micro-batch before. How many it were."""
    end = time.monotonic() + 60 * minutes
    for death in range(kills):
        if time.monotonic() > end:
            print(f"{minutes:g} minutes are over", flush=True)
            return death
        before = done(place)
        feed(place, before + AHEAD)
        process = begun(place)
        try:
            assert process.stdout is not None
            assert process.stdout.readline(), "the process did not begin"
            limit = time.monotonic() + 300
            while process.poll() is None and done(place) == before and time.monotonic() < limit:
                time.sleep(0.02)
            time.sleep(draw.random() * 0.5)
            if process.poll() is not None or done(place) == before:
                raise SystemExit(f"process {death} ended with {process.poll()} after {done(place) - before} batches")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # the process, its JVM and its workers
            process.wait()
        print(f"killed {death + 1} times, {done(place)} micro-batches are done", flush=True)
    return kills


def compare(place: Path) -> pa.Table:
    """The stream comes to its end and says what an undisturbed one says."""
    spark = start_session("local[2]", {"spark.sql.shuffle.partitions": "2"})
    topology = Topology.load(place / "topology.toml")
    run(spark, place / "in", 1, topology, place, **OPTIONS)
    run(spark, place / "in", 10_000, topology, place / "calm", **OPTIONS)
    found = told(spark, place)
    assert_same_lines(found, told(spark, place / "calm"))
    spark.stop()
    return found


def every_step(folder: Path) -> None:
    """A micro-batch dies at each step once."""
    folder.mkdir()
    steps = [*IN_A_WORKER, *ON_THE_DRIVER]
    spark = start_session("local[2, 2]", {"spark.sql.shuffle.partitions": "2"})
    walk(spark, folder, steps)
    spark.stop()
    print(f"died at each of {len(steps)} steps: as undisturbed", flush=True)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--kills", type=int, default=30)
    asked.add_argument("--minutes", type=float, default=20, help="no kill after so many minutes")
    asked.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    asked.add_argument("--stream", type=Path, help="run the stream of this place, to be killed")
    options: Any = asked.parse_args()
    if options.stream:
        stream(options.stream)
        return
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        place, calm = Path(folder), Path(folder) / "calm-start"
        calm.mkdir()
        prepare(calm)
        every_step(place / "steps")
        (place / "topology.toml").write_text(come_and_go().to_text())
        kills = kill_often(place, options.kills, options.minutes, random.Random(options.seed))
        batches = done(place)
        found = compare(place)
    print(f"{kills} kills in {batches} micro-batches: {found.num_rows} lines, as undisturbed")


if __name__ == "__main__":
    main()
