"""A keyword that a constructor does not take is refused, with the one that was meant: every public class."""

import enum
import inspect
from typing import Any

import pytest

import pyengine
import pyengine.rocketmq
import pyengine.topology
from pyengine.errors import UnknownNameError
from tests.memory.cases import public_classes

# Why a class does not: nobody but pyengine makes one of it, or there is nothing to call.
READ = "its readers make it of a file"
GIVEN = "a call returns it"
OPENED = "its factory or its session makes it"
BY_US = {
    **{name: READ for name in public_classes() if name.startswith("pyengine.backlog.diagnosis.evidence.")},
    "pyengine.topology.NotModelled": READ,
    "pyengine.activemq.Connection": OPENED,
    "pyengine.activemq.Session": OPENED,
    "pyengine.activemq.MessageConsumer": OPENED,
    "pyengine.activemq.MessageProducer": OPENED,
    "pyengine.activemq.QueueBrowser": OPENED,
    "pyengine.activemq.TopicSubscriber": OPENED,
    "pyengine.backlog.lint.proof.Answer": GIVEN,
    "pyengine.backlog.simulate.Simulation": GIVEN,
    "pyengine.backlog.simulate.GroupSimulation": GIVEN,
    "pyengine.rocketmq.AllocationPlan": GIVEN,
    "pyengine.rocketmq.BrokerState": GIVEN,
    "pyengine.rocketmq.ClientConnection": GIVEN,
    "pyengine.rocketmq.ConsumeStats": GIVEN,
    "pyengine.rocketmq.ConsumerConnections": GIVEN,
    "pyengine.rocketmq.GroupProgress": GIVEN,
    "pyengine.rocketmq.ConsumeStatus": GIVEN,
    "pyengine.rocketmq.ConsumerRunningInfo": GIVEN,
    "pyengine.rocketmq.Load": GIVEN,
    "pyengine.rocketmq.Move": GIVEN,
    "pyengine.rocketmq.OffsetWrapper": GIVEN,
    "pyengine.rocketmq.PullMessageRequest": GIVEN,
    "pyengine.rocketmq.PullResult": GIVEN,
    "pyengine.rocketmq.QueueState": GIVEN,
    "pyengine.rocketmq.SendResult": GIVEN,
    "pyengine.rocketmq.Skew": GIVEN,
    "pyengine.rocketmq.SubscriptionData": GIVEN,
    "pyengine.rocketmq.TransactionSendResult": GIVEN,
    "pyengine.spark.Progress": GIVEN,
    "pyengine.spark.RunResult": GIVEN,
    "pyengine.rocketmq.MessageQueueListener": "an interface, which takes nothing",
}
CLASSES = public_classes()
GIVEN_CLASSES = {CLASSES[name] for name in BY_US if name in CLASSES}
# Of a class that several packages show, the first name.
CALLED = {
    name: kind
    for name, kind in {kind: (name, kind) for name, kind in reversed(CLASSES.items())}.values()
    if kind not in GIVEN_CLASSES
    and not issubclass(kind, (enum.Enum, BaseException))
    and not getattr(kind, "_is_protocol", False)
}
# Positional arguments of those that want some.
WANTED: dict[str, tuple[Any, ...]] = {
    "pyengine.Char": ("x",),
    "pyengine.Columns": ({},),
    "pyengine.PackedMessages": ([],),
    "pyengine.Selector": ("a = 1",),
    "pyengine.activemq.Delivery": (0, 0, None, 0, False),
    "pyengine.rocketmq.Cluster": ("localhost:9876",),
    "pyengine.rocketmq.ClusterAdmin": ("localhost:9876",),
    "pyengine.rocketmq.LocalFileOffsetStore": ("client", "group"),
    "pyengine.rocketmq.Message": ("topic",),
    "pyengine.rocketmq.MessageExt": ("topic",),
    "pyengine.rocketmq.RemoteBrokerOffsetStore": (None, "group"),
}
# Keyword -> what it was meant for, where a signature does not say it.
MEANT = {
    "pyengine.Char": ("Unit", "unit"),
    "pyengine.Message": ("JMSReplyTo", "reply_to"),
    "pyengine.Columns": ("Batch", "batch"),
    "pyengine.MapBody": ("Entries", "entries"),
    "pyengine.ObjectBody": ("Data", "data"),
    "pyengine.StreamBody": ("Values", "values"),
    "pyengine.PackedMessages": ("Names", "names"),
    "pyengine.Selector": ("Dialect", "dialect"),
    "pyengine.Subscriptions": ("onError", "on_error"),
    "pyengine.activemq.Delivery": ("groupFirst", "group_first"),
    "pyengine.activemq.GroupMap": ("Factory", "factory"),
    "pyengine.activemq.Queue": ("maxPageSize", "max_page_size"),
    "pyengine.activemq.RedeliveryPolicy": ("maximumRedeliveries", "maximum_redeliveries"),
    "pyengine.activemq.SharedValues": ("shared", ""),
    "pyengine.rocketmq.ControllableOffset": ("Value", "value"),
    "pyengine.rocketmq.Message": ("Flag", "flag"),
    "pyengine.rocketmq.MessageExt": ("brokerName", "broker_name"),
    "pyengine.rocketmq.ProcessQueue": ("Now", "now"),
    "pyengine.rocketmq.AllocateMessageQueueAveragely": ("queues", ""),
    "pyengine.rocketmq.AllocateMessageQueueAveragelyByCircle": ("queues", ""),
}


