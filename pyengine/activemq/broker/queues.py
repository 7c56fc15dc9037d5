"""A queue of the broker: drives the core's queue and carries out what it decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from pyengine._engine.activemq.commands.message_ack import AckKind
from pyengine._engine.activemq.commands.message_dispatch import MessageDispatch
from pyengine._engine.activemq.region.region_queue import RegionQueue
from pyengine._engine.message.message import Message
from pyengine.activemq.broker.dead_letters import DeadLetters, Unconsumed, expiry_cause
from pyengine.activemq.broker.events import MessageConsumed, MessageDelivered, NoConsumer, SelectorFailed, SlowConsumer
from pyengine.activemq.broker.services import BrokerServices
from pyengine.activemq.broker.slow_consumers import SlowConsumers
from pyengine.activemq.broker.subscription import Subscription
from pyengine.activemq.broker.transaction import Transaction
from pyengine.activemq.core_settings import NO_POLICY, queue_settings
from pyengine.activemq.store.store_options import ALL, EACH, LEVELS
from pyengine.activemq.transport.commands import MessageAck, MessagePull
from pyengine.clock import Timer
from pyengine.dataclass import dataclass
from pyengine.destinations import Destination
from pyengine.topology.policy import Policy

NOWHERE = (-1, -1)


@dataclass(slots=True, eq=False)
class Acknowledged:
    """A step of a transaction: messages that a queue's core keeps in flight, under ``key``, until that ends."""

    queue: QueueDestination
    subscription: Subscription
    key: tuple[str, int]
    messages: list[Message]

    @property
    def together(self) -> None:
        """By itself."""

    def commit(self) -> None:
        """The messages leave the queue."""
        self.queue.commit(self)
        if self.subscription.spread:
            self.subscription.wake(self.queue)

    def rollback(self) -> None:
        """Their consumer holds them as before."""
        self.queue.rollback(self)


def acknowledged(transaction: Transaction, subscription: Subscription, message_id: str) -> int:
    """How many messages of this id a consumer of queues has acknowledged in a transaction."""
    return sum(
        message.message_id == message_id
        for step in transaction.steps
        if isinstance(step, Acknowledged) and step.subscription is subscription
        for message in step.messages
    )


