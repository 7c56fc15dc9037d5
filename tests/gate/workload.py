"""Run under callgrind by test_instructions: for every path, N messages and then 2N, each between two marks.

A mark is a call of getpgid(2): nothing else here makes one, and callgrind writes and empties its counters before it.
Prints the paths in their order and N, as JSON. Needs pyengine and numpy alone.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable, Sequence

import pyengine

N = 600
S1 = "color = 'blue' AND weight > 2500"
S2 = "JMSPriority >= 5 AND (region IN ('us','eu','apac') OR customer LIKE 'gold%') AND price BETWEEN 10 AND 500"
S3 = "price * qty > 1000 AND type IS NOT NULL AND NOT (status = 'cancelled')"

Run = Callable[[int], object]


def rows() -> list[dict[str, object]]:
    """Twelve messages: each property takes each of its values as often as the others, in another rhythm."""
    return [
        {
            "JMSPriority": (3 * i + 4) % 10,
            "color": ("blue", "red", "green")[i % 3],
            "weight": (2600, 100)[i % 2],
            "region": ("us", "eu", "apac", "mea")[i % 4],
            "customer": ("gold-1", "silver-1")[i % 2],
            "price": (150.25, 612.5, 20.0)[i % 3],
            "qty": i,
            "type": "order",
            "status": ("open", "cancelled", "paid")[i % 3],
        }
        for i in range(12)
    ]


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
    dicts = [row for _ in range(2 * N // 12) for row in rows()]
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

    for name, text in {"S1": S1, "S2": S2, "S3": S3}.items():
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
