"""What administrators ask of a real cluster: the calls behind mqadmin's commands, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pyengine._engine.rocketmq.commands.bodies import read_body
from pyengine._engine.rocketmq.commands.requests import CONSUMER_NOT_ONLINE
from pyengine.attributes import frozen, named_arguments
from pyengine.dataclass import dataclass
from pyengine.errors import MQBrokerError, ProtocolError, RemotingError
from pyengine.rocketmq.consumer.consume_stats import ConsumeStats, OffsetWrapper, offset_wrapper
from pyengine.rocketmq.consumer.running_info import ConsumerRunningInfo, from_body
from pyengine.rocketmq.message import retry_topic
from pyengine.rocketmq.remoting.acl import SessionCredentials
from pyengine.rocketmq.remoting.cluster import Cluster
from pyengine.rocketmq.remoting.mq_client_api import plain_text, queue_of
from pyengine.rocketmq.remoting.tls import tls_of
from pyengine.rocketmq.tables.allocation import MessageQueue, sort_queues
from pyengine.visible import logger

if TYPE_CHECKING:
    import ssl

log = logger("pyengine.rocketmq")


@frozen
@dataclass(frozen=True, slots=True)
class BrokerState:
    """A broker as clusterList shows it. runtime_info: all that it reports, by RocketMQ's names."""

    cluster: str
    name: str
    broker_id: int
    address: str
    version: str
    in_tps: float
    out_tps: float
    runtime_info: Mapping[str, str]


@frozen
@dataclass(frozen=True, slots=True)
class QueueState:
    """A queue as topicStatus shows it. last_updated: ms, when its newest message was stored, 0 without one."""

    min_offset: int
    max_offset: int
    last_updated: int


@frozen
@dataclass(frozen=True, slots=True)
class ClientConnection:
    """A client as consumerConnection shows it. version: MQVersion's number."""

    client_id: str
    address: str
    language: str
    version: int


@frozen
@dataclass(frozen=True, slots=True)
class ConsumerConnections:
    """A group that is online. subscriptions: topic -> expression."""

    connections: tuple[ClientConnection, ...]
    consume_type: str
    message_model: str
    consume_from_where: str
    subscriptions: Mapping[str, str]


@frozen
@dataclass(frozen=True, slots=True)
class GroupProgress:
    """A group as consumerProgress shows it. stats: its queues. owners: queue -> client id, of those that are known."""

    group: str
    stats: ConsumeStats
    consume_tps: float
    owners: Mapping[MessageQueue, str] = field(default_factory=dict)


