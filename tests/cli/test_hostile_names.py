"""Names that would command a terminal or begin a line of their own, through every command."""

import contextlib
import io
import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pyengine.visible import logger
from tests.cli.forks import ask

ROOT = Path(__file__).parents[2]
FORGED = "error   forged"
NAME = f"q\n{FORGED}  queue x\r\x1b[8m\x1b]0;title\x07\x9b2J\u202eevil\u2028{FORGED}"
COMMANDING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
TEXT = json.dumps(NAME)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of every command, with the name wherever a name can stand."""
    consumers = "".join(
        f'[[consumer]]\nname = {json.dumps(name + NAME)}\ndestination = {TEXT}\nselector = "{selector}"\n'
        for name, selector in (("a", "n = 1"), ("b", "n <> '1'"))
    )
    (tmp_path / "t.toml").write_text(f"[source]\npath = 'x.csv'\ndestination = {TEXT}\n{consumers}", "utf-8")
    (tmp_path / "p.toml").write_text(
        f"[[policy]]\ndestination = {TEXT}\nlazy_dispatch = true\n[[composite_queue]]\nname = {TEXT}\n"
        f"forward_to = [{TEXT}]\n",
        "utf-8",
    )
    (tmp_path / "topics.json").write_text(
        json.dumps(
            {"topicConfigTable": {NAME: {"topicName": NAME, "readQueueNums": 3, "writeQueueNums": 3, "perm": 6}}}
        ),
        "utf-8",
    )
    (tmp_path / "clients.txt").write_text(f"c1{NAME}\nc2", "utf-8")
    jolokia = {
        "request": {
            "type": "read",
            "mbean": "org.apache.activemq:brokerName=b,destinationName=q,destinationType=Queue,type=Broker",
        },
        "value": {
            "Name": NAME,
            "QueueSize": 1000,
            "ConsumerCount": 0,
            "ProducerCount": 1,
            "EnqueueCount": 1000,
            "DequeueCount": 0,
            "DispatchCount": 0,
            "InFlightCount": 0,
            "ExpiredCount": 0,
            "MemoryPercentUsage": 99,
        },
        "timestamp": 1_700_000_000,
        "status": 200,
    }
    (tmp_path / "j.json").write_text(json.dumps(jolokia), "utf-8")
    (tmp_path / "s.toml").write_text(
        f'title = {TEXT}\n[workload]\nmessages = 20\nrate = 10.0\nservice = "10 ms"\n'
        f'[[variant]]\nname = {TEXT}\n[[variant.consumer]]\nname = {TEXT}\nselector = "n = 2"\n',
        "utf-8",
    )
    (tmp_path / "rows.jsonl").write_text(json.dumps({"n": 1, "name": NAME}) + "\n", "utf-8")
    (tmp_path / "many.toml").write_text(f'{TEXT} = "n = 1"\n', "utf-8")
    (tmp_path / f"{NAME.replace('/', '')}.txt").write_text(f"{NAME}\n", "utf-8")
    escaped = json.dumps(NUL)
    consumer = f'[[consumer]]\nname = {escaped}\ndestination = {escaped}\nselector = "n = 2"\n'
    for name, text in {
        "nul.toml": "[source]\npath = 'x\0y.csv'\n",
        "nul_names.toml": f"[source]\npath = 'x.csv'\ndestination = {escaped}\n{consumer}",
        "nul_path.toml": f"[source]\npath = {escaped}\ndestination = 'd'\n{consumer}",
        "nul.xml": "<beans>\0</beans>",
        "nul.csv": "n,t\n1,a\0b\n\0,c\n",
        "nul.yml": 'spring:\n  activemq:\n    broker-url: "a\0b"\n',
        "nul.jsonl": f'{{"n": 1, "t": {escaped}}}\n\0\n',
        "nul_topics.json": json.dumps(
            {"topicConfigTable": {NUL: {"topicName": NUL, "readQueueNums": 3, "writeQueueNums": 3, "perm": 6}}}
        ),
        "nul_scenario.toml": f'title = {escaped}\n[workload]\nmessages = 2\nrate = 10.0\nservice = "10 ms"\n'
        f"[[variant]]\nname = {escaped}\n[[variant.consumer]]\nname = {escaped}\n",
    }.items():
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


# What typer refuses before a command begins, and names with a NUL, which only other files can bring.
USAGE = [
    [f"--{NAME}"],
    [NAME],
    ["run", f"--{NAME}", "t.toml"],
    ["run", "t.toml", NAME],
    ["run", "t.toml", "--partitions", NAME],
    ["lint", f"-{NAME}"],
    ["lint", "t.toml", "--lang", NAME],
    ["lint", "t.toml", f"--lang={NAME}"],
    ["watch", NAME],
    ["watch", "1", "--tool", NAME],
    ["watch", "1", "--samples", NAME],
    ["watch", "1", "--every", NAME],
    ["match", "n = 1", "rows.jsonl", "--format", NAME],
    ["match", "n = 1", "rows.jsonl", "--dialect", NAME],
    ["lint", "t.toml", "--define", NAME],
    ["lint", "t.toml", "--encoding", NAME],
    ["lint", "t.toml", "--report", f"{NAME}/{NAME}"],
]
NUL = "q\x00x"
WITH_NUL = [
    *([command, NUL] for command in ("lint", "diagnose", "run", "policies", "simulate")),
    *(["lint", name] for name in ("nul.toml", "nul_names.toml", "nul_path.toml", "nul.xml", "nul.csv", "nul.yml")),
    *(["diagnose", name] for name in ("nul.csv", "nul.xml", "nul_topics.json", "nul.toml")),
    *(["run", name] for name in ("nul.toml", "nul_path.toml")),
    ["policies", "nul_names.toml", NUL],
    ["simulate", "nul_scenario.toml"],
    ["allocate", "nul_topics.json", "--clients", NUL],
    ["allocate", NUL, "--clients", "a"],
    ["match", "n = 1", "nul.jsonl"],
    ["match", "n = 1", NUL],
    ["match", f"t = '{NUL}'", "nul.jsonl"],
    ["match", f"@{NUL}", "nul.jsonl"],
    ["lint", "t.toml", "--report", NUL],
    ["lint", "t.toml", "--encoding", NUL],
    [NUL],
]

COMMANDS = {
    "lint": ["lint", "t.toml"],
    "lint_missing": ["lint", f"{NAME}.toml"],
    "policies": ["policies", "p.toml", "other"],
    "diagnose": ["diagnose", "j.json"],
    "diagnose_name": ["diagnose", f"{NAME}.txt"],
    "simulate": ["simulate", "s.toml"],
    "allocate": ["allocate", "topics.json", "--clients", f"c1{NAME},c2", "--leave", "c2"],
    "match": ["match", "n = 1", "rows.jsonl"],
    "match_many": ["match", "@many.toml", "rows.jsonl", "--count"],
    "match_refused": ["match", NAME, "rows.jsonl"],
    "run": ["run", "t.toml"],
}
HAVE_LANGUAGES = ("lint", "diagnose", "simulate")
HAVE_JSON = ("lint", "policies", "diagnose", "simulate", "allocate")


def variants() -> list[list[str]]:
    """Each command, in its languages, and as JSON."""
    found = []
    for name, words in COMMANDS.items():
        found.append(words)
        if name.partition("_")[0] in HAVE_LANGUAGES:
            found.append([*words, "--lang", "zh"])
        if name.partition("_")[0] in HAVE_JSON:
            found.append([*words, "--json"])
    return found


def check(text: str, *, colours: bool) -> None:
    """Nothing commands but colours and the bars of a run, and no line is the name's own."""
    if colours:
        text = re.sub(r"\x1b\[(?!8m)[0-9;?]*[A-Za-z]", "", text.replace("\r", ""))
    assert not COMMANDING.search(text), COMMANDING.search(text)
    assert not [line for line in text.splitlines() if line.lstrip().startswith(FORGED)]


