"""A lite pull consumer at work: its subscriptions or assigned queues, their offsets, and its client."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from pyengine._engine.rocketmq.client.lite_pull import AssignedQueues
from pyengine._engine.rocketmq.client.namespaces import without_namespace
from pyengine._engine.rocketmq.client.validators import attached, suggested
from pyengine.clock import ManualClock
from pyengine.errors import ConfigurationError, IllegalStateError, MQClientError, PyengineError
from pyengine.rocketmq.consumer.brokers import brokers_of
from pyengine.rocketmq.consumer.client import (
    MQClientInstance,
    Periodic,
    release,
    settle,
    take_client,
    unique_instance_name,
)
from pyengine.rocketmq.consumer.context import MemberContext
from pyengine.rocketmq.consumer.listener import MessageQueueListener
from pyengine.rocketmq.consumer.lite_pull_parameters import LitePullConsumerParameters
from pyengine.rocketmq.consumer.lite_pulling import LitePulling
from pyengine.rocketmq.consumer.lite_rebalancing import LiteRebalancing
from pyengine.rocketmq.consumer.membership import Membership
from pyengine.rocketmq.consumer.offset_store import ReadOffsetType
from pyengine.rocketmq.consumer.running_info import as_body, lite_running_info
from pyengine.rocketmq.message import MessageExt
from pyengine.rocketmq.remoting.mq_client_api import ConsumeFromWhere, HeartbeatData, MessageModel, SubscriptionData
from pyengine.rocketmq.subscription import MessageSelector, build_subscription
from pyengine.rocketmq.tables.allocation import MessageQueue, sort_queues
from pyengine.visible import logger

log = logger("pyengine.rocketmq")

NOT_RUNNING = "The consumer not running, please start it first."
CONFLICT = "Subscribe and assign are mutually exclusive."
METADATA_FIRST = 10_000  # ms until the queues of topics with a listener are compared for the first time

TopicListener = Callable[[str, set[MessageQueue]], Any]


class _Assigning(MessageQueueListener):
    """Has the queues pulled that are allocated, then tells the user's listener."""

    def __init__(self, member: LitePullMember, listener: MessageQueueListener | None) -> None:
        self._member = member
        self._listener = listener

    def message_queue_changed(self, topic: str, all_queues: set[MessageQueue], mine: set[MessageQueue]) -> None:
        self._member.assigned_by_rebalance(topic, all_queues, mine)
        if self._listener is not None:
            self._listener.message_queue_changed(topic, all_queues, mine)


