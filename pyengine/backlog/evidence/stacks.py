"""Thread dumps: ``jstack`` (several in one file too), ``py-spy dump`` and the listing inside a running info."""

from __future__ import annotations

import re
import time as clock
from dataclasses import replace

from pyengine.backlog.evidence.model import Evidence, Remark, ThreadDump, ThreadState
from pyengine.backlog.findings import say

JSTACK = "Full thread dump"
_JSTACK_STAMP = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)$")
_JSTACK_THREAD = re.compile(r'^"(?P<name>.*)" (?:#\d+ )?.*?\b[nt]id=')
_JSTACK_PROCESS = re.compile(r'^"VM Thread" .*\btid=(\w+)')  # one a process, at a place of its own
_JCMD = re.compile(r"^\d+:$")
_JSTACK_STATE = re.compile(r"^\s+java\.lang\.Thread\.State: (\w+)")
_JSTACK_WAIT = re.compile(r"^\s+- (?:waiting to lock|waiting on|parking to wait for)\s+(.*)$")
_PYSPY_THREAD = re.compile(r'^Thread (?:0x)?[0-9A-Fa-f]+ \(([\w+]+)\)(?:: "(.*)")?$')
_PYSPY_PROCESS = re.compile(r"^Process \d+:")
_MODULE = re.compile(r"^(?:[\w.]+/)?(?:[\w.]*(?:@[\w.+-]+)?/)(?=[\w.$]+[.(])")
_ROCKETMQ_THREAD = re.compile(r"^(?P<name>.*?)\s*TID: \d+ STATE: (?P<state>\w+)$")


def recognises(text: str) -> bool:
    """True for jstack's or py-spy's output."""
    return JSTACK in text or all(
        re.search(rf"^{mark}", text, re.MULTILINE) for mark in (r"Process \d+: ", r"Python v\d")
    )


def read(text: str, file: str, modified: int | None) -> Evidence:
    """Each dump in the file, in order."""
    return _jstack(text, file, modified) if JSTACK in text else _py_spy(text, file, modified)


def _jstack(text: str, file: str, modified: int | None) -> Evidence:
    found = Evidence()
    time = modified
    threads: list[ThreadState] | None = None
    open_thread: tuple[str, str, list[str], str] | None = None

    def close() -> None:
        nonlocal open_thread
        if open_thread is not None and threads is not None:
            name, state, frames, waiting = open_thread
            threads.append(ThreadState(name, state, tuple(frames), waiting))
        open_thread = None

    for number, line in enumerate(text.splitlines(), 1):
        if match := _JSTACK_STAMP.match(line):
            time = int(clock.mktime(clock.strptime(match[1], "%Y-%m-%d %H:%M:%S"))) * 1000
        elif line.startswith(JSTACK):
            close()
            if threads is not None:
                found.dumps[-1:] = [_dump(found.dumps[-1], threads)]
            threads = []
            found.dumps.append(ThreadDump(file, time, "jstack", "", ()))
        elif threads is None:
            if line.strip() and not _JCMD.match(line):
                found.remarks.append(Remark(file, number, line.strip(), say("before the first thread dump")))
        elif match := _JSTACK_THREAD.match(line):
            close()
            if process := _JSTACK_PROCESS.match(line):
                found.dumps[-1] = replace(found.dumps[-1], process=process[1])
            open_thread = (match["name"], "", [], "")
        elif open_thread is not None:
            name, state, frames, waiting = open_thread
            if match := _JSTACK_STATE.match(line):
                open_thread = (name, match[1], frames, waiting)
            elif line.startswith("\tat "):
                frames.append(line[4:].strip())
            elif match := _JSTACK_WAIT.match(line):
                open_thread = (name, state, frames, waiting or match[1])
            elif not line.strip():
                close()
    close()
    if threads is not None:
        found.dumps[-1:] = [_dump(found.dumps[-1], threads)]
    return found


def _dump(dump: ThreadDump, threads: list[ThreadState]) -> ThreadDump:
    # Threads of the JVM itself (GC, compiler) have no Java stack and say nothing about a consumer.
    return replace(dump, threads=tuple(each for each in threads if each.frames))


def _py_spy(text: str, file: str, modified: int | None) -> Evidence:
    found = Evidence()
    dumps: list[list[ThreadState]] = []
    processes: list[str] = []
    heading = False
    for number, line in enumerate(text.splitlines(), 1):
        if _PYSPY_PROCESS.match(line):
            dumps.append([])
            processes.append(line)
            heading = True  # the command line that follows may have several lines
        elif dumps and (match := _PYSPY_THREAD.match(line)):
            dumps[-1].append(ThreadState(match[2] or "", match[1], ()))
        elif line.startswith("    ") and dumps and dumps[-1]:
            last = dumps[-1][-1]
            dumps[-1][-1] = ThreadState(last.name, last.state, (*last.frames, line.strip()))
        elif line.startswith("Python v"):
            heading = False
        elif line.strip() and not heading:
            found.remarks.append(Remark(file, number, line.strip(), say("not a line of py-spy's dump")))
    found.dumps.extend(
        ThreadDump(file, modified, "py-spy", process, tuple(threads))
        for process, threads in zip(processes, dumps, strict=True)
    )
    return found


def rocketmq(listing: str, client: str, file: str, time: int | None) -> ThreadDump:
    """The listing a RocketMQ client makes of its own threads: the name in front of every line."""
    threads = []
    for block in re.split(r"\n\s*\n", listing):
        lines = block.strip("\n").splitlines()
        if lines and (match := _ROCKETMQ_THREAD.match(lines[0])):
            name = match["name"]
            frames = tuple(_MODULE.sub("", line[max(40, len(name)) :].strip()) for line in lines[1:])
            threads.append(ThreadState(name, match["state"], frames))
    return ThreadDump(file, time, "consumerStatus", client, tuple(threads))
