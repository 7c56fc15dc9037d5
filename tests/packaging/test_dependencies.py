"""Every dependency has a reason in docs/internals.md, and every row there is a dependency."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]


def declared() -> dict[str, set[str]]:
    """Package -> where pyproject.toml asks for it; the extra that joins others is left out."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    groups = {
        "core": content["project"]["dependencies"],
        "build": content["build-system"]["requires"],
        **content["project"]["optional-dependencies"],
    }
    found: defaultdict[str, set[str]] = defaultdict(set)
    for group, needs in groups.items():
        for need in needs:
            name = re.split(r"[\[<>=;! ]", need)[0].lower()
            if name != content["project"]["name"]:
                found[name].add(group)
    return dict(found)


def test_each_dependency_has_a_reason_and_its_places() -> None:
    page = (ROOT / "docs/internals.md").read_text("utf-8")
    section = page.partition("## Why each dependency")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([\w.-]+) \| ([\w, ]+) \| (.+) \|$", section, re.MULTILINE)
    assert {name: set(places.split(", ")) for name, places, _ in rows if name != "package"} == declared()


def test_pinned_tools_have_hashes() -> None:
    for name in ("requirements.txt", "backend.txt"):
        needs = re.split(r"\n(?=\S)", (ROOT / "wheels" / name).read_text("utf-8").strip())
        assert len(needs) >= 2
        for need in needs:
            assert re.match(r"[\w.-]+==[\w.]+ ", need), need
            assert "--hash=sha256:" in need, need
