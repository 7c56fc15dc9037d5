"""``python -m tests.activemq.stomp.bystander [--seconds N] [HARM...]``: what a client notices while others do harm.

``pyengine serve activemq`` listens in a process of its own; a process for each kind of harm goes on doing it, over and
over; a client here sends one message after the other to a queue, and waits for each receipt. Printed are the median and
the 99th percentile of these before the harm and meanwhile, and how often the harm was done. What is judged is the
processor time that the broker spends on others between a message and its receipt: on a machine that is busy the clock
on the wall tells of the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.activemq.stomp import test_hostile_peers as peers
from tests.activemq.test_stomp import Client

ROOT = Path(__file__).parents[3]
HARMS: dict[str, Callable[[int, ExitStack], None]] = {
    "slow readers": peers.slow_readers, "half closed": peers.half_closed, "half frames": peers.half_frames,
    "half handshakes": peers.half_handshakes, "handshakes": peers.handshakes, "idle": peers.idle,
    "endless heart-beats": peers.endless_heart_beats,
}  # fmt: skip
PAUSE = 0.002  # seconds between two messages
ALLOWED = 0.1  # seconds of the broker's processor time between a message and its receipt, 99th percentile


class Noticed(NamedTuple):
    """Seconds from a message to its receipt, and seconds of the broker's processor time between them. asked: messages;
    done: how often the harm was done.
    """

    asked: int
    p50: float
    p99: float
    spent_p50: float
    spent_p99: float
    done: int = 0


@contextlib.contextmanager
def serving() -> Iterator[tuple[int, int]]:
    """Process and port of a broker, which may open as many connections as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    command = [sys.executable, "-m", "pyengine", "serve", "activemq", "--listen", "stomp://127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.pid, int(process.stdout.readline().rpartition(":")[2])
        finally:
            process.terminate()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def noticed(client: Client, process: int, wanted: Callable[[], bool]) -> Noticed:
    """Ask as long as it is wanted, once at least."""
    ask, clock = peers.asks(client), ~process << 3 | 2  # the clock of a process's processor time (clock_getcpuclockid)
    waited, spent = [], []
    while not spent or wanted():
        began, before = time.perf_counter(), time.clock_gettime(clock)
        ask()
        waited.append(time.perf_counter() - began)
        spent.append(time.clock_gettime(clock) - before)
        time.sleep(PAUSE)
    waited.sort()
    spent.sort()
    half, most = len(spent) // 2, len(spent) * 99 // 100
    return Noticed(len(spent), waited[half], waited[most], spent[half], spent[most])


def meanwhile(process: int, port: int, harm: str, seconds: float) -> tuple[Noticed, Noticed]:
    """What a client notices before a harm, and while it is done."""
    with Client(port) as client:
        client.frame()
        end = time.monotonic() + min(seconds, 10.0)
        before = noticed(client, process, lambda: time.monotonic() < end)
        module = "tests.activemq.stomp.bystander"
        command = [sys.executable, "-m", module, "--do", harm, "--port", str(port), "--seconds", str(seconds)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "begins\n"
            during = noticed(client, process, lambda: other.poll() is None)
            done = int(other.stdout.readlines()[-1])
        assert other.returncode == 0, f"{harm} ended with {other.returncode}"
        return before, during._replace(done=done)


def do(harm: str, port: int, seconds: float) -> None:
    """The harm, over and over, with its connections closed at the end of each time."""
    print("begins", flush=True)
    done, end = 0, time.monotonic() + seconds
    while done == 0 or time.monotonic() < end:
        with ExitStack() as stack:
            HARMS[harm](port, stack)
            done += 1
            if harm in ("idle", "half closed"):
                time.sleep(max(0.0, min(5.0, end - time.monotonic())))
    print(done, flush=True)


def shown(before: float, during: float) -> str:
    return f"{before * 1e3:.2f} ms before and {during * 1e3:.2f} ms meanwhile"


def main() -> int:
    """Do each harm, print what was noticed; 1 if it was too much."""
    parser = argparse.ArgumentParser(prog="python -m tests.activemq.stomp.bystander", description=__doc__)
    parser.add_argument("harms", nargs="*", metavar="HARM", help=", ".join(HARMS))
    parser.add_argument("--seconds", type=float, default=60.0, help="for each harm")
    parser.add_argument("--do", choices=HARMS, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.do:
        do(options.do, options.port, options.seconds)
        return 0
    failed = 0
    for harm in options.harms or HARMS:
        with serving() as (process, port):
            before, during = meanwhile(process, port, harm, options.seconds)
        late = during.spent_p99 > ALLOWED
        failed += late
        print(
            f"{harm}, {during.done} times: p50 {shown(before.p50, during.p50)}, p99 {shown(before.p99, during.p99)}; "
            f"of the broker's processor time p50 {shown(before.spent_p50, during.spent_p50)}, "
            f"p99 {shown(before.spent_p99, during.spent_p99)}; {during.asked} messages{' TOO LATE' if late else ''}",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
