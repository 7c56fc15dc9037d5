"""Plugins of an ``activemq.xml``: redelivery, discarding, time stamps, authentication, authorization."""

from __future__ import annotations

from typing import Any

from pyengine._engine.activemq.client.redelivery_policy import RedeliveryPolicy
from pyengine.errors import InvalidTopologyError
from pyengine.topology import keys, schema
from pyengine.topology.activemq_xml.element_reader import ElementReader
from pyengine.topology.authorization import AuthorizationEntry, AuthorizationPlugin, groups_of
from pyengine.topology.policy import (
    DiscardingPlugin,
    ForcePersistencyModePlugin,
    RedeliveryPlugin,
    TimeStampingPlugin,
)
from pyengine.topology.spring import Element, Property


def plugins(reader: ElementReader, element: Element, prop: Property) -> dict[str, Any]:
    """The plugins that the broker here has, by field of BrokerConfiguration; the others are listed."""
    found: dict[str, Any] = {}
    for value in prop.values:
        plugin = value if isinstance(value, Element) else None
        if plugin is not None and plugin.kind == "redeliveryPlugin":
            found["redelivery_plugin"] = _redelivery_plugin(reader, plugin)
        elif plugin is not None and plugin.kind == "discardingDLQBrokerPlugin":
            # The last one of a file is asked first (BrokerService.addInterceptors).
            found["discarding_plugin"] = _discarding_plugin(reader, plugin, "redelivery_plugin" in found)
        elif plugin is not None and plugin.kind == "timeStampingBrokerPlugin":
            found["time_stamping_plugin"] = reader.fields(plugin, TimeStampingPlugin)
        elif plugin is not None and plugin.kind in (
            "forcePersistencyModeBrokerPlugin",
            "forcePersistencyModeBroker",
        ):
            found["force_persistency_mode_plugin"] = reader.fields(plugin, ForcePersistencyModePlugin)
        elif plugin is not None and plugin.kind == "simpleAuthenticationPlugin":
            found |= _authentication(reader, plugin)
        elif plugin is not None and plugin.kind == "authorizationPlugin" and _has_entries(reader, plugin):
            found["authorization_plugin"] = _authorization(reader, plugin)
        elif plugin is not None and plugin.kind == "statisticsBrokerPlugin":
            reader.used.add(id(plugin))
            found["statistics_plugin"] = True
        elif plugin is not None:
            reason, changes = schema.PLUGINS.get(plugin.kind, schema.OTHER_PLUGIN)
            reader.note(plugin, "", "", reason, changes_answers=changes)
    return found


def _authentication(reader: ElementReader, element: Element) -> dict[str, Any]:
    """Names, passwords and groups."""
    reader.used.add(id(element))
    found: dict[str, Any] = {"users": ()}
    for name, prop in reader.context.properties(element).items():
        if name == "anonymousAccessAllowed":
            found["anonymous_access_allowed"] = reader.flag(element, prop)
        elif name == "users":
            users = [reader.element(element, prop, value, "authenticationUser") for value in prop.values]
            given, groups = [], []
            for user in users:
                inside = reader.context.properties(user)
                texts = [reader.text(user, inside[key]) if key in inside else "" for key in ("username", "password")]
                given.append((texts[0], texts[1]))
                if "groups" in inside:
                    groups.append((texts[0], groups_of(reader.text(user, inside["groups"]))))
            found["users"] = tuple(given)
            found["groups"] = tuple(groups)
        else:
            reader.leave(element, prop, schema.AUTHENTICATION, known=["anonymousAccessAllowed", "users"])
    return found


def _has_entries(reader: ElementReader, plugin: Element) -> bool:
    """Whether its map is one of entries in the file; another one asks a directory."""
    prop = reader.context.properties(plugin).get("map")
    value = prop.values[0] if prop is not None and prop.values else None
    return isinstance(value, Element) and value.kind in ("authorizationMap", "defaultAuthorizationMap")


def _authorization(reader: ElementReader, plugin: Element) -> AuthorizationPlugin:
    reader.used.add(id(plugin))
    prop = reader.context.properties(plugin)["map"]
    element = reader.element(plugin, prop, prop.values[0], "authorizationMap", "defaultAuthorizationMap")
    found: dict[str, Any] = {}
    for name, inner in reader.context.properties(element).items():
        values = [value for value in inner.values if value is not None]
        if name == "authorizationEntries":
            found["entries"] = tuple(
                each
                for value in values
                for each in _authorization_entries(reader, reader.element(element, inner, value, "authorizationEntry"))
            )
        elif name in ("tempDestinationAuthorizationEntry", "defaultEntry"):
            kinds = ("tempDestinationAuthorizationEntry", "authorizationEntry")
            (entry,) = _authorization_entries(reader, reader.element(element, inner, values[0], *kinds))
            field = "default_entry" if name == "defaultEntry" else "temp_destination_entry"
            found[field] = entry
        else:
            known = ["authorizationEntries", "tempDestinationAuthorizationEntry", "defaultEntry"]
            reader.leave(element, inner, schema.AUTHORIZATION, known=known)
    return AuthorizationPlugin(**found)


