"""pyengine's push consumer between stubs, as java/RealConsumer.java holds the real one: brokers, threads and timers."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import Any

from pyengine import rocketmq
from pyengine._engine.rocketmq.client.pull_gate import PullRequest
from pyengine._engine.rocketmq.client.rebalance import may_force_unlock
from pyengine.clock import ManualClock, Timer
from pyengine.errors import MQBrokerError, MQClientError, OffsetNotFoundError
from pyengine.rocketmq.consumer.concurrent_service import ConsumeMessageConcurrentlyService
from pyengine.rocketmq.remoting.mq_client_api import ClientEvents, HeartbeatData, PullCallback
from tests.conformance.rocketmq_cluster import in_java_s_words
from tests.rocketmq.differential.traces import Operation

GROUP = "G"
NOW = 2_000_000_000_000
STRATEGIES: dict[str, Any] = {
    "AVG": rocketmq.AllocateMessageQueueAveragely,
    "AVG_BY_CIRCLE": rocketmq.AllocateMessageQueueAveragelyByCircle,
    "CONSISTENT_HASH": rocketmq.AllocateMessageQueueConsistentHash,
}
PARAMETERS = {
    "pullThresholdForQueue": "pull_threshold_for_queue",
    "pullThresholdSizeForQueue": "pull_threshold_size_for_queue",
    "consumeConcurrentlyMaxSpan": "consume_concurrently_max_span",
    "pullThresholdForTopic": "pull_threshold_for_topic",
    "pullThresholdSizeForTopic": "pull_threshold_size_for_topic",
    "pullInterval": "pull_interval",
    "pullBatchSize": "pull_batch_size",
    "consumeMessageBatchMaxSize": "consume_message_batch_max_size",
    "maxReconsumeTimes": "max_reconsume_times",
    "suspendCurrentQueueTimeMillis": "suspend_current_queue_time_millis",
}
BODIES: dict[int, bytes] = {}
logger = logging.getLogger("pyengine.rocketmq")


def name_of(queue: rocketmq.MessageQueue) -> str:
    return f"{queue.topic}/{queue.broker_name}/{queue.queue_id}"


def queue_of(name: str) -> rocketmq.MessageQueue:
    topic, broker, number = name.split("/")
    return rocketmq.MessageQueue(topic, broker, int(number))


def names_of(queues: Iterable[rocketmq.MessageQueue]) -> list[str]:
    return sorted(map(name_of, queues))


class HeldClock(ManualClock):
    """Time stands still; what is called later is kept, and fired when a trace says so."""

    def __init__(self) -> None:
        super().__init__(NOW)
        self.later: list[Timer] = []

    def call_at(self, when: int, action: Any) -> Timer:
        timer = Timer(when, action)
        self.later.append(timer)
        return timer

    def wait(self, condition: Any, ready: Any, timeout: int | None = None) -> bool:
        return bool(ready())


class Lines(logging.Handler):
    """What the client logs, as ``LEVEL text``."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        level = {"WARNING": "WARN"}.get(record.levelname, record.levelname)
        self.lines.append(f"{level} {in_java_s_words(record.getMessage())}".split("\n")[0])


class ListenerError(ValueError):
    """What a listener raises."""


class Pool:
    """Keeps what is submitted; refuses after ``room`` tasks, -1 for never."""

    def __init__(self) -> None:
        self.tasks: list[Any] = []
        self.room = -1
        self.core_pool_size = 20

    def submit(self, tasks: Any) -> int:
        taken = len(tasks) if self.room < 0 else min(self.room, len(tasks))
        self.room -= taken if self.room > 0 else 0
        self.tasks += tasks[:taken]
        return taken

    def close(self, wait: int) -> bool:
        return True


