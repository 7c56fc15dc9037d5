"""The badges of the README: ``python -m website.badges`` writes docs/badges from pyproject.toml, and a test compares.

They are files of the checkout, so that nothing is fetched from elsewhere and none shows what is not so.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "badges"
WIDTH = 6.6  # pixels of a character of 11 px, a little wide
BADGE = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{name}: {value}">
<title>{name}: {value}</title>
<rect width="{width}" height="20" rx="3" fill="#555"/>
<rect x="{left}" width="{right}" height="20" rx="3" fill="#3f51b5"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="{first}" y="14">{name}</text><text x="{second}" y="14">{value}</text>
</g>
</svg>
"""


def badges() -> dict[str, str]:
    """File name -> content."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project = content["project"]
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    needs = ", ".join(re.split(r"[<>=;]", need)[0] for need in project["dependencies"])
    values = {
        "python": " | ".join(versions),
        "licence": project["license"],
        "types": "mypy strict" if content["tool"]["mypy"]["strict"] else "mypy",
        "needs": needs,
    }
    return {f"{name}.svg": drawn(name, value) for name, value in values.items()}


def drawn(name: str, value: str) -> str:
    """One badge."""
    left, right = round(len(name) * WIDTH) + 12, round(len(value) * WIDTH) + 12
    return BADGE.format(
        name=name, value=value, width=left + right, left=left, right=right, first=left / 2, second=left + right / 2
    )


def main() -> None:
    """Write them."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in badges().items():
        (FOLDER / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
