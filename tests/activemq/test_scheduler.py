"""Scheduled delivery and the plugins that change what is sent: as configured, and by the clock."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pyengine
from pyengine import activemq
from pyengine.activemq import Broker, Connection, ConnectionFactory
from pyengine.activemq.broker.cron import next_time
from pyengine.clock import ManualClock
from pyengine.destinations import destination_of
from pyengine.errors import ConfigurationError, InvalidMessageError, JMSError
from pyengine.topology import BrokerConfiguration
from pyengine.topology.policy import ForcePersistencyModePlugin, TimeStampingPlugin

CRON = json.loads((Path(__file__).parent / "cron.json").read_text("utf-8"))


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_the_next_time_of_a_cron_entry_is_that_of_the_real_parser(utc: None) -> None:
    for entry, now, expected in CRON:  # CronParser.getNextScheduledTime of 6.3.1, in UTC; None: it throws
        if expected is None:
            with pytest.raises(ConfigurationError, match="not a cron entry"):
                next_time(entry, now)
        else:
            assert next_time(entry, now) == expected, (entry, now)


class Program:
    """A sender and a receiver of one queue."""

    def __init__(self, connection: Connection) -> None:
        self.session = connection.create_session()
        self.producer = self.session.create_producer("orders")
        self.seen: list[Any] = []
        self.session.create_consumer("orders", listener=self.seen.append)

    def send(self, body: str, **settings: Any) -> None:
        message = pyengine.Message({"colour": "red"}, body=body)
        for name, value in settings.items():
            message.set_object_property(f"AMQ_SCHEDULED_{name.upper()}", value)
        self.producer.send(message)

    @property
    def bodies(self) -> list[Any]:
        return [message.body for message in self.seen]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_600_000_000_100)


@pytest.fixture
def program(clock: ManualClock) -> Iterator[Program]:
    with (
        Broker(scheduler_support=True, clock=clock) as broker,
        ConnectionFactory(broker=broker).create_connection() as connection,
    ):
        yield Program(connection)


def test_a_delayed_message_comes_on_the_grid_of_half_seconds(program: Program, clock: ManualClock) -> None:
    program.send("later", delay=1000)
    program.send("now")
    clock.advance(1399)
    assert program.bodies == ["now"]
    clock.advance(1)
    assert program.bodies == ["now", "later"]
    message = program.seen[1]
    assert set(message.property_names) == {"colour", "scheduledJobId"}
    assert message.get_string_property("scheduledJobId").startswith("ID:")
    assert message.message_id.rpartition(":")[0] == program.seen[0].message_id.rpartition(":")[0]


def test_a_period_repeats_and_each_message_has_an_id_of_its_own(program: Program, clock: ManualClock) -> None:
    program.send("x", delay=500, period=2000, repeat=2)
    times = []
    for _ in range(100):
        clock.advance(100)
        times += [clock.now() - 1_600_000_000_100] * (len(program.seen) - len(times))
    assert times == [900, 2900, 4900]
    assert len({message.message_id for message in program.seen}) == 3


def test_cron_comes_for_ever_and_starts_rows_of_repeats(program: Program, clock: ManualClock, utc: None) -> None:
    program.send("tick", cron="* * * * *")
    program.send("row", cron="*/2 * * * *", delay=1000, period=1000, repeat=1)
    clock.advance(5 * 60_000)
    assert program.bodies.count("tick") == 5
    assert 4 <= program.bodies.count("row") <= 6


def test_life_begins_when_a_message_is_sent_on(program: Program, clock: ManualClock) -> None:
    program.producer.time_to_live_ms = 3000
    program.send("x", delay=10_000)
    clock.advance(10_500)
    (message,) = program.seen
    assert message.expiration == message.timestamp + 3000
    assert message.timestamp > 1_600_000_010_000


def test_a_transaction_schedules_at_its_commit(clock: ManualClock) -> None:
    with (
        Broker(scheduler_support=True, clock=clock) as broker,
        ConnectionFactory(broker=broker).create_connection() as connection,
    ):
        session = connection.create_session(activemq.SESSION_TRANSACTED)
        producer = session.create_producer("orders")
        for end in (session.rollback, session.commit):
            producer.send(pyengine.Message({"AMQ_SCHEDULED_DELAY": 1000}, body="x"))
            end()
        clock.advance(2000)
        assert broker.view("orders").queue_size == 1


def test_what_cannot_be_scheduled_is_refused(program: Program) -> None:
    with pytest.raises(JMSError, match="The scheduled repeat value is too large"):
        program.send("x", delay=1, repeat=1001)
    with pytest.raises(InvalidMessageError, match=r"AMQ_SCHEDULED_CRON = 'soon'.*not a cron entry: it has 1 fields"):
        program.send("x", cron="soon")


def test_jobs_are_browsed_and_removed(program: Program, clock: ManualClock) -> None:
    for body in ("a", "b", "c"):
        program.send(body, delay=5000)
    management = program.session.create_producer("topic://ActiveMQ.Scheduler.Management")
    found: list[Any] = []
    program.session.create_consumer("answers", listener=found.append)
    management.send(pyengine.Message({"AMQ_SCHEDULER_ACTION": "BROWSE"}, reply_to="queue://answers"))
    assert [each.body for each in found] == ["a", "b", "c"]
    job = found[1].get_string_property("scheduledJobId")
    management.send(pyengine.Message({"AMQ_SCHEDULER_ACTION": "REMOVE", "AMQ_SCHEDULED_ID": job}))
    clock.advance(6000)
    assert program.bodies == ["a", "c"]
    program.send("d", delay=5000)
    management.send(pyengine.Message({"AMQ_SCHEDULER_ACTION": "REMOVEALL"}))
    clock.advance(6000)
    assert program.bodies == ["a", "c"]


def test_jobs_of_a_store_outlive_the_broker(tmp_path: Path, clock: ManualClock) -> None:
    for number in range(2):
        with Broker(tmp_path, scheduler_support=True, clock=clock) as broker:
            assert [each.name for each in broker.destinations() if "Scheduler" in each.name] == []
            if not number:
                with ConnectionFactory(broker=broker).create_connection() as connection:
                    producer = connection.create_session().create_producer("orders")
                    producer.send(pyengine.Message({"AMQ_SCHEDULED_DELAY": 60_000, "price": 7}, body="x"))
                    producer.send(pyengine.Message({"AMQ_SCHEDULED_DELAY": 1000}, body="soon"))
            clock.advance(40_000)
    with Broker(tmp_path, scheduler_support=True, clock=clock) as broker:
        clock.advance(40_000)
        kept = broker.browse("orders")
    assert [message.body for message in kept] == ["soon", "x"]
    assert kept[1].get_int_property("price") == 7
    assert set(kept[1].property_names) == {"price", "scheduledJobId"}


def test_without_the_scheduler_a_delay_is_a_property(clock: ManualClock) -> None:
    with Broker(clock=clock) as broker, ConnectionFactory(broker=broker).create_connection() as connection:
        program = Program(connection)
        program.send("x", delay=1000)
        assert program.seen[0].get_long_property("AMQ_SCHEDULED_DELAY") == 1000


@pytest.mark.parametrize(
    ("plugin", "sent", "stamped"),
    [  # (timestamp, expiration), the broker's clock at 1000
        (TimeStampingPlugin(), (400, 0), (1000, 0)),
        (TimeStampingPlugin(), (400, 500), (1000, 1100)),
        (TimeStampingPlugin(zero_expiration_override=50), (400, 0), (1000, 1050)),
        (TimeStampingPlugin(ttl_ceiling=30), (400, 500), (1000, 1030)),
        (TimeStampingPlugin(ttl_ceiling=30), (400, 0), (1000, 0)),
        (TimeStampingPlugin(future_only=True), (4000, 4500), (4000, 4500)),
        (TimeStampingPlugin(future_only=True), (4000, 0), (1000, 0)),
        (TimeStampingPlugin(), (0, 0), (0, 0)),
    ],
)
def test_time_stamping(plugin: TimeStampingPlugin, sent: tuple[int, int], stamped: tuple[int, int]) -> None:
    with (
        Broker(time_stamping_plugin=plugin, clock=ManualClock(1000)) as broker,
        ConnectionFactory(broker=broker).create_connection() as connection,
    ):
        message = pyengine.Message(timestamp=sent[0], expiration=sent[1], message_id="ID:1:1:1:1")
        broker.send(connection.connection_id, destination_of("orders", "queue"), message)
        (kept,) = broker.browse("orders")
        assert (kept.timestamp, kept.expiration) == stamped


PLUGINS = """<broker xmlns="http://activemq.apache.org/schema/core" persistent="false" schedulerSupport="true"><plugins>
<timeStampingBrokerPlugin zeroExpirationOverride="1000" ttlCeiling="60000" futureOnly="true"/>
<forcePersistencyModeBrokerPlugin persistenceFlag="true"/>
<simpleAuthenticationPlugin anonymousAccessAllowed="false"><users>
<authenticationUser username="ann" password="secret" groups="users,admins"/></users></simpleAuthenticationPlugin>
</plugins></broker>"""


def test_a_configuration_brings_them(clock: ManualClock) -> None:
    found = BrokerConfiguration.from_text(PLUGINS)
    assert found.not_modelled == ()
    assert found.time_stamping_plugin == TimeStampingPlugin(1000, 60_000, True)
    assert found.force_persistency_mode_plugin == ForcePersistencyModePlugin(True)
    assert found.users == (("ann", "secret"),)
    assert "secret" not in repr(found)
    with (
        Broker.from_xml(PLUGINS, clock=clock) as broker,
        ConnectionFactory(broker=broker).create_connection() as connection,
    ):
        producer = connection.create_session().create_producer("orders")
        producer.send_batch([pyengine.Message(body="x"), pyengine.Message({"AMQ_SCHEDULED_DELAY": 5000}, body="y")])
        (kept,) = broker.browse("orders")
        assert (kept.persistent, kept.expiration - kept.timestamp) == (True, 1000)
        broker.authenticate("ann", "secret")
        with pytest.raises(JMSError, match=r"User name \[null\] or password is invalid"):
            broker.authenticate(None, None)
        clock.advance(6000)
        assert [message.body for message in broker.browse("orders")][-1] == "y"


def test_an_authentication_without_users_lets_nobody_in() -> None:
    text = PLUGINS[: PLUGINS.index("<users>")] + PLUGINS[PLUGINS.index("</users>") + 8 :]
    with (
        Broker.from_xml(text, clock=ManualClock()) as broker,
        pytest.raises(JMSError, match=r"User name \[ann\] or password is invalid"),
    ):
        broker.authenticate("ann", "")
