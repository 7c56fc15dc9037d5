"""One call makes the broker that an activemq.xml describes, and says what of it is not there."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyengine import Message
from pyengine.activemq import SESSION_TRANSACTED, Broker, ConnectionFactory
from pyengine.activemq.broker.events import DeadLetter
from pyengine.clock import ManualClock
from pyengine.destinations import Destination
from pyengine.errors import ConfigurationError, IllegalStateError, InvalidTopologyError
from pyengine.topology.policy import DiscardingPlugin

REDELIVERY = """<redeliveryPlugin><redeliveryPolicyMap><redeliveryPolicyMap><defaultEntry>
<redeliveryPolicy maximumRedeliveries="3" initialRedeliveryDelay="2000"/>
</defaultEntry></redeliveryPolicyMap></redeliveryPolicyMap></redeliveryPlugin>"""


def xml(inside: str = "", attributes: str = "") -> str:
    return f'<broker xmlns="http://activemq.apache.org/schema/core" {attributes}>{inside}</broker>'


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """A warning that a test does not expect fails it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def fail(broker: Broker, sent_to: str = "Q") -> int:
    """Send one message and fail it in queue Q until it comes no more; how often it came."""
    factory = ConnectionFactory("vm://localhost?jms.redeliveryPolicy.maximumRedeliveries=0", broker=broker)
    with factory.create_connection() as connection:
        connection.create_session().create_producer(sent_to).send("m")
        session = connection.create_session(SESSION_TRANSACTED)
        consumer, tries = session.create_consumer("Q"), 0
        while consumer.receive(timeout=10) is not None:
            tries += 1
            session.rollback()
        return tries


def test_it_does_what_the_file_says(clock: ManualClock, tmp_path: Path) -> None:
    file = tmp_path / "activemq.xml"
    file.write_text(
        xml(
            f"""<destinations><queue physicalName="made.at.start"/><topic physicalName="news"/></destinations>
            <plugins>{REDELIVERY}</plugins>
            <destinationPolicy><policyMap><policyEntries><policyEntry queue="&gt;">
            <deadLetterStrategy><individualDeadLetterStrategy queuePrefix="DLQ."/></deadLetterStrategy>
            </policyEntry></policyEntries></policyMap></destinationPolicy>
            <destinationInterceptors><virtualDestinationInterceptor><virtualDestinations><compositeQueue name="in">
            <forwardTo><queue physicalName="Q"/></forwardTo></compositeQueue></virtualDestinations>
            </virtualDestinationInterceptor></destinationInterceptors>""",
            'brokerName="${shop}" persistent="false" offlineDurableSubscriberTimeout="60000" '
            'offlineDurableSubscriberTaskSchedule="1000" schedulePeriodForDestinationPurge="5000"',
        )
    )
    with Broker.from_xml(file, properties={"shop": "one"}, clock=clock) as broker:
        assert (broker.name, broker.store, broker.left_out) == ("one", None, ())
        assert [str(each) for each in broker.destinations()] == ["queue://made.at.start", "topic://news"]
        assert broker.offline_durable_subscriber_timeout == 60_000
        assert broker.offline_durable_subscriber_task_schedule == 1000
        assert fail(broker, "in") == 4
        assert broker.view("DLQ.Q").queue_size == 1


def test_what_it_does_not_do_is_listed_and_warned_of_once(clock: ManualClock) -> None:
    text = xml(
        '<transportConnectors><transportConnector uri="amqp://0.0.0.0:5672"/></transportConnectors>\n'
        "<plugins>\n<loggingBrokerPlugin/>\n<authorizationPlugin/></plugins>",
        'populateJMSXUserID="true"',
    )
    with pytest.warns(UserWarning, match="left_out of the broker") as told:
        broker = Broker.from_xml(text, clock=clock)
    with broker:
        assert [(part.element, part.name, part.line) for part in broker.left_out] == [
            ("broker", "populateJMSXUserID", 1),
            ("transportConnector", "uri", 1),
            ("loggingBrokerPlugin", "", 3),
            ("authorizationPlugin", "", 4),
        ]
        assert broker.left_out[3].reason.startswith("it would refuse users without a right")
    (warned,) = told
    assert "4 things that the file says are not done: text:1: broker: populateJMSXUserID" in str(warned.message)
    assert warned.filename == __file__
    with pytest.raises(UserWarning, match="1 thing that the file says is not done"):
        Broker.from_xml(xml("<plugins><loggingBrokerPlugin/></plugins>"), clock=clock)
    Broker.from_xml(xml(), clock=clock).close()  # the broker whose warning was raised does not run any more


