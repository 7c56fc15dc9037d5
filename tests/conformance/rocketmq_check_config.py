"""rocketmq/check_config: what the real consumer refuses to start with, in its own words."""

from __future__ import annotations

import re
from typing import Any

from pyengine import rocketmq
from pyengine.errors import IllegalStateError, MQClientError, NullArgumentError
from tests.conformance.rocketmq_cluster import GROUP, Cluster, log_lines, started
from tests.conformance.verdict import Verdict, compare

CLASSES = {
    MQClientError: "org.apache.rocketmq.client.exception.MQClientException",
    NullArgumentError: "java.lang.NullPointerException",
    IllegalStateError: "java.lang.IllegalArgumentException",
}


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", lambda match: "_" + match.group(1).lower(), name)


def _value(name: str, text: str) -> Any:
    if text == "null":
        return None
    if name == "messageListener":
        wrap = {"orderly": rocketmq.MessageListenerOrderly, "concurrently": rocketmq.MessageListenerConcurrently}
        kinds = [wrap[kind] for kind in wrap if kind in text.lower()]
        return kinds[0](lambda messages, context: None) if kinds else object()
    if name == "subscription":
        return {}
    if name == "messageModel":
        return rocketmq.MessageModel[text]
    if name == "consumeFromWhere":
        return rocketmq.ConsumeFromWhere[text]
    if text in ("true", "false"):
        return text == "true"
    if match := re.fullmatch(r"(.)\*(\d+)", text):
        return match.group(1) * int(match.group(2))
    if name in ("consumerGroup", "consumeTimestamp"):
        return text
    return int(text)


def _consumer(case: str, cluster: Cluster) -> rocketmq.DefaultMQPushConsumer:
    consumer = rocketmq.DefaultMQPushConsumer(GROUP, broker=cluster)
    consumer.register_message_listener(lambda messages, context: None)
    for name, text in re.findall(r"(\w+)=(.*?)(?=,\w+=|$)", re.sub(r" \(.*\)$", "", case)):
        setattr(consumer, _snake(name), _value(name, text))
    return consumer


def _started_twice(cluster: Cluster) -> None:
    with started(cluster) as consumer:
        consumer.start()


def identify(case: dict[str, Any]) -> str:
    return str(case["id"])


def replay(case: dict[str, Any]) -> Verdict:
    cluster = Cluster()
    got: Any = {"ok": True}
    expected = {"ok": True} if case.get("ok") else {name: case["error"][name] for name in ("class", "message")}
    starts = expected.get("class") == CLASSES[IllegalStateError]
    try:
        with log_lines():
            if "twice" in case["case"]:
                _started_twice(cluster)
            else:
                consumer = _consumer(case["case"], cluster)
                # The recordings asked checkConfig alone, but where the service's own start() throws.
                if starts:
                    consumer.start()
                    consumer.shutdown()
                else:
                    consumer.check_config(consumer.consumer_group)
    except (MQClientError, NullArgumentError, IllegalStateError) as error:
        got = {"class": CLASSES[type(error)], "message": str(error)}
    if starts and "class" in got:
        return compare(case["case"], expected["class"], got["class"])
    return compare(case["case"], expected, got)
