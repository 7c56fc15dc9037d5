"""Traps of brokers' files and push consumers: each is found in its case and not in a file close by."""

from __future__ import annotations

import random
from itertools import combinations
from pathlib import Path
from time import process_time

import pytest

from pyengine.backlog.findings import Finding, Said
from pyengine.backlog.lint.checks import lint, lint_broker, lint_consumer
from pyengine.backlog.lint.rules import push_consumer
from pyengine.backlog.lint.rules.broker import undefined_order
from pyengine.destinations import entry_pattern
from pyengine.errors import InvalidSourceError, InvalidTopologyError
from pyengine.topology import BrokerConfiguration, Topology

SHIPPED = Path(__file__).parents[2] / "topology" / "data" / "shipped.xml"
HEAD = '<broker xmlns="http://activemq.apache.org/schema/core" {broker}>'


def broker(entries: str, rest: str = "", attributes: str = "") -> BrokerConfiguration:
    text = (
        f"{HEAD.format(broker=attributes)}<destinationPolicy><policyMap><policyEntries>{entries}</policyEntries>"
        f"</policyMap></destinationPolicy>{rest}</broker>"
    )
    return BrokerConfiguration.from_text(text, "activemq.xml")


def queue(attributes: str, inside: str = "") -> str:
    return f'<policyEntry queue="Q.>" {attributes}>{inside}</policyEntry>'


def topic(attributes: str, inside: str = "") -> str:
    """An entry that has a pending limit unless ``inside`` says something else."""
    return f'<policyEntry topic="T.>" {attributes}>{inside or limit(100_000)}</policyEntry>'


def limit(count: int) -> str:
    strategy = f'<constantPendingMessageLimitStrategy limit="{count}"/>'
    return f"<pendingMessageLimitStrategy>{strategy}</pendingMessageLimitStrategy>"


def rate(multiplier: float) -> str:
    strategy = f'<prefetchRatePendingMessageLimitStrategy multiplier="{multiplier}"/>'
    return f"<pendingMessageLimitStrategy>{strategy}</pendingMessageLimitStrategy>"


def evict(strategy: str) -> str:
    return f"<messageEvictionStrategy><{strategy}/></messageEvictionStrategy>"


def slow(strategy: str) -> str:
    return f"<slowConsumerStrategy><{strategy}/></slowConsumerStrategy>"


def composite(inside: str, more: str = "", before: str = "") -> str:
    return (
        "<destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>"
        f'{before}<compositeQueue name="in" {more}><forwardTo>{inside}</forwardTo></compositeQueue>'
        "</virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>"
    )


REDELIVERY = (
    "<redeliveryPlugin><redeliveryPolicyMap><redeliveryPolicyMap><defaultEntry>"
    '<redeliveryPolicy maximumRedeliveries="{}"/></defaultEntry></redeliveryPolicyMap></redeliveryPolicyMap>'
    "</redeliveryPlugin>"
)
UNIQUE = 'uniquePropertyMessageEvictionStrategy propertyName="symbol"'
ABORT = "abortSlowConsumerStrategy"
ABORT_ACK = 'abortSlowAckConsumerStrategy maxSlowDuration="120000"'
RECOVERY = "<subscriptionRecoveryPolicy><lastImageSubscriptionRecoveryPolicy/></subscriptionRecoveryPolicy>"
PURGE = 'schedulePeriodForDestinationPurge="10000"'
GC = 'gcInactiveDestinations="true"'
A, B = '<filteredDestination selector="x &gt; 1" queue="A"/>', '<filteredDestination selector="x &lt; 1" queue="B"/>'
REST = '<filteredDestination selector="x = 1 OR x IS NULL" queue="C"/>'

