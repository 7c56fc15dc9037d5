"""``activemq.xml`` to a BrokerConfiguration (spec activemq 2.6, 2.13, 3.2-3.7, 4.3-4.5).

Elements and attributes are those of ActiveMQ's schema; a Spring bean of the same class is the same thing. What the
schema knows and pyengine does not do is listed; what the schema does not know is an error, as it is for the broker.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, NoReturn

from pyengine._engine.activemq.client.redelivery_policy import RedeliveryPolicy
from pyengine._engine.selector.parser import parse as parse_selector
from pyengine.destinations import KINDS, Destination, parse_destination
from pyengine.errors import ConfigurationError, InvalidSelectorError, InvalidTopologyError, did_you_mean
from pyengine.topology import keys, schema
from pyengine.topology.authorization import AuthorizationEntry, AuthorizationPlugin, groups_of
from pyengine.topology.limits import group_map_problem
from pyengine.topology.not_modelled import NotModelled
from pyengine.topology.policy import (
    DEFAULT_VIRTUAL_TOPIC,
    CompositeQueue,
    CompositeTopic,
    DiscardingPlugin,
    FilteredDestination,
    ForcePersistencyModePlugin,
    Policy,
    PolicyMap,
    RedeliveryPlugin,
    SharedDeadLetterStrategy,
    TimeStampingPlugin,
    UniquePropertyMessageEvictionStrategy,
    VirtualDestination,
    VirtualTopic,
)
from pyengine.topology.spring import ELEMENT_OF_CLASS, Element, Property, SpringContext, Value

# As Spring reads numbers once it has taken the blanks out.
_WHOLE, _HEX = re.compile(r"[+-]?\d+"), re.compile(r"(-?)(?:0[xX]|#)([0-9a-fA-F]+)")
_FLOAT = re.compile(r"([+-]?)(?:(NaN|Infinity)|((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFdD]?)", re.ASCII)
_TRUE, _FALSE = ("true", "on", "yes", "1"), ("false", "off", "no", "0")
_SIZE = re.compile(r"\s*(\d+)\s*([kmg]?)b?\s*", re.IGNORECASE | re.ASCII)
_SECRET = re.compile(r"passw|secret|credential", re.IGNORECASE)
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
_KINDS = {"queue": "queue", "topic": "topic", "tempQueue": "temp-queue", "tempTopic": "temp-topic"}

_PREFIXES = tuple(f"{kind}://" for kind in KINDS)


def load(
    path: Path,
    properties: Mapping[str, str],
    environment: Mapping[str, str] | None,
    broker: str,
    data: bytes | str | None = None,
) -> dict[str, Any]:
    """The arguments of the BrokerConfiguration that a file says; see its ``load``.

    data: what is in the file, if it was read already.
    """
    context = SpringContext(path, properties, os.environ if environment is None else environment, data)
    return _Reader(context).read(broker)


def names(
    path: Path, properties: Mapping[str, str], environment: Mapping[str, str] | None, data: bytes | str | None = None
) -> list[str]:
    """The names of the brokers in a file, in its order. Raises InvalidTopologyError."""
    context = SpringContext(path, properties, os.environ if environment is None else environment, data)
    return _Reader(context).names()


class _Reader:
    def __init__(self, context: SpringContext) -> None:
        self.context = context
        self.listed: list[NotModelled] = [
            self._listing(part.element, part.name, part.value, part.reason, changes_answers=part.element.name != "bean")
            for part in context.unread
        ]
        self.used: set[int] = set()
        self.places: dict[str, tuple[int, str]] = {}

    def read(self, wanted: str) -> dict[str, Any]:
        element = self._choose(wanted)
        self.used.add(id(element))
        found: dict[str, Any] = {"file": self.context.root.file}
        interceptors: tuple[VirtualDestination, ...] | None = None
        virtual_topics = True
        adapter: tuple[str, str] | None = None
        for name, prop in self.context.properties(element).items():
            match name:
                case "brokerName":
                    known = self._where_it_runs(element, prop, "the name is localhost here")
                    if known is not None:
                        found["name"] = _broker_name(known)
                case "persistent":
                    text = self._text(element, prop)
                    if text.lower() not in ("true", "false"):
                        self._refuse(element, name, text, "is neither true nor false", "write true or false")
                    found["persistent"] = text.lower() == "true"
                case "dataDirectory":
                    folder = self._where_it_runs(element, prop, "no folder is known here") if prop.values else ""
                    if folder is not None:
                        found["data_directory"] = folder
                case "useVirtualTopics":
                    virtual_topics = self._flag(element, prop)
                case "destinationPolicy":
                    found["policies"] = self._policy_map(self._one(element, prop, "policyMap"))
                case "destinationInterceptors":
                    interceptors = self._interceptors(element, prop)
                case "destinations":
                    found["destinations"] = tuple(
                        d for value in prop.values for d in self._destination(element, prop, value)
                    )
                case "plugins":
                    found |= self._plugins(element, prop)
                case "transportConnectors":
                    found["transport_connectors"] = tuple(self._connectors(element, prop))
                case "persistenceAdapter":
                    adapter = self._adapter(prop, found)
                    self._leave(element, prop, schema.BROKER)
                case "schedulerSupport":
                    found["scheduler_support"] = self._flag(element, prop)
                case "deleteAllMessagesOnStartup":
                    found["delete_all_messages_on_startup"] = self._flag(element, prop)
                case (
                    "offlineDurableSubscriberTimeout"
                    | "offlineDurableSubscriberTaskSchedule"
                    | "schedulePeriodForDestinationPurge"
                ):
                    low = -1 if name == "offlineDurableSubscriberTimeout" else 0
                    found[_TIMES[name]] = self._number(element, prop, int, low)
                case _ if name not in schema.AS_HERE or not self._says(prop, schema.AS_HERE[name]):
                    self._leave(element, prop, schema.BROKER, known=_BROKER_PROPERTIES)
        found["store_directory"] = _store(found, adapter)
        if interceptors is None:
            interceptors = (DEFAULT_VIRTUAL_TOPIC,) if virtual_topics else ()
        for bean in self.context.beans:
            if id(bean) not in self.used:
                reason, changes = schema.FOREIGN if bean.kind not in ("broker",) else schema.OTHER_BROKER
                self.listed.append(self._listing(bean, "", "", reason, changes_answers=changes))
        self.listed.sort(key=lambda part: (part.file != self.context.root.file, part.file, part.line))
        found |= {"virtual_destinations": interceptors, "not_modelled": tuple(self.listed), "places": self.places}
        return found

    def names(self) -> list[str]:
        """The name of each broker."""
        return [self._name_of(bean) for bean in self.context.beans if bean.kind == "broker"]

    def _choose(self, wanted: str) -> Element:
        brokers = [bean for bean in self.context.beans if bean.kind == "broker"]
        names = self.names()
        root = self.context.root
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
                hint=f"say which with broker=..., one of {', '.join(names)}",
            )  # fmt: skip
        return brokers[0]

    def _name_of(self, bean: Element) -> str:
        prop = self.context.properties(bean).get("brokerName")
        value = prop.values[0] if prop and prop.values else None
        if not isinstance(value, str) or "#{" in value:
            return "localhost"
        try:
            return _broker_name(self.context.placeholders.resolve(value))
        except (KeyError, RecursionError):
            return "localhost"

    # Policies

    def _policy_map(self, element: Element | None) -> PolicyMap:
        if element is None:
            return PolicyMap()
        entries: dict[str, tuple[Policy, Element]] = {}
        default: Policy | None = None
        for name, prop in self.context.properties(element).items():
            match name:
                case "policyEntries":
                    for value in prop.values:
                        entry = self._element(element, prop, value, "policyEntry")
                        policy = self._policy(entry)
                        if policy.destination in entries:
                            earlier = entries.pop(policy.destination)[1]
                            reason = f"line {entry.line} has another entry of this name, which counts"
                            self.listed.append(self._listing(earlier, "", "", reason, changes_answers=True))
                        entries[policy.destination] = policy, entry
                case "defaultEntry":
                    only = self._one(element, prop, "policyEntry")
                    default = None if only is None else self._policy(only, default=True)
                case _:
                    self._leave(element, prop, {}, known=["policyEntries", "defaultEntry"])
        return PolicyMap(tuple(policy for policy, _ in entries.values()), default)

    def _policy(self, element: Element, *, default: bool = False) -> Policy:
        self.used.add(id(element))
        where, rest = self._covers(element)
        if not where and not default:
            self._refuse(element, "", None, "covers no destination", 'add queue="..." or topic="..."')
        given: dict[str, Any] = {"destination": "" if default else where}
        self.places[given["destination"]] = element.line, str(element)
        by_name = {
            schema.java_name(key): key
            for key in Policy.__dataclass_fields__
            if key not in ("destination", "selector_errors")
        }
        by_name["inactiveTimoutBeforeGC"] = "inactive_timeout_before_gc"
        for prop in rest:
            key = by_name.get(prop.name)
            if prop.name == "messageGroupMapFactory":
                factory = self._group_map_factory(element, prop)
                if factory is not None:
                    given["message_group_map_factory_type"] = factory
            elif key == "message_group_map_factory_type":
                given[key] = self._group_map(element, prop)
            elif key == "dispatch_policy":
                dispatch = self._dispatch_policy(element, prop)
                if dispatch is not None:
                    given[key] = dispatch
            elif key == "pending_queue_policy":
                cursor = self._pending_queue_policy(element, prop)
                if cursor is not None:
                    given[key] = cursor
            elif key in keys.STRATEGIES:
                self._strategy(element, prop, key, given)
            elif key is not None:
                given[key] = self._plain(element, prop, key, keys.types_of(Policy).get(key, int))
            else:
                self._leave(element, prop, schema.POLICY_ENTRY, known=[*by_name, *_KINDS, "messageGroupMapFactory"])
        return Policy(**given)

    def _covers(self, element: Element) -> tuple[str, list[Property]]:
        """The destination of a map entry as a text, and its other properties."""
        where = ""
        covering: list[Property] = []
        rest: list[Property] = []
        for prop in self.context.properties(element).values():
            (covering if prop.name in (*_KINDS, "destination") else rest).append(prop)
        # The last one counts: attributes are set in the order of the alphabet, then what stands inside.
        covering.sort(key=lambda prop: prop.name if prop.element is element else "~")
        for prop in covering[:-1]:
            text = ", ".join(str(value) for value in prop.values if value is not None)
            reason = f"{covering[-1].name} of the same entry is set after it and counts"
            self.listed.append(self._listing(element, prop.name, text, reason, changes_answers=False))
        for prop in covering:
            if prop.name in ("queue", "topic"):
                text = self._text(element, prop)
                try:
                    parse_destination(text, prop.name)
                except ValueError:
                    self._refuse(element, prop.name, text, "is empty", "name a destination, or > for all")
                where = _qualified(text.partition("?")[0].strip(), prop.name)  # options of an entry count for nothing
            elif prop.name in ("tempQueue", "tempTopic"):
                # Whether it is true or false, the attribute means all temporary destinations of the kind.
                self._flag(element, prop)
                where = f"{_KINDS[prop.name]}://>"
            else:
                where = ",".join(
                    map(_as_text, self._destination(element, prop, prop.values[0] if prop.values else None))
                )
        return where, rest

    def _strategy(self, element: Element, prop: Property, key: str, given: dict[str, Any]) -> None:
        """Read a strategy into ``given``; a class of the user's own is listed and the default stays."""
        known = {keys.element_name(kind): kind for kind in keys.STRATEGIES[key].values()}
        if not prop.values:
            self._refuse(element, prop.name, None, "is empty", f"put an element inside: {', '.join(known)}")
        value = prop.values[0]
        if value is None:
            given[key] = (
                None if key != "message_eviction_strategy" else given.get(key, Policy("").message_eviction_strategy)
            )
            return
        if isinstance(value, str):
            self._refuse(element, prop.name, value, "is a text", f"put an element inside: {', '.join(known)}")
        kind = known.get(value.kind)
        if kind is not None:
            given[key] = self._fields(value, kind)
        elif value.kind in schema.STRATEGIES:
            reason, changes = schema.STRATEGIES[value.kind]
            self.listed.append(self._listing(value, "", "", reason, changes_answers=changes))
            wrapped = self.context.properties(value).get("wrapped")
            if wrapped is not None:
                self._strategy(value, wrapped, key, given)
        elif _is_foreign(value):
            self.listed.append(
                self._listing(value, "", "", f"a class of your own; give it as {key} in Python", changes_answers=True)
            )
        else:
            self._refuse(value, "", None, f"is not a {prop.name}", _element_hint(value, known))

    def _fields(self, element: Element, kind: type) -> Any:
        """A strategy or virtual destination whose fields are plain values."""
        self.used.add(id(element))
        types = keys.types_of(kind)
        by_name = {schema.java_name(key): key for key in types}
        given: dict[str, Any] = {}
        for name, prop in self.context.properties(element).items():
            key = by_name.get(name)
            if kind is SharedDeadLetterStrategy and name == "deadLetterQueue":
                given["dead_letter_queue"] = ",".join(map(_as_text, self._destinations(element, prop)))
            elif key is not None:
                given[key] = self._plain(element, prop, key, types[key])
            else:
                table = schema.VIRTUAL if kind is VirtualTopic else schema.STRATEGY_PROPERTIES
                self._leave(element, prop, table, known=[*by_name])
        if kind is UniquePropertyMessageEvictionStrategy and "property_name" not in given:
            self._refuse(element, "", None, "has no propertyName", 'add propertyName="..."')
        missing = [part.name for part in fields(kind) if part.default is MISSING and part.name not in given]
        if missing:
            self._refuse(element, "", None, f"has no {schema.java_name(missing[0])}", "add it")
        return self._made(element, kind, given)

    def _dispatch_policy(self, element: Element, prop: Property) -> str | None:
        known = {schema.java_name(f"{name}_dispatch_policy"): name for name in keys.DISPATCH_POLICIES}
        return self._choice(element, prop, known, schema.DISPATCH_PROPERTIES)

    def _pending_queue_policy(self, element: Element, prop: Property) -> str | None:
        known = {written: name for name, written in keys.PENDING_QUEUE_POLICIES.items()}
        return self._choice(element, prop, known, {})

    def _choice(
        self, element: Element, prop: Property, known: Mapping[str, str], properties: Mapping[str, tuple[str, bool]]
    ) -> str | None:
        """What the one element inside stands for, by its name; None for a class of the user's own.

        properties: what it may have that changes nothing.
        """
        only = self._one(element, prop, *known, foreign=True)
        if only is None or only.kind not in known:
            return None
        self.used.add(id(only))
        for inner in self.context.properties(only).values():
            self._leave(only, inner, properties, known=[*properties])
        return known[only.kind]

    def _group_map(self, element: Element, prop: Property) -> str:
        text = self._text(element, prop)
        kind, _, query = text.partition("?")
        # Of a bucket map it is how many groups a console shows; the buckets decide.
        options = [
            part for part in query.split("&") if part and not (kind == "bucket" and part.startswith("cacheSize="))
        ]
        found = "?".join([kind, "&".join(options)] if options else [kind])
        if wrong := group_map_problem(found):
            self._refuse(element, prop.name, text, *wrong)
        return found

    def _group_map_factory(self, element: Element, prop: Property) -> str | None:
        known = {
            "simpleMessageGroupMapFactory": ("simple", ""),
            "messageGroupHashBucketFactory": ("bucket", "bucketCount"),
            "cachedMessageGroupMapFactory": ("cached", "cacheSize"),
        }
        only = self._one(element, prop, *known, foreign=True)
        if only is None or only.kind not in known:
            return None
        self.used.add(id(only))
        kind, option = known[only.kind]
        text = kind
        for name, inner in self.context.properties(only).items():
            if name == option:
                text = f"{kind}?{option}={self._number(only, inner, int, 1)}"
            elif name != "cacheSize" or kind != "bucket":
                self._leave(only, inner, {}, known=[option] if option else [])
        return text

    # Virtual destinations, destinations, plugins

    def _interceptors(self, element: Element, prop: Property) -> tuple[VirtualDestination, ...]:
        found: list[VirtualDestination] = []
        for value in prop.values:
            interceptor = self._element(element, prop, value, "virtualDestinationInterceptor", foreign=True)
            if interceptor.kind != "virtualDestinationInterceptor":
                reason, changes = schema.INTERCEPTORS.get(interceptor.kind, schema.OWN_CLASS)
                self.listed.append(self._listing(interceptor, "", "", reason, changes_answers=changes))
                continue
            self.used.add(id(interceptor))
            for name, inner in self.context.properties(interceptor).items():
                if name != "virtualDestinations":
                    self._leave(interceptor, inner, {}, known=["virtualDestinations"])
                    continue
                for each in inner.values:
                    kinds = ("virtualTopic", "compositeQueue", "compositeTopic")
                    found.append(self._virtual(self._element(interceptor, inner, each, *kinds)))
        return tuple(found)

    def _virtual(self, element: Element) -> VirtualDestination:
        if element.kind == "virtualTopic":
            topic: VirtualTopic = self._fields(element, VirtualTopic)
            return topic
        kind = CompositeTopic if element.kind == "compositeTopic" else CompositeQueue
        self.used.add(id(element))
        types = keys.types_of(kind)
        by_name = {schema.java_name(key): key for key in types}
        given: dict[str, Any] = {}
        for name, prop in self.context.properties(element).items():
            if name == "forwardTo":
                given["forward_to"] = tuple(
                    target for value in prop.values for target in self._forward(element, prop, value)
                )
            elif name in by_name:
                given[by_name[name]] = self._plain(element, prop, by_name[name], types[by_name[name]])
            else:
                self._leave(element, prop, schema.VIRTUAL, known=[*by_name, "forwardTo"])
        if not given.get("name", "").strip():
            self._refuse(element, "", None, "has no name", 'add name="..."')
        composite: CompositeQueue = self._made(element, kind, given)
        return composite

    def _forward(self, element: Element, prop: Property, value: Value) -> list[FilteredDestination | str]:
        if not (isinstance(value, Element) and value.kind == "filteredDestination"):
            return [*map(_as_text, self._destination(element, prop, value))]
        self.used.add(id(value))
        where, rest = self._covers(value)
        selector = ""
        for inner in rest:
            if inner.name == "selector":
                selector = self._text(value, inner)
                try:
                    parse_selector(selector, "activemq")
                except InvalidSelectorError as error:
                    self._refuse(value, "selector", selector, str(error), "")
            else:
                self._leave(value, inner, {}, known=["selector", "queue", "topic", "destination"])
        if not where:
            self._refuse(value, "", None, "has no destination", 'add queue="..." or topic="..."')
        return [FilteredDestination(where, selector)]

    def _destinations(self, element: Element, prop: Property) -> tuple[Destination, ...]:
        """Every destination a property names."""
        if not prop.values:
            self._refuse(
                element, prop.name, None, "names no destination", 'write <queue physicalName="..."/> inside it'
            )
        return tuple(part for value in prop.values for part in self._destination(element, prop, value))

    def _destination(self, element: Element, prop: Property, value: Value) -> tuple[Destination, ...]:
        """A ``<queue physicalName="..."/>``; a composite is all its parts."""
        hint = 'write <queue physicalName="..."/> or <topic physicalName="..."/>'
        if not isinstance(value, Element):
            self._refuse(element, prop.name, value, "must hold a destination", f"{hint} inside it")
        self.used.add(id(value))
        if value.kind not in _KINDS:
            self._refuse(value, "", None, f"is no destination for {prop.name}", hint)
        inside = self.context.properties(value)
        name = inside.get("physicalName") or inside.get("constructor-arg")
        text = name.values[0] if name and name.values else None
        if not isinstance(text, str):
            self._refuse(element, prop.name, None, "has no name", hint)
        text = self.context.text(text, prop.element, prop.name)
        kind = _KINDS[value.kind]
        try:
            return parse_destination(_qualified(text.strip(), kind), kind)
        except ValueError:
            self._refuse(element, prop.name, text, "has an empty name", "name the destination")

    def _adapter(self, prop: Property, found: dict[str, Any]) -> tuple[str, str] | None:
        """The store that a file names: its element, and its own folder if it names one."""
        only = prop.values[0] if prop.values else None
        if not isinstance(only, Element):
            return None
        folder = ""
        for name, inner in self.context.properties(only).items():
            value = inner.values[0] if inner.values else None
            if name in ("directory", "dirFile") and isinstance(value, str):
                folder = self._where_it_runs(only, inner, "no folder is known here") or ""
            elif name == "journalDiskSyncStrategy" and isinstance(value, str):
                strategy = self._text(only, inner).strip().lower()
                if strategy in ("always", "periodic", "never"):
                    found["journal_disk_sync_strategy"] = strategy
            elif name == "enableJournalDiskSyncs" and isinstance(value, str):
                # Older than the strategy, and what says so: true is always, false never.
                found["journal_disk_sync_strategy"] = "always" if self._flag(only, inner) else "never"
        return only.kind, folder

    def _connectors(self, element: Element, prop: Property) -> Iterator[str]:
        """The addresses of the connectors that pyengine has; the others are listed."""
        for value in prop.values:
            connector = self._element(element, prop, value, "transportConnector", foreign=True)
            inside = self.context.properties(connector)
            uri = None
            if connector.kind == "transportConnector" and "uri" in inside:
                uri = self._where_it_runs(connector, inside["uri"], "no address is known here")
                if uri is None:
                    continue
            if uri is not None and uri.partition(":")[0].lower() in schema.CONNECTORS:
                self.places[uri] = connector.line, str(connector)
                yield uri
            else:
                reason, changes = schema.OTHER_CONNECTOR
                self.listed.append(self._listing(connector, "uri", uri or "", reason, changes_answers=changes))

    def _plugins(self, element: Element, prop: Property) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for value in prop.values:
            plugin = value if isinstance(value, Element) else None
            if plugin is not None and plugin.kind == "redeliveryPlugin":
                found["redelivery_plugin"] = self._redelivery_plugin(plugin)
            elif plugin is not None and plugin.kind == "discardingDLQBrokerPlugin":
                # The last one of a file is asked first (BrokerService.addInterceptors).
                found["discarding_plugin"] = self._discarding_plugin(plugin, "redelivery_plugin" in found)
            elif plugin is not None and plugin.kind == "timeStampingBrokerPlugin":
                found["time_stamping_plugin"] = self._fields(plugin, TimeStampingPlugin)
            elif plugin is not None and plugin.kind in (
                "forcePersistencyModeBrokerPlugin",
                "forcePersistencyModeBroker",
            ):
                found["force_persistency_mode_plugin"] = self._fields(plugin, ForcePersistencyModePlugin)
            elif plugin is not None and plugin.kind == "simpleAuthenticationPlugin":
                found |= self._authentication(plugin)
            elif plugin is not None and plugin.kind == "authorizationPlugin" and self._has_entries(plugin):
                found["authorization_plugin"] = self._authorization(plugin)
            elif plugin is not None and plugin.kind == "statisticsBrokerPlugin":
                self.used.add(id(plugin))
                found["statistics_plugin"] = True
            elif plugin is not None:
                reason, changes = schema.PLUGINS.get(plugin.kind, schema.OTHER_PLUGIN)
                self.listed.append(self._listing(plugin, "", "", reason, changes_answers=changes))
        return found

    def _authentication(self, element: Element) -> dict[str, Any]:
        """Names, passwords and groups."""
        self.used.add(id(element))
        found: dict[str, Any] = {"users": ()}
        for name, prop in self.context.properties(element).items():
            if name == "anonymousAccessAllowed":
                found["anonymous_access_allowed"] = self._flag(element, prop)
            elif name == "users":
                users = [self._element(element, prop, value, "authenticationUser") for value in prop.values]
                given, groups = [], []
                for user in users:
                    inside = self.context.properties(user)
                    texts = [self._text(user, inside[key]) if key in inside else "" for key in ("username", "password")]
                    given.append((texts[0], texts[1]))
                    if "groups" in inside:
                        groups.append((texts[0], groups_of(self._text(user, inside["groups"]))))
                found["users"] = tuple(given)
                found["groups"] = tuple(groups)
            else:
                self._leave(element, prop, schema.AUTHENTICATION, known=["anonymousAccessAllowed", "users"])
        return found

    def _has_entries(self, plugin: Element) -> bool:
        """Whether its map is one of entries in the file; another one asks a directory."""
        prop = self.context.properties(plugin).get("map")
        value = prop.values[0] if prop is not None and prop.values else None
        return isinstance(value, Element) and value.kind in ("authorizationMap", "defaultAuthorizationMap")

    def _authorization(self, plugin: Element) -> AuthorizationPlugin:
        self.used.add(id(plugin))
        prop = self.context.properties(plugin)["map"]
        element = self._element(plugin, prop, prop.values[0], "authorizationMap", "defaultAuthorizationMap")
        found: dict[str, Any] = {}
        for name, inner in self.context.properties(element).items():
            values = [value for value in inner.values if value is not None]
            if name == "authorizationEntries":
                found["entries"] = tuple(
                    each
                    for value in values
                    for each in self._authorization_entries(self._element(element, inner, value, "authorizationEntry"))
                )
            elif name in ("tempDestinationAuthorizationEntry", "defaultEntry"):
                kinds = ("tempDestinationAuthorizationEntry", "authorizationEntry")
                (entry,) = self._authorization_entries(self._element(element, inner, values[0], *kinds))
                field = "default_entry" if name == "defaultEntry" else "temp_destination_entry"
                found[field] = entry
            else:
                known = ["authorizationEntries", "tempDestinationAuthorizationEntry", "defaultEntry"]
                self._leave(element, inner, schema.AUTHORIZATION, known=known)
        return AuthorizationPlugin(**found)

    def _authorization_entries(self, element: Element) -> list[AuthorizationEntry]:
        groups: dict[str, Any] = {}
        names: list[str] = []
        for name, prop in self.context.properties(element).items():
            if name in ("read", "write", "admin"):
                groups[name] = groups_of(self._text(element, prop))
            elif name in ("queue", "topic"):
                names.append(f"{name}://{self._text(element, prop)}")
            elif name == "destination":
                names += [str(each) for each in self._destinations(element, prop)]
            else:
                known = ["queue", "topic", "destination", "read", "write", "admin"]
                self._leave(element, prop, schema.AUTHORIZATION, known=known)
        return [AuthorizationEntry(name, **groups) for name in names[-1:] or [">"]]

    def _discarding_plugin(self, element: Element, first: bool) -> DiscardingPlugin:
        self.used.add(id(element))
        flags = {
            schema.java_name(name): name for name in ("drop_all", "drop_temporary_topics", "drop_temporary_queues")
        }
        given: dict[str, Any] = {"before_redelivery": first}
        for name, prop in self.context.properties(element).items():
            if name in flags:
                given[flags[name]] = self._flag(element, prop)
            elif name == "dropOnly":
                given["drop_only"] = self._optional_text(element, prop)
            else:
                self._leave(element, prop, schema.DISCARDING, known=[*flags, "dropOnly"])
        plugin: DiscardingPlugin = self._made(element, DiscardingPlugin, given)
        return plugin

    def _redelivery_plugin(self, element: Element) -> RedeliveryPlugin:
        self.used.add(id(element))
        given: dict[str, Any] = {}
        flags = {"sendToDlqIfMaxRetriesExceeded": "send_to_dlq_if_max_retries_exceeded",
                 "fallbackToDeadLetter": "fallback_to_dead_letter"}  # fmt: skip
        for name, prop in self.context.properties(element).items():
            if name in flags:
                given[flags[name]] = self._flag(element, prop)
            elif name == "redeliveryPolicyMap":
                mapped = self._one(element, prop, "redeliveryPolicyMap")
                if mapped is not None:
                    given |= self._redelivery_map(mapped)
            else:
                self._leave(element, prop, {}, known=[*flags, "redeliveryPolicyMap"])
        return RedeliveryPlugin(**given)

    def _redelivery_map(self, element: Element) -> dict[str, Any]:
        self.used.add(id(element))
        given: dict[str, Any] = {}
        for name, prop in self.context.properties(element).items():
            if name == "redeliveryPolicyEntries":
                policies = []
                for value in prop.values:
                    entry = self._element(element, prop, value, "redeliveryPolicy")
                    where, policy = self._redelivery_policy(entry)
                    if not where:
                        self._refuse(entry, "", None, "covers no destination", 'add queue="..." or topic="..."')
                    policies.append((where, policy))
                given["policies"] = tuple(policies)
            elif name == "defaultEntry":
                only = self._one(element, prop, "redeliveryPolicy")
                if only is not None:
                    given["default"] = self._redelivery_policy(only)[1]
            else:
                self._leave(element, prop, {}, known=["redeliveryPolicyEntries", "defaultEntry"])
        return given

    def _redelivery_policy(self, element: Element) -> tuple[str, RedeliveryPolicy]:
        self.used.add(id(element))
        where, rest = self._covers(element)
        by_name = {schema.java_name(key): key for key in keys.REDELIVERY}
        given: dict[str, Any] = {}
        for prop in rest:
            key = by_name.get(prop.name)
            if key is None:
                self._leave(element, prop, schema.REDELIVERY, known=[*by_name])
                continue
            given[key] = self._plain(element, prop, key, keys.REDELIVERY[key])
            if key in ("initial_redelivery_delay", "redelivery_delay") and given[key] < 1000:
                self._refuse(
                    element, prop.name, given[key], "is too short for the broker's plugin", "give 1000 (ms) or more"
                )
        try:
            return where, RedeliveryPolicy(**given)
        except InvalidTopologyError as error:
            self._refuse(element, error.key, error.value, error.problem, "give a number that means something")

    def _made(self, element: Element, kind: type, given: dict[str, Any]) -> Any:
        try:
            return kind(**given)
        except ConfigurationError as error:
            field = error.option.partition(".")[2]
            return self._refuse(element, schema.java_name(field), given[field], error.problem, error.hint)

    # Values

    def _plain(self, element: Element, prop: Property, key: str, kind: type) -> Any:
        if kind is bool:
            return self._flag(element, prop)
        if kind is str:
            return self._optional_text(element, prop)
        return self._number(element, prop, kind, schema.smallest(prop.name) if kind is int else None)

    def _optional_text(self, element: Element, prop: Property) -> str:
        return self._text(element, prop) if prop.values else ""

    def _text(self, element: Element, prop: Property) -> str:
        value = prop.values[0] if len(prop.values) == 1 else None
        if not isinstance(value, str):
            self._refuse(element, prop.name, None, "must be a text", f'write {prop.name}="..."')
        return self.context.text(value, prop.element, prop.name)

    def _where_it_runs(self, element: Element, prop: Property, otherwise: str) -> str | None:
        """A text that changes no answer; None, and listed, where only the running broker knows it."""
        try:
            return self._text(element, prop)
        except InvalidTopologyError as error:
            value = prop.values[0] if len(prop.values) == 1 else None
            if not (isinstance(value, str) and ("#{" in value or "${" in value)):
                raise
            reason = f"{error.problem}; {otherwise}"
            self.listed.append(
                self._listing(element, prop.name, value, reason, changes_answers=False, line=prop.element.line)
            )
            return None

    def _flag(self, element: Element, prop: Property) -> bool:
        text = self._text(element, prop)
        if (small := text.strip().lower()) not in _TRUE + _FALSE:
            self._refuse(element, prop.name, text, "is neither true nor false", "write true or false")
        return small in _TRUE

    def _says(self, prop: Property, wanted: bool) -> bool:
        """Whether a flag that nothing reads here has this value."""
        written = [value.strip().lower() for value in prop.values if isinstance(value, str)]
        return len(written) == len(prop.values) == 1 and written[0] in (_TRUE if wanted else _FALSE)

    def _number(self, element: Element, prop: Property, kind: type, low: int | None) -> Any:
        text = self._text(element, prop)
        plain = "".join(text.split())
        value: float
        if kind is float:
            if (real := _FLOAT.fullmatch(plain)) is None:
                self._refuse(element, prop.name, text, "is not a number", "write a number such as 0.5")
            value = float(real[1] + (real[2] or real[3]))
        elif _WHOLE.fullmatch(plain):
            value = int(plain)
        elif hexadecimal := _HEX.fullmatch(plain):
            value = int(hexadecimal[1] + hexadecimal[2], 16)
        elif prop.name in schema.SIZES and (size := _SIZE.fullmatch(plain)):
            value = int(size[1]) << 10 * " kmg".index(size[2].lower() or " ")
        else:
            self._refuse(element, prop.name, text, "is not a whole number", "write digits only")
        if kind is int and not -schema.largest(prop.name) - 1 <= value <= schema.largest(prop.name):
            self._refuse(element, prop.name, text, "is too large for the broker", "give a smaller number")
        if low is not None and value < low:
            self._refuse(element, prop.name, text, "is out of range", f"give {low} or more")
        return value

    def _one(self, element: Element, prop: Property, *kinds: str, foreign: bool = False) -> Element | None:
        """The one element inside a property; None for an explicit null or nothing at all."""
        values = [value for value in prop.values if value is not None]
        if not values:
            return None
        if len(values) > 1:
            self._refuse(element, prop.name, None, f"holds {len(values)} values", f"keep one {kinds[0]}")
        return self._element(element, prop, values[0], *kinds, foreign=foreign)

    def _element(self, element: Element, prop: Property, value: Value, *kinds: str, foreign: bool = False) -> Element:
        if isinstance(value, Element):
            self.used.add(id(value))
            if value.kind in kinds:
                return value
            if foreign and (_is_foreign(value) or value.kind in schema.INTERCEPTORS):
                if prop.name in ("dispatchPolicy", "messageGroupMapFactory", "pendingQueuePolicy"):
                    reason, changes = schema.OWN_CLASS
                    self.listed.append(self._listing(value, "", "", reason, changes_answers=changes))
                return value
            self._refuse(value, "", None, f"does not belong into {prop.name}", _element_hint(value, kinds))
        return self._refuse(element, prop.name, value, f"must hold {kinds[0]}", f"write <{kinds[0]} .../> inside it")

    # What is left out, and what is refused

    def _leave(
        self, element: Element, prop: Property, table: Mapping[str, tuple[str, bool]], known: list[str] | None = None
    ) -> None:
        """List a property that the table explains; refuse one that no release of the broker knows."""
        if prop.name in table:
            reason, changes = table[prop.name]
        elif known is None or prop.name.startswith("{"):
            reason, changes = schema.NOT_MODELLED
        else:
            offer = did_you_mean(prop.name, [*known, *table])
            self._refuse(element, prop.name, next((v for v in prop.values if isinstance(v, str)), None),
                         "is not known to ActiveMQ", offer or "remove it")  # fmt: skip
        said = ", ".join(str(value) for value in prop.values[:3] if value is not None)
        more = f" and {len(prop.values) - 3} more" if len(prop.values) > 3 else ""
        for value in prop.values:
            if isinstance(value, Element):
                self.used.add(id(value))
        self.listed.append(
            self._listing(element, prop.name, said + more, reason, changes_answers=changes, line=prop.element.line)
        )

    def _listing(
        self, element: Element, name: str, value: str, reason: str, *, changes_answers: bool, line: int = 0
    ) -> NotModelled:
        shown = "***" if value and _SECRET.search(name) else value
        return NotModelled(element.file, line or element.line, str(element), name, shown, reason, changes_answers)

    def _refuse(self, element: Element, name: str, value: object, problem: str, hint: str) -> NoReturn:
        key = f"{element}, {name}" if name else str(element)
        at = self.context.properties(element)[name].element if name else element
        raise InvalidTopologyError(problem, file=at.file, line=at.line, key=key, value=value, hint=hint)


