"""Thread dumps: ``jstack`` (several in one file too), ``jcmd PID Thread.dump_to_file`` as text and as JSON, ``py-spy
dump`` and the listing inside a running info."""

from __future__ import annotations

import json
import re
import time as clock
from dataclasses import replace
from datetime import datetime
from typing import Any

from pyengine.backlog.diagnosis.evidence.model import Evidence, Remark, ThreadDump, ThreadState
from pyengine.backlog.findings import say

JSTACK = "Full thread dump"
_JSTACK_STAMP = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)$")
_JSTACK_THREAD = re.compile(r'^"(?P<name>.*)" (?:#(?P<number>\d+) )?.*?\b[nt]id=(?P<address>\w+)')
_JSTACK_CPU = re.compile(r'^".*" .*?\bcpu=([\d.]+)ms')
_JSTACK_PROCESS = re.compile(r'^"VM Thread" .*\btid=(\w+)')  # one a process, at a place of its own
_JCMD = re.compile(r"^\d+:$")
_JSTACK_STATE = re.compile(r"^\s+java\.lang\.Thread\.State: (\w+)")
_JSTACK_WAIT = re.compile(r"^\s+- (?:waiting to lock|waiting on|parking to wait for)\s+(.*)$")
_JSTACK_OWNED = re.compile(r"^\t- <([^>]+)>")  # of "Locked ownable synchronizers", behind a blank line
_JSTACK_LOCKED = re.compile(r"^\s+- locked <([^>]+)>")
_JSTACK_MOUNTED = re.compile(r"^\s+Mounted virtual thread #(\d+)")
_FILE = re.compile(r"\A\d+\n(\d{4}-\d\d-\d\dT[\d:.]+Z)\n\S+\n")  # process, moment, release
_FILE_THREAD = re.compile(r'^#(?P<number>\d+) "(?P<name>.*)"(?: virtual)?(?: (?P<state>[A-Z_]+)(?: \S+)?)?$')
_PYSPY_THREAD = re.compile(r'^Thread ((?:0x)?[0-9A-Fa-f]+) \(([\w+]+)\)(?:: "(.*)")?$')
_PYSPY_PROCESS = re.compile(r"^Process \d+:")
_MODULE = re.compile(r"^(?:[\w.]+/)?(?:[\w.]*(?:@[\w.+-]+)?/)(?=[\w.$]+[.(])")
_ROCKETMQ_THREAD = re.compile(r"^(?P<name>.*?)\s*TID: (?P<number>\d+) STATE: (?P<state>\w+)$")


def recognises(text: str) -> bool:
    """True for jstack's, jcmd's or py-spy's output."""
    return (
        JSTACK in text
        or _FILE.match(text) is not None
        or _is_json(text)
        or all(re.search(rf"^{mark}", text, re.MULTILINE) for mark in (r"Process \d+: ", r"Python v\d"))
    )


def read(text: str, file: str, modified: int | None) -> Evidence:
    """Each dump in the file, in order."""
    if JSTACK in text:
        return _jstack(text, file, modified)
    if heading := _FILE.match(text):
        return _thread_file(text, heading, file)
    return _thread_json(text, file) if _is_json(text) else _py_spy(text, file, modified)


def address(waiting_for: str) -> str:
    """The identity of a lock in a line of a dump: ``<0x00000000ed96c800> (a java.lang.Object)``."""
    found = re.match(r"<([^>]+)>", waiting_for)
    return found[1] if found else ""


def _jstack(text: str, file: str, modified: int | None) -> Evidence:
    found = Evidence()
    time = modified
    threads: list[ThreadState] | None = None
    thread: ThreadState | None = None  # whose lines are being read

    def close() -> None:
        nonlocal thread
        if thread is not None and threads is not None:
            threads.append(thread)
        thread = None

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
            ran = _JSTACK_CPU.match(line)
            cpu = float(ran[1]) if ran else None
            thread = ThreadState(match["name"], "", (), ident=match["number"] or match["address"], cpu=cpu)
        elif match := _JSTACK_OWNED.match(line):
            if threads:
                threads[-1] = replace(threads[-1], holds=(*threads[-1].holds, match[1]))
        elif thread is not None:
            thread = _line(thread, line)
            if not line.strip():
                close()
    close()
    if threads is not None:
        found.dumps[-1:] = [_dump(found.dumps[-1], threads)]
    return found


