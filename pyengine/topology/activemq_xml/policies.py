"""Policy entries of an ``activemq.xml``: destinationPolicy (spec activemq 2.6, 3.2-3.7)."""

from __future__ import annotations

from typing import Any

from pyengine.topology import keys, schema
from pyengine.topology.activemq_xml.element_reader import (
    DESTINATIONS,
    ElementReader,
    element_hint,
    is_foreign,
)
from pyengine.topology.limits import group_map_problem
from pyengine.topology.policy import Policy, PolicyMap
from pyengine.topology.spring import Element, Property


def policy_map(reader: ElementReader, element: Element | None) -> PolicyMap:
    """The entries of a policyMap; the later of two for one destination counts."""
    if element is None:
        return PolicyMap()
    entries: dict[str, tuple[Policy, Element]] = {}
    default: Policy | None = None
    for name, prop in reader.context.properties(element).items():
        match name:
            case "policyEntries":
                for value in prop.values:
                    entry = reader.element(element, prop, value, "policyEntry")
                    policy = _policy(reader, entry)
                    if policy.destination in entries:
                        earlier = entries.pop(policy.destination)[1]
                        reason = f"line {entry.line} has another entry of this name, which counts"
                        reader.note(earlier, "", "", reason, changes_answers=True)
                    entries[policy.destination] = policy, entry
            case "defaultEntry":
                only = reader.one(element, prop, "policyEntry")
                default = None if only is None else _policy(reader, only, default=True)
            case _:
                reader.leave(element, prop, {}, known=["policyEntries", "defaultEntry"])
    return PolicyMap(tuple(policy for policy, _ in entries.values()), default)


def _policy(reader: ElementReader, element: Element, *, default: bool = False) -> Policy:
    reader.used.add(id(element))
    where, rest = reader.covered_destination(element)
    if not where and not default:
        reader.refuse(element, "", None, "covers no destination", 'add queue="..." or topic="..."')
    given: dict[str, Any] = {"destination": "" if default else where}
    reader.places[given["destination"]] = element.line, str(element)
    by_name = {
        schema.java_name(key): key
        for key in Policy.__dataclass_fields__
        if key not in ("destination", "selector_errors")
    }
    by_name["inactiveTimoutBeforeGC"] = "inactive_timeout_before_gc"
    for prop in rest:
        key = by_name.get(prop.name)
        if prop.name == "messageGroupMapFactory":
            factory = _group_map_factory(reader, element, prop)
            if factory is not None:
                given["message_group_map_factory_type"] = factory
        elif key == "message_group_map_factory_type":
            given[key] = _group_map(reader, element, prop)
        elif key == "dispatch_policy":
            dispatch = _dispatch_policy(reader, element, prop)
            if dispatch is not None:
                given[key] = dispatch
        elif key == "pending_queue_policy":
            cursor = _pending_queue_policy(reader, element, prop)
            if cursor is not None:
                given[key] = cursor
        elif key in keys.STRATEGIES:
            _strategy(reader, element, prop, key, given)
        elif key is not None:
            given[key] = reader.plain(element, prop, key, keys.types_of(Policy).get(key, int))
        else:
            reader.leave(element, prop, schema.POLICY_ENTRY, known=[*by_name, *DESTINATIONS, "messageGroupMapFactory"])
    return Policy(**given)


def _strategy(reader: ElementReader, element: Element, prop: Property, key: str, given: dict[str, Any]) -> None:
    """Read a strategy into ``given``; a class of the user's own is listed and the default stays."""
    known = {keys.element_name(kind): kind for kind in keys.STRATEGIES[key].values()}
    if not prop.values:
        reader.refuse(element, prop.name, None, "is empty", f"put an element inside: {', '.join(known)}")
    value = prop.values[0]
    if value is None:
        given[key] = (
            None if key != "message_eviction_strategy" else given.get(key, Policy("").message_eviction_strategy)
        )
        return
    if isinstance(value, str):
        reader.refuse(element, prop.name, value, "is a text", f"put an element inside: {', '.join(known)}")
    kind = known.get(value.kind)
    if kind is not None:
        given[key] = reader.fields(value, kind)
    elif value.kind in schema.STRATEGIES:
        reason, changes = schema.STRATEGIES[value.kind]
        reader.note(value, "", "", reason, changes_answers=changes)
        wrapped = reader.context.properties(value).get("wrapped")
        if wrapped is not None:
            _strategy(reader, value, wrapped, key, given)
    elif is_foreign(value):
        reader.note(value, "", "", f"a class of your own; give it as {key} in Python", changes_answers=True)
    else:
        reader.refuse(value, "", None, f"is not a {prop.name}", element_hint(value, known))


def _dispatch_policy(reader: ElementReader, element: Element, prop: Property) -> str | None:
    known = {schema.java_name(f"{name}_dispatch_policy"): name for name in keys.DISPATCH_POLICIES}
    return reader.choice(element, prop, known, schema.DISPATCH_PROPERTIES)


def _pending_queue_policy(reader: ElementReader, element: Element, prop: Property) -> str | None:
    known = {written: name for name, written in keys.PENDING_QUEUE_POLICIES.items()}
    return reader.choice(element, prop, known, {})


def _group_map(reader: ElementReader, element: Element, prop: Property) -> str:
    text = reader.text(element, prop)
    kind, _, query = text.partition("?")
    # Of a bucket map it is how many groups a console shows; the buckets decide.
    options = [part for part in query.split("&") if part and not (kind == "bucket" and part.startswith("cacheSize="))]
    found = "?".join([kind, "&".join(options)] if options else [kind])
    if wrong := group_map_problem(found):
        reader.refuse(element, prop.name, text, *wrong)
    return found


def _group_map_factory(reader: ElementReader, element: Element, prop: Property) -> str | None:
    known = {
        "simpleMessageGroupMapFactory": ("simple", ""),
        "messageGroupHashBucketFactory": ("bucket", "bucketCount"),
        "cachedMessageGroupMapFactory": ("cached", "cacheSize"),
    }
    only = reader.one(element, prop, *known, foreign=True)
    if only is None or only.kind not in known:
        return None
    reader.used.add(id(only))
    kind, option = known[only.kind]
    text = kind
    for name, inner in reader.context.properties(only).items():
        if name == option:
            text = f"{kind}?{option}={reader.number(only, inner, int, 1)}"
        elif name != "cacheSize" or kind != "bucket":
            reader.leave(only, inner, {}, known=[option] if option else [])
    return text
