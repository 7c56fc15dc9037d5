"""What a release pickles: an object of every class that can be pickled, and what an object means as plain values."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

import pyengine
import pyengine.errors
from pyengine import activemq, rocketmq
from pyengine.activemq.broker import events
from pyengine.activemq.transport import commands
from pyengine.backlog.findings import Finding, Severity, say
from pyengine.clock import ManualClock
from pyengine.destinations import Destination, DestinationMap
from pyengine.metrics import Metric, MetricKind
from pyengine.rocketmq.tables.dispatch import ConsumerGroup, ConsumerGroups, MessageColumns
from pyengine.topology import Consumer, DestinationEntry, Source, Steps, TimeColumn, Topology, broker, policy

SELECTORS = {
    "comparison": ("region = 'EU' AND price > 100", "activemq"),
    "arithmetic": ("price * 2 + 1 >= 201 OR code LIKE 'A!_%' ESCAPE '!'", "activemq"),
    "sets": ("region NOT IN ('EU', 'US') OR region IS NULL", "activemq"),
    "rocketmq": ("price BETWEEN 1 AND 100 AND region STARTSWITH 'E'", "rocketmq"),
}
ROWS: tuple[dict[str, Any], ...] = (
    {"region": "EU", "price": 250, "code": "A_1"},
    {"region": "US", "price": 100, "code": "B"},
    {"price": 50},
    {"region": "CN"},
)


@cache
def _rooms(package: str) -> tuple[ModuleType, ...]:
    root = importlib.import_module(package)
    found = pkgutil.walk_packages(root.__path__, package + ".")
    return tuple(importlib.import_module(each.name) for each in found)


def core(name: str, beside: str = "") -> Any:
    """A class or function of the core that no public module shows, wherever it lies. beside: what its module has too,
    where two modules have the name.
    """
    for room in _rooms("pyengine._engine"):
        thing = vars(room).get(name)
        if thing is not None and thing.__module__ == room.__name__ and hasattr(room, beside or name):
            return thing
    raise LookupError(name)


def message() -> pyengine.Message:
    """One with a property of every type and most headers."""
    made = pyengine.Message(
        {"i": 1, "s": "ä", "d": 0.1, "t": True, "n": None},
        body=b"\x00\xff",
        destination="orders",
        reply_to="topic://answers",
        type="T",
        correlation_id="c",
        message_id="ID:1:1",
        priority=7,
        timestamp=5,
        expiration=2**60,
        redelivery_counter=2,
        group_id="g",
        group_sequence=-1,
        user_id="u",
    )
    made.set_byte_property("b", -3)
    made.set_short_property("sh", 300)
    made.set_long_property("l", 4)
    made.set_float_property("f", np.float32(1.1))
    made.set_property("c", pyengine.Char("x"))
    made.set_object_property("o", {"list": [1, "two", None]})
    return made


def _groups(factory: str) -> activemq.GroupMap:
    made = activemq.GroupMap(factory)
    for number, name in enumerate(("a", "b", "c", "Ä")):
        made.put(name, number % 3)
    return made


def _frozen() -> rocketmq.ControllableOffset:
    made = rocketmq.ControllableOffset(7)
    made.update_and_freeze(9)
    return made


def _offsets() -> Any:
    made = core("OffsetTable")()
    made.update(rocketmq.MessageQueue("T", "broker-a", 0), 5)
    made.update_and_freeze(rocketmq.MessageQueue("T", "broker-a", 1), 6)
    return made


def _shared() -> activemq.SharedValues:
    shared = activemq.SharedValues()
    queue = activemq.Queue()
    queue.add_consumer(selector=pyengine.Selector("price > 1"))
    queue.send({"price": 2}, group="g")
    queue.snapshot(shared=shared, save=lambda body: b"")
    return shared


def topology() -> Topology:
    """Source, consumers and policies with something of everything."""
    return Topology(
        Source(
            "q.{region}",
            path="rows.parquet",
            id="id",
            group="who",
            priority=Steps("price", ((10.0, 5), (100.0, 9)), below=1, missing=2),
            timestamp=TimeColumn("at", "s", "Europe/Berlin", "delay"),
            order="timestamp",
            properties=("price", "region"),
            types=(("price", "long"),),
        ),
        (
            Consumer("dear", "q.>", "price > 100", prefetch=5, acknowledges=False),
            Consumer("all", "q.EU,q.US", exclusive=True, priority=3, connection="one", no_local=True),
        ),
        (policy.Policy("q.EU", message_group_map_factory_type="simple", dead_letter_strategy=None),),
        policy.Policy("", prioritized_messages=True),
        (DestinationEntry("q.EU", "Europe"),),
        "A title",
        "of all",
        "some.toml",
    )


def configuration() -> broker.BrokerConfiguration:
    """A broker with an entry for each strategy that can be pickled."""
    entries = (
        policy.Policy("a", dead_letter_strategy=policy.SharedDeadLetterStrategy(dead_letter_queue="D")),
        policy.Policy("b", dead_letter_strategy=policy.IndividualDeadLetterStrategy(queue_prefix="D.", expiration=9)),
        policy.Policy("c", dead_letter_strategy=policy.DiscardingDeadLetterStrategy()),
        policy.Policy(
            "topic://a",
            pending_message_limit_strategy=policy.ConstantPendingMessageLimitStrategy(5),
            message_eviction_strategy=policy.OldestMessageWithLowestPriorityEvictionStrategy(7),
            subscription_recovery_policy=policy.FixedCountSubscriptionRecoveryPolicy(3),
            slow_consumer_strategy=policy.AbortSlowConsumerStrategy(max_slow_count=4),
        ),
        policy.Policy(
            "topic://b",
            pending_message_limit_strategy=policy.PrefetchRatePendingMessageLimitStrategy(2.5),
            message_eviction_strategy=policy.UniquePropertyMessageEvictionStrategy("id"),
            subscription_recovery_policy=policy.FixedSizedSubscriptionRecoveryPolicy(100),
            slow_consumer_strategy=policy.AbortSlowAckConsumerStrategy(max_time_since_last_ack=9),
        ),
        policy.Policy("topic://c", subscription_recovery_policy=policy.LastImageSubscriptionRecoveryPolicy()),
        policy.Policy("topic://d", subscription_recovery_policy=policy.TimedSubscriptionRecoveryPolicy(8)),
        policy.Policy("topic://e", subscription_recovery_policy=policy.NoSubscriptionRecoveryPolicy()),
    )
    return broker.BrokerConfiguration(
        "one",
        policies=policy.PolicyMap(entries, policy.Policy("", queue_prefetch=10)),
        virtual_destinations=(
            policy.VirtualTopic("VirtualTopic.>", selector_aware=True),
            policy.CompositeQueue("all", (policy.FilteredDestination("some", "price > 1"), "rest")),
            policy.CompositeTopic("topics", ("queue://kept",), forward_only=False),
        ),
        destinations=(Destination("orders"),),
        redelivery_plugin=policy.RedeliveryPlugin((("orders", activemq.RedeliveryPolicy(redelivery_delay=2)),)),
        not_modelled=(broker.NotModelled("a.xml", 3, "policyEntry", "memoryLimit", "1mb", "no memory", False),),
    )


def objects() -> dict[str, Any]:
    """By name: what is pickled, of each class that can be."""
    orders = Destination("orders")
    consumer = commands.ConsumerInfo("c:1:1", "c:1", "c", orders, 10, "price > 1", priority=3)
    tea = pyengine.Message({"price": 1}, body="tea")
    queue = rocketmq.MessageQueue("T", "broker-a", 3)
    sent = rocketmq.MessageExt("T", b"body", tags="A", broker_name="broker-a", queue_id=3, queue_offset=17)
    made: dict[str, Any] = {f"selector {name}": pyengine.Selector(*each) for name, each in SELECTORS.items()}
    made |= {f"subscriptions {dialect}": _subscriptions(dialect) for dialect in ("activemq", "rocketmq")}
    made |= {f"groups {kind}": _groups(kind) for kind in ("cached", "cached?cacheSize=4", "simple", "bucket")}
    made |= {
        "message": message(),
        "char": pyengine.Char("x"),
        "packed": pyengine.PackedMessages(ROWS),
        "packed of messages": pyengine.PackedMessages([message()], names=["i", "s", "JMSPriority"]),
        "delivery": activemq.Delivery(1, 2, {"price": 3}, 4, True),
        "topic delivery": core("TopicDelivery")(1, 2, {"price": 3}, 4, 5),
        "topic event": core("Event", "TopicDelivery")(core("EventKind").EXPIRED, 1, 2, 3, {"price": 4}, "detail"),
        "redelivery policy": activemq.RedeliveryPolicy(
            maximum_redeliveries=3, use_exponential_back_off=True, back_off_multiplier=1.5
        ),
        "shared values": _shared(),
        "dispatched": core("MessageDispatch")("c:1:1", orders, tea, 2),
        "acknowledgement": core("MessageAck")("c:1:1", orders, activemq.AckKind.STANDARD, "ID:2", "ID:1", 2, "TX:1"),
        "forwarding": core("Forwarding")([pyengine.Selector("price > 1"), None], send_when_not_matched=True),
        "java pattern": core("JavaPattern")("a+b"),
        "path": core("Path")("//price"),
        "tree": core("parse")("price > 1 AND region = 'EU'", "activemq"),
        "offset": rocketmq.ControllableOffset(7),
        "offset that is frozen": _frozen(),
        "offsets": _offsets(),
        "delay levels": core("DelayLevels")("1s 5s 1m"),
        "no pending limit": core("PendingLimit")(),
        "constant pending limit": core("ConstantPendingLimit")(5),
        "pending limit by prefetch": core("PrefetchRatePendingLimit")(2.5),
        "eviction": core("Eviction")(high_watermark=5),
        "eviction of the oldest": core("OldestEviction")(expiry_check=False),
        "eviction by priority": core("LowestPriorityEviction")(high_watermark=6),
        "eviction by property": core("UniquePropertyEviction")("id", high_watermark=7),
        "eviction by a function": core("CustomEviction")(sorted, high_watermark=8),
        "recovery": core("Recovery")(),
        "no recovery": core("NoRecovery")(),
        "recovery by count": core("FixedCountRecovery")(3),
        "recovery by size": core("FixedSizedRecovery")(1000),
        "recovery of the last": core("LastImageRecovery")(),
        "recovery by time": core("TimedRecovery")(5),
        "recovery by query": core("QueryRecovery")(sorted, callable),
        "orderly verdict": core("OrderlyVerdict")(3, 1000, (("warn", "later"),), 5),
        "pull verdict": core("PullVerdict")(3, 50, (("warn", "flow control"),), "problem"),
        "rate": core("RateSnapshot")(10, 2.5, 4, 2.5),
        "starting point": core("StartingPoint")(5, "max"),
        "topology": topology(),
        "configuration": configuration(),
        "destination": Destination("orders", "topic", (("consumer.prefetchSize", "5"),)),
        "destination map": _destinations(),
        "connection options": activemq.ConnectionOptions(
            client_id="me", prefetch_policy=activemq.PrefetchPolicy(queue_prefetch=3)
        ),
        "message query": rocketmq.sql("price > 1"),
        "tags": rocketmq.tag("A || B"),
        "rocketmq message": rocketmq.Message("T", b"body", tags="A", keys="k", properties={"price": "1"}),
        "stored message": sent,
        "queue": queue,
        "allocation": rocketmq.allocate_topics("AVG", [queue], ["one", "two"]),
        "group of consumers": ConsumerGroups(
            [queue], [ConsumerGroup("g", ["one"], {"T": "A || B"}, "AVG")], MessageColumns(tags="tag")
        ),
        "subscription": rocketmq.build_subscription("T", "A || B", 5),
        "client": rocketmq.ClientConfig(instance_name="one"),
        "consumer": rocketmq.ConsumerParameters(pull_batch_size=8, consume_timestamp="20260101000000"),
        "pull request": rocketmq.PullMessageRequest("one", "g", queue, 5),
        "pull result": rocketmq.PullResult(rocketmq.PullStatus.FOUND, 6, 0, 9, (sent,)),
        "send result": rocketmq.SendResult(rocketmq.SendStatus.SEND_OK, "ID", "0A", queue, 5),
        "offset wrapper": rocketmq.OffsetWrapper(9, 5, 6, 4, 1, 1000, rocketmq.LastConsume(1)),
        "consume status": rocketmq.ConsumeStatus(pull_rt=1.5, consume_failed_msgs=2),
        "strategies": [
            rocketmq.AllocateMessageQueueAveragely(),
            rocketmq.AllocateMessageQueueAveragelyByCircle(),
            rocketmq.AllocateMessageQueueByConfig([queue]),
            rocketmq.AllocateMessageQueueByMachineRoom({"room"}),
            rocketmq.AllocateMessageQueueConsistentHash(),
        ],
        "partition": rocketmq.TopicPartition("T", 3),
        "finding": Finding("A1", Severity(1), "orders", (say("{n} messages wait", n=3),), say("look"), "Queue"),
        "metric": Metric("pyengine_x", MetricKind.GAUGE, "help", 2.5, {"queue": "orders"}),
        "clock": ManualClock(5),
        "connection": commands.ConnectionInfo("c", "me"),
        "pull": commands.MessagePull("c:1:1", orders, 5),
        "control": commands.ConsumerControl("c:1:1"),
        "advisories": [
            events.ConsumerStarted(orders, consumer),
            events.ConsumerClosed(orders, consumer),
            events.SlowConsumer(orders, consumer),
            events.ConsumerAborted(orders, consumer, True),
            events.MessageDiscarded(orders, tea, consumer, 3),
            events.MessageDelivered(orders, tea),
            events.MessageConsumed(orders, tea),
            events.MessageExpired(orders, tea),
            events.DeadLetter(orders, tea, Destination("ActiveMQ.DLQ"), "cause"),
            events.Redelivery(orders, tea, 1000, 2),
            events.NoConsumer(orders, tea),
            events.SelectorFailed(orders, tea, consumer, "error"),
        ],
        "view": activemq_view(),
        "errors": errors(),
        "members of enumerations": members(),
        "public names": public_names(),
    }
    return made


def _subscriptions(dialect: Any) -> pyengine.Subscriptions[Any]:
    made = pyengine.Subscriptions({"a": "price > 100", ("b", 1): "region = 'EU'"}, dialect=dialect, on_error="reject")
    made.add(3, "price < 60")
    return made


def _destinations() -> DestinationMap[int]:
    return DestinationMap([(Destination("a.>"), 1), (Destination("a.b"), 2), (Destination("a.*", "topic"), 3)])


def activemq_view() -> Any:
    """What an administrator sees of a queue with a message that waits."""
    with activemq.Broker(clock=ManualClock()) as made:
        with activemq.ConnectionFactory(broker=made).create_connection() as connection:
            session = connection.create_session(activemq.AUTO_ACKNOWLEDGE)
            session.create_producer("orders").send(pyengine.Message({"price": 1}, body="tea"))
        return made.view("orders")


def errors() -> list[Exception]:
    """One of each exception."""
    the = pyengine.errors
    return [
        the.PyengineError("x"),
        the.InvalidSelectorError("a >", 3, "ends", expected="a value", hint="write one"),
        the.SelectorEvaluationError("a > 1", "overflow", 3),
        the.InvalidMessageError("priority", 12, "too large", hint="0 to 9"),
        the.MissingColumnError("a", ("b", "c"), "the batch"),
        the.UnsupportedColumnError("a", "list", "cast it"),
        the.InvalidTopologyError("wrong", file="f.toml", line=3, key="k", value=5, hint="do"),
        the.AllocationError("queues", [], "empty"),
        the.InvalidSourceError("f", "missing", "give one"),
        the.OutputError("f", "full"),
        the.IllegalStateError("closed"),
        the.SnapshotError("damaged", 7),
        the.JMSError("x"),
        the.InvalidDestinationError("x"),
        the.InvalidClientIDError("x"),
        the.ConfigurationError("prefetch", "x", "no number", "give one"),
        the.StoreError("broker.db", "damaged"),
        the.MQClientError("x", 23),
        the.NullArgumentError("topic"),
        the.MQBrokerError(14, "full"),
        the.OffsetNotFoundError(22, "none"),
        the.MissingExtraError("spark", "pyspark"),
        the.MissingJavaError(17, ("java 8",)),
        the.OutputExistsError("out"),
    ]


def members() -> list[Enum]:
    """The first member of each enumeration of the core, the facade and the command line."""
    found = {
        thing
        for room in _rooms("pyengine")
        if room.__name__ != "pyengine.__main__"
        for thing in vars(room).values()
        if isinstance(thing, type) and issubclass(thing, Enum) and thing.__module__.startswith("pyengine.")
    }
    return [next(iter(each)) for each in sorted(found, key=lambda each: (each.__module__, each.__qualname__))]


def public_names() -> dict[str, Any]:
    """Classes and functions of the core that public modules show: a pickle has them by name, as of a worker's task."""
    shown: dict[str, Any] = {}
    for module in (pyengine, activemq, rocketmq):
        for name in module.__all__:
            thing = getattr(module, name)
            where = getattr(thing, "__module__", None)
            if isinstance(where, str) and where.startswith("pyengine.") and callable(thing):
                shown[f"{module.__name__}.{name}"] = thing
    return shown


