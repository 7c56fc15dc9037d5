"""``python -m tests.plain.workload SIZE``: what each wide loop answers, as a digest, and the processor time it took.

Each line is the loop's name, the digest, and the seconds of its fastest repetition.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import pyengine
from pyengine import rocketmq

REPETITIONS = 5


def digest(*answers: Any) -> str:
    found = hashlib.sha256()
    for answer in answers:
        found.update(answer.tobytes() if isinstance(answer, np.ndarray) else repr(answer).encode())
    return found.hexdigest()[:16]


def columns(size: int) -> Iterator[tuple[str, Callable[[], str]]]:
    draw = np.random.default_rng(1)
    rows = 200 * size
    regions = np.array(["us", "eu", "apac", "north", "a region with a long name", "östlich"])
    table: dict[str, Any] = {
        "weight": pa.array(draw.integers(0, 5000, rows, dtype=np.int32), mask=draw.random(rows) < 0.1),
        "price": pa.array(draw.normal(100, 200, rows), mask=draw.random(rows) < 0.1),
        "small": draw.integers(-128, 127, rows, dtype=np.int8),
        "qty": draw.integers(0, 100, rows),
        "ratio": draw.random(rows).astype(np.float32),
        "flag": pa.array(draw.random(rows) < 0.5),
        "plain": pa.array(regions[draw.integers(0, len(regions), rows)].tolist()),
        "region": pa.array(regions[draw.integers(0, len(regions), rows)].tolist()).dictionary_encode(),
    }
    batch = pyengine.Columns(pa.table(table))
    texts = {
        "intervals": "weight > 2500 AND price BETWEEN 10 AND 500 AND small < 0",
        "arithmetic": "price * qty > 1000 OR weight - qty < small",
        "types": "ratio < 0.25 OR NOT flag OR small = qty",
        "dictionary": "region = 'eu' OR region LIKE '%long%'",
        "texts": "plain IN ('us', 'apac', 'östlich') OR plain LIKE 'nor%'",
    }
    for name, text in texts.items():
        selector = pyengine.Selector(text)
        yield f"columns, {name}", lambda selector=selector: digest(selector.mask(batch), selector.truth(batch))


def index(size: int) -> Iterator[tuple[str, Callable[[], str]]]:
    draw = np.random.default_rng(2)

    def equality(number: int) -> str:
        low = int(draw.integers(0, 1000))
        return f"a = {number % 50} AND b = 'v{draw.integers(0, 20)}' AND c BETWEEN {low} AND {low + 300}"

    def ranges(_: int) -> str:
        parts = []
        for name in "cdefg":
            low = draw.random() * 700
            parts.append(f"{name} > {low:.3f} AND {name} < {low + 600:.3f}")
        return " AND ".join(parts)

    def mixed(number: int) -> str:
        return f"b IN ('v1', 'v{number % 20}') OR (d < {number % 100} AND NOT (e > 900)) OR b LIKE '%{number % 17}%'"

    for name, rule in {"equalities": equality, "ranges": ranges, "trees": mixed}.items():
        rules = pyengine.Subscriptions({number: rule(number) for number in range(size)})
        messages = [
            {"a": int(draw.integers(0, 50)), "b": f"v{draw.integers(0, 25)}"}
            | {each: float(draw.random() * 1000) for each in "cdefg"}
            for _ in range(200)
        ]
        yield (
            f"index, {name}",
            lambda rules=rules, messages=messages: digest([rules.match(message) for message in messages]),
        )


def allocation(size: int) -> Iterator[tuple[str, Callable[[], str]]]:
    queues = [rocketmq.MessageQueue("topic", f"broker-{number % 7}", number) for number in range(size)]
    clients = [f"10.0.0.{number}@{number * 7919}" for number in range(50)]
    strategy = rocketmq.AllocateMessageQueueConsistentHash()
    yield "consistent hash", lambda: digest(np.asarray(strategy.plan(queues, clients)))


def main(size: int) -> None:
    for parts in (columns, index, allocation):
        for name, call in parts(size):
            answer, best = call(), float("inf")
            for _ in range(REPETITIONS):
                start = time.process_time()
                again = call()
                best = min(best, time.process_time() - start)
                assert again == answer, name
            print(f"{name}\t{answer}\t{best:.6f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
