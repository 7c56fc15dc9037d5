"""A room measured in a process of its own, with which ends what its rivals hold: JVMs, Spark, an index of gigabytes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection

from bench.contest import Row


def measured(module: str) -> Iterator[Row]:
    room = importlib.import_module(f"bench.bench_{module}")
    if hasattr(room, "rows"):
        yield from room.rows()
    else:
        for contest in room.contests():
            yield from contest.rows()


def send(module: str, to: Connection) -> None:
    for row in measured(module):
        to.send(row)


def rows(module: str) -> Iterator[Row]:
    """Each as soon as it is measured. Exits if the process does not end well."""
    alone = get_context("spawn")
    ours, theirs = alone.Pipe(duplex=False)
    process = alone.Process(target=send, args=(module, theirs))
    process.start()
    theirs.close()
    while True:
        try:
            yield ours.recv()
        except EOFError:
            break
    process.join()
    if process.exitcode:
        sys.exit(f"bench {module}: its process ended with {process.exitcode}")
