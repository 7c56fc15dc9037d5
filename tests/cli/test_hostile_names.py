"""Names that would command a terminal or begin a line of their own, through every command."""

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    return tmp_path


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


IN_ONE = """
import os, sys
os.chdir(sys.argv[1])
from pyengine.__main__ import main
import json
for words in json.loads(sys.argv[2]):
    sys.argv[:] = ["pyengine", *words]
    process = os.fork()
    if not process:
        main()
    os.waitpid(process, 0)
"""


def all_said(folder: Path, output: int) -> None:
    subprocess.run(
        [sys.executable, "-c", IN_ONE, str(folder), json.dumps(variants())],
        stdout=output,
        stderr=output,
        env=os.environ | {"TERM": "xterm", "PYTHONPATH": str(ROOT), "COLUMNS": "4000", "PYTHONUTF8": "1"},
        check=True,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="has no fork")
def test_a_pipe_gets_no_command_and_no_line_of_a_name(folder: Path) -> None:
    """Results and errors of every command."""
    with open(folder / "said", "wb") as output:
        all_said(folder, output.fileno())
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
    all_said(folder, writing)
    os.close(writing)
    reader.join()
    check(shown.decode(), colours=True)