def _line(thread: ThreadState, line: str) -> ThreadState:
    """A thread with one more line of its stack."""
    if line.lstrip().startswith("at "):
        return replace(thread, frames=(*thread.frames, line.strip()[3:]))
    if match := _JSTACK_STATE.match(line):
        return replace(thread, state=match[1])
    if match := _JSTACK_WAIT.match(line):
        return replace(thread, waiting_for=thread.waiting_for or match[1])
    if match := _JSTACK_LOCKED.match(line):
        return replace(thread, holds=(*thread.holds, match[1]))
    if match := _JSTACK_MOUNTED.match(line):  # the frames above are those of its carrier
        return replace(thread, state="RUNNABLE", ident=f"virtual {match[1]}", frames=())
    return thread


def _dump(dump: ThreadDump, threads: list[ThreadState]) -> ThreadDump:
    # Threads of the JVM itself (GC, compiler) have no Java stack and no part in a consumer.
    return replace(dump, threads=tuple(each for each in threads if each.frames))


def _thread_file(text: str, heading: re.Match[str], file: str) -> Evidence:
    """``Thread.dump_to_file`` as text, the one listing of Java that has all its virtual threads; one dump a file."""
    found = Evidence()
    threads: list[ThreadState] = []
    first = text.count("\n", 0, heading.end()) + 1
    for number, line in enumerate(text[heading.end() :].splitlines(), first):
        if match := _FILE_THREAD.match(line):
            threads.append(ThreadState(match["name"], match["state"] or "", (), ident=match["number"]))
        elif threads and line.startswith(" "):
            # Before Java 25 a frame has no "at".
            threads[-1] = _line(threads[-1], line if line.lstrip().startswith(("at ", "- ")) else f"at {line.strip()}")
        elif line.strip():
            found.remarks.append(Remark(file, number, line.strip(), say("not a line of a thread dump")))
    found.dumps.append(_of_java(file, heading[1], text.partition("\n")[0], threads))
    return found


def _is_json(text: str) -> bool:
    return re.match(r'\s*\{\s*"threadDump"', text) is not None


def _thread_json(text: str, file: str) -> Evidence:
    """The same as JSON. Raises ValueError for what is none, or not the fields of a thread dump."""
    try:
        dump = json.loads(text)["threadDump"]
        threads = [_json_thread(each) for container in dump["threadContainers"] for each in container["threads"]]
        return Evidence(dumps=[_of_java(file, dump["time"], str(dump["processId"]), threads)])
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"not the fields of a thread dump: {error!r}") from error


def _json_thread(thread: dict[str, Any]) -> ThreadState:
    waiting = thread.get("waitingOn") or thread.get("blockedOn") or thread.get("parkBlocker", {}).get("object")
    return ThreadState(
        thread["name"],
        thread.get("state", ""),
        tuple(thread["stack"]),
        f"<{waiting}>" if waiting else "",
        str(thread["tid"]),
        tuple(lock for owned in thread.get("monitorsOwned", ()) for lock in owned["locks"] if lock),
    )


def _of_java(file: str, moment: str, process: str, threads: list[ThreadState]) -> ThreadDump:
    time = int(datetime.fromisoformat(moment).timestamp() * 1000)
    named = (replace(each, frames=tuple(_MODULE.sub("", frame) for frame in each.frames)) for each in threads)
    return _dump(ThreadDump(file, time, "jstack", process, ()), list(named))


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
            dumps[-1].append(ThreadState(match[3] or "", match[2], (), ident=match[1]))
        elif line.startswith("    ") and dumps and dumps[-1]:
            last = dumps[-1][-1]
            dumps[-1][-1] = replace(last, frames=(*last.frames, line.strip()))
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
            threads.append(ThreadState(name, match["state"], frames, ident=match["number"]))
    return ThreadDump(file, time, "consumerStatus", client, tuple(threads))