class LitePullMember(Membership):
    """What DefaultLitePullConsumer starts. own_clock: it closes the clock when it stops.

    One call at a time, as in the real consumer: while poll() waits, what another thread asks for waits too. Source:
    DefaultLitePullConsumerImpl.
    """

    def __init__(self, parameters: LitePullConsumerParameters, *, own_clock: bool = False) -> None:
        self.parameters = parameters
        context = MemberContext(parameters)
        super().__init__(context, LiteRebalancing(context, parameters))
        self.assigned = AssignedQueues()
        self._pulling = LitePulling(
            self.context,
            parameters,
            self.assigned,
            self._starting_point,
            self._subscription_of,
        )
        self._own_clock = own_clock
        self._turn = threading.RLock()
        self._chosen: str | None = None  # "subscribe" or "assign", the first of them
        self._assign_expressions: dict[str, str] = {}
        self._commit_at = -1
        self._topic_listeners: dict[str, TopicListener] = {}
        self._topic_queues: dict[str, set[MessageQueue]] = {}
        self._comparing: Periodic | None = None

    @property
    def is_running(self) -> bool:
        """True from its start to its shutdown."""
        return self.context.service_state == "RUNNING"

    def check_running(self) -> None:
        """Raise IllegalStateError unless it runs."""
        if not self.is_running:
            raise IllegalStateError(NOT_RUNNING)

    # -- life

    def start(self) -> None:
        """Check the parameters and start everything. Raises MQClientError with the real client's texts."""
        with self._turn:
            self._start()
        settle(self.context.clock)

    def _start(self) -> None:
        context, parameters = self.context, self.parameters
        if context.service_state != "CREATE_JUST":
            raise MQClientError(
                suggested(f"The PullConsumer service state not OK, maybe started once, {context.service_state}")
            )
        context.service_state = "START_FAILED"
        parameters.check_config()
        if context.clustering and parameters.instance_name == "DEFAULT":
            parameters.instance_name = unique_instance_name(os.getpid(), context.clock)
        if parameters.broker is None and not parameters.namesrv_addr:
            hint = "No name server address, please set it: DefaultLitePullConsumer(broker=...) or (namesrv_addr=...)"
            raise MQClientError(attached(hint))
        try:
            take_client(self, brokers_of(parameters), context.clock, parameters.build_mq_client_id())
            self._start_services(context.running)
            self._after_running(context.running)
        except BaseException:  # the user's Ctrl-C too
            if self.is_running:
                self._shutdown()
            else:
                self._stop()
                context.client = None
            raise

    def _start_services(self, client: MQClientInstance) -> None:
        context, parameters = self.context, self.parameters
        self.check_first(client)
        self.load_offset_store(client, parameters)
        self._pulling.start()
        client.members[context.group] = self
        client.start(
            parameters.poll_name_server_interval,
            parameters.heartbeat_broker_interval,
            parameters.persist_consumer_offset_interval,
        )
        self._comparing = Periodic(
            context.clock, client.scheduled, METADATA_FIRST, parameters.topic_metadata_check_interval_millis,
            self._compare_topics,
        )  # fmt: skip
        context.service_state = "RUNNING"
        log.info("the consumer [%s] start OK", context.group)

    def _after_running(self, client: MQClientInstance) -> None:
        if self._chosen == "subscribe":
            self.update_topic_subscribe_info()
        elif self._chosen == "assign":
            self._pulling.update(self.assigned.names())
        for topic in self._topic_listeners:
            self._topic_queues[topic] = self.fetch_message_queues(topic)
        client.check_in_broker()

    def shutdown(self) -> None:
        """Commit, leave the group, stop the client. A second call, and one before the start, does nothing."""
        with self._turn:
            self._shutdown()
        settle(self.context.clock)

    def _shutdown(self) -> None:
        if not self.is_running:
            return
        self.persist_consumer_offset()
        self._stop()
        self.context.service_state = "SHUTDOWN_ALREADY"
        log.info("the consumer [%s] shutdown OK", self.context.group)

    def _stop(self) -> None:
        self.leave_group()
        if self._comparing is not None:
            self._comparing.stop()
        self._pulling.close()
        release(self)
        if self._own_clock:
            self.context.clock.close()

    # -- what is pulled

    def _choose(self, how: str) -> None:
        if self._chosen not in (None, how):
            raise IllegalStateError(CONFLICT)
        self._chosen = how

    def subscribe(
        self, topic: str, selector: MessageSelector | str | None, listener: MessageQueueListener | None = None
    ) -> None:
        """Want a topic, or want it differently; the group shares its queues."""
        with self._turn:
            try:
                if not topic:
                    raise ConfigurationError("topic", repr(topic), "Topic can not be null or empty.")
                self._choose("subscribe")
                self.subscriptions[topic] = build_subscription(topic, selector, self.context.clock.now())
                self.parameters.message_queue_listener = _Assigning(self, listener)
                if self.is_running:
                    self.context.running.send_heartbeats()
                    self.update_topic_subscribe_info()
            except ConfigurationError:
                raise
            except PyengineError as error:
                raise MQClientError(attached("subscribe exception")) from error
        settle(self.context.clock)

    def unsubscribe(self, topic: str) -> None:
        """Unsubscribe from a topic. Messages in the cache are still polled."""
        with self._turn:
            self.subscriptions.pop(topic, None)
            self._pulling.update((), topic)
            with self.context.lock:
                self.assigned.remove(topic)

    def assigned_by_rebalance(self, topic: str, queues: set[MessageQueue], mine: set[MessageQueue]) -> None:
        """Pull a topic's queues that the group has left to this member; in broadcasting all."""
        wanted = sort_queues(list(queues if self.parameters.message_model is MessageModel.BROADCASTING else mine))
        with self.context.lock:
            self.assigned.assign(wanted, self.context.process_queues, self.context.clock.now(), topic)
        self._pulling.update(wanted, topic)

    def assign(self, queues: Collection[MessageQueue]) -> None:
        """Pull these queues and no others, regardless of other consumers."""
        with self._turn:
            if not queues:
                raise ConfigurationError(
                    "message_queues", repr(queues), "Message queues can not be null or empty.",
                    "give some of fetch_message_queues(topic)",
                )  # fmt: skip
            self._choose("assign")
            wanted = list(queues)
            with self.context.lock:
                self.assigned.assign(wanted, {}, self.context.clock.now())
            if self.is_running:
                self._pulling.update(wanted)
        settle(self.context.clock)

    def set_sub_expression_for_assign(self, topic: str, expression: str) -> None:
        """Have only messages with these tags of the topic's assigned queues; before the start."""
        if not expression or expression.isspace():
            raise ConfigurationError("sub_expression", repr(expression), "subExpression can not be null or empty.")
        with self._turn:
            if self.context.service_state != "CREATE_JUST":
                raise IllegalStateError("setAssignTag only can be called before start.")
            self._choose("assign")
            self._assign_expressions[topic] = expression

    def _subscription_of(self, topic: str) -> SubscriptionData:
        if self._chosen == "subscribe":
            found = self.subscriptions.get(topic)
            if found is None:
                raise MQClientError(attached(f"find the consumer's subscription failed, {topic}"))
            return found
        return build_subscription(topic, self._assign_expressions.get(topic, "*"))

    def _starting_point(self, queue: MessageQueue) -> int:
        self.check_running()
        return self.rebalancing.compute_pull_from_where_with_exception(queue)

    # -- polling

    def poll(self, timeout: int) -> list[MessageExt]:
        """The next batch of a queue; [] if none comes within ``timeout`` ms."""
        with self._turn:
            self.check_running()
            if timeout < 0:
                raise ConfigurationError("timeout", timeout, "Timeout must not be negative")
            clock = self.context.clock
            if self.parameters.auto_commit:
                self._maybe_auto_commit(clock.now())
            end = clock.now() + timeout
            batch = self._pulling.take(timeout)
            while batch is not None and batch.process_queue.dropped and clock.now() < end:
                batch = self._pulling.take(end - clock.now())
            if batch is None or batch.process_queue.dropped:
                return []
            with self.context.lock:
                offset = batch.process_queue.remove_messages(batch.messages, now=clock.now())
                assigned = self.assigned.get(batch.queue)
                if assigned is not None:
                    assigned.consume_offset = offset
            for message in batch.messages:
                message.topic = without_namespace(message.topic, self.context.namespace)
            return batch.messages

    async def poll_async(self, timeout: int) -> list[MessageExt]:
        """:meth:`poll` for tasks of an event loop. One that is cancelled has polled nothing."""
        clock = self.context.clock
        if timeout <= 0 or isinstance(clock, ManualClock):  # whose wait takes no time
            return self.poll(timeout)
        end = clock.now() + timeout
        while not (found := self.poll(0)) and (left := end - clock.now()) > 0:
            await self._pulling.wait_cached(left / 1000)
        return found

    def _maybe_auto_commit(self, now: int) -> None:
        if now >= self._commit_at:
            self.commit_all()
            self._commit_at = now + self.parameters.auto_commit_interval_millis

    # -- offsets

    def commit_all(self) -> None:
        """Note for committing what was polled of every queue; it goes to the brokers within five seconds."""
        with self._turn:
            for queue in self.assigned.names():
                self._commit(queue)

    def commit(self, queues: Iterable[MessageQueue], *, persist: bool) -> None:
        """The same of some queues. persist: send it now."""
        wanted = list(queues)
        with self._turn:
            for queue in wanted:
                self._commit(queue)
            if persist and wanted:
                self.context.store.persist_all(wanted)

    def commit_offsets(self, offsets: Mapping[MessageQueue, int], *, persist: bool) -> None:
        """The same with offsets of the user's."""
        with self._turn:
            if not offsets:
                log.warning("MessageQueues is empty, Ignore this commit (group %s)", self.context.group)
                return
            for queue, offset in offsets.items():
                self._commit_at_offset(queue, offset)
            if persist:
                self.context.store.persist_all(offsets)

    def _commit(self, queue: MessageQueue) -> None:
        assigned = self.assigned.get(queue)
        self._commit_at_offset(queue, -1 if assigned is None else assigned.consume_offset)

    def _commit_at_offset(self, queue: MessageQueue, offset: int) -> None:
        if offset == -1:
            log.error("consumerOffset is -1 in messageQueue [%s]. (group %s)", queue, self.context.group)
            return
        assigned = self.assigned.get(queue)
        if assigned is not None and not assigned.process_queue.dropped:
            self.check_running()
            self.context.store.update_offset(queue, offset)

    def committed(self, queue: MessageQueue) -> int:
        """The offset that was noted, else the one that the brokers have; -1 for none."""
        self.check_running()
        offset = self.context.store.read_offset(queue, ReadOffsetType.MEMORY_FIRST_THEN_STORE)
        if offset == -2:
            raise MQClientError(attached("Fetch consume offset from broker exception"))
        return offset

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on at an offset of an assigned queue; what is cached of it is dropped."""
        with self._turn:
            if queue not in self.assigned:
                rebalancing = ", may be rebalancing" if self._chosen == "subscribe" else ""
                problem = f"The message queue is not in assigned list{rebalancing}, message queue: {queue}"
                raise MQClientError(attached(problem))
            least, most = self.min_offset(queue), self.max_offset(queue)
            if not least <= offset <= most:
                raise MQClientError(
                    attached(f"Seek offset illegal, seek offset = {offset}, min offset = {least}, max offset = {most}")
                )
            self._pulling.restart(queue, offset)
        settle(self.context.clock)

    def min_offset(self, queue: MessageQueue) -> int:
        """The smallest offset that the queue still has."""
        self.check_running()
        return self.context.running.api.min_offset(queue)

    def max_offset(self, queue: MessageQueue) -> int:
        """The offset that the queue's next message will get."""
        self.check_running()
        return self.context.running.api.max_offset(queue)

    def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        """The first offset that was stored at ``timestamp`` (ms) or later."""
        self.check_running()
        return self.context.running.api.search_offset(queue, timestamp)

    def pause(self, queues: Iterable[MessageQueue], *, paused: bool) -> None:
        """Pull from queues no more, or again within a second."""
        with self.context.lock:
            self.assigned.pause(queues, paused=paused)

    # -- topics

    def fetch_message_queues(self, topic: str) -> set[MessageQueue]:
        """All queues of a topic. Raises MQClientError if there is no such topic."""
        self.check_running()
        queues = self.context.running.api.topic_subscribe_info(topic)
        if not queues:
            raise MQClientError(suggested(f"Can not find Message Queue for this topic, {topic}"))
        return set(queues)

    def listen_to_topic(self, topic: str, listener: TopicListener) -> None:
        """Tell a listener when a topic's queues are others."""
        with self._turn:
            if topic in self._topic_listeners:
                log.warning(
                    "Topic %s had been registered, new listener will overwrite the old one (group %s)",
                    topic,
                    self.context.group,
                )
            self._topic_listeners[topic] = listener
            if self.is_running:
                self._topic_queues[topic] = self.fetch_message_queues(topic)

    def _compare_topics(self) -> None:
        with self._turn:
            for topic, listener in list(self._topic_listeners.items()):
                queues = self.fetch_message_queues(topic)
                if queues != self._topic_queues.get(topic):
                    self._topic_queues[topic] = queues
                    listener(topic, set(queues))

    # -- what the client's services call

    def _heartbeat(self) -> HeartbeatData:
        parameters = self.parameters
        return HeartbeatData(
            self.context.running.client_id,
            self.context.group,
            parameters.message_model,
            ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,  # regardless of its setting, as the real one
            tuple(self.subscriptions.values()),
            parameters.unit_mode,
            "CONSUME_ACTIVELY",
        )

    def pull_message(self, request: object) -> None:
        """Nothing: it pulls by its own tasks."""

    def try_rebalance(self) -> bool:
        """Rebalance all topics; False if that changed not all it should."""
        return self.rebalancing.do_rebalance()

    def persist_consumer_offset(self) -> None:
        """Send the offsets that were noted to the brokers."""
        try:
            self.check_running()
            with self.context.lock:
                mine = list(self.context.process_queues) if self._chosen == "subscribe" else self.assigned.names()
            self.context.store.persist_all(mine)
        except Exception as error:
            log.error("Persist consumer offset error for group: %s ", self.context.group, exc_info=error)

    def sample(self) -> None:
        """Nothing: it keeps no rates."""

    def reset_offset(self, offsets: dict[MessageQueue, int]) -> None:
        """Nothing but a line in the log, as in the real client: seek() is its user's."""
        log.info("[reset-offset] consumer dose not exist. group=%s", self.context.group)

    def running_info(self, *, with_stacks: bool) -> dict[str, Any]:
        """What the member is doing, as the wire's ConsumerRunningInfo."""
        return as_body(lite_running_info(self.context, self.parameters, self.assigned, with_stacks=with_stacks))

    def offsets_of(self, topic: str) -> dict[MessageQueue, int]:
        """Nothing, as in the real client."""
        return {}

    def consume_directly(self, message: MessageExt) -> dict[str, Any] | None:
        """None: there is no listener."""
        return None
