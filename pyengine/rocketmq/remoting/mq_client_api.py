"""What passes between a RocketMQ client and its brokers: the remoting calls, as objects.

A client talks to one :class:`MQClientAPI`, which stands for the name server and all brokers of a cluster: an embedded
one (:mod:`.broker`) or a real one over TCP (:mod:`.cluster`). A MessageQueue's broker name selects the broker.
Names are those of org.apache.rocketmq.client and .remoting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Any, Protocol

from pyengine._engine.rocketmq.broker.consume_queue import PullCode
from pyengine._engine.rocketmq.client.outgoing import send_result, unique_ids
from pyengine._engine.rocketmq.client.validators import attached
from pyengine._engine.rocketmq.commands.requests import FILTER_DATA_NOT_EXIST as FILTER_DATA_NOT_EXIST
from pyengine._engine.rocketmq.commands.requests import FLAG_COMMIT_OFFSET as FLAG_COMMIT_OFFSET
from pyengine._engine.rocketmq.commands.requests import FLAG_LITE_PULL as FLAG_LITE_PULL
from pyengine._engine.rocketmq.commands.requests import FLAG_SUBSCRIPTION as FLAG_SUBSCRIPTION
from pyengine._engine.rocketmq.commands.requests import FLAG_SUSPEND as FLAG_SUSPEND
from pyengine._engine.rocketmq.commands.requests import INVALID_PARAMETER as INVALID_PARAMETER
from pyengine._engine.rocketmq.commands.requests import MESSAGE_ILLEGAL as MESSAGE_ILLEGAL
from pyengine._engine.rocketmq.commands.requests import NO_MESSAGE as NO_MESSAGE
from pyengine._engine.rocketmq.commands.requests import NO_PERMISSION as NO_PERMISSION
from pyengine._engine.rocketmq.commands.requests import QUERY_NOT_FOUND as QUERY_NOT_FOUND
from pyengine._engine.rocketmq.commands.requests import SERVICE_NOT_AVAILABLE as SERVICE_NOT_AVAILABLE
from pyengine._engine.rocketmq.commands.requests import SUBSCRIPTION_NOT_EXIST as SUBSCRIPTION_NOT_EXIST
from pyengine._engine.rocketmq.commands.requests import SUBSCRIPTION_NOT_LATEST as SUBSCRIPTION_NOT_LATEST
from pyengine._engine.rocketmq.commands.requests import SUBSCRIPTION_PARSE_FAILED as SUBSCRIPTION_PARSE_FAILED
from pyengine._engine.rocketmq.commands.requests import SYSTEM_ERROR as SYSTEM_ERROR
from pyengine._engine.rocketmq.commands.requests import TOPIC_NOT_EXIST as TOPIC_NOT_EXIST
from pyengine._engine.rocketmq.commands.requests import ConsumeFromWhere as ConsumeFromWhere
from pyengine._engine.rocketmq.commands.requests import HalfMessage as HalfMessage
from pyengine._engine.rocketmq.commands.requests import HeartbeatData as HeartbeatData
from pyengine._engine.rocketmq.commands.requests import MessageModel as MessageModel
from pyengine._engine.rocketmq.commands.requests import PullMessageRequest as PullMessageRequest
from pyengine._engine.rocketmq.commands.requests import PullResult as PullResult
from pyengine._engine.rocketmq.commands.requests import PullStatus as PullStatus
from pyengine._engine.rocketmq.commands.requests import SendResult as SendResult
from pyengine._engine.rocketmq.commands.requests import SendStatus as SendStatus
from pyengine._engine.rocketmq.commands.requests import SubscriptionData as SubscriptionData
from pyengine.attributes import named_arguments
from pyengine.clock import Clock
from pyengine.dataclass import dataclass
from pyengine.errors import ConfigurationError, MQClientError
from pyengine.rocketmq.message import (
    Message,
    MessageExt,
)
from pyengine.rocketmq.message import plain_text as plain_text
from pyengine.rocketmq.tables.allocation import MessageQueue
from pyengine.whole_numbers import whole_number as whole_number

OFFSET_TIMEOUT = 5000  # ms that a query or an update of an offset may take (RemoteBrokerOffsetStore)
UNIQUE_KEY_QUERY = "_UNIQUE_KEY_QUERY"  # a field of a query whose key is a message's unique id

PULL_STATUS: dict[int, PullStatus] = {  # by the code of the answer
    PullCode.SUCCESS: PullStatus.FOUND,
    PullCode.NOT_FOUND: PullStatus.NO_NEW_MSG,
    PullCode.RETRY_IMMEDIATELY: PullStatus.NO_MATCHED_MSG,
    PullCode.OFFSET_MOVED: PullStatus.OFFSET_ILLEGAL,
}

CLIENT = "127.0.0.1:0"  # the address of every client; no process listens there


def check_listed(name: str, given: object, example: str) -> None:
    """Check that a value is iterable and not a string. Raises ConfigurationError, whose hint is ``example``."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ConfigurationError(name, repr(given), "no list", f"give one, as {example}")


