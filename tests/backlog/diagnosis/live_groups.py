"""Live RocketMQ brokers and consumers: for each rule a group that it speaks of and one close by.

Time is moved by hand. Where one listener must stand while others work, threads are real and only the clock is put
forward.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyengine import rocketmq
from pyengine.backlog.diagnosis.evidence import Evidence, client_log, live
from pyengine.clock import Clock, ManualClock, SystemClock
from pyengine.rocketmq import (
    AllocateMessageQueueAveragely,
    AllocateMessageQueueAveragelyByCircle,
    AllocateMessageQueueByConfig,
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    ConsumeOrderlyStatus,
    MessageListenerOrderly,
    MessageModel,
    MessageQueue,
    MQClientError,
)

DONE, LATER = ConsumeConcurrentlyStatus.CONSUME_SUCCESS, ConsumeConcurrentlyStatus.RECONSUME_LATER
AGAIN = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
TOPIC, GROUP = "Orders", "billing"
QUEUE = MessageQueue(TOPIC, "broker-a", 0)


class HurriedClock(SystemClock):
    """The system's time and threads; hurry() puts it forward."""

    ahead = 0

    def now(self) -> int:
        return super().now() + self.ahead

    def hurry(self, milliseconds: int) -> None:
        with self._changed:
            self.ahead += milliseconds
            self._changed.notify()


class Process:
    """A client process of its own, as its brokers see it: what it asks goes through until it loses its answers."""

    def __init__(self, broker: rocketmq.Broker) -> None:
        self._broker = broker
        self.answered = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    def pull_message(self, request: Any, callback: Any) -> None:
        if self.answered:
            self._broker.pull_message(request, callback)

    def lock_batch_mq(self, group: str, client_id: str, queues: Any) -> set[MessageQueue]:
        if not self.answered:
            raise MQClientError("connect to 127.0.0.1:10911 failed")
        return self._broker.lock_batch_mq(group, client_id, queues)


@dataclass
class Cluster:
    """A broker with one topic, its consumers, and what was seen of them."""

    clock: Any
    broker: rocketmq.Broker
    stack: ExitStack
    consumers: list[rocketmq.DefaultMQPushConsumer] = field(default_factory=list)
    seen: Evidence = field(default_factory=Evidence)

    def join(self, name: str, listener: Any = None, tags: str = "*", api: Any = None, **options: Any) -> Any:
        """A consumer of the group at work."""
        consumer = rocketmq.DefaultMQPushConsumer(
            GROUP, broker=api or self.broker, instance_name=name, client_ip="10.0.0.1",
            **{"consume_from_where": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, **options},
        )  # fmt: skip
        consumer.subscribe(TOPIC, tags)
        consumer.register_message_listener(listener or (lambda messages, context: DONE))
        consumer.start()
        self.stack.callback(consumer.shutdown)
        self.consumers.append(consumer)
        return consumer

    def send(self, count: int, queue: int | None = None, body: bytes = b"") -> None:
        producer = rocketmq.Producer(self.broker)
        for _ in range(count):
            where = None if queue is None else MessageQueue(TOPIC, "broker-a", queue)
            producer.send(TOPIC, body or b"-", queue=where)

    def look(self, after: float = 0) -> Evidence:
        """All that was seen, the group and its clients as they are after so many seconds too."""
        if after:
            self.clock.advance(int(after * 1000))
        self.seen.add(live.of_rocketmq(self.broker, GROUP, TOPIC, self.consumers))
        for consumer in self.consumers:
            self.seen.add(live.of_consumer(consumer))
        return self.seen


@contextmanager
def cluster(queues: int = 1, clock: Clock | None = None, folder: str | None = None) -> Iterator[Cluster]:
    clock = clock or ManualClock()
    with rocketmq.Broker(folder, clock=clock) as broker, ExitStack() as stack:
        broker.create_topic(TOPIC, queues)
        yield Cluster(clock, broker, stack)


# Offsets


def away(*, suspended: bool) -> Evidence:
    """Messages come when the only consumer has left, or pulls no more."""
    with cluster() as here:
        consumer = here.join("c")
        here.send(5)
        here.clock.advance(20_000)
        if suspended:
            consumer.suspend()
        else:
            consumer.shutdown()
            here.consumers.clear()
        here.send(5)
        return here.look(60)


def strategies(second: Any) -> Evidence:
    """Two members of which one goes by another strategy: four queues dealt out in rows and in turn."""
    with cluster(4) as here:
        here.join("c0", allocate_message_queue_strategy=AllocateMessageQueueAveragely())
        here.join("c1", allocate_message_queue_strategy=second)
        here.send(4)
        return here.look(60)


