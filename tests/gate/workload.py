"""Run under callgrind by test_instructions: for every path, N messages and then 2N, each between two marks.

A mark is a call of getpgid(2): nothing else here makes one, and callgrind writes and empties its counters before it.
Prints the paths in their order and N, as JSON. Messages and selectors are those of the benchmarks, each twice in 2N.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable, Sequence

import pyengine
from bench.workloads import SELECTORS, messages

N = 600
Run = Callable[[int], object]


def message(row: dict[str, object]) -> pyengine.Message:
    properties = dict(row)
    priority = properties.pop("JMSPriority")
    return pyengine.Message(properties, priority=priority)  # type: ignore[arg-type]


def loop(ask: Callable[[object], object], given: Sequence[object]) -> Run:
    """One call each; ``given`` is as long as the longest run."""

    def run(count: int) -> None:
        for one in given[:count]:
            ask(one)

    return run


def paths() -> dict[str, Run]:
    dicts = messages(N) * 2
    natives = [message(row) for row in dicts]
    packed = (
        {count: pyengine.PackedMessages(natives[:count]) for count in (N, 2 * N)}
        if hasattr(pyengine, "PackedMessages")
        else None
    )
    lists = {count: dicts[:count] for count in (N, 2 * N)}
    native_lists = {count: natives[:count] for count in (N, 2 * N)}
    found: dict[str, Run] = {"loop": loop(callable, dicts)}

    def at_once(selector: pyengine.Selector, batches: dict[int, object]) -> Run:
        return lambda count: selector.mask(batches[count])

    found["known_text_call"] = loop(pyengine.Selector, [SELECTORS["S2"]] * (2 * N))
    for name, text in SELECTORS.items():
        selector = pyengine.Selector(text)
        found[f"{name}.dict_call"] = loop(selector.matches, dicts)
        found[f"{name}.message_call"] = loop(selector.matches, natives)
        found[f"{name}.dict_list"] = at_once(selector, lists)  # type: ignore[arg-type]
        found[f"{name}.message_list"] = at_once(selector, native_lists)  # type: ignore[arg-type]
        if packed:
            found[f"{name}.packed"] = at_once(selector, packed)  # type: ignore[arg-type]
    return found


def main() -> None:
    found = paths()
    gc.collect()
    gc.disable()
    mark = os.getpgid
    for run in found.values():
        run(N)
        run(2 * N)
        mark(0)
        run(N)
        mark(0)
        run(2 * N)
        mark(0)
    json.dump({"paths": list(found), "messages": N}, sys.stdout)


if __name__ == "__main__":
    main()
