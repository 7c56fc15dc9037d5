"""The real ActiveMQ broker and pyengine get the same scripts, for half a minute; ``make differential`` plays more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from pyengine.destinations import entry_pattern, parse_destination
from pyengine.topology import Policy, PolicyMap
from tests.differential.campaign import run
from tests.differential.comparison import Difference, differences, listed
from tests.differential.real import RealBroker
from tests.interop import started_or_skipped

FOUND = Path(__file__).parent / "found"
MENDED = [json.loads(line) for file in sorted(FOUND.glob("*.jsonl")) for line in file.read_text("utf-8").splitlines()]
SECONDS = 10


@pytest.fixture(scope="module")
def real() -> Iterator[RealBroker]:
    broker = started_or_skipped(lambda: RealBroker())
    yield broker
    broker.close()


@pytest.mark.parametrize("case", MENDED, ids=lambda case: case["id"])
def test_what_was_found_and_mended_stays_mended(case: dict[str, object]) -> None:
    assert differences(case) == []


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_random_scripts(kind: str, real: RealBroker) -> None:
    campaign = run(kind, seconds=SECONDS)
    assert not campaign.found, "\n".join(map(str, campaign.found))
    assert campaign.counts["agree"] >= 50
    assert campaign.counts["unstable"] <= campaign.counts["played"] // 20


def test_only_the_listed_causes_are_forgiven() -> None:
    taken = {"op": "browse", "other": [{"expired": 1}]}
    assert explained({"op": "consumer", "name": "A"}, {"op": "send", "n": 1}, taken)
    assert explained({"op": "send", "n": 1}, {"op": "consumer", "name": "A"}, taken)
    assert not explained({"op": "send", "n": 1}, taken, {"op": "consumer", "name": "A"})
    call = {"onMessage": 1, "by": "A", "deliveryCount": 1}
    came = {"op": "consumer", "name": "A", "prefetch": 1, "listen": {"fail": []}}
    assert not explained(came | {"other": [call, call | {"onMessage": 2}]})
    assert explained(came, {"op": "rollback", "name": "A", "other": [call]})
    assert not explained(came, {"op": "rollback", "name": "A", "other": [call | {"by": "B"}]})
    sends = [{"op": "send", "n": n, "to": f"Q.{n}"} for n in (1, 2)]
    wide = {"op": "consumer", "name": "A", "dest": "Q.*", "dispatched": [{"to": "A", "n": 1}]}
    assert explained(*sends, wide, ours=(2, {"dispatched": [{"to": "A", "n": 2}]}))
    assert not explained(*sends, wide, ours=(2, {}))
    copied = sends[0] | {"to": "Q.1,Q.2", "dispatched": [{"to": "A", "n": 1}]}
    late = {"op": "send", "n": 3, "to": "Q.1"}
    assert explained(wide | {"dispatched": []}, copied, late, ours=(2, {}))
    assert explained(wide | {"dispatched": []}, copied, ours={"inflight": 1})
    assert not explained(wide | {"dispatched": []}, late, copied, ours=(1, {}))
    assert not explained(wide | {"dest": "Q.1"}, copied, late, ours=(2, {}))
    other = {"op": "consumer", "name": "B", "dest": "Q.*"}
    assert explained(wide, other, sends[0], ours=(2, {"dispatched": [{"to": "B", "n": 1}]}))
    assert not explained(wide, sends[0], ours=(1, {"dispatched": [{"to": "B", "n": 1}]}))
    assert not explained(*sends, wide | {"dest": "Q.1"}, ours=(2, {"dispatched": [{"to": "A", "n": 2}]}))


def explained(*steps: dict[str, object], ours: object = None) -> bool:
    return listed(Difference({"steps": [*steps]}, [ours]))


def test_which_policy_entry_wins(real: RealBroker) -> None:
    """Random maps; pairs of patterns that cover each other are ours to decide (docs/differences.md) and left out."""
    random = Random(7)
    names = ["A", "A.B", "A.*", "*.B", "A.B.C", "A.*.C", "*.B.*", "A.B.>", "B.>", "C.*.>", "A.B,B.C", "B.*,C", ">"]
    destinations = ["A", "A.B", "A.B.C", "B.C", "C", "C.D", "A.X.C", "B.X", "X.B.Y"]
    destinations += ["A.B,B.C", "B.C,A.B", "A,C", "A.B.C,A", "B.X,A.B.C", "A.*,B.C", "A.>,B.C", "C.*.B,A.X.C"]
    for _ in range(100):
        chosen = random.sample(names, 4)
        policies = PolicyMap(tuple(Policy(name) for name in chosen))
        parts = [part for name in chosen for part in parse_destination(name)]
        if any(a.matches(b) and b.matches(a) for a in parts for b in parts if a is not b):
            continue
        won = [policies.policy_of(entry_pattern(name)) for name in destinations]
        ours = [-1 if each is None else chosen.index(each.destination) for each in won]
        assert ours == real.winners(chosen, destinations), chosen
