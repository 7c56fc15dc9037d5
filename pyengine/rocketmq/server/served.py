"""What the name server and the brokers of a listening cluster know of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from pyengine._engine.rocketmq.client.validators import AUTO_CREATE_TOPIC
from pyengine._engine.wire.remoting import RemotingCommand
from pyengine.clock import Clock
from pyengine.errors import MQBrokerError
from pyengine.rocketmq.broker.broker_node import BrokerNode
from pyengine.rocketmq.broker.message_store import SCHEDULE_TOPIC
from pyengine.rocketmq.broker.timers import TIMER_TOPIC
from pyengine.rocketmq.broker.topic_config import INHERITED, READ_WRITE, TopicConfig
from pyengine.rocketmq.broker.transactions import HALF_TOPIC, OP_TOPIC
from pyengine.rocketmq.remoting.acl import SessionCredentials
from pyengine.rocketmq.remoting.mq_client_api import NO_PERMISSION, ClientEvents, HeartbeatData
from pyengine.rocketmq.server.connections import address_text

CLUSTER = "DefaultCluster"


class EmbeddedCluster(Protocol):
    """The part of a Broker that is served."""

    clock: Clock
    nodes: dict[str, BrokerNode]

    def settle(self) -> None: ...
    def register_client(self, client_id: str, events: ClientEvents) -> None: ...
    def heartbeat(self, heartbeat: HeartbeatData, nodes: Iterable[BrokerNode]) -> None: ...
    def leave(self, client_id: str, group: str, nodes: Iterable[BrokerNode]) -> None: ...


class Served:
    """A cluster on the network. ports: of its brokers. accounts: whose requests are served; None serves any client.
    new_queues: of TBW102, 0 if no send makes a topic.
    """

    cluster = CLUSTER

    def __init__(
        self, broker: EmbeddedCluster, ports: Mapping[str, int], accounts: Sequence[SessionCredentials], new_queues: int
    ) -> None:
        self.broker = broker
        self._ports = ports
        self._accounts = {each.access_key: each for each in accounts}
        self._new_queues = new_queues
        self._own_topics = {name: self._topics_of_its_own(name) for name in broker.nodes}

    @property
    def nodes(self) -> Mapping[str, BrokerNode]:
        """The brokers by name."""
        return self.broker.nodes

    def address(self, name: str, local_host: str) -> str:
        """Where a client that has reached ``local_host`` reaches a broker."""
        return address_text((local_host, self._ports[name]))

    def topics(self) -> list[str]:
        """Every topic, those of the cluster itself first."""
        return list(dict.fromkeys(topic for name in self.nodes for topic in self.all_topics(name)))

    def own_topics(self, broker: str) -> Mapping[str, TopicConfig]:
        """The topics that a broker has for itself."""
        return self._own_topics[broker]

    def _topics_of_its_own(self, broker: str) -> dict[str, TopicConfig]:
        """TopicConfigManager.init."""
        found = {
            "SELF_TEST_TOPIC": TopicConfig(1, 1),
            "BenchmarkTest": TopicConfig(1024, 1024),
            self.cluster: TopicConfig(16, 16, READ_WRITE | INHERITED),
            broker: TopicConfig(1, 1, READ_WRITE | INHERITED),
            "OFFSET_MOVED_EVENT": TopicConfig(1, 1),
            SCHEDULE_TOPIC: TopicConfig(18, 18),
            f"{self.cluster}_REPLY_TOPIC": TopicConfig(1, 1),
            f"rmq_sys_REVIVE_LOG_{self.cluster}": TopicConfig(8, 8),
            f"rmq_sys_SYNC_BROKER_MEMBER_{broker}": TopicConfig(1, 1, INHERITED),
            HALF_TOPIC: TopicConfig(1, 1),
            OP_TOPIC: TopicConfig(1, 1),
            TIMER_TOPIC: TopicConfig(1, 1),
        }
        if self._new_queues:
            found[AUTO_CREATE_TOPIC] = TopicConfig(self._new_queues, self._new_queues, READ_WRITE | INHERITED)
        return found

    def all_topics(self, broker: str) -> dict[str, TopicConfig]:
        """The topics of a broker, its own first."""
        node = self.nodes[broker]
        found = dict(self.own_topics(broker))
        for topic in list(node.topics):
            config = node.topic_config(topic)
            if config is not None:
                found[topic] = config
        return found

    def topic_at(self, broker: str, topic: str) -> TopicConfig | None:
        """How a topic lies on a broker, None if it does not."""
        return self.own_topics(broker).get(topic) or self.nodes[broker].topic_config(topic)

    def placed(self, topic: str) -> Iterator[tuple[str, TopicConfig]]:
        """The brokers that have a topic, and how it lies there."""
        for name in self.nodes:
            config = self.topic_at(name, topic)
            if config is not None:
                yield name, config

    def new_topic_queues(self, broker: str, topic: str, default_topic: str | None, wanted: int) -> int:
        """How many queues a topic gets that a send makes; 0 if it must not (createTopicInSendMessageMethod)."""
        own = self.own_topics(broker).get(topic)
        if own is not None:
            return own.queues
        if default_topic != AUTO_CREATE_TOPIC:
            return 0
        return max(0, min(wanted, self._new_queues))

    def check_access(self, request: RemotingCommand) -> None:
        """Raise MQBrokerError, in the words of PlainPermissionManager, for a request that no account has signed."""
        if not self._accounts:
            return
        fields = request.ext_fields or {}
        key = fields.get("AccessKey", "")
        if not key:
            raise MQBrokerError(NO_PERMISSION, "No accessKey is configured")
        account = self._accounts.get(key)
        if account is None:
            raise MQBrokerError(NO_PERMISSION, f"No acl config for {key}")
        if not account.has_signed(request):
            raise MQBrokerError(NO_PERMISSION, f"Check signature failed for accessKey={account.access_key}")
