"""Invented clusters, each with its truth: the causes that an expert names from what was shown of it.

The rules by which they are drawn say what a cluster does (how fast messages come, who consumes them, what stands
still), never how a diagnosis is made: nothing of ``pyengine.backlog`` is imported here. A cluster lasts for two
moments, 45 s to an hour apart. Half of the cases are healthy.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any, Literal

BROKER_PORT = 10911
QUIET = 60_000  # ms: consumerStatus complains of a process queue with messages of which none was consumed for so long
Product = Literal["rocketmq", "kafka"]
START = 1_718_000_000_000  # ms: the first moment of all clusters


def address(number: int) -> str:
    """The loopback address of a broker: the tools print it."""
    return f"127.0.0.{11 + number}"


# What waits at the first moment, and at the second: a number, or by which part of what comes between them it grows.
Lags = tuple[int, int | float]


def waits_later(lags: Lags, coming: int) -> int:
    """What waits at the second moment if so many messages come until then."""
    first, second = lags
    return first + int(second * coming) if isinstance(second, float) else second


@dataclass(frozen=True, slots=True)
class Queue:
    """A message queue, or a partition of Kafka (broker is empty), as one group has got on with it.

    oldest, newest: offsets of the queue, newest is the next to be written. committed: of the group, None: nothing was.
    pulled: RocketMQ's pull offset. consumed_at, stored_at: ms, store times of the last message consumed and of the
    newest; 0: there is none. owner: id of the client that has it, or empty.
    """

    topic: str
    broker: str
    number: int
    oldest: int
    newest: int
    committed: int | None
    pulled: int
    consumed_at: int
    stored_at: int
    owner: str = ""

    @property
    def lag(self) -> int:
        return self.newest - (self.committed or 0)


@dataclass(frozen=True, slots=True)
class Held:
    """A process queue of a RocketMQ client. idle: ms since something was consumed."""

    topic: str
    broker: str
    number: int
    committed: int
    cached: int
    cached_from: int
    cached_to: int
    idle: int


@dataclass(frozen=True, slots=True)
class Client:
    """A member of a group. rate: messages a second; consume_ms: of one message; name: Kafka's client.id."""

    id: str
    address: str
    version: int
    version_name: str
    subscriptions: tuple[tuple[str, str], ...]
    started: int
    language: str = "JAVA"
    name: str = ""
    rate: float = 0.0
    consume_ms: float = 2.0
    failed_in_hour: int = 0
    held: tuple[Held, ...] = ()


@dataclass(frozen=True, slots=True)
class Moment:
    """A group at a moment (ms). tps: what the group consumes in a second. state: Kafka's."""

    time: int
    queues: tuple[Queue, ...]
    clients: tuple[Client, ...]
    tps: float
    state: str = "Stable"


@dataclass(frozen=True, slots=True)
class Group:
    """kind: push or pop (RocketMQ); classic, consumer or share (Kafka)."""

    name: str
    kind: str
    moments: tuple[Moment, ...]

    def put_rate(self, topic: str, moment: int) -> float:
        """Messages a second that come to a topic."""
        first, last = self.moments[0], self.moments[-1]
        written = sum(
            after.newest - before.newest
            for before, after in zip(first.queues, last.queues, strict=True)
            if before.topic == topic
        )
        return max(0.0, written * 1000 / max(1, last.time - first.time))


@dataclass(frozen=True, slots=True)
class Cluster:
    """number: of the draw. release: of the tools that look at it."""

    number: int
    product: Product
    release: str
    brokers: tuple[str, ...]
    groups: tuple[Group, ...]

    @property
    def topics(self) -> tuple[str, ...]:
        """Every topic, those of retries too."""
        return tuple(dict.fromkeys(queue.topic for group in self.groups for queue in group.moments[0].queues))

    @property
    def broker_version(self) -> str:
        return "V" + self.release.removesuffix("-incubating").replace(".", "_")

    def address_of(self, broker: str) -> str:
        return f"{address(self.brokers.index(broker))}:{BROKER_PORT}"

    @staticmethod
    def now() -> int:
        """The machine's own time, in which the clients of a cluster live: the tools compare with it."""
        return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster, what of it is shown (a key of :data:`COMMANDS`), and the causes, empty of a healthy one."""

    cluster: Cluster
    shown: str
    kind: str
    truth: frozenset[str]

    def as_json(self) -> dict[str, Any]:
        """For a recording: process queues that no tool complains of are left out."""
        fields = {**asdict(self), "truth": sorted(self.truth)}
        for moment in (moment for group in fields["cluster"]["groups"] for moment in group["moments"]):
            moment["queues"] = [list(queue.values()) for queue in moment["queues"]]
            for client in moment["clients"]:
                client["held"] = [held for held in client["held"] if held["idle"] > QUIET]
        return fields
