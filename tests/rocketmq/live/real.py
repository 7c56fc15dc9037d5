"""The real RocketMQ in a JVM of its own, driven over a pipe; jars and classes lie in build/rocketmq."""

from __future__ import annotations

import json
import random
import shutil
import socket
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
BUILD = HERE.parents[2] / "build" / "rocketmq"
OPENED = ("--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED")


class RealMissingError(Exception):
    """The real software cannot run here; the text says why."""


def class_path() -> str:
    """The jars, fetched with mvn on first use, and the compiled harness."""
    for tool in ("java", "javac", "mvn"):
        if shutil.which(tool) is None:
            raise RealMissingError(f"no {tool} on PATH (Debian: apt-get install default-jdk-headless maven)")
    jars, classes = BUILD / "jars", BUILD / "classes"
    if not list(jars.glob("rocketmq-broker-*.jar")):
        _run(["mvn", "-q", "-B", "-f", HERE / "pom.xml", "dependency:copy-dependencies", f"-DoutputDirectory={jars}"])
    sources, built = sorted(HERE.glob("*.java")), classes / "Real.class"
    if not built.exists() or built.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        _run(["javac", "-nowarn", "-cp", f"{jars}/*", "-d", classes, *sources])
    return f"{jars}/*:{classes}"


def _run(command: list[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise RealMissingError(f"{command[0]} failed: {(done.stdout + done.stderr).strip()[:300]}")


def free_port() -> int:
    """One with those that a broker takes beside it free, and from below those of outgoing calls."""
    while True:
        port = random.randrange(20_002, 30_000)
        try:
            for number in (port - 2, port, port + 1):
                with socket.socket() as found:
                    found.bind(("127.0.0.1", number))
        except OSError:
            continue
        return port


class Real:
    """One JVM. home: what it takes for the user's home; it writes its logs and offsets there."""

    def __init__(self, home: Path) -> None:
        path = class_path()
        self._errors = (home / "jvm.log").open("w")
        # Without the first the broker makes a key pair for TLS, which takes most of its start.
        options = (
            "-Dtls.server.mode=disabled",
            f"-Duser.home={home}",
            f"-Drocketmq.client.localOffsetStoreDir={home}/offsets",
        )
        self._process = subprocess.Popen(
            ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx400m", *OPENED, *options, "-cp", path, "Real"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
        )

    def ask(self, op: str, **request: object) -> object:
        """The reply's value. Raises AssertionError with what the real software said if it refused."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"op": op, **request}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the JVM ended while asked {op}: see {self._errors.name}"
        reply = json.loads(line)
        assert "error" not in reply, f"{op}: {reply['error']}"
        return reply.get("value")

    def close(self) -> None:
        """End the JVM."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()
