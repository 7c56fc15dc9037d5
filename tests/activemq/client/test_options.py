"""Options as text: names, defaults, conversions, misspellings."""

from __future__ import annotations

from dataclasses import fields

import pytest

from pyengine.activemq import ConnectionFactory, ConnectionOptions, PrefetchPolicy, RedeliveryPolicy, UnknownOptions
from pyengine.activemq.options import KNOWN, broker_url, camel_case, connection_options, consumer_options
from pyengine.destinations import destination_of, parse_destination
from pyengine.errors import ConfigurationError, InvalidDestinationError

# Measured with a bare ActiveMQConnectionFactory 5.17.2 (spec activemq 5).
DEFAULTS = {
    "dispatchAsync": True,
    "alwaysSessionAsync": True,
    "maxThreadPoolSize": 1000,
    "useDedicatedTaskRunner": False,
    "optimizeAcknowledge": False,
    "optimizeAcknowledgeTimeOut": 300,
    "optimizedAckScheduledAckInterval": 0,
    "messagePrioritySupported": False,
    "exclusiveConsumer": False,
    "useRetroactiveConsumer": False,
    "nonBlockingRedelivery": False,
    "transactedIndividualAck": False,
    "consumerExpiryCheckEnabled": True,
    "prefetchPolicy.queuePrefetch": 1000,
    "prefetchPolicy.queueBrowserPrefetch": 500,
    "prefetchPolicy.topicPrefetch": 32767,
    "prefetchPolicy.durableTopicPrefetch": 100,
    "prefetchPolicy.optimizeDurableTopicPrefetch": 1000,
    "prefetchPolicy.maximumPendingMessageLimit": 0,
    "redeliveryPolicy.maximumRedeliveries": 6,
    "redeliveryPolicy.initialRedeliveryDelay": 1000,
    "redeliveryPolicy.redeliveryDelay": 1000,
    "redeliveryPolicy.useExponentialBackOff": False,
    "redeliveryPolicy.backOffMultiplier": 5.0,
    "redeliveryPolicy.maximumRedeliveryDelay": -1,
    "redeliveryPolicy.useCollisionAvoidance": False,
    "redeliveryPolicy.collisionAvoidancePercent": 15,
    "redeliveryPolicy.preDispatchCheck": True,
}


def value_of(options: ConnectionOptions, name: str) -> object:
    group, _, inner = name.rpartition(".")
    holder = {"": options, "prefetchPolicy": options.prefetch_policy, "redeliveryPolicy": options.redelivery_policy}
    names = {camel_case(each): each for each in [*_names(holder[group])]}
    return getattr(holder[group], names[inner])


def _names(holder: object) -> list[str]:
    if isinstance(holder, RedeliveryPolicy):
        return [name for name in dir(holder) if not name.startswith("_")]
    return [each.name for each in fields(holder)]  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "default"), DEFAULTS.items())
def test_a_default_is_that_of_the_real_factory(name: str, default: object) -> None:
    assert value_of(ConnectionOptions(), name) == default


@pytest.mark.parametrize(("name", "default"), DEFAULTS.items())
def test_every_option_can_be_given_as_text(name: str, default: object) -> None:
    other = (not default) if isinstance(default, bool) else default + 1  # type: ignore[operator]
    factory = ConnectionFactory(f"vm://localhost?jms.{name}={str(other).lower()}")
    capped = min(other, 32767) if name.startswith("prefetchPolicy") else other
    assert value_of(factory.options, name) == capped


def test_all_sets_every_prefetch_but_the_limit() -> None:
    policy = connection_options({"prefetchPolicy.all": "7"}).prefetch_policy
    assert policy == PrefetchPolicy(
        queue_prefetch=7,
        queue_browser_prefetch=7,
        topic_prefetch=7,
        durable_topic_prefetch=7,
        optimize_durable_topic_prefetch=7,
    )


@pytest.mark.parametrize(("text", "value"), [("true", True), ("TRUE", True), ("yes", False), ("1", False), ("", False)])
def test_booleans_are_true_for_true_alone(text: str, value: bool) -> None:
    assert connection_options({"optimizeAcknowledge": text}).optimize_acknowledge is value


