"""Replays activemq/misc: wildcard matching, the policy that wins, composites, group buckets, redelivery delays."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from pyengine.destinations import entry_pattern, most_specific, parse_destination
from tests.conformance.verdict import Verdict, compare, unsupported

Case = dict[str, Any]


def identify(case: Case) -> str:
    """kind, then what was asked."""
    match case["kind"]:
        case "match":
            return f"match {case['pattern']} {case['dest']}"
        case "policy":
            return f"policy {','.join(case['entries'])} {case['dest']}"
        case "composite":
            return f"composite {case['dest']}"
        case kind:
            return f"{kind} " + " ".join(f"{k}={v}" for k, v in case.items() if k not in ("kind", "expected"))


def replay_match(case: Case) -> Verdict:
    patterns = parse_destination(case["pattern"])
    (destination,) = parse_destination(case["dest"])
    return compare(identify(case), case["expected"], any(pattern.matches(destination) for pattern in patterns))


def replay_policy(case: Case) -> Verdict:
    """An ``unstable`` case varied between runs of the broker: any of the entries it may have chosen agrees."""
    entries = {entry_pattern(entry): entry for entry in case["entries"]}
    (destination,) = parse_destination(case["dest"])
    winner = most_specific(entries, destination)
    if winner is None:
        got = "queue://DEFAULT" if case.get("default") else None
    else:  # the recording names a composite entry by its text alone
        got = entries[winner].removeprefix("queue://") if "," in entries[winner] else str(winner)
    if case.get("unstable"):
        return compare(identify(case), got, got if got in case["unstable"] else case["unstable"])
    return compare(identify(case), case["expected"], got)


def replay_composite(case: Case) -> Verdict:
    parts = parse_destination(case["dest"])
    pattern = len(parts) == 1 and parts[0].is_pattern
    got = (sorted(map(str, parts)), pattern, dict(parts[0].options))
    return compare(identify(case), (sorted(case["expected"]), case["pattern"], case.get("options", {})), got)


REPLAYS: dict[str, Callable[[Case], Verdict]] = {
    "match": replay_match,
    "policy": replay_policy,
    "composite": replay_composite,
}
# Kinds that rest on compiled rooms are replayed by a module of their own: tests.conformance.activemq_misc_<kind>.
COMPILED = ("bucket", "redelivery")


def replay(case: Case) -> Verdict:
    """Dispatch by kind."""
    kind = case["kind"]
    if kind in REPLAYS:
        return REPLAYS[kind](case)
    if kind not in COMPILED:
        return unsupported(f"unknown kind {kind!r}")
    room = importlib.import_module(f"tests.conformance.activemq_misc_{kind}")
    verdict: Verdict = room.replay(case)
    return verdict
