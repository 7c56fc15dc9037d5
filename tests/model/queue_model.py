"""The broker's queue, slow and obvious: every round walks every paged-in message and asks every consumer."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class ModelMessage:
    """One message: ``bits`` names the consumers' first selectors that match it; the others read what changes here."""

    n: int
    bits: int
    group: str | None
    sequence: int
    priority: int
    expiration: int
    connection: int | None
    target: str | None
    persistent: bool = True
    redeliveries: int = 0
    group_first: bool = False
    acknowledged: bool = False
    removed: bool = False

    def passes(self, bit: int) -> bool:
        """Whether selector number ``bit`` matches the message as it is now."""
        match bit:
            case 3:  # JMSRedelivered
                return self.redeliveries > 0
            case 4:  # JMSXDeliveryCount < 3 AND (b0 OR JMSXDeliveryCount = 1)
                return self.redeliveries < 2 and (bool(self.bits & 1) or self.redeliveries == 0)
            case 5:  # JMSXGroupFirstForConsumer = FALSE
                return not self.group_first
            case _:
                return bool(self.bits >> bit & 1)


@dataclass(eq=False)
class ModelConsumer:
    """One subscription."""

    id: int
    bit: int | None
    exclusive: bool
    priority: int
    prefetch: int
    no_local: bool
    connection: int | None
    name: str | None
    browser: bool
    held: list[ModelMessage] = field(default_factory=list)
    extension: int = 0
    dispatched: int = 0
    enqueued: int = 0
    pull_mark: int = 0
    slow: bool = False
    audit: set[int] = field(default_factory=set)

    def full(self) -> bool:
        """Whether it has no credit."""
        if self.prefetch == 0:
            return self.extension == 0
        return len(self.held) - self.extension >= self.prefetch

    def matches(self, message: ModelMessage) -> bool:
        """Target, noLocal, selector."""
        if message.target is not None and message.target != self.name:
            return False
        if self.no_local and message.connection == self.connection:
            return False
        return self.bit is None or message.passes(self.bit)


class ModelGroups:
    """The three group maps with plain dicts."""

    def __init__(self, kind: str, capacity: int, bucket_of: Callable[[str], int]) -> None:
        self.kind = kind
        self.capacity = capacity
        self.bucket_of = bucket_of
        self.owner: OrderedDict[Any, int] = OrderedDict()
        self.counts: dict[int, int] = {}

    def key(self, group: str) -> Any:
        return self.bucket_of(group) if self.kind == "bucket" else group

    def get(self, group: str, *, refresh: bool = True) -> int | None:
        owner = self.owner.get(self.key(group))
        if owner is not None and self.kind == "cached" and refresh:
            self.owner.move_to_end(group)
        return owner

    def assign(self, group: str, consumer: int) -> None:
        self.owner[self.key(group)] = consumer
        if self.kind == "cached":
            self.owner.move_to_end(group)
            if len(self.owner) > self.capacity:
                _, loser = self.owner.popitem(last=False)
                self.counts[loser] = self.counts.get(loser, 0) - 1
        self.counts[consumer] = self.counts.get(consumer, 0) + 1

    def close(self, group: str, consumer: int) -> None:
        self.owner.pop(self.key(group), None)
        self.counts[consumer] = self.counts.get(consumer, 0) - 1

    def drop(self, group: str) -> None:
        self.owner.pop(self.key(group), None)

    def drop_consumer(self, consumer: int) -> None:
        for key in [key for key, owner in self.owner.items() if owner == consumer]:
            del self.owner[key]

    def drop_all(self) -> None:
        self.owner.clear()
        if self.kind == "cached":
            self.counts.clear()


