"""Brokers with a store: what a restart finds, paging, units."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

import pyengine
from pyengine.activemq import AckKind, AcknowledgeMode, Broker, ConnectionFactory, MessageConsumer, Session
from pyengine.activemq.store.journal import MOST
from pyengine.activemq.store.record import decode_message, encode_message
from pyengine.activemq.store.reserve import RESERVE, SIZE
from pyengine.activemq.store.store import SqliteStore, SyncStrategy
from pyengine.activemq.store.store_reader import StoreReader
from pyengine.activemq.transport.commands import ConnectionInfo, ConnectionSink
from pyengine.clock import ManualClock
from pyengine.errors import IllegalStateError, StoreError
from pyengine.topology.policy import Policy
from tests.activemq.wire import Wire, destination, until
from tests.ctrl_c import LIBRARY, CtrlC


@pytest.fixture
def start(tmp_path, clock):
    """Starts the broker of one directory again and again."""
    running = []

    def broker(**settings):
        while running:
            running.pop().close()
        running.append(Broker(tmp_path / "data", clock=clock, **settings))
        return running[-1]

    yield broker
    while running:
        running.pop().close()


def bodies(broker, queue):
    return [message.body for message in broker.browse(queue)]


def test_persistent_messages_survive_and_acknowledged_ones_do_not_come_back(start):
    broker = start()
    wire = Wire(broker)
    wire.send("q", *range(5))
    wire.send("q", "memory only", delivery_mode="NON_PERSISTENT")
    wire.consume("a", "q")
    wire.acknowledge("a", 1)
    wire.acknowledge("a", 3, AckKind.STANDARD, message_count=3)
    broker = start()
    assert bodies(broker, "q") == ["4"]
    view = broker.view("q")
    assert (view.queue_size, view.enqueue_count, view.dequeue_count) == (1, 0, 0)
    wire = Wire(broker)
    wire.consume("a", "q")
    assert wire.taken() == [("a", "4")]
    assert wire.dispatched[0].redelivery_counter == 0


def test_a_sequence_number_comes_to_no_second_message_though_the_first_left(start, tmp_path):
    wire = Wire(start())
    wire.send("q", *range(3))
    before = StoreReader(tmp_path / "data").newest()
    wire.consume("a", "q")
    wire.acknowledge("a", 2, AckKind.STANDARD, message_count=3)
    Wire(start()).send("q", 3)
    assert StoreReader(tmp_path / "data").newest() > before


def test_everything_of_a_message_survives(start):
    message = pyengine.Message(
        {"i": 1, "s": "ä\ud800", "d": float("inf"), "t": True, "n": None},
        body=b"\x00\xff",
        type="T",
        correlation_id="c",
        reply_to="topic://r",
        message_id="ID:1:1",
        priority=7,
        timestamp=5,
        expiration=2**60,
        group_id="g",
        group_sequence=-1,
        user_id="u",
    )
    message.set_byte_property("b", -3)
    message.set_short_property("sh", 300)
    message.set_long_property("l", 4)
    message.set_float_property("f", np.float32(1.1))
    message.set_property("c", pyengine.Char("x"))
    assert decode_message(*encode_message(message)) == message
    text = pyengine.Message(body="lone \udc00 surrogate")
    assert decode_message(*encode_message(text)) == text
    assert decode_message(*encode_message(message)).property_types() == message.property_types()
    broker = start()
    Wire(broker)
    broker.send("wire", pyengine.destinations.Destination("q"), message.copy())
    entries = {"b": np.int8(1), "l": np.int64(2), "f": np.float32(1.1), "c": pyengine.Char("x"), "y": b"\xff"}
    entries |= {
        "n": None,
        "t": "\ud800",
        "many": [[1, b"x"], {"a": np.int16(3)}],
        "some": {"nested": [None, "list"]},
        "d": 1.5,
    }
    bodies = (
        pyengine.MapBody(entries), pyengine.MapBody(), pyengine.StreamBody([None, 1, b"x", "t", np.int16(3), True]),
        pyengine.StreamBody(), pyengine.ObjectBody(b"\xac\xed\x00\x05"), pyengine.ObjectBody(),
    )  # fmt: skip
    for body in bodies:
        broker.send("wire", pyengine.destinations.Destination("q"), pyengine.Message(body=body))
    before = broker.browse("q")
    after = start().browse("q")
    assert after == before
    assert tuple(each.body for each in after[1:]) == bodies
    assert after[3].body.read_object() is None


def test_a_transaction_and_a_dead_letter_are_one_unit(start):
    broker = start()
    wire = Wire(broker)
    wire.consume("a", "q")
    wire.send("q", "bad", "good")
    wire.acknowledge("a", "bad", AckKind.POISON)
    broker.begin("wire", "TX:1")
    wire.send("other", "in doubt", transaction="TX:1")
    wire.acknowledge("a", "good", AckKind.STANDARD, transaction_id="TX:1")
    broker = start()
    assert (bodies(broker, "q"), bodies(broker, "ActiveMQ.DLQ")) == (["good"], ["bad"])
    assert bodies(broker, "other") == []
    wire = Wire(broker)
    wire.consume("a", "q")
    broker.begin("wire", "TX:2")
    wire.send("other", "sure", transaction="TX:2")
    wire.acknowledge("a", "good", AckKind.STANDARD, transaction_id="TX:2")
    broker.commit("TX:2")
    broker = start()
    assert (bodies(broker, "q"), bodies(broker, "other")) == ([], ["sure"])


def test_purging_and_expiry_reach_the_store(start, clock):
    wire = Wire(start())
    wire.send("q", *range(3))
    wire.send("e", "short", expiration=clock.now() + 10)
    assert wire.broker.purge("q") == 3
    clock.advance(40_000)
    broker = start()
    assert bodies(broker, "q") == bodies(broker, "e") == []
    assert bodies(broker, "ActiveMQ.DLQ") == ["short"]


def test_what_expired_while_the_broker_was_away_leaves_at_its_first_look(start, clock):
    broker = start()
    Wire(broker).send("q", "stays")
    Wire(broker, "two").send("q", "short", expiration=clock.now() + 10)
    broker = start()
    clock.advance(29_999)
    assert bodies(broker, "q") == ["stays", "short"]
    clock.advance(1)
    assert (bodies(broker, "q"), bodies(broker, "ActiveMQ.DLQ")) == (["stays"], ["short"])


def drain(wire, queue, *, batch):
    """Consume everything, acknowledging each message; the order of the bodies, and the most the core held."""
    most = 0
    order = []
    wire.consume("a", queue, prefetch=batch)
    while True:
        taken = [body for consumer, body in wire.taken() if consumer == "a"]
        if not taken:
            return order, most
        order += taken
        core = wire.broker.router.find(pyengine.destinations.Destination(queue)).core
        most = max(most, core.statistics["size"])
        for body in taken:
            wire.acknowledge("a", body)
        wire.dispatched = wire.dispatched[-2 * batch :]


@pytest.mark.parametrize("restart", [False, True])
def test_a_backlog_larger_than_memory_is_paged_in_in_order(start, restart):
    policies = [Policy(">", max_page_size=5)]
    wire = Wire(start(policies=policies, cursor_limit=10))
    wire.send("q", *range(300))
    if restart:
        wire = Wire(start(policies=policies, cursor_limit=10))
    assert wire.broker.view("q").queue_size == 300
    order, most = drain(wire, "q", batch=3)
    assert order == [str(n) for n in range(300)]
    assert most <= 10 + 5 + 10
    view = wire.broker.view("q")
    assert (view.queue_size, view.dequeue_count, view.memory_usage_byte_count) == (0, 300, 0)
    assert view.enqueue_count == (0 if restart else 300)


def test_a_paged_backlog_keeps_the_order_of_priorities(start):
    wire = Wire(start(policies=[Policy(">", max_page_size=5, prioritized_messages=True)], cursor_limit=10))
    priorities = [n * 7 % 10 for n in range(200)]
    for n, priority in enumerate(priorities):
        wire.send("q", n, priority=priority)
    order, _ = drain(wire, "q", batch=1)
    assert order == [str(n) for n in sorted(range(200), key=lambda n: (-priorities[n], n))]


def test_a_backlog_of_the_store_comes_in_the_same_order_whatever_the_memory_holds(start):
    policies = [Policy(">", max_page_size=5, prioritized_messages=True)]
    priorities = [n * 7 % 10 for n in range(200)]
    orders = []
    for limit in (10, 5000):
        wire = Wire(start(policies=policies, cursor_limit=limit))
        for n, priority in enumerate(priorities):
            wire.send("q", n, priority=priority)
        wire = Wire(start(policies=policies, cursor_limit=limit))
        for n, priority in enumerate(priorities[:50], 200):
            wire.send("q", n, priority=priority)
        orders.append(drain(wire, "q", batch=1)[0])
        wire.broker.remove_consumer("a")
        for n, priority in enumerate(priorities):  # the store has been read to its end
            wire.send("q", n, priority=priority)
        assert drain(wire, "q", batch=1)[0] == [str(n) for n in sorted(range(200), key=lambda n: (-priorities[n], n))]
    assert orders[0] == orders[1]
    got = [priorities[int(n) % 200] for n in orders[0]]
    levels = [(priority < 5) + (priority < 4) for priority in got]
    assert len(got) == 250
    assert got != sorted(got, reverse=True)
    assert levels == sorted(levels)


def test_higher_priorities_do_not_fill_the_memory(start):
    wire = Wire(start(policies=[Policy(">", max_page_size=5, prioritized_messages=True)], cursor_limit=10))
    wire.consume("b", "q", prefetch=3)
    wire.send("q", *range(20), priority=1)
    core = wire.broker.router.find(pyengine.destinations.Destination("q")).core
    for n in range(20, 200):
        wire.send("q", n, priority=1 + n // 50)
        core._check()
        assert core.statistics["size"] <= 3 + 10 + 20
    assert wire.broker.view("q").enqueue_count == wire.broker.view("q").queue_size == 200
    first = [int(body) for _, body in wire.taken()]
    order, _ = drain(wire, "q", batch=1)
    assert sorted([*first, *map(int, order)]) == [*range(200)]
    paged = [n for n in map(int, order) if n < 20]
    rest = [n for n in map(int, order) if n >= 20]
    assert rest == sorted(range(20, 200), key=lambda n: (-(1 + n // 50), n))
    assert paged == sorted(paged)


@pytest.mark.parametrize("prioritized", [False, True])
def test_without_a_store_everything_stays_in_memory(make, prioritized):
    wire = Wire(make(policies=[Policy(">", max_page_size=2, prioritized_messages=prioritized)], cursor_limit=3))
    for n in range(60):
        wire.send("q", n, priority=1 + n % 2)
    assert wire.broker.view("q").queue_size == 60
    order, _ = drain(wire, "q", batch=1)
    assert order == [str(n) for n in sorted(range(60), key=lambda n: -(n % 2) * prioritized)]


def test_a_paged_backlog_is_served_before_what_no_store_keeps(start):
    wire = Wire(start(policies=[Policy(">", max_page_size=5)], cursor_limit=10))
    for n in range(100):
        wire.send("q", n, delivery_mode="PERSISTENT" if n % 2 else "NON_PERSISTENT")
    order, most = drain(wire, "q", batch=3)
    assert order == [str(n) for n in (*range(1, 100, 2), *range(0, 100, 2))]
    assert most <= 10 + 5 + 10 + 50


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("expired", [300, 5_300])
def test_what_waits_behind_more_expired_messages_than_are_in_memory_is_handed_out_at_once(
    start, clock, expired, restart
):
    policies = [Policy(">", max_page_size=5, expire_messages_period=0)]
    broker = start(policies=policies, cursor_limit=10)
    with ConnectionFactory(broker=broker).create_connection() as connection:
        producer = connection.create_session().create_producer("q")
        producer.time_to_live_ms = 1000
        producer.send_batch(str(n) for n in range(expired))
        producer.time_to_live_ms = 0
        producer.send_batch([*"abcdefg"])
    if restart:
        broker = start(policies=policies, cursor_limit=10)
    clock.advance(2000)
    wire = Wire(broker)
    wire.consume("a", "q")
    assert wire.taken() == [("a", body) for body in "abcde"]
    assert broker.view("q").expired_count == expired
    assert broker.view("q").queue_size == 7


@pytest.mark.parametrize("to", ["queue://q", "topic://t"])
@pytest.mark.parametrize("expiration", [-5, -(2**63)])
def test_an_expiration_below_0_is_none(start, clock, to, expiration):
    """As with the real broker, whose check asks for one above 0; a client other than JMS's own may send it."""
    wire = Wire(start())
    wire.consume("now", to)
    wire.broker.send("wire", destination(to), pyengine.Message(body="a", message_id="ID:a", expiration=expiration))
    clock.advance(10**9)
    wire.consume("later", "queue://q")
    assert wire.taken() == [("now", "a")]
    wire = Wire(start())
    wire.consume("later", "queue://q")
    clock.advance(10**9)
    assert wire.taken() == [("later", "a")] * (to == "queue://q")


