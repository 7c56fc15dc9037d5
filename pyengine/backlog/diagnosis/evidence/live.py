"""Evidence from brokers and consumers that run in this process: the same states that files give."""

from __future__ import annotations

import time
from collections.abc import Iterable

from pyengine.activemq.broker.broker import Broker as ActiveMQBroker
from pyengine.activemq.broker.views import QueueView, SubscriptionView
from pyengine.backlog.diagnosis.evidence.model import (
    HERE,
    ClientState,
    ConsumeRates,
    DestinationState,
    Evidence,
    OffsetState,
    ProcessQueueState,
    Source,
    SubscriptionState,
)
from pyengine.errors import MQBrokerError
from pyengine.rocketmq.broker.broker import Broker as RocketMQBroker
from pyengine.rocketmq.consumer.consume_stats import consume_stats
from pyengine.rocketmq.consumer.push_consumer import DefaultMQPushConsumer
from pyengine.rocketmq.consumer.running_info import ConsumerRunningInfo
from pyengine.rocketmq.remoting.cluster_admin import ClusterAdmin
from pyengine.rocketmq.remoting.mq_client_api import SYSTEM_ERROR
from pyengine.topology import BrokerConfiguration


def of_activemq(broker: ActiveMQBroker) -> Evidence:
    """The destinations and subscriptions of a broker as they are now, and its policies."""
    now = broker.clock.now()
    found = Evidence(brokers=[BrokerConfiguration(broker.name, policies=broker.policies, file=HERE)])
    for destination in broker.destinations():
        view = broker.view(destination)
        queue = view if isinstance(view, QueueView) else None
        found.destinations.append(
            DestinationState(
                HERE,
                now,
                broker.name,
                view.name,
                "topic" if queue is None else "queue",
                view.queue_size,
                view.consumer_count,
                producer_count=view.producer_count,
                enqueue_count=view.enqueue_count,
                dequeue_count=view.dequeue_count,
                dispatch_count=view.dispatch_count,
                expired_count=view.expired_count,
                in_flight_count=view.in_flight_count,
                max_page_size=view.max_page_size,
                paused=queue is not None and queue.paused,
                dlq=view.dlq,
                message_groups=() if queue is None else tuple(sorted(queue.message_groups.items())),
            )
        )
    found.subscriptions.extend(_subscription(broker.name, now, each) for each in broker.subscriptions())
    return found


def _subscription(broker: str, now: int, view: SubscriptionView) -> SubscriptionState:
    return SubscriptionState(
        HERE,
        now,
        broker,
        view.destination_name,
        "topic" if view.destination.kind.endswith("topic") else "queue",
        view.client_id,
        view.consumer_id,
        view.prefetch_size,
        selector=view.selector or "",
        exclusive=view.exclusive,
        active=view.active,
        slow=view.slow_consumer,
        durable=view.durable,
        subscription_name=view.subscription_name,
        priority=view.priority,
        no_local=view.no_local,
        awaiting=view.message_count_awaiting_acknowledge,
        pending=view.pending_queue_size,
        enqueue_counter=view.enqueue_counter,
        dequeue_counter=view.dequeue_counter,
        dispatched_counter=view.dispatched_counter,
        discarded=view.discarded_count,
    )


def of_rocketmq(
    broker: RocketMQBroker, group: str, topic: str, consumers: Iterable[DefaultMQPushConsumer] = ()
) -> Evidence:
    """How far a group has got in a topic: what consumerProgress shows of a cluster.

    consumers: all of the group, if they run in this process: they know which of them has a queue. Raises
    MQBrokerError for a topic that does not exist.
    """
    committed = broker.consumer_offsets(group, topic)
    infos = [each.consumer_running_info() for each in consumers]
    owners = {queue: info.client_id for info in infos for queue in info.mq_table}
    known = {info.client_id for info in infos}
    unowned = "" if known.issuperset(_members(broker, group, topic)) else None
    found = Evidence()
    for queue, wrapper in consume_stats(broker, group, topic).offset_table.items():
        found.offsets.append(
            OffsetState(
                HERE,
                broker.clock.now(),
                "rocketmq",
                group,
                topic,
                queue.broker_name,
                queue.queue_id,
                wrapper.broker_offset,
                wrapper.consumer_offset,
                min_offset=broker.min_offset(queue) if queue in committed else None,
                last_time=wrapper.last_timestamp,
                client=owners.get(queue, unowned),
            )
        )
    return found


def _members(broker: RocketMQBroker, group: str, topic: str) -> list[str]:
    try:
        return broker.get_consumer_id_list(topic, group)
    except MQBrokerError as error:
        if error.code != SYSTEM_ERROR:  # the broker's answer for a group without members
            raise
        return []


def of_cluster(admin: ClusterAdmin, group: str, file: str = HERE) -> Evidence:
    """How far a group of a real cluster has got, and what its clients do: consumerProgress and consumerStatus at once.

    file: what the evidence is named after. Raises what ClusterAdmin raises.
    """
    progress = admin.consumer_progress(group, with_clients=False)
    infos = admin.consumer_status(group)
    members = admin.consumer_connection(group)
    now = time.time_ns() // 1_000_000
    owners = {queue: client_id for client_id, info in infos.items() for queue in info.mq_table}
    known = members is None or all(each.client_id in infos for each in members.connections)
    found = Evidence(sources=[Source(file, "RocketMQ cluster", (now,))])
    for queue, wrapper in progress.stats.offset_table.items():
        found.offsets.append(
            OffsetState(
                file,
                now,
                "rocketmq",
                group,
                queue.topic,
                queue.broker_name,
                queue.queue_id,
                wrapper.broker_offset,
                wrapper.consumer_offset,
                inflight=wrapper.inflight,
                last_time=wrapper.last_timestamp,
                client=owners.get(queue, "" if known else None),
                tps=progress.consume_tps,
                dated=True,
            )
        )
    found.clients.extend(_client(info, group, file) for info in infos.values())
    return found


def of_consumer(consumer: DefaultMQPushConsumer) -> Evidence:
    """A push consumer's process queues, subscriptions and rates: what consumerStatus shows of a client."""
    return Evidence(clients=[_client(consumer.consumer_running_info(), consumer.consumer_group, HERE)])


def _client(info: ConsumerRunningInfo, group: str, file: str) -> ClientState:
    queues = tuple(
        ProcessQueueState(
            queue.topic,
            queue.broker_name,
            queue.queue_id,
            int(values["commitOffset"]),
            int(values["cachedMsgMinOffset"]),
            int(values["cachedMsgMaxOffset"]),
            int(values["cachedMsgCount"]),
            int(values["cachedMsgSizeInMiB"]),
            bool(values["locked"]),
            bool(values["droped"]),
            int(values["tryUnlockTimes"]),
            int(values["lastLockTimestamp"]),
            int(values["lastPullTimestamp"]),
            int(values["lastConsumeTimestamp"]),
        )
        for queue, values in info.mq_table.items()
    )
    rates = tuple(
        ConsumeRates(
            topic,
            status.pull_rt,
            status.pull_tps,
            status.consume_rt,
            status.consume_ok_tps,
            status.consume_failed_tps,
            status.consume_failed_msgs,
        )
        for topic, status in info.status_table.items()
    )
    return ClientState(
        file,
        info.now,
        info.client_id,
        group,
        tuple(info.properties.items()),
        tuple((each.topic, each.sub_string) for each in info.subscription_set),
        queues,
        rates,
    )
