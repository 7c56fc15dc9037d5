"""What passes between a RocketMQ client and its brokers: the remoting calls, as objects.

A client talks to one :class:`MQClientAPI`, which stands for the name server and all brokers of a cluster: an embedded
one (:mod:`.broker`) or a real one over TCP (:mod:`.cluster`). A MessageQueue's broker name says which broker is meant.
Names are those of org.apache.rocketmq.client and .remoting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from operator import index
from typing import Protocol, cast

from pyengine.attributes import frozen
from pyengine.clock import Clock
from pyengine.errors import ConfigurationError
from pyengine.rocketmq.message import Message, MessageExt
from pyengine.rocketmq.tables.allocation import MessageQueue
from pyengine.topology.checked import check

CLIENT = "127.0.0.1:0"  # the address of every client; nobody listens there

# Response codes that clients tell apart.
SYSTEM_ERROR = 1
MESSAGE_ILLEGAL = 13
SERVICE_NOT_AVAILABLE = 14
NO_PERMISSION = 16
TOPIC_NOT_EXIST = 17
QUERY_NOT_FOUND = 22
SUBSCRIPTION_PARSE_FAILED = 23
SUBSCRIPTION_NOT_EXIST = 24
SUBSCRIPTION_NOT_LATEST = 25
FILTER_DATA_NOT_EXIST = 27
INVALID_PARAMETER = 29

# Bits of a pull's sys_flag (PullSysFlag).
FLAG_COMMIT_OFFSET = 1
FLAG_SUSPEND = 2
FLAG_SUBSCRIPTION = 4


def whole_number(name: str, value: object, limit: int = 2**63) -> int:
    """A number as Java's long, or int, takes it; True counts as 1. Raises ConfigurationError for anything else."""
    try:
        number = index(value)  # type: ignore[arg-type]
    except TypeError:
        number = limit
    if not -limit <= number < limit:
        raise ConfigurationError(name, repr(value), f"a whole number of {limit.bit_length()} bits is needed")
    return number


def plain_text(name: str, value: object) -> str:
    """A text, which Java's compiler demands. Raises ConfigurationError for anything else."""
    check(name, value, str)
    return cast(str, value)


def check_listed(name: str, given: object, example: str) -> None:
    """That something can be walked and is no text. Raises ConfigurationError, which says what to give: ``example``."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ConfigurationError(name, repr(given), "no list", f"give one, as {example}")


class MessageModel(Enum):
    """CLUSTERING: a group shares the queues. BROADCASTING: every client gets every message."""

    CLUSTERING = "CLUSTERING"
    BROADCASTING = "BROADCASTING"


class ConsumeFromWhere(Enum):
    """Where a group without offsets starts; the three deprecated names act as CONSUME_FROM_LAST_OFFSET."""

    CONSUME_FROM_LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST = "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST"
    CONSUME_FROM_MIN_OFFSET = "CONSUME_FROM_MIN_OFFSET"
    CONSUME_FROM_MAX_OFFSET = "CONSUME_FROM_MAX_OFFSET"
    CONSUME_FROM_FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    CONSUME_FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


class PullStatus(Enum):
    """What a pull came to."""

    FOUND = "FOUND"
    NO_NEW_MSG = "NO_NEW_MSG"
    NO_MATCHED_MSG = "NO_MATCHED_MSG"
    OFFSET_ILLEGAL = "OFFSET_ILLEGAL"


@dataclass(slots=True)
class SubscriptionData:
    """What a group wants of a topic (spec rocketmq 8.1).

    sub_string: the text as stored. tags_set, code_set: tags and their hash codes, empty for everything.
    expression_type: ``TAG`` or ``SQL92``. sub_version: ms, grows with every change.
    """

    topic: str
    sub_string: str
    tags_set: frozenset[str] = frozenset()
    code_set: frozenset[int] = frozenset()
    expression_type: str = "TAG"
    sub_version: int = 0


@frozen
@dataclass(frozen=True, slots=True)
class PullMessageRequest:
    """One pull (PullMessageRequestHeader). Times in ms, sizes in bytes.

    sys_flag: FLAG_* bits; with FLAG_COMMIT_OFFSET the broker stores ``commit_offset`` for the group on the way; with
    FLAG_SUSPEND a pull that finds nothing waits up to ``suspend_timeout`` for a message. sub_expression is None where
    the broker is to use the subscription of the last heartbeat.
    """

    client_id: str
    consumer_group: str
    queue: MessageQueue
    queue_offset: int
    max_nums: int = 32
    max_bytes: int = 262144
    sys_flag: int = FLAG_SUSPEND
    commit_offset: int = 0
    suspend_timeout: int = 15000
    timeout_millis: int = 30000
    sub_expression: str | None = None
    sub_version: int = 0
    expression_type: str = "TAG"


@frozen
@dataclass(frozen=True, slots=True)
class PullResult:
    """What the broker found. next_begin_offset: where to pull next. messages: copies of the client's own; in FOUND."""

    status: PullStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    messages: tuple[MessageExt, ...] = ()

    def __str__(self) -> str:
        return (
            f"PullResult [pullStatus={self.status.name}, nextBeginOffset={self.next_begin_offset}, "
            f"minOffset={self.min_offset}, maxOffset={self.max_offset}, msgFoundList={len(self.messages)}]"
        )


