"""A connection is cut, or the broker killed, after each single frame of one program, in both directions."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from pyengine import Message
from pyengine.activemq import SESSION_TRANSACTED
from pyengine.clock import ManualClock
from pyengine.errors import JMSError
from tests.activemq.openwire.faults.memory_network import ClientEnd, MemoryNetwork
from tests.activemq.openwire.faults.schedule import QUEUE, Brokers, connect
from tests.disturbed_network import End

EVERY = 1 if "PYENGINE_FAULTS" in os.environ else 5


class Program:
    """Sends two messages, then two in a transaction, and moves all to another queue in transactions."""

    def __init__(self, kind: str, directory: Path, client: bool, cut: int, *, kill: bool) -> None:
        self.network = MemoryNetwork(ManualClock(), Random(cut))
        self.network.calm = True
        self.brokers = Brokers(kind, self.network, directory)
        self.frames = 0
        self.client, self.cut, self.kill = client, cut, kill
        self.confirmed: set[str] = set()
        self.network.sent = self._sent

    def _sent(self, end: End) -> None:
        if isinstance(end, ClientEnd) is self.client:
            self.frames += 1
            if self.frames == self.cut:
                clock, link = self.network.clock, end.link
                if self.kill:  # the frame is acted upon, and what comes of it does not arrive
                    clock.call_at(clock.now() + 1, lambda: self.brokers.kill(link.address, 50))
                else:
                    clock.call_at(clock.now() + 1, link.cut)

    def play(self) -> None:
        connection = connect(self.network, self.brokers.addresses, Random(1))
        producer = connection.create_session().create_producer(QUEUE)
        for body in ("a", "b"):
            producer.send(Message(body=body))
            self.confirmed.add(body)
        session = connection.create_session(SESSION_TRANSACTED)
        sender = session.create_producer(QUEUE)
        try:
            for body in ("c", "d"):
                sender.send(Message(body=body))
            session.commit()
            self.confirmed |= {"c", "d"}
        except JMSError:
            pass
        moved = session.create_producer("moved")
        consumer = session.create_consumer(QUEUE)
        while (message := consumer.receive(2.0)) is not None:
            moved.send(Message(body=f"{message.body}'"))
            try:
                session.commit()
            except JMSError:
                continue
        connection.close()
        self.network.clock.advance(200_000)  # until every end knows of its cut

    def check(self) -> None:
        left, found = self.brokers.left(), self.brokers.left("moved")
        for body in "abcd":  # a transaction is whole: a message is in one queue or in the other one
            there = left[body] + found[f"{body}'"]
            assert there == 1 or (body not in self.confirmed and not there), f"{body} is there {there} times"
        self.brokers.close()


def played(kind: str, directory: Path, client: bool, cut: int, *, kill: bool = False) -> int:
    """Play the program with that frame cut; how many there are."""
    program = Program(kind, directory / f"{kind}{client}{cut}{kill}", client, cut, kill=kill)
    program.play()
    program.check()
    return program.frames


@pytest.mark.parametrize("kind", ["alone", "shared"])
@pytest.mark.parametrize("client", [True, False], ids=["of the client", "of the broker"])
def test_a_cut_after_any_frame_loses_nothing(kind: str, client: bool, tmp_path: Path) -> None:
    total = played(kind, tmp_path, client, 0)
    assert total > 15
    for frame in range(1, total + 1, EVERY):
        played(kind, tmp_path, client, frame)


@pytest.mark.parametrize("kind", ["alone", "shared"])
def test_a_broker_that_is_killed_after_any_frame_loses_nothing(kind: str, tmp_path: Path) -> None:
    total = played(kind, tmp_path, True, 0)
    for frame in range(1, total + 1, EVERY):
        played(kind, tmp_path, True, frame, kill=True)
