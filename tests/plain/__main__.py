"""``python -m tests.plain``: the rooms with loops for AVX, compiled for any x86-64 or aarch64, beside those that are
installed: the same answers, at most LIMIT times the time. Then the same answers on an emulated processor without AVX.

The package is copied to build/plain, and these rooms' C is compiled there with PYENGINE_PLAIN. It needs gcc, a core
that is built, and for the last part qemu-x86_64 (Debian: qemu-user-static).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.recompiled import ROOT, recompile

COPY = ROOT / "build" / "plain"
ROOMS = ["columns/kernels", "index/segment", "rocketmq/client/allocation"]
FLAGS = ["-O3", "-g0", "-ffp-contract=off", "-fno-strict-aliasing", "-fwrapv", "-DNDEBUG", "-DPYENGINE_PLAIN"]
LIMIT = 3.0
TURNS = 3
PROCESSOR = "Nehalem"  # x86-64 with SSE4.2, which numpy's wheels need, and nothing later


def emulator() -> str | None:
    """The command that runs a program of x86-64 on another processor."""
    return shutil.which("qemu-x86_64-static") or shutil.which("qemu-x86_64")


def measured(folder: Path, size: int, emulated: str | None = None) -> dict[str, tuple[str, float]]:
    """Loop -> its digest and seconds, with the package of a folder."""
    command = [sys.executable, "-m", "tests.plain.workload", str(size)]
    if emulated is not None:
        command = [emulated, "-cpu", PROCESSOR, *command]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    return {name: (digest, float(seconds)) for name, digest, seconds in lines}


def main() -> int:
    recompile(COPY, ROOMS, FLAGS)
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    wide, plain = measured(ROOT, size), measured(COPY, size)
    for _ in range(TURNS - 1):
        for folder, found in ((ROOT, wide), (COPY, plain)):
            for name, (digest, seconds) in measured(folder, size).items():
                found[name] = (digest, min(found[name][1], seconds))
    wrong = 0
    for name, (digest, seconds) in wide.items():
        ratio = plain[name][1] / seconds
        verdict = "other answers" if plain[name][0] != digest else "too slow" if ratio > LIMIT else ""
        wrong += bool(verdict)
        print(f"{name:24} {1000 * seconds:9.3f} ms {1000 * plain[name][1]:9.3f} ms {ratio:5.2f}x {verdict}")
    emulated = emulator()
    if emulated is None:
        print("not run on a processor without AVX: qemu-x86_64 is missing (Debian: qemu-user-static)")
        return int(bool(wrong))
    few = max(100, size // 10)
    native, other = measured(ROOT, few), measured(ROOT, few, emulated)
    differ = [name for name in native if native[name][0] != other[name][0]]
    print(f"on {PROCESSOR}, emulated: {len(native) - len(differ)} of {len(native)} loops answer alike", *differ)
    return int(bool(wrong or differ))


if __name__ == "__main__":
    sys.exit(main())
