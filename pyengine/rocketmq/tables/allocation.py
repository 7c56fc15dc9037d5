"""RocketMQ's allocation strategies: the owner of each message queue of a topic, exact to the queue.

A strategy is a frozen value with RocketMQ's own name. ``allocate`` answers for one client, as the real classes do;
``plan`` answers for all clients at once. No strategy sorts: ``sort_queues`` and ``sort_client_ids`` give the order in
which the real rebalance hands them over (spec rocketmq 3.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from pyengine._engine.rocketmq.client import allocation as core
from pyengine._engine.rocketmq.commands.message_queue import MessageQueue as MessageQueue
from pyengine.attributes import frozen, named_arguments
from pyengine.dataclass import dataclass
from pyengine.errors import AllocationError, did_you_mean
from pyengine.visible import logger
from pyengine.whole_numbers import is_whole_number

log = logger("pyengine.rocketmq")

T = TypeVar("T")
Owners: TypeAlias = npt.NDArray[np.int32]

_NULL = "java.lang.NullPointerException"


class MachineRoomResolver(Protocol):
    """Says in which machine room a broker's queue and a client live (AllocateMachineRoomNearby.MachineRoomResolver)."""

    def broker_deploy_in(self, queue: MessageQueue) -> str:
        """The room of the queue's broker."""

    def consumer_deploy_in(self, client_id: str) -> str:
        """The room of the client."""