def poison(queues: int, bad: int) -> Evidence:
    """In order a message that always fails stops its queue: so many of the queues have one."""

    def listen(messages: Sequence[Any], context: Any) -> ConsumeOrderlyStatus:
        return AGAIN if context.message_queue.queue_id < bad else ConsumeOrderlyStatus.SUCCESS

    with cluster(queues) as here:
        here.join("c", MessageListenerOrderly(listen))
        here.send(2 * queues)
        here.look(20)
        here.send(2 * queues)
        return here.look(60)


def paced(queues: int, members: int, backlog: int, sent: int) -> Evidence:
    """Each queue gives a message a second."""
    with cluster(queues) as here:
        here.send(backlog)
        for number in range(members):
            here.join(f"c{number}", pull_interval=1000, pull_batch_size=1)
        here.look(20)
        here.send(sent)
        return here.look(60)


def reset(offset: int) -> Evidence:
    """Somebody sets the offset of a group whose consumers are away."""
    with cluster() as here:
        consumer = here.join("c")
        here.send(5)
        here.look(20)
        consumer.shutdown()
        here.consumers.clear()
        here.broker.update_consumer_offset(GROUP, QUEUE, offset)
        return here.look(60)


def restarted(*, log_lost: bool) -> Evidence:
    """A broker comes back with its offsets, and with its messages or without."""
    with tempfile.TemporaryDirectory() as folder:
        with cluster(folder=folder) as here:
            here.join("c")
            here.send(5)
            here.clock.advance(20_000)
        if log_lost:
            shutil.rmtree(f"{folder}/broker-a/log")
        with cluster(folder=folder) as here:
            return here.look()


def deleted_below(offset: int) -> Evidence:
    """Retention deletes while the consumer, done with five messages, is away."""
    with cluster() as here:
        consumer = here.join("c")
        here.send(5)
        here.clock.advance(20_000)
        consumer.shutdown()
        here.consumers.clear()
        here.send(5)
        here.broker.delete_below(QUEUE, offset)
        return here.look()


def dealt(*shares: Sequence[int]) -> Evidence:
    """Each member takes the queues that its configuration names, and pulls none of their messages."""
    with cluster(4) as here:
        for number, share in enumerate(shares):
            queues = [MessageQueue(TOPIC, "broker-a", each) for each in share]
            here.join(f"c{number}", allocate_message_queue_strategy=AllocateMessageQueueByConfig(tuple(queues)))
        here.clock.advance(20_000)
        for consumer in here.consumers:
            consumer.suspend()
        here.send(8)
        return here.look(20)


# Clients


def at_work(*looks: int, rest: int = 0, before: bool = False) -> Evidence:
    """A queue at rest for so many seconds, seen before a message comes or not; then after so many with its listener."""
    with cluster() as here:

        def listen(messages: Sequence[Any], context: Any) -> ConsumeConcurrentlyStatus:
            for seconds in looks:
                here.look(seconds)
            return DONE

        here.join("c", listen)
        here.clock.advance(2_000 + rest * 1000)
        if before:
            here.look()
        here.send(1)
        return here.seen


def cut_off(seconds: int) -> Evidence:
    """A client in order cannot reach its broker, which it asks for its locks every 20 s."""
    with cluster() as here:
        process = Process(here.broker)
        here.join("c", MessageListenerOrderly(lambda messages, context: ConsumeOrderlyStatus.SUCCESS), api=process)
        here.clock.advance(21_000)
        process.answered = False
        return here.look(seconds)


def unanswered(seconds: int) -> Evidence:
    """An answer to a pull is lost: the client waits for it."""
    with cluster() as here:
        process = Process(here.broker)
        here.join("c", api=process)
        here.clock.advance(10_000)
        process.answered = False
        here.send(1)
        return here.look(seconds)


def cached(count: int, size: int = 1, **limits: int) -> Evidence:
    """A first message that fails again and again, in order, and what is pulled behind it."""
    with cluster() as here:
        here.send(count, body=bytes(size))
        here.join(
            "c",
            MessageListenerOrderly(lambda messages, context: AGAIN),
            suspend_current_queue_time_millis=30_000,
            **limits,
        )
        return here.look(20)


def logged(count: int, **limits: int) -> Evidence:
    """The lines that the client writes meanwhile."""
    lines: list[str] = []
    told = logging.getLogger("pyengine.rocketmq")
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(f"2026-11-20 10:00:00,000 WARN {record.getMessage()}")  # type: ignore[method-assign]
    told.addHandler(handler)
    try:
        cached(count, **limits)
    finally:
        told.removeHandler(handler)
    return client_log.read("\n".join(lines), "rocketmq_client.log", None)


