"""A real Kafka broker: one process, KRaft, loopback only; its jars are fetched by Maven into build/kafka."""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
import time
from pathlib import Path

from bench.contest import RivalMissingError
from tests.house.examples import ROOT

BUILD = ROOT / "build/kafka"
VERSION = "4.1.0"
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>pyengine.tests</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version>
  </dependency></dependencies>
</project>
"""


def jars() -> str:
    """The class path. Raises RivalMissingError, with the reason, if it cannot be had."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise RivalMissingError(f"no {tool} on PATH (Debian: apt-get install default-jdk-headless maven)")
    if not list((BUILD / "jars").glob("kafka_2.13-*.jar")):
        BUILD.mkdir(parents=True, exist_ok=True)
        (BUILD / "pom.xml").write_text(POM, "utf-8")
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"]
        subprocess.run(command, cwd=BUILD, check=True, timeout=900)
    return f"{BUILD}/jars/*"


class RealKafka:
    """One broker that is its own controller, with its data in ``folder``; :attr:`servers` is its address."""

    def __init__(self, folder: Path) -> None:
        port = _free_port()
        self.servers = f"127.0.0.1:{port}"
        settings = folder / "server.properties"
        settings.write_text(
            "process.roles=broker,controller\nnode.id=1\n"
            f"controller.quorum.voters=1@127.0.0.1:{port + 1}\ncontroller.listener.names=CONTROLLER\n"
            f"listeners=PLAINTEXT://{self.servers},CONTROLLER://127.0.0.1:{port + 1}\n"
            f"advertised.listeners=PLAINTEXT://{self.servers}\n"
            f"log.dirs={folder}/log\noffsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\n"
            "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
            "group.initial.rebalance.delay.ms=0\nnum.partitions=4\n",
            "utf-8",
        )
        java = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx400m", "-cp", jars()]
        cluster = "MkU3OEVBNTcwNTJENDM2Qg"
        subprocess.run(
            [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip
        self._errors = (folder / "kafka.log").open("w")
        self._process = subprocess.Popen(
            [*java, "kafka.Kafka", str(settings)], stdout=self._errors, stderr=subprocess.STDOUT
        )
        end = time.monotonic() + 90
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                if time.monotonic() > end or self._process.poll() is not None:
                    self.close()
                    raise RuntimeError(f"Kafka did not start: {(folder / 'kafka.log').read_text()[-2000:]}") from None
                time.sleep(0.2)

    def close(self) -> None:
        """End it; what it wrote stays in its folder."""
        self._process.terminate()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()


def _free_port() -> int:
    """One with the next free too, from below those of outgoing calls."""
    while True:
        port = random.randrange(20_002, 30_000)
        try:
            for number in (port, port + 1):
                with socket.socket() as found:
                    found.bind(("127.0.0.1", number))
        except OSError:
            continue
        return port