def misspelt(name: str, kind: type) -> tuple[str, str]:
    """A keyword as Java spells it, and the one that is meant."""
    if name in MEANT:
        return MEANT[name]
    last = list(inspect.signature(kind).parameters)[-1]
    words = last.split("_")
    return (words[0] + "".join(word.title() for word in words[1:]) if len(words) > 1 else last.title()), last


@pytest.mark.parametrize("name", CALLED)
def test_a_constructor_names_the_keyword_that_was_meant(name: str) -> None:
    """Whatever else it is given."""
    kind = CALLED[name]
    wrong, meant = misspelt(name, kind)
    with pytest.raises(UnknownNameError) as caught:
        kind(*WANTED.get(name, ()), **{wrong: 1})
    assert caught.value.option == f"{kind.__name__}.{wrong}"
    assert isinstance(caught.value, TypeError)
    if meant:
        assert repr(meant) in caught.value.hint or f"known: {meant}" in caught.value.hint


def test_each_reason_is_of_a_class_that_is_there() -> None:
    """And of one that is not called after all."""
    assert set(BY_US) <= set(public_classes())


def test_a_signature_stays_what_it_is() -> None:
    """What an editor shows, and what help() prints."""
    assert str(inspect.signature(pyengine.topology.PolicyMap)).startswith("(entries:")
    assert list(inspect.signature(pyengine.rocketmq.MessageQueue).parameters) == ["topic", "broker_name", "queue_id"]
    assert "unknown" not in str(inspect.signature(pyengine.topology.Policy))


def test_an_argument_that_is_wrong_in_itself_is_told_as_before() -> None:
    """Only a name that is not there is a name that is not there."""
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        pyengine.topology.Policy()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="takes 4 positional arguments but 5 were given"):
        pyengine.rocketmq.MessageQueue("t", "b", 0, 1)  # type: ignore[call-arg]


def test_a_class_of_the_users_may_take_more() -> None:
    """It says what it takes."""

    class Mine(pyengine.topology.PolicyMap):
        def __init__(self, colour: str) -> None:
            super().__init__()

    Mine(colour="red")
    with pytest.raises(UnknownNameError, match=r"^PolicyMap\.colour"):
        pyengine.topology.PolicyMap(colour="red")  # type: ignore[call-arg]