def test_a_large_transaction_is_dispatched_to_its_end(start):
    wire = Wire(start(policies=[Policy(">", max_page_size=5)], cursor_limit=10))
    wire.consume("a", "q", prefetch=50)
    wire.broker.begin("wire", "TX:1")
    wire.send("q", *range(200), transaction="TX:1")
    wire.broker.commit("TX:1")
    wire.taken()
    wire.dispatched.clear()
    wire.broker.remove_consumer("a")
    order, _ = drain(wire, "q", batch=7)
    assert order == [str(n) for n in range(200)]


def test_a_page_is_what_a_wakeup_dispatches_with_a_store_too(start):
    wire = Wire(start(policies=[Policy(">", max_page_size=5)], cursor_limit=10))
    wire.send("q", *range(40))
    wire.consume("a", "q", prefetch=100)
    assert len(wire.taken()) == 5


def test_persist_jms_redelivered_marks_what_was_dispatched_once(start):
    policies = [Policy(">", persist_jms_redelivered=True)]
    wire = Wire(start(policies=policies))
    wire.send("q", 1, 2)
    wire.consume("a", "q", prefetch=1)
    wire = Wire(start(policies=policies))
    wire.consume("a", "q")
    assert [command.redelivery_counter for command in wire.dispatched] == [1, 0]


