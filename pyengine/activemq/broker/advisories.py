"""Advisory messages, to the topics of ActiveMQ's AdvisoryBroker: of connections, consumers, producers and destinations
that come and go, and those that a policy entry asks for.

They carry the broker's properties (with its spelling), and the first kind the command that they report. They are made
if a consumer listens; one that comes late first gets those of what exists. Events (events.py) report the same to
callbacks, and come whether or not an entry asks for the message.
"""

from __future__ import annotations

from dataclasses import replace

from pyengine._engine.message.message import Message
from pyengine.activemq.broker.events import (
    Event,
    MessageConsumed,
    MessageDelivered,
    MessageDiscarded,
    NoConsumer,
    SlowConsumer,
)
from pyengine.activemq.broker.services import BrokerServices, Routes
from pyengine.activemq.broker.subscription import Subscription
from pyengine.activemq.transport.commands import ConnectionInfo, DestinationInfo, ProducerInfo, RemoveInfo
from pyengine.destinations import ADVISORY, Destination

# The switch of a policy entry for each kind of event that has one.
SWITCHES: dict[type[Event], str] = {
    SlowConsumer: "advisory_for_slow_consumers",
    MessageDiscarded: "advisory_for_discarding_messages",
    MessageDelivered: "advisory_for_delivery",
    MessageConsumed: "advisory_for_consumed",
    NoConsumer: "send_advisory_if_no_consumers",
}


def _is_advisory(destination: Destination) -> bool:
    return destination.kind == "topic" and destination.name.startswith(ADVISORY)


def _kind(destination: Destination) -> str:
    return f"{'Queue' if destination.kind.endswith('queue') else 'Topic'}.{destination.name}"


def _topic_of_kind(destination: Destination) -> str:
    return {"queue": "Queue", "topic": "Topic", "temp-queue": "TempQueue", "temp-topic": "TempTopic"}[destination.kind]


