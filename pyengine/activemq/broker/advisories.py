"""Advisory messages: those that a policy entry asks for, to the topics of ActiveMQ's AdvisoryBroker.

They carry the broker's properties (with its spelling); what the real ones hold besides, the client's command objects,
they do not. They are made if somebody listens. Events (events.py) tell the same to callbacks, and come whether or not
an entry asks for the message.
"""

from __future__ import annotations

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
from pyengine.destinations import ADVISORY, Destination

# The switch of a policy entry for each kind of event that has one.
SWITCHES: dict[type[Event], str] = {
    SlowConsumer: "advisory_for_slow_consumers",
    MessageDiscarded: "advisory_for_discarding_messages",
    MessageDelivered: "advisory_for_delivery",
    MessageConsumed: "advisory_for_consumed",
    NoConsumer: "send_advisory_if_no_consumers",
}


class Advisories:
    """Sends the advisory messages of one broker."""

    def __init__(self, services: BrokerServices, routes: Routes) -> None:
        self._services = services
        self._routes = routes
        self._sent = 0
        self._listeners: set[Subscription] = set()

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
        name = self._services.name
        message = Message(
            {
                "originBrokerName": name,
                "originBrokerId": f"ID:{name}",
                "originBrokerURL": f"vm://{name}",
            },
            type="Advisory",
            message_id=f"ID:{name}-advisory:{self._sent + 1}",
            delivery_mode="NON_PERSISTENT",
        )
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