@pytest.mark.parametrize(
    ("flag", "done"),
    [
        ("keepDurableSubsActive", "true"),
        ("useMirroredQueues", "False"),
        ("rejectDurableConsumers", "no"),
        ("populateJMSXUserID", "false"),
        ("useJmx", "false"),
    ],
)
def test_a_flag_that_asks_for_what_is_done_anyway_is_not_listed(flag: str, done: str, clock: ManualClock) -> None:
    with Broker.from_xml(xml("", f'persistent="false" {flag}="{done}"'), clock=clock) as broker:
        assert broker.left_out == ()
    other = {"true": "false"}.get(done, "true")
    with (
        pytest.warns(UserWarning, match=flag),
        Broker.from_xml(xml("", f'persistent="false" {flag}="{other}"'), clock=clock) as broker,
    ):
        assert [part.name for part in broker.left_out] == [flag]


STORES = [
    ("", "", None),
    ('persistent="false" dataDirectory="data"', "", None),
    ('dataDirectory="data"', "", "data/localhost"),
    ('persistent="true" brokerName="b"', "", "activemq-data/b"),
    ('dataDirectory="data"', '<kahaDB directory="kaha"/>', "kaha"),
    ('dataDirectory="${activemq.data}"', '<kahaDB directory="${activemq.data}/kahadb"/>', "data/kahadb"),
    ('brokerName="b"', "<kahaDB/>", "activemq-data/b"),
    ("", "<memoryPersistenceAdapter/>", None),
    ('dataDirectory="#{folder}"', "", None),
]