class Advisories:
    """Sends the advisory messages of one broker."""

    def __init__(self, services: BrokerServices, routes: Routes) -> None:
        self._services = services
        self._routes = routes
        self._sent = 0
        self._listeners: set[Subscription] = set()
        self._connections: dict[str, ConnectionInfo] = {}
        self._consumers: dict[str, Subscription] = {}
        self._producers: dict[str, ProducerInfo] = {}

    # Connections, consumers, producers, destinations (AdvisoryBroker.addConnection and so on)

    def connection_added(self, info: ConnectionInfo) -> None:
        """A client connected."""
        shown = replace(info, password=None)
        self._connections[info.connection_id] = shown
        self._report("Connection", shown)

    def connection_removed(self, connection_id: str) -> None:
        """A client left."""
        if self._connections.pop(connection_id, None) is not None:
            self._report("Connection", RemoveInfo("connection", connection_id))

    def consumer_added(self, subscription: Subscription) -> None:
        """A consumer came. A listener to advisories gets those of what exists; of another one the listeners get one."""
        destination = subscription.info.destination
        if any(
            each.kind == "topic" and (each.is_pattern or each.name.startswith(ADVISORY))
            for each in subscription.patterns
        ):
            self._listeners.add(subscription)
        if _is_advisory(destination):
            self._tell(subscription)
        else:
            self._consumers[subscription.info.consumer_id] = subscription
            self._report(f"Consumer.{_kind(destination)}", subscription.info, consumers=destination)

    def consumer_removed(self, subscription: Subscription) -> None:
        """A consumer left."""
        self._listeners.discard(subscription)
        if self._consumers.pop(subscription.info.consumer_id, None) is not None:
            destination = subscription.info.destination
            gone = RemoveInfo("consumer", subscription.info.consumer_id)
            self._report(f"Consumer.{_kind(destination)}", gone, consumers=destination)

    def producer_added(self, info: ProducerInfo) -> None:
        """A producer of one destination came."""
        if info.destination is not None and not _is_advisory(info.destination):
            self._producers[info.producer_id] = info
            self._report(f"Producer.{_kind(info.destination)}", info, producers=info.destination)

    def producer_removed(self, producer_id: str) -> None:
        """A producer left."""
        info = self._producers.pop(producer_id, None)
        if info is not None and info.destination is not None:
            gone = RemoveInfo("producer", producer_id)
            self._report(f"Producer.{_kind(info.destination)}", gone, producers=info.destination)

    def producers_removed(self, connection_id: str) -> None:
        """The producers of a connection left."""
        for info in [each for each in self._producers.values() if each.connection_id == connection_id]:
            self.producer_removed(info.producer_id)

    def destination_added(self, destination: Destination) -> None:
        """A destination was made."""
        if not _is_advisory(destination):
            self._report(_topic_of_kind(destination), DestinationInfo(destination))

    def destination_removed(self, destination: Destination) -> None:
        """A destination was removed."""
        if not _is_advisory(destination):
            self._report(_topic_of_kind(destination), DestinationInfo(destination, removed=True))

    def forget(self) -> None:
        """The broker closes."""
        self._listeners.clear()
        self._consumers.clear()

    def _tell(self, listener: Subscription) -> None:
        """Report what is there to a consumer of advisories that comes now."""
        if any(each.name == f"{ADVISORY}Connection" for each in listener.patterns):
            for connection in self._connections.values():
                self._report("Connection", connection, listener=listener)
        kinds = {f"{ADVISORY}{each}" for each in ("Queue", "Topic", "TempQueue", "TempTopic")}
        if any(each.name in kinds for each in listener.patterns):
            for destination in list(self._routes.destinations):
                if not _is_advisory(destination):
                    self._report(_topic_of_kind(destination), DestinationInfo(destination), listener=listener)
        if any(each.name.startswith(f"{ADVISORY}Producer.") for each in listener.patterns):
            for info in self._producers.values():
                if info.destination is not None:
                    name = f"Producer.{_kind(info.destination)}"
                    self._report(name, info, producers=info.destination, listener=listener)
        if any(each.name.startswith(f"{ADVISORY}Consumer.") for each in listener.patterns):
            for consumer in self._consumers.values():
                destination = consumer.info.destination
                name = f"Consumer.{_kind(destination)}"
                self._report(name, consumer.info, consumers=destination, listener=listener)

    def _report(
        self,
        name: str,
        command: object,
        *,
        consumers: Destination | None = None,
        producers: Destination | None = None,
        listener: Subscription | None = None,
    ) -> None:
        """Send one to its topic. consumers, producers: the destination whose consumers or producers it counts.
        listener: the only consumer that gets it."""
        topic = Destination(f"{ADVISORY}{name}", "topic")
        if not any(each.covers(topic) for each in (self._listeners if listener is None else (listener,))):
            return
        message = self._message()
        message.data_structure = command
        if consumers is not None:
            count = sum(consumers == each.info.destination for each in self._consumers.values())
            message.set_int_property("consumerCount", count)
        if producers is not None:
            count = sum(producers == each.destination for each in self._producers.values())
            message.set_int_property("producerCount", count)
        if listener is not None:
            message.target_consumer_id = listener.info.consumer_id
        self._sent += 1
        self._routes.route(topic, message, self._services.clock.now())

    def _message(self) -> Message:
        name = self._services.name
        return Message(
            {
                "originBrokerName": name,
                "originBrokerId": f"ID:{name}",
                "originBrokerURL": f"vm://{name}",
            },
            type="Advisory",
            message_id=f"ID:{name}-advisory:1:0:0:{self._sent + 1}",
            delivery_mode="NON_PERSISTENT",
            priority=0,
        )

    # What a policy entry asks for

    def fire(self, event: Event) -> None:
        """Send the advisory message of an event if the policy entry of its destination asks for one."""
        switch = SWITCHES.get(type(event)) if self._listeners else None
        if switch is None or event.destination.name.startswith(ADVISORY):
            return
        found = self._routes.destinations.get(event.destination)
        asked = found is not None and found.policy is not None and getattr(found.policy, switch)
        # A queue tells of its slow consumers whatever the entry says (Queue.doActualDispatch).
        if not asked and not (isinstance(event, SlowConsumer) and event.destination.kind.endswith("queue")):
            return
        if isinstance(event, NoConsumer):
            if not event.message.persistent:
                self._send(event, event.message.copy())
            return
        message = self._message()
        if isinstance(event, (MessageDiscarded, MessageDelivered, MessageConsumed)):
            message.set_string_property("orignalMessageId", event.message.message_id)
            message.set_string_property("orignalDestination", str(event.destination))
        if isinstance(event, (SlowConsumer, MessageDiscarded)):
            message.set_string_property("consumerId", event.consumer.consumer_id)
        if isinstance(event, MessageDiscarded):
            message.set_int_property("discardedCount", event.count)
        self._send(event, message)

    def _send(self, event: Event, message: Message) -> None:
        kind = "Queue" if event.destination.kind.endswith("queue") else "Topic"
        topic = Destination(f"{ADVISORY}{type(event).__name__}.{kind}.{event.destination.name}", "topic")
        if any(each.covers(topic) for each in self._listeners):
            self._sent += 1
            self._routes.route(topic, message, self._services.clock.now())
