"""The compiled queue against the walk-everything model, after each random step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pyengine import Message, Selector
from pyengine._engine.activemq.commands.message_ack import AckKind
from pyengine._engine.activemq.queue.group_map import GroupMap
from pyengine._engine.activemq.queue.hold_reasons import Verdict
from pyengine._engine.activemq.queue.queue import Delivery, Queue
from tests.model.queue_model import ModelConsumer, ModelGroups, ModelMessage, ModelQueue


def read(body: Mapping[str, Any] | Message, name: str) -> int:
    """A property of what was sent."""
    return int(body.get_int_property(name) if isinstance(body, Message) else body[name])


def selector(bit: int) -> Callable[[Mapping[str, Any] | Message], bool]:
    """A selector that matches messages with a bit set."""
    return lambda message: bool(read(message, "bits") >> bit & 1)


# Those of ModelMessage.passes.
CHANGING = (
    "JMSRedelivered",
    "JMSXDeliveryCount < 3 AND (b0 OR JMSXDeliveryCount = 1)",
    "JMSXGroupFirstForConsumer = FALSE",
)
SELECTORS: list[Callable[[Mapping[str, Any] | Message], bool] | Selector] = [
    *(selector(bit) for bit in range(3)),
    *(Selector(text) for text in CHANGING),
]

GROUP_MAPS = [
    "cached?cacheSize=2",
    "cached?cacheSize=3",
    "cached?cacheSize=5",
    "cached",
    "simple",
    "bucket?bucketCount=2",
]
GROUPS = ["a", "b", "c", "d", "Aa", "BB"]


class QueueMachine(RuleBasedStateMachine):
    """Random events on both queues; everything visible must be equal."""

    @initialize(
        page=st.sampled_from([1, 2, 3, 5, 200, None]),
        browse_page=st.sampled_from([None, 2, 400]),
        policy=st.sets(st.sampled_from(["no_priority", "strict", "prioritized", "lazy", "no_extension", "exclusive"]))
        .filter(lambda chosen: len(chosen) < 3),
        groups=st.sampled_from(GROUP_MAPS),
        start=st.sampled_from([(0, 0), (0, 0), (0, 0), (2, 0), (0, 50), (2, 50)]),
        cursor=st.sampled_from(["store", "memory", "single"]),
    )  # fmt: skip
    def start(
        self,
        page: int | None,
        browse_page: int | None,
        policy: set[str],
        groups: str,
        start: tuple[int, int],
        cursor: str,
    ) -> None:
        self.queue = Queue(
            max_page_size=page,
            max_browse_page_size=browse_page,
            use_consumer_priority="no_priority" not in policy,
            strict_order_dispatch="strict" in policy,
            prioritized_messages="prioritized" in policy,
            lazy_dispatch="lazy" in policy,
            use_prefetch_extension="no_extension" not in policy,
            all_consumers_exclusive_by_default="exclusive" in policy,
            message_group_map_factory_type=groups,
            consumers_before_dispatch_starts=start[0],
            time_before_dispatch_starts=start[1],
            cursor=cursor,
        )
        kind = groups.partition("?")[0]
        engine_map = GroupMap(groups)
        self.model = ModelQueue(
            ModelGroups(kind, engine_map.capacity, engine_map.bucket),
            page=page,
            browse_page=browse_page,
            use_priority="no_priority" not in policy,
            strict="strict" in policy,
            prioritized="prioritized" in policy,
            lazy="lazy" in policy,
            extend="no_extension" not in policy,
            all_exclusive="exclusive" in policy,
            start_consumers=start[0],
            start_time=start[1],
            cursor=cursor,
        )
        self.now = 1000
        self.handles: dict[int, int] = {}
        self.count = 0

    def same(self, deliveries: list[Delivery]) -> None:
        got = [
            (each.consumer, None if each.message is None else read(each.body, "n"), each.redeliveries, each.group_first)
            for each in deliveries
        ]
        expected, self.model.out = self.model.out, []
        assert got == expected

    def consumer(self, data: st.DataObject) -> ModelConsumer:
        return data.draw(st.sampled_from(self.model.consumers))

    @rule(
        bit=st.sampled_from([None, None, 0, 1, 2, 3, 4, 5]),
        exclusive=st.sampled_from([False, False, False, True]),
        priority=st.sampled_from([0, 0, 0, 1, 127]),
        prefetch=st.sampled_from([0, 1, 2, 3, 100]),
        no_local=st.sampled_from([False, False, True]),
        connection=st.integers(0, 1),
        named=st.booleans(),
        browser=st.sampled_from([False, False, False, False, True]),
    )
    def add_consumer(
        self,
        bit: int | None,
        exclusive: bool,
        priority: int,
        prefetch: int,
        no_local: bool,
        connection: int,
        named: bool,
        browser: bool,
    ) -> None:
        if len(self.model.consumers) >= 6:
            return
        name = "named" if named and all(other.name is None for other in self.model.consumers) else None
        number = self.queue.add_consumer(
            selector=None if bit is None else SELECTORS[bit],
            exclusive=exclusive,
            priority=priority,
            prefetch=prefetch,
            no_local=no_local,
            connection=connection,
            name=name,
            browser=browser,
        )
        self.model.add_consumer(
            ModelConsumer(number, bit, exclusive, priority, prefetch, no_local, connection, name, browser)
        )

    @rule(
        bits=st.integers(0, 7),
        group=st.sampled_from([None, None, *GROUPS]),
        sequence=st.sampled_from([0, 0, 0, 1, 2, -1]),
        priority=st.sampled_from([4, 4, 0, 9]),
        lifetime=st.sampled_from([0, 0, 0, 0, 5, 20]),
        connection=st.sampled_from([None, 0, 1]),
        persistent=st.sampled_from([True, True, False]),
        targeted=st.sampled_from([False, False, False, False, True]),
        run=st.booleans(),
        times=st.sampled_from([1, 1, 2, 4]),
        plain=st.booleans(),
    )
    def send(
        self,
        bits: int,
        group: str | None,
        sequence: int,
        priority: int,
        lifetime: int,
        connection: int | None,
        persistent: bool,
        targeted: bool,
        run: bool,
        times: int,
        plain: bool,
    ) -> None:
        for _ in range(times):
            target = "named" if targeted else None
            message = ModelMessage(
                self.count,
                bits,
                group,
                sequence,
                priority,
                self.now + lifetime if lifetime else 0,
                connection,
                target,
                persistent,
            )
            self.count += 1
            self.model.send(message)
            sent = {"n": message.n, "bits": bits, "b0": bool(bits & 1)}
            self.handles[message.n] = self.queue.send(
                Message(sent) if plain else sent,
                group=group,
                group_sequence=sequence,
                priority=priority,
                expiration=message.expiration,
                persistent=persistent,
                connection=connection,
                target=target,
            )
        if run:
            self.run()

    @rule()
    def run(self) -> None:
        self.model.run(self.now)
        self.same(self.queue.run(self.now))

    @rule(limit=st.sampled_from([1, 2, 4, 400]), run=st.booleans())
    def look_for_expired(self, limit: int, run: bool) -> None:
        self.model.look_for_expired(self.now, limit)
        self.same(self.queue.expire(self.now, limit=limit))
        if run:
            self.run()

    @rule(ms=st.integers(1, 30))
    def time_passes(self, ms: int) -> None:
        self.now += ms

    @precondition(lambda self: self.model.consumers)
    @rule(data=st.data(), kind=st.sampled_from(["one", "one", "range", "delivered", "transacted"]), run=st.booleans())
    def acknowledge(self, data: st.DataObject, kind: str, run: bool) -> None:
        consumer = self.consumer(data)
        open_messages = [message for message in consumer.held if not message.acknowledged]
        if not open_messages or (kind == "range" and len(open_messages) < len(consumer.held)):
            return
        last = data.draw(st.sampled_from(open_messages))
        handle = self.handles[last.n]
        if kind == "one":
            self.queue.acknowledge(consumer.id, handle)
            self.model.acknowledge(consumer, [last], 1)
        elif kind == "range":
            chosen = consumer.held[: consumer.held.index(last) + 1]
            self.queue.acknowledge(consumer.id, handle, kind=AckKind.STANDARD)
            self.model.acknowledge(consumer, list(chosen), len(chosen))
        elif kind == "delivered":
            self.queue.acknowledge(consumer.id, handle, kind=AckKind.DELIVERED, count=2)
            self.model.delivered(consumer, 2)
        else:
            self.queue.acknowledge(consumer.id, handle, transaction="t")
            self.model.acknowledge_later(consumer, [last], 1, "t")
        if run:
            self.run()

    @rule(commit=st.booleans())
    def end_transaction(self, commit: bool) -> None:
        if commit:
            self.queue.commit("t")
            self.model.commit("t")
        else:
            self.queue.rollback("t")
            self.model.rollback("t")
        self.run()

    @precondition(lambda self: self.model.consumers)
    @rule(data=st.data(), how=st.sampled_from(["nothing", "some", "lost"]), run=st.booleans())
    def close(self, data: st.DataObject, how: str, run: bool) -> None:
        consumer = self.consumer(data)
        last = data.draw(st.sampled_from(consumer.held)) if how == "some" and consumer.held else None
        self.model.close(consumer, last, how == "lost", self.now)
        handle = None if last is None else self.handles[last.n]
        self.same(self.queue.close(consumer.id, last_delivered=handle, lost=how == "lost", now=self.now))
        if run:
            self.run()

    @precondition(lambda self: self.model.consumers)
    @rule(data=st.data(), quantity=st.integers(1, 2), timeout=st.sampled_from([-1, 0, 0]))
    def pull(self, data: st.DataObject, quantity: int, timeout: int) -> None:
        consumer = self.consumer(data)
        if consumer.browser:
            return
        self.model.pull(consumer, quantity, timeout, self.now)
        self.same(self.queue.pull(consumer.id, quantity=quantity, timeout=timeout, now=self.now))

    @precondition(lambda self: self.model.consumers)
    @rule(data=st.data())
    def pull_timeout(self, data: st.DataObject) -> None:
        consumer = self.consumer(data)
        self.model.pull_timeout(consumer)
        self.same(self.queue.pull_timeout(consumer.id))

    @rule(paused=st.booleans())
    def pause(self, paused: bool) -> None:
        self.model.paused = paused
        if paused:
            self.queue.pause()
        else:
            self.queue.resume()
            self.model.wakeups += 1

    @rule(group=st.sampled_from([None, *GROUPS]))
    def remove_group(self, group: str | None) -> None:
        if group is None:
            self.queue.remove_all_groups()
            self.model.groups.drop_all()
        else:
            self.queue.remove_group(group)
            self.model.groups.drop(group)

    @rule()
    def purge(self) -> None:
        self.queue.purge()
        self.model.purge()

    @invariant()
    def everything_visible_is_equal(self) -> None:
        if not hasattr(self, "queue"):
            return
        queue, model = self.queue, self.model
        queue._check()
        assert queue.consumer_order == [consumer.id for consumer in model.consumers]
        assert queue.exclusive_consumer == (None if model.elected is None else model.elected.id)
        assert queue.wakeups == model.wakeups
        assert queue.waiting() == [self.handles[message.n] for message in model.pending()]
        statistics = queue.statistics
        assert statistics["stored"] == len(model.cursor)
        assert statistics["expired"] == model.expired
        assert queue.take_slow() == model.slowed
        model.slowed.clear()
        for consumer in model.consumers:
            counters = queue.counters_of(consumer.id)
            assert counters["slow"] == consumer.slow
            assert (counters["enqueued"], counters["dispatched"]) == (consumer.enqueued, consumer.dispatched)
            assert queue.unacknowledged(consumer.id) == [self.handles[message.n] for message in consumer.held]
            assert queue.assigned_groups(consumer.id) == model.groups.counts.get(consumer.id, 0)
        if model.groups.kind != "bucket":
            assert queue.group_owners == dict(model.groups.owner)
        if model.groups.kind == "cached":
            assert list(queue.group_owners) == list(model.groups.owner)
        for message in model.pending()[:4]:
            handle = self.handles[message.n]
            verdicts = {consumer: verdict.name for consumer, verdict in queue.why_each(handle).items()}
            assert verdicts == model.verdicts(message)
            self.reason_fits(queue.why(handle), verdicts)

    def reason_fits(self, why: tuple[Any, int | None], verdicts: dict[int, str]) -> None:
        """The one reason must not contradict what the consumers say."""
        reason, consumer = why[0].name, why[1]
        said = [verdict for verdict in verdicts.values() if verdict != Verdict.BROWSES.name]
        if reason == "AWAITING_WAKEUP":
            assert "TAKES" in said
        elif reason not in ("UNCOMMITTED", "START_DELAY", "NOT_PAGED_IN"):
            assert "TAKES" not in said
        if reason in ("GROUP_NO_CREDIT", "EXCLUSIVE_NO_CREDIT"):
            assert verdicts[consumer or 0] == "FULL"
        if reason in ("GROUP_SELECTOR", "EXCLUSIVE_SELECTOR"):
            assert verdicts[consumer or 0] in ("REFUSES", "FULL", "NOT_TARGET")
        if reason == "EXCLUSIVE_BROWSER":
            assert verdicts[consumer or 0] == "BROWSES"
        if reason == "NO_CONSUMER":
            assert not said
        if reason == "PAUSED":
            assert set(said) <= {"PAUSES", "FULL"}


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
