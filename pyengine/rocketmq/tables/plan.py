"""The owner of each queue of all topics, how even that is, and what moves when clients come and go."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from pyengine._engine.rocketmq.client.allocation import are_all, plan_difference, taken
from pyengine.attributes import frozen
from pyengine.dataclass import dataclass
from pyengine.errors import AllocationError
from pyengine.rocketmq.tables.allocation import (
    MessageQueue,
    Owners,
    Strategy,
    allocate_all,
    check_given,
    in_a_list,
    named_strategy,
    queue_order,
    sort_client_ids,
    sort_queues,
)


class Load(NamedTuple):
    """How many queues a client owns, of all topics and of the topic it owns most of."""

    client_id: str
    queues: int
    most_of_one_topic: int


class Skew(NamedTuple):
    """How even a plan is. fewest, most, mean: queues a client. ratio: most / mean, 1 is even.

    idle: clients without a queue. orphans: queues without a client.
    """

    fewest: int
    most: int
    mean: float
    ratio: float
    idle: int
    orphans: int


class Move(NamedTuple):
    """A queue that changes its owner; None is no owner."""

    queue: MessageQueue
    before: str | None
    after: str | None


@frozen
@dataclass(frozen=True, eq=False)
class AllocationPlan:
    """The owners of all queues of several topics, each topic allocated by itself, as the real rebalance does it.

    queues: sorted as RebalanceImpl sorts them, so that a topic's queues lie together. client_ids: sorted likewise.
    owners: int32, shape (len(queues),), positions in client_ids, -1 for none.
    """

    strategy: Strategy
    queues: Sequence[MessageQueue]
    client_ids: Sequence[str]
    owners: Owners

    def of(self, client_id: str) -> list[MessageQueue]:
        """The queues of one client, [] for one that is not in the plan."""
        if client_id not in self.client_ids:
            return []
        position = list(self.client_ids).index(client_id)
        return [self.queues[i] for i in np.flatnonzero(self.owners == position).tolist()]

    def owner(self, queue: MessageQueue) -> str | None:
        """The owner of a queue, None without one. Raises AllocationError for a queue that is not in the plan."""
        try:
            return self._name(list(self.queues).index(queue))
        except ValueError:
            problem = f"{queue!r} is not a queue of the plan; give one of its queues"
            raise AllocationError("queue", queue, problem) from None

    def loads(self) -> list[Load]:
        """How many queues each client owns, in the order of client_ids."""
        clients = len(self.client_ids)
        most = np.zeros(clients, np.int64)
        for start, end in _topics(self.queues):
            own = self.owners[start:end]
            most = np.maximum(most, np.bincount(own[own >= 0], minlength=clients))
        total = np.bincount(self.owners[self.owners >= 0], minlength=clients)
        return [Load(*row) for row in zip(self.client_ids, total.tolist(), most.tolist(), strict=True)]

    def skew(self) -> Skew:
        """How even the plan is."""
        counts = [load.queues for load in self.loads()]
        mean = sum(counts) / len(counts)
        return Skew(
            min(counts),
            max(counts),
            mean,
            max(counts) / mean if mean else 1.0,
            counts.count(0),
            int((self.owners < 0).sum()),
        )

    def moves(self, after: AllocationPlan) -> list[Move]:
        """The queues that change their owner from this plan to another one of the same queues.

        Raises AllocationError for plans of different queues and for anything but a plan.
        """
        if not isinstance(after, AllocationPlan):
            raise AllocationError("after", after, f"after = {after!r} is not a plan; give one of allocate_topics()")
        if list(self.queues) != list(after.queues):
            raise AllocationError("after", after, "plans of different queues cannot be compared")
        numbers = {client_id: i for i, client_id in enumerate(dict.fromkeys([*self.client_ids, *after.client_ids]))}
        changed = plan_difference(_numbered(self, numbers), _numbered(after, numbers))
        return [Move(self.queues[i], self._name(i), after._name(i)) for i in changed.tolist()]

    def with_clients(self, client_ids: Iterable[str]) -> AllocationPlan:
        """The plan after these clients joined."""
        return allocate_topics(self.strategy, self.queues, [*self.client_ids, *in_a_list("client_ids", client_ids)])

    def without_clients(self, client_ids: Iterable[str]) -> AllocationPlan:
        """The plan after these clients left. Raises AllocationError if no client is left, or for one that is not in
        it."""
        staying = dict.fromkeys(self.client_ids)
        for client_id in in_a_list("client_ids", client_ids):
            if client_id not in self.client_ids:
                raise AllocationError("client_ids", client_id, f"{client_id} is not in the plan and cannot leave it")
            staying.pop(client_id, None)
        return allocate_topics(self.strategy, self.queues, staying)

    def _name(self, place: int) -> str | None:
        position = int(self.owners[place])
        return None if position < 0 else self.client_ids[position]


def allocate_topics(
    strategy: str | Strategy, queues: Iterable[MessageQueue], client_ids: Iterable[str]
) -> AllocationPlan:
    """The plan of one group that consumes several topics.

    strategy: RocketMQ's name or a strategy object with options. queues: of any number of topics, in any order.
    client_ids: the members, in any order. Every topic is allocated by itself, with queues and members sorted, as every
    member does it (spec rocketmq 3.0, 4.2). Raises AllocationError as ``allocate`` does.
    """
    chosen = named_strategy(strategy)
    queues, client_ids = in_a_list("queues", queues), in_a_list("client_ids", client_ids)
    try:
        listed = queues if are_all(queues, MessageQueue) else [MessageQueue(*queue) for queue in queues]
        order = queue_order(listed)
        if order is None:
            listed = sort_queues(listed)
            starts = [start for start, _ in _topics(listed)]
        else:
            listed = listed if order[0] is None else taken(listed, order[0])
            starts = order[1].tolist()
        ids = sort_client_ids(client_ids)
    except (TypeError, AttributeError, LookupError, AllocationError):
        check_given(queues, client_ids)
        raise
    if not listed:
        raise AllocationError("queues", listed, "mqAll is null or mqAll empty")
    owners = np.empty(len(listed), np.int32)
    for start, end in itertools.pairwise([*starts, len(listed)]):
        owners[start:end] = allocate_all(chosen, listed[start:end], ids)
    return AllocationPlan(chosen, listed, ids, owners)


def compare_strategies(
    strategies: Iterable[str | Strategy],
    queues: Iterable[MessageQueue],
    before: Iterable[str],
    after: Iterable[str],
) -> list[tuple[str, Skew, Skew, int]]:
    """How even each strategy is before and after a change of the members, and how many queues move.

    Returns (strategy's name, skew before, skew after, moved queues) for each strategy.
    """
    listed = in_a_list("queues", queues)
    ids_before, ids_after = sort_client_ids(before), sort_client_ids(after)
    strategies = in_a_list("strategies", strategies)
    rows = []
    for strategy in strategies:
        old = allocate_topics(strategy, listed, ids_before)
        new = allocate_topics(strategy, listed, ids_after)
        rows.append((old.strategy.name, old.skew(), new.skew(), len(old.moves(new))))
    return rows


def _topics(queues: Sequence[MessageQueue]) -> Iterator[tuple[int, int]]:
    """First and one past last position of each topic in sorted queues."""
    start = 0
    for place in range(1, len(queues) + 1):
        if place == len(queues) or queues[place][0] != queues[start][0]:
            yield start, place
            start = place


def _numbered(plan: AllocationPlan, numbers: dict[str, int]) -> Owners:
    """Owners by the numbers that two plans share."""
    shared = np.array([*(numbers[client_id] for client_id in plan.client_ids), -1], np.int32)
    return shared[plan.owners]
