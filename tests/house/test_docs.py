"""Every page of docs/ runs as it stands and says what it says; its links lead somewhere."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.forks import forked
from tests.house.examples import ROOT, blocks, run
from tests.house.wrapping import wrapped
from website.links import anchor_of

PAGES = sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md"))
BESIDE = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
WRONG_ON_PURPOSE = {  # a listener names an ack_index that does not exist
    "rocketmq-consumer.md",
    "rocketmq-offsets.md",
}
ELSEWHERE = {
    "logs.md": "run by tests/spark/test_rocketmq_log.py, in the session of the tests",
    "spark.md": "its frames are the reader's own; tests/spark asks the same functions",
    "stomp.md": "a test module of its own, run by tests/activemq/stomp/test_page.py",
    "streaming.md": "run by tests/spark/test_streaming.py, in the session of the tests",
    "testing.md": "a test module of its own, run by tests/activemq/test_testing_page.py",
}


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ELSEWHERE and blocks(f"docs/{page}", "python")])
def test_the_code_runs(page: str, caplog: pytest.LogCaptureFixture) -> None:
    namespace: dict[str, Any] = {}
    for block in blocks(f"docs/{page}", "python"):
        run(block, namespace)
    if page not in WRONG_ON_PURPOSE:
        assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page != "benchmarks.md"]
)  # that one is written by make bench
def test_a_page_opens_with_an_example(page: str) -> None:
    """Before its second section."""
    opening = (ROOT / "docs" / page).read_text("utf-8").split("\n## ")[:2]
    assert any("\n```" in part for part in opening)


NOT_WRAPPED = {"benchmarks.md"}  # bench writes it


@pytest.mark.parametrize("page", [*(f"docs/{name}" for name in PAGES), *BESIDE])
def test_prose_wraps_at_100(page: str) -> None:
    """``python -m tests.house.wrapping PAGE`` wraps it."""
    text = (ROOT / page).read_text("utf-8")
    assert (wrapped(text) == text) != (page.removeprefix("docs/") in NOT_WRAPPED)


SHOWN = [
    (page, command)
    for page in ("README.md", "README.zh.md", *(f"docs/{name}" for name in PAGES))
    for block in blocks(page, "console")
    for command in re.findall(r"^\$ (.*(?:\n(?!\$ ).*)*)", block, re.MULTILINE)
]


# Files of the reader's own that a page shows an answer about.
POLICY = '<policyEntry queue="orders.>" strictOrderDispatch="true"/>'
XML = f"""<broker xmlns="http://activemq.apache.org/schema/core" brokerName="shop">{chr(10) * 9}<destinationPolicy>
<policyMap><policyEntries>
{POLICY}
</policyEntries></policyMap></destinationPolicy></broker>
"""
READERS = {
    "broker-10h00.json": (ROOT / "tests/backlog/data/jolokia-1.json").read_text("utf-8"),
    "broker-10h01.json": (ROOT / "tests/backlog/data/jolokia-2.json").read_text("utf-8"),
    "activemq.xml": XML,
    "consumer.properties": "consumerGroup=billing\nconsumeThreadMax=64\n",
    "application.yml": "rocketmq:\n  name-server: 10.0.0.1:9876,10.0.0.2:9876\n"
    "  consumer: {group: billing, pull-batch-size: 64}\n",
}


@pytest.mark.parametrize(
    ("page", "command"),
    [
        each
        for each in SHOWN
        if each[1].startswith("pyengine ")
        and (" examples/" in each[1] or any(f" {name}" in each[1] for name in READERS))
    ],
)
def test_a_command_prints_what_the_page_shows(page: str, command: str, tmp_path: Path) -> None:
    """Line breaks are the terminal's; ``...`` stands for what the page leaves out."""
    line, _, shown = command.partition("\n")
    name, *arguments = line.split()
    assert name == "pyengine"
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for file, text in READERS.items():
        (tmp_path / file).write_text(text, "utf-8")
    done = forked(arguments, folder=tmp_path)
    printed = done.stdout.decode()
    assert (done.returncode, done.stderr) == (1, b"")
    if shown.strip():
        parts = re.split(r"\s\.\.\.\s", f" {shown} ")
        wanted = ".*".join(re.escape(" ".join(part.split())) for part in parts)
        assert re.fullmatch(wanted, " ".join(printed.split())), printed


def test_the_scripts_that_pages_start_are_there() -> None:
    """tests/examples runs them, and compares what a page shows of them."""
    started = {part for _, command in SHOWN for part in re.findall(r"^python (\S+)", command) if part != "-m"}
    assert len(started) >= 5
    assert [name for name in started if not (ROOT / name).is_file()] == []


def anchors(page: Path) -> set[str]:
    return {anchor_of(heading) for heading in re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)}


@pytest.mark.parametrize("page", [*(f"docs/{name}" for name in PAGES), *BESIDE])
def test_every_link_leads_somewhere(page: str) -> None:
    for link, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", (ROOT / page).read_text("utf-8")):
        target = (ROOT / page).parent / link if link else ROOT / page
        assert link.startswith("http") or target.exists(), link
        assert not anchor or anchor in anchors(target), f"{link}#{anchor}"


@pytest.mark.parametrize("page", [*(f"docs/{name}" for name in PAGES), "CONTRIBUTING.md", "README.md"])
def test_every_file_of_the_core_that_is_named_is_there(page: str) -> None:
    """A room may be named without its suffix, a header and a stub have theirs."""
    for name in re.findall(r"(?<![\w/.])(engine/[\w/]+(?:\.\w+)?)", (ROOT / page).read_text("utf-8")):
        path = ROOT / name
        assert path.exists() or any(path.with_suffix(kind).exists() for kind in (".pyx", ".pxd", ".h")), name
