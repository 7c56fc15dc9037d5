"""Build the source distribution, a wheel from it for each supported Python, repair, check, install and exercise them.

    python wheels/build.py                            # every supported Python on PATH
    python wheels/build.py python3.14 /opt/py/bin/python3.13    # these
    python wheels/build.py --twice                    # and each wheel again: both must be the same byte for byte

The same sources give the same bytes: times in the archives are SOURCE_DATE_EPOCH, by default that of the last commit.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUT = ROOT / "dist" / "wheels"
SUPPORTED = ((3, 11), (3, 12), (3, 13), (3, 14))
NEWEST_PLATFORM = f"manylinux_2_34_{platform.machine()}"
LARGEST = 8 << 20  # bytes of a wheel; one of 157 rooms has 6.2 MB
LIBRARIES = r"libc\.so\.6|libm\.so\.6|libpthread\.so\.0|ld-linux-[\w-]+\.so\.\d|libc\.musl-\w+\.so\.1"
SYMBOLS = r"PyInit_\w+|__pyx_module_is_main_\w+|__pyx_wrapperbase_\w+"
TOOLS = ROOT / "wheels" / "requirements.txt"  # pinned, as is the next
BACKEND = ROOT / "wheels" / "backend.txt"


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    """Run a command, show what it prints if it fails, and return its standard output."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


@functools.cache
def epoch() -> str:
    """The time that the archives bear, in seconds: the environment's, or that of the last commit, or 1980."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return given
    if (ROOT / ".git").exists() and shutil.which("git"):
        return run("git", "log", "-1", "--format=%ct").strip()
    return "315532800"


def changes() -> list[str]:
    """Files of the checkout that differ from its commit; none where there is no git."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        return []
    return run("git", "diff", "HEAD", "--name-only").split()


def version_of(python: str) -> str | None:
    """The version and ABI of an interpreter that can make environments, such as 3.14 or 3.14t; None if it cannot."""
    code = "import sys, venv, ensurepip; print('%d.%d%s' % (*sys.version_info[:2], sys.abiflags))"
    try:
        asked = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return asked.stdout.strip() or None


def interpreters(given: list[str]) -> dict[str, str]:
    """Version -> interpreter, of those that are named, or of the supported ones that really run here."""
    named = given or [sys.executable, *(f"python{major}.{minor}" for major, minor in SUPPORTED)]
    found: dict[str, str] = {}
    for python in named:
        version = version_of(python)
        if version is None and given:
            sys.exit(f"{python} does not run here, or has no venv and ensurepip: install its venv package")
        if version is not None:
            found.setdefault(version, python)
    return found


def make_sdist(tools: Path) -> Path:
    """The source distribution, which needs no git and no compiler; its metadata and README are checked."""
    run(tools / "python", "-m", "build", "--sdist", "--outdir", OUT, ROOT, SOURCE_DATE_EPOCH=epoch())
    (sdist,) = OUT.glob("*.tar.gz")
    run(tools / "python", "-m", "twine", "check", "--strict", sdist)
    return sdist


