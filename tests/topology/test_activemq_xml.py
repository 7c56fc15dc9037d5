"""activemq.xml: every key of a policy entry, every strategy, Spring's forms, what is listed and what is refused."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any

import pytest

from pyengine._engine.activemq.client.redelivery_policy import RedeliveryPolicy
from pyengine.destinations import Destination, parse_destination
from pyengine.errors import InvalidTopologyError
from pyengine.topology import BrokerConfiguration, Policy, PolicyMap, schema
from pyengine.topology.keys import DISPATCH_POLICIES, PENDING_QUEUE_POLICIES, STRATEGIES, element_name
from pyengine.topology.policy import (
    AbortSlowAckConsumerStrategy,
    AbortSlowConsumerStrategy,
    CompositeQueue,
    CompositeTopic,
    ConstantPendingMessageLimitStrategy,
    DiscardingDeadLetterStrategy,
    FilteredDestination,
    FixedCountSubscriptionRecoveryPolicy,
    FixedSizedSubscriptionRecoveryPolicy,
    IndividualDeadLetterStrategy,
    LastImageSubscriptionRecoveryPolicy,
    NoSubscriptionRecoveryPolicy,
    OldestMessageEvictionStrategy,
    OldestMessageWithLowestPriorityEvictionStrategy,
    PrefetchRatePendingMessageLimitStrategy,
    RedeliveryPlugin,
    SharedDeadLetterStrategy,
    TimedSubscriptionRecoveryPolicy,
    UniquePropertyMessageEvictionStrategy,
    VirtualTopic,
)
from pyengine.topology.schema import java_name

DATA = Path(__file__).parent / "data"
# Key, the broker's default (spec activemq 4.5), another value, and how XML writes it.
PLAIN: list[tuple[str, Any, Any, str]] = [
    ("all_consumers_exclusive_by_default", False, True, "true"),
    ("consumers_before_dispatch_starts", 0, 3, "3"),
    ("lazy_dispatch", False, True, "TRUE"),
    ("max_browse_page_size", 400, 7, " 7 "),
    ("max_page_size", 200, 50, "50"),
    ("prioritized_messages", False, True, "on"),
    ("queue_prefetch", 1000, 0, "0"),
    ("strict_order_dispatch", False, True, "1"),
    ("time_before_dispatch_starts", 0, 250, "250"),
    ("use_consumer_priority", True, False, "false"),
    ("use_prefetch_extension", True, False, "no"),
    ("advisory_for_consumed", False, True, "yes"),
    ("advisory_for_delivery", False, True, "true"),
    ("advisory_for_discarding_messages", False, True, "true"),
    ("advisory_for_slow_consumers", False, True, "true"),
    ("always_retroactive", False, True, "true"),
    ("durable_topic_prefetch", 100, 5, "+5"),
    ("enable_audit", True, False, "off"),
    ("expire_messages_period", 30_000, 10_000_000_000, "10000000000"),
    ("gc_inactive_destinations", False, True, "true"),
    ("inactive_timeout_before_gc", 60_000, 1, "1"),
    ("max_audit_depth", 10_000, 16, "0x10"),
    ("max_expire_page_size", 400, 9, "9"),
    ("max_producers_to_audit", 64, 65, "65"),
    ("minimum_message_size", 1024, 0, "0"),
    ("persist_jms_redelivered", False, True, "true"),
    ("queue_browser_prefetch", 500, 1, "1"),
    ("send_advisory_if_no_consumers", False, True, "true"),
    ("topic_prefetch", 32_767, -1, "-1"),
]
STRATEGY_DEFAULTS: dict[str, Any] = {
    "dead_letter_strategy": SharedDeadLetterStrategy(dead_letter_queue="ActiveMQ.DLQ"),
    "pending_message_limit_strategy": None,
    "message_eviction_strategy": OldestMessageEvictionStrategy(1000),
    "slow_consumer_strategy": None,
    "subscription_recovery_policy": None,
}
# The strategy, its attributes in XML, and the strategy with all of them.
FULL: list[tuple[str, str, Any]] = [
    (
        "dead_letter_strategy",
        'processNonPersistent="true" processExpired="false" enableAudit="false" expiration="5000000000" '
        'maxProducersToAudit="3" maxAuditDepth="4"',
        SharedDeadLetterStrategy(
            process_non_persistent=True, process_expired=False, enable_audit=False, expiration=5_000_000_000,
            max_producers_to_audit=3, max_audit_depth=4,
        ),
    ),
    (
        "dead_letter_strategy",
        'queuePrefix="Q." topicPrefix="T." queueSuffix=".q" topicSuffix=".t" useQueueForQueueMessages="false" '
        'useQueueForTopicMessages="false" destinationPerDurableSubscriber="true"',
        IndividualDeadLetterStrategy(
            queue_prefix="Q.", topic_prefix="T.", queue_suffix=".q", topic_suffix=".t",
            use_queue_for_queue_messages=False, use_queue_for_topic_messages=False,
            destination_per_durable_subscriber=True,
        ),
    ),
    ("dead_letter_strategy", 'enableAudit="false"', DiscardingDeadLetterStrategy(enable_audit=False)),
    ("pending_message_limit_strategy", 'limit="0"', ConstantPendingMessageLimitStrategy(0)),
    ("pending_message_limit_strategy", 'multiplier="2.5"', PrefetchRatePendingMessageLimitStrategy(2.5)),
    ("message_eviction_strategy", 'evictExpiredMessagesHighWatermark="5"', OldestMessageEvictionStrategy(5)),
    (
        "message_eviction_strategy",
        'evictExpiredMessagesHighWatermark="5"',
        OldestMessageWithLowestPriorityEvictionStrategy(5),
    ),
    (
        "message_eviction_strategy",
        'propertyName="symbol" evictExpiredMessagesHighWatermark="5"',
        UniquePropertyMessageEvictionStrategy("symbol", 5),
    ),
    (
        "slow_consumer_strategy",
        'maxSlowCount="2" maxSlowDuration="3" checkPeriod="4" abortConnection="true" ignoreNetworkConsumers="false"',
        AbortSlowConsumerStrategy(2, 3, 4, True, False),
    ),
    (
        "slow_consumer_strategy",
        'maxTimeSinceLastAck="5" ignoreIdleConsumers="false" checkPeriod="4"',
        AbortSlowAckConsumerStrategy(check_period=4, max_time_since_last_ack=5, ignore_idle_consumers=False),
    ),
    ("subscription_recovery_policy", 'maximumSize="3"', FixedCountSubscriptionRecoveryPolicy(3)),
    (
        "subscription_recovery_policy",
        'maximumSize="3000"',
        FixedSizedSubscriptionRecoveryPolicy(3000),
    ),
    ("subscription_recovery_policy", "", LastImageSubscriptionRecoveryPolicy()),
    ("subscription_recovery_policy", 'recoverDuration="8000"', TimedSubscriptionRecoveryPolicy(8000)),
    ("subscription_recovery_policy", "", NoSubscriptionRecoveryPolicy()),
]  # fmt: skip


def broker_xml(inside: str, attributes: str = "") -> str:
    return (
        '<beans xmlns="http://www.springframework.org/schema/beans">\n'
        f'<broker xmlns="http://activemq.apache.org/schema/core" {attributes}>\n{inside}\n</broker>\n</beans>'
    )


def inside(*names: str) -> str:
    """Elements nested into each other; the last one is written out by its text."""
    *outer, text = names
    return "".join(f"<{name}>" for name in outer) + text + "".join(f"</{name}>" for name in reversed(outer))


def virtual_xml(text: str) -> str:
    return broker_xml(inside("destinationInterceptors", "virtualDestinationInterceptor", "virtualDestinations", text))


def policy_xml(attributes: str, content: str = "") -> str:
    entry = f"<policyEntry {attributes}>{content}</policyEntry>"
    return broker_xml(
        f"<destinationPolicy><policyMap><policyEntries>\n{entry}\n</policyEntries></policyMap></destinationPolicy>"
    )


def A(attributes: str, content: str = "") -> str:  # noqa: N802
    return policy_xml(f'queue="A" {attributes}', content)


def load(tmp_path: Path, text: str | bytes, **options: Any) -> BrokerConfiguration:
    file = tmp_path / "activemq.xml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return BrokerConfiguration.load(file, **({"environment": {}} | options))


def policy(tmp_path: Path, attributes: str, content: str = "") -> Policy:
    found = load(tmp_path, policy_xml(attributes, content))
    assert found.not_modelled == ()
    (entry,) = found.policies.entries
    return entry


def test_every_key_of_a_policy_is_in_these_tables() -> None:
    others = {"destination", "selector_errors", "dispatch_policy", "message_group_map_factory_type", *STRATEGIES}
    others |= {"pending_queue_policy"}
    assert {key for key, *_ in PLAIN} | others == set(Policy.__dataclass_fields__)
    assert STRATEGY_DEFAULTS.keys() == STRATEGIES.keys()
    assert {type(full) for _, _, full in FULL} == {kind for kinds in STRATEGIES.values() for kind in kinds.values()}


def test_defaults() -> None:
    entry = Policy("A")
    assert [(key, getattr(entry, key)) for key, *_ in PLAIN] == [(key, default) for key, default, *_ in PLAIN]
    assert {key: getattr(entry, key) for key in STRATEGIES} == STRATEGY_DEFAULTS
    assert (entry.dispatch_policy, entry.group_map) == ("simple", ("cached", 1024))
    assert entry.pending_queue_policy == "store"


@pytest.mark.parametrize(("key", "default", "value", "written"), PLAIN)
def test_every_plain_key(tmp_path: Path, key: str, default: Any, value: Any, written: str) -> None:
    assert policy(tmp_path, f'queue="A" {java_name(key)}="{written}"') == Policy("A", **{key: value})
    bean = f'queue="A"><property xmlns="http://www.springframework.org/schema/beans" name="{java_name(key)}"'
    assert policy(tmp_path, f"{bean} value={written!r}/", "") == Policy("A", **{key: value})


@pytest.mark.parametrize(("key", "attributes", "full"), FULL, ids=lambda part: type(part).__name__)
def test_every_strategy_as_element_and_as_bean(tmp_path: Path, key: str, attributes: str, full: Any) -> None:
    name, java = element_name(type(full)), java_name(key)
    content = f"<{java}><{name} {attributes}/></{java}>"
    assert policy(tmp_path, 'topic="A.>"', content) == Policy("topic://A.>", **{key: full})
    properties = re.sub(r'(\w+)="([^"]*)"', r'<property name="\1" value="\2"/>', attributes)
    bean_class = f"org.apache.activemq.broker.region.policy.{type(full).__name__}"
    bean = f'<bean xmlns="http://www.springframework.org/schema/beans" class="{bean_class}">{properties}</bean>'
    assert policy(tmp_path, 'topic="A.>"', f"<{java}>{bean}</{java}>") == Policy("topic://A.>", **{key: full})


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ('queue="a" topic="b"', "topic://b"),
        ('topic="b" queue="a"', "topic://b"),
        ('queue="queue://a"', "queue://queue://a"),
        ('queue="topic://a"', "queue://topic://a"),
        ('topic="queue://a"', "topic://queue://a"),
        ('queue="a,topic://b"', "a,topic://b"),
        ('tempQueue="false"', "temp-queue://>"),
    ],
)
def test_what_an_entry_covers_as_the_broker_reads_it(tmp_path: Path, written: str, found: str) -> None:
    # Recorded with 6.3.1 and 5.17.2: attributes are set in the order of the alphabet, a prefix is part of the name.
    (entry,) = load(tmp_path, policy_xml(written)).policies.entries
    assert entry.destination == found
    if found == "queue://queue://a":
        (covered,) = parse_destination(entry.destination)
        assert (covered.kind, covered.name) == ("queue", "queue://a")


@pytest.mark.parametrize(
    ("written", "found"),
    [(" 1 0 ", 10), ("+10", 10), ("010", 10), ("0x10", 16), ("-0X1f", -31), ("-#5", -5), ("\uff11\uff10", 10)],
)
def test_whole_numbers_as_spring_reads_them(tmp_path: Path, written: str, found: int) -> None:
    # Recorded with 6.3.1 and 5.17.2, as what follows.
    assert policy(tmp_path, f'queue="a" maxAuditDepth="{written}"').max_audit_depth == found


@pytest.mark.parametrize(("written", "found"), [("5f", 5.0), (" .5 D", 0.5), ("1e1", 10.0), ("-Infinity", -math.inf)])
def test_numbers_as_spring_reads_them(tmp_path: Path, written: str, found: float) -> None:
    rate = f'<prefetchRatePendingMessageLimitStrategy multiplier="{written}"/>'
    entry = policy(tmp_path, 'topic="a"', f"<pendingMessageLimitStrategy>{rate}</pendingMessageLimitStrategy>")
    assert isinstance(entry.pending_message_limit_strategy, PrefetchRatePendingMessageLimitStrategy)
    assert entry.pending_message_limit_strategy.multiplier == found


def test_the_later_of_two_elements_counts(tmp_path: Path) -> None:
    twice = "<deadLetterStrategy><sharedDeadLetterStrategy/></deadLetterStrategy>" \
            "<deadLetterStrategy><individualDeadLetterStrategy/></deadLetterStrategy>" \
            "<queuePrefetch>5</queuePrefetch>"  # fmt: skip
    entry = policy(tmp_path, 'queue="a" queuePrefetch="3"', twice)
    assert (entry.dead_letter_strategy, entry.queue_prefetch) == (IndividualDeadLetterStrategy(), 5)
    entries = "".join(f'<policyEntries><policyEntry queue="{name}"/></policyEntries>' for name in "ab")
    found = load(tmp_path, broker_xml(f"<destinationPolicy><policyMap>{entries}</policyMap></destinationPolicy>"))
    assert [each.destination for each in found.policies.entries] == ["b"]


def test_an_attribute_with_the_prefix_of_the_schema_is_read(tmp_path: Path) -> None:
    schema = 'xmlns:amq="http://activemq.apache.org/schema/core"'
    assert policy(tmp_path, f'queue="a" {schema} amq:queuePrefetch="5"').queue_prefetch == 5


def test_a_broker_has_the_name_that_the_broker_makes_of_it(tmp_path: Path) -> None:
    assert load(tmp_path, broker_xml("", 'brokerName=" a b/c:d"')).name == "_a_b_c:d"
    assert load(tmp_path, broker_xml("", 'brokerName="a b"'), broker="a_b").name == "a_b"


def test_the_policy_inside_one_for_retained_messages_counts(tmp_path: Path) -> None:
    inner = '<wrapped><fixedCountSubscriptionRecoveryPolicy maximumSize="5"/></wrapped>'
    text = f"<retainedMessageSubscriptionRecoveryPolicy>{inner}</retainedMessageSubscriptionRecoveryPolicy>"
    found = load(tmp_path, policy_xml('topic="a"', f"<subscriptionRecoveryPolicy>{text}</subscriptionRecoveryPolicy>"))
    assert found.policies.entries[0].subscription_recovery_policy == FixedCountSubscriptionRecoveryPolicy(5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (A('queuePrefetch="+0x10"'), "is not a whole number"),
        (A('queuePrefetch="1_0"'), "is not a whole number"),
        (policy_xml('tempQueue="x"'), "is neither true nor false"),
        (policy_xml('destination="queue://a"'), "must hold a destination"),
        (policy_xml("", "<destination><queue>a</queue></destination>"), "has no name"),
        (A("", "<deadLetterStrategy/>"), "is empty"),
        (A("", inside("deadLetterStrategy", '<sharedDeadLetterStrategy deadLetterQueue="D"/>')), "must hold a dest"),
        (broker_xml("", 'persistent=" true"'), "is neither true nor false"),
        (broker_xml(inside("destinationPolicy", "policyMap", "<entries/>")), "is not known to ActiveMQ"),
        (broker_xml(inside("plugins", "redeliveryPlugin", "redeliveryPolicyMap", "redeliveryPolicyMap", "defaultEntry",
                           '<redeliveryPolicy maximumRedeliveries="-2"/>')), "activemq.xml:3"),
    ],
)  # fmt: skip
def test_what_the_broker_refuses_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InvalidTopologyError, match=words):
        load(tmp_path, text)


@pytest.mark.parametrize("name", PENDING_QUEUE_POLICIES)
def test_every_pending_queue_policy(tmp_path: Path, name: str) -> None:
    content = f"<pendingQueuePolicy><{PENDING_QUEUE_POLICIES[name]}/></pendingQueuePolicy>"
    assert policy(tmp_path, 'queue="A"', content).pending_queue_policy == name


@pytest.mark.parametrize("name", DISPATCH_POLICIES)
def test_every_dispatch_policy(tmp_path: Path, name: str) -> None:
    content = f"<dispatchPolicy><{java_name(name + '_dispatch_policy')}/></dispatchPolicy>"
    assert policy(tmp_path, 'topic="A"', content).dispatch_policy == name


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ('messageGroupMapFactoryType="simple"', ("simple", 0)),
        ('messageGroupMapFactoryType="bucket"', ("bucket", 1024)),
        ('messageGroupMapFactoryType="bucket?bucketCount=8&amp;cacheSize=3"', ("bucket", 8)),
        ('messageGroupMapFactoryType="cached?cacheSize=5"', ("cached", 5)),
    ],
)
def test_every_group_map(tmp_path: Path, written: str, kind: tuple[str, int]) -> None:
    assert policy(tmp_path, f'queue="A" {written}').group_map == kind


@pytest.mark.parametrize(
    ("factory", "kind"),
    [
        ("<simpleMessageGroupMapFactory/>", ("simple", 0)),
        ('<messageGroupHashBucketFactory bucketCount="8" cacheSize="3"/>', ("bucket", 8)),
        ('<cachedMessageGroupMapFactory cacheSize="5"/>', ("cached", 5)),
    ],
)
def test_group_maps_as_elements(tmp_path: Path, factory: str, kind: tuple[str, int]) -> None:
    content = f"<messageGroupMapFactory>{factory}</messageGroupMapFactory>"
    assert policy(tmp_path, 'queue="A"', content).group_map == kind


def test_everything_a_file_can_hold() -> None:
    found = BrokerConfiguration.load(DATA / "everything.xml", environment={})
    entries = (
        Policy(
            "A.>",
            strict_order_dispatch=True,
            dead_letter_strategy=SharedDeadLetterStrategy(process_non_persistent=True, dead_letter_queue="Dead.\u00c9"),
        ),
        Policy(
            "topic://T.>",
            dispatch_policy="round_robin",
            message_eviction_strategy=UniquePropertyMessageEvictionStrategy("symbol"),
            subscription_recovery_policy=TimedSubscriptionRecoveryPolicy(5000),
        ),
        Policy("temp-queue://>", dead_letter_strategy=None),
        Policy("G.a,G.b", message_group_map_factory_type="bucket?bucketCount=32"),
    )
    assert found == BrokerConfiguration(
        name="all",
        persistent=False,
        policies=PolicyMap(entries, Policy("", prioritized_messages=True)),
        virtual_destinations=(
            VirtualTopic("VT.>", "C.*.", selector_aware=True),
            CompositeQueue("in", ("one", "topic://two", FilteredDestination("dear", "price > 100")), False, True),
            CompositeTopic("news", ("archive",)),
        ),
        destinations=(Destination("A"), Destination("B"), Destination("T", "topic"), Destination("U", "topic")),
        redelivery_plugin=RedeliveryPlugin(
            (("slow.>", RedeliveryPolicy(maximum_redeliveries=4, redelivery_delay=10_000)),),
            RedeliveryPolicy(maximum_redeliveries=2),
            fallback_to_dead_letter=False,
        ),
        users=(),
    )
    assert [(part.line, part.element, part.name, part.changes_answers) for part in found.not_modelled] == [
        (7, "broker", "start", False),
        (27, "mirroredQueue", "", True),
        (28, "com.example.OwnInterceptor", "", True),
        (60, "redeliveryPolicy", "preDispatchCheck", False),
        (65, "com.example.OwnPlugin", "", True),
    ]
    assert found.policy_of(Destination("G.b")) == entries[3]
    assert found.policy_of(Destination("unknown")) == Policy("", prioritized_messages=True)


def test_the_form_that_is_shipped() -> None:
    found = BrokerConfiguration.load(DATA / "shipped.xml", environment={})
    assert (found.name, found.data_directory) == ("shopfloor", str(DATA.parent / "data"))
    assert found.policies == PolicyMap(
        (
            Policy("topic://>", pending_message_limit_strategy=ConstantPendingMessageLimitStrategy(1000)),
            Policy(">", queue_prefetch=25),
        )
    )
    listed = {(part.name or part.element, part.value): part for part in found.not_modelled}
    assert {name for name, _ in listed} == {
        'io.fabric8.insight.log.log4j.Log4jLogQuery id="logQuery"', "producerFlowControl", "memoryLimit",
        "managementContext", "persistenceAdapter", "systemUsage", "shutdownHooks", "resource",
        'org.eclipse.jetty.security.HashLoginService id="securityLoginService"',
    }  # fmt: skip
    usage = listed["systemUsage", "systemUsage"]
    assert (Path(usage.file).name, usage.line, usage.changes_answers) == ("shipped.xml", 35, True)
    assert str(listed["resource", "missing.xml"]).endswith(
        'shipped.xml:49: import: resource="missing.xml": there is no such file'
    )


def test_where_a_placeholder_gets_its_value(tmp_path: Path) -> None:
    def name(written: str, **options: Any) -> str:
        return load(tmp_path, broker_xml("", f'brokerName="{written}"'), **options).name

    both = {"properties": {"a.b": "given"}, "environment": {"A_B": "env", "a.b": "exact"}}
    assert name("x-${a.b}-${a.b}", **both) == "x-given-given"
    assert name("${a.b}", environment=both["environment"]) == "exact"
    assert name("${a.b}", environment={"A_B": "env"}) == "env"
    assert name("${a.b:with:colon}") == "with:colon"
    assert name("${a:${b:deep}}") == "deep"
    assert name("${a}", properties={"a": "${b}", "b": "c"}) == "c"
    assert name("${open", properties={}) == "__open"
    local = '<bean class="org.springframework.beans.factory.config.PropertyPlaceholderConfigurer">' \
            '<property name="properties"><value>a = local</value></property></bean>'  # fmt: skip
    text = broker_xml("", 'brokerName="${a}"').replace("<broker", local + "<broker")
    assert load(tmp_path, text, environment={"a": "env"}).name == "local"
    props = local.replace("<value>a = local</value>", '<props><prop key="a">p</prop></props>')
    assert load(tmp_path, text.replace(local, props)).name == "p"


@pytest.mark.parametrize("written", ["#{systemProperties['node']}", "${nobody.defines.this}", "node-${HOST}"])
def test_a_name_that_only_the_running_broker_knows_refuses_no_file(tmp_path: Path, written: str) -> None:
    text = broker_xml("", f'brokerName="{written}" dataDirectory="{written}"')
    found = load(tmp_path, text, environment={})
    assert (found.name, found.data_directory) == ("localhost", "")
    assert [(part.name, part.value, part.changes_answers) for part in found.not_modelled] == [
        ("brokerName", written, False),
        ("dataDirectory", written, False),
    ]
    assert load(tmp_path, text, environment={}, broker="localhost").name == "localhost"


@pytest.mark.parametrize(
    "text",
    [
        '<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><name>a</name></core></configuration>',
        '<core xmlns="urn:activemq:core"/>',
        "<configuration><core/></configuration>",
    ],
)
def test_the_file_of_artemis_is_told_as_such(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidTopologyError, match=r"is the broker\.xml of ActiveMQ Artemis"):
        load(tmp_path, text)


def test_each_broker_of_a_file_is_read(tmp_path: Path) -> None:
    other = '<broker xmlns="http://activemq.apache.org/schema/core" brokerName="two" persistent="false"/></beans>'
    text = broker_xml("", 'brokerName="one"').replace("</beans>", other)
    found = BrokerConfiguration.each_from_text(text, "a.xml")
    assert [(each.name, each.persistent) for each in found] == [("one", True), ("two", False)]
    assert [each.name for each in BrokerConfiguration.each_from_text(broker_xml(""), "a.xml")] == ["localhost"]
    assert [each.name for each in BrokerConfiguration.each_from_text('name = "t"')] == ["t"]


@pytest.mark.parametrize(
    ("strategy", "hint"),
    [
        ("discardingDeadLetterStrategy", "the element of this class is <discarding/>"),
        ("sharedDeadLetterStrateg", "did you mean 'sharedDeadLetterStrategy'?"),
    ],
)
def test_a_hint_names_the_element_that_does_what_the_class_does(tmp_path: Path, strategy: str, hint: str) -> None:
    text = policy_xml('queue="A"', f"<deadLetterStrategy><{strategy}/></deadLetterStrategy>")
    with pytest.raises(InvalidTopologyError) as refused:
        load(tmp_path, text)
    assert refused.value.hint == hint


def test_a_placeholder_that_is_defined_by_itself_is_not_called_undefined(tmp_path: Path) -> None:
    circle = {"a": "${b}", "b": "${a}"}
    with pytest.raises(InvalidTopologyError, match=r"\$\{[ab]\} is defined by itself") as refused:
        load(tmp_path, broker_xml("", 'persistent="${a}"'), properties=circle)
    assert "give properties" not in str(refused.value)
    imported = broker_xml("").replace("<broker", '<import resource="${a}"/><broker', 1)
    (left,) = load(tmp_path, imported, properties=circle).not_modelled
    assert left.reason.endswith("is defined by itself")


def test_of_two_configurers_the_first_counts(tmp_path: Path) -> None:
    # Recorded with 6.3.1 and 5.17.2: it replaces what it knows before the second one comes.
    beans = "".join(
        '<bean class="org.springframework.context.support.PropertySourcesPlaceholderConfigurer">'
        f'<property name="properties"><value>a = {value}\n{value} = own</value></property>'
        '<property name="ignoreUnresolvablePlaceholders" value="true"/></bean>'
        for value in ("first", "second")
    )
    text = broker_xml("", 'brokerName="${a}-${second}"').replace("<broker", beans + "<broker")
    assert load(tmp_path, text).name == "first-own"


def test_property_files_are_read_as_java_reads_them(tmp_path: Path) -> None:
    (tmp_path / "more.properties").write_bytes(b"! remark\r\n name\\ x : caf\xe9 \\u00e9\\tz\n\nempty\n")
    bean = '<bean class="org.springframework.context.support.PropertySourcesPlaceholderConfigurer">' \
           '<property name="location" value="more.properties"/></bean>'  # fmt: skip
    text = broker_xml("", 'dataDirectory="${name x}|${empty}"').replace("<broker", bean + "<broker")
    assert load(tmp_path, text).data_directory == "caf\u00e9 \u00e9\tz|"


def test_imports(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "inner.xml").write_text(
        '<beans xmlns="http://www.springframework.org/schema/beans"><import resource="../dead.xml"/></beans>'
    )
    (tmp_path / "dead.xml").write_text(
        '<beans xmlns:amq="http://activemq.apache.org/schema/core"><amq:discarding id="none"/></beans>'
    )
    text = policy_xml('queue="A" deadLetterStrategy="#none"').replace(
        "<broker", '<import resource="sub/inner.xml"/><import resource="http://example.org/x.xml"/><broker'
    )
    found = load(tmp_path, text)
    assert found.policies.entries == (Policy("A", dead_letter_strategy=DiscardingDeadLetterStrategy()),)
    assert [part.reason for part in found.not_modelled] == ["only local files are read"]
    (tmp_path / "dead.xml").write_text('<beans><import resource="sub/inner.xml"/></beans>')
    with pytest.raises(InvalidTopologyError, match=r"dead\.xml:1: import resource: imports itself"):
        load(tmp_path, text)


def test_one_of_several_brokers(tmp_path: Path) -> None:
    other = '<broker xmlns="http://activemq.apache.org/schema/core" brokerName="two"/></beans>'
    text = broker_xml("", 'brokerName="one"').replace("</beans>", other)
    with pytest.raises(InvalidTopologyError, match=r"activemq\.xml:5: has 2 brokers; name it with .* one, two"):
        load(tmp_path, text)
    found = load(tmp_path, text, broker="two")
    assert (found.name, [part.reason for part in found.not_modelled]) == ("two", ["another broker of this file"])
    with pytest.raises(InvalidTopologyError, match="no broker of this name"):
        load(tmp_path, text, broker="three")


def test_brokers_without_spring_around_and_as_a_bean(tmp_path: Path) -> None:
    assert load(tmp_path, '<broker xmlns="http://activemq.apache.org/schema/core" brokerName="bare"/>').name == "bare"
    bean = '<bean class="org.apache.activemq.broker.BrokerService"><property name="brokerName" value="bean"/></bean>'
    assert load(tmp_path, f"<beans>{bean}</beans>").name == "bean"


def test_virtual_topics_as_the_broker_has_them(tmp_path: Path) -> None:
    interceptors = (
        "<destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>{}</virtualDestinations>"
        "</virtualDestinationInterceptor></destinationInterceptors>"
    )
    assert load(tmp_path, broker_xml("")).virtual_destinations == (VirtualTopic("VirtualTopic.>"),)
    assert load(tmp_path, broker_xml("", 'useVirtualTopics="false"')).virtual_destinations == ()
    assert load(tmp_path, broker_xml(interceptors.format(""))).virtual_destinations == ()
    full = (
        '<virtualTopic name="T.>" prefix="P." postfix=".S" selectorAware="true" local="true" concurrentSend="true" '
        'transactedSend="true" dropOnResourceLimit="true" setOriginalDestination="false"/>'
    )
    found = load(tmp_path, broker_xml(interceptors.format(full)))
    assert found.virtual_destinations == (VirtualTopic("T.>", "P.", ".S", True, True, False),)
    assert [(part.name, part.changes_answers) for part in found.not_modelled] == [
        ("concurrentSend", False),
        ("transactedSend", False),
        ("dropOnResourceLimit", True),
    ]
    buffer = '<fixedSizedSubscriptionRecoveryPolicy useSharedBuffer="false"/>'
    (part,) = load(
        tmp_path,
        policy_xml('topic="A"', f"<subscriptionRecoveryPolicy>{buffer}</subscriptionRecoveryPolicy>"),
    ).not_modelled
    assert (part.name, part.changes_answers) == ("useSharedBuffer", False)


@pytest.mark.parametrize("name", schema.POLICY_ENTRY)
def test_what_a_policy_entry_has_beyond_the_model_is_listed(tmp_path: Path, name: str) -> None:
    (part,) = load(tmp_path, policy_xml(f'queue="A" {name}="1"')).not_modelled
    reason, changes = schema.POLICY_ENTRY[name]
    assert (part.line, part.element, part.name, part.value) == (4, 'policyEntry queue="A"', name, "1")
    assert (part.reason, part.changes_answers) == (reason, changes)


@pytest.mark.parametrize("name", schema.BROKER)
def test_what_a_broker_has_beyond_the_model_is_listed(tmp_path: Path, name: str) -> None:
    (part,) = load(tmp_path, broker_xml(f"<{name}><x/><y/></{name}>")).not_modelled
    assert (part.line, part.name, part.value, part.reason) == (3, name, "x, y", schema.BROKER[name][0])


@pytest.mark.parametrize("name", schema.PLUGINS)
def test_plugins_are_listed(tmp_path: Path, name: str) -> None:
    (part,) = load(tmp_path, broker_xml(f"<plugins><{name}/></plugins>")).not_modelled
    assert (part.element, part.reason) == (name, schema.PLUGINS[name][0])


def test_strategies_of_the_users_own_are_listed_and_the_default_stays(tmp_path: Path) -> None:
    own = "<{0}><bean xmlns='http://www.springframework.org/schema/beans' class='com.example.Own'/></{0}>"
    names = [java_name(key) for key in (*STRATEGIES, "dispatch_policy", "pending_queue_policy")]
    names.append("messageGroupMapFactory")
    found = load(tmp_path, policy_xml('topic="A"', "".join(own.format(name) for name in names)))
    assert found.policies.entries == (Policy("topic://A"),)
    assert [(part.element, part.changes_answers) for part in found.not_modelled] == [("com.example.Own", True)] * 8


def test_passwords_are_not_shown(tmp_path: Path) -> None:
    bean = '<bean id="db" class="com.example.Source"><property name="password" value="tiger"/></bean>'
    found = load(tmp_path, broker_xml("", 'mbeanPassword="tiger"').replace("mbeanPassword", "brokerName"))
    assert found.name == "tiger"
    text = broker_xml("").replace("<broker", bean + "<broker")
    assert "tiger" not in str(load(tmp_path, text).not_modelled)


def test_a_second_entry_of_one_name_counts_and_the_first_is_listed(tmp_path: Path) -> None:
    text = policy_xml('queue="A"').replace(
        "</policyEntries>", '<policyEntry queue="A" maxPageSize="3"/></policyEntries>'
    )
    found = load(tmp_path, text)
    assert found.policies.entries == (Policy("A", max_page_size=3),)
    assert [(part.line, part.reason) for part in found.not_modelled] == [
        (4, "line 5 has another entry of this name, which counts")
    ]


@pytest.mark.parametrize(
    ("attributes", "inside", "lost"),
    [
        ('topic="b" queue="a"', "", [("queue", "a", "topic")]),
        (
            'queue="a" topic="c"',
            '<destination><topic physicalName="b"/></destination>',
            [("queue", "a", "destination"), ("topic", "c", "destination")],
        ),
        ('topic="b"', "", []),
    ],
)
def test_what_an_entry_covers_besides_and_does_not_count_is_listed(
    tmp_path: Path, attributes: str, inside: str, lost: list[tuple[str, str, str]]
) -> None:
    found = load(tmp_path, policy_xml(attributes, inside))
    assert [entry.destination for entry in found.policies.entries] == ["topic://b"]
    assert [(part.name, part.value, part.reason, part.changes_answers) for part in found.not_modelled] == [
        (name, value, f"{last} of the same entry is set after it and counts", False) for name, value, last in lost
    ]


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        (A('maxPagesize="3"'), 4, "queue, maxPagesize", "did you mean 'maxPageSize'?"),
        (A('maxPageSize="many"'), 4, "queue, maxPageSize", "not a whole number (got 'many')"),
        (A('maxPageSize="0"'), 4, "queue, maxPageSize", "give 1 or more"),
        (A('maxPageSize="1k"'), 4, "queue, maxPageSize", "not a whole number"),
        (A("", '<maxPageSize><bean class="x"/></maxPageSize>'), 4, "queue, maxPageSize", "must be a string"),
        (A('queuePrefetch="3000000000"'), 4, "queue, queuePrefetch", "too large"),
        (A('lazyDispatch="maybe"'), 4, "queue, lazyDispatch", "neither true nor false"),
        (policy_xml('queue="${q}"'), 4, 'policyEntry queue="${q}", queue', "${q} is not defined"),
        (A('maxPageSize="#{1+1}"'), 4, "queue, maxPageSize", "Spring expression"),
        (policy_xml('queue=" "'), 4, 'policyEntry queue=" ", queue', "is empty"),
        (policy_xml('maxPageSize="3"'), 4, "policyEntry", "covers no destination"),
        (A('deadLetterStrategy="shared"'), 4, "queue, deadLetterStrategy", "put an element inside"),
        (A("", inside("deadLetterStrategy", "<sharedDeadLeterStrategy/>")), 4,
         "sharedDeadLeterStrategy", "did you mean 'sharedDeadLetterStrategy'?"),
        (A("", inside("pendingMessageLimitStrategy", '<constantPendingMessageLimitStrategy limits="1"/>')), 4,
         "constantPendingMessageLimitStrategy, limits", "did you mean 'limit'?"),
        (A("", inside("pendingMessageLimitStrategy", '<prefetchRatePendingMessageLimitStrategy multiplier="x"/>')), 4,
         "prefetchRatePendingMessageLimitStrategy, multiplier", "not a number"),
        (A("", inside("messageEvictionStrategy", "<uniquePropertyMessageEvictionStrategy/>")), 4,
         "uniquePropertyMessageEvictionStrategy", "has no propertyName"),
        (A("", inside("dispatchPolicy", "<randomDispatchPolicy/>")), 4, "randomDispatchPolicy",
         "does not belong into dispatchPolicy"),
        (A("", inside("pendingQueuePolicy", '<storeCursor size="1"/>')), 4, "storeCursor, size", "remove it"),
        (A('messageGroupMapFactoryType="cash"'), 4, "queue, messageGroupMapFactoryType", "did you mean 'cached'?"),
        (A('messageGroupMapFactoryType="simple?x=1"'), 4, "queue, messageGroupMapFactoryType", "write simple alone"),
        (broker_xml("<destinationPolicies/>"), 3, "broker, destinationPolicies", "did you mean 'destinationPolicy'?"),
        (broker_xml("<destinations><queue/></destinations>"), 3, "broker, destinations", "has no name"),
        (broker_xml("<destinations><kahaDB/></destinations>"), 3, "kahaDB", "is not a destination"),
        (virtual_xml("<compositeQueue/>"), 3, "compositeQueue", "has no name"),
        (virtual_xml('<compositeQueue name="a"><forwardTo><filteredDestination queue="b" selector="a ="/></forwardTo>'
                     "</compositeQueue>"), 3, 'filteredDestination queue="b", selector', "position 3"),
        (broker_xml(inside("plugins", "redeliveryPlugin", "redeliveryPolicyMap", "redeliveryPolicyMap", "defaultEntry",
                           '<redeliveryPolicy redeliveryDelay="10"/>')),
         3, "redeliveryPolicy, redeliveryDelay", "give 1000"),
        ("<beans/>", 1, "", "has no broker element"),
        ("<beans>\n<broker></beans>", 2, "", "not well-formed XML at column"),
        ('<?xml version="1.0" encoding="klingon"?><beans/>', 1, "", "encoding"),
        ("<a>" * 101 + "</a>" * 101, 1, "", "nested deeper than 100"),
    ],
)  # fmt: skip
def test_refusals_say_where_and_what_to_do(tmp_path: Path, text: str, line: int, key: str, words: str) -> None:
    with pytest.raises(InvalidTopologyError) as caught:
        load(tmp_path, text)
    error = caught.value
    expected = key.replace("queue,", 'policyEntry queue="A",') if key.startswith("queue,") else key
    assert (Path(error.file).name, error.line, error.key) == ("activemq.xml", line, expected)
    assert words in str(error)


@pytest.mark.parametrize(
    "doctype",
    [
        '<!DOCTYPE beans PUBLIC "-//SPRING//DTD BEAN//EN" "http://www.springframework.org/dtd/spring-beans.dtd">',
        '<!DOCTYPE beans [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>',
        '<!DOCTYPE beans [<!ENTITY secret SYSTEM "file:///etc/passwd">]>',
        "<!DOCTYPE beans>",
    ],
)
def test_a_doctype_is_refused_and_with_it_every_entity(tmp_path: Path, doctype: str) -> None:
    with pytest.raises(InvalidTopologyError, match=r"activemq\.xml:1: has a DOCTYPE \(beans\); delete"):
        load(tmp_path, doctype + broker_xml("", 'brokerName="&b;"'))
    with pytest.raises(InvalidTopologyError, match="undefined entity"):
        load(tmp_path, broker_xml("", 'brokerName="&b;"'))


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(InvalidTopologyError, match=r"nowhere\.xml: cannot be read"):
        BrokerConfiguration.load("nowhere.xml")


SOURCE = os.environ.get("ACTIVEMQ_SOURCE", "")


@pytest.mark.skipif(not SOURCE, reason="ACTIVEMQ_SOURCE does not name a checkout of ActiveMQ's source")
def test_the_configurations_that_ship_with_activemq() -> None:
    conf = Path(SOURCE) / "assembly" / "src" / "release"
    files = [file for file in sorted(conf.rglob("*.xml")) if re.search(r"<(amq:)?broker\b", file.read_text("utf-8"))]
    assert len(files) > 10
    for file in files:
        assert BrokerConfiguration.load(file, environment={}).file == str(file)
