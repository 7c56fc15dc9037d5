"""What cannot be used is refused where it is given, in words that say what is accepted; nothing stays open behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest

from pyengine import InvalidMessageError, InvalidSelectorError, Message, activemq
from pyengine.activemq.broker.events import Event
from pyengine.activemq.client.session import Session
from pyengine.clock import ManualClock
from pyengine.errors import ConfigurationError, InvalidDestinationError, JMSError, StoreError
from pyengine.topology.policy import VirtualTopic


@pytest.fixture
def session(activemq_connection: activemq.Connection) -> Iterator[Session]:
    with activemq_connection.create_session() as session:
        yield session


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"cursor_limit": "x"}, "Broker.cursor_limit='x': must be a whole number"),
        ({"cursor_limit": 0}, "Broker.cursor_limit=0: must be above 0"),
        ({"release": "6"}, "Broker.release='6': must be 'newest' or '5.17'"),
        ({"name": 5}, "Broker.name=5: must be a string"),
        ({"journal_disk_sync_strategy": "now"}, "must be 'always' or 'periodic' or 'never'"),
        ({"offline_durable_subscriber_timeout": "x"}, "must be a whole number"),
        ({"schedule_period_for_destination_purge": "x"}, "must be a whole number"),
        ({"policies": ["orders.>"]}, "PolicyMap.entries[0]='orders.>': must be a Policy"),
        ({"policies": 5}, "Broker.policies=5: must be a PolicyMap or a list of which each is a Policy"),
        ({"policies": None}, "Broker.policies=None: must be"),
        ({"policies": "orders.>"}, "Broker.policies='orders.>': must be"),
        ({"virtual_destinations": None}, "Broker.virtual_destinations=None: must be a list"),
        (
            {"virtual_destinations": 5},
            "Broker.virtual_destinations=5: must be a list of which each is a VirtualTopic or",
        ),
        ({"redelivery_plugin": 5}, "Broker.redelivery_plugin=5: must be a RedeliveryPlugin or None"),
        ({"clock": 5}, "Broker.clock=5: must be a Clock or None"),
        ({"virtual_destinations": ["orders.>"]}, "virtual_destinations='orders.>': is not a virtual destination"),
    ],
)
def test_a_broker_refuses_a_setting(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        activemq.Broker(tmp_path, **settings)
    assert words in str(refused.value)
    activemq.Broker(tmp_path).close()


def test_a_broker_that_does_not_come_to_be_keeps_neither_its_store_nor_its_name(tmp_path: Path) -> None:
    class Stopped(ManualClock):
        """A clock of the user's own that fails."""

        def now(self) -> int:
            raise OSError("no time")

    with pytest.raises(OSError, match="no time") as refused:  # which holds on to the frames, and so to the broker
        activemq.Broker(tmp_path, clock=Stopped())
    activemq.Broker(tmp_path, virtual_destinations=[VirtualTopic("VT.>")]).close()
    del refused


def test_an_empty_text_names_no_folder() -> None:
    with pytest.raises(ConfigurationError, match=r"Broker.directory='': names no folder; None keeps no store"):
        activemq.Broker("")
    with pytest.raises(StoreError, match=r"cannot be opened: .*null"):
        activemq.Broker("a\0b")


def test_a_folder_that_cannot_be_made_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file/store: cannot be opened: Not a directory; name a folder to write to"):
        activemq.Broker(tmp_path / "file" / "store")


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_an_argument_that_a_broker_does_not_have_is_a_type_error_and_no_more() -> None:
    with pytest.raises(TypeError, match="nope"):
        activemq.Broker(nope=1)  # type: ignore[call-arg]


async def of_a_coroutine(message: Message) -> None:
    raise AssertionError(message)


def of_a_generator(message: Message) -> Iterator[None]:
    yield
    raise AssertionError(message)


