"""A member's share of the queues: it does what the core's rebalance rules decide (spec rocketmq 4)."""

from __future__ import annotations

import threading
from collections import Counter

from pyengine._engine.java.hashing import map_order
from pyengine._engine.rocketmq.client.process_queue import ProcessQueue
from pyengine._engine.rocketmq.client.pull_gate import PullRequest
from pyengine._engine.rocketmq.client.rebalance import (
    DISPATCH_DELAY,
    LOCK_FAILED_DELAY,
    UNLOCK_WAIT,
    checked_start,
    is_balanced,
    may_force_unlock,
    queues_to_give_up,
    queues_to_take_on,
    shared_threshold,
    starting_point,
)
from pyengine.rocketmq.consumer.client import write_log
from pyengine.rocketmq.consumer.context import ConsumerContext
from pyengine.rocketmq.consumer.listener_call import listed
from pyengine.rocketmq.consumer.offset_store import ReadOffsetType
from pyengine.rocketmq.message import RETRY_GROUP_TOPIC_PREFIX
from pyengine.rocketmq.tables.allocation import MessageQueue, sort_client_ids, sort_queues
from pyengine.visible import logger

log = logger("pyengine.rocketmq")


class Rebalancing:
    """Keeps a member's table of queues in step with its assignment. Source: RebalanceImpl, RebalancePushImpl.

    topic_queues: topic -> all its queues, as the name server said last.
    """

    def __init__(self, consumer: ConsumerContext) -> None:
        self._consumer = consumer
        self.topic_queues: dict[str, set[MessageQueue]] = {}
        self._turn = threading.Lock()
        self._listening: Counter[ProcessQueue] = Counter()
        self._listening_lock = threading.RLock()  # by itself: Ctrl-C within Condition.__enter__ would leave it locked
        self._idle = threading.Condition(self._listening_lock)

    # -- one run

    def do_rebalance(self) -> bool:
        """All topics in turn; True if this member then works on exactly what is allocated to it."""
        with self._turn:
            balanced = True
            # The order counts: a threshold of all queues is divided at each topic's change.
            for topic in map_order(self._consumer.subscriptions):
                try:
                    balanced = self._rebalance_topic(topic) and balanced
                except Exception as error:
                    if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
                        log.warning("rebalance Exception", exc_info=error)
                        balanced = False
            self._drop_unsubscribed()
            return balanced

    def _rebalance_topic(self, topic: str) -> bool:
        consumer, group = self._consumer, self._consumer.group
        queues = self.topic_queues.get(topic)
        if queues is None and (not consumer.clustering or not topic.startswith(RETRY_GROUP_TOPIC_PREFIX)):
            self._message_queue_changed(topic, set(), set())
            log.warning("doRebalance, %s, but the topic[%s] not exist.", group, topic)
        if not consumer.clustering:
            return queues is None or self._apply(topic, queues, queues)
        client_ids = self._consumer_ids(topic)
        if client_ids is None:
            log.warning("doRebalance, %s %s, get consumer id list failed", group, topic)
        if queues is None or client_ids is None:
            return True
        strategy = consumer.parameters.allocate_message_queue_strategy
        try:
            mine = strategy.allocate(
                group, consumer.running.client_id, sort_queues(list(queues)), sort_client_ids(client_ids)
            )
        except Exception as error:
            log.error("allocate message queue exception. strategy name: %s, ex: %s", strategy.name, error)
            return False
        return self._apply(topic, queues, set(mine or ()), len(client_ids))

    def _consumer_ids(self, topic: str) -> list[str] | None:
        try:
            return list(self._consumer.running.api.get_consumer_id_list(topic, self._consumer.group))
        except Exception as error:
            log.warning("getConsumerIdListByGroup exception, %s", self._consumer.group, exc_info=error)
            return None

    def _apply(
        self, topic: str, queues: set[MessageQueue], mine: set[MessageQueue], members: int | None = None
    ) -> bool:
        """members: of the group; None in broadcasting, where nothing is locked."""
        consumer = self._consumer
        if self._update_table(topic, mine, in_order=consumer.orderly and members is not None):
            if members is not None:
                log.info(
                    "client rebalanced result changed. allocateMessageQueueStrategyName=%s, group=%s, topic=%s, "
                    "clientId=%s, mqAllSize=%s, cidAllSize=%s, rebalanceResultSize=%s, rebalanceResultSet=%s",
                    consumer.parameters.allocate_message_queue_strategy.name,
                    consumer.group,
                    topic,
                    consumer.running.client_id,
                    len(queues),
                    members,
                    len(mine),
                    listed(sort_queues(list(mine))),
                )
            self._message_queue_changed(topic, queues, mine)
            if members is None:
                all_queues = listed(sort_queues(list(queues)))
                log.info("messageQueueChanged %s %s %s %s", consumer.group, topic, all_queues, all_queues)
        with consumer.lock:
            return is_balanced(topic, mine, consumer.process_queues)

    def _update_table(self, topic: str, mine: set[MessageQueue], *, in_order: bool) -> bool:
        consumer, table = self._consumer, self._consumer.process_queues
        with consumer.lock:
            leaving, lines = queues_to_give_up(topic, mine, table, consumer.clock.now(), consumer.group)
        write_log(lines)
        changed = False
        for queue in leaving:
            if self._let_go(queue, table[queue]):
                with consumer.lock:
                    table.pop(queue, None)
                changed = True
                log.info("doRebalance, %s, remove unnecessary mq, %s", consumer.group, queue)
        all_locked = True
        requests = []
        for queue in queues_to_take_on(sort_queues(list(mine)), table):
            if in_order and not self.lock(queue):
                log.warning("doRebalance, %s, add a new mq failed, %s, because lock failed", consumer.group, queue)
                all_locked = False
                continue
            request = self._take_on(queue)
            if request is not None:
                requests.append(request)
                changed = True
        if not all_locked:
            consumer.running.rebalance_service.wakeup_later(LOCK_FAILED_DELAY)
        for request in requests:
            consumer.running.pull_service.execute_pull_request_later(request, DISPATCH_DELAY)
        return changed

    def _take_on(self, queue: MessageQueue) -> PullRequest | None:
        consumer = self._consumer
        consumer.store.remove_offset(queue)
        process_queue = ProcessQueue(now=consumer.clock.now())
        process_queue.locked = True
        offset = self.compute_pull_from_where(queue)
        if offset < 0:
            log.warning("doRebalance, %s, add new mq failed, %s", consumer.group, queue)
            return None
        with consumer.lock:
            consumer.process_queues[queue] = process_queue
        log.info("doRebalance, %s, add a new mq, %s", consumer.group, queue)
        return PullRequest(consumer.group, queue, process_queue, offset)

    def _message_queue_changed(self, topic: str, queues: set[MessageQueue], mine: set[MessageQueue]) -> None:
        consumer, parameters = self._consumer, self._consumer.parameters
        subscription = consumer.subscriptions.get(topic)
        if subscription is not None:
            version = consumer.clock.now()
            log.info("%s Rebalance changed, also update version: %s, %s", topic, subscription.sub_version, version)
            subscription.sub_version = version
        count = len(consumer.process_queues)
        for kind in ("", "Size"):
            for_topic = parameters.pull_threshold_size_for_topic if kind else parameters.pull_threshold_for_topic
            before = parameters.pull_threshold_size_for_queue if kind else parameters.pull_threshold_for_queue
            after = shared_threshold(for_topic, count)
            if after is None:
                continue
            log.info("The pullThreshold%sForQueue is changed from %s to %s", kind, before, after)
            if kind:
                parameters.pull_threshold_size_for_queue = after
            else:
                parameters.pull_threshold_for_queue = after
        consumer.running.send_heartbeats()
        if parameters.message_queue_listener is not None:
            parameters.message_queue_listener.message_queue_changed(topic, queues, mine)

    def _drop_unsubscribed(self) -> None:
        consumer = self._consumer
        with consumer.lock:
            for queue in [queue for queue in consumer.process_queues if queue.topic not in consumer.subscriptions]:
                consumer.process_queues.pop(queue).dropped = True
                log.info(
                    "doRebalance, %s, truncateMessageQueueNotMyTopic remove unnecessary mq, %s", consumer.group, queue
                )

    # -- giving up queues

    def remove_process_queue(self, queue: MessageQueue) -> None:
        """Give one queue up outside of a run."""
        with self._consumer.lock:
            process_queue = self._consumer.process_queues.pop(queue, None)
        if process_queue is not None:
            before = str(process_queue.dropped).lower()
            process_queue.dropped = True
            self._let_go(queue, process_queue)
            log.info("Fix Offset, %s, remove unnecessary mq, %s Droped: %s", self._consumer.group, queue, before)

    def _let_go(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """Commit and forget; in order also give the lock back, when its listener has returned within 500 ms."""
        consumer = self._consumer
        consumer.store.persist(queue)
        if not (consumer.orderly and consumer.clustering):
            consumer.store.remove_offset(queue)
            return True
        if not may_force_unlock(process_queue, consumer.clock.now()) and not self._listener_returned(process_queue):
            process_queue.try_unlock_times += 1
            return False
        consumer.store.persist(queue)
        consumer.store.remove_offset(queue)
        process_queue.locked = False
        self.unlock(queue)
        return True

    def listener_begins(self, process_queue: ProcessQueue) -> None:
        """An ordered listener is about to be called; the queue is kept until it has returned."""
        with self._listening_lock:
            self._listening[process_queue] += 1

    def listener_ended(self, process_queue: ProcessQueue) -> None:
        """It returned."""
        with self._listening_lock:
            self._listening[process_queue] -= 1
            if not self._listening[process_queue]:
                del self._listening[process_queue]
            self._idle.notify_all()

    def _listener_returned(self, process_queue: ProcessQueue) -> bool:
        with self._listening_lock:
            return self._consumer.clock.wait(self._idle, lambda: process_queue not in self._listening, UNLOCK_WAIT)

    # -- the broker's locks

    def lock(self, queue: MessageQueue) -> bool:
        """Ask for one queue's lock; False if it was refused or could not be asked for."""
        consumer = self._consumer
        try:
            held = consumer.running.api.lock_batch_mq(consumer.group, consumer.running.client_id, [queue])
        except Exception as error:
            log.error("lockBatchMQ exception, %s", queue, exc_info=error)
            return False
        self._mark_locked(held)
        log.info("message queue lock %s, %s %s", "OK" if queue in held else "Failed", consumer.group, queue)
        return queue in held

    def lock_all(self) -> None:
        """Renew the locks of all queues, broker by broker; one that cannot be reached changes nothing."""
        consumer = self._consumer
        for queues in self._by_broker().values():
            try:
                held = consumer.running.api.lock_batch_mq(consumer.group, consumer.running.client_id, queues)
            except Exception as error:
                log.error("lockBatchMQ exception, %s", listed(queues), exc_info=error)
                continue
            with consumer.lock:
                fresh = [queue for queue in queues if queue in held and self._is_locked(queue) is False]
                lost = [queue for queue in queues if queue not in held and self._is_locked(queue) is not None]
                for queue in lost:
                    consumer.process_queues[queue].locked = False
            for queue in fresh:
                log.info("the message queue locked OK, Group: %s %s", consumer.group, queue)
            self._mark_locked(held)
            for queue in lost:
                log.warning("the message queue locked Failed, Group: %s %s", consumer.group, queue)

    def unlock(self, queue: MessageQueue) -> None:
        """Give one queue's lock back (one way)."""
        consumer = self._consumer
        try:
            consumer.running.api.unlock_batch_mq(consumer.group, consumer.running.client_id, [queue])
        except Exception as error:
            log.error("unlockBatchMQ exception, %s", queue, exc_info=error)
            return
        log.warning(
            "unlock messageQueue. group:%s, clientId:%s, mq:%s", consumer.group, consumer.running.client_id, queue
        )

    def unlock_all(self) -> None:
        """Give all locks back."""
        consumer = self._consumer
        for queues in self._by_broker().values():
            try:
                consumer.running.api.unlock_batch_mq(consumer.group, consumer.running.client_id, queues)
            except Exception as error:
                log.error("unlockBatchMQ exception, %s", listed(queues), exc_info=error)
                continue
            with consumer.lock:
                mine = [queue for queue in queues if queue in consumer.process_queues]
                for queue in mine:
                    consumer.process_queues[queue].locked = False
            for queue in mine:
                log.info("the message queue unlock OK, Group: %s %s", consumer.group, queue)

    def _is_locked(self, queue: MessageQueue) -> bool | None:
        """Whether we believe to hold the lock; None if the queue is not ours. The member's lock is held."""
        process_queue = self._consumer.process_queues.get(queue)
        return None if process_queue is None else process_queue.locked

    def _mark_locked(self, queues: set[MessageQueue]) -> None:
        with self._consumer.lock:
            for queue in queues:
                process_queue = self._consumer.process_queues.get(queue)
                if process_queue is not None:
                    process_queue.locked = True
                    process_queue.last_lock_timestamp = self._consumer.clock.now()

    def _by_broker(self) -> dict[str, list[MessageQueue]]:
        brokers: dict[str, list[MessageQueue]] = {}
        with self._consumer.lock:
            for queue, process_queue in self._consumer.process_queues.items():
                if not process_queue.dropped:
                    brokers.setdefault(queue.broker_name, []).append(queue)
        return brokers

    # -- where to start

    def compute_pull_from_where(self, queue: MessageQueue) -> int:
        """Where the first pull of a queue begins; -1 if that cannot be found out."""
        try:
            return self.compute_pull_from_where_with_exception(queue)
        except Exception:
            log.warning("Compute consume offset exception, mq=%s", queue)
            return -1

    def compute_pull_from_where_with_exception(self, queue: MessageQueue) -> int:
        """Where the first pull of a queue begins. Raises MQClientError where there is no such offset."""
        consumer, parameters = self._consumer, self._consumer.parameters
        stored = consumer.store.read_offset(queue, ReadOffsetType.READ_FROM_STORE)
        point = starting_point(parameters.consume_from_where.name, stored, queue.topic)
        if point.offset is not None:
            return checked_start(point.offset)
        api = consumer.running.api
        try:
            if point.ask == "max_offset":
                offset = api.max_offset(queue)
            else:
                offset = api.search_offset(queue, parameters.consume_timestamp_millis())
        except Exception as error:
            log.warning("Compute consume offset from last offset exception, mq=%s, exception=%s", queue, error)
            raise
        return checked_start(offset)
