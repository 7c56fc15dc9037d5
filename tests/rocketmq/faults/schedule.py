"""One schedule of faults, played from its seed: a cluster, its producer and a group's members on a MemoryNetwork."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from zlib import crc32

from pyengine import rocketmq
from pyengine.clock import ManualClock
from pyengine.errors import MQBrokerError, MQClientError, RemotingError
from pyengine.rocketmq.broker.message_store import SCHEDULE_TOPIC
from pyengine.rocketmq.message import PROPERTY_REAL_TOPIC, retry_topic
from pyengine.rocketmq.server.broker_requests import BrokerRequests
from pyengine.rocketmq.server.name_server import NameServer
from pyengine.rocketmq.server.served import Served
from pyengine.rocketmq.tables.allocation import MessageQueue
from tests.rocketmq.faults.memory_network import MemoryNetwork

NAMES = ("127.0.0.1:9876", "127.0.0.1:9877")
GROUP, TOPIC = "billing", "orders"
QUIET = 400_000  # ms within which everything is done once nothing is cut any more
Place = tuple[MessageQueue, int]


@dataclass
class Ledger:
    """What was sent and what was consumed. confirmed: ids of messages that a broker has confirmed, tried: all. done:
    how often each place of a queue was consumed. failed: the places that a listener gave back.
    """

    confirmed: set[bytes] = field(default_factory=set)
    tried: set[bytes] = field(default_factory=set)
    consumed: set[bytes] = field(default_factory=set)
    done: Counter[Place] = field(default_factory=Counter)
    failed: set[Place] = field(default_factory=set)


class Schedule:
    """One run. directory: where the brokers keep their files; None keeps them in memory, and they never restart."""

    def __init__(self, seed: int, directory: Path | None) -> None:
        self.chance = Random(seed)
        random.seed(seed)  # the clients draw their first queue and name server from it
        self.clock = ManualClock()
        self.network = MemoryNetwork(self.clock, self.chance)
        self.network.disturbed = self._disturbed
        self.ledger = Ledger()
        self.orderly = self.chance.random() < 0.25
        self.failing = self.chance.choice((0.0, 0.0, 0.2))  # part of the messages that a listener gives back at first
        self.members: list[rocketmq.DefaultMQPushConsumer] = []
        self.most_members = self.chance.choice((1, 1, 2, 3))
        self.names = ("broker-a",) if self.chance.random() < 0.6 else ("broker-a", "broker-b")
        self.addresses = [f"127.0.0.1:{10_911 + 10 * number}" for number in range(len(self.names))]
        self.allowed = 0  # repeats: what was pulled and not committed at each disturbance
        self.sent = 0
        self._directory = directory
        self._running: rocketmq.Broker | None = None
        self._events = Counter[str]()
        self._clusters: list[rocketmq.Cluster] = []

    # The cluster

    @property
    def broker(self) -> rocketmq.Broker:
        assert self._running is not None
        return self._running

    def start_broker(self) -> None:
        self._running = rocketmq.Broker(self._directory, names=self.names, clock=self.clock)
        ports = {name: int(at.rpartition(":")[2]) for name, at in zip(self.names, self.addresses, strict=True)}
        self._served = Served(self.broker, ports, (), 4)
        for name, address in zip(self.names, self.addresses, strict=True):
            self.network.listen(address, BrokerRequests(self._served, self.broker.nodes[name]))
        for address in NAMES:
            self.network.listen(address, NameServer(self._served))

    def restart_broker(self) -> None:
        self._disturbed()
        for address in (*self.addresses, *NAMES):
            self.network.stop(address)
        self.broker.close()
        self.clock.advance(self.chance.choice((0, 10, 3000, 20_000)))
        self.start_broker()

    def restart_name_server(self) -> None:
        address = self.chance.choice(NAMES)
        self.network.stop(address)
        self.clock.advance(self.chance.choice((0, 10, 5000)))
        self.network.listen(address, NameServer(self._served))

    def client(self) -> rocketmq.Cluster:
        made = rocketmq.Cluster(";".join(NAMES), clock=self.clock, connect=self.network.connect)
        self._clusters.append(made)
        return made

    # The group

    def join(self) -> None:
        number = self._events["joined"] = self._events["joined"] + 1
        consumer = rocketmq.DefaultMQPushConsumer(
            GROUP, broker=self.client(), instance_name=f"member-{number}",
            consume_from_where=rocketmq.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, pull_batch_size=4,
            consume_message_batch_max_size=self.chance.choice((1, 3)), consume_thread_min=2, consume_thread_max=4,
            suspend_current_queue_time_millis=200,
        )  # fmt: skip
        consumer.subscribe(TOPIC, "*")
        consumer.register_message_listener(
            rocketmq.MessageListenerOrderly(self.listen_orderly) if self.orderly else self.listen
        )
        self._disturbed()
        try:
            consumer.start()
        except rocketmq.RemotingError:  # no name server answers: start another
            self.clock.advance(1000)
            self.join()
        else:
            self.members.append(consumer)

    def leave(self) -> None:
        self._disturbed()
        self.members.pop(self.chance.randrange(len(self.members))).shutdown()

    def take(self, messages: list[rocketmq.MessageExt]) -> bool:
        """Consume a batch, or fail it."""
        for message in messages:
            identity = bytes(message.body or b"")
            if crc32(identity) % 100 < 100 * self.failing and not message.reconsume_times:
                self.ledger.failed |= {(place_of(each)) for each in messages}
                return False
        for message in messages:
            self.ledger.done[place_of(message)] += 1
            self.ledger.consumed.add(bytes(message.body or b""))
        return True

    def listen(
        self, messages: list[rocketmq.MessageExt], context: rocketmq.ConsumeConcurrentlyContext
    ) -> rocketmq.ConsumeConcurrentlyStatus:
        context.delay_level_when_next_consume = 1
        status = rocketmq.ConsumeConcurrentlyStatus
        return status.CONSUME_SUCCESS if self.take(messages) else status.RECONSUME_LATER

    def listen_orderly(self, messages: list[rocketmq.MessageExt], context: object) -> rocketmq.ConsumeOrderlyStatus:
        status = rocketmq.ConsumeOrderlyStatus
        return status.SUCCESS if self.take(messages) else status.SUSPEND_CURRENT_QUEUE_A_MOMENT

    # The producer

    def send(self, producer: rocketmq.Producer) -> None:
        ids = [self._id() for _ in range(self.chance.choice((1, 1, 1, 3)))]
        messages = [rocketmq.Message(TOPIC, each) for each in ids]
        self.ledger.tried |= set(ids)
        with contextlib.suppress(RemotingError, MQBrokerError, MQClientError):
            if len(ids) > 1:
                producer.send_batch(messages)
                self.ledger.confirmed |= set(ids)
                return
            way = self.chance.randrange(4)
            if way == 0:
                producer.send_one_way(messages[0])
            elif way == 1:
                future = producer.send_async(messages[0])
                future.add_done_callback(lambda found: None if found.exception() else self.ledger.confirmed.add(ids[0]))
            else:
                producer.send(messages[0])
                self.ledger.confirmed.add(ids[0])

    def _id(self) -> bytes:
        self.sent += 1
        return f"m{self.sent} ".encode() * self.chance.choice((1, 1, 40, 1500))

    # What must be true

    def _committed(self) -> Iterator[tuple[MessageQueue, int]]:
        yield from self.broker.consumer_offsets(GROUP, TOPIC).items()

    def _disturbed(self) -> None:
        """Count what may be repeated because of a disturbance: what was pulled and is not committed."""
        if self._running is None:
            return
        for topic in (TOPIC, retry_topic(GROUP)):
            committed = self.broker.consumer_offsets(GROUP, topic)
            for queue, pulled in self.broker.pull_offsets(GROUP, topic).items():
                self.allowed += max(0, pulled - committed.get(queue, 0))

    def _given_back(self) -> set[bytes]:
        found = set()
        for name in self.names:
            store = self.broker.nodes[name].store
            for (topic, queue_id), queue in store.consume_queues.items():
                if topic in (SCHEDULE_TOPIC, retry_topic(GROUP)):
                    for offset in range(queue.min_offset, queue.max_offset):
                        message = self.broker.nodes[name].message(topic, queue_id, offset)
                        assert message is not None
                        found.add(bytes(message.body or b""))
        return found

    def check(self) -> None:
        """Nothing is committed past an unfinished message."""
        for queue, offset in self._committed():
            for place in range(offset):
                if self.ledger.done[queue, place]:
                    continue
                message = self.broker.message(queue, place)
                assert message is not None
                identity = bytes(message.body or b"")
                assert (queue, place) in self.ledger.failed, f"{queue}: {offset} committed, {place} not finished"
                assert identity in self._given_back(), f"{queue} {place} was given back and is nowhere"

    def finished(self) -> bool:
        """Whether every confirmed message is consumed, and everything committed."""
        if not self.ledger.confirmed <= self.ledger.consumed:
            return False
        committed = dict(self._committed())
        queues = self.broker.topic_subscribe_info(TOPIC) or []
        return all(committed.get(queue, 0) == self.broker.max_offset(queue) for queue in queues)

    # The run

    def play(self) -> Counter[str]:
        """Play it. Raises AssertionError where something that must be true is not."""
        self.start_broker()
        self.broker.create_topic(TOPIC, self.chance.choice((1, 2, 4)))
        producer = rocketmq.Producer(self.client())
        self.join()
        steps: list[Callable[[], object]] = [lambda: self.send(producer)] * 8
        steps += [self._wait] * 4 + [self._cut, self.restart_name_server]
        if self._directory is not None:
            steps.append(self.restart_broker)
        for _ in range(self.chance.randrange(10, 50)):
            self.chance.choice(steps)()
            if self.chance.random() < 0.05 and len(self.members) < self.most_members:
                self.join()
            elif self.chance.random() < 0.03 and len(self.members) > 1:
                self.leave()
            self.check()
        self.network.calm = True
        end = self.clock.now() + QUIET
        while not self.finished():
            assert self.clock.now() < end, f"not consumed: {sorted(self.ledger.confirmed - self.ledger.consumed)[:3]}"
            self.clock.advance(1000)
            self.check()
        assert self.ledger.consumed <= self.ledger.tried
        repeats = sum(times - 1 for times in self.ledger.done.values() if times > 1)
        if len(self.members) == self._events["joined"] == 1:
            assert repeats <= self.allowed, f"{repeats} messages came again, {self.allowed} may have"
        self._disturbed()
        for member in self.members:
            member.shutdown()
        for cluster in self._clusters:
            cluster.close()
        self.check()
        self.broker.close()
        self._events.update(
            sent=self.sent, consumed=sum(self.ledger.done.values()), repeats=repeats, cuts=self.network.cuts
        )
        return self._events

    def _wait(self) -> None:
        self.clock.advance(self.chance.choice((1, 10, 100, 1000, 1000, 5000, 30_000)))

    def _cut(self) -> None:
        links = self.network.links
        if links:
            for link in links if self.chance.random() < 0.3 else [self.chance.choice(links)]:
                link.cut()


def place_of(message: rocketmq.MessageExt) -> Place:
    """Where a message lies. The topic of a retry is restored by the time its listener gets it.

    A retry has been delayed, so the broker has noted its topic. RETRY_TOPIC says less: a message that could not be
    given back keeps that too, at its first place.
    """
    topic = message.properties.get(PROPERTY_REAL_TOPIC, TOPIC)
    return MessageQueue(topic, message.broker_name, message.queue_id), message.queue_offset
