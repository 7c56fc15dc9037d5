"""What files say about a system at one moment, in the words of the system they come from.

Every state names the file it was read from and the moment it speaks of (ms since 1970, None if nothing tells). A number
that a file does not hold is None, never 0.
"""

from __future__ import annotations

from dataclasses import field, fields
from typing import Literal

from pyengine._engine.rocketmq.broker.consume_lag import delay
from pyengine._engine.rocketmq.client.consume_rates import Stuck
from pyengine.dataclass import dataclass
from pyengine.topology import BrokerConfiguration

HERE = "this process"  # stands for the file of what runs in this process
ALL_QUEUES = -1


@dataclass(frozen=True, slots=True)
class Remark:
    """A part of a file that was not understood; it was left out. line: 1-based, 0 = the whole file."""

    file: str
    line: int
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class DestinationState:
    """An ActiveMQ queue or topic (DestinationViewMBean, or a line of dstat). Counts are since the broker's start.

    message_groups: group -> consumer id of its owner. dlq: the broker itself calls it a dead-letter queue.
    """

    file: str
    time: int | None
    broker: str
    name: str
    kind: Literal["queue", "topic"]
    queue_size: int
    consumer_count: int
    producer_count: int | None = None
    enqueue_count: int | None = None
    dequeue_count: int | None = None
    dispatch_count: int | None = None
    expired_count: int | None = None
    in_flight_count: int | None = None
    blocked_sends: int | None = None
    memory_percent: int | None = None
    max_page_size: int | None = None
    paused: bool = False
    dlq: bool = False
    message_groups: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SubscriptionState:
    """An ActiveMQ subscription (SubscriptionViewMBean). awaiting: sent and not acknowledged."""

    file: str
    time: int | None
    broker: str
    destination: str
    kind: Literal["queue", "topic"]
    client_id: str
    consumer_id: str
    prefetch: int
    selector: str = ""
    exclusive: bool = False
    active: bool = True
    slow: bool = False
    durable: bool = False
    subscription_name: str = ""
    priority: int = 0
    no_local: bool = False
    awaiting: int | None = None
    pending: int | None = None
    enqueue_counter: int | None = None
    dequeue_counter: int | None = None
    dispatched_counter: int | None = None
    discarded: int | None = None

    @property
    def label(self) -> str:
        """How people call it."""
        return self.client_id or self.consumer_id or self.subscription_name


@dataclass(frozen=True, slots=True)
class OffsetState:
    """How far a group has got in one message queue (RocketMQ) or partition (Kafka, broker is empty).

    queue: its number, or ALL_QUEUES for numbers that an exporter gives of a broker's queues together. broker_offset:
    one past the newest message. consumer_offset: the next to consume; None: none committed. min_offset: the oldest
    still there. last_time: store time (ms) of the last message consumed; 0: the tool shows N/A or 1970.
    client: the owner of the queue; empty: none; None: the tool does not show it. tps: messages a second that the broker
    handed to the group of late, over all its topics. sight: which table of the file it stands in. dated: the time
    stands in the text, and is not that of the file. told_lag: the lag where a tool shows it without the offset it is
    counted from. verdict: a monitor's own word of the partition.
    """

    file: str
    time: int | None
    system: Literal["rocketmq", "kafka"]
    group: str
    topic: str
    broker: str
    queue: int
    broker_offset: int | None
    consumer_offset: int | None
    min_offset: int | None = None
    inflight: int | None = None
    last_time: int | None = None
    client: str | None = None
    tps: float | None = None
    sight: int = 0
    dated: bool = False
    told_lag: int | None = None
    verdict: str = ""

    @property
    def lag(self) -> int | None:
        """The tools' Delay or LAG, or None if an offset is unknown; negative: committed beyond the end."""
        if self.broker_offset is None or self.consumer_offset is None:
            return self.told_lag
        return delay(self.broker_offset, self.consumer_offset)

    @property
    def uncommitted(self) -> bool:
        """Kafka's tool shows no committed offset of a partition that holds or held messages: its lag is not known."""
        return self.system == "kafka" and self.consumer_offset is None and bool(self.broker_offset)

    @property
    def label(self) -> str:
        number = "" if self.queue == ALL_QUEUES else str(self.queue)
        return "/".join(part for part in (self.topic, self.broker, number) if part)


