"""Memory of a durable broker with a backlog: `python -m bench.backlog 1000000`. Not part of `make bench`: it is long.

Fills a queue in transactions of a thousand, starts the broker anew, takes everything in the same way, and prints rates
and the resident memory: what Python and the library need before, and the most that was needed on top.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import pyengine
from pyengine.activemq import AckKind, Broker
from pyengine.activemq.commands import ConnectionInfo, ConnectionSink, ConsumerInfo, MessageAck, MessageDispatch
from pyengine.clock import ManualClock
from pyengine.destinations import Destination

UNIT = 1000
QUEUE = Destination("backlog")


def resident() -> float:
    """Resident memory of this process now, MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def fill(folder: str, size: int) -> None:
    with Broker(folder, name="fill", clock=ManualClock()) as broker:
        broker.add_connection(ConnectionInfo("c"), ConnectionSink(lambda command: None))
        for start in range(0, size, UNIT):
            broker.begin("c", f"TX:{start}")
            for number in range(start, min(start + UNIT, size)):
                message = pyengine.Message(
                    {"number": number, "region": "EU"}, body="x" * 200, message_id=f"ID:fill:{number}"
                )
                broker.send("c", QUEUE, message, f"TX:{start}")
            broker.commit(f"TX:{start}")


def drain(folder: str, size: int) -> float:
    """Take everything; the most memory resident meanwhile, MB."""
    taken: list[MessageDispatch] = []
    most, expected = 0.0, 0
    with Broker(folder, name="drain", clock=ManualClock()) as broker:
        broker.add_connection(ConnectionInfo("c"), ConnectionSink(taken.append))
        broker.add_consumer(ConsumerInfo("a", "s", "c", QUEUE, UNIT, dispatch_async=False))
        while taken:
            batch, taken[:] = list(taken), []
            for command in batch:
                assert command.message is not None
                assert command.message.get_int_property("number") == expected
                expected += 1
            last = batch[-1].message
            assert last is not None
            broker.acknowledge(
                MessageAck("a", QUEUE, AckKind.STANDARD, last.message_id or "", message_count=len(batch))
            )
            most = max(most, resident())
    assert expected == size, (expected, size)
    return most


def main() -> None:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    before = resident()
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        fill(folder, size)
        filled, start = time.perf_counter() - start, time.perf_counter()
        memory = resident()
        disk = sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6
        most = drain(folder, size)
        drained = time.perf_counter() - start
    print(f"{size} messages, {disk:.0f} MB on disk")
    print(f"filled at {size / filled:.0f} a second, drained at {size / drained:.0f} a second")
    print(f"resident before {before:.0f} MB, after filling {memory:.0f} MB, at most while draining {most:.0f} MB")


if __name__ == "__main__":
    main()
