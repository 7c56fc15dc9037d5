"""The real broker's OpenWire connector, and the real client, each in a JVM of its own; jars lie in build/openwire."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.contest import RivalMissingError
from bench.jvm import end, harness

SOURCES = Path(__file__).parent / "java"
BUILD = Path(__file__).parents[3] / "build" / "openwire"
RELEASES = ("5.18.6", "6.3.1")
CLIENTS = ("5.15.16", "5.18.6", "6.3.1")
SCENARIOS = tuple(re.findall(r"^    void (\w+)\(\)", (SOURCES / "PlayOpenWire.java").read_text("utf-8"), re.MULTILINE))


def class_path(release: str) -> str:
    """The jars of a release and the programs compiled for it; from 6 on JMS is of another package. Raises
    RivalMissingError, with the reason, if no JVM or no jars can be had."""
    where = BUILD / release
    sources = where / "sources"
    sources.mkdir(parents=True, exist_ok=True)
    for file in SOURCES.iterdir():
        if file.suffix == ".java":
            text = file.read_text("utf-8")
            if not release.startswith("5."):
                text = text.replace("import javax.jms", "import jakarta.jms")
            copy = sources / file.name
            if not copy.exists() or copy.read_text("utf-8") != text:
                copy.write_text(text, "utf-8")
        else:
            shutil.copy(file, sources)
    return harness(sources, where / "jars", where / "classes", "activemq-broker", [f"-Dactivemq={release}"])


class Program:
    """A Java program that answers lines with lines. path: its class path. options: of its JVM."""

    def __init__(
        self,
        main: str,
        path: str,
        log: Path,
        *arguments: str,
        properties: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
    ) -> None:
        self._errors = log.open("w")
        self._process = subprocess.Popen(
            [
                *("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m", *options),
                *(f"-D{name}={value}" for name, value in (properties or {}).items()),
                *("-cp", path, main, *arguments),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self.process_id = self._process.pid

    def write(self, line: str) -> None:
        """A line of its input."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def line(self) -> str:
        """The next line of its output."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def close(self) -> None:
        """End the JVM."""
        end(self._process)
        self._errors.close()


class RealBroker(Program):
    """One broker, in memory, or with its messages in a folder."""

    def __init__(
        self,
        release: str,
        log: Path,
        folder: Path | None = None,
        properties: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
    ) -> None:
        arguments = [str(folder)] if folder else []
        super().__init__("OpenWireBroker", class_path(release), log, *arguments, properties=properties, options=options)
        line = self.line()
        if not line.isdecimal():
            self.close()
            raise RivalMissingError(f"the broker did not start: see {log}")
        self.port = int(line)
        self.url = f"tcp://127.0.0.1:{line}"

    def renew(self) -> None:
        """A new broker, without messages, in the place of the present one; ``port`` is another."""
        self.write("new")
        self.port = int(self.line())
        self.url = f"tcp://127.0.0.1:{self.port}"


class Player(Program):
    """A program that plays what a line names, at a broker."""

    def play(self, url: str, name: str) -> list[str]:
        """A scenario's transcript."""
        self.write(f"{url} {name}")
        transcript = []
        while (line := self.line()) != ".":
            if not line and self._process.poll() is not None:
                raise RuntimeError(f"the client ended in {name}")
            transcript.append(line)
        return transcript


class RealClient(Player):
    """The real client, which plays the scenarios of PlayOpenWire."""

    def __init__(self, release: str, log: Path, properties: Mapping[str, str] | None = None) -> None:
        super().__init__("PlayOpenWire", class_path(release), log, properties=properties)
