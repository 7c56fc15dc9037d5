"""A member's share of the queues: it does what the core's rebalance rules decide (spec rocketmq 4)."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from pyengine._engine.java.hashing import map_order
from pyengine._engine.rocketmq.client.process_queue import ProcessQueue
from pyengine._engine.rocketmq.client.pull_gate import PullRequest
from pyengine._engine.rocketmq.client.rebalance import (
    LOCK_FAILED_DELAY,
    is_balanced,
    queues_to_give_up,
    queues_to_take_on,
)
from pyengine.errors import MQClientError
from pyengine.rocketmq.consumer.client import write_log
from pyengine.rocketmq.consumer.context import MemberContext
from pyengine.rocketmq.consumer.listener_call import listed
from pyengine.rocketmq.message import RETRY_GROUP_TOPIC_PREFIX
from pyengine.rocketmq.tables.allocation import MessageQueue, sort_client_ids, sort_queues
from pyengine.visible import logger

log = logger("pyengine.rocketmq")


class Rebalancing(ABC):
    """Keeps a member's table of queues in step with its assignment. Source: RebalanceImpl.

    topic_queues: topic -> all its queues, as the name server said last. passive: a queue that was not pulled for 120 s
    is given up and taken on again, as a push consumer's.
    """

    passive = True

    def __init__(self, consumer: MemberContext) -> None:
        self._consumer = consumer
        self.topic_queues: dict[str, set[MessageQueue]] = {}
        self._turn = threading.Lock()

    # -- what a kind of consumer does

    @abstractmethod
    def lock(self, queue: MessageQueue) -> bool:
        """Ask for a queue's lock, for consuming in order; False if it was refused or could not be asked for."""

    @abstractmethod
    def _let_go(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """Give up a queue that was dropped; False if it has to be tried again."""

    @abstractmethod
    def _message_queue_changed(self, topic: str, queues: set[MessageQueue], mine: set[MessageQueue]) -> None:
        """The assignment of a topic has changed."""

    @abstractmethod
    def _begin(self, requests: Sequence[PullRequest]) -> None:
        """Pull from queues that are new."""

    @abstractmethod
    def compute_pull_from_where_with_exception(self, queue: MessageQueue) -> int:
        """Where the first pull of a queue begins. Raises MQClientError if there is no such offset."""

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
                        log.warning(
                            "rebalance Exception (group %s, topic %s)", self._consumer.group, topic, exc_info=error
                        )
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
        strategy = consumer.strategy
        try:
            mine = strategy.allocate(
                group, consumer.running.client_id, sort_queues(list(queues)), sort_client_ids(client_ids)
            )
        except Exception as error:
            log.error(
                "allocate message queue exception. strategy name: %s, ex: %s (group %s, topic %s)",
                strategy.name,
                error,
                group,
                topic,
            )
            return False
        return self._apply(topic, queues, set(mine or ()), len(client_ids))

    def _consumer_ids(self, topic: str) -> list[str] | None:
        try:
            return list(self._consumer.running.api.get_consumer_id_list(topic, self._consumer.group))
        except MQClientError:  # no broker has the topic; the caller logs that (findConsumerIdList)
            return None
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
                    consumer.strategy.name,
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
            leaving, lines = queues_to_give_up(
                topic, mine, table, consumer.clock.now(), consumer.group, expires=self.passive
            )
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
        self._begin(requests)
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

    def _drop_unsubscribed(self) -> None:
        consumer = self._consumer
        with consumer.lock:
            for queue in [queue for queue in consumer.process_queues if queue.topic not in consumer.subscriptions]:
                consumer.process_queues.pop(queue).dropped = True
                log.info(
                    "doRebalance, %s, truncateMessageQueueNotMyTopic remove unnecessary mq, %s", consumer.group, queue
                )

    # -- where to start

    def compute_pull_from_where(self, queue: MessageQueue) -> int:
        """Where the first pull of a queue begins; -1 if that cannot be found out."""
        try:
            return self.compute_pull_from_where_with_exception(queue)
        except Exception:
            log.warning("Compute consume offset exception, mq=%s (group %s)", queue, self._consumer.group)
            return -1

    def _offset_of_broker(self, queue: MessageQueue, ask: str | None, timestamp: Callable[[], int]) -> int:
        """The offset that a starting point asks the broker for: max_offset, or search_offset of a timestamp."""
        api = self._consumer.running.api
        try:
            return api.max_offset(queue) if ask == "max_offset" else api.search_offset(queue, timestamp())
        except Exception as error:
            log.warning(
                "Compute consume offset from last offset exception, mq=%s, exception=%s (group %s)",
                queue,
                error,
                self._consumer.group,
            )
            raise
