"""Advisory messages of what comes and goes: which consumers they reach, and what they carry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from pyengine.activemq import Broker
from pyengine.activemq.transport.commands import ConnectionInfo, ConsumerInfo, DestinationInfo, ProducerInfo, RemoveInfo
from pyengine.clock import ManualClock
from pyengine.destinations import Destination
from tests.activemq.wire import Wire

CONSUMERS = "topic://ActiveMQ.Advisory.Consumer.Queue.q"


@pytest.fixture
def wire() -> Iterator[Wire]:
    with Broker(clock=ManualClock()) as broker:
        yield Wire(broker)


def heard(wire: Wire, consumer: str = "advised") -> list[Any]:
    """The commands that its advisories report, with the counts."""
    found = []
    for each in wire.dispatched:
        if each.consumer_id == consumer and each.message is not None:
            assert each.message.type == "Advisory"
            properties = each.message.properties()
            counts = [properties[name] for name in ("consumerCount", "producerCount") if name in properties]
            found.append((each.message.data_structure, *counts))
    return found


def test_a_late_listener_gets_one_for_each_consumer_and_no_other_listener_does(wire: Wire) -> None:
    wire.consume("early", CONSUMERS)
    wire.consume("a", "q")
    wire.consume("advised", CONSUMERS)
    for consumer in ("early", "advised"):
        ((info, count),) = heard(wire, consumer)
        assert isinstance(info, ConsumerInfo)
        assert (info.consumer_id, count) == ("a", 1)


def test_consumers_that_come_and_go_are_counted(wire: Wire) -> None:
    wire.consume("advised", CONSUMERS)
    wire.consume("a", "q")
    wire.consume("b", "q")
    wire.consume("c", "another")
    wire.broker.remove_consumer("a")
    assert [count for _, count in heard(wire)] == [1, 2, 1]
    assert heard(wire)[2][0] == RemoveInfo("consumer", "a")


def test_producers_of_one_destination_are_reported(wire: Wire) -> None:
    wire.consume("advised", "topic://ActiveMQ.Advisory.Producer.>")
    queue = Destination("q")
    wire.broker.add_producer("wire", "wire:1:1", queue)
    wire.broker.add_producer("wire", "wire:1:2")
    wire.broker.remove_producer("wire:1:1")
    assert heard(wire) == [(ProducerInfo("wire:1:1", "wire", queue), 1), (RemoveInfo("producer", "wire:1:1"), 0)]


def test_temporary_destinations_are_reported_until_their_connection_ends(wire: Wire) -> None:
    temporary = Destination("ID:1", "temp-queue")
    other = Wire(wire.broker, "other")
    other.broker.add_destination("other", temporary)
    wire.consume("advised", "topic://ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic")
    wire.broker.add_destination("wire", Destination("q"))
    wire.broker.remove_connection("other")
    said = [command for (command,) in heard(wire) if command.destination == temporary]
    added = DestinationInfo(temporary, connection_id="other")
    assert said == [added, replace(added, removed=True)]


def test_connections_are_reported_without_their_passwords(wire: Wire) -> None:
    wire.consume("advised", "topic://ActiveMQ.Advisory.Connection")
    Wire(wire.broker, "other")
    wire.broker.remove_connection("other")
    assert heard(wire) == [(ConnectionInfo("wire"),), (ConnectionInfo("other"),), (RemoveInfo("connection", "other"),)]
