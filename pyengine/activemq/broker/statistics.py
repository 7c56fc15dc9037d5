"""Answers to messages that ask for a broker's numbers (StatisticsBroker): MapMessages to their reply-to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy

from pyengine import MapBody
from pyengine._engine.message.message import Message
from pyengine.activemq.broker.views import DestinationView, SubscriptionView
from pyengine.destinations import Destination, destination_of

PREFIX = "ActiveMQ.Statistics."
DESTINATION, BROKER, SUBSCRIPTION = (f"{PREFIX}{each}" for each in ("Destination", "Broker", "Subscription"))
END_OF_LIST = f"{DESTINATION}.List.End.With.Null"


class Numbered(Protocol):
    """The broker, as its numbers are asked of it."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def destination_views(self) -> Iterable[DestinationView]:
        """Of all its destinations."""

    def subscriptions(self) -> Iterable[SubscriptionView]:
        """Of all its consumers."""

    @property
    def connector_urls(self) -> Mapping[str, str]:
        """Scheme -> what it listens on."""

    @property
    def data_directory(self) -> str:
        """Where its store is, empty if it has none."""


class Statistics:
    """The plugin of one broker. route: sends a message of the broker's."""

    def __init__(self, broker: Numbered, route: Callable[[Destination, Message, int], None]) -> None:
        self._broker = broker
        self._route = route
        self._sent = 0

    def answers(self, destination: Destination, message: Message, now: int) -> bool:
        """Whether a message is a question, which is answered now and goes nowhere else."""
        if message.reply_to is None or destination.name[: len(PREFIX)].lower() != PREFIX.lower():
            return False
        name, reply_to = destination.name.lower(), destination_of(message.reply_to, "queue")
        if name.startswith(DESTINATION.lower()):
            self._destinations(destination, message, reply_to, now)
        elif name.startswith(SUBSCRIPTION.lower()):
            for view in self._broker.subscriptions():
                self._send(_of_subscription(view), None, reply_to, now)
        elif name.startswith(BROKER.lower()):
            self._send(self._of_broker(), message.correlation_id, reply_to, now)
        else:
            return False
        return True

    def _destinations(self, asked: Destination, message: Message, reply_to: Destination, now: int) -> None:
        text = asked.name[len(DESTINATION) :]
        query = text.replace(END_OF_LIST, "").strip(".")
        if query:
            wanted = Destination(query, asked.kind)
            for view in list(self._broker.destination_views):
                if view.destination.kind == asked.kind and wanted.matches(view.destination):
                    entries = {"destinationName": str(view.destination), **_numbers([view])}
                    self._send(entries, message.correlation_id, reply_to, now)
        if END_OF_LIST in text:
            self._send(None, message.correlation_id, reply_to, now)

    def _of_broker(self) -> dict[str, Any]:
        urls = self._broker.connector_urls
        return {
            **_numbers(list(self._broker.destination_views)),
            **{f"{each}PercentUsage": 0 for each in ("store", "temp")},
            **{f"{each}{what}": numpy.int64(0) for each in ("store", "temp") for what in ("Usage", "Limit")},
            "openwire": urls.get("tcp", ""),
            **{scheme: urls.get(scheme, "") for scheme in ("stomp", "ssl", "stomp+ssl")},
            "vm": f"vm://{self._broker.name}",
            "dataDirectory": self._broker.data_directory,
        }

    def _send(self, entries: dict[str, Any] | None, correlation: str | None, reply_to: Destination, now: int) -> None:
        name = self._broker.name
        self._sent += 1
        if entries is not None:
            entries = {"brokerName": name, "brokerId": f"ID:{name}", **entries}
        message = Message(
            body=MapBody(entries), type="Advisory", delivery_mode="NON_PERSISTENT", correlation_id=correlation,
            message_id=f"ID:{name}-statistics:1:0:0:{self._sent}", timestamp=now,
        )  # fmt: skip
        self._route(reply_to, message, now)


def _numbers(views: list[DestinationView]) -> dict[str, Any]:
    """The entries of one destination, or the sums of many. There are no limits of memory here."""
    memory = sum(view.memory_usage_byte_count for view in views)
    size = sum(view.queue_size for view in views)
    average = views[0].average_message_size if len(views) == 1 else memory / size if size else 0.0
    long = numpy.int64
    return {
        "size": long(size),
        **{
            name: long(sum(getattr(view, attribute) for view in views))
            for name, attribute in (
                ("enqueueCount", "enqueue_count"), ("dequeueCount", "dequeue_count"),
                ("dispatchCount", "dispatch_count"), ("expiredCount", "expired_count"),
                ("inflightCount", "in_flight_count"), ("consumerCount", "consumer_count"),
                ("producerCount", "producer_count"),
            )
        },
        "messagesCached": long(0), "averageMessageSize": long(average), "memoryPercentUsage": 0,
        "memoryUsage": long(memory), "memoryLimit": long(0),
        **{f"{which}EnqueueTime": 0.0 for which in ("average", "max", "min")},
    }  # fmt: skip


def _of_subscription(view: SubscriptionView) -> dict[str, Any]:
    long = numpy.int64
    session = view.consumer_id.removeprefix(view.connection_id + ":").split(":")[0]
    return {
        "destinationName": view.destination.name, "clientId": view.client_id, "connectionId": view.connection_id,
        "sessionId": long(session if session.lstrip("-").isdecimal() else 0), "selector": view.selector,
        "enqueueCounter": long(view.enqueue_counter), "dequeueCounter": long(view.dequeue_counter),
        "dispatchedCounter": long(view.dispatched_counter),
        "dispatchedQueueSize": long(view.dispatched_queue_size), "prefetchSize": view.prefetch_size,
        "maximumPendingMessageLimit": view.maximum_pending_message_limit, "exclusive": view.exclusive,
        "retroactive": view.retroactive, "slowConsumer": view.slow_consumer,
    }  # fmt: skip
