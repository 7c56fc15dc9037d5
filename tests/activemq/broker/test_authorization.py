"""Authorization: which entries count for a destination, and what users are refused, as recorded of the real 5.18.6."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyengine import MapBody, Message
from pyengine.activemq import Broker, ConnectionFactory
from pyengine.activemq.broker.authorization import Authorization
from pyengine.activemq.transport.commands import ConnectionInfo
from pyengine.destinations import Destination, destination_of
from pyengine.errors import AuthenticationError
from pyengine.topology.authorization import AuthorizationEntry, AuthorizationPlugin
from tests.activemq.stomp.raw import RawClient

MAP = AuthorizationPlugin(
    (
        AuthorizationEntry(">", ("admins",)), AuthorizationEntry("USERS.>", ("users",)),
        AuthorizationEntry("USERS.SECRET", ("secret",), ("s1", "s2")), AuthorizationEntry("*.X", ("starx",)),
        AuthorizationEntry("A.B", ("ab",)), AuthorizationEntry("topic://T.>", ("*",)), AuthorizationEntry("E.>"),
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "readers"),
    [
        ("Q", "admins"), ("USERS.A", "admins users"), ("USERS.SECRET", "admins secret users"),
        ("USERS", "admins users"), ("USERS.>", "admins starx users"), ("USERS.*", "admins secret starx users"),
        (">", "admins"), ("*", "admins users"), ("A.X", "admins starx"), ("A.*", "ab admins starx"),
        ("A.B", "ab admins"), ("A.>", "admins starx"), ("topic://T.a", "*"), ("topic://Q", ""), ("topic://T", "*"),
        ("USERS.A,USERS.B", "admins users"), ("USERS.A,Q", "admins"), ("A.B,USERS.A", "admins"), ("E.1", "admins"),
        ("topic://>", ""), ("USERS.SECRET,USERS.A", "admins users"), ("topic://T.a,Q", ""),
    ],
)  # fmt: skip
def test_entries_count_as_in_the_real_map(name: str, readers: str) -> None:
    assert MAP.allowed(destination_of(name, "queue"), "read") == frozenset(readers.split())


def test_temporary_destinations_have_an_entry_of_their_own() -> None:
    temporary = Destination("ID:1", "temp-queue")
    assert MAP.allows((), temporary, "admin")
    entry = AuthorizationEntry(admin=("makers",))
    assert not AuthorizationPlugin(temp_destination_entry=entry).allows(("users",), temporary, "admin")
    assert AuthorizationPlugin(default_entry=entry).allows(("makers",), Destination("any"), "admin")


def test_only_topics_of_advisories_are_made_without_a_right() -> None:
    rights = Authorization(AuthorizationPlugin())
    rights.connected(ConnectionInfo("c", user_name="usr", groups=("users",)))
    rights.check_creation("c", Destination("ActiveMQ.Advisory.Connection", "topic"))
    with pytest.raises(AuthenticationError, match="not authorized to create: queue://"):
        rights.check_creation("c", Destination("ActiveMQ.Advisory.Connection"))


XML = """<beans xmlns="http://www.springframework.org/schema/beans"><broker xmlns="http://activemq.apache.org/schema/core"
 brokerName="authorized" persistent="false">
<transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:0"/></transportConnectors>
<plugins><statisticsBrokerPlugin/><simpleAuthenticationPlugin anonymousAccessAllowed="true"><users>
<authenticationUser username="sys" password="pw" groups="admins, users"/>
<authenticationUser username="usr" password="pw" groups="users"/>
<authenticationUser username="non" password="pw" groups=""/></users></simpleAuthenticationPlugin>
<authorizationPlugin><map><authorizationMap><authorizationEntries>
<authorizationEntry queue="&gt;" read="admins" write="admins" admin="admins"/>
<authorizationEntry queue="USERS.&gt;" read="users" write="users" admin="users"/>
<authorizationEntry queue="RO.&gt;" read="users" write="admins" admin="admins"/>
<authorizationEntry queue="NEW.&gt;" read="users" write="users" admin="admins"/>
</authorizationEntries><tempDestinationAuthorizationEntry>
<tempDestinationAuthorizationEntry read="tempusers" write="tempusers" admin="tempusers"/>
</tempDestinationAuthorizationEntry></authorizationMap></map></authorizationPlugin></plugins></broker></beans>"""


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker.from_xml(XML) as broker:
        assert broker.left_out == ()
        yield broker


def test_users_are_refused_as_by_the_real_broker(broker: Broker) -> None:
    client = RawClient(broker, login="usr", passcode="pw")

    def said(action: str, destination: str, **headers: str) -> str:
        frame = client.ask(action, "x", destination=destination, receipt="r", **headers)
        assert frame.action in ("RECEIPT", "ERROR")
        assert frame.headers["receipt-id"] == "r"
        assert frame.body == frame.headers.get("message", "")
        return frame.body.removeprefix("User usr is not authorized to ")

    assert said("SUBSCRIBE", "/queue/USERS.A", id="1") == ""
    assert said("SUBSCRIBE", "/queue/Q", id="2") == "read from: queue://Q"
    assert said("SEND", "/queue/USERS.B") == ""
    assert said("SEND", "/queue/Q") == "write to: queue://Q"
    assert said("SEND", "/queue/RO.A") == "write to: queue://RO.A"
    assert said("SUBSCRIBE", "/queue/RO.A", id="3") == "create: queue://RO.A"
    assert said("SEND", "/queue/NEW.A") == "create: queue://NEW.A"
    assert said("SUBSCRIBE", "/queue/>", id="7") == "read from: queue://>"
    assert said("SEND", "/topic/T") == "write to: topic://T"
    client.send("SUBSCRIBE", destination="/temp-queue/mine", id="5", receipt="t")
    assert "is not authorized to create: temp-queue://" in client.read().headers["message"]
    assert "is not authorized to read from: temp-queue://" in client.read().headers["message"]
    client.send("BEGIN", transaction="t")
    assert said("SEND", "/queue/Q", transaction="t") == "write to: queue://Q"
    assert said("SEND", "/queue/USERS.B") == ""
    client.close()
    for login, name in (("non", "non"), (None, "anonymous")):
        client = RawClient(broker, **({} if login is None else {"login": login, "passcode": "pw"}))
        frame = client.ask("SEND", destination="/queue/USERS.A", receipt="r")
        assert frame.headers["message"] == f"User {name} is not authorized to write to: queue://USERS.A"
        client.close()
    assert sorted(map(str, broker.destinations())) == ["queue://USERS.A", "queue://USERS.B"]


def test_a_program_in_the_process_may_do_everything(broker: Broker) -> None:
    with ConnectionFactory(broker=broker).create_connection() as connection:
        connection.create_session().create_producer("anything").send("x")
    assert broker.view("anything").queue_size == 1


def test_without_users_nobody_is_authenticated() -> None:
    plugin = AuthorizationPlugin()
    with Broker(name="nobody", authorization_plugin=plugin, transport_connectors=["stomp://127.0.0.1:0"]) as broker:
        client = RawClient(broker)
        frame = client.ask("SEND", destination="/queue/Q", receipt="r")
        assert frame.headers["message"] == "User is not authenticated."
        client.close()


def _message() -> Message:
    return Message(body="x")


def answers(broker: Broker, destination: str, number: int) -> list[MapBody]:
    """The maps that a question to a destination brings."""
    with ConnectionFactory(broker=broker).create_connection() as connection:
        session = connection.create_session()
        reply = session.create_temporary_queue()
        consumer = session.create_consumer(reply)
        question = _message()
        question.reply_to, question.correlation_id = reply, "c7"
        session.create_producer(destination_of(destination, "queue")).send(question)
        found = [consumer.receive(1) for _ in range(number)]
        assert consumer.receive_no_wait() is None
        assert all(each is not None and each.type == "Advisory" for each in found)
        return [each.body for each in found]  # type: ignore[union-attr, misc]


def test_statistics_of_destinations(broker: Broker) -> None:
    """Entries and types are those that 5.18.6 answered."""
    for name in ("USERS.A", "USERS.B", "USERS.B"):
        broker.send("test", Destination(name), _message())
    (one,) = answers(broker, "ActiveMQ.Statistics.Destination.USERS.B", 1)
    longs = ["dequeueCount", "averageMessageSize", "memoryUsage", "consumerCount", "messagesCached", "expiredCount"]
    longs += ["inflightCount", "dispatchCount", "size", "producerCount", "memoryLimit", "enqueueCount"]
    types = dict.fromkeys(longs, "long")
    types |= dict.fromkeys(["minEnqueueTime", "averageEnqueueTime", "maxEnqueueTime"], "double")
    types |= dict.fromkeys(["brokerId", "destinationName", "brokerName"], "string")
    assert one.entry_types() == {**types, "memoryPercentUsage": "int"}
    assert (one["destinationName"], one["size"], one["enqueueCount"]) == ("queue://USERS.B", 2, 2)
    names = [each["destinationName"] for each in answers(broker, "activemq.statistics.destination.USERS.*", 2)]
    assert names == ["queue://USERS.A", "queue://USERS.B"]
    assert answers(broker, "ActiveMQ.Statistics.Destination.NONE", 0) == []
    assert answers(broker, "topic://ActiveMQ.Statistics.Destination.USERS.B", 0) == []
    end = "ActiveMQ.Statistics.DestinationActiveMQ.Statistics.Destination.List.End.With.Null.USERS.B"
    assert [len(each) for each in answers(broker, end, 2)] == [len(one), 0]


def test_statistics_of_the_broker_and_its_subscriptions(broker: Broker) -> None:
    (whole,) = answers(broker, "ActiveMQ.Statistics.Broker", 1)
    assert whole["stomp"] == broker.transport_connectors[0].url
    assert len(whole) == 30
    (subscription,) = answers(broker, "ActiveMQ.Statistics.Subscription", 1)
    assert subscription["prefetchSize"] == 1000
    assert subscription.entry_types()["selector"] == "null"
    assert len(subscription) == 16


def test_a_removed_queue_leaves_its_consumers(broker: Broker) -> None:
    client = RawClient(broker, login="sys", passcode="pw")
    client.ask("SUBSCRIBE", destination="/queue/USERS.A", id="1", ack="client-individual", receipt="r")
    broker.send("test", Destination("USERS.A"), _message())
    assert client.read().action == "MESSAGE"
    assert broker.remove_queue("USERS.A")
    assert not broker.remove_queue("USERS.A")
    assert not broker.remove_topic("USERS.A")
    broker.send("test", Destination("USERS.A"), _message())
    assert client.read().action == "MESSAGE"
    assert broker.view("USERS.A").queue_size == 1
    client.close()
