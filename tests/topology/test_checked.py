"""Settings made in Python: a value of another type, or a choice that is none, is refused where it is written."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from pyengine.activemq import RedeliveryPolicy
from pyengine.activemq.options import ConnectionOptions, PrefetchPolicy
from pyengine.activemq.tables.dispatch import dispatch_table
from pyengine.errors import ConfigurationError, InvalidSelectorError, InvalidTopologyError
from pyengine.topology import policy
from pyengine.topology.broker import BrokerConfiguration
from pyengine.topology.model import Consumer, DestinationEntry, Source, Steps, TimeColumn, Topology
from pyengine.topology.policy import Policy


def assigned(columns: dict[str, list[object]], twice: str = "") -> pa.Table:
    """What dispatch_table answers for messages of these columns, one of them there twice."""
    messages = pa.table(columns)
    messages = messages.append_column(twice, messages[twice]) if twice else messages
    return dispatch_table(Topology(Source("q"), (Consumer("c", "q"),)), messages)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Policy("q", max_page_size="3"), r"Policy.max_page_size='3': must be a whole number or None$"),
        (lambda: Policy("q", max_page_size=True), r"Policy.max_page_size=True: must be a whole number or None$"),
        (lambda: Policy("q", lazy_dispatch=1), r"Policy.lazy_dispatch=1: must be True or False$"),
        (lambda: Policy("q", pending_queue_policy="Store"), r"'Store': must be 'store' or 'vm' or 'file'$"),
        (lambda: Policy("q", dispatch_policy="fair"), r"Policy.dispatch_policy='fair': must be 'simple' or "),
        (lambda: Policy(7), r"Policy.destination=7: must be a string$"),
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
        (lambda: assigned({"a": [1]}), r"messages=\['a'\]: has no column '__row'; make .* with to_messages"),
        (lambda: assigned({"__row": [1]}), r": has no column '__destination'; make messages of rows with"),
        (lambda: assigned({"__row": ["1"], "__destination": ["q"]}), r"'__row' of string where whole num"),
        (lambda: assigned({"__row": [1], "__destination": [5]}), r"'__destination' of int64 where texts"),
        (lambda: assigned({"__row": [1], "__destination": [None]}), r"a null in the column '__destination'"),
        (lambda: assigned({"__row": [1], "__destination": ["q"], "__bytes": [0.5]}), r"'__bytes' of double"),
        (lambda: assigned({"__row": [1], "__destination": ["q"]}, "__row"), r"more than one column '__row'"),
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
            r"forward_to\[1\]=5: must be a FilteredDestination or a string$",
        ),
        (lambda: policy.PolicyMap(["q"]), r"PolicyMap.entries\[0\]='q': must be a Policy$"),
        (lambda: policy.PolicyMap(default="q"), r"PolicyMap.default='q': must be a Policy or None$"),
        (
            lambda: policy.RedeliveryPlugin((("q", 5),)),
            r"policies\[0\]=\('q', 5\): must be \(a string, a RedeliveryPolicy\)$",
        ),
        (lambda: BrokerConfiguration(persistent="no"), r"BrokerConfiguration.persistent='no': must be True or False$"),
        (lambda: Topology("q"), r"Topology.source='q': must be a Source$"),
        (
            lambda: Source("q", properties="region"),
            r"Source.properties='region': must be a list of which each is a string",
        ),
        (lambda: PrefetchPolicy(queue_prefetch="10"), r"PrefetchPolicy.queue_prefetch='10': must be a whole number$"),
        (
            lambda: PrefetchPolicy(queue_prefetch=-(2**40)),
            r"queue_prefetch=-1099511627776: not a whole number of 32 bits$",
        ),
        (
            lambda: ConnectionOptions(optimize_acknowledge_time_out=2**63),
            r"ConnectionOptions.optimize_acknowledge_time_out=9223372036854775808: not a whole number of 64 bits$",
        ),
        (
            lambda: Consumer("c", "q?consumer.exclusive=true"),
            r"Consumer.destination='q.*': has options .*; write",
        ),
        (lambda: Consumer("c", "topic://"), r"Consumer.destination='topic://': is empty; name a queue"),
        (
            lambda: Consumer("c", "temp-queue://q"),
            r"Consumer.destination='temp-queue://q': names a temp-queue",
        ),
        (lambda: Consumer(" ", "q"), r"Consumer.name=' ': is empty; every consumer"),
        (
            lambda: Consumer("c", "q", prefetch=-(2**31) - 1),
            r"Consumer.prefetch=-2147483649: must be a whole number from -2147483648 to 2147483647$",
        ),
        (lambda: Source("orders.{}"), r"Source.destination='orders.{}': has empty braces; name a column"),
        (lambda: Source("{region"), r"Source.destination='{region': has a brace without a partner"),
        (lambda: Source("a,b"), r"Source.destination='a,b': is one queue or topic, without options or composites"),
        (lambda: Source("topic://"), r"Source.destination='topic://': is empty"),
        (lambda: Source("orders.>"), r"Source.destination='orders.>': is a wildcard; a message is sent to one queue"),
        (lambda: Source("q", path="a", package="b", table="c"), r"Source.package='b': path and package exclude"),
        (lambda: Source("q", table="c"), r"Source.table='c': goes together with package"),
        (lambda: Source("q", priority=""), r"Source.priority='': is empty; name a column$"),
        (lambda: Source("q", order="timestamp"), r"Source.order='timestamp': needs a timestamp; say"),
        (lambda: Source("q", properties=("n", "n")), r"Source.properties=\('n', 'n'\): names a column twice"),
        (lambda: Source("q", types=(("n", "int"), ("n", "long"))), r"Source.types=.*: names a column twice"),
        (lambda: Steps("", ((1, 5),)), r"Steps.column='': is empty"),
        (lambda: Steps("n", ()), r"Steps.steps=\(\): must be a list of .threshold, priority. pairs"),
        (
            lambda: Steps("n", ((1, 99),)),
            r"Steps.steps=.*: has \(1, 99\), which is not a",
        ),
        (lambda: Steps("n", ((5, 1), (2, 3))), r"Steps.steps=.*: must have rising thresholds"),
        (lambda: Steps("n", ((5, 1),), below=-3), r"Steps.below=-3: must be from 0 to 9$"),
        (lambda: TimeColumn(""), r"TimeColumn.column='': is empty"),
        (lambda: TimeColumn("sent", timezone="Mars/Rim"), r"TimeColumn.timezone='Mars/Rim': is not a known time zone"),
        (lambda: DestinationEntry("a,b"), r"DestinationEntry.name='a,b': names several queues"),
        (lambda: DestinationEntry("a.*"), r"DestinationEntry.name='a.\*': is a wildcard"),
        (
            lambda: Topology(Source("q"), (Consumer("c", "q"), Consumer("c", "r"))),
            r"Topology.consumers\[1\].name='c': is already used by consumers\[0\]; each needs one of its own$",
        ),
        (
            lambda: Topology(Source("q"), policies=(Policy("q"), Policy("q"))),
            r"Topology.policies\[1\].destination='q': is already used by policies\[0\]",
        ),
        (lambda: Topology(Source("q"), policies=(Policy(""),)), r"Topology.policies\[0\].destination='': is empty"),
        (
            lambda: Topology(Source("q"), default_policy=Policy("q")),
            r"default_policy.destination='q': names a",
        ),
        (lambda: Policy(","), r"Policy.destination=',': is empty"),
        (lambda: Policy("q", max_page_size=0), r"Policy.max_page_size=0: must be a whole number from 1 to"),
        (
            lambda: Policy("q", message_group_map_factory_type="bucket?cacheSize=3"),
            r"has the option 'cacheSize=3'",
        ),
        (lambda: policy.PolicyMap((Policy(""),)), r"PolicyMap.entries\[0\].destination='': is empty"),
        (lambda: policy.SharedDeadLetterStrategy(dead_letter_queue=" "), r"dead_letter_queue=' ': is empty"),
        (
            lambda: policy.UniquePropertyMessageEvictionStrategy(""),
            r"Strategy.property_name='': is empty",
        ),
        (lambda: policy.VirtualTopic(""), r"VirtualTopic.name='': is empty"),
        (lambda: policy.CompositeTopic("", ("q",)), r"CompositeTopic.name='': is empty"),
        (lambda: policy.CompositeQueue("all", ("a", "")), r"CompositeQueue.forward_to\[1\]='': is empty"),
        (lambda: policy.FilteredDestination("q?a=1"), r"FilteredDestination.destination='q.a=1': has options"),
        (
            lambda: policy.RedeliveryPlugin((("", RedeliveryPolicy()),)),
            r"RedeliveryPlugin.policies\[0\]\[0\]='': is empty",
        ),
    ],
)
def test_what_no_field_takes_is_named_at_once(make, message):
    with pytest.raises(ConfigurationError, match=message):
        make()


@pytest.mark.parametrize("make", [partial(Consumer, "c"), policy.FilteredDestination])
def test_a_selector_is_read_where_it_is_given(make):
    with pytest.raises(InvalidSelectorError, match="the selector ends too early"):
        make("q", "region =")
    assert make("q", " \n").selector == ""


def test_python_s_values_mean_what_a_file_s_mean():
    assert DestinationEntry(" queue://orders ").name == "orders"
    assert TimeColumn("sent", timezone="").timezone == "UTC"
    steps = Steps("delay", [[np.float64(0.5), 5], [np.float64(60), 7]])
    topology = Topology(Source("{region}", path="/orders.csv", priority=steps), (Consumer("c", ">", " "),))
    assert Topology.from_text(topology.to_text()) == topology


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[virtual_topic]]\nname = ""', r"^line:2: virtual_topic number 1, name: is empty"),
        (
            '[[policy]]\ndestination = "q"\ndead_letter_strategy = { type = "shared", dead_letter_queue = "" }',
            r"^line:3: policy \"q\", dead_letter_strategy, dead_letter_queue: is empty",
        ),
        (
            "<broker><destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>\n"
            '<virtualTopic name=" "/></virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>'
            "</broker>",
            r":2: virtualTopic.*, name: is empty",
        ),
    ],
)
def test_a_file_s_are_refused_with_their_line(text, message):
    with pytest.raises(InvalidTopologyError, match=message):
        BrokerConfiguration.from_text(text)


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
        (lambda: Topology.load(5), r"^Topology.load.path=5: must be a string or a Path$"),
        (lambda: Topology.load(None), r"^Topology.load.path=None: must be a string or a Path$"),
        (lambda: Topology.from_text(b"x"), r"^Topology.from_text.text=b'x': must be a string$"),
        (lambda: BrokerConfiguration.load(5), r"^BrokerConfiguration.load.path=5: must be a string or a Path$"),
        (
            lambda: BrokerConfiguration.load("a.xml", properties={"a": 5}),
            r"^BrokerConfiguration.load.properties={'a': 5}: must be a mapping from a string to a string or None$",
        ),
        (lambda: BrokerConfiguration.from_text(5), r"^BrokerConfiguration.from_text.text=5: must be a string$"),
        (lambda: Topology(Source("q")).policy_of(5), r"^destination=5: must be a string$"),
        (lambda: Topology(Source("q")).consumers_of(b"q"), r"^destination=b'q': must be a string$"),
    ],
)
def test_a_call_names_what_it_cannot_use(call, message):
    with pytest.raises(ConfigurationError, match=message):
        call()
