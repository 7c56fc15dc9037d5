"""The frozen model of a topology. Reading it from TOML is reading.py, writing it back is writing.py."""

from __future__ import annotations

from dataclasses import field, replace
from functools import cached_property
from pathlib import Path

from pyengine._engine.matching.selector import Selector
from pyengine.attributes import frozen, named_arguments
from pyengine.dataclass import dataclass
from pyengine.destinations import Destination, DestinationMap, entry_pattern, most_specific, parse_destination
from pyengine.topology import reading, writing
from pyengine.topology.checked import Checked, check, check_arguments, refuse_if
from pyengine.topology.entries import JAVA_TYPES as JAVA_TYPES
from pyengine.topology.entries import TOPIC as TOPIC
from pyengine.topology.entries import Consumer as Consumer
from pyengine.topology.entries import DestinationEntry as DestinationEntry
from pyengine.topology.entries import FormatName as FormatName
from pyengine.topology.entries import JavaTypeName as JavaTypeName
from pyengine.topology.entries import OrderName as OrderName
from pyengine.topology.entries import Source as Source
from pyengine.topology.entries import Steps as Steps
from pyengine.topology.entries import TimeColumn as TimeColumn
from pyengine.topology.entries import TimeUnit as TimeUnit
from pyengine.topology.limits import first_twice
from pyengine.topology.policy import (
    CLIENT_QUEUE_PREFETCH,
    CLIENT_TOPIC_PREFETCH,
    Policy,
    UniquePropertyMessageEvictionStrategy,
)


@named_arguments
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
        check_arguments("Topology.load", Topology.load, {"path": path})
        return cls(**reading.load(path))

    @classmethod
    def from_text(cls, text: str, file: str = "") -> Topology:
        """Read TOML text; the inverse of :meth:`to_text`. Raises InvalidTopologyError."""
        check_arguments("Topology.from_text", Topology.from_text, {"text": text, "file": file})
        return cls(**reading.parse(text, file))

    def to_text(self) -> str:
        """This topology as TOML, for shipping it to a worker."""
        return writing.to_text(self)

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

    @cached_property
    def properties_read(self) -> tuple[str, ...]:
        """Names that selectors and policies read, headers included, each once."""
        texts = dict.fromkeys(consumer.selector for consumer in self.consumers if consumer.selector)
        names = (name for text in texts for name in Selector(text).names)
        return tuple(dict.fromkeys((*names, *sorted(self.policy_properties))))

    def with_places(self) -> Topology:
        """This topology, whose source names where each property that is read lies if ``properties_from`` says it."""
        source = self.source
        if not source.properties_from:
            return self
        given = {*dict(source.columns), *(source.properties or ())}
        keys = [name for name in self.properties_read if name not in given and not name.startswith("JMS")]
        places = (*source.columns, *((name, f"{source.properties_from}.{name}") for name in keys))
        return replace(self, source=replace(source, columns=places))

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