def test_a_directory_has_one_broker_and_a_foreign_file_is_refused(start, tmp_path):
    start()
    with pytest.raises(IllegalStateError, match="in use"):
        Broker(tmp_path / "data", name="second", clock=ManualClock())
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "broker.db").write_bytes(b"no database" * 100)
    with pytest.raises(StoreError, match="cannot be read"):
        Broker(tmp_path / "other", name="third", clock=ManualClock())
    with pytest.raises(StoreError, match=r"broker\.db.*cannot be read"):
        StoreReader(tmp_path / "other")


@pytest.mark.parametrize(("size", "sealed", "kept"), [(100_000, True, "x"), (MOST, True, "f"), (100_000, False, "f")])
def test_what_does_not_fit_into_the_database_is_in_the_journal_or_never_taken_for_written(tmp_path, size, sealed, kept):
    store = SqliteStore(tmp_path)
    number = store.destination("queue://q")
    store.add(number, pyengine.Message(None, body="first"))
    store.wait(store.seal())
    store.load(number, (0, -1), 10)
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    store.remove(number, 1)
    store.add(number, pyengine.Message(None, body="x" * size))
    if sealed and size < MOST:
        store.wait(store.seal())
    with pytest.raises(StoreError, match="cannot be written"):
        store.wait(store.seal()) if size == MOST else store.load(number, (0, -1), 10)
    store._db.execute(f"PRAGMA max_page_count = {1000 * pages}")
    store.add(number, pyengine.Message(None, body="later"))
    with pytest.raises(StoreError, match="cannot be written"):
        store.wait(store.seal())
    with pytest.raises(StoreError, match="cannot be written"):
        store.close()
    for _ in range(2):  # as it was left, and as a broker that is started again finds it
        assert [stored.message.body[0] for stored in StoreReader(tmp_path).messages(number, 0, 100)] == [kept]
        SqliteStore(tmp_path).close()