def meaning(thing: Any) -> Any:
    """What an object says, as JSON can keep it: values that are not defaults.

    Names of classes may change and are not part of it.
    """
    for kinds, words in _MEANINGS:
        if isinstance(thing, kinds):
            return words(thing)
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        values = {field: getattr(thing, field.name) for field in dataclasses.fields(thing)}
        return {field.name: meaning(value) for field, value in values.items() if not _is_default(field, value)}
    if callable(thing) and hasattr(thing, "__name__"):
        return thing.__name__
    if hasattr(thing, "items"):
        return meaning(dict(thing.items()))
    if hasattr(thing, "route"):
        return {"routes": [meaning(thing.route(row)) for row in ROWS]} | _attributes(thing)
    return _attributes(thing) or type(thing).__name__


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    made = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
    return type(made) is type(value) and bool(made == value)


def _attributes(thing: Any) -> dict[str, Any]:
    """What is no method of it."""
    values = {name: getattr(thing, name) for name in dir(thing) if not name.startswith("_")}
    return {name: meaning(value) for name, value in values.items() if getattr(value, "__self__", None) is not thing}


def _truths(selector: pyengine.Selector) -> dict[str, Any]:
    return {
        "text": selector.text,
        "dialect": selector.dialect,
        "answers": [selector.evaluate(row) for row in ROWS],
    }


