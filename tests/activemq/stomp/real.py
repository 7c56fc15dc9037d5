"""The real broker's STOMP connector in a JVM of its own; jars and classes lie in build/stomp."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bench.contest import RivalMissingError
from bench.jvm import end, harness

SOURCES = Path(__file__).parent / "java"
BUILD = Path(__file__).parents[3] / "build" / "stomp"
RELEASES = ("5.18.6", "6.3.1")


class RealBroker:
    """One JVM. Raises RivalMissingError, with the reason, where no JVM or no jars can be had."""

    def __init__(self, release: str, log: Path, folder: Path | None = None) -> None:
        where = BUILD / release
        path = harness(SOURCES, where / "jars", where / "classes", "activemq-jaas", [f"-Dactivemq={release}"])
        self._errors = log.open("w")
        self._process = subprocess.Popen(
            ["java", "-XX:+UseSerialGC", "-Xmx512m", "-cp", path, "StompBroker", *([str(folder)] if folder else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self.process_id = self._process.pid
        line = self._line()
        if not line.strip().isdecimal():
            self.close()
            raise RivalMissingError(f"the broker did not start: see {log}")
        self.port = int(line)

    def _line(self) -> str:
        """The next port that is printed; plugins print lines of their own."""
        assert self._process.stdout is not None
        line = "?"
        while line and not line.startswith("port "):
            line = self._process.stdout.readline()
        return line.removeprefix("port ")

    def stream(self, words: str) -> str:
        """A stream message of a JMS client; see StompBroker. "sent", or why it is not."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"stream {words}\n")
        self._process.stdin.flush()
        return self._line().strip()

    def renew(self, plugins: str = "") -> None:
        """A new broker, without messages, in the place of the present one; ``port`` is another. plugins: see
        StompBroker."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"new {plugins}\n")
        self._process.stdin.flush()
        self.port = int(self._line())

    def close(self) -> None:
        """End the JVM."""
        end(self._process)
        self._errors.close()
