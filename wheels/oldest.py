"""The oldest releases that extras of pyproject.toml allow, as pip takes them: ``python wheels/oldest.py spark cli``."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def oldest(extras: Iterable[str]) -> list[str]:
    """``name==version`` of each requirement of the project and of the extras; of one that is named twice the later."""
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    lowest: dict[str, str] = {}
    for line in wanted:
        found = re.match(r"([A-Za-z0-9_.-]+)\s*[>=]=\s*([0-9.]+)", line)
        if found is None:
            sys.exit(f"{line}: names no oldest release")
        lowest[found[1]] = max(
            found[2], lowest.get(found[1], ""), key=lambda text: [*map(int, filter(None, text.split(".")))]
        )
    return [f"{name}=={version}" for name, version in lowest.items()]


if __name__ == "__main__":
    print(*oldest(sys.argv[1:]))
