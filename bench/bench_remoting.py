"""remoting: RocketMQ over the wire: our client beside the Java client on one real broker, and our server beside a real
one under the same Java client.

Times are CPU time of the whole process that is measured: of the client, or of the server; those of a start and of a
send's latency go by the wall. Both JVMs are warm: what they answer is asserted in repetitions that do not count. The
real broker needs Java, Maven and RocketMQ from Maven Central.
"""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from bench.contest import RivalMissingError, Row
from bench.jvm import BUILD, SOURCES, Jvm, harness
from bench.latency import PERCENTILES, percentile
from pyengine import rocketmq
from pyengine._engine.rocketmq.commands.bodies import write_body
from pyengine._engine.wire.remoting import RemotingCommand, write_command
from pyengine.rocketmq import Message, MessageQueue
from pyengine.rocketmq.remoting.mq_client_api import PullMessageRequest, PullResult
from tests.rocketmq.live.real import Real
from tests.rocketmq.live.scripts import start

ROUNDS, WARM_UP = 5, 6
SIZE = 1024
TOPIC = "One"
BODY = bytes(SIZE)
GROUPS, MEMBERS = 200, 50
STARTS = 7
SERVER = """
import logging, resource, sys
logging.getLogger("pyengine").setLevel(logging.ERROR)
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
from pyengine import rocketmq
with rocketmq.Broker(listen="127.0.0.1:0") as broker:
    broker.create_topic("One", 4)
    print(broker.name_server_address, *broker.broker_addresses, sep="\\n", flush=True)
    sys.stdin.read()
"""
groups = count()


def spent_by(process: int) -> float:
    """CPU seconds of a process until now."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def traffic() -> Jvm:
    """The Java client in a JVM of its own."""
    path = harness(SOURCES / "remoting", BUILD / "rocketmq-jars", BUILD / "remoting-classes", "rocketmq-client")
    return Jvm("Traffic", heap="400m", path=path)


def asked(jvm: Jvm, op: str, messages: int, **request: object) -> float:
    """CPU seconds a message of the Java client; the number of messages is asserted."""
    reply = jvm.ask(op, topic=TOPIC, count=messages, size=SIZE, **request)
    assert reply["count"] == messages, f"{op}: {reply['count']} of {messages} messages"
    return float(str(reply["nanoseconds"])) * 1e-9 / messages


def row(question: str, rival: str, ours: list[float], theirs: list[float], goal: float) -> Row:
    return Row(
        question, "message", rival, min(ours), statistics.median(ours), min(theirs), statistics.median(theirs), goal
    )


# Our client


class OurClient:
    """What the Java client does, by ours. names: the real cluster's name server."""

    def __init__(self, names: str) -> None:
        self.producer = rocketmq.Producer(namesrv_addr=names)
        self.queue = MessageQueue(TOPIC, "broker-a", 0)

    def send(self, messages: int) -> int:
        stored = [self.producer.send(Message(TOPIC, BODY)).status for _ in range(messages)]
        return stored.count(rocketmq.SendStatus.SEND_OK)

    def one_way(self, messages: int) -> int:
        for _ in range(messages - 1):
            self.producer.send_one_way(Message(TOPIC, BODY), queue=self.queue)
        self.producer.send(Message(TOPIC, BODY), queue=self.queue)
        return messages

    def batch(self, messages: int) -> int:
        stored = 0
        for _ in range(0, messages, 32):
            found = self.producer.send_batch([Message(TOPIC, BODY) for _ in range(32)])
            stored += len(found.offset_msg_id.split(","))
        return stored

    def pull(self, messages: int) -> int:
        found, at = 0, 0
        while found < messages:
            answers: list[PullResult | Exception] = []
            came = threading.Event()

            def answered(
                result: PullResult | Exception,
                answers: list[PullResult | Exception] = answers,
                came: threading.Event = came,
            ) -> None:
                answers.append(result)
                came.set()

            wanted = PullMessageRequest("ours", "pullers", self.queue, at, 32, 2**31 - 1, 4, 0, 0, sub_expression="*")
            self.producer.broker.pull_message(wanted, answered)
            came.wait()
            (result,) = answers
            assert isinstance(result, PullResult), result
            found += sum(len(message.body or b"") == SIZE for message in result.messages)
            at = result.next_begin_offset
        return found


def measured(call: Callable[[int], int], messages: int) -> float:
    before = time.process_time()
    assert call(messages) == messages
    return (time.process_time() - before) / messages


