"""``pyengine policies``: what a configuration file says, which entry counts for a destination, what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from pyengine.cli.outlet import print_line
from pyengine.destinations import Destination, parse_destination
from pyengine.errors import ConfigurationError, counted
from pyengine.topology import BrokerConfiguration, Policy
from pyengine.topology.keys import REDELIVERY
from pyengine.topology.policy import RedeliveryPlugin, VirtualDestination
from pyengine.topology.writing import settings_of


def answer(file: Path, destinations: Sequence[str], defined: Sequence[str], broker: str) -> dict[str, Any]:
    """Everything the command says, as one JSON document. Raises InvalidTopologyError, ConfigurationError."""
    found = BrokerConfiguration.load(file, properties=properties_of(defined), broker=broker)
    return {
        "file": found.file,
        "broker": found.name,
        "persistent": found.persistent,
        "entries": [_entry(policy) for policy in found.policies.entries],
        "default": None if found.policies.default is None else _entry(found.policies.default),
        "destinations": [_which(found, part) for text in destinations for part in _parse(text)],
        "virtual_destinations": [_virtual(part) for part in found.virtual_destinations],
        "existing": [str(part) for part in found.destinations],
        "redelivery_plugin": _redelivery(found.redelivery_plugin),
        "discarding_plugin": None if found.discarding_plugin is None else settings_of(found.discarding_plugin),
        "not_modelled": [asdict(part) for part in found.not_modelled],
    }


def properties_of(defined: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE texts as a mapping. Raises ConfigurationError."""
    properties = {}
    for text in defined:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ConfigurationError(
                "--define", text, "is not NAME=VALUE", "write --define activemq.data=/var/activemq"
            )
        properties[name] = value
    return properties


def show(found: dict[str, Any]) -> None:
    """The same for people."""
    entries, left_out = found["entries"], found["not_modelled"]
    print_line(
        f"broker {found['broker']}: {counted(len(entries), 'policy entry', 'policy entries')}, "
        f"{counted(len(left_out), 'thing')} not modelled"
    )
    for entry in [*entries, *([found["default"]] if found["default"] else [])]:
        print_line(f"  {entry['destination'] or '(default entry)'}: {_settings(entry['settings'])}")
    for part in found["virtual_destinations"]:
        print_line(f"  {part['type']} {part['name']}: {_settings(part['settings'])}")
    if found["redelivery_plugin"] is not None:
        print_line(f"  redelivery plugin: {_settings(found['redelivery_plugin'])}")
    if found["discarding_plugin"] is not None:
        print_line(f"  discarding plugin: {_settings(found['discarding_plugin'])}")
    if found["existing"]:
        print_line("  exist from the start: " + ", ".join(found["existing"]))
    for part in found["destinations"]:
        covered = f" (also covered by {', '.join(part['also'])})" if part["also"] else ""
        print_line(f"{part['destination']}: {part['entry'] or 'no entry: the built-in defaults'}{covered}")
        if part["entry"]:
            print_line(f"  {_settings(part['settings'])}")
    for title, changes in (("not modelled, may change who gets what:", True), ("not modelled:", False)):
        chosen = [part for part in left_out if part["changes_answers"] is changes]
        if chosen:
            print_line(title)
        for part in chosen:
            what = f"{part['element']}: {part['name']}" if part["name"] else part["element"]
            print_line(f"  {part['file']}:{part['line']}: {what}: {part['reason']}")


def _parse(text: str) -> tuple[Destination, ...]:
    try:
        return parse_destination(text)
    except ValueError:
        raise ConfigurationError("DESTINATION", text, "has an empty name", "write a queue, or topic://NAME") from None


def _which(found: BrokerConfiguration, destination: Destination) -> dict[str, Any]:
    policy = found.policy_of(destination)
    covering = [
        entry.destination
        for entry in found.policies.entries
        if entry is not policy and any(part.matches(destination) for part in parse_destination(entry.destination))
    ]
    return {
        "destination": str(destination),
        "entry": None if policy is None else policy.destination or "(default entry)",
        "settings": {} if policy is None else _entry(policy)["settings"],
        "also": covering,
    }


def _entry(policy: Policy) -> dict[str, Any]:
    settings = settings_of(policy)
    return {"destination": settings.pop("destination", ""), "settings": settings}


def _virtual(part: VirtualDestination) -> dict[str, Any]:
    settings = settings_of(part)
    if "forward_to" in settings:
        settings["forward_to"] = [settings_of(to) if is_dataclass(to) else to for to in settings["forward_to"]]
    settings.pop("name", None)
    return {"type": type(part).__name__, "name": part.name, "settings": settings}


def _redelivery(plugin: RedeliveryPlugin | None) -> dict[str, Any] | None:
    if plugin is None:
        return None
    policies = {where: {key: getattr(policy, key) for key in REDELIVERY} for where, policy in plugin.policies}
    if plugin.default is not None:
        policies["(default entry)"] = {key: getattr(plugin.default, key) for key in REDELIVERY}
    return {
        "policies": policies,
        "send_to_dlq_if_max_retries_exceeded": plugin.send_to_dlq_if_max_retries_exceeded,
        "fallback_to_dead_letter": plugin.fallback_to_dead_letter,
    }


def _settings(settings: dict[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in settings.items()) or "all defaults"