def _properties(each: pyengine.Message) -> dict[str, Any]:
    return {
        "types": each.property_types(),
        "properties": {name: meaning(value) for name, value in each.properties().items()},
        "headers": {name: meaning(value) for name, value in each.attributes().items()},
    }


_MEANINGS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (Enum, lambda each: each.name),
    (bytes, lambda each: each.hex()),
    (pyengine.Char, lambda each: {"char": str(each)}),
    ((bool, int, float, str, type(None)), lambda each: each if isinstance(each, bool | None) else _plain(each)),
    (np.ndarray, lambda each: each.tolist()),
    (np.generic, lambda each: each.item()),
    (pyengine.Selector, _truths),
    (pyengine.Message, _properties),
    (
        pyengine.Subscriptions,
        lambda each: {
            "keys": meaning(each.keys()),
            "texts": [each[key].text for key in each],
            "dialect": each.dialect,
            "on_error": each.on_error,
            "matches": [sorted(map(str, each.match(row))) for row in ROWS],
        },
    ),
    (pyengine.PackedMessages, lambda each: [meaning(each.row(index)) for index in range(len(each))]),
    (activemq.GroupMap, lambda each: {"owners": each.owners(), "kind": each.kind, "factory": each.factory}),
    (activemq.SharedValues, lambda each: each.snapshot().hex()),
    (
        DestinationMap,
        lambda each: [
            each.get(Destination(name, kind)) for name, kind in (("a.b", "queue"), ("a.c", "queue"), ("a.x", "topic"))
        ],
    ),
    (Topology, lambda each: {"text": each.to_text(), "file": each.file}),
    (BaseException, lambda each: {"text": str(each), **{k: meaning(v) for k, v in vars(each).items()}}),
    (ManualClock, lambda each: each.now()),
    (datetime, lambda each: each.astimezone(UTC).isoformat()),
    (Mapping, lambda each: {str(key): meaning(value) for key, value in each.items()}),
    (frozenset | set, lambda each: sorted(map(meaning, each))),
    (list | tuple, lambda each: [meaning(value) for value in each]),
)


def _plain(value: Any) -> Any:
    return next(kind(value) for kind in (int, float, str) if isinstance(value, kind))


_VERSIONS = re.compile(r"(?<=\w)>=[\d.]+(?:,<[\d.]+)?(?=')")


def says(found: Any, meant: Any) -> bool:
    """Whether a meaning has everything of another, which may be of a release whose classes had fewer fields."""
    if isinstance(found, dict) and isinstance(meant, dict):
        return all(name in found and says(found[name], value) for name, value in meant.items())
    if isinstance(found, list) and isinstance(meant, list):
        return len(found) == len(meant) and all(map(says, found, meant))
    if isinstance(found, str) and isinstance(meant, str):  # an install hint has the versions of this release
        return _VERSIONS.sub("", found) == _VERSIONS.sub("", meant)
    return bool(found == meant and type(found) is type(meant))