def test_a_message_is_kept_as_it_was_when_its_send_returned(start, tmp_path):
    with ConnectionFactory(
        "vm://localhost?jms.copyMessageOnSend=false", broker=start()
    ).create_connection() as connection:
        producer = connection.create_session().create_producer("q")
        for body in ("sent", "x" * MOST):
            message = pyengine.Message({"n": 1}, body=body)
            producer.send(message)
            message.body = "changed"
            message.set_property("n", 2)
    for _ in range(2):  # in the journal and in the database
        found = [stored.message for stored in StoreReader(tmp_path / "data").messages(1, 0, 1 << 40)]
        assert [(message.body[0], message.properties()) for message in found] == [("s", {"n": 1}), ("x", {"n": 1})]
        start()


def test_a_name_that_the_database_cannot_have_is_refused_before_the_journal_has_it(start):
    refused = pytest.raises(StoreError, match=r"cannot keep .*surrogates not allowed")
    with ConnectionFactory("vm://localhost?jms.clientID=c", broker=start()).create_connection() as connection:
        session = connection.create_session()
        with refused:
            session.create_producer("q\ud800")
        for topic, name, selector in [("t", "\udc00", None), ("t", "s", "n = '\ud800'"), ("t\ud800", "s", None)]:
            with refused:
                session.create_durable_subscriber(session.create_topic(topic), name, selector)
        session.create_producer("other").send("kept")
        session.create_producer(session.create_topic("t")).send("for nobody")
    assert bodies(start(), "other") == ["kept"]


