"""The command line in a process of its own, forked from one that has imported the commands already.

Starting Python and importing everything costs a hundred times what most commands do.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST = 1 << 20  # bytes of a command line

# A request's descriptors are a child's streams; the encodings are set as the interpreter sets them at its start.
SERVER = f"""
import json, os, socket, sys
from pyengine.__main__ import main
from pyengine.cli import allocate, diagnose, lint, match, policies, run, simulate
from pyengine.backlog.pages import findings_page, page, simulation_page
asked = socket.socket(fileno=int(sys.argv[1]))
own = sys.stdin, sys.stdout, sys.stderr
sys.argv[1:] = ["lint", os.devnull]
try:
    main()  # what only a command imports
except SystemExit:
    sys.stdin, sys.stdout, sys.stderr = own
while True:
    request, streams, _, _ = socket.recv_fds(asked, {MOST}, 3)
    if not request:
        os._exit(0)
    if not (child := os.fork()):
        break
    for stream in streams:
        os.close(stream)
    asked.sendall(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]).to_bytes(4, "big", signed=True))
asked.close()
for number, stream in enumerate(streams):
    os.dup2(stream, number)
    os.close(stream)
words, environment, folder = json.loads(request)
os.chdir(folder)
os.environ.clear()
os.environ.update(environment)
encoding, _, errors = environment.get("PYTHONIOENCODING", "").partition(":")
sys.stdin = open(0, encoding=encoding or None, errors=errors or "surrogateescape", closefd=False)
sys.stdout = open(1, "w", encoding=encoding or None, errors=errors or "strict", closefd=False)
sys.stderr = open(2, "w", encoding=encoding or None, errors="backslashreplace", closefd=False)
sys.argv[:] = ["pyengine", *words]
main()
"""


@functools.cache
def _server() -> socket.socket:
    """Where the process that has imported the commands is asked."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-c", SERVER, str(theirs.fileno())]
        null = subprocess.DEVNULL
        server = subprocess.Popen(command, cwd=ROOT, pass_fds=(theirs.fileno(),), stdin=null, stdout=null, stderr=null)
    atexit.register(_end, ours, server)
    return ours


def _end(asked: socket.socket, server: subprocess.Popen[bytes]) -> None:
    asked.close()
    server.wait()


def ask(
    words: Sequence[str], stdin: int, stdout: int, stderr: int, environment: Mapping[str, str], folder: Path = ROOT
) -> int:
    """The exit code of a command with these descriptors as its streams."""
    server = _server()
    socket.send_fds(server, [json.dumps([words, dict(environment), str(folder)]).encode()], [stdin, stdout, stderr])
    code = server.recv(4)
    assert code, "the process that has imported the commands ended"
    return int.from_bytes(code, "big", signed=True)


def forked(
    words: Sequence[str], stdin: bytes = b"", environment: Mapping[str, str] = os.environ, folder: Path = ROOT
) -> subprocess.CompletedProcess[bytes]:
    """What a command that was given ``stdin`` leaves behind."""
    if sys.platform == "win32":
        command = [sys.executable, "-m", "pyengine", *words]
        return subprocess.run(command, input=stdin, capture_output=True, cwd=folder, env=environment, check=False)
    (given, giving), (output, writing), (errors, telling) = (os.pipe() for _ in range(3))
    with ThreadPoolExecutor(3) as threads:
        reads = [threads.submit(_read, each) for each in (output, errors)]
        threads.submit(_write, giving, stdin)
        try:
            code = ask(words, given, writing, telling, environment, folder)
        finally:
            for each in (given, writing, telling):
                os.close(each)
        return subprocess.CompletedProcess(words, code, *(each.result() for each in reads))


def _read(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def _write(descriptor: int, data: bytes) -> None:
    try:
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            file.write(data)
    except BrokenPipeError:  # the command wanted less
        return
