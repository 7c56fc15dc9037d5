"""The README's snippets run as they stand and show what they show; both editions have the same code and links.

Of its shell, test_docs runs ``pyengine``, tests/examples the scripts, and make is asked for its targets; its Spark runs
in tests/spark/test_readme.py.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.house.examples import ROOT, blocks, run
from tests.house.test_docs import anchors

EDITIONS = ("README.md", "README.zh.md")


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_code_without_spark_runs(edition: str) -> None:
    polled = [
        SimpleNamespace(topic="orders", partition=0, offset=offset, key=key, value=b"")
        for offset, key in ((7, b"a"), (8, b"a"), (9, b"b"))
    ]
    namespace: dict[str, Any] = {"polled": polled}  # the reader's own
    ran = [run(block, namespace) for block in blocks(edition, "python") if "spark" not in block]
    assert len(ran) >= 2


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_line_of_the_shell_is_run_by_some_test(edition: str) -> None:
    """The first words of those that are; ``pip install .`` by tests/packaging, the environment by what runs this."""
    commands = re.findall(r"^\$ (.+)", "\n".join(blocks(edition, "console")), re.MULTILINE)
    table = re.findall(r"\| `((?:python|pyengine) [^`]+)` \|", (ROOT / edition).read_text("utf-8"))
    assert len(commands) >= 6
    assert len(table) == 5
    for command in [*commands, *table]:
        tool, *arguments = command.split()
        match tool, *arguments:
            case "make", target:
                done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, check=False)
                assert done.returncode == 0, command
            case "pyengine", *_:
                assert " examples/" in command  # run by test_docs
            case "python", script, *_:
                started = {"service": "service", "router": "router", "kafka": "kafka", "nightly": "nightly"}
                assert (ROOT / script).is_file()
                assert (ROOT / f"tests/examples/test_{started[Path(script).parts[1]]}.py").is_file()
            case _:
                assert command in (". .venv/bin/activate", "pip install .", 'pip install ".[spark,cli,report]"')


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_jobs_lead_to_their_headings(edition: str) -> None:
    text = (ROOT / edition).read_text("utf-8")
    for anchor in re.findall(r"\]\(#([^)]+)\)", text):
        assert anchor in anchors(ROOT / edition), anchor


def test_both_editions_say_the_same() -> None:
    def code(edition: str) -> list[str]:
        return [re.sub(r"\s+# .*", "", block) for block in blocks(edition, "python")]

    def links(edition: str) -> list[str]:
        found = re.findall(r"\]\(([^)]+)\)", (ROOT / edition).read_text("utf-8"))
        return [link for link in found if link not in EDITIONS and not link.startswith("#")]

    assert code(EDITIONS[0]) == code(EDITIONS[1])
    assert links(EDITIONS[0]) == links(EDITIONS[1])


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_recorded_answers_are_replayed_as_the_page_says(edition: str) -> None:
    (command,) = re.findall(r"`python (-m tests\.conformance .*)`", (ROOT / edition).read_text("utf-8"))
    done = subprocess.run([sys.executable, *command.split()], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert " agree, 0 differ, 0 unsupported" in done.stdout


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_page_of_docs_is_linked(edition: str) -> None:
    text = (ROOT / edition).read_text("utf-8")
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"(docs/{page.name})" not in text] == []


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_link_leads_somewhere(edition: str) -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", (ROOT / edition).read_text("utf-8")):
        assert link.startswith("http") or (ROOT / link).exists(), link
