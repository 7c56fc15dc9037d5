"""The real command line tools: one JVM for each release, its jars fetched by Maven coordinates (java/pom.xml)."""

from __future__ import annotations

import base64
import re
import subprocess
import tempfile
from pathlib import Path

from bench.jvm import harness

SOURCES = Path(__file__).parent / "java"
BUILD = SOURCES.parents[3] / "build" / "tools"
MQADMIN = ("org.apache.rocketmq.tools.command.MQAdminStartup", "main0")
MQADMIN_OF_ALIBABA = ("com.alibaba.rocketmq.tools.command.MQAdminStartup", "main0")  # 3.x
# Release of Kafka -> the artifact that has its tools, and their entry point.
KAFKA = {
    "0.9.0.1": "kafka_2.11",
    "0.10.0.1": "kafka_2.11",
    "0.10.1.1": "kafka_2.11",
    "0.10.2.2": "kafka_2.11",
    "0.11.0.3": "kafka_2.12",
    "1.1.1": "kafka_2.12",
    "2.8.2": "kafka_2.13",
    "3.4.1": "kafka_2.13",
    "3.9.1": "kafka-tools",
    "4.0.0": "kafka-tools",
    "4.1.0": "kafka-tools",
    "4.2.0": "kafka-tools",
}
CONSUMER_GROUPS = {"kafka-tools": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"}
SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
_NOISE = re.compile(r"^(SLF4J|log4j|RocketMQLog|WARNING): ?.*\n", re.MULTILINE)


class RealTools:
    """The tools of a release, in the zone UTC. Raises RivalMissingError, with the reason, if they cannot be had."""

    def __init__(self, product: str, release: str) -> None:
        artifact = "rocketmq-tools" if product == "rocketmq" else KAFKA[release]
        owner = "com.alibaba" if product == "rocketmq" and release.startswith("3.") else "org.apache"
        self.mqadmin = MQADMIN_OF_ALIBABA if owner == "com.alibaba" else MQADMIN
        self.consumer_groups = CONSUMER_GROUPS.get(artifact, "kafka.admin.ConsumerGroupCommand")
        folder = BUILD / f"{product}-{release}"
        coordinates = [f"-Dgroup={owner}.{product}", f"-Dartifact={artifact}", f"-Drelease={release}"]
        # A jar of netty's is named by the machine it is for.
        coordinates.append("-Dos.detected.classifier=linux-x86_64")
        path = harness(SOURCES, folder / "jars", folder / "classes", artifact, coordinates)
        self._folder = tempfile.TemporaryDirectory(prefix="pyengine-tools-")
        self.folder = Path(self._folder.name)
        (self.folder / "conf").mkdir()
        for name in ("logback_tools.xml", "rmq.tools.logback.xml"):
            (self.folder / "conf" / name).write_text("<configuration/>", "utf-8")
        home = self.folder
        # Netty of 2016 looks into classes that later Java closes.
        opened = [f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in ("java.nio", "java.lang", "sun.nio.ch")]
        options = ["-Duser.timezone=UTC", "-Duser.language=en", f"-Duser.home={home}", f"-Drocketmq.home.dir={home}",
                   "-Dcom.rocketmq.sendMessageWithVIPChannel=false", "-XX:TieredStopAtLevel=1", *opened]  # fmt: skip
        self._process = subprocess.Popen(
            ["java", *options, "-cp", path, "RealTools"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=self.folder, text=True,
        )  # fmt: skip

    def run(self, tool: tuple[str, str], *arguments: str) -> str:
        """What a call prints, on both streams, as a terminal shows it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join((*tool, *arguments)) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the JVM ended: exit status {self._process.wait()}")
        return _NOISE.sub("", base64.b64decode(line).decode())

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()
        self._folder.cleanup()
