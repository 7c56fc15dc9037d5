"""The command in a process of its own: output, exit codes, and one clear message for every mistake."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, cast, get_args, get_type_hints

import pytest
from rich.console import Console

from pyengine.backlog.findings import Language, translated
from pyengine.cli import outlet
from pyengine.cli.run import _progress, show
from pyengine.cli.watch import tool_for
from pyengine.spark.pipeline import Progress as Stage
from pyengine.topology import Topology
from tests.backlog.pages import summaries
from tests.cli.forks import forked

ROOT = Path(__file__).parents[2]
FLIGHTS = ROOT / "examples" / "flights" / "flights.toml"
DATA = ROOT / "tests" / "backlog" / "data"


def pyengine(*arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    done = forked([*map(str, arguments)], stdin.encode(errors="surrogateescape"))
    output, errors = (each.decode(errors="surrogateescape") for each in (done.stdout, done.stderr))
    assert "Traceback" not in errors
    return subprocess.CompletedProcess(done.args, done.returncode, output, errors)


def test_version() -> None:
    command = [sys.executable, "-m", "pyengine", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stdout.split()[0]) == (0, "pyengine")


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    command = tmp_path / "pyengine"
    command.write_text(f'#!/bin/sh\ncd "{ROOT}" && exec "{sys.executable}" -m pyengine "$@"\n')
    command.chmod(0o755)
    script = (
        'eval "$(_PYENGINE_COMPLETE=source_bash "$0")"\n'
        "complete -p pyengine >&2\n"
        "for line in 'pyengine di' 'pyengine diagnose --en'; do\n"
        '  COMP_WORDS=($line); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _pyengine_completion "$0"\n'
        '  echo "${COMPREPLY[@]}"\ndone\n'
    )
    done = subprocess.run(["bash", "-c", script, command], capture_output=True, text=True, check=True)
    assert done.stdout == "diagnose\n--encoding\n"
    assert done.stderr == "complete -o default -F _pyengine_completion pyengine\n"


def test_without_the_extra_one_sentence_says_what_to_install() -> None:
    code = "import sys; sys.modules['typer'] = sys.modules['rich'] = None\nfrom pyengine.__main__ import main\nmain()"
    command = [sys.executable, "-c", code, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    expected = "pyengine: this needs typer and rich: pip install 'typer>=0.15.4' 'rich>=13.7'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("match", "a ="), "invalid selector at position 3"),
        (("match", "a = 1", "nowhere.csv"), "nowhere.csv: cannot be read"),
        (("match", "a = 1", "README.md"), "README.md: has no known suffix; name it .parquet, .jsonl or .csv"),
        (("match", "a = 1", "--format", "xls"), "--format: 'xls' is unknown; known: csv, jsonl, parquet"),
        (("match", "a = 1", "--dialect", "kafka"), "known: activemq, rocketmq"),
        (("match", "a = 1", "README.md", "--format", "parquet"), "README.md: is not valid parquet"),
        (("run", "nowhere.toml"), "nowhere.toml: cannot be read"),
        (("run", "pyproject.toml"), "unknown key"),
        (("run", FLIGHTS, "--out", "README.md/x/y"), "cannot be written: Not a directory"),
        (("run", FLIGHTS, "--partitions", "0"), "Invalid value for '--partitions'"),
        (("run",), "Missing argument"),
        (("watch", "1", "--every-ms", "inf"), "Invalid value for '--every-ms'"),
        (("watch", "1", "--every", "5"), "--every=5: was in seconds; it is --every-ms now"),
        (("watch", str(2**31)), "2147483647"),
        (("rum",), "No such command 'rum'"),
    ],
)
def test_mistakes_are_one_message_and_exit_code_2(arguments: tuple[str | Path, ...], words: str) -> None:
    done = pyengine(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="closes descriptors in the shell")
@pytest.mark.parametrize(
    ("redirected", "words"),
    [
        ("diagnose - <&-", "standard input: is empty"),
        ("simulate - <&-", "has no [[variant]]"),
        ("diagnose {data}/jolokia-1.json --json >/dev/full", "the answer cannot be written: No space left on device"),
        ("diagnose {data}/jolokia-1.json >/dev/full", "the answer cannot be written: No space left on device"),
        ("policies {xml} >/dev/full", "the answer cannot be written: No space left on device"),
    ],
)
def test_a_stream_that_is_closed_or_full_is_one_message(redirected: str, words: str, tmp_path: Path) -> None:
    if "/dev/full" in redirected and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    xml = tmp_path / "activemq.xml"
    xml.write_text('<broker xmlns="http://activemq.apache.org/schema/core" brokerName="b"/>')
    command = redirected.format(data="tests/backlog/data", xml=xml)
    done = subprocess.run(
        f"{shlex.quote(sys.executable)} -m pyengine {command}",
        shell=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("pyengine: ")
    assert words in line


@pytest.mark.skipif(sys.platform == "win32", reason="closes descriptors in the shell")
@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    ("command", "code"), [("--version", 0), ("diagnose tests/backlog/data/jolokia-1.json", 1), ("match", 2)]
)
def test_closed_streams_change_no_exit_code(command: str, closed: str, code: int) -> None:
    words = f"{shlex.quote(sys.executable)} -m pyengine {command} {closed}"
    done = subprocess.run(words, shell=True, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stdout) == (code, "")
    assert code == 2 or not done.stderr


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("--version", 0),
        ("--help", 0),
        ("policies {xml} --json", 0),
        ("policies {xml}", 0),
        ("lint examples/flights/flights.toml --json", 1),
        ("lint examples/flights/flights.toml", 1),
        ("simulate examples/what-if/consumers.toml --json", 1),
        ("simulate examples/what-if/consumers.toml", 1),
        ("diagnose {xml} tests/backlog/data/nowhere tests/backlog/data/jolokia-1.json", 2),
        ("allocate {topics} --clients a,b", 0),
        ("match TRUE {rows} --count", 0),
        ("match TRUE {rows}", 0),
        ("match TRUE {bad}", 1),
    ],
)
def test_a_reader_that_has_seen_enough_changes_no_exit_code(command: str, code: int, tmp_path: Path) -> None:
    """As in ``pyengine ... | head``; nobody reads standard error either."""
    (tmp_path / "b.xml").write_text('<broker xmlns="http://activemq.apache.org/schema/core" brokerName="b"/>')
    (tmp_path / "t.json").write_text('{"orders": 4}')
    (tmp_path / "r.jsonl").write_text('{"n": "x"}\n' * 10)
    (tmp_path / "bad.jsonl").write_text("[]\n{}\n")
    places = {"xml": tmp_path / "b.xml", "topics": tmp_path / "t.json", "rows": tmp_path / "r.jsonl"}
    places["bad"] = tmp_path / "bad.jsonl"
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as left:
        words = [sys.executable, "-m", "pyengine", *(word.format(**places) for word in command.split())]
        assert subprocess.run(words, stdout=left, stderr=left, cwd=ROOT, check=False).returncode == code


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437", "cp936", "utf-8", "cp1252:strict"])
def test_what_an_encoding_has_not_is_written_as_its_number(encoding: str, tmp_path: Path) -> None:
    """As on a console of Windows, or in a file that one writes there. JSON stays JSON."""
    text = "é 中 \U0001f600 \x81"
    (tmp_path / "r.jsonl").write_text(json.dumps({"n": text}), encoding="utf-8")
    file = tmp_path / f"{text}.toml"

    file.write_text("[source]\npath = 'x.csv'\ndestination = 'q'\n", encoding="utf-8")
    environment = os.environ | {"PYTHONIOENCODING": encoding}

    def asked(*words: str | Path) -> subprocess.CompletedProcess[bytes]:
        return forked([*map(str, words)], environment=environment)

    done = asked("match", "TRUE", tmp_path / "r.jsonl")
    assert done.stderr == b""
    assert json.loads(done.stdout.decode(encoding.partition(":")[0])) == {"n": text}
    for words in (
        ("lint", file, "--lang", "zh"),
        ("lint", tmp_path / text),
        ("diagnose", DATA / "jolokia-1.json", "--lang", "zh"),
        ("simulate", ROOT / "examples/what-if/consumers.toml", "--lang", "zh"),
    ):
        done = asked(*words)
        assert b"Traceback" not in done.stderr
        assert done.returncode in (0, 1, 2)
        assert done.stdout + done.stderr


def test_a_console_of_its_own_kind_gets_what_is_written_and_is_not_closed() -> None:
    class Raw(io.RawIOBase):
        """As a Windows console's: no file, and UTF-8 whatever its code page is."""

        def __init__(self) -> None:
            self.shown = b""

        def writable(self) -> bool:
            return True

        def fileno(self) -> int:
            return 1

        def isatty(self) -> bool:
            return True

        def write(self, data: Any, /) -> int:
            self.shown += bytes(data[:5])
            return min(5, len(data))

    raw = Raw()
    for buffer in (io.BufferedWriter(raw), raw):  # as python -u
        given = io.TextIOWrapper(cast(Any, buffer), encoding="utf-8", write_through=True)
        stream = outlet.that_may_be_left(given)
        raw.shown = b""
        print("中文, \udc80 and more", file=stream)
        stream.flush()
        assert stream.isatty()
        assert raw.shown.decode() == f"中文, \\udc80 and more{os.linesep}"
        stream.close()
        assert not given.closed
        given.detach()


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="nothing to write to that refuses what is written")
def test_windows_says_of_a_pipe_without_a_reader_what_others_say_of_a_wrong_argument(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    descriptor = os.eventfd(0)
    try:
        stream = outlet._Outlet(descriptor, "w", closefd=False)
        with pytest.raises(OSError, match="Invalid argument"):
            stream.write(b"x")
        assert not stream.left
        monkeypatch.setattr(sys, "platform", "win32")
        assert stream.write(b"x") == 1
        assert stream.left
    finally:
        os.close(descriptor)


@pytest.mark.skipif(sys.platform == "win32", reason="has no pseudo-terminals")
def test_a_name_gives_a_terminal_no_commands(tmp_path: Path) -> None:
    """It would clear the screen, set a title or turn the text around it."""
    import pty

    name = "q\x1b[2J\x1b]0;title\x9c\x9b2J\u202eevil"
    file = tmp_path / "t.toml"
    file.write_text(
        f"[source]\npath = 'x.csv'\ndestination = 'q'\n[[consumer]]\nname = 'c'\ndestination = {json.dumps(name)}\n"
        "selector = 'n = 1'\n"
    )
    words = [sys.executable, "-m", "pyengine", "lint", str(file)]
    reading, writing = pty.openpty()
    done = subprocess.run(words, stdout=writing, cwd=ROOT, env=os.environ | {"TERM": "xterm"}, check=False)
    os.close(writing)
    shown = b""
    with contextlib.suppress(OSError), os.fdopen(reading, "rb", buffering=0) as screen:  # its end is an EIO
        while part := screen.read(4096):
            shown += part
    assert done.returncode == 1
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode())
    shown_name = r"q\x1b[2J\x1b]0;title\x9c\x9b2J\u202eevil"
    assert shown_name in text
    assert not set(text) & set("\x1b\x9b\x9c\u202e")
    assert shown_name in subprocess.run(words, capture_output=True, cwd=ROOT, encoding="utf-8", check=False).stdout