@dataclass(frozen=True, slots=True)
class ConsumerGroupState:
    """The state of a group as a whole, as Kafka shows it.

    state: Kafka's word (Stable, Empty, PreparingRebalance and so on), or empty where only its members are shown.
    members, idle: how many there are, and how many of them have no partition; None: not shown.
    well: partitions of all its topics that a monitor finds well and does not list.
    """

    file: str
    time: int | None
    group: str
    kind: Literal["consumer", "share", "streams"] = "consumer"
    state: str = ""
    members: int | None = None
    idle: int | None = None
    well: int = 0


@dataclass(frozen=True, slots=True)
class GroupState:
    """One line for a RocketMQ group. clients: how many are connected, None: not shown. diff_total: its backlog.

    tps: messages a second that are consumed. topic: of statsAll, which has a line for each; empty: all of the group's.
    in_tps: messages a second that come to that topic. model: CLUSTERING, BROADCASTING or empty.
    """

    file: str
    time: int | None
    group: str
    clients: int | None
    diff_total: int
    tps: float | None = None
    topic: str = ""
    in_tps: float | None = None
    model: str = ""


@dataclass(frozen=True, slots=True)
class QueueRange:
    """The oldest and the next offset of a message queue (topicStatus): what the broker has, regardless of consumers."""

    file: str
    time: int | None
    topic: str
    broker: str
    queue: int
    min_offset: int
    max_offset: int
    last_updated: int | None = None


@dataclass(frozen=True, slots=True)
class ProcessQueueState:
    """A RocketMQ client's process queue (ProcessQueueInfo). min_offset..max_offset: cached, unfinished messages."""

    topic: str
    broker: str
    queue: int
    commit_offset: int
    min_offset: int
    max_offset: int
    count: int
    size_mib: int
    locked: bool
    dropped: bool
    try_unlock_times: int
    last_lock: int
    last_pull: int
    last_consume: int

    @property
    def info(self) -> dict[str, int | bool]:
        """The fields of the real ProcessQueueInfo that tell a stuck queue."""
        return {
            "cachedMsgCount": self.count,
            "locked": self.locked,
            "droped": self.dropped,
            "tryUnlockTimes": self.try_unlock_times,
            "lastLockTimestamp": self.last_lock,
            "lastConsumeTimestamp": self.last_consume,
        }

    @property
    def label(self) -> str:
        return f"{self.topic}/{self.broker}/{self.queue}"


@dataclass(frozen=True, slots=True)
class ConsumeRates:
    """Rates of one topic in one client (ConsumeStatus): round trips in ms, messages a second, failures in an hour."""

    topic: str
    pull_rt: float
    pull_tps: float
    consume_rt: float
    ok_tps: float
    failed_tps: float
    failed_in_hour: int


@dataclass(frozen=True, slots=True)
class ClientState:
    """A RocketMQ client (ConsumerRunningInfo). properties: its parameters as the tool prints them."""

    file: str
    time: int | None
    client_id: str
    group: str
    properties: tuple[tuple[str, str], ...]
    subscriptions: tuple[tuple[str, str], ...]
    queues: tuple[ProcessQueueState, ...]
    rates: tuple[ConsumeRates, ...]

    def get(self, name: str, default: str = "") -> str:
        """A parameter of the client."""
        return dict(self.properties).get(name, default)

    @property
    def orderly(self) -> bool:
        return self.get("PROP_CONSUMEORDERLY").lower() == "true"