@pytest.mark.parametrize("option", ["true", "false"])
def test_an_acknowledgement_waits_for_the_write_of_another_thread_only_if_it_should(tmp_path, option):
    with Broker(tmp_path, name="busy") as broker, closing(sqlite3.connect(broker.store.path)) as other:
        url = f"vm://busy?jms.sendAcksAsync={option}"
        with ConnectionFactory(url, broker=broker).create_connection() as connection:
            session = connection.create_session(AcknowledgeMode.INDIVIDUAL_ACKNOWLEDGE)
            producer = connection.create_session().create_producer("q")
            producer.send("first")
            message = session.create_consumer("q").receive(10)
            other.execute("BEGIN IMMEDIATE")  # nobody else writes into the database now
            sending = Thread(target=producer.send, args=("x" * MOST,))  # which the journal has no room for
            sending.start()
            until(lambda: broker.store._writing)
            acknowledging = Thread(target=message.acknowledge)
            acknowledging.start()
            acknowledging.join(10 if option == "true" else 0.1)
            assert acknowledging.is_alive() == (option == "false")
            assert sending.is_alive()
            other.execute("ROLLBACK")
            sending.join()
            acknowledging.join()
            until(lambda: len([*StoreReader(tmp_path).messages(1, 0, 100)]) == 1)


def test_a_connection_that_raises_when_the_broker_ends_does_not_keep_the_store_open(tmp_path: Path) -> None:
    def failed(reason: str) -> None:
        raise RuntimeError(reason)

    broker = Broker(tmp_path)
    broker.add_connection(ConnectionInfo("foreign"), ConnectionSink(lambda dispatch: None, failed=failed))
    with pytest.raises(RuntimeError, match="has stopped"):
        broker.close()
    Broker(tmp_path).close()


