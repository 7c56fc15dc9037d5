"""Ctrl-C within a call of a client whose broker has a store: what is there when the folder is open again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from shutil import rmtree

import pytest

from pyengine import Message, activemq
from pyengine.activemq import Broker, Connection, ConnectionFactory, MessageConsumer
from pyengine.clock import ManualClock
from tests.ctrl_c import LIBRARY, CtrlC

EACH = 7  # of the hundreds of events of a call


def taken(consumer: MessageConsumer) -> list[str]:
    """The bodies of what a consumer gets."""
    bodies = []
    while (message := consumer.receive_no_wait()) is not None:
        bodies.append(message.body)
    return bodies


def send_and_commit(connection: Connection) -> None:
    session = connection.create_session(activemq.SESSION_TRANSACTED)
    session.create_producer("q").send(Message(body="3"))
    session.commit()


def receive_and_acknowledge(connection: Connection) -> None:
    session = connection.create_session(activemq.CLIENT_ACKNOWLEDGE)
    message = session.create_consumer("q").receive_no_wait()
    assert message is not None
    message.acknowledge()
    session.close()


def receive_and_close(connection: Connection) -> None:
    session = connection.create_session(activemq.CLIENT_ACKNOWLEDGE)
    session.create_consumer("q").receive_no_wait()
    connection.close()


# A call's outcome is open while it has not returned; behind it stands what is left when it has.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize(
    ("call", "before", "after"),
    [
        (send_and_commit, ["1", "2"], ["1", "2", "3"]),
        (receive_and_acknowledge, ["1", "2"], ["2"]),
        (receive_and_close, ["1", "2"], ["1", "2"]),
    ],
)
def test_ctrl_c_within_a_call_loses_and_doubles_nothing(
    tmp_path: Path, call: Callable[[Connection], None], before: list[str], after: list[str]
) -> None:
    for at in count(1, EACH):
        folder = tmp_path / str(at)
        stop = CtrlC(LIBRARY, at)
        with Broker(folder, clock=ManualClock()) as broker:
            connection = ConnectionFactory("vm://localhost", broker=broker).create_connection()
            connection.start()
            with connection.create_session() as session:
                producer = session.create_producer("q")
                producer.send(Message(body="1"))
                producer.send(Message(body="2"))
            ended = stop.ends(lambda: call(connection))  # noqa: B023 called at once
            with suppress(Exception):  # of a client that was interrupted; the broker is closed in any case
                connection.close()
        with (
            Broker(folder, clock=ManualClock()) as again,
            ConnectionFactory("vm://localhost", broker=again).create_connection() as other,
        ):
            other.start()
            left = sorted(taken(other.create_session().create_consumer("q")))
        assert left in ((before, after) if ended else (after,)), at
        rmtree(folder)
        if not stop.came:
            break
    assert at > 10 * EACH
