"""Damage, reading in pieces, and the command line, of the campaigns against readers of the wire.

Frames are made in Python, which costs more than reading them: a campaign makes a corpus for each block of inputs, and
an input is a few frames of the corpus, damaged.
"""

from __future__ import annotations

import argparse
import gc
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from pyengine.errors import ProtocolError

PART = 1_000_000  # frames of one seed
BLOCK = 5000  # inputs of one corpus
COMPARED = 3  # of one input among so many two readings are compared
WORDS_SHOWN = 16  # of one error among so many the words are formatted too
Frame = TypeVar("Frame", covariant=True)


class Reader(Protocol[Frame]):
    """A reader of bytes that come in pieces. waiting: bytes of what is not whole yet."""

    def feed(self, data: bytes) -> None: ...
    def __iter__(self) -> Iterator[Frame]: ...
    @property
    def waiting(self) -> int: ...


def damage(chance: random.Random, data: bytearray) -> None:
    """Change, add or remove a few bytes at one place."""
    number = chance.random
    at = int(number() * (len(data) + 1))
    what = int(number() * 5)
    if what == 0:
        data[at:at] = chance.randbytes(1 + int(number() * 3))
    elif what == 1:
        del data[at : at + 1 + int(number() * 7)]
    elif at < len(data):
        data[at] = (0, 1, 0x7F, 0x80, 0xFF, int(number() * 256), data[at] ^ (1 << int(number() * 8)))[int(number() * 7)]


def cuts(chance: random.Random, size: int) -> list[int]:
    """Where pieces of that many bytes together end: mostly two or three, one time in eight some of a few bytes."""
    number = chance.random
    pieces = (1, 1, 2, 1, 2, 1, 2, size // 5 + 1)[int(number() * 8)]
    ends = sorted([int(number() * (size + 1)) for _ in range(pieces)])
    ends.append(size)
    return ends


def read(
    reader: Reader[Frame], data: bytes, ends: Iterable[int], refusals: tuple[type[Exception], ...] = (ProtocolError,)
) -> tuple[list[Frame], Exception | None]:
    """The frames, and the error with which reading ended."""
    found: list[Frame] = []
    at = 0
    try:
        for end in ends:
            reader.feed(data[at:end])
            at = end
            for each in reader:  # a list of them would be lost with the error behind them
                found.append(each)
            assert reader.waiting <= len(data)
    except refusals as error:
        return found, error
    return found, None


def read_alike(
    made: Callable[[], Reader[Frame]],
    data: bytes,
    chance: random.Random,
    refusals: tuple[type[Exception], ...] = (ProtocolError,),
) -> tuple[list[Frame], Exception | None]:
    """The frames and the error, which are the same whole and in pieces: one input of three is read twice. made: a new
    reader.
    """
    if chance.random() * COMPARED > 1:
        return read(made(), data, cuts(chance, len(data)), refusals)
    found, error = read(made(), data, (len(data),), refusals)
    ends = cuts(chance, len(data))
    again, other = read(made(), data, ends, refusals)
    assert found == again, (data, ends, found, again)
    assert type(error) is type(other), (data, ends, error, other)
    if error is not None:
        assert error.args == other.args, (data, ends, error, other)
        if chance.random() * WORDS_SHOWN < 1:
            assert str(error) == str(other), (data, ends, error, other)
    return found, error


def main(name: str, words: str | None, run: Callable[[int, int], Counter[str]]) -> None:
    """Parse the command line of the module ``name``, fuzz, print the counts."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.fuzz.{name}", description=words)
    parser.add_argument("--frames", type=int, default=PART, help="hostile frames that are read or refused")
    parser.add_argument("--seed", type=int, default=0, help="of the first million; each next has the next one")
    options = parser.parse_args()
    gc.freeze()  # what the modules have made is not looked through again and again
    gc.set_threshold(20_000)
    total: Counter[str] = Counter()
    for part in range(-(-options.frames // PART)):
        counts = run(min(PART, options.frames - part * PART), options.seed + part)
        print(f"seed {options.seed + part}: {dict(counts)}", flush=True)
        total += counts
    print(f"all: {dict(total)}", flush=True)
