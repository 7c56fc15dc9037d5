"""``pyengine run`` over what bench.generate wrote, killed once in the middle and started again, with its peak memory.

    python -m bench.generate FOLDER --messages 20000000
    python -m bench.volume FOLDER

The kill is SIGKILL to the whole session once a third of the tasks of the source is done. Memory is the resident peak of
the JVM and of the largest Python worker, looked at ten times a second in /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from bench.bench_spark import processes


def look(root: int, peaks: dict[str, int]) -> None:
    """Note what the processes under ``root`` hold."""
    for process in processes(root)[1:]:
        try:
            status = dict(
                line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text("utf-8").splitlines()
            )
        except (OSError, ValueError):
            continue
        name = status["Name"].strip()
        peaks[name] = max(peaks.get(name, 0), int(status.get("VmHWM", "0 kB").split()[0]) // 1024)


def go(command: list[str], out: Path, kill_after: int | None, peaks: dict[str, int]) -> float | None:
    """Run to the end, or until so many tasks are done; wall seconds, None if it was killed."""
    begun = time.monotonic()
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        while running.poll() is None:
            look(running.pid, peaks)
            done = out.with_name(f".{out.name}.partial").glob("*/done/*")
            if kill_after is not None and len(list(done)) >= kill_after:
                os.killpg(running.pid, signal.SIGKILL)
                running.wait()
                return None
            time.sleep(0.1)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
    if running.returncode:
        sys.exit(f"{' '.join(command)} ended with {running.returncode}")
    return time.monotonic() - begun


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    given = asked.parse_args()
    out = given.folder.absolute() / "out"
    topology = given.folder.absolute() / "topology.toml"
    command = [sys.executable, "-m", "pyengine", "run", str(topology), "--out", str(out), "--json"]
    pieces = 2 * len(list((given.folder / "messages").glob("*.parquet")))
    peaks: dict[str, int] = {}
    begun = time.monotonic()
    assert go(command, out, max(1, pieces // 3), peaks) is None, "it was done before it could be killed"
    print(f"killed after {time.monotonic() - begun:.0f} s", flush=True)
    begun = time.monotonic()
    wall = go(command, out, None, peaks)
    assert wall is not None
    summary = json.loads((out / "summary.json").read_text("utf-8"))
    assert summary["messages"] == summary["delivered"] + summary["held"]
    print(f"resumed and done after {wall:.0f} s more: {summary['messages']:,} messages, {summary['held']:,} held,")
    print(f"times {summary['times']}, {summary['partitions']} shards; peak MB by process: {peaks}")


if __name__ == "__main__":
    main()
