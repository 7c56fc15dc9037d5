"""A lite pull consumer's share of the queues of the topics that it subscribes to (spec rocketmq 4)."""

from __future__ import annotations

from collections.abc import Sequence

from pyengine._engine.rocketmq.client.lite_pull import lite_starting_point
from pyengine._engine.rocketmq.client.process_queue import ProcessQueue
from pyengine._engine.rocketmq.client.pull_gate import PullRequest
from pyengine.rocketmq.consumer.context import MemberContext
from pyengine.rocketmq.consumer.offset_store import ReadOffsetType
from pyengine.rocketmq.consumer.parameters import MemberParameters
from pyengine.rocketmq.consumer.rebalancing import Rebalancing
from pyengine.rocketmq.tables.allocation import MessageQueue
from pyengine.visible import logger

log = logger("pyengine.rocketmq")


class LiteRebalancing(Rebalancing):
    """The queues that are allocated; its listener pulls from them. Source: RebalanceLitePullImpl."""

    passive = False

    def __init__(self, consumer: MemberContext, parameters: MemberParameters) -> None:
        super().__init__(consumer)
        self._parameters = parameters

    def lock(self, queue: MessageQueue) -> bool:
        """It does not consume in order."""
        return True

    def _let_go(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        self._consumer.store.persist(queue)
        self._consumer.store.remove_offset(queue)
        return True

    def _message_queue_changed(self, topic: str, queues: set[MessageQueue], mine: set[MessageQueue]) -> None:
        listener = self._parameters.message_queue_listener
        if listener is None:
            return
        try:
            listener.message_queue_changed(topic, queues, mine)
        except Exception:
            log.exception("messageQueueChanged exception (group %s, topic %s)", self._consumer.group, topic)

    def _begin(self, requests: Sequence[PullRequest]) -> None:
        """Nothing: the listener does."""

    def compute_pull_from_where_with_exception(self, queue: MessageQueue) -> int:
        """Where the first pull of a queue begins; -1 if the offset store could not be asked. Raises what the brokers
        refuse.
        """
        parameters = self._parameters
        stored = self._consumer.store.read_offset(queue, ReadOffsetType.MEMORY_FIRST_THEN_STORE)
        point = lite_starting_point(parameters.consume_from_where.name, stored, queue.topic)
        if point.offset is not None:
            return point.offset
        return self._offset_of_broker(queue, point.ask, parameters.consume_timestamp_millis)