@dataclass(frozen=True, slots=True)
class UsageLimit:
    """A line of ActiveMQ's log that says that a limit stops producers.

    usage: whose limit it is, of systemUsage or of a policy entry's memoryLimit; "journal" is a store limit below one
    file of the journal, so that the store takes nothing. kind, destination: where the producer sends; None and empty
    where the line does not say. limit: bytes. blocked: for how many seconds, None: the line does not say.
    """

    file: str
    time: int | None
    line: int
    usage: Literal["memory", "store", "temp", "job_scheduler", "journal"]
    kind: Literal["queue", "topic"] | None = None
    destination: str = ""
    limit: int | None = None
    blocked: int | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class QueueProblem:
    """A client's queue as consumerStatus shows it. label: topic/broker/queue. words: the tool's own."""

    client_id: str
    label: str
    cause: Stuck
    words: str


@dataclass(slots=True)
class GroupCheck:
    """The verdicts of consumerStatus and consumerConnection on a group's clients.

    clients: their ids; one that stands there twice is two processes. different: the tool's words if they want
    different things, or empty. addresses: of each client, as far as they are shown. model: CLUSTERING, BROADCASTING or
    empty. tool: the command.
    """

    file: str
    time: int | None
    group: str
    clients: list[str] = field(default_factory=list)
    different: str = ""
    problems: list[QueueProblem] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    model: str = ""
    tool: str = "consumerStatus"


@dataclass(frozen=True, slots=True)
class FlowControlState:
    """A "so do flow control" line of rocketmq_client.log; the client writes one in a thousand.

    cause: "ack" is the limit of a POP consumer, "requests" that of a lite pull consumer; the lines of both name no
    offsets, those of a lite pull consumer no queue and no group.
    """

    file: str
    time: int | None
    line: int
    cause: Literal["count", "size", "span", "ack", "requests"]
    threshold: int | None
    min_offset: int | None
    max_offset: int | None
    group: str
    topic: str
    broker: str
    queue: int
    times: int

    @property
    def label(self) -> str:
        if not self.topic:
            return ""
        place = f"{self.topic}/{self.broker}"
        return place if self.queue < 0 else f"{place}/{self.queue}"  # below 0: all of the broker's, of a POP request


@dataclass(frozen=True, slots=True)
class OffsetMove:
    """A line of a client's or a broker's log: a pull asked for an offset that the broker does not have.

    asked: by the client, None: not shown. given: where it goes on. lowest and highest: what the broker has, as far as
    the line says.
    """

    file: str
    time: int | None
    line: int
    group: str
    topic: str
    broker: str
    queue: int | None
    asked: int | None
    given: int | None
    lowest: int | None = None
    highest: int | None = None

    @property
    def label(self) -> str:
        place = "/".join(str(part) for part in (self.topic, self.broker, self.queue) if part not in ("", None))
        return place or "?"


