"""The real broker: one JVM with java/RealBroker.java, its jars fetched by Maven coordinates (java/pom.xml)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.contest import RivalMissingError
from bench.jvm import Jvm, harness

SOURCES = Path(__file__).parent / "java"
BUILD = SOURCES.parents[2] / "build" / "differential"
ANSWERS = ("dispatched", "received", "browsed", "matched", "error", "other")
# Of a connection that goes: the consumers as they were removed, by the hash codes of their sessions. Not compared: ours
# goes the same way.
ORDER = "order"
# A killed connection ends in threads of its own: now and then the real client refuses what comes next.
ATTEMPTS = 3


class RealBroker:
    """Answers scripts. Raises RivalMissingError, with the reason, where no JVM or no jars can be had."""

    def __init__(self) -> None:
        path = harness(SOURCES, BUILD / "jars", BUILD / "classes", "activemq-broker")
        jars = [jar.stem for jar in (BUILD / "jars").glob("activemq-broker-*.jar")]
        if not jars:
            raise RivalMissingError("there is no activemq-broker jar")
        self.version = jars[0].removeprefix("activemq-broker-")
        self._jvm = Jvm("RealBroker", "512m", path)

    def play(self, script: dict[str, Any]) -> dict[str, Any]:
        """The script with what the real broker did at each step, in the form of a recorded scenario."""
        reply = self._ask(**script)
        steps = [
            {**step, **shown}
            for step, shown in zip(script["steps"], reply["steps"], strict=True)
            if not shown.pop("skipped", False)
        ]
        return {"id": "differential", **script, "steps": steps, "final": reply["final"]}

    def winners(self, policies: list[str], destinations: list[str]) -> list[int]:
        """For each destination the index of the policy entry that wins, or -1."""
        found: list[int] = self._ask(policies=policies, destinations=destinations)["winners"]
        return found

    def close(self) -> None:
        self._jvm.close()

    def _ask(self, **request: Any) -> dict[str, Any]:
        for _ in range(ATTEMPTS):
            reply: dict[str, Any] = self._jvm.ask("play", **request)
            if "failure" not in reply:
                return reply
        raise RuntimeError(f"the harness fails {ATTEMPTS} times: {reply['failure']}")