def _authorization_entries(reader: ElementReader, element: Element) -> list[AuthorizationEntry]:
    groups: dict[str, Any] = {}
    names: list[str] = []
    for name, prop in reader.context.properties(element).items():
        if name in ("read", "write", "admin"):
            groups[name] = groups_of(reader.text(element, prop))
        elif name in ("queue", "topic"):
            names.append(f"{name}://{reader.text(element, prop)}")
        elif name == "destination":
            names += [str(each) for each in reader.destinations(element, prop)]
        else:
            known = ["queue", "topic", "destination", "read", "write", "admin"]
            reader.leave(element, prop, schema.AUTHORIZATION, known=known)
    return [AuthorizationEntry(name, **groups) for name in names[-1:] or [">"]]


def _discarding_plugin(reader: ElementReader, element: Element, first: bool) -> DiscardingPlugin:
    reader.used.add(id(element))
    flags = {schema.java_name(name): name for name in ("drop_all", "drop_temporary_topics", "drop_temporary_queues")}
    given: dict[str, Any] = {"before_redelivery": first}
    for name, prop in reader.context.properties(element).items():
        if name in flags:
            given[flags[name]] = reader.flag(element, prop)
        elif name == "dropOnly":
            given["drop_only"] = reader.optional_text(element, prop)
        else:
            reader.leave(element, prop, schema.DISCARDING, known=[*flags, "dropOnly"])
    plugin: DiscardingPlugin = reader.build(element, DiscardingPlugin, given)
    return plugin


def _redelivery_plugin(reader: ElementReader, element: Element) -> RedeliveryPlugin:
    reader.used.add(id(element))
    given: dict[str, Any] = {}
    flags = {"sendToDlqIfMaxRetriesExceeded": "send_to_dlq_if_max_retries_exceeded",
             "fallbackToDeadLetter": "fallback_to_dead_letter"}  # fmt: skip
    for name, prop in reader.context.properties(element).items():
        if name in flags:
            given[flags[name]] = reader.flag(element, prop)
        elif name == "redeliveryPolicyMap":
            mapped = reader.one(element, prop, "redeliveryPolicyMap")
            if mapped is not None:
                given |= _redelivery_map(reader, mapped)
        else:
            reader.leave(element, prop, {}, known=[*flags, "redeliveryPolicyMap"])
    return RedeliveryPlugin(**given)


def _redelivery_map(reader: ElementReader, element: Element) -> dict[str, Any]:
    reader.used.add(id(element))
    given: dict[str, Any] = {}
    for name, prop in reader.context.properties(element).items():
        if name == "redeliveryPolicyEntries":
            policies = []
            for value in prop.values:
                entry = reader.element(element, prop, value, "redeliveryPolicy")
                where, policy = _redelivery_policy(reader, entry)
                if not where:
                    reader.refuse(entry, "", None, "covers no destination", 'add queue="..." or topic="..."')
                policies.append((where, policy))
            given["policies"] = tuple(policies)
        elif name == "defaultEntry":
            only = reader.one(element, prop, "redeliveryPolicy")
            if only is not None:
                given["default"] = _redelivery_policy(reader, only)[1]
        else:
            reader.leave(element, prop, {}, known=["redeliveryPolicyEntries", "defaultEntry"])
    return given


def _redelivery_policy(reader: ElementReader, element: Element) -> tuple[str, RedeliveryPolicy]:
    reader.used.add(id(element))
    where, rest = reader.covered_destination(element)
    by_name = {schema.java_name(key): key for key in keys.REDELIVERY}
    given: dict[str, Any] = {}
    for prop in rest:
        key = by_name.get(prop.name)
        if key is None:
            reader.leave(element, prop, schema.REDELIVERY, known=[*by_name])
            continue
        given[key] = reader.plain(element, prop, key, keys.REDELIVERY[key])
        if key in ("initial_redelivery_delay", "redelivery_delay") and given[key] < 1000:
            reader.refuse(
                element, prop.name, given[key], "is too short for the broker's plugin", "give 1000 (ms) or more"
            )
    try:
        return where, RedeliveryPolicy(**given)
    except InvalidTopologyError as error:
        reader.refuse(element, error.key, error.value, error.problem, "give a number that means something")
