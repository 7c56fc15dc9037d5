"""The real RocketMQ in a JVM of its own, driven over a pipe; jars and classes lie in build/rocketmq."""

from __future__ import annotations

import json
import random
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.jvm import end, harness

HERE = Path(__file__).parent
BUILD = HERE.parents[2] / "build" / "rocketmq"
OPENED = ("--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED")


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
    """One JVM. home: what it takes for the user's home; it writes its logs and offsets there. properties: of the
    system, ``name=value``. compiled: by the JVM's best compiler, for measurements; otherwise it starts sooner.

    Raises RivalMissingError, with the reason, where no JVM or no jars can be had.
    """

    def __init__(
        self, home: Path, properties: Sequence[str] = ("tls.server.mode=disabled",), *, compiled: bool = False
    ) -> None:
        path = harness(HERE, BUILD / "jars", BUILD / "classes", "rocketmq-broker")
        self._errors = (home / "jvm.log").open("w")
        # Without the property of TLS the broker makes a key pair for TLS, which takes most of its start.
        options = (
            *(f"-D{each}" for each in properties),
            f"-Duser.home={home}",
            f"-Drocketmq.client.localOffsetStoreDir={home}/offsets",
        )
        tiers = () if compiled else ("-XX:TieredStopAtLevel=1",)
        self._process = subprocess.Popen(
            ["java", "-XX:+UseSerialGC", *tiers, "-Xmx400m", *OPENED, *options, "-cp", path, "Real"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
        )

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

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
        end(self._process)
        self._errors.close()


class Older:
    """A name server and a broker 4.9.7 in a JVM, which knows the accounts of ``conf/plain_acl.yml`` in its home if that
    is there. names: the name server. Raises RivalMissingError as Real does.
    """

    def __init__(self, home: Path, levels: str, check: int) -> None:
        folder = BUILD.with_name("rocketmq-4.9.7")
        path = harness(HERE / "older", folder / "jars", folder / "classes", "rocketmq-older")
        home.mkdir(parents=True, exist_ok=True)
        ports = free_port(), free_port()
        self.names = f"127.0.0.1:{ports[0]}"
        self._errors = (home / "jvm.log").open("w")
        options = ("-Dtls.server.mode=disabled", f"-Duser.home={home}", f"-Drocketmq.home.dir={home}")
        self._process = subprocess.Popen(
            ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx300m", *OPENED, *options, "-cp", path, "Older",
             str(home), *map(str, ports), levels, str(check)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, encoding="utf-8",
        )  # fmt: skip
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip() == "started":
                return
        raise AssertionError(f"the broker 4.9.7 did not start: see {self._errors.name}")

    def close(self) -> None:
        """End the JVM."""
        end(self._process)
        self._errors.close()
