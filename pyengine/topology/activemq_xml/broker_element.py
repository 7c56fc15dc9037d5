"""The broker element of an ``activemq.xml``, and which of several is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyengine.errors import InvalidTopologyError, did_you_mean
from pyengine.topology import schema
from pyengine.topology.activemq_xml.element_reader import ElementReader
from pyengine.topology.activemq_xml.plugins import plugins
from pyengine.topology.activemq_xml.policies import policy_map
from pyengine.topology.activemq_xml.virtual_destinations import interceptors
from pyengine.topology.policy import DEFAULT_VIRTUAL_TOPIC, VirtualDestination
from pyengine.topology.spring import Element, Property

_BROKER_PROPERTIES = ["brokerName", "persistent", "dataDirectory", "useVirtualTopics", "destinationPolicy",
                      "destinationInterceptors", "destinations", "plugins", "deleteAllMessagesOnStartup",
                      "offlineDurableSubscriberTimeout", "offlineDurableSubscriberTaskSchedule",
                      "schedulePeriodForDestinationPurge", "schedulerSupport", "transportConnectors"]  # fmt: skip
_TIMES = {
    "offlineDurableSubscriberTimeout": "offline_durable_subscriber_timeout",
    "offlineDurableSubscriberTaskSchedule": "offline_durable_subscriber_task_schedule",
    "schedulePeriodForDestinationPurge": "schedule_period_for_destination_purge",
}
# Where a broker keeps messages whose file only says that they are kept (IOHelper.getDefaultDataDirectory).
DEFAULT_DATA_DIRECTORY = "activemq-data"


def read_broker(reader: ElementReader, wanted: str) -> dict[str, Any]:
    """The arguments of a BrokerConfiguration. wanted: the name of the broker, empty if there is one."""
    element = _choose(reader, wanted)
    reader.used.add(id(element))
    found: dict[str, Any] = {"file": reader.context.root.file}
    virtual: tuple[VirtualDestination, ...] | None = None
    virtual_topics = True
    adapter: tuple[str, str] | None = None
    for name, prop in reader.context.properties(element).items():
        match name:
            case "brokerName":
                known = reader.text_at_runtime(element, prop, "the name is localhost here")
                if known is not None:
                    found["name"] = _broker_name(known)
            case "persistent":
                text = reader.text(element, prop)
                if text.lower() not in ("true", "false"):
                    reader.refuse(element, name, text, "is neither true nor false", "write true or false")
                found["persistent"] = text.lower() == "true"
            case "dataDirectory":
                folder = reader.text_at_runtime(element, prop, "no folder is known here") if prop.values else ""
                if folder is not None:
                    found["data_directory"] = folder
            case "useVirtualTopics":
                virtual_topics = reader.flag(element, prop)
            case "destinationPolicy":
                found["policies"] = policy_map(reader, reader.one(element, prop, "policyMap"))
            case "destinationInterceptors":
                virtual = interceptors(reader, element, prop)
            case "destinations":
                found["destinations"] = tuple(
                    d for value in prop.values for d in reader.destination(element, prop, value)
                )
            case "plugins":
                found |= plugins(reader, element, prop)
            case "transportConnectors":
                found["transport_connectors"] = tuple(_connectors(reader, element, prop))
            case "persistenceAdapter":
                adapter = _adapter(reader, prop, found)
                reader.leave(element, prop, schema.BROKER)
            case "schedulerSupport":
                found["scheduler_support"] = reader.flag(element, prop)
            case "deleteAllMessagesOnStartup":
                found["delete_all_messages_on_startup"] = reader.flag(element, prop)
            case (
                "offlineDurableSubscriberTimeout"
                | "offlineDurableSubscriberTaskSchedule"
                | "schedulePeriodForDestinationPurge"
            ):
                low = -1 if name == "offlineDurableSubscriberTimeout" else 0
                found[_TIMES[name]] = reader.number(element, prop, int, low)
            case _ if name not in schema.AS_HERE or not reader.has_flag(prop, schema.AS_HERE[name]):
                reader.leave(element, prop, schema.BROKER, known=_BROKER_PROPERTIES)
    found["store_directory"] = _store(found, adapter)
    if virtual is None:
        virtual = (DEFAULT_VIRTUAL_TOPIC,) if virtual_topics else ()
    for bean in reader.context.beans:
        if id(bean) not in reader.used:
            reason, changes = schema.FOREIGN if bean.kind not in ("broker",) else schema.OTHER_BROKER
            reader.note(bean, "", "", reason, changes_answers=changes)
    reader.not_modelled.sort(key=lambda part: (part.file != reader.context.root.file, part.file, part.line))
    found |= {"virtual_destinations": virtual, "not_modelled": tuple(reader.not_modelled), "places": reader.places}
    return found


def broker_names(reader: ElementReader) -> list[str]:
    """The name of each broker."""
    return [_name_of(reader, bean) for bean in reader.context.beans if bean.kind == "broker"]


def _choose(reader: ElementReader, wanted: str) -> Element:
    brokers = [bean for bean in reader.context.beans if bean.kind == "broker"]
    names = broker_names(reader)
    root = reader.context.root
    if not brokers and _is_artemis(root):
        raise InvalidTopologyError(
            "is the broker.xml of ActiveMQ Artemis, another broker with rules of its own", file=root.file,
            line=root.line, hint="nothing here is about Artemis; ActiveMQ Classic has an activemq.xml",
        )  # fmt: skip
    if not brokers:
        raise InvalidTopologyError(
            f"has no broker element (its root is {root.name})", file=root.file, line=root.line,
            hint="give the file with <broker xmlns=\"http://activemq.apache.org/schema/core\">",
        )  # fmt: skip
    if wanted:
        for bean, name in zip(brokers, names, strict=True):
            if name == wanted:
                return bean
        raise InvalidTopologyError(
            "has no broker of this name",
            file=root.file,
            key="brokerName",
            value=wanted,
            hint=did_you_mean(wanted, names),
        )
    if len(brokers) > 1:
        raise InvalidTopologyError(
            f"has {len(brokers)} brokers", file=root.file, line=brokers[1].line,
            hint=f"name it with broker=..., one of {', '.join(names)}",
        )  # fmt: skip
    return brokers[0]


def _name_of(reader: ElementReader, bean: Element) -> str:
    prop = reader.context.properties(bean).get("brokerName")
    value = prop.values[0] if prop and prop.values else None
    if not isinstance(value, str) or "#{" in value:
        return "localhost"
    try:
        return _broker_name(reader.context.placeholders.resolve(value))
    except (KeyError, RecursionError):
        return "localhost"


def _adapter(reader: ElementReader, prop: Property, found: dict[str, Any]) -> tuple[str, str] | None:
    """The store that a file names: its element, and its own folder if it names one."""
    only = prop.values[0] if prop.values else None
    if not isinstance(only, Element):
        return None
    folder = ""
    for name, inner in reader.context.properties(only).items():
        value = inner.values[0] if inner.values else None
        if name in ("directory", "dirFile") and isinstance(value, str):
            folder = reader.text_at_runtime(only, inner, "no folder is known here") or ""
        elif name == "journalDiskSyncStrategy" and isinstance(value, str):
            strategy = reader.text(only, inner).strip().lower()
            if strategy in ("always", "periodic", "never"):
                found["journal_disk_sync_strategy"] = strategy
        elif name == "enableJournalDiskSyncs" and isinstance(value, str):
            # Older than the strategy: true is always, false never.
            found["journal_disk_sync_strategy"] = "always" if reader.flag(only, inner) else "never"
    return only.kind, folder


def _connectors(reader: ElementReader, element: Element, prop: Property) -> Iterator[str]:
    """The addresses of the connectors that pyengine has; the others are listed."""
    for value in prop.values:
        connector = reader.element(element, prop, value, "transportConnector", foreign=True)
        inside = reader.context.properties(connector)
        uri = None
        if connector.kind == "transportConnector" and "uri" in inside:
            uri = reader.text_at_runtime(connector, inside["uri"], "no address is known here")
            if uri is None:
                continue
        if uri is not None and uri.partition(":")[0].lower() in schema.CONNECTORS:
            reader.places[uri] = connector.line, str(connector)
            yield uri
        else:
            reason, changes = schema.OTHER_CONNECTOR
            reader.note(connector, "uri", uri or "", reason, changes_answers=changes)


def _is_artemis(root: Element) -> bool:
    """True for Artemis's configuration: its root, or the core of it alone."""
    return root.namespace.startswith("urn:activemq") or (
        root.name == "configuration" and any(child.name == "core" for child in root.children)
    )


def _store(found: Mapping[str, Any], adapter: tuple[str, str] | None) -> str | None:
    """Where a broker keeps its messages: what its store says, or what its data directory and its name make of it; None:
    in memory, also if a file has no setting for it."""
    kind, folder = adapter or ("", "")
    if found.get("persistent") is False or kind == "memoryPersistenceAdapter":
        return None
    data = found.get("data_directory", "")
    if folder or not (data or kind or "persistent" in found):
        return folder or None
    return str(Path(data or DEFAULT_DATA_DIRECTORY) / found.get("name", "localhost"))


def _broker_name(text: str) -> str:
    """What the broker makes of a brokerName."""
    return re.sub(r"[^a-zA-Z0-9._:-]", "_", text)
