"""Namespaces in the names of topics and groups: ``ns%topic``, ``%RETRY%ns%group`` (NamespaceUtil)."""

from __future__ import annotations

from pyengine._engine.rocketmq.client.validators import OWN_TOPICS, is_blank
from pyengine._engine.rocketmq.commands.message import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX
from pyengine._engine.rocketmq.commands.message_queue import MessageQueue

SEPARATOR = "%"
SYSTEM_PREFIXES = ("rmq_sys_", "CID_RMQ_SYS_")


def with_namespace(namespace: str | None, name: str) -> str:
    """A topic's or group's name in a namespace; the name itself without one, for a system's own, and for one that is in
    it already.
    """
    if not namespace or not name or _is_system(name):
        return name
    prefix, plain = _split(name)
    return name if plain.startswith(namespace + SEPARATOR) else f"{prefix}{namespace}{SEPARATOR}{plain}"


def without_namespace(name: str, namespace: str | None) -> str:
    """The name that its user knows; the name itself if it is not in the namespace."""
    if not namespace or not name:
        return name
    prefix, plain = _split(name)
    if not plain.startswith(namespace + SEPARATOR) or _is_system(name):
        return name
    return prefix + plain[plain.index(SEPARATOR) + 1 :]


def queue_with_namespace(namespace: str | None, queue: MessageQueue) -> MessageQueue:
    """A queue as the brokers know it."""
    return queue._replace(topic=with_namespace(namespace, queue.topic)) if namespace else queue


def queue_without_namespace(queue: MessageQueue, namespace: str | None) -> MessageQueue:
    """A queue as its user knows it."""
    return queue._replace(topic=without_namespace(queue.topic, namespace)) if namespace else queue


def namespace_fields(namespace_v2: str | None) -> dict[str, str]:
    """What each request to a proxy of 5.x has, beside its own (NamespaceRpcHook)."""
    return {"nsd": "true", "ns": namespace_v2} if namespace_v2 else {}


def _split(name: str) -> tuple[str, str]:
    """The prefix of a retry topic or of dead letters, and the rest."""
    for prefix in (RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX):
        if name.startswith(prefix) and not is_blank(name):
            return prefix, name[len(prefix) :]
    return "", name


def _is_system(name: str) -> bool:
    return name in OWN_TOPICS or name.startswith(SYSTEM_PREFIXES)
