"""Each row of docs/articles.md, in both editions, is a function of examples/articles that shows it."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from typing import Any

import pytest

from tests.house.examples import ROOT

BROKERS = ("activemq", "rocketmq")
ROWS: dict[str, tuple[Callable[[], None], ...]] = {
    broker: runpy.run_path(str(ROOT / f"examples/articles/{broker}.py"), run_name="rows")["ROWS"] for broker in BROKERS
}


def shown(edition: str) -> dict[str, list[str]]:
    """Broker -> the functions that its table names."""
    parts = re.split(r"^## ", (ROOT / "docs" / edition).read_text("utf-8"), flags=re.MULTILINE)[1:]
    return {part.split()[0].lower(): re.findall(r"\| `(\w+)` \|$", part, re.MULTILINE) for part in parts}


@pytest.mark.parametrize("edition", ["articles.md", "articles.zh.md"])
def test_the_tables_name_every_row_in_its_order(edition: str) -> None:
    assert shown(edition) == {broker: [row.__name__ for row in rows] for broker, rows in ROWS.items()}


@pytest.mark.parametrize("row", [row for rows in ROWS.values() for row in rows], ids=lambda row: row.__name__)
def test_a_row_holds(row: Callable[[], Any]) -> None:
    assert row.__doc__
    row()
