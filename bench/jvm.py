"""jvm: the real ActiveMQ in a warm JVM, driven over a pipe; its jars and our compiled harness lie in build/java."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.contest import REPETITION, RivalMissingError, Side

SOURCES = Path(__file__).parent / "java"
BUILD = SOURCES.parent.parent / "build" / "java"
DEBIAN = Path("/usr/share/java")
WARM_UP_MATCHES = 2_000_000


def _run(command: Sequence[str | Path], what: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise RivalMissingError(f"{what} failed: {failure}") from failure
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines() or [f"exit status {done.returncode}"]
        raise RivalMissingError(f"{what} failed: {lines[0][:200]}")


def end(process: subprocess.Popen[str]) -> None:
    """Close the input of a program that ends with it; kill it if it is still there after 20 s."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """One process at a time fetches and compiles: tests run in several, which share build/ and Maven's files."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@functools.cache
@_alone()
def class_path() -> str:
    """The jars (fetched with mvn on first use, or Debian's libactivemq-java) and the compiled harness."""
    if shutil.which("java") is None or shutil.which("javac") is None:
        raise RivalMissingError("no java and javac on PATH (Debian: apt-get install default-jdk-headless)")
    jars = BUILD / "jars"
    if not all(list(jars.glob(f"{jar}-*.jar")) for jar in ("activemq-broker", "activemq-kahadb-store")):
        debian = [jar for jar in DEBIAN.glob("*.jar") if re.match(r"activemq|jackson|slf4j|geronimo|hawtbuf", jar.name)]
        if shutil.which("mvn") is not None:
            pom = SOURCES / "pom.xml"
            _run(
                ["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={jars}"],
                "fetching ActiveMQ from Maven Central",
            )
        elif any(jar.name.startswith("activemq-broker") for jar in debian):
            jars.mkdir(parents=True, exist_ok=True)
            for jar in debian:
                shutil.copy2(jar, jars)
        else:
            raise RivalMissingError("no ActiveMQ: neither mvn nor Debian's libactivemq-java is installed")
    classes = BUILD / "classes"
    path = f"{jars}/*:{classes}"
    sources = sorted(SOURCES.glob("*.java"))
    newest = max(source.stat().st_mtime for source in sources)
    if min((built.stat().st_mtime for built in classes.glob("*.class")), default=0.0) < newest:
        _run(["javac", "-nowarn", "-cp", path, "-d", classes, *sources], "compiling bench/java")
    return path


@functools.cache
def rocketmq_class_path() -> str:
    """RocketMQ's client (fetched with mvn on first use) and the compiled harness of bench/java/rocketmq."""
    return harness(SOURCES / "rocketmq", BUILD / "rocketmq-jars", BUILD / "rocketmq-classes", "rocketmq-client")


@_alone()
def harness(sources: Path, jars: Path, classes: Path, jar: str, properties: Sequence[str] = ()) -> str:
    """The class path of a folder of Java sources and its compiled classes; the jars of its pom.xml are fetched once.

    properties: of the pom.xml, as ``-Dname=value``.
    """
    for tool in ("java", "javac", "mvn"):
        if shutil.which(tool) is None:
            raise RivalMissingError(f"no {tool} on PATH (Debian: apt-get install default-jdk-headless maven)")
    if not list(jars.glob(f"{jar}-*.jar")):
        _run(
            ["mvn", "-q", "-B", "-f", sources / "pom.xml", "dependency:copy-dependencies", f"-DoutputDirectory={jars}",
             *properties],
            f"fetching {jar} from Maven Central",
        )  # fmt: skip
    files = sorted(sources.glob("*.java"))
    newest = max(file.stat().st_mtime for file in files)
    if min((built.stat().st_mtime for built in classes.glob("*.class")), default=0.0) < newest:
        _run(["javac", "-nowarn", "-cp", f"{jars}/*", "-d", classes, *files], f"compiling {sources.name}")
    return f"{jars}/*:{classes}"


