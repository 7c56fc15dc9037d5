"""What a session's consumers do, told slowly: plain lists, every rule where spec activemq 2.11-2.14 states it.

Commands are tuples: ("ack", consumer, kind, first, last, count, in a transaction), ("begin",), ("pull", consumer),
("remove", consumer, last delivered), ("later", consumer, delay, messages).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

DELIVERED, POISON, STANDARD, REDELIVERED, INDIVIDUAL, EXPIRED = 0, 1, 2, 3, 4, 6


@dataclass(eq=False)
class Told:
    """A message at the client. counter: how often it was rolled back here, on top of the broker's count."""

    name: str
    priority: int
    expiration: int
    broker_count: int
    counter: int = 0

    def __post_init__(self) -> None:
        self.counter = self.broker_count


@dataclass(eq=False)
class ModelConsumer:
    """One consumer. inbox: what came and was not taken; hands: what the user has and nobody acknowledged."""

    name: str
    prefetch: int
    topic: bool
    inbox: list[Told] = field(default_factory=list)
    hands: list[Told] = field(default_factory=list)
    unsaid: int = 0  # delivered since the last DELIVERED acknowledgement
    unsent: int = 0  # delivered since the last optimized acknowledgement
    sent_at: int = 0
    held_back: tuple[Any, ...] | None = None  # kind, first, last, count, transaction
    delay: int = 0
    listening: bool = False
    running: bool = False
    started: bool = False
    closed: bool = False
    joined: bool = False
    last: Told | None = None


