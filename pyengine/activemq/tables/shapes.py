"""Queues that are alike: what the consumers and the policy of a queue make of it, found for many names at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyengine._engine.activemq.queue.queue import Queue
from pyengine.activemq.core_settings import queue_settings
from pyengine.activemq.tables.assignments import compiled
from pyengine.topology import Policy, Topology
from pyengine.topology.model import TOPIC


def member_of(topology: Topology, place: int, number: int) -> dict[str, Any]:
    """How the consumer at a place of the topology joins a queue of the core, as its number-th."""
    consumer = topology.consumers[place]
    policy = topology.consumer_policy(consumer) or topology.default_policy
    return {
        "selector": compiled(consumer.selector) if consumer.selector else None,
        "exclusive": consumer.exclusive,
        "priority": consumer.priority,
        "prefetch": topology.prefetch_of(consumer),
        "use_prefetch_extension": policy.use_prefetch_extension,
        "no_local": consumer.no_local,
        "connection": consumer.connection or ("consumer", number),
    }


class Membership:
    """What consumers of a queue ask of a batch. members: id at the core -> place in the topology.

    questions: (bit of ``matches``, selector or "", connection whose messages are refused or ""). prompt: as
    offer_runs wants it.
    """

    def __init__(self, topology: Topology, core: Queue, members: Mapping[int, int]) -> None:
        asked: dict[int, tuple[str, str]] = {}
        prompt: set[int] = set()
        for number, place in members.items():
            consumer = topology.consumers[place]
            if consumer.selector or consumer.no_local:
                refused = consumer.connection if consumer.no_local else ""
                asked.setdefault(core.predicate_of(number), (consumer.selector, refused))
            if consumer.acknowledges:
                prompt.add(number)
        self.questions = sorted((bit, *question) for bit, question in asked.items())
        self.prompt = None if len(prompt) == len(members) else prompt


class Shape(Membership):
    """What queues with the same policy and the same consumers have in common.

    consumers: places in the topology; their ids at the core are 0, 1, ... in this order. by_name: owners of groups hang
    on the groups' names. core: for queues that begin and end in one batch, one after another. Making a queue costs as
    much as a hundred messages, so those that have ended are used again. number: of Shapes, its place there.
    """

    def __init__(self, topology: Topology, policy: Policy, consumers: tuple[int, ...], number: int = 0) -> None:
        self.number = number
        self.consumers = consumers
        self.by_name = policy.message_group_map_factory_type.startswith("bucket")
        self._policy = policy
        self._members = [member_of(topology, place, number) for number, place in enumerate(consumers)]
        self._idle: list[Queue] = []
        self.core = self.queue()
        super().__init__(topology, self.core, dict(enumerate(consumers)))

    def queue(self) -> Queue:
        """A queue with its consumers, to which nothing was sent."""
        if self._idle:
            return self._idle.pop()
        core = Queue(**queue_settings(self._policy))
        for member in self._members:
            core.add_consumer(**member)
        return core

    def take_back(self, core: Queue) -> None:
        """A queue of ``queue()`` is not needed any more, and is as new."""
        self._idle.append(core)


class Shapes:
    """The different shapes of a topology's queues. every: those that were asked for, by number."""

    def __init__(self, topology: Topology) -> None:
        self.every: list[Shape] = []
        self._topology = topology
        self._by_covering: dict[tuple[Any, ...], Shape] = {}
        self._elements = pa.array(topology.pattern_elements, pa.string())
        self._names = pa.array(sorted(topology.pattern_names), pa.string())

    def of(self, name: str) -> Shape:
        """The shape of a queue by its name."""
        covering = self._topology.covering(name)
        shape = self._by_covering.get(covering)
        if shape is None:
            policy, consumers = self._topology.policy_of(name), self._topology.positions_of(name)
            shape = self._by_covering[covering] = Shape(self._topology, policy, consumers, len(self.every))
            self.every.append(shape)
        return shape

    def numbers_of(self, names: pa.Array) -> np.ndarray[Any, Any]:
        """The same for an array of names, as numbers (int64); each kind of name (Topology.covering) is looked at once.

        A kind is written as a number: the places of its elements among those of the patterns, 0 for any other, as the
        digits behind its length.
        """
        split = pc.split_pattern(names, ".")
        starts = split.offsets.to_numpy()
        lengths = np.diff(starts)
        base, longest = len(self._elements) + 1, int(lengths.max(initial=0))
        if (longest + 1) * base**longest >= 1 << 62:
            return np.array([self.of(name).number for name in names.to_pylist()], np.int64)
        found = pc.index_in(split.values, value_set=self._elements)
        places = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
        kinds = lengths.astype(np.int64)
        for depth in range(longest):
            deep = np.flatnonzero(lengths > depth)
            kinds *= base
            kinds[deep] += places[starts[deep] + depth]
        own = pc.or_(pc.is_in(names, value_set=self._names), pc.starts_with(names, TOPIC))
        alone = np.flatnonzero(own.to_numpy(zero_copy_only=False))
        kinds[alone] = -1 - alone
        _, firsts, which = np.unique(kinds, return_index=True, return_inverse=True)
        numbers = [self.of(name).number for name in names.take(pa.array(firsts)).to_pylist()]
        return np.array(numbers, np.int64)[which]


def numbered(shapes: Sequence[Membership]) -> tuple[list[Membership], np.ndarray[Any, Any]]:
    """The different ones of them, and for each its place among these."""
    different = {id(shape): shape for shape in shapes}
    place = {number: at for at, number in enumerate(different)}
    return list(different.values()), np.array([place[id(shape)] for shape in shapes], np.int64)
