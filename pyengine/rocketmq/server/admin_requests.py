"""What the tools of administrators ask of a broker (AdminBrokerProcessor)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from pyengine._engine.rocketmq.client.validators import check_group, check_topic
from pyengine._engine.rocketmq.commands.bodies import read_body, write_body
from pyengine._engine.rocketmq.commands.headers import read_header
from pyengine._engine.rocketmq.commands.requests import (
    CONSUME_MESSAGE_DIRECTLY,
    CONSUMER_NOT_ONLINE,
    GET_CONSUMER_RUNNING_INFO,
    GET_CONSUMER_STATUS_FROM_CLIENT,
    SUBSCRIPTION_GROUP_NOT_EXIST,
)
from pyengine._engine.wire.remoting import RemotingCommand
from pyengine.errors import MQClientError, RemotingError, RemotingTimeoutError
from pyengine.rocketmq.broker.broker_files import MOST_QUEUES
from pyengine.rocketmq.broker.broker_node import BrokerNode
from pyengine.rocketmq.broker.topic_config import TopicConfig
from pyengine.rocketmq.remoting.mq_client_api import (
    INVALID_PARAMETER,
    SYSTEM_ERROR,
    TOPIC_NOT_EXIST,
    subscription_body,
)
from pyengine.rocketmq.server.clients import ClientTable
from pyengine.rocketmq.server.connections import Connection, answer, reply
from pyengine.rocketmq.server.groups import SubscriptionGroups
from pyengine.rocketmq.server.served import Served
from pyengine.rocketmq.server.stats import Stats

CONSUME_MSG_TIMEOUT = 207
VERSION_NAME = "V5_3_3"  # of the release whose answers these are
CALL_TIMEOUT = 10_000  # ms that a client has

Process = Callable[[Connection, RemotingCommand], RemotingCommand | None]


class AdminRequests:
    """One broker as administrators see it. clients: those that are connected to it. groups: the groups that it
    knows."""

    def __init__(
        self, served: Served, node: BrokerNode, clients: ClientTable, groups: SubscriptionGroups, stats: Stats
    ) -> None:
        self._stats = stats
        self._served = served
        self._node = node
        self._clients = clients
        self._groups = groups
        self._started = node.clock.now()
        self.requests: dict[int, Process] = {
            17: self._update_topic,
            21: self._all_topics,
            28: self._runtime_info,
            32: self._earliest_time,
            33: self._view_message,
            43: self._all_offsets,
            200: self._update_group,
            201: self._all_groups,
            202: self._topic_stats,
            203: self._connections,
            204: self._producers,
            207: self._delete_group,
            208: self._consume_stats,
            215: self._delete_topic,
            222: self._reset_offset,
            223: self._client_status,
            300: self._groups_of_topic,
            307: self._running_info,
            309: self._consume_directly,
            315: self._view_stats,
            317: self._broker_consume_stats,
            328: self._all_producers,
            343: self._topics_of_group,
            345: self._subscription_of_group,
            351: self._topic,
            352: self._group,
        }

    # Topics

    def _update_topic(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        header = read_header("CreateTopicRequestHeader", request.ext_fields)
        topic = header["topic"] or ""
        try:
            check_topic(topic)
        except MQClientError as error:
            return answer(request, INVALID_PARAMETER, error.problem)
        if topic in self._served.own_topics(self._node.name):
            return answer(request, INVALID_PARAMETER, f"The topic[{topic}] is conflict with system topic.")
        numbers = [header[name] for name in ("readQueueNums", "writeQueueNums", "perm")]
        if any(number is None or number < 0 for number in numbers):
            problem = f"topic[{topic}]: readQueueNums, writeQueueNums and perm are needed"
            return answer(request, INVALID_PARAMETER, problem)
        read, write, perm = numbers
        if max(read, write) > MOST_QUEUES:
            return answer(request, INVALID_PARAMETER, f"topic[{topic}]: a topic has at most {MOST_QUEUES} queues")
        config = TopicConfig(read, write, perm, bool(header["order"]), header["topicSysFlag"] or 0)
        if self._node.topic_config(topic) != config:
            self._node.update_topic(topic, config)
        return answer(request, 0, "not set any response code")  # which the real one answers on success

    def _delete_topic(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        topic = read_header("DeleteTopicRequestHeader", request.ext_fields)["topic"]
        if not topic:
            return answer(request, INVALID_PARAMETER, "The specified topic is blank.")
        self._node.delete_topic(topic)
        return answer(request)

    def _all_topics(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        table = {topic: config.entry(topic) for topic, config in self._served.all_topics(self._node.name).items()}
        body = write_body("TopicConfigAndMappingSerializeWrapper", {"topicConfigTable": table})
        return answer(request, fields={}, body=body)

    def _topic(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        topic = read_header("GetTopicConfigRequestHeader", request.ext_fields)["topic"] or ""
        config = self._served.topic_at(self._node.name, topic)
        if config is None:
            return answer(request, TOPIC_NOT_EXIST, f"No topic in this broker. topic: {topic}")
        return answer(request, body=write_body("TopicConfigAndQueueMapping", config.entry(topic)))

    def _topic_stats(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        topic = read_header("GetTopicStatsInfoRequestHeader", request.ext_fields)["topic"] or ""
        config = self._served.topic_at(self._node.name, topic)
        if config is None:
            return answer(request, TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
        table = {}
        for queue_id in range(config.queues):
            least, most = self._node.min_offset(topic, queue_id), self._node.max_offset(topic, queue_id)
            when = self._store_time(topic, queue_id, most - 1) if most else 0
            found = {"minOffset": least, "maxOffset": most, "lastUpdateTimestamp": when}
            table[self._queue(topic, queue_id)] = found
        tps = self._stats.tps("TOPIC_PUT_NUMS", topic, self._node.clock.now())
        return answer(request, body=write_body("TopicStatsTable", {"offsetTable": table, "topicPutTps": tps}))

    def _queue(self, topic: str, queue_id: int) -> tuple[tuple[str, object], ...]:
        """A MessageQueue as the key of a map."""
        return ("brokerName", self._node.name), ("queueId", queue_id), ("topic", topic)

    def _store_time(self, topic: str, queue_id: int, offset: int) -> int:
        """When the message at an offset was stored, -1 if there is none any more."""
        with self._node.lock:
            queue = self._node.store.consume_queue(topic, queue_id)
            return queue.store_time(offset) if queue.min_offset <= offset < queue.max_offset else -1

    def _earliest_time(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        header = read_header("GetEarliestMsgStoretimeRequestHeader", request.ext_fields)
        topic, queue_id = header["topic"] or "", header["queueId"] or 0
        found = self._store_time(topic, queue_id, self._node.min_offset(topic, queue_id))
        return answer(request, fields={"timestamp": str(found)})

    def _view_message(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        offset = read_header("ViewMessageRequestHeader", request.ext_fields)["offset"]
        found = None if offset is None else self._node.stored_at(offset)
        if found is None:
            return answer(request, SYSTEM_ERROR, f"can not find message by the offset, {offset}", {})
        return answer(request, fields={}, body=found)

    # Groups

    def _update_group(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        config = read_body("SubscriptionGroupConfig", request.body or b"")
        if config is not None:
            try:
                check_group(config["groupName"] or "")
            except MQClientError as error:
                return answer(request, INVALID_PARAMETER, error.problem)
            self._groups.update(config)
        return answer(request)

    def _delete_group(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        header = read_header("DeleteSubscriptionGroupRequestHeader", request.ext_fields)
        self._groups.delete(header["groupName"] or "")
        return answer(request)

    def _all_groups(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        return answer(request, body=write_body("SubscriptionGroupWrapper", self._groups.as_wrapper()))

    def _group(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        group = read_header("GetSubscriptionGroupConfigRequestHeader", request.ext_fields)["group"] or ""
        return answer(request, body=write_body("SubscriptionGroupConfig", self._groups.find(group)))

    def _connections(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        group = read_header("GetConsumerConnectionListRequestHeader", request.ext_fields)["consumerGroup"] or ""
        with self._node.lock:
            members = self._node.groups.members(group)
            last = self._node.heartbeats.get(group)
        if last is None or not members:
            return answer(request, CONSUMER_NOT_ONLINE, f"the consumer group[{group}] not online")
        body = {
            "connectionSet": [self._connection(member) for member in members],
            "consumeFromWhere": last.consume_from_where.name,
            "consumeType": last.consume_type,
            "messageModel": last.message_model.name,
            "subscriptionTable": {each.topic: subscription_body(each) for each in last.subscriptions},
        }
        return answer(request, body=write_body("ConsumerConnection", body))

    def _connection(self, client_id: str) -> dict[str, Any]:
        client = self._clients.of(client_id)
        if client is None:  # a client of this process
            return {"clientAddr": "127.0.0.1:0", "clientId": client_id, "language": "PYTHON", "version": 479}
        return {
            "clientAddr": client.connection.remote_address,
            "clientId": client_id,
            "language": client.language,
            "version": client.version,
        }

    def _producers(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        group = read_header("GetProducerConnectionListRequestHeader", request.ext_fields)["producerGroup"] or ""
        found = self._clients.producers(group)
        if not found:
            return answer(request, SYSTEM_ERROR, f"the producer group[{group}] not exist")
        listed = [self._connection(client.client_id) for client in found]
        return answer(request, body=write_body("ProducerConnection", {"connectionSet": listed}))

    def _all_producers(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        data = {
            group: [
                {
                    "clientId": client.client_id,
                    "remoteIP": client.connection.remote_address,
                    "language": client.language,
                    "version": client.version,
                    "lastUpdateTimestamp": client.last_heartbeat,
                }
                for client in clients
            ]
            for group, clients in self._clients.all_producers().items()
        }
        return answer(request, body=write_body("ProducerTableInfo", {"data": data}))

    def _groups_of_topic(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        topic = read_header("QueryTopicConsumeByWhoRequestHeader", request.ext_fields)["topic"] or ""
        with self._node.lock:
            groups = {
                group
                for group, last in self._node.heartbeats.items()
                if any(each.topic == topic for each in last.subscriptions)
            }
            if groups:
                groups.add(topic)  # as the real one, whose table of topics is one of groups too
            keys = (key.rpartition("@") for key in self._node.offsets.dump())
            groups |= {group for name, _, group in keys if name == topic}
        return answer(request, body=write_body("GroupList", {"groupList": sorted(groups)}))

    def _topics_of_group(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        group = read_header("QueryTopicsByConsumerRequestHeader", request.ext_fields)["group"] or ""
        address = self._served.address(self._node.name, connection.local_host)
        body = {"brokerAddr": address, "topicList": self._committed_topics(group)}
        return answer(request, body=write_body("TopicList", body))

    def _subscription_of_group(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        header = read_header("QuerySubscriptionByConsumerRequestHeader", request.ext_fields)
        group, topic = header["group"], header["topic"]
        last = self._node.heartbeats.get(group or "")
        found = next((each for each in last.subscriptions if each.topic == topic), None) if last else None
        body: dict[str, Any] = {"group": group, "topic": topic}
        if found is not None:
            body["subscriptionData"] = subscription_body(found)
        return answer(request, body=write_body("QuerySubscriptionResponseBody", body))

    # Offsets

    def _committed_topics(self, group: str) -> list[str]:
        with self._node.lock:
            keys = (key.rpartition("@") for key in self._node.offsets.dump())
            return [topic for topic, _, owner in keys if owner == group]

    def _consume_stats(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        header = read_header("GetConsumeStatsRequestHeader", request.ext_fields)
        group = header["consumerGroup"] or ""
        listed = [each for each in (header["topicList"] or "").split(";") if each]
        wanted = [header["topic"]] if header["topic"] else listed or self._committed_topics(group)
        return answer(request, body=write_body("ConsumeStats", self._stats_of(group, wanted, read=True)))

    def _stats_of(self, group: str, topics: list[str], *, read: bool) -> dict[str, Any]:
        """ConsumeStats. read: of the queues that can be read; otherwise of those that can be written."""
        table = {}
        for topic in self._node.topics_of(group, topics) if topics else []:
            config = self._node.topic_config(topic)
            if config is None:
                continue
            for queue_id in range(config.read_queues if read else config.write_queues):
                with self._node.lock:
                    committed = max(0, self._node.offsets.committed(group, topic, queue_id))
                pulled = self._node.pulled_at(group, topic, queue_id)
                offsets = {
                    "brokerOffset": self._node.max_offset(topic, queue_id),
                    "consumerOffset": committed,
                    "lastTimestamp": max(0, self._store_time(topic, queue_id, committed - 1)) if committed else 0,
                    "pullOffset": max(committed, pulled) if read else 0,
                }
                table[self._queue(topic, queue_id)] = offsets
        now = self._node.clock.now()
        tps = sum(self._stats.tps("GROUP_GET_NUMS", f"{topic}@{group}", now) for topic in topics)
        return {"consumeTps": tps, "offsetTable": table}

    def _broker_consume_stats(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        is_order = read_header("GetConsumeStatsInBrokerHeader", request.ext_fields)["isOrder"]
        listed, behind, in_flight = [], 0, 0
        for group in self._groups.names():
            stats = []
            topics = self._committed_topics(group)
            for topic in self._node.topics_of(group, topics) if topics else []:
                config = self._node.topic_config(topic)
                if config is None or (is_order and not config.order):
                    continue
                found = self._stats_of(group, [topic], read=False)
                stats.append(found)
                for offsets in found["offsetTable"].values():
                    behind += offsets["brokerOffset"] - offsets["consumerOffset"]
                    in_flight += offsets["pullOffset"] - offsets["consumerOffset"]
            listed.append({group: stats})
        address = self._served.address(self._node.name, connection.local_host)
        body = {
            "brokerAddr": address, "consumeStatsList": listed, "totalDiff": behind, "totalInflightDiff": in_flight,
        }  # fmt: skip
        return answer(request, body=write_body("ConsumeStatsList", body))

    def _all_offsets(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        with self._node.lock:
            table = self._node.offsets.dump()
        return answer(request, body=write_body("ConsumerOffsetSerializeWrapper", {"offsetTable": table}))

    def _reset_offset(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """Set a group's offsets (resetOffsetInner; useServerSideResetOffset)."""
        header = read_header("ResetOffsetRequestHeader", request.ext_fields)
        topic, group, only = header["topic"] or "", header["group"] or "", header["queueId"]
        config = self._node.topic_config(topic)
        if config is None:
            return answer(request, TOPIC_NOT_EXIST, f"Topic {topic} does not exist")
        if group not in self._groups:
            return answer(request, SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} does not exist")
        offsets: dict[int, int] = {}
        wanted = header["offset"]
        if only >= 0 and wanted is not None and wanted != -1:
            least, most = self._node.min_offset(topic, only), self._node.max_offset(topic, only)
            if wanted < least or wanted > most + 1:
                problem = f"Target offset {wanted} not in consume queue range [{least}-{most}]"
                return answer(request, SYSTEM_ERROR, problem)
            offsets[only] = wanted
        else:
            for queue_id in [only] if only >= 0 else range(config.read_queues):
                offsets[queue_id] = self._offset_at(topic, queue_id, header["timestamp"])
        if not offsets:
            return answer(request, SYSTEM_ERROR, "No queues to reset.")
        for queue_id, offset in offsets.items():
            self._node.reset_offset(group, topic, queue_id, offset)
        table = {self._queue(topic, queue_id): offset for queue_id, offset in offsets.items()}
        return answer(request, body=write_body("ResetOffsetBody", {"offsetTable": table}))

    def _offset_at(self, topic: str, queue_id: int, timestamp: int) -> int:
        if timestamp < 0:
            return self._node.max_offset(topic, queue_id)
        return max(0, self._node.search_offset(topic, queue_id, timestamp))

    # What members of a group are asked

    def _running_info(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        header = read_header("GetConsumerRunningInfoRequestHeader", request.ext_fields)
        return self._call(connection, request, header, GET_CONSUMER_RUNNING_INFO, request.body)

    def _consume_directly(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        header = read_header("ConsumeMessageDirectlyResultRequestHeader", request.ext_fields)
        body = request.body
        if header["msgId"]:
            found = self._node.stored_by_id(header["msgId"])
            if found is None:
                return answer(request, SYSTEM_ERROR, f"no message has the id {header['msgId']}")
            body = found
        (request.ext_fields or {})["brokerName"] = self._node.name
        return self._call(connection, request, header, CONSUME_MESSAGE_DIRECTLY, body)

    def _call(
        self, connection: Connection, request: RemotingCommand, header: dict[str, Any], code: int, body: bytes | None
    ) -> RemotingCommand | None:
        """Have a member answer (callConsumer)."""
        group, client_id = header["consumerGroup"] or "", header["clientId"] or ""
        client = self._clients.of(client_id)
        if client is None or group not in client.groups:
            return answer(request, SYSTEM_ERROR, f"The Consumer <{group}> <{client_id}> not online")

        def answered(found: RemotingCommand | RemotingError) -> None:
            if isinstance(found, RemotingTimeoutError):
                remark = f"consumer <{group}> <{client_id}> Timeout: {found}"
                reply(connection, request, answer(request, CONSUME_MSG_TIMEOUT, remark))
            elif isinstance(found, RemotingError):
                remark = f"invoke consumer <{group}> <{client_id}> Exception: {found}"
                reply(connection, request, answer(request, SYSTEM_ERROR, remark))
            else:
                reply(connection, request, answer(request, found.code, found.remark, found.ext_fields, found.body))

        client.connection.request(code, dict(request.ext_fields or {}), body, CALL_TIMEOUT, answered)
        return None

    def _client_status(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        """Offsets as the members of a group have them (getConsumeStatus)."""
        header = read_header("GetConsumerStatusRequestHeader", request.ext_fields)
        topic, group, only = header["topic"], header["group"] or "", header["clientAddr"]
        with self._node.lock:
            members = self._node.groups.members(group)
        asked = [
            client
            for client in map(self._clients.of, members)
            if client is not None and only in (None, "", client.client_id)
        ]
        if not members:
            return answer(request, SYSTEM_ERROR, f"No Any Consumer online in the consumer group: [{group}]")
        table: dict[str, Any] = {}
        left = set(asked)

        def end() -> None:
            body = write_body("GetConsumerStatusBody", {"consumerTable": table})
            reply(connection, request, answer(request, body=body))

        for client in asked:

            def answered(found: RemotingCommand | RemotingError, client: Any = client) -> None:
                if not isinstance(found, RemotingError) and found.code == 0 and found.body:
                    body = read_body("GetConsumerStatusBody", found.body)
                    table[client.client_id] = {} if body is None else body["messageQueueTable"]
                left.discard(client)
                if not left:
                    end()

            fields = {"topic": topic, "group": group}
            client.connection.request(GET_CONSUMER_STATUS_FROM_CLIENT, fields, None, 5000, answered)
        if not asked:
            end()
        return None

    # The broker itself

    def _view_stats(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        header = read_header("ViewBrokerStatsDataRequestHeader", request.ext_fields)
        name, key = header["statsName"] or "", header["statsKey"] or ""
        found = self._stats.data(name, key, self._node.clock.now())
        if found is None:
            return answer(request, SYSTEM_ERROR, f"The stats <{name}> <{key}> not exist")
        return answer(request, body=write_body("BrokerStatsData", found))

    def _runtime_info(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        with self._node.lock:
            earliest = min(
                (
                    queue.store_time(queue.min_offset)
                    for queue in self._node.store.consume_queues.values()
                    if len(queue)
                ),
                default=-1,
            )
        table = {
            "brokerActive": "true",
            "brokerVersionDesc": VERSION_NAME,
            "bootTimestamp": str(self._started),
            "earliestMessageTimeStamp": str(earliest),
            "commitLogMinOffset": str(self._node.store.log.start),
            "commitLogMaxOffset": str(self._node.store.log.end),
            "commitLogDiskRatio": "0.0",
            "consumeQueueDiskRatio": "0.0",
            "putTps": "0.0 0.0 0.0",
            "getTotalTps": "0.0 0.0 0.0",
            "getFoundTps": "0.0 0.0 0.0",
            "getMissTps": "0.0 0.0 0.0",
            "getTransferredTps": "0.0 0.0 0.0",
            "getTransferedTps": "0.0 0.0 0.0",  # so called by tools before 5.0
            "pageCacheLockTimeMills": "0",
            "dispatchBehindBytes": "0",
            "timerReadBehind": "0",
            "timerOffsetBehind": "0",
            "timerCongestNum": "0",
            "timerEnqueueTps": "0.0",
            "timerDequeueTps": "0.0",
            "runtime": f"[ {(time.time_ns() // 1_000_000 - self._started) // 1000} seconds ]",
        }
        for pool in ("send", "pull", "query", "ack", "litePull"):
            table[f"{pool}ThreadPoolQueueSize"] = "0"
            table[f"{pool}ThreadPoolQueueHeadWaitTimeMills"] = "0"
        return answer(request, body=write_body("KVTable", {"table": table}))
