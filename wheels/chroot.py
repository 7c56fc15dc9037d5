"""Run the steps of the Dockerfile without a container engine: ``python wheels/chroot.py FOLDER COMMAND...``, as root.

FOLDER is a Debian with Python, as ``debootstrap --include=python3-venv,python3-dev,gcc,libc6-dev sid FOLDER`` makes.
Both stages run in it, in a virtual environment that stands for the Python of the image; COMMAND is then given to the
entry point, as the user that the Dockerfile names. Two things differ from an image: the base, and that the compiler is
there.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON = "/opt/python"  # the environment in the chroot


def steps() -> list[tuple[str, str]]:
    """(instruction, arguments) of the Dockerfile, with the defaults of its arguments."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE)
    found = [(name, rest) for name, _, rest in (line.partition(" ") for line in text.splitlines() if line)]
    given = dict(rest.split("=") for name, rest in found if name == "ARG")
    return [(name, re.sub(r"\$\{(\w+)\}", lambda each: given[each[1]], rest)) for name, rest in found if name != "ARG"]


class Chroot:
    """A folder in which the steps run. folder: a whole Debian."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.where, self.user = folder, "/", "root"
        self.entry: list[str] = []

    def run(self, command: list[str]) -> int:
        """Run a command as the present user in the present folder; return its exit code."""
        line = f"cd {self.where} && export PATH={PYTHON}/bin:$PATH HOME=/root && exec {shlex.join(command)}"
        shell = ["chroot", "--userspec", self.user, str(self.folder), "/bin/sh", "-c", line]
        return subprocess.run(shell, check=False).returncode

    def copy(self, arguments: str) -> None:
        """COPY from the checkout; from another stage nothing has to be copied, since the folder is the same."""
        *sources, target = arguments.split()
        for name in sources:
            place = self.folder / target.lstrip("/") / ("" if (ROOT / name).is_dir() else Path(name).name)
            place.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_dir():
                made = shutil.ignore_patterns("*.so", "__pycache__")
                shutil.copytree(ROOT / name, place, ignore=made, dirs_exist_ok=True)
            else:
                shutil.copy(ROOT / name, place)

    def step(self, name: str, rest: str) -> None:
        """One instruction. Raises SystemExit if it fails or is not known."""
        print(f"{name} {rest}", flush=True)
        match name:
            case "COPY" if not rest.startswith("--from="):
                self.copy(rest)
            case "RUN":
                if rest.startswith("useradd") and f"\n{rest.split()[-1]}:" in (self.folder / "etc/passwd").read_text():
                    return
                if self.run(["/bin/sh", "-c", rest]):
                    raise SystemExit(f"failed: RUN {rest}")
            case "WORKDIR":
                self.where = rest
                (self.folder / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
            case "USER":
                self.user = rest
            case "FROM":
                self.where, self.user = "/", "root"
            case "ENTRYPOINT":
                self.entry = json.loads(rest)
            case "COPY" | "STOPSIGNAL" | "CMD":
                pass
            case _:
                raise SystemExit(f"wheels/chroot.py does not know the instruction {name}")


def main() -> int:
    """Play the Dockerfile, then start its entry point with the arguments."""
    folder, *arguments = sys.argv[1:]
    chroot = Chroot(Path(folder))
    if chroot.run(["python3", "-m", "venv", PYTHON]):
        raise SystemExit(f"{folder} has no Python with venv")
    for name, rest in steps():
        chroot.step(name, rest)
    return chroot.run([*chroot.entry, *arguments])


if __name__ == "__main__":
    sys.exit(main())
