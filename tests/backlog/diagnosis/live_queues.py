"""Live ActiveMQ brokers under a clock that is moved by hand: for each rule one that it speaks of and one close by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import pyengine
from pyengine import activemq
from pyengine.activemq import AcknowledgeMode
from pyengine.backlog.diagnosis.evidence import Evidence, live
from pyengine.clock import ManualClock
from pyengine.topology.policy import ConstantPendingMessageLimitStrategy, Policy

AUTO, CLIENT, TRANSACTED = (
    AcknowledgeMode.AUTO_ACKNOWLEDGE, AcknowledgeMode.CLIENT_ACKNOWLEDGE, AcknowledgeMode.SESSION_TRANSACTED,
)  # fmt: skip


@dataclass
class Site:
    """A broker with what was seen of it. connect() gives a session of a client of its own."""

    clock: ManualClock
    broker: activemq.Broker
    stack: ExitStack
    seen: Evidence = field(default_factory=Evidence)

    def connect(self, client_id: str, mode: AcknowledgeMode = AUTO) -> activemq.Session:
        factory = activemq.ConnectionFactory("vm://localhost", broker=self.broker)
        return self.stack.enter_context(factory.create_connection(client_id)).create_session(mode)

    def send(self, destination: str, count: int, ttl: int = 0, **properties: object) -> None:
        with activemq.ConnectionFactory("vm://localhost", broker=self.broker).create_connection() as connection:
            producer = connection.create_session().create_producer()
            producer.time_to_live_ms = ttl
            for _ in range(count):
                producer.send(pyengine.Message(properties), destination=destination)

    def send_group(self, destination: str, count: int, group: str) -> None:
        with activemq.ConnectionFactory("vm://localhost", broker=self.broker).create_connection() as connection:
            producer = connection.create_session().create_producer(destination)
            for _ in range(count):
                producer.send(pyengine.Message(group_id=group))

    def look(self, after: int = 0) -> Evidence:
        """All that was seen, the broker as it is after so many seconds too."""
        self.clock.advance(after * 1000)
        self.seen.add(live.of_activemq(self.broker))
        return self.seen


@contextmanager
def site(*policies: Policy) -> Iterator[Site]:
    clock = ManualClock()
    with activemq.Broker(clock=clock, policies=policies) as broker, ExitStack() as stack:
        yield Site(clock, broker, stack)


def take(consumer: activemq.MessageConsumer, count: int) -> None:
    for _ in range(count):
        assert consumer.receive_no_wait() is not None


def waiting(consumers: int) -> Evidence:
    with site() as here:
        here.send("orders", 3)
        for number in range(consumers):
            here.connect(f"c{number}").create_consumer("orders")
        return here.look()


def first_dispatch(needed: int) -> Evidence:
    policy = Policy("orders", consumers_before_dispatch_starts=needed, time_before_dispatch_starts=600_000)
    with site(policy) as here:
        for number in range(2):
            here.connect(f"c{number}").create_consumer("orders")
        here.send("orders", 3)
        return here.look(29)  # the look for expired messages, at 30, hands out


def rolled_back(*times: int) -> Evidence:
    """Messages one after the other, delivered so often: a message is dead after seven deliveries."""
    with site() as here:
        session = here.connect("c", TRANSACTED)
        consumer = session.create_consumer("orders")
        for turn in times:
            here.send("orders", 1)
            for _ in range(turn):
                assert consumer.receive(60) is not None
                session.rollback()
            here.look(60)
        return here.seen


def paused(*, resumed: bool) -> Evidence:
    with site() as here:
        here.connect("c").create_consumer("orders")
        here.broker.pause("orders")
        here.send("orders", 3)
        if resumed:
            here.broker.resume("orders")
        return here.look()


def exclusive(other: str) -> Evidence:
    """An exclusive consumer of EU, one that stands by, and messages of both regions."""
    with site() as here:
        owner = here.connect("eu").create_consumer("orders?consumer.exclusive=true", "region = 'EU'")
        for region in ("EU", "US"):
            here.send("orders", 3, region=region)
        take(owner, 3)
        here.connect("other").create_consumer("orders", other)
        return here.look()


def refusing(options: str, others: str | None) -> Evidence:
    """A consumer of EU, perhaps another one, and messages of the US."""
    with site() as here:
        here.connect("eu").create_consumer(f"orders{options}", "region = 'EU'")
        if others is not None:
            here.connect("other").create_consumer(f"orders{others}")
        here.send("orders", 3, region="US")
        here.look()
        return here.look(60)


def selected(selector: str) -> Evidence:
    with site() as here:
        here.connect("eu").create_consumer("orders", "region = 'EU'")
        here.connect("asia").create_consumer("orders", selector)
        for region in ("EU", "ASIA", "US"):
            here.send("orders", 3, region=region)
        return here.look()


def behind(others: int, page: int | None = 20) -> Evidence:
    """Messages that nobody takes, in front of one that the consumer wants."""
    with site(Policy("orders", max_page_size=page)) as here:
        here.connect("eu").create_consumer("orders", "region = 'EU'")
        here.send("orders", others, region="US")
        here.send("orders", 1, region="EU")
        here.look()
        return here.look(60)


def owned(acknowledged: int) -> Evidence:
    """A consumer that has a message group, and full hands."""
    with site(Policy("orders", queue_prefetch=2)) as here:
        owner = here.connect("owner").create_consumer("orders")
        here.send_group("orders", 10, "customer 7")
        here.look()
        take(owner, acknowledged)
        return here.look(60)


def holding(acknowledged: int) -> Evidence:
    with site() as here:
        consumer = here.connect("c").create_consumer("orders")
        here.send("orders", 10)
        here.look()
        take(consumer, acknowledged)
        return here.look(60)


def joined(prefetch: int) -> Evidence:
    """A second consumer comes when the first has all it may have."""
    with site(Policy("orders", queue_prefetch=prefetch)) as here:
        here.connect("first").create_consumer("orders")
        here.send("orders", 100)
        here.connect("second").create_consumer("orders")
        return here.look()


def paced(backlog: int, sent: int, consumed: int) -> Evidence:
    """What was sent and consumed in a minute."""
    with site() as here:
        here.send("orders", backlog)
        consumer = here.connect("c").create_consumer("orders")
        here.look()
        here.send("orders", sent)
        take(consumer, consumed)
        return here.look(60)


def with_life(seconds: int) -> Evidence:
    with site() as here:
        here.send("orders", 3, ttl=1000 * seconds)
        here.look()
        return here.look(60)


def topic(read: int, *policies: Policy) -> Evidence:
    """Twenty prices to one that keeps up and one that reads so many of them as they come."""
    with site(*policies) as here:
        fast, other = (
            here.connect(name).create_consumer("topic://prices?consumer.prefetchSize=2") for name in ("fast", "other")
        )
        here.look()
        for number in range(20):
            here.send("topic://prices", 1)
            take(fast, 1)
            take(other, int(number < read))
        return here.look(60)


def durable(*, connected: bool) -> Evidence:
    with site() as here:
        session = here.connect("desk")
        subscriber = session.create_durable_subscriber(session.create_topic("prices"), "all prices")
        if not connected:
            subscriber.close()
        here.send("topic://prices", 3)
        return here.look()


LIMITED = Policy("topic://prices", pending_message_limit_strategy=ConstantPendingMessageLimitStrategy(5))
# rule (where two modules have it: module.rule) -> a broker in which it speaks, and one close by in which it does not
QUEUES: dict[str, tuple[Callable[[], Evidence], Callable[[], Evidence]]] = {
    "no_consumer": (lambda: waiting(0), lambda: waiting(1)),
    "start_delayed": (lambda: first_dispatch(3), lambda: first_dispatch(2)),
    "dead_letters": (lambda: rolled_back(7, 7), lambda: rolled_back(7, 6)),
    "dead_letters, the first": (lambda: rolled_back(0, 7), lambda: rolled_back(0, 6)),
    "paused": (lambda: paused(resumed=False), lambda: paused(resumed=True)),
    "exclusive_disjoint": (lambda: exclusive("region = 'US'"), lambda: exclusive("region = 'EU'")),
    "exclusive_disjoint, whose owner was never sent anything": (
        lambda: refusing("?consumer.exclusive=true", ""),
        lambda: refusing("?consumer.exclusive=true", "?consumer.exclusive=true"),
    ),
    "selector_matches_nothing, of an exclusive consumer": (
        lambda: refusing("?consumer.exclusive=true", None),
        lambda: refusing("?consumer.exclusive=true", ""),
    ),
    "selector_matches_nothing": (lambda: selected("Region = 'ASIA'"), lambda: selected("region = 'ASIA'")),
    "page_starved": (lambda: behind(20), lambda: behind(19)),
    "group_owner_stopped": (lambda: owned(0), lambda: owned(1)),
    "consumer_stopped": (lambda: holding(0), lambda: holding(1)),
    "prefetch_hoarding": (lambda: joined(100), lambda: joined(10)),
    "destinations.slow": (lambda: paced(50, 100, 60), lambda: paced(50, 100, 100)),
    "destinations.draining": (lambda: paced(500, 0, 60), lambda: paced(100, 0, 60)),
    "expiring": (lambda: with_life(30), lambda: with_life(120)),
    "slow_subscriber": (lambda: topic(0), lambda: topic(20)),
    "slow_subscriber, prices that are dropped": (lambda: topic(0, LIMITED), lambda: topic(18, LIMITED)),
    "durable_offline": (lambda: durable(connected=False), lambda: durable(connected=True)),
}


def at_work(destination: str, *policies: Policy, group: str = "", **options: object) -> Evidence:
    """Two consumers that take everything as it comes, seen three times in two minutes."""
    with site(*policies) as here:
        chosen = "&".join(f"consumer.{name}={value}" for name, value in options.items())
        consumers = [here.connect(f"c{n}").create_consumer(f"{destination}?{chosen}") for n in range(2)]
        for _ in range(3):
            for _ in range(30):
                if group:
                    here.send_group(destination, 1, group)
                else:
                    here.send(destination, 2)
                for consumer in consumers:
                    while consumer.receive_no_wait() is not None:
                        pass
            here.look(60)
        return here.seen


def with_old_letters() -> Evidence:
    """A message that failed long ago, and work that goes on."""
    with site() as here:
        session = here.connect("c", TRANSACTED)
        consumer = session.create_consumer("orders")
        here.send("orders", 1)
        for _ in range(7):
            assert consumer.receive(60) is not None
            session.rollback()
        for _ in range(2):
            here.send("orders", 5)
            take(consumer, 5)
            session.commit()
            here.look(60)
        return here.seen


def at_rest() -> Evidence:
    with site() as here:
        here.connect("c").create_consumer("orders", "region = 'EU'")
        here.connect("d").create_consumer("topic://prices", "region = 'EU'")
        here.look(3_600)
        return here.look(3_600)


# Systems at work of which there is nothing to say.
HEALTHY_QUEUES: dict[str, Callable[[], Evidence]] = {
    "a queue": lambda: at_work("orders"),
    "a queue with a prefetch of 1": lambda: at_work("orders", prefetchSize=1),
    "a queue of consumers that pull": lambda: at_work("orders", prefetchSize=0),
    "an exclusive consumer": lambda: at_work("orders", exclusive="true"),
    "exclusive by the policy": lambda: at_work("orders", Policy("orders", all_consumers_exclusive_by_default=True)),
    "a message group": lambda: at_work("orders", group="customer 7"),
    "a topic": lambda: at_work("topic://prices"),
    "a topic with a limit": lambda: at_work("topic://prices", LIMITED),
    "a start that waits for two": lambda: at_work("orders", Policy("orders", consumers_before_dispatch_starts=2)),
    "dead letters of long ago": with_old_letters,
    "nothing to do": at_rest,
}