def client_rows(names: str) -> Iterator[Row]:
    """Our client beside the Java client."""
    java, ours = traffic(), OurClient(names)
    java.ask("start", names=names)
    try:
        for what, op, call, messages, goal, more in (
            ("send and its answer", "send", ours.send, 4000, 0.5, {"threads": 1}),
            ("one-way send", "oneWay", ours.one_way, 8000, 1.0, {}),
            ("send of 32 in a batch", "batch", ours.batch, 32_000, 1.0, {}),
            ("pull of 32 messages", "pull", ours.pull, 16_000, 1.0, {}),
        ):
            for _ in range(WARM_UP):
                asked(java, op, messages, **more)
            measured(call, 320)
            mine, theirs = [], []
            for _ in range(ROUNDS):
                mine.append(measured(call, messages))
                theirs.append(asked(java, op, messages, **more))
            question = f"{what}, 1 KB a message, on the real broker 5.3.3: CPU of the client"
            yield row(question, "RocketMQ's Java client", mine, theirs, goal)
        yield from latency_rows(java, ours)
    finally:
        ours.producer.shutdown()
        java.close()


def timed_sends(producer: rocketmq.Producer, messages: int) -> list[int]:
    """Nanoseconds of each send, by the wall."""
    spent = []
    for _ in range(messages):
        before = time.perf_counter_ns()
        producer.send(Message(TOPIC, BODY))
        spent.append(time.perf_counter_ns() - before)
    return spent


def latency_rows(java: Jvm, ours: OurClient) -> Iterator[Row]:
    """How long a send takes until its answer is there; the best of the rounds, and their median."""
    mine: dict[str, list[float]] = {"p50": [], "p99": []}
    theirs: dict[str, list[float]] = {"p50": [], "p99": []}
    for _ in range(ROUNDS):
        spent = timed_sends(ours.producer, 1000)
        reply = java.ask("latency", topic=TOPIC, count=1000, size=SIZE)
        for name in mine:
            mine[name].append(percentile(spent, PERCENTILES[name]))
            theirs[name].append(float(str(reply[name])) * 1e-9)
    for name in mine:
        question = f"send and its answer, 1 KB a message, on the real broker 5.3.3: {name}, wall time"
        yield row(question, "RocketMQ's Java client", mine[name], theirs[name], 0.5)


# Our server


def start_rows() -> Iterator[Row]:
    """How soon a cluster is there: for a shell, and within a program."""
    command = [sys.executable, "-m", "pyengine", "serve", "rocketmq", "--listen", "127.0.0.1:0"]
    shell, program = [], []
    for _ in range(STARTS):
        before = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(2)]
            shell.append(time.perf_counter() - before)
            process.terminate()
        assert [line.split()[0] for line in lines] == ["name", "broker"], lines
        before = time.perf_counter()
        with rocketmq.Broker(listen="127.0.0.1:0") as broker:
            with rocketmq.Cluster(broker.name_server_address or "") as cluster:
                assert cluster.cluster_info()["brokerAddrTable"]
            program.append(time.perf_counter() - before)
    for what, spent, most in (
        ("pyengine serve rocketmq, until it has printed its addresses: wall time", shell, 0.5),
        ("Broker(listen=...), until it has answered a client: wall time", program, 0.05),
    ):
        yield Row(what, "start", "", min(spent), statistics.median(spent), None, None, at_most=most)


def server_rows(names: str, real: int) -> Iterator[Row]:
    """Our server beside the real broker. real: the process of that one."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        own = process.stdout.readline().strip()
        sides = {"ours": (own, process.pid, traffic()), "real": (names, real, traffic())}
        try:
            for address, _, jvm in sides.values():
                jvm.ask("start", names=address)
            for what, op, messages, more in (
                ("1 producer that waits for each answer", "send", 6000, {"threads": 1}),
                ("8 producers that wait for each answer", "send", 16_000, {"threads": 8}),
                ("10 consumers", "consume", 16_000, {"consumers": 10}),
            ):
                spent: dict[str, list[float]] = {"ours": [], "real": []}
                for number in range(WARM_UP + ROUNDS):
                    for side, (address, pid, jvm) in sides.items():
                        before = spent_by(pid)
                        asked(jvm, op, messages, names=address, group=f"group-{next(groups)}", **more)
                        if number >= WARM_UP:
                            spent[side].append((spent_by(pid) - before) / messages)
                question = f"the Java client, {what}, 1 KB a message: CPU of the server"
                yield row(question, "RocketMQ's broker 5.3.3", spent["ours"], spent["real"], 0.7)
        finally:
            for _, _, jvm in sides.values():
                jvm.close()
            assert process.stdin is not None
            process.stdin.close()


# Many members


def resident(process: int) -> int:
    """Bytes of memory of a process."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()


def heartbeat(group: int, member: int) -> bytes:
    """The frame of a member's heartbeat."""
    wanted = [{"topic": topic, "subString": "*", "subVersion": 1} for topic in (TOPIC, f"%RETRY%group-{group}")]
    data = {
        "groupName": f"group-{group}", "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "subscriptionDataSet": wanted,
    }  # fmt: skip
    body = write_body("HeartbeatData", {"clientID": f"10.0.0.{member}@{group}", "consumerDataSet": [data]})
    return write_command(RemotingCommand(34, version=479, ext_fields={}, body=body))


