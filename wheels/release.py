"""Prepare a release, look whether the tree is one, and print its notes.

    python wheels/release.py prepare 0.2.0          # the version, and a heading with today's date in CHANGELOG.md
    python wheels/release.py address https://github.com/OWNER/NAME    # where the project lies, wherever it is named
    python wheels/release.py check [--tag v0.2.0] [--source ADDRESS]
    python wheels/release.py notes                  # the changes of this version, for the page of the release
    python wheels/release.py sbom out/sbom/sbom.cdx.json    # write the version into it, which pyproject.toml has not

The version stands in pyengine/__init__.py, the address in [project.urls] of pyproject.toml. It needs no package.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION_FILE = "pyengine/__init__.py"
CHANGELOG = "CHANGELOG.md"
NAMED_IN = ("pyproject.toml", "SECURITY.md", "CODE_OF_CONDUCT.md", ".github/ISSUE_TEMPLATE/config.yml")
NOT_PUBLISHED = ".example"  # no host of the world has a name that ends so
UNRELEASED = "## [Unreleased]\n"


class NotReadyError(Exception):
    """The tree is not a release: what is wrong, and what to do."""


def version(root: Path = ROOT) -> str:
    """The version that the tree has."""
    found = re.search(r'^__version__ = "(.+)"$', (root / VERSION_FILE).read_text("utf-8"), re.MULTILINE)
    if not found:
        raise NotReadyError(f'{VERSION_FILE}: no line __version__ = "..."')
    return found[1]


def address(root: Path = ROOT) -> str:
    """Where the sources lie, as pyproject.toml says."""
    return str(tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Source"])


def notes(root: Path = ROOT) -> str:
    """What CHANGELOG.md lists under the version, without its heading."""
    text = (root / CHANGELOG).read_text("utf-8")
    found = re.search(rf"^## \[{re.escape(version(root))}\].*\n((?:(?!## \[).*\n)*)", text, re.MULTILINE)
    if not found or not found[1].strip():
        raise NotReadyError(f"{CHANGELOG} lists nothing under [{version(root)}]: run prepare")
    return found[1].strip() + "\n"


def prepare(new: str, root: Path = ROOT, today: datetime.date | None = None) -> None:
    """Write a new version and turn what is unreleased into it."""
    if not re.fullmatch(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?", new):
        raise NotReadyError(f"{new!r} is not a version such as 0.2.0 or 0.2.0rc1")
    text = (root / CHANGELOG).read_text("utf-8")
    if UNRELEASED not in text or not text.partition(UNRELEASED)[2].partition("\n## [")[0].strip():
        raise NotReadyError(f"{CHANGELOG} has nothing under [Unreleased]")
    if f"## [{new}]" in text:
        raise NotReadyError(f"{CHANGELOG} has a heading [{new}] already")
    heading = f"{UNRELEASED}\n## [{new}] - {today or datetime.date.today()}\n"
    (root / CHANGELOG).write_text(text.replace(UNRELEASED, heading, 1), "utf-8")
    file = root / VERSION_FILE
    file.write_text(file.read_text("utf-8").replace(f'"{version(root)}"', f'"{new}"', 1), "utf-8")


def readdress(new: str, root: Path = ROOT) -> None:
    """Write the address of the sources wherever it is named."""
    if not re.fullmatch(r"https://[^/\s]+/\S*[^/\s]", new):
        raise NotReadyError(f"{new!r} is not an address such as https://github.com/OWNER/NAME")
    old = address(root)
    for name in NAMED_IN:
        if (root / name).exists():
            (root / name).write_text((root / name).read_text("utf-8").replace(old, new), "utf-8")


def name_in(sbom: Path, root: Path = ROOT) -> None:
    """Write the version of the tree into the main component of a CycloneDX document."""
    document = json.loads(sbom.read_text("utf-8"))
    component = document["metadata"]["component"]
    component["version"] = version(root)
    component["purl"] = f"pkg:pypi/{component['name']}@{version(root)}"
    sbom.write_text(json.dumps(document, indent=2) + "\n", "utf-8")


def check(root: Path = ROOT, tag: str | None = None, source: str | None = None) -> None:
    """Raise NotReadyError if the tree is not what a tag may publish."""
    if tag is not None and tag != f"v{version(root)}":
        raise NotReadyError(f"the tag is {tag}, and {VERSION_FILE} has {version(root)}: tag v{version(root)}")
    notes(root)
    unreleased = (root / CHANGELOG).read_text("utf-8").partition(UNRELEASED)[2].partition("\n## [")[0]
    if unreleased.strip():
        raise NotReadyError(f"{CHANGELOG} has changes under [Unreleased]: run prepare")
    if source is not None and source != address(root):
        raise NotReadyError(f"[project.urls] has {address(root)}, and this is {source}: run address {source}")
    if tag is not None and address(root).split("/")[2].endswith(NOT_PUBLISHED):
        raise NotReadyError(f"[project.urls] has {address(root)}, which is not a real address: run address")


def main() -> int:
    """Run one of the steps; 1 and a sentence if it cannot be done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("prepare").add_argument("version")
    steps.add_parser("address").add_argument("address")
    checking = steps.add_parser("check")
    checking.add_argument("--tag")
    checking.add_argument("--source")
    steps.add_parser("notes")
    steps.add_parser("sbom").add_argument("file", type=Path)
    given = parser.parse_args()
    try:
        match given.step:
            case "prepare":
                prepare(given.version)
            case "address":
                readdress(given.address)
            case "check":
                check(tag=given.tag, source=given.source)
                print(f"{version()} can be released")
            case "sbom":
                name_in(given.file)
            case "notes":
                print(notes(), end="")
    except NotReadyError as error:
        print(f"not ready: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