class Waiting:
    async def __call__(self, message: Message) -> None:
        raise AssertionError(message)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda session: session.create_queue(5), InvalidDestinationError, "5 is not a destination; give its name"),
        (lambda session: session.create_topic(None), InvalidDestinationError, "None is not a destination"),
        (lambda session: session.create_consumer(5), InvalidDestinationError, "5 is not a destination"),
        (lambda session: session.create_producer(5), InvalidDestinationError, "5 is not a destination"),
        (lambda session: session.create_browser(5), InvalidDestinationError, "5 is not a destination"),
        (
            lambda session: session.create_browser(session.create_topic("t")),
            InvalidDestinationError,
            "topic://t is not a queue; only queues can be browsed",
        ),
        (
            lambda session: session.create_durable_subscriber(session.create_queue("q"), "n"),
            InvalidDestinationError,
            "queue://q is not a topic; only topics have durable subscribers",
        ),
        (lambda session: session.create_consumer("q", 5), TypeError, "a selector and its dialect are str, not int"),
        (lambda session: session.create_browser("q", 5), TypeError, "a selector and its dialect are str, not int"),
        (lambda session: session.create_consumer("q", listener=5), TypeError, "a listener is a function"),
        *(
            (
                lambda session, wrong=wrong: session.create_consumer("q", listener=wrong),
                TypeError,
                "acknowledge the mess",
            )
            for wrong in (of_a_coroutine, partial(of_a_coroutine), Waiting(), of_a_generator)
        ),
        (
            lambda session: setattr(session.create_consumer("q"), "message_listener", 5),
            TypeError,
            "a listener is a function of a message, or None; not 5",
        ),
        (
            lambda session: session.create_producer("q").send("x", time_to_live_ms="a"),
            InvalidMessageError,
            "time_to_live_ms = 'a' (str): not a time to live; a whole number of milliseconds, or a timedelta;",
        ),
        (
            lambda session: session.create_consumer("q").receive("x"),
            ConfigurationError,
            "timeout='x': not a number of seconds or a timedelta; None waits for ever",
        ),
        (lambda session: session.create_consumer("q").receive(float("inf")), ConfigurationError, "timeout=inf: not"),
        (lambda session: session.create_consumer("q").receive(float("nan")), ConfigurationError, "timeout=nan: not"),
        (lambda session: session.create_consumer("q").receive_batch("x"), ConfigurationError, "size='x': not a whole"),
        (lambda session: session.create_consumer("q").receive_batch(1.5), ConfigurationError, "size=1.5: not a whole"),
        (lambda session: session.create_consumer("q").receive_batch(1, "x"), ConfigurationError, "timeout='x': not"),
        (lambda session: session.delete_temporary("q"), InvalidDestinationError, "'q' is not a temporary destination"),
        (lambda session: session.connection.create_session(17), JMSError, "invalid acknowledgeMode: 17. Valid values"),
        (lambda session: session.connection.create_session(False), JMSError, "invalid acknowledgeMode: False. Valid"),
        (lambda session: session.close("drain"), ConfigurationError, "how='drain': must be one of Closing"),
        (lambda session: session.connection.close(None), ConfigurationError, "how=None: must be one of Closing"),
        (lambda session: session.create_consumer("q").close(True), ConfigurationError, "how=True: must be one of"),
        (lambda session: session.create_consumer("q", no_local=1), ConfigurationError, "no_local=1: must be True or"),
        (lambda session: session.unsubscribe([]), ConfigurationError, "name=[]: must be a string"),
        (
            lambda session: setattr(session.connection, "exception_listener", 5),
            TypeError,
            "an exception listener is a function of an exception, or None; not 5",
        ),
        (lambda session: setattr(session.connection, "client_id", "me"), AttributeError, "client_id"),
        (
            lambda session: session.create_producer("q").send_batch("ab"),
            InvalidMessageError,
            "messages = 'ab' (str): not a list of messages; send() sends one",
        ),
        (lambda session: session.create_producer("q").send_batch({}), InvalidMessageError, "messages = {} (dict): not"),
        (lambda session: session.create_producer("q").send_batch(5), InvalidMessageError, "messages = 5 (int): not a"),
        (lambda session: session.connection.create_session("x"), JMSError, "invalid acknowledgeMode: x"),
    ],
)
def test_a_session_refuses(
    session: Session, call: Callable[[Session], object], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind) as refused:
        call(session)
    assert words in str(refused.value)
    assert not session.closed
    assert not session.connection.closed
    assert not [each for each in session.consumers if each.message_listener is not None]


