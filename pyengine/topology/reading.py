"""TOML text to what makes a Topology. Every refusal says file, line, key, value and what to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast, get_args

from pyengine.topology import schema
from pyengine.topology.entries import (
    JAVA_TYPES,
    Consumer,
    DestinationEntry,
    FormatName,
    OrderName,
    Source,
    Steps,
    TimeColumn,
    TimeUnit,
)
from pyengine.topology.limits import (
    PLACES_HINT,
    QUEUES_AND_TOPICS,
    UNTIMED,
    delimiter_problem,
    encoding_problem,
    source_problem,
    steps_problem,
    template_problem,
    zone_problem,
)
from pyengine.topology.policy_tables import read_policy
from pyengine.topology.table import Table, read_text, refuse_twice, root_table

TABLES = ("title", "description", "source", "destination", "policy", "default_policy", "consumer")


def load(path: str | Path) -> dict[str, Any]:
    """The arguments of the Topology that a TOML file says. Raises InvalidTopologyError.

    A relative ``source.path`` is relative to the file's folder.
    """
    return parse(read_text(path), str(path))


def parse(text: str, file: str = "") -> dict[str, Any]:
    """The arguments of the Topology that TOML text says. Raises InvalidTopologyError.

    file: names the text in errors, and a relative ``source.path`` is relative to its folder; empty: the path stays.
    """
    root = root_table(text, file)
    root.only(TABLES)
    source = _source(root.table("source", required=True), file)
    consumers = tuple(_consumer(table) for table in root.tables("consumer"))
    policies = tuple(read_policy(table) for table in root.tables("policy"))
    default = read_policy(root.table("default_policy"), default=True)
    destinations = tuple(_destination(table) for table in root.tables("destination"))
    refuse_twice(root, "consumer", [consumer.name for consumer in consumers], "name")
    refuse_twice(root, "destination", [entry.name for entry in destinations], "name")
    refuse_twice(root, "policy", [policy.destination for policy in policies], "destination")
    return {
        "source": source,
        "consumers": consumers,
        "policies": policies,
        "default_policy": default,
        "destinations": destinations,
        "title": root.text("title"),
        "description": root.text("description"),
        "file": file,
    }


def _source(table: Table, file: str) -> Source:
    table.only(Source.__dataclass_fields__)
    path, package = table.text("path"), table.text("package")
    name = table.text("table")
    if not path and not package:
        table.refuse("", "says neither path nor package", PLACES_HINT)
    if wrong := source_problem(path, package, name):
        table.refuse(*wrong)
    path = path.removeprefix("file://")  # as Spark reads it; the rest is not decoded
    if path and file and not re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path):
        path = str(Path(file).resolve().parent / path)
    destination = table.text("destination", required=True)
    table.refuse_if("destination", template_problem(destination))
    delimiter, encoding = table.text("delimiter") or ",", table.text("encoding") or "utf-8"
    table.refuse_if("delimiter", delimiter_problem(delimiter))
    table.refuse_if("encoding", encoding_problem(encoding))
    order, timestamp = cast(OrderName, table.choice("order", get_args(OrderName), "rows")), _moment(table, "timestamp")
    if order == "timestamp" and timestamp is None:
        table.refuse("order", *UNTIMED)
    return Source(
        path=path,
        package=package,
        table=name,
        format=cast(FormatName, table.choice("format", get_args(FormatName), "")),
        destination=destination,
        order=order,
        properties=table.texts("properties"),
        types=_types(table.table("types")),
        priority=_priority(table),
        timestamp=timestamp,
        expiration=_moment(table, "expiration"),
        columns=_columns(table.table("columns")),
        delimiter=delimiter,
        encoding=encoding,
        **{key: table.text(key) for key in ("id", "group", "group_sequence", "connection", "body", "properties_from")},
    )


def _types(table: Table) -> tuple[tuple[str, Any], ...]:
    return tuple((column, table.choice(column, JAVA_TYPES, "")) for column in table.values)


def _columns(table: Table) -> tuple[tuple[str, str], ...]:
    return tuple((name, table.text(name, required=True)) for name in table.values)


def _priority(table: Table) -> str | Steps | None:
    given = table.values.get("priority")
    if given is None:
        return None
    if isinstance(given, str):
        return table.text("priority", required=True)
    if not isinstance(given, dict):
        table.refuse(
            "priority", "must be a column name or a table", 'priority = { column = "delay", steps = [[15, 6]] }'
        )
    inner = table.table("priority")
    inner.only(Steps.__dataclass_fields__)
    steps = given.get("steps", [])
    inner.refuse_if("steps", steps_problem(steps))
    return Steps(
        column=inner.text("column", required=True),
        steps=tuple((step[0], step[1]) for step in steps),
        below=inner.integer("below", 4, 0, 9),
        missing=inner.integer("missing", 4, 0, 9),
    )


def _moment(table: Table, key: str) -> TimeColumn | None:
    given = table.values.get(key)
    if given is None:
        return None
    if isinstance(given, str):
        return TimeColumn(table.text(key, required=True))
    if not isinstance(given, dict):
        table.refuse(key, "must be a column name or a table", f'{key} = {{ column = "sent_at", unit = "ms" }}')
    inner = table.table(key)
    inner.only(TimeColumn.__dataclass_fields__)
    timezone = inner.text("timezone") or "UTC"
    inner.refuse_if("timezone", zone_problem(timezone))
    return TimeColumn(
        column=inner.text("column", required=True),
        unit=cast(TimeUnit, inner.choice("unit", get_args(TimeUnit), "ms")),
        timezone=timezone,
        plus_minutes=inner.text("plus_minutes"),
    )


def _destination(table: Table) -> DestinationEntry:
    table.only(DestinationEntry.__dataclass_fields__)
    table.destinations("name", kinds=QUEUES_AND_TOPICS, single=True, wildcard=False)
    return DestinationEntry(table.text("name"), table.text("description"))


def _number(table: Table, key: str) -> int:
    """A number that the broker's own property of this name holds."""
    return table.integer(key, 0, schema.smallest(key), schema.largest(key))


def _consumer(table: Table) -> Consumer:
    table.only(Consumer.__dataclass_fields__)
    name = table.text("name", required=True)
    table.destinations("destination", kinds=QUEUES_AND_TOPICS)
    return Consumer(
        name=name,
        destination=table.text("destination"),
        selector=table.selector("selector"),
        exclusive=table.flag("exclusive", False),
        priority=_number(table, "priority"),
        prefetch=_number(table, "prefetch") if "prefetch" in table.values else None,
        no_local=table.flag("no_local", False),
        connection=table.text("connection"),
        acknowledges=table.flag("acknowledges", True),
        description=table.text("description"),
    )