class QueueDestination:
    """One queue. Every method runs inside a change of the broker (see outbox.Outbox).

    With a store the core holds what is paged in and the next messages behind; ``behind`` counts the rest, which only
    the store has: everything that comes after the position ``frontier``, except messages that were paged in before
    those of a higher priority came (``cut``). ``bands``: the order of priorities that positions are of (store.Bands).
    ``recovered``: messages that were there when the broker started. ``came``: how many consumers were attached so far.
    ``dlq``: it has been given a dead letter.
    """

    def __init__(
        self,
        services: BrokerServices,
        dead_letters: DeadLetters,
        slow_consumers: SlowConsumers,
        destination: Destination,
        policy: Policy | None,
    ) -> None:
        self._services = services
        self._dead_letters = dead_letters
        self.destination = destination
        self.policy = policy
        self._store = None if destination.is_temporary else services.store
        cursor = "single" if destination.is_temporary else "memory" if services.store is None else "store"
        self.core = RegionQueue(**queue_settings(policy, cursor))
        self.core.owner, self.core.destination = self, destination
        self.core.minimum_message_size = (policy or NO_POLICY).minimum_message_size
        self.subscriptions: dict[int, Subscription] = {}
        self.came = 0
        self.dlq = False
        self._start: Timer | None = None
        self._pulls: dict[str, Timer] = {}
        self._keys = 0
        self._look = -1  # when the next look for expired messages is due
        self._made = services.clock.now()
        self.watch = slow_consumers.watch(self, policy)
        self.paused = False
        self._posted = services.outbox.posted
        self._by_priority = (policy or NO_POLICY).prioritized_messages
        self._sequences: dict[int, int] = {}
        self.core.noting = policy is not None and policy.persist_jms_redelivered
        self._frontier = NOWHERE
        self._cut = False
        self.recovered = 0
        page = (policy or NO_POLICY).max_page_size
        # Without a store, or with a cursor in memory, there is no rest behind.
        memory = self._store is None or self.core.cursor == "single"
        self._ahead = -1 if memory or page is None else max(services.cursor_limit, 2 * page)
        self._number = 0
        self._bands = EACH if self._by_priority else ALL
        if self._store is not None:
            self.core.reader = partial(self._top_up, self._pages)
            self._number = self._store.destination(str(destination))
            self.core.behind = self.recovered = self._store.count(self._number)
            if self.recovered and self.core.cursor == "store":
                self.core.cached = False
                self._bands = LEVELS if self._by_priority else ALL
        self.core.max_expire_page_size = (policy or NO_POLICY).max_expire_page_size
        self._period = (policy or NO_POLICY).expire_messages_period
        self.core.look_planned = self._period <= 0
        if self.behind:
            self._plan_look()
        self._tells_delivered = policy is not None and policy.advisory_for_delivery
        self._tells_consumed = policy is not None and policy.advisory_for_consumed
        reported = self._tells_delivered or self._tells_consumed
        # Only the core decides what is put and acknowledged here.
        self.core.direct = self._store is None and self.watch is None and not reported

    @property
    def behind(self) -> int:
        """How many messages only the store has."""
        return self.core.behind

    def dispose(self) -> None:
        """The queue is removed: its timers never run."""
        self._services.looks.cancel(self._look, self)
        for timer in (self._start, *self._pulls.values()):
            if timer is not None:
                timer.cancel()
        if self.watch is not None:
            self.watch.destinations.remove(self)

    def consumers(self) -> list[Subscription]:
        """Its consumers."""
        return list(self.subscriptions.values())

    # Consumers

    def add(self, subscription: Subscription) -> None:
        """Attach a consumer and run the round it asks for."""
        self.came += 1
        info = subscription.info
        number = self.core.subscribe(
            subscription,
            selector=subscription.selector,
            exclusive=info.exclusive,
            priority=info.priority,
            prefetch=subscription.prefetch,
            no_local=info.no_local,
            connection=info.connection_id,
            use_prefetch_extension=(subscription.policy or NO_POLICY).use_prefetch_extension,
            max_browse_page_size=subscription.browse_limit,
        )
        self.subscriptions[number] = subscription
        subscription.begin(self, number)
        if not subscription.spread and not subscription.browser:
            subscription.queue, subscription.number = self.core, number
        self.run()
        if self.watch is not None:
            self.watch.plan()

    def remove(self, subscription: Subscription, *, last_delivered: str | None = None, lost: bool = False) -> None:
        """Detach a consumer; what it held goes to the others. The round that this asks for is the caller's to run."""
        number = subscription.end(self)
        subscription.queue = subscription.number = None
        timer = self._pulls.pop(subscription.info.consumer_id, None)
        if timer is not None:
            timer.cancel()
        # Of copies with one id the last is taken to be the one delivered last; each counts in its own queue only.
        found = subscription.latest(last_delivered or "")
        now = self._services.clock.now()
        self.core.share()
        known = found[1] if found is not None and found[0] is self else None
        posted = self.core.unsubscribe(number, last_delivered=known, lost=lost, now=now)
        del self.subscriptions[number]
        self._post(posted)

    # Messages

    def put(self, message: Message, now: int) -> None:
        """Take a message and run the round it asks for. One that has expired goes where expired messages go."""
        expiration = message.expiration
        if 0 < expiration < now:
            self._unconsumed(message, expiry_cause(message), 0)
        else:
            self.take(message, now)

    def take(self, message: Message, now: int) -> None:
        """``put`` for a message that may have expired since it was sent: it is found when it is paged in."""
        self.append(message)
        self.run(now)

    def append(self, message: Message) -> None:
        """``take`` without the round that it asks for, which is the caller's to run."""
        if self._store is None or not message.persistent or self._keep(message):
            self.core.put(message)
            if self._by_priority and self._ahead >= 0 and self.core.persistent_stored > 2 * self._ahead:
                self._cut_back()
        if message.expiration:
            self._plan_look()
        if self._tells_delivered:
            self._services.report(MessageDelivered(self.destination, message))
        if not self.subscriptions:
            self._services.report(NoConsumer(self.destination, message))

    def put_all(self, messages: list[Message], text: str, connection_id: str, sequence: int, now: int) -> bool:
        """``put`` for many at once; False, and nothing is done, where each must be looked at by itself (QueueRegion).

        text: what their destination becomes. sequence: the broker's number of the first.
        """
        if not self.core.direct or not self.subscriptions:
            return False
        posted = self.core.offer_all(messages, text, connection_id, sequence, now)
        if posted is None:
            return False
        self._posted.extend(posted)
        if self.core.news:
            self.heard()
        return True

    def _keep(self, message: Message) -> bool:
        """Put a message into the store; True if the core takes it too, now."""
        assert self._store is not None
        sequence = self._store.add(self._number, message, message.redelivery_counter)
        if not self.core.cached and not self.behind and not self.core.persistent_stored:
            self._cache()
        position = (self._band(message), sequence)
        if position > self._frontier:
            if self.behind or 0 <= self._ahead <= self.core.persistent_stored:
                self.core.behind += 1
                self.core.wakeup()
                return False
            self._frontier = position
        self._sequences[id(message)] = sequence
        return True

    def _cache(self) -> None:
        """Everything that the broker was started with is paged in: what comes is ordered as it comes."""
        self.core.cached = True
        if self._by_priority:
            self._bands, self._frontier, self._cut = EACH, NOWHERE, True

    def _band(self, message: Message) -> int:
        if not self._by_priority:
            return 0
        return next(number for number, (lowest, _) in enumerate(self._bands) if lowest <= message.priority)

    def _cut_back(self) -> None:
        """Messages of a higher priority came before those that wait in memory: the last ones are left to the store."""
        self._cut = True
        for message in self.core.leave_behind(self._ahead):
            sequence = self._sequences.pop(id(message), None)
            assert sequence is not None
            self._frontier = (self._band(message), sequence - 1)
            self.core.behind += 1

    def _top_up(self, least: int) -> None:
        """Bring messages that only the store has into the core until ``least`` are there to be paged in."""
        store = self._store
        while store is not None and self.behind and (least < 0 or self.core.persistent_stored < least):
            found = store.load(self._number, self._frontier, -1 if least < 0 else max(self._ahead, least), self._bands)
            here = {*self._sequences.values()} if self._cut else ()
            for stored in found:
                message = stored.message
                self._frontier = (self._band(message), stored.sequence)
                if stored.sequence in here:
                    continue
                self.core.behind -= 1
                self._sequences[id(message)] = stored.sequence
                message.redelivery_counter = stored.redeliveries
                self.core.put(message, False)
                if message.expiration:
                    self._plan_look()
            if not found:
                return

    def expire_stored(self) -> None:
        """Have what has expired leave as it does when it is paged in."""
        self.load_all()
        self.core.share()
        self.core.expire_stored(self._services.clock.now())
        self.core.note()
        self.heard()

    def load_all(self) -> None:
        """Bring everything into the core."""
        self._top_up(-1)

    def _gone(self, message: Message) -> None:
        """A message has left the queue for good."""
        if self._tells_consumed:
            self._services.report(MessageConsumed(self.destination, message))
        sequence = self._sequences.pop(id(message), None)
        if sequence is not None and self._store is not None:
            self._store.remove(self._number, sequence)

    def take_off(self, handles: Iterable[int]) -> int:
        """Remove messages of the core, also those that consumers hold; return how many."""
        number = 0
        self.core.share()
        for handle in list(handles):
            self._gone(self.core.take_off_message(handle))
            number += 1
        self.core.note()
        return number

    def pause(self) -> None:
        """Stop dispatching."""
        self.paused = True
        self.core.share()
        self.core.pause()
        self.core.note()

    def resume(self) -> None:
        """Hand out again."""
        self.paused = False
        self.core.resume()
        self.run()

    def acknowledge(
        self, subscription: Subscription, ack: MessageAck, transaction: Transaction | None, now: int
    ) -> None:
        """A consumer acknowledges messages of this queue. Raises JMSError if it does not hold them."""
        number = subscription.queues[self]
        self.core.share()
        if transaction is None or ack.kind in (AckKind.DELIVERED, AckKind.REDELIVERED):
            gone = self.core.answer(subscription, number, ack, now)
            if self._sequences or self._tells_consumed:
                for message in gone:
                    self._gone(message)
            if self.core.news:
                self._removed(ack.poison_cause, gone=True)
        else:
            self._keys += 1
            key = (transaction.transaction_id, self._keys)
            messages = self.core.answer(subscription, number, ack, now, key)
            transaction.steps.append(Acknowledged(self, subscription, key, messages))
        self.run(now)

    def commit(self, step: Acknowledged) -> None:
        """The transaction of these acknowledgements is committed."""
        self.core.share()
        for message in self.core.complete_transaction(step.key, step.subscription, step.messages):
            self._gone(message)
        self.run()

    def rollback(self, step: Acknowledged) -> None:
        """The transaction of these acknowledgements is rolled back."""
        self.core.share()
        self.core.rollback(step.key)
        self.run()

    def pull(self, subscription: Subscription, pull: MessagePull) -> None:
        """A consumer with prefetch 0 asks for a message."""
        number = subscription.queues[self]
        now = self._services.clock.now()
        self._top_up(self._pages)
        self.core.share()
        self._post(self.core.pull(number, timeout=pull.timeout, now=now))
        consumer = subscription.info.consumer_id
        timer = self._pulls.pop(consumer, None)
        if timer is not None:
            timer.cancel()
        if pull.timeout > 0 and subscription.prefetch == 0:
            self._pulls[consumer] = self._services.call_at(now + pull.timeout, lambda: self._pull_timeout(subscription))
        self.run(now)

    def offer(self, subscription: Subscription) -> None:
        """A consumer of several queues with prefetch 0 asks each of them in turn: one round, at once."""
        now = self._services.clock.now()
        self._top_up(self._pages)
        self.core.share()
        self._post(self.core.pull(subscription.queues[self], now=now))
        self.core.note()

    def _pull_timeout(self, subscription: Subscription) -> None:
        number = subscription.queues.get(self)
        if number is None:
            return
        now = self._services.clock.now()
        self._post(self.core.pull_timeout(number, now=now))
        self.run(now)

    # Rounds

    @property
    def _pages(self) -> int:
        """How many messages a round may want to page in, at most; -1: all."""
        page = (self.policy or NO_POLICY).max_page_size
        return -1 if page is None else page

    def wake(self) -> None:
        """Ask for a round and make it."""
        self.core.wakeup()
        self.run()

    def run(self, now: int | None = None) -> None:
        """Make the rounds that were asked for and carry out what they decided."""
        if now is None:
            now = self._services.clock.now()
        core = self.core
        core.share()
        while True:
            # With messages left in the store, round by round: each finds all that it could page in.
            if core.behind:
                self._top_up(self._pages)
            behind = core.behind
            posted = core.run(now, 1 if behind else -1)
            if posted:
                self._post(posted)
            if core.news:
                self.heard()
            if not behind or not core.due:
                break
        core.note()

    def heard(self) -> None:
        """Rounds removed or expired messages in addition to their deliveries."""
        self._removed("")
        self._noticed()
        starts = self.core.starts_at
        if starts is not None and (self._start is None or not self._start.pending):
            self._start = self._services.call_at(starts, self.run)
        if not self.core.look_planned:
            self._plan_look()

    def _post(self, posted: list[tuple[Callable[[MessageDispatch], object], MessageDispatch]]) -> None:
        """Hand out what the core decided, once the present change is over."""
        self._posted.extend(posted)
        if self.watch is not None:
            self.watch.plan()

    def _noticed(self) -> None:
        """Consumers without credit, selectors that could not be evaluated, and first deliveries."""
        for message, selector in self.core.take_failed():
            for asking in self.subscriptions.values():
                if asking.selector == selector:
                    text = asking.info.selector or ""
                    self._services.report(SelectorFailed(self.destination, message, asking.info, text))
        for number in self.core.take_slow():
            subscription = self.subscriptions.get(number)
            if subscription is not None and self._services.release != "5.17":
                self._services.report(SlowConsumer(self.destination, subscription.info))
        if self.core.noting:
            for message in self.core.take_noted():
                self._note_redelivery(message)

    def _note_redelivery(self, message: Message) -> None:
        """persistJMSRedelivered: what was dispatched once is redelivered, after a restart too."""
        sequence = self._sequences.get(id(message))
        if sequence is not None and self._store is not None:
            self._store.redelivered(self._number, sequence, 1)

    def _removed(self, cause: str, *, gone: bool = False) -> None:
        """Messages that left unconsumed: poison and expired ones become dead letters. gone: they were counted out."""
        for _, reason, message, redeliveries in self.core.take_removed():
            if not gone:
                self.core.forget(message)
                self._gone(message)
            self._unconsumed(message, expiry_cause(message) if reason == "expired" else cause, redeliveries)

    def _unconsumed(self, message: Message, cause: str, redeliveries: int) -> None:
        self._dead_letters.handle(Unconsumed(self.destination, self.policy, message, cause, redeliveries))

    def _plan_look(self) -> None:
        # The broker looks for ever; a look that can neither find nor page in anything is left out.
        if not self.core.look_planned:
            self.core.look_planned = True
            now = self._services.clock.now()
            self._look = now + self._period - (now - self._made) % self._period
            self._services.looks.plan(self._look, self)

    def expire_messages(self) -> None:
        """The periodic look for expired messages."""
        self.core.look_planned = self._period <= 0
        if self.paused:
            self._plan_look()
            return
        limit = self.core.max_expire_page_size
        self._top_up(limit)
        self.core.share()
        self._post(self.core.expire(self._services.clock.now(), limit=limit))
        self.run()
        if self.core.expiring:
            self._plan_look()