# code: (trap, neighbour)
CASES: dict[str, tuple[BrokerConfiguration, BrokerConfiguration]] = {
    "wrong_kind": (broker(queue('topicPrefetch="10"')), broker(topic('topicPrefetch="10"'))),
    "prefix_in_name": (
        broker('<policyEntry queue="queue://A"/>'),
        broker('<policyEntry queue="A"/><policyEntry queue="A,topic://B"/>'),
    ),
    "prefetch_below_zero": (broker(queue('queuePrefetch="-1"')), broker(queue('queuePrefetch="0" topicPrefetch="-1"'))),
    "exclusive_by_default": (broker(queue('allConsumersExclusiveByDefault="true"')), broker(queue(""))),
    "strict_order_fills_one": (
        broker(queue('strictOrderDispatch="true"')),
        broker(queue('strictOrderDispatch="true" queuePrefetch="1"')),
    ),
    "strict_order_and_groups": (
        broker(queue('strictOrderDispatch="true" queuePrefetch="1" messageGroupMapFactoryType="simple"')),
        broker(queue('messageGroupMapFactoryType="simple"')),
    ),
    "group_map_forgets": (
        broker(queue('messageGroupMapFactoryType="cached?cacheSize=100"')),
        broker(queue('messageGroupMapFactoryType="cached?cacheSize=9000"')),
    ),
    "few_buckets": (
        broker(queue('messageGroupMapFactoryType="bucket?bucketCount=8"')),
        broker(queue('messageGroupMapFactoryType="bucket"')),
    ),
    "small_page": (broker(queue('maxPageSize="50"')), broker(queue('maxPageSize="500"'))),
    "start_not_guaranteed": (
        broker(queue('consumersBeforeDispatchStarts="3"')),
        broker(queue('consumersBeforeDispatchStarts="3" timeBeforeDispatchStarts="5000"')),
    ),
    "start_waits": (
        broker(queue('timeBeforeDispatchStarts="600000"')),
        broker(queue('timeBeforeDispatchStarts="5000"')),
    ),
    "prefetch_extension_off": (
        broker(queue('usePrefetchExtension="false" queuePrefetch="1"')),
        broker(queue('queuePrefetch="1"')),
    ),
    "priority_behind_prefetch": (
        broker(queue('prioritizedMessages="true"')),
        broker(queue('prioritizedMessages="true" queuePrefetch="1"')),
    ),
    "expiry_off": (broker(queue('expireMessagesPeriod="0"')), broker(queue('expireMessagesPeriod="1000"'))),
    "dead_letters_dropped": (
        broker(queue("", "<deadLetterStrategy><discarding/></deadLetterStrategy>")),
        broker(queue("", "<deadLetterStrategy><individualDeadLetterStrategy/></deadLetterStrategy>")),
    ),
    "gc_never_runs": (broker(queue(GC)), broker(queue(GC), attributes=PURGE)),
    "gc_loses_copies": (
        broker(f'<policyEntry queue="Consumer.>" {GC}/>', attributes=PURGE),
        broker(f'<policyEntry queue="Orders.>" {GC}/>', attributes=PURGE),
    ),
    "eviction_never_asked": (
        broker(topic("", limit(-1) + evict(UNIQUE))),
        broker(topic("", limit(10) + evict(UNIQUE))),
    ),
    "eviction_drops_others": (broker(topic("", limit(10) + evict(UNIQUE))), broker(topic("", limit(10)))),
    "limit_zero_drops": (
        broker(topic('topicPrefetch="1"', rate(0.5))),
        broker(topic('topicPrefetch="2"', rate(0.5))),
    ),
    "limit_behind_prefetch": (broker(topic("", limit(1000))), broker(topic('topicPrefetch="100"', limit(1000)))),
    "slow_never_noticed": (
        broker(topic('topicPrefetch="100"', limit(100) + slow(ABORT))),
        broker(topic('topicPrefetch="100"', limit(101) + slow(ABORT))),
    ),
    "slow_subscriber_blocks": (
        broker(topic('memoryLimit="1mb"', limit(-1))),
        broker(topic('memoryLimit="1mb" producerFlowControl="false"', limit(-1))),
    ),
    "retroactive_recovers_nothing": (
        broker(topic('alwaysRetroactive="true"')),
        broker(topic('alwaysRetroactive="true"', limit(100_000) + RECOVERY)),
    ),
    "recovery_not_used": (
        broker(topic("", limit(100_000) + RECOVERY)),
        broker(topic('alwaysRetroactive="true"', limit(100_000) + RECOVERY)),
    ),
    "abort_never": (
        broker(queue('queuePrefetch="1"', slow(ABORT))),
        broker(queue('queuePrefetch="1"', slow(ABORT_ACK))),
    ),
    "abort_first_look": (
        broker(queue('queuePrefetch="1"', slow("abortSlowAckConsumerStrategy"))),
        broker(queue('queuePrefetch="1"', slow(ABORT_ACK))),
    ),
    "abort_idle": (
        broker(queue('queuePrefetch="1"', slow(f'{ABORT_ACK} ignoreIdleConsumers="false"'))),
        broker(queue('queuePrefetch="1"', slow(ABORT_ACK))),
    ),
    "abort_waiting_pull": (
        broker(queue('queuePrefetch="0"', slow(ABORT_ACK))),
        broker(queue('queuePrefetch="1"', slow(ABORT_ACK))),
    ),
    "prefetch_for_slow_work": (
        broker(queue("", slow(ABORT_ACK))),
        broker(queue('queuePrefetch="10"', slow(ABORT_ACK))),
    ),
    "undefined_order": (
        broker('<policyEntry queue="A.>"/><policyEntry queue="A.*"/>'),
        broker('<policyEntry queue="A.>"/><policyEntry queue="A.B.*"/>'),
    ),
    "filter_without_selector": (
        broker("", composite('<filteredDestination queue="A"/>')),
        broker("", composite('<queue physicalName="A"/>')),
    ),
    "surprising_selector": (
        broker("", composite('<filteredDestination selector="NOT x = 1" queue="A"/>')),
        broker("", composite('<filteredDestination selector="NOT (x = 1)" queue="A"/>')),
    ),
    "always_false": (
        broker("", composite('<filteredDestination selector="NOT x = 1" queue="A"/>')),
        broker("", composite('<filteredDestination selector="NOT (x = 1)" queue="A"/>')),
    ),
    "not_forwarded": (
        broker("", composite(A + B)),
        broker("", composite(A + B, 'sendWhenNotMatched="true"')),
    ),
    "forward_loop": (
        broker("", composite('<queue physicalName="in"/>')),
        broker("", composite('<topic physicalName="in"/>')),
    ),
    "selector_aware_loses": (
        broker("", composite(A, before='<virtualTopic name="V.>" selectorAware="true"/>')),
        broker("", composite(A, before='<virtualTopic name="V.>"/>')),
    ),
    "redeliveries_multiply": (
        broker("", f"<plugins>{REDELIVERY.format(3)}</plugins>", 'schedulerSupport="true"'),
        broker("", f"<plugins>{REDELIVERY.format(0)}</plugins>", 'schedulerSupport="true"'),
    ),
    "dead_letters_discarded": (
        broker("", "<plugins><discardingDLQBrokerPlugin/></plugins>"),
        broker("", '<plugins><discardingDLQBrokerPlugin dropAll="false"/></plugins>'),
    ),
    "redelivery_refused": (
        broker("", "<plugins><redeliveryPlugin/></plugins>"),
        broker("", "<plugins><redeliveryPlugin/></plugins>", 'schedulerSupport="true"'),
    ),
}  # fmt: skip


