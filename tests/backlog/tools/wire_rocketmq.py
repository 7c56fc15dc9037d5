"""An invented RocketMQ cluster on loopback: it answers what mqadmin asks, in the bodies that the real servers send.

The name server and each broker have an address of their own, for mqadmin prints them.
"""

from __future__ import annotations

import json
import socketserver
import struct
import threading
from collections.abc import Callable, Iterable
from typing import Any

from tests.backlog.tools.clusters import BROKER_PORT, Cluster, Group, Queue, address

NAME_SERVER = ("127.0.0.1", 19876)
OK, UNKNOWN, NO_TOPIC, NOT_ONLINE = 0, 3, 17, 206
# RequestCode of the real client.
BROKER_RUNTIME_INFO, ROUTE, CLUSTER_INFO = 28, 105, 106
TOPIC_STATS, CONNECTIONS, ALL_TOPICS, CONSUME_STATS = 202, 203, 206, 208
CONSUMED_BY, RUNNING_INFO, BROKER_STATS, BROKER_CONSUME_STATS, TOPIC_CONFIG = 300, 307, 315, 317, 351


def keyed(pairs: Iterable[tuple[str, str]]) -> str:
    """A map whose keys are objects, which only fastjson writes and reads."""
    return "{" + ",".join(f"{key}:{value}" for key, value in pairs) + "}"


def _message_queue(queue: Queue) -> str:
    return json.dumps({"brokerName": queue.broker, "queueId": queue.number, "topic": queue.topic})


