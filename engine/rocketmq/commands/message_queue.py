"""A message queue's name, as clients, brokers and codecs exchange it."""

from __future__ import annotations

from typing import NamedTuple

from pyengine._engine.java.hashing import queue_hash_code
from pyengine.attributes import named_arguments


@named_arguments
class MessageQueue(NamedTuple):
    """One queue of a topic on a named broker."""

    topic: str
    broker_name: str
    queue_id: int

    def __str__(self) -> str:
        topic, broker_name = ("null" if part is None else part for part in self[:2])
        return f"MessageQueue [topic={topic}, brokerName={broker_name}, queueId={self.queue_id}]"

    def hash_code(self) -> int:
        """What the real class's hashCode() answers."""
        return queue_hash_code(self.topic, self.broker_name, self.queue_id)
