"""``python -m tests.sanitized ROOM... -- ARGUMENTS...``: Python with rooms of the core that check their memory.

A room is as ``wire/stomp``. The package is copied to build/sanitized, these rooms' C is compiled there with gcc's
address and undefined-behaviour sanitizers, and Python runs on that copy; the first wrong access ends it. It needs
gcc with libasan, and a core that is built.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.recompiled import ROOT, recompile

COPY = ROOT / "build" / "sanitized"
FLAGS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-g", "-O1"]


def main() -> int:
    """Copy, compile, run."""
    at = sys.argv.index("--")
    rooms, arguments = sys.argv[1:at], sys.argv[at + 1 :]
    recompile(COPY, rooms, FLAGS)
    library = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    environment = {
        **os.environ,
        "LD_PRELOAD": library.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0:malloc_context_size=2",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(COPY),
    }
    return subprocess.run([sys.executable, *arguments], cwd=COPY, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
