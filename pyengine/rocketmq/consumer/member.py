"""A consumer at work: one member of its group, with its queues, subscriptions and services."""

from __future__ import annotations

import os
import threading
from typing import Any

from pyengine._engine.rocketmq.client.namespaces import with_namespace
from pyengine._engine.rocketmq.client.process_queue import ProcessQueue
from pyengine._engine.rocketmq.client.validators import attached, suggested
from pyengine.errors import ConfigurationError, MQClientError, PyengineError
from pyengine.rocketmq.consumer.brokers import brokers_of
from pyengine.rocketmq.consumer.client import MQClientInstance, release, settle, take_client, unique_instance_name
from pyengine.rocketmq.consumer.concurrent_service import ConsumeMessageConcurrentlyService
from pyengine.rocketmq.consumer.consume_service import ConsumeService
from pyengine.rocketmq.consumer.context import ConsumerContext
from pyengine.rocketmq.consumer.listener import (
    ConsumeConcurrentlyContext,
    ConsumeOrderlyContext,
)
from pyengine.rocketmq.consumer.membership import Membership
from pyengine.rocketmq.consumer.offset_store import ReadOffsetType
from pyengine.rocketmq.consumer.orderly_service import ConsumeMessageOrderlyService
from pyengine.rocketmq.consumer.parameters import PushConsumerParameters
from pyengine.rocketmq.consumer.pulling import Pulling
from pyengine.rocketmq.consumer.push_rebalancing import PushRebalancing
from pyengine.rocketmq.consumer.running_info import as_body, running_info
from pyengine.rocketmq.consumer.send_back import restore_topic
from pyengine.rocketmq.message import (
    MessageExt,
    retry_topic,
)
from pyengine.rocketmq.remoting.mq_client_api import HeartbeatData, SubscriptionData
from pyengine.rocketmq.subscription import build_subscription
from pyengine.rocketmq.tables.allocation import MessageQueue
from pyengine.visible import logger

log = logger("pyengine.rocketmq")

# Status of a listener -> CMResult.
DIRECTLY = {
    "CONSUME_SUCCESS": "CR_SUCCESS",
    "RECONSUME_LATER": "CR_LATER",
    "SUCCESS": "CR_SUCCESS",
    "COMMIT": "CR_COMMIT",
    "ROLLBACK": "CR_ROLLBACK",
    "SUSPEND_CURRENT_QUEUE_A_MOMENT": "CR_LATER",
    None: "CR_RETURN_NULL",
}
INNER_PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"
RESET_WAIT = 10_000


