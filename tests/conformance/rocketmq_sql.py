"""rocketmq/sql: an SQL92 expression and text properties, the filter's answer, on every shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyengine
from tests.conformance.activemq_selector import answers
from tests.conformance.verdict import Verdict, compare

RESULTS = {True: "TRUE", False: "FALSE", "NULL": "NULL"}


def identify(case: Mapping[str, Any]) -> str:
    return str(case["id"])


def replay(case: Mapping[str, Any]) -> Verdict:
    """Compare every shape's answer with the record; the filter asks for the value, matched only if it is TRUE."""
    text = f"{case['expression']!r} on {case['properties']}"
    try:
        selector = pyengine.Selector(case["expression"], "rocketmq")
    except pyengine.InvalidSelectorError:
        return compare(text, "parse_error" in case, True)
    if "parse_error" in case:
        return compare(text, case["parse_error"], "accepted")
    selector._check()
    value = "ERROR-eval" if "eval_error" in case else RESULTS[case["result"]]
    matched = value if value in ("ERROR-eval", "TRUE") else "FALSE"
    message = pyengine.Message(case["properties"])
    for shape, got in answers(selector, message, dict(case["properties"])).items():
        if got[:2] != (matched, value):
            return compare(f"{shape}: {text}", (matched, value), got[:2])
        if not all(got[2:]) or (got[0] == "TRUE") != case["broker_match"]:
            return compare(f"{shape}: {text}: mask(on_error='reject')", case["broker_match"], "differs")
    return Verdict("agree")