class SendStatus(Enum):
    """How far a sent message got. FLUSH_DISK_TIMEOUT: it is stored and will be consumed, but the disk did not confirm
    it (SYNC_FLUSH); send it again if that is too little. FLUSH_SLAVE_TIMEOUT, SLAVE_NOT_AVAILABLE: the master has
    stored it, a slave has not (SYNC_MASTER).
    """

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


@frozen
@dataclass(frozen=True, slots=True)
class SendResult:
    """Where a sent message lies. msg_id: the client's id. offset_msg_id: the broker's."""

    status: SendStatus
    msg_id: str
    offset_msg_id: str
    queue: MessageQueue
    queue_offset: int


@frozen
@dataclass(frozen=True, slots=True)
class HeartbeatData:
    """One group of a client, as the broker is told (ConsumerData with the client's id)."""

    client_id: str
    group: str
    message_model: MessageModel
    consume_from_where: ConsumeFromWhere
    subscriptions: tuple[SubscriptionData, ...]
    unit_mode: bool = False


@dataclass(slots=True)
class ClientEvents:
    """How the brokers reach a client; called on any thread, never while the broker is being changed.

    consumer_ids_changed: (group) another member of the group came or went (NOTIFY_CONSUMER_IDS_CHANGED).
    """

    consumer_ids_changed: Callable[[str], None] = field(default=lambda group: None)


PullCallback = Callable[[PullResult | Exception], None]


class MQClientAPI(Protocol):
    """The cluster as a client sees it. Every call is safe from any thread. Refusals are MQBrokerError with the code; a
    consumer logs whatever else a call raises, and tries again where the real client does.

    clock: what the brokers live by; clients live by the same.
    """

    @property
    def clock(self) -> Clock: ...

    def register_client(self, client_id: str, events: ClientEvents) -> None:
        """The client is connected; a second call with the same id replaces the events."""

    def unregister_client(self, client_id: str, group: str) -> None:
        """The client leaves the group: its orderly locks stay until they expire, the others of the group are told. One
        that is in no group any more may be forgotten.
        """

    def disconnect(self, client_id: str) -> None:
        """The client is gone, with all its groups: nothing of it is kept."""

    def send_heartbeat(self, heartbeat: HeartbeatData) -> None:
        """The client is alive; a new member or a changed subscription is made known to the group's members."""

    def check_client(self, group: str, client_id: str, subscription: SubscriptionData) -> None:
        """Asked at a consumer's start for each subscription that is not by tags (CHECK_CLIENT_CONFIG).

        Raises MQClientError for an expression that a broker cannot filter by.
        """

    def topic_subscribe_info(self, topic: str) -> list[MessageQueue] | None:
        """All queues that can be read, None if there is no such topic."""

    def publish_queues(self, topic: str) -> list[MessageQueue]:
        """All queues that a message can be sent to; an unknown topic is made where the broker may. Raises MQClientError
        where there is none.
        """

    def get_consumer_id_list(self, topic: str, group: str) -> list[str]:
        """Client ids of the group's members, as one broker of the topic knows them; MQBrokerError if it knows none."""

    def pull_message(self, request: PullMessageRequest, callback: PullCallback) -> None:
        """Answer through ``callback``, once: at once or after long polling, on any thread, no broker lock held."""

    def query_consumer_offset(self, group: str, queue: MessageQueue, timeout_millis: int = 5000) -> int:
        """The committed offset. OffsetNotFoundError where there is none; 0 for a young queue (spec rocketmq 4.6)."""

    def update_consumer_offset(self, group: str, queue: MessageQueue, offset: int, timeout_millis: int = 5000) -> None:
        """Store the offset, lower ones too (one way)."""

    def max_offset(self, queue: MessageQueue) -> int:
        """The offset that the next message will get."""

    def min_offset(self, queue: MessageQueue) -> int:
        """The smallest offset that is still there."""

    def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        """The first offset stored at ``timestamp`` (ms) or later (spec rocketmq 4.6)."""

    def lock_batch_mq(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> set[MessageQueue]:
        """The queues (of one broker) that the client now holds for ordered consumption."""

    def unlock_batch_mq(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        """Give locks back; those of other clients stay."""

    def consumer_send_message_back(
        self, group: str, message: MessageExt, delay_level: int, max_reconsume_times: int
    ) -> None:
        """Give a message back for a later try, or for the dead letters (spec rocketmq 6.2)."""

    def send_message(self, group: str, message: Message, queue: MessageQueue | None = None) -> SendResult:
        """Store a message; without a queue the next one of the topic. Makes the topic where the broker may."""
