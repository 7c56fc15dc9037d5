"""The compiled topics against lists walked from the front, after each random step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pyengine._engine.activemq.commands.message_ack import AckKind
from pyengine._engine.activemq.topic.eviction_strategies import (
    ConstantPendingLimit,
    CustomEviction,
    Eviction,
    LowestPriorityEviction,
    OldestEviction,
    UniquePropertyEviction,
)
from pyengine._engine.activemq.topic.ledger import Event, EventKind, TopicDelivery
from pyengine._engine.activemq.topic.message_audit import Audit
from pyengine._engine.activemq.topic.recovery_policies import (
    FixedCountRecovery,
    FixedSizedRecovery,
    LastImageRecovery,
    Recovery,
    TimedRecovery,
)
from pyengine._engine.activemq.topic.topics import TopicRegion
from pyengine.errors import JMSError, SelectorEvaluationError
from tests.model.topic_model import ModelMessage, ModelRegion, ModelSubscription, ModelTopic


def selector(bit: int) -> Callable[[dict[str, Any]], bool]:
    """A selector that matches messages with a bit set, and cannot be evaluated on some."""

    def ask(message: dict[str, Any]) -> bool:
        if message["fails"] >> bit & 1:
            raise SelectorEvaluationError(f"bit {bit}", "fails")
        return bool(message["bits"] >> bit & 1)

    return ask


SELECTORS = [selector(bit) for bit in range(2)]
EVICTIONS: dict[str, Callable[[int], Eviction]] = {
    "oldest": lambda mark: OldestEviction(high_watermark=mark),
    "priority": lambda mark: LowestPriorityEviction(high_watermark=mark),
    "unique": lambda mark: UniquePropertyEviction("key", high_watermark=mark),
    "newest": lambda mark: CustomEviction(lambda candidates: candidates[-1:], high_watermark=mark),
    "never": lambda mark: CustomEviction(lambda candidates: [], high_watermark=mark),
}
RECOVERIES: dict[str, Callable[[int], Recovery]] = {
    "count": lambda size: FixedCountRecovery(size),
    "last": lambda size: LastImageRecovery(),
    "size": lambda size: FixedSizedRecovery(size),
    "time": lambda size: TimedRecovery(size),
}
COUNTS = ("enqueues", "dispatched", "dequeues", "in_flight", "expired", "discarded")
KINDS = {
    "standard": AckKind.STANDARD,
    "individual": AckKind.INDIVIDUAL,
    "delivered": AckKind.DELIVERED,
    "redelivered": AckKind.REDELIVERED,
    "poison": AckKind.POISON,
    "expired": AckKind.EXPIRED,
}
recoveries = st.sampled_from([None, ("count", 2), ("count", 3), ("last", 1), ("size", 3000), ("time", 1500)])
topics = st.builds(
    dict,
    policy=st.sampled_from(["simple", "round_robin", "strict_order", "priority"]),
    recovery=recoveries,
    always_retroactive=st.booleans(),
    exact=st.booleans(),
)


STORING = ("STORED", "RELEASED")


class TopicMachine(RuleBasedStateMachine):
    """Random events on both; everything they report and show must be equal."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000
        self.sent = 0
        self.reported: set[int] = set()
        self.failing: dict[int, int] = {}

    @initialize(
        keep=st.booleans(),
        discard=st.booleans(),
        wanted=st.lists(topics, min_size=1, max_size=2),
        there=st.sampled_from(["nobody", "durable", "both"]),
        page=st.sampled_from([None, 1, 2, 4]),
    )
    def start(self, keep: bool, discard: bool, wanted: list[dict[str, Any]], there: str, page: int | None) -> None:
        self.page = page
        self.bodies: dict[int, tuple[int, dict[str, Any]]] = {}
        self.references: dict[int, set[int]] = {}
        self.region = TopicRegion(
            keep_durable_subscriptions_active=keep,
            expired_as_discarded=discard,
            pager=None if page is None else self.bring,
            page=page or 1000,
        )
        self.model = ModelRegion(keep, discard, lambda bit, message: bool(self.failing[message.n] >> bit & 1))
        for number, settings_ in enumerate(wanted):
            recovery = settings_["recovery"]
            added = self.region.add_topic(
                f"T{number}",
                dispatch_policy=settings_["policy"],
                recovery=None if recovery is None else RECOVERIES[recovery[0]](recovery[1]),
                always_retroactive=settings_["always_retroactive"],
                selector_errors="exact" if settings_["exact"] else "no_match",
                now=self.now,
            )
            assert added == number
            self.model.topics.append(ModelTopic(number, **settings_))
        self.model.tick(self.now)
        if there != "nobody":
            self.subscribe_durably("a", None, 3, set(), "c0", False)
        if there == "both":
            self.subscribe_plainly(None, 3, 2, "oldest", 1000, None, set(), 0, "c0")

    def keep(self, change: Event) -> None:
        """A store without a disk."""
        assert change.topic is not None
        assert change.consumer is not None
        assert change.message is not None
        if change.kind is EventKind.STORED:
            self.bodies[change.message] = change.topic, change.body
            assert change.message not in self.references.setdefault(change.consumer, set())
            self.references[change.consumer].add(change.message)
        else:
            self.references[change.consumer].remove(change.message)

    def bring(
        self, changes: list[Event], it: int | None, topic: int, after: tuple[int, int], limit: int
    ) -> list[tuple[int, dict[str, Any]]]:
        """What only the store has."""
        for change in changes:
            self.keep(change)
        wanted = set().union(*self.references.values()) if it is None else self.references.get(it, set())
        places = []
        for number in wanted:
            where, body = self.bodies[number]
            rank = -body["JMSPriority"] if it is not None and self.region.is_prioritized(it) else 0
            if where == topic and (rank, number) > after:
                places.append((rank, number))
        return [(number, self.bodies[number][1]) for _, number in sorted(places)[:limit]]

    def same(self, outcome: list[TopicDelivery | Event]) -> None:
        seen: list[tuple[Any, ...]] = []
        expected = self.model.take()
        if self.page is not None:
            for item in outcome:
                if isinstance(item, Event) and item.kind in (EventKind.STORED, EventKind.RELEASED):
                    self.keep(item)
        for item in outcome:
            if isinstance(item, TopicDelivery):
                assert item.message == item.body["n"]
                seen.append(("deliver", item.consumer, item.message, item.redeliveries))
            elif item.kind == EventKind.SLOW:
                seen.append(("SLOW", item.consumer, item.topic))
            else:
                seen.append((item.kind.name, item.consumer, item.message))
        if self.page is not None:
            # The store is told as soon as it is asked, whatever else happens.
            seen, expected = ([each for each in found if each[0] not in STORING] for found in (seen, expected))
        assert seen == expected

    @rule(
        bit=st.sampled_from([None, None, 0, 1]),
        prefetch=st.sampled_from([1, 2, 3, 2, 0, -1]),
        limit=st.sampled_from([2, 3, 4, 1, -1, 0]),
        eviction=st.sampled_from(sorted(EVICTIONS)),
        watermark=st.sampled_from([1, 2, 1000]),
        audit=st.sampled_from([None, None, (64, 1), (0, 2)]),
        more=st.sets(st.sampled_from(["no_local", "retroactive", "no_extension", "wildcard"])),
        priority=st.integers(0, 2),
        connection=st.sampled_from(["c0", "c1"]),
    )
    def subscribe_plainly(
        self,
        bit: int | None,
        prefetch: int,
        limit: int,
        eviction: str,
        watermark: int,
        audit: tuple[int, int] | None,
        more: set[str],
        priority: int,
        connection: str,
    ) -> None:
        it = ModelSubscription(
            self.model.next_id, bit, prefetch, priority, "no_local" in more, connection, limit, eviction, watermark,
            audit, extend="no_extension" not in more, retroactive="retroactive" in more,
        )  # fmt: skip
        self.model.next_id += 1
        self.model.subscriptions[it.id] = it
        added = self.region.add_subscription(
            selector=None if bit is None else SELECTORS[bit],
            prefetch=prefetch,
            priority=priority,
            no_local=it.no_local,
            connection=connection,
            pending_limit_strategy=ConstantPendingLimit(limit),
            eviction=EVICTIONS[eviction](watermark),
            audit=None if audit is None else Audit(*audit),
            use_prefetch_extension=it.extend,
            retroactive=it.retroactive,
            now=self.now,
        )
        assert added == it.id
        for topic in self.model.topics if "wildcard" in more else self.model.topics[:1]:
            self.model.attach(it, topic, self.now)
            self.same(self.region.attach(it.id, topic.number, now=self.now))

    @rule(
        name=st.sampled_from(["a", "b"]),
        bit=st.sampled_from([None, None, 0]),
        prefetch=st.sampled_from([2, 1, 3, 0]),
        more=st.sets(st.sampled_from(["no_local", "retroactive", "wildcard"]), max_size=2),
        connection=st.sampled_from(["c0", "c1"]),
        prioritized=st.booleans(),
    )
    def subscribe_durably(
        self, name: str, bit: int | None, prefetch: int, more: set[str], connection: str, prioritized: bool
    ) -> None:
        numbers = [topic.number for topic in self.model.topics][: None if "wildcard" in more else 1]
        if self.page is not None and "retroactive" in more:
            more.discard("no_local")  # the bodies here do not know whose they are
        it = ModelSubscription(
            -1, bit, prefetch, no_local="no_local" in more, connection=connection, retroactive="retroactive" in more,
            key=("client", name), destination=tuple(numbers), prioritized=prioritized,
        )  # fmt: skip

        def subscribe() -> tuple[int, list[TopicDelivery | Event]]:
            return self.region.subscribe(
                "client",
                name,
                numbers,
                selector=None if bit is None else SELECTORS[bit],
                prefetch=prefetch,
                no_local=it.no_local,
                connection=connection,
                retroactive=it.retroactive,
                prioritized_messages=prioritized,
                active=self.page is None,
                now=self.now,
            )

        known = self.model.durables.get(("client", name))
        if known is not None and known.active:
            try:
                subscribe()
            except JMSError:
                return
            raise AssertionError("a durable subscription in use was handed out")
        made = self.model.subscribe(it, numbers, self.now)
        number, outcome = subscribe()
        assert number == made.id
        if self.page is not None:
            if known is not None and known is not made:
                self.references.pop(known.id, None)
            outcome += self.region.activate(number, now=self.now)
        self.same(outcome)

    def plain(self) -> list[ModelSubscription]:
        return [it for it in self.model.subscriptions.values() if it.key is None]

    def durable(self, active: bool) -> list[ModelSubscription]:
        return [it for it in self.model.durables.values() if it.active == active]

    @precondition(lambda self: self.plain())
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        it = data.draw(st.sampled_from(self.plain()))
        self.model.destroy(it)
        self.region.close(it.id)

    @precondition(lambda self: self.durable(True))
    @rule(data=st.data())
    def deactivate(self, data: st.DataObject) -> None:
        it = data.draw(st.sampled_from(self.durable(True)))
        last = data.draw(st.none() | st.integers(1, max(self.sent, 1)))
        lost = data.draw(st.booleans())
        self.model.deactivate(it, last, lost, self.now)
        self.region.deactivate(it.id, last_delivered=last, lost=lost, now=self.now)

    @precondition(lambda self: any(it.dispatched for it in self.durable(True)))
    @rule(data=st.data(), reported=st.booleans(), prefetch=st.integers(1, 3))
    def reconnect(self, data: st.DataObject, reported: bool, prefetch: int) -> None:
        it = data.draw(st.sampled_from([it for it in self.durable(True) if it.dispatched]))
        last = it.dispatched[len(it.dispatched) // 2].message.n if reported else None
        self.model.deactivate(it, last, not reported, self.now)
        self.region.deactivate(it.id, last_delivered=last, lost=not reported, now=self.now)
        assert it.key is not None
        assert isinstance(it.destination, tuple)
        again = ModelSubscription(-1, it.bit, prefetch, no_local=it.no_local, connection="c1", key=it.key,
                                  destination=it.destination)  # fmt: skip
        assert self.model.subscribe(again, list(it.destination), self.now) is it
        number, outcome = self.region.subscribe(
            *it.key,
            it.destination,
            selector=None if it.bit is None else SELECTORS[it.bit],
            prefetch=prefetch,
            no_local=it.no_local,
            connection="c1",
            now=self.now,
        )
        assert number == it.id
        self.same(outcome)

    @precondition(lambda self: self.durable(False))
    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        it = data.draw(st.sampled_from(self.durable(False)))
        assert it.key is not None
        self.model.destroy(it)
        self.region.unsubscribe(*it.key)
        self.references.pop(it.id, None)

    @rule(
        bits=st.sampled_from([3, 3, 1, 2, 0]),
        fails=st.sampled_from([0, 0, 0, 0, 1, 2]),
        priority=st.sampled_from([4, 4, 3, 5]),
        lifetime=st.sampled_from([0, 0, 0, 1, 5]),
        persistent=st.booleans(),
        connection=st.sampled_from(["c0", "c1", None]),
        key=st.sampled_from([None, "x", "y"]),
        identity=st.none() | st.tuples(st.sampled_from(["p", "q"]), st.sampled_from([0, 1, 2, 63, 64, 65, 130, 200])),
        size=st.sampled_from([1024, 1500]),
        count=st.sampled_from([1, 4, 8]),
        data=st.data(),
    )
    def send(
        self,
        bits: int,
        fails: int,
        priority: int,
        lifetime: int,
        persistent: bool,
        connection: str | None,
        key: str | None,
        identity: tuple[str, int] | None,
        size: int,
        count: int,
        data: st.DataObject,
    ) -> None:
        topic = data.draw(st.sampled_from([topic.number for topic in self.model.topics]))
        for _ in range(count):
            self.sent += 1
            self.failing[self.sent] = fails
            if count > 1:
                priority = 3 + self.sent % 3
            expiration = self.now + lifetime if lifetime else 0
            message = ModelMessage(
                self.sent,
                bits,
                topic,
                priority,
                self.sent // 2,
                expiration,
                persistent,
                connection,
                key,
                identity,
                size,
            )
            body = {"n": self.sent, "bits": bits, "fails": fails} | ({} if key is None else {"key": key})
            if self.page is not None:
                body |= {"JMSPriority": priority, "JMSExpiration": expiration, "JMSTimestamp": message.timestamp}
            if identity is not None:
                body["JMSMessageID"] = f"{identity[0]}:{identity[1]}"
            self.model.send(message, self.now)
            self.same(
                self.region.send(
                    topic,
                    body,
                    priority=priority,
                    timestamp=message.timestamp,
                    expiration=expiration,
                    persistent=persistent,
                    connection=connection,
                    size=size,
                    now=self.now,
                )
            )

    @precondition(lambda self: any(it.dispatched for it in self.model.subscriptions.values()))
    @rule(
        kind=st.sampled_from(["standard", "standard", "individual", "delivered", "redelivered", "poison", "expired"]),
        transaction=st.sampled_from([None, None, "t"]),
        front=st.booleans(),
        data=st.data(),
    )
    def acknowledge(self, kind: str, transaction: str | None, front: bool, data: st.DataObject) -> None:
        it = data.draw(st.sampled_from([it for it in self.model.subscriptions.values() if it.dispatched]))
        numbers = [held.message.n for held in it.dispatched]
        end = data.draw(st.integers(0, len(numbers) - 1))
        first = None if front or kind == "individual" else numbers[data.draw(st.integers(0, end))]
        if kind in ("poison", "expired") and (
            transaction is not None or any(held.acknowledged for held in it.dispatched)
        ):
            return
        self.model.acknowledge(it, kind, first, numbers[end], transaction, self.now)
        self.same(
            self.region.acknowledge(
                it.id, numbers[end], kind=KINDS[kind], first=first, transaction=transaction, now=self.now
            )
        )

    @precondition(lambda self: self.model.transactions)
    @rule(commit=st.booleans())
    def end(self, commit: bool) -> None:
        self.model.end("t", commit, self.now)
        if commit:
            self.same(self.region.commit("t", now=self.now))
        else:
            self.same(self.region.rollback("t", now=self.now))

    @precondition(lambda self: any(it.prefetch == 0 for it in self.model.subscriptions.values()))
    @rule(quantity=st.integers(1, 2), waiting=st.booleans(), data=st.data())
    def pull(self, quantity: int, waiting: bool, data: st.DataObject) -> None:
        it = data.draw(st.sampled_from([it for it in self.model.subscriptions.values() if it.prefetch == 0]))
        if not it.active:
            return
        before = it.handed_out
        it.extension = quantity
        self.model.dispatch(it, self.now)
        outcome = self.region.pull(it.id, quantity=quantity, timeout=0 if waiting else -1, now=self.now)
        mark = self.region.pull_mark(it.id)
        if it.handed_out == before:
            it.extension = 0
            self.model.serve_null(it)
            if waiting:
                outcome += self.region.pull_timeout(it.id, mark)
            last = outcome.pop()
            assert isinstance(last, TopicDelivery)
            assert (last.consumer, last.message) == (it.id, None)
        else:
            assert self.region.pull_timeout(it.id, mark) == []
        self.same(outcome)

    @rule(ms=st.sampled_from([1, 3, 10, 900]))
    def wait(self, ms: int) -> None:
        self.now += ms
        if ms == 900:
            self.model.tick(self.now)
            self.region.tick(self.now)

    @rule(data=st.data(), number=st.none() | st.integers(1, 100))
    def expire(self, data: st.DataObject, number: int | None) -> None:
        topic = data.draw(st.sampled_from(self.model.topics))
        paged = self.page is not None and any(it.prioritized for it in self.durable(False))
        upto = None if number is None or paged else 1 + number % (self.sent + 1)
        for it in topic.consumers + topic.offline:
            if it.key is not None and not it.active:
                cursor = self.model.cursor(it, topic.number)
                for held in list(cursor):
                    looked_at = upto is None or held.message.n <= upto
                    if looked_at and 0 < held.message.expiration < self.now and not held.acknowledged:
                        cursor.remove(held)
                        self.model.expire(it, held)
                        self.model.drop(it, held, True)
        self.same(self.region.expire(topic.number, self.now, upto=upto))

    @invariant()
    def everything_visible_is_equal(self) -> None:
        if not hasattr(self, "region"):
            return
        self.region._check()
        for topic in self.model.topics:
            assert self.region.consumers(topic.number) == [it.id for it in topic.consumers]
            assert self.region.recoverable(topic.number) == [message.n for message, _ in topic.kept]
            counts = self.region.statistics(topic.number)
            listed = {"consumers": len(topic.consumers) + len(topic.offline)}
            expected = {name: topic.counts[name] for name in COUNTS} | listed
            assert {name: counts[name] for name in expected} == expected
            if self.page is None:
                assert counts["stored"] == len(topic.stored)
        for it in self.model.subscriptions.values():
            waiting = [held.message.n for held in it.pending]
            if self.page is None or it.key is None:
                assert self.region.waiting(it.id) == waiting
            else:
                assert set(self.region.waiting(it.id)) <= set(waiting)
                stored = {held.message.n for held in (*it.pending, *it.dispatched) if held.stored}
                assert self.references.get(it.id, set()) == stored
            assert self.region.unacknowledged(it.id) == [held.message.n for held in it.dispatched]
            assert self.region.is_active(it.id) == it.active
            shown = self.region.subscription_statistics(it.id)
            expected = {
                "enqueues": it.enqueued,
                "dispatched": it.handed_out,
                "dequeues": it.dequeued,
                "discarded": it.discarded,
                "pending": len(it.pending),
                "in_flight": it.in_flight,
                "slow": it.slow,
                "extension": it.extension,
            }
            assert {name: shown[name] for name in expected} == expected


TestTopics = TopicMachine.TestCase
TestTopics.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
