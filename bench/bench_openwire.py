"""openwire: our broker beside the real one under the same Java client, and our client beside the Java client on the
real broker.

CPU rows are CPU time of the whole process that is measured, a message: of the broker, or of the client. Latency rows
are what the clock on the wall showed the Java client. The JVMs are warm: what they answer is asserted in repetitions
that do not count. The brokers are in memory. It needs Java, Maven and ActiveMQ from Maven Central.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from bench.bench_remoting import spent_by
from bench.contest import RivalMissingError, Row
from bench.jvm import SOURCES, Jvm, harness
from pyengine import Message
from pyengine.activemq import Connection, ConnectionFactory
from tests.activemq.openwire.real import BUILD, RealBroker, class_path

ROUNDS, WARM_UP = 5, 5
SIZE = 1024
BODY = bytes(SIZE)
RELEASE = "5.18.6"
REAL, CLIENT = f"ActiveMQ {RELEASE}", f"activemq-client {RELEASE}"
PAIRS = (1, 8)
# A JVM of a broker that serves for long compiles with both of its compilers.
COMPILERS = ("-XX:TieredStopAtLevel=4",)
queues = count()
Answer = dict[str, float]
# What passes -> whether each send waits for the broker, messages of a repetition.
KINDS = {"persistent, each send answered": (True, 4000), "non-persistent, no send answered": (False, 8000)}


def traffic() -> Jvm:
    """The Java client in a JVM of its own."""
    class_path(RELEASE)
    where = BUILD / RELEASE
    return Jvm(
        "Traffic",
        heap="400m",
        path=harness(SOURCES / "openwire", where / "jars", where / "bench-classes", "activemq-broker"),
    )


@contextlib.contextmanager
def ours() -> Iterator[tuple[int, str]]:
    """Our broker in a process of its own: its process and its address."""
    with subprocess.Popen(
        [sys.executable, "-m", "pyengine", "serve", "activemq", "--listen", "tcp://127.0.0.1:0"],
        stdout=subprocess.PIPE, text=True, cwd=SOURCES.parent.parent,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            yield process.pid, f"tcp://127.0.0.1:{process.stdout.readline().rpartition(':')[2].strip()}"
        finally:
            process.terminate()


def asked(jvm: Jvm, op: str, url: str, queue: str, messages: int, **request: object) -> Answer:
    """What one run of the Java client showed; its number of messages is asserted. client: CPU seconds a message."""
    reply = jvm.ask(op, url=url, queue=queue, count=messages, size=SIZE, **request)
    assert reply["count"] == messages, f"{op}: {reply['count']} of {messages} messages"
    found = {name: float(str(value)) for name, value in reply.items()}
    return found | {"client": found["nanoseconds"] * 1e-9 / messages}


def row(question: str, rival: str, ours: list[float], theirs: list[float], goal: float | None) -> Row:
    return Row(
        question, "message", rival, min(ours), statistics.median(ours), min(theirs), statistics.median(theirs), goal
    )


# Our broker


def broker_rows(jvm: Jvm, sides: dict[str, tuple[int, str]]) -> Iterator[Row]:
    """What the same client sees of both brokers, and what it costs them."""
    for kind, (persistent, messages) in KINDS.items():
        for pairs in PAIRS:
            found: dict[str, list[Answer]] = {side: [] for side in sides}
            for number in range(WARM_UP + ROUNDS):
                for side, (process, url) in sides.items():
                    before = spent_by(process)
                    queue = f"bench-{next(queues)}"
                    answer = asked(jvm, "pass", url, queue, messages, pairs=pairs, persistent=persistent)
                    if number >= WARM_UP:
                        found[side].append(answer | {"cpu": (spent_by(process) - before) / messages})
            many = "1 producer, 1 consumer" if pairs == 1 else f"{pairs} producers, {pairs} consumers"
            shown = {"cpu": "CPU of the broker"}
            if persistent:
                shown |= {
                    "send50": "latency of a send, p50", "send99": "latency of a send, p99",
                    "arrival50": "from send to listener, p50", "arrival99": "from send to listener, p99",
                }  # fmt: skip
            for key, label in shown.items():
                mine, theirs = ([answer[key] for answer in found[side]] for side in ("ours", "real"))
                yield row(
                    f"Java client, {many}, {kind}, 1 KB: {label}", REAL, mine, theirs, 0.7 if key == "cpu" else None
                )


# Our client


def send(connection: Connection, queue: str, messages: int, mode: str) -> int:
    session = connection.create_session()
    with session.create_producer(queue) as producer:
        producer.delivery_mode = mode
        for number in range(messages):
            producer.send(Message({"number": number, "color": "red"}, body=BODY))
    return messages


def receive(connection: Connection, queue: str, messages: int) -> int:
    consumer = connection.create_session().create_consumer(queue)
    found = 0
    while found < messages:
        message = consumer.receive(20.0)
        assert message is not None, f"{found} of {messages} messages"
        found += len(message.body) == SIZE
    return found


def measured(url: str, call: Callable[[Connection], int], messages: int) -> float:
    """CPU seconds a message of our client, with its connection."""
    before = time.process_time()
    with ConnectionFactory(url).create_connection() as connection:
        connection.start()
        assert call(connection) == messages
    return (time.process_time() - before) / messages


def client_rows(jvm: Jvm, url: str) -> Iterator[Row]:
    """Our client beside the Java client, on the real broker."""
    messages = 10_000
    found: dict[str, tuple[list[float], list[float]]] = {}
    for number in range(WARM_UP + ROUNDS):
        for mode, label in (
            ("NON_PERSISTENT", "a send that waits for no answer"), ("PERSISTENT", "a send that waits for its answer"),
        ):  # fmt: skip
            ours, theirs = f"bench-{next(queues)}", f"bench-{next(queues)}"
            mine = measured(
                url, lambda connection, to=ours, mode=mode: send(connection, to, messages, mode), messages  # type: ignore[misc]
            )  # fmt: skip
            real = asked(jvm, "send", url, theirs, messages, persistent=mode == "PERSISTENT")["client"]
            if number >= WARM_UP:
                for each, value in zip(found.setdefault(label, ([], [])), (mine, real), strict=True):
                    each.append(value)
            # Each takes what the other one sent.
            mine = measured(url, lambda connection, of=theirs: receive(connection, of, messages), messages)  # type: ignore[misc]
            real = asked(jvm, "receive", url, ours, messages)["client"]
            if number >= WARM_UP and mode == "PERSISTENT":
                for each, value in zip(found.setdefault("a receive", ([], [])), (mine, real), strict=True):
                    each.append(value)
    for label, (mine_all, real_all) in found.items():
        yield row(f"our client on {REAL}, {label}, 1 KB: CPU of the client", CLIENT, mine_all, real_all, 1 / 1.5)


def rows() -> Iterator[Row]:
    """All of them, or why they cannot be measured."""
    with tempfile.TemporaryDirectory() as home, contextlib.ExitStack() as stack:
        try:
            real = RealBroker(RELEASE, Path(home) / "jvm.log", options=COMPILERS)
            stack.callback(real.close)
            jvm = traffic()
            stack.callback(jvm.close)
        except RivalMissingError as reason:
            yield Row("OpenWire over TCP", "message", REAL, 0.0, 0.0, None, None, note=str(reason))
            return
        with ours() as side:
            yield from broker_rows(jvm, {"ours": side, "real": (real.process_id, real.url)})
        yield from client_rows(jvm, real.url)
