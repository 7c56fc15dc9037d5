"""One schedule of faults, played from its seed: a producer and consumers with ``failover:`` on a MemoryNetwork, and
brokers that lose connections, are killed with their store, and stand in for each other."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from pyengine import Message
from pyengine.activemq import AcknowledgeMode, Broker, Connection, ConnectionFactory, ConnectionOptions, MessageConsumer
from pyengine.activemq.options import BrokerURL, PrefetchPolicy, UnknownOptions
from pyengine.activemq.transport.failover_channel import FailoverChannel
from pyengine.activemq.transport.failover_options import FailoverOptions
from pyengine.activemq.transport.openwire_channel import OpenWireChannel
from pyengine.activemq.transport.openwire_transport import OpenWireTransport
from pyengine.activemq.transport.tcp_options import TcpOptions
from pyengine.clock import ManualClock
from pyengine.errors import JMSError, TransactionRolledBackError
from pyengine.topology import Policy
from tests.activemq.openwire.faults.memory_network import MemoryNetwork

ADDRESSES = ("127.0.0.1:61616", "127.0.0.1:61617")
QUEUE, DEAD = "orders", "ActiveMQ.DLQ"
MODES = (
    AcknowledgeMode.AUTO_ACKNOWLEDGE,
    AcknowledgeMode.CLIENT_ACKNOWLEDGE,
    AcknowledgeMode.SESSION_TRANSACTED,
    AcknowledgeMode.INDIVIDUAL_ACKNOWLEDGE,
    AcknowledgeMode.DUPS_OK_ACKNOWLEDGE,
)


def connect(network: MemoryNetwork, addresses: tuple[str, ...], chance: Random, prefetch: int = 10) -> Connection:
    """A connection with ``failover:`` over a network in memory."""
    clock, tcp = network.clock, TcpOptions()

    def channel(parts: BrokerURL) -> OpenWireChannel:
        return OpenWireChannel(network.link(f"{parts.name}:{parts.port}"), tcp, clock)

    urls = tuple(f"tcp://{each}" for each in addresses)
    options = FailoverOptions(randomize=False, max_reconnect_delay=2000)
    transport = OpenWireTransport(
        FailoverChannel(urls, options, channel, clock, chance), tcp, clock, fault_tolerant=True
    )
    connection = Connection(
        transport,
        clock,
        ConnectionOptions(prefetch_policy=PrefetchPolicy(queue_prefetch=prefetch)),
        redelivery_policies={},
        unknown_options=UnknownOptions.REFUSE,
        closed=transport.close,
        place="memory",
    )
    connection.start()
    return connection


class Brokers:
    """One broker, or two. kind: "alone": one that is killed and comes again; "shared": another one takes its store
    over; "apart": another one has a store of its own, or both have none."""

    def __init__(self, kind: str, network: MemoryNetwork, directory: Path | None) -> None:
        self.kind, self.network = kind, network
        self.kills = 0
        self._directory = directory
        self.running: dict[str, Broker] = {}
        self._folders: dict[str, Path | None] = {}
        for number, address in enumerate(ADDRESSES if kind == "apart" else ADDRESSES[:1]):
            self.start(address, None if directory is None else directory / f"store{number}")

    @property
    def addresses(self) -> tuple[str, ...]:
        return ADDRESSES[:1] if self.kind == "alone" else ADDRESSES

    def start(self, address: str, folder: Path | None) -> None:
        self._folders[address] = folder
        policies = [Policy(">", persist_jms_redelivered=True)]
        broker = Broker(folder, name=f"b{address[-1]}", clock=self.network.clock, policies=policies)
        self.running[address] = broker
        self.network.listen(address, broker)

    def kill(self, address: str, after: int) -> None:
        """The process ends at once; what its store had is there in ``after`` ms, at the other address if it is shared.
        Without a store its connections end."""
        broker, folder = self.running[address], self._folders[address]
        if folder is None:
            for link in self.network.links:
                if link.service is broker:
                    link.cut()
            return
        self.kills += 1
        copy = folder.with_name(f"{folder.name}-{self.kills}")
        shutil.copytree(folder, copy)
        self.network.stop(address)
        self.running.pop(address).close()
        there = ADDRESSES[1 - ADDRESSES.index(address)] if self.kind == "shared" else address
        clock = self.network.clock
        clock.call_at(clock.now() + after, lambda: self.start(there, copy))

    def left(self, *queues: str) -> Counter[str]:
        """The bodies of what lies in these queues of all brokers: by default the program's and the dead letters."""
        found = Counter[str]()
        for broker in self.running.values():
            with ConnectionFactory(broker=broker).create_connection() as connection:
                session = connection.create_session()
                for name in queues or (QUEUE, DEAD):
                    consumer = session.create_consumer(name)
                    while (message := consumer.receive_no_wait()) is not None:
                        found[str(message.body)] += 1
        return found

    def close(self) -> None:
        for broker in self.running.values():
            broker.close()


