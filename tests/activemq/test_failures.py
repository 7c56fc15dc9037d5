"""What becomes of a broker, its clients and its folder when the disk or a user's function fails."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, current_thread
from time import monotonic
from typing import Any

import pytest

from pyengine import Message
from pyengine.activemq import Broker, ConnectionFactory, MessageConsumer
from pyengine.activemq.broker.events import DeadLetter, SlowConsumer
from pyengine.clock import ManualClock
from pyengine.errors import StoreError
from pyengine.topology.policy import ConstantPendingMessageLimitStrategy, Policy
from tests.activemq.wire import Wire, bodies, until

AGAIN = "cannot be written: .*; close the broker and open its folder again, which has all that returned before"


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """No file of this process grows beyond what the journal has now."""
    resource = pytest.importorskip("resource")
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((folder / "broker.journal").stat().st_size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def left_in(folder: Path) -> list[Any]:
    """The bodies that a broker finds in q when it is started again."""
    with Broker(folder, name="again", clock=ManualClock()) as broker:
        return [message.body for message in broker.browse("q")]


@pytest.mark.parametrize("options", ["", "jms.useDedicatedTaskRunner=true", "jms.alwaysSessionAsync=false"])
def test_an_acknowledgement_of_a_listener_that_cannot_be_written_is_reported_and_the_next_message_comes(
    tmp_path: Path, options: str
) -> None:
    heard, told, go_on = [], [], Event()

    def listen(message: Any) -> None:
        heard.append(message.body)
        assert go_on.wait(30)

    broker = Broker(tmp_path)
    with ConnectionFactory(f"vm://localhost?{options}", broker=broker).create_connection() as connection:
        connection.exception_listener = told.append
        connection.create_session().create_consumer("q", listener=listen)
        producer = connection.create_session().create_producer("q")
        for body in "abc":
            producer.send(body)
        until(lambda: heard)
        with full_disk(tmp_path):
            go_on.set()
            until(lambda: len(told) == 3)
            with pytest.raises(StoreError, match=AGAIN):
                producer.send("d")
    with pytest.raises(StoreError, match=AGAIN):
        broker.close()
    assert heard == ["a", "b", "c"]
    assert [type(error) for error in told] == [StoreError] * 3
    assert left_in(tmp_path) == ["a", "b", "c"]


def test_regular_acknowledgements_that_cannot_be_written_are_reported(tmp_path: Path) -> None:
    clock, told = ManualClock(), []
    broker = Broker(tmp_path, clock=clock)
    url = "vm://localhost?jms.optimizeAcknowledge=true&jms.optimizedAckScheduledAckInterval=50"
    with ConnectionFactory(url, broker=broker).create_connection() as connection:
        connection.exception_listener = told.append
        consumer = connection.create_session().create_consumer("q")
        producer = connection.create_session().create_producer("q")
        producer.send_batch(["a", "b"])
        consumer.receive(1)
        with full_disk(tmp_path):
            clock.advance(50)
        consumer.receive(1)
        clock.advance(50)
        assert [type(error) for error in told] == [StoreError] * 2
    with pytest.raises(StoreError, match=AGAIN):
        broker.close()
    assert left_in(tmp_path) == ["a", "b"]


def damage_a_message(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE message SET headers = '{' WHERE sequence = 2")


def lose_the_destinations(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM destination")


def damage_the_schema(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE mark", b"CREATE TAB\xf3E mark"))


def put_a_folder_in_its_place(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lose_the_destinations, "cannot be read: there is no destination 1"),
        (damage_the_schema, "cannot be read: "),
        (put_a_folder_in_its_place, "cannot be read: unable to open database file"),
    ],
)
def test_a_store_that_cannot_be_opened_is_refused_and_let_go_of(
    tmp_path: Path, damage: Callable[[Path], None], words: str
) -> None:
    with Broker(tmp_path, clock=ManualClock()) as broker:
        wire = Wire(broker, client_id="me")
        wire.consume("durable", "topic://t", subscription_name="orders")
        wire.broker.remove_consumer("durable")
        wire.send("topic://t", "waits")
    damage(tmp_path / "broker.db")
    with pytest.raises(StoreError, match=words) as refused:
        Broker(tmp_path, clock=ManualClock())
    assert refused.value.store == str(tmp_path / "broker.db")
    if (tmp_path / "broker.db").is_dir():
        (tmp_path / "broker.db").rmdir()
    else:
        (tmp_path / "broker.db").unlink()
    Broker(tmp_path, clock=ManualClock()).close()


def test_a_damaged_message_is_named_and_its_connection_ends_all_the_same(tmp_path: Path) -> None:
    with Broker(tmp_path, clock=ManualClock()) as broker:
        Wire(broker).send("q", *"abc")
    damage_a_message(tmp_path / "broker.db")
    with Broker(tmp_path, clock=ManualClock()) as broker:
        factory = ConnectionFactory(broker=broker)
        connection = factory.create_connection("me")
        consumers: list[MessageConsumer] = []
        with pytest.raises(StoreError, match="cannot be read: message 2 is damaged: "):
            consumers.append(connection.create_session().create_consumer("q"))
        with pytest.raises(StoreError, match="message 2 is damaged"):
            connection.close()
        assert connection.closed
        with factory.create_connection("me") as again:
            again.create_session().create_producer("other").send("goes on")
        assert [message.body for message in broker.browse("other")] == ["goes on"]


def move(folder: Path) -> None:
    folder.rename(f"{folder} elsewhere")


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be removed")
@pytest.mark.parametrize("told_by", ["send", "close"])
@pytest.mark.parametrize("remove", [shutil.rmtree, move])
def test_a_folder_that_is_removed_under_its_broker_is_noticed(
    tmp_path: Path, remove: Callable[[Path], object], told_by: str
) -> None:
    folder = tmp_path / "store"
    broker = Broker(folder, clock=ManualClock())
    wire = Wire(broker)
    wire.send("q", "before")
    remove(folder)
    words = r"broker\.db: was removed, moved or replaced under the broker"

    def send_for_long() -> None:
        end = monotonic() + 10
        while monotonic() < end:
            wire.send("q", "lost")

    if told_by == "send":
        with pytest.raises(StoreError, match=words):
            send_for_long()
    with pytest.raises(StoreError, match=words):
        broker.close()


class Stop(BaseException):
    """What is no Exception."""


@pytest.mark.parametrize("error", [ValueError, Stop, SystemExit, GeneratorExit, asyncio.CancelledError])
@pytest.mark.parametrize("manual", [False, True])
def test_a_callback_that_raises_takes_nothing_from_anybody(
    caplog: pytest.LogCaptureFixture, error: type[BaseException], manual: bool
) -> None:
    def fail(event: object) -> None:
        raise error("of the callback")

    def listen(message: Any) -> None:
        if message.body == "bad":
            raise ValueError
        heard.append(message.body)

    heard: list[Any] = []
    clock = ManualClock() if manual else None
    url = "vm://localhost?jms.redeliveryPolicy.maximumRedeliveries=0"
    with Broker(clock=clock) as broker, ConnectionFactory(url, broker=broker).create_connection() as connection:
        broker.on(DeadLetter, fail)
        broker.on(SlowConsumer, fail)
        connection.create_session().create_consumer("listened", listener=listen)
        producer = connection.create_session().create_producer(None)
        for body in ("bad", "good"):
            producer.send(body, "listened")
        if not manual:
            until(lambda: heard)
        consumer = connection.create_session().create_consumer("received?consumer.prefetchSize=1")
        for body in "abc":
            producer.send(body, "received")
        assert bodies(consumer) == ["a", "b", "c"]
    assert heard == ["good"]
    told = {record.getMessage() for record in caplog.records if "callback" in record.getMessage()}
    assert told == {
        "a callback failed on DeadLetter of queue://listened",
        "a callback failed on SlowConsumer of queue://received",
    }


def test_ctrl_c_within_a_callback_is_the_users_own() -> None:
    def stop(event: object) -> None:
        raise KeyboardInterrupt(current_thread().name)

    with Broker(clock=ManualClock()) as broker:
        wire = Wire(broker)
        wire.consume("a", "q", prefetch=1)
        end = broker.on(SlowConsumer, stop)
        with pytest.raises(KeyboardInterrupt, match="MainThread"):
            wire.send("q", "x", "y")
        end()


def raising(error: type[BaseException]) -> Callable[[Any], list[Any]]:
    def evict(candidates: Any) -> list[Any]:
        raise error("of the strategy")

    return evict


@pytest.mark.parametrize(
    "evict", [lambda candidates: [], lambda candidates: ["other"], raising(ValueError), raising(SystemExit)]
)
def test_an_eviction_strategy_that_fails_is_logged_and_takes_the_message_from_nobody(
    caplog: pytest.LogCaptureFixture, evict: Callable[[Any], list[Any]]
) -> None:
    class Strategy:
        def evict_messages(self, messages: Sequence[Message], /) -> list[Message]:
            return evict(messages)

    limit = ConstantPendingMessageLimitStrategy(1)
    policy = Policy("topic://t", pending_message_limit_strategy=limit, message_eviction_strategy=Strategy())
    with Broker(policies=[policy], clock=ManualClock()) as broker:
        wire = Wire(broker)
        wire.consume("slow", "topic://t", prefetch=1)
        wire.consume("quick", "topic://t", prefetch=10)
        wire.send("topic://t", *"abc")
        assert wire.taken() == [("slow", "a"), ("quick", "a"), ("quick", "b"), ("quick", "c")]
    assert caplog.messages == ["the eviction strategy of slow of topic://t evicted nothing"]