class Servers:
    """The servers of one moment of one cluster. ``cluster`` and ``moment`` may be set between two commands."""

    def __init__(self) -> None:
        self.cluster: Cluster | None = None
        self.moment = 0
        # The broker's number, -1: the name server.
        self._servers: dict[int, socketserver.ThreadingTCPServer] = {}
        self._listen(-1, NAME_SERVER)

    def show(self, cluster: Cluster, moment: int) -> None:
        self.cluster, self.moment = cluster, moment
        for number in range(len(cluster.brokers)):
            if number not in self._servers:
                self._listen(number, (address(number), BROKER_PORT))

    def name_of(self, number: int) -> str:
        return self._cluster.brokers[number] if 0 <= number < len(self._cluster.brokers) else ""

    def close(self) -> None:
        for server in self._servers.values():
            server.shutdown()
            server.server_close()

    def _listen(self, number: int, place: tuple[str, int]) -> None:
        servers = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                while (length := self._read(4)) is not None:
                    frame = self._read(struct.unpack(">I", length)[0])
                    if frame is None:
                        return
                    size = struct.unpack(">I", frame[:4])[0] & 0xFFFFFF
                    header = json.loads(frame[4 : 4 + size])
                    code, body = servers.answer(servers.name_of(number), header["code"], header.get("extFields") or {})
                    head = {
                        "code": code,
                        "flag": 1,
                        "language": "JAVA",
                        "opaque": header["opaque"],
                        "version": 433,
                        "serializeTypeCurrentRPC": "JSON",
                        "extFields": {},
                        "remark": None if code == OK else body,
                    }
                    text, data = json.dumps(head).encode(), body.encode() if code == OK else b""
                    total = 4 + len(text) + len(data)
                    self.request.sendall(struct.pack(">II", total, len(text)) + text + data)

            def _read(self, count: int) -> bytes | None:
                data = b""
                while len(data) < count:
                    try:
                        more = self.request.recv(count - len(data))
                    except OSError:
                        return None
                    if not more:
                        return None
                    data += more
                return data

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        server = Server(place, Handler)
        self._servers[number] = server
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def answer(self, broker: str, code: int, fields: dict[str, str]) -> tuple[int, str]:
        """The response's code and body, or the remark of one that is not OK."""
        assert self.cluster is not None
        kinds: dict[int, Callable[[str, dict[str, str]], tuple[int, str]]] = {
            ROUTE: self._route,
            CLUSTER_INFO: self._cluster_info,
            ALL_TOPICS: self._all_topics,
            TOPIC_STATS: self._topic_stats,
            CONNECTIONS: self._connections,
            CONSUME_STATS: self._consume_stats,
            CONSUMED_BY: self._consumed_by,
            RUNNING_INFO: self._running_info,
            BROKER_STATS: self._broker_stats,
            BROKER_CONSUME_STATS: self._broker_consume_stats,
            BROKER_RUNTIME_INFO: self._broker_runtime,
            TOPIC_CONFIG: self._topic_config,
        }
        if code not in kinds:
            return UNKNOWN, f"request type {code} not supported"
        return kinds[code](broker, fields)

    @property
    def _cluster(self) -> Cluster:
        assert self.cluster is not None
        return self.cluster

    def _group(self, name: str) -> Group | None:
        return next((each for each in self._cluster.groups if each.name == name), None)

    def _queues(self, topic: str) -> dict[tuple[str, int], Queue]:
        return {
            (queue.broker, queue.number): queue
            for group in self._cluster.groups
            for queue in group.moments[self.moment].queues
            if queue.topic == topic
        }

    def _broker_data(self, name: str) -> dict[str, object]:
        return {"brokerAddrs": {"0": self._cluster.address_of(name)}, "brokerName": name, "cluster": "DefaultCluster"}

    def _route(self, _: str, fields: dict[str, str]) -> tuple[int, str]:
        queues = self._queues(fields["topic"])
        brokers = [each for each in self._cluster.brokers if any(broker == each for broker, _ in queues)]
        if not brokers:
            return NO_TOPIC, f"No topic route info in name server for the topic: {fields['topic']}"
        counts = {each: sum(broker == each for broker, _ in queues) for each in brokers}
        return OK, json.dumps(
            {
                "brokerDatas": [
                    self._broker_data(each)
                    for each in brokers
                ],
                "filterServerTable": {},
                "queueDatas": [
                    {"brokerName": each, "perm": 6, "readQueueNums": count, "writeQueueNums": count, "topicSynFlag": 0,
                     "topicSysFlag": 0}
                    for each, count in counts.items()
                ],
            }
        )  # fmt: skip

    def _cluster_info(self, _: str, fields: dict[str, str]) -> tuple[int, str]:
        brokers = self._cluster.brokers
        return OK, json.dumps(
            {
                "brokerAddrTable": {each: self._broker_data(each) for each in brokers},
                "clusterAddrTable": {"DefaultCluster": list(brokers)},
            }
        )

    def _all_topics(self, _: str, fields: dict[str, str]) -> tuple[int, str]:
        return OK, json.dumps({"topicList": list(self._cluster.topics)})

    def _topic_stats(self, broker: str, fields: dict[str, str]) -> tuple[int, str]:
        table = keyed(
            (
                _message_queue(queue),
                json.dumps(
                    {"lastUpdateTimestamp": queue.stored_at, "maxOffset": queue.newest, "minOffset": queue.oldest}
                ),
            )
            for (name, _), queue in self._queues(fields["topic"]).items()
            if name == broker
        )
        return OK, f'{{"offsetTable":{table},"topicPutTps":0.0}}'

    def _connections(self, _: str, fields: dict[str, str]) -> tuple[int, str]:
        group = self._group(fields["consumerGroup"])
        clients = group.moments[self.moment].clients if group else ()
        if group is None or not clients:
            return NOT_ONLINE, f"the consumer group[{fields['consumerGroup']}] not online"
        return OK, json.dumps(
            {
                "connectionSet": [
                    {
                        "clientAddr": each.address,
                        "clientId": each.id,
                        "language": each.language,
                        "version": each.version,
                    }
                    for each in clients
                ],
                "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
                "consumeType": "CONSUME_PASSIVELY",
                "messageModel": "CLUSTERING",
                "subscriptionTable": {topic: _subscription(topic, text) for topic, text in clients[-1].subscriptions},
            }
        )

    def _stats_of(self, group: Group, broker: str, topic: str | None, tps: float) -> str:
        table = keyed(
            (
                _message_queue(queue),
                json.dumps(
                    {
                        "brokerOffset": queue.newest,
                        "consumerOffset": queue.committed,
                        "lastTimestamp": queue.consumed_at,
                        "pullOffset": queue.pulled,
                    }
                ),
            )
            for queue in group.moments[self.moment].queues
            if queue.broker == broker and topic in (None, "", queue.topic)
        )  # fmt: skip
        return f'{{"consumeTps":{tps},"offsetTable":{table}}}'

    def _consume_stats(self, broker: str, fields: dict[str, str]) -> tuple[int, str]:
        group = self._group(fields["consumerGroup"])
        if group is None:
            return OK, '{"consumeTps":0.0,"offsetTable":{}}'
        tps = group.moments[self.moment].tps / len(self._cluster.brokers)
        return OK, self._stats_of(group, broker, fields.get("topic"), tps)

    def _consumed_by(self, _: str, fields: dict[str, str]) -> tuple[int, str]:
        names = [
            group.name
            for group in self._cluster.groups
            if any(queue.topic == fields["topic"] for queue in group.moments[self.moment].queues)
        ]
        return OK, json.dumps({"groupList": names})

    def _running_info(self, _: str, fields: dict[str, str]) -> tuple[int, str]:
        group = self._group(fields["consumerGroup"])
        clients = group.moments[self.moment].clients if group else ()
        client = next((each for each in clients if each.id == fields["clientId"]), None)
        if client is None:
            return NOT_ONLINE, f"The Consumer <{fields['consumerGroup']}> <{fields['clientId']}> not online"
        now = self._cluster.now()
        queues = keyed(
            (
                json.dumps({"brokerName": held.broker, "queueId": held.number, "topic": held.topic}),
                json.dumps(
                    {
                        "cachedMsgCount": held.cached,
                        "cachedMsgMaxOffset": held.cached_to,
                        "cachedMsgMinOffset": held.cached_from,
                        "cachedMsgSizeInMiB": held.cached // 20,
                        "commitOffset": held.committed,
                        "droped": False,
                        "lastConsumeTimestamp": now - held.idle,
                        "lastLockTimestamp": now - held.idle,
                        "lastPullTimestamp": now - 500,
                        "locked": True,
                        "transactionMsgCount": 0,
                        "transactionMsgMaxOffset": 0,
                        "transactionMsgMinOffset": 0,
                        "tryUnlockTimes": 0,
                    }
                ),
            )
            for held in client.held
        )
        status = {
            topic: {
                "consumeFailedMsgs": client.failed_in_hour,
                "consumeFailedTPS": client.failed_in_hour / 3600,
                "consumeOKTPS": client.rate,
                "consumeRT": client.consume_ms,
                "pullRT": 12.5,
                "pullTPS": client.rate,
            }
            for topic, _ in client.subscriptions
        }
        properties = {
            "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY",
            "PROP_CONSUMEORDERLY": "false",
            "PROP_CONSUMER_START_TIMESTAMP": str(client.started),
            "PROP_NAMESERVER_ADDR": "10.0.0.1:9876;",
            "PROP_THREADPOOL_CORE_SIZE": "20",
            "PROP_CLIENT_VERSION": client.version_name,
            "consumeThreadMin": "20",
            "consumeThreadMax": "64",
            "consumeTimeout": "15",
            "consumerGroup": fields["consumerGroup"],
            "messageModel": "CLUSTERING",
            "pullThresholdForQueue": "1000",
            "pullThresholdSizeForQueue": "100",
            "consumeConcurrentlyMaxSpan": "2000",
        }
        subscriptions = [_subscription(topic, text) for topic, text in client.subscriptions]
        return OK, (
            f'{{"mqTable":{queues},"properties":{json.dumps(properties)},"statusTable":{json.dumps(status)},'
            f'"subscriptionSet":{json.dumps(subscriptions)}}}'
        )

    def _broker_stats(self, _: str, fields: dict[str, str]) -> tuple[int, str]:
        key = fields["statsKey"]
        topic, _, name = key.partition("@")
        rate = 0.0
        for group in self._cluster.groups:
            if fields["statsName"] == "TOPIC_PUT_NUMS":
                rate = max(rate, group.put_rate(topic, self.moment))
            elif group.name == name:
                rate = group.moments[self.moment].tps
        rate /= len(self._cluster.brokers)
        item = {"avgpt": 0.0, "sum": int(rate * 60), "tps": rate}
        return OK, json.dumps({"statsMinute": item, "statsHour": item, "statsDay": {**item, "sum": int(rate * 86_400)}})

    def _broker_consume_stats(self, broker: str, fields: dict[str, str]) -> tuple[int, str]:
        lists, total = [], 0
        for group in self._cluster.groups:
            queues = [each for each in group.moments[self.moment].queues if each.broker == broker]
            stats = ",".join(
                self._stats_of(group, broker, topic, 0.0) for topic in dict.fromkeys(each.topic for each in queues)
            )
            lists.append(f"{{{json.dumps(group.name)}:[{stats}]}}")
            total += sum(each.newest - (each.committed or 0) for each in queues)
        return OK, (
            f'{{"brokerAddr":"{self._cluster.address_of(broker)}","consumeStatsList":[{",".join(lists)}],'
            f'"totalDiff":{total}}}'
        )

    def _topic_config(self, broker: str, fields: dict[str, str]) -> tuple[int, str]:
        count = sum(name == broker for name, _ in self._queues(fields["topic"]))
        if not count:
            return NO_TOPIC, f"No topic in this broker. topic: {fields['topic']}"
        return OK, json.dumps(
            {"attributes": {}, "order": False, "perm": 6, "readQueueNums": count, "topicFilterType": "SINGLE_TAG",
             "topicName": fields["topic"], "topicSysFlag": 0, "writeQueueNums": count}
        )  # fmt: skip

    def _broker_runtime(self, _: str, fields: dict[str, str]) -> tuple[int, str]:
        table: dict[str, Any] = {
            "brokerVersionDesc": self._cluster.broker_version,
            "putTps": "120.5 119.8 118.0",
            "getTransferedTps": "118.2 117.9 117.5",
            "getTransferredTps": "118.2 117.9 117.5",
            "sendThreadPoolQueueSize": "0",
            "pullThreadPoolQueueSize": "0",
            "sendThreadPoolQueueHeadWaitTimeMills": "0",
            "pullThreadPoolQueueHeadWaitTimeMills": "0",
            "pageCacheLockTimeMills": "0",
            "earliestMessageTimeStamp": str(self._cluster.now() - 72 * 3_600_000),
            "commitLogDiskRatio": "0.4137",
            "timerReadBehind": "0",
            "timerOffsetBehind": "0",
            "timerCongestNum": "0",
            "timerEnqueueTps": "0.0",
            "timerDequeueTps": "0.0",
            "brokerActive": "true",
            "msgPutTotalYesterdayMorning": "1000",
            "msgPutTotalTodayMorning": "81000",
            "msgPutTotalTodayNow": "120000",
            "msgGetTotalYesterdayMorning": "1000",
            "msgGetTotalTodayMorning": "80000",
            "msgGetTotalTodayNow": "118000",
        }
        return OK, json.dumps({"table": table})


def _subscription(topic: str, text: str) -> dict[str, object]:
    tags = [] if text == "*" else [each.strip() for each in text.split("||")]
    return {"classFilterMode": False, "codeSet": [], "expressionType": "TAG", "subString": text, "subVersion": 1,
            "tagsSet": tags, "topic": topic}  # fmt: skip
