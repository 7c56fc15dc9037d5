"""activemq/misc kind=bucket: the bucket of a group name."""

from __future__ import annotations

from typing import Any

from pyengine.activemq import GroupMap
from tests.conformance.verdict import Verdict, compare


def replay(case: dict[str, Any]) -> Verdict:
    """Compare the bucket."""
    got = GroupMap(f"bucket?bucketCount={case['buckets']}").bucket(case["group"])
    return compare(f"bucket of {case['group']!r} of {case['buckets']}", case["expected"], got)
