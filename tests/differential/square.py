"""``python -m tests.differential.square``: one random script with our client on both brokers: embedded, over OpenWire
in memory, over TCP on ours, and over TCP on the real one. Exit code 1 if where it is played makes a difference.

Compared is what a client sees: what it is given and when, what it receives and browses, and errors. With
``python -m tests.differential``, which plays such scripts with the real client on the real broker, this is the square.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from pyengine import activemq
from pyengine.activemq.transport.commands import MessageDispatch
from tests.activemq.openwire.real import RealBroker
from tests.conformance.activemq_scenarios import Replay, Step
from tests.differential.over_wire import WireReplay
from tests.differential.scripts import scripts

SHOWN = ("dispatched", "received", "browsed", "error")
# What only the embedded broker's program does, and what takes time.
LEFT_OUT = ("pause", "resume", "purge", "expire", "removeGroup", "restart", "sleep")
KINDS = ("queue", "topic", "sessions")
PATIENCE = (0.015, 0.08, 0.4)  # seconds without an event after which a step is over, at each try
numbers = count(1)


class NetworkReplay(Replay):
    """A scenario whose clients are at a broker of the network. quiet: seconds without an event after each step."""

    def __init__(self, case: dict[str, Any], url: str, quiet: float) -> None:
        self.url = url
        self.pause = quiet
        super().__init__(case)

    def start(self) -> None:
        """The broker runs."""

    def factory(self, options: str) -> activemq.ConnectionFactory:
        return activemq.ConnectionFactory(f"{self.url}?{options}", unknown_options=activemq.UnknownOptions.IGNORE)

    def connect(self, factory: activemq.ConnectionFactory, client_id: str | None) -> activemq.Connection:
        found = factory.create_connection(client_id)
        transport: Any = found.transport
        hand_over = transport._hand_over

        def watched(dispatch: MessageDispatch) -> None:
            self.see(dispatch)
            hand_over(dispatch)

        transport._hand_over = watched
        return found

    def step_recv(self, step: Step) -> dict[str, Any]:
        return super().step_recv(step | {"timeout": min(step.get("timeout", 2000), 1000 * self.pause + 100)})

    def order(self, step: Step) -> None:
        """The broker's own."""

    def settle(self) -> None:
        quiet = time.monotonic() + self.pause
        while time.monotonic() < quiet:
            before = self.events
            time.sleep(self.pause / 4)
            if self.events != before:
                quiet = time.monotonic() + self.pause

    def close(self) -> None:
        for connection in self.connections.values():
            connection.close()


def resolved(player: Replay, step: Step) -> Step:
    """An acknowledgement of one of the last messages that are not settled, by its number; empty: there is none."""
    if step["op"] != "ack":
        return step
    left = list(player.clients[step["name"]].received)
    return step | {"n": left[(-step["n"] - 1) % len(left)]} if left else {}


def settle(player: Replay, step: Step) -> None:
    """Forget what a step has settled."""
    client = player.clients.get(step.get("name", ""))
    if client is None or step["op"] not in ("ack", "commit", "rollback", "recover"):
        return
    if step["op"] == "ack" and client.session.acknowledge_mode is activemq.INDIVIDUAL_ACKNOWLEDGE:
        client.received.pop(step["n"], None)
        return
    for each in player.clients.values():
        if each.session is client.session:
            each.received.clear()


def seen(player: Replay, steps: list[Step]) -> list[dict[str, Any]]:
    """What each step shows. The order of two consumers is chance, so that each has its own; a consumer that a step
    closes is given nothing more that a client of the network sees."""
    try:
        found = []
        for step in steps:
            step = resolved(player, step)
            shown = player.step(step) if step else {}
            settle(player, step)
            shown = {key: shown[key] for key in SHOWN if key in shown}
            if "dispatched" in shown:
                kept = [entry for entry in shown["dispatched"] if not player.clients[entry["to"]].consumer.closed]
                shown["dispatched"] = sorted(kept, key=lambda entry: str(entry["to"]))
                if not kept:
                    del shown["dispatched"]
            found.append(shown)
        return found
    finally:
        player.close()


def asked(script: dict[str, Any]) -> dict[str, Any]:
    """The script as every broker can play it, on a destination of its own."""
    number = next(numbers)
    steps = []
    for step in script["steps"]:
        if step["op"] in LEFT_OUT:
            continue
        step = {key: value for key, value in step.items() if key != "optimizeAcknowledge"}
        for key in ("to", "dest"):
            if key in step:
                step[key] = f"S{number}.{step[key]}"
        steps.append(step)
    case = {"policy": {}, "quiet": 0, "release": "newest", "destName": f"S{number}.Q.1", "steps": steps}
    return case | {key: script[key] for key in ("dest",) if key in script}


def compare(script: dict[str, Any], urls: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
    """Corner -> what it shows, if they differ at each try; else nothing."""
    for quiet in PATIENCE:
        case = asked(script)
        found = {"embedded": seen(Replay(case), case["steps"]), "over OpenWire": seen(WireReplay(case), case["steps"])}
        found |= {name: seen(NetworkReplay(case, url, quiet), case["steps"]) for name, url in urls.items()}
        if all(each == found["embedded"] for each in found.values()):
            return {}
    return found


def play(kind: str, number: int, first_seed: int, urls: dict[str, str]) -> Counter[str]:
    """Play so many scripts; what differs is printed."""
    counts: Counter[str] = Counter()

    @seed(first_seed)
    @settings(max_examples=number, deadline=None, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(scripts(kind=kind))
    def one(script: dict[str, Any]) -> None:
        found = compare(script, urls)
        counts["differ" if found else "agree"] += 1
        if found:
            steps = asked(script)["steps"]
            print(f"{kind}:")
            for place, step in enumerate(steps):
                shown = {name: each[place] for name, each in found.items()}
                odd = any(each != shown["embedded"] for each in shown.values())
                print(f"  {place}: {step}" + (f"\n    {shown}" if odd else ""), flush=True)

    one()
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.square", description=__doc__)
    parser.add_argument("--scripts", type=int, default=100, help="how many of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=KINDS)
    chosen = parser.parse_args()
    differ = 0
    with (
        TemporaryDirectory() as folder,
        activemq.Broker(name="square", transport_connectors=["tcp://127.0.0.1:0"]) as broker,
    ):
        real = RealBroker("5.18.6", Path(folder) / "broker.log")
        try:
            urls = {"ours over TCP": broker.transport_connectors[0].url, "the real one over TCP": real.url}
            for kind in chosen.kinds:
                counts = play(kind, chosen.scripts, chosen.seed, urls)
                print(f"{kind}:", ", ".join(f"{number} {what}" for what, number in counts.items()), flush=True)
                differ += counts["differ"]
        finally:
            real.close()
    return 1 if differ else 0


if __name__ == "__main__":
    raise SystemExit(main())