class Consumer:
    """The consumer; itself its brokers, its pull service and its rebalance service."""

    def __init__(self) -> None:
        self.clock = HeldClock()
        self.consumer: rocketmq.DefaultMQPushConsumer | None = None
        self.world: dict[str, Any] = {}
        self.stored: dict[str, Any] = {}
        self.waiting: list[tuple[str, int, PullRequest]] = []
        self.outstanding: list[tuple[str, int, rocketmq.PullMessageRequest, PullCallback]] = []
        self.known: list[rocketmq.MessageExt] = []
        self.calls: list[list[Any]] = []
        self.held: set[rocketmq.ProcessQueue] = set()
        self.pool = Pool()
        self.numbers = 0
        self.script: list[dict[str, Any]] = []
        self.turn = 0
        self.running: Any = None
        self.lines = Lines()

    # -- the edge

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def among(self, name: str, item: Any) -> bool:
        return item in (self.world.get(name) or ())

    def asked(self, name: str) -> int:
        value = self.world.get(name)
        if not isinstance(value, int):
            raise MQClientError("x")
        return value

    def register_client(self, client_id: str, events: ClientEvents) -> None:
        """Nothing to tell."""

    def unregister_client(self, client_id: str, group: str) -> None:
        self.calls.append(["unregister", group])

    def disconnect(self, client_id: str) -> None:
        """Nothing to forget."""

    def publish_queues(self, topic: str) -> list[rocketmq.MessageQueue]:
        return self.topic_subscribe_info(topic) or []

    def send_heartbeat(self, heartbeat: HeartbeatData) -> None:
        self.calls.append(["heartbeat"])

    def check_client(self, group: str, client_id: str, subscription: rocketmq.SubscriptionData) -> None:
        """Everything can be filtered by."""

    def topic_subscribe_info(self, topic: str) -> list[rocketmq.MessageQueue] | None:
        return None

    def get_consumer_id_list(self, topic: str, group: str) -> list[str]:
        clients: list[str] | None = self.world.get("clients")
        if clients is None:
            raise MQBrokerError(1, "none")
        return clients

    def pull_message(self, request: rocketmq.PullMessageRequest, callback: PullCallback) -> None:
        name = name_of(request.queue)
        self.calls.append(
            [
                "pull",
                name,
                request.queue_offset,
                request.max_nums,
                request.max_bytes,
                request.sys_flag,
                request.commit_offset,
                request.suspend_timeout,
                request.timeout_millis,
                request.sub_expression,
                request.expression_type,
            ]
        )
        if self.among("silent", request.queue.broker_name):
            raise MQBrokerError(1, "down")
        self.outstanding.append((name, self.number(), request, callback))

    def query_consumer_offset(self, group: str, queue: rocketmq.MessageQueue, timeout: int = 5000) -> int:
        name = name_of(queue)
        self.calls.append(["query", name])
        offset = self.stored.get(name)
        if offset is None:
            raise OffsetNotFoundError(22, "none")
        if not isinstance(offset, int):
            raise MQBrokerError(1, "down")
        return offset

    def update_consumer_offset(
        self, group: str, queue: rocketmq.MessageQueue, offset: int, timeout: int = 5000
    ) -> None:
        name = name_of(queue)
        self.calls.append(["update", name, offset])
        if isinstance(self.stored.get(name), str):
            raise MQBrokerError(1, "down")
        self.stored[name] = offset

    def max_offset(self, queue: rocketmq.MessageQueue) -> int:
        self.calls.append(["max", name_of(queue)])
        return self.asked("max")

    def min_offset(self, queue: rocketmq.MessageQueue) -> int:
        return 0

    def search_offset(self, queue: rocketmq.MessageQueue, timestamp: int) -> int:
        self.calls.append(["search", name_of(queue)])
        return self.asked("search")

    def lock_batch_mq(
        self, group: str, client_id: str, queues: Iterable[rocketmq.MessageQueue]
    ) -> set[rocketmq.MessageQueue]:
        asked = list(queues)
        granted = {queue for queue in asked if not self.among("denied", name_of(queue))}
        silent = self.among("silent", asked[0].broker_name)
        self.calls.append(["lock", names_of(asked), None if silent else names_of(granted)])
        if silent:
            raise MQBrokerError(1, "down")
        return granted

    def unlock_batch_mq(self, group: str, client_id: str, queues: Iterable[rocketmq.MessageQueue]) -> None:
        asked = list(queues)
        self.calls.append(["unlock", names_of(asked)])
        if self.among("silent", asked[0].broker_name):
            raise MQBrokerError(1, "down")

    def consumer_send_message_back(
        self, group: str, message: rocketmq.MessageExt, delay_level: int, max_reconsume_times: int
    ) -> None:
        self.calls.append(
            [
                "back",
                message.topic,
                message.properties.get("n"),
                delay_level,
                max_reconsume_times,
                message.reconsume_times,
            ]
        )
        if self.among("back_fails", message.queue_offset % 8):
            raise MQBrokerError(1, "x")

    def send_message(
        self, group: str, message: rocketmq.Message, queue: rocketmq.MessageQueue | None = None
    ) -> rocketmq.SendResult:
        self.calls.append(["send", message.topic, _properties(message), message.flag])
        if self.among("send_fails", int(message.properties["n"]) % 8):
            raise MQClientError("x")
        return rocketmq.SendResult(rocketmq.SendStatus.SEND_OK, "", "", queue_of("T/a/0"), 0)

    # -- the services beside it

    def execute_pull_request_immediately(self, request: PullRequest) -> None:
        self.calls.append(["at once", name_of(request.queue)])
        self.waiting.append((name_of(request.queue), self.number(), request))

    def execute_pull_request_later(self, request: PullRequest, delay: int) -> None:
        self.calls.append(["later", name_of(request.queue), delay])
        self.waiting.append((name_of(request.queue), self.number(), request))

    def execute_task(self, task: Any) -> None:
        task()

    def wakeup(self) -> None:
        self.calls.append(["rebalance"])

    def wakeup_later(self, delay: int) -> None:
        self.calls.append(["rebalance", delay])

    def close(self) -> None:
        """Nothing runs."""

    def message_queue_changed(self, topic: str, queues: Any, mine: Any) -> None:
        self.calls.append(["changed", topic, names_of(queues), names_of(mine)])

    # -- the consumer

    def do_config(self, config: dict[str, Any]) -> None:
        answer: Any = self.listen
        brokers: Any = self
        orderly = config["orderly"]
        self.consumer = consumer = rocketmq.DefaultMQPushConsumer(
            GROUP,
            broker=brokers,
            offset_store=rocketmq.RemoteBrokerOffsetStore(brokers, GROUP),
            message_model=rocketmq.MessageModel["BROADCASTING" if config["broadcasting"] else "CLUSTERING"],
            consume_from_where=rocketmq.ConsumeFromWhere[config["where"]],
            allocate_message_queue_strategy=STRATEGIES[config["strategy"]](),
            post_subscription_when_pull=config["post"],
            message_queue_listener=brokers,
        )
        consumer.register_message_listener(rocketmq.MessageListenerOrderly(answer) if orderly else answer)
        consumer.subscribe("T0", config["tags"])
        consumer.subscribe("T1", "*")
        consumer.start()
        consumer.instance_name = "DEFAULT"
        for name, value in config["set"].items():
            setattr(consumer, PARAMETERS[name], value)
        member: Any = consumer.default_mq_push_consumer_impl
        self.member = member
        member.running.client_id = config["me"]
        for service in (member.running.pull_service, member.running.rebalance_service):
            service.close()
        member.running.pull_service = member.running.rebalance_service = brokers
        self.service: Any = member.consuming
        self.service._pool = self.pool
        self.service.run = self._submitted(self.service.run)
        member.rebalancing._listener_returned = lambda queue: queue not in self.held
        for timer in self.clock.later:
            timer.cancel()
        self.clock.later.clear()
        self.calls.clear()
        self.lines.lines.clear()

    def _submitted(self, run: Any) -> Any:
        """Remember whose turn it is: a listener may lose the queue that it works on."""

        def observed(*arguments: Any) -> None:
            first = arguments[0]
            self.running = first if isinstance(first, rocketmq.ProcessQueue) else first.process_queue
            run(*arguments)

        return observed

    def listen(self, messages: Any, context: Any) -> Any:
        self.calls.append(
            [
                "listen",
                [
                    [
                        message.topic,
                        message.queue_offset,
                        message.reconsume_times,
                        message.broker_name,
                        message.queue_id,
                        _properties(message),
                        "CONSUME_START_TIME" in message.properties,
                    ]
                    for message in messages
                ],
            ]
        )
        answer: dict[str, Any] = {}
        if self.script:
            answer = self.script[self.turn % len(self.script)]
            self.turn += 1
        if answer.get("drop"):
            self.running.dropped = True
        if answer.get("unlock"):
            self.running.locked = False
        if answer.get("expire"):
            self.running.last_lock_timestamp = NOW - 31_000
        status = answer.get("status")
        if status in ("throw", "error"):
            raise ListenerError
        if isinstance(context, rocketmq.ConsumeOrderlyContext):
            context.auto_commit = not answer.get("manual")
            if answer.get("suspend") is not None:
                context.suspend_current_queue_time_millis = answer["suspend"]
            return None if status is None else rocketmq.ConsumeOrderlyStatus[status]
        if answer.get("ack") is not None:
            context.ack_index = answer["ack"]
        context.delay_level_when_next_consume = answer.get("delay", 0)
        return None if status is None else rocketmq.ConsumeConcurrentlyStatus[status]

    # -- operations

    def play(self, operation: Operation) -> Any:
        self.calls.clear()
        self.lines.lines.clear()
        name, *arguments = operation
        if self.consumer is None and name != "config":
            return None
        level, propagate = logger.level, logger.propagate
        logger.addHandler(self.lines)
        logger.setLevel(logging.INFO)
        logger.propagate = False
        try:
            return getattr(self, f"do_{name}")(*arguments)
        finally:
            self.clock.settle()
            logger.removeHandler(self.lines)
            logger.setLevel(level)
            logger.propagate = propagate

    def do_world(self, change: dict[str, Any]) -> None:
        self.world.update(change)
        for name, offset in change.get("stored", {}).items():
            self.stored.pop(name, None)
            if offset is not None:
                self.stored[name] = offset
        for topic, queues in change.get("topics", {}).items():
            self.member.rebalancing.topic_queues.pop(topic, None)
            if queues is not None:
                self.member.rebalancing.topic_queues[topic] = set(map(queue_of, queues))

    def do_set(self, name: str, value: int) -> None:
        setattr(self.consumer, PARAMETERS[name], value)

    def do_rebalance(self) -> bool:
        return self.member.try_rebalance()

    def do_pull(self, number: int) -> None:
        self.waiting.sort(key=lambda pull: pull[:2])
        if self.waiting:
            self.member.pull_message(self.waiting.pop(number % len(self.waiting))[2])

    def do_answer(self, number: int, answer: dict[str, Any]) -> None:
        self.outstanding.sort(key=lambda pull: pull[:2])
        if not self.outstanding:
            return
        _, _, request, callback = self.outstanding.pop(number % len(self.outstanding))
        status = answer["status"]
        if status is None:
            callback(None)  # type: ignore[arg-type]
        elif status == "broker":
            callback(MQBrokerError(answer["code"], "x"))
        elif status == "client":
            callback(MQClientError("x"))
        else:
            found = []
            for offset, size, tags, times, retried in answer["rows"]:
                at = as_long(request.queue_offset + offset)
                properties = {"TAGS": tags} if tags is not None else {}
                properties["n"] = str(at)
                if retried:
                    properties["RETRY_TOPIC"] = "T0"
                found.append(
                    rocketmq.MessageExt(
                        request.queue.topic,
                        BODIES.setdefault(size, bytes(size)),
                        queue_offset=at,
                        reconsume_times=times,
                        store_host="127.0.0.1:2",
                        msg_id="7F00000100000002" + "0" * 16,
                        properties=properties,
                    )
                )
            result = rocketmq.PullResult(
                rocketmq.PullStatus[status],
                as_long(request.queue_offset + answer["next"]),
                answer["min"],
                answer["max"],
                tuple(found) if status == "FOUND" else (),
            )
            callback(result)
            self.clock.settle()
            if status == "FOUND":
                self.known += [message for message in found if "MIN_OFFSET" in message.properties]

    def do_run(self, number: int, script: list[dict[str, Any]]) -> None:
        self.script, self.turn = script, 0
        if self.pool.tasks:
            self.pool.tasks.pop(number % len(self.pool.tasks))()

    def do_fire(self, number: int) -> None:
        timers = [timer for timer in self.clock.later if timer.pending]
        if timers:
            timers[number % len(timers)].fire()

    def do_lock_all(self) -> None:
        self.member.rebalancing.lock_all()

    def do_unlock_all(self) -> None:
        self.member.rebalancing.unlock_all()

    def do_clean(self) -> None:
        if isinstance(self.service, ConsumeMessageConcurrentlyService):
            self.service.clean_expired_messages()

    def do_stamp(self, number: int, age: int) -> None:
        if self.known:
            self.known[number % len(self.known)].properties["CONSUME_START_TIME"] = str(NOW - age)

    def do_persist(self) -> None:
        self.member.persist_consumer_offset()

    def do_suspend(self) -> None:
        self.member.suspend()

    def do_resume(self) -> None:
        self.member.resume()

    def do_subscribe(self, topic: str, expression: str) -> None:
        assert self.consumer is not None
        self.consumer.subscribe(topic, expression)

    def do_unsubscribe(self, topic: str) -> None:
        self.member.unsubscribe(topic)

    def do_where(self, name: str) -> int:
        return self.member.rebalancing.compute_pull_from_where_with_exception(queue_of(name))

    def do_room(self, room: int) -> None:
        self.pool.room = room

    def _chosen(self, number: int) -> Any:
        names = names_of(self.member.process_queues)
        return self.member.process_queues[queue_of(names[number % len(names)])] if names else None

    def do_age(self, number: int, what: str, age: int) -> None:
        queue = self._chosen(number)
        if queue is not None:
            setattr(queue, "last_lock_timestamp" if what == "lock" else "last_pull_timestamp", NOW - age)

    def do_force(self, age: int) -> bool:
        queue = rocketmq.ProcessQueue()
        queue.dropped, queue.last_lock_timestamp = True, NOW - age
        return may_force_unlock(queue, NOW)

    def do_mark(self, number: int, what: str, value: int) -> None:
        queue = self._chosen(number)
        if queue is not None:
            setattr(queue, what, bool(value))

    def do_hold(self, number: int, value: int) -> None:
        queue = self._chosen(number)
        if queue is not None:
            (self.held.add if value else self.held.discard)(queue)

    def do_shutdown(self) -> None:
        assert self.consumer is not None
        self.consumer.shutdown()
        self.pool.tasks.clear()
        self.outstanding.clear()
        for timer in self.clock.later:
            timer.cancel()

    def state(self) -> Any:
        if self.consumer is None:
            return None
        member, consumer = self.member, self.consumer
        table = []
        for queue in sorted(member.process_queues, key=name_of):
            held = member.process_queues[queue]
            held._check()
            table.append(
                [
                    name_of(queue),
                    held.message_count,
                    held.message_size,
                    held.queue_offset_max,
                    held.accumulated,
                    held.consuming,
                    held.dropped,
                    held.locked,
                    held.try_unlock_times,
                    held.cached_offsets,
                    held.taken_offsets,
                ]
            )
        pulls = sorted(
            f"{name} {request.next_offset} {str(request.previously_locked).lower()}"
            for name, _, request in self.waiting
        )
        self.clock.later = [timer for timer in self.clock.later if timer.pending]
        gate = member.pulling.gate
        return [
            table,
            pulls,
            len(self.outstanding),
            [self._task(task) for task in self.pool.tasks],
            [timer.when - NOW for timer in self.clock.later],
            {name_of(queue): offset for queue, offset in member.context.store.offsets().items()},
            list(self.calls),
            list(self.lines.lines),
            gate.queue_flow_control_times,
            gate.queue_max_span_flow_control_times,
            consumer.pull_threshold_for_queue,
            consumer.pull_threshold_size_for_queue,
            member.context.paused,
        ]

    @staticmethod
    def _task(task: Any) -> list[Any]:
        """What a submitted task is about: a batch, or a queue to be drained."""
        request, *queue = task.args
        if not queue:
            return [
                name_of(request.queue),
                [[message.queue_offset, message.reconsume_times] for message in request.messages],
            ]
        return [name_of(queue[0]), None]