class GroupMember(Membership):
    """What DefaultMQPushConsumer starts: it pulls, rebalances, consumes and commits until it is shut down.

    own_clock: it closes the clock when it stops. Source: DefaultMQPushConsumerImpl.
    """

    context: ConsumerContext
    rebalancing: PushRebalancing

    def __init__(self, parameters: PushConsumerParameters, *, own_clock: bool = False) -> None:
        context = ConsumerContext(parameters)
        super().__init__(context, PushRebalancing(context))
        self.pulling = Pulling(self.context, self.rebalancing, self._submit)
        self.service: ConsumeService | None = None
        self._own_clock = own_clock
        self._life = threading.RLock()

    @property
    def running(self) -> MQClientInstance:
        """The client of a member that was started. Raises MQClientError before that."""
        return self.context.running

    @property
    def consuming(self) -> ConsumeService:
        """The consume service of a member that was started. Raises MQClientError before that."""
        if self.service is None:
            raise self.context.not_ok()
        return self.service

    @property
    def service_state(self) -> str:
        """Where it is in its life, in the real client's words."""
        return self.context.service_state

    @property
    def process_queues(self) -> dict[MessageQueue, ProcessQueue]:
        """The queues that are its own."""
        return self.context.process_queues

    def _submit(self, messages: list[MessageExt], process_queue: ProcessQueue, queue: MessageQueue, go: bool) -> None:
        self.consuming.submit(messages, process_queue, queue, go)

    # -- life

    def start(self) -> None:
        """Check the parameters and start everything. Raises MQClientError with the real client's texts."""
        with self._life:
            self._start()

    def _start(self) -> None:
        context, parameters = self.context, self.context.parameters
        if self.service_state != "CREATE_JUST":
            raise MQClientError(
                suggested(f"The PushConsumer service state not OK, maybe started once, {self.service_state}")
            )
        log.info(
            "the consumer [%s] start beginning. messageModel=%s, isUnitMode=%s",
            context.group,
            getattr(parameters.message_model, "name", parameters.message_model),
            str(parameters.unit_mode).lower(),
        )
        context.service_state = "START_FAILED"
        parameters.check_config(parameters.consumer_group)
        for name, what in parameters.not_done():
            value = getattr(parameters, name)
            log.warning("group: %s: %s=%r asks for %s, which is not done", context.group, name, value, what)
        self._copy_subscription()
        if context.clustering and parameters.instance_name == "DEFAULT":
            parameters.instance_name = unique_instance_name(os.getpid(), context.clock)
        if parameters.broker is None and not parameters.namesrv_addr:
            hint = "No name server address, please set it: DefaultMQPushConsumer(broker=...) or (namesrv_addr=...)"
            raise MQClientError(attached(hint))
        try:
            take_client(self, brokers_of(parameters), context.clock, parameters.build_mq_client_id())
            self._start_services(self.running)
            self._join_group(self.running)
        except BaseException as error:  # the user's Ctrl-C too
            if self.service_state == "RUNNING":
                log.warning("Start the consumer %s fail.", context.group, exc_info=error)
                self.shutdown()
            else:
                self._stop(0)
                context.client = None
            raise
        settle(context.clock)

    def _start_services(self, client: MQClientInstance) -> None:
        context, parameters = self.context, self.context.parameters
        self.check_first(client)
        self.load_offset_store(client, parameters)
        self.service = (
            ConsumeMessageOrderlyService(context, self.rebalancing)
            if context.orderly
            else ConsumeMessageConcurrentlyService(context)
        )
        self.service.start()
        client.start(
            parameters.poll_name_server_interval,
            parameters.heartbeat_broker_interval,
            parameters.persist_consumer_offset_interval,
        )
        client.members[context.group] = self
        context.service_state = "RUNNING"
        log.info("the consumer [%s] start OK.", context.group)

    def _join_group(self, client: MQClientInstance) -> None:
        """Learn of the topics' queues, and have the brokers know of this member."""
        self.update_topic_subscribe_info()
        client.check_in_broker()
        beaten = client.send_heartbeats()
        # Once more: the client's last other member may have left it in between.
        client.register()
        if beaten:
            client.rebalance_service.wakeup()

    def shutdown(self) -> None:
        """Stop: listeners first, then commit, leave the group, stop the client. A second call does nothing.

        One that comes meanwhile, from a listener too, returns when the first is through.
        """
        with self._life:
            self._shutdown()

    def _shutdown(self) -> None:
        if self.service_state != "RUNNING":
            return
        self._stop(self.context.parameters.await_termination_millis_when_shutdown)
        self.context.service_state = "SHUTDOWN_ALREADY"
        settle(self.context.clock)

    def _stop(self, wait: int) -> None:
        """End what was started, the whole or the half of it. wait: ms for listeners."""
        if self.service is not None:
            self.service.shutdown(wait)
        if self.service_state == "RUNNING":
            self.persist_consumer_offset()
        self.leave_group()
        release(self)
        if self._own_clock and self.service_state != "CREATE_JUST":  # when it may be started again
            self.context.clock.close()
        log.info("the consumer [%s] shutdown OK", self.context.group)
        with self.context.lock:
            for process_queue in self.process_queues.values():
                process_queue.dropped = True
            self.process_queues.clear()
        if self.service is not None:
            self.service.close()

    def suspend(self) -> None:
        """Pull nothing more; what is cached is still consumed."""
        self.context.paused = True
        log.info("suspend this consumer, %s", self.context.group)

    def resume(self) -> None:
        """Pull again, and rebalance on this thread."""
        self.context.paused = False
        if self.service_state == "RUNNING":
            self.rebalancing.do_rebalance()
        log.info("resume this consumer, %s", self.context.group)
        settle(self.context.clock)

    def reset_offset_by_timestamp(self, timestamp: int) -> None:
        """Consume every subscribed topic again from what was stored at ``timestamp`` (ms) or later, one by one.

        The consumer is suspended, gives the topic's queues up, lets listeners end for 10 s, commits the new offsets,
        resumes.
        """
        for topic in list(self.subscriptions):
            queues = self.rebalancing.topic_queues.get(topic, ())
            if queues:
                self.reset_offset({queue: self.running.api.search_offset(queue, timestamp) for queue in queues})

    def running_info(self, *, with_stacks: bool) -> dict[str, Any]:
        """What the member is doing, as the wire's ConsumerRunningInfo."""
        return as_body(running_info(self.context, self.consuming.core_pool_size, with_stacks=with_stacks))

    def offsets_of(self, topic: str) -> dict[MessageQueue, int]:
        """Where the member is in each of its queues of a topic."""
        with self.context.lock:
            mine = [queue for queue in self.process_queues if queue.topic == topic]
        return {queue: self.context.store.read_offset(queue, ReadOffsetType.MEMORY_FIRST_THEN_STORE) for queue in mine}

    def consume_directly(self, message: MessageExt) -> dict[str, Any]:
        """Give a message to the listener now, on this thread, regardless of its queue's owner; nothing is committed or
        given back. Returns the fields of the wire's ConsumeMessageDirectlyResult.
        """
        queue = MessageQueue(message.topic, message.broker_name, message.queue_id)
        restore_topic(self.context, [message])
        orderly, clock = self.context.orderly, self.context.clock
        context = ConsumeOrderlyContext(queue) if orderly else ConsumeConcurrentlyContext(queue)
        began = clock.now()
        found = self.consuming.call([message], context, queue, lambda status, raised, interrupt: (status, raised))
        status, raised = found if isinstance(found, tuple) else (None, False)
        return {
            "order": orderly,
            "autoCommit": not isinstance(context, ConsumeOrderlyContext) or context.auto_commit,
            "consumeResult": "CR_THROW_EXCEPTION" if raised else DIRECTLY[None if status is None else status.name],
            "spentTimeMills": clock.now() - began,
        }

    def reset_offset(self, offsets: dict[MessageQueue, int]) -> None:
        """Consume queues again from other offsets, as :meth:`reset_offset_by_timestamp` does."""
        self.suspend()
        try:
            with self.context.lock:
                mine = [queue for queue in self.process_queues if queue in offsets]
                for queue in mine:
                    self.process_queues[queue].dropped = True
                    self.process_queues[queue].clear()
            waiting = threading.Condition()
            with waiting:
                self.context.clock.wait(waiting, lambda: False, RESET_WAIT)
            for queue in mine:
                self.context.store.update_offset(queue, offsets[queue])
                self.rebalancing.remove_process_queue(queue)
        finally:
            self.resume()

    # -- subscriptions

    def subscribe(self, subscription: SubscriptionData) -> None:
        """Want a topic, or want it differently."""
        with self.context.lock:
            self.subscriptions[subscription.topic] = subscription
        if self.client is not None:
            self.client.send_heartbeats()
        settle(self.context.clock)

    def unsubscribe(self, topic: str) -> None:
        """Want a topic no more; its queues go with the next rebalance."""
        with self.context.lock:
            self.subscriptions.pop(topic, None)

    def _copy_subscription(self) -> None:
        try:
            for name, selector in self.context.parameters.subscription.items():
                topic = with_namespace(self.context.namespace, name) if isinstance(name, str) else name
                self.subscriptions[topic] = build_subscription(topic, selector, self.context.clock.now())
        except ConfigurationError:
            raise
        except PyengineError as error:
            raise MQClientError(attached("subscription exception")) from error
        if self.context.clustering:
            topic = retry_topic(self.context.group)
            self.subscriptions[topic] = build_subscription(topic, "*", self.context.clock.now())

    def _heartbeat(self) -> HeartbeatData:
        context, parameters = self.context, self.context.parameters
        return HeartbeatData(
            self.running.client_id,
            context.group,
            parameters.message_model,
            parameters.consume_from_where,
            tuple(self.subscriptions.values()),
            parameters.unit_mode,
        )

    # -- what the client's services call

    def pull_message(self, request: object) -> None:
        """One turn of the pull loop."""
        self.pulling.pull_message(request)  # type: ignore[arg-type]

    def try_rebalance(self) -> bool:
        """Rebalance all topics; False if that changed not all it should, or the consumer is suspended."""
        return not self.context.paused and self.rebalancing.do_rebalance()

    def persist_consumer_offset(self) -> None:
        """Commit the offsets of all queues that are mine."""
        if self.service_state != "RUNNING":
            log.error("group: %s persistConsumerOffset exception", self.context.group, exc_info=self.context.not_ok())
            return
        with self.context.lock:
            queues = set(self.process_queues)
        try:
            self.context.store.persist_all(queues)
        except Exception as error:
            log.error("group: %s persistConsumerOffset exception", self.context.group, exc_info=error)

    def sample(self) -> None:
        """Take a sample of the rates."""
        self.context.statistics.sample(self.context.clock.now())
