"""The broker's topics, slow and obvious: lists of messages, walked from the front."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Event = tuple[Any, ...]


@dataclass(eq=False)
class ModelMessage:
    """One message: ``bits`` names the selectors that match it."""

    n: int
    bits: int
    topic: int
    priority: int = 4
    timestamp: int = 0
    expiration: int = 0
    persistent: bool = False
    connection: str | None = None
    key: str | None = None
    identity: tuple[str, int] | None = None
    size: int = 1024
    reported: bool = False
    holders: int = 0


@dataclass(eq=False)
class Held:
    """One subscription's hold on a message."""

    message: ModelMessage
    redeliveries: int = 0
    acknowledged: bool = False
    stored: bool = False


@dataclass(eq=False)
class ModelSubscription:
    """One subscription; ``cursors`` is None for a non-durable one."""

    id: int
    bit: int | None
    prefetch: int
    priority: int = 0
    no_local: bool = False
    connection: str | None = None
    limit: int = -1
    eviction: str = "oldest"
    watermark: int = 1000
    audit: tuple[int, int] | None = None
    extend: bool = True
    retroactive: bool = False
    listed: bool = True
    key: tuple[str, str] | None = None
    destination: object = None
    active: bool = True
    keep: bool = True
    prioritized: bool = False
    extension: int = 0
    slow: bool = False
    topics: list[int] = field(default_factory=list)
    matched: list[Held] = field(default_factory=list)
    dispatched: list[Held] = field(default_factory=list)
    cursors: list[tuple[int, list[Held]]] = field(default_factory=list)
    current: int | None = None
    seen: OrderedDict[str, set[int]] = field(default_factory=OrderedDict)
    in_flight: int = 0
    enqueued: int = 0
    handed_out: int = 0
    dequeued: int = 0
    discarded: int = 0
    offline_since: int | None = None
    first_topic: int | None = None  # of which a message was handed out

    @property
    def full(self) -> bool:
        if self.key is not None and not self.active:
            return True
        if self.prefetch == 0:
            return self.extension == 0
        return self.in_flight - self.extension >= self.prefetch

    @property
    def pending(self) -> list[Held]:
        if self.key is None:
            return self.matched
        return [held for _, cursor in self.cursors for held in cursor]


@dataclass
class ModelTopic:
    """One topic: what it keeps, and who listens."""

    number: int
    policy: str = "simple"
    recovery: tuple[str, int] | None = None
    always_retroactive: bool = False
    exact: bool = False
    consumers: list[ModelSubscription] = field(default_factory=list)
    offline: list[ModelSubscription] = field(default_factory=list)
    kept: list[tuple[ModelMessage, int]] = field(default_factory=list)
    last_tick: int = 0
    stored: list[ModelMessage] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


