"""Advisory messages: connections, consumers and producers that come and leave, destinations, and what a policy entry
asks for, sent to the topics of ActiveMQ's AdvisoryBroker.

They carry the broker's properties (with its spelling), and as their data structure the client's command, or the message
without its body. They are made while a consumer of such topics is there; one that comes later is sent what is there
already. Events (events.py) report the same to callbacks, and come whether or not an entry asks for the message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from pyengine._engine.message.message import Message
from pyengine.activemq.broker.events import (
    DeadLetter,
    Event,
    MessageConsumed,
    MessageDelivered,
    MessageDiscarded,
    MessageExpired,
    NoConsumer,
    SlowConsumer,
)
from pyengine.activemq.broker.services import BrokerServices, Routes
from pyengine.activemq.broker.subscription import Subscription
from pyengine.activemq.transport.commands import (
    ConnectionInfo,
    DestinationInfo,
    ProducerInfo,
    RemoveInfo,
    RemoveSubscriptionInfo,
)
from pyengine.destinations import ADVISORY, TYPE_NAMES, Destination, is_advisory

# The switch of a policy entry for each kind of event that has one.
SWITCHES: dict[type[Event], str] = {
    SlowConsumer: "advisory_for_slow_consumers",
    MessageDiscarded: "advisory_for_discarding_messages",
    MessageDelivered: "advisory_for_delivery",
    MessageConsumed: "advisory_for_consumed",
    NoConsumer: "send_advisory_if_no_consumers",
}
# Those that are sent without a switch -> the word of their topic.
ALWAYS: dict[type[Event], str] = {MessageExpired: "Expired", DeadLetter: "MessageDLQd"}


class Counted(Protocol):
    """What the broker counts of a destination, and what it has."""

    def consumers_at(self, destination: Destination) -> int:
        """How many consumers it has, durable subscriptions without their consumer included."""

    def producer_count(self, destination: Destination) -> int:
        """How many producers it has."""


class Advisories:
    """Sends the advisory messages of one broker. consumers: the subscriptions that are there."""

    def __init__(
        self,
        services: BrokerServices,
        routes: Routes,
        counted: Counted,
        consumers: Callable[[], list[Subscription]],
    ) -> None:
        self._services = services
        self._routes = routes
        self._counted = counted
        self._consumers = consumers
        self._sent = 0
        self._listeners: set[Subscription] = set()
        self._connections: dict[str, ConnectionInfo] = {}
        self._producers: dict[str, ProducerInfo] = {}
        self._destinations: dict[Destination, DestinationInfo] = {}

    # Those that listen

    def join(self, subscription: Subscription) -> None:
        """A consumer came."""
        if any(
            each.kind == "topic" and (each.is_pattern or each.name.startswith(ADVISORY))
            for each in subscription.patterns
        ):
            self._listeners.add(subscription)

    def leave(self, subscription: Subscription) -> None:
        """A consumer left."""
        self._listeners.discard(subscription)

    @property
    def listened(self) -> bool:
        """Whether a consumer may be there that hears of what happens."""
        return bool(self._listeners)

    def forget(self) -> None:
        """The broker closes."""
        self._listeners.clear()

    def _replay(self, subscription: Subscription) -> None:
        """Send a new listener what is there already, as far as its topics are those of one kind."""
        names = [each.name.removeprefix(ADVISORY) for each in subscription.patterns]
        target = subscription.info.consumer_id
        if "Connection" in names:
            for connection in self._connections.values():
                self._send("Connection", connection, target=target)
        temporary = all(name in ("TempQueue", "TempTopic") for name in names)
        if temporary or any(name in TYPE_NAMES.values() for name in names):
            for info in list(self._destinations.values()):
                if info.destination.is_temporary or not temporary:
                    self._send(TYPE_NAMES[info.destination.kind], info, target=target)
        if any(name.startswith("Producer.") for name in names):
            for producer in self._producers.values():
                self._of_producer(producer.destination, producer, target)
        if any(name.startswith("Consumer.") for name in names):
            for each in self._consumers():
                if not is_advisory(each.info.destination):
                    self._of_consumer(each.info.destination, each.info, target)

    # What clients do

    def connection_added(self, info: ConnectionInfo) -> None:
        """A client connected. Its password is left out."""
        info = replace(info, password=None)
        self._send("Connection", info)
        self._connections[info.connection_id] = info

    def connection_removed(self, connection_id: str) -> None:
        """A client left."""
        self._send("Connection", RemoveInfo("connection", connection_id))
        self._connections.pop(connection_id, None)

    def consumer_added(self, subscription: Subscription) -> None:
        """A consumer is attached to its destinations."""
        info = subscription.info
        if not is_advisory(info.destination):
            self._of_consumer(info.destination, info)
        elif subscription in self._listeners:
            self._replay(subscription)

    def consumer_removed(self, subscription: Subscription) -> None:
        """A consumer is gone from its destinations."""
        destination = subscription.info.destination
        if not is_advisory(destination) and (not destination.is_temporary or destination in self._destinations):
            self._of_consumer(destination, RemoveInfo("consumer", subscription.info.consumer_id))

    def subscription_removed(self, connection_id: str, client_id: str, name: str, destination: Destination) -> None:
        """A durable subscription was deleted."""
        self._of_consumer(destination, RemoveSubscriptionInfo(connection_id, client_id, name))

    def producer_added(self, info: ProducerInfo) -> None:
        """A producer came."""
        if info.destination is not None and not is_advisory(info.destination):
            self._producers[info.producer_id] = info
            self._of_producer(info.destination, info)

    def producer_removed(self, producer_id: str) -> None:
        """A producer left."""
        info = self._producers.pop(producer_id, None)
        destination = None if info is None else info.destination
        if destination is not None and (not destination.is_temporary or destination in self._destinations):
            self._of_producer(destination, RemoveInfo("producer", producer_id))

    def destination_added(self, destination: Destination, connection_id: str | None) -> None:
        """A destination was made by a command of that connection; None: by the broker itself."""
        if not is_advisory(destination):
            info = self._destinations[destination] = DestinationInfo(destination, False, connection_id or "")
            self._send(TYPE_NAMES[destination.kind], info)

    def destination_removed(self, destination: Destination) -> None:
        """A destination was removed."""
        info = self._destinations.pop(destination, None)
        if info is not None:
            self._send(TYPE_NAMES[destination.kind], replace(info, removed=True))

    def _of_consumer(self, destination: Destination, command: object, target: str | None = None) -> None:
        topic = f"Consumer.{_kind(destination)}.{destination.name}"
        if self._is_heard(topic):
            self._send(topic, command, {"consumerCount": self._counted.consumers_at(destination)}, target)

    def _of_producer(self, destination: Destination | None, command: object, target: str | None = None) -> None:
        assert destination is not None
        topic = f"Producer.{_kind(destination)}.{destination.name}"
        if self._is_heard(topic):
            self._send(topic, command, {"producerCount": self._counted.producer_count(destination)}, target)

    # What happens to messages

    def fire(self, event: Event) -> None:
        """Send the advisory message of an event if the policy entry of its destination asks for one."""
        if not self._listeners or is_advisory(event.destination):
            return
        always = ALWAYS.get(type(event))
        switch = SWITCHES.get(type(event))
        if always is None:
            if switch is None:
                return
            found = self._routes.destinations.get(event.destination)
            asked = found is not None and found.policy is not None and getattr(found.policy, switch)
            # A queue reports its slow consumers without a switch, too (Queue.doActualDispatch).
            if not asked and not (isinstance(event, SlowConsumer) and event.destination.kind.endswith("queue")):
                return
        elif isinstance(event, DeadLetter) and event.sent_to is None:
            return
        name = f"{always or type(event).__name__}.{_kind(event.destination)}.{event.destination.name}"
        if not self._is_heard(name):
            return
        if isinstance(event, NoConsumer):
            if not event.message.persistent:
                topic = Destination(ADVISORY + name, "topic")
                self._routes.route(topic, event.message.copy(), self._services.clock.now())
            return
        properties: dict[str, str | int] = {}
        command: object = None
        if isinstance(event, (MessageDiscarded, MessageDelivered, MessageConsumed, MessageExpired, DeadLetter)):
            command = event.message.copy()
            if command.body is not None:  # of the same kind, and empty
                command.body = type(command.body)()
            if not isinstance(event, DeadLetter):
                properties["orignalMessageId"] = event.message.message_id or ""
            if not isinstance(event, (MessageExpired, DeadLetter)):
                properties["orignalDestination"] = str(event.destination)
        if isinstance(event, (SlowConsumer, MessageDiscarded)):
            properties["consumerId"] = event.consumer.consumer_id
            command = command or event.consumer
        if isinstance(event, MessageDiscarded):
            properties["discardedCount"] = event.count
        self._send(name, command, properties)

    def _is_heard(self, name: str) -> bool:
        """Whether a consumer of that topic is there."""
        if not self._listeners:
            return False
        topic = Destination(ADVISORY + name, "topic")
        return any(each.covers(topic) for each in self._listeners)

    def _send(
        self,
        name: str,
        command: object,
        properties: dict[str, str | int] | None = None,
        target: str | None = None,
    ) -> None:
        if not self._is_heard(name):
            return
        self._sent += 1
        broker = self._services.name
        message = Message(
            {
                "originBrokerName": broker,
                "originBrokerId": f"ID:{broker}",
                "originBrokerURL": f"vm://{broker}",
                **(properties or {}),
            },
            type="Advisory",
            message_id=f"ID:{broker}-advisory:1:0:0:{self._sent}",
            delivery_mode="NON_PERSISTENT",
            priority=0,
            data_structure=command,
            target_consumer_id=target,
        )
        self._routes.route(Destination(ADVISORY + name, "topic"), message, self._services.clock.now())


def _kind(destination: Destination) -> str:
    return "Queue" if destination.kind.endswith("queue") else "Topic"
