"""stomp: our broker beside the real one under the same programs of stomp.py and go-stomp.

CPU rows are CPU time of the whole process of the broker, a message; latency and time rows are what the clock on the
wall showed the client. Both brokers are in memory and warm: what they answer is asserted in repetitions that do not
count. It needs Java, Maven and ActiveMQ from Maven Central, and Go.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import stomp

from bench.bench_remoting import spent_by
from bench.contest import RivalMissingError, Row
from tests.activemq.stomp.real import BUILD, RealBroker

ROUNDS, WARM_UP = 5, 5
SIZE = 1024
BODY = bytes(SIZE)
RELEASE = "5.18.6"
REAL = f"ActiveMQ {RELEASE}"
HERE = Path(__file__).parent
queues = count()
# What a program does -> its messages, what the rows call it.
PROGRAMS = {"send": (4000, "a send and its receipt"), "pass": (10_000, "a send without receipt, consumed meanwhile")}
Answer = dict[str, float]
Program = Callable[[str, int, str, int], Answer]


class Listener(stomp.ConnectionListener):  # type: ignore[misc]
    """Counts what comes. wanted: messages after which ``all`` is set."""

    def __init__(self, wanted: int = 0) -> None:
        self.count = 0
        self.wanted = wanted
        self.all = threading.Event()
        self.receipt = threading.Event()

    def on_message(self, frame: Any) -> None:
        self.count += len(frame.body) == SIZE
        if self.count == self.wanted:
            self.all.set()

    def on_receipt(self, frame: Any) -> None:
        self.receipt.set()


@contextlib.contextmanager
def connected(port: int, listener: Listener) -> Iterator[Any]:
    connection = stomp.Connection12([("127.0.0.1", port)], auto_decode=False)
    connection.set_listener("bench", listener)
    connection.connect(wait=True)
    yield connection
    connection.disconnect()


def stomp_py(op: str, port: int, queue: str, messages: int) -> Answer:
    """The programs with stomp.py, in this process."""
    listener = Listener(messages)
    with connected(port, listener) as to:
        if op == "send":
            spent = []
            began = time.perf_counter()
            for number in range(messages):
                sent = time.perf_counter()
                listener.receipt.clear()
                to.send(queue, BODY, receipt=str(number))
                assert listener.receipt.wait(10)
                spent.append(time.perf_counter() - sent)
            seconds = time.perf_counter() - began
            spent.sort()
            return {
                "count": len(spent), "seconds": seconds,
                "p50": spent[len(spent) // 2], "p99": spent[len(spent) * 99 // 100],
            }  # fmt: skip
        to.subscribe(queue, id="1", ack="auto")
        with connected(port, Listener()) as from_:
            began = time.perf_counter()
            for _ in range(messages):
                from_.send(queue, BODY)
            assert listener.all.wait(60), f"{listener.count} of {messages} messages"
            return {"count": listener.count, "seconds": time.perf_counter() - began}


@contextlib.contextmanager
def go_stomp() -> Iterator[Program]:
    """The same with go-stomp, in a process of its own. Raises RivalMissingError."""
    if shutil.which("go") is None:
        raise RivalMissingError("no go on PATH")
    program = BUILD / "traffic-go"
    subprocess.run(["go", "build", "-o", program, "."], cwd=HERE / "go" / "stomp", check=True, timeout=600)
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asks, answers = process.stdin, process.stdout

        def ask(op: str, port: int, queue: str, messages: int) -> Answer:
            print(
                json.dumps({"op": op, "port": port, "queue": queue, "count": messages, "size": SIZE}),
                file=asks, flush=True,
            )  # fmt: skip
            found: Answer = json.loads(answers.readline())
            return found

        yield ask
        asks.close()


@contextlib.contextmanager
def ours() -> Iterator[tuple[int, int]]:
    """Our broker in a process of its own: its process and its port."""
    with subprocess.Popen(
        [sys.executable, "-m", "pyengine", "serve", "activemq", "--listen", "stomp://127.0.0.1:0"],
        stdout=subprocess.PIPE, text=True, cwd=HERE.parent,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            yield process.pid, int(process.stdout.readline().rpartition(":")[2])
        finally:
            process.terminate()


def asked(program: Program, op: str, process: int, port: int) -> Answer:
    """What one run showed; its number of messages is asserted. cpu: seconds a message of the broker."""
    messages = PROGRAMS[op][0]
    before = spent_by(process)
    found = program(op, port, f"/queue/bench-{next(queues)}", messages)
    assert found["count"] == messages, f"{op}: {found['count']} of {messages} messages"
    return {**found, "cpu": (spent_by(process) - before) / messages, "time": found["seconds"] / messages}


def rows_of(client: str, program: Program, sides: dict[str, tuple[int, int]]) -> Iterator[Row]:
    """What a client sees, and what it costs the brokers."""
    for op, (_, what) in PROGRAMS.items():
        found: dict[str, list[Answer]] = {side: [] for side in sides}
        for number in range(WARM_UP + ROUNDS):
            for side, (process, port) in sides.items():
                answer = asked(program, op, process, port)
                if number >= WARM_UP:
                    found[side].append(answer)
        kinds = {"cpu": ("CPU of the broker", 1.0), "time": ("time", 0.5)}
        if op == "send":
            kinds |= {"p50": ("latency, p50", None), "p99": ("latency, p99", None)}  # type: ignore[dict-item]
        for kind, (label, goal) in kinds.items():
            mine, theirs = ([answer[kind] for answer in found[side]] for side in ("ours", "real"))
            yield Row(
                f"{client}, {what}, 1 KB: {label}", "message", REAL, min(mine), statistics.median(mine),
                min(theirs), statistics.median(theirs), goal,
            )  # fmt: skip


def rows() -> Iterator[Row]:
    """All of them; those that need the real broker, or Go, state why they cannot be measured."""
    with tempfile.TemporaryDirectory() as home, contextlib.ExitStack() as stack:
        try:
            real = RealBroker(RELEASE, Path(home) / "jvm.log")
        except RivalMissingError as reason:
            yield Row("STOMP over TCP", "message", REAL, 0.0, 0.0, None, None, note=str(reason))
            return
        stack.callback(real.close)
        sides = {"ours": stack.enter_context(ours()), "real": (real.process_id, real.port)}
        yield from rows_of("stomp.py", stomp_py, sides)
        try:
            go = stack.enter_context(go_stomp())
        except RivalMissingError as reason:
            yield Row("go-stomp over TCP", "message", REAL, 0.0, 0.0, None, None, note=str(reason))
            return
        yield from rows_of("go-stomp", go, sides)
