"""rocketmq/defaults: the default of every field of the real consumer."""

from __future__ import annotations

import logging
import re
from typing import Any

from pyengine import rocketmq
from pyengine.rocketmq.consumer.member import GroupMember
from tests.conformance.rocketmq_check_config import _snake
from tests.conformance.rocketmq_cluster import GROUP
from tests.conformance.verdict import Verdict, compare

# What depends on the machine and the moment has a form, not a value.
FORMS = {"consumeTimestamp": r"\d{14}", "clientIP": r"\d+\.\d+\.\d+\.\d+"}
KINDS = {
    "Logger": lambda consumer: isinstance(logging.getLogger("pyengine.rocketmq"), logging.Logger),
    "DefaultMQPushConsumerImpl": lambda consumer: isinstance(consumer.default_mq_push_consumer_impl, GroupMember),
    "AllocateMessageQueueAveragely": lambda consumer: consumer.allocate_message_queue_strategy.name == "AVG",
    "HashMap": lambda consumer: consumer.subscription == {},
}


def _attribute(field: str) -> str:
    """clientIP -> client_ip, useTLS -> use_tls."""
    return _snake(field.replace("IP", "Ip").replace("TLS", "Tls").replace("V2", "_v2").replace("mqClient", "mq_client"))


def identify(case: dict[str, Any]) -> str:
    return f"{case['class']}.{case['field']}"


def replay(case: dict[str, Any]) -> Verdict:
    consumer = rocketmq.DefaultMQPushConsumer(GROUP)
    field, expected = case["field"], case["default"]
    if isinstance(expected, str) and expected in KINDS:
        return compare(f"{field}: {case['type']}", True, KINDS[expected](consumer))
    got = getattr(consumer, _attribute(field))
    if field in FORMS:
        return compare(field, True, bool(re.fullmatch(FORMS[field], got) and re.fullmatch(FORMS[field], expected)))
    return compare(f"{field}: {case['type']}", expected, getattr(got, "name", got))