def units(kept: SqliteStore) -> Iterator[Callable[[], object]]:
    """Makes changes of four units, and yields the calls that keep them; sees what it wrote before it is over."""
    queue = kept.destination("queue://q")
    kept.add(queue, pyengine.Message(None, body="1"))
    kept.add(queue, pyengine.Message(None, body="2"))
    yield kept.seal
    yield kept.write
    kept.remove(queue, 1)
    kept.add(queue, pyengine.Message(None, body="3"))
    yield lambda: kept.load(queue, (0, 0), 10)
    kept.add(queue, pyengine.Message(None, body="4"))
    yield kept.seal
    kept.remove(queue, 2)
    yield kept.seal
    yield kept.write
    kept.add(queue, pyengine.Message(None, body="5"))
    yield kept.seal
    yield kept.write


def test_ctrl_c_within_the_store_loses_and_repeats_nothing(tmp_path: Path) -> None:
    for at in count(1):
        kept = SqliteStore(tmp_path / str(at))
        stop = CtrlC(LIBRARY / "activemq", at)
        for write in units(kept):
            if stop.ends(write):
                other = Thread(target=kept.write, daemon=True)
                other.start()
                other.join(10)
                assert not other.is_alive(), f"a lock stayed taken, {at}"
                write()
        kept.close()
        left = [stored.message.body for stored in StoreReader(tmp_path / str(at)).messages(1, 0, 100)]
        assert left == ["3", "4", "5"], at
        shutil.rmtree(tmp_path / str(at))
        if not stop.came:
            break
    assert at > 100


# Of a file, or of what was being read, when Ctrl-C came.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "room", ["activemq/broker/broker.py", "activemq/store/store.py", "activemq/store/journal.py", "folder_lock.py"]
)
def test_an_open_that_ctrl_c_ends_anywhere_leaves_the_folder_free(tmp_path: Path, room: str) -> None:
    with Broker(tmp_path, clock=ManualClock()) as broker:
        Wire(broker).send("q", 1)
    made: list[Broker] = []
    for at in count(1):
        stop = CtrlC(LIBRARY / room, at)
        stop.ends(lambda: made.append(Broker(tmp_path, clock=ManualClock())))
        for broker in made:
            broker.close()
        made.clear()
        with Broker(tmp_path, clock=ManualClock()) as again:
            assert again.view("q").queue_size == 1, at
        if not stop.came:
            break
    assert at > 10


