"""The Dockerfile takes what is here, knows its extras, and leaves a user without rights; wheels/chroot.py plays it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from wheels.chroot import Chroot, steps

ROOT = Path(__file__).parents[2]


def test_what_it_copies_is_here_and_is_sent_to_the_builder() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split()
    copied = [name for step, rest in steps() if step == "COPY" and "--from=" not in rest for name in rest.split()[:-1]]
    assert {"setup.py", "engine", "pyengine"} < set(copied)
    for name in copied:
        assert (ROOT / name).exists(), name
        assert f"!{name}" in ignored, name


def test_every_source_of_the_build_is_copied() -> None:
    copied = {name for step, rest in steps() if step == "COPY" for name in rest.split()[:-1]}
    included = set(re.findall(r"^include (.+)$", (ROOT / "MANIFEST.in").read_text("utf-8"), re.MULTILINE)[0].split())
    assert included | {"pyproject.toml", "setup.py", "MANIFEST.in", "pyengine_pytest.py"} <= copied


def test_its_extras_are_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (extras,) = re.findall(r"\.whl\)\[([\w,]+)\]", (ROOT / "Dockerfile").read_text("utf-8"))
    assert set(extras.split(",")) <= set(project["optional-dependencies"])


def test_its_last_stage_has_a_user_and_the_command_line(tmp_path: Path) -> None:
    chroot = Chroot(tmp_path)
    for name, rest in steps():
        if name in ("FROM", "USER", "WORKDIR", "ENTRYPOINT"):
            chroot.step(name, rest)
    assert (chroot.user, chroot.where, chroot.entry) == ("pyengine", "/home/pyengine", ["pyengine"])
