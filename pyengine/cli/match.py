"""``pyengine match``: a selector, or a file of many, over files of messages."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from pyengine import Selector, Subscriptions
from pyengine.backlog.tables.rows import Reject, Rows
from pyengine.backlog.tables.sources import FORMATS, mixed_columns, read_files, read_stream
from pyengine.cli.outlet import is_left, print_line, tell
from pyengine.dataclass import dataclass
from pyengine.errors import (
    InvalidSelectorError,
    InvalidSourceError,
    MissingColumnError,
    SelectorEvaluationError,
    counted,
    did_you_mean,
)
from pyengine.topology.table import read_text, root_table
from pyengine.visible import visible_json

BATCH = 65_536
DIALECTS = ("activemq", "rocketmq")
NESTED = {"{": "an object", "[": "a list"}  # by how its JSON begins


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of every row. selector: its text, or ``@`` and a TOML file of ``name = "selector"`` lines.

    missing_is_null: a column that the data lacks is null instead of an error.
    """

    selector: str
    dialect: str = "activemq"
    missing_is_null: bool = False


def match(question: Question, files: Sequence[str], format: str, *, count: bool) -> int:
    """Print matching rows, or how many there are; the number of rows that could not be read or evaluated.

    With a file of selectors a row carries the names of those that want it, and the count is one for each of them. If
    the reader of the rows has closed its end, the rest is neither read nor counted.
    """
    if question.dialect not in DIALECTS:
        raise InvalidSourceError(
            "--dialect", f"{question.dialect!r} is unknown", did_you_mean(question.dialect, DIALECTS)
        )
    if format and format not in FORMATS:
        raise InvalidSourceError("--format", f"{format!r} is unknown", did_you_mean(format, FORMATS))
    asked: _Asked
    if question.selector.startswith("@"):
        asked = _Many(_read_subscriptions(question.selector[1:], question.dialect), question.missing_is_null)
    else:
        asked = _One(Selector(question.selector, question.dialect), question.missing_is_null)  # type: ignore[arg-type]
    findings = 0
    for file in files:
        if file == "-":
            rows = read_stream(sys.stdin.buffer, format or "jsonl", "stdin", asked.names)
        else:
            rows = read_files([file], format, asked=asked.names)
        rows = _with_plain_values(rows, asked.names)
        for start in range(0, rows.table.num_rows, BATCH):
            try:
                asked.ask(rows.table.slice(start, BATCH), printing=not count)
            except MissingColumnError as error:
                meant = did_you_mean(error.column, error.available)
                hint = f"{meant}{'; ' * bool(meant)}--missing-null takes it for null"
                source = "stdin" if file == "-" else file
                raise InvalidSourceError(source, f"has no column {error.column!r}", hint) from error
            if is_left():
                break
        findings += _report_rejects(file, rows)
        if is_left():
            break
    for line in asked.counts() if count else ():
        print_line(line)
    if asked.unanswered:
        tell(f"pyengine: {counted(asked.unanswered, 'row')} cannot be evaluated (the broker throws there too)")
    return findings + asked.unanswered


class _One:
    """One selector."""

    def __init__(self, selector: Selector, missing_is_null: bool) -> None:
        self.selector = selector
        self.names = selector.names
        self.missing: Literal["raise", "null"] = "null" if missing_is_null else "raise"
        self.found = self.unanswered = 0

    def ask(self, part: Any, *, printing: bool) -> None:
        ask = partial(self.selector.truth, missing=self.missing)
        truth = ask(_asked_of(part, self.names, ask))
        self.unanswered += int((truth == -2).sum())
        hits = (truth == 1).nonzero()[0]
        self.found += len(hits)
        if printing:
            for row in _messages(part.take(hits)):
                print(_line(row))

    def counts(self) -> list[str]:
        return [str(self.found)]


