"""What Arthas' ``thread`` prints: stacks (``thread ID``, ``thread -n N``, ``thread -b``) and its table of threads.

The stacks of one look are those between two prompts; without prompts a thread that comes again begins the next look.
"""

from __future__ import annotations

import re
from dataclasses import field

from pyengine.backlog.diagnosis.evidence.model import Evidence, Source, ThreadDump, ThreadState
from pyengine.backlog.diagnosis.evidence.transcript import moment_of
from pyengine.backlog.findings import say
from pyengine.dataclass import dataclass

STACKS_TOO = say("the table has no stacks; give `thread -n 20` (or jstack) three times, some seconds apart")
# "worker-1" Id=44 cpuUsage=0.1% deltaTime=0ms time=12ms WAITING on java.lang.Object@1b2c owned by "worker-2" Id=9
_THREAD = re.compile(
    r'^"(?P<name>.*)" (?:Id=(?P<id>-?\d+)|\[Internal\])(?: cpuUsage=[\d.]+%)?(?: deltaTime=\d+ms)?'
    r"(?: time=(?P<time>\d+)ms)?(?: (?P<state>NEW|RUNNABLE|BLOCKED|WAITING|TIMED_WAITING|TERMINATED)"
    r"(?: on (?P<lock>\S+))?(?: owned by \".*\" Id=\d+)?(?: \(suspended\)| \(in native\))*)?\s*$"
)
_FRAME = re.compile(r"^\s+at (\S.*?)\s*$")
_LOCKED = re.compile(r"^\s+-\s+locked (\S+)")
_OWNED = re.compile(r"^\s+- (\S+@[0-9a-f]+)")
_PROMPT = re.compile(r"\[arthas@(?P<process>\d+)\]\$")
_TABLE = re.compile(r"^\s*ID\s+NAME\s+GROUP\s+PRIORITY\s+STATE\s+%CPU\s")
_TOTAL = re.compile(r"^Threads Total: \d+, NEW: \d+")


def recognises(text: str) -> bool:
    """True for a thread as Arthas prints it with its stack, for its table of threads and for its prompt."""
    lines = text.splitlines()
    return any(
        _THREAD.match(line) or _TABLE.match(line) or _TOTAL.match(line) or _PROMPT.search(line) for line in lines
    )


@dataclass(slots=True)
class _Thread:
    name: str
    ident: str
    state: str
    waiting_for: str
    cpu: float | None
    frames: list[str] = field(default_factory=list)
    holds: list[str] = field(default_factory=list)

    def state_of(self) -> ThreadState:
        return ThreadState(
            self.name, self.state, tuple(self.frames), self.waiting_for, self.ident, tuple(self.holds), self.cpu
        )


@dataclass(slots=True)
class _Look:
    """The stacks between two prompts."""

    time: int | None
    threads: list[_Thread] = field(default_factory=list)


def read(text: str, file: str, modified: int | None) -> Evidence:
    """Each look in the text."""
    looks: list[_Look] = []
    process, time, fresh = "", modified, True
    for line in text.splitlines():
        if prompt := _PROMPT.search(line):
            process, fresh = prompt["process"], True
        elif (moment := moment_of(line)) is not None:
            time, fresh = moment, True
        elif thread := _THREAD.match(line):
            ident = thread["id"] or ""
            if fresh or any(each.ident == ident and each.name == thread["name"] for each in looks[-1].threads):
                looks.append(_Look(time))
                fresh = False
            lock = f"<{thread['lock']}>" if thread["lock"] else ""
            cpu = float(thread["time"]) if thread["time"] else None
            looks[-1].threads.append(_Thread(thread["name"], ident, thread["state"] or "", lock, cpu))
        elif looks and not fresh:
            _line(looks[-1].threads[-1], line)
    found = Evidence()
    for look in looks:
        threads = tuple(each.state_of() for each in look.threads if each.frames)
        if threads:
            found.dumps.append(ThreadDump(file, look.time, "arthas", process, threads))
    times = sorted({each.time for each in found.dumps if each.time is not None})
    found.sources.append(Source(file, "Arthas thread", tuple(times), needs="" if found.dumps else STACKS_TOO))
    return found


def _line(thread: _Thread, line: str) -> None:
    """Take over one more line of a thread."""
    if frame := _FRAME.match(line):
        thread.frames.append(frame[1])
    elif held := _LOCKED.match(line) or _OWNED.match(line):
        thread.holds.append(held[1])