def all_said(folder: Path, output: int, commands: list[list[str]]) -> None:
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "4000", "PYTHONIOENCODING": "utf-8"}
    with open(os.devnull) as nothing:
        for words in commands:
            ask(words, nothing.fileno(), output, output, environment, folder)


@pytest.mark.skipif(sys.platform == "win32", reason="has no fork")
def test_a_pipe_gets_no_command_and_no_line_of_a_name(folder: Path) -> None:
    """Results and errors of every command."""
    with open(folder / "said", "wb") as output:
        all_said(folder, output.fileno(), variants() + WITH_NUL)
    text = (folder / "said").read_text("utf-8")
    assert text.count("evil") > len(variants())
    assert text.count("Traceback") == 0
    check(text, colours=False)


@pytest.mark.skipif(sys.platform == "win32", reason="has no pseudo-terminals")
def test_a_terminal_gets_no_command_and_no_line_of_a_name(folder: Path) -> None:
    """The same, with a terminal's colours; the name's own colours do not pass."""
    import pty
    import threading

    reading, writing = pty.openpty()
    shown = bytearray()

    def read() -> None:
        with contextlib.suppress(OSError), os.fdopen(reading, "rb", buffering=0) as screen:
            while part := screen.read(4096):
                shown.extend(part)

    reader = threading.Thread(target=read)
    reader.start()
    all_said(folder, writing, [*COMMANDS.values(), *USAGE])
    os.close(writing)
    reader.join()
    text = shown.decode()
    assert text.count("Error: ") == 11  # typer's own; the others are ours
    check(text, colours=True)


