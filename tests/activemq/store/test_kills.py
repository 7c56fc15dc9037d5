"""A broker killed with SIGKILL at any moment: its store has every command that returned, and no half of one."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import deque

import pytest

from pyengine.activemq import AckKind, Broker
from pyengine.clock import ManualClock
from pyengine.topology.policy import Policy
from tests.activemq.wire import Wire

KILLS = int(os.environ.get("PYENGINE_KILLS", "40"))
POLICIES = [Policy(">", max_page_size=3, expire_messages_period=0)]


def open_broker(folder):
    return Broker(folder, name="killed", clock=ManualClock(), policies=POLICIES, cursor_limit=6)


class Script:
    """Commands picked at random; each is noted before it is given and after it has returned."""

    def __init__(self, broker, journal, seed):
        self.broker = broker
        self.journal = journal
        self.random = random.Random(seed)
        self.seed = seed
        self.held = {"q": deque(), "sub": deque(), "slow": deque()}
        self.wire = Wire(broker, client_id="client")
        self.wire._sent = seed * 1_000_000
        self.sent = 0
        self.wire.consume("a", "q", prefetch=4)
        self.wire.consume("sub", "topic://T", prefetch=4, subscription_name="sub")
        self.wire.consume("slow", "topic://T", prefetch=1, subscription_name="slow")

    def note(self, *what):
        os.write(self.journal, (json.dumps(what) + "\n").encode())

    def body(self):
        self.sent += 1
        return f"{self.seed}.{self.sent}"

    def step(self):
        for consumer, body in self.wire.taken():
            self.held[{"a": "q"}.get(consumer, consumer)].append(body)
        choice, queue = self.random.random(), self.held["q"]
        durable = self.random.choice(("sub", "sub", "slow"))
        if choice < 0.15:
            new = [self.body()]
            self.note("begin", {"sub": new, "slow": new}, {})
            self.wire.send("topic://T", *new)
        elif choice < 0.28 and self.held[durable]:
            done = self.held[durable].popleft()
            self.note("begin", {}, {durable: [done]})
            self.wire.acknowledge(durable, done)
        elif choice < 0.29:
            self.broker.remove_consumer("slow")
            self.note("begin", {}, {"slow": None})
            self.broker.remove_subscription("client", "slow")
            self.held["slow"].clear()
            self.wire.consume("slow", "topic://T", prefetch=1, subscription_name="slow")
        elif choice < 0.45 or not queue:
            new = [self.body()]
            self.note("begin", {"q": new}, {})
            self.wire.send("q", *new)
        elif choice < 0.6:
            new, done = {"q": [self.body()], "other": [self.body(), self.body()]}, queue.popleft()
            self.note("begin", new, {"q": [done]})
            self.broker.begin("wire", "TX")
            self.wire.acknowledge("a", done, AckKind.INDIVIDUAL, transaction_id="TX")
            for queue, texts in new.items():
                self.wire.send(queue, *texts, transaction="TX")
            self.broker.commit("TX")
        elif choice < 0.75:
            done = queue.popleft()
            self.note("begin", {"ActiveMQ.DLQ": [done]}, {"q": [done]})
            self.wire.acknowledge("a", done, AckKind.POISON)
        else:
            done = queue.popleft()
            self.note("begin", {}, {"q": [done]})
            self.wire.acknowledge("a", done, failed=None if choice < 0.9 else refuse)
        self.note("end")


def refuse(error):
    raise error


def child(folder, journal, seed):
    """Runs until it is killed."""
    try:
        script = Script(open_broker(folder), journal, seed)
        script.note("ready")
        while True:
            script.step()
    except BaseException as error:
        os.write(journal, (json.dumps(["failed", repr(error)]) + "\n").encode())
    finally:
        os._exit(1)


def apply(state, new, done):
    changed = {
        queue: [] if done.get(queue, ()) is None else [body for body in bodies if body not in done.get(queue, ())]
        for queue, bodies in state.items()
    }
    for queue, bodies in new.items():
        changed.setdefault(queue, []).extend(bodies)
    return {queue: bodies for queue, bodies in changed.items() if bodies}


def found(folder):
    with open_broker(folder) as broker:
        names = [destination.name for destination in broker.destinations() if destination.kind == "queue"]
        state = {name: [message.body for message in broker.browse(name)] for name in names}
        wire = Wire(broker, client_id="client")
        for name in ("sub", "slow"):
            wire.consume(name, "topic://T", prefetch=1_000_000, subscription_name=name)
            state[name] = [body for _, body in wire.taken()]
        assert broker.view("topic://T").queue_size == len({*state["sub"], *state["slow"]})
    return {queue: bodies for queue, bodies in state.items() if bodies}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.skipif(sys.platform == "darwin", reason="forking is not safe there")
def test_kills_lose_nothing_and_bring_nothing_back(tmp_path):
    delays = random.Random(20)
    state: dict[str, list[str]] = {}
    commands = 0
    for seed in range(1, KILLS + 1):
        path = tmp_path / "journal"
        journal = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND)
        process = os.fork()
        if process == 0:
            child(tmp_path / "data", journal, seed)
        os.close(journal)
        limit = time.monotonic() + 30
        while path.stat().st_size == 0 and time.monotonic() < limit:
            time.sleep(0.001)
        time.sleep(delays.random() * 0.05)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        lines = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("]")]
        assert lines[0] == ["ready"], lines[0]
        possible = [state]
        for line in lines[1:]:
            assert line[0] in ("begin", "end"), line
            if line[0] == "begin":
                possible = [possible[-1], apply(possible[-1], line[1], line[2])]
                commands += 1
            else:
                possible = [possible[-1]]
        state = found(tmp_path / "data")
        assert state in possible, f"after kill {seed}"
    assert commands > KILLS
