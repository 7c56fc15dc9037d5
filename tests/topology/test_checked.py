"""Settings made in Python: a value of another type, or a choice that is none, is refused where it is written."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyengine.activemq.dispatch import dispatch_table
from pyengine.activemq.options import ConnectionOptions, PrefetchPolicy
from pyengine.errors import ConfigurationError
from pyengine.topology import policy
from pyengine.topology.broker import BrokerConfiguration
from pyengine.topology.model import Consumer, Source, TimeColumn, Topology
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
        (lambda: TimeColumn("sent", unit=1), r"TimeColumn.unit=1: must be 's' or 'ms' or 'us' or 'ns'$"),
        (
            lambda: dispatch_table(pa.table({}), Topology(Source("q"))),
            r"dispatch_table.topology=(.|\n)*: must be a Topology$",
        ),
        (lambda: dispatch_table(Topology(Source("q")), [{}]), r"dispatch_table.messages=\[{}\]: must be a Table$"),
        (lambda: dispatch_table(Topology(Source("q")), pa.table({}), 0), r"batch_size=0: must be 1 or more$"),
        (lambda: Source("q", order="time"), r"Source.order='time': must be 'rows' or 'timestamp'$"),
        (lambda: Source("q", format="xml"), r"Source.format='xml': must be '' or 'parquet' or 'jsonl' or 'csv'$"),
        (lambda: Consumer("c", "q", prefetch=2**31), r"Consumer.prefetch=2147483648: must be a whole number from -2"),
        (
            lambda: Consumer("c", "q", priority=-129),
            r"Consumer.priority=-129: must be a whole number from -128 to 127$",
        ),
        (lambda: Policy("q", queue_prefetch=2**31), r"Policy.queue_prefetch=2147483648: must be .* to 2147483647$"),
        (lambda: Policy("q", expire_messages_period=2**63), r"period=9223372036854775808: must be .* from -9223372"),
        (lambda: policy.SharedDeadLetterStrategy(expiration=-(10**5000)), r"expiration=<int>: must be a whole number"),
        (lambda: policy.FixedCountSubscriptionRecoveryPolicy(1 << 40), r"maximum_size=1099511627776: must be a whole"),
        (lambda: ConnectionOptions(dispatch_async="false"), r"ConnectionOptions.dispatch_async='false': must be True"),
        (lambda: ConnectionOptions(prefetch_policy=5), r"prefetch_policy=5: must be a PrefetchPolicy$"),
        (lambda: ConnectionOptions(redelivery_policy={}), r"redelivery_policy={}: must be a RedeliveryPolicy$"),
        (lambda: Policy("q", dead_letter_strategy="DLQ"), r"='DLQ': must be a SharedDeadLetterStrategy or an Indiv"),
        (
            lambda: Policy("q", message_eviction_strategy=5),
            r"=5: must be an OldestMessageEvictionStrategy or .*Strategy$",
        ),
        (lambda: policy.QueryBasedSubscriptionRecoveryPolicy("x"), r"Policy.query='x': must be a MessageQuery$"),
        (lambda: policy.PrefetchRatePendingMessageLimitStrategy(float("nan")), r"multiplier=nan: must be a number$"),
        (lambda: policy.CompositeQueue("all", "orders"), r"forward_to='orders': must be a list of which each is a Fil"),
        (
            lambda: policy.CompositeQueue("all", ("a", 5)),
            r"forward_to\[1\]=5: must be a FilteredDestination or a text$",
        ),
        (lambda: policy.PolicyMap(["q"]), r"PolicyMap.entries\[0\]='q': must be a Policy$"),
        (lambda: policy.PolicyMap(default="q"), r"PolicyMap.default='q': must be a Policy or None$"),
        (
            lambda: policy.RedeliveryPlugin((("q", 5),)),
            r"policies\[0\]=\('q', 5\): must be \(a text, a RedeliveryPolicy\)$",
        ),
        (lambda: BrokerConfiguration(persistent="no"), r"BrokerConfiguration.persistent='no': must be True or False$"),
        (lambda: Topology("q"), r"Topology.source='q': must be a Source$"),
        (
            lambda: Source("q", properties="region"),
            r"Source.properties='region': must be a list of which each is a text",
        ),
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
    query = Mine()
    assert policy.QueryBasedSubscriptionRecoveryPolicy(query).query is query
    assert Policy("q", message_eviction_strategy=Mine(), dead_letter_strategy=None).dead_letter_strategy is None
    assert policy.CompositeQueue("all", ["q", policy.FilteredDestination("r")]).forward_to[0] == "q"
    assert policy.PolicyMap([Policy("q")]) == policy.PolicyMap((Policy("q"),))


class Mine:
    """A query and an eviction strategy of the user's own."""

    def query(self, destination):
        return []

    def validate_update(self, message):
        return True

    def evict_messages(self, messages):
        return messages[:1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Topology.load(5), r"^Topology.load.path=5: must be a text or a Path$"),
        (lambda: Topology.load(None), r"^Topology.load.path=None: must be a text or a Path$"),
        (lambda: Topology.from_text(b"x"), r"^Topology.from_text.text=b'x': must be a text$"),
        (lambda: BrokerConfiguration.load(5), r"^BrokerConfiguration.load.path=5: must be a text or a Path$"),
        (
            lambda: BrokerConfiguration.load("a.xml", properties={"a": 5}),
            r"^BrokerConfiguration.load.properties={'a': 5}: must be a mapping from a text to a text or None$",
        ),
        (lambda: BrokerConfiguration.from_text(5), r"^BrokerConfiguration.from_text.text=5: must be a text$"),
        (lambda: Topology(Source("q")).policy_of(5), r"^destination=5: must be a text$"),
        (lambda: Topology(Source("q")).consumers_of(b"q"), r"^destination=b'q': must be a text$"),
    ],
)
def test_a_call_names_what_it_cannot_use(call, message):
    with pytest.raises(ConfigurationError, match=message):
        call()