class ModelSession:
    """The consumers of a session and its transaction."""

    def __init__(
        self,
        mode: str,
        prioritized: bool,
        optimize: bool,
        time_out: int,
        individual: bool,
        blocking: bool,
        maximum: int,
    ) -> None:
        self.mode, self.prioritized, self.optimize = mode, prioritized, optimize and mode == "auto"
        self.time_out, self.maximum, self.blocking = time_out, maximum, blocking
        self.individual = individual or prioritized or not blocking
        self.delay_by_counter = False
        self.consumers: list[ModelConsumer] = []
        self.queue: list[tuple[ModelConsumer, Told]] = []
        self.queue_running = False
        self.transaction = False
        self.partners: list[tuple[ModelConsumer, str]] = []
        self.commands: list[tuple[Any, ...]] = []

    # Kinds of acknowledgement

    def each(self, consumer: ModelConsumer) -> bool:
        return self.mode == "auto" or (self.mode == "dups" and not consumer.topic)

    def lazily(self, consumer: ModelConsumer) -> bool:
        return self.mode == "dups" and consumer.topic

    def ack(self, consumer: ModelConsumer, kind: int, first: Told | None, last: Told, count: int, inside: bool) -> None:
        self.commands.append(("ack", consumer.name, kind, first and first.name, last.name, count, inside))

    def ack_hands(self, consumer: ModelConsumer, kind: int, inside: bool) -> None:
        self.ack(consumer, kind, consumer.hands[0], consumer.hands[-1], len(consumer.hands), inside)

    def open(self) -> None:
        if not self.transaction:
            self.transaction = True
            self.partners = []
            self.commands.append(("begin",))

    def join(self, consumer: ModelConsumer) -> None:
        self.open()
        if not consumer.joined:
            consumer.joined = True
            self.partners.append((consumer, "end"))

    def later(self, consumer: ModelConsumer, told: Told, kind: int) -> None:
        if self.mode == "transacted":
            self.join(consumer)
        consumer.unsaid += 1
        first: Told | None = told
        if consumer.held_back is not None:
            if consumer.held_back[0] == kind:
                first = consumer.held_back[1]
            else:
                first = None
                if consumer.held_back[0] != DELIVERED:
                    self.say(consumer)
        consumer.held_back = (kind, first, told, consumer.unsaid, self.transaction)
        if consumer.unsaid + consumer.unsent >= consumer.prefetch / 2:
            self.say(consumer)
            consumer.unsaid = 0

    def say(self, consumer: ModelConsumer) -> None:
        assert consumer.held_back is not None
        self.ack(consumer, *consumer.held_back)
        consumer.held_back = None

    # Deliveries

    def before(self, consumer: ModelConsumer, told: Told) -> None:
        consumer.last = told
        if self.lazily(consumer):
            return
        consumer.hands.append(told)
        if self.mode == "transacted" and self.individual:
            self.join(consumer)
            self.ack(consumer, INDIVIDUAL, None, told, 1, True)
        elif self.mode == "transacted":
            self.later(consumer, told, DELIVERED)

    def after(self, consumer: ModelConsumer, told: Told, now: int) -> None:
        if consumer.closed or self.mode == "transacted":
            return
        if self.each(consumer):
            if not consumer.hands:  # rolled back while the listener was at work
                return
            if self.optimize:
                consumer.unsent += 1
                share = consumer.unsent + consumer.unsaid >= 0.65 * consumer.prefetch
                if not share and not (self.time_out > 0 and now >= consumer.sent_at + self.time_out):
                    return
                consumer.unsent, consumer.sent_at = 0, now
            self.ack_hands(consumer, STANDARD, False)
            consumer.hands = []
            if self.optimize and consumer.held_back is not None and consumer.unsaid > 0:
                self.say(consumer)
                consumer.unsaid = 0
        elif self.lazily(consumer):
            self.later(consumer, told, STANDARD)
        elif told in consumer.hands:
            self.later(consumer, told, DELIVERED)

    def expire(self, consumer: ModelConsumer, told: Told) -> None:
        self.before(consumer, told)
        self.ack(consumer, EXPIRED, told, told, 1, False)
        if told in consumer.hands:
            consumer.hands.remove(told)

    def too_often(self, told: Told) -> bool:
        return self.mode == "transacted" and self.maximum >= 0 and told.broker_count > self.maximum

    def next_of(self, inbox: list[Any], key: Any) -> Any:
        best = max(inbox, key=key) if self.prioritized else inbox[0]
        inbox.remove(best)
        return best

    def offer(self, consumer: ModelConsumer, told: Told, now: int) -> bool:
        """True: the listener is to have it."""
        if consumer.closed:
            return False
        expired = 0 < told.expiration < now
        if consumer.listening and consumer.running:
            if self.too_often(told):
                self.ack(consumer, POISON, told, told, 1, False)
                return False
            if not expired:
                self.before(consumer, told)
                return True
        if expired:
            self.expire(consumer, told)
        else:
            consumer.inbox.append(told)
        return False

    def arrive(self, consumer: ModelConsumer, told: Told, now: int) -> bool:
        if consumer not in self.consumers:
            return False
        if consumer.listening or self.queue:
            self.queue.append((consumer, told))
            return False
        return self.offer(consumer, told, now)

    def receive(self, consumer: ModelConsumer, now: int) -> Told | None:
        while consumer.running and consumer.inbox:
            told: Told = self.next_of(consumer.inbox, lambda told: told.priority)
            if 0 < told.expiration < now:
                self.expire(consumer, told)
            elif self.too_often(told):
                self.ack(consumer, POISON, told, told, 1, False)
            else:
                self.before(consumer, told)
                self.after(consumer, told, now)
                return told
        return None

    def step(self, now: int) -> tuple[ModelConsumer, Told] | None:
        """Who is to listen to what next."""
        while True:
            for consumer in self.consumers:
                if consumer.listening and consumer.running and consumer.inbox:
                    told = self.next_of(consumer.inbox, lambda told: told.priority)
                    break
            else:
                if not self.queue_running or not self.queue:
                    return None
                consumer, told = self.next_of(self.queue, lambda entry: entry[1].priority)
            if self.offer(consumer, told, now):
                return consumer, told

    def failed(self, consumer: ModelConsumer, told: Told, now: int) -> None:
        if self.mode in ("client", "transacted"):
            self.after(consumer, told, now)
        else:
            self.rollback(consumer)

    # Rolling back

    def rollback(self, consumer: ModelConsumer) -> None:
        consumer.joined = False
        if self.optimize:
            for position in range(len(consumer.hands)):
                if position < len(consumer.hands) and position < consumer.unsent:
                    consumer.hands.pop(0)
        if not consumer.hands:
            return
        again = consumer.hands[-1].counter > 0
        consumer.delay = 40 if again else 20
        for told in consumer.hands:
            told.counter += 1
        consumer.unsaid -= len(consumer.hands)
        hands = consumer.hands
        if 0 <= self.maximum < hands[-1].counter:
            self.ack_hands(consumer, POISON, False)
            consumer.hands, consumer.delay = [], 0
            return
        if again or self.delay_by_counter:
            self.ack_hands(consumer, REDELIVERED, False)
        consumer.hands = []
        if not consumer.closed:
            if self.blocking:
                consumer.running = False
            self.commands.append(("later", consumer.name, consumer.delay, [told.name for told in hands]))

    def redeliver(self, consumer: ModelConsumer, hands: list[Told], now: int) -> None:
        if consumer.closed:
            return
        if not self.blocking:
            for told in hands:
                if consumer.listening:
                    self.queue.append((consumer, told))
                else:
                    self.offer(consumer, told, now)
            return
        consumer.inbox = hands + consumer.inbox
        if consumer.listening:
            self.redispatch(consumer)
        if consumer.started:
            consumer.running = True

    def redispatch(self, consumer: ModelConsumer) -> None:
        inbox = sorted(consumer.inbox, key=lambda told: -told.priority) if self.prioritized else consumer.inbox
        self.queue = [(consumer, told) for told in inbox] + self.queue
        consumer.inbox = []

    # The user's word

    def acknowledge(self) -> None:
        for consumer in self.consumers:
            self.acknowledge_hands(consumer)

    def acknowledge_hands(self, consumer: ModelConsumer) -> None:
        if consumer.hands:
            consumer.held_back = None
            self.ack_hands(consumer, STANDARD, self.transaction)
            consumer.unsaid = max(0, consumer.unsaid - len(consumer.hands))
            if self.mode != "transacted":
                consumer.hands = []

    def acknowledge_one(self, consumer: ModelConsumer, told: Told) -> None:
        self.ack(consumer, INDIVIDUAL, None, told, 1, False)
        if told in consumer.hands:
            consumer.hands.remove(told)

    def end(self, commit: bool) -> None:
        for consumer, part in self.partners:
            if part == "end":
                if not self.individual:
                    self.acknowledge_hands(consumer)
                consumer.joined = False
        partners, self.partners, self.transaction = self.partners, [], False
        for consumer, part in partners:
            if part == "close":
                self.close_now(consumer)
            elif commit:
                consumer.hands, consumer.delay = [], 0
            else:
                self.rollback(consumer)

    def close(self, consumer: ModelConsumer) -> None:
        if consumer.closed:
            return
        if consumer.hands and self.transaction:
            self.partners.append((consumer, "close"))
        else:
            self.close_now(consumer)

    def close_now(self, consumer: ModelConsumer) -> None:
        if consumer.closed:
            return
        if self.mode != "transacted":
            if self.each(consumer) and consumer.hands:
                self.ack_hands(consumer, STANDARD, False)
            elif consumer.held_back is not None and (self.each(consumer) or consumer.held_back[0] == STANDARD):
                self.say(consumer)
            consumer.hands = []
        consumer.closed, consumer.running, consumer.listening, consumer.inbox = True, False, False, []
        self.consumers.remove(consumer)
        self.commands.append(("remove", consumer.name, consumer.last and consumer.last.name))
