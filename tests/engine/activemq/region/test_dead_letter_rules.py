"""Dead-letter rules, resend delays and virtual destinations, asked directly."""

from __future__ import annotations

import pickle

import pytest

import pyengine
from pyengine._engine.activemq.client.redelivery_policy import RedeliveryPolicy
from pyengine._engine.activemq.region.dead_letter_rules import DeadLetterRule, resend_delay
from pyengine._engine.activemq.region.virtual_destinations import Forwarding, consumer_queues, feeds
from pyengine._engine.activemq.topic.message_audit import Audit, producer_and_number


def ask(rule, message_id="ID:p:1", destination="queue://q", *, persistent=True, expired=False, **more):
    return rule.destination(message_id, destination, persistent=persistent, expired=expired, **more)


def test_the_audit_is_asked_first_and_remembers_what_others_refuse():
    rule = DeadLetterRule("shared", audit=Audit(), names={"dead_letter_queue": "queue://D"})
    assert ask(rule, persistent=False) is None
    assert ask(rule) is None
    rule.forgive("ID:p:1", "queue://q")
    assert ask(rule) == "queue://D"
    assert ask(rule, "ID:p:2") == "queue://D"
    assert ask(rule, "no number") == "queue://D"
    assert ask(rule, "no number") is None
    rule._check()


def test_a_dead_letter_never_goes_to_where_it_is():
    rule = DeadLetterRule("shared", names={"dead_letter_queue": "queue://D"})
    assert ask(rule, destination="queue://D") is None
    assert ask(rule, destination="queue://D", carries="topic://D") == "queue://D"


def test_individual_names():
    names = {
        "queue_kind": "queue", "queue_prefix": "Q.", "queue_suffix": ".x",
        "topic_kind": "topic", "topic_prefix": "T.", "topic_suffix": "",
    }  # fmt: skip
    rule = DeadLetterRule("individual", process_expired=False, names=names)
    assert ask(rule) == "queue://Q.q.x"
    assert ask(rule, destination="temp-queue://q") == "queue://Q.q.x"
    assert ask(rule, destination="topic://t", subscription="me:sub") == "topic://T.t.me:sub"
    assert ask(rule, expired=True) is None


def test_an_individual_strategy_remembers_ids_for_each_destination():
    names = {f"{side}_{part}": "" for side in ("queue", "topic") for part in ("prefix", "suffix")}
    rule = DeadLetterRule("individual", audit=Audit(), audit_apart=True, names={**names, "queue_kind": "topic"})
    assert [ask(rule, destination=f"queue://{name}") for name in "aaba"] == ["topic://a", None, "topic://b", None]
    rule.forgive("ID:p:1", "queue://b")
    assert [ask(rule, destination=f"queue://{name}") for name in "ab"] == [None, "topic://b"]
    for number in range(10_000):
        ask(rule, destination=f"queue://{number}")
    assert ask(rule, destination="queue://a") == "topic://a"
    rule._check()


def test_the_kind_of_the_destination_that_a_message_carries_chooses_the_prefix():
    names = {
        "queue_kind": "queue", "queue_prefix": "Q.", "queue_suffix": "",
        "topic_kind": "queue", "topic_prefix": "T.", "topic_suffix": "",
    }  # fmt: skip
    rule = DeadLetterRule("individual", names=names)
    assert ask(rule, destination="queue://Consumer.A.t", carries="topic://t") == "queue://T.Consumer.A.t"


def test_forms():
    assert ask(DeadLetterRule("discarding", audit=Audit())) is None
    with pytest.raises(ValueError, match="shared"):
        DeadLetterRule("none")  # type: ignore[arg-type]


def test_message_ids_are_a_producer_and_a_number():
    assert producer_and_number("ID:host-1:2:3:44") == ("ID:host-1:2:3", 44)
    for none in ("plain", "a:\u0663", f"a:{2**63}", "a:", 5, None):
        assert producer_and_number(none) == (None, 0)
    rule = DeadLetterRule("shared", audit=Audit(), names={"dead_letter_queue": "queue://DLQ"})
    answers = [rule.destination(each, "queue://q", persistent=True, expired=False) for each in ("a", "b", "a")]
    assert answers == ["queue://DLQ", "queue://DLQ", None]


def test_resend_delays_follow_the_policy_and_end():
    policy = RedeliveryPolicy(
        maximum_redeliveries=3, initial_redelivery_delay=1000, use_exponential_back_off=True, back_off_multiplier=2.0
    )
    assert [resend_delay(policy, count, [0.5] * count) for count in range(4)] == [1000, 2000, 4000, None]
    assert resend_delay(RedeliveryPolicy(maximum_redeliveries=-1), 50, [0.5] * 50) == 1000


def test_forwarding():
    message = pyengine.Message({"n": 5})
    filters = [pyengine.Selector("n > 3"), None, pyengine.Selector("n > 9"), pyengine.Selector("-x > 1 OR n = 'a'")]
    assert Forwarding(filters).route(message) == ([0, 1], False)
    assert Forwarding(filters, forward_only=False).route(message) == ([0, 1], True)
    assert Forwarding(filters[2:3], send_when_not_matched=True).route(message) == ([], True)
    assert Forwarding(filters[:1], forward_only=False, send_when_not_matched=True).route(message) == ([0], False)
    assert pickle.loads(pickle.dumps(Forwarding([None]))).route(message) == ([0], False)


def test_virtual_topics():
    assert consumer_queues("Consumer.*.", "VirtualTopic.T", "") == "Consumer.*.VirtualTopic.T"
    assert feeds("Consumer.*.", "Consumer.A.VirtualTopic.T")
    assert not feeds("Consumer.*.", "Other.A.VirtualTopic.T")
    assert feeds("*.", "anything")
    assert feeds("Copy", "anything")
