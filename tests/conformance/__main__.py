"""``python -m tests.conformance KIND FILE.jsonl [--show N]``: replay recorded answers and count who agrees.

KIND is a folder and a kind, as in ``activemq/selector``; the module ``tests.conformance.activemq_selector`` replays it
with ``replay(case) -> Verdict`` and names its cases with ``identify(case) -> str``. Differences on purpose stand in
docs/differences.md as table rows ``| KIND | id pattern | reason |`` and are counted as listed.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from traceback import format_exception
from typing import Any

from tests.conformance.verdict import Verdict

DIFFERENCES = Path(__file__).parents[2] / "docs" / "differences.md"


def listed_patterns(kind: str) -> list[str]:
    """The id patterns of docs/differences.md for one kind."""
    rows = re.findall(r"^\|\s*`?([\w/]+)`?\s*\|\s*`?([^|`]+?)`?\s*\|", DIFFERENCES.read_text("utf-8"), re.MULTILINE)
    return [pattern for row_kind, pattern in rows if row_kind == kind]


def cases(path: Path) -> Iterator[dict[str, Any]]:
    """The cases of a file: a JSON object a line, or, in a ``.json`` file, one list of them. ``.gz``: compressed."""
    if path.suffix == ".json":
        yield from json.loads(path.read_text("utf-8"))
        return
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield json.loads(line)
            except json.JSONDecodeError as error:
                sys.exit(f"{path}, line {number}: no recorded case, a JSON object: {error}")


def replay_file(kind: str, path: Path, show: int = 0) -> Counter[str]:
    """Replay every case of a file; print the first ``show`` cases that do not agree; return the counts by verdict."""
    room = importlib.import_module("tests.conformance." + kind.replace("/", "_"))
    patterns = listed_patterns(kind)
    counts: Counter[str] = Counter()
    for case in cases(path):
        try:
            verdict = room.replay(case)
        except Exception as error:  # the cases behind it count all the same
            verdict = Verdict("differ", str(case)[:300], "an answer", "".join(format_exception(error)[-2:]).strip())
        name = room.identify(case)
        outcome = verdict.kind
        if outcome != "agree" and any(fnmatchcase(name, pattern) for pattern in patterns):
            outcome = "listed"
        counts[outcome] += 1
        if outcome in ("differ", "unsupported") and counts["differ"] + counts["unsupported"] <= show:
            print(f"{name}: {outcome}\n  asked:    {verdict.asked}")
            if outcome == "differ":
                print(f"  expected: {verdict.expected}\n  got:      {verdict.got}")
    return counts


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, replay, print the closing line; 0 if nothing differs and nothing is unsupported."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("kind", help="activemq/selector, rocketmq/sql, ...")
    parser.add_argument("file", type=Path)
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print the first N cases that do not agree")
    options = parser.parse_args(arguments)
    if not options.file.is_file():
        parser.error(f"no file {options.file}: recorded answers lie in tests/conformance/data")
    try:
        counts = replay_file(options.kind, options.file, options.show)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("tests.conformance."):
            raise
        parser.error(f"no runner for {options.kind!r}: kinds are named as the files in tests/conformance/data")
    listed = f", {counts['listed']} listed" if counts["listed"] else ""
    tally = ", ".join(f"{counts[outcome]} {outcome}" for outcome in ("agree", "differ", "unsupported"))
    print(f"{options.kind}: {tally}{listed}")
    return 0 if not counts["differ"] and not counts["unsupported"] else 1


if __name__ == "__main__":
    sys.exit(main())
