"""Memory of a durable broker with a backlog: `python -m bench.backlog 1000000`. Not part of `make bench`: it is long.

Fills a queue in transactions of a thousand, starts the broker anew, takes everything in the same way, and prints rates
and the resident memory: what Python and the library need before, and the most that was needed on top.
`--durable`: a topic instead, with a durable subscription whose consumer is away while it is filled.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import pyengine
from pyengine.activemq import AckKind, Broker
from pyengine.activemq.transport.commands import (
    ConnectionInfo,
    ConnectionSink,
    ConsumerInfo,
    MessageAck,
    MessageDispatch,
)
from pyengine.clock import ManualClock
from pyengine.destinations import Destination

UNIT = 1000
QUEUE, TOPIC = Destination("backlog"), Destination("backlog", "topic")


def resident() -> float:
    """Resident memory of this process now, MB."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def consumer(where: Destination) -> ConsumerInfo:
    name = "subscription" if where is TOPIC else ""
    return ConsumerInfo("a", "s", "c", where, UNIT, subscription_name=name, dispatch_async=False)


def fill(folder: str, size: int, where: Destination) -> float:
    """Send everything; by how many bytes a message the resident memory grows, but for the first tenth of them."""
    first, counted = 0.0, 0
    with Broker(folder, name="fill", clock=ManualClock()) as broker:
        broker.add_connection(ConnectionInfo("c", "client"), ConnectionSink(lambda command: None))
        if where is TOPIC:
            broker.add_consumer(consumer(where))
            broker.remove_consumer("a")
        for start in range(0, size, UNIT):
            broker.begin("c", f"TX:{start}")
            for number in range(start, min(start + UNIT, size)):
                message = pyengine.Message(
                    {"number": number, "region": "EU"}, body="x" * 200, message_id=f"ID:fill:{number}"
                )
                broker.send("c", where, message, f"TX:{start}")
            broker.commit(f"TX:{start}")
            if start <= size // 10:
                first, counted = resident(), start + UNIT
        return (resident() - first) * 1e6 / max(size - counted, 1)


def drain(folder: str, size: int, where: Destination) -> float:
    """Take everything; the most memory resident meanwhile, MB."""
    taken: list[MessageDispatch] = []
    most, expected = 0.0, 0
    with Broker(folder, name="drain", clock=ManualClock()) as broker:
        broker.add_connection(ConnectionInfo("c", "client"), ConnectionSink(taken.append))
        broker.add_consumer(consumer(where))
        while taken:
            batch, taken[:] = list(taken), []
            for command in batch:
                assert command.message is not None
                assert command.message.get_int_property("number") == expected
                expected += 1
            last = batch[-1].message
            assert last is not None
            broker.acknowledge(
                MessageAck("a", where, AckKind.STANDARD, last.message_id or "", message_count=len(batch))
            )
            most = max(most, resident())
    assert expected == size, (expected, size)
    return most


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.backlog", description=__doc__)
    parser.add_argument("size", type=int, nargs="?", default=1_000_000, help="messages")
    parser.add_argument("--durable", action="store_true", help="a topic with a durable subscription")
    chosen = parser.parse_args()
    size, where = chosen.size, TOPIC if chosen.durable else QUEUE
    before = resident()
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        growth = fill(folder, size, where)
        filled, start = time.perf_counter() - start, time.perf_counter()
        memory = resident()
        disk = sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6
        most = drain(folder, size, where)
        drained = time.perf_counter() - start
    print(f"{size} messages, {disk:.0f} MB on disk")
    print(f"filled at {size / filled:.0f} a second, drained at {size / drained:.0f} a second")
    print(f"resident before {before:.0f} MB, after filling {memory:.0f} MB, at most while draining {most:.0f} MB")
    print(f"grows by {growth:.0f} bytes a message while filling")


if __name__ == "__main__":
    main()
