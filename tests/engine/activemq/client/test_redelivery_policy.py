"""Redelivery delays: collision avoidance, the end of patience, refusals; sequences are in the recorded answers."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest

from pyengine.activemq import RedeliveryPolicy
from pyengine.errors import InvalidTopologyError


def test_collision_avoidance_varies_by_its_percentage() -> None:
    policy = RedeliveryPolicy(use_collision_avoidance=True, collision_avoidance_percent=20)
    assert [policy.next_delay(0, chance) for chance in (0.0, 0.5, 0.75)] == [800, 1000, 1100]


def test_a_message_is_given_up_after_one_delivery_more_than_its_redeliveries() -> None:
    policy = RedeliveryPolicy(maximum_redeliveries=2)
    assert [policy.exhausted(counter) for counter in range(4)] == [False, False, False, True]
    assert not RedeliveryPolicy(maximum_redeliveries=-1).exhausted(10**6)


def test_policies_are_values() -> None:
    policy = RedeliveryPolicy(redelivery_delay=5)
    assert pickle.loads(pickle.dumps(policy)) == policy != RedeliveryPolicy()
    assert hash(policy) == hash(RedeliveryPolicy(redelivery_delay=5))


def test_a_back_off_beyond_a_long_stays_a_long() -> None:
    policy = RedeliveryPolicy(use_exponential_back_off=True)
    assert policy.delays(40)[-1] == 2**63 - 1
    avoiding = RedeliveryPolicy(use_exponential_back_off=True, use_collision_avoidance=True)
    assert [avoiding.next_delay(2**62, chance) for chance in (0.5, 0.99)] == [2**63 - 1] * 2
    assert avoiding.delays(40)[-1] == 2**63 - 1
    for chance in (-0.1, 1.0, 1e300, float("nan")):
        with pytest.raises(InvalidTopologyError, match=re.escape(f"from 0 to below 1 (got {chance!r})")):
            avoiding.next_delay(2**62, chance)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"maximum_redeliveries": -2}, "maximumRedeliveries: must be a whole number from -1"),
        ({"redelivery_delay": -1}, "redeliveryDelay: must be a whole number from 0"),
        ({"redelivery_delay": 1.5}, "redeliveryDelay: must be a whole number from 0"),
        ({"back_off_multiplier": "2"}, r"backOffMultiplier: must be a number \(got '2'\)"),
        ({"back_off_multiplier": float("nan")}, "backOffMultiplier: must be a number"),
        ({"use_exponential_back_off": "false"}, r"useExponentialBackOff: must be True or False \(got 'false'\)"),
        ({"use_collision_avoidance": 1}, "useCollisionAvoidance: must be True or False"),
        ({"pre_dispatch_check": None}, "preDispatchCheck: must be True or False"),
    ],
)
def test_a_setting_out_of_range_is_refused(setting: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidTopologyError, match=words):
        RedeliveryPolicy(**setting)
