"""The real client classes: one JVM with java/RealClasses.java, its jars fetched by Maven coordinates (java/pom.xml)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from bench.jvm import Jvm, harness

SOURCES = Path(__file__).parent / "java"
BUILD = SOURCES.parents[3] / "build" / "rocketmq-differential"


class RealClasses:
    """Answers traces. Raises RivalMissingError, with the reason, where no JVM or no jars can be had."""

    def __init__(self) -> None:
        path = harness(SOURCES, BUILD / "jars", BUILD / "classes", "rocketmq-filter")
        self._folder = tempfile.TemporaryDirectory(prefix="pyengine-rocketmq-")
        # Without the first the JVM leaves out the text of a failure that it has seen often.
        options = ["-XX:TieredStopAtLevel=1", "-XX:-OmitStackTraceInFastThrow", f"-Djava.io.tmpdir={self._folder.name}"]
        self._jvm = Jvm("RealClasses", "512m", path, options)

    def play(self, traces: list[dict[str, Any]]) -> list[list[Any]]:
        """For each trace one [result, state] an operation; the result of a failure is {"class", "text"}."""
        answers: list[list[Any]] = self._jvm.ask("play", traces=traces)["answers"]  # type: ignore[assignment]
        return answers

    def close(self) -> None:
        self._jvm.close()
        self._folder.cleanup()