class ModelRegion:
    """All topics. ``out`` collects what happens; ``fails`` says on which messages a selector cannot be evaluated."""

    def __init__(self, keep: bool, discard_expired: bool, fails: Callable[[int, ModelMessage], bool]) -> None:
        self.keep = keep
        self.discard_expired = discard_expired
        self.fails = fails
        self.topics: list[ModelTopic] = []
        self.subscriptions: dict[int, ModelSubscription] = {}
        self.durables: dict[tuple[str, str], ModelSubscription] = {}
        self.transactions: dict[str, list[Callable[[bool], None]]] = {}
        self.next_id = 0
        self.out: list[Event] = []

    def take(self) -> list[Event]:
        result, self.out = self.out, []
        return result

    def count(self, held: Held, *names: str) -> None:
        for name in names:
            self.topics[held.message.topic].counts[name] += 1

    def land(self, held: Held) -> None:
        self.topics[held.message.topic].counts["in_flight"] -= 1

    # Matching

    def matches(self, it: ModelSubscription, message: ModelMessage, asked: set[int]) -> int:
        if it.no_local and it.connection == message.connection:
            return 0
        if it.bit is None:
            return 1
        if self.fails(it.bit, message):
            if it.bit not in asked:
                self.out.append(("SELECTOR_FAILED", it.id, message.n))
                asked.add(it.bit)
            return 2
        return message.bits >> it.bit & 1

    # Sending

    def send(self, message: ModelMessage, now: int) -> None:
        topic = self.topics[message.topic]
        if 0 < message.expiration < now:
            topic.counts["expired"] += 1
            self.out.append(("EXPIRED", None, message.n))
            return
        topic.counts["enqueues"] += 1
        self.keep_for_later(topic, message)
        asked: set[int] = set()
        order = list(topic.consumers)
        if topic.policy == "priority":
            order.sort(key=lambda it: -it.priority)
        taken: list[ModelSubscription] = []
        for it in order:
            verdict = self.matches(it, message, asked)
            if verdict == 2 and topic.exact:
                self.out.append(("CUT", it.id, message.n))
                return
            if verdict == 1:
                taken.append(it)
                self.add(it, message, now)
        if topic.policy == "round_robin" and taken:
            topic.consumers.remove(taken[0])
            topic.consumers.append(taken[0])
        if message.persistent:
            for it in topic.offline:
                if self.matches(it, message, asked) == 1:
                    self.add(it, message, now)
        if not taken:
            self.out.append(("NO_CONSUMER", None, message.n))

    def keep_for_later(self, topic: ModelTopic, message: ModelMessage) -> None:
        if topic.recovery is None:
            return
        kind, size = topic.recovery
        topic.kept.append((message, topic.last_tick))
        if kind == "count":
            del topic.kept[:-size]
        elif kind == "last":
            del topic.kept[:-1]
        elif kind == "size":
            while sum(kept.size for kept, _ in topic.kept) > size:
                del topic.kept[0]

    def tick(self, now: int) -> None:
        for topic in self.topics:
            topic.last_tick = now
            if topic.recovery is not None and topic.recovery[0] == "time":
                topic.kept = [(kept, when) for kept, when in topic.kept if now <= when + topic.recovery[1]]

    # One subscription

    def duplicate(self, it: ModelSubscription, message: ModelMessage) -> bool:
        if it.audit is None or message.identity is None:
            return False
        depth, producers = it.audit
        producer, number = message.identity
        seen = it.seen.setdefault(producer, set())
        it.seen.move_to_end(producer)
        while len(it.seen) > producers:
            it.seen.popitem(last=False)
        if not seen:
            seen.add(-(number - number % 64) - 1)  # where the window started
        start = -min(seen) - 1
        words = max((depth + 1) // 64 + 1, 1)
        highest = max([number, *seen])
        start = max(start, start + ((highest - start) // 64 - words + 1) * 64)
        if number < start:
            return False
        before = number in seen
        seen.add(number)
        for old in [old for old in seen if old < start]:
            seen.discard(old)
        seen.add(-start - 1)
        return before

    def add(self, it: ModelSubscription, message: ModelMessage, now: int, recovered: bool = False) -> None:
        if it.key is not None:
            self.add_durable(it, message, now, recovered)
            return
        if self.duplicate(it, message):
            return
        it.enqueued += 1
        if not it.full and not it.matched:
            self.hand_out(it, Held(message))
            it.slow = False
            return
        if it.prefetch > 1 and len(it.matched) > it.prefetch and not it.slow:
            self.find_slow(it)
        if it.limit == 0:
            self.out.append(("DROPPED", it.id, message.n))
            return
        it.matched.append(Held(message))
        if it.limit > 0:
            self.evict(it, now)
        self.dispatch(it, now)

    def find_slow(self, it: ModelSubscription) -> None:
        it.slow = True
        for topic in it.topics:
            self.out.append(("SLOW", it.id, topic))

    def evict(self, it: ModelSubscription, now: int) -> None:
        if len(it.matched) > min(it.watermark, it.limit):
            for held in it.matched:
                if 0 < held.message.expiration < now:
                    it.matched.remove(held)
                    if not held.message.reported:
                        held.message.reported = True
                        self.count(held, "expired")
                        self.out.append(("EXPIRED", it.id, held.message.n))
                    break
        while len(it.matched) > it.limit:
            candidates = it.matched[: max(1000, len(it.matched) - it.limit)]
            victims = self.victims(it.eviction, candidates)
            if not victims:
                self.out.append(("NOT_EVICTED", it.id, None))
                return
            for held in victims:
                it.matched.remove(held)
                self.discard(it, held, False)

    def discard(self, it: ModelSubscription, held: Held, expired: bool) -> None:
        # It leaves the topic of which the subscription was given its first message.
        if it.first_topic is not None:
            self.topics[it.first_topic].counts["dequeues"] += 1
        if expired and not self.discard_expired:
            self.count(held, "expired")
            self.out.append(("EXPIRED", it.id, held.message.n))
        else:
            it.discarded += 1
            self.count(held, "discarded")
            self.out.append(("DISCARDED", it.id, held.message.n))

    def victims(self, strategy: str, candidates: list[Held]) -> list[Held]:
        if strategy == "oldest":
            return candidates[:1]
        if strategy == "priority":
            return [min(candidates, key=lambda held: held.message.priority)]
        if strategy == "never":
            return []
        if strategy == "newest":
            return candidates[-1:]
        keepers: dict[str, Held] = {}
        for held in candidates:
            key = held.message.key
            if key is not None and (key not in keepers or held.message.timestamp > keepers[key].message.timestamp):
                keepers[key] = held
        if not keepers or len(keepers) == len(candidates):
            return candidates[:1]
        return [held for held in candidates if held not in keepers.values()]

    def hand_out(self, it: ModelSubscription, held: Held) -> None:
        it.handed_out += 1
        it.in_flight += 1
        self.count(held, "dispatched", "in_flight")
        if it.first_topic is None:
            it.first_topic = held.message.topic
        if it.prefetch == 0:
            it.extension = max(0, it.extension - 1)
        it.dispatched.append(held)
        self.out.append(("deliver", it.id, held.message.n, held.redeliveries))

    def dispatch(self, it: ModelSubscription, now: int) -> None:
        if it.key is not None:
            self.dispatch_durable(it, now)
            return
        while it.matched and not it.full:
            held = it.matched.pop(0)
            if 0 < held.message.expiration < now:
                self.discard(it, held, True)
            else:
                self.hand_out(it, held)

    def expand(self, it: ModelSubscription, amount: int) -> None:
        if it.extend and it.prefetch:
            it.extension += amount

    def contract(self, it: ModelSubscription, amount: int) -> None:
        if it.extend and it.prefetch:
            it.extension = max(0, it.extension - amount)

    # Durable subscriptions

    def cursor(self, it: ModelSubscription, topic: int) -> list[Held]:
        return next(cursor for number, cursor in it.cursors if number == topic)

    def put(self, it: ModelSubscription, held: Held, topic: int, ahead: bool = False) -> None:
        cursor = self.cursor(it, topic)
        if not it.prioritized:
            cursor.insert(0 if ahead else len(cursor), held)
            return
        wanted = held.message.priority
        if ahead:
            place = sum(other.message.priority > wanted for other in cursor)
        else:
            place = sum(other.message.priority >= wanted for other in cursor)
        cursor.insert(place, held)

    def store(self, it: ModelSubscription, held: Held) -> None:
        held.stored = True
        held.message.holders += 1
        stored = self.topics[held.message.topic].stored
        if held.message not in stored:
            stored.append(held.message)
        self.out.append(("STORED", it.id, held.message.n))

    def drop(self, it: ModelSubscription, held: Held, telling: bool) -> None:
        if held.stored:
            held.message.holders -= 1
            if not held.message.holders:
                self.topics[held.message.topic].stored.remove(held.message)
            if telling:
                self.out.append(("RELEASED", it.id, held.message.n))

    def add_durable(self, it: ModelSubscription, message: ModelMessage, now: int, recovered: bool) -> None:
        if recovered:
            self.put(it, Held(message), -1)
            return
        if not it.active and not it.keep and not message.persistent:
            return
        it.enqueued += 1
        held = Held(message)
        self.put(it, held, message.topic if message.persistent else -1)
        if message.persistent:
            self.store(it, held)
        self.dispatch(it, now)

    def dispatch_durable(self, it: ModelSubscription, now: int) -> None:
        if not it.active:
            return
        room = it.extension if it.prefetch == 0 else it.prefetch + it.extension - it.in_flight
        if room <= 0:
            if it.pending and not it.slow:
                self.find_slow(it)
            return
        it.slow = False
        count = 0
        while count < room and not it.full:
            current = self.choose(it)
            held = next((held for held in current or [] if not held.acknowledged), None)
            if held is None or current is None:
                break
            current.remove(held)
            if 0 < held.message.expiration < now:
                room += 1
                self.expire(it, held)
                self.drop(it, held, True)
            else:
                self.hand_out(it, held)
                count += 1
        it.current = None

    def choose(self, it: ModelSubscription) -> list[Held] | None:
        if self.serving(it) is None:
            it.current = next((n for n, c in it.cursors if any(not held.acknowledged for held in c)), None)
            if len(it.cursors) > 1:
                it.cursors.append(it.cursors.pop(0))
        return self.serving(it)

    def serving(self, it: ModelSubscription) -> list[Held] | None:
        cursor = dict(it.cursors).get(it.current, []) if it.current is not None else []
        return None if all(held.acknowledged for held in cursor) else cursor

    def serve_null(self, it: ModelSubscription) -> None:
        if it.key is not None:
            self.choose(it)
            it.current = None

    def expire(self, it: ModelSubscription, held: Held) -> None:
        if held.message.persistent or not held.message.reported:
            if not held.message.persistent:
                held.message.reported = True
            self.count(held, "expired")
            self.out.append(("EXPIRED", it.id, held.message.n))

    # Acknowledgements

    def acknowledge(self, it: ModelSubscription, kind: str, first: int | None, last: int, transaction: str | None,
                    now: int) -> None:  # fmt: skip
        """Every message named is one the subscription holds, first before last."""
        if kind == "delivered":
            self.expand(it, 1)
            self.dispatch(it, now)
            return
        if kind == "redelivered":
            if it.key is not None:
                self.dispatch(it, now)
            return
        numbers = [held.message.n for held in it.dispatched]
        start = 0 if first is None else numbers.index(first)
        if it.key is not None and kind == "individual":
            start = numbers.index(last)
        chosen = it.dispatched[start : numbers.index(last) + 1]
        if it.key is None:
            self.from_front = first is None
            self.acknowledge_plain(it, kind, chosen, transaction, now)
        else:
            self.acknowledge_durable(it, kind, chosen, transaction, now)

    def acknowledge_plain(self, it: ModelSubscription, kind: str, chosen: list[Held], transaction: str | None,
                          now: int) -> None:  # fmt: skip
        size = len(chosen)
        first, last = chosen[0], chosen[-1]

        def settle() -> None:
            # The range is found again when it is settled: what is gone by then is not taken twice.
            if first not in it.dispatched and transaction is not None and not from_front:
                return
            start = 0 if from_front or first not in it.dispatched else it.dispatched.index(first)
            end = it.dispatched.index(last) + 1 if last in it.dispatched else len(it.dispatched)
            for held in it.dispatched[start:end]:
                it.dispatched.remove(held)
                it.in_flight -= 1
                it.dequeued += 1
                self.land(held)
                self.count(held, "dequeues", *["expired"] * (kind == "expired"))
                if transaction is None:
                    self.contract(it, 1)

        from_front = self.from_front
        if transaction is not None and kind != "expired":

            def finish(commit: bool) -> None:
                self.contract(it, size)
                if commit and it.id in self.subscriptions:
                    settle()
                    self.dispatch(it, self.now)

            self.transactions.setdefault(transaction, []).append(finish)
        else:
            settle()
        if kind in ("poison", "expired"):
            self.contract(it, size)
        elif kind == "individual" and transaction is not None:
            self.expand(it, 1)
        self.dispatch(it, now)

    from_front = False
    now = 0

    def acknowledge_durable(self, it: ModelSubscription, kind: str, chosen: list[Held], transaction: str | None,
                            now: int) -> None:  # fmt: skip
        for held in chosen:
            if kind == "expired":
                self.expire(it, held)
            else:
                if kind == "poison":
                    self.out.append(("POISONED", it.id, held.message.n))
                held.redeliveries = 0
                self.count(held, "dequeues")
                if transaction is not None:
                    if not held.acknowledged:
                        held.acknowledged = True
                        self.transactions.setdefault(transaction, []).append(self.settling(it, held))
                    continue
                it.dequeued += 1
                if kind != "poison":
                    self.contract(it, 1)
            it.dispatched.remove(held)
            it.in_flight -= 1
            self.land(held)
            self.drop(it, held, True)
        if kind in ("poison", "expired"):
            self.contract(it, 1)
        elif kind == "individual" and transaction is not None:
            self.expand(it, 1)
        self.dispatch(it, now)

    def settling(self, it: ModelSubscription, held: Held) -> Callable[[bool], None]:
        def finish(commit: bool) -> None:
            if not commit:
                queued = held.acknowledged and any(held in cursor for _, cursor in it.cursors)
                held.acknowledged = False
                self.contract(it, 1)
                if queued:
                    self.dispatch(it, self.now)
                return
            it.dequeued += 1
            if self.subscriptions.get(it.id) is it and held.acknowledged:
                if held in it.dispatched:
                    it.dispatched.remove(held)
                    it.in_flight -= 1
                    self.land(held)
                    self.drop(it, held, True)
                else:
                    for _, cursor in it.cursors:
                        if held in cursor:
                            cursor.remove(held)
                            self.drop(it, held, True)
                held.acknowledged = False
            self.contract(it, 1)
            self.dispatch(it, self.now)

        return finish

    def end(self, transaction: str, commit: bool, now: int) -> None:
        self.now = now
        for finish in self.transactions.pop(transaction, []):
            finish(commit)

    # Coming and going

    def attach(self, it: ModelSubscription, topic: ModelTopic, now: int) -> None:
        it.topics.append(topic.number)
        if it.key is not None:
            it.cursors.append((topic.number, []))
            (topic.consumers if it.active or it.keep else topic.offline).append(it)
            self.dispatch(it, now)
            return
        topic.consumers.append(it)
        if it.retroactive or topic.always_retroactive:
            self.recover(it, topic, now)

    def recover(self, it: ModelSubscription, topic: ModelTopic, now: int) -> None:
        for message, _ in list(topic.kept):
            if self.matches(it, message, set()) == 1:
                self.add(it, message, now, recovered=True)

    def destroy(self, it: ModelSubscription) -> None:
        for number in it.topics:
            topic = self.topics[number]
            (topic.consumers if it in topic.consumers else topic.offline).remove(it)
        for held in [*it.pending, *it.dispatched]:
            self.drop(it, held, False)
        for held in it.dispatched:
            self.land(held)
        it.matched, it.dispatched, it.cursors, it.in_flight = [], [], [], 0
        del self.subscriptions[it.id]
        if it.key is not None:
            del self.durables[it.key]

    def subscribe(self, wanted: ModelSubscription, topics: list[int], now: int) -> ModelSubscription:
        assert wanted.key is not None
        it = self.durables.get(wanted.key)
        if it is not None and (it.bit, it.no_local, it.destination) != (
            wanted.bit,
            wanted.no_local,
            wanted.destination,
        ):
            self.destroy(it)
            it = None
        if it is not None:
            it.connection, it.prefetch, it.retroactive = wanted.connection, wanted.prefetch, wanted.retroactive
        else:
            it = wanted
            it.active = False
            it.keep = self.keep
            it.cursors = [(-1, [])]
            it.id = self.next_id
            self.next_id += 1
            self.subscriptions[it.id] = self.durables[wanted.key] = it
            for number in topics:
                self.attach(it, self.topics[number], now)
                if it.retroactive:
                    for message in sorted(self.topics[number].stored, key=lambda message: message.n):
                        if self.matches(it, message, set()) == 1:
                            held = Held(message)
                            self.put(it, held, number)
                            it.enqueued += 1
                            self.store(it, held)
        for number in it.topics:
            topic = self.topics[number]
            if it in topic.offline:
                topic.offline.remove(it)
                topic.consumers.append(it)
            if it.retroactive and not self.cursor(it, number):
                self.recover(it, topic, now)
        it.active = True
        self.dispatch(it, now)
        return it

    def deactivate(self, it: ModelSubscription, last: int | None, lost: bool, now: int) -> None:
        it.active = False
        it.keep = self.keep
        it.offline_since = now
        for held in reversed(it.dispatched):
            if lost or (last is not None and held.message.n <= last):
                held.redeliveries += 1
            self.land(held)
            self.put(it, held, held.message.topic if held.message.persistent else -1, ahead=True)
        it.dispatched, it.in_flight, it.extension = [], 0, 0
        if not it.keep:
            self.cursor(it, -1).clear()
            for number in it.topics:
                self.topics[number].consumers.remove(it)
                self.topics[number].offline.append(it)
