"""Brokers that write down what a client asks of them and answer as a recorded case says."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pyengine import rocketmq
from pyengine.clock import ManualClock
from pyengine.errors import MQBrokerError, MQClientError, OffsetNotFoundError, PyengineError
from pyengine.rocketmq.remoting.mq_client_api import ClientEvents, HeartbeatData, PullCallback

GROUP = "GroupTest"
TOPIC = "TopicTest"
QUEUE = rocketmq.MessageQueue(TOPIC, "broker-a", 0)
MORE = "\nFor more information, please visit the url, https://rocketmq.apache.org/docs/bestPractice/06FAQ"
NOW = 1_700_000_000_000


def queue_of(text: str) -> rocketmq.MessageQueue:
    """``topic/broker/id``, or ``topic/id`` where the recording has one broker."""
    parts = text.rsplit("/", 2)
    return rocketmq.MessageQueue(parts[0], parts[1] if len(parts) == 3 else "broker-a", int(parts[-1]))


def text_of(queue: rocketmq.MessageQueue) -> str:
    """``topic/broker/id``."""
    return f"{queue.topic}/{queue.broker_name}/{queue.queue_id}"


class Cluster:
    """Brokers whose answers are set by a case. Pulls are kept, never answered, unless the test does it."""

    def __init__(self) -> None:
        self.clock = ManualClock(NOW)
        self.topics: dict[str, list[rocketmq.MessageQueue]] = {}
        self.client_ids: list[str] | None = []
        self.stored: dict[rocketmq.MessageQueue, int] = {}
        self.unreachable: set[rocketmq.MessageQueue] = set()
        self.locks_denied: set[rocketmq.MessageQueue] = set()
        self.highest: int | str = 0
        self.found_by_time: int | str = 0
        self.send_back_fails: Callable[[int], bool] = lambda offset: False
        self.calls: list[tuple[Any, ...]] = []
        self.pulls: list[tuple[rocketmq.PullMessageRequest, PullCallback]] = []

    def named(self, *names: str) -> list[tuple[Any, ...]]:
        """The calls of these names, in order."""
        return [call for call in self.calls if call[0] in names]

    def register_client(self, client_id: str, events: ClientEvents) -> None:
        self.calls.append(("register", client_id))

    def unregister_client(self, client_id: str, group: str) -> None:
        self.calls.append(("unregister", client_id))

    def disconnect(self, client_id: str) -> None:
        """Nothing to forget."""

    def publish_queues(self, topic: str) -> list[rocketmq.MessageQueue]:
        return self.topic_subscribe_info(topic) or []

    def send_heartbeat(self, heartbeat: HeartbeatData) -> None:
        self.calls.append(("heartbeat",))

    def check_client(self, group: str, client_id: str, subscription: rocketmq.SubscriptionData) -> None:
        """Everything can be filtered by."""

    def topic_subscribe_info(self, topic: str) -> list[rocketmq.MessageQueue] | None:
        return self.topics.get(topic)

    def get_consumer_id_list(self, topic: str, group: str) -> list[str]:
        if self.client_ids is None:
            raise MQBrokerError(1, "no consumer")
        return self.client_ids

    def pull_message(self, request: rocketmq.PullMessageRequest, callback: PullCallback) -> None:
        self.pulls.append((request, callback))

    def query_consumer_offset(self, group: str, queue: rocketmq.MessageQueue, timeout: int = 5000) -> int:
        self.calls.append(("query", queue, timeout))
        if queue in self.unreachable:
            raise MQBrokerError(1, "down")
        if queue not in self.stored:
            raise OffsetNotFoundError(22, "Not found")
        return self.stored[queue]

    def update_consumer_offset(
        self, group: str, queue: rocketmq.MessageQueue, offset: int, timeout: int = 5000
    ) -> None:
        self.calls.append(("update", queue, offset, timeout))
        if queue in self.unreachable:
            raise MQBrokerError(1, "down")
        self.stored[queue] = offset

    def max_offset(self, queue: rocketmq.MessageQueue) -> int:
        self.calls.append(("maxOffset", queue))
        return _offset(self.highest)

    def min_offset(self, queue: rocketmq.MessageQueue) -> int:
        return 0

    def search_offset(self, queue: rocketmq.MessageQueue, timestamp: int) -> int:
        self.calls.append(("searchOffset", queue, timestamp))
        return _offset(self.found_by_time)

    def lock_batch_mq(
        self, group: str, client_id: str, queues: Iterable[rocketmq.MessageQueue]
    ) -> set[rocketmq.MessageQueue]:
        held = set(queues) - self.locks_denied
        self.calls += [("lock", queue, queue in held) for queue in queues]
        return held

    def unlock_batch_mq(self, group: str, client_id: str, queues: Iterable[rocketmq.MessageQueue]) -> None:
        self.calls += [("unlock", queue, True) for queue in queues]

    def consumer_send_message_back(
        self, group: str, message: rocketmq.MessageExt, delay_level: int, max_reconsume_times: int
    ) -> None:
        fails = self.send_back_fails(message.queue_offset)
        self.calls.append(("back", message.queue_offset, delay_level, "failed" if fails else "ok"))
        if fails:
            raise MQBrokerError(1, "x")

    def send_message(
        self, group: str, message: rocketmq.Message, queue: rocketmq.MessageQueue | None = None
    ) -> rocketmq.SendResult:
        offset = int(message.properties["ORIGIN_MESSAGE_ID"].removeprefix("M"))
        fails = self.send_back_fails(offset)
        tries = int(message.properties["RECONSUME_TIME"]) - 1
        self.calls.append(("send", offset, tries, "failed" if fails else "ok"))
        if fails:
            raise MQClientError("x" + MORE)
        return rocketmq.SendResult(rocketmq.SendStatus.SEND_OK, "", "", QUEUE, 0)


def _offset(value: int | str) -> int:
    if isinstance(value, str):
        raise MQClientError("no broker" + MORE)
    return value


class RecordingStore:
    """An offset store that writes down its calls, in front of a real one."""

    def __init__(self, store: rocketmq.OffsetStore) -> None:
        self.store = store
        self.calls: list[list[Any]] = []

    def load(self) -> None:
        self.store.load()

    def update_offset(self, queue: rocketmq.MessageQueue | None, offset: int, *, increase_only: bool = False) -> None:
        self.calls.append(["updateOffset", text_of(queue or QUEUE), offset, increase_only])
        self.store.update_offset(queue, offset, increase_only=increase_only)

    def update_and_freeze_offset(self, queue: rocketmq.MessageQueue | None, offset: int) -> None:
        self.calls.append(["updateAndFreezeOffset", text_of(queue or QUEUE), offset])
        self.store.update_and_freeze_offset(queue, offset)

    def read_offset(self, queue: rocketmq.MessageQueue | None, where: rocketmq.ReadOffsetType) -> int:
        return self.store.read_offset(queue, where)

    def persist_all(self, queues: Iterable[rocketmq.MessageQueue] | None) -> None:
        self.store.persist_all(queues)

    def persist(self, queue: rocketmq.MessageQueue) -> None:
        self.calls.append(["persist", text_of(queue)])
        self.store.persist(queue)

    def remove_offset(self, queue: rocketmq.MessageQueue) -> None:
        self.calls.append(["removeOffset", text_of(queue)])
        self.store.remove_offset(queue)

    def offsets(self) -> dict[rocketmq.MessageQueue, int]:
        return self.store.offsets()


def in_java_s_words(text: str) -> str:
    """A log line without the group, and the queue or topic, that pyengine adds where the real client names none."""
    return re.sub(r" \(group [^()]*\)$", "", text)


class Lines(logging.Handler):
    """The log lines of the client, as ``LEVEL text``."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = in_java_s_words(record.getMessage())
        error = record.exc_info[1] if record.exc_info else None
        level = {"WARNING": "WARN"}.get(record.levelname, record.levelname)
        self.lines.append(f"{level} {text}" + (f"\n{error}" if error else ""))

    def about(self, *beginnings: str) -> list[str]:
        """The lines whose text begins so."""
        return [line for line in self.lines if line.split(" ", 1)[1].startswith(beginnings)]


