"""The topics of one broker, how each lies there, and the file that keeps them (TopicConfigManager)."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import TypeVar

from pyengine._engine.rocketmq.broker.consume_queue import ConsumeQueue
from pyengine._engine.rocketmq.client.validators import suggested
from pyengine.errors import ConfigurationError, MQBrokerError
from pyengine.rocketmq.broker.broker_files import BrokerFiles
from pyengine.rocketmq.broker.topic_config import TopicConfig
from pyengine.rocketmq.remoting.mq_client_api import CLIENT, INVALID_PARAMETER, TOPIC_NOT_EXIST

V = TypeVar("V")


def no_topic(topic: str) -> MQBrokerError:
    """The error of an unknown topic."""
    return MQBrokerError(TOPIC_NOT_EXIST, suggested(f"topic[{topic}] not exist, apply first please! "))


class TopicTable:
    """Topics by their names. Every method is called with the broker's lock held.

    broker_name: of errors. files: the broker's folder, None without one. fixed: topics of the store that have their
    queues by themselves. changed: called when a topic was made, changed or deleted.
    """

    def __init__(self, broker_name: str, files: BrokerFiles | None, fixed: Mapping[str, int]) -> None:
        self.queues: dict[str, int] = {}  # name -> queues
        self._configs: dict[str, TopicConfig] = {}  # of those that do not lie as create() has them
        self.changed: Callable[[], None] = lambda: None
        self._broker_name = broker_name
        self._files = files
        self._fixed = fixed
        if files is not None:
            self.queues.update(files.read_topics())
            self._configs.update(files.read_configs())
            self.queues.update({topic: config.queues for topic, config in self._configs.items()})

    def recover(self, found: Mapping[tuple[str, int], ConsumeQueue], apart: Container[str]) -> None:
        """Take on the queues that the log has messages of and the file does not know; apart: topics that are not
        meant."""
        for (topic, queue_id), queue in found.items():
            plain = topic not in apart and topic not in self._configs
            if plain and queue.max_offset and self.queues.get(topic, 0) <= queue_id:
                self.queues[topic] = queue_id + 1

    def create(self, topic: str, queues: int) -> None:
        """Make a topic, or give it more queues; fewer are refused."""
        before = self.queues.get(topic, 0)
        if queues < before:
            raise ConfigurationError(
                "queues",
                queues,
                f"topic {topic!r} of broker {self._broker_name!r} has {before}",
                "a topic never shrinks",
            )
        if queues != before:
            self._replace(topic, queues, None)

    def config(self, topic: str) -> TopicConfig | None:
        """How a topic lies here, None if it does not."""
        queues = self.queues.get(topic)
        return None if queues is None else self._configs.get(topic) or TopicConfig(queues, queues)

    def update(self, topic: str, config: TopicConfig) -> None:
        """Make a topic, or let it lie otherwise."""
        plain = config == TopicConfig(config.queues, config.queues)
        self._replace(topic, config.queues, None if plain else config)

    def delete(self, topic: str) -> None:
        """Forget a topic."""
        self._replace(topic, None, None)

    def _replace(self, topic: str, queues: int | None, config: TopicConfig | None) -> None:
        """Another entry of the topic, or none. The file first: what an interrupt leaves undone is done by the next call
        then."""
        if self._files is not None:
            named = dict(self.queues)
            configs = {name: each for name, each in self._configs.items() if name != topic}
            _set(named, topic, queues)
            _set(configs, topic, config)
            self._files.write_topics(named, configs)
        _set(self.queues, topic, queues)
        _set(self._configs, topic, config)
        self.changed()

    def check_queue(self, topic: str, queue_id: int) -> None:
        """Raise MQBrokerError for a queue that the topic does not have."""
        count = self._fixed.get(topic, self.queues.get(topic))
        if count is None:
            raise no_topic(topic)
        if not 0 <= queue_id < count:
            raise MQBrokerError(
                INVALID_PARAMETER,
                f"queueId[{queue_id}] is illegal, topic:[{topic}] topicConfig.readQueueNums:[{count}] "
                f"consumer:[/{CLIENT}]",
            )


def _set(table: dict[str, V], topic: str, value: V | None) -> None:
    if value is None:
        table.pop(topic, None)
    else:
        table[topic] = value