def queue_key(queue: MessageQueue) -> tuple[tuple[str, object], ...]:
    """A queue as the key of a map in a command's body."""
    return ("brokerName", queue.broker_name), ("queueId", queue.queue_id), ("topic", queue.topic)


def queue_of(found: Any) -> MessageQueue:
    """The queue in a command's body, also as the key of a map."""
    pairs = dict(found)
    return MessageQueue(pairs["topic"] or "", pairs["brokerName"] or "", pairs["queueId"])


def subscription_body(subscription: SubscriptionData) -> dict[str, Any]:
    """The fields of the wire's SubscriptionData."""
    return {
        "topic": subscription.topic,
        "subString": subscription.sub_string,
        "tagsSet": sorted(subscription.tags_set),
        "codeSet": sorted(subscription.code_set),
        "subVersion": subscription.sub_version,
        "expressionType": subscription.expression_type,
    }


def batch_result(
    status: SendStatus, messages: Sequence[Message], ids: str, queue: MessageQueue, first_offset: int
) -> SendResult:
    """What a batch came to. ids: the broker's, one for each message, joined by commas."""
    return send_result(status, unique_ids(messages), ids, queue, first_offset)


@named_arguments
@dataclass(slots=True)
class ClientEvents:
    """How the brokers reach a client; called on any thread, never while the broker is being changed.

    consumer_ids_changed: (group) another member of the group came or went (NOTIFY_CONSUMER_IDS_CHANGED).
    reset_offset: (group, topic, offsets) an administrator wants the queues consumed from there
    (RESET_CONSUMER_CLIENT_OFFSET). running_info: (group, with stacks) what the group's member is doing, the fields of
    ConsumerRunningInfo; None if there is none (GET_CONSUMER_RUNNING_INFO). offsets: (group, topic) where the member
    is in each of its queues (GET_CONSUMER_STATUS_FROM_CLIENT). check_transaction: (group, half message, what to say
    where) what became of it (CHECK_TRANSACTION_STATE). consume_directly: (group, message) the listener's answer,
    the fields of ConsumeMessageDirectlyResult; None if there is none (CONSUME_MESSAGE_DIRECTLY). reply: (message)
    the reply to a request (PUSH_REPLY_MESSAGE_TO_CLIENT).
    """

    consumer_ids_changed: Callable[[str], None] = field(default=lambda group: None)
    reset_offset: Callable[[str, str, dict[MessageQueue, int]], None] = field(default=lambda *asked: None)
    running_info: Callable[[str, bool], dict[str, Any] | None] = field(default=lambda group, with_stacks: None)
    offsets: Callable[[str, str], dict[MessageQueue, int]] = field(default=lambda group, topic: {})
    consume_directly: Callable[[str, MessageExt], dict[str, Any] | None] = field(default=lambda group, message: None)
    check_transaction: Callable[[MessageExt, HalfMessage], None] = field(default=lambda message, half: None)
    reply: Callable[[MessageExt], None] = field(default=lambda message: None)


