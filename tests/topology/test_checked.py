"""Settings made in Python: a value of another type, or a choice that is none, is refused where it is written."""

from __future__ import annotations

import pytest

from pyengine.activemq.options import ConnectionOptions, PrefetchPolicy
from pyengine.errors import ConfigurationError
from pyengine.topology import policy
from pyengine.topology.model import Consumer, TimeColumn
from pyengine.topology.policy import Policy


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Policy("q", max_page_size="3"), r"Policy.max_page_size='3': must be a whole number or None$"),
        (lambda: Policy("q", max_page_size=True), r"Policy.max_page_size=True: must be a whole number or None$"),
        (lambda: Policy("q", lazy_dispatch=1), r"Policy.lazy_dispatch=1: must be True or False$"),
        (lambda: Policy("q", pending_queue_policy="Store"), r"'Store': must be 'store' or 'vm' or 'file'$"),
        (lambda: Policy("q", dispatch_policy="fair"), r"Policy.dispatch_policy='fair': must be 'simple' or "),
        (lambda: Policy(7), r"Policy.destination=7: must be a text$"),
        (
            lambda: policy.SharedDeadLetterStrategy(expiration=1.5),
            r"DeadLetterStrategy.expiration=1.5: must be a whole",
        ),
        (lambda: policy.PrefetchRatePendingMessageLimitStrategy("1"), r"multiplier='1': must be a number$"),
        (lambda: policy.VirtualTopic(local=None), r"VirtualTopic.local=None: must be True or False$"),
        (lambda: policy.CompositeTopic("t", forward_only="no"), r"CompositeTopic.forward_only='no': must be True"),
        (lambda: Consumer("c", "q", prefetch=2.0), r"Consumer.prefetch=2.0: must be a whole number or None$"),
        (lambda: TimeColumn("sent", unit=1), r"TimeColumn.unit=1: must be a text$"),
        (lambda: ConnectionOptions(dispatch_async="false"), r"ConnectionOptions.dispatch_async='false': must be True"),
        (lambda: PrefetchPolicy(queue_prefetch="10"), r"PrefetchPolicy.queue_prefetch='10': must be a whole number$"),
    ],
)
def test_what_no_field_takes_is_named_at_once(make, message):
    with pytest.raises(ConfigurationError, match=message):
        make()


def test_what_fields_take_is_taken():
    assert Policy("q", max_page_size=None, pending_queue_policy="vm").max_page_size is None
    assert policy.PrefetchRatePendingMessageLimitStrategy(1).multiplier == 1
    assert PrefetchPolicy(queue_prefetch=100_000).queue_prefetch == 32_767
    assert policy.QueryBasedSubscriptionRecoveryPolicy("what may be anything").query == "what may be anything"
