"""The README's Python runs as it stands and says what it says; both editions show the same code and the same links."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import pyengine

ROOT = Path(__file__).parents[2]
EDITIONS = ("README.md", "README.zh.md")


def blocks(edition: str, language: str) -> list[str]:
    """The fenced code of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / edition).read_text("utf-8"), re.MULTILINE | re.DOTALL)


def said(line: str) -> str | None:
    """The value that a line's comment promises, without the remark after a colon; None without a comment."""
    comment = re.search(r"\s{2,}# (.+)$", line)
    return re.split(r": |;", comment.group(1))[0] if comment else None


def run(block: str, namespace: dict[str, Any]) -> None:
    """Execute statement by statement; compare an expression's value, or the exception raised, with the comment."""
    lines = block.splitlines()
    for statement in ast.parse(block).body:
        promised = said(lines[statement.end_lineno - 1]) if statement.end_lineno else None
        code = ast.get_source_segment(block, statement) or ""
        if promised in vars(pyengine) and issubclass(getattr(pyengine, promised), Exception):
            with pytest.raises(getattr(pyengine, promised)):
                exec(code, namespace)
        elif isinstance(statement, ast.Expr) and promised is not None:
            assert repr(eval(code, namespace)) == promised, code
        else:
            exec(code, namespace)


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
def test_every_link_leads_somewhere(edition: str) -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", (ROOT / edition).read_text("utf-8")):
        assert link.startswith("http") or (ROOT / link).exists(), link
