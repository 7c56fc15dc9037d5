"""A broker's configuration in TOML: what activemq_xml.py reads, with the keys of policy.py; see docs/policies.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyengine.destinations import KINDS, Destination
from pyengine.topology.activemq_xml import DEFAULT_DATA_DIRECTORY
from pyengine.topology.lines import line_of
from pyengine.topology.not_modelled import NotModelled
from pyengine.topology.policy import (
    DEFAULT_VIRTUAL_TOPIC,
    CompositeQueue,
    CompositeTopic,
    PolicyMap,
    VirtualDestination,
)
from pyengine.topology.policy_tables import (
    read_composite,
    read_discarding_plugin,
    read_policy,
    read_redelivery_plugin,
    read_virtual_topic,
)
from pyengine.topology.table import Table, read_text, refuse_twice, root_table

TABLES = ("name", "persistent", "data_directory", "use_virtual_topics", "policy", "default_policy", "destination",
          "virtual_topic", "composite_queue", "composite_topic", "redelivery_plugin", "discarding_plugin",
          "offline_durable_subscriber_timeout", "offline_durable_subscriber_task_schedule",
          "schedule_period_for_destination_purge")  # fmt: skip
_LONGEST = 2**63 - 1
# What a topology file has for `pyengine run` and a broker does not need.
TOPOLOGY_ONLY = ("source", "consumer", "title", "description")


def load(path: str | Path) -> dict[str, Any]:
    """The arguments of the BrokerConfiguration that a file says; see its ``load``."""
    return parse(read_text(path), str(path))


def parse(text: str, file: str = "") -> dict[str, Any]:
    """The arguments of the BrokerConfiguration that TOML text says. Raises InvalidTopologyError."""
    root = root_table(text, file)
    root.only((*TABLES, *TOPOLOGY_ONLY))
    policies = tuple(read_policy(table) for table in root.tables("policy"))
    refuse_twice(root, "policy", [policy.destination for policy in policies], "destination")
    default = read_policy(root.table("default_policy"), default=True) if "default_policy" in root.values else None
    return {
        "name": root.text("name") or "localhost",
        "persistent": root.flag("persistent", True),
        "data_directory": root.text("data_directory"),
        "policies": PolicyMap(policies, default),
        "virtual_destinations": _virtual(root),
        "destinations": tuple(_destination(table) for table in root.tables("destination")),
        "redelivery_plugin": (
            read_redelivery_plugin(root.table("redelivery_plugin")) if "redelivery_plugin" in root.values else None
        ),
        "discarding_plugin": (
            read_discarding_plugin(root.table("discarding_plugin")) if "discarding_plugin" in root.values else None
        ),
        "store_directory": _store(root),
        "offline_durable_subscriber_timeout": root.integer("offline_durable_subscriber_timeout", -1, -1, _LONGEST),
        "offline_durable_subscriber_task_schedule": root.integer(
            "offline_durable_subscriber_task_schedule", 300_000, 0, _LONGEST
        ),
        "schedule_period_for_destination_purge": root.integer("schedule_period_for_destination_purge", 0, 0, 2**31 - 1),
        "file": file,
        "not_modelled": tuple(
            NotModelled(
                file,
                line_of(text, (key,)) or line_of(text, (key, 0)),
                key,
                "",
                "",
                "not part of a broker's configuration",
                False,
            )
            for key in TOPOLOGY_ONLY
            if key in root.values
        ),
        "places": {
            policy.destination: (line_of(text, ("policy", index)), f"[[policy]] {policy.destination}")
            for index, policy in enumerate(policies)
        }
        | ({} if default is None else {"": (line_of(text, ("default_policy",)), "[default_policy]")}),
    }


def _store(root: Table) -> str | None:
    """As in XML: the folder of the broker's name in its data directory; None without a setting."""
    if not root.flag("persistent", True) or not {"persistent", "data_directory"} & root.values.keys():
        return None
    data = root.text("data_directory") or DEFAULT_DATA_DIRECTORY
    return str(Path(data) / (root.text("name") or "localhost"))


def _virtual(root: Table) -> tuple[VirtualDestination, ...]:
    """As in XML: what is written replaces the default virtual topic."""
    written: list[VirtualDestination] = [read_virtual_topic(table) for table in root.tables("virtual_topic")]
    written += [read_composite(table, CompositeQueue) for table in root.tables("composite_queue")]
    written += [read_composite(table, CompositeTopic) for table in root.tables("composite_topic")]
    if written:
        return tuple(written)
    return (DEFAULT_VIRTUAL_TOPIC,) if root.flag("use_virtual_topics", True) else ()


def _destination(table: Table) -> Destination:
    table.only(("name", "description"))
    (found,) = table.destinations("name", kinds=KINDS, single=True, wildcard=False)
    return found
