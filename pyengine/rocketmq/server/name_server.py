"""What the name server of an embedded cluster answers (DefaultRequestProcessor, ClientRequestProcessor)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pyengine._engine.rocketmq.client.validators import suggested
from pyengine._engine.rocketmq.commands.bodies import write_body
from pyengine._engine.rocketmq.commands.headers import read_header
from pyengine._engine.rocketmq.commands.requests import MASTER, REQUEST_CODE_NOT_SUPPORTED
from pyengine._engine.wire.remoting import RemotingCommand
from pyengine.errors import MQBrokerError
from pyengine.rocketmq.remoting.mq_client_api import QUERY_NOT_FOUND, SYSTEM_ERROR, TOPIC_NOT_EXIST
from pyengine.rocketmq.server.connections import Connection, answer
from pyengine.rocketmq.server.served import Served

STANDARD_JSON_SINCE = 401  # MQVersion.V4_9_4: clients that read only JSON
ROUTE = 105  # GET_ROUTEINFO_BY_TOPIC


class NameServer:
    """The name server of a cluster. served: its brokers, and where they listen."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._settings: dict[str, dict[str, str]] = {}
        self._requests: dict[int, Callable[[Connection, RemotingCommand], RemotingCommand]] = {
            100: self._put_setting,
            101: self._setting,
            102: self._delete_setting,
            ROUTE: self._route,
            106: self._cluster,
            206: self._all_topics,
            216: self._done,
            219: self._settings_of,
            224: self._topics_of_cluster,
            304: self._system_topics,
            311: self._no_topics,
            312: self._no_topics,
            313: self._no_topics,
            901: self._members,
        }

    def requested(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        if (
            request.code != ROUTE
        ):  # a real name server checks no key: a wrong one fails at the broker, which reports why
            self._served.check_access(request)
        process = self._requests.get(request.code)
        if process is None:
            return answer(request, REQUEST_CODE_NOT_SUPPORTED, f" request type {request.code} not supported")
        return process(connection, request)

    def closed(self, connection: Connection) -> None:
        """Nothing is kept of clients."""

    def _route(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        header = read_header("GetRouteInfoRequestHeader", request.ext_fields)
        topic = header["topic"]
        queues = [
            {
                "brokerName": name,
                "perm": config.perm,
                "readQueueNums": config.read_queues,
                "topicSysFlag": config.sys_flag,
                "writeQueueNums": config.write_queues,
            }
            for name, config in self._served.placed(topic or "")
        ]
        if not queues:
            hint = suggested(f"No topic route info in name server for the topic: {topic}")
            return answer(request, TOPIC_NOT_EXIST, hint)
        route: dict[str, Any] = {
            "brokerDatas": [self._broker(connection, str(each["brokerName"])) for each in queues],
            "filterServerTable": {},
            "queueDatas": queues,
        }
        order = self._settings.get("ORDER_TOPIC_CONFIG", {}).get(topic)
        if order is not None:
            route["orderTopicConf"] = order
        if request.version >= STANDARD_JSON_SINCE or header["acceptStandardJsonOnly"]:
            body = json.dumps(route, sort_keys=True, separators=(",", ":")).encode()
        else:
            body = write_body("TopicRouteData", route)
        return answer(request, body=body)

    def _broker(self, connection: Connection, name: str) -> dict[str, Any]:
        address = self._served.address(name, connection.local_host)
        return {
            "brokerAddrs": {MASTER: address},
            "brokerName": name,
            "cluster": self._served.cluster,
            "enableActingMaster": False,
        }

    def _cluster(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        names = list(self._served.nodes)
        body = {
            "brokerAddrTable": {name: self._broker(connection, name) for name in names},
            "clusterAddrTable": {self._served.cluster: names},
        }
        return answer(request, body=write_body("ClusterInfo", body))

    def _members(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        name = read_header("GetBrokerMemberGroupRequestHeader", request.ext_fields)["brokerName"]
        group: dict[str, Any] = {"brokerAddrs": {}, "brokerName": name, "cluster": self._served.cluster}
        if name in self._served.nodes:
            group["brokerAddrs"] = {MASTER: self._served.address(name, connection.local_host)}
        return answer(request, body=write_body("GetBrokerMemberGroupResponseBody", {"brokerMemberGroup": group}))

    def _all_topics(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        return answer(request, body=write_body("TopicList", {"topicList": self._served.topics()}))

    def _topics_of_cluster(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        cluster = read_header("GetTopicsByClusterRequestHeader", request.ext_fields)["cluster"]
        listed = self._served.topics() if cluster == self._served.cluster else []
        return answer(request, body=write_body("TopicList", {"topicList": listed}))

    def _system_topics(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        names = [self._served.cluster, *self._served.nodes]
        address = self._served.address(names[1], connection.local_host)
        return answer(request, body=write_body("TopicList", {"brokerAddr": address, "topicList": names}))

    def _no_topics(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        return answer(request, body=write_body("TopicList", {"topicList": []}))

    def _done(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        return answer(request)

    # Settings of the whole cluster (KVConfigManager)

    def _put_setting(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        namespace, key, value = _key(read_header("PutKVConfigRequestHeader", request.ext_fields))
        self._settings.setdefault(namespace, {})[key] = value or ""
        return answer(request)

    def _setting(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        namespace, key, _ = _key(read_header("GetKVConfigRequestHeader", request.ext_fields))
        value = self._settings.get(namespace, {}).get(key)
        if value is None:
            return answer(request, QUERY_NOT_FOUND, f"No config item, Namespace: {namespace} Key: {key}", {})
        return answer(request, fields={"value": value})

    def _delete_setting(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        namespace, key, _ = _key(read_header("DeleteKVConfigRequestHeader", request.ext_fields))
        self._settings.get(namespace, {}).pop(key, None)
        return answer(request)

    def _settings_of(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        namespace = read_header("GetKVListByNamespaceRequestHeader", request.ext_fields)["namespace"]
        found = self._settings.get(namespace)
        if found is None:
            return answer(request, QUERY_NOT_FOUND, f"No config item, Namespace: {namespace}")
        return answer(request, body=write_body("KVTable", {"table": found}))


def _key(header: Mapping[str, Any]) -> tuple[str, str, str | None]:
    if header["namespace"] is None or header["key"] is None:
        raise MQBrokerError(SYSTEM_ERROR, "namespace or key is null")
    return header["namespace"], header["key"], header.get("value")
