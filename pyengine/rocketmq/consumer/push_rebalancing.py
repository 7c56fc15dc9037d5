"""How a push consumer takes on queues and gives them up: locks, thresholds, where to start (spec rocketmq 4)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

from pyengine._engine.rocketmq.client.process_queue import ProcessQueue
from pyengine._engine.rocketmq.client.pull_gate import PullRequest
from pyengine._engine.rocketmq.client.rebalance import (
    DISPATCH_DELAY,
    UNLOCK_WAIT,
    checked_start,
    may_force_unlock,
    shared_threshold,
    starting_point,
)
from pyengine.rocketmq.consumer.context import ConsumerContext
from pyengine.rocketmq.consumer.listener_call import listed
from pyengine.rocketmq.consumer.offset_store import ReadOffsetType
from pyengine.rocketmq.consumer.rebalancing import Rebalancing
from pyengine.rocketmq.tables.allocation import MessageQueue
from pyengine.visible import logger

log = logger("pyengine.rocketmq")


class PushRebalancing(Rebalancing):
    """A push consumer's queues. Source: RebalancePushImpl."""

    _consumer: ConsumerContext

    def __init__(self, consumer: ConsumerContext) -> None:
        super().__init__(consumer)
        self._listening: Counter[ProcessQueue] = Counter()
        self._listening_lock = threading.RLock()  # by itself: Ctrl-C within Condition.__enter__ would leave it locked
        self._idle = threading.Condition(self._listening_lock)

    def _begin(self, requests: Sequence[PullRequest]) -> None:
        for request in requests:
            self._consumer.running.pull_service.execute_pull_request_later(request, DISPATCH_DELAY)

    def _message_queue_changed(self, topic: str, queues: set[MessageQueue], mine: set[MessageQueue]) -> None:
        consumer, parameters = self._consumer, self._consumer.parameters
        subscription = consumer.subscriptions.get(topic)
        if subscription is not None:
            version = consumer.clock.now()
            log.info(
                "%s Rebalance changed, also update version: %s, %s (group %s)",
                topic,
                subscription.sub_version,
                version,
                consumer.group,
            )
            subscription.sub_version = version
        count = len(consumer.process_queues)
        for kind in ("", "Size"):
            for_topic = parameters.pull_threshold_size_for_topic if kind else parameters.pull_threshold_for_topic
            before = parameters.pull_threshold_size_for_queue if kind else parameters.pull_threshold_for_queue
            after = shared_threshold(for_topic, count)
            if after is None:
                continue
            log.info(
                "The pullThreshold%sForQueue is changed from %s to %s (group %s)", kind, before, after, consumer.group
            )
            if kind:
                parameters.pull_threshold_size_for_queue = after
            else:
                parameters.pull_threshold_for_queue = after
        consumer.running.send_heartbeats()
        if parameters.message_queue_listener is not None:
            parameters.message_queue_listener.message_queue_changed(topic, queues, mine)

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
            log.error("lockBatchMQ exception, %s (group %s)", queue, consumer.group, exc_info=error)
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
                log.error("lockBatchMQ exception, %s (group %s)", listed(queues), consumer.group, exc_info=error)
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
            log.error("unlockBatchMQ exception, %s (group %s)", queue, consumer.group, exc_info=error)
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
                log.error("unlockBatchMQ exception, %s (group %s)", listed(queues), consumer.group, exc_info=error)
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

    def compute_pull_from_where_with_exception(self, queue: MessageQueue) -> int:
        """Where the first pull of a queue begins. Raises MQClientError if there is no such offset."""
        consumer, parameters = self._consumer, self._consumer.parameters
        stored = consumer.store.read_offset(queue, ReadOffsetType.READ_FROM_STORE)
        point = starting_point(parameters.consume_from_where.name, stored, queue.topic)
        if point.offset is not None:
            return checked_start(point.offset)
        return checked_start(self._offset_of_broker(queue, point.ask, parameters.consume_timestamp_millis))
