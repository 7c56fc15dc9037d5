"""Files of settings that no rule of lint is about: what they are, and what to give instead."""

from __future__ import annotations

import tomllib

from pyengine.topology.properties import parse_properties

BROKER_CONF = {
    "brokerClusterName", "brokerId", "brokerRole", "brokerIP1", "deleteWhen", "fileReservedTime", "flushDiskType",
    "storePathRootDir", "autoCreateTopicEnable", "slaveReadEnable", "maxTransferCountOnMessageInMemory",
}  # fmt: skip
KAFKA = {"bootstrap.servers", "zookeeper.connect", "advertised.listeners", "log.dirs"}
CONSUMER = "give a push consumer's parameters"


def of_other_program(text: str) -> tuple[str, str] | None:
    """The problem and the hint of a RocketMQ broker's or Kafka's configuration."""
    keys = set(parse_properties(text, bare_names=False))
    if keys & BROKER_CONF and "consumerGroup" not in keys:
        return "is the broker.conf of a RocketMQ broker, which nothing here judges", CONSUMER
    if keys & KAFKA:
        hint = "what its groups do is judged by `pyengine diagnose`: give it kafka-consumer-groups --describe"
        return "is a configuration of Kafka, which nothing here judges", hint
    return None


def without_settings(text: str, name: str) -> tuple[str, str] | None:
    """The problem and the hint of a file that has no consumer's parameters and cannot be a topology."""
    if text.lstrip().startswith("{"):
        return "is JSON without a parameter of a push consumer", CONSUMER
    if name.endswith((".properties", ".conf")) and not _is_toml(text):
        return "has no setting that is known here", f"{CONSUMER}, or a Spring Boot file with rocketmq.* or spring.jms.*"
    return None


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
