"""The README's Python runs as it stands and says what it says; both editions show the same code and the same links."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest

from tests.house.examples import ROOT, blocks, run

EDITIONS = ("README.md", "README.zh.md")


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_code_without_spark_runs(edition: str) -> None:
    namespace: dict[str, Any] = {}
    ran = [run(block, namespace) for block in blocks(edition, "python") if "spark" not in block]
    assert len(ran) >= 2


def test_both_editions_say_the_same() -> None:
    def code(edition: str) -> list[str]:
        return [re.sub(r"\s+# .*", "", block) for block in blocks(edition, "python")]

    def links(edition: str) -> list[str]:
        found = re.findall(r"\]\(([^)]+)\)", (ROOT / edition).read_text("utf-8"))
        return [link for link in found if link not in EDITIONS]

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