def description() -> str:
    """Which ActiveMQ and which JVM, or why there is none."""
    try:
        class_path()
    except RivalMissingError as reason:
        return f"ActiveMQ not available: {reason}"
    jar = next((BUILD / "jars").glob("activemq-broker-*.jar"))
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr.splitlines()[0]
    return f"ActiveMQ {jar.stem.removeprefix('activemq-broker-')} on {java}"


class Jvm:
    """One JVM that runs one class of bench/java; ask() sends a request and returns its reply.

    folder: one that it uses; kept as long as it runs.
    """

    def __init__(
        self,
        main: str,
        heap: str = "256m",
        path: str | None = None,
        options: Sequence[str] = (),
        folder: tempfile.TemporaryDirectory[str] | None = None,
    ) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            ["java", "-XX:+UseSerialGC", f"-Xms{heap}", f"-Xmx{heap}", *options, "-cp", path or class_path(), main],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if path else None,
            text=True,
            encoding="utf-8",
        )
        atexit.register(self.close)

    def ask(self, op: str, **request: object) -> dict[str, object]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"op": op, **request}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the JVM ended while asked {op}: exit status {self._process.wait()}")
        reply: dict[str, object] = json.loads(line)
        if "error" in reply:
            raise RuntimeError(f"the JVM answers {op} with {reply['error']}")
        return reply

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            if self._process.stdin is not None and not self._process.stdin.closed:
                self._process.stdin.close()
        self._process.wait(timeout=30)
        if self._process.stdout is not None:
            self._process.stdout.close()
        atexit.unregister(self.close)


def selector_side(selector: str, messages: Sequence[Mapping[str, object]]) -> Side:
    """matches() of every message in a JVM of its own that has run nothing else: the JIT compiler's best case."""
    jvm = Jvm("Rival")
    jvm.ask("load", messages=list(messages))
    warm = max(1, WARM_UP_MATCHES // len(messages))
    for _ in range(3):
        spent = float(str(jvm.ask("match", selector=selector, repeat=warm)["nanoseconds"])) * 1e-9
    repeat = max(1, int(REPETITION / (spent * len(messages))))

    def clock() -> float:
        return float(str(jvm.ask("match", selector=selector, repeat=repeat)["nanoseconds"])) * 1e-9

    def answer() -> list[bool]:
        return [letter == "T" for letter in str(jvm.ask("answers", selector=selector)["answers"])]

    return Side(
        call=lambda: jvm.ask("match", selector=selector, repeat=repeat),
        answer=answer,
        units=repeat * len(messages),
        clock=clock,
    )


def loop_side(selectors: Sequence[str], messages: Sequence[Mapping[str, object]]) -> Side:
    """Every message against every selector, as the broker's dispatch does; warm."""
    jvm = Jvm("Rival", heap="1g")
    jvm.ask("load", messages=list(messages))
    jvm.ask("subscribe", selectors=list(selectors))
    spent = 0.0
    for _ in range(3):
        repeat = max(1, WARM_UP_MATCHES // (len(messages) * len(selectors)))
        spent = float(str(jvm.ask("loop", repeat=repeat)["nanoseconds"])) * 1e-9
    repeat = max(1, int(REPETITION / (spent * len(messages))))

    def clock() -> float:
        return float(str(jvm.ask("loop", repeat=repeat)["nanoseconds"])) * 1e-9

    return Side(
        call=lambda: jvm.ask("loop", repeat=repeat),
        answer=lambda: jvm.ask("wanted")["wanted"],
        units=repeat * len(messages),
        clock=clock,
    )


def parse_side(selector: str) -> Side:
    """The parser alone, its cache emptied before each parse; warm."""
    jvm = Jvm("Rival")
    for _ in range(3):
        spent = float(str(jvm.ask("parse", selector=selector, repeat=20_000)["nanoseconds"])) * 1e-9
    repeat = max(1, int(REPETITION / spent))
    return Side(
        call=lambda: jvm.ask("parse", selector=selector, repeat=repeat),
        answer=lambda: None,
        units=repeat,
        clock=lambda: float(str(jvm.ask("parse", selector=selector, repeat=repeat)["nanoseconds"])) * 1e-9,
    )