class _Many:
    """Subscriptions; a row is unanswered where one of them cannot be evaluated, and the others still count."""

    def __init__(self, subscriptions: Subscriptions[str], missing_is_null: bool) -> None:
        self.subscriptions = subscriptions
        self.missing: Literal["raise", "null"] = "null" if missing_is_null else "raise"
        self.found = dict.fromkeys(subscriptions.keys(), 0)
        self.unanswered = 0

    @cached_property
    def tolerant(self) -> Subscriptions[str]:
        """The same, for a part in which a selector cannot be evaluated on some row."""
        pairs = [(key, self.subscriptions[key]) for key in self.subscriptions]
        return Subscriptions(pairs, dialect=self.subscriptions.dialect, on_error="reject")

    @cached_property
    def names(self) -> list[str]:
        """What the selectors read."""
        return list(dict.fromkeys(name for key in self.subscriptions for name in self.subscriptions[key].names))

    def ask(self, part: Any, *, printing: bool) -> None:
        table, part = part, _asked_of(part, self.names, partial(self.subscriptions.match_batch, missing=self.missing))
        try:
            offsets, keys = self.subscriptions.match_batch(part, missing=self.missing)
        except SelectorEvaluationError:
            offsets, keys = self.tolerant.match_batch(part, missing=self.missing)
            failed = np.zeros(table.num_rows, bool)
            for key in self.subscriptions:
                failed |= self.subscriptions[key].truth(part, missing=self.missing) == -2
            self.unanswered += int(failed.sum())
        for key, count in Counter(keys.tolist()).items():
            self.found[key] += count
        if printing:
            hits = np.flatnonzero(np.diff(offsets))
            for place, row in zip(hits.tolist(), _messages(table.take(hits)), strict=True):
                wanted = {"subscriptions": keys[offsets[place] : offsets[place + 1]].tolist()}
                print(_line(row | wanted))

    def counts(self) -> list[str]:
        return [f"{count}\t{key}" for key, count in self.found.items()]


_Asked = _One | _Many


def _read_subscriptions(file: str, dialect: str) -> Subscriptions[str]:
    hint = "write lines like eu = \"region = 'EU'\""
    texts = root_table(read_text(file), file).values
    if not texts:
        raise InvalidSourceError(file, "holds no selector", hint)
    selectors: dict[str, Selector] = {}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise InvalidSourceError(file, f"{name} is not text", hint)
        try:
            selectors[name] = Selector(text, dialect)  # type: ignore[arg-type]
        except InvalidSelectorError as error:
            raise InvalidSourceError(f"{file}: {name}", str(error)) from error
    return Subscriptions(selectors, dialect=dialect)  # type: ignore[arg-type]


def _asked_of(part: Any, names: Iterable[str], ask: Callable[[Any], object]) -> Any:
    """The rows as columns, or as messages where a selector reads a key that has values of several types."""
    if mixed_columns(part).isdisjoint(names):
        return part
    ask(part.slice(0, 0))  # raises for a column that is not there
    return _messages(part)


def _with_plain_values(rows: Rows, names: Iterable[str]) -> Rows:
    """Without the rows that have an object or a list, which no property can be, where others have what can be one."""
    found: dict[int, Reject] = {}
    for name in mixed_columns(rows.table).intersection(names):
        for place, value in enumerate(rows.table.column(name).to_pylist()):
            if value is not None and value[0] in NESTED:
                reject = Reject(rows.numbers[place].as_py(), name, value, f"is {NESTED[value[0]]}")
                found.setdefault(place, reject)
    if not found:
        return rows
    plain = np.ones(rows.table.num_rows, bool)
    plain[list(found)] = False
    rejects = sorted((*rows.rejects, *found.values()), key=lambda reject: reject.row)
    return replace(rows, table=rows.table.filter(plain), numbers=rows.numbers.filter(plain), rejects=tuple(rejects))


def _messages(part: Any) -> list[dict[str, Any]]:
    mixed = mixed_columns(part)
    return [
        {name: json.loads(value) if name in mixed else value for name, value in row.items() if value is not None}
        for row in part.to_pylist()
    ]


def _line(row: dict[str, Any]) -> str:
    """A row as JSON: bytes, as Kafka's keys and values are, by their text, other types by Python's."""

    def text(value: object) -> str:
        return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)

    return visible_json(json.dumps(row, ensure_ascii=False, default=text))


def _report_rejects(file: str, rows: Rows) -> int:
    for reject in rows.rejects[:5]:
        tell(f"pyengine: {file}: row {reject.row}: {reject.column or reject.value!r} {reject.reason}")
    if len(rows.rejects) > 5:
        tell(f"pyengine: {file}: {counted(len(rows.rejects) - 5, 'more row')} cannot be read")
    return len(rows.rejects)
