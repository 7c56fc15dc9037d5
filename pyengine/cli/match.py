"""``pyengine match``: a selector over files."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyengine import Selector
from pyengine.backlog.sources import FORMATS, Rows, read_files, read_stream
from pyengine.errors import InvalidSourceError, did_you_mean

BATCH = 65_536
DIALECTS = ("activemq", "rocketmq")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of every row. missing_is_null: a column that the data lacks is null instead of an error."""

    selector: str
    dialect: str = "activemq"
    missing_is_null: bool = False


def match(question: Question, files: Sequence[str], format: str, *, count: bool) -> int:
    """Print matching rows, or how many there are; the number of rows that could not be read or evaluated."""
    if question.dialect not in DIALECTS:
        raise InvalidSourceError(
            "--dialect", f"{question.dialect!r} is unknown", did_you_mean(question.dialect, DIALECTS)
        )
    if format and format not in FORMATS:
        raise InvalidSourceError("--format", f"{format!r} is unknown", did_you_mean(format, FORMATS))
    selector = Selector(question.selector, question.dialect)  # type: ignore[arg-type]
    found = findings = 0
    try:
        for file in files:
            rows = (
                read_stream(sys.stdin.buffer, format or "jsonl", "stdin") if file == "-" else read_files([file], format)
            )
            matched, unanswered = _match_rows(selector, question, rows, count)
            found += matched
            findings += unanswered + _report_rejects(file, rows)
        if count:
            print(found)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has seen enough; keep Python from complaining when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return findings


def _match_rows(selector: Selector, question: Question, rows: Rows, count: bool) -> tuple[int, int]:
    found = unanswered = 0
    for start in range(0, rows.table.num_rows, BATCH):
        part = rows.table.slice(start, BATCH)
        truth = selector.truth(part, missing="null" if question.missing_is_null else "raise")
        unanswered += int((truth == -2).sum())
        hits = (truth == 1).nonzero()[0]
        found += len(hits)
        if not count:
            for row in part.take(hits).to_pylist():
                print(json.dumps(_present(row), ensure_ascii=False, default=str))
    if unanswered:
        print(f"pyengine: {unanswered} rows cannot be evaluated (the broker throws there too)", file=sys.stderr)
    return found, unanswered


def _present(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def _report_rejects(file: str, rows: Rows) -> int:
    for reject in rows.rejects[:5]:
        print(f"pyengine: {file}: row {reject.row}: {reject.column or reject.value!r} {reject.reason}", file=sys.stderr)
    if len(rows.rejects) > 5:
        print(f"pyengine: {file}: {len(rows.rejects) - 5} more rows cannot be read", file=sys.stderr)
    return len(rows.rejects)
