"""What clients ask of a broker: heartbeats, sends, pulls, offsets and locks (the processors of the real broker)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from itertools import count
from typing import Any

from pyengine._engine.rocketmq.broker.consume_queue import PullCode
from pyengine._engine.rocketmq.client.validators import check_topic
from pyengine._engine.rocketmq.commands.bodies import read_body, write_body
from pyengine._engine.rocketmq.commands.headers import read_header, write_header
from pyengine._engine.rocketmq.commands.origin import Origin
from pyengine._engine.rocketmq.commands.requests import (
    CHECK_TRANSACTION_STATE,
    FLUSH_DISK_TIMEOUT,
    NOTIFY_CONSUMER_IDS_CHANGED,
    REQUEST_CODE_NOT_SUPPORTED,
    SEND_BATCH_MESSAGE,
    SUBSCRIPTION_GROUP_NOT_EXIST,
    SYSTEM_BUSY,
)
from pyengine._engine.rocketmq.commands.stored_message import (
    decode_client_messages,
    encode_stored,
    parse_properties,
)
from pyengine._engine.wire.remoting import RemotingCommand
from pyengine.errors import (
    MQBrokerError,
    MQClientError,
    OffsetNotFoundError,
    ProtocolError,
    PyengineError,
)
from pyengine.rocketmq import message as names
from pyengine.rocketmq.broker.broker_node import BrokerNode
from pyengine.rocketmq.broker.filter import filter_of
from pyengine.rocketmq.broker.message_check import illegal_message
from pyengine.rocketmq.broker.pulls import PulledFrames
from pyengine.rocketmq.broker.send_message_processor import RemoteSend, Stored
from pyengine.rocketmq.broker.topic_config import READABLE
from pyengine.rocketmq.broker.transactions import COMMIT, ROLLBACK
from pyengine.rocketmq.message import Message, MessageExt
from pyengine.rocketmq.remoting.mq_client_api import (
    FLAG_SUBSCRIPTION,
    INVALID_PARAMETER,
    MESSAGE_ILLEGAL,
    NO_PERMISSION,
    QUERY_NOT_FOUND,
    SUBSCRIPTION_PARSE_FAILED,
    SYSTEM_ERROR,
    UNIQUE_KEY_QUERY,
    ClientEvents,
    ConsumeFromWhere,
    HeartbeatData,
    MessageModel,
    PullMessageRequest,
    SubscriptionData,
)
from pyengine.rocketmq.remoting.stored_message import host_bytes
from pyengine.rocketmq.server.admin_requests import AdminRequests
from pyengine.rocketmq.server.clients import ClientTable, RemoteClient
from pyengine.rocketmq.server.connections import Connection, answer, refusal, reply
from pyengine.rocketmq.server.groups import SubscriptionGroups
from pyengine.rocketmq.server.reply_requests import ReplyRequests
from pyengine.rocketmq.server.send_headers import REGION, remote_send, send_header
from pyengine.rocketmq.server.served import Served
from pyengine.rocketmq.server.stats import Stats
from pyengine.rocketmq.tables.allocation import MessageQueue
from pyengine.visible import logger

log = logger("pyengine.rocketmq.broker")

MAX_SUSPEND = 600_000  # ms that a pull may wait, regardless of what it asks for: its client may be gone
MAX_PULLS = 10_000  # of a connection that wait at the same time
DEFAULT_QUERY_MOST = 32  # messages that a query by unique key brings (defaultQueryMaxNum)
MOST_NEW_QUEUES = 8  # of a topic that a send makes (defaultTopicQueueNums)

Process = Callable[[Connection, RemotingCommand], RemotingCommand | None]


class BrokerRequests:
    """One broker of a cluster as its clients see it."""

    def __init__(self, served: Served, node: BrokerNode) -> None:
        self.served = served
        self.node = node
        self.clients = ClientTable()
        self.groups = SubscriptionGroups(node.kept_groups(), node.keep_groups)
        self._unique = f"{os.urandom(4).hex().upper()}{os.getpid() & 0xFFFF:04X}{0:08X}"
        self._number = count()
        self._turn = count()
        node.sender.ask_producer = self.ask_producer
        self._lock = threading.Lock()
        self._stats = Stats(node.clock.now())
        self._pulls: dict[Connection, int] = {}  # how many of each connection wait
        replies = ReplyRequests(served, node, self.clients)
        self.requests: dict[int, Process] = {
            10: self._send,
            11: self._pull,
            12: self._query_message,
            14: self._query_offset,
            15: self._update_offset,
            29: self._search_offset,
            30: self._max_offset,
            31: self._min_offset,
            34: self._heartbeat,
            35: self._unregister,
            36: self._send_back,
            37: self._end_transaction,
            38: self._members,
            41: self._lock_queues,
            42: self._unlock_queues,
            46: self._check_client,
            310: self._send,
            320: self._send,
            324: replies.reply,
            325: replies.reply,
            361: self._pull,
            **AdminRequests(served, node, self.clients, self.groups, self._stats).requests,
        }

    def requested(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        self.served.check_access(request)
        process = self.requests.get(request.code)
        if process is None:
            return answer(request, REQUEST_CODE_NOT_SUPPORTED, f" request type {request.code} not supported")
        return process(connection, request)

    def closed(self, connection: Connection) -> None:
        """The members of the connection are gone, and the others of their groups are notified."""
        for client in self.clients.gone(connection):
            for group in sorted(client.groups):
                self.served.broker.leave(client.client_id, group, [self.node])

    # Members (ClientManageProcessor, ConsumerManageProcessor)

    def _heartbeat(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        body = _body(request, "HeartbeatData")
        client_id = body["clientID"]
        if not client_id:
            raise MQBrokerError(SYSTEM_ERROR, "a heartbeat needs clientID")
        now = self.node.clock.now()
        client = self.clients.heard(connection, client_id, request.language, request.version, now)
        self.served.broker.register_client(
            client_id, ClientEvents(lambda group: _notify(self.clients, client_id, group))
        )
        for each in body["consumerDataSet"] or ():
            if each is not None and each["groupName"]:
                self._join(client, each, body["withoutSub"])
        for each in body["producerDataSet"] or ():
            if each is not None and each["groupName"]:
                client.producer_groups.add(each["groupName"])
        return answer(request, fields={"IS_SUPPORT_HEART_BEAT_V2": "true", "IS_SUB_CHANGE": "true"})

    def _join(self, client: RemoteClient, data: dict[str, Any], without_subscriptions: bool) -> None:
        group = data["groupName"]
        subscriptions = tuple(_subscription(each) for each in data["subscriptionDataSet"] or () if each is not None)
        if without_subscriptions:
            known = self.node.heartbeats.get(group)
            subscriptions = () if known is None else known.subscriptions
        client.groups.add(group)
        self.groups.find(group)
        heartbeat = HeartbeatData(
            client.client_id,
            group,
            MessageModel[data["messageModel"] or "CLUSTERING"],
            ConsumeFromWhere[data["consumeFromWhere"] or "CONSUME_FROM_LAST_OFFSET"],
            subscriptions,
            data["unitMode"],
            data["consumeType"] or "CONSUME_PASSIVELY",
        )
        self.served.broker.heartbeat(heartbeat, [self.node])

    def _unregister(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        header = read_header("UnregisterClientRequestHeader", request.ext_fields)
        client_id, group, producer_group = header["clientID"], header["consumerGroup"], header["producerGroup"]
        client = self.clients.of(client_id or "")
        if client is not None and client.connection is connection:
            client.groups.discard(group)
            client.producer_groups.discard(producer_group)
            if group is not None:
                self.served.broker.leave(client_id, group, [self.node])
            self.clients.left(client)
        return answer(request, fields={})

    def _members(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        group = read_header("GetConsumerListByGroupRequestHeader", request.ext_fields)["consumerGroup"]
        with self.node.lock:
            members = self.node.groups.members(group or "")
        if not members:
            return answer(request, SYSTEM_ERROR, f"no consumer for this group, {group}", {})
        body = write_body("GetConsumerListByGroupResponseBody", {"consumerIdList": members})
        return answer(request, fields={}, body=body)

    def _check_client(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        data = _body(request, "CheckClientRequestBody")["subscriptionData"]
        if data is not None:
            try:
                filter_of(_subscription(data))
            except PyengineError as error:
                return answer(request, SUBSCRIPTION_PARSE_FAILED, str(error))
        return answer(request)

    # Sends (SendMessageProcessor)

    def _send(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        header = send_header(request)
        try:
            return self._store(connection, request, header)
        except PyengineError as error:
            return refusal(request, _as_sender_reads(error), dict(REGION))

    def _store(self, connection: Connection, request: RemotingCommand, header: dict[str, Any]) -> RemotingCommand:
        topic, queue_id = header["topic"] or "", header["queueId"] if header["queueId"] is not None else -1
        try:
            check_topic(topic)
        except MQClientError as error:
            raise MQBrokerError(INVALID_PARAMETER, error.problem) from error
        origin = remote_send(connection, header, self.node.clock.now())
        new_queues = 0
        if topic not in self.node.topics:
            new_queues = self.served.new_topic_queues(
                self.node.name, topic, header["defaultTopic"], header["defaultTopicQueueNums"] or 0
            )
        if request.body is None:
            raise illegal_message(self.node.max_message_size)
        properties = parse_properties(header["properties"]) | REGION
        body = request.body
        if header["batch"] or request.code == SEND_BATCH_MESSAGE:
            return self._store_batch(request, topic, queue_id, new_queues, origin, properties)
        unique = properties.get(names.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
        if unique is None:
            unique = properties[names.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX] = self._unique_id()
        properties["CLUSTER"] = self.served.cluster
        message = Message(topic, body, properties=properties, flag=header["flag"] or 0)
        stored = self.node.sender.send(message, queue_id, new_queues, origin)
        return self._stored(request, stored, unique)

    def _store_batch(
        self,
        request: RemotingCommand,
        topic: str,
        queue_id: int,
        new_queues: int,
        origin: RemoteSend,
        common: dict[str, str],
    ) -> RemotingCommand:
        if topic.startswith(names.RETRY_GROUP_TOPIC_PREFIX):
            raise MQBrokerError(MESSAGE_ILLEGAL, f"batch request does not support retry group {topic}")
        try:
            parts = decode_client_messages(request.body or b"")
        except ProtocolError as error:
            raise MQBrokerError(MESSAGE_ILLEGAL, f"the body is not a batch: {error}") from error
        if not parts:
            raise MQBrokerError(MESSAGE_ILLEGAL, "a batch needs messages")
        added = {**REGION, "CLUSTER": self.served.cluster}
        messages = [
            Message(topic, body, properties={**properties, **added}, flag=flag) for body, properties, flag in parts
        ]
        stored = self.node.sender.send_batch(messages, queue_id, new_queues, origin)
        unique = common.get(names.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
        return self._stored(request, stored, unique)

    def _stored(self, request: RemotingCommand, stored: Stored, unique: str | None) -> RemotingCommand:
        fields = write_header(
            "SendMessageResponseHeader",
            {
                "msgId": stored.offset_msg_id,
                "queueId": stored.queue_id,
                "queueOffset": stored.queue_offset,
                "transactionId": unique,
            },
        )
        count = stored.offset_msg_id.count(",") + 1
        self._stats.add("TOPIC_PUT_NUMS", stored.topic, self.node.clock.now(), count)
        flushed = self.node.store.log.flush(stored.flush)
        return answer(request, 0 if flushed else FLUSH_DISK_TIMEOUT, None, REGION | fields)

    def _unique_id(self) -> str:
        """An id for a message whose producer gave it none."""
        with self._lock:
            return f"{self._unique}{self.node.clock.now() & 0xFFFFFFFF:08X}{next(self._number) & 0xFFFF:04X}"

    def _send_back(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        header = read_header("ConsumerSendMsgBackRequestHeader", request.ext_fields)
        group, offset = header["group"], header["offset"]
        if not group or offset is None:
            raise MQBrokerError(SYSTEM_ERROR, "a message that is sent back needs its group and its offset")
        message = MessageExt(header["originTopic"] or "", commit_log_offset=offset, msg_id=header["originMsgId"] or "")
        most = header["maxReconsumeTimes"]
        allowed = self.groups.find(group)["retryMaxTimes"] if most is None else most
        stored = self.node.sender.send_back(group, message, header["delayLevel"] or 0, allowed)
        if not self.node.store.log.flush(stored.flush):
            return answer(request, SYSTEM_ERROR, "FLUSH_DISK_TIMEOUT")
        return answer(request)

    # Transactions (EndTransactionProcessor)

    def _end_transaction(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        header = read_header("EndTransactionRequestHeader", request.ext_fields)
        outcome = header["commitOrRollback"]
        if outcome not in (COMMIT, ROLLBACK):
            return None  # undecided: the producer is asked later
        offset, position = header["tranStateTableOffset"], header["commitLogOffset"]
        if offset is None or position is None:
            raise MQBrokerError(SYSTEM_ERROR, "Find prepared transaction message failed")
        self.node.sender.end_transaction(header["producerGroup"] or "", offset, position, outcome)
        return answer(request)

    def ask_producer(self, group: str, message: MessageExt, half_topic: str, offset: int) -> None:
        """Ask a producer of the group what became of a half message (sendCheckMessage)."""
        producers = self.clients.producers(group)
        if not producers:
            log.warning("Check transaction failed, channel is null. groupId=%s", group)
            return
        properties = message.properties
        unique = properties.get(names.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
        header = {
            "topic": half_topic,
            "commitLogOffset": message.commit_log_offset,
            "offsetMsgId": self.node.sender.offset_msg_id(message.commit_log_offset),
            "msgId": unique,
            "transactionId": unique,
            "tranStateTableOffset": offset,
            "bname": self.node.name,
        }
        body = encode_stored(
            properties[names.PROPERTY_REAL_TOPIC], message.body or b"", properties,
            (message.commit_log_offset, int(properties[names.PROPERTY_REAL_QUEUE_ID]), offset),
            Origin(message.born_timestamp, host_bytes(message.born_host), message.reconsume_times, message.flag,
                   message.sys_flag),
            (message.store_timestamp, host_bytes(message.store_host)),
        )  # fmt: skip
        with self._lock:
            chosen = producers[next(self._turn) % len(producers)]
        fields = write_header("CheckTransactionStateRequestHeader", header)
        chosen.connection.request(CHECK_TRANSACTION_STATE, fields, body)

    # Pulls (PullMessageProcessor)

    def _pull(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        header = read_header("PullMessageRequestHeader", request.ext_fields)
        group, topic, queue_id = header["consumerGroup"] or "", header["topic"] or "", header["queueId"]
        self.groups.check_consumes(group)
        config = self.node.topic_config(topic)
        if config is not None and not config.perm & READABLE:
            return answer(request, NO_PERMISSION, f"the topic[{topic}] pulling message is forbidden", _forbidden(1))
        flags, offset = header["sysFlag"] or 0, header["queueOffset"] or 0
        expression = (header["subscription"] or "*") if flags & FLAG_SUBSCRIPTION else None
        wanted = PullMessageRequest(
            "",
            group,
            MessageQueue(topic, self.node.name, -1 if queue_id is None else queue_id),
            offset,
            header["maxMsgNums"] or 0,
            header["maxMsgBytes"] if header["maxMsgBytes"] is not None else 2**31 - 1,
            flags,
            header["commitOffset"] or 0,
            min(header["suspendTimeoutMillis"] or 0, MAX_SUSPEND),
            sub_expression=expression,
            sub_version=header["subVersion"] or 0,
            expression_type=header["expressionType"] or "TAG",
        )

        with self._lock:
            waiting = self._pulls[connection] = self._pulls.get(connection, 0) + 1
        if waiting > MAX_PULLS:
            self._pulled(connection)
            return answer(request, SYSTEM_BUSY, f"{MAX_PULLS} pulls of this connection wait already", {})

        def answered(found: PulledFrames | PyengineError) -> None:
            self._pulled(connection)
            if isinstance(found, PulledFrames) and found.frames:
                self._stats.add("GROUP_GET_NUMS", f"{topic}@{group}", self.node.clock.now(), len(found.frames))
            reply(connection, request, _pull_answer(request, offset, found))

        try:
            self.node.pull_frames(wanted, answered)
        except PyengineError:
            self._pulled(connection)
            raise
        return None

    def _pulled(self, connection: Connection) -> None:
        """A pull of the connection waits no more."""
        with self._lock:
            left = self._pulls.get(connection, 1) - 1
            if left:
                self._pulls[connection] = left
            else:
                self._pulls.pop(connection, None)

    def _query_message(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        header = read_header("QueryMessageRequestHeader", request.ext_fields)
        is_unique = (request.ext_fields or {}).get(UNIQUE_KEY_QUERY) == "true"
        most = DEFAULT_QUERY_MOST if is_unique else header["maxNum"] or 0
        found = self.node.query_message(
            header["topic"] or "", header["key"] or "", most, header["beginTimestamp"] or 0, header["endTimestamp"] or 0
        )
        fields = write_header(
            "QueryMessageResponseHeader",
            {"indexLastUpdateTimestamp": found.last_time, "indexLastUpdatePhyoffset": found.last_position},
        )
        if not found.messages:
            return answer(request, QUERY_NOT_FOUND, "can not find message, maybe time range not correct", fields)
        return answer(request, fields=fields, body=b"".join(found.messages))

    # Offsets and locks

    def _query_offset(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        header = read_header("QueryConsumerOffsetRequestHeader", request.ext_fields)
        group, topic, queue_id = header["consumerGroup"] or "", header["topic"] or "", header["queueId"] or 0
        with self.node.lock:
            committed = self.node.offsets.committed(group, topic, queue_id)
        if committed < 0 and header["setZeroIfNotFound"] is False:
            return answer(request, QUERY_NOT_FOUND, "Not found, do not set to zero, maybe this group boot first", {})
        try:
            committed = self.node.query_offset(group, topic, queue_id)
        except OffsetNotFoundError as error:
            return answer(request, error.code, error.problem, {})
        return answer(request, fields={"offset": str(committed)})

    def _update_offset(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        header = read_header("UpdateConsumerOffsetRequestHeader", request.ext_fields)
        group, topic = header["consumerGroup"] or "", header["topic"] or ""
        if group not in self.groups:
            return answer(request, SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} not exist!", {})
        for name, label in (("queueId", "QueueId"), ("commitOffset", "Offset")):
            if header[name] is None:
                return answer(request, INVALID_PARAMETER, f"{label} is null, topic is {topic}", {})
        try:
            self.node.commit_offset(group, topic, header["queueId"], header["commitOffset"])
        except MQBrokerError as error:
            return refusal(request, error, {})
        return answer(request, fields={})

    def _search_offset(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        header = read_header("SearchOffsetRequestHeader", request.ext_fields)
        topic, queue_id = header["topic"] or "", header["queueId"] or 0
        found = self.node.search_offset(topic, queue_id, header["timestamp"] or 0)
        return answer(request, fields={"offset": str(found)})

    def _max_offset(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        header = read_header("GetMaxOffsetRequestHeader", request.ext_fields)
        found = self.node.max_offset(header["topic"] or "", header["queueId"] or 0)
        return answer(request, fields={"offset": str(found)})

    def _min_offset(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        header = read_header("GetMinOffsetRequestHeader", request.ext_fields)
        found = self.node.min_offset(header["topic"] or "", header["queueId"] or 0)
        return answer(request, 0, "", {"offset": str(found)})

    def _lock_queues(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        body = _body(request, "LockBatchRequestBody")
        held = self.node.lock_queues(body["consumerGroup"] or "", body["clientId"] or "", _queues(body["mqSet"]))
        listed = [_pairs(queue) for queue in sorted(held)]
        return answer(request, body=write_body("LockBatchResponseBody", {"lockOKMQSet": listed}))

    def _unlock_queues(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        body = _body(request, "UnlockBatchRequestBody")
        self.node.unlock_queues(body["consumerGroup"] or "", body["clientId"] or "", _queues(body["mqSet"]))
        return answer(request)


def _body(request: RemotingCommand, name: str) -> dict[str, Any]:
    found = read_body(name, request.body or b"")
    if found is None:
        raise ProtocolError(f"request {request.code} has no {name}")
    return found


def _notify(clients: ClientTable, client_id: str, group: str) -> None:
    client = clients.of(client_id)
    if client is not None:
        client.connection.request(NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": group})


def _subscription(data: dict[str, Any]) -> SubscriptionData:
    return SubscriptionData(
        data["topic"] or "",
        data["subString"] or "",
        frozenset(data["tagsSet"] or ()),
        frozenset(data["codeSet"] or ()),
        data["expressionType"] or "TAG",
        data["subVersion"],
    )


def _queues(listed: list[dict[str, Any] | None] | None) -> list[MessageQueue]:
    return [
        MessageQueue(each["topic"] or "", each["brokerName"] or "", each["queueId"])
        for each in listed or ()
        if each is not None
    ]


def _pairs(queue: MessageQueue) -> dict[str, Any]:
    return {"topic": queue.topic, "brokerName": queue.broker_name, "queueId": queue.queue_id}


def _as_sender_reads(error: PyengineError) -> PyengineError:
    if isinstance(error, MQBrokerError):
        return error
    return MQBrokerError(MESSAGE_ILLEGAL, str(error))


def _forbidden(kind: int) -> dict[str, str]:
    return {"forbiddenType": str(kind)}


def _pull_answer(request: RemotingCommand, offset: int, found: PulledFrames | PyengineError) -> RemotingCommand:
    if isinstance(found, PyengineError):
        return refusal(request, found, {})
    header = {
        "suggestWhichBrokerId": 0,
        "nextBeginOffset": found.next_begin_offset,
        "minOffset": found.min_offset,
        "maxOffset": found.max_offset,
        "topicSysFlag": 0,
        "groupSysFlag": 0,
    }
    fields = write_header("PullMessageResponseHeader", header)
    body = b"".join(found.frames) if found.code == PullCode.SUCCESS else None
    return answer(request, int(found.code), _pull_remark(offset, found), fields, body)


def _pull_remark(offset: int, found: PulledFrames) -> str:
    """The name of the store's status."""
    if found.was_reset:
        return "OFFSET_RESET"
    if found.code == PullCode.SUCCESS:
        return "FOUND"
    if found.code == PullCode.RETRY_IMMEDIATELY:
        return "NO_MATCHED_MESSAGE"
    if found.max_offset == 0:
        return "NO_MESSAGE_IN_QUEUE"
    if offset < found.min_offset:
        return "OFFSET_TOO_SMALL"
    return "OFFSET_OVERFLOW_ONE" if offset == found.max_offset else "OFFSET_OVERFLOW_BADLY"