def coded(found: list[Finding], code: str) -> list[Finding]:
    return [finding for finding in found if finding.code == code]


@pytest.mark.parametrize("code", CASES)
def test_a_broker_s_trap_is_found_and_its_neighbour_is_not(code: str) -> None:
    trap, neighbour = CASES[code]
    found = coded(lint_broker(trap), code)
    assert found
    for finding in found:
        assert finding.source
        assert all(isinstance(text, Said) for text in (finding.where, finding.advice, *finding.evidence))
    assert not coded(lint_broker(neighbour), code)


def test_pending_messages_without_a_limit_are_not_said_to_lack_a_strategy() -> None:
    (found,) = coded(lint_broker(broker(topic("", limit(-1)))), "slow_subscriber_blocks")
    assert str(found.evidence[0]).startswith("pending messages without a limit, no slowConsumerStrategy")


def test_what_only_topics_have_is_no_trap_of_a_queue() -> None:
    assert not coded(lint_broker(broker(queue('alwaysRetroactive="true"'))), "retroactive_recovers_nothing")


def test_filters_that_cover_everything_are_no_trap() -> None:
    assert not coded(lint_broker(broker("", composite(A + B + REST))), "not_forwarded")


def test_the_shipped_configuration_has_no_warning() -> None:
    found = lint_broker(BrokerConfiguration.load(SHIPPED, properties={"activemq.conf": str(SHIPPED.parent)}))
    assert {finding.code for finding in found} == {"limit_behind_prefetch"}


def test_entries_that_cover_each_other_are_found_as_by_comparing_all_pairs() -> None:
    chance = random.Random(7)
    for _ in range(300):
        names = {
            (".".join(chance.choices("AB*>*", k=chance.randint(1, 4))), chance.choice(("queue", "topic")))
            for _ in range(8)
        }
        entries = [f'<policyEntry {kind}="{name}"/>' for name, kind in names]
        config = broker("".join(entries))
        patterns = [entry_pattern(policy.destination) for policy in config.policies.entries]
        pairs = [
            f"{one} and {other} cover each other"
            for one, other in combinations(patterns, 2)
            if one.matches(other) and other.matches(one)
        ]
        assert [str(found.evidence[0]) for found in undefined_order(config)] == pairs