@named_arguments
class ClusterAdmin:
    """A real cluster as mqadmin sees it. namesrv_addr: ``host:port;host:port``. rpc_hook: signs the requests.
    use_tls, ssl_context: as with ClientConfig.

    Its calls raise RemotingError if no server can be reached, MQBrokerError if a broker refuses, MQClientError for
    a topic or a group that no name server knows. A context manager; leaving it ends the connections.
    """

    def __init__(
        self,
        namesrv_addr: str,
        *,
        rpc_hook: SessionCredentials | None = None,
        use_tls: bool = False,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._cluster = Cluster(namesrv_addr, credentials=rpc_hook, ssl_context=tls_of(use_tls, ssl_context))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connections."""
        self._cluster.close()

    def cluster_list(self) -> list[BrokerState]:
        """Every broker, with what it reports."""
        info = self._cluster.cluster_info()
        found = []
        for cluster, names in sorted(info["clusterAddrTable"].items()):
            for name in sorted(names or ()):
                addresses = (info["brokerAddrTable"].get(name) or {}).get("brokerAddrs") or {}
                for broker_id, address in sorted(addresses.items()):
                    found.append(_broker_state(cluster, name, broker_id, address, self._runtime_info(address)))
        return found

    def _runtime_info(self, address: str) -> dict[str, str]:
        body = self._cluster.ask_broker(address, 28, {}).body
        table: dict[str, str] = (read_body("KVTable", body or b"") or {}).get("table") or {}
        return table

    def topic_status(self, topic: str) -> dict[MessageQueue, QueueState]:
        """The queues of a topic, in their order."""
        found: dict[MessageQueue, QueueState] = {}
        for address in self._cluster.masters(plain_text("topic", topic)):
            answer = self._cluster.ask_broker(address, 202, {"topic": topic})
            table = (read_body("TopicStatsTable", answer.body or b"") or {}).get("offsetTable") or {}
            for queue, each in table.items():
                found[queue_of(queue)] = QueueState(each["minOffset"], each["maxOffset"], each["lastUpdateTimestamp"])
        return {queue: found[queue] for queue in sort_queues(list(found))}

    def consumer_connection(self, group: str) -> ConsumerConnections | None:
        """The members of a group, from the first of its brokers that knows it; None if it has none."""
        for address in self._cluster.masters(retry_topic(group)):
            try:
                answer = self._cluster.ask_broker(address, 203, {"consumerGroup": group})
            except MQBrokerError as error:
                if error.code != CONSUMER_NOT_ONLINE:
                    raise
                continue
            body = read_body("ConsumerConnection", answer.body or b"")
            if body is None:
                raise ProtocolError(f"{address}: the connections of {group} are not there")
            listed = [
                ClientConnection(
                    each["clientId"] or "", each["clientAddr"] or "", each["language"] or "", each["version"]
                )
                for each in body["connectionSet"] or ()
            ]
            return ConsumerConnections(
                tuple(sorted(listed, key=lambda each: each.client_id)), body["consumeType"] or "",
                body["messageModel"] or "", body["consumeFromWhere"] or "",
                {topic: each["subString"] or "" for topic, each in (body["subscriptionTable"] or {}).items()},
            )  # fmt: skip
        return None

    def consumer_status(self, group: str, *, with_stacks: bool = False) -> dict[str, ConsumerRunningInfo]:
        """What each member of a group is doing, by client id, as the member itself says; one that does not answer is
        left out, with a line in the log. with_stacks: with its threads.
        """
        members = self.consumer_connection(group)
        found: dict[str, ConsumerRunningInfo] = {}
        for member in members.connections if members is not None else ():
            fields = {
                "consumerGroup": group, "clientId": member.client_id, "jstackEnable": str(with_stacks).lower(),
            }  # fmt: skip
            for address in self._cluster.masters(retry_topic(group)):
                try:
                    answer = self._cluster.ask_broker(address, 307, fields, 15_000)
                except (MQBrokerError, RemotingError) as error:
                    log.warning("get Consumer RunningInfo of %s: %s", member.client_id, error)
                    continue
                body = read_body("ConsumerRunningInfo", answer.body or b"")
                if body is not None:
                    found[member.client_id] = from_body(member.client_id, self._cluster.clock.now(), body)
                    break
        return found

    def consumer_progress(self, group: str, topic: str | None = None, *, with_clients: bool = True) -> GroupProgress:
        """How far a group is behind in the topics that it has committed offsets of, or in one. with_clients: ask the
        members which of them has a queue.
        """
        table: dict[MessageQueue, OffsetWrapper] = {}
        tps = 0.0
        fields = {"consumerGroup": group} | ({} if topic is None else {"topic": plain_text("topic", topic)})
        for address in self._cluster.masters(retry_topic(group)):
            body = read_body("ConsumeStats", self._cluster.ask_broker(address, 208, fields).body or b"") or {}
            tps += body.get("consumeTps") or 0.0
            for queue, each in (body.get("offsetTable") or {}).items():
                table[queue_of(queue)] = offset_wrapper(
                    each["brokerOffset"], each["consumerOffset"], each["pullOffset"], each["lastTimestamp"] or None
                )
        owners: dict[MessageQueue, str] = {}
        if with_clients:
            for client_id, info in self.consumer_status(group).items():
                owners.update(dict.fromkeys(info.mq_table, client_id))
        stats = ConsumeStats({queue: table[queue] for queue in sort_queues(list(table))})
        return GroupProgress(group, stats, tps, owners)


def _broker_state(cluster: str, name: str, broker_id: int, address: str, info: Mapping[str, str]) -> BrokerState:
    def first(*names: str) -> float:
        for each in names:
            words = info.get(each, "").split()
            if words:
                return float(words[0])
        return 0.0

    return BrokerState(
        cluster, name, broker_id, address, info.get("brokerVersionDesc", ""), first("putTps"),
        first("getTransferredTps", "getTransferedTps"), info,
    )  # fmt: skip
