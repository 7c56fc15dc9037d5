"""Policies in TOML: every key and strategy, in a topology and in a broker's configuration, and what is refused."""

from __future__ import annotations

import json
import math
import re
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import pytest

from pyengine._engine.activemq.client.redelivery_policy import RedeliveryPolicy
from pyengine.destinations import Destination
from pyengine.errors import InvalidTopologyError
from pyengine.topology import BrokerConfiguration, Policy, PolicyMap, Topology
from pyengine.topology.keys import STRATEGIES, types_of
from pyengine.topology.policy import (
    DEFAULT_VIRTUAL_TOPIC,
    CompositeQueue,
    CompositeTopic,
    DiscardingDeadLetterStrategy,
    FilteredDestination,
    OldestMessageEvictionStrategy,
    OldestMessageWithLowestPriorityEvictionStrategy,
    RedeliveryPlugin,
    UniquePropertyMessageEvictionStrategy,
    VirtualTopic,
)
from pyengine.topology.schema import java_name, smallest
from tests.house.examples import run
from tests.topology.test_activemq_xml import FULL, PLAIN

FLIGHTS = Path(__file__).parents[2] / "examples" / "flights" / "flights.toml"
HEAD = '[source]\npath = "orders.csv"\ndestination = "orders.{region}"\n'
POLICY = '[[policy]]\ndestination = "orders.>"\n'


def refused(text: str) -> InvalidTopologyError:
    with pytest.raises(InvalidTopologyError) as caught:
        Topology.from_text(text, "orders.toml")
    return caught.value


@pytest.mark.parametrize(("key", "default", "value", "written"), PLAIN)
def test_every_key_of_a_policy_in_toml(key: str, default: Any, value: Any, written: str) -> None:
    expected = Policy("topic://orders.>", **{key: value})
    given = getattr(expected, key)
    text = HEAD + f'[[policy]]\ndestination = "topic://orders.>"\n{key} = {str(given).lower()}'
    topology = Topology.from_text(text)
    assert topology.policies == (expected,)
    assert Topology.from_text(topology.to_text()) == topology


@pytest.mark.parametrize(("key", "attributes", "full"), FULL, ids=lambda part: type(part).__name__)
def test_every_strategy_in_toml(key: str, attributes: str, full: Any) -> None:
    (name,) = (name for name, kind in STRATEGIES[key].items() if kind is type(full))
    settings = {part.name: getattr(full, part.name) for part in fields(full)}
    inline = "".join(
        f", {part} = {json.dumps(value) if not isinstance(value, float) else value}" for part, value in settings.items()
    )
    text = HEAD + f'[[policy]]\ndestination = "orders"\n{key} = {{ type = "{name}"{inline} }}'
    topology = Topology.from_text(text)
    assert topology.policies == (Policy("orders", **{key: full}),)
    assert Topology.from_text(topology.to_text()) == topology
    if not any(part.default is MISSING for part in fields(full)):
        text = HEAD + f'[default_policy]\n{key} = "{name}"'
        assert Topology.from_text(text).default_policy == Policy("", **{key: type(full)()})


def smallest_numbers() -> list[Policy]:
    """For each number of a policy and of a strategy one with the least that it may be."""
    found = [
        Policy("orders", **{key: smallest(java_name(key))}) for key, kind in types_of(Policy).items() if kind is int
    ]
    for key, _, full in FULL:
        for name, kind in types_of(type(full)).items():
            if kind in (int, float):
                least = smallest(java_name(name)) if kind is int else -math.inf
                found.append(Policy("orders", **{key: replace(full, **{name: least})}))
    return found


@pytest.mark.parametrize("policy", smallest_numbers(), ids=str)
def test_a_number_that_python_takes_is_one_of_toml(policy: Policy) -> None:
    topology = replace(Topology.from_text(HEAD), policies=(policy,))
    assert Topology.from_text(topology.to_text()) == topology


@pytest.mark.parametrize("key", ["dead_letter_strategy", "pending_message_limit_strategy", "slow_consumer_strategy"])
def test_no_strategy_at_all(key: str) -> None:
    topology = Topology.from_text(HEAD + f'[[policy]]\ndestination = "orders"\n{key} = "none"')
    assert getattr(topology.policies[0], key) is None
    assert Topology.from_text(topology.to_text()) == topology


