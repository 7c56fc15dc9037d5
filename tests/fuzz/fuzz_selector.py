"""``python -m tests.fuzz.fuzz_selector [--inputs N] [--seed S]``: random selectors for the parser and the evaluators.

Checked: nothing but InvalidSelectorError escapes the parser, its position lies inside the text and its message can be
printed; an accepted selector, written out with every bracket, parses to the same Terms; a text repeated many times
does not take more than its share of time. Accepted selectors are then evaluated on random messages: dicts, another
mapping, Messages, lists, packed messages, numpy columns and an Arrow batch, which must give one answer, and nothing but
SelectorEvaluationError may escape. The seed decides every input.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import ChainMap, Counter
from typing import Any

import numpy
import pyarrow

import pyengine
from pyengine._engine.selector.ast import TermKind, Tree
from pyengine._engine.selector.parser import parse
from pyengine._engine.selector.pitfalls import surprises
from pyengine.errors import InvalidSelectorError, SelectorEvaluationError
from tests.model.selector_text import NAMES, Selectors, shape, text_of

DIALECTS = ("activemq", "rocketmq")
VALUES = (
    0, 1, 3, -7, 2**31, 2**62, 0.5, 1.5, -0.0, float("nan"), float("inf"), True, False, "", "a", "3", "1.5", "true",
    "goldx", "a,b,gold%", "caf\u00e9", "\U0001f600", "it's", "x\\%",
)  # fmt: skip
TEXTS = tuple(value for value in VALUES if isinstance(value, str))
TRUTH = {True: 1, False: 0, None: -1}


class FuzzError(AssertionError):
    """One input the engine handled wrongly."""


def check(condition: bool, dialect: str, text: str, problem: str) -> None:
    if not condition:
        raise FuzzError(f"{dialect} {text!r}: {problem}")


def parsed(text: str, dialect: str) -> Tree | None:
    try:
        return parse(text, dialect)
    except InvalidSelectorError as error:
        check(0 <= error.position <= len(text), dialect, text, f"position {error.position} of {len(text)}")
        check(bool(str(error)) and error.text == text, dialect, text, "the error does not print")
        return None


def check_tree(tree: Tree) -> None:
    again = parsed(text_of(tree.root), tree.dialect)
    same = again is not None and shape(again.root) == shape(tree.root)
    check(same, tree.dialect, tree.text, "canonical text differs")
    for position, advice in surprises(tree):
        check(0 <= position <= len(tree.text) and bool(advice), tree.dialect, tree.text, "advice has no place")


def answer(ask: Any, message: Any) -> int:
    """1 true, 0 false, -1 unknown, -2 raises."""
    try:
        return TRUTH[ask(message)]
    except SelectorEvaluationError as error:
        str(error)
        return -2


def check_rows(selector: Any, chance: random.Random) -> int:
    """Every way to evaluate ``selector`` on single messages and lists of them gives the same answer."""
    values = TEXTS if selector.dialect == "rocketmq" else VALUES
    messages: list[dict[str, Any]] = [
        {name: chance.choice(values) for name in NAMES if name != "JMSPriority" and chance.random() < 0.7}
        for _ in range(6)
    ]
    evaluated = [answer(selector.evaluate, message) for message in messages]
    matched = [answer(selector.matches, message) for message in messages]
    for value, match, message in zip(evaluated, matched, messages, strict=True):
        # Asked only for true or not true, a selector may stop before what raises (spec activemq 1.8).
        fits = value == -2 or match == (value == 1)
        check(fits, selector.dialect, selector.text, f"matches {match}, evaluate {value} on {message}")
    for ask, expected in ((selector.evaluate, evaluated), (selector.matches, matched)):
        for form in (ChainMap, pyengine.Message.from_mapping):
            got = [answer(ask, form(message)) for message in messages]
            check(got == expected, selector.dialect, selector.text, f"{form} {got}, dict {expected}: {messages}")
    natives = [pyengine.Message.from_mapping(message) for message in messages]
    for batch in (messages, natives, pyengine.PackedMessages(natives)):
        got = selector.truth(batch).tolist()
        check(got == evaluated, selector.dialect, selector.text, f"list {got}, single {evaluated}: {messages}")
    many = selector.mask(messages, on_error="reject").tolist()
    check(many == [value == 1 for value in matched], selector.dialect, selector.text, f"list {many}, single {matched}")
    return len(messages)


class Columns:
    """A batch of typed columns, and the same rows as dicts of numpy scalars."""

    ROWS = 40

    def __init__(self, chance: random.Random) -> None:
        numbers = [value for value in VALUES if isinstance(value, int | float)]
        kinds: list[Any] = [numpy.int8, numpy.int16, numpy.int32, numpy.int64]
        kinds += [numpy.float32, numpy.float64, numpy.bool_]
        columns: dict[str, list[Any]] = {}
        self.arrays = {}
        arrow = {}
        for name in NAMES[:-1]:
            if name == "JMSPriority":
                continue
            kind = chance.choice([*kinds, str, str, str])
            if kind is str:
                values: list[Any] = [chance.choice(TEXTS) for _ in range(self.ROWS)]
            elif issubclass(kind, numpy.floating):
                values = [kind(chance.choice(numbers)) for _ in range(self.ROWS)]
            else:
                values = [kind(chance.choice((0, 1, 1, 3, 7, 100))) for _ in range(self.ROWS)]
            nulls = chance.random() < 0.6
            columns[name] = [None if nulls and chance.random() < 0.3 else value for value in values]
            typed = pyarrow.string() if kind is str else pyarrow.from_numpy_dtype(kind)
            plain = [value if kind is str or value is None else value.item() for value in columns[name]]
            arrow[name] = pyarrow.array(plain, typed)
            if kind is str and chance.random() < 0.5:
                arrow[name] = arrow[name].dictionary_encode()
            if kind is not str and not nulls:
                self.arrays[name] = numpy.array(values, kind)
        self.batch = pyarrow.record_batch(arrow)
        self.rows = [
            {name: values[row] for name, values in columns.items() if values[row] is not None}
            for row in range(self.ROWS)
        ]
        self.array_rows = [{name: row[name] for name in self.arrays} for row in self.rows]

    def check(self, selector: Any) -> int:
        pairs = [(self.batch, self.rows)] + ([(self.arrays, self.array_rows)] if self.arrays else [])
        for batch, rows in pairs:
            by_row = selector.truth(rows).tolist()
            by_column = selector.truth(batch, missing="null").tolist()
            if by_row != by_column:
                at = next(i for i in range(self.ROWS) if by_row[i] != by_column[i])
                problem = f"row {by_row[at]}, column {by_column[at]} on {rows[at]}"
                check(False, selector.dialect, selector.text, problem)
            expected = selector.mask(rows, on_error="reject").tolist()
            got = selector.mask(batch, on_error="reject", missing="null").tolist()
            check(expected == got, selector.dialect, selector.text, f"mask of rows {expected}, of columns {got}")
        return self.ROWS * len(pairs)


def ways() -> set[str]:
    """What this build can evaluate: "functions", "columns"."""
    found = set()
    for way, text, batch in (
        ("functions", "REGEX('a', s)", [{"s": "a"}]),
        ("columns", "s = 1", {"s": numpy.array([1])}),
    ):
        try:
            pyengine.Selector(text).mask(batch)
            found.add(way)
        except (ImportError, TypeError):
            print(f"not evaluated, because this build has no {way}", file=sys.stderr)
    return found


def calls(tree: Tree) -> bool:
    """Whether a function or XPATH stands anywhere in ``tree``."""
    waiting = [tree.root]
    for term in waiting:
        if term.kind in (TermKind.FUNCTION, TermKind.XPATH):
            return True
        waiting.extend(term.terms)
    return False


def check_linear(text: str, dialect: str) -> None:
    """A 64 times longer text may take 64 times longer, plus a generous allowance for a busy machine."""
    for glue in (" ", " OR ", "", "("):
        start = time.perf_counter()
        parsed(glue.join([text] * 64), dialect)
        middle = time.perf_counter()
        parsed(glue.join([text] * 4096), dialect)
        spent = time.perf_counter() - middle
        check(spent < 5.0 + 640 * (middle - start), dialect, text, f"slow when repeated by {glue!r}")


def run(inputs: int, seed: int, progress: bool = False) -> Counter[str]:
    """Fuzz ``inputs`` texts; returns how many were accepted, refused, evaluated."""
    counts: Counter[str] = Counter()
    able = ways()
    sources = [Selectors(seed * 2 + index, dialect) for index, dialect in enumerate(DIALECTS)]
    chance = random.Random(seed)
    columns = Columns(chance)
    for number in range(inputs):
        dialect = DIALECTS[number % 2]
        text = sources[number % 2].any()
        try:
            tree = parsed(text, dialect)
            counts["refused" if tree is None else "accepted"] += 1
            if tree is not None:
                if number % 8 < 2:
                    check_tree(tree)
                if number % 16 < 2 and ("functions" in able or not calls(tree)):
                    selector = pyengine.Selector(text, dialect)
                    counts["evaluated"] += check_rows(selector, chance)
                    if "columns" in able:
                        counts["evaluated"] += columns.check(selector)
            if number % 1000 == 0:
                columns = Columns(chance)
            if number % 20_000 < 2:
                check_linear(text, dialect)
        except Exception as error:
            error.add_note(f"input {number} of seed {seed}: {dialect} {text!r}")
            raise
        if progress and number % 100_000 == 99_999:
            print(f"{number + 1} inputs: {dict(counts)}", file=sys.stderr, flush=True)
    return counts


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m tests.fuzz.fuzz_selector", description=__doc__)
    arguments.add_argument("--inputs", type=int, default=1_000_000)
    arguments.add_argument("--seed", type=int, default=1)
    options = arguments.parse_args()
    start = time.perf_counter()
    counts = run(options.inputs, options.seed, progress=True)
    seconds = time.perf_counter() - start
    print(f"{options.inputs} inputs, seed {options.seed}, {seconds:.0f} s: {dict(counts)}; no failure")


if __name__ == "__main__":
    main()
