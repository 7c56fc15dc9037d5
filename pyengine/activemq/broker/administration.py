"""What an operator asks of the broker: views, why messages wait, pausing, purging, moving (QueueViewMBean)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pyengine import Selector
from pyengine._engine.activemq.queue.hold_reasons import HoldReason, Verdict
from pyengine._engine.message.message import Message
from pyengine.activemq._runtime.outbox import Outbox
from pyengine.activemq.broker.dead_letters import DeadLetters
from pyengine.activemq.broker.destination_metrics import FAMILIES, destination_metrics
from pyengine.activemq.broker.producers import Producers
from pyengine.activemq.broker.queues import QueueDestination
from pyengine.activemq.broker.router import AnyDestination, Router
from pyengine.activemq.broker.subscription import Subscription
from pyengine.activemq.broker.topic_destination import TopicDestination
from pyengine.activemq.broker.topics import Topics
from pyengine.activemq.broker.views import DestinationView, HeldMessage, QueueView, SubscriptionView, TopicView
from pyengine.activemq.core_settings import NO_POLICY
from pyengine.destinations import Destination, destination_of, parse_destination
from pyengine.errors import InvalidDestinationError, JMSError, did_you_mean
from pyengine.metrics import Family, Metric
from pyengine.topology.checked import check


class Administration:
    """The operator's side of a Broker. Destinations are given by name: ``orders`` or ``topic://Prices``."""

    name: str
    outbox: Outbox
    router: Router
    topics: Topics
    dead_letters: DeadLetters
    producers: Producers
    _subscriptions: dict[str, Subscription]

    def settle(self) -> None:
        """Under a manual clock: run what workers were asked to do."""
        raise NotImplementedError

    def is_slow(self, subscription: Subscription) -> bool:
        """Whether a consumer is marked slow."""
        raise NotImplementedError

    def remove_destination(self, connection_id: str, destination: Destination) -> None:
        """See Transport."""
        raise NotImplementedError

    def _release_consumers(self, queue: QueueDestination) -> None:
        raise NotImplementedError

    def _remove_destination(self, destination: Destination) -> None:
        raise NotImplementedError

    # Views

    def destinations(self) -> tuple[Destination, ...]:
        """Every destination, in the order in which they were made."""
        with self.outbox:
            return tuple(self.router.destinations)

    def view(self, destination: str | Destination) -> DestinationView:
        """What JMX shows of a destination: a QueueView or a TopicView.

        Raises InvalidDestinationError if there is none of that name.
        """
        with self.outbox:
            found = self._existing(destination)
            return self._queue_view(found) if isinstance(found, QueueDestination) else self._topic_view(found)

    def subscriptions(self, destination: str | Destination | None = None) -> tuple[SubscriptionView, ...]:
        """What JMX shows of the consumers (of one destination, or all), in the order in which they were added."""
        with self.outbox:
            wanted = None if destination is None else self._existing(destination).destination
            away = (durable for durable in self.topics.durables if not durable.active)
            return tuple(
                self._subscription_view(subscription, number)
                for subscription, number in (
                    *((each, each.topic) for each in self._subscriptions.values()),
                    *((each.subscription, each.number) for each in away),
                )
                if wanted is None or subscription.covers(wanted)
            )

    def metrics(self) -> list[Metric]:
        """Every destination's numbers at this moment, for :mod:`pyengine.metrics`: ``prometheus_text(broker)``."""
        with self.outbox:
            views = [self.view(destination) for destination in self.router.destinations]
        return list(destination_metrics(self.name, views))

    def metric_families(self) -> tuple[Family, ...]:
        """What :meth:`metrics` may have, with no destination too."""
        return FAMILIES

    def held(self, queue: str | Destination) -> tuple[HeldMessage, ...]:
        """The messages of a queue that no consumer has, by arrival, each with the reason."""
        with self.outbox:
            found = self._queue_named(queue)
            return tuple(
                HeldMessage(message.message_id or "", reason, self._name(found, about))
                for handle, message in self._messages(found)
                for reason, about in [found.core.why(handle)]
                if reason is not HoldReason.NOT_HELD
            )

    def verdicts(self, queue: str | Destination, message_id: str) -> dict[str, Verdict]:
        """What each consumer of a queue, in the order in which they are asked, says to a message that waits."""
        check("message_id", message_id, str)
        with self.outbox:
            found = self._queue_named(queue)
            for handle, message in self._messages(found):
                if message.message_id == message_id:
                    verdicts = found.core.why_each(handle)
                    return {found.subscriptions[number].info.consumer_id: each for number, each in verdicts.items()}
            return {}

    def browse(self, queue: str | Destination, selector: str = "") -> tuple[Message, ...]:
        """Copies of the messages of a queue that a selector matches, by arrival; nothing is changed by looking."""
        with self.outbox:
            found = self._queue_named(queue)
            return tuple(message.copy() for _, message in self._matching(found, selector))

    # Changes

    def pause(self, queue: str | Destination) -> None:
        """Stop dispatching from a queue; it still takes messages."""
        with self.outbox:
            self._queue_named(queue).pause()

    def resume(self, queue: str | Destination) -> None:
        """Dispatch again."""
        with self.outbox:
            self._queue_named(queue).resume()
        self.settle()

    def purge(self, queue: str | Destination, maximum: int | None = None) -> int:
        """Remove every message of a queue, also those that consumers hold; returns how many.

        maximum: only so many, by arrival; none if it is 0 or less.
        """
        check("maximum", maximum, int | None)
        with self.outbox:
            found = self._queue_named(queue)
            chosen = self._matching(found, "")[: None if maximum is None else max(0, maximum)]
            number = found.take_off(handle for handle, _ in chosen)
        self.settle()
        return number

    def remove_queue(self, name: str) -> bool:
        """Remove a queue with its messages, as JMX's removeQueue does; False if there is none. Its consumers stay, and
        have the queue of that name that is made next."""
        with self.outbox:
            found = self.router.destinations.get(destination_of(name, "queue"))
            if not isinstance(found, QueueDestination):
                return False
            self._release_consumers(found)
            self._remove_destination(found.destination)
        self.settle()
        return True

    def remove_topic(self, name: str) -> bool:
        """Remove a topic; False if there is none. Raises JMSError while it has consumers or durable subscriptions;
        JMX's removeTopic leaves these without it."""
        with self.outbox:
            topic = destination_of(name, "topic")
            if topic.kind != "topic" or topic not in self.router.destinations:
                return False
            self.remove_destination("", topic)
        return True

    def remove_message(self, queue: str | Destination, message_id: str) -> bool:
        """Remove one message; False if the queue does not have it."""
        check("message_id", message_id, str)
        return self.remove_messages(queue, message_id=message_id) > 0

    def remove_messages(
        self, queue: str | Destination, selector: str = "", *, maximum: int = -1, message_id: str | None = None
    ) -> int:
        """Remove the messages that a selector matches (at most ``maximum``), by arrival; returns how many."""
        with self.outbox:
            found = self._queue_named(queue)
            found.expire_stored()
            chosen = self._chosen(found, selector, maximum, message_id)
            number = found.take_off(handle for handle, _ in chosen)
        self.settle()
        return number

    def copy_messages(
        self,
        queue: str | Destination,
        to: str | Destination,
        selector: str = "",
        *,
        maximum: int = -1,
        message_id: str | None = None,
    ) -> int:
        """Send copies of the messages that a selector matches to another destination; returns how many."""
        return self._send_on("copy", queue, to, selector, maximum, message_id)

    def move_messages(
        self,
        queue: str | Destination,
        to: str | Destination,
        selector: str = "",
        *,
        maximum: int = -1,
        message_id: str | None = None,
    ) -> int:
        """Move the messages that a selector matches to another destination; returns how many."""
        return self._send_on("move", queue, to, selector, maximum, message_id)

    def retry_messages(self, queue: str | Destination) -> int:
        """Move dead letters back to where they came from; returns how many. They may become dead letters again.

        Raises InvalidDestinationError for a queue that is not one of dead letters; see ``set_dlq``.
        """
        moved = 0
        with self.outbox:
            found = self._queue_named(queue)
            if not found.dlq:
                raise InvalidDestinationError(
                    f"{found.destination} is not a dead-letter queue, so that nothing of it is retried; one that had "
                    "its letters before the broker started is one again after set_dlq()"
                )
            found.expire_stored()
            for handle, message in list(self._messages(found)):
                moved += self._retry(found, handle, message)
        self.settle()
        return moved

    def retry_message(self, queue: str | Destination, message_id: str) -> None:
        """Move one message of any queue back to where it came from, whether it is a dead letter or not.

        Raises JMSError if the queue does not have it, and for one that came from nowhere else.
        """
        check("message_id", message_id, str)
        with self.outbox:
            found = self._queue_named(queue)
            chosen = self._chosen(found, "", 1, message_id)
            if not chosen:
                raise JMSError(f"{found.destination} has no message {message_id!r}")
            if not self._retry(found, *chosen[0]):
                raise JMSError(f"message {message_id!r} of {found.destination} has no original destination")
        self.settle()

    def _retry(self, queue: QueueDestination, handle: int, message: Message) -> bool:
        """Move a message back to where it came from; False: from nowhere else."""
        if message.original_destination is None:
            return False
        origin = destination_of(message.original_destination, "queue")
        self._forward("move", queue, handle, message, origin)
        return True

    def set_dlq(self, queue: str | Destination) -> None:
        """Let a queue count as one of dead letters (others: from their first dead letter to the broker's end)."""
        with self.outbox:
            self._queue_named(queue).dlq = True

    def remove_message_group(self, queue: str | Destination, group: str) -> None:
        """Forget the owner of a message group; its next message goes to the first consumer in order."""
        check("group", group, str)
        with self.outbox:
            core = self._queue_named(queue).core
            core.share()
            core.remove_group(group)
            core.note()

    def remove_message_groups(self, queue: str | Destination) -> None:
        """Forget the owners of all message groups of a queue."""
        with self.outbox:
            core = self._queue_named(queue).core
            core.share()
            core.remove_all_groups()
            core.note()

    # How

    def _existing(self, destination: str | Destination) -> AnyDestination:
        name = destination_of(destination, "queue")
        if "," in name.name:
            raise InvalidDestinationError(f"{name} names several destinations; ask for one at a time")
        found = self.router.destinations.get(name)
        if found is None:
            known = [str(each) for each in self.router.destinations]
            hint = did_you_mean(str(name), known)
            raise InvalidDestinationError(f"there is no destination {name}" + (f"; {hint}" if hint else ""))
        return found

    def _queue_named(self, destination: str | Destination) -> QueueDestination:
        found = self._existing(destination)
        if not isinstance(found, QueueDestination):
            raise InvalidDestinationError(f"{found.destination} is not a queue")
        return found

    def _messages(self, queue: QueueDestination) -> Iterator[tuple[int, Message]]:
        queue.load_all()
        for handle in queue.core.handles():
            yield handle, queue.core.object_of_handle(handle)

    def _matching(self, queue: QueueDestination, selector: str) -> list[tuple[int, Message]]:
        check("selector", selector, str)
        wanted = Selector(selector) if selector else None
        return [
            (handle, message) for handle, message in self._messages(queue) if wanted is None or wanted.matches(message)
        ]

    def _chosen(
        self, queue: QueueDestination, selector: str, maximum: int, message_id: str | None
    ) -> list[tuple[int, Message]]:
        check("maximum", maximum, int)
        check("message_id", message_id, str | None)
        found = self._matching(queue, selector)
        if message_id is not None:
            found = [(handle, message) for handle, message in found if message.message_id == message_id]
        return found if maximum <= 0 else found[:maximum]

    def _send_on(
        self,
        how: Literal["copy", "move"],
        queue: str | Destination,
        to: str | Destination,
        selector: str,
        maximum: int,
        message_id: str | None,
    ) -> int:
        target = destination_of(to, "queue")
        with self.outbox:
            found = self._queue_named(queue)
            if found.destination == target:
                return 0
            if how == "move":
                found.expire_stored()
            chosen = self._chosen(found, selector, maximum, message_id)
            for handle, message in chosen:
                self._forward(how, found, handle, message, target)
        self.settle()
        return len(chosen)

    def _forward(
        self,
        how: Literal["copy", "move"],
        queue: QueueDestination,
        handle: int,
        message: Message,
        target: Destination,
    ) -> None:
        self.router.resend(message.copy(), target)
        if how == "move":
            queue.take_off([handle])
            origin = message.original_destination
            for name in parse_destination(origin) if queue.dlq and origin is not None else ():
                source = self.router.destinations.get(name)
                if source is not None:
                    self.dead_letters.forgive(source.policy, message)

    def _name(self, queue: QueueDestination, number: int | None) -> str | None:
        return None if number is None else queue.subscriptions[number].info.consumer_id

    def producer_count(self, destination: Destination) -> int:
        """How many producers of that destination there are."""
        return self.producers.count(destination)

    def _queue_view(self, queue: QueueDestination) -> QueueView:
        counts = queue.core.statistics
        policy = queue.policy or NO_POLICY
        size = counts["size"] + queue.behind
        return QueueView(
            name=queue.destination.name,
            destination=queue.destination,
            queue_size=size,
            enqueue_count=counts["enqueues"] + queue.behind - queue.recovered,
            dequeue_count=counts["dequeues"],
            dispatch_count=counts["dispatched"],
            in_flight_count=queue.core.in_flight_count,
            expired_count=counts["expired"],
            consumer_count=len(queue.subscriptions),
            producer_count=self.producer_count(queue.destination),
            memory_usage_byte_count=queue.core.bytes,
            average_message_size=queue.core.bytes / counts["size"] if counts["size"] else 0.0,
            max_page_size=policy.max_page_size,
            prioritized_messages=policy.prioritized_messages,
            dlq=queue.dlq,
            paused=queue.paused,
            message_groups={
                group: queue.subscriptions[number].info.consumer_id for group, number in queue.core.group_owners.items()
            },
            message_group_type=policy.group_map[0],
            cursor_size=counts["stored"] + queue.behind,
            exclusive_consumer=self._name(queue, queue.core.exclusive_consumer),
            hold_reasons=queue.core.hold_counts(),
            selector_errors=counts["selector_errors"],
        )

    def _topic_view(self, topic: TopicDestination) -> TopicView:
        counts = self.topics.region.statistics(topic.number)
        policy = topic.policy or NO_POLICY
        return TopicView(
            name=topic.destination.name,
            destination=topic.destination,
            queue_size=topic.stored,
            enqueue_count=counts["enqueues"],
            dequeue_count=counts["dequeues"],
            dispatch_count=counts["dispatched"],
            in_flight_count=counts["in_flight"],
            expired_count=counts["expired"],
            consumer_count=counts["consumers"],
            producer_count=self.producer_count(topic.destination),
            memory_usage_byte_count=0,
            average_message_size=0.0,
            always_retroactive=policy.always_retroactive,
            max_page_size=policy.max_page_size,
            prioritized_messages=policy.prioritized_messages,
            dlq=topic.dlq,
            discarded_count=counts["discarded"],
        )

    def _subscription_view(self, subscription: Subscription, topic: int | None) -> SubscriptionView:
        info = subscription.info
        counts = {"pending": 0, "in_flight": 0, "enqueued": 0, "dispatched": 0, "dequeued": 0, "consumed": 0}
        discarded, limit, slow = 0, -1, self.is_slow(subscription)
        for queue, number in subscription.queues.items():
            here = queue.core.counters_of(number)
            counts["in_flight"] += here["held"]
            for name in ("enqueued", "dispatched", "dequeued"):
                counts[name] += here[name]
        if topic is not None:
            here = self.topics.region.subscription_statistics(topic)
            discarded, limit, slow = here["discarded"], here["limit"], bool(here["slow"])
            counts = {
                "pending": here["pending"],
                "in_flight": here["in_flight"],
                "enqueued": here["enqueues"],
                "dispatched": here["dispatched"],
                "dequeued": here["dequeues"],
                "consumed": here["consumed"],
            }
        return SubscriptionView(
            consumer_id=info.consumer_id,
            client_id=subscription.connection.client_id,
            connection_id=info.connection_id,
            destination_name=info.destination.name,
            destination=info.destination,
            selector=info.selector,
            active=topic == subscription.topic,
            pending_queue_size=counts["pending"],
            dispatched_queue_size=counts["in_flight"],
            message_count_awaiting_acknowledge=counts["in_flight"],
            enqueue_counter=counts["enqueued"],
            dispatched_counter=counts["dispatched"],
            dequeue_counter=counts["dequeued"],
            consumed_count=counts["consumed"],
            prefetch_size=subscription.prefetch,
            priority=info.priority,
            retroactive=info.retroactive,
            exclusive=info.exclusive,
            durable=bool(info.subscription_name),
            no_local=info.no_local,
            dispatch_async=info.dispatch_async,
            browser=info.browser,
            subscription_name=info.subscription_name,
            slow_consumer=slow,
            discarded_count=discarded,
            matched=counts["pending"],
            maximum_pending_message_limit=info.maximum_pending_message_limit,
            maximum_pending_queue_size=limit,
            assigned_group_count={
                queue.destination.name: count
                for queue, number in subscription.queues.items()
                if (count := queue.core.assigned_groups(number))
            },
        )
