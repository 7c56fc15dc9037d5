"""TOML tables to policies, their strategies, virtual destinations and the redelivery plugin."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from pyengine._engine.activemq.client.redelivery_policy import RedeliveryPolicy
from pyengine.destinations import KINDS
from pyengine.errors import ConfigurationError, InvalidTopologyError, did_you_mean
from pyengine.topology import keys, schema
from pyengine.topology.limits import group_map_problem
from pyengine.topology.policy import (
    CompositeQueue,
    DiscardingPlugin,
    FilteredDestination,
    Policy,
    RedeliveryPlugin,
    VirtualTopic,
)
from pyengine.topology.table import Table

UNLIMITED = "unlimited"
_WINDOW_HINT = f'give a number of messages, or "{UNLIMITED}" for no window'
# Keys whose strategy may be none; "none" of subscription_recovery_policy is a policy of the broker's.
_NONE_ALLOWED = ("dead_letter_strategy", "pending_message_limit_strategy", "slow_consumer_strategy")


def read_policy(table: Table, *, default: bool = False) -> Policy:
    """A [[policy]], or with ``default`` the [default_policy]. Raises InvalidTopologyError."""
    known = [name for name in Policy.__dataclass_fields__ if not (default and name == "destination")]
    _only(table, known)
    if not default:
        table.destinations("destination", kinds=KINDS)
    given: dict[str, Any] = {"destination": "" if default else table.text("destination")}
    types = keys.types_of(Policy)
    for key in table.values:
        if key == "destination":
            continue
        if key in keys.STRATEGIES:
            given[key] = _strategy(table, key)
        elif key == "message_group_map_factory_type":
            given[key] = _group_map(table)
        elif key == "dispatch_policy":
            given[key] = table.choice(key, keys.DISPATCH_POLICIES, "simple")
        elif key == "pending_queue_policy":
            given[key] = table.choice(key, tuple(keys.PENDING_QUEUE_POLICIES), "store")
        elif key == "selector_errors":
            given[key] = table.choice(key, ("no_match", "exact"), "no_match")
        elif key == "max_page_size" and table.values[key] == UNLIMITED:
            given[key] = None
        else:
            given[key] = _plain(table, key, types[key])
    return Policy(**given)


def read_virtual_topic(table: Table) -> VirtualTopic:
    """A [[virtual_topic]]. Raises InvalidTopologyError."""
    topic: VirtualTopic = _fields(table, VirtualTopic)
    return topic


def read_composite(table: Table, kind: type[CompositeQueue]) -> CompositeQueue:
    """A [[composite_queue]] or [[composite_topic]]. Raises InvalidTopologyError."""
    table.text("name", required=True)
    targets = table.values.get("forward_to", [])
    hint = 'write forward_to = ["orders.eu", { destination = "topic://audit", selector = "price > 100" }]'
    if not isinstance(targets, list) or not all(isinstance(part, (str, dict)) for part in targets):
        table.refuse("forward_to", "must be a list of destinations", hint)
    found: list[FilteredDestination | str] = []
    for index, part in enumerate(targets):
        inner = table.inner(part if isinstance(part, dict) else {"destination": part}, "forward_to", index)
        inner.only(FilteredDestination.__dataclass_fields__)
        inner.destinations("destination", kinds=KINDS)
        if isinstance(part, str):
            found.append(part)
            continue
        found.append(FilteredDestination(inner.text("destination"), inner.selector("selector")))
    composite: CompositeQueue = _fields(table, kind, forward_to=tuple(found))
    return composite


def read_redelivery_plugin(table: Table) -> RedeliveryPlugin:
    """The [redelivery_plugin] with its [[redelivery_plugin.policy]] and [redelivery_plugin.default]."""
    table.only(("policy", "default", "send_to_dlq_if_max_retries_exceeded", "fallback_to_dead_letter"))
    policies = []
    for part in table.tables("policy"):
        part.destinations("destination", kinds=KINDS)
        policies.append((part.text("destination"), _redelivery_policy(part, ("destination",))))
    return RedeliveryPlugin(
        tuple(policies),
        _redelivery_policy(table.table("default"), ()) if "default" in table.values else None,
        table.flag("send_to_dlq_if_max_retries_exceeded", True),
        table.flag("fallback_to_dead_letter", True),
    )


def read_discarding_plugin(table: Table) -> DiscardingPlugin:
    """The [discarding_plugin]. Raises InvalidTopologyError."""
    plugin: DiscardingPlugin = _fields(table, DiscardingPlugin)
    return plugin


def strategy_settings(key: str, strategy: Any, settings: dict[str, Any]) -> Any:
    """A strategy as its TOML value: its name, or a table of its type and ``settings``."""
    for name, kind in keys.STRATEGIES[key].items():
        if type(strategy) is kind:
            return {"type": name, **settings} if settings else name
    raise InvalidTopologyError(
        "is a class of your own, which no file can hold", key=key, value=strategy,
        hint="give the policies in Python",
    )  # fmt: skip


def _only(table: Table, known: list[str]) -> None:
    for key in table.values:
        ours = next((name for name in known if schema.java_name(name) == key), key)
        if ours != key:
            table.refuse(key, "is the broker's spelling", f"did you mean {ours!r}?")
    table.only(known)


def _redelivery_policy(table: Table, more: tuple[str, ...]) -> RedeliveryPolicy:
    _only(table, [*more, *keys.REDELIVERY])
    given = {key: _plain(table, key, kind) for key, kind in keys.REDELIVERY.items() if key in table.values}
    for key in ("initial_redelivery_delay", "redelivery_delay"):
        if given.get(key, 1000) < 1000:
            table.refuse(key, "is too short for the broker's plugin", "give 1000 (ms) or more")
    try:
        return RedeliveryPolicy(**given)
    except InvalidTopologyError as error:
        key = next(name for name in given if schema.java_name(name) == error.key)
        table.refuse(key, error.problem, "give a number that means something")


def _strategy(table: Table, key: str) -> Any:
    known = keys.STRATEGIES[key]
    value = table.values[key]
    if key in _NONE_ALLOWED and value == "none":
        return None
    names = [*known, *(["none"] if key in _NONE_ALLOWED else [])]
    first = next(iter(known))
    if not isinstance(value, (str, dict)):
        table.refuse(
            key, "must be a name or a table", f'write {key} = "{first}" or {key} = {{ type = "{first}", ... }}'
        )
    inner = table.table(key) if isinstance(value, dict) else table.inner({"type": value}, key)
    name = inner.text("type", required=True)
    if name not in known:
        (inner if isinstance(value, dict) else table).refuse(
            "type" if isinstance(value, dict) else key, "is not a known choice",
            did_you_mean(name, names) or "known: " + ", ".join(names),
        )  # fmt: skip
    return _fields(inner, known[name], ("type",))


def _fields(table: Table, kind: type, more: tuple[str, ...] = (), **given: Any) -> Any:
    types = keys.types_of(kind)
    _only(table, [*more, *types, *given])
    found = {key: _plain(table, key, types[key]) for key in table.values if key in types}
    missing = [part.name for part in fields(kind) if part.default is MISSING and part.name not in found]
    if missing:
        table.refuse("", f"needs {missing[0]}", f"write {missing[0]} = ...")
    try:
        return kind(**found, **given)
    except ConfigurationError as error:
        table.refuse(error.option.partition(".")[2], error.problem, error.hint)


def _plain(table: Table, key: str, kind: type) -> Any:
    if kind is bool:
        return table.flag(key, False)
    if kind is str:
        return table.text(key)
    if kind is float:
        return table.number(key, 0.0, infinite=True)
    low, high = schema.smallest(schema.java_name(key)), schema.largest(schema.java_name(key))
    return table.integer(key, 0, low, high, hint=_WINDOW_HINT if key == "max_page_size" else "")


def _group_map(table: Table) -> str:
    key = "message_group_map_factory_type"
    text = table.text(key) or "cached"
    table.refuse_if(key, group_map_problem(text))
    return text
