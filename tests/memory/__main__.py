"""Make, use and drop distinct names with every public class, and print what is left of them.

PYTHONMALLOC=malloc python -m tests.memory --names 1000000 [CASE ...]
"""

import argparse
import functools
import gc
import logging
import os
import sys
import time
import traceback
from contextlib import closing
from typing import Any

from pyengine._engine.matching.selector import forget_selectors
from tests.memory.bytes_in_use import bytes_in_use
from tests.memory.cases import CASES, Case

FIRST = 10  # one in so many names comes before the first look
QUICK = 6_000
QUICK_LIMIT = 40  # bytes a name; the name alone is more


def left_by(case: str, names: int, limit: int, caches: list[Any]) -> int:
    """Bytes that ``names`` names of a case leave behind, above what a tenth of them have left before."""
    with closing(CASES[case](names)) as use:
        return left_in(use, names, limit, caches)


def left_in(use: Case, names: int, limit: int, caches: list[Any]) -> int:
    """The same of a case that is open."""

    def look() -> int:
        use.settle()
        forget_selectors()
        for cache in caches:
            cache.cache_clear()
        return bytes_in_use()

    first = max(1, names // FIRST)
    for number in range(first):
        use(f"{number:09}")
    lefts = []
    for start in (first, names):  # Python's own table of strings may grow in between, once
        before = look()
        for number in range(start, start + names - first):
            use(f"{number:09}")
        lefts.append(look() - before)
        if lefts[-1] <= limit:
            break
    return min(lefts)


def main() -> None:
    """The command. Exit code 1: a case leaves more than ``--limit`` bytes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--names", type=int, default=1_000_000)
    parser.add_argument("--limit", type=int, default=1_000_000, help="bytes that may be left")
    parser.add_argument("--quick", action="store_true", help="few names, where a name is what takes long")
    parser.add_argument("cases", nargs="*")
    asked = parser.parse_args()
    if os.environ.get("PYTHONMALLOC") != "malloc":
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.memory", *sys.argv[1:]],
            {**os.environ, "PYTHONMALLOC": "malloc"},
        )
    logging.disable()
    caches = [
        each
        for each in gc.get_objects()
        if isinstance(each, functools._lru_cache_wrapper) and str(each.__module__).startswith("pyengine")
    ]
    gc.freeze()
    failed = False
    # Classes that have one case in common are tried together.
    for case in asked.cases or {made: name for name, made in reversed(CASES.items())}.values():
        start = time.process_time()
        names = max(200, QUICK // CASES[case].dear) if asked.quick else asked.names
        limit = 20_000 + QUICK_LIMIT * names + CASES[case].slack if asked.quick else asked.limit
        try:
            left = left_by(case, names, limit, caches)
        except Exception:
            print(case)
            traceback.print_exc()
            failed = True
            continue
        failed |= left > limit
        verdict = "  TOO MANY" if left > limit else ""
        seconds = time.process_time() - start
        print(f"{case:55} {names:9,} names {left:12,} bytes {seconds:7.2f} s{verdict}", flush=True)
    sys.exit(failed)


main()