@pytest.mark.parametrize(
    ("line", "key", "words"),
    [
        ('dead_letter_strategy = "indvidual"', "dead_letter_strategy", "did you mean 'individual'?"),
        ("dead_letter_strategy = 3", "dead_letter_strategy", 'write dead_letter_strategy = "shared"'),
        ('dead_letter_strategy = { type = "discard" }', "dead_letter_strategy, type", "did you mean 'discarding'?"),
        ("dead_letter_strategy = { }", "dead_letter_strategy", "needs type"),
        ('slow_consumer_strategy = { type = "abort_slow", period = 1 }', "slow_consumer_strategy, period",
         "unknown key"),
        ('message_eviction_strategy = "unique_property"', "message_eviction_strategy", "needs property_name"),
        ('message_eviction_strategy = { type = "unique_property", propertyName = "a" }',
         "message_eviction_strategy, propertyName", "did you mean 'property_name'?"),
        ('dispatch_policy = "random"', "dispatch_policy", "known: "),
        ('pending_queue_policy = "disk"', "pending_queue_policy", "known: "),
        ('selector_errors = "strict"', "selector_errors", "known: exact, no_match"),
        ("topic_prefetch = -2147483649", "topic_prefetch", "-2147483648 to 2147483647"),
        ("persistJMSRedelivered = true", "persistJMSRedelivered", "did you mean 'persist_jms_redelivered'?"),
        ("always_retroactive = 1", "always_retroactive", "true or false"),
        ('pending_message_limit_strategy = { type = "prefetch_rate", multiplier = "2" }',
         "pending_message_limit_strategy, multiplier", "must be a number"),
    ],
)  # fmt: skip
def test_refusals_of_policies(line: str, key: str, words: str) -> None:
    error = refused(HEAD + POLICY + line)
    assert (error.file, error.line, error.key) == ("orders.toml", 6, f'policy "orders.>", {key}')
    assert words in str(error)


def test_a_strategy_of_the_users_own_cannot_be_written() -> None:
    class Own:
        def evict_messages(self, messages: Any) -> Any:
            return messages

    topology = replace(Topology.from_text(HEAD), policies=(Policy("a", message_eviction_strategy=Own()),))
    with pytest.raises(InvalidTopologyError, match="message_eviction_strategy: is a class of your own"):
        topology.to_text()


def broker(tmp_path: Path, text: str) -> BrokerConfiguration:
    file = tmp_path / "broker.toml"
    file.write_text(text, "utf-8")
    return BrokerConfiguration.load(file)


def test_a_broker_in_toml(tmp_path: Path) -> None:
    found = broker(
        tmp_path,
        """
        name = "all"
        persistent = false
        data_directory = "data"
        [default_policy]
        prioritized_messages = true
        [[policy]]
        destination = "A.>,topic://B"
        dead_letter_strategy = "discarding"
        [[destination]]
        name = "topic://news"
        [[virtual_topic]]
        name = "VT.>"
        selector_aware = true
        [[composite_queue]]
        name = "in"
        forward_only = false
        forward_to = ["one", "topic://two", { destination = "dear", selector = "price > 100" }]
        [[composite_topic]]
        name = "news"
        forward_to = ["archive"]
        [redelivery_plugin]
        fallback_to_dead_letter = false
        [[redelivery_plugin.policy]]
        destination = "slow.>"
        maximum_redeliveries = 4
        back_off_multiplier = 2
        [redelivery_plugin.default]
        maximum_redeliveries = 2
        """,
    )
    entry = Policy("A.>,topic://B", dead_letter_strategy=DiscardingDeadLetterStrategy())
    assert found == BrokerConfiguration(
        name="all",
        persistent=False,
        data_directory="data",
        policies=PolicyMap((entry,), Policy("", prioritized_messages=True)),
        virtual_destinations=(
            VirtualTopic("VT.>", selector_aware=True),
            CompositeQueue("in", ("one", "topic://two", FilteredDestination("dear", "price > 100")), False),
            CompositeTopic("news", ("archive",)),
        ),
        destinations=(Destination("news", "topic"),),
        redelivery_plugin=RedeliveryPlugin(
            (("slow.>", RedeliveryPolicy(maximum_redeliveries=4, back_off_multiplier=2.0)),),
            RedeliveryPolicy(maximum_redeliveries=2),
            fallback_to_dead_letter=False,
        ),
    )
    assert found.policy_of(Destination("B", "topic")) == entry
    assert broker(tmp_path, "") == BrokerConfiguration()
    assert broker(tmp_path, "").virtual_destinations == (DEFAULT_VIRTUAL_TOPIC,)
    assert broker(tmp_path, "use_virtual_topics = false").virtual_destinations == ()