class Schedule:
    """One run. directory: where brokers keep their stores."""

    def __init__(self, seed: int, directory: Path) -> None:
        self.chance = Random(seed)
        self.clock = ManualClock()
        self.network = MemoryNetwork(self.clock, self.chance)
        kind = self.chance.choice(("alone", "shared", "apart"))
        stored = self.chance.random() < 0.7
        self.brokers = Brokers(kind, self.network, directory if stored or kind != "apart" else None)
        self.prefetch = self.chance.choice((0, 1, 4, 10, 10, 100))
        self.mode = self.chance.choice(MODES)
        self.listening = self.prefetch > 0 and self.chance.random() < 0.4
        self.confirmed: set[str] = set()
        self.tried: set[str] = set()
        self.delivered = Counter[str]()
        self.taken: dict[str, int] = {}  # body -> the moment when it was first taken
        self.unmarked: list[str] = []
        self.sent_twice: set[str] = set()  # two brokers may have it: the first one's answer was lost
        self._sending: list[str] = []
        self.events = Counter[str]()
        self._consumers: list[tuple[Connection, MessageConsumer]] = []

    # The program

    def send(self) -> None:
        body = f"m{len(self.tried)}"
        self.tried.add(body)
        self._sending = [body]
        self.producer.send(Message(body=body))
        self.confirmed.add(body)

    def send_in_transaction(self) -> None:
        bodies = [f"m{len(self.tried) + number}" for number in range(self.chance.randrange(1, 4))]
        self.tried |= set(bodies)
        self._sending = bodies
        try:
            for body in bodies:
                self.transacted.send(Message(body=body))
            self.transaction.commit()
        except TransactionRolledBackError:
            self.events["in doubt"] += 1
        else:
            self.confirmed |= set(bodies)

    def _interrupted(self) -> None:
        if self.brokers.kind == "apart":
            self.sent_twice |= set(self._sending)

    def take(self, consumer: MessageConsumer, message: Message) -> None:
        """A message that was dispatched after another consumer had taken it must be marked. A client that does not know
        yet that its connection broke may have it from before."""
        body = str(message.body)
        dispatched = self.network.dispatched[consumer.consumer_id, str(message.message_id)]
        again = self.taken.setdefault(body, self.network.moment) < dispatched
        if again and not message.redelivered and body not in self.sent_twice:
            self.unmarked.append(body)
        self.delivered[body] += 1

    def join(self) -> None:
        connection = connect(self.network, self.brokers.addresses, self.chance, self.prefetch)
        session = connection.create_session(self.mode)
        consumer = session.create_consumer(QUEUE)
        if self.listening:
            consumer.message_listener = partial(self.take, consumer)
        self._consumers.append((connection, consumer))

    def consume(self) -> None:
        connection, consumer = self.chance.choice(self._consumers)
        session = connection.sessions[0]
        if not self.listening:
            for _ in range(self.chance.randrange(1, 5)):
                message = consumer.receive(0.2)
                if message is None:
                    break
                self.take(consumer, message)
                if self.mode is AcknowledgeMode.INDIVIDUAL_ACKNOWLEDGE:
                    message.acknowledge()
        if self.mode is AcknowledgeMode.CLIENT_ACKNOWLEDGE:
            session.acknowledge()
        elif self.mode is AcknowledgeMode.SESSION_TRANSACTED:
            try:
                session.rollback() if self.chance.random() < 0.2 else session.commit()
            except JMSError:  # a broker that was given an acknowledgement of another one's message refuses the commit
                self.events["rolled back"] += 1

    def leave(self) -> None:
        if len(self._consumers) > 1:
            self._consumers.pop(self.chance.randrange(len(self._consumers)))[0].close()

    def cut(self) -> None:
        links = self.network.links
        if links:
            self.chance.choice(links).cut()

    def kill(self) -> None:
        self.brokers.kill(self.chance.choice(list(self.brokers.running)), self.chance.choice((0, 5, 300, 5000)))

    def later(self, action: Callable[[], None]) -> None:
        """It happens while something else is under way."""

        def act() -> None:
            if self.brokers.running and not self.network.calm:
                action()

        self.clock.call_at(self.clock.now() + self.chance.randrange(30), act)

    def wait(self) -> None:
        self.clock.advance(self.chance.choice((1, 10, 100, 1000, 5000, 40_000)))

    def play(self) -> Counter[str]:
        """Play it. Raises AssertionError where something that must be true is not."""
        sending = connect(self.network, self.brokers.addresses, self.chance)
        sending.add_transport_listener(interrupted=self._interrupted)
        self.producer = sending.create_session().create_producer(QUEUE)
        self.transaction = sending.create_session(AcknowledgeMode.SESSION_TRANSACTED)
        self.transacted = self.transaction.create_producer(QUEUE)
        self.join()
        steps: list[Callable[[], object]] = [self.send] * 6 + [self.send_in_transaction] * 2 + [self.consume] * 6
        steps += [self.wait] * 2 + [lambda: self.later(self.cut), lambda: self.later(self.kill), self.join, self.leave]
        for _ in range(self.chance.randrange(10, 60)):
            self.chance.choice(steps)()
        self.network.calm = True
        self.clock.advance(200_000)
        for _ in range(3):
            self.consume()
        for connection, _ in self._consumers:
            connection.close()
        sending.close()
        self.clock.advance(200_000)
        self.check()
        self.brokers.close()
        self.events.update(sent=len(self.tried), kills=self.brokers.kills, cuts=self.network.cuts)
        self.events.update(delivered=sum(self.delivered.values()))
        return self.events

    def check(self) -> None:
        left = self.brokers.left()
        lost = {body for body in self.confirmed if not self.delivered[body] and not left[body]}
        assert not lost, f"confirmed, and nowhere: {sorted(lost)}"
        assert {*self.delivered} | {*left} <= self.tried
        assert not self.unmarked, f"came again without a mark: {self.unmarked}"
