"""The frozen model. Reading it from TOML is reading.py, writing it back is writing.py; every default is here, once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from pyengine.attributes import frozen
from pyengine.destinations import Destination, DestinationMap, entry_pattern, most_specific, parse_destination
from pyengine.topology.checked import Checked, Properties, check, check_arguments, check_selector, refuse_if
from pyengine.topology.limits import (
    QUEUES_AND_TOPICS,
    UNTIMED,
    destination_problem,
    first_twice,
    source_problem,
    steps_problem,
    template_parts,
    template_problem,
    text_problem,
    zone_problem,
)
from pyengine.topology.policy import (
    CLIENT_QUEUE_PREFETCH,
    CLIENT_TOPIC_PREFETCH,
    Policy,
    UniquePropertyMessageEvictionStrategy,
)

JavaTypeName = Literal["byte", "short", "int", "long", "float", "double", "boolean", "string"]
JAVA_TYPES: tuple[JavaTypeName, ...] = ("byte", "short", "int", "long", "float", "double", "boolean", "string")
TimeUnit = Literal["s", "ms", "us", "ns"]
FormatName = Literal["", "parquet", "jsonl", "csv"]
OrderName = Literal["rows", "timestamp"]
TOPIC = "topic://"  # before the name of a destination that is a topic
_COLUMN = "name a column"


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
    column, if it differs from that of its stored type.
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

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        refuse_if("Source.destination", self.destination, template_problem(self.destination))
        if wrong := source_problem(self.path, self.package, self.table):
            refuse_if(f"Source.{wrong[0]}", getattr(self, wrong[0]), wrong[1:])
        if isinstance(self.priority, str):
            refuse_if("Source.priority", self.priority, text_problem(self.priority, _COLUMN))
        if self.order == "timestamp" and self.timestamp is None:
            refuse_if("Source.order", self.order, UNTIMED)
        for name, columns in (("properties", self.properties or ()), ("types", [column for column, _ in self.types])):
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
    def columns(self) -> tuple[str, ...]:
        """Every column the mapping needs apart from properties, each once."""
        names = [*self.destination_columns, self.id, self.group, self.group_sequence, self.connection, self.body]
        if self.priority is not None:
            names.append(self.priority if isinstance(self.priority, str) else self.priority.column)
        for moment in (self.timestamp, self.expiration):
            if moment is not None:
                names.extend(moment.columns)
        return tuple(dict.fromkeys(name for name in names if name))


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


@frozen
@dataclass(frozen=True)
class Topology(Checked):
    """Source, destinations, policies, consumers. ``file`` is where it was read from and takes no part in comparing."""

    source: Source
    consumers: tuple[Consumer, ...] = ()
    policies: tuple[Policy, ...] = ()
    default_policy: Policy = field(default=Policy(""))
    destinations: tuple[DestinationEntry, ...] = ()
    title: str = ""
    description: str = ""
    file: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        for name, key in (("consumers", "name"), ("destinations", "name"), ("policies", "destination")):
            named = [getattr(entry, key) for entry in getattr(self, name)]
            if places := first_twice(named):
                problem = f"is already used by {name}[{places[0]}]", "each needs one of its own"
                refuse_if(f"Topology.{name}[{places[1]}].{key}", named[places[1]], problem)
            if "" in named:
                problem = "is empty", "name a destination, > for all, or make it the default_policy"
                refuse_if(f"Topology.{name}[{named.index('')}].{key}", "", problem)
        if default := self.default_policy.destination:
            refuse_if("Topology.default_policy.destination", default, ("names a destination", "a default has none"))

    @classmethod
    def load(cls, path: str | Path) -> Topology:
        """Read a TOML file; raises InvalidTopologyError."""
        from pyengine.topology.reading import load

        check_arguments("Topology.load", Topology.load, {"path": path})
        return load(path)

    @classmethod
    def from_text(cls, text: str, file: str = "") -> Topology:
        """Read TOML text; the inverse of :meth:`to_text`. Raises InvalidTopologyError."""
        from pyengine.topology.reading import parse

        check_arguments("Topology.from_text", Topology.from_text, {"text": text, "file": file})
        return parse(text, file)

    def to_text(self) -> str:
        """This topology as TOML, for shipping it to a worker."""
        from pyengine.topology.writing import to_text

        return to_text(self)

    def policy_of(self, destination: str) -> Policy:
        """The policy that applies to a queue, or to a topic by its name with ``topic://``.

        It is the most specific entry, whole; nothing is merged (spec activemq 4.3).
        """
        found = self._policies.get(_named(destination))
        return self.default_policy if found is None else found

    def consumers_of(self, destination: str) -> tuple[Consumer, ...]:
        """The consumers of a queue, or of a topic by its name with ``topic://``, in registration order."""
        return tuple(self.consumers[place] for place in self.positions_of(destination))

    def positions_of(self, destination: str) -> tuple[int, ...]:
        """Where the consumers of a queue or topic stand in ``consumers``."""
        queue = _named(destination)
        by_name, by_pattern = self._places
        found = {place for pattern, places in by_pattern.items() if pattern.matches(queue) for place in places}
        return tuple(sorted(found.union(by_name.get(queue, ()))))

    def prefetch_of(self, consumer: Consumer) -> int:
        """The prefetch that counts for a consumer of queues: ``queue_prefetch`` of its policy replaces the client's
        default of 1000 (spec activemq 2.4)."""
        asked = CLIENT_QUEUE_PREFETCH if consumer.prefetch is None else consumer.prefetch
        return (self.consumer_policy(consumer) or self.default_policy).prefetch_of(asked)

    def consumer_policy(self, consumer: Consumer) -> Policy | None:
        """The policy of a subscription: the entry that covers the whole text of its destination, also of a wildcard or
        a composite, else the default; None for one without settings. The entries of single queues do not count for it.
        """
        found = self._policies.get(entry_pattern(consumer.destination))
        if found is not None:
            return found
        return None if self.default_policy == Policy("") else self.default_policy

    @staticmethod
    def topic_prefetch_under(policy: Policy | None, consumer: Consumer) -> int:
        """The prefetch that counts for a topic subscription: topic_prefetch replaces the client's default of 32767."""
        asked = CLIENT_TOPIC_PREFETCH if consumer.prefetch is None else consumer.prefetch
        return asked if policy is None else policy.prefetch_of(asked, "topic")

    def may_fill(self, consumer: Consumer) -> bool:
        """Whether messages may have to wait for a topic subscription because its window is full: it acknowledges
        nothing, or pulls (a prefetch of 0), or gets nothing (below 0)."""
        return not consumer.acknowledges or self.topic_prefetch_under(self.consumer_policy(consumer), consumer) <= 0

    @property
    def has_topics(self) -> bool:
        """Whether a topic has a subscriber."""
        return any(pattern.kind == "topic" for patterns in self._patterns for pattern in patterns)

    @property
    def shares_topics(self) -> bool:
        """Whether topics hang together, because a window that may fill counts over several of them."""
        return any(
            self.may_fill(consumer)
            and (len(patterns) > 1 or patterns[0].is_pattern)
            and any(pattern.kind == "topic" for pattern in patterns)
            for consumer, patterns in zip(self.consumers, self._patterns, strict=True)
        )

    @property
    def policy_properties(self) -> frozenset[str]:
        """Names of properties that policies of topics look at: eviction by a property, dispatch by the client's id."""
        policies = (*self.policies, self.default_policy)
        evictions = (policy.message_eviction_strategy for policy in policies)
        names = {each.property_name for each in evictions if isinstance(each, UniquePropertyMessageEvictionStrategy)}
        filtered = any(policy.dispatch_policy == "client_id_filter" for policy in policies)
        return frozenset(names | ({"PTP_CLIENTID"} if filtered else set()))

    def covering(self, destination: str) -> tuple[Destination | str, ...]:
        """What ``policy_of`` and ``consumers_of`` depend on: equal for two queues, they have the same of both."""
        if destination in self.pattern_names or destination.startswith(TOPIC):
            return self._covered_by(destination)
        # Patterns see an element only as one of their own or as any other, so there are few kinds of names.
        kind = tuple(map(self.pattern_elements.get, destination.split(".")))
        found = self._coverings.get(kind)
        if found is None:
            found = self._coverings[kind] = self._covered_by(destination)
        return found

    def _covered_by(self, destination: str) -> tuple[Destination | str, ...]:
        queue = _named(destination)
        own = destination if destination in self.pattern_names else ""
        composites = (pattern for pattern in self._composites if most_specific((pattern,), queue))
        return (own, *(pattern for pattern in self._wildcards if pattern.matches(queue)), *composites)

    def description_of(self, destination: str) -> str:
        """The words of the destination's entry, or an empty string."""
        return next((entry.description for entry in self.destinations if entry.name == destination), "")

    @cached_property
    def _policies(self) -> DestinationMap[Policy]:
        return DestinationMap({entry_pattern(policy.destination): policy for policy in self.policies})

    @cached_property
    def _patterns(self) -> tuple[tuple[Destination, ...], ...]:
        return tuple(parse_destination(consumer.destination) for consumer in self.consumers)

    @cached_property
    def _places(self) -> tuple[dict[Destination, list[int]], dict[Destination, list[int]]]:
        """Where the consumers stand that name a destination as it is, and those with a pattern."""
        found: tuple[dict[Destination, list[int]], dict[Destination, list[int]]] = {}, {}
        for place, patterns in enumerate(self._patterns):
            for pattern in patterns:
                found[pattern.is_pattern].setdefault(pattern, []).append(place)
        return found

    @cached_property
    def pattern_names(self) -> frozenset[str]:
        """Destinations that policies and consumers name as they are, patterns included."""
        every = (*self._policies.patterns, *(part for parts in self._patterns for part in parts))
        return frozenset(pattern.name if pattern.kind == "queue" else str(pattern) for pattern in every)

    @cached_property
    def _wildcards(self) -> tuple[Destination, ...]:
        every = (*self._policies.patterns, *(part for parts in self._patterns for part in parts))
        return tuple(dict.fromkeys(pattern for pattern in every if pattern.is_pattern and "," not in pattern.name))

    @cached_property
    def _coverings(self) -> dict[tuple[str | None, ...], tuple[Destination | str, ...]]:
        return {}

    @cached_property
    def pattern_elements(self) -> dict[str, str]:
        """Elements of names that some pattern tells from others."""
        parts = (part for each in self._composites for part in parse_destination(each.name, each.kind))
        found = (element for pattern in (*self._wildcards, *parts) for element in pattern.elements)
        return {element: element for element in ("*", *found)}

    @cached_property
    def _composites(self) -> tuple[Destination, ...]:
        return tuple(pattern for pattern in self._policies.patterns if "," in pattern.name)


def _named(destination: str) -> Destination:
    """A queue by its name as it is, or a topic by its name behind ``topic://``."""
    check("destination", destination, str)
    if destination.startswith(TOPIC):
        return Destination(destination[len(TOPIC) :], "topic")
    return Destination(destination)
