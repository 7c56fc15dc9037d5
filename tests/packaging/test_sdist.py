"""The source distribution: made without git and without compiling, whole, with a README for an index."""

from __future__ import annotations

import email
import email.message
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_KEPT = ("*.so", "*.pyd", "__pycache__")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made in a copy of the tree as it is built, with a PATH that has no program at all."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("out")
    for name in ("engine", "pyengine"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns(*NOT_KEPT))
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "LICENSE", "README.md", "README.zh.md", "CHANGELOG.md",
                 "pyengine_pytest.py"):  # fmt: skip
        shutil.copy(ROOT / name, tree)
    code = f"import setuptools.build_meta as backend; backend.build_sdist({str(out)!r})"
    environment = {**os.environ, "PATH": "", "SOURCE_DATE_EPOCH": "1764201600"}
    subprocess.run([sys.executable, "-c", code], cwd=tree, env=environment, check=True, capture_output=True)
    assert not list(tree.rglob("*.c")), "something was translated"
    (found,) = out.glob("pyengine_dispatch-*.tar.gz")
    return found


@pytest.fixture(scope="module")
def metadata(sdist: Path) -> email.message.Message:
    with tarfile.open(sdist) as archive:
        (name,) = [name for name in archive.getnames() if re.fullmatch(r"[^/]+/PKG-INFO", name)]
        member = archive.extractfile(name)
        assert member
        return email.message_from_bytes(member.read())


def test_it_has_every_source_and_nothing_that_is_made(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    names = {name for name in names if ".egg-info/" not in name} - {"PKG-INFO", "setup.cfg"}
    wanted = {path.relative_to(ROOT).as_posix() for path in (ROOT / "engine").rglob("*") if path.is_file()}
    wanted |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "pyengine").rglob("*") if path.is_file()}
    kept = (ROOT / "pyengine/_engine").glob("*.*")
    wanted -= {name for name in wanted if name.startswith("pyengine/_engine/")}
    wanted |= {path.relative_to(ROOT).as_posix() for path in kept}
    wanted = {name for name in wanted if not re.search(r"\.(?:so|pyd|pyc|c)$", name)}
    assert wanted - names == set()
    rest = {"LICENSE", "README.md", "README.zh.md", "CHANGELOG.md", "MANIFEST.in", "pyproject.toml", "setup.py",
            "pyengine_pytest.py"}  # fmt: skip
    assert names - wanted == rest


def test_links_of_the_readme_lead_out_of_the_index(metadata: email.message.Message) -> None:
    text = str(metadata.get_payload())
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 40
    assert [link for link in links if not link.startswith("https://")] == []
    assert f"/raw/v{metadata['Version']}/docs/plots/diagnosis.png" in text
    assert f"/blob/v{metadata['Version']}/docs/selectors.md" in text
    assert metadata["Description-Content-Type"] == "text/markdown"


def test_its_addresses_are_of_one_project(metadata: email.message.Message) -> None:
    addresses = dict(each.split(", ") for each in metadata.get_all("Project-URL") or [])
    assert set(addresses) == {"Homepage", "Documentation", "Source", "Changelog", "Issues"}
    assert {address for address in addresses.values() if not address.startswith(addresses["Source"])} == set()