DUMP = f"""Process 7: python {NAME}
Python v3.11 ({NAME})

Thread 1 (idle): "{NAME}"
    wait ({NAME}.py:1)
    consume_message ({NAME}.py:2)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="its tool is a script")
@pytest.mark.parametrize(("answer", "code", "language"), [(DUMP, 0, "en"), (NAME, 0, "zh"), (NAME, 1, "en")])
def test_what_watch_is_told_commands_nothing(folder: Path, answer: str, code: int, language: str) -> None:
    """By a process whose names are another's, or by the tool itself."""
    (folder / "answer").write_text(answer, "utf-8")
    tool = folder / "py-spy"
    tool.write_text(f"#!/bin/sh\ncat {folder}/answer >&{1 + code}\nexit {code}\n", "utf-8")
    tool.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "pyengine", "watch", "1", "--tool", "py-spy", "--every-ms", "50", "--samples", "3",
         "--lang", language, "--report", str(folder / "page.html")],
        capture_output=True,
        env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "COLUMNS": "4000",
                          "PYTHONUTF8": "1"},
        check=False,
    )  # fmt: skip
    said = (done.stdout + done.stderr).decode()
    assert "Traceback" not in said
    assert done.returncode == 2 or "evil" in said or code == 0
    check(said, colours=False)
    if (folder / "page.html").exists():
        check((folder / "page.html").read_text("utf-8"), colours=False)


def test_a_traceback_in_a_log_commands_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Nor does what the exception came of, or a note; its own lines stay."""
    log = logger("pyengine.test_hostile_names")
    shown = io.StringIO()
    handler = logging.StreamHandler(shown)
    log.addHandler(handler)
    try:
        try:
            raise KeyError("first") from ValueError(NAME)
        except KeyError as error:
            error.add_note(NAME)
            log.exception("of %s", NAME)
            log.error("again", exc_info=error)
        log.error("without", exc_info=False)
    finally:
        log.removeHandler(handler)
    text = shown.getvalue()
    assert text.count("Traceback (most recent call last)") == 2
    assert text.count("evil") >= 5
    assert text.count("KeyError: 'first'") == 2
    check(text, colours=False)