def test_a_file_of_two_thousand_entries_takes_no_longer_a_line_than_a_short_one() -> None:
    entries = "".join(f'<policyEntry queue="q{n}.&gt;" memoryLimit="1mb" {GC}/>' for n in range(2000))
    config = broker(entries, attributes=PURGE)
    started = process_time()
    assert len(coded(lint_broker(config), "gc_never_runs")) == 0
    assert process_time() - started < 3  # it was 11 s when each entry looked at all the others


def test_a_trap_names_the_line_of_its_entry() -> None:
    entry = queue('maxPageSize="5"')
    text = f"{HEAD.format(broker='')}\n<destinationPolicy><policyMap><policyEntries>\n{entry}"
    config = BrokerConfiguration.from_text(f"{text}</policyEntries></policyMap></destinationPolicy></broker>", "a.xml")
    assert lint_broker(config)[0].where == 'a.xml:3: policyEntry queue="Q.>"'
    toml = BrokerConfiguration.from_text('name = "x"\n[[policy]]\ndestination = "Q.>"\nmax_page_size = 5\n', "a.toml")
    assert lint_broker(toml)[0].where == "a.toml:2: [[policy]] Q.>"


def test_a_broker_s_policies_count_for_the_consumers_of_a_topology() -> None:
    consumers = "".join(
        f'[[consumer]]\nname = "{name}"\ndestination = "Q.one"\nprefetch = 1\nselector = "{selector}"\n'
        for name, selector in (("eu", "region = 'EU'"), ("rest", "region <> 'EU' OR region IS NULL"))
    )
    topology = Topology.from_text(f'[source]\npath = "x.jsonl"\ndestination = "Q.one"\n{consumers}')
    assert not lint(topology)
    exclusive = broker(queue('allConsumersExclusiveByDefault="true"'))
    assert len(coded(lint(topology, exclusive), "exclusive_disjoint")) == 2
    assert not coded(lint(topology, exclusive), "exclusive_by_default")  # which is the broker's own trap
    elsewhere = broker('<policyEntry queue="other" allConsumersExclusiveByDefault="true"/>')
    assert not coded(lint(topology, elsewhere), "exclusive_disjoint")


ORDERLY = {"orderly": True, "max_reconsume_times": 16}
# code: (trap, neighbour)
CONSUMERS: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "refused": ({"pull_batch_size": 2000}, {"pull_batch_size": 20}),
    "group_refused": ({"consumer_group": "bad group!"}, {"consumer_group": "good-group_1"}),
    "value_unknown": ({"message_model": "broadcast"}, {"message_model": "broadcasting"}),
    "selector_refused": (
        {"selector_type": "SQL92", "selector_expression": "price >> 10"},
        {"selector_type": "TAG", "selector_expression": "price >> 10"},
    ),
    "selector_misread": (
        {"selector_type": "SQL92", "selector_expression": "price = 05"},
        {"selector_type": "SQL92", "selector_expression": "price > 10.0"},
    ),
    "timeout_not_positive": ({"consume_timeout": 0}, {"consume_timeout": 1}),
    "unknown_parameter": ({"consume_thread_mim": 10}, {"consume_thread_min": 10}),
    "thread_max_unused": ({"consume_thread_max": 64}, {"consume_thread_min": 64, "consume_thread_max": 64}),
    "orderly_threads_idle": ({**ORDERLY, "read_queue_nums": 4}, {**ORDERLY, "read_queue_nums": 32}),
    "pull_batch_capped": ({"pull_batch_size": 64}, {"pull_batch_size": 16}),
    "batch_larger_than_pull": ({"consume_message_batch_max_size": 33}, {"consume_message_batch_max_size": 32}),
    "pull_interval_limits": ({"pull_interval": 100}, {"pull_interval": 0}),
    "topic_threshold_overwrites": ({"pull_threshold_for_topic": 1000}, {"pull_threshold_for_queue": 500}),
    "span_before_count": ({"pull_threshold_for_queue": 5000}, {**ORDERLY, "pull_threshold_for_queue": 5000}),
    "cache_memory": ({"read_queue_nums": 16, "clients": 1}, {"read_queue_nums": 16, "clients": 4}),
    "first_failure_is_dead": ({"max_reconsume_times": 0}, {"max_reconsume_times": 1}),
    "orderly_never_gives_up": ({"orderly": True}, {"max_reconsume_times": -1}),
    "broadcasting_drops_failures": ({"message_model": "BROADCASTING"}, {"message_model": "CLUSTERING"}),
    "no_effect": ({"adjust_thread_pool_nums_threshold": 5}, {"adjust_thread_pool_nums_threshold": 100000}),
    "orderly_no_timeout": ({**ORDERLY, "consume_timeout": 5}, {"consume_timeout": 5}),
    "suspend_clamped": (
        {**ORDERLY, "suspend_current_queue_time_millis": 5},
        {**ORDERLY, "suspend_current_queue_time_millis": 500},
    ),
    "timestamp_unused": (
        {"consume_timestamp": "20240101000000"},
        {"consume_timestamp": "20240101000000", "consume_from_where": "CONSUME_FROM_TIMESTAMP"},
    ),
    "timestamp_refused": (
        {"consume_timestamp": "2024/01/31", "consume_from_where": "CONSUME_FROM_TIMESTAMP"},
        {"consume_timestamp": 20240131235959, "consume_from_where": "CONSUME_FROM_TIMESTAMP"},
    ),
    "timestamp_misread": (
        {"consume_timestamp": "2024-01-31 23:59:59", "consume_from_where": "CONSUME_FROM_TIMESTAMP"},
        {"consume_timestamp": "20240131235959", "consume_from_where": "CONSUME_FROM_TIMESTAMP"},
    ),
    "clients_without_queues": ({"read_queue_nums": 4, "clients": 5}, {"read_queue_nums": 4, "clients": 4}),
    "uneven_queues": ({"read_queue_nums": 4, "clients": 3}, {"read_queue_nums": 4, "clients": 2}),
    "shared_client_id": ({"instance_name": "node"}, {"instance_name": "DEFAULT"}),
}


