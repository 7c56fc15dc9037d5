"""A case for each public class: what uses one name and drops it again. All names of a case go through one object where
the class keeps names: a queue, a broker, a table."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import importlib
import inspect
import pkgutil
import shutil
import tempfile
import types
import typing
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import pyengine
from pyengine import activemq, rocketmq
from pyengine.backlog.diagnosis.evidence import Evidence, Remark
from pyengine.backlog.simulate import (
    GroupSimulation,
    GroupVariant,
    SimulatedClient,
    SimulatedConsumer,
    Simulation,
    Variant,
    Workload,
    simulate,
)
from pyengine.clock import ManualClock
from pyengine.destinations import parse_destination
from pyengine.rocketmq import MessageQueue, TopicPartition
from pyengine.topology import Policy, PolicyMap, Topology


def public_classes() -> dict[str, type]:
    """Name -> class, of every ``__all__`` of the packages of pyengine."""
    found = {}
    for module in [
        pyengine,
        *(
            importlib.import_module(each.name)
            for each in pkgutil.walk_packages(pyengine.__path__, "pyengine.")
            if "__main__" not in each.name and "_engine" not in each.name
        ),
    ]:
        for name in getattr(module, "__all__", ()):
            if inspect.isclass(getattr(module, name)):
                found[f"{module.__name__}.{name}"] = getattr(module, name)
    return found


class Case:
    """One object through which names go.

    Both are for ``--quick`` alone. dear: one in so many of the names is tried. slack: bytes of what it keeps of the
    last names, up to a limit that is reached before or after the first look.
    """

    dear = 1
    slack = 0

    def __init__(self, names: int) -> None:
        self.names = names
        self.open()

    def open(self) -> None:
        """Make the object."""

    def __call__(self, name: str) -> None:
        """Make, use and drop what has this name."""
        raise NotImplementedError

    def settle(self) -> None:
        """The last name is gone."""

    def close(self) -> None:
        """Drop the object."""


CASES: dict[str, Callable[[int], Case]] = {}


def case(*classes: str, dear: int = 1, slack: int = 0) -> Callable[[type[Case]], type[Case]]:
    """The case of these classes."""

    def add(made: type[Case]) -> type[Case]:
        made.dear, made.slack = dear, slack
        for each in classes:
            CASES[each] = made
        return made

    return add


def plain(use: Callable[[str], object]) -> type[Case]:
    """A case without an object of its own."""

    class Plain(Case):
        def __call__(self, name: str) -> None:
            use(name)

    return Plain


# ---- values, errors, enumerations: nothing but what they are made of


def sample(wanted: object, name: str) -> object:
    """A value of an annotation, made of a name."""
    origin, parts = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is typing.Literal:
        return parts[0]
    if origin in (typing.Union, types.UnionType):
        return sample(parts[0], name)
    if origin is tuple or wanted is tuple:
        if not parts or parts[-1] is Ellipsis:
            return tuple(sample(part, name) for part in parts[:1])
        return tuple(sample(part, name) for part in parts)
    if origin in (list, set, frozenset):
        return origin(sample(part, name) for part in parts[:1])
    if origin is dict:
        return {sample(parts[0], name): sample(parts[1], name)}
    if wanted is str:
        return name
    if wanted in (int, float, bool):
        return wanted(int(name) % 1000 if wanted is not bool else 1)  # type: ignore[operator]
    if wanted is bytes:
        return name.encode()
    if inspect.isclass(wanted) and issubclass(wanted, enum.Enum):
        return next(iter(wanted))
    if (inspect.isclass(wanted) and dataclasses.is_dataclass(wanted)) or hasattr(wanted, "_fields"):
        return made_of(wanted, name)  # type: ignore[arg-type]
    return name


@functools.cache
def hints_of(kind: type) -> dict[str, Any]:
    """Field -> annotation."""
    return typing.get_type_hints(kind)


def made_of(kind: type, name: str) -> object:
    """An object of a dataclass or a named tuple whose every field has the name in it."""
    hints = hints_of(kind)
    fields = getattr(kind, "_fields", None) or [field.name for field in dataclasses.fields(kind) if field.init]
    return kind(**{field: sample(hints[field], name) for field in fields})


ERRORS: dict[str, Callable[[type, str], BaseException]] = {
    "InvalidSelectorError": lambda kind, name: kind(name, 1, name, expected=name, hint=name),
    "InvalidMessageError": lambda kind, name: kind(name, name, name, hint=name),
    "InvalidTopologyError": lambda kind, name: kind(name, file=name, line=3, key=name, value=name, hint=name),
    "MissingColumnError": lambda kind, name: kind(name, [f"{name}s"]),
    "MissingJavaError": lambda kind, name: kind(17, [name]),
    "MQBrokerError": lambda kind, name: kind(1, name),
    "OffsetNotFoundError": lambda kind, name: kind(22, name),
    "OutputExistsError": lambda kind, name: kind(name),
    "MQClientError": lambda kind, name: kind(name),
    "PyengineError": lambda kind, name: kind(name),
    "IllegalStateError": lambda kind, name: kind(name),
    "AllocationError": lambda kind, name: kind(name, name, name),
    "ConfigurationError": lambda kind, name: kind(name, name, name, name),
    "UnknownNameError": lambda kind, name: kind(name, name, name, name),
    "SnapshotError": lambda kind, name: kind(name, 7),
    "JMSError": lambda kind, name: kind(name),
    "InvalidDestinationError": lambda kind, name: kind(name),
    "InvalidClientIDError": lambda kind, name: kind(name),
    "ProtocolError": lambda kind, name: kind(name),
}


def simple_case(kind: type) -> type[Case] | None:
    """The case of a class that is a value, an error, an enumeration or a protocol; None for any other."""
    if issubclass(kind, BaseException):
        make = ERRORS.get(kind.__name__, lambda kind, name: kind(name, name))
        return plain(lambda name: str(make(kind, name)))
    if issubclass(kind, enum.Enum):

        def look_up(name: str) -> None:
            with contextlib.suppress(ValueError):
                kind(name)

        return plain(look_up)
    if getattr(kind, "_is_protocol", False):  # nothing is made of it; asked is whether something is one
        return plain(lambda name: kind.__name__ + name)
    if hasattr(kind, "_fields") or (dataclasses.is_dataclass(kind) and not kind.__init__.__doc__):
        return plain(lambda name: repr(made_of(kind, name)))
    return None


# ---- selectors and messages


case("pyengine.Char")(plain(lambda name: pyengine.Char(chr(1 + int(name) % 0xD000))))


@case("pyengine.Columns", dear=10)
class ColumnsCase(Case):
    def __call__(self, name: str) -> None:
        batch = pyengine.Columns(pa.table({f"p{name}": [1], "t": [name]}))
        assert pyengine.Selector(f"p{name} = 1 AND t = '{name}'").mask(batch).tolist() == [True]


@case("pyengine.Message")
class MessageCase(Case):
    def __call__(self, name: str) -> None:
        message = pyengine.Message({f"p{name}": name}, body=name, group_id=name, type=name)
        assert message.get_string_property(f"p{name}") == name


case("pyengine.MapBody")(plain(lambda name: pyengine.MapBody({f"e{name}": name, "l": [name]}).copy().get_string("l")))
case("pyengine.StreamBody")(plain(lambda name: pyengine.StreamBody([name, name.encode()]).copy().read_string()))
case("pyengine.ObjectBody")(plain(lambda name: pyengine.ObjectBody(name.encode()).copy()))


@case("pyengine.PackedMessages", dear=5)
class PackedCase(Case):
    def __call__(self, name: str) -> None:
        packed = pyengine.PackedMessages([{f"p{name}": name}])
        assert pyengine.Selector(f"p{name} = '{name}'").mask(packed).tolist() == [True]


@case("pyengine.Selector", dear=10)
class SelectorCase(Case):
    def __call__(self, name: str) -> None:
        properties = {f"p{name}": name, "text": name}
        for text in (
            f"p{name} = '{name}' AND text LIKE '{name}%'",
            f"REGEX('{name}', text)",
            f"text IN ('{name}', 'other') OR p{name} LIKE '_{name}%'",
        ):
            assert pyengine.Selector(text).matches(properties)
        assert pyengine.Selector(f"text CONTAINS '{name}'", dialect="rocketmq").matches(properties)


@case("pyengine.Subscriptions", dear=5, slack=700_000)
class SubscriptionsCase(Case):
    def open(self) -> None:
        self.all = pyengine.Subscriptions({"stays": "a = 1"})

    def __call__(self, name: str) -> None:
        self.all.add(name, f"p{name} = '{name}' AND a > {int(name)}")
        self.all.replace(name, f"p{name} = '{name}'")
        assert self.all.match({f"p{name}": name, "a": 1}) == ["stays", name]
        self.all.remove(name)

    def settle(self) -> None:
        self.all.optimize()
        self.all.match({"a": 1})


# ---- ActiveMQ: the core


@case("pyengine.activemq.Queue", "pyengine.activemq.Delivery", dear=4, slack=700_000)
class QueueCase(Case):
    def open(self) -> None:
        self.queue = activemq.Queue()
        self.consumer = self.queue.add_consumer(connection="stays")
        self.queue.add_consumer(selector=pyengine.Selector("a = 2"), name="stays")
        self.queue.send({"a": 1}, target="stays")

    def __call__(self, name: str) -> None:
        queue = self.queue
        guest = queue.add_consumer(
            selector=pyengine.Selector(f"p = '{name}'"), name=name, connection=name, no_local=True
        )
        queue.send({"p": name}, group=f"g{name}", connection=f"c{name}")
        queue.send({"p": name}, target=f"t{name}")
        queue.send({"p": name}, target=name, connection=f"d{name}")
        for delivery in queue.run():
            queue.acknowledge(delivery.consumer, delivery.message, transaction=name)
        queue.commit(name)
        queue.close(guest)
        for handle in queue.handles():
            if queue.object_of_handle(handle).get("p") == name:
                queue.remove_message(handle)
        queue.run()
        queue.remove_group(f"g{name}")
        queue.take_removed()


@case("pyengine.activemq.GroupMap", slack=700_000)
class GroupMapCase(Case):
    def open(self) -> None:
        self.maps = [activemq.GroupMap(kind) for kind in ("cached", "simple", "bucket")]

    def __call__(self, name: str) -> None:
        for groups in self.maps:
            groups.get(name)
            groups.put(name, 1)
            groups.close_group(name, 1)
            groups.put(f"again {name}", 2)
            groups.remove_group(f"again {name}")


@case("pyengine.activemq.SharedValues", dear=10)
class SharedValuesCase(Case):
    def __call__(self, name: str) -> None:
        queue = activemq.Queue()
        queue.send({}, group=name)
        shared = activemq.SharedValues()
        data = queue.snapshot(save=lambda body: b"", shared=shared)
        activemq.Queue.restore(data, load=lambda data: {}, shared=activemq.SharedValues.restore(shared.snapshot()))


case("pyengine.backlog.diagnosis.evidence.Evidence")(
    plain(lambda name: Evidence(remarks=[Remark(name, 1, name, name)]))
)
case("pyengine.activemq.ConnectionOptions")(plain(lambda name: activemq.ConnectionOptions(client_id=name)))
case("pyengine.activemq.RedeliveryPolicy")(
    plain(lambda name: activemq.RedeliveryPolicy(maximum_redeliveries=int(name) % 100))
)


# ---- ActiveMQ: broker and client


class BrokerCase(Case):
    """A broker that goes on, with one connection and one session."""

    dear = 20

    def open(self) -> None:
        self.clock = ManualClock()
        self.broker = activemq.Broker(clock=self.clock)
        self.factory = activemq.ConnectionFactory(broker=self.broker)
        self.connection = self.factory.create_connection()
        self.connection.start()
        self.session = self.connection.create_session()

    def settle(self) -> None:
        self.clock.advance(1000)

    def close(self) -> None:
        self.connection.close()
        self.broker.close()


@case("pyengine.activemq.Broker", dear=40)
class DestinationsCase(BrokerCase):
    def __call__(self, name: str) -> None:
        producer = self.session.create_producer()
        for kind in ("queue", "topic"):
            destination = f"{kind}://{kind}.{name}"
            consumer = self.session.create_consumer(destination)
            producer.send(pyengine.Message({"p": name}, body=name, group_id=name), destination=destination)
            assert consumer.receive_no_wait().body == name
            consumer.close()
        producer.close()
        for kind in ("queue", "topic"):
            self.broker.remove_destination("nobody", parse_destination(f"{kind}://{kind}.{name}")[0])


@case("pyengine.activemq.Connection", "pyengine.activemq.ConnectionFactory", dear=40, slack=500_000)
class ConnectionCase(BrokerCase):
    def __call__(self, name: str) -> None:
        factory = activemq.ConnectionFactory(f"vm://localhost?jms.clientID={name}", broker=self.broker)
        with factory.create_connection() as connection:
            connection.start()
            session = connection.create_session()
            consumer = session.create_consumer("Q")
            session.create_producer("Q").send(pyengine.Message(body=name))
            assert consumer.receive_no_wait().body == name


@case("pyengine.activemq.Session", dear=40, slack=500_000)
class SessionCase(BrokerCase):
    def __call__(self, name: str) -> None:
        with self.connection.create_session(activemq.SESSION_TRANSACTED) as session:
            consumer = session.create_consumer("Q", f"p = '{name}'")
            session.create_producer("Q").send(pyengine.Message({"p": name}, group_id=name))
            session.commit()
            assert consumer.receive_no_wait() is not None
            session.rollback()
            temporary = session.create_temporary_queue()
            session.commit()
            session.delete_temporary(temporary)
        self.broker.purge("Q")


@case("pyengine.activemq.MessageConsumer", dear=20, slack=500_000)  # 1,024 groups have owners
class ConsumerCase(BrokerCase):
    def __call__(self, name: str) -> None:
        producer = self.session.create_producer("Q")
        producer.send(pyengine.Message({"p": name}, group_id=name))
        producer.close()
        consumer = self.session.create_consumer("Q", f"p = '{name}'")
        assert consumer.receive_no_wait() is not None
        consumer.close()


@case("pyengine.activemq.MessageProducer", dear=10, slack=500_000)
class ProducerCase(BrokerCase):
    def open(self) -> None:
        super().open()
        self.consumer = self.session.create_consumer("Q")

    def __call__(self, name: str) -> None:
        producer = self.session.create_producer("Q")
        producer.send(pyengine.Message({f"p{name}": name}, body=name, group_id=name, type=name, correlation_id=name))
        producer.close()
        assert self.consumer.receive_no_wait().body == name


@case("pyengine.activemq.QueueBrowser", dear=20)
class BrowserCase(BrokerCase):
    def open(self) -> None:
        super().open()
        self.session.create_producer("Q").send(pyengine.Message(body="stays"))

    def __call__(self, name: str) -> None:
        with self.session.create_browser("Q", f"p{name} IS NULL") as browser:
            assert len(list(browser)) == 1


@case("pyengine.activemq.TopicSubscriber", dear=40, slack=700_000)  # audits remember the last 2,048 messages
class SubscriberCase(BrokerCase):
    def open(self) -> None:
        self.clock = ManualClock()
        self.broker = activemq.Broker(clock=self.clock)
        self.connection = activemq.ConnectionFactory(
            "vm://localhost?jms.clientID=c", broker=self.broker
        ).create_connection()
        self.connection.start()
        self.session = self.connection.create_session()

    def __call__(self, name: str) -> None:
        subscriber = self.session.create_durable_subscriber("topic://T", name, f"p = '{name}'")
        with self.session.create_producer("topic://T") as producer:
            producer.send(pyengine.Message({"p": name}))
        assert subscriber.receive_no_wait() is not None
        subscriber.close()
        self.session.unsubscribe(name)


# ---- RocketMQ


STRATEGIES = [
    rocketmq.AllocateMessageQueueAveragely,
    rocketmq.AllocateMessageQueueAveragelyByCircle,
    rocketmq.AllocateMessageQueueByConfig,
    rocketmq.AllocateMessageQueueConsistentHash,
    rocketmq.AllocateMessageQueueByMachineRoom,
    rocketmq.AllocateMachineRoomNearby,
]


@case(*(f"pyengine.rocketmq.{each.__name__}" for each in STRATEGIES), "pyengine.rocketmq.AllocationPlan", dear=20)
class AllocationCase(Case):
    def __call__(self, name: str) -> None:
        queues = [MessageQueue(name, f"{name}@a", number) for number in range(2)]
        clients = [f"{name}@1", f"{name}@2"]
        averagely = rocketmq.AllocateMessageQueueAveragely()

        class Rooms:
            def broker_deploy_in(self, queue: MessageQueue) -> str:
                return queue.broker_name

            def consumer_deploy_in(self, client_id: str) -> str:
                return client_id

        for strategy in (
            averagely,
            rocketmq.AllocateMessageQueueAveragelyByCircle(),
            rocketmq.AllocateMessageQueueConsistentHash(2),
            rocketmq.AllocateMessageQueueByConfig(tuple(queues)),
            rocketmq.AllocateMessageQueueByMachineRoom(frozenset([name])),
            rocketmq.AllocateMachineRoomNearby(averagely, Rooms()),
        ):
            rocketmq.allocate(strategy, name, clients[0], queues, clients)
        rocketmq.allocate_topics(averagely, queues, clients).with_clients([f"{name}@3"]).skew()


case("pyengine.rocketmq.Message")(
    plain(lambda name: rocketmq.Message(f"t{name}", name.encode(), tags=name, keys=name, properties={name: name}))
)
case("pyengine.rocketmq.MessageExt")(
    plain(lambda name: rocketmq.MessageExt(f"t{name}", name.encode(), properties={name: name}, broker_name=name))
)
case("pyengine.rocketmq.MessageSelector", "pyengine.rocketmq.SubscriptionData")(
    plain(lambda name: rocketmq.build_subscription(f"t{name}", rocketmq.tag(f"{name} || b{name}")))
)
case("pyengine.rocketmq.MessageListenerConcurrently")(
    plain(lambda name: rocketmq.MessageListenerConcurrently(lambda messages, context: name))
)
case("pyengine.rocketmq.MessageListenerOrderly")(
    plain(lambda name: rocketmq.MessageListenerOrderly(lambda messages, context: name))
)
case("pyengine.rocketmq.MessageQueueListener")(plain(lambda name: rocketmq.MessageQueueListener()))
case("pyengine.rocketmq.ClientConfig")(plain(lambda name: rocketmq.ClientConfig(instance_name=name, namesrv_addr=name)))
case("pyengine.rocketmq.ConsumerParameters")(plain(lambda name: rocketmq.ConsumerParameters(instance_name=name)))


@case("pyengine.rocketmq.ControllableOffset")
class OffsetCase(Case):
    def __call__(self, name: str) -> None:
        offset = rocketmq.ControllableOffset(int(name))
        offset.update(int(name) + 1)


class Offset:
    """What a process queue asks of a message."""

    def __init__(self, number: int) -> None:
        self.queue_offset = number
        self.body = str(number)


@case("pyengine.rocketmq.ProcessQueue")
class ProcessQueueCase(Case):
    def open(self) -> None:
        self.queue = rocketmq.ProcessQueue()

    def __call__(self, name: str) -> None:
        message = Offset(int(name))
        self.queue.put_messages([message])
        self.queue.take_messages(1)
        if int(name) % 2:
            self.queue.make_message_to_consume_again([message])
            self.queue.take_messages(1)
        self.queue.commit()


@case("pyengine.rocketmq.RecordWorker", "pyengine.rocketmq.TopicPartition", dear=10)
class RecordsCase(Case):
    def open(self) -> None:
        self.worker = rocketmq.RecordWorker()
        self.worker.assign([TopicPartition("stays", 0)])

    def __call__(self, name: str) -> None:
        for queue, offset in ((TopicPartition("stays", 0), int(name)), (TopicPartition(name, 0), 0)):
            if queue.topic == name:
                self.worker.assign([queue])
            record = types.SimpleNamespace(
                topic=queue.topic, partition=0, offset=offset, key=name.encode(), value=name.encode()
            )
            self.worker.put([record])
            self.worker.complete(self.worker.take())
            self.worker.commits()
        self.worker.revoke([TopicPartition(name, 0)])


class ClusterCase(Case):
    """A broker in memory that goes on."""

    dear = 40

    def open(self) -> None:
        self.clock = ManualClock()
        self.broker = rocketmq.Broker(clock=self.clock)
        self.broker.create_topic("T", 1)
        self.producer = rocketmq.Producer(self.broker)
        self.queue = MessageQueue("T", "broker-a", 0)

    def settle(self) -> None:
        self.clock.advance(200_000)

    def close(self) -> None:
        self.broker.close()


@case(
    "pyengine.rocketmq.Cluster",
    "pyengine.rocketmq.ClusterAdmin",
    "pyengine.rocketmq.SendOptions",
    "pyengine.rocketmq.TransactionMQProducer",
    dear=400,
)
class NetworkCase(Case):
    """Clusters that nobody asks anything of: no connection is made."""

    def __call__(self, name: str) -> None:
        rocketmq.Cluster(f"{name}.example:9876").close()
        rocketmq.ClusterAdmin(f"{name}.example:9876").close()
        rocketmq.TransactionMQProducer(
            name,
            namesrv_addr="127.0.0.1:9",
            execute=print,
            check=print,
            send_options=rocketmq.SendOptions(send_msg_timeout=len(name)),
        ).shutdown()


@case("pyengine.rocketmq.Broker", "pyengine.rocketmq.Producer", dear=10)
class StoreCase(ClusterCase):
    def __call__(self, name: str) -> None:
        sent = rocketmq.Producer(self.broker, f"g{name}").send(
            rocketmq.Message("T", name.encode(), tags=name, keys=name, properties={f"p{name}": name})
        )
        assert self.broker.message(self.queue, sent.queue_offset).body == name.encode()
        self.broker.delete_below(self.queue, sent.queue_offset + 1)


@case("pyengine.rocketmq.DefaultLitePullConsumer", dear=100)
class LitePullConsumerCase(ClusterCase):
    def __call__(self, name: str) -> None:
        consumer = rocketmq.DefaultLitePullConsumer("lite", broker=self.broker, instance_name=name)
        consumer.start()
        consumer.assign([self.queue])
        self.clock.advance(1)
        sent = self.producer.send("T", name.encode())
        assert [message.body for message in consumer.poll(1000)] == [name.encode()]
        consumer.commit()
        consumer.shutdown()
        self.broker.delete_below(self.queue, sent.queue_offset + 1)


@case("pyengine.rocketmq.DefaultMQPushConsumer", dear=100)
class PushConsumerCase(ClusterCase):
    """Groups stay, as in the real broker: with each its retry topic and its offsets. Clients and instances go."""

    def __call__(self, name: str) -> None:
        seen: list[str] = []
        consumer = rocketmq.DefaultMQPushConsumer("group", broker=self.broker, instance_name=name)
        consumer.subscribe("T", rocketmq.tag(name))

        def listen(messages: Any, context: Any) -> Any:
            seen.extend(message.tags for message in messages)
            return rocketmq.ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        consumer.register_message_listener(listen)
        consumer.start()
        sent = self.producer.send("T", b"x", tags=name)
        self.clock.advance(10_000)
        consumer.shutdown()
        assert seen == [name]
        self.broker.delete_below(self.queue, sent.queue_offset + 1)


@case("pyengine.rocketmq.RemoteBrokerOffsetStore", dear=10)
class RemoteOffsetsCase(ClusterCase):
    def open(self) -> None:
        super().open()
        self.store = rocketmq.RemoteBrokerOffsetStore(self.broker, "group")

    def __call__(self, name: str) -> None:
        queue = MessageQueue(name, "broker-a", 0)
        self.store.update_offset(queue, 1)
        self.store.remove_offset(queue)


@case("pyengine.rocketmq.LocalFileOffsetStore", dear=100)
class LocalOffsetsCase(Case):
    def open(self) -> None:
        self.folder = tempfile.mkdtemp()

    def __call__(self, name: str) -> None:
        store = rocketmq.LocalFileOffsetStore("client", f"g{name}", directory=self.folder)
        store.update_offset(MessageQueue(name, "b", 0), 1)
        store.persist_all([MessageQueue(name, "b", 0)])
        shutil.rmtree(store.path.parent)

    def close(self) -> None:
        shutil.rmtree(self.folder)


@case("pyengine.rocketmq.ConsumerRunningInfo", "pyengine.rocketmq.ConsumeStats", dear=100)
class RunningInfoCase(ClusterCase):
    def open(self) -> None:
        super().open()
        self.consumer = rocketmq.DefaultMQPushConsumer("group", broker=self.broker)
        self.consumer.subscribe("T")
        self.consumer.register_message_listener(
            lambda messages, context: rocketmq.ConsumeConcurrentlyStatus.CONSUME_SUCCESS
        )
        self.consumer.start()

    def __call__(self, name: str) -> None:
        sent = self.producer.send("T", name.encode(), tags=name)
        self.clock.advance(6000)
        self.consumer.consumer_running_info()
        rocketmq.consume_stats(self.broker, "group")
        self.broker.delete_below(self.queue, sent.queue_offset + 1)

    def close(self) -> None:
        self.consumer.shutdown()
        super().close()


# ---- Topologies and simulations

case("pyengine.topology.Policy", "pyengine.topology.PolicyMap", dear=5)(
    plain(lambda name: PolicyMap((Policy(destination=f"{name}.>"), Policy(destination=f"topic://{name}"))))
)


@case(
    *(
        f"pyengine.topology.{each}"
        for each in ("Topology", "Consumer", "Source", "Steps", "TimeColumn", "DestinationEntry", "BrokerConfiguration")
    ),
    dear=20,
)
class TopologyCase(Case):
    def __call__(self, name: str) -> None:
        topology = Topology.from_text(
            f'[source]\npath = "{name}.csv"\ndestination = "d{name}"\n'
            f'[[consumer]]\nname = "{name}"\ndestination = "q{name}"\nselector = "p = \'{name}\'"\n'
        )
        assert topology.consumers[0].name == name


class PlayedCase(Case):
    """Names that one simulation plays together: to begin one is what takes long."""

    together = 100

    def open(self) -> None:
        self.waiting: list[str] = []

    def __call__(self, name: str) -> None:
        self.waiting.append(name)
        if len(self.waiting) == self.together:
            self.settle()

    def settle(self) -> None:
        if self.waiting:
            self.play(self.waiting)
            self.waiting = []

    def play(self, names: list[str]) -> None:
        """One simulation of all these names."""
        raise NotImplementedError


@case(
    *(f"pyengine.backlog.simulate.{each}" for each in ("SimulatedConsumer", "Variant", "Workload", "Simulation")),
    dear=5,
)
class SimulationCase(PlayedCase):
    def play(self, names: list[str]) -> None:
        consumers = tuple(SimulatedConsumer(name, selector=f"p = '{name}'") for name in names)
        arrivals, service = np.zeros(len(names), np.int64), np.ones(len(names), np.int64)
        workload = Workload(arrivals, service, properties={"p": np.array(names)}, groups=[names[0], *names[:-1]])
        played = simulate(workload, Variant(names[0], consumers).consumers)
        assert isinstance(played, Simulation)


@case(*(f"pyengine.backlog.simulate.{each}" for each in ("SimulatedClient", "GroupVariant", "GroupSimulation")), dear=5)
class GroupSimulationCase(PlayedCase):
    def play(self, names: list[str]) -> None:
        workload = Workload(np.zeros(len(names), np.int64), np.ones(len(names), np.int64))
        clients = tuple(SimulatedClient(name) for name in names)
        played = GroupVariant(names[0], clients, queues=len(names)).play(workload, until=1.0)
        assert isinstance(played, GroupSimulation)


_of_classes = {_kind: CASES[_name] for _name, _kind in public_classes().items() if _name in CASES}
for _name, _kind in public_classes().items():  # a class that a package shows again
    if _name not in CASES and _kind in _of_classes:
        CASES[_name] = _of_classes[_kind]
for _name, _kind in public_classes().items():
    if _name not in CASES and (_simple := simple_case(_kind)) is not None:
        CASES[_name] = _simple