class Members:
    """The connections of GROUPS groups of MEMBERS members each, here, to the brokers of another process."""

    def __init__(self, address: str, process: int) -> None:
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        self._process = process
        self._selector = selectors.DefaultSelector()
        host, _, port = address.rpartition(":")
        self.all: list[tuple[socket.socket, int, int]] = []
        for number in range(GROUPS * MEMBERS):
            made = socket.create_connection((host, int(port)))
            self._selector.register(made, selectors.EVENT_READ)
            self.all.append((made, number // MEMBERS, number % MEMBERS))

    def say(self, frame: Callable[[int, int], bytes]) -> float:
        """CPU seconds that the server takes to answer a frame of each member; every member gets an answer."""
        before, answered = spent_by(self._process), set()
        for number, (member, group, place) in enumerate(self.all):
            member.sendall(frame(group, place))
            if number % 200 == 199:
                answered |= self._read(0.0)
        deadline = time.monotonic() + 60
        while len(answered) < len(self.all) and time.monotonic() < deadline:
            answered |= self._read(0.5)
        assert len(answered) == len(self.all), f"{len(answered)} of {len(self.all)} members were answered"
        return spent_by(self._process) - before

    def _read(self, patience: float) -> set[int]:
        found = set()
        while ready := self._selector.select(patience):
            for key, _ in ready:
                assert isinstance(key.fileobj, socket.socket)
                key.fileobj.recv(1 << 16)
                found.add(key.fd)
        return found

    def close(self) -> None:
        for member, _, _ in self.all:
            member.close()
        self._selector.close()


def group_rows() -> Iterator[Row]:
    """What many members cost a server over a minute: two heartbeats each, and one rebalance of all."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        empty = resident(process.pid)
        members = Members(process.stdout.readline().strip(), process.pid)
        try:
            members.say(heartbeat)
            spent = sum(members.say(heartbeat) for _ in range(2))
            spent += members.say(
                lambda group, member: b"".join(
                    write_command(RemotingCommand(38, version=479, ext_fields={"consumerGroup": f"group-{group}"}))
                    for _ in (TOPIC, "its retries")
                )
            )
            held = (resident(process.pid) - empty) / len(members.all)
        finally:
            members.close()
            process.stdin.close()
        what = f"{GROUPS} groups of {MEMBERS} members on our server"
        yield Row(f"{what}, heartbeats and a rebalance of all", "minute", "", spent, spent, None, None, at_most=15.0)
        yield Row(f"{what}, memory", "connection", "", held, held, None, None, at_most=30_000, bytes=True)


# Inside one process


def embedded_rows() -> Iterator[Row]:
    """Sends to an embedded broker through the calls that users make."""
    with rocketmq.Broker() as broker:
        broker.create_topic("orders", 4)
        producer = rocketmq.Producer(broker)
        body = bytes(100)

        def send() -> int:
            for _ in range(5000):
                producer.send(Message("orders", body))
            return 5000

        def batch() -> int:
            for _ in range(200):
                producer.send_batch([Message("orders", body) for _ in range(32)])
            return 6400

        for what, call, at_most in (
            ("Producer.send to an embedded broker", send, 6e-6),
            ("Producer.send_batch of 32", batch, 1.5e-6),
        ):
            times = []
            for _ in range(ROUNDS):
                stored = len(broker.nodes["broker-a"].store.consume_queue("orders", 0))
                before = time.process_time()
                messages = call()
                times.append((time.process_time() - before) / messages)
                assert len(broker.nodes["broker-a"].store.consume_queue("orders", 0)) > stored
            yield Row(what, "message", "", min(times), statistics.median(times), None, None, at_most=at_most)


def rows() -> Iterator[Row]:
    """All of them; those that need the real broker say why they cannot be measured."""
    yield from embedded_rows()
    yield from start_rows()
    yield from group_rows()
    with tempfile.TemporaryDirectory() as home, contextlib.ExitStack() as stack:
        folder = Path(home)
        try:
            real = Real(folder, compiled=True)
        except RivalMissingError as reason:
            yield Row("RocketMQ over TCP", "message", "RocketMQ 5.3.3", 0.0, 0.0, None, None, note=str(reason))
            return
        stack.callback(real.close)
        names = start(real, folder, folder / "store")
        with rocketmq.Producer(namesrv_addr=names) as producer:
            while True:
                with contextlib.suppress(rocketmq.MQClientError):  # until the broker has registered
                    producer.send(Message(TOPIC, BODY))
                    break
                time.sleep(0.2)
        yield from client_rows(names)
        yield from server_rows(names, real.pid)