class Strategy(Protocol):
    """What every allocation strategy can do."""

    @property
    def name(self) -> str:
        """RocketMQ's name of the strategy."""

    def allocate(
        self, group: str | None, client_id: str | None, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The queues of one client, in the real class's order."""

    def plan(self, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> Owners:
        """The owner of every queue: int32, shape (len(queues),), positions in ``client_ids``, -1 for none."""


def _utf16(text: str) -> bytes:
    """Sort key of Java's String.compareTo: UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def in_a_list(name: str, values: Iterable[T]) -> list[T]:
    """Values as a list. Raises AllocationError for a string, whose letters would be taken for values, and for anything
    that is not iterable."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise _no_list(name, values)
    return list(values)


_KINDS = {
    "queues": ("message queues", "[MessageQueue('topic', 'broker-a', 0)]"),
    "message_queues": ("message queues", "[MessageQueue('topic', 'broker-a', 0)]"),
    "client_ids": ("client ids", "['c1', 'c2']"),
    "consumer_idcs": ("machine rooms", "{'hz', 'sh'}"),
    "strategies": ("strategies", "['AVG', 'CONSISTENT_HASH']"),
}


def _no_list(name: str, value: object) -> AllocationError:
    kind, example = _KINDS[name]
    return AllocationError(name, value, f"{name} = {value!r} is not a list of {kind}; give one, as {example}")


def _check_lists(queues: object, client_ids: object) -> None:
    for name, value in (("client_ids", client_ids), ("queues", queues)):
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            raise _no_list(name, value)


def sort_queues(queues: Iterable[MessageQueue]) -> list[MessageQueue]:
    """Queues in the order of RebalanceImpl: topic, broker name (as UTF-16), queue id. Raises AllocationError."""
    found = in_a_list("queues", queues)
    order = queue_order(found)
    if order is not None:
        return found if order[0] is None else core.taken(found, order[0])
    try:
        return sorted(found, key=lambda queue: (_utf16(queue[0]), _utf16(queue[1]), queue[2]))
    except (TypeError, AttributeError, LookupError):
        check_given(found, ())
        raise


def queue_order(queues: list[MessageQueue]) -> tuple[npt.NDArray[np.int64] | None, npt.NDArray[np.int64]] | None:
    """Places of queues in the order of ``sort_queues`` (None: they are in it), and where each topic begins in it; None
    for a list whose entries are not (string, string, number of 64 bits).

    Names become ranks and a queue one number, which is sorted as such: few names are compared.
    """
    columns = core.queue_columns(queues)
    if columns is None or not queues:
        return None
    topics, brokers, topic_codes, broker_codes, ids = columns
    topic, broker = _ranks(topics)[topic_codes], _ranks(brokers)[broker_codes]
    low, high = int(ids.min()), int(ids.max())
    order: npt.NDArray[np.int64] | None = None
    if (high - low + 1) * len(topics) * len(brokers) < 1 << 63:
        key = (topic * len(brokers) + broker) * (high - low + 1) + (ids - low)
        if not (key[1:] >= key[:-1]).all():
            order = np.argsort(key, kind="stable")
    else:
        order = np.lexsort((ids, broker, topic))
    topic = topic if order is None else topic[order]
    return order, np.concatenate([[0], np.flatnonzero(topic[1:] != topic[:-1]) + 1])


def _ranks(names: list[str]) -> npt.NDArray[np.int64]:
    """The place of each name among them in the order of Java."""
    # Only names beyond U+D7FF are in another order as UTF-16 than by code points.
    key = None if max(map(max, filter(None, names)), default="") < "\ud800" else _utf16
    ranks = np.empty(len(names), np.int64)
    ranks[sorted(range(len(names)), key=lambda place: names[place] if key is None else key(names[place]))] = np.arange(
        len(names)
    )
    return ranks


def sort_client_ids(client_ids: Iterable[str]) -> list[str]:
    """Client ids in the order of RebalanceImpl: as Java compares strings, by UTF-16 code units. Raises AllocationError
    for anything but a list of strings."""
    ids = in_a_list("client_ids", client_ids)
    for each in ids:
        if not isinstance(each, str):
            raise _strange("client_ids", ids, each, "client id")
    return sorted(ids, key=_utf16)


def _is_member(
    group: str | None,
    client_id: str | None,
    queues: Sequence[MessageQueue] | None,
    client_ids: Sequence[str] | None,
    check: Callable[[Sequence[MessageQueue], Sequence[str]], None],
) -> bool:
    """The checks that all strategies but CONFIG share; False: the client is not in the list and owns nothing.

    check: looks at both lists once they are known to be there.
    """
    if client_id is not None and not isinstance(client_id, str):
        raise AllocationError(
            "client_id", client_id, f"client_id = {client_id!r} is not a client id; give a string, as 'c1'"
        )
    if not client_id:
        raise AllocationError("client_id", client_id, "currentCID is empty")
    if not queues:
        raise AllocationError("queues", queues, "mqAll is null or mqAll empty")
    if not client_ids:
        raise AllocationError("client_ids", client_ids, "cidAll is null or cidAll empty")
    check(queues, client_ids)
    if client_id in client_ids:
        return True
    log.info("[BUG] ConsumerGroup: %s The consumerId: %s not in cidAll: [%s]", group, client_id, ", ".join(client_ids))
    return False


def _first_positions_only(owners: Owners, client_ids: Sequence[str]) -> Owners:
    """A repeated client id acts at its first position; what belongs to the later ones has no owner."""
    if len(set(client_ids)) != len(client_ids):
        met: set[str] = set()
        acts = np.array([not (client_id in met or met.add(client_id)) for client_id in client_ids])  # type: ignore[func-returns-value]
        owners = np.where(owners >= 0, np.where(acts[owners], owners, -1), -1).astype(np.int32)
    return owners


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class AllocateMessageQueueAveragely:
    """Consecutive runs, the first clients one queue more; RocketMQ's default (spec rocketmq 3.1)."""

    name: str = field(default="AVG", init=False)

    def allocate(
        self, group: str | None, client_id: str | None, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The queues of one client. Raises AllocationError with the real class's text."""
        return _share(self, group, client_id, queues, client_ids)

    def plan(self, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> Owners:
        """The owner of every queue."""
        return _first_positions_only(core.averagely(len(queues), len(client_ids)), client_ids)


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class AllocateMessageQueueAveragelyByCircle:
    """Queue i to client i modulo the clients (spec rocketmq 3.2)."""

    name: str = field(default="AVG_BY_CIRCLE", init=False)

    def allocate(
        self, group: str | None, client_id: str | None, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The queues of one client. Raises AllocationError with the real class's text."""
        return _share(self, group, client_id, queues, client_ids)

    def plan(self, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> Owners:
        """The owner of every queue."""
        return _first_positions_only(core.averagely_by_circle(len(queues), len(client_ids)), client_ids)


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class AllocateMessageQueueByMachineRoom:
    """Only queues of brokers named ``room@broker`` in the given rooms; the remainder from the tail (spec rocketmq 3.4).

    consumer_idcs: the rooms; None (never set) fails as in the real class, on the first broker with a room. Raises
    AllocationError for a value of another type.
    """

    consumer_idcs: frozenset[str] | None = None
    name: str = field(default="MACHINE_ROOM", init=False)

    def __post_init__(self) -> None:
        if self.consumer_idcs is not None:
            for room in in_a_list("consumer_idcs", self.consumer_idcs):
                if not isinstance(room, str):
                    raise _strange("consumer_idcs", self.consumer_idcs, room, "machine room")

    def allocate(
        self, group: str | None, client_id: str | None, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The queues of one client. Raises AllocationError with the real class's text."""
        return _share(self, group, client_id, queues, client_ids)

    def plan(self, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> Owners:
        """The owner of every queue."""
        kept = np.array([i for i, queue in enumerate(queues) if self._is_ours(queue)], np.int64)
        owners = np.full(len(queues), -1, np.int32)
        owners[kept] = core.by_machine_room(len(kept), len(client_ids))
        return _first_positions_only(owners, client_ids)

    def _is_ours(self, queue: MessageQueue) -> bool:
        parts = queue[1].rstrip("@").split("@")
        if len(parts) != 2:
            return False
        if self.consumer_idcs is None:
            raise AllocationError(
                "consumer_idcs",
                None,
                'Cannot invoke "java.util.Set.contains(Object)" because "this.consumeridcs" is null',
                _NULL,
            )
        return parts[0] in self.consumer_idcs


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class AllocateMessageQueueByConfig:
    """The configured list, for any topic and any client (spec rocketmq 3.3).

    message_queues: the list; None (never set) owns nothing. Raises AllocationError for what is none.
    """

    message_queues: tuple[MessageQueue, ...] | None = None
    name: str = field(default="CONFIG", init=False)

    def __post_init__(self) -> None:
        if self.message_queues is not None:
            _check_queues("message_queues", in_a_list("message_queues", self.message_queues))

    def allocate(
        self, group: str | None, client_id: str | None, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The configured queues; nothing is checked, as in the real class."""
        return list(self.message_queues or ())

    def plan(self, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> Owners:
        """Every client consumes the configured list, and a plan has one owner a queue: it names the first client."""
        configured = set(self.message_queues or ())
        return np.array([0 if queue in configured else -1 for queue in queues], np.int32)


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class AllocateMessageQueueConsistentHash:
    """Each queue to the next node on a ring of MD5 hashes (spec rocketmq 3.6).

    virtual_node_count: nodes a client, 10 by default. hash_function: text -> unsigned 32 bits, MD5's head by default.
    """

    virtual_node_count: int = 10
    hash_function: Callable[[str], int] | None = None
    name: str = field(default="CONSISTENT_HASH", init=False)

    def __post_init__(self) -> None:
        count = self.virtual_node_count
        if not is_whole_number(count, 0, 2**31 - 1):
            raise AllocationError("virtual_node_count", count, f"illegal virtualNodeCnt :{count}")

    def allocate(
        self, group: str | None, client_id: str | None, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The queues of one client. Raises AllocationError with the real class's text."""
        return _share(self, group, client_id, queues, client_ids)

    def plan(self, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> Owners:
        """The owner of every queue."""
        ids = list(client_ids)
        if self.hash_function is None:
            return core.HashRing(ids, self.virtual_node_count).owners(core.hash_queues(queues))
        names = [str(MessageQueue(*queue)) for queue in queues]
        nodes = core.node_hashes(ids, self.virtual_node_count, self.hash_function)
        return core.HashRing(ids, self.virtual_node_count, nodes).owners([self.hash_function(name) for name in names])


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class AllocateMachineRoomNearby:
    """The inner strategy room by room; rooms without a living client are shared by all (spec rocketmq 3.5)."""

    inner: Strategy
    machine_room_resolver: MachineRoomResolver

    def __post_init__(self) -> None:
        if self.inner is None:
            raise AllocationError("inner", None, "allocateMessageQueueStrategy is null", _NULL)
        if self.machine_room_resolver is None:
            raise AllocationError("machine_room_resolver", None, "machineRoomResolver is null", _NULL)
        if isinstance(self.inner, str):
            hint = "give an object, as AllocateMessageQueueAveragely()"
            raise AllocationError("inner", self.inner, f"inner = {self.inner!r} is a strategy's name; {hint}")
        named_strategy(self.inner)
        for asked in ("broker_deploy_in", "consumer_deploy_in"):
            if not callable(getattr(self.machine_room_resolver, asked, None)):
                problem = f"machine_room_resolver = {self.machine_room_resolver!r} has no method {asked}"
                raise AllocationError("machine_room_resolver", self.machine_room_resolver, problem)

    @property
    def name(self) -> str:
        """RocketMQ's name of the strategy, with the inner one's."""
        return f"MACHINE_ROOM_NEARBY-{self.inner.name}"

    def allocate(
        self, group: str | None, client_id: str | None, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The client's share of its own room, then of each room without clients, rooms in Java's string order."""
        if not _is_member(group, client_id, queues, client_ids, check_given):
            return []
        assert client_id is not None
        queues_in, clients_in = self._rooms(queues, client_ids)
        mine = self.machine_room_resolver.consumer_deploy_in(client_id)
        share: list[MessageQueue] = []
        if mine in queues_in:
            at_home = [queues[i] for i in queues_in[mine]]
            share += self.inner.allocate(group, client_id, at_home, [client_ids[i] for i in clients_in[mine]])
        for room in sorted(queues_in.keys() - clients_in.keys(), key=_utf16):
            share += self.inner.allocate(group, client_id, [queues[i] for i in queues_in[room]], client_ids)
        return share

    def plan(self, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> Owners:
        """The owner of every queue."""
        queues_in, clients_in = self._rooms(queues, client_ids)
        owners = np.full(len(queues), -1, np.int32)
        for room, positions in queues_in.items():
            clients = np.array(clients_in.get(room, range(len(client_ids))), np.int32)
            inner = self.inner.plan([queues[i] for i in positions], [client_ids[i] for i in clients])
            owners[positions] = np.where(inner >= 0, clients[inner], -1)
        return owners

    def _rooms(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
        """Positions of the queues and of the clients of each room."""
        queues_in: dict[str, list[int]] = {}
        for i, queue in enumerate(queues):
            room = self.machine_room_resolver.broker_deploy_in(queue)
            if not room:
                raise AllocationError("queues", queue, f"Machine room is null for mq {MessageQueue(*queue)}")
            queues_in.setdefault(room, []).append(i)
        clients_in: dict[str, list[int]] = {}
        for i, client_id in enumerate(client_ids):
            room = self.machine_room_resolver.consumer_deploy_in(client_id)
            if not room:
                raise AllocationError("client_ids", client_id, f"Machine room is null for consumer id {client_id}")
            clients_in.setdefault(room, []).append(i)
        return queues_in, clients_in


def _share(
    strategy: Strategy,
    group: str | None,
    client_id: str | None,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
) -> list[MessageQueue]:
    """One client's queues out of the whole plan, in the order of the queues."""
    if not _is_member(group, client_id, queues, client_ids, check_given):
        return []
    position = list(client_ids).index(client_id or "")
    return [queues[i] for i in np.flatnonzero(strategy.plan(queues, client_ids) == position).tolist()]


_BY_NAME: dict[str, Callable[[], Strategy]] = {
    "AVG": AllocateMessageQueueAveragely,
    "AVG_BY_CIRCLE": AllocateMessageQueueAveragelyByCircle,
    "CONFIG": AllocateMessageQueueByConfig,
    "CONSISTENT_HASH": AllocateMessageQueueConsistentHash,
    "MACHINE_ROOM": AllocateMessageQueueByMachineRoom,
}


def named_strategy(strategy: str | Strategy) -> Strategy:
    """The strategy of RocketMQ's name with its default options; a strategy object stays. Raises AllocationError."""
    if not isinstance(strategy, str):
        if isinstance(strategy, type) or not callable(getattr(strategy, "allocate", None)):
            hint = "give a name, as 'AVG', or an object, as AllocateMessageQueueAveragely()"
            raise AllocationError(
                "strategy", strategy, f"strategy = {strategy!r} is not an allocation strategy; {hint}"
            )
        return strategy
    if strategy not in _BY_NAME:
        hint = did_you_mean(strategy, _BY_NAME)
        raise AllocationError("strategy", strategy, f"there is no allocation strategy {strategy!r}; {hint}")
    return _BY_NAME[strategy]()


def allocate(
    strategy: str | Strategy,
    group: str | None,
    client_id: str | None,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
) -> list[MessageQueue]:
    """The queues of one client of a group.

    strategy: RocketMQ's name ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", ...) or a strategy object with options.
    queues: MessageQueue or (topic, broker name, queue id) tuples, in the order in which they are handed over; one that
    is listed twice counts as two, as in the real classes, so that two clients may get it.
    Returns the client's queues in the real class's order; empty if the client is not in the list.
    Raises AllocationError with RocketMQ's own text for empty input, with ours for a value that is not a queue or a
    client id.
    """
    chosen = named_strategy(strategy)
    try:
        return chosen.allocate(group, client_id, queues, client_ids)
    except (TypeError, AttributeError, LookupError):
        check_given(queues, client_ids)
        raise


def allocate_all(strategy: str | Strategy, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> Owners:
    """The owner of every queue at once: int32, shape (len(queues),), positions in ``client_ids``, -1 for none.

    The same answer as ``allocate`` for each client in turn, without asking each. Raises AllocationError as it does, but
    AVG and AVG_BY_CIRCLE, which go by numbers alone, do not look at each queue and client id.
    """
    some = client_ids[0] if client_ids and isinstance(client_ids, Sequence) else "-"
    chosen = named_strategy(strategy)
    try:
        _is_member(None, some, queues, client_ids, _check_lists)
        return chosen.plan(queues, client_ids)
    except (TypeError, AttributeError, LookupError):
        check_given(queues, client_ids)
        raise


def check_given(queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> None:
    """Raise AllocationError for the first argument that is not a list of queues or of client ids."""
    _check_lists(queues, client_ids)
    for client_id in client_ids:
        if not isinstance(client_id, str):
            raise _strange("client_ids", client_ids, client_id, "client id")
    _check_queues("queues", queues)


def _check_queues(name: str, queues: Sequence[MessageQueue]) -> None:
    place = core.first_strange(queues)
    if place >= 0:
        raise _strange(name, queues, queues[place], "message queue")


def _strange(name: str, values: object, one: object, kind: str) -> AllocationError:
    return AllocationError(name, values, f"{name} has {one!r}, which is not a {kind}; give a list as {_KINDS[name][1]}")
