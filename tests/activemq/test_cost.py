"""What a step costs where many others are that it does not concern: the same as with few, counted in bytecodes."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

from pyengine import Message, activemq
from pyengine.activemq import Broker, Connection, ConnectionFactory
from pyengine.clock import ManualClock
from tests.bytecodes import bytecodes

FEW, MANY = 20, 120


class World:
    """A broker with one connection and its session, which take the step."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.broker = Broker(clock=self.clock)
        self.factory = ConnectionFactory("vm://localhost", broker=self.broker)
        self.connection = self.connect("asking")
        self.session = self.connection.create_session()
        self.kept: list[object] = []

    def connect(self, client_id: str) -> Connection:
        connection = self.factory.create_connection(client_id)
        connection.start()
        return connection


def connections(world: World, number: int) -> None:
    connection = world.connect(f"client {number}")
    world.kept.append(connection.create_session().create_consumer(f"other.{number}"))


def consumers(world: World, number: int) -> None:
    world.kept.append(world.session.create_consumer("shared", f"a = {number}"))


def producers(world: World, number: int) -> None:
    world.kept.append(world.session.create_producer(f"other.{number}"))


def subscribers(world: World, number: int) -> None:
    world.kept.append(world.session.create_consumer(f"topic://other.{number}"))


def away(world: World, number: int) -> None:
    with world.connect(f"away {number}") as connection:
        session = connection.create_session()
        session.create_durable_subscriber(session.create_topic(f"other.{number}"), "durable")


def temporary(world: World, number: int) -> None:
    world.kept.append(world.session.create_temporary_queue())


def request(world: World) -> None:
    session = world.session
    answers = session.create_temporary_queue()
    with session.create_consumer(answers) as consumer, session.create_producer(answers) as producer:
        producer.send(Message({"a": 1}))
        assert consumer.receive_no_wait() is not None
    session.delete_temporary(answers)


def connect(world: World) -> None:
    with world.connect("another") as connection:
        session = connection.create_session(activemq.SESSION_TRANSACTED)
        session.create_temporary_topic()
        session.create_consumer("work")
        session.create_producer("work").send(Message({"a": 1}))
        session.rollback()


def publish(world: World) -> None:
    with world.session.create_consumer("topic://news") as consumer, world.session.create_producer("topic://news") as to:
        to.send(Message({"a": 1}))
        assert consumer.receive_no_wait() is not None


def subscribe(world: World) -> None:
    world.session.create_durable_subscriber(world.session.create_topic("news"), "mine").close()
    world.session.unsubscribe("mine")


def cost(step: Callable[[World], None], world: World) -> int:
    """How many bytecodes a step takes, but for what only the first one makes."""
    step(world)
    return bytecodes(lambda: step(world))


@pytest.mark.parametrize("step", [request, connect, publish, subscribe])
@pytest.mark.parametrize("other", [connections, consumers, producers, subscribers, away, temporary])
def test_a_step_costs_as_much_beside_many_others(
    other: Callable[[World, int], None], step: Callable[[World], None]
) -> None:
    world = World()
    with world.broker, world.connection:
        for number in range(FEW):
            other(world, number)
        few = cost(step, world)
        for number in range(FEW, MANY):
            other(world, number)
        assert cost(step, world) == few


@pytest.mark.parametrize("held", [False, True], ids=["the others are empty", "messages wait in the others"])
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_wildcard_consumer_costs_as_much_with_many_destinations(kind: str, held: bool) -> None:
    world = World()
    with world.broker, world.connection:
        session = world.session
        consumer = session.create_consumer(f"{kind}://orders.>", "wanted")
        producer = session.create_producer(f"{kind}://orders.0")

        def step(world: World) -> None:
            producer.send(Message({"wanted": True}))
            message = consumer.receive_no_wait()
            assert message is not None

        def fill(first: int, last: int) -> None:
            for number in range(first, last):
                other = session.create_producer(f"{kind}://orders.{number}")
                if held:
                    other.send(Message({"wanted": False}))

        fill(1, FEW)
        few = cost(step, world)
        fill(FEW, MANY)
        assert cost(step, world) == few


def test_a_new_destination_is_few_objects() -> None:
    """Python's cycle collection visits each of them again and again: that was half of the time of a new destination."""
    with Broker() as broker, ConnectionFactory(broker=broker).create_connection() as connection:
        session = connection.create_session()
        producer, message, count = session.create_producer(), Message({"a": 1}), 200

        def send(first: int) -> int:
            gc.collect()
            before = len(gc.get_objects())
            for number in range(first, first + count):
                producer.send(message, session.create_queue(f"d.{number}"))
            gc.collect()
            return len(gc.get_objects()) - before

        send(0)  # what the first ones make for all
        assert send(count) <= 19 * count  # the parts that a queue is made of are two of them