EventKind = Literal[
    "subscription", "paused", "resumed", "forbidden", "pull_expired", "not_locked", "locked", "not_unlocked", "expired",
    "failed", "rebalanced", "poll_late", "unreached", "reached", "unanswered", "closed", "idle", "no_route",
    "node_unreached",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ClientEvent:
    """Another line of a client's or a broker's log that tells why a group waits.

    kind: "subscription" (the broker has another subscription than the one asked for: codes 24 and 25), "paused" and
    "resumed" (the program suspended the consumer), "forbidden" (the broker refuses the group: code 16), "pull_expired"
    (no pull for two minutes), "not_locked" and "locked" (a queue consumed in order), "not_unlocked" (a queue given up
    whose listener still runs), "expired" (a message sent back after consumeTimeout), "failed" (the listener threw, or
    answered null or not OK), "rebalanced" (client, members and queues of one topic), "poll_late" (of Kafka: poll()
    later than max.poll.interval.ms), "unreached" and "reached" (a name server or broker), "unanswered" (a request got
    no answer in time), "closed" and "idle" (a connection), "no_route" (a topic that the name server does not know),
    "node_unreached" (a broker of Kafka). label: topic/broker/queue, of connections the address. words: the log's own.
    """

    file: str
    time: int | None
    line: int
    kind: EventKind
    group: str
    topic: str = ""
    label: str = ""
    client_id: str = ""
    words: str = ""
    members: int | None = None
    queues: int | None = None
    owned: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """What was read from a file. what: the kind. times: the moments that it speaks of. product: the software that
    wrote it and its version, as far as it shows. needs: what to bring too, if it has no backlog by itself;
    empty where it does.
    """

    file: str
    what: str
    times: tuple[int, ...] = ()
    product: str = ""
    needs: str = ""


@dataclass(frozen=True, slots=True)
class ThreadState:
    """A thread in a dump. frames: innermost first, as the tool prints them. state: the tool's own word.

    ident: the tool's number of it, for names are not unique: every ActiveMQ connection has a Session Task-1. Empty: not
    shown. holds: addresses of the locks it has. cpu: ms that it has run; None: not shown (Java 8, jcmd, py-spy).
    """

    name: str
    state: str
    frames: tuple[str, ...]
    waiting_for: str = ""
    ident: str = ""
    holds: tuple[str, ...] = ()
    cpu: float | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same thread in two dumps: systems give the number of a thread that ended to a new one."""
        return self.name, self.ident


@dataclass(frozen=True, slots=True)
class ThreadDump:
    """All threads of one process at one moment. process: what the dump calls it; jstack does not say."""

    file: str
    time: int | None
    tool: Literal["jstack", "arthas", "py-spy", "python", "consumerStatus"]
    process: str
    threads: tuple[ThreadState, ...]


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """One progress report of a Spark stream. behind: offsets behind the newest, by the source, or None."""

    file: str
    time: int | None
    query: str
    batch: int
    input_rows: int
    input_per_second: float | None
    processed_per_second: float | None
    trigger_ms: int | None
    behind: int | None


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """Queues of a RocketMQ topic (topics.json)."""

    file: str
    topic: str
    read_queues: int
    write_queues: int
    perm: int


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """A RocketMQ group's settings (subscriptionGroup.json)."""

    file: str
    group: str
    consume_enable: bool
    retry_max_times: int
    retry_queues: int


@dataclass(slots=True)
class Evidence:
    """Everything that was read, from all files together."""

    destinations: list[DestinationState] = field(default_factory=list)
    subscriptions: list[SubscriptionState] = field(default_factory=list)
    offsets: list[OffsetState] = field(default_factory=list)
    groups: list[GroupState] = field(default_factory=list)
    consumer_groups: list[ConsumerGroupState] = field(default_factory=list)
    clients: list[ClientState] = field(default_factory=list)
    checks: list[GroupCheck] = field(default_factory=list)
    flow_controls: list[FlowControlState] = field(default_factory=list)
    offset_moves: list[OffsetMove] = field(default_factory=list)
    events: list[ClientEvent] = field(default_factory=list)
    ranges: list[QueueRange] = field(default_factory=list)
    dumps: list[ThreadDump] = field(default_factory=list)
    streams: list[StreamProgress] = field(default_factory=list)
    topics: list[TopicSettings] = field(default_factory=list)
    group_settings: list[GroupSettings] = field(default_factory=list)
    brokers: list[BrokerConfiguration] = field(default_factory=list)
    usage_limits: list[UsageLimit] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)

    def add(self, other: Evidence) -> None:
        """Take over what another reading found."""
        for each in fields(self):
            getattr(self, each.name).extend(getattr(other, each.name))

    @property
    def count(self) -> int:
        """How many states were read; remarks and sources are none."""
        return sum(len(getattr(self, each.name)) for each in fields(self) if each.name not in ("remarks", "sources"))
