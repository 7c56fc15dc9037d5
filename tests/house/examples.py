"""The fenced code of a page: found, run, and held to what its comments promise."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import pyengine

ROOT = Path(__file__).parents[2]


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
        raised = getattr(pyengine, promised or "", None)
        if isinstance(raised, type) and issubclass(raised, Exception):
            with pytest.raises(raised):
                exec(code, namespace)
        elif isinstance(statement, ast.Expr) and promised is not None:
            assert repr(eval(code, namespace)) == promised, code
        else:
            exec(code, namespace)