def listening(milliseconds: int) -> Evidence:
    """One thread, five messages a second, and the time that each message takes."""
    with cluster() as here:

        def listen(messages: Sequence[Any], context: Any) -> ConsumeConcurrentlyStatus:
            here.clock.advance(milliseconds)
            return DONE

        here.join("c", listen, consume_thread_min=1)
        here.clock.advance(5_000)
        begun = here.clock.now()
        for second in range(1, 71):
            here.send(5)
            here.clock.advance(begun + second * 1_000 - here.clock.now())
        return here.look(5)


def answering(answer: ConsumeConcurrentlyStatus) -> Evidence:
    with cluster() as here:
        here.join("c", lambda messages, context: answer)
        here.send(5)
        return here.look(30)


def wanting(*tags: str) -> Evidence:
    with cluster(2) as here:
        for number, each in enumerate(tags):
            here.join(f"c{number}", tags=each)
        return here.look(20)


def named(*names: str) -> Evidence:
    """Processes with these instance names on one host."""
    with cluster(2) as here:
        for name in names:
            here.join(name, api=Process(here.broker))
            here.clock.advance(1_000)
        return here.look(20)


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "nothing happened in 20 s"
        time.sleep(0.005)


@contextmanager
def threaded(queues: int, listen: Any, **options: Any) -> Iterator[tuple[Cluster, HurriedClock]]:
    """A consumer with real threads that has its queues and pulls from them."""
    clock = HurriedClock()
    with cluster(queues, clock) as here:
        consumer = here.join("c", listen, consume_thread_min=2, **options)
        clock.hurry(1_500)
        until(lambda: sum(each.topic == TOPIC for each in consumer.consumer_running_info().mq_table) == queues)
        clock.hurry(1_000)
        yield here, clock


def pinned(*stands: int, **limits: int) -> Evidence:
    """Two sights, forty seconds apart, of twelve messages that two threads consume: the listener does not return from
    those at the offsets given."""
    gate = threading.Event()
    begun: list[int] = []

    def listen(messages: Sequence[Any], context: Any) -> ConsumeConcurrentlyStatus:
        begun.append(messages[0].queue_offset)
        if messages[0].queue_offset in stands:
            gate.wait(20)
        return DONE

    with threaded(1, listen, **limits) as (here, clock):
        here.stack.callback(gate.set)

        def settled(sent: int) -> bool:
            held = here.consumers[0].consumer_running_info().mq_table[QUEUE]["cachedMsgCount"]
            return len(begun) == sent and held == sum(each < sent for each in stands)

        for sent in (6, 12):
            here.send(6)
            until(lambda: settled(sent))  # noqa: B023
            here.look()
            clock.hurry(40_000)
        gate.set()
        return here.seen


def given_up(*, stands: bool) -> Evidence:
    """In order: a second client comes, and the first must give one of two queues up; its listener stands or not."""
    gate, begun, other = threading.Event(), threading.Event(), MessageQueue(TOPIC, "broker-a", 1)

    def listen(messages: Sequence[Any], context: Any) -> ConsumeOrderlyStatus:
        begun.set()
        if stands:
            gate.wait(20)
        return ConsumeOrderlyStatus.SUCCESS

    with threaded(2, MessageListenerOrderly(listen)) as (here, _):
        here.stack.callback(gate.set)
        here.send(1, queue=1)
        assert begun.wait(20)
        here.join("d", MessageListenerOrderly(listen))

        def tried() -> bool:
            table = here.consumers[0].consumer_running_info().mq_table
            return other not in table or table[other]["tryUnlockTimes"] > 0

        until(tried)
        here.look()
        gate.set()
        return here.seen


