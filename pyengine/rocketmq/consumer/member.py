"""A consumer at work: one member of its group, with its queues, subscriptions and services."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from pyengine._engine.rocketmq.client.consume_concurrently import restored_topic
from pyengine._engine.rocketmq.client.process_queue import ProcessQueue
from pyengine._engine.rocketmq.client.validators import attached, suggested
from pyengine.clock import ManualClock
from pyengine.errors import ConfigurationError, MQClientError, PyengineError
from pyengine.rocketmq.consumer.client import MQClientInstance, release, settle, take_client, unique_instance_name
from pyengine.rocketmq.consumer.concurrent_service import ConsumeMessageConcurrentlyService
from pyengine.rocketmq.consumer.consume_service import ConsumeService
from pyengine.rocketmq.consumer.consume_status import ConsumeStatistics
from pyengine.rocketmq.consumer.listener import MessageListenerOrderly
from pyengine.rocketmq.consumer.local_offset_store import LocalFileOffsetStore
from pyengine.rocketmq.consumer.offset_store import OffsetStore, RemoteBrokerOffsetStore
from pyengine.rocketmq.consumer.orderly_service import ConsumeMessageOrderlyService
from pyengine.rocketmq.consumer.pulling import Pulling
from pyengine.rocketmq.consumer.rebalancing import Rebalancing
from pyengine.rocketmq.message import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_MAX_RECONSUME_TIMES,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_RECONSUME_TIME,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_TRANSACTION_PREPARED,
    Message,
    MessageExt,
    retry_topic,
)
from pyengine.rocketmq.remoting.channel import local_address
from pyengine.rocketmq.remoting.cluster import name_servers, shared_cluster
from pyengine.rocketmq.remoting.mq_client_api import HeartbeatData, MessageModel, MQClientAPI, SubscriptionData
from pyengine.rocketmq.subscription import build_subscription
from pyengine.rocketmq.tables.allocation import MessageQueue
from pyengine.visible import logger

if TYPE_CHECKING:
    from pyengine.rocketmq.consumer.push_consumer import DefaultMQPushConsumer

log = logger("pyengine.rocketmq")

INNER_PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"
RESET_WAIT = 10_000


class GroupMember:
    """What DefaultMQPushConsumer starts: it pulls, rebalances, consumes and commits until it is shut down.

    consumer: its parameters, read at each use. Source: DefaultMQPushConsumerImpl.
    """

    def __init__(self, consumer: DefaultMQPushConsumer) -> None:
        self.consumer = consumer
        self.clock = consumer.clock
        self.lock = threading.RLock()
        self._life = threading.RLock()
        self.service_state = "CREATE_JUST"
        self.paused = False
        self.exception_delay = consumer.pull_time_delay_mills_when_exception
        self.start_timestamp = self.clock.now()
        self.subscriptions: dict[str, SubscriptionData] = {}
        self.process_queues: dict[MessageQueue, ProcessQueue] = {}
        self.statistics = ConsumeStatistics()
        self.client: MQClientInstance | None = None
        self.offset_store: OffsetStore | None = None
        self.service: ConsumeService | None = None
        self.pulling = Pulling(self)
        self.rebalancing = Rebalancing(self)

    @property
    def group(self) -> str:
        """The consumer group."""
        return self.consumer.consumer_group

    @property
    def clustering(self) -> bool:
        """True unless every member gets everything."""
        return self.consumer.message_model is MessageModel.CLUSTERING

    @property
    def orderly(self) -> bool:
        """True if each queue is consumed in order."""
        return isinstance(self.consumer.message_listener, MessageListenerOrderly)

    @property
    def running(self) -> MQClientInstance:
        """The client of a member that was started. Raises MQClientError before that."""
        if self.client is None:
            raise self.not_ok()
        return self.client

    @property
    def store(self) -> OffsetStore:
        """The offset store of a member that was started. Raises MQClientError before that."""
        if self.offset_store is None:
            raise self.not_ok()
        return self.offset_store

    @property
    def consuming(self) -> ConsumeService:
        """The consume service of a member that was started. Raises MQClientError before that."""
        if self.service is None:
            raise self.not_ok()
        return self.service

    def not_ok(self) -> MQClientError:
        """What the real client says of a consumer that does not run."""
        return MQClientError(suggested(f"The consumer service state not OK, {self.service_state}"))

    # -- life

    def start(self) -> None:
        """Check the parameters and start everything. Raises MQClientError with the real client's texts."""
        with self._life:
            self._start()

    def _start(self) -> None:
        consumer = self.consumer
        if self.service_state != "CREATE_JUST":
            raise MQClientError(
                suggested(f"The PushConsumer service state not OK, maybe started once, {self.service_state}")
            )
        self.service_state = "START_FAILED"
        consumer.check_config(consumer.consumer_group)
        for name, what in consumer.not_done():
            value = getattr(consumer, name)
            log.warning("group: %s: %s=%r asks for %s, which is not done", self.group, name, value, what)
        self._copy_subscription()
        if self.clustering and consumer.instance_name == "DEFAULT":
            consumer.instance_name = unique_instance_name(os.getpid(), self.clock)
        if consumer.broker is None and not consumer.namesrv_addr:
            hint = "No name server address, please set it: DefaultMQPushConsumer(broker=...) or (namesrv_addr=...)"
            raise MQClientError(attached(hint))
        try:
            take_client(self, self._api(), self.clock, consumer.build_mq_client_id())
            self._start_services(self.running)
            self._join_group(self.running)
        except BaseException as error:  # the user's Ctrl-C too
            if self.service_state == "RUNNING":
                log.warning("Start the consumer %s fail.", self.group, exc_info=error)
                self.shutdown()
            else:
                self._stop(0)
                self.client = None
            raise
        settle(self.clock)

    def _api(self) -> MQClientAPI:
        """The brokers: those that were given, or those behind the name servers."""
        consumer = self.consumer
        if consumer.broker is not None:
            return consumer.broker
        consumer.check_network()
        addr, clock, hook = consumer.namesrv_addr or "", self.clock, consumer.rpc_hook
        if isinstance(clock, ManualClock):
            raise ConfigurationError("clock", repr(clock), "a real cluster goes by the system's time", "leave it out")
        if consumer.client_ip == "127.0.0.1":
            consumer.client_ip = local_address(name_servers(addr)[0])
        return shared_cluster(addr, consumer.build_mq_client_id(), hook)

    def _start_services(self, client: MQClientInstance) -> None:
        consumer = self.consumer
        if self.group in client.members:
            self.service_state = "CREATE_JUST"
            raise MQClientError(
                suggested(f"The consumer group[{self.group}] has been created before, specify another name please.")
            )
        # Raises for a clock that is closed, before a thread is made.
        self.clock.call_at(self.clock.now(), bool).cancel()
        if consumer.offset_store is None:
            consumer.offset_store = self._make_offset_store(client)
        self.offset_store = consumer.offset_store
        self.offset_store.load()
        self.service = (ConsumeMessageOrderlyService if self.orderly else ConsumeMessageConcurrentlyService)(self)
        self.service.start()
        client.start(
            consumer.poll_name_server_interval,
            consumer.heartbeat_broker_interval,
            consumer.persist_consumer_offset_interval,
        )
        client.members[self.group] = self
        self.service_state = "RUNNING"
        log.info("the consumer [%s] start OK.", self.group)

    def _join_group(self, client: MQClientInstance) -> None:
        """Learn of the topics' queues, and have the brokers know of this member."""
        self.update_topic_subscribe_info()
        client.check_in_broker()
        beaten = client.send_heartbeats()
        # Once more: the client's last other member may have left it in between.
        client.register()
        if beaten:
            client.rebalance_service.wakeup()

    def _make_offset_store(self, client: MQClientInstance) -> OffsetStore:
        if not self.clustering:
            return LocalFileOffsetStore(client.client_id, self.group, directory=self.consumer.local_offset_store_dir)
        return RemoteBrokerOffsetStore(client.api, self.group)

    def shutdown(self) -> None:
        """Stop: listeners first, then commit, leave the group, stop the client. A second call does nothing.

        One that comes meanwhile, from a listener too, returns when the first is through.
        """
        with self._life:
            self._shutdown()

    def _shutdown(self) -> None:
        if self.service_state != "RUNNING":
            return
        self._stop(self.consumer.await_termination_millis_when_shutdown)
        self.service_state = "SHUTDOWN_ALREADY"
        settle(self.clock)

    def _stop(self, wait: int) -> None:
        """End what was started, the whole or the half of it. wait: ms for listeners."""
        if self.service is not None:
            self.service.shutdown(wait)
        if self.service_state == "RUNNING":
            self.persist_consumer_offset()
        client = self.client
        if client is not None and client.members.get(self.group, self) is self:
            client.members.pop(self.group, None)
            try:
                client.api.unregister_client(client.client_id, self.group)
            except Exception as error:
                log.warning("unregister client RemotingException from broker: %s", client.client_id, exc_info=error)
        release(self)
        if self.consumer._own_clock and self.service_state != "CREATE_JUST":  # when it may be started again
            self.clock.close()
        log.info("the consumer [%s] shutdown OK", self.group)
        with self.lock:
            for process_queue in self.process_queues.values():
                process_queue.dropped = True
            self.process_queues.clear()
        if self.service is not None:
            self.service.close()

    def suspend(self) -> None:
        """Pull nothing more; what is cached is still consumed."""
        self.paused = True
        log.info("suspend this consumer, %s", self.group)

    def resume(self) -> None:
        """Pull again, and rebalance on this thread."""
        self.paused = False
        if self.service_state == "RUNNING":
            self.rebalancing.do_rebalance()
        log.info("resume this consumer, %s", self.group)
        settle(self.clock)

    def reset_offset_by_timestamp(self, timestamp: int) -> None:
        """Consume every subscribed topic again from what was stored at ``timestamp`` (ms) or later, one by one.

        The consumer is suspended, gives the topic's queues up, lets listeners end for 10 s, commits the new offsets,
        resumes.
        """
        for topic in list(self.subscriptions):
            queues = self.rebalancing.topic_queues.get(topic, ())
            if queues:
                self._reset({queue: self.running.api.search_offset(queue, timestamp) for queue in queues})

    def _reset(self, offsets: dict[MessageQueue, int]) -> None:
        self.suspend()
        try:
            with self.lock:
                mine = [queue for queue in self.process_queues if queue in offsets]
                for queue in mine:
                    self.process_queues[queue].dropped = True
                    self.process_queues[queue].clear()
            waiting = threading.Condition()
            with waiting:
                self.clock.wait(waiting, lambda: False, RESET_WAIT)
            for queue in mine:
                self.store.update_offset(queue, offsets[queue])
                self.rebalancing.remove_process_queue(queue)
        finally:
            self.resume()

    # -- subscriptions

    def subscribe(self, subscription: SubscriptionData) -> None:
        """Want a topic, or want it differently."""
        with self.lock:
            self.subscriptions[subscription.topic] = subscription
        if self.client is not None:
            self.client.send_heartbeats()
        settle(self.clock)

    def unsubscribe(self, topic: str) -> None:
        """Want a topic no more; its queues go with the next rebalance."""
        with self.lock:
            self.subscriptions.pop(topic, None)

    def _copy_subscription(self) -> None:
        try:
            for topic, selector in self.consumer.subscription.items():
                self.subscriptions[topic] = build_subscription(topic, selector, self.clock.now())
        except ConfigurationError:
            raise
        except PyengineError as error:
            raise MQClientError(attached("subscription exception")) from error
        if self.clustering:
            topic = retry_topic(self.group)
            self.subscriptions[topic] = build_subscription(topic, "*", self.clock.now())

    def update_topic_subscribe_info(self) -> None:
        """Ask for the queues of every topic that is wanted."""
        for topic in list(self.subscriptions):
            queues = self.running.api.topic_subscribe_info(topic)
            if queues is not None:
                self.rebalancing.topic_queues[topic] = set(queues)

    def send_heartbeat(self) -> bool:
        """Tell the brokers what this member wants; False if they could not be told."""
        consumer = self.consumer
        heartbeat = HeartbeatData(
            self.running.client_id,
            self.group,
            consumer.message_model,
            consumer.consume_from_where,
            tuple(self.subscriptions.values()),
            consumer.unit_mode,
        )
        try:
            self.running.api.send_heartbeat(heartbeat)
        except Exception as error:
            log.warning("send heart beat to broker exception", exc_info=error)
            return False
        return True

    # -- what the client's services call

    def pull_message(self, request: object) -> None:
        """One turn of the pull loop."""
        self.pulling.pull_message(request)  # type: ignore[arg-type]

    def try_rebalance(self) -> bool:
        """Rebalance all topics; False if that changed not all it should, or the consumer is suspended."""
        return not self.paused and self.rebalancing.do_rebalance()

    def persist_consumer_offset(self) -> None:
        """Commit the offsets of all queues that are mine."""
        if self.service_state != "RUNNING":
            log.error("group: %s persistConsumerOffset exception", self.group, exc_info=self.not_ok())
            return
        with self.lock:
            queues = set(self.process_queues)
        try:
            self.store.persist_all(queues)
        except Exception as error:
            log.error("group: %s persistConsumerOffset exception", self.group, exc_info=error)

    def sample(self) -> None:
        """Take a sample of the rates."""
        self.statistics.sample(self.clock.now())

    # -- messages on their way back

    def max_reconsume_times(self) -> int:
        """16 unless set."""
        times = self.consumer.max_reconsume_times
        return 16 if times == -1 else times

    def restore_topic(self, messages: list[MessageExt]) -> None:
        """A retried message has the topic it was sent to again."""
        for message in messages:
            sent_to = message.properties.get(PROPERTY_RETRY_TOPIC)
            if sent_to is not None:
                message.topic = restored_topic(message.topic, sent_to, retry_topic(self.group))

    def send_message_back(self, message: MessageExt, delay_level: int, queue: MessageQueue | None = None) -> None:
        """Give a message back to the broker, as a message to the retry topic if that fails. Raises what that raises.

        queue: where it came from, for the log.
        """
        try:
            self.running.api.consumer_send_message_back(self.group, message, delay_level, self.max_reconsume_times())
        except Exception as error:
            log.error(
                "Failed to send message back, consumerGroup=%s, brokerName=%s, mq=%s, message=%s",
                self.group,
                message.broker_name,
                "null" if queue is None else queue,
                message,
                exc_info=error,
            )
            self.send_to_retry_topic(message, self.max_reconsume_times())

    def send_to_retry_topic(self, message: MessageExt, max_reconsume_times: int) -> None:
        """Send a copy of the message to the group's retry topic. Raises PyengineError where it cannot be stored.

        The copy's properties are the message's own, as in the real client: they stay with a message that is kept.
        """
        properties = message.properties
        if not properties.get(PROPERTY_ORIGIN_MESSAGE_ID, "").strip():
            properties[PROPERTY_ORIGIN_MESSAGE_ID] = message.msg_id
        properties[PROPERTY_RETRY_TOPIC] = message.topic
        properties[PROPERTY_RECONSUME_TIME] = str(message.reconsume_times + 1)
        properties[PROPERTY_MAX_RECONSUME_TIMES] = str(max_reconsume_times)
        properties.pop(PROPERTY_TRANSACTION_PREPARED, None)
        properties[PROPERTY_DELAY_TIME_LEVEL] = str(3 + message.reconsume_times)
        copy = Message(retry_topic(self.group), message.body, properties=properties, flag=message.flag)
        self.running.api.send_message(INNER_PRODUCER_GROUP, copy)
