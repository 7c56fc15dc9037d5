"""A member of a group, of either kind of consumer: it joins with its client, sends heartbeats, leaves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Protocol

from pyengine._engine.rocketmq.client.validators import suggested
from pyengine.errors import MQClientError
from pyengine.rocketmq.consumer.client import MQClientInstance
from pyengine.rocketmq.consumer.context import MemberContext
from pyengine.rocketmq.consumer.local_offset_store import LocalFileOffsetStore
from pyengine.rocketmq.consumer.offset_store import OffsetStore, RemoteBrokerOffsetStore
from pyengine.rocketmq.consumer.rebalancing import Rebalancing
from pyengine.rocketmq.remoting.mq_client_api import HeartbeatData, SubscriptionData
from pyengine.visible import logger

log = logger("pyengine.rocketmq")


class StoreParameters(Protocol):
    """The parameters of the offset store."""

    offset_store: OffsetStore | None
    local_offset_store_dir: str | Path | None


class Membership(ABC):
    """A member's place in its group. Its parts see the context; the rebalancing has the queues of its topics."""

    def __init__(self, context: MemberContext, rebalancing: Rebalancing) -> None:
        self.context = context
        self.rebalancing = rebalancing

    @property
    def client(self) -> MQClientInstance | None:
        """Its client, None until it was started."""
        return self.context.client

    @client.setter
    def client(self, client: MQClientInstance | None) -> None:
        self.context.client = client

    @property
    def subscriptions(self) -> dict[str, SubscriptionData]:
        """Topic -> its subscription."""
        return self.context.subscriptions

    def check_first(self, client: MQClientInstance) -> None:
        """Before a thread is made: raise MQClientError if the client has a member of the group, IllegalStateError for a
        closed clock.
        """
        context = self.context
        if context.group in client.members:
            context.service_state = "CREATE_JUST"
            raise MQClientError(
                suggested(f"The consumer group[{context.group}] has been created before, specify another name please.")
            )
        context.clock.call_at(context.clock.now(), bool).cancel()

    def load_offset_store(self, client: MQClientInstance, parameters: StoreParameters) -> None:
        """Use the offset store that was given, else that of the message model."""
        context = self.context
        if parameters.offset_store is None:
            parameters.offset_store = (
                RemoteBrokerOffsetStore(client.api, context.group)
                if context.clustering
                else LocalFileOffsetStore(client.client_id, context.group, directory=parameters.local_offset_store_dir)
            )
        context.offset_store = parameters.offset_store
        context.offset_store.load()

    def leave_group(self) -> None:
        """Be a member no more, and tell the brokers."""
        client, group = self.client, self.context.group
        if client is not None and client.members.get(group, self) is self:
            client.members.pop(group, None)
            try:
                client.api.unregister_client(client.client_id, group)
            except Exception as error:
                log.warning(
                    "unregister client RemotingException from broker: %s (group %s)",
                    client.client_id,
                    group,
                    exc_info=error,
                )

    # -- called by the services of the client

    def update_topic_subscribe_info(self) -> None:
        """Ask for the queues of every topic that is wanted."""
        for topic in list(self.subscriptions):
            queues = self.context.running.api.topic_subscribe_info(topic)
            if queues is not None:
                self.rebalancing.topic_queues[topic] = set(queues)

    def send_heartbeat(self) -> bool:
        """Send the heartbeat to the brokers; False if that failed."""
        heartbeat = self._heartbeat()
        try:
            self.context.running.api.send_heartbeat(heartbeat)
        except Exception as error:
            log.warning("send heart beat to broker exception (group %s)", self.context.group, exc_info=error)
            return False
        return True

    @abstractmethod
    def _heartbeat(self) -> HeartbeatData:
        """The heartbeat of this member."""
