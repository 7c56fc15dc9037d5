"""Where the groups of one broker go on: committed offsets, and those that an administrator has set."""

from __future__ import annotations

from pyengine._engine.rocketmq.broker.consume_queue import ConsumeQueue
from pyengine._engine.rocketmq.broker.consumer_offsets import ConsumerOffsets
from pyengine.errors import MQBrokerError, OffsetNotFoundError
from pyengine.rocketmq.broker.topic_table import TopicTable
from pyengine.rocketmq.remoting.mq_client_api import QUERY_NOT_FOUND, TOPIC_NOT_EXIST
from pyengine.visible import logger

log = logger("pyengine.rocketmq.broker")


class GroupOffsets:
    """Offsets by group, topic and queue id (ConsumerOffsetManager). Every method is called with the broker's lock held.

    A reset stays until the group's next pull has learned of it, and refuses what members commit before that.
    """

    def __init__(self, topics: TopicTable) -> None:
        self.committed = ConsumerOffsets()
        self._topics = topics
        self._resets: dict[tuple[str, str, int], int] = {}

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Store a group's offset. Raises MQBrokerError for an unknown topic."""
        if topic not in self._topics.queues:
            raise MQBrokerError(TOPIC_NOT_EXIST, f"Topic {topic} not exist!")
        if (group, topic, queue_id) in self._resets:
            log.info("Update consumer offset is rejected because of previous offset-reset. Group=%s", group)
            return
        if not self.committed.commit(group, topic, queue_id, offset):
            log.warning(
                "[NOTIFYME]update consumer offset less than store. key=%s@%s, queueId=%s, requestOffset=%s",
                topic, group, queue_id, offset,
            )  # fmt: skip

    def reset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Set a group's offset, also of members that consume: their next pull brings them there (assignResetOffset)."""
        self._resets[group, topic, queue_id] = offset
        self.committed.commit(group, topic, queue_id, offset)

    def take_reset(self, group: str, topic: str, queue_id: int) -> int | None:
        """The offset that the group's next pull must learn of, once."""
        return self._resets.pop((group, topic, queue_id), None)

    def query(self, group: str, topic: str, queue_id: int, index: ConsumeQueue) -> int:
        """A group's offset, or the one where a group without any starts; OffsetNotFoundError."""
        first = index.min_offset == 0 and index.max_offset > 0
        offset = self.committed.query(group, topic, queue_id, index.min_offset, first)
        if offset < 0:
            raise OffsetNotFoundError(
                QUERY_NOT_FOUND, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
            )
        return offset
