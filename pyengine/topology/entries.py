"""What a topology consists of in addition to policies: the source of its rows, destinations, consumers; every default
once."""

from __future__ import annotations

from typing import Literal

from pyengine.attributes import frozen, named_arguments
from pyengine.dataclass import dataclass
from pyengine.destinations import parse_destination
from pyengine.topology.checked import Checked, Properties, check_selector, refuse_if
from pyengine.topology.limits import (
    QUEUES_AND_TOPICS,
    UNTIMED,
    delimiter_problem,
    destination_problem,
    encoding_problem,
    first_twice,
    source_problem,
    steps_problem,
    template_parts,
    template_problem,
    text_problem,
    zone_problem,
)

JavaTypeName = Literal["byte", "short", "int", "long", "float", "double", "boolean", "string"]
JAVA_TYPES: tuple[JavaTypeName, ...] = ("byte", "short", "int", "long", "float", "double", "boolean", "string")
TimeUnit = Literal["s", "ms", "us", "ns"]
FormatName = Literal["", "parquet", "jsonl", "csv"]
OrderName = Literal["rows", "timestamp"]
TOPIC = "topic://"  # before the name of a destination that is a topic
_COLUMN = "name a column"


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class Steps(Checked):
    """A priority read off a number: the last step whose threshold the number reaches.

    column: a numeric column. steps: (threshold, priority) with rising thresholds. below: the priority under the first
    threshold. missing: the priority where the column is null.
    """

    column: str
    steps: tuple[tuple[float, int], ...]
    below: int = 4
    missing: int = 4

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        refuse_if("Steps.column", self.column, text_problem(self.column, _COLUMN))
        refuse_if("Steps.steps", self.steps, steps_problem(self.steps))
        for name, priority in (("below", self.below), ("missing", self.missing)):
            refuse_if(f"Steps.{name}", priority, None if 0 <= priority <= 9 else ("must be from 0 to 9", ""))

    def priority(self, number: float | None) -> int:
        """The priority of one number; None and NaN are missing."""
        if number is None or number != number:
            return self.missing
        found = self.below
        for threshold, priority in self.steps:
            if number < threshold:
                break
            found = priority
        return found


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class TimeColumn(Checked):
    """A moment read from columns.

    column: integers (epoch, see unit), Arrow timestamps, or ISO 8601 text. unit: of integers: "s", "ms", "us" or "ns".
    timezone: IANA name that applies to timestamps and text without an offset of their own; empty: UTC. plus_minutes:
    an integer column added as minutes, or empty.
    """

    column: str
    unit: TimeUnit = "ms"
    timezone: str = "UTC"
    plus_minutes: str = ""

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        refuse_if("TimeColumn.column", self.column, text_problem(self.column, _COLUMN))
        object.__setattr__(self, "timezone", self.timezone or "UTC")
        refuse_if("TimeColumn.timezone", self.timezone, zone_problem(self.timezone))

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column, self.plus_minutes) if self.plus_minutes else (self.column,)


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class Source(Checked):
    """Where rows come from and how a row becomes a message.

    One of ``path`` (a file, folder or glob; absolute once loaded from a file) and ``package`` (an installed Python
    package that ships ``table`` as data/<table>.csv, .csv.zip or .parquet; it is read, never imported) is empty; both
    are where the rows are a DataFrame or a table. format: "parquet", "jsonl", "csv", or "" = by the file's suffix.
    destination: a name in which ``{column}`` stands for the row's value; a row whose name begins with ``topic://`` is
    sent to a topic. id: column of the message id; empty: the row's number counted from 0 over the whole source. group,
    group_sequence, connection, body: columns, or empty. priority: a column of 0-9, or Steps; None: the JMS default, 4.
    timestamp, expiration: moments; None: 0. order: "timestamp" (ties in row order) or "rows", the order in which
    messages are sent. properties: columns that become message properties; None: every column. types: the Java type of a
    column, if it is not the one its stored type stands for. properties_from: a column of maps, key and value
    structs, structs, variants or JSON texts in which the other properties that selectors read are keys. columns: where
    a property comes from: a column, ``column.key``, or a key in properties_from. delimiter: of CSV, one ASCII
    character. encoding: of CSV and JSON lines, by its name in Python.
    """

    destination: str
    path: str = ""
    package: str = ""
    table: str = ""
    format: FormatName = ""
    id: str = ""
    group: str = ""
    group_sequence: str = ""
    connection: str = ""
    body: str = ""
    priority: str | Steps | None = None
    timestamp: TimeColumn | None = None
    expiration: TimeColumn | None = None
    order: OrderName = "rows"
    properties: tuple[str, ...] | None = None
    types: tuple[tuple[str, JavaTypeName], ...] = ()
    properties_from: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    delimiter: str = ","
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        refuse_if("Source.destination", self.destination, template_problem(self.destination))
        if wrong := source_problem(self.path, self.package, self.table):
            refuse_if(f"Source.{wrong[0]}", getattr(self, wrong[0]), wrong[1:])
        if isinstance(self.priority, str):
            refuse_if("Source.priority", self.priority, text_problem(self.priority, _COLUMN))
        if self.order == "timestamp" and self.timestamp is None:
            refuse_if("Source.order", self.order, UNTIMED)
        refuse_if("Source.delimiter", self.delimiter, delimiter_problem(self.delimiter))
        refuse_if("Source.encoding", self.encoding, encoding_problem(self.encoding))
        named = (
            ("properties", self.properties or ()),
            ("types", [column for column, _ in self.types]),
            ("columns", [name for name, _ in self.columns]),
        )
        for name, columns in named:
            if first_twice(columns):
                refuse_if(f"Source.{name}", columns, ("names a column twice", "name each column once"))

    @property
    def destination_columns(self) -> tuple[str, ...]:
        """The columns named in ``destination``, in order."""
        return tuple(column.strip() for column in self.destination_parts[1::2])

    @property
    def destination_parts(self) -> tuple[str, ...]:
        """``destination`` cut at its placeholders: literal, column, literal, column, ..., literal."""
        return template_parts(self.destination)

    @property
    def mapped_columns(self) -> tuple[str, ...]:
        """Every column, or key in ``properties_from``, that the mapping needs apart from properties, each once."""
        names = [*self.destination_columns, self.id, self.group, self.group_sequence, self.connection, self.body]
        if self.priority is not None:
            names.append(self.priority if isinstance(self.priority, str) else self.priority.column)
        for moment in (self.timestamp, self.expiration):
            if moment is not None:
                names.extend(moment.columns)
        return tuple(dict.fromkeys(name for name in names if name))


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class DestinationEntry(Checked):
    """A destination worth a word in the report. What rows name exists without an entry, as on the broker."""

    name: str
    description: str = ""

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        wrong = destination_problem(self.name, QUEUES_AND_TOPICS, single=True, wildcard=False)
        refuse_if("DestinationEntry.name", self.name, wrong)
        (found,) = parse_destination(self.name)
        object.__setattr__(self, "name", found.name if found.kind == "queue" else str(found))


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class Consumer(Properties):
    """One consumer. Consumers are registered in the order of the file.

    destination: a name, a wildcard or a composite, without options; a wildcard consumer is a consumer of every queue it
    covers, with its rules applied per queue. ``topic://Prices.>`` subscribes to topics, with one window over all of
    them. selector: empty takes all. priority: -128 .. 127. prefetch: None is the client's default of 1000 (topics:
    32767), which a policy's queue_prefetch (topic_prefetch) replaces; 0 pulls, below 0 gets nothing. no_local: refuse
    what the same connection sent. connection: name of the consumer's connection; empty: one of its own. acknowledges:
    True: takes a message and acknowledges it at once; False: takes until its prefetch is full and keeps them.
    """

    name: str
    destination: str
    selector: str = ""
    exclusive: bool = False
    priority: int = 0
    prefetch: int | None = None
    no_local: bool = False
    connection: str = ""
    acknowledges: bool = True
    description: str = ""

    def __post_init__(self) -> None:
        Properties.__post_init__(self)
        refuse_if("Consumer.name", self.name, text_problem(self.name, "every consumer needs a name of its own"))
        wrong = destination_problem(self.destination, QUEUES_AND_TOPICS)
        refuse_if("Consumer.destination", self.destination, wrong)
        check_selector(self)