@pytest.mark.parametrize("double", [Mock(), MagicMock(), Mock(spec=of_a_generator), MagicMock(spec=lambda m: m)])
def test_a_test_s_double_listens(session: Session, double: Mock) -> None:
    session.create_consumer("q", listener=double)
    session.create_producer("q").send("x")
    assert double.call_args.args[0].body == "x"


def test_every_mode_makes_a_session(activemq_connection: activemq.Connection) -> None:
    for mode in (0, 1, 2, 3, 4):
        assert activemq_connection.create_session(mode).acknowledge_mode == mode  # type: ignore[arg-type]


def test_only_events_can_be_listened_to() -> None:
    with activemq.Broker(name="events", clock=ManualClock()) as broker:
        for wrong in (int, "DeadLetter"):
            with pytest.raises(TypeError, match=r"is not a class of pyengine\.activemq\.broker\.events"):
                broker.on(wrong, print)  # type: ignore[type-var, arg-type]
        with pytest.raises(TypeError, match="a callback is a function of an event; not 5"):
            broker.on(Event, 5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"url": 5}, "ConnectionFactory.url=5: must be a string"),
        ({"broker": 5}, "ConnectionFactory.broker=5: must be a Transport or None"),
        ({"options": 5}, "options=5: must be a ConnectionOptions or None"),
        (
            {"redelivery_policies": 5},
            "redelivery_policies=5: must be a mapping from a string or a Destination to a Redelivery",
        ),
        ({"redelivery_policies": {">": 5}}, "redelivery_policies={'>': 5}: must be a mapping"),
        ({"unknown_options": 5}, "unknown_options=5: must be one of UnknownOptions"),
    ],
)
def test_a_connection_factory_refuses_what_it_cannot_use(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        activemq.ConnectionFactory(**settings)
    assert words in str(refused.value)


def test_an_operator_is_told_what_cannot_be_used(activemq_broker: activemq.Broker, session: Session) -> None:
    producer = session.create_producer("q")
    producer.send("x")
    broker = activemq_broker
    wrong: list[tuple[Callable[[], object], type[Exception]]] = [
        (lambda: broker.remove_messages("q", "  "), InvalidSelectorError),
        (lambda: broker.remove_messages("q", 5), ConfigurationError),  # type: ignore[arg-type]
        (lambda: broker.browse("q", None), ConfigurationError),  # type: ignore[arg-type]
        (lambda: broker.move_messages("q", ""), InvalidDestinationError),
        (lambda: broker.move_messages("q", 5), InvalidDestinationError),  # type: ignore[arg-type]
        (lambda: broker.copy_messages("q", "r", maximum="x"), ConfigurationError),  # type: ignore[arg-type]
        (lambda: broker.view(""), InvalidDestinationError),
        (lambda: broker.remove_message("q", 5), ConfigurationError),  # type: ignore[arg-type]
        (lambda: broker.move_messages("q", "r", message_id=5), ConfigurationError),  # type: ignore[arg-type]
        (lambda: broker.verdicts("q", None), ConfigurationError),  # type: ignore[arg-type]
        (lambda: broker.remove_message_group("q", []), ConfigurationError),  # type: ignore[arg-type]
        (lambda: broker.purge("q,r"), InvalidDestinationError),
    ]
    for call, kind in wrong:
        with pytest.raises(kind):
            call()
    assert broker.view("q").queue_size == 1


def test_messages_are_copied_to_every_part_of_a_composite(activemq_broker: activemq.Broker, session: Session) -> None:
    session.create_producer("q").send("x")
    assert activemq_broker.copy_messages("q", "r,s") == 1
    assert activemq_broker.move_messages("q", "r,s") == 1
    assert [activemq_broker.view(name).queue_size for name in "qrs"] == [0, 2, 2]
