"""The fenced code of a page: found, run, and held to what its comments promise."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable
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


class Promises(ast.NodeTransformer):
    """Every expression of which a comment promises a value or an exception, wherever it stands, becomes a check."""

    def __init__(self, block: str) -> None:
        self.lines = block.splitlines()

    def visit_Expr(self, node: ast.Expr) -> ast.Expr:
        promised = said(self.lines[node.end_lineno - 1]) if node.end_lineno else None
        if promised is None:
            return node
        line = self.lines[node.lineno - 1].strip()
        check = ast.parse(f"__check(lambda: 0, {promised!r}, {line!r})", mode="eval").body
        assert isinstance(check, ast.Call)
        assert isinstance(check.args[0], ast.Lambda)
        check.args[0].body = node.value
        return ast.copy_location(ast.Expr(check), node)


def keeps(expression: Callable[[], object], promised: str, line: str) -> None:
    """Evaluate an expression and compare it with its comment."""
    raised = getattr(pyengine, promised, None) or getattr(builtins, promised, None)
    if isinstance(raised, type) and issubclass(raised, Exception):
        with pytest.raises(raised):
            expression()
    else:
        assert repr(expression()) == promised, line


def run(block: str, namespace: dict[str, Any]) -> None:
    """Execute a block; compare the value of each expression, or the exception raised, with its comment."""
    tree = ast.fix_missing_locations(Promises(block).visit(ast.parse(block)))
    namespace["__check"] = keeps
    exec(compile(tree, "<page>", "exec"), namespace)