def test_a_damaged_file_is_refused_where_it_is_read(tmp_path):
    with Broker(tmp_path, clock=ManualClock()) as broker:
        Wire(broker).send("q", *range(200))
    path = tmp_path / "broker.db"
    with closing(sqlite3.connect(path)) as db:
        page = db.execute("PRAGMA page_size").fetchone()[0]
    with open(path, "r+b") as file:
        file.seek(page)
        file.write(b"\xee" * (path.stat().st_size - page))
    reader = StoreReader(tmp_path)
    for read in (reader.destinations, reader.newest, lambda: next(reader.messages(1, -1, 500))):
        with pytest.raises(StoreError, match=r"broker\.db.*cannot be read"):
            read()


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_copy_of_the_lock_in_a_forked_process_does_not_keep_the_store(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    copy = os.dup(store._lock._file.fileno())
    store.close()
    SqliteStore(tmp_path).close()
    os.close(copy)


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="forking is not safe there")
def test_a_forked_copy_of_a_broker_stores_nothing_and_leaves_the_store_to_its_process(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, ConnectionFactory(broker=broker).create_connection() as connection:
        producer = connection.create_session().create_producer("orders")
        producer.send("before")
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                producer.send("lost")
            except IllegalStateError as error:
                os.write(writing, str(error).encode())
            finally:
                broker.close()
                os._exit(0)
        os.close(writing)
        os.waitpid(child, 0)
        with os.fdopen(reading) as pipe:
            assert pipe.read().startswith(f"this MessageProducer belongs to process {os.getpid()}, and this is process")
        with pytest.raises(IllegalStateError, match="in use by another broker"):
            Broker(tmp_path, name="other")
        producer.send("after")
    with Broker(tmp_path) as broker, ConnectionFactory(broker=broker).create_connection() as connection:
        consumer = connection.create_session().create_consumer("orders")
        assert [str(message.body) for message in consumer.receive_batch(3, timeout=5)] == ["before", "after"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    options = ("-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder))
    if (
        mount is None
        or unmount is None
        or subprocess.run((mount, *options), capture_output=True, check=False).returncode
    ):
        pytest.skip("only root may mount a small file system")
    yield folder
    subprocess.run((unmount, str(folder)), check=True)


def fill(folder: Path) -> None:
    with (folder / "filler").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    assert shutil.disk_usage(folder).free == 0


@pytest.mark.parametrize("strategy", ["periodic", "always"])
@pytest.mark.parametrize("topic", [False, True])
def test_the_store_of_a_full_disk_is_opened_and_drained(small_disk: Path, strategy: SyncStrategy, topic: bool) -> None:
    folder = small_disk / "store"

    def subscribe(session: Session) -> MessageConsumer:
        return session.create_durable_subscriber("t", "s") if topic else session.create_consumer("q")

    with Broker(folder, journal_disk_sync_strategy=strategy) as broker:
        connection = ConnectionFactory(broker=broker).create_connection("c")
        session = connection.create_session()
        subscribe(session).close()
        producer = session.create_producer(session.create_topic("t") if topic else "q")
        sent = 0
        with suppress(StoreError):
            while sent < 100_000:
                producer.send(f"{sent} {'x' * 2000}")
                sent += 1
        assert 100 < sent < 100_000
        with suppress(StoreError):
            connection.close()
        with pytest.raises(StoreError):
            broker.close()
    fill(small_disk)
    got = 0
    for most in (sent // 2, sent):  # in two goes
        with (
            Broker(folder, journal_disk_sync_strategy=strategy) as broker,
            ConnectionFactory(broker=broker).create_connection("c") as connection,
        ):
            consumer = subscribe(connection.create_session())
            while got < most and (message := consumer.receive(5)) is not None:
                assert str(message.body).split()[0] == str(got)
                got += 1
    assert got == sent
    with Broker(folder) as broker, ConnectionFactory(broker=broker).create_connection("c") as connection:
        refused = subscribe(connection.create_session()).receive(0.1)  # it may be there or not
        assert refused is None or str(refused.body).split()[0] == str(sent)


def test_a_store_keeps_room_for_the_day_on_which_the_disk_is_full(tmp_path: Path) -> None:
    for _ in range(2):
        with Broker(tmp_path):
            assert (tmp_path / RESERVE).stat().st_size == SIZE
    (tmp_path / RESERVE).unlink()
    Broker(tmp_path).close()
    assert (tmp_path / RESERVE).exists()


@pytest.mark.parametrize("stored", [True, False])
def test_the_last_sequence_ids_of_64_producers_are_known(stored: bool, tmp_path: Path) -> None:
    folder = tmp_path if stored else None
    with Broker(folder) as broker:
        for producer, number in [("p0", 7), ("p0", 3), *((f"p{each}", each) for each in range(1, 64))]:
            with broker.outbox:
                broker.produced(producer, number)
        assert [broker.last_produced(each) for each in ("p0", "p63", "p64")] == [7, 63, -1]
        with broker.outbox:
            broker.produced("p0", 8)
            broker.produced("p64", 64)
        assert [broker.last_produced(each) for each in ("p0", "p1", "p64")] == [8, -1, 64]
    with Broker(folder) as again:
        assert [again.last_produced(each) for each in ("p0", "p1", "p64")] == ([8, -1, 64] if stored else [-1] * 3)
