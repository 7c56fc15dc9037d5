"""The workflows of the CI: their form, and that what they start is here. None of them has run: wheels/README.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from check_jsonschema import main as check_jsonschema
from click.testing import CliRunner

from wheels.build import SUPPORTED

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = [path for path in sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")) if path.stem != "config"]
TOOLS = Path(sys.executable).parent
VERSIONS = [f"{major}.{minor}" for major, minor in SUPPORTED]


def started(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)


def jobs(workflow: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(workflow.read_text("utf-8"))["jobs"]
    return found


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-workflows", WORKFLOWS),
        ("vendor.dependabot", [ROOT / ".github/dependabot.yml"]),
        ("vendor.github-actions", [ROOT / "action.yml"]),
        ("vendor.github-issue-forms", FORMS),
        ("vendor.github-issue-config", [ROOT / ".github/ISSUE_TEMPLATE/config.yml"]),
    ],
    ids=["workflows", "dependabot", "action", "forms", "contacts"],
)
def test_the_form_is_that_of_the_schema(schema: str, files: list[Path]) -> None:
    done = CliRunner().invoke(check_jsonschema, ["--builtin-schema", schema, *map(str, files)])
    assert done.exit_code == 0, done.output


def test_cibuildwheel_builds_every_supported_python_and_nothing_else() -> None:
    done = started("cibuildwheel", "--platform", "linux", "--print-build-identifiers", ".")
    assert done.returncode == 0, done.stderr
    tags = [version.replace("3.", "cp3") for version in VERSIONS]
    kinds = ("manylinux_x86_64", "manylinux_aarch64", "musllinux_x86_64", "musllinux_aarch64")
    assert sorted(done.stdout.split()) == sorted(f"{tag}-{kind}" for tag in tags for kind in kinds)


def test_supported_versions_are_the_same_everywhere() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert re.findall(r"Programming Language :: Python :: (3\.\d+)", text) == VERSIONS
    assert jobs(ROOT / ".github/workflows/test.yml")["test"]["strategy"]["matrix"]["python"] == VERSIONS


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_what_a_workflow_starts_is_here(workflow: Path) -> None:
    targets = re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    text = workflow.read_text("utf-8")
    wanted = re.findall(r"make ([a-z][\w-]*)", re.sub(r"#.*", "", text))
    wanted += [each.split()[0] for job in jobs(workflow).values()
               for each in job.get("strategy", {}).get("matrix", {}).get("target", [])]  # fmt: skip
    assert [target for target in wanted if target not in targets] == []
    for file in re.findall(r"(?:python|--requirement|uses:) (\./[\w/.-]+|wheels/[\w./-]+)", text):
        assert (ROOT / file).is_file(), file


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_jobs_have_few_rights_and_end(workflow: Path) -> None:
    assert yaml.safe_load(workflow.read_text("utf-8"))["permissions"] == {"contents": "read"}
    for name, job in jobs(workflow).items():
        assert "uses" in job or job["timeout-minutes"] <= 180, name
    rights = {name: job["permissions"] for name, job in jobs(workflow).items() if "permissions" in job}
    assert rights == {
        "release": {"publish": {"contents": "write", "id-token": "write", "attestations": "write"}},
        "site": {"publish": {"pages": "write", "id-token": "write"}},
    }.get(workflow.stem, {})


def test_nothing_is_published_without_tests_or_with_a_token() -> None:
    publish = jobs(ROOT / ".github/workflows/release.yml")["publish"]
    assert publish["needs"] == ["test", "wheels"]
    assert publish["environment"] == {"name": "pypi"}
    assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text("utf-8")