LOST = 125  # seconds without a pull; the next rebalance gives the queue up
# rule (where two modules have it: module.rule) -> a group in which it speaks, and one close by in which it does not
GROUPS: dict[str, tuple[Callable[[], Evidence], Callable[[], Evidence]]] = {
    "stopped": (lambda: away(suspended=False), lambda: away(suspended=True)),
    "unassigned_queue": (
        lambda: strategies(AllocateMessageQueueAveragelyByCircle()),
        lambda: strategies(AllocateMessageQueueAveragely()),
    ),
    "stalled": (lambda: poison(2, 2), lambda: poison(2, 0)),
    "one_queue_stuck": (lambda: poison(2, 1), lambda: poison(2, 2)),
    "offsets.slow": (lambda: paced(2, 2, 100, 200), lambda: paced(2, 2, 100, 100)),
    "too_few_consumers": (lambda: paced(2, 1, 100, 200), lambda: paced(2, 2, 100, 200)),
    "offsets.draining": (lambda: paced(2, 1, 400, 0), lambda: paced(2, 1, 200, 0)),
    "rewound": (lambda: reset(1), lambda: reset(5)),
    "ahead_of_broker": (lambda: restarted(log_lost=True), lambda: restarted(log_lost=False)),
    "offsets.retention_overtook": (lambda: deleted_below(7), lambda: deleted_below(5)),
    "uneven_allocation": (lambda: dealt((0, 1, 2), (3,)), lambda: dealt((0, 1), (2, 3))),
    "blocked_listener": (lambda: at_work(61), lambda: at_work(57)),
    "blocked_listener, in two sights": (
        lambda: at_work(1, 61),
        lambda: at_work(1, rest=300, before=True),
    ),
    "timeout_cleaning": (lambda: at_work(1, 60, rest=960), lambda: at_work(1, 60, rest=800)),
    "timeout_cleaning, in two sights": (
        lambda: at_work(1, 60, rest=960, before=True),
        lambda: at_work(1, rest=960, before=True),
    ),
    "lock_not_held": (lambda: cut_off(40), lambda: cut_off(20)),
    "unlock_failed": (lambda: given_up(stands=True), lambda: given_up(stands=False)),
    "pull_stopped": (lambda: unanswered(LOST), lambda: unanswered(LOST - 10)),
    "flow_control": (lambda: cached(12, pull_threshold_for_queue=10), lambda: cached(10, pull_threshold_for_queue=10)),
    "flow_control, size": (
        lambda: cached(2, 2**20, pull_threshold_size_for_queue=1),
        lambda: cached(1, 2**20, pull_threshold_size_for_queue=1),
    ),
    "flow_control, span": (
        lambda: pinned(0, 11, consume_concurrently_max_span=10),
        lambda: pinned(0, 11, consume_concurrently_max_span=11),
    ),
    "flow_control, of the log": (
        lambda: logged(12, pull_threshold_for_queue=10),
        lambda: logged(12, pull_threshold_for_queue=20),
    ),
    "slow_listener": (lambda: listening(180), lambda: listening(140)),
    "clients.failing_listener": (lambda: answering(LATER), lambda: answering(DONE)),
    "message_holds_offset": (lambda: pinned(0), lambda: pinned()),
    "clients.different_subscriptions": (lambda: wanting("TagA", "TagB"), lambda: wanting("TagA", "TagA")),
    "duplicate_client_id": (lambda: named("one", "one"), lambda: named("one", "two")),
    "clients.idle_clients": (lambda: named("one", "two", "three"), lambda: named("one", "two")),
}


def healthy(members: int, listener: Any = None, *, old: int = 0, rest: int = 0, **options: Any) -> Evidence:
    """Members that consume what comes, on a topic that held messages before, seen three times in three minutes."""
    with cluster(4) as here:
        here.send(old)
        for number in range(members):
            here.join(f"c{number}", listener, **options)
        for _ in range(3):
            here.clock.advance(rest * 1000)
            for _ in range(20):
                here.send(4)
                here.clock.advance(1_000)
            here.look(10)
        return here.seen


def broadcasting() -> Evidence:
    """Everybody gets everything, and keeps its offsets in a file of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return healthy(2, old=40, message_model=MessageModel.BROADCASTING, local_offset_store_dir=folder)


def restart() -> Evidence:
    """One of two members is replaced; the retry topic is there."""
    with cluster(4) as here:
        first = here.join("c0")
        here.join("c1")
        here.send(8)
        here.look(30)
        first.shutdown()
        here.consumers.remove(first)
        here.join("c2")
        here.send(8)
        here.look(60)
        return here.look(60)


IN_ORDER = MessageListenerOrderly(lambda messages, context: ConsumeOrderlyStatus.SUCCESS)
LAST = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
# Groups at work of which there is nothing to say.
HEALTHY_GROUPS: dict[str, Callable[[], Evidence]] = {
    "one member": lambda: healthy(1),
    "two members": lambda: healthy(2),
    "three members of four queues": lambda: healthy(3),
    "in order": lambda: healthy(2, IN_ORDER),
    "in order, after a rest": lambda: healthy(2, IN_ORDER, rest=120),
    "after a rest": lambda: healthy(2, rest=120),
    "a new group on an old topic": lambda: healthy(2, old=40, consume_from_where=LAST),
    "everybody gets everything": broadcasting,
    "in turn": lambda: healthy(2, allocate_message_queue_strategy=AllocateMessageQueueAveragelyByCircle()),
    "a member that is replaced": restart,
}
