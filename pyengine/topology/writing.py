"""A topology as TOML text. Only what differs from the defaults is written, so the text stays readable."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from typing import Any, Protocol

from pyengine.topology.entries import Consumer, DestinationEntry, Source
from pyengine.topology.keys import STRATEGIES
from pyengine.topology.policy import Policy
from pyengine.topology.policy_tables import UNLIMITED, strategy_settings


class Written(Protocol):
    """A topology (model.Topology), as it is written."""

    @property
    def title(self) -> str:
        """Its name."""

    @property
    def description(self) -> str:
        """A word on it."""

    @property
    def source(self) -> Source:
        """Where its rows come from."""

    @property
    def destinations(self) -> tuple[DestinationEntry, ...]:
        """Destinations worth a word."""

    @property
    def default_policy(self) -> Policy:
        """Where no other counts."""

    @property
    def policies(self) -> tuple[Policy, ...]:
        """By destination."""

    @property
    def consumers(self) -> tuple[Consumer, ...]:
        """In registration order."""


def to_text(topology: Written) -> str:
    """TOML that :func:`pyengine.topology.parse` reads back to an equal topology."""
    lines = [f"{key} = {_value(text)}" for key in ("title", "description") if (text := getattr(topology, key))]
    lines += _table("[source]", settings_of(topology.source))
    for entry in topology.destinations:
        lines += _table("[[destination]]", settings_of(entry))
    if topology.default_policy != Policy(""):
        lines += _table("[default_policy]", settings_of(topology.default_policy) | {"destination": None})
    for policy in topology.policies:
        lines += _table("[[policy]]", settings_of(policy))
    for consumer in topology.consumers:
        lines += _table("[[consumer]]", settings_of(consumer))
    return "\n".join(lines).lstrip("\n") + "\n"


def settings_of(entry: Any) -> dict[str, Any]:
    """The fields of a policy, strategy or other entry that differ from their defaults, as TOML values."""
    found: dict[str, Any] = {}
    for part in fields(entry):
        value = getattr(entry, part.name)
        if part.default is not MISSING and value == part.default:
            continue
        if part.name == "max_page_size" and value is None:
            value = UNLIMITED
        elif part.name in STRATEGIES:
            value = "none" if value is None else strategy_settings(part.name, value, _strategy(value))
        elif part.name in ("types", "columns") and isinstance(entry, Source):
            value = dict(value)
        elif hasattr(value, "__dataclass_fields__"):
            value = settings_of(value)
        found[part.name] = value
    return found


def _strategy(strategy: Any) -> dict[str, Any]:
    return settings_of(strategy) if hasattr(strategy, "__dataclass_fields__") else {}


def _table(header: str, settings: dict[str, Any]) -> list[str]:
    return ["", header, *(f"{key} = {_value(value)}" for key, value in settings.items() if value is not None)]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # A JSON string is a TOML basic string, except for DEL, which TOML requires escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_value(str(key))} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(_value, value)) + "]"
    return repr(float(value) if isinstance(value, float) else int(value))  # numpy's numbers have texts of their own