def _is_artemis(root: Element) -> bool:
    """True for Artemis's configuration: its root, or the core of it alone."""
    return root.namespace.startswith("urn:activemq") or (
        root.name == "configuration" and any(child.name == "core" for child in root.children)
    )


def _element_hint(element: Element, known: Iterable[str]) -> str:
    """What to write instead of an element: the one of the class that it names, or the nearest known one."""
    names = list(known)
    meant = ELEMENT_OF_CLASS.get(element.name)
    if meant in names:
        return f"the element of this class is <{meant}/>"
    return did_you_mean(element.kind, names) or f"known: {', '.join(names)}"


def _is_foreign(element: Element) -> bool:
    """True for a bean of a class that is not ActiveMQ's, and for a reference to a bean that no file read defines."""
    return not element.is_core or element.name.startswith("#") or (element.name == "bean" and "." in element.kind)


def _store(found: Mapping[str, Any], adapter: tuple[str, str] | None) -> str | None:
    """Where a broker keeps its messages: what its store says, or what its data directory and its name make of it; None:
    in memory, also where a file says nothing of it."""
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


def _qualified(text: str, kind: str) -> str:
    """The text of a destination given as one of a kind. What looks like a prefix is part of a name that stands alone,
    as in the broker; in a composite it is a prefix."""
    return text if kind == "queue" and ("," in text or not text.startswith(_PREFIXES)) else f"{kind}://{text}"


def _as_text(destination: Destination) -> str:
    return _qualified(destination.name, "queue") if destination.kind == "queue" else str(destination)