@pytest.mark.parametrize("code", CONSUMERS)
def test_a_push_consumer_s_trap_is_found_and_its_neighbour_is_not(code: str) -> None:
    trap, neighbour = CONSUMERS[code]
    (found,) = coded(lint_consumer(trap), code)
    assert found.source
    assert all(isinstance(text, Said) for text in (found.where, found.advice, *found.evidence))
    assert not coded(lint_consumer(neighbour), code)


@pytest.mark.parametrize(
    ("stamp", "words"),
    [
        ("2024-01-31 23:59:59", "reads it as 20231130210123. Fourteen digits are wanted"),
        ("20240131 235959", "reads it as"),
        ("20241301000000", "reads it as 20250101000000"),
        (" 20240131235959", "reads it as"),
        ("20240131", "start() throws MQClientException"),
        ("2024-01-31T23:59:59", "without blanks, dashes or colons: 20240131235959."),
        ("yesterday", "start() throws MQClientException"),
    ],
)
def test_a_timestamp_that_is_not_fourteen_digits_is_told_as_the_client_reads_it(stamp: str, words: str) -> None:
    (found,) = [each for each in lint_consumer({"consume_timestamp": stamp}) if each.code != "timestamp_unused"]
    assert words in found.advice


def test_parameters_are_read_from_any_spelling() -> None:
    want = {"consumer_group": "g", "consume_thread_max": "64"}
    texts = ("consumerGroup=g\nspring.application.name=shop\nrocketmq.consumer.consume-thread-max : 64\n# x=y\n",
             '{"consumerGroup": "g", "consumeThreadMax": "64"}',
             'consumer_group = "g"\n[rocketmq]\nconsumeThreadMax = "64"\n')  # fmt: skip
    assert [push_consumer.read(text) for text in texts] == [want] * 3
    escaped = "consumerGroup=caf\\u00e9\\ \\\n  bar\nclient\\u0049d=x\nconsume\\u0054hreadMax=64 \nsubscribe later\n"
    assert push_consumer.read(escaped) == {
        "consumer_group": "caf\xe9 bar",
        "client_id": "x",
        "consume_thread_max": "64",
    }
    assert push_consumer.read("topic and\nconsumer_group of no file\n") is None
    assert push_consumer.read("[source]\npath = 'x'\n") is None
    assert push_consumer.read("server.port=80\n") is None
    with pytest.raises(InvalidSourceError, match="is not valid JSON"):
        push_consumer.read('{"a": ' + "[" * 100_000)
    assert push_consumer.read("a = " + "[" * 100_000) is None
    with pytest.raises(InvalidTopologyError, match="is nested too deep"):
        Topology.from_text("a = " + "[" * 100_000)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 32.5, float("nan"), True, "1.0", "", [1], "9" * 5000])
@pytest.mark.parametrize("name", ["pull_threshold_for_topic", "suspend_current_queue_time_millis", "clients"])
def test_a_parameter_that_no_java_number_holds_is_named(name: str, value: object) -> None:
    words = f"^{name}: is not a whole number: .{{1,60}}; write digits only, of 64 bits$"
    with pytest.raises(InvalidSourceError, match=words):
        list(push_consumer.findings({"consumer_group": "g", name: value}))