@pytest.mark.parametrize("words", [["lint"], ["diagnose"], ["match", "n = 1"]])
def test_a_name_gives_standard_error_no_commands(tmp_path: Path, words: list[str]) -> None:
    """Of a file that is not there, and of a line that is not understood."""
    file = tmp_path / "q\x1b[2J\u202e.jsonl"
    for text in (None, '{"n": \x1b[2J\u202e\n'):
        if text is not None:
            file.write_text(text, "utf-8")
        errors = forked([*words, str(file)]).stderr.decode("utf-8")
        assert r"q\x1b[2J\u202e.jsonl" in errors
        assert not set(errors) & set("\x1b\u202e")


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGINT for one process")
def test_an_interrupted_run_says_what_it_leaves(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pyengine", "run", FLIGHTS, "--out", tmp_path / "flights"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True) as run:
        assert run.stderr is not None
        for line in run.stderr:
            if line.startswith("dispatching"):
                run.send_signal(signal.SIGINT)
                break
        said = [line for line in run.stderr if not line.startswith("WARNING")]
    left = tmp_path / ".flights.partial"
    assert (run.returncode, left.is_dir(), (tmp_path / "flights").exists()) == (130, True, False)
    assert said == [
        f"pyengine: {left} holds what was begun: run the same command again, or remove it\n",
        "pyengine: interrupted\n",
    ]


@pytest.mark.parametrize("columns", ["0", "", "x", "1", "20"])
def test_findings_are_shown_in_a_terminal_of_any_width(columns: str) -> None:
    done = forked(["lint", "examples/flights/flights.toml"], environment={**os.environ, "COLUMNS": columns})
    assert done.returncode == 1
    assert done.stdout.startswith(b"examples/flights/flights.toml\nerror ")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_narrow_terminal_cuts_no_name_and_no_number(language: str) -> None:
    words = ["simulate", "examples/what-if/consumers.toml", "--lang", language]
    done = forked(words, environment={**os.environ, "COLUMNS": "40"})
    shown = done.stdout.decode()
    assert done.returncode == 1
    assert "\u2026" not in shown
    for each in ("three, prefetch 1000", "20,000", "246.0 ms", "3,867"):
        assert each in shown


def test_match_prints_rows_and_reports_what_it_cannot_read() -> None:
    lines = '{"a": 1}\n{"a": 2, "b": null}\n\n[1]\nnonsense\n'
    done = pyengine("match", "a > 1", stdin=lines)
    assert (done.returncode, done.stdout) == (1, '{"a": 2}\n')
    assert "row 2: '[1]' is not a JSON object" in done.stderr
    assert "row 3: 'nonsense' is not JSON" in done.stderr


def test_match_counts_over_files_of_every_format(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table({"city": ["Oslo", None, "Rome"], "n": [1, 2, 3]}), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("city,n\nOslo,1\n,5\nRome\n")
    (tmp_path / "c.jsonl").write_text('{"city": "Oslo", "n": 7}\n')
    files = sorted(tmp_path.iterdir())
    done = pyengine("match", "--count", "city LIKE 'O%'", *files)
    assert (done.returncode, done.stdout) == (1, "3\n")
    assert "b.csv: row 2" in done.stderr
    assert pyengine("match", "-c", "city IS NULL", files[0]).stdout == "1\n"
    done = pyengine("match", "town = 'Oslo'", files[0])
    assert done.returncode == 2
    assert done.stderr == (
        f"pyengine: {files[0]}: has no column 'town'; known: city, n; --missing-null takes it for null\n"
    )
    assert pyengine("match", "-c", "town IS NULL", "--missing-null", files[0]).stdout == "3\n"


def test_match_leaves_out_rows_of_csv_with_another_value_where_it_asks(tmp_path: Path) -> None:
    """One text among numbers makes no texts of the others, as in run, and costs no row that nobody asks for it."""
    text = "city,n,m\nOslo,5,1.5\nRome,many,2\nOslo,2,9007199254740993\nOslo,7,x\n"
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    with zipfile.ZipFile(tmp_path / "a.csv.zip", "w") as archive:
        archive.writestr("a.csv", text)
    (tmp_path / "many.toml").write_text("more = 'n > 3'")
    for suffix in ("", ".gz", ".zip"):
        done = pyengine("match", "n > 3", tmp_path / f"a.csv{suffix}")
        assert (done.returncode, [json.loads(line)["n"] for line in done.stdout.splitlines()]) == (1, [5, 7])
        assert done.stderr.endswith(f"a.csv{suffix}: row 1: 'n' is not a long, as most values of the column are\n")
    assert pyengine("match", "-c", f"@{tmp_path / 'many.toml'}", tmp_path / "a.csv").stdout == "2\tmore\n"
    assert pyengine("match", "-c", "--format", "csv", "n > 3", stdin=text).stdout == "2\n"
    done = pyengine("match", "-c", "city = 'Oslo'", tmp_path / "a.csv")
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


def test_match_asks_every_line_with_its_own_types(tmp_path: Path) -> None:
    lines = '{"id": 1, "price": 5}\n{"id": 2, "price": "5"}\n{"id": 3, "price": 7.5}\n{"id": 4}\n'
    for selector, found in (("price > 3", [1, 3]), ("price = '5'", [2]), ("id < 3", [1, 2]), ("price IS NULL", [4])):
        done = pyengine("match", selector, stdin=lines)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines() == [line for line in lines.splitlines() if json.loads(line)["id"] in found]
    done = pyengine("match", "price * 2 > 3", stdin=lines)
    assert (done.returncode, done.stderr) == (
        1,
        "pyengine: 1 row cannot be evaluated (the broker throws there too)\n",
    )
    many = tmp_path / "many.toml"
    many.write_text('few = "id < 3"\ntext = "price = \'5\'"\n')
    assert pyengine("match", f"@{many}", stdin=lines).stdout.splitlines() == [
        '{"id": 1, "price": 5, "subscriptions": ["few"]}',
        '{"id": 2, "price": "5", "subscriptions": ["few", "text"]}',
    ]
    (tmp_path / "a.jsonl").write_text(lines)
    assert pyengine("match", "-c", "price > 3", tmp_path / "a.jsonl").stdout == "2\n"
    wrong = pyengine("match", "prize = 5 AND price > 3", tmp_path / "a.jsonl")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "has no column 'prize'; did you mean 'price'?" in wrong.stderr


def test_match_leaves_out_a_line_whose_value_no_property_can_be() -> None:
    """It was the end of all lines, without its number."""
    lines = '{"x": 1}\n{"x": {"a": 1}}\nbroken\n{"x": [1]}\n{"x": "a"}\n{"x": null, "y": {"b": 2}}\n'
    done = pyengine("match", "x = 1 OR x IS NULL", stdin=lines)
    assert (done.returncode, done.stdout) == (1, '{"x": 1}\n{"y": {"b": 2}}\n')
    told = done.stderr.splitlines()
    assert told[0] == "pyengine: -: row 1: 'x' is an object"
    assert told[1].startswith("pyengine: -: row 2: 'broken' is not JSON")
    assert told[2:] == ["pyengine: -: row 3: 'x' is a list"]


def test_match_prints_bytes_as_their_text(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    records = tmp_path / "records.parquet"
    table = pa.table({"key": ["客户".encode(), b"c\xff"], "value": [b'{"a": 1}', b""], "price": [1, 2]})
    pyarrow.parquet.write_table(table, records)
    selectors = tmp_path / "selectors.toml"
    selectors.write_text('any = "price > 0"')
    for asked in ("price > 0", f"@{selectors}"):
        printed = map(json.loads, pyengine("match", asked, records).stdout.splitlines())
        told = [(row["key"], row["value"]) for row in printed]
        assert told == [("客户", '{"a": 1}'), ("c\\xff", "")]


def test_match_asks_a_file_of_selectors(tmp_path: Path) -> None:
    many = tmp_path / "many.toml"
    many.write_text('audit = "price > 100"\neu = "region = \'EU\'"\nodd = "region * 2 = 4 AND price < 0"\n')
    lines = '{"price": 250, "region": "EU"}\n{"price": 3, "region": "US"}\n{"price": 200}\n'
    done = pyengine("match", f"@{many}", stdin=lines)
    assert done.stdout.splitlines() == [
        '{"price": 250, "region": "EU", "subscriptions": ["audit", "eu"]}',
        '{"price": 200, "subscriptions": ["audit"]}',
    ]
    assert (done.returncode, "2 rows cannot be evaluated" in done.stderr) == (1, True)
    assert pyengine("match", "--count", f"@{many}", stdin=lines).stdout == "2\taudit\n1\teu\n0\todd\n"
    many.write_text('audit = "price >"')
    assert f"{many}: audit: invalid selector at position 7" in pyengine("match", f"@{many}", stdin=lines).stderr
    many.write_text("audit = 5")
    assert "audit is not text" in pyengine("match", f"@{many}", stdin=lines).stderr
    assert "cannot be read: No such file" in pyengine("match", f"@{tmp_path}/none.toml", stdin=lines).stderr
    for data, words in (
        (b"", "holds no selector; write lines like eu ="),
        (b'caf\xe9 = "a = 1"', "is not UTF-8 (byte 3); save it as UTF-8"),
        (b'a = "b = 1"\nc = ', f"{many}:2: not valid TOML: Invalid value (at end of document)"),
        (b"a = " + b"[" * 5000, "is nested too deep"),
    ):
        many.write_bytes(data)
        done = pyengine("match", f"@{many}", stdin=lines)
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr
    many.write_bytes(b"\xef\xbb\xbfeu = \"region = 'EU'\"")
    assert pyengine("match", "--count", f"@{many}", stdin=lines).stdout == "1\teu\n"


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_links_in_a_circle_are_one_message(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    done = pyengine("diagnose", tmp_path / "circle")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"pyengine: {tmp_path}/circle: cannot be read: Too many levels of symbolic links\n"


def test_diagnose_names_causes_for_people_and_for_programs(tmp_path: Path) -> None:
    dumps = [ROOT / "tests" / "backlog" / "data" / f"jolokia-{n}.json" for n in (1, 2)]
    done = pyengine("diagnose", *dumps)
    assert done.returncode == 1
    assert "group_owner_stopped" in done.stdout
    assert "owns message groups: g0, g2 (2 in all)" in done.stdout
    found = json.loads(pyengine("diagnose", "--json", *dumps).stdout)
    assert len(found["findings"]) == 8
    assert found["findings"][0]["severity"] == "error"
    assert found["not_understood"] == []
    table = "Name  Queue Size  Producer #  Consumer #\nempty  0  0  0\ntoo short\n"
    quiet = pyengine("diagnose", "-", stdin=table)
    assert quiet.returncode == 0
    assert "nothing found in 1 state that was read" in quiet.stdout
    assert "standard input:3: too short: does not fit the table above it" in quiet.stderr
    (tmp_path / "notes.txt").write_text("buy milk")
    wrong = pyengine("diagnose", "--json", tmp_path / "notes.txt", *dumps)
    assert wrong.returncode == 2
    assert "holds nothing that is known here" in wrong.stderr
    document = json.loads(wrong.stdout)
    assert document["findings"] == found["findings"]
    assert document["not_read"] == [{"file": str(tmp_path / "notes.txt"), "why": "holds nothing that is known here"}]
    (tmp_path / "empty.txt").write_text("")
    neither = pyengine("diagnose", tmp_path / "notes.txt", tmp_path / "empty.txt", "--report", tmp_path / "page.html")
    assert (neither.returncode, neither.stdout, len(neither.stderr.splitlines())) == (2, "", 2)
    assert not (tmp_path / "page.html").exists()
    document = json.loads(pyengine("diagnose", "--json", tmp_path / "notes.txt", tmp_path / "empty.txt").stdout)
    assert [each["why"] for each in document["not_read"]] == ["holds nothing that is known here", "is empty"]
    assert not document["judged_healthy"]
    lines = pyengine("diagnose", "-", stdin=table.replace("empty", "em\x1b[1mpty\udce9"))
    said = "nothing found in 1 state that was read\nread: standard input: activemq-admin dstat\n"
    assert (lines.returncode, lines.stdout) == (0, said)


@pytest.mark.parametrize("command", ["diagnose", "lint", "simulate"])
def test_a_page_takes_the_place_of_no_other_file(command: str, tmp_path: Path) -> None:
    """``--report *.json`` names a snapshot as the page: the shell makes it so, and the evidence would be gone."""
    first, second = tmp_path / "1", tmp_path / "2"
    for each in (first, second):
        each.write_text("nothing that is known")
    done = pyengine(command, "--report", first, second)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{first}: cannot be written: a file that is not a page is there; --report is followed by" in done.stderr
    assert first.read_text() == "nothing that is known"
    done = pyengine(command, "--report", tmp_path / "no" / "page.html", second)
    assert f"cannot be written: there is no folder {tmp_path / 'no'}" in done.stderr


def test_a_page_is_written_anew(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("")
    for _ in range(2):
        pyengine("diagnose", DATA / "jolokia-1.json", "--report", page)
        assert page.read_text().startswith("<!doctype html>")


def test_lint_proves_the_example_s_trap() -> None:
    done = pyengine("lint", FLIGHTS)
    assert done.returncode == 1
    assert "exclusive_disjoint  queue flights.LGA" in done.stdout
    found = json.loads(pyengine("lint", "--json", FLIGHTS).stdout)["findings"]
    assert {"not_covered", "exclusive_disjoint"} <= {finding["code"] for finding in found}
    clean = pyengine("lint", "-", stdin='consumer_group = "orders"\n')
    assert (clean.returncode, clean.stdout) == (0, "no traps found\n")


def test_simulate_compares_variants() -> None:
    done = pyengine("simulate", ROOT / "examples" / "what-if" / "consumers.toml")
    assert done.returncode == 1
    assert "three, one dies: held at the end: 100 consumer_stopped" in done.stdout
    asked = """
        [workload]
        rate = 100
        service = 0.001
        messages = 1000
        property.region = { EU = 3, US = 1 }
        [[variant]]
        name = "only EU"
        consumer = [{ name = "eu", selector = "region = 'EU'" }]
    """
    held = pyengine("simulate", "-", stdin=asked)
    assert held.returncode == 1
    assert "only EU: held at the end:" in held.stdout
    name = "nobody takes what comes from the United States, and a line of a file is searched as a whole"
    far = pyengine("simulate", "-", stdin=asked.replace("only EU", name))
    assert sum(line.startswith(f"{name}: held at the end:") for line in far.stdout.splitlines()) == 1
    all_taken = pyengine("simulate", "-", stdin=asked.replace("EU = 3, US = 1", "EU = 4"))
    assert (all_taken.returncode, "held at the end" in all_taken.stdout) == (0, False)
    document = json.loads(pyengine("simulate", "--json", "-", stdin=asked).stdout)["variants"]["only EU"]
    assert document["finished"] + document["backlog_end"] == 1000
    assert document["series"]["backlog"][-1] == document["backlog_end"] == sum(document["held"].values())
    for wrong, words in (
        (asked.replace("rate = 100", "rate = 0"), "rate: must be positive (got 0)"),
        (asked.replace("selector", "seletor"), "did you mean 'selector'?"),
        (asked.replace("{ EU = 3, US = 1 }", '["EU", 1]'), "must list values of one type"),
        ("[workload]\nrate = 1\nservice = 1\n", "has no [[variant]]"),
        (asked.replace("only EU", "only \udcb5\udca5"), "standard input:8: 2 characters are not UTF-8"),
    ):
        refused = pyengine("simulate", "-", stdin=wrong)
        assert refused.returncode == 2
        assert words in refused.stderr


@pytest.mark.skipif(not (Path(sys.executable).parent / "py-spy").exists(), reason="py-spy is not installed")
def test_watch_names_the_line_at_which_a_listener_stands() -> None:
    listener = (
        "import socket, threading\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "def call_without_timeout():\n"
        "    socket.create_connection(server.getsockname()).recv(1)\n"
        "threading.Thread(target=call_without_timeout, name='ConsumeMessageThread_g_1', daemon=True).start()\n"
        "print('ready', flush=True)\n"
        "input()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", listener], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        done = pyengine("watch", str(process.pid), "--samples", "3", "--every-ms", "200")
    finally:
        process.communicate("\n", timeout=30)
    assert done.returncode == 1, done.stderr
    assert "thread ConsumeMessageThread_g_1" in done.stdout
    assert "call_without_timeout" in done.stdout


@pytest.mark.skipif(not Path("/proc/self/comm").exists(), reason="the system does not show the names of processes")
def test_watch_takes_a_process_whatever_its_name() -> None:
    named = "open('/proc/self/comm', 'wb').write(b'\\xff\\xfe'); print('ready', flush=True); input()"
    process = subprocess.Popen([sys.executable, "-c", named], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert tool_for(process.pid) == "py-spy"
    finally:
        process.communicate("\n", timeout=30)


def test_the_table_says_who_got_what_and_why_the_rest_waits(tmp_path: Path) -> None:
    with (tmp_path / "table.txt").open("w") as file:
        show(summaries.flights(Topology.load(FLIGHTS)), Console(file=file, width=80))
    text = (tmp_path / "table.txt").read_text()
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80
    words = " ".join(text.split())
    assert "united carrier = 'UA' 46,087 38.1% 1,152" in words
    assert "why 104,591 of 104,662 wait on flights.LGA" in words
    assert "'delta' is exclusive and its selector refuses them: it takes only carrier = 'DL'" in words
    assert "rejected 2: flight is not an int (rows f.csv:17, f.csv:99)" in words


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_narrow_table_leaves_no_word_of_a_reason_out(tmp_path: Path, language: Language) -> None:
    summary = summaries.flights(Topology.load(FLIGHTS))
    with (tmp_path / "table.txt").open("w") as file:
        show(summary, Console(file=file, width=50), language)
    text = "".join((tmp_path / "table.txt").read_text().split())
    for queue in summary["destinations"].values():
        for held in queue["held_by_reason"]:
            assert "".join(str(translated(held["explanation"], language)).split()) in text


def test_a_file_s_mistake_is_told_with_its_place(tmp_path: Path) -> None:
    scenario, consumer, rows = tmp_path / "s.toml", tmp_path / "c.properties", tmp_path / "rows.jsonl"
    scenario.write_text(
        '[workload]\nrate = 1\nservice = 1\n[[variant]]\nname = "a"\n'
        '[[variant.consumer]]\nname = "c"\nselector = "x ="\n'
    )
    done = pyengine("simulate", scenario)
    assert done.returncode == 2
    assert f'{scenario}:8: variant "a", consumer "c", selector: invalid selector at position 3' in done.stderr
    consumer.write_text("consumerGroup=g\nconsumeThreadMin=x\n")
    done = pyengine("lint", consumer)
    assert done.returncode == 2
    assert f"{consumer}: consume_thread_min: is not a whole number: 'x'" in done.stderr
    rows.write_text("[" * 100_000 + '\n{"a": 1}\n')
    done = pyengine("match", "a = 1", rows)
    assert (done.returncode, done.stdout) == (1, '{"a": 1}\n')
    assert f"{rows}: row 0: " in done.stderr


def test_lint_answers_every_file_where_one_is_bad(tmp_path: Path) -> None:
    first, last, artemis, topology = (tmp_path / name for name in ("a.xml", "b.xml", "broker.xml", "t.toml"))
    first.write_text("<broker><nonsense")
    artemis.write_text('<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"/></configuration>')
    last.write_text(
        '<broker xmlns="http://activemq.apache.org/schema/core"><destinationPolicy><policyMap><policyEntries>'
        '<policyEntry queue="Q" strictOrderDispatch="true"/></policyEntries></policyMap></destinationPolicy></broker>'
    )
    topology.write_text("[source]\npath = 'x.csv'\ndestination = 'q'\n[[destination]]\nname = 'alone'\n")
    done = pyengine("lint", first, last, artemis, tmp_path / "none.toml", topology)
    assert done.returncode == 2
    assert f"strict_order_fills_one  {last}:1:" in done.stdout
    assert "no_consumer  queue alone" in done.stdout
    told = done.stderr.splitlines()
    assert [line.split(": ")[1].removesuffix(":1") for line in told if line.startswith("pyengine: ")] == [
        str(first), str(artemis), str(tmp_path / "none.toml"),
    ]  # fmt: skip
    assert "is the broker.xml of ActiveMQ Artemis" in done.stderr
    document = json.loads(pyengine("lint", "--json", first, last).stdout)
    assert [each["file"] for each in document["not_read"]] == [str(first)]
    assert document["findings"]
    two = pyengine("lint", last, topology, tmp_path / "a.xml", last)
    assert two.returncode == 2
    assert f"{last}: is a second broker" in two.stderr
    assert "no_consumer  queue alone" in two.stdout


def test_names_that_look_like_markup_are_printed_as_they_are(tmp_path: Path) -> None:
    topology = Topology.from_text(
        '[source]\npath = "a.csv"\ndestination = "a"\n[[consumer]]\nname = "[red]x[/red]"\ndestination = "flights.>"\n'
    )
    summary = summaries.flights(Topology.load(FLIGHTS))
    summary["destinations"] = {
        "[b]q": summaries.destination(topology, "flights.q", {"[red]x[/red]": 1}, {("selector", ""): 1})
    }
    summary["title"] = "[bold]t"
    with (tmp_path / "table.txt").open("w") as file:
        show(summary, Console(file=file, width=80))
    text = (tmp_path / "table.txt").read_text()
    assert "[bold]t" in text
    assert "[b]q" in text
    assert "[red]x[/red]" in text


def test_what_others_print_meanwhile_stays_off_standard_output() -> None:
    code = (
        "import subprocess\nfrom pyengine.cli.run import stdout_to_stderr\n"
        "with stdout_to_stderr():\n    subprocess.run(['echo', 'noise'], check=True)\n    print('more noise')\n"
        "print('result')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert (done.stdout, sorted(done.stderr.split("\n"))) == ("result\n", ["", "more noise", "noise"])


def test_a_run_from_rows_to_page(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("region,n\neu,1\neu,2\nus,3\neu,many\n")
    (tmp_path / "orders.toml").write_text(
        'title = "Orders"\n[source]\npath = "orders.csv"\ndestination = "orders.{region}"\ntypes = { n = "int" }\n'
        '[[consumer]]\nname = "first"\ndestination = "orders.eu"\nexclusive = true\n'
        '[[consumer]]\nname = "standby"\ndestination = "orders.eu"\nexclusive = true\n'
    )
    done = pyengine("run", tmp_path / "orders.toml", "--out", tmp_path / "out", "--master", "local[1]", "--json")
    summary = json.loads(done.stdout)
    assert done.returncode == 1, "one row was rejected"
    assert [summary[key] for key in ("rows", "messages", "delivered", "held", "rejected")] == [4, 3, 2, 1, 1]
    eu, us = (summary["destinations"][f"orders.{region}"] for region in ("eu", "us"))
    assert [(each["name"], each["delivered"]) for each in eu["consumers"]] == [("first", 2), ("standby", 0)]
    assert [(each["reason"], each["count"]) for each in us["held_by_reason"]] == [("no_consumer", 1)]
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == summary
    page = Path(summary["paths"]["report"]).read_text()
    assert "<title>Orders</title>" in page
    assert "No consumer is on this queue." in page


@pytest.mark.parametrize(("language", "first"), [("en", "reading the source ..."), ("zh", "正在读取数据源 ...")])
def test_progress_is_told_in_the_language_of_the_table(
    language: Language, first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stages = get_args(get_type_hints(Stage)["stage"])
    with _progress(False, language) as advance:
        for stage in stages:
            advance(Stage(stage, 1, 2, 3))
    told = capsys.readouterr().err.splitlines()
    assert (told[0], len(told)) == (first, len(stages) - 1)
    assert all(re.search("[\u4e00-\u9fff]", line) for line in told) is (language == "zh")


POLICIES = ROOT / "tests" / "topology" / "data" / "everything.xml"


def test_a_master_that_spark_does_not_know_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"n": 1}\n')
    (tmp_path / "t.toml").write_text('[source]\npath = "rows.jsonl"\ndestination = "a"\n')
    done = pyengine("run", tmp_path / "t.toml", "--master", "nonsense", "--out", tmp_path / "out")
    assert done.returncode == 2
    said = done.stderr.splitlines()[-1]
    assert said.startswith("pyengine: master=nonsense: Spark does not start: [JAVA_GATEWAY_EXITED]")
    assert "give local[*], spark://HOST:7077" in said


def test_policies_for_people() -> None:
    done = pyengine("policies", POLICIES, "A.b", "topic://T.x", "G.b,none")
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (1, "")
    assert lines[0] == "broker all: 4 policy entries, 5 things not modelled"
    assert "queue://A.b: A.>" in lines
    assert "topic://T.x: topic://T.>" in lines
    assert "queue://G.b: G.a,G.b" in lines
    assert "queue://none: (default entry)" in lines
    assert lines[-2:] == [
        f"  {POLICIES}:7: broker: start: how the process starts and stops is yours to say",
        f"  {POLICIES}:60: redeliveryPolicy: preDispatchCheck: this is for the client; "
        "it looks before dispatch, the default",
    ]


def test_policies_as_json_with_placeholders(tmp_path: Path) -> None:
    file = tmp_path / "activemq.xml"
    file.write_text(
        '<broker xmlns="http://activemq.apache.org/schema/core" brokerName="${name}" persistent="${durable}">'
        '<destinationPolicy><policyMap><policyEntries><policyEntry queue="&gt;"/>'
        '<policyEntry queue="a.*" maxPageSize="3"/></policyEntries>'
        "</policyMap></destinationPolicy></broker>"
    )
    done = pyengine("policies", file, "a.b", "--json", "-D", "name=shop", "-D", "durable=true")
    found = json.loads(done.stdout)
    assert (done.returncode, found["broker"], found["not_modelled"]) == (0, "shop", [])
    assert found["destinations"] == [
        {"destination": "queue://a.b", "entry": "a.*", "settings": {"max_page_size": 3}, "also": [">"]}
    ]
    assert pyengine("policies", file).stderr.startswith(
        f"pyengine: {file}:1: broker, persistent: ${{durable}} is not defined (got '${{durable}}'); "
        "give properties={'durable': ...} (-D durable=... to a command), or set it in the environment"
    )
    assert "write --define activemq.data=" in pyengine("policies", file, "-D", "name").stderr