def unpack(sdist: Path, folder: Path) -> Path:
    """The sources of the source distribution, in a folder of their own."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (sources,) = folder.glob("pyengine_dispatch-*/")
    return sources


def make_wheel(python: str, sources: Path, tools: Path, scratch: Path, newest: str, **environment: str) -> Path:
    """Build one wheel with ``python`` from unpacked sources, and repair it; return the finished file.

    What Cython makes of the sources is the same for each Python, and is made by the first.
    """
    builder = scratch / "builder"
    run(python, "-m", "venv", builder)
    run(builder / "bin" / "pip", "install", "--quiet", "--requirement", BACKEND)
    # Without the linker's options of the Python that builds, which may name folders of this machine.
    linker = {"LDSHARED": "cc -shared"} if sys.platform == "linux" else {}
    command = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", scratch / "built"]
    run(builder / "bin" / "python", *command, sources, SOURCE_DATE_EPOCH=epoch(), **linker, **environment)
    (built,) = (scratch / "built").glob("*.whl")
    if sys.platform != "linux":
        return built
    path = f"{tools}:{os.environ['PATH']}"
    repair = ["repair", "--plat", newest, "--wheel-dir", scratch / "repaired", built]
    run(tools / "auditwheel", *repair, PATH=path, SOURCE_DATE_EPOCH=epoch())
    (finished,) = (scratch / "repaired").glob("*.whl")
    return finished


def check(wheel: Path, scratch: Path) -> str:
    """Size, licence, stubs, and what each compiled room loads and shows; a line about it, or the end."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(scratch / "unpacked")
    rooms = sorted((scratch / "unpacked").rglob("*.so"))
    wrong = [] if wheel.stat().st_size <= LARGEST else [f"{wheel.stat().st_size} bytes, more than {LARGEST}"]
    if not any(name.endswith(".dist-info/licenses/LICENSE") for name in names):
        wrong.append("no licence in it")
    if len([name for name in names if name.endswith(".pyi")]) < len(rooms) - 1:  # one is Cython's own
        wrong.append("stubs are missing")
    for room in rooms if sys.platform == "linux" else []:
        dynamic = run("readelf", "-Wd", room)
        loaded = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
        shown = [line.split()[-1] for line in run("nm", "-D", "--defined-only", room).splitlines()]
        wrong += [f"{room.name} loads {name}" for name in loaded if not re.fullmatch(LIBRARIES, name)]
        wrong += [f"{room.name} shows {name}" for name in shown if not re.fullmatch(SYMBOLS, name.partition("@")[0])]
        wrong += [f"{room.name} looks for libraries in {path}" for path in re.findall(r"PATH\).*\[(.+)\]", dynamic)]
        if ".debug_info" in run("readelf", "-WS", room):
            wrong.append(f"{room.name} has debug information")
    if wrong:
        sys.exit("\n".join(f"{wheel.name}: {each}" for each in wrong))
    return f"{wheel.stat().st_size // 1024} KiB, {len(rooms)} rooms, which load the C library only"


def exercise(python: str, wheel: Path, scratch: Path) -> str:
    """Install a wheel into an empty environment and run wheels/exercise.py there."""
    clean = scratch / "clean"
    run(python, "-m", "venv", clean)
    run(clean / "bin" / "pip", "install", "--quiet", wheel)
    return run(clean / "bin" / "python", ROOT / "wheels" / "exercise.py", cwd=scratch).strip()


def main() -> None:
    """Make and prove a source distribution, and a wheel for each interpreter."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python", nargs="*", help="interpreters; without one, the supported ones on PATH")
    parser.add_argument("--twice", action="store_true", help="build each wheel twice and compare the bytes")
    parser.add_argument("--platform", default=NEWEST_PLATFORM, help="the newest tag that a wheel may have")
    given = parser.parse_args()
    if changed := changes():
        print(f"not committed, so the times in the archives are an earlier commit's: {', '.join(changed)}", flush=True)
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    found = interpreters(given.python)
    with tempfile.TemporaryDirectory() as scratch:
        run(sys.executable, "-m", "venv", Path(scratch) / "tools")
        tools = Path(scratch) / "tools" / "bin"
        run(tools / "pip", "install", "--quiet", "--requirement", TOOLS)
        sdist = make_sdist(tools)
        print(f"{sdist.relative_to(ROOT)} {sdist.stat().st_size // 1024} KiB, {digest(sdist)}", flush=True)
        first = unpack(sdist, Path(scratch) / "first")
        second = unpack(sdist, Path(scratch) / "second" / "time") if given.twice else first
        for version, python in sorted(found.items()):
            print(f"Python {version}: building from the sdist, repairing, checking, installing", flush=True)
            with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
                made = again = make_wheel(python, first, tools, Path(one), given.platform)
                if given.twice:  # in another folder, and nothing of it out of ccache
                    again = make_wheel(python, second, tools, Path(other), given.platform, CCACHE_DISABLE="1")
                if digest(made) != digest(again):
                    shutil.copy2(again, OUT / f"{again.name}.second")
                    shutil.copy2(made, OUT)
                    sys.exit(f"{made.name}: two builds differ; both are in {OUT.relative_to(ROOT)}")
                wheel = Path(shutil.copy2(made, OUT))
                print(f"  {wheel.name}: {check(wheel, Path(one))}")
                print(f"  {digest(wheel)}{', twice' if given.twice else ''}")
                run(tools / "python", "-m", "twine", "check", "--strict", wheel)
                print(f"  {exercise(python, wheel, Path(one))}", flush=True)
    for major, minor in SUPPORTED if not given.python else ():
        if f"{major}.{minor}" not in found:
            print(f"Python {major}.{minor}: not on PATH, not tried")


def digest(file: Path) -> str:
    """The SHA-256 of a file, as an index shows it."""
    return f"sha256 {hashlib.sha256(file.read_bytes()).hexdigest()}"


if __name__ == "__main__":
    main()