class ModelQueue:
    """One queue; settings as those of the engine's Queue."""

    def __init__(
        self,
        groups: ModelGroups,
        *,
        page: int | None,
        browse_page: int | None,
        use_priority: bool,
        strict: bool,
        prioritized: bool,
        lazy: bool,
        extend: bool,
        all_exclusive: bool,
        start_consumers: int,
        start_time: int,
        cursor: str,
    ) -> None:
        self.groups = groups
        self.page = page
        self.browse_page = browse_page
        self.use_priority = use_priority
        self.strict = strict
        self.prioritized = prioritized
        self.lazy = lazy
        self.extend = extend
        self.all_exclusive = all_exclusive
        self.start_consumers = start_consumers
        self.start_time = start_time
        self.turns = cursor
        self.served = True
        self.cursor: list[ModelMessage] = []
        self.redelivered: list[ModelMessage] = []
        self.new: list[ModelMessage] = []
        self.paged: list[ModelMessage] = []
        self.consumers: list[ModelConsumer] = []
        self.browsers: list[ModelConsumer] = []
        self.elected: ModelConsumer | None = None
        self.paused = False
        self.group_map_exists = False
        self.wakeups = 0
        self.echo = self.extra = False
        self.first_consumer = False
        self.latch = 0
        self.starts_at: int | None = None
        self.out: list[tuple[int, int | None, int, bool]] = []
        self.slowed: list[int] = []
        self.expired = 0
        self.transactions: dict[str, list[tuple[ModelConsumer, ModelMessage]]] = {}

    # Consumer list

    def sort_key(self, consumer: ModelConsumer) -> tuple[int, int]:
        return -consumer.priority, self.groups.counts.get(consumer.id, 0) if self.group_map_exists else 0

    def append(self, consumer: ModelConsumer) -> None:
        self.consumers.append(consumer)
        if self.use_priority:
            self.consumers.sort(key=self.sort_key)

    def add_consumer(self, consumer: ModelConsumer) -> None:
        if not self.consumers:
            self.first_consumer = True
            self.latch = self.start_consumers - 1
        else:
            self.latch -= 1
        self.append(consumer)
        if consumer.exclusive or self.all_exclusive:
            elected = self.elected
            if elected is None or consumer.priority == 127 or consumer.priority > elected.priority:
                self.elected = consumer
        if consumer.browser:
            self.browsers.append(consumer)
        self.wakeups += 1

    def elect(self, candidates: list[ModelConsumer]) -> None:
        self.elected = max(candidates, key=lambda candidate: candidate.priority, default=None)

    def close(self, consumer: ModelConsumer, last: ModelMessage | None, lost: bool, now: int) -> None:
        self.consumers.remove(consumer)
        if consumer.exclusive:
            if self.elected is consumer:
                self.elect([other for other in self.consumers if other.exclusive])
        elif self.all_exclusive:
            self.elect(self.consumers)
        self.group_map_exists = True
        self.groups.drop_consumer(consumer.id)
        counting = last is not None and last in consumer.held
        for message in consumer.held:
            if message.removed:
                continue
            if lost or counting:
                message.redeliveries += 1
            if message is last:
                counting = False
        back = [message for message in consumer.held if not message.removed]
        consumer.held = []
        older = self.redelivered and back and self.redelivered[0].n > back[-1].n
        if self.strict and not self.consumers and not self.prioritized and older:
            self.redelivered[:0] = back
        else:
            self.redelivered += back
        if consumer in self.browsers:
            self.browsers.remove(consumer)
        if self.redelivered:
            self.dispatch([], now)
        self.wakeups += 1

    # Rounds

    def send(self, message: ModelMessage) -> None:
        self.cursor.append(message)
        self.wakeups += 1

    def run(self, now: int) -> None:
        while (self.wakeups or self.echo) and self.round(now):
            pass

    def ask_again(self) -> None:
        """A wakeup asked for by a round itself: the task runner runs once more after the last round due."""
        if not self.extra:
            self.wakeups += 1
        self.extra, self.echo = False, True

    def pending(self) -> list[ModelMessage]:
        both = self.redelivered + self.new
        return sorted(both, key=lambda message: -message.priority) if self.prioritized else both

    def delayed(self, now: int) -> bool:
        if self.starts_at is None and self.first_consumer:
            self.first_consumer = False
            if self.start_consumers:
                self.starts_at = now + (self.start_time or 1000)
            elif self.start_time:
                self.starts_at = now + self.start_time
        if self.starts_at is not None:
            if now < self.starts_at and not (self.start_consumers and self.latch <= 0):
                return True
            self.starts_at = None
        return False

    def round(self, now: int) -> bool:
        if self.delayed(now):
            return False
        self.extra = not self.wakeups
        if self.extra:
            self.echo = False
        self.wakeups = max(0, self.wakeups - 1)
        forced = bool(self.browsers) and self.browse_page != 0
        wanted = len(self.cursor)
        if self.page is not None:
            wanted = min(wanted, self.page)
            if self.lazy and not forced:
                free = [
                    other.extension if other.prefetch == 0 else other.prefetch + other.extension - len(other.held)
                    for other in self.consumers
                    if not other.browser
                ]
                wanted = min(wanted, sum(free))
        real = len(self.consumers) > len(self.browsers)
        fresh: list[ModelMessage] = []
        if forced or (real and (self.page is None or len(self.pending()) < self.page)):
            fresh = self.page_in(wanted, now)
        self.dispatch(fresh, now)
        self.browse()
        return True

    def page_in(self, wanted: int, now: int) -> list[ModelMessage]:
        fresh: list[ModelMessage] = []
        while self.cursor and len(fresh) < wanted:
            message = self.next_stored()
            self.cursor.remove(message)
            if 0 < message.expiration < now:
                self.expired += 1
            else:
                fresh.append(message)
        self.paged += fresh
        if self.prioritized:
            fresh.sort(key=lambda each: -each.priority)
        return fresh

    def look_for_expired(self, now: int, limit: int) -> None:
        self.extra = False
        if self.cursor and len(self.paged) < limit:
            self.dispatch(self.page_in(min(len(self.cursor), limit), now), now)
        staying = 0
        for message in self.pending():
            if message.acknowledged or staying == limit:
                continue
            if 0 < message.expiration < now:
                (self.redelivered if message in self.redelivered else self.new).remove(message)
                self.paged.remove(message)
                self.expired += 1
            else:
                staying += 1
        self.wakeups += 1

    def next_stored(self) -> ModelMessage:
        """Of the cursor whose turn it is: ``served`` says that it is the one of the persistent messages."""
        if self.turns == "memory":
            self.served = True
        mine = [each for each in self.cursor if self.turns == "single" or each.persistent == self.served]
        if not mine:
            self.served = not self.served
            mine = self.cursor
        return max(mine, key=lambda each: each.priority) if self.prioritized else mine[0]

    def dispatch(self, fresh: list[ModelMessage], now: int) -> None:
        if self.prioritized and self.pending() and fresh:
            self.new += fresh
            fresh = []
        self.try_each(self.pending(), now)
        if fresh:
            if not self.pending() or self.page is None:
                before = self.redelivered + self.new
                self.new += fresh
                self.try_each([message for message in fresh if message not in before], now)
            else:
                self.new += fresh
                self.ask_again()

    def try_each(self, messages: list[ModelMessage], now: int) -> None:
        full: set[int] = set()
        for message in messages:
            for consumer in list(self.consumers):
                if consumer.browser or consumer.id in full:
                    continue
                if consumer.full():
                    full.add(consumer.id)
                    if not consumer.slow:
                        consumer.slow = True
                        self.slowed.append(consumer.id)
                elif message.acknowledged:
                    continue
                elif self.can_select(consumer, message) and self.assign(consumer, message):
                    (self.redelivered if message in self.redelivered else self.new).remove(message)
                    self.hand_out(consumer, message, now)
                    break

    def can_select(self, consumer: ModelConsumer, message: ModelMessage) -> bool:
        return not self.paused and consumer.matches(message) and self.elected in (None, consumer)

    def assign(self, consumer: ModelConsumer, message: ModelMessage) -> bool:
        if message.group is None:
            return True
        self.group_map_exists = True
        owner = self.groups.get(message.group, refresh=False)
        if message.sequence == 1 or owner is None:
            self.groups.assign(message.group, consumer.id)
            message.group_first = True
            return True
        # Without a window nobody looks at held messages again, so their look-ups do not refresh either.
        if self.page is not None or owner == consumer.id:
            self.groups.get(message.group)
        if owner != consumer.id:
            return False
        if message.sequence < 0:
            self.groups.close(message.group, consumer.id)
        return True

    def hand_out(self, consumer: ModelConsumer, message: ModelMessage, now: int) -> None:
        consumer.enqueued += 1
        if 0 < message.expiration < now:
            self.expired += 1
            self.paged.remove(message)
        else:
            consumer.held.append(message)
            consumer.dispatched += 1
            if consumer.prefetch == 0:
                consumer.extension = max(0, consumer.extension - 1)
            consumer.slow = False
            self.out.append((consumer.id, message.n, message.redeliveries, message.group_first))
        if not self.strict and len(self.consumers) > 1 and self.elected is not consumer:
            self.consumers.remove(consumer)
            self.append(consumer)

    def browse(self) -> None:
        seen = sorted(self.paged, key=lambda message: -message.priority) if self.prioritized else list(self.paged)
        for browser in list(self.browsers):
            added = False
            for message in seen:
                if message.acknowledged or message.n in browser.audit:
                    continue
                browser.audit.add(message.n)
                if not self.browsed_enough(browser) and browser.matches(message):
                    browser.enqueued += 1
                    browser.dispatched += 1
                    self.out.append((browser.id, message.n, message.redeliveries, message.group_first))
                    added = True
            if not added or self.browsed_enough(browser):
                self.browsers.remove(browser)
                self.out.append((browser.id, None, 0, False))
            else:
                self.ask_again()

    def browsed_enough(self, browser: ModelConsumer) -> bool:
        return bool(self.browse_page) and browser.enqueued >= (self.browse_page or 0)

    # Acknowledgements

    def contract(self, consumer: ModelConsumer, amount: int) -> None:
        if self.extend and consumer.prefetch:
            consumer.extension = max(0, consumer.extension - amount)
        self.relieve(consumer)

    def relieve(self, consumer: ModelConsumer) -> None:
        """One with credit is not slow."""
        consumer.slow = consumer.slow and consumer.full()

    def expand(self, consumer: ModelConsumer, amount: int) -> None:
        if self.extend and consumer.prefetch:
            consumer.extension += amount
        self.relieve(consumer)

    def acknowledge(self, consumer: ModelConsumer, messages: list[ModelMessage], amount: int) -> None:
        for message in messages:
            consumer.held.remove(message)
            if not message.removed:
                self.paged.remove(message)
        self.contract(consumer, amount)
        self.wakeups += 2

    def acknowledge_later(
        self, consumer: ModelConsumer, messages: list[ModelMessage], amount: int, transaction: str
    ) -> None:
        for message in messages:
            if not message.acknowledged:
                message.acknowledged = True
                self.transactions.setdefault(transaction, []).append((consumer, message))
        self.expand(consumer, amount)
        self.wakeups += 2

    def delivered(self, consumer: ModelConsumer, count: int) -> None:
        self.expand(consumer, count)
        self.wakeups += 2

    def commit(self, transaction: str) -> None:
        for consumer, message in self.transactions.pop(transaction, []):
            for place in (consumer.held, self.redelivered):
                if message in place:
                    place.remove(message)
            if message in self.paged:
                self.paged.remove(message)
            self.contract(consumer, 1)
            self.wakeups += 2

    def rollback(self, transaction: str) -> None:
        for consumer, message in self.transactions.pop(transaction, []):
            message.acknowledged = False
            self.contract(consumer, 1)
            self.wakeups += 1

    def pull(self, consumer: ModelConsumer, quantity: int, timeout: int, now: int) -> None:
        if consumer.prefetch:
            return
        consumer.extension = quantity
        self.relieve(consumer)
        consumer.pull_mark = consumer.dispatched
        self.round(now)
        if timeout == -1:
            self.pull_timeout(consumer)

    def pull_timeout(self, consumer: ModelConsumer) -> None:
        if consumer.prefetch == 0 and consumer.dispatched == consumer.pull_mark:
            consumer.extension = 0
            self.out.append((consumer.id, None, 0, False))

    def purge(self) -> None:
        for consumer in self.consumers:
            for message in consumer.held:
                message.removed = True
        self.cursor, self.redelivered, self.new, self.paged = [], [], [], []

    def verdicts(self, message: ModelMessage) -> dict[int, str]:
        """What each consumer says, in the order in which they are asked."""
        result = {}
        for consumer in self.consumers:
            owner = None if message.group is None else self.groups.get(message.group, refresh=False)
            if consumer.browser:
                verdict = "BROWSES"
            elif consumer.full():
                verdict = "FULL"
            elif self.paused:
                verdict = "PAUSES"
            elif message.target is not None and message.target != consumer.name:
                verdict = "NOT_TARGET"
            elif consumer.no_local and consumer.connection == message.connection:
                verdict = "REFUSES_LOCAL"
            elif not consumer.matches(message):
                verdict = "REFUSES"
            elif self.elected not in (None, consumer):
                verdict = "STANDS_BY"
            elif message.sequence != 1 and owner not in (None, consumer.id):
                verdict = "OWNED_BY_OTHER"
            else:
                verdict = "TAKES"
            result[consumer.id] = verdict
        return result