def test_the_policies_of_a_topology_serve_a_broker() -> None:
    found = BrokerConfiguration.load(FLIGHTS)
    assert found.policies.entries == Topology.load(FLIGHTS).policies
    assert {part.element for part in found.not_modelled} == {"title", "description", "source", "consumer"}
    assert not any(part.changes_answers for part in found.not_modelled)


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        ("policies = 1", 1, "policies", "did you mean 'policy'?"),
        (POLICY + POLICY, 4, 'policy "orders.>", destination', "already used on line 2"),
        ('[[destination]]\nname = "a.*"', 2, 'destination "a.*", name', "[[policy]]"),
        ('[[composite_queue]]\nname = "a"\nforward_to = "b"', 3, 'composite_queue "a", forward_to', "list of destin"),
        ('[[composite_queue]]\nname = "a"\nforward_to = [{ destination = "b", selector = "x =" }]', 3,
         'composite_queue "a", forward_to "b", selector', "position 3"),
        ('[[composite_queue]]\nname = "a"\nforward = []', 3, 'composite_queue "a", forward',
         "did you mean 'forward_to'?"),
        ('[[virtual_topic]]\nname = "a"\nselectorAware = true', 3, 'virtual_topic "a", selectorAware',
         "did you mean 'selector_aware'?"),
        ("[redelivery_plugin.default]\ncollision_avoidance_percent = 200", 2,
         "redelivery_plugin, default, collision_avoidance_percent", "must be a whole number from 0 to 127 (got 200)"),
        ("[redelivery_plugin.default]\nmaximum_redeliveries = -2", 2,
         "redelivery_plugin, default, maximum_redeliveries", "must be a whole number from -1"),
        ("[redelivery_plugin.default]\nredelivery_delay = 5", 2, "redelivery_plugin, default, redelivery_delay",
         "give 1000"),
    ],
)  # fmt: skip
def test_refusals_of_a_broker(tmp_path: Path, text: str, line: int, key: str, words: str) -> None:
    with pytest.raises(InvalidTopologyError) as caught:
        broker(tmp_path, text)
    assert (caught.value.line, caught.value.key) == (line, key)
    assert words in str(caught.value)


def test_expired_messages_are_looked_for_behind_a_thousand_that_wait_with_every_eviction() -> None:
    for strategy in (
        OldestMessageEvictionStrategy(),
        OldestMessageWithLowestPriorityEvictionStrategy(),
        UniquePropertyMessageEvictionStrategy("symbol"),
    ):
        assert strategy.evict_expired_messages_high_watermark == 1000


def test_the_examples_of_the_page(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "policies.md").read_text("utf-8")
    code, _ = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    run(code, {})
    (toml,) = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    found = broker(tmp_path, toml)
    assert (found.name, len(found.policies.entries), len(found.virtual_destinations)) == ("shop", 2, 2)
    for key, kinds in STRATEGIES.items():
        assert f"| {key} | {', '.join(kinds)}" in page


def test_what_a_topology_has_besides_is_listed_at_its_line(tmp_path: Path) -> None:
    found = broker(tmp_path, '[source]\ndestination = "A"\n[[consumer]]\nname = "a"\n[[consumer]]\nname = "b"\n')
    assert [(part.line, part.element) for part in found.not_modelled] == [(1, "source"), (3, "consumer")]
