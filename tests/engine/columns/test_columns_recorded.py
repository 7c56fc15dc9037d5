"""The real broker's recorded selector answers, each asked of a batch of one row, plain and dictionary encoded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyengine import Selector, SelectorEvaluationError

RECORDED = Path(__file__).parents[2] / "conformance" / "data" / "activemq"
TYPES = {
    "byte": (pa.int8(), int),
    "short": (pa.int16(), int),
    "int": (pa.int32(), int),
    "long": (pa.int64(), int),
    "float": (pa.float32(), float),
    "double": (pa.float64(), float),
    "boolean": (pa.bool_(), bool),
    "string": (pa.string(), str),
}
TRUTHS = {1: "TRUE", 0: "FALSE", -1: "NULL", -2: "ERROR-eval"}


def expressible(case: dict[str, Any]) -> bool:
    """Columns carry properties only, of the eight property types."""
    message = case["message"]
    plain = not message.get("headers") and not message.get("body") and "JMS" not in case["selector"]
    return plain and all(cell["t"] in TYPES for cell in message.get("props", {}).values())


def asked(case: dict[str, Any], encoded: bool) -> tuple[str, str]:
    """matches() and evaluate() of the case as one row of columns."""
    columns = {"row": pa.array([0])}
    for name, cell in case["message"].get("props", {}).items():
        arrow, convert = TYPES[cell["t"]]
        column = pa.array([convert(cell["v"])], arrow)
        columns[name] = column.dictionary_encode() if encoded else column
    selector, batch = Selector(case["selector"]), pa.table(columns)
    truth = TRUTHS[int(selector.truth(batch, missing="null")[0])]
    try:
        return ("TRUE" if selector.mask(batch, missing="null")[0] else "FALSE"), truth
    except SelectorEvaluationError:
        return "ERROR-eval", truth


@pytest.mark.parametrize("name", ["selector", "selector_random"])
@pytest.mark.parametrize("encoded", [False, True])
def test_columns_answer_as_the_broker_did(name: str, encoded: bool) -> None:
    cases = [json.loads(line) for line in (RECORDED / f"{name}.jsonl").read_text("utf-8").split("\n") if line]
    cases = [case for case in cases if case["expected"] != "ERROR-parse" and expressible(case)]
    assert len(cases) > 500
    for case in cases:
        matched, truth = asked(case, encoded)
        assert (matched, truth) == (case["expected"], case.get("value") or truth), case["id"]