PullCallback = Callable[[PullResult | Exception], None]
SendCallback = Callable[[SendResult | Exception], None]


def with_key(messages: Iterable[MessageExt], topic: str, key: str, *, unique: bool) -> list[MessageExt]:
    """Of what a broker found, what has the key indeed: it looks keys up by their hash codes. Raises MQClientError,
    code 208, if nothing has.
    """
    found = []
    for message in messages:
        keys = [message.msg_id] if unique else (message.keys or "").split(" ")
        if message.topic == topic and key in keys:
            found.append(message)
    if not found:
        raise no_message("key")
    return found


def mq_client_id(client_ip: str, instance_name: str, unit_name: str | None) -> str:
    """``ip@instance[@unit]`` (ClientConfig.buildMQClientId)."""
    unit = f"@{unit_name}" if unit_name and not unit_name.isspace() else ""
    return f"{client_ip}@{instance_name}{unit}"


def no_message(by: str) -> MQClientError:
    """What a look-up by a key or an id ends with that finds nothing."""
    return MQClientError(attached(f"query message by {by} finished, but no message.", NO_MESSAGE), NO_MESSAGE)


class MQClientAPI(Protocol):
    """The cluster as a client sees it. Every call is safe from any thread. Refusals are MQBrokerError with the code; a
    consumer logs any other error of a call, and tries again where the real client does.

    clock: what the brokers live by; clients live by the same.
    """

    @property
    def clock(self) -> Clock: ...

    def register_client(self, client_id: str, events: ClientEvents) -> None:
        """The client is connected; a second call with the same id replaces the events."""

    def unregister_client(self, client_id: str, group: str) -> None:
        """The client leaves the group: its orderly locks stay until they expire, the others of the group are notified.
        One that is in no group any more may be forgotten.
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
        if there is none.
        """

    def get_consumer_id_list(self, topic: str, group: str) -> list[str]:
        """Client ids of the group's members, as one broker of the topic knows them; MQBrokerError if it knows none."""

    def pull_message(self, request: PullMessageRequest, callback: PullCallback) -> None:
        """Answer through ``callback``, once: at once or after long polling, on any thread, no broker lock held."""

    def query_consumer_offset(self, group: str, queue: MessageQueue, timeout_millis: int = OFFSET_TIMEOUT) -> int:
        """The committed offset. OffsetNotFoundError if there is none; 0 for a young queue (spec rocketmq 4.6)."""

    def update_consumer_offset(
        self, group: str, queue: MessageQueue, offset: int, timeout_millis: int = OFFSET_TIMEOUT
    ) -> None:
        """Store the offset, lower ones too (one way)."""

    def max_offset(self, queue: MessageQueue) -> int:
        """The offset that the next message will get."""

    def min_offset(self, queue: MessageQueue) -> int:
        """The smallest offset that is still there."""

    def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        """The first offset stored at ``timestamp`` (ms) or later (spec rocketmq 4.6)."""

    def query_message(
        self, topic: str, key: str, max_num: int, begin: int, end: int, *, unique: bool = False
    ) -> list[MessageExt]:
        """The newest messages of a topic that have a key, at most ``max_num`` of each broker; begin, end: ms, of their
        storing. unique: the key is the message's own id. Raises MQClientError if there is none.
        """

    def view_message(self, topic: str, offset_msg_id: str) -> MessageExt:
        """The message with an id of a broker. Raises MQClientError for a malformed id, MQBrokerError if the
        broker has no such message.
        """

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

    def send_message_async(
        self, group: str, message: Message, queue: MessageQueue | None, callback: SendCallback
    ) -> None:
        """The same; the answer, or why there is none, goes to ``callback``, once, on any thread."""

    def send_message_one_way(self, group: str, message: Message, queue: MessageQueue | None = None) -> None:
        """The same, without an answer."""

    def send_batch(self, group: str, messages: Sequence[Message], queue: MessageQueue | None = None) -> SendResult:
        """Store messages of one topic one behind the other in one queue. The result's ids are joined by commas."""
