"""activemq/misc kind=redelivery: the delays of one message."""

from __future__ import annotations

import re
from typing import Any

from pyengine.activemq import RedeliveryPolicy
from tests.conformance.verdict import Verdict, compare


def replay(case: dict[str, Any]) -> Verdict:
    """Compare the sequence."""
    settings = {re.sub("([A-Z])", r"_\1", name).lower(): value for name, value in case["policy"].items()}
    got = RedeliveryPolicy(**settings).delays(len(case["expected"]))
    return compare(f"delays of {case['policy']}", case["expected"], got)
