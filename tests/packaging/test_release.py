"""What wheels/release.py makes of a tree, and what it refuses."""

from __future__ import annotations

import datetime
import json
import re
import shutil
from pathlib import Path

import pytest

from wheels import release

ROOT = Path(__file__).parents[2]
DAY = datetime.date(2026, 12, 1)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (release.VERSION_FILE, release.CHANGELOG, *release.NAMED_IN):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def published(tree: Path) -> Path:
    """A tree that has an address, and 9.0.0 prepared."""
    text = (tree / release.CHANGELOG).read_text("utf-8")
    changes = f"{release.UNRELEASED}\n### Added\n- A thing.\n"
    (tree / release.CHANGELOG).write_text(text.replace(release.UNRELEASED, changes, 1))
    release.readdress("https://github.com/somewhere/pyengine", tree)
    release.prepare("9.0.0", tree, DAY)
    return tree


def test_a_prepared_tree_can_be_released(published: Path) -> None:
    release.check(published, "v9.0.0", "https://github.com/somewhere/pyengine")
    assert release.notes(published).startswith("### Added\n- A thing.\n")
    assert "## [0." not in release.notes(published)
    assert f"## [9.0.0] - {DAY}\n" in (published / release.CHANGELOG).read_text("utf-8")


@pytest.mark.parametrize(
    ("tag", "source", "refused"),
    [
        ("v9.0.1", None, "the tag is v9.0.1, and pyengine/__init__.py has 9.0.0"),
        ("v9.0.0", "https://github.com/fork/pyengine", "run address https://github.com/fork/pyengine"),
    ],
)
def test_a_tag_or_place_that_does_not_fit_is_refused(
    published: Path, tag: str, source: str | None, refused: str
) -> None:
    with pytest.raises(release.NotReadyError, match=re.escape(refused)):
        release.check(published, tag, source)


def test_changes_that_came_since_are_not_forgotten(published: Path) -> None:
    text = (published / release.CHANGELOG).read_text("utf-8")
    (published / release.CHANGELOG).write_text(text.replace(release.UNRELEASED, f"{release.UNRELEASED}- More.\n"))
    with pytest.raises(release.NotReadyError, match="Unreleased"):
        release.check(published)


def test_an_address_that_nobody_owns_is_not_published(published: Path) -> None:
    release.readdress("https://pyengine-dispatch.example/pyengine", published)
    with pytest.raises(release.NotReadyError, match="not a real address"):
        release.check(published, "v9.0.0")


@pytest.mark.parametrize("wrong", ["0.2", "v0.2.0", "0.2.0-dev"])
def test_what_is_not_a_version_is_refused(tree: Path, wrong: str) -> None:
    with pytest.raises(release.NotReadyError, match="is not a version"):
        release.prepare(wrong, tree)


def test_the_address_stands_in_no_file_that_is_not_written_again() -> None:
    """README.md has none: its links are relative, and setup.py makes them absolute."""
    host = release.address().split("/")[2]
    files = [*ROOT.glob("*.md"), *ROOT.glob("*.toml"), *ROOT.glob("*.yml"), *(ROOT / "docs").rglob("*.md"),
             *(ROOT / ".github").rglob("*.*"), *(ROOT / "wheels").glob("*.md")]  # fmt: skip
    named = {path.relative_to(ROOT).as_posix() for path in files if host in path.read_text("utf-8")}
    assert named - set(release.NAMED_IN) == set()


def test_the_list_of_what_is_installed_names_the_version(published: Path) -> None:
    """The tool reads pyproject.toml, in which the version does not stand."""
    sbom = published / "sbom.cdx.json"
    sbom.write_text('{"metadata": {"component": {"name": "pyengine-dispatch", "type": "application"}}}')
    release.name_in(sbom, published)
    component = json.loads(sbom.read_text())["metadata"]["component"]
    assert (component["version"], component["purl"]) == ("9.0.0", "pkg:pypi/pyengine-dispatch@9.0.0")