@contextmanager
def log_lines() -> Iterator[Lines]:
    """Catch what the client logs."""
    logger = logging.getLogger("pyengine.rocketmq")
    handler = Lines()
    level, propagate = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate


def message(offset: int, size: int = 5, reconsume_times: int = 0) -> rocketmq.MessageExt:
    """A message of the recordings."""
    return rocketmq.MessageExt(
        TOPIC,
        bytes(size),
        broker_name="broker-a",
        queue_offset=offset,
        msg_id=f"M{offset}",
        reconsume_times=reconsume_times,
        born_host="127.0.0.1:1",
        store_host="127.0.0.1:2",
    )


@contextmanager
def started(cluster: Cluster, listener: Any = None, **parameters: Any) -> Iterator[rocketmq.DefaultMQPushConsumer]:
    """A consumer of the recordings, running at these brokers; nothing is assigned to it yet."""
    consumer = rocketmq.DefaultMQPushConsumer(GROUP, broker=cluster, **parameters)
    consumer.subscribe(TOPIC)
    consumer.register_message_listener(listener or (lambda messages, context: None))
    try:
        consumer.start()
        yield consumer
    finally:
        consumer.shutdown()


def outcome(call: Callable[[], Any]) -> Any:
    """The answer of a call, or the error it ends with."""
    try:
        return call()
    except PyengineError as error:
        return error