def _properties(message: rocketmq.Message) -> dict[str, str]:
    return {
        name: value
        for name, value in sorted(message.properties.items())
        if name not in ("CONSUME_START_TIME", "WAIT", "ORIGIN_MESSAGE_ID")
    }


# What a line says of an exception, a message or a moment is not the same text on both sides.
MESSAGE = re.compile(r"MessageExt \[brokerName=.*?queueOffset=(-?\d+).*?transactionId='[^']*'\}\]")
NOT_EQUAL = (
    (MESSAGE, r"M\1"),
    (re.compile(r"(consumeMessage exception: ).*?( Group: )"), r"\1\2"),
    (re.compile(r"(exception.* ex: |exception=).*"), r"\1"),
    (re.compile(r"update version: \d+, \d+"), "update version"),
    (re.compile(r"MessageQueue \[[^]]*\](, MessageQueue \[[^]]*\])+"), "some queues"),
)


# Java's hash maps decide the order of what these do; how often a threshold is divided depends on it, its end does not.
UNORDERED = ("rebalance", "resume", "lock_all", "unlock_all", "persist", "clean", "shutdown")
CALLS, LINES = 6, 7
# What the real offset store notes of each queue that it stores or forgets is not logged here; what our edge notes is
# noted below the real one's stubs.
NOT_COMPARED = (
    "WARN getConsumerIdListByGroup exception,",
    "INFO the pool of ",
    "INFO The pullThreshold",
    "INFO [persist",
    "INFO remove unused mq,",
    "INFO remove unnecessary messageQueue offset.",
    "INFO the client factory ",
)


def as_long(number: int) -> int:
    """As Java's long keeps it."""
    return (number + 2**63) % 2**64 - 2**63


def comparable(name: str, answer: list[Any]) -> list[Any]:
    """An answer to the operation of this name without what differs in every run."""
    result, state = answer
    if state is None:
        return answer
    lines = []
    for line in state[LINES]:
        for pattern, text in NOT_EQUAL:
            line = pattern.sub(text, line)
        if not line.startswith(NOT_COMPARED):
            lines.append(line)
    state = [*state[:CALLS], state[CALLS], lines, *state[LINES + 1 :]]
    if name in UNORDERED:
        state[CALLS], state[LINES] = sorted(state[CALLS], key=str), sorted(lines)
    return [result, state]