@pytest.mark.parametrize(
    ("url", "option", "hint"),
    [
        ("vm://a?jms.prefetchPolicy.queuePrefech=1", "jms.prefetchPolicy.queuePrefech", "prefetchPolicy.queuePrefetch"),
        ("vm://a?jms.optimizeAcknowledgeTimeout=1", "jms.optimizeAcknowledgeTimeout", "optimizeAcknowledgeTimeOut"),
        ("vm://a?jsm.dispatchAsync=false", "jsm.dispatchAsync", "jms.dispatchAsync"),
        ("vm://a?broker.persistant=false", "broker.persistant", "broker.persistent"),
        ("vm://a?jms.maxThreadPoolSize=many", "jms.maxThreadPoolSize", "whole number"),
        ("vm://a?jms.redeliveryPolicy.maximumRedeliveries=-2", "jms.redeliveryPolicy.maximumRedeliveries", "-1"),
        ("amqp://a:5672", "broker URL", "amqp: is not supported; vm://name is a broker in this process"),
        ("vm://localhost?jms.dispatchAsync", "jms.dispatchAsync", "write jms.dispatchAsync=true, or what it is to be"),
        ("vm://localhost?jms.closeTimeout=soon", "jms.closeTimeout", ""),
    ],
)
def test_what_is_wrong_in_a_url_is_named(url: str, option: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ConnectionFactory(url)
    assert caught.value.option == option
    assert hint in str(caught.value)


def test_the_real_factory_ignores_an_unknown_option_that_stands_alone() -> None:
    ignore = UnknownOptions.IGNORE
    assert connection_options({"nosuch": "1"}, None, ignore) == ConnectionOptions()
    with pytest.raises(ConfigurationError):
        connection_options({"nosuch": "1", "dispatchAsync": "false"}, None, ignore)


def test_a_url_is_taken_apart() -> None:
    parts = broker_url("vm:(broker)?create=false&jms.clientID=me&broker.persistent=false")
    assert (parts.name, parts.jms, parts.broker) == ("localhost", {"clientID": "me"}, {"persistent": "false"})
    assert parts.transport == {"create": "false"}
    assert broker_url("vm://shop/").name == "shop"


def test_options_of_a_destination_are_read_by_type() -> None:
    given = consumer_options(
        [("consumer.prefetchSize", "40000"), ("consumer.exclusive", "True"), ("consumer.selector", "a = 1")]
    )
    assert given == {"prefetchSize": 40000, "exclusive": True, "selector": "a = 1"}


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("customer.prefetchSize", "1", "consumer.prefetchSize"),
        ("consumer.prefetchsize", "1", "consumer.prefetchSize"),
        ("consumer.priority", "200", "8 bits"),
        ("consumer.maximumPendingMessageLimit", "few", "whole number"),
    ],
)
def test_what_is_wrong_in_a_destination_is_named(name: str, text: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        consumer_options([(name, text)])
    assert caught.value.option == name
    assert hint in str(caught.value)


def test_the_real_client_ignores_other_prefixes_only() -> None:
    assert consumer_options([("customer.prefetchSize", "1")], UnknownOptions.IGNORE) == {}
    with pytest.raises(ConfigurationError):
        consumer_options([("consumer.nosuch", "1")], UnknownOptions.IGNORE)


def test_known_names_cover_the_defaults() -> None:
    assert set(DEFAULTS) <= KNOWN


@pytest.mark.parametrize(
    ("options", "prefetches"),
    [
        ({"all": 5, "queuePrefetch": 7}, (5, 5, 5)),
        ({"all": 5, "durableTopicPrefetch": 7, "queueBrowserPrefetch": 9, "topicPrefetch": 8}, (5, 7, 9)),
    ],
)
def test_options_are_set_in_the_order_of_the_clients_hash_map(options, prefetches):
    # What the real factory has of these.
    url = "vm://x?" + "&".join(f"jms.prefetchPolicy.{name}={value}" for name, value in options.items())
    policy = connection_options(broker_url(url).jms).prefetch_policy
    assert (policy.queue_prefetch, policy.durable_topic_prefetch, policy.queue_browser_prefetch) == prefetches


@pytest.mark.parametrize(
    ("query", "client"), [("a%2520b", "a b"), ("a%252Bb", "a+b"), ("a%2Bb", "a b"), ("a+b", "a b"), ("%2525", "%")]
)
def test_a_url_is_decoded_twice(query, client):
    assert broker_url(f"vm://x?jms.clientID={query}").jms == {"clientID": client}


@pytest.mark.parametrize("part", ["a b", "%zz", "%", "a|b"])
def test_what_cannot_stand_in_a_url_is_refused(part):
    with pytest.raises(ConfigurationError, match="cannot stand in a URL"):
        broker_url(f"vm://x?jms.clientID={part}")
    with pytest.raises(ConfigurationError, match="decoded twice"):
        broker_url("vm://x?jms.clientID=%25")


def test_what_follows_the_last_question_mark_counts():
    assert broker_url("vm://x?jms.clientID=a?jms.dispatchAsync=false").jms == {"dispatchAsync": "false"}
    assert broker_url("vm:(broker:(tcp://h:1)?persistent=false)?jms.clientID=a").jms == {"clientID": "a"}
    (found,) = parse_destination("A?a=b?c=d")
    assert found.options == (("c", "d"),)


def test_options_of_a_destination_that_have_no_value_or_no_escape():
    assert consumer_options([("consumer.selector", None)]) == {}
    with pytest.raises(ConfigurationError, match=r"consumer\.exclusive=: has no value; write consumer\.exclusive=true"):
        consumer_options(parse_destination("A?consumer.exclusive")[0].options)
    with pytest.raises(InvalidDestinationError, match="%25"):
        destination_of("A?consumer.selector=name LIKE 'x%'", "queue")


def test_a_number_has_no_underscores():
    with pytest.raises(ConfigurationError, match="backOffMultiplier=1_5: not a number"):
        connection_options({"redeliveryPolicy.backOffMultiplier": "1_5"})
