"""Ctrl-C while a session of our own works: in the midst of calls of Java, and of a job."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CALLS = """
import os, signal, threading, time
from pyengine.spark.session import own_session

def slow(batches):
    time.sleep(60)
    yield from batches

for job in (False, True):
    try:
        with own_session("local[1]") as session:
            session.range(1).count()
            threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT]).start()
            begun = time.monotonic()
            if job:
                session.range(4).mapInArrow(slow, "id long").count()
            while time.monotonic() < begun + 1:
                session.sparkContext.defaultParallelism
    except KeyboardInterrupt:
        print("interrupted", time.monotonic() < begun + 20, session.getActiveSession())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGINT for one process")
def test_ctrl_c_ends_a_job_and_breaks_no_call_of_java() -> None:
    done = subprocess.run([sys.executable, "-c", CALLS], capture_output=True, text=True, cwd=ROOT, timeout=120)
    said = [line for line in done.stderr.splitlines() if not line.startswith("WARNING")]
    assert (done.stdout.splitlines(), said) == (["interrupted True None"] * 2, [])
