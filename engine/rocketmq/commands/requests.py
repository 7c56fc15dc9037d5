"""Requests and answers that RocketMQ's clients and brokers exchange, as values: a client over TCP makes headers and
bodies of them, an embedded broker takes them as they are. Names are those of org.apache.rocketmq.client and .remoting.
"""

from __future__ import annotations

from enum import Enum

from pyengine._engine.rocketmq.commands.defaults import PULL_BATCH_SIZE, PULL_BATCH_SIZE_IN_BYTES
from pyengine._engine.rocketmq.commands.message import MessageExt
from pyengine._engine.rocketmq.commands.message_queue import MessageQueue
from pyengine.attributes import frozen, named_arguments
from pyengine.dataclass import dataclass

# Request codes that both ends know and that no header stands for.
CHECK_TRANSACTION_STATE = 39
NOTIFY_CONSUMER_IDS_CHANGED = 40
CHECK_CLIENT_CONFIG = 46
GET_CONSUMER_STATUS_FROM_CLIENT = 221
GET_CONSUMER_RUNNING_INFO = 307
CONSUME_MESSAGE_DIRECTLY = 309
SEND_BATCH_MESSAGE = 320

# Response codes that clients tell apart.
SYSTEM_ERROR = 1
SYSTEM_BUSY = 2
REQUEST_CODE_NOT_SUPPORTED = 3
FLUSH_DISK_TIMEOUT = 10
MESSAGE_ILLEGAL = 13
SERVICE_NOT_AVAILABLE = 14
NO_PERMISSION = 16
TOPIC_NOT_EXIST = 17
QUERY_NOT_FOUND = 22
SUBSCRIPTION_PARSE_FAILED = 23
SUBSCRIPTION_NOT_EXIST = 24
SUBSCRIPTION_NOT_LATEST = 25
SUBSCRIPTION_GROUP_NOT_EXIST = 26
FILTER_DATA_NOT_EXIST = 27
INVALID_PARAMETER = 29
CONSUMER_NOT_ONLINE = 206
NO_MESSAGE = 208

MASTER = 0  # the broker id of a master

# Bits of a pull's sys_flag (PullSysFlag).
FLAG_COMMIT_OFFSET = 1
FLAG_SUSPEND = 2
FLAG_SUBSCRIPTION = 4
FLAG_LITE_PULL = 16


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
    FLAG_SUSPEND a pull that finds nothing waits up to ``suspend_timeout`` for a message. sub_expression is None if
    the broker must use the subscription of the last heartbeat.
    """

    client_id: str
    consumer_group: str
    queue: MessageQueue
    queue_offset: int
    max_nums: int = PULL_BATCH_SIZE
    max_bytes: int = PULL_BATCH_SIZE_IN_BYTES
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


@named_arguments
@frozen
@dataclass(frozen=True, slots=True)
class HeartbeatData:
    """One group of a client, as it tells the broker (ConsumerData with the client's id).

    consume_type: CONSUME_PASSIVELY of a push consumer, CONSUME_ACTIVELY of one that pulls itself.
    """

    client_id: str
    group: str
    message_model: MessageModel
    consume_from_where: ConsumeFromWhere
    subscriptions: tuple[SubscriptionData, ...]
    unit_mode: bool = False
    consume_type: str = "CONSUME_PASSIVELY"


@frozen
@dataclass(frozen=True, slots=True)
class HalfMessage:
    """A half message as its broker knows it. address: of the broker. position: in its log. offset: among half messages.

    transaction_id, msg_id: the ids that its producer gave it.
    """

    group: str
    address: str
    broker_name: str
    position: int
    offset: int
    transaction_id: str
    msg_id: str
