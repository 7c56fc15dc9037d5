"""``pyengine watch``: dumps of a running process, taken one after another and compared."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.progress import track

from pyengine.backlog.diagnosis.evidence import Evidence, read_text
from pyengine.backlog.diagnosis.rules import threads
from pyengine.backlog.findings import Finding, Language, say
from pyengine.errors import InvalidSourceError

TOOLS = {"jstack": ("jstack", "{pid}"), "py-spy": ("py-spy", "dump", "--pid", "{pid}")}
PATIENCE = 60  # seconds


def tool_for(pid: int) -> str:
    """jstack for a Java process, py-spy for any other; chosen by the process's own name if the system shows it."""
    name = Path(f"/proc/{pid}/comm")
    return "jstack" if name.exists() and name.read_bytes().strip() == b"java" else "py-spy"


def ask(pid: int, samples: int, every: int, tool: str, language: Language = "en") -> tuple[Evidence, list[Finding]]:
    """``samples`` dumps, ``every`` ms apart, and the consumer threads that stand still in all of them.

    Raises InvalidSourceError if the tool is missing or cannot look into the process.
    """
    tool = tool or tool_for(pid)
    command = [part.format(pid=pid) for part in TOOLS[tool]]
    # A tool of this very environment counts although the environment is not activated.
    command[0] = shutil.which(command[0]) or shutil.which(command[0], path=str(Path(sys.executable).parent)) or ""
    if not command[0]:
        hint = "it comes with a JDK" if tool == "jstack" else "pip install py-spy"
        raise InvalidSourceError(f"process {pid}", f"{tool} is not on PATH", hint)
    evidence = Evidence()
    console = Console(stderr=True)
    words = say("taking dumps").in_language(language)
    for number in track(range(samples), words, console=console, transient=True, disable=not console.is_terminal):
        if number:
            time.sleep(every / 1000)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False, timeout=PATIENCE
            )
        except subprocess.TimeoutExpired as error:
            raise InvalidSourceError(
                f"process {pid}", f"{tool} did not answer in {PATIENCE} s", "does the process still run?"
            ) from error
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
            raise InvalidSourceError(f"process {pid}", f"{tool} failed: {said[0]}", "is it yours, and does it run?")
        evidence.add(read_text(done.stdout, f"dump {number + 1} of process {pid}", time.time_ns() // 1_000_000))
    return evidence, list(threads.findings(evidence))
