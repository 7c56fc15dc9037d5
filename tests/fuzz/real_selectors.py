"""``python -m tests.fuzz.real_selectors [--selectors N] [--seed S]``: random selectors beside the real classes.

The same texts and messages go to the selector classes of ActiveMQ 5.17.2 and RocketMQ 5.3.3 in a JVM and to pyengine,
which is asked in every shape that can carry the message. What differs is printed; the exit status says whether
anything did. The seed decides every input. Constructs that docs/selectors.md says cannot be answered are counted apart.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow

import pyengine
from bench.jvm import Jvm, harness
from pyengine.errors import InvalidSelectorError, SelectorEvaluationError
from tests.fuzz.corners import NAMES, TYPES, Corners, double_bits

SOURCES = Path(__file__).parent / "java"
BUILD = SOURCES.parents[2] / "build" / "selectors"
BATCH = 100
LETTERS = {True: "T", False: "F", None: "N"}
CODES = {1: "T", 0: "F", -1: "N", -2: "E"}
ARROW = {
    "byte": pyarrow.int8(),
    "short": pyarrow.int16(),
    "int": pyarrow.int32(),
    "long": pyarrow.int64(),
    "float": pyarrow.float32(),
    "double": pyarrow.float64(),
    "boolean": pyarrow.bool_(),
    "string": pyarrow.string(),
}


class UnanswerableError(Exception):
    """A construct that docs/selectors.md lists as one that is not answered."""


def wire(typed: dict[str, Any]) -> dict[str, Any]:
    if typed["t"] in ("float", "double"):
        return {"t": typed["t"], "v": double_bits(typed["v"])}
    if typed["t"] == "list":
        return {"t": "list", "v": [wire(item) for item in typed["v"]]}
    if typed["t"] == "map":
        return {"t": "map", "v": {key: wire(item) for key, item in typed["v"].items()}}
    return typed


def value(typed: dict[str, Any]) -> Any:
    if typed["t"] == "list":
        return [value(item) for item in typed["v"]]
    if typed["t"] == "map":
        return {key: value(item) for key, item in typed["v"].items()}
    return TYPES[typed["t"]][1](typed["v"])


def letter(question: Any, message: Any) -> str:
    try:
        return LETTERS[question(message)]
    except SelectorEvaluationError as error:
        if "cannot evaluate as Java does" in str(error):
            raise UnanswerableError from None
        return "E"


class Batch:
    """Messages in every shape."""

    def __init__(self, messages: list[dict[str, Any]], columns: bool, activemq: bool) -> None:
        self.messages = []
        self.rows: list[dict[str, Any]] | None = None
        for message in messages:
            made = pyengine.Message(None, body=message["body"]) if "body" in message else pyengine.Message()
            made.priority = 0
            for name, typed in message["props"].items():
                made.set_object_property(name, value(typed))
            self.messages.append(made)
        plain = all(
            "body" not in message and all(typed["t"] not in ("list", "map") for typed in message["props"].values())
            for message in messages
        )
        if plain:  # the priority of a message that was never sent is 0, not the 4 of a mapping without one
            headers = {"JMSPriority": 0} if activemq else {}
            self.rows = [headers | {k: value(v) for k, v in m["props"].items()} for m in messages]
        self.packed = pyengine.PackedMessages(self.messages) if plain else None
        self.arrow = self.batch(messages, activemq) if columns else None

    @staticmethod
    def batch(messages: list[dict[str, Any]], activemq: bool) -> Any:
        arrays = {}
        for name in NAMES:
            kinds = {message["props"][name]["t"] for message in messages if name in message["props"]}
            kind = kinds.pop() if kinds else "string"
            values = [message["props"][name]["v"] if name in message["props"] else None for message in messages]
            try:
                arrays[name] = pyarrow.array(values, ARROW[kind])
            except UnicodeEncodeError:
                return None
        if activemq:
            arrays["JMSPriority"] = pyarrow.array([0] * len(messages), pyarrow.int32())
        return pyarrow.record_batch(arrays)

    def answers(self, selector: Any) -> dict[str, str]:
        """Two letters a message for each shape."""
        found = {}
        shapes: list[tuple[str, Any]] = [("message", self.messages)]
        if self.rows is not None:
            shapes.append(("row", self.rows))
        for shape, rows in shapes:
            found[shape] = "".join(letter(selector.matches, row) + letter(selector.evaluate, row) for row in rows)
        lists = [(f"list of {shape}", rows) for shape, rows in shapes]
        if self.packed is not None:
            lists.append(("packed", self.packed))
        if self.arrow is not None:
            lists.append(("columns", self.arrow))
        for shape, rows in lists:
            matched = selector.mask(rows, on_error="reject", missing="null").tolist()
            truths = selector.truth(rows, missing="null").tolist()
            letters = [("T" if m else "-") + CODES[t] for m, t in zip(matched, truths, strict=True)]
            found[shape] = "".join(letters)
        return found


def fits(expected: str, got: str) -> bool:
    """Whether one letter is the other; "-" is any answer but T: a mask does not say why it leaves a message out."""
    return expected == got or (got == "-" and expected != "T")


def first_difference(expected: str, found: dict[str, str]) -> tuple[str, str, int] | None:
    """The shape that differs from the real answers, its own, and the message."""
    for shape, got in found.items():
        if len(got) != len(expected):
            return shape, got, 0
        for at, (one, other) in enumerate(zip(expected, got, strict=True)):
            if not fits(one, other):
                return shape, got, at // 2
    return None


def run(selectors: int, seed: int, show: int) -> Counter[str]:
    """Compare ``selectors`` texts, each on eight messages, and print the first ``show`` that differ."""
    jvm = Jvm(
        "RealSelectors", "512m", harness(SOURCES, BUILD / "jars", BUILD / "classes", "activemq-broker"), ["-Xss8m"]
    )
    counts: Counter[str] = Counter()
    sources = [Corners(seed, "activemq"), Corners(seed + 1_000_000, "activemq"), Corners(seed, "rocketmq")]
    start = time.monotonic()
    while counts["selectors"] < selectors:
        source = sources[counts["selectors"] // BATCH % 3]
        columns = source.chance(0.5)
        messages = source.messages(8, columns)
        texts = [source.selector() for _ in range(BATCH)]
        sent = [{**m, "props": {name: wire(typed) for name, typed in m["props"].items()}} for m in messages]
        answers: Any = jvm.ask("answer", dialect=source.dialect, selectors=texts, messages=sent)["answers"]
        batch = Batch(messages, columns, source.activemq)
        for text, expected in zip(texts, answers, strict=True):
            counts["selectors"] += 1
            counts["refused"] += expected == "P"
            if not source.activemq and expected != "P":
                expected = "".join((e if e in "TE" else "F") + e for e in expected)
            try:
                found = batch.answers(pyengine.Selector(text, source.dialect))
            except InvalidSelectorError:
                found = {"parser": "P"}
            except UnanswerableError:
                counts["not answered"] += 1
                continue
            counts["answers"] += 1 if expected == "P" else len(found) * len(messages)
            difference = first_difference(expected, found)
            if difference:
                counts["differ"] += 1
                if counts["differ"] <= show:
                    shape, got, at = difference
                    print(f"{source.dialect} {text!r}: real {expected}, {shape} {got}: {messages[at]}", flush=True)
        if counts["selectors"] % (200 * BATCH) == 0:
            print(f"{time.monotonic() - start:.0f} s: {dict(counts)}", file=sys.stderr, flush=True)
    jvm.close()
    return counts


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m tests.fuzz.real_selectors", description=__doc__)
    arguments.add_argument("--selectors", type=int, default=100_000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--show", type=int, default=20)
    options = arguments.parse_args()
    counts = run(options.selectors, options.seed, options.show)
    print(f"seed {options.seed}: {dict(counts)}")
    sys.exit(bool(counts["differ"]))


if __name__ == "__main__":
    main()