@pytest.mark.parametrize(("attributes", "adapter", "folder"), STORES)
def test_messages_are_kept_where_the_file_says(
    attributes: str, adapter: str, folder: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings.simplefilter("ignore")
    monkeypatch.chdir(tmp_path)
    text = xml(f"<persistenceAdapter>{adapter}</persistenceAdapter>" if adapter else "", attributes)
    for expected in (0, 1):
        with Broker.from_xml(text, environment={}, clock=ManualClock()) as broker:
            with ConnectionFactory(broker=broker).create_connection() as connection:
                producer = connection.create_session().create_producer("Q")
                assert broker.view("Q").queue_size == (expected if folder else 0)
                producer.send("m")
            assert (broker.store is None) == (folder is None)
    kept = [file.parent.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("broker.db")]
    assert kept == ([folder] if folder else [])


def test_a_store_may_be_elsewhere_or_nowhere_and_begin_empty(tmp_path: Path) -> None:
    text = xml("", f'dataDirectory="{tmp_path / "data"}"')

    def sizes(source: str, **options: Any) -> int:
        with Broker.from_xml(source, clock=ManualClock(), **options) as broker:
            with ConnectionFactory(broker=broker).create_connection() as connection:
                producer = connection.create_session().create_producer("Q")
                before = broker.view("Q").queue_size
                producer.send(Message(body="m"))
            return before

    assert [sizes(text, directory=None), sizes(text, directory=None)] == [0, 0]
    assert not (tmp_path / "data").exists()
    other = tmp_path / "other"
    assert [sizes(text, directory=other), sizes(text, directory=other)] == [0, 1]
    anew = text.replace("dataDirectory", 'deleteAllMessagesOnStartup="true" dataDirectory')
    assert [sizes(text), sizes(text), sizes(anew), sizes(text)] == [0, 1, 0, 1]
    with (
        Broker.from_xml(text, clock=ManualClock()),
        pytest.raises(IllegalStateError, match="in use by another broker"),
    ):
        Broker.from_xml(anew, name="second", clock=ManualClock())
    assert sizes(text) == 2


@pytest.mark.parametrize(
    ("plugins", "tries", "letters"),
    [
        ("<discardingDLQBrokerPlugin/>", 1, 0),
        ('<discardingDLQBrokerPlugin dropAll="false"/>', 1, 1),
        ('<discardingDLQBrokerPlugin dropAll="false" dropOnly="X P|Q" reportInterval="5"/>', 1, 0),
        ('<discardingDLQBrokerPlugin dropAll="false" dropOnly="[A-P]"/>', 1, 1),
        ('<discardingDLQBrokerPlugin dropAll="false" dropOnly="QQ? x"/>', 1, 0),
        (f"<discardingDLQBrokerPlugin/>{REDELIVERY}", 4, 0),
        (f"{REDELIVERY}<discardingDLQBrokerPlugin/>", 1, 0),
        (f'{REDELIVERY}<discardingDLQBrokerPlugin dropAll="false" dropOnly="A"/>', 4, 1),
    ],
)
def test_dead_letters_are_dropped_as_the_plugin_says(
    plugins: str, tries: int, letters: int, clock: ManualClock
) -> None:
    warnings.simplefilter("ignore")
    with Broker.from_xml(xml(f"<plugins>{plugins}</plugins>"), clock=clock) as broker:
        told: list[DeadLetter] = []
        broker.on(DeadLetter, told.append)
        assert fail(broker) == tries
        assert len([each for each in broker.destinations() if each.name == "ActiveMQ.DLQ"]) == letters
        assert [each.sent_to is not None for each in told] == [bool(letters)]


def test_an_expression_that_java_refuses_is_told_with_its_place() -> None:
    with pytest.raises(InvalidTopologyError, match=r"text:1: discardingDLQBrokerPlugin, dropOnly: Java refuses"):
        Broker.from_xml(xml('<plugins><discardingDLQBrokerPlugin dropAll="false" dropOnly="a["/></plugins>'))
    with pytest.raises(ConfigurationError, match=r"DiscardingPlugin\.drop_only"):
        DiscardingPlugin(drop_only="(")


def test_temporary_destinations_have_switches_of_their_own() -> None:
    queue, topic = Destination("t", "temp-queue"), Destination("t", "temp-topic")
    assert DiscardingPlugin(drop_all=False).drops(queue)
    assert not DiscardingPlugin(drop_all=False, drop_temporary_queues=False).drops(queue)
    assert not DiscardingPlugin(drop_all=False, drop_temporary_topics=False).drops(topic)
    assert DiscardingPlugin(drop_all=False, drop_temporary_topics=False, drop_only="t").drops(topic)


def test_a_file_that_is_not_there_or_of_another_product_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidTopologyError, match="cannot be read"):
        Broker.from_xml(tmp_path / "none.xml")
    with pytest.raises(InvalidTopologyError, match="Artemis"):
        Broker.from_xml('<?xml version="1.0"?>\n<configuration xmlns="urn:activemq"/>')
    with pytest.raises(ConfigurationError, match=r"Broker\.from_xml\.source"):
        Broker.from_xml(5)  # type: ignore[arg-type]


def test_the_same_in_toml(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text(
        'name = "shop"\noffline_durable_subscriber_timeout = 60000\nschedule_period_for_destination_purge = 500\n'
        f'data_directory = "{(tmp_path / "data").as_posix()}"\n[discarding_plugin]\ndrop_only = "Q"\ndrop_all = false\n'
    )
    with Broker.from_xml(file, clock=ManualClock()) as broker:
        assert (broker.name, broker.offline_durable_subscriber_timeout) == ("shop", 60_000)
        assert broker.store is not None
        assert broker.store.path.parent == tmp_path / "data" / "shop"
        assert fail(broker) == 1
        assert [str(each) for each in broker.destinations()] == ["queue://Q"]
