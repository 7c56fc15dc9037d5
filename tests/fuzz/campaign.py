"""Reading in pieces, and the command line, of the campaigns against readers of the wire."""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from pyengine.errors import ProtocolError

Frame = TypeVar("Frame", covariant=True)


class Reader(Protocol[Frame]):
    """A reader of bytes that come in pieces. waiting: bytes of what is not whole yet."""

    def feed(self, data: bytes) -> None: ...
    def __iter__(self) -> Iterator[Frame]: ...
    @property
    def waiting(self) -> int: ...


def cut(chance: random.Random, size: int, most: int) -> list[int]:
    """Pieces of that many bytes together, each of fewer than ``most``."""
    pieces: list[int] = []
    while sum(pieces) < size:
        pieces.append(chance.randrange(1, most))
    return pieces


def read(
    reader: Reader[Frame], data: bytes, pieces: Iterable[int], refusals: tuple[type[Exception], ...] = (ProtocolError,)
) -> tuple[list[Frame], str]:
    """The frames, and the words with which reading ended."""
    found: list[Frame] = []
    at = 0
    try:
        for size in pieces:
            reader.feed(data[at : at + size])
            at += size
            for each in reader:  # a list of them would be lost with the error behind them
                found.append(each)
            assert reader.waiting <= len(data)
    except refusals as error:
        return found, str(error)
    return found, ""


def main(name: str, words: str | None, run: Callable[[int, int], Counter[str]]) -> None:
    """Parse the command line of the module ``name``, fuzz, print the counts."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.fuzz.{name}", description=words)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(dict(run(options.inputs, options.seed)))
